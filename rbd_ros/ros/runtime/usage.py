# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The help text of the executables."""

from collections.abc import Mapping

from rbd_ros._internal.setting import Setting


def usage(program: str, purpose: str, settings: Mapping[str, Setting]) -> str:
    """Return the text that an executable prints with `--help`: its purpose and parameters."""
    lines = [purpose.strip(), '', f'usage: {program} --ros-args [-p NAME:=VALUE ...] '
             '[--params-file FILE] [-r FROM:=TO ...]', '', 'Parameters:']
    for name, setting in settings.items():
        default = list(setting.default) if isinstance(setting.default, tuple) else setting.default
        lines += [f'  {name} (default {default!r})', f'      {setting.description}']
    return '\n'.join(lines)
