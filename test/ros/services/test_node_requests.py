# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Requests that are wrong, slow or many, beside the stream of states."""

from threading import Event

import pytest
from rbd_msgs.srv import InverseDynamics
import rbd_ros
from rclpy.parameter import Parameter
from rclpy.qos import QoSProfile
from robots import random_state, relative_error

AGREEMENT = 1e-9

pytestmark = pytest.mark.usefixtures('domain')


def test_fault_41_no_request_of_a_life_cycle_or_parameter_service_ends_the_node(harness, state):
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


def held_up(node, monkeypatch):
    """Let requests of inverse dynamics wait; return what lets them go, and what says one waits."""
    go, begun = Event(), Event()
    compute = node.node.robot.service_workspace.inverse_dynamics

    def slow(*arguments, **options):
        begun.set()
        assert go.wait(30.0)
        return compute(*arguments, **options)
    monkeypatch.setattr(node.node.robot.service_workspace, 'inverse_dynamics', slow)
    return go, begun


def test_fault_60_states_are_answered_while_a_slow_request_is(harness, state, monkeypatch):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    go, begun = held_up(node, monkeypatch)
    client = node.peer.create_client(InverseDynamics, '/dynamics/inverse_dynamics')
    node.spin_until(client.service_is_ready)
    future = client.call_async(InverseDynamics.Request(acceleration=[0.0] * 6))
    node.spin_until(begun.is_set)
    for _ in range(20):
        node.answer(*state)
    go.set()
    node.spin_until(future.done)
    assert future.result().success


def test_fault_60_each_of_thirty_simultaneous_calls_is_answered(harness, state, monkeypatch):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    go, begun = held_up(node, monkeypatch)
    # By default a client keeps the latest ten answers that it has not taken.
    client = node.peer.create_client(InverseDynamics, '/dynamics/inverse_dynamics',
                                     qos_profile=QoSProfile(depth=30))
    node.spin_until(client.service_is_ready)
    request = InverseDynamics.Request(acceleration=[0.0] * 6)
    futures = [client.call_async(request)]
    # On a busy machine, the thread that computes may begin late.
    node.spin_until(begun.is_set)
    futures += [client.call_async(request) for _ in range(29)]
    # One is in work and eight wait.
    node.spin_until(lambda: sum(future.done() for future in futures) == 21)
    go.set()
    node.spin_until(lambda: all(future.done() for future in futures))
    answers = [future.result() for future in futures]
    assert sum(got.success for got in answers) == 9
    assert all(got.success or 'inverse_dynamics is busy: 8 requests are already waiting'
               in got.message for got in answers)


def test_a_request_that_waited_is_answered_for_the_state_that_was_measured_when_it_came(
        harness, model, monkeypatch):
    node = harness(state_timeout=60.0)
    q, v, _ = random_state(model, 1)
    later, _, _ = random_state(model, 2)
    node.answer(model.velocity_names, q, v)
    go, begun = held_up(node, monkeypatch)
    client = node.peer.create_client(InverseDynamics, '/dynamics/inverse_dynamics')
    node.spin_until(client.service_is_ready)
    future = client.call_async(InverseDynamics.Request(acceleration=[0.0] * 6))
    node.spin_until(begun.is_set)
    node.answer(model.velocity_names, later, v)
    go.set()
    node.spin_until(future.done)
    expected = rbd_ros.bias_torques(model, q, v)
    assert relative_error(future.result().effort, expected) < AGREEMENT


def test_an_exception_in_the_worker_is_reported(harness, state, monkeypatch, capfd):
    node = harness(state_timeout=60.0)
    monkeypatch.setattr('rbd_ros.ros.robot.current_robot.with_gravity', lambda *_: 1 / 0)
    node.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, -3.0])])
    node.spin_until(lambda: node.node.report.counts['errors'])
    assert 'ZeroDivisionError' in capfd.readouterr().err
    node.answer(*state)
    got = node.call(InverseDynamics, 'inverse_dynamics', acceleration=[0.0] * 6)
    assert got.success
