# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Commands where they begin, jump, go stale or end; numbers are rows of doc/faults.md."""

from time import monotonic

from diagnostic_msgs.msg import DiagnosticStatus
from harness import keep_sending, said
import numpy as np
import pytest
import rbd_ros
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from robots import relative_error
from std_msgs.msg import Float64MultiArray
from std_srvs.srv import SetBool

# Rounding is a thousandth of it.
AGREEMENT = 1e-9
OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
STALE, ERROR = DiagnosticStatus.STALE, DiagnosticStatus.ERROR

pytestmark = pytest.mark.usefixtures('domain')


def gravity(model, state):
    """Return the torques that hold the robot."""
    return rbd_ros.gravity_torques(model, state[1])


def test_fault_13_without_states_commands_stop_hold_or_go_to_zero(harness, model, state):
    g, node = gravity(model, state), harness(state_timeout=0.2, ramp_time=0.3)
    heard = node.heard['~/effort_commands']
    for policy, expected in (('stop', None), ('hold', g), ('ramp_down', np.zeros(6))):
        node.node.set_parameters([Parameter('on_stale', value=policy)])
        # Smoothly to what is right, the second time and the third too.
        keep_sending(node, state, lambda: heard and relative_error(heard[-1].data, g) < AGREEMENT)
        node.settle()
        count = len(heard)
        end = monotonic() + 1.0
        node.spin_until(lambda: monotonic() > end)  # noqa: B023
        if expected is None:
            assert len(heard) == count
        else:
            assert len(heard) > count + 20
            assert np.max(np.abs(heard[-1].data - expected)) < AGREEMENT
        norms = [np.linalg.norm(message.data) for message in heard[count - 1:]]
        assert np.all(np.diff(norms) <= AGREEMENT)
    keep_sending(node, state, lambda: np.allclose(heard[-1].data, g))


def test_commands_with_names_are_published_only_while_a_controller_subscribes(harness, model,
                                                                              state):
    node = harness()
    shown, g = node.answer(*state, topic='~/commanded_efforts'), gravity(model, state)
    node.settle()
    assert tuple(shown.name) == model.velocity_names
    assert relative_error(shown.effort, g) < AGREEMENT
    assert relative_error(shown.effort, node.heard['~/effort_commands'][-1].data) < AGREEMENT
    assert shown.header.stamp == node.heard['~/gravity_torques'][-1].header.stamp
    node.peer.destroy_subscription(next(
        one for one in node.peer.subscriptions if one.topic_name.endswith('/effort_commands')))
    node.spin_until(lambda: not node.node.commanding.subscribed)
    count = len(node.heard['~/commanded_efforts'])
    node.answer(*state)
    node.settle()
    assert len(node.heard['~/commanded_efforts']) == count
    assert not node.node.commanding.is_commanding()


def at_rest(state, effort=0.0):
    """Return a state with an effort of all joints, as of a robot on its brakes."""
    return *state, np.full(len(state[0]), effort)


@pytest.mark.parametrize('limits', [{'blend_time': 1.0}, {'effort_rate_limit': 20.0}])
def test_beneath_an_active_controller_commands_start_at_the_measured_efforts(
        harness, model, state, limits):
    # The controller still passes on what the node before commanded.
    node, before = harness(on_stale='ramp_down', **limits), np.linspace(-40.4, 12.0, 6)
    heard, order = node.heard['~/effort_commands'], [3, 0, 5, 1, 4, 2]
    shuffled = [np.asarray(part)[order] for part in (*state, before)]
    assert np.array_equal(node.answer(*shuffled, topic='~/effort_commands').data, before)
    keep_sending(node, shuffled, lambda: len(heard) > 20)
    steps = np.abs(np.diff([message.data for message in heard], axis=0))
    assert np.max(steps) < 0.3 * np.max(np.abs(gravity(model, state) - before))


def test_measured_efforts_are_commands_after_the_conventions_of_both(harness, model, state):
    names, q, v = state
    node = harness(blend_time=1.0, **{
        'effort_convention.commands': 'without_gravity',
        'effort_convention.joints': list(names[:1]),
        'effort_convention.state_constants': [2.0], 'effort_convention.command_constants': [4.0]})
    effort = np.linspace(-20.0, 10.0, 6)
    torque = effort * [2.0, 1.0, 1.0, 1.0, 1.0, 1.0] - rbd_ros.gravity_torques(model, q)
    got = node.answer(names, q, v, effort, topic='~/effort_commands').data
    assert np.allclose(got, torque / [4.0, 1.0, 1.0, 1.0, 1.0, 1.0], rtol=1e-12)


def test_commands_that_cannot_start_where_the_robot_is_do_not_start(
        harness, model, state, capfd):
    node = harness(state_timeout=60.0, blend_time=0.5)
    names, heard = state[0], node.heard['~/effort_commands']
    keep_sending(node, state, lambda: node.node.commanding.why_withheld())
    assert '[WARN]' in next(line for line in capfd.readouterr().err.splitlines()
                            if f"the efforts of {', '.join(names)} at which commands" in line)
    said(node, '~/effort_commands is withheld: the efforts of', WARN)
    assert not heard
    # Nothing is needed for commands that start at their full size.
    node.node.set_parameters([Parameter('blend_time', value=0.0)])
    assert relative_error(node.answer(*state, topic='~/effort_commands').data,
                          gravity(model, state)) < AGREEMENT


def test_measured_efforts_that_are_not_those_commanded_are_named(harness, model, state):
    node = harness()
    names, g = state[0], gravity(model, state)
    worst = int(np.argmax(np.abs(g)))
    # What the manager makes of an effort that points outwards at a position limit.
    clamped = np.where(np.arange(6) == worst, 0.0, g)
    text = f'measured efforts are not those commanded, N m or N: {names[worst]} 0 instead of '
    keep_sending(node, (*state, clamped), lambda: any(
        text in one.status[0].message for one in node.heard['/diagnostics']))
    # Noise and friction are no reason, nor are efforts of a robot that is not commanded now.
    for efforts in (1.2 * g + 0.5, clamped):
        count = len(node.heard['/diagnostics'])
        keep_sending(node, (*state, efforts), lambda: len(
            node.heard['/diagnostics']) > count + 3, period=0.05)  # noqa: B023
        assert not any('measured efforts' in one.status[0].message
                       for one in node.heard['/diagnostics'][count + 2:])
        node.node.current.enable_commands(False)


@pytest.mark.parametrize('policy, way', [
    ('stop', 'deactivate'), ('ramp_down', 'disable'), ('ramp_down', 'deactivate')])
def test_fault_46_commands_end_as_documented(harness, model, state, policy, way):
    node = harness(on_stale=policy, state_timeout=60.0, ramp_time=0.3)
    g, heard = gravity(model, state), node.heard['~/effort_commands']
    node.answer(*state, topic='~/effort_commands')
    count = len(heard)
    if way == 'disable':
        assert node.call(SetBool, 'enable_commands', data=False).success
    else:
        node.node.trigger_deactivate()
    end = monotonic() + 0.6
    node.spin_until(lambda: monotonic() > end)
    if policy == 'stop':
        assert len(heard) == count
    else:
        norms = [np.linalg.norm(message.data) for message in heard[count - 1:]]
        assert len(norms) > 10
        assert np.all(np.diff(norms) <= 0.0)
        assert norms[-1] == 0.0
    count = len(heard)
    if way == 'disable':
        # The other outputs go on.
        node.answer(*state, topic='~/gravity_torques')
        assert '~/effort_commands are disabled' in node.diagnosis()[1]
    else:
        assert node.nothing_new(lambda: node.send(*state))
    assert len(heard) == count
    if way == 'disable':
        assert node.call(SetBool, 'enable_commands', data=True).success
    else:
        node.node.trigger_activate()
    got = node.answer(*state, topic='~/effort_commands')
    # It begins where it ended, and comes to what is right.
    assert np.linalg.norm(np.array(got.data) - (policy == 'stop') * g) < 0.3 * np.linalg.norm(g)
    keep_sending(node, state, lambda: np.allclose(heard[-1].data, g))


def test_fault_49_commands_beyond_the_limits_are_clamped_and_flagged(harness, model, state):
    g = gravity(model, state)
    joint = int(np.argmax(np.abs(g)))
    limit = 0.5 * abs(g[joint])
    node = harness(limit_efforts=True, command_limits=[limit], state_timeout=60.0)
    got = node.answer(*state, topic='~/effort_commands')
    assert np.allclose(got.data, np.clip(g, -limit, limit))
    assert abs(got.data[joint]) == limit
    said(node, 'clamped: ', WARN)
    node.node.set_parameters([Parameter('limit_efforts', value=False)])
    heard = node.heard['~/effort_commands']
    keep_sending(node, state, lambda: relative_error(heard[-1].data, g) < AGREEMENT)
    said(node, 'not clamped: ', WARN)
    node.answer(*state)
    assert model.velocity_names[joint] in node.diagnosis()[1]


@pytest.mark.parametrize('states_go_on', [False, True])
def test_commands_to_a_new_controller_blend_with_and_without_states_in_between(
        harness, model, state, states_go_on):
    node, state, g = harness(blend_time=1.0), at_rest(state), gravity(model, state)
    heard, topic = node.heard['~/effort_commands'], '/dynamics/effort_commands'
    keep_sending(node, state, lambda: heard and np.allclose(heard[-1].data, g))
    old, = [one for one in node.peer.subscriptions if one.topic_name == topic]
    node.peer.destroy_subscription(old)
    end, first = monotonic() + 1.5, []
    if states_go_on:
        keep_sending(node, state, lambda: monotonic() > end)
    node.spin_until(lambda: monotonic() > end)
    node.peer.create_subscription(Float64MultiArray, topic, first.append, 10)
    keep_sending(node, state, lambda: first)
    assert np.max(np.abs(first[0].data)) < 0.1 * np.max(np.abs(g))


def test_first_commands_are_blended_in_and_their_rate_is_limited(harness, model, state, capfd):
    g, state = gravity(model, state), at_rest(state)
    node = harness(blend_time=0.4)
    heard = node.heard['~/effort_commands']
    assert not np.any(node.answer(*state, topic='~/effort_commands').data)
    assert 'full size' not in capfd.readouterr().err
    keep_sending(node, state, lambda: np.allclose(heard[-1].data, g))
    shares = [np.dot(message.data, g) / np.dot(g, g) for message in heard]
    assert np.all(np.diff(shares) >= 0.0)
    assert any(0.2 < share < 0.8 for share in shares)
    node.node.set_parameters([Parameter('effort_rate_limit', value=50.0)])
    count = len(heard)
    node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, 9.81])])
    keep_sending(node, state, lambda: np.allclose(heard[-1].data, -g))
    steps = np.abs(np.diff([message.data for message in heard[count - 1:]], axis=0))
    # 0.1 s is the longest step that the limit is reckoned with.
    assert np.max(steps) <= 50.0 * 0.1 + AGREEMENT
    # Of the first ones alone.
    assert capfd.readouterr().err.count('~/effort_commands have reached their full size') == 1


def test_fault_46_a_node_that_was_never_configured_ends_too(silent_node):
    node = silent_node(autostart=False)
    node.finish()
    assert node.trigger_shutdown() == TransitionCallbackReturn.SUCCESS


def test_timers_follow_parameters_that_change_while_the_node_runs(silent_node):
    node = silent_node()

    def becomes(name, value):
        result, = node.set_parameters([Parameter(name, value=value)])
        assert result.successful, result.reason

    assert node.publishing._timer is None
    becomes('publish_rate', 50.0)
    assert node.publishing._timer.timer_period_ns == 20_000_000
    becomes('publish_rate', 0.0)
    assert node.publishing._timer is None
    assert node.commanding._timer.timer_period_ns == 100_000_000
    becomes('on_stale', 'hold')
    assert node.commanding._timer.timer_period_ns == 10_000_000
