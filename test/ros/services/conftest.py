# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""One node that answers the requests of many tests, while no test starts another one."""

from harness import Harness
import pytest
from robots import example_urdf


class SharedNode:
    """A node of the UR10 with a task link, started when it is needed."""

    def __init__(self):
        self._harness = None

    def get(self):
        """Return the node; nothing is heard of what came before."""
        if self._harness is None:
            self._harness = Harness(example_urdf('ur10_robot.urdf').read_text(),
                                    state_timeout=60.0, task_link='tool0')
        self._harness.settle()
        for messages in self._harness.heard.values():
            messages.clear()
        return self._harness

    def close(self):
        """Take it down."""
        if self._harness is not None:
            self._harness.close()
            self._harness = None


@pytest.fixture(scope='module')
def shared(domain):
    """Return the node of a module."""
    node = SharedNode()
    yield node
    node.close()


@pytest.fixture
def arm(shared):
    """Return a node that has the description of a UR10, and perhaps a state."""
    return shared.get()


@pytest.fixture
def harness(harness, shared):
    """Return a function that starts a node, where no other one answers for it."""
    shared.close()
    return harness
