# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What many tests of the node need: a network of their own, a robot, its state and a node."""

from harness import Harness, ros
import pytest
from rbd_ros.kernels.jit import compiled
import rclpy
from robots import example_urdf, load_quietly, random_state


@pytest.fixture(autouse=True)
def kernels_are_compiled_in_this_process():
    """Fail a test after which further tests would compile in another process."""
    yield
    assert compiled._compile_process is None


@pytest.fixture(scope='module')
def domain():
    """Keep a module's nodes among themselves."""
    with ros():
        yield


@pytest.fixture
def peer():
    """Give the test a ROS domain of its own, and a node in it."""
    with ros():
        node = rclpy.create_node('peer')
        yield node
        node.destroy_node()


@pytest.fixture(scope='module')
def model():
    """Return the UR10."""
    return load_quietly(example_urdf('ur10_robot.urdf'))


@pytest.fixture
def harness():
    """Return a function that starts a node, of the UR10; it is taken down after the test."""
    started, ur10 = [], example_urdf('ur10_robot.urdf').read_text()

    def start(description=ur10, **parameters):
        started.append(Harness(description, **parameters))
        return started[-1]
    yield start
    for one in started:
        one.close()


@pytest.fixture
def state(model):
    """Return names, a position and a velocity of the UR10."""
    q, v, _ = random_state(model, 7)
    return model.velocity_names, q, v
