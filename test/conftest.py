# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Run tests marked `alone` alone, although several files run at once."""

from contextlib import contextmanager, ExitStack
import fcntl
import os
from pathlib import Path

import pytest

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
    items.sort(key=lambda item: item.path.parent.name != 'ros')


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
