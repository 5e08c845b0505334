# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks and services that cannot bring the node down."""

from collections.abc import Callable
from functools import wraps
from typing import Any, TypeVar

from rbd_ros.ros.log import Log
from rbd_ros.ros.report import Report

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
import rclpy
from rclpy.node import Node
from rclpy.service import Service

T = TypeVar('T')


def guarded(callback: Callable[..., T]) -> Callable[..., T | None]:
    """
    Log and report what a callback raises, so that the node survives it.

    Parameters
    ----------
    callback : callable
        A method of an object with a ``_log`` and a ``_report``.

    """
    @wraps(callback)
    def wrapper(self: Any, *arguments: Any) -> T | None:
        try:
            return callback(self, *arguments)
        except Exception as error:
            if rclpy.ok():       # else ROS was shut down in the middle of it
                text = f'{callback.__name__}: {type(error).__name__}: {error}'
                self._report.fail('errors', text)
                self._log.error(text, callback.__name__)
            return None
    return wrapper


def guard_services(node: Node, report: Report, log: Log) -> None:
    """
    Make every service of a node answer every request, those of rclpy included.

    In rclpy, an exception in a service ends the executor and with it the process: one request with
    a parameter of a type that does not exist is enough.

    Parameters
    ----------
    node : rclpy.node.Node
        The node, with its services.
    report : Report
        Counts errors.
    log : Log
        The node's log.

    """
    for service in node.services:
        if not getattr(service.callback, 'is_guarded', False):
            service.callback = _answering(service, service.callback, report, log)


def _answering(service: Service, callback: Callable[[Any, Any], Any], report: Report,
               log: Log) -> Callable[[Any, Any], Any]:
    """Return a callback that answers whatever happens."""
    def answer(request: Any, response: Any) -> Any:
        try:
            if service.srv_type is SetParameters and len(request.parameters) > 1:
                # One by one, so that one that cannot be read does not hide the others' results.
                response.results = [
                    answer(SetParameters.Request(parameters=[one]), SetParameters.Response())
                    .results[0] for one in request.parameters]
                return response
            return callback(request, response)
        except Exception as error:
            text = f'{service.srv_name}: {type(error).__name__}: {error}'
            report.fail('errors', text)
            log.error(text, service.srv_name)
            return _refusal(service.srv_type, request, str(error))
    answer.is_guarded = True    # type: ignore[attr-defined]  # of functions none is known
    return answer


def _refusal(kind: Any, request: Any, reason: str) -> Any:
    """Return a response that reports a failure."""
    response, no = kind.Response(), SetParametersResult(successful=False, reason=reason)
    if kind is SetParameters:
        response.results = [no] * len(request.parameters)
    elif kind is SetParametersAtomically:
        response.result = no
    elif hasattr(response, 'message'):
        response.message = reason
    return response
