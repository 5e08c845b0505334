# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The controllers of a running controller manager: compare them with a file, and switch them."""

from collections.abc import Callable, Mapping
from importlib import import_module
from time import monotonic
from typing import Any, TypeAlias

# Names of controllers, also in the file of controllers.
MANAGER, STATES, EFFORTS = 'controller_manager', 'joint_state_broadcaster', 'effort_controller'
STRICT = 2    # SwitchController.Request.STRICT
ANSWER = 10.0    # s for a service to answer, as of spawners
# Calls a service, given by the package and name of its type and its own name, with the fields of
# the request; returns the response, or None without an answer.
Call: TypeAlias = Callable[..., Any]


def caller(node: Any, executor: Any, patience: float,
           is_over: Callable[[], bool] = lambda: False) -> Call:
    """Return a function that calls services, which must appear within `patience`, s."""
    def call(package: str, kind: str, service: str, **request: Any) -> Any:
        try:
            service_type = getattr(import_module(f'{package}.srv'), kind)
        except ImportError:
            return None     # there is no controller manager on this machine
        client, end = node.create_client(service_type, service), monotonic() + patience
        try:
            while not client.service_is_ready() and not is_over() and monotonic() < end:
                executor.spin_once(timeout_sec=0.05)
            if not client.service_is_ready():
                return None
            future = client.call_async(service_type.Request(**request))
            executor.spin_until_future_complete(future, timeout_sec=ANSWER)
            return future.result() if future.done() else None
        finally:
            node.destroy_client(client)
    return call


def controllers(call: Call) -> dict[str, Any] | None:
    """Return the states of the loaded controllers by name; None without a controller manager."""
    found = call('controller_manager_msgs', 'ListControllers', f'{MANAGER}/list_controllers')
    return None if found is None else {one.name: one for one in found.controller}


def differences(call: Call, loaded: Any, wanted: Mapping[str, Any]) -> str:
    """Return how a loaded controller differs from its parameters in a file; '' if it does not."""
    from rclpy.parameter import parameter_value_to_python
    live = {'type': loaded.type}
    for name in wanted.keys() - live.keys():
        # One at a time: rclcpp answers with no values at all if one of the names is undeclared.
        found = call('rcl_interfaces', 'GetParameters', f'{loaded.name}/get_parameters',
                     names=[name])
        if found is None:
            return f'{loaded.name} is loaded, but does not answer'
        live[name] = parameter_value_to_python(found.values[0]) if found.values else None
    return '; '.join(
        f'{loaded.name} is loaded with {name} {_shown(live[name])}, not {_shown(value)}: commands '
        'would mean something else. Unload it, or change the file of controllers'
        for name, value in wanted.items() if _shown(live[name]) != _shown(value))


def _shown(value: Any) -> Any:
    return list(value) if hasattr(value, '__len__') and not isinstance(value, str) else value


def activate(call: Call, name: str) -> str:
    """Activate a controller, all others stay as they are; return why not, or ''."""
    before = controllers(call) or {}
    if name in before and before[name].state == 'active':
        return ''
    answer = _switch(call, activate_controllers=[name])
    after = controllers(call) or {}
    if answer is not None and answer.ok and name in after and after[name].state == 'active':
        return ''
    lost = [one for one in before if before[one].state == 'active'
            and one in after and after[one].state != 'active']
    if lost:
        _switch(call, activate_controllers=lost)
    return f'{name} could not be activated: ' + (getattr(answer, 'message', '') or 'see the log '
                                                 'of the controller manager')


def deactivate(call: Call, name: str) -> None:
    """Deactivate a controller, if there still is a controller manager."""
    _switch(call, deactivate_controllers=[name])


def _switch(call: Call, **names: list[str]) -> Any:
    return call('controller_manager_msgs', 'SwitchController', f'{MANAGER}/switch_controller',
                strictness=STRICT, **names)
