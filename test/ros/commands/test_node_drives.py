# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Drives from parameters, and their friction in the commands, on the node in this process."""

from functools import partial

from harness import keep_sending
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import Uncertainty, with_friction
from rbd_ros.model.constraints import attach
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.parameter import Parameter
from robots import example_urdf, random_state, relative_error

# One pass against another in the same order: rounding alone.
AGREEMENT = 1e-9
ARM = example_urdf('ur10_robot.urdf').read_text()
HINGE = """
<robot name="hinge">
  <link name="base"/>
  <joint name="hinge" type="continuous"><parent link="base"/><child link="arm"/>
    <axis xyz="0 1 0"/><dynamics damping="0.5" friction="0.2"/></joint>
  <link name="arm"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture
def harness(harness):
    """Return a function that starts a node to which states may be late."""
    return partial(harness, state_timeout=60.0)


def drives(**coefficients):
    """Return parameters of the drives of two joints."""
    return {f'drives.{label}': value for label, value in {
        'joints': ['wrist_1_joint', 'elbow_joint'], **coefficients}.items()}


def test_drives_are_those_of_the_parameters_and_of_the_urdf_otherwise(harness, model):
    node = harness(ARM, friction=True, missing_velocity='withhold', **drives(
        armature=[0.4, 0.3], damping=[5.0, 6.0], damping_asymmetry=[1.0, -2.0],
        friction=[2.0, 1.0], friction_asymmetry=[0.5, 0.0], effort_offset=[0.3, -0.2],
        stribeck_friction=[1.0, 0.0], stribeck_velocity=[0.5, 0.0]))
    q, v, _ = random_state(model, 2)
    M = rbd_ros.mass_matrix(model, q)
    M[3, 3] += 0.4
    M[2, 2] += 0.3
    got = node.answer(model.velocity_names, q, v)
    assert relative_error(np.reshape(got.mass_matrix, (6, 6)), M) < AGREEMENT
    # Forward, and beyond the dead band of 0.02 rad/s.
    v = np.array([0.0, 0.0, 1.0, 0.5, 0.0, 0.0])
    torques = np.array([0.0, 0.0, (6.0 - 2.0) * 0.98 + 1.0 - 0.2,
                        (5.0 + 1.0) * 0.48 + 2.5 + np.exp(-(0.52 / 0.5) ** 2) + 0.3, 0.0, 0.0])
    heard = node.heard['~/effort_commands']
    g = rbd_ros.gravity_torques(model, q)
    keep_sending(node, (model.velocity_names, q, v),
                 lambda: heard and heard[-1].data == pytest.approx(g + torques))
    # Offsets need no velocity.
    keep_sending(node, (model.velocity_names, q), lambda: heard[-1].data == pytest.approx(
        g + np.array([0.0, 0.0, -0.2, 0.3, 0.0, 0.0])))


def test_the_file_that_save_drives_writes_is_one_that_the_node_takes(model, tmp_path):
    driven = rbd_ros.model.with_friction(
        rbd_ros.with_armature(model, np.array([1e-7, 0.1, 1.0, 1e17, 3.0, 0.5])),
        damping=np.arange(6.0), friction=np.arange(6.0) + 1.0,
        friction_asymmetry=-np.arange(6.0), effort_offset=np.linspace(-1.0, 1.0, 6))
    path = tmp_path / 'dynamics.param.yaml'
    rbd_ros.model.save_drives(driven, path)
    node = DynamicsNode(cli_args=['--ros-args', '--params-file', str(path)],
                        parameter_overrides=[Parameter('robot_description', value=ARM)])
    got = node.robot.model
    node.destroy_node()
    for label in ('damping', 'friction', 'friction_asymmetry', 'effort_offset', 'armature'):
        assert np.array_equal(getattr(got, label), getattr(driven, label)), label


@pytest.mark.parametrize('parameters, message', [
    (drives(damping=[1.0]), 'drives.damping has 1 entries, drives.joints has 2'),
    ({'drives.friction': [1.0]}, 'drives.friction has 1 entries, drives.joints has 0'),
    (drives(joints=['elbow_joint'] * 2), "drives.joints has 'elbow_joint' twice"),
    (drives(friction='much'), 'drives.friction must be a list')])
def test_invalid_drives_stop_the_node(silent_node, parameters, message, capfd):
    assert not silent_node(**parameters).configured
    assert message in capfd.readouterr().err


@pytest.mark.parametrize('parameters, message', [
    (drives(joints=['wrist_1_joint', 'elbow'], damping=[1.0, 1.0]),
     "names 'elbow', which robot 'ur10' does not have, did you mean 'elbow_joint'"),
    (drives(damping=[1.0, -1.0]), "joint 'elbow_joint': its damping must be"),
    (drives(armature=[1.0, -1.0]), "joint 'elbow_joint': its armature must be"),
    (drives(damping_asymmetry=[1.0, 0.0]), "joint 'wrist_1_joint': its damping_asymmetry")])
def test_drives_that_the_robot_cannot_have_refuse_its_description(
        silent_node, parameters, message):
    node = silent_node(**parameters)
    assert node.robot is None and message in node.report.last_error


def test_locked_joints_may_have_drives(silent_node):
    node = silent_node(locked_joints=['elbow_joint'], **drives(damping=[2.0, 3.0]))
    assert node.robot.model.damping.tolist() == [0.0, 0.0, 2.0, 0.0, 0.0]


def test_friction_is_brought_up_by_the_effort_commands_alone(harness):
    node = harness(HINGE, friction=True)
    model = node.node.robot.model
    g = rbd_ros.gravity_torques(model, [0.3])[0]
    got = node.answer(['hinge'], [0.3], [2.0], topic='~/effort_commands')
    # But for the dead band of 0.02 rad/s.
    assert got.data[0] == pytest.approx(g + 0.5 * 1.98 + 0.2)
    assert node.answer(['hinge'], [0.3], [2.0]).gravity_torques[0] == pytest.approx(g)
    # Without a velocity there is no friction to bring up: nothing is made up, and gravity goes on.
    heard = node.heard['~/effort_commands']
    keep_sending(node, (['hinge'], [0.3]), lambda: heard[-1].data[0] == pytest.approx(g))
    keep_sending(node, (['hinge'], [0.3], [2.0]),
                 lambda: heard[-1].data[0] == pytest.approx(g + 0.5 * 1.98 + 0.2))
    for dead_band, speed, expected in ((1.5, 2.0, 0.5 * 0.5 + 0.2 / 3.0), (1.5, -1.4, 0.0),
                                       (0.0, 1e-9, 0.2)):
        result, = node.node.set_parameters([Parameter('friction_dead_band', value=dead_band)])
        assert result.successful, result.reason
        keep_sending(node, (['hinge'], [0.3], [speed]), lambda wanted=g + expected:
                     heard[-1].data[0] == pytest.approx(wanted))
    result, = node.node.set_parameters([Parameter('friction', value=False)])
    assert result.successful
    keep_sending(node, (['hinge'], [0.3], [2.0]), lambda: heard[-1].data[0] == pytest.approx(g))


def test_the_deviation_of_torques_is_that_of_the_uncertainty(harness, model):
    known = Uncertainty(model.velocity_names, ('wrist_3_link/mcy', 'elbow_joint.friction'),
                        np.array([[0.2, 0.1], [0.0, 0.5]]), np.tile([0.5, 1.5], (6, 1)),
                        np.linspace(0.1, 2.4, 24).reshape(2, 6, 2), np.zeros(6),
                        np.array([5.0, 100.0]))
    node = harness(ARM, missing_velocity='withhold', friction_dead_band=0.05, **drives(
        friction=[2.0, 1.0]), **{f'uncertainty.{label}': value for label, value in {
            'joints': [*known.joints], 'parameters': [*known.parameters],
            'factor': [0.2, 0.1, 0.5], 'speed': known.speed.ravel().tolist(),
            'noise': known.noise.ravel().tolist(), 'external': [0.0] * 6,
            'bandwidth': known.bandwidth.tolist(),
            'inertial': rbd_ros.model.inertial_parameters(model).tolist()}.items()})
    robot = attach(with_friction(model, friction={'wrist_1_joint': 2.0, 'elbow_joint': 1.0}),
                   known)
    for seed in range(2):
        q, v, _ = random_state(model, seed)
        v[2] *= 0.03
        got = node.answer(model.velocity_names, q, v, topic='~/torque_deviation')
        assert got.name == list(model.velocity_names)
        # Efforts of joint states are not filtered.
        expected = rbd_ros.analysis.torque_deviation(robot, q, v, 0.0 * v, smooth=0.05,
                                                     bandwidth=100.0)
        assert relative_error(got.effort, expected) < AGREEMENT


def test_without_an_uncertainty_no_deviation_is_published(harness, model):
    node = harness(ARM, **drives(friction=[2.0, 1.0]))
    q, v, _ = random_state(model, 0)
    node.answer(model.velocity_names, q, v, topic='~/gravity_torques')
    assert not node.heard['~/torque_deviation']
    assert any('identify it with rbd_ros identify' in text
               for text in node.node.publishing._withheld.reasons.values())
