# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What efforts mean, loads and mounting as parameters, on the node in this process."""

from functools import partial
from pathlib import Path

from geometry_msgs.msg import Vector3, Vector3Stamped
from harness import at, said
import numpy as np
import pytest
from rbd_msgs.srv import DynamicsTerms, SetGravity
import rbd_ros
from rbd_ros.model.se3 import rotation_from_rpy
from rbd_ros.ros.runtime.report import OK, WARN
from robots import example_urdf, load_quietly, random_state, relative_error
import yaml

pytestmark = pytest.mark.usefixtures('domain')

# The node hands the library's numbers on: rounding alone may differ, where sums are ordered anew.
AGREEMENT = 1e-9
URDF = example_urdf('ur10_robot.urdf')
ARM, MODEL = URDF.read_text(), load_quietly(URDF)
NAMES = list(MODEL.velocity_names)
CONVENTIONS = ('full', 'without_gravity', 'without_gravity_and_coriolis')
TOOL = 'tool0'
# N m/A, one of a drive that counts the other way.
CONSTANTS = {'elbow_joint': 12.5, 'wrist_1_joint': -9.0}


@pytest.fixture
def harness(harness):
    """Return a function that makes a node to which states may be late."""
    return partial(harness, state_timeout=60.0)


def convention(**values):
    """Return parameters of a convention."""
    return {f'effort_convention.{name}': value for name, value in values.items()}


def own(name, q, v):
    """Return what a robot of a convention adds to commands and takes off efforts by itself."""
    terms = rbd_ros.all_terms(MODEL, q, v)
    return {'full': 0.0 * terms.g, 'without_gravity': terms.g,
            'without_gravity_and_coriolis': terms.g + terms.coriolis_torques}[name]


@pytest.mark.parametrize('states', CONVENTIONS)
def test_measured_efforts_are_read_by_their_convention(harness, states):
    node = harness(**convention(states=states, joints=list(CONSTANTS),
                                state_constants=list(CONSTANTS.values())))
    q, v, a = random_state(MODEL, 1)
    tau = rbd_ros.inverse_dynamics(MODEL, q, v, a)
    constants = np.array([CONSTANTS.get(name, 1.0) for name in NAMES])
    effort = (tau - own(states, q, v)) / constants
    order = np.random.default_rng(2).permutation(6)
    got = node.answer([NAMES[k] for k in order], q[order], v[order], effort[order],
                      topic='~/coriolis_matrix_rate')
    # The rate of C depends on the acceleration, which depends on the torques.
    expected = rbd_ros.analysis.matrices_dot(MODEL, q, v, a).C_dot
    assert relative_error(got.matrix.data, expected.ravel()) < AGREEMENT


def test_without_velocities_torques_cannot_be_completed_by_coriolis_torques(harness):
    node = harness(**convention(states='without_gravity_and_coriolis'))
    q, _, _ = random_state(MODEL, 1)
    node.answer(NAMES, q, (), np.ones(6), topic='~/gravity_torques')
    assert np.all(np.isnan(node.node.robot.measured_torques(None)))


@pytest.mark.parametrize('states, level, text', [
    ('without_gravity', OK, 'publishing'),
    ('full', WARN, 'effort_convention.states: without_gravity fits better')])
def test_fault_65_efforts_at_rest_are_compared_with_gravity_once_for_each_robot(
        harness, states, level, text, capfd):
    node, start = harness(check_stamps=False, **convention(states=states)), at()[0]

    def rest(begin, count):
        for k in range(count):
            seconds = begin + 0.02 * k
            node.answer(NAMES, [0.3, -1.0, 1.2, 0.4, -0.6, 0.2], np.zeros(6), np.full(6, 0.1),
                        stamp=(start + int(seconds), round(1e9 * (seconds % 1.0))))
    rest(0.0, 40)
    said(node, text, level)
    assert (text in capfd.readouterr().err) == (level == WARN)
    # Another description is judged anew.
    node.describe(ARM.replace('name="ur10"', 'name="other"'))
    node.spin_until(lambda: node.node.robot.model.name == 'other')
    rest(2.0, 3)
    assert not node.node.effort_check.finding


@pytest.mark.parametrize('friction', [False, True])
@pytest.mark.parametrize('commands', CONVENTIONS)
def test_commands_plus_onboard_compensation_hold_the_robot(harness, commands, friction):
    order = np.random.default_rng(3).permutation(6)
    names = [NAMES[k] for k in order]
    text = ARM.replace('<dynamics damping="0.0" friction="0.0"/>',
                       '<dynamics damping="2.0" friction="1.0"/>')
    assert not friction or text != ARM
    node = harness(text, command_joints=names, friction=friction,
                   **convention(commands=commands, joints=list(CONSTANTS),
                                command_constants=list(CONSTANTS.values())))
    model = node.node.robot.model
    q, v, _ = random_state(MODEL, 4)
    v = 5.0 * v
    got = np.array(node.answer(NAMES, q, v, topic='~/effort_commands').data)
    torques = got * [CONSTANTS.get(name, 1.0) for name in names]
    # A robot that compensates Coriolis torques goes on doing so.
    held = rbd_ros.gravity_torques(MODEL, q) + friction * (
        rbd_ros.control.friction_compensation(model, v, dead_band=0.02))
    if commands == 'without_gravity_and_coriolis':
        held = held + rbd_ros.all_terms(MODEL, q, v).coriolis_torques
    assert np.allclose(torques + own(commands, q, v)[order], held[order], rtol=1e-9, atol=1e-9)
    if commands != 'full' and not friction:
        # None of our gravity: it would be doubled.
        assert not got.any()


@pytest.mark.parametrize('commands', CONVENTIONS[1:])
def test_a_blend_never_takes_gravity_off_a_robot_that_adds_it(harness, commands):
    node = harness(blend_time=1.0, on_stale='ramp_down',
                   **convention(states=commands, commands=commands))
    q, v, _ = random_state(MODEL, 4)
    for _ in range(5):
        node.answer(NAMES, q, v, np.zeros(6), topic='~/effort_commands')
    node.node.current.enable_commands(False)
    node.settle()
    assert not any(np.any(message.data) for message in node.heard['~/effort_commands'])


@pytest.mark.parametrize('values, message', [
    ({'states': 'currents'}, 'effort_convention.states must be one of full, without_gravity'),
    ({'joints': ['elbow_joint'], 'state_constants': [1.0, 2.0]},
     'effort_convention.state_constants has 2 entries, effort_convention.joints has 1'),
    ({'joints': ['elbow_joint'], 'command_constants': [0.0]},
     'effort_convention.command_constants must be finite numbers other than 0'),
    ({'joints': ['elbow'], 'state_constants': [1.0]},
     "parameter effort_convention.joints names 'elbow'")])
def test_invalid_conventions_are_refused_by_name(silent_node, values, message):
    assert message in silent_node(**convention(**values)).report.last_error


# What each robot measures and takes, and whether friction is in what it measures; the files say
# where that is written.
PRESETS = {'generic': ('full', 'full', True), 'ur': ('without_gravity', 'without_gravity', True),
           'ur_currents': ('full', 'without_gravity', True),
           'franka': ('full', 'without_gravity', False),
           'kuka_fri': ('full', 'without_gravity', False), 'kinova': ('full', 'full', False)}


def test_the_node_takes_the_files_of_robots_and_they_name_their_sources(silent_node):
    files = (Path(__file__).parents[3] / 'config' / 'robots').glob('*')
    texts = {path.name.removesuffix('.yaml'): path.read_text() for path in files}
    assert set(texts) == set(PRESETS)
    for robot, text in texts.items():
        assert 'https://' in text.partition('/**:')[0], robot
        given = yaml.safe_load(text)['/**']['ros__parameters']['effort_convention']
        found = silent_node(**convention(**given)).parameters.effort_convention
        assert (found.states, found.commands, found.states_have_friction) == PRESETS[robot], robot


RPY = (0.4, 1.1, -0.7)


def test_payload_and_mounting_act_from_the_start(harness):
    inertia = (0.02, 0.03, 0.04, 0.001, 0.002, 0.003)
    node = harness(payload_link=TOOL, payload_mass=1.5, payload_com=[0.01, 0.02, 0.06],
                   payload_inertia=list(inertia), mounting_rpy=list(RPY))
    R = rotation_from_rpy(RPY)
    model = rbd_ros.with_payload(
        rbd_ros.with_gravity(MODEL, R.T @ (0.0, 0.0, -9.81)), TOOL, 1.5, (0.01, 0.02, 0.06),
        [[0.02, 0.001, 0.002], [0.001, 0.03, 0.003], [0.002, 0.003, 0.04]])
    q, v, _ = random_state(MODEL, 5)
    got = node.answer(NAMES, q, v)
    expected = rbd_ros.all_terms(model, q, v)
    assert relative_error(got.gravity_torques, expected.g) < AGREEMENT
    assert relative_error(got.mass_matrix, expected.M.ravel()) < AGREEMENT
    values = node.diagnosis()[2]
    assert float(values[f'load on {TOOL}, kg']) == 1.5
    gravity = [float(values[f'gravity {axis}, m/s^2']) for axis in 'xyz']
    assert np.allclose(gravity, R.T @ (0.0, 0.0, -9.81), rtol=1e-5)
    # It stays with another description.
    node.describe(ARM.replace('name="ur10"', 'name="other"'))
    node.spin_until(lambda: node.node.robot.model.name == 'other')
    assert node.node.robot.payloads() == {TOOL: 1.5}


def test_a_robot_on_a_wall_bears_its_weight_sideways(silent_node):
    """Turned by 90 degrees about y, the root's x axis points down."""
    node = silent_node(mounting_rpy=[0.0, np.pi / 2, 0.0])
    assert np.allclose(node.robot.model.gravity, (9.81, 0.0, 0.0), atol=1e-12)


def test_gravity_is_set_in_the_root_and_kept_in_the_world(harness):
    node = harness(mounting_rpy=list(RPY))
    got = node.call(SetGravity, 'set_gravity', gravity=Vector3Stamped(
        vector=Vector3(x=1.0, y=-2.0, z=-3.0)))
    assert got.success, got.message
    model_id = node.node.robot.model_id
    assert np.allclose(node.node.robot.model.gravity, (1.0, -2.0, -3.0), atol=1e-12)
    in_world = node.node.get_parameter('gravity').value
    assert np.allclose(in_world, rotation_from_rpy(RPY) @ (1.0, -2.0, -3.0))
    # And it is not changed once more for the last digit.
    node.settle()
    assert node.node.robot.model_id == model_id
    q, v, _ = random_state(MODEL, 6)
    terms = node.call(DynamicsTerms, 'dynamics_terms', position=q.tolist(), velocity=v.tolist())
    assert relative_error(terms.dynamics.gravity_torques, rbd_ros.gravity_torques(
        rbd_ros.with_gravity(MODEL, (1.0, -2.0, -3.0)), q)) < AGREEMENT


@pytest.mark.parametrize('parameters, message', [
    ({'payload_link': TOOL}, 'payload_link and payload_mass belong together'),
    ({'payload_mass': 1.0}, 'payload_link and payload_mass belong together'),
    ({'payload_com': [0.0]}, 'payload_com must be 3 finite numbers, x, y and z, m'),
    ({'payload_inertia': [0.1, 0.1, 0.1]}, 'payload_inertia must be 6 finite numbers'),
    ({'payload_link': 'hand', 'payload_mass': 1.0}, "no link 'hand'"),
    ({'mounting_rpy': [np.nan, 0.0, 0.0]}, 'mounting_rpy must be 3 finite numbers'),
    ({'mounting_rpy': [0.1, 0.0, 0.0], 'floating_base': True},
     'mounting_rpy is for robots that are fixed')])
def test_invalid_payloads_and_mountings_are_refused_by_name(silent_node, parameters, message):
    node = silent_node(**parameters)
    assert node.robot is None and message in node.report.last_error
