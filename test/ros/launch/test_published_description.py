# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether a launch file notices a description that is published already."""

from types import SimpleNamespace

from harness import LATCHED, PATIENCE, ros
import pytest
from rbd_ros.ros.launch.published_description import published_description
import rclpy
from std_msgs.msg import String


@pytest.fixture
def driver():
    """Return a node that is already there."""
    with ros():
        node = rclpy.create_node('driver', namespace='left')
        yield node
        node.destroy_node()


def test_the_first_description_is_received_with_the_name_of_its_publisher(driver):
    publisher = driver.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data='<robot/>'))
    assert published_description('/left/robot_description', patience=PATIENCE) == (
        '/left/driver', '<robot/>')
    # It leaves nothing behind, and ROS as it was.
    assert rclpy.ok()
    assert driver.count_subscribers('/left/robot_description') == 0


def test_the_name_of_the_publisher_may_arrive_after_the_description(driver, monkeypatch):
    publisher = driver.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data='<robot/>'))
    unknown = SimpleNamespace(node_namespace='_NODE_NAMESPACE_UNKNOWN_',
                              node_name='_NODE_NAME_UNKNOWN_')
    known, asked = SimpleNamespace(node_namespace='/left', node_name='driver'), []

    def publishers(node, topic):
        asked.append(topic)
        return [unknown] if len(asked) < 20 else [known]
    monkeypatch.setattr('rclpy.node.Node.get_publishers_info_by_topic', publishers)
    assert published_description('/left/robot_description', patience=PATIENCE) == (
        '/left/driver', '<robot/>')


def test_other_namespaces_and_publishers_without_a_description_are_ignored(driver):
    publisher = driver.create_publisher(String, 'robot_description', LATCHED)
    assert published_description('/left/robot_description', patience=0.5) is None
    publisher.publish(String(data='<robot/>'))
    assert published_description('/robot_description', patience=0.5) is None


def test_waiting_for_a_description_ends_on_request(driver):
    asked = []
    assert published_description('/left/robot_description',
                                 lambda: bool(asked.append(1)) or len(asked) == 3,
                                 PATIENCE) is None
    assert len(asked) == 3


def test_without_ros_no_description_is_found(monkeypatch):
    monkeypatch.setenv('ROS_DOMAIN_ID', 'none')
    assert published_description('/robot_description') is None
