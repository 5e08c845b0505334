# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels that another process compiles, for threads that wait for them and one that must not."""

from importlib import import_module
import os
from pathlib import Path
import subprocess
import sys
from threading import get_ident, Thread
from time import monotonic, sleep

import numpy as np
from optional import Optional
import pytest
from rbd_ros.kernels.jit import compile_process, compiled
from rbd_ros.kernels.jit.compile_process import CompileProcess, NICENESS
from rbd_ros.kernels.jit.kernel_cache import Directory
from rbd_ros.kernels.jit.numba_backend import COMPILES
from small_kernels import fold_vector

psutil = Optional('psutil')

if not COMPILES:
    pytest.skip('nothing is compiled', allow_module_level=True)
# s: two processors may have ten other things to do
PATIENCE = 120.0
# Two joints follow one joint of the model, the second three times as fast, with these torques.
VELOCITIES, TAU = np.array([[0.0, 1.0], [0.0, 3.0]]), np.array([2.0, 5.0])
FOLDED = 17.0


def until(done):
    """Wait until something is so; fail if it does not become so."""
    end = monotonic() + PATIENCE
    while not done():
        sleep(0.01)
        assert monotonic() < end


@pytest.fixture
def folder(tmp_path, monkeypatch):
    """Keep kernels in a folder of this test."""
    monkeypatch.setattr(compiled, '_directory', Directory(tmp_path / 'cache'))


@pytest.fixture
def process(folder, monkeypatch):
    """Let another process compile, which does not run yet."""
    one = CompileProcess(lambda: True)
    monkeypatch.setattr(compiled, '_compile_process', one)
    yield one
    one.close()


@pytest.fixture(scope='module')
def running():
    """Return a process for tests that leave it as it is; its start takes a second."""
    one = CompileProcess(lambda: True)
    yield one
    one.close()


@pytest.fixture
def shared(folder, running, monkeypatch):
    """Let a process compile that may run already."""
    monkeypatch.setattr(compiled, '_compile_process', running)
    monkeypatch.setattr(running, 'may_wait', lambda: True)
    return running


def fresh(function=fold_vector.py_func):
    """Return a kernel as it is in a process that has not called it."""
    return compiled.kernel(function)


def call(kernel):
    """Return what a kernel computes."""
    folded = np.zeros(1)
    kernel(VELOCITIES, TAU, folded)
    return folded[0]


def make_ready(kernel):
    """Compile a kernel; return whether this process did."""
    compiled.prepare(kernel, VELOCITIES, TAU, np.zeros(1))
    return not kernel.stats.cache_hits


def test_another_process_compiles_and_this_one_keeps_the_file(process, tmp_path):
    one, other = fresh(), fresh()
    assert not process.is_running()
    assert not make_ready(one)
    assert process.is_running()
    assert call(one) == FOLDED
    # The next process finds it in the cache, and starts no other.
    process.close()
    assert not make_ready(other)
    assert not process.is_running()
    assert call(other) == FOLDED
    assert len(list((tmp_path / 'cache').iterdir())) == 1


def test_the_process_leaves_processors_to_others(shared):
    make_ready(fresh())
    pid = shared._process.pid
    assert os.getpriority(os.PRIO_PROCESS, pid) == min(os.nice(0) + NICENESS, 19)
    group = Path(f'/proc/{pid}/autogroup')
    assert not group.exists() or group.read_text().endswith(f' nice {NICENESS}\n')


@pytest.mark.parametrize('why', ['no home', 'not writable'])
def test_fault_58_another_process_compiles_even_if_nothing_can_be_kept(shared, monkeypatch,
                                                                       tmp_path, why):
    (tmp_path / 'file').write_text('')
    monkeypatch.setattr(compiled, '_directory',
                        Directory(None if why == 'no home' else tmp_path / 'file' / 'cache'))
    one = fresh()
    assert not make_ready(one)
    assert call(one) == FOLDED


def test_a_thread_that_must_not_wait_goes_on_and_gets_the_kernel_later(shared):
    one, here = fresh(), get_ident()
    shared.may_wait = lambda: get_ident() != here
    for _ in range(3):
        with pytest.raises(compiled.KernelNotReady) as got:
            make_ready(one)
    until(got.value.is_over)
    assert call(one) == FOLDED
    until(lambda: not compiled.foreground_busy())     # the thread that compiled it has ended
    # It is there now, as is that of another program in the cache: nothing is raised.
    compiled.prepare(one, VELOCITIES, TAU, np.zeros(1))
    assert not make_ready(fresh())


def test_a_cached_kernel_is_requested_while_another_thread_compiles(shared):
    assert not make_ready(fresh())
    one, here = fresh(), get_ident()
    shared.may_wait = lambda: get_ident() != here
    taken, free = [], []

    def hold():
        with compiled._compiling:
            taken.append(True)
            until(lambda: free)
    thread = Thread(target=hold)
    thread.start()
    until(lambda: taken)
    with pytest.raises(compiled.KernelNotReady) as got:
        make_ready(one)
    free.append(True)
    thread.join()
    until(got.value.is_over)
    assert call(one) == FOLDED


def local_kernel():
    """Return a function that no other process can find."""
    def half(velocities, x, folded):
        folded[0] = 0.5 * x[0]
    return half


def test_kernels_unknown_to_the_process_are_compiled_here(shared, caplog):
    one, other = fresh(local_kernel()), fresh()
    assert make_ready(one)
    assert call(one) == 1.0
    # It goes on with the next.
    assert not make_ready(other)
    assert not caplog.messages


@pytest.mark.parametrize('how', ['it cannot start', 'it ends', 'it is killed'])
def test_fault_78_kernels_are_compiled_here_if_another_process_fails(
        process, monkeypatch, caplog, how):
    if how == 'it is killed':
        process._running().kill()
    else:
        monkeypatch.setattr(sys, 'executable',
                            '/nowhere/python' if how == 'it cannot start' else '/bin/false')
    one = fresh()
    assert make_ready(one)
    assert call(one) == FOLDED
    assert not process.is_running()
    assert 'compiled in this process' in caplog.text
    assert make_ready(fresh(local_kernel()))
    assert len(caplog.messages) == 1


def test_after_closing_the_process_runs_for_one_kernel_at_a_time(process):
    process.close()
    assert not make_ready(fresh())
    assert not process.is_running()


PARENT = """
import os, sys
from threading import Thread
import numpy as np
from rbd_ros.kernels.jit import compile_process, compiled, kernel_cache
compiled._directory = kernel_cache.Directory(None)
from rbd_ros.kernels.derivatives.newton_euler_derivatives import hybrid_dynamics_and_derivatives
one = compile_process.CompileProcess(lambda: True)
print(one._running().pid, flush=True)
# It takes seconds; this process does not wait for them.
import pickle
kernel = hybrid_dynamics_and_derivatives.py_func
pickle.dump((kernel.__module__, kernel.__qualname__, ()), one._running().stdin)
one._running().stdin.flush()
input()
"""


@pytest.mark.parametrize('how', ['kill', 'terminate'])
def test_the_other_process_ends_with_this_one(how):
    parent = subprocess.Popen([sys.executable, '-c', PARENT], stdin=subprocess.PIPE,
                              stdout=subprocess.PIPE, text=True)
    child = psutil.Process(int(parent.stdout.readline()))
    getattr(parent, how)()
    parent.communicate()
    until(lambda: not child.is_running() or child.status() == psutil.STATUS_ZOMBIE)


@pytest.mark.parametrize('patience, crashes', [(PATIENCE, False), (0.0, False), (PATIENCE, True)],
                         ids=['by itself', 'too slow', 'crashed'])
def test_an_ended_process_leaves_no_files(process, tmp_path, monkeypatch, patience, crashes):
    monkeypatch.setattr(compile_process, 'PATIENCE', patience)
    monkeypatch.setattr('tempfile.tempdir', str(tmp_path))
    assert process.call('os', 'getpid', ()) not in (None, os.getpid())
    assert len(list(tmp_path.glob('rbd_ros.*'))) == 1
    if crashes:
        process._process.kill()
    process.end()
    assert not list(tmp_path.glob('rbd_ros.*'))


def test_the_process_imports_modules_from_the_path_of_this_one(process, tmp_path, monkeypatch):
    (tmp_path / 'some_kernels.py').write_text(
        'from rbd_ros.kernels.jit.compiled import kernel\n\n\n@kernel\n'
        'def double(velocities, x, folded):\n    folded[0] = 2.0 * x[0]\n')
    monkeypatch.syspath_prepend(tmp_path)
    some_kernels = import_module('some_kernels')
    assert not make_ready(some_kernels.double)
    assert call(some_kernels.double) == 4.0
    assert os.getcwd() not in map(str, tmp_path.parents)
