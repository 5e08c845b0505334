# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Several publishers of joint states: clocks, rates and names of their own."""

import contextlib
import re

from covering import covering
from diagnostic_msgs.msg import DiagnosticStatus
from harness import Ear, joint_state, said
import numpy as np
import pytest
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.clock import ClockType
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rclpy.time import Time
from robots import fan
from sensor_msgs.msg import JointState
from std_msgs.msg import String

OK, WARN, ERROR = DiagnosticStatus.OK, DiagnosticStatus.WARN, DiagnosticStatus.ERROR
NAMES = list('abc')
# s: from stamp to receipt.
DELAY = 0.0004

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture
def make():
    """Return a function that makes a node in simulated time, whose outputs are kept."""
    with contextlib.ExitStack() as stack:
        def start(**parameters):
            node = DynamicsNode(parameter_overrides=[
                Parameter(name, value=value) for name, value in (
                    {'use_sim_time': True} | parameters).items()])
            stack.callback(node.destroy_node)
            be(node, 100.0)
            node.listening._on_description(String(data=fan(NAMES)))
            heard = []
            node.publishing._publishers = {'~/gravity_torques': Ear('~/gravity_torques', heard)}
            node.commanding._publishers = {}
            return node, heard
        yield start


def be(node, t):
    """Let it be so late."""
    node.get_clock().set_ros_time_override(
        Time(nanoseconds=round(1e9 * t), clock_type=ClockType.ROS_TIME))


def take(node, names, t, position=0.1, offset=0.0):
    """Let a joint state of a publisher come whose clock has an offset, s."""
    be(node, t + DELAY)
    node.listening._on_joint_state(bytes(serialize_message(joint_state(
        names, [position] * len(names), [0.0] * len(names),
        stamp=divmod(round(1e9 * (t + offset)), 10 ** 9)))))


def findings(node):
    """Return what the node reports now."""
    status = node.health.message().status[0]
    return status.level, status.message


@pytest.mark.parametrize('offset, timeout', covering([
    (0.0, 0.5), (0.03, 0.5), (-0.03, 0.5), (0.03, 0.025), (0.4, 0.5), (-0.4, 0.5)],
    (0.0, 0.5), (0.03, 0.025), (0.4, 0.5), (-0.4, 0.5)))
def test_a_joint_with_another_clock_and_rate_takes_no_output_from_the_others(make, offset, timeout,
                                                                             capfd):
    node, heard = make(state_timeout=timeout)
    times = sorted([(100.01 + 0.002 * k, 'arm') for k in range(300)]
                   + [(100.0095 + 0.02 * k, 'gripper') for k in range(30)])
    leading = []
    for t, which in times:
        take(node, NAMES[:2] if which == 'arm' else NAMES[2:], t,
             offset=offset if which == 'gripper' else 0.0)
        leader = node.robot.time_stamp
        leading.append(leader.sec + 1e-9 * leader.nanosec)
    assert len(heard) == len(times) - 1
    assert node.report.counts['joint states dropped'] == 0
    stamps = [stamp.sec + 1e-9 * stamp.nanosec for _, stamp, _ in heard]
    assert stamps == sorted(stamps)
    # The newest one that was used.
    sent = max(t + (offset if which == 'gripper' else 0.0) for t, which in times)
    assert stamps[-1] == pytest.approx(sent, abs=1e-6)
    # Consumers that integrate see the arm's times, each once.
    assert leading[9:] == sorted(leading[9:]) and len(set(leading)) in range(297, 302)
    assert leading[-1] == pytest.approx(100.608, abs=1e-6)
    assert capfd.readouterr().err.count('stamps of c are') == (offset != 0.0)
    findings(node)
    assert findings(node) == (WARN, 'no joint states arrived since the last report; while /clock '
                              'stands still, the last ones do not age')


@pytest.mark.parametrize('period', [1.0, np.inf])
def test_a_joint_with_rare_states_is_named_with_a_remedy(make, period, capfd):
    node, heard = make()
    take(node, NAMES[:2], 99.99)
    assert ('no recent position of c; c never arrived: publish it, or lock it (locked_joints)'
            in findings(node)[1])
    for k in range(480):
        t = 100.0 + 0.005 * k
        if k == 0 or (period < np.inf and k % round(period / 0.005) == 0):
            take(node, NAMES[2:], t)
        take(node, NAMES[:2], t)
    # Nothing is published while it is older than state_timeout.
    recent = 0.5 + 0.5 + 0.4 if period == 1.0 else 0.5
    assert abs(len(heard) - recent / 0.005) < 5
    be(node, 102.9)
    level, text = findings(node)
    assert level == ERROR
    assert 'no recent position of' in text and 'c comes once, or less often than' in text
    assert 'state_timeout' in text and 'locked_joints' in text
    assert 'a comes' not in text


@pytest.mark.parametrize('ours, theirs, why', [
    ('', 'left/', "with the prefix 'left/'"), ('left_', '', "without the prefix 'left_'"),
    ('', 'arm_', "with the prefix 'arm_'"), ('left/', 'right/', '')])
def test_names_that_differ_by_a_prefix_are_explained(make, ours, theirs, why, capfd):
    node, heard = make()
    node.listening._on_description(String(data=re.sub(
        'joint name="', f'joint name="{ours}', fan(NAMES))))
    take(node, [theirs + name for name in NAMES] + ['wheel'], 100.0)
    assert not heard
    for text in (findings(node)[1], capfd.readouterr().err):
        assert (why in text and 'did you mean' in text) if why else 'prefix' not in text


@pytest.mark.parametrize('second, wrong', covering([
    (NAMES[2:], False), (['wheel'], False), (NAMES[::-1], True), (NAMES[1:], True),
    (NAMES, True)], (NAMES[2:], False), (['wheel'], False), (NAMES[1:], True), (NAMES, True)))
def test_publishers_of_the_same_joints_are_named_and_others_are_not(harness, second, wrong):
    node = harness(fan(NAMES), state_timeout=60.0)
    other = Node('second_robot')
    publisher = other.create_publisher(JointState, 'joint_states', 10)
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    first = NAMES[:2] if second == NAMES[2:] else NAMES
    for _ in range(3):
        node.send(first, [0.1] * len(first), [0.0] * len(first))
        publisher.publish(joint_state(second, [0.1] * len(second), [0.0] * len(second)))
        node.settle()
    if wrong:
        said(node, '2 publishers of /joint_states: /peer, /second_robot', WARN)
        if second != NAMES:
            said(node, f"several publish {', '.join(n for n in NAMES if n in second)}: stop", WARN)
    else:
        said(node, 'publishing', OK)
    other.destroy_node()
