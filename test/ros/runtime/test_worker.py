# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Work in the background: results, failures and a queue that has an end."""

from threading import Event

import pytest
from rbd_ros.ros.runtime.worker import Busy, MAX_WAITING, Worker

# s, after which a test fails that waits for a thread
PATIENCE = 60.0


class Executor:
    """An executor that calls what it is handed, at once."""

    def create_task(self, function, *arguments):
        function(*arguments)


def fail(*_):
    raise ValueError('this piece of work failed')


@pytest.fixture(params=[None, Executor()], ids=['at once', 'in a thread'])
def work(request):
    """Return a function that lets a worker work; it returns what the worker reported."""
    def work(do, then=None):
        failures, done = [], Event()
        worker = Worker(lambda: request.param, failures.append)
        worker.submit(do, then)
        worker.submit(done.set)
        assert done.wait(PATIENCE)
        worker.close()
        return [str(error) for error in failures]
    return work


@pytest.mark.parametrize('do, then', [(fail, print), (lambda: 7, fail)])
def test_the_exception_of_work_or_of_its_continuation_is_reported(work, do, then, capsys):
    assert work(do, then) == ['this piece of work failed']
    assert not capsys.readouterr().out


def test_a_continuation_gets_the_result(work):
    results = []
    assert work(lambda: 7, results.append) == []
    assert results == [7]


def test_a_full_queue_refuses_only_work_that_must_not_wait():
    worker, started, go_on = Worker(Executor, fail), Event(), Event()
    worker.submit(lambda: (started.set(), go_on.wait(PATIENCE)))
    assert started.wait(PATIENCE)
    for _ in range(MAX_WAITING):
        worker.submit(int, may_wait=False)
    with pytest.raises(Busy):
        worker.submit(int, may_wait=False)
    done = Event()
    worker.submit(done.set)
    go_on.set()
    assert done.wait(PATIENCE)
    worker.close()
