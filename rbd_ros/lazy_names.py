# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Names of a package that are imported when they are first asked for.

A node hears signals before it waits for numba, and `rbd_ros check` needs no kernel.

"""

from collections.abc import Callable, Mapping, Sequence
from importlib import import_module
import sys
from typing import Any, TypeAlias

# What a package assigns to __getattr__, __dir__ and __all__.
Exports: TypeAlias = tuple[Callable[[str], Any], Callable[[], list[str]], list[str]]


def export(package: str, names: Mapping[str, Sequence[str]]) -> Exports:
    """
    Give a package names that live in its modules.

    Parameters
    ----------
    package : str
        The package.
    names : dict of str to list of str
        By module, whose name begins behind that of the package, the names that it holds; an empty
        list stands for the module itself.

    Returns
    -------
    __getattr__, __dir__, __all__
        For the package to assign.

    """
    module_of = {}
    for module, held in names.items():
        module_of.update(dict.fromkeys(held or [module], module))
    exported = sorted(module_of)

    def get(name: str) -> Any:
        if name not in module_of:
            raise AttributeError(f"module '{package}' has no attribute '{name}'")
        value = import_module(f'{package}.{module_of[name]}')
        if name != module_of[name]:
            value = getattr(value, name)
        setattr(sys.modules[package], name, value)
        return value

    def directory() -> list[str]:
        return sorted({*vars(sys.modules[package]), *exported})
    return get, directory, exported
