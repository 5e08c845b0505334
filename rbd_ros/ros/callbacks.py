# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Callbacks and services that cannot bring the node down."""

from functools import wraps

from rcl_interfaces.msg import SetParametersResult
from rcl_interfaces.srv import SetParameters, SetParametersAtomically
import rclpy


def guarded(callback):
    """
    Catch what a callback raises: it is logged and reported, and the node lives.

    Parameters
    ----------
    callback : callable
        A method of something that has a ``_log`` and a ``_report``.

    """
    @wraps(callback)
    def wrapper(self, *arguments):
        try:
            return callback(self, *arguments)
        except Exception as error:
            if rclpy.ok():       # else ROS was shut down in the middle of it
                text = f'{callback.__name__}: {type(error).__name__}: {error}'
                self._report.fail('errors', text)
                self._log.error(text, callback.__name__)
            return None
    return wrapper


def guard_services(node, report, log):
    """
    Let every service of a node answer every request, those of rclpy included.

    rclpy lets the executor fall over what a service raises, and with it the process: it takes one
    request with a parameter of a type that does not exist.

    Parameters
    ----------
    node : rclpy.node.Node
        With its services.
    report : Report
        Of the node.
    log : Log
        Of the node.

    """
    for service in node.services:
        if not getattr(service.callback, 'is_guarded', False):
            service.callback = _answering(service, service.callback, report, log)


def _answering(service, callback, report, log):
    """Return a callback that answers whatever happens."""
    def answer(request, response):
        try:
            if service.srv_type is SetParameters and len(request.parameters) > 1:
                # One by one, so that one which cannot be read does not hide what became of others.
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
    answer.is_guarded = True
    return answer


def _refusal(kind, request, reason):
    """Return a response that says no."""
    response, no = kind.Response(), SetParametersResult(successful=False, reason=reason)
    if kind is SetParameters:
        response.results = [no] * len(request.parameters)
    elif kind is SetParametersAtomically:
        response.result = no
    elif hasattr(response, 'message'):
        response.message = reason
    return response
