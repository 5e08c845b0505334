# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One node that answers the requests of many tests, while no test starts another one."""

from harness import Harness
import pytest
from robots import example_urdf


@pytest.fixture(scope='module')
def shared(domain):
    """Return a list with the node of a module, or without one."""
    nodes = []
    yield nodes
    for node in nodes:
        node.close()


@pytest.fixture
def arm(shared):
    """Return a node of the UR10 with a task link, and perhaps a state, that has heard nothing."""
    if not shared:
        shared.append(Harness(example_urdf('ur10_robot.urdf').read_text(), state_timeout=60.0,
                              task_link='tool0'))
    node, = shared
    node.settle()
    for messages in node.heard.values():
        messages.clear()
    return node


@pytest.fixture
def harness(harness, shared):
    """Return a function that starts a node, where no other one answers for it."""
    while shared:
        shared.pop().close()
    return harness
