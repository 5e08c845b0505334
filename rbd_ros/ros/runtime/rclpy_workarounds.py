# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What rclpy lacks, with the versions that lack it; Jazzy has 7.1, Kilted 9.1."""

from collections.abc import Callable, Mapping
from contextlib import suppress
from copy import copy
import logging
from typing import Any

from rbd_ros._internal.text import printable
from rbd_ros.ros.runtime.report import Log, Report
from rcl_interfaces.msg import ParameterEvent, SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
import rclpy
from rclpy.exceptions import InvalidHandle
from rclpy.executors import Executor, SingleThreadedExecutor
from rclpy.lifecycle import LifecycleNode
from rclpy.node import Node
from rclpy.publisher import Publisher
from rclpy.qos import QoSProfile
from rclpy.qos_overriding_options import QoSOverridingOptions
from rclpy.service import Service
from rclpy.subscription import Subscription
from rclpy.task import Future

_log = logging.getLogger('rbd_ros')
LONG_WAIT = 3600.0    # s, for one wait in an endless loop


def make_executor(events: bool) -> Executor:
    """Return rclpy's events executor if it has one, or its single-threaded one."""
    if not events:
        return SingleThreadedExecutor()
    try:
        # rclpy before 7.1.4 has no events executor.
        from rclpy.experimental.events_executor import EventsExecutor
    except ImportError:
        _log.warning("executor is 'single', which takes twice the CPU time: this rclpy has no "
                     "'events'; Jazzy has it from 7.1.4 on, Kilted always")
        return SingleThreadedExecutor()
    return EventsExecutor()


def spin(executor: Executor, end: 'Future[None]') -> None:
    """Spin until a future is done, or ROS is shut down."""
    # Up to 9.1.2 at least, ``spin()`` of the events executor keeps a core busy.
    while rclpy.ok() and not end.done():
        executor.spin_until_future_complete(end, LONG_WAIT)


def hand_over(executor: Executor, function: Callable[..., object], *arguments: Any) -> None:
    """Let an executor call a function, unless it has been shut down."""
    # Executors of rclpy 7.1 have lost their wake-up condition by then.
    with suppress(AttributeError, InvalidHandle):
        executor.create_task(function, *arguments)


def forget_life_cycle(node: LifecycleNode) -> None:
    """Release the life cycle of a destroyed node, so that ROS no longer shows the node."""
    # Up to 9.1.2 at least, rclpy leaves this to the garbage collector.
    node._state_machine = None      # type: ignore[assignment]  # rclpy's type hints lack None


def overrides(node: Node) -> Mapping[str, Any]:
    """Return the parameters that a node was started with, declared or not."""
    # Up to 9.1.2 at least, rclpy has no function for this.
    return getattr(node, '_parameter_overrides', {})


def guard_services(node: Node, log: Log, report: Report | None = None) -> None:
    """Make all services of a node, also rclpy's, answer every request in printable text."""
    # In rclpy, an exception in a service ends the process. A single request can cause one: a
    # parameter of an unknown type (up to 9.1.2), or an impossible transition (before 8.0).
    for service in node.services:
        if not getattr(service.callback, 'is_guarded', False):
            service.callback = _answering(service, service.callback, log, report)
            service.send_response = _sending(  # type: ignore[method-assign, assignment]
                service.send_response)


def _sending(send: Callable[[Any, Any], Any]) -> Callable[[Any, Any], None]:
    def respond(response: Any, header: Any) -> None:
        # A transition may have destroyed the service since the request arrived.
        with suppress(InvalidHandle):
            send(response, header)
    return respond


def _answering(service: Service, callback: Callable[[Any, Any], Any], log: Log,
               report: Report | None) -> Callable[[Any, Any], Any]:
    def answer(request: Any, response: Any) -> Any:
        try:
            if service.srv_type is SetParameters and len(request.parameters) > 1:
                # One by one, so that an unreadable parameter does not hide the others' results.
                response.results = [
                    answer(SetParameters.Request(parameters=[one]), SetParameters.Response())
                    .results[0] for one in request.parameters]
                return response
            return _printable(callback(request, response))
        except Exception as error:
            text = f'{service.service_name}: {type(error).__name__}: {error}'
            if report is not None:
                report.fail('errors', text)
            log.error(text, service.service_name)
            return _printable(_refusal(service.srv_type, request, str(error)))
    answer.is_guarded = True    # type: ignore[attr-defined]  # functions declare no attributes
    return answer


def _printable(response: Any) -> Any:
    """Return a response whose reasons, which quote the request, can be printed."""
    for part in (response, getattr(response, 'result', None), *getattr(response, 'results', ())):
        for label in 'message', 'reason':
            if hasattr(part, label):
                setattr(part, label, printable(getattr(part, label)))
    return response


def _refusal(kind: Any, request: Any, reason: str) -> Any:
    response, no = kind.Response(), SetParametersResult(successful=False, reason=reason)
    if kind is SetParameters:
        response.results = [no] * len(request.parameters)
    elif kind is SetParametersAtomically:
        response.result = no
    elif hasattr(response, 'message'):
        response.message = reason
    return response


class WaitingMessages:
    """
    Takes serialized messages of one type from the queue of a subscription, without the executor.

    An executor checks everything that a node waits for before it hands out one message, so under
    overload only this finds the newest state. `take_message` is internal to rclpy (7.1 to 9.1
    have it); without it, the executor delivers all messages, which takes more processor time, and
    under overload the node answers states that are up to ten old.

    """

    def __init__(self, kind: type) -> None:
        self._kind, self._possible = kind, True

    def take(self, subscription: Subscription) -> bytes | None:
        """Return the serialized message that has waited longest in a raw subscription, or None."""
        if not self._possible:          # this rclpy has no such call
            return None
        try:
            handle = subscription.handle
            with handle:
                taken = handle.take_message(self._kind, True)
            return None if taken is None else taken[0]
        except InvalidHandle:
            return None
        except (AttributeError, TypeError) as error:
            self._possible = False
            _log.warning('messages are delivered one by one, which is slower: take_message of '
                         'this rclpy is different: %s', error)
            return None


class QosOverrides(Node):
    """A node whose users choose history, depth and reliability of its topics by parameters."""

    def create_publisher(self, kind: Any, topic: str, qos: QoSProfile | int,    # type: ignore
                         **options: Any) -> Publisher:
        """Create a publisher, with the parameters of its quality of service."""
        # rclpy creates the publisher of events before parameters can be declared.
        if kind is not ParameterEvent:
            # rclpy writes overrides to the profile, which others may share.
            qos = copy(qos)
            options['qos_overriding_options'] = QoSOverridingOptions.with_default_policies()
        return super().create_publisher(kind, topic, qos, **options)

    def create_subscription(self, kind: Any, topic: str, callback: Any,     # type: ignore
                            qos: QoSProfile | int, *, overridable: bool = True,
                            **options: Any) -> Subscription:
        """Create a subscription, with the parameters of its quality of service if overridable."""
        if overridable:
            qos = copy(qos)
            options.setdefault('qos_overriding_options',
                               QoSOverridingOptions.with_default_policies())
        return super().create_subscription(kind, topic, callback, qos, **options)
