# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels are compiled when they are prepared, and at no other time."""

from threading import Barrier, Thread
from time import sleep

import numba
import numpy as np
import pytest
from rbd_ros.kernels import compiled
from rbd_ros.kernels.compiled import kernel, prepare
from rbd_ros.workspace import Workspace

X = np.arange(3.0)


def total(x):
    """Be a kernel."""
    return x[0] + x[1] + x[2]


@pytest.fixture
def made(monkeypatch):
    """Return a kernel that is kept in no file."""
    monkeypatch.setattr(compiled, '_directory', None)
    return kernel(total)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason='nothing is compiled')
@pytest.mark.parametrize('other', [X.astype(np.float32), np.ones(6)[::2], [0.0, 1.0, 2.0], None])
def test_a_kernel_refuses_what_it_was_not_prepared_for(made, other):
    with pytest.raises(TypeError):
        made(X)
    assert prepare(made, X)
    assert not prepare(made, X)
    assert made(X) == 3.0
    with pytest.raises(TypeError):
        made(other)
    assert len(made.signatures) == 1
    # Once prepared for another type, it takes both.
    prepare(made, X.astype(np.float32))
    assert made(X.astype(np.float32)) == made(X) == 3.0


class SlowKernel:
    """Stands for a kernel whose compilation takes its time, and fails if it is forbidden."""

    def __init__(self):
        self.overloads, self.signatures, self.allowed, self.failed = {}, [()], False, False
        self.compile = self.take

    def disable_compile(self, disable=True):
        """Forbid to compile, or allow it."""
        self.allowed = not disable

    def take(self, types):
        """Take ever longer, and notice whether it was allowed all the while."""
        for _ in range(20 * (1 + len(self.overloads))):
            sleep(0.002)
            self.failed |= not self.allowed
        self.overloads[types] = types


def test_threads_that_call_a_kernel_first_at_the_same_time_all_get_its_result(monkeypatch):
    monkeypatch.setattr(compiled, '_directory', None)
    for _ in range(5):
        fresh, begin, found = kernel(lambda x: x.sum() + 1.0), Barrier(3), []

        def call(begin=begin, found=found, fresh=fresh):
            begin.wait()
            found.append(Workspace._call(fresh, X))
        threads = [Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [X.sum() + 1.0] * 3


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason='nothing is compiled')
def test_threads_that_prepare_a_kernel_wait_for_each_other():
    slow = SlowKernel()
    threads = [Thread(target=prepare, args=(slow, X.astype(kind)))
               for kind in (np.float64, np.float32, np.int64)]
    for thread in threads:
        thread.start()
        sleep(0.01)
    for thread in threads:
        thread.join()
    assert len(slow.overloads) == 3
    assert not slow.failed
