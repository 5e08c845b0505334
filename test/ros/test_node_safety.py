# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What could hurt somebody beside the robot: changes while commands flow, clocks, forged input."""

from dataclasses import replace
from time import monotonic

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Inertia, Vector3, Vector3Stamped
from harness import at, Harness, joint_state, keep_sending, LATCHED, odometry, ros, said
import numpy as np
import pytest
from rbd_msgs.srv import InverseDynamics, SetGravity, SetPayload
import rbd_ros
from rbd_ros.ros.joint_states import JointStates
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from robots import example_urdf, load_quietly, random_state, relative_error
from std_msgs.msg import Float64MultiArray, String
from std_srvs.srv import SetBool
from test_node_faults import SimulatedTime

ARM = example_urdf('ur10_robot.urdf').read_text()
WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR
AGREEMENT = 1e-9
# s, the shortest blend, as the README has it.
SMOOTH = 0.25


@pytest.fixture(scope='module', autouse=True)
def domain():
    """Keep this module's nodes among themselves."""
    with ros():
        yield


@pytest.fixture(scope='module')
def model():
    """Return the UR10."""
    return load_quietly(example_urdf('ur10_robot.urdf'))


@pytest.fixture
def harness():
    """Return a function that starts a node; it is taken down after the test."""
    started = []

    def start(description=ARM, **parameters):
        started.append(Harness(description, **parameters))
        return started[-1]
    yield start
    for one in started:
        one.close()


@pytest.fixture
def state(model):
    """Return names, a position and a velocity."""
    q, v, _ = random_state(model, 7)
    return model.velocity_names, q, v


# -- Descriptions while commands flow. ------------------------------------------------------------

def fan(order, mass=1.0):
    """Return a robot whose joints leave one link in an order, each with an effort of its own."""
    arms = {name: f'<link name="{name}"><inertial><origin xyz="{k} 0 0"/><mass value="{mass}"/>'
            '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>'
            f'<joint name="{name}" type="continuous"><parent link="base"/><child link="{name}"/>'
            '<axis xyz="0 1 0"/></joint>' for k, name in enumerate('abcd', 1)}
    return '<robot name="fan"><link name="base"/>' + ''.join(arms[x] for x in order) + '</robot>'


def fan_state(order):
    """Return names, a position and a velocity."""
    return list(order), [0.0] * len(order), [0.0] * len(order)


# g of the joints above at zero: m g x, turned about y by -x.
EFFORTS = {name: -9.81 * k for k, name in enumerate('abcd', 1)}


def largest_step(heard, begin):
    """Return the largest change of a command from one to the next, N m."""
    commands = np.array([message.data for message in heard[begin:]])
    return np.max(np.abs(np.diff(commands, axis=0)), initial=0.0)


def test_fault_51_the_order_of_commands_outlives_a_description_in_another_order(harness):
    node = harness(fan('abc'), state_timeout=60.0)
    heard = node.heard['~/effort_commands']
    first = node.answer(*fan_state('abc'), topic='~/effort_commands')
    assert np.allclose(first.data, [EFFORTS[x] for x in 'abc'])
    node.describe(fan('cab'))
    node.spin_until(lambda: node.node.robot.model_id == 2)
    got = node.answer(*fan_state('cab'), topic='~/gravity_torques')
    assert got.name == ['c', 'a', 'b']
    keep_sending(node, fan_state('bca'), lambda: len(heard) > 30)
    # All the way, and not from zero.
    assert np.allclose([message.data for message in heard], [EFFORTS[x] for x in 'abc'])


def test_fault_51_other_joints_end_commands_with_an_error_until_they_are_enabled(harness):
    node = harness(fan('abc'), state_timeout=60.0)
    heard = node.heard['~/effort_commands']
    node.answer(*fan_state('abc'), topic='~/effort_commands')
    node.describe(fan('abd'))
    node.spin_until(lambda: node.node.robot.model_id == 2)
    count = len(heard)
    node.answer(*fan_state('abd'), topic='~/gravity_torques')
    said(node, 'the robot now has the joints a, b, d, commands were for a, b, c', ERROR)
    node.answer(*fan_state('abd'), topic='~/gravity_torques')
    node.settle()
    assert len(heard) == count
    assert node.call(SetBool, 'enable_commands', data=True).success
    expected = [EFFORTS[x] for x in 'abd']
    keep_sending(node, fan_state('abd'), lambda: np.allclose(heard[-1].data, expected))
    # Two joints go on where they were, the third begins at zero.
    assert np.allclose(heard[count].data, [EFFORTS['a'], EFFORTS['b'], 0.0])


def test_fault_54_a_strangers_description_is_refused_while_commands_flow(harness, capfd):
    node = harness(fan('abc'), state_timeout=60.0, model_changes='while_disabled')
    node.answer(*fan_state('abc'), topic='~/effort_commands')
    stranger = Node('stranger')
    publisher = stranger.create_publisher(String, 'robot_description', LATCHED)
    publisher.publish(String(data=fan('abc', mass=10.0)))
    node.spin_until(lambda: node.node.report.counts['descriptions refused'] == 1)
    assert 'model_changes is while_disabled' in capfd.readouterr().err
    assert node.node.robot.model_id == 1
    said(node, '2 publishers of /robot_description: /peer, /stranger', WARN)
    # Disabled, it is taken on.
    assert node.call(SetBool, 'enable_commands', data=False).success
    publisher.publish(String(data=fan('abc', mass=10.0)))
    node.spin_until(lambda: node.node.robot.model_id == 2)
    stranger.destroy_node()


@pytest.mark.parametrize('policy, accepted', [('accept', True), ('never', False)])
def test_fault_54_a_description_is_accepted_as_the_parameter_says(harness, policy, accepted,
                                                                  capfd):
    node = harness(fan('abc'), state_timeout=60.0, model_changes=policy)
    heard = node.heard['~/effort_commands']
    node.answer(*fan_state('abc'), topic='~/effort_commands')
    if not accepted:
        assert node.call(SetBool, 'enable_commands', data=False).success
    node.describe(fan('abc', mass=10.0))
    if accepted:
        node.spin_until(lambda: node.node.robot.model_id == 2)
        assert 'the robot changes while it is being commanded' in capfd.readouterr().err
        expected = [10.0 * EFFORTS[x] for x in 'abc']
        keep_sending(node, fan_state('abc'), lambda: np.allclose(heard[-1].data, expected))
        # 50 states a second: no step is a tenth of the whole way of 265 N m.
        assert largest_step(heard, 0) < 0.25 * 9.0 * 3 * 9.81
    else:
        node.spin_until(lambda: node.node.report.counts['descriptions refused'] == 1)
        assert node.node.robot.model_id == 1


def test_fault_54_without_a_listener_to_commands_other_robots_are_accepted():
    from rbd_ros.ros.dynamics_node import DynamicsNode
    node = DynamicsNode()
    for text, model_id in ((fan('abc'), 1), (fan('abd'), 2)):
        node.listening._on_description(String(data=text))
        assert node.robot.model_id == model_id
    node.destroy_node()


def test_commands_follow_a_load_that_is_set_before_every_state(harness, model, state):
    node = harness(state_timeout=60.0)
    heard = node.heard['~/effort_commands']
    node.answer(*state, topic='~/effort_commands')
    loaded = rbd_ros.gravity_torques(rbd_ros.with_payload(model, 'tool0', 5.0), state[1])
    end = monotonic() + 20.0
    while relative_error(heard[-1].data, loaded) > 0.02 and monotonic() < end:
        assert node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia(m=5.0)).success
        node.answer(*state, topic='~/effort_commands')
    assert relative_error(heard[-1].data, loaded) <= 0.02


# -- Gravity and loads. ---------------------------------------------------------------------------

def gravity(z):
    """Return a request for gravity along z."""
    return {'gravity': Vector3Stamped(vector=Vector3(z=z))}


@pytest.mark.parametrize('z', [-981.0, -1e300, 30.0])
def test_fault_55_gravity_beyond_its_limit_is_refused(harness, z):
    node = harness()
    got = node.call(SetGravity, 'set_gravity', **gravity(z))
    assert not got.success
    assert 'gravity_limit' in got.message
    result, = node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, z])])
    assert not result.successful
    assert node.node.robot.model_id == 1
    if z > -100.0:
        node.node.set_parameters([Parameter('gravity_limit', value=40.0)])
        assert node.call(SetGravity, 'set_gravity', **gravity(z)).success


def test_fault_55_zero_gravity_must_be_said(harness, state, capfd):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    got = node.call(SetGravity, 'set_gravity')
    assert not got.success
    assert 'allow_zero' in got.message
    assert not node.call(SetGravity, 'set_gravity', **gravity(1e-3)).success
    assert node.call(SetGravity, 'set_gravity', allow_zero=True).success
    assert 'gravity is now [0, 0, 0] m/s^2: none' in capfd.readouterr().err
    assert node.node.robot.model_id == 2
    said(node, 'gravity is zero', WARN)


def test_fault_55_every_change_of_gravity_and_load_is_logged(harness, capfd):
    node = harness()
    assert node.call(SetGravity, 'set_gravity', **gravity(-1.62)).success
    assert 'gravity is now [0, 0, -1.62] m/s^2' in capfd.readouterr().err
    node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, -3.7])])
    node.spin_until(lambda: node.node.robot.model_id == 3)
    assert 'gravity is now [0, 0, -3.7] m/s^2' in capfd.readouterr().err
    got = node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia(m=2.5))
    assert "link 'tool0' now carries 2.5 kg" in capfd.readouterr().err
    assert "link 'tool0' now carries 2.5 kg" in got.message
    node.call(SetPayload, 'set_payload', link='tool0')
    assert "link 'tool0' no longer carries a load" in capfd.readouterr().err


def test_fault_55_a_load_that_is_heavier_than_the_robot_is_said(harness, state, capfd):
    node = harness(state_timeout=60.0)
    got = node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia(m=200.0))
    assert got.success
    assert 'more than the robot itself, 32.7' in got.message
    assert 'more than the robot itself, 32.7' in capfd.readouterr().err
    heard = node.heard['~/effort_commands']
    keep_sending(node, state, lambda: heard)
    said(node, 'efforts beyond the limits of the URDF, not clamped: ', WARN)


def test_changes_that_come_at_once_are_all_made(harness, model):
    node = harness()
    client = node.peer.create_client(SetPayload, '/dynamics/set_payload')
    node.spin_until(client.service_is_ready)
    futures = [client.call_async(SetPayload.Request(link=link, inertia=Inertia(m=mass)))
               for link, mass in (('tool0', 1.0), ('forearm_link', 2.0), ('base_link', 4.0))]
    node.spin_until(lambda: all(future.done() for future in futures))
    assert all(future.result().success for future in futures)
    assert node.node.robot.model.mass == pytest.approx(model.mass + 7.0)


# -- Parameters. ----------------------------------------------------------------------------------

@pytest.mark.parametrize('value', [1e-10, 1e-3, -1.0, float('nan')])
def test_fault_48_a_rate_that_is_none_is_refused_and_timers_go_on(harness, state, value):
    node = harness(on_stale='hold', state_timeout=0.2)
    result, = node.node.set_parameters([Parameter('publish_rate', value=value)])
    assert not result.successful
    assert 'publish_rate' in result.reason
    heard = node.heard['~/effort_commands']
    node.answer(*state, topic='~/effort_commands')
    node.spin_until(lambda: len(heard) > 5)


@pytest.mark.parametrize('name', ['command_joints', 'joints', 'locked_joints', 'drives.joints'])
def test_fault_48_a_joint_that_stands_twice_in_a_parameter_is_refused(harness, name, capfd):
    node = harness(None, **{name: ['elbow_joint', 'elbow_joint']})
    assert not node.node.configured
    assert f"{name} has 'elbow_joint' twice" in capfd.readouterr().err


def test_friction_of_a_robot_that_has_none_is_said(harness, capfd):
    node = harness(fan('abc'), friction=True, state_timeout=60.0)
    node.answer(*fan_state('abc'))
    assert 'neither friction nor damping' in capfd.readouterr().err
    said(node, 'no joint of the robot has friction or damping', WARN)
    other = harness(fan('abc').replace('<axis', '<dynamics damping="1"/><axis'), friction=True)
    other.close()
    other.close = lambda: None
    assert 'neither friction nor damping' not in capfd.readouterr().err


def test_fault_62_misspelt_parameters_are_said_with_what_was_meant(harness, capfd):
    harness(None, gravty=[0.0, 0.0, 1.0], quite_another=3, publish_rate=5.0)
    said = capfd.readouterr().err
    assert "there is no parameter 'gravty', did you mean 'gravity'?" in said
    assert "there is no parameter 'quite_another'; it has no effect" in said
    assert "'publish_rate'" not in said
    assert 'use_sim_time' not in said


def test_fault_62_whole_numbers_pass_for_others(harness, state):
    node = harness(publish_rate=100, gravity=[0, 0, -9], state_timeout=60, locked_positions=[1],
                   locked_joints=['wrist_3_joint'])
    assert node.node.parameters.publish_rate == 100.0
    assert node.node.robot.model.gravity.tolist() == [0.0, 0.0, -9.0]
    for name, value in (('publish_rate', 0), ('gravity', [0, 0, -3]), ('ramp_time', 2)):
        result, = node.node.set_parameters([Parameter(name, value=value)])
        assert result.successful, result.reason
    node.spin_until(lambda: node.node.robot.model.gravity[2] == -3.0)
    for name, value in (('publish_rate', True), ('publish_rate', 'fast'), ('friction', 1),
                        ('friction', 'yes'), ('gravity', 9.81), ('on_stale', 3)):
        result, = node.node.set_parameters([Parameter(name, value=value)])
        assert not result.successful
        assert name in result.reason


@pytest.mark.parametrize('name, value', [('publish_rate', 1e9), ('ramp_time', -1.0),
                                         ('publish_rate', 'fast'), ('max_joints', 0)])
def test_fault_48_a_start_with_a_bad_value_waits_for_a_better_one(harness, name, value, capfd):
    node = harness(None, **{name: value})
    assert not node.node.configured
    assert name in capfd.readouterr().err
    good = {'publish_rate': 10.0, 'ramp_time': 1.0}.get(name)
    if good is not None:
        result, = node.node.set_parameters([Parameter(name, value=good)])
        assert result.successful, result.reason
        node.node.trigger_configure()
        assert node.node.configured


def test_fault_62_all_parameters_have_values_that_can_be_dumped(harness):
    from rcl_interfaces.srv import GetParameters, ListParameters
    node = harness(None)
    names = node.call(ListParameters, 'list_parameters').result.names
    values = node.call(GetParameters, 'get_parameters', names=names).values
    assert len(values) == len(names) > 30
    kinds = dict(zip(names, (value.type for value in values)))
    assert 0 not in kinds.values()
    # Empty lists are lists of what they will hold: of texts, of numbers.
    assert kinds['command_joints'] == 9
    assert kinds['drives.armature'] == 8


def test_the_description_may_come_as_a_parameter(harness, state, model):
    node = harness(None, robot_description=ARM)
    node.spin_until(lambda: node.node.robot is not None)
    assert node.answer(*state).mass == model.mass


# -- Time. ----------------------------------------------------------------------------------------

@pytest.mark.parametrize('first', [0.02, 0.3, 5.0])
def test_fault_56_states_from_before_the_clock_are_forgotten_when_it_begins(harness, state, first):
    names, q, v = state
    node = harness(use_sim_time=True, state_timeout=0.2)
    clock = SimulatedTime(node)
    node.answer(*state)
    clock.be(first)
    # Nothing that was measured by another clock is answered or completed.
    stamp = divmod(round(first * 1e9), 10 ** 9)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=stamp))
    assert 'ages are now measured by /clock' in node.node.report.last_error
    node.answer(names[3:], q[3:], v[3:], stamp=stamp)
    # And grows old as others do.
    clock.be(first + 0.5)
    later = divmod(round((first + 0.5) * 1e9), 10 ** 9)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=later))


def test_fault_56_a_clock_that_is_reset_to_zero_begins_a_new_state(harness, state):
    names, q, v = state
    node = harness(use_sim_time=True, state_timeout=60.0)
    clock = SimulatedTime(node)
    clock.be(1776.0)
    node.answer(*state, stamp=(1776, 0))
    clock.be(0.0)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=(0, 0)))
    node.answer(names[3:], q[3:], v[3:], stamp=(0, 0))
    clock.be(0.02)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=(0, 20_000_000)))


def test_fault_56_a_state_of_the_future_is_stale(model):
    states = JointStates(model)
    q, _, _ = random_state(model, 0)
    states.update(joint_state(model.velocity_names, q), 10.0)
    assert states.missing(10.0, 0.5) == []
    assert states.missing(10.4, 0.5) == []
    assert states.missing(10.6, 0.5) == list(model.velocity_names)
    assert states.missing(9.9, 0.5) == list(model.velocity_names)
    states.update(joint_state(model.velocity_names[:1], q[:1]), 11.0)
    assert states.missing(10.4, 0.5) == [model.velocity_names[0]]


def test_fault_12_stamps_that_swing_to_and_fro_are_said_now_and_then(harness, state, capfd):
    node = harness(state_timeout=0.5)
    for k in range(100):
        node.send(*state, stamp=at(0.45 if k % 2 else -0.45))
        node.executor.spin_once(timeout_sec=0.01)
    node.settle()
    assert node.node.report.counts['time jumps'] > 20
    assert capfd.readouterr().err.count('stamps jumped back') < 3
    assert 'time jumped' in node.diagnosis()[1]


DOG = example_urdf('anymal_b_simple_description/robots/anymal.urdf')


def dog_states(node, base_stamp, stamp):
    """Send a base and joints with stamps."""
    joints = [name for name in node.node.robot.model.velocity_names
              if not name.startswith('base_')]
    node.move_base(odometry('base', [0, 0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0],
                            stamp=base_stamp))
    node.send(joints, [0.1] * len(joints), [0.0] * len(joints), stamp=stamp)


@pytest.mark.parametrize('stamps', ['odometry has none', 'unchecked'])
def test_fault_12_odometry_without_a_stamp_that_fits_is_taken_by_its_receipt(harness, stamps):
    node = harness(DOG.read_text(), floating_base=True, check_stamps=stamps != 'unchecked')
    for _ in range(3):
        dog_states(node, (0, 0) if stamps == 'odometry has none' else (12, 0), at())
    node.spin_until(lambda: node.heard['~/dynamics'])


def test_fault_12_odometry_of_another_clock_is_said(harness):
    node = harness(DOG.read_text(), floating_base=True, state_timeout=2.0)
    # Each passes the check against the clock, and they are too far apart.
    dog_states(node, at(-1.9), at(1.9))
    node.settle()
    level, text, _ = node.diagnosis()
    assert level == ERROR
    assert 'odometry arrives, but its stamps are 3.8 s from those of the joint states' in text


# -- What is not there. ---------------------------------------------------------------------------

POINT = ('<robot name="point"><link name="a"/>'
         '<link name="b"><inertial><mass value="1"/></inertial></link>'
         '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
         '</robot>')


def test_fault_36_a_joint_without_inertia_withholds_no_more_than_needs_it(harness, capfd):
    node = harness(POINT, task_link='b', state_timeout=60.0)
    for _ in range(3):
        node.answer(['j'], [0.1], [0.2], [0.3], topic='~/gravity_torques_rate')
    assert node.heard['~/mass_matrix_rate']
    assert node.heard['~/dynamics']
    assert not node.heard['~/coriolis_matrix_rate']
    assert not node.heard['~/task_inertia']
    assert node.node.report.counts['errors'] == 0
    log = capfd.readouterr().err
    for topic in ('~/coriolis_matrix_rate', '~/task_inertia'):
        assert log.count(f'{topic} is withheld') == 1


def test_a_topic_that_fails_keeps_none_of_the_others_back(harness, state, monkeypatch):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    message = node.node.robot.outputs.message

    def fail(topic, *arguments):
        if topic == '~/mass_matrix':
            raise RuntimeError('no template')
        return message(topic, *arguments)
    monkeypatch.setattr(node.node.robot.outputs, 'message', fail)
    count = len(node.heard['~/mass_matrix'])
    node.answer(*state, topic='~/gravity_torques_rate')
    assert len(node.heard['~/mass_matrix']) == count
    assert 'no template' in node.diagnosis()[2]['last error']


def test_what_somebody_waits_for_in_vain_is_said_once(harness, state, capfd):
    names, q, v = state
    node = harness(state_timeout=60.0)
    for _ in range(10):
        node.answer(names, q, topic='~/gravity_torques')
    log = capfd.readouterr().err
    assert log.count('~/coriolis_torques is withheld: the velocity is not known') == 1
    assert log.count('~/task_inertia is withheld: the parameter task_link is not set') == 1
    # What comes back is withheld no longer.
    node.answer(names, q, v, topic='~/coriolis_torques')
    assert '~/coriolis_torques' not in node.node.publishing._withheld


# -- Forged, endless and impossible input. --------------------------------------------------------

def test_fault_61_unknown_names_are_capped_in_number_log_and_memory(harness, state, capfd):
    names, q, v = state
    node = harness(state_timeout=60.0)
    for k in range(300):
        node.send([*names, *(f'stranger_{k}_{j}' for j in range(10))], [*q, *[0.0] * 10],
                  [*v, *[0.0] * 10])
        node.executor.spin_once(timeout_sec=0.01)
    node.settle()
    assert len(node.node.robot.states.unknown_names) <= 100
    log = capfd.readouterr().err
    assert log.count('are ignored') <= 3
    assert max(map(len, log.splitlines())) < 2300


def test_fault_61_names_cannot_forge_lines_of_the_log_or_colour_it(harness, state, capfd):
    names, q, v = state
    node = harness(state_timeout=60.0)
    forged = 'x\n[ERROR] [0.0] [dynamics]: on fire\x1b[31m'
    node.answer([*names, forged], [*q, 0.0], [*v, 0.0])
    node.send([*names, forged, forged], [*q, 0.0, 0.0], [*v, 0.0, 0.0])
    node.describe(fan('abc').replace('name="c"', 'name="c&#10;[ERROR] on fire"'))
    node.settle()
    log = capfd.readouterr().err
    assert '\\n[ERROR]' in log
    assert '\x1b' not in log
    assert not any(line.startswith(('[ERROR] [0.0]', '[ERROR] on fire'))
                   for line in log.splitlines())
    _, text, values = node.diagnosis()
    assert all(part.isprintable() for part in (text, *values, *values.values()))


def test_fault_61_diagnostics_stay_short_whatever_went_wrong(harness, state):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    node.send(['j' * 100_000] * 2, [0.0] * 2)
    node.settle()
    _, text, values = node.diagnosis()
    assert len(values['last error']) < 700
    assert sum(len(key) + len(value) for key, value in values.items()) + len(text) < 10_000


def test_fault_59_too_many_joints_are_refused_before_anything_is_made(harness):
    node = harness(fan('a'), max_joints=3)
    node.describe(fan('abcd'))
    node.spin_until(lambda: node.node.report.counts['descriptions refused'])
    assert 'the robot has 4 joints, max_joints is 3' in node.node.report.last_error
    node.describe(fan('abc'))
    node.spin_until(lambda: node.node.robot.model_id == 2)


# -- Services. ------------------------------------------------------------------------------------

def test_fault_27_no_request_of_a_life_cycle_or_parameter_service_ends_the_node(harness, state):
    from lifecycle_msgs.msg import Transition
    from lifecycle_msgs.srv import ChangeState
    from rcl_interfaces.msg import Parameter as ParameterMessage, ParameterValue
    from rcl_interfaces.srv import (DescribeParameters, GetParameters, SetParameters,
                                    SetParametersAtomically)
    node = harness(state_timeout=60.0)
    impossible = ParameterMessage(name='ramp_time', value=ParameterValue(type=77))
    possible = ParameterMessage(name='ramp_time', value=ParameterValue(type=3, double_value=2.5))
    got = node.call(SetParameters, 'set_parameters', parameters=[impossible, possible, impossible])
    assert [result.successful for result in got.results] == [False, True, False]
    assert all(result.reason for result in got.results if not result.successful)
    assert node.node.parameters.ramp_time == 2.5
    got = node.call(SetParametersAtomically, 'set_parameters_atomically', parameters=[impossible])
    assert not got.result.successful
    for kind in (GetParameters, DescribeParameters):
        name = 'get_parameters' if kind is GetParameters else 'describe_parameters'
        node.call(kind, name, names=['no_such', '', '\x00'])
    for transition in (Transition.TRANSITION_ACTIVATE, 77, 255):
        got = node.call(ChangeState, 'change_state', transition=Transition(id=transition))
        assert not got.success
    node.answer(*state)


def test_fault_60_states_are_answered_while_a_slow_request_is(harness, state, monkeypatch):
    from threading import Event
    node = harness(state_timeout=60.0)
    node.answer(*state)
    go, begun = Event(), Event()
    compute = node.node.robot.service_workspace.inverse_dynamics

    def slow(*arguments, **options):
        begun.set()
        assert go.wait(30.0)
        return compute(*arguments, **options)
    monkeypatch.setattr(node.node.robot.service_workspace, 'inverse_dynamics', slow)
    client = node.peer.create_client(InverseDynamics, '/dynamics/inverse_dynamics')
    node.spin_until(client.service_is_ready)
    request = InverseDynamics.Request(acceleration=[0.0] * 6)
    futures = [client.call_async(request)]
    node.spin_until(begun.is_set)
    for _ in range(20):
        node.answer(*state)
    # Eight more may wait, the others are told so by name.
    for _ in range(12):
        futures.append(client.call_async(request))
        node.settle()
    node.spin_until(lambda: sum(future.done() for future in futures) == 4)
    refused = [future.result() for future in futures if future.done()]
    assert all(not got.success
               and 'inverse_dynamics is busy: 8 requests are waiting' in got.message
               for got in refused)
    node.answer(*state)
    go.set()
    node.spin_until(lambda: all(future.done() for future in futures))
    assert sum(future.result().success for future in futures) == 9


def test_a_request_that_waited_is_answered_for_the_state_that_was_measured_when_it_came(
        harness, model, monkeypatch):
    from threading import Event
    node = harness(state_timeout=60.0)
    q, v, _ = random_state(model, 1)
    later, _, _ = random_state(model, 2)
    node.answer(model.velocity_names, q, v)
    go, begun = Event(), Event()
    compute = node.node.robot.service_workspace.inverse_dynamics

    def slow(*arguments, **options):
        begun.set()
        assert go.wait(30.0)
        return compute(*arguments, **options)
    monkeypatch.setattr(node.node.robot.service_workspace, 'inverse_dynamics', slow)
    client = node.peer.create_client(InverseDynamics, '/dynamics/inverse_dynamics')
    node.spin_until(client.service_is_ready)
    future = client.call_async(InverseDynamics.Request(acceleration=[0.0] * 6))
    node.spin_until(begun.is_set)
    node.answer(model.velocity_names, later, v)
    go.set()
    node.spin_until(future.done)
    expected = rbd_ros.bias_torques(model, q, v)
    assert relative_error(future.result().effort, expected) < AGREEMENT


def test_a_request_for_no_state_is_answered_for_the_newest(harness, model):
    node = harness(state_timeout=60.0)
    for seed in range(5):
        q, v, _ = random_state(model, seed)
        node.answer(model.velocity_names, q, v)
        got = node.call(InverseDynamics, 'inverse_dynamics', acceleration=[0.0] * 6)
        assert relative_error(got.effort, rbd_ros.bias_torques(model, q, v)) < AGREEMENT


def test_a_worker_that_fails_says_so_and_goes_on(harness, state, monkeypatch, capfd):
    node = harness(state_timeout=60.0)
    monkeypatch.setattr('rbd_ros.ros.current_robot.with_gravity', lambda *_: 1 / 0)
    node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, -3.0])])
    node.spin_until(lambda: node.node.report.counts['errors'])
    assert 'ZeroDivisionError' in capfd.readouterr().err
    node.answer(*state)
    got = node.call(InverseDynamics, 'inverse_dynamics', acceleration=[0.0] * 6)
    assert got.success


# -- Listeners. -----------------------------------------------------------------------------------

def test_a_controller_that_comes_after_another_is_told_from_zero(harness, state):
    node = harness(state_timeout=60.0, blend_time=0.3)
    heard = node.heard['~/effort_commands']
    keep_sending(node, state, lambda: heard and np.max(np.abs(heard[-1].data)) > 1.0)
    for subscription in list(node.peer.subscriptions):
        if subscription.topic_name == '/dynamics/effort_commands':
            node.peer.destroy_subscription(subscription)
    end = monotonic() + 1.5
    keep_sending(node, state, lambda: monotonic() > end)
    second = []
    node.peer.create_subscription(Float64MultiArray, '/dynamics/effort_commands', second.append,
                                  50)
    keep_sending(node, state, lambda: len(second) > 3)
    assert np.max(np.abs(second[0].data)) < 0.5 * np.max(np.abs(heard[-1].data))


def test_parameters_of_a_node_are_replaced_one_by_one(harness):
    node = harness(None)
    before = replace(node.node.parameters)
    node.node.set_parameters([Parameter('ramp_time', value=2.0)])
    assert node.node.parameters != before
    assert replace(node.node.parameters, ramp_time=before.ramp_time) == before


# -- What a reviewer found. -----------------------------------------------------------------------

def test_fault_55_zero_gravity_is_not_a_parameter_to_set_by_the_way(harness, state):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    result, = node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, 0.0])])
    assert not result.successful
    assert 'allow_zero' in result.reason
    assert node.call(SetGravity, 'set_gravity', allow_zero=True).success
    # From then on it is what it is, and other parameters change as before.
    result, = node.node.set_parameters([Parameter('ramp_time', value=2.0)])
    assert result.successful


@pytest.mark.parametrize('mass, x, message', [(330.0, 0.0, 'more than 10 times the robot itself'),
                                              (1e30, 0.0, 'is the unit kg?'),
                                              (1.0, 11.0, 'is the unit m?'),
                                              (1.0, 1e9, 'is the unit m?')])
def test_fault_55_loads_that_must_be_typing_errors_are_refused(harness, mass, x, message):
    node = harness()
    inertia = Inertia(m=mass)
    inertia.com.x = x
    got = node.call(SetPayload, 'set_payload', link='tool0', inertia=inertia)
    assert not got.success
    assert message in got.message
    assert node.node.robot.model_id == 1


def test_fault_4_commands_go_on_without_friction_where_velocities_end(harness):
    text = fan('abc').replace('<axis', '<dynamics damping="5" friction="2"/><axis')
    node = harness(text, friction=True, on_stale='ramp_down', state_timeout=60.0)
    heard = node.heard['~/effort_commands']
    expected = [EFFORTS[x] for x in 'abc']
    moving = (list('abc'), [0.0] * 3, [1.0] * 3)
    keep_sending(node, moving, lambda: heard and np.allclose(
        heard[-1].data, np.add(expected, 5.0 * 0.98 + 2.0), atol=1e-6))
    begin = len(heard)
    keep_sending(node, (list('abc'), [0.0] * 3, ()),
                 lambda: np.allclose(heard[-1].data, expected, atol=1e-6))
    # Never to zero, and not in one step.
    assert np.all(np.abs([message.data for message in heard[begin:]]) >= 9.81 - 7.0 - 1e-6)
    assert largest_step(heard, begin - 1) < 0.25 * 7.0
    said(node, 'commands are without friction: velocities are not known', WARN)


def test_fault_15_a_clock_that_stands_still_while_no_states_come_is_said(harness, state):
    node = harness(use_sim_time=True, state_timeout=0.5)
    clock = SimulatedTime(node)
    clock.be(7.0)
    node.answer(*state, stamp=(7, 0))
    node.diagnosis()
    said(node, 'no joint states arrived since the last report', WARN)


@pytest.mark.parametrize('executor', ['single', 'events'])
def test_a_state_that_the_executor_held_when_the_node_was_taken_down_does_no_harm(harness, state,
                                                                                  executor):
    node = harness(state_timeout=60.0, executor=executor)
    node.answer(*state)
    raw = serialize_message(joint_state(*state))
    listening, robot = node.node.listening, node.node.robot
    count = node.node.report.counts['joint states']
    # It is taken down by an answer, too: nothing is read from what is gone.
    listening._answer_state = lambda *_: listening.close()
    listening._on_joint_state(raw)
    assert node.node.report.counts['joint states'] == count + 1
    listening._on_joint_state(raw)
    assert node.node.report.counts['joint states'] == count + 1
    assert node.node.report.counts['errors'] == 0
    assert node.node.robot is robot


def test_fault_51_what_is_said_is_about_the_robot_that_is_there(harness):
    node = harness(fan('abc'), state_timeout=60.0)
    node.answer(*fan_state('abc'), topic='~/effort_commands')
    for k, order in ((2, 'ab'), (3, 'abd')):
        node.describe(fan(order))
        node.spin_until(lambda k=k: node.node.robot.model_id == k)
    assert 'the robot now has the joints a, b, d,' in node.node.commands.mismatch
