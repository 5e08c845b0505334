# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Names of a package, and modules, that are imported at their first use."""

from __future__ import annotations

from importlib import import_module
import sys

# True for type checkers. This module is imported first, and importing `typing` would take longer
# than everything else in it.
TYPE_CHECKING = False
if TYPE_CHECKING:
    from collections.abc import Callable, Mapping, Sequence    # noqa: I300
    from typing import Any, TypeAlias

    # __getattr__, __dir__ and __all__.
    Exports: TypeAlias = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def export(package: str, names: Mapping[str, Sequence[str]]) -> Exports:
    """Return ``__getattr__``, ``__dir__``, ``__all__`` for names by module ([]: the module)."""
    module_of = {}
    for module, module_names in names.items():
        module_of.update(dict.fromkeys(module_names or [module], module))
    exported = sorted(module_of)

    def get(name: str) -> Any:
        if name not in module_of:
            top = getattr(sys.modules['rbd_ros'], '__all__', ())
            # Python suggests similar names of the object.
            raise AttributeError(f"module '{package}' has no attribute '{name}'"
                                 + f'; use rbd_ros.{name}' * (name in top), name=name,
                                 obj=sys.modules[package])
        module = module_of[name]
        value = import_module(module if module.startswith('rbd_ros.') else f'{package}.{module}')
        if name != module:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    def directory() -> list[str]:
        return sorted({*exported, *(x for x in vars(sys.modules[package]) if x[:2] == '__')})
    return get, directory, exported


class LazyModule:
    """A module that is imported when one of its names is first used."""

    def __init__(self, name: str) -> None:
        self._name = name

    def __getattr__(self, name: str) -> Any:
        value = getattr(import_module(self._name), name)
        setattr(self, name, value)
        return value
