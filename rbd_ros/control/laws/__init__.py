# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The control laws: each module of this folder has one and is named after its control mode."""

from __future__ import annotations

from functools import cache
from importlib import import_module
from pkgutil import iter_modules
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from rbd_ros.control.controller import Controller


@cache
def control_laws() -> dict[str, type[Controller]]:
    """Return the class of each control mode; those for floating bases come first."""
    from rbd_ros.control.controller import Controller
    found = {}
    for _, mode, _ in iter_modules(__path__):
        module = import_module(f'{__name__}.{mode}')
        found[mode], = (one for one in vars(module).values() if isinstance(one, type)
                        and issubclass(one, Controller) and one.__module__ == module.__name__)
    return dict(sorted(found.items(), key=lambda item: not item[1].floating_base))
