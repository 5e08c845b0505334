# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What differs between versions of rclpy is the same for users of the nodes."""

from importlib import import_module
from math import nan
import sys
from time import monotonic

from harness import PATIENCE
import pytest
from rbd_msgs.srv import SetMode
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.nodes.viewer import ViewerNode
from rbd_ros.ros.runtime.rclpy_workarounds import hand_over, make_executor
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
from rclpy.executors import SingleThreadedExecutor
from rclpy.node import Node
from rclpy.parameter import Parameter
from rosidl_parser.definition import (
    AbstractGenericString, AbstractNestedType, BasicType, NamespacedType)
from std_srvs.srv import SetBool, Trigger

pytestmark = pytest.mark.usefixtures('domain')

# As long as a request is, and what is in it: of a parameter that has all its values, and a type
# of value that does not exist; a transition that does not exist; names that cannot be.
COUNTS = 0, 2


def odd(kind, count):
    """Return a message with numbers, names and types that mean nothing."""
    message = kind()
    for name, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES):
        setattr(message, name, odd_value(slot, count, getattr(message, name)))
    return message


def odd_value(slot, count, default):
    """Return the value of a field of a message."""
    if isinstance(slot, AbstractNestedType):
        length = getattr(slot, 'size', count)
        return [odd_value(slot.value_type, count, None) for _ in range(length)]
    if isinstance(slot, AbstractGenericString):
        return '\n \x1b[31m no such \u2603' + 9000 * '!'
    if isinstance(slot, NamespacedType):
        package, *_, name = *slot.namespaces, slot.name
        return odd(getattr(import_module(f'{package}.msg'), name), count)
    assert isinstance(slot, BasicType)
    if slot.typename in ('float', 'double'):
        return nan
    if slot.typename == 'boolean':
        return True
    if slot.typename == 'octet':
        return b'\xff'
    return 77


class Together:
    """A node, and a peer that calls its services."""

    def __init__(self, node):
        self.node, self.peer, self.executor = node, Node('peer'), SingleThreadedExecutor()
        self.executor.add_node(node)
        self.executor.add_node(self.peer)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()

    def spin_until(self, done, explain):
        end = monotonic() + PATIENCE
        while not done():
            self.executor.spin_once(timeout_sec=0.05)
            assert monotonic() < end, explain

    def services(self):
        """Return the services of the node: names and types."""
        name, space = self.node.get_name(), self.node.get_namespace()
        return [(service, getattr(import_module(f'{kind[0].split("/")[0]}.srv'),
                                  kind[0].split('/')[2]))
                for service, kind in self.peer.get_service_names_and_types_by_node(name, space)]

    def call(self, name, kind, request):
        client = self.peer.create_client(kind, name)
        self.spin_until(client.service_is_ready, f'{name} does not appear')
        future = client.call_async(request)
        self.spin_until(future.done, f'{name} does not answer {request}')
        self.peer.destroy_client(client)
        return future.result()


@pytest.fixture
def together():
    """Return a function that makes a node with a peer; both are taken down after the test."""
    made = []

    def make(kind, **parameters):
        made.append(Together(kind(parameter_overrides=[
            Parameter(name, value=value) for name, value in parameters.items()])))
        return made[-1]
    yield make
    for both in made:
        both.close()


@pytest.mark.parametrize('kind', [
    DynamicsNode, TorqueController, SimulatedRobot, RobotInMujoco, ViewerNode])
def test_every_service_answers_requests_that_mean_nothing(together, kind):
    both = together(kind)
    expected = {service.service_name for service in both.node.services}
    both.spin_until(lambda: expected <= {name for name, _ in both.services()},
                    f'not all of {expected} are there')
    for name, kind in both.services():
        for count in COUNTS:
            response = both.call(name, kind, odd(kind.Request, count))
            assert isinstance(response, kind.Response)
            # What was asked for is repeated in reasons: it colours no terminal, and fills no log.
            for part in (response, *getattr(response, 'results', ()),
                         getattr(response, 'result', None)):
                for text in getattr(part, 'message', ''), getattr(part, 'reason', ''):
                    assert text.isprintable() and len(text) < 2100, (name, text)


def test_a_mode_with_control_characters_is_refused_in_printable_text(together):
    both, name = together(TorqueController), '/torque_controller'
    for mode in '\x1b', '\x1b[31mfly', 'a\nb', '\x7f', '\x01', '\u2028', 'é' * 9000:
        got = both.call(f'{name}/set_mode', SetMode, SetMode.Request(mode=mode))
        assert not got.success and got.message.startswith('mode must be one of gravity, ')
        assert got.message.isprintable() and len(got.message) < 2100
        one = Parameter('mode', value=mode).to_parameter_msg()
        result, = both.call(f'{name}/set_parameters', SetParameters,
                            SetParameters.Request(parameters=[one])).results
        assert result.reason == got.message
        result = both.call(f'{name}/set_parameters_atomically', SetParametersAtomically,
                           SetParametersAtomically.Request(parameters=[one])).result
        assert result.reason == got.message
    assert both.call(f'{name}/set_mode', SetMode, SetMode.Request(mode='hybrid')).success


@pytest.mark.parametrize('node, service, kind', [
    (TorqueController, 'set_mode', SetMode), (DynamicsNode, 'enable_commands', SetBool),
    (DynamicsNode, 'calibrate_contact', Trigger)])
def test_a_service_that_fails_answers_with_the_reason(together, node, service, kind, monkeypatch):
    monkeypatch.setattr(node, f'_{service}', lambda *_: 1 / 0)
    # Configured later than it is made
    both = together(node, autostart=False)
    both.node.trigger_configure()
    got = both.call(f'/{both.node.get_name()}/{service}', kind, kind.Request())
    assert not got.success
    assert got.message == 'division by zero'


def test_work_for_an_ended_executor_is_dropped():
    executor, done = SingleThreadedExecutor(), []
    hand_over(executor, done.append, 1)
    executor.spin_once(timeout_sec=0.0)
    assert done == [1]
    executor.shutdown()
    hand_over(executor, done.append, 2)
    assert done == [1]


def test_without_an_events_executor_a_node_warns_and_uses_another(monkeypatch, caplog):
    # As before rclpy 7.1.4
    monkeypatch.setitem(sys.modules, 'rclpy.experimental.events_executor', None)
    executor = make_executor(events=True)
    executor.shutdown()
    assert type(executor) is SingleThreadedExecutor
    assert "this rclpy has no 'events'" in caplog.text and '7.1.4' in caplog.text
