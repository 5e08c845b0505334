# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Transitions of the life cycle while states stream, requests run and callbacks wait."""

import contextlib
from inspect import signature
from itertools import product
import re
from time import monotonic

from covering import covering
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from harness import joint_state
import numpy as np
import pytest
from rbd_msgs.srv import DynamicsTerms, InverseDynamics
from rbd_ros.kernels.jit import compiled
from rbd_ros.ros.nodes import dynamics_node
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode, NotConfigured
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.runtime.rclpy_workarounds import make_executor
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rclpy.task import Future
from robots import example_urdf
from std_srvs.srv import SetBool, Trigger
from trajectory_msgs.msg import JointTrajectory

pytestmark = pytest.mark.usefixtures('domain')
ARM = example_urdf('ur10_robot.urdf').read_text()
KINDS = pytest.mark.parametrize('kind', [DynamicsNode, TorqueController])
TRANSITIONS = ('configure', 'activate', 'deactivate', 'cleanup')


def change(node, transition):
    """Trigger a transition, if it is possible now."""
    # Before 8.0, rclpy raises where a transition is impossible.
    with contextlib.suppress(RuntimeError):
        getattr(node, f'trigger_{transition}')()


@KINDS
def test_callbacks_that_wait_while_the_node_is_cleaned_up_do_nothing(kind, state, harness):
    node = (one := harness(kind=kind)).node
    one.send(*state)
    raw = serialize_message(joint_state(*state))
    listening, publishing = node.listening, node.publishing
    waiting = [node.health._publish, publishing._on_timer, node.commanding._on_silence,
               lambda: listening._on_joint_state(raw),
               lambda: node._enable_commands(SetBool.Request(), SetBool.Response()),
               lambda: node._calibrate_contact(Trigger.Request(), Trigger.Response())]
    if kind is TorqueController:
        waiting.append(lambda: node.modes.on_joint_trajectory(JointTrajectory()))
        waiting.append(lambda: node.modes.on_pose_target(PoseStamped()))
    call = node.calls['~/inverse_dynamics']
    before = node.report.counts['errors']
    change(node, 'deactivate')
    change(node, 'cleanup')
    for callback in waiting:
        callback()
    call._begin(call._take(InverseDynamics.Request(), InverseDynamics.Response()), None)
    call._refuse(InverseDynamics.Request(), InverseDynamics.Response(), ValueError('too late'))
    assert node.report.counts['errors'] - before == 1
    assert 'too late' in node.report.last_error


@KINDS
def test_timers_call_functions_without_arguments(kind, harness):
    # An argument would be filled with the timer's times, by rclpy's events executor alone.
    timers = list(harness(kind=kind, publish_rate=10.0).node.timers)
    assert len(timers) > 2
    assert not any(signature(timer.callback).parameters for timer in timers)


@KINDS
def test_a_response_to_a_service_that_is_gone_is_dropped(kind, harness):
    node = harness(kind=kind).node
    services = [one for one in node.services if one.service_name.endswith(
        ('enable_commands', 'calibrate_contact', 'set_mode'))]
    change(node, 'deactivate')
    change(node, 'cleanup')
    for one in services:
        one.send_response(one.srv_type.Response(), None)


@pytest.mark.parametrize('kind, events, seed', covering(
    product([DynamicsNode, TorqueController], [True, False], range(2)),
    (DynamicsNode, True, 0), (TorqueController, False, 1)))
def test_transitions_at_any_moment_raise_nothing(kind, events, seed, state, harness):
    one = harness(kind=kind)
    with disturbed(one, events, seed, state) as disturb:
        for _ in range(60):
            disturb(TRANSITIONS)
        assert one.node.report.counts['errors'] == 0, one.node.report.last_error
        change(one.node, 'configure')
        change(one.node, 'activate')
        assert one.node.active


@pytest.mark.parametrize('kind, events, seed', covering(
    product([DynamicsNode, TorqueController], [True, False], range(4)),
    *product([DynamicsNode, TorqueController], [True, False], [0]),
    (DynamicsNode, False, 2), (TorqueController, True, 2)))
def test_a_shutdown_at_any_moment_raises_nothing(kind, events, seed, state, harness):
    one = harness(kind=kind)
    with disturbed(one, events, seed, state) as disturb:
        # Active at first; for other seeds after any transitions.
        for _ in range(4 * seed):
            disturb(TRANSITIONS)
        disturb(['shutdown'])
        for _ in range(5):
            disturb([*TRANSITIONS, 'shutdown'])
        assert not one.node.configured
        assert one.node.report.counts['errors'] == 0, one.node.report.last_error


@contextlib.contextmanager
def disturbed(one, events, seed, state):
    """Yield a function that triggers one of some transitions among states and requests."""
    rng, executor = np.random.default_rng(seed), make_executor(events)
    one.executor.remove_node(one.node)
    one.executor.remove_node(one.peer)
    executor.add_node(one.node)
    executor.add_node(one.peer)
    clients = [one.peer.create_client(kind_of, f'{one.name}/{name}') for kind_of, name in (
        (InverseDynamics, 'inverse_dynamics'), (DynamicsTerms, 'dynamics_terms'),
        (SetBool, 'enable_commands'), (Trigger, 'calibrate_contact'))]

    def disturb(transitions):
        for _ in range(rng.integers(1, 6)):
            one.send(*state)
        for client in clients:
            if client.service_is_ready():
                client.call_async(client.srv_type.Request())
        if rng.random() < 0.2:
            one.describe('<robot name="none">' if rng.random() < 0.5 else '')
        executor.create_task(change, one.node, transitions[rng.integers(len(transitions))])
        executor.spin_until_future_complete(Future(), rng.choice([0.0, 0.003, 0.03]))
    yield disturb
    executor.remove_node(one.node)
    executor.remove_node(one.peer)
    executor.shutdown()


@KINDS
def test_a_node_that_cannot_be_configured_repeats_its_reason_until_it_can(kind, harness):
    one = harness(None, kind=kind, gravity=[1.0])
    for _ in range(2):
        level, message, _ = one.diagnosis()
        assert level == DiagnosticStatus.ERROR and 'gravity must be three' in message
    one.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, -9.81])])
    change(one.node, 'configure')
    assert one.node.configured and one.node._refusal is None
    end = monotonic() + 1.0
    one.spin_until(lambda: monotonic() > end)
    assert 'gravity must be' not in one.diagnosis()[1]


@pytest.mark.parametrize('kind, wrong, reason', [
    (DynamicsNode, {'robot_description': ARM.replace('robot', 'robo')}, 'robo'),
    (TorqueController, {'robot_description': ARM, 'task_link': 'nose'}, "'nose'"),
    (DynamicsNode, {'robot_description': re.sub(' effort="[^"]*"', ' effort="0"', ARM),
                    'limit_efforts': True}, 'set command_limits')])
def test_a_description_in_a_parameter_that_cannot_be_used_is_a_reason_not_to_configure(
        kind, wrong, reason, harness):
    one = harness(None, kind=kind, **wrong)
    assert not one.node.configured
    level, message, _ = one.diagnosis()
    assert level == DiagnosticStatus.ERROR and reason in message
    if reason != 'robo':
        one.node.set_parameters([Parameter('task_link', value=''),
                                 Parameter('limit_efforts', value=False)])
        change(one.node, 'configure')
        one.spin_until(lambda: one.node.robot is not None)


def test_a_mode_that_moves_the_task_link_is_not_configured_without_one(harness):
    one = harness(None, kind=TorqueController, mode='cartesian_impedance')
    assert not one.node.configured
    assert 'cartesian_impedance needs the parameter task_link' in one.diagnosis()[1]
    one.node.set_parameters([Parameter('mode', value='gravity')])
    change(one.node, 'configure')
    assert one.node.configured
    result, = one.node.set_parameters([Parameter('mode', value='cartesian_impedance')])
    assert not result.successful and 'task_link' in result.reason


def test_an_error_during_a_transition_is_repeated_too(harness, monkeypatch):
    def fail(*arguments, **options):
        raise ValueError('no such part')
    monkeypatch.setattr(dynamics_node, 'Subscriptions', fail)
    level, message, _ = harness(None).diagnosis()
    assert level == DiagnosticStatus.ERROR and 'ValueError: no such part' in message


def test_a_launched_node_that_cannot_be_configured_ends(monkeypatch):
    # What a node changes for its whole process is put back.
    monkeypatch.setattr(dynamics_node.sys, 'setswitchinterval', lambda seconds: None)
    monkeypatch.setattr(compiled, '_compile_process', compiled._compile_process)
    with pytest.raises(NotConfigured, match='gravity must be three'):
        DynamicsNode(alone=True, parameter_overrides=[
            Parameter('gravity', value=[1.0]), Parameter('exit_unless_configured', value=True)])
    assert NotConfigured in DynamicsNode.errors and DynamicsNode.program == 'dynamics_node'
    assert TorqueController.program == 'torque_controller'
