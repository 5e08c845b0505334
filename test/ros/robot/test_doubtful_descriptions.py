# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes take doubtful descriptions as the library does, and never command zeros for efforts."""

from diagnostic_msgs.msg import DiagnosticStatus
from harness import said
import numpy as np
import pytest
import rbd_ros
from rbd_ros._internal.setting import declared, Group
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.robot.read_model import load_quietly, read_model, RobotSettings
from rclpy.parameter import Parameter
from urdf_texts import DOUBTFUL, two_joint_arm

NOT_STATED = two_joint_arm(limit='effort="0" velocity="0" lower="-2" upper="2"')
WARN = DiagnosticStatus.WARN

pytestmark = pytest.mark.usefixtures('domain')
# What diagnostics repeat at WARN for as long as the robot is in use.
REPEATED = {
    'no moving joint': 'the robot has no moving joint: there is nothing to compute',
    'no inertials': 'no link has a mass: every torque is zero',
    'a joint moves no mass': 'joint j: moves no mass: its torque is zero'}


def settings(**changes):
    """Return the default settings of a robot, with changes."""
    defaults = {name: one.make({label: part.default for label, part in one.settings.items()})
                if isinstance(one, Group) else one.default
                for name, one in declared(RobotSettings).items()}
    return RobotSettings(**{**defaults, **changes})


@pytest.mark.parametrize('name', DOUBTFUL)
def test_nodes_read_doubtful_robots_with_the_warnings_of_the_library(name):
    text, expected = DOUBTFUL[name]
    notes = read_model(text, settings()).warnings
    assert len(notes) == len(expected)
    assert all(a.startswith(b) for a, b in zip(notes, expected)), notes
    with pytest.raises(rbd_ros.ModelError) as refused:
        read_model(text, settings(strict_urdf=True))
    assert str(refused.value) == notes[0]


@pytest.mark.parametrize('given, expected', [
    ({'command_limits': (4.0,)}, [4.0, 4.0]),
    ({'command_limits': (4.0, 5.0), 'command_joints': ('elbow', 'shoulder')}, [5.0, 4.0]),
    ({'command_limits': (4.0,), 'command_joints': ('shoulder',)}, [4.0, 9.0]),
    ({'command_limits': (4.0,), 'command_joints': ('elbow',)}, [np.inf, 4.0]),
    ({}, [np.inf, 9.0])])
def test_limits_of_commands_replace_those_of_the_description(given, expected):
    for more in ({}, {'payload_link': 'lower', 'payload_mass': 1.0}):
        model = read_model(NOT_STATED, settings(**given, **more))
        assert model.effort_limit.tolist() == expected
        assert model.velocity_limit.tolist() == [np.inf, 3.0]
        # What is stated now is warned of no longer.
        assert any('effort limit 0' in note for note in model.warnings) is (expected[0] == np.inf)


def test_a_strict_node_takes_a_robot_whose_only_doubt_its_limits_of_commands_remove():
    text = DOUBTFUL['effort 0'][0]
    model = read_model(text, settings(strict_urdf=True, command_limits=(7.0,)))
    assert model.effort_limit.tolist() == [7.0, 7.0]


def test_fault_85_diagnostics_repeat_that_there_is_nothing_to_compute(harness):
    node = harness(two_joint_arm(), state_timeout=60.0, topics=('~/dynamics',))
    node.answer(['shoulder', 'elbow'], [0.3, 0.4], [0.0, 0.0])
    assert not any(text in node.diagnosis()[1] for text in REPEATED.values())
    for model_id, (name, text) in enumerate(REPEATED.items(), 2):
        node.describe(DOUBTFUL[name][0])
        node.spin_until(lambda k=model_id: node.node.robot.model_id == k)
        names = node.node.robot.model.velocity_names
        node.send(names, [0.1] * len(names), [0.0] * len(names))
        said(node, text, WARN)


def test_fault_84_limits_of_0_stop_a_node_that_clamps_until_limits_are_given(harness):
    node = harness(None, kind=TorqueController, mode='gravity', state_timeout=60.0)
    node.describe(NOT_STATED)
    said(node, 'for shoulder: set command_limits', WARN)
    assert node.node.robot is None
    node.send(['shoulder', 'elbow'], [0.3, 0.4], [0.0, 0.0])
    node.settle()
    assert not node.heard['~/effort_commands']


@pytest.mark.parametrize('given, limit', [
    ({'limit_efforts': False}, np.inf), ({'command_limits': [0.5]}, 0.5),
    ({'command_limits': [20.0]}, 20.0)])
def test_efforts_of_a_robot_with_limits_of_0_are_not_clipped_to_zero(harness, given, limit):
    node = harness(NOT_STATED, kind=TorqueController, mode='gravity', state_timeout=60.0,
                   ramp_time=0.0, **given)
    got = node.answer(['shoulder', 'elbow'], [0.3, 0.4], [0.0, 0.0], topic='~/effort_commands')
    g = rbd_ros.gravity_torques(load_quietly(NOT_STATED), [0.3, 0.4])
    assert np.min(np.abs(g)) > 0.3 and np.max(np.abs(g)) > 0.5
    assert np.allclose(got.data, np.clip(g, -limit, limit))
    change, = node.node.set_parameters([Parameter('limit_efforts', value=True)])
    assert change.successful is (limit < np.inf)
    assert change.successful or 'set command_limits' in change.reason
