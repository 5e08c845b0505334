# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run tests marked `alone` alone, although several files run at once; compile kernels once."""

from contextlib import contextmanager, ExitStack
import fcntl
import gc
import os
from pathlib import Path

import pytest
from rbd_ros.cli.common import terminal
from rbd_ros.kernels.jit import compiled

# Lock files shared by the processes of one run; their contents do not matter.
GATE, ROOM = Path(__file__), Path(__file__).parent


@contextmanager
def locked(path, how):
    """Hold a lock."""
    handle = os.open(path, os.O_RDONLY)
    fcntl.flock(handle, how)
    try:
        yield
    finally:
        # Forked processes of the test must not inherit the lock.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def pytest_collection_modifyitems(items):
    """Begin with node tests, which take longest and mostly wait."""
    items.sort(key=lambda item: 'ros' not in item.path.parts)


@pytest.hookimpl(wrapper=True)
def pytest_collection():
    """Search nothing for garbage that is there before the first test: most of all there is."""
    gc.disable()
    try:
        return (yield)
    finally:
        gc.enable()
        gc.freeze()


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let tests marked `alone` run while no other test runs."""
    # Programs started by tests inherit the environment of a worker, but are not workers.
    if not hasattr(item.config, 'workerinput'):
        return (yield)
    how = fcntl.LOCK_EX if item.get_closest_marker('alone') else fcntl.LOCK_SH
    # A waiting test holds the gate, so that no other test starts before it.
    with ExitStack() as room:
        with locked(GATE, how):
            room.enter_context(locked(ROOM, how))
        return (yield)


@pytest.fixture(scope='session', autouse=True)
def commands_are_compared_without_lines_about_their_work():
    """Let slow machines print what fast ones do."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(terminal, 'SILENCE', 3600.0)
        yield


@pytest.fixture(scope='session', autouse=True)
def each_kernel_is_compiled_once(tmp_path_factory):
    """Let processes wait for the one that compiles a kernel, and load it then."""
    if not compiled.COMPILES:
        yield
        return
    dispatcher, folder = compiled.KernelDispatcher, tmp_path_factory.getbasetemp().parent
    compile_kernel = dispatcher.compile

    def compile_in_turn(kernel, types):
        name = folder / f'{kernel.py_func.__module__}.{kernel.py_func.__qualname__}.lock'
        name.touch()
        with locked(name, fcntl.LOCK_EX):
            return compile_kernel(kernel, types)
    with pytest.MonkeyPatch.context() as patch:
        # Threads of a process have taken turns before; with locks in another order, two could
        # wait for each other.
        patch.setattr(dispatcher, 'compile', compile_in_turn)
        yield
