# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tests that need the machine to themselves have it, although several files run at once."""

from contextlib import contextmanager, ExitStack
import fcntl
import os
from pathlib import Path

import pytest

# What processes of one run agree on: locks of these two, whose contents do not matter.
GATE, ROOM = Path(__file__), Path(__file__).parent


@contextmanager
def locked(path, how):
    """Hold a lock."""
    handle = os.open(path, os.O_RDONLY)
    fcntl.flock(handle, how)
    try:
        yield
    finally:
        # Processes that the test has forked do not keep it.
        fcntl.flock(handle, fcntl.LOCK_UN)
        os.close(handle)


def pytest_collection_modifyitems(items):
    """Begin with nodes, whose tests take longest, and wait; then what only computes is quick."""
    items.sort(key=lambda item: item.path.parent.name != 'ros')


@pytest.hookimpl(wrapper=True)
def pytest_runtest_protocol(item):
    """Let tests that are marked `alone` run while no other test does."""
    # Other programs of tests inherit the environment of a worker, but are none.
    if not hasattr(item.config, 'workerinput'):
        return (yield)
    how = fcntl.LOCK_EX if item.get_closest_marker('alone') else fcntl.LOCK_SH
    # Who waits to be alone holds the gate, so that nobody else enters first.
    with ExitStack() as room:
        with locked(GATE, how):
            room.enter_context(locked(ROOM, how))
        return (yield)
