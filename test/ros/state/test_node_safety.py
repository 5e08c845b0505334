# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Changes of the robot, its load and its listeners while commands flow."""

from time import monotonic

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Inertia, Vector3, Vector3Stamped
from harness import keep_sending, LATCHED, said
import numpy as np
import pytest
from rbd_msgs.srv import SetGravity, SetPayload
import rbd_ros
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.node import Node
from rclpy.parameter import Parameter
from robots import fan, relative_error
from std_msgs.msg import String
from std_srvs.srv import SetBool

WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR

pytestmark = pytest.mark.usefixtures('domain')


def fan_state(order):
    """Return names, a position and a velocity."""
    return list(order), [0.0] * len(order), [0.0] * len(order)


# g of the joints above at zero: m g x, turned about y by -x.
EFFORTS = {name: -9.81 * k for k, name in enumerate('abcd', 1)}


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


def test_fault_54_another_description_is_refused_while_commands_flow(harness, capfd):
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


def test_fault_54_a_robot_that_changes_while_it_is_commanded_makes_no_step(harness, capfd):
    node = harness(fan('abc'), state_timeout=60.0, model_changes='accept')
    heard = node.heard['~/effort_commands']
    node.answer(*fan_state('abc'), topic='~/effort_commands')
    node.describe(fan('abc', mass=10.0))
    node.spin_until(lambda: node.node.robot.model_id == 2)
    assert 'the robot changes while it is being commanded' in capfd.readouterr().err
    expected = [10.0 * EFFORTS[x] for x in 'abc']
    keep_sending(node, fan_state('abc'), lambda: np.allclose(heard[-1].data, expected))
    # 50 states a second: no step is a tenth of the whole way of 265 N m.
    steps = np.diff([message.data for message in heard], axis=0)
    assert np.max(np.abs(steps)) < 0.25 * 9.0 * 3 * 9.81


@pytest.mark.parametrize('policy, model_id', [('while_disabled', 2), ('never', 1)])
def test_fault_54_without_a_listener_other_robots_are_accepted_unless_never(policy, model_id):
    node = DynamicsNode(parameter_overrides=[Parameter('model_changes', value=policy)])
    for text in (fan('abc'), fan('abd')):
        node.listening._on_description(String(data=text))
    assert node.robot.model_id == model_id
    node.destroy_node()


def test_commands_follow_a_payload_that_changes_before_every_state(harness, model, state):
    node = harness(state_timeout=60.0)
    heard = node.heard['~/effort_commands']
    node.answer(*state, topic='~/effort_commands')
    loaded = rbd_ros.gravity_torques(rbd_ros.with_payload(model, 'tool0', 5.0), state[1])
    end = monotonic() + 20.0
    while relative_error(heard[-1].data, loaded) > 0.02 and monotonic() < end:
        assert node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia(m=5.0)).success
        node.answer(*state, topic='~/effort_commands')
    assert relative_error(heard[-1].data, loaded) <= 0.02


def gravity(z):
    """Return a request for gravity along z."""
    return {'gravity': Vector3Stamped(vector=Vector3(z=z))}


def payload(mass, x=0.0, ixx=0.0, link='tool0'):
    """Return a request for a payload."""
    inertia = Inertia(m=mass, ixx=ixx)
    inertia.com.x = x
    return {'link': link, 'inertia': inertia}


def test_fault_55_gravity_beyond_its_limit_is_refused(harness):
    node = harness()
    for z in (-981.0, -1e300, 30.0):
        got = node.call(SetGravity, 'set_gravity', **gravity(z))
        assert not got.success and 'gravity_limit' in got.message
        result, = node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, z])])
        assert not result.successful
    assert node.node.robot.model_id == 1
    node.node.set_parameters([Parameter('gravity_limit', value=40.0)])
    assert node.call(SetGravity, 'set_gravity', **gravity(z)).success


def test_fault_55_zero_gravity_must_be_allowed_explicitly(harness, state, capfd):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    got = node.call(SetGravity, 'set_gravity')
    assert not got.success and 'allow_zero' in got.message
    assert not node.call(SetGravity, 'set_gravity', **gravity(1e-3)).success
    result, = node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, 0.0])])
    assert not result.successful and 'allow_zero' in result.reason
    assert node.call(SetGravity, 'set_gravity', allow_zero=True).success
    assert 'gravity is now [0, 0, 0] m/s^2: none' in capfd.readouterr().err
    assert node.node.robot.model_id == 2
    said(node, 'gravity is zero', WARN)
    # From then on it is what it is, and other parameters change as before.
    result, = node.node.set_parameters([Parameter('ramp_time', value=2.0)])
    assert result.successful


def test_fault_55_every_change_of_gravity_and_payload_is_logged(harness, capfd):
    node = harness()
    assert node.call(SetGravity, 'set_gravity', **gravity(-1.62)).success
    assert 'gravity is now [0, 0, -1.62] m/s^2' in capfd.readouterr().err
    node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, -3.7])])
    node.spin_until(lambda: node.node.robot.model_id == 3)
    assert 'gravity is now [0, 0, -3.7] m/s^2' in capfd.readouterr().err
    for mass, text in ((2.5, "link 'tool0' now carries 2.5 kg"),
                       (200.0, 'more than the robot itself, 32.7')):
        got = node.call(SetPayload, 'set_payload', **payload(mass))
        assert got.success and text in got.message
        assert text in capfd.readouterr().err
    node.call(SetPayload, 'set_payload', link='tool0')
    assert "link 'tool0' no longer carries a payload" in capfd.readouterr().err


def test_fault_55_refused_gravity_and_payloads_are_logged_with_the_given_numbers(harness, capfd):
    node = harness()
    calls = [(SetGravity, 'set_gravity', gravity(-981.0), '[0, 0, -981] m/s^2: gravity is 981'),
             (SetGravity, 'set_gravity', gravity(-77.5), '[0, 0, -77.5] m/s^2: gravity is 77.5'),
             (SetGravity, 'set_gravity', {}, '[0, 0, 0] m/s^2: gravity is zero'),
             (SetPayload, 'set_payload', payload(4321.0),
              "4321 kg at [0, 0, 0] m on 'tool0': the payload weighs 4321 kg"),
             (SetPayload, 'set_payload', payload(1.5, link='hand'),
              "1.5 kg at [0, 0, 0] m on 'hand': robot 'ur10' has no link 'hand'"),
             # A request that nobody filled in.
             (SetPayload, 'set_payload', {}, "0 kg at [0, 0, 0] m on '': "),
             (SetPayload, 'set_payload', {'link': 'tool0'},
              "0 kg at [0, 0, 0] m on 'tool0': the mass is 0")]
    for kind, name, fields, text in calls:
        got = node.call(kind, name, **fields)
        assert not got.success
        log = capfd.readouterr().err
        assert log.count(f'~/{name} refused, {text}') == 1 and got.message in log
    for fields, text in (
            (payload(330.0), 'more than 10 times the robot itself'),
            (payload(1e30), 'is the unit kg?'), (payload(1.0, 11.0), 'is the unit m?'),
            (payload(1.0, 1e9), 'is the unit m?'), (payload(-1.0), 'mass'),
            (payload(np.nan), 'mass'), (payload(1.0, np.inf), 'finite'),
            (payload(1.0, ixx=1.0), 'triangle')):
        got = node.call(SetPayload, 'set_payload', **fields)
        assert not got.success and text in got.message
    assert node.node.robot.model_id == 1


def test_simultaneous_changes_are_all_made(harness, model):
    node = harness()
    client = node.peer.create_client(SetPayload, '/dynamics/set_payload')
    node.spin_until(client.service_is_ready)
    futures = [client.call_async(SetPayload.Request(link=link, inertia=Inertia(m=mass)))
               for link, mass in (('tool0', 1.0), ('forearm_link', 2.0), ('base_link', 4.0))]
    node.spin_until(lambda: all(future.done() for future in futures))
    assert all(future.result().success for future in futures)
    assert node.node.robot.model.mass == pytest.approx(model.mass + 7.0)


def test_fault_83_compensation_without_friction_parameters_is_reported(harness, capfd):
    node = harness(fan('abc'), friction=True, state_timeout=60.0)
    node.answer(*fan_state('abc'))
    assert 'neither friction nor damping' in capfd.readouterr().err
    said(node, 'no joint of the robot has friction or damping', WARN)
    damped = DynamicsNode(parameter_overrides=[Parameter('friction', value=True)])
    damped.listening._on_description(String(data=fan('abc').replace(
        '<axis', '<dynamics damping="1"/><axis')))
    assert damped.robot and 'neither friction nor damping' not in capfd.readouterr().err
    damped.destroy_node()


def test_fault_4_commands_go_on_without_friction_of_joints_whose_velocities_end(harness):
    text = fan('abc').replace('<axis', '<dynamics damping="5" friction="2"/><axis')
    node = harness(text, friction=True, on_stale='ramp_down', state_timeout=60.0)
    heard, full = node.heard['~/effort_commands'], 5.0 * 0.98 + 2.0
    gravity = np.array([EFFORTS[x] for x in 'abc'])

    def move(velocity, friction):
        """Send velocities until commands have this friction; return the commands."""
        begin = max(len(heard) - 1, 0)
        keep_sending(node, (list('abc'), [0.0] * 3, velocity), lambda: heard and np.allclose(
            heard[-1].data, gravity + friction, atol=1e-6))
        commands = np.array([message.data for message in heard[begin:]])
        # Never to zero, and not in one step.
        assert np.all(np.abs(commands) >= 9.81 - full - 1e-6)
        assert np.max(np.abs(np.diff(commands, axis=0)), initial=0.0) < 0.25 * full
        return commands
    for velocity in (np.nan, np.inf):
        move([1.0] * 3, full)
        # Others keep theirs.
        others = move([1.0, velocity, 1.0], [full, 0.0, full])[:, [0, 2]]
        assert np.allclose(others, (gravity + full)[[0, 2]], atol=1e-6)
    said(node, 'commands do not compensate friction of b: velocities are unknown', WARN)
    move((), 0.0)
    said(node, 'commands do not compensate friction of a, b, c: velocities are unknown', WARN)
