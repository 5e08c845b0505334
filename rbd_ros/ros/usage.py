# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of the smaller nodes, and the help text of all executables."""

from collections.abc import Mapping
from typing import Any

from rcl_interfaces.msg import FloatingPointRange, ParameterDescriptor
from rclpy.exceptions import ParameterUninitializedException
from rclpy.node import Node
from rclpy.parameter import Parameter


def declare(node: Node, descriptions: Mapping[str, tuple[Any, ...]]) -> dict[str, Any]:
    """
    Declare parameters that cannot be set while a node runs.

    Parameters
    ----------
    node : rclpy.node.Node
        The node.
    descriptions : dict of str to tuple
        Default of each parameter, or its type, its description, and limits of a number.

    Returns
    -------
    dict of str to any
        Their values; None for one without a default that is not set.

    """
    values: dict[str, Any] = {}
    for name, (default, description, *limits) in descriptions.items():
        descriptor = ParameterDescriptor(description=description, read_only=True)
        if limits:
            descriptor.floating_point_range = [FloatingPointRange(from_value=limits[0],
                                                                  to_value=limits[1])]
        node.declare_parameter(name, default, descriptor)
        try:
            values[name] = node.get_parameter(name).value
        except ParameterUninitializedException:
            values[name] = None
    return values


def usage(program: str, what: str, descriptions: Mapping[str, tuple[Any, ...]]) -> str:
    """
    Return what `--help` prints.

    Parameters
    ----------
    program : str
        Name of the executable.
    what : str
        What it does.
    descriptions : dict of str to tuple
        Default of each parameter, or its type if that is an empty list, and its description.

    Returns
    -------
    str
        Lines.

    """
    lines = [what.strip(), '', f'usage: {program} --ros-args [-p NAME:=VALUE ...] [--params-file '
             'FILE] [-r FROM:=TO ...]', '', 'Parameters:']
    for name, (default, description, *_) in descriptions.items():
        default = [] if isinstance(default, Parameter.Type) else default
        lines += [f'  {name} (default {default!r})', f'      {description}']
    return '\n'.join(lines)
