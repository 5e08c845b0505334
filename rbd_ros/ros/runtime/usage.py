# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The help text of the executables."""

from collections.abc import Mapping
from typing import Any

from rclpy.parameter import Parameter


def usage(program: str, what: str, descriptions: Mapping[str, tuple[Any, ...]]) -> str:
    """Return the text of `--help`; `descriptions` holds default and description by parameter."""
    lines = [what.strip(), '', f'usage: {program} --ros-args [-p NAME:=VALUE ...] [--params-file '
             'FILE] [-r FROM:=TO ...]', '', 'Parameters:']
    for name, (default, description, *_) in descriptions.items():
        # The default of a parameter with an empty list is its type.
        default = [] if isinstance(default, Parameter.Type) else default
        lines += [f'  {name} (default {default!r})', f'      {description}']
    return '\n'.join(lines)
