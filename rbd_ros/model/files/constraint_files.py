# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Constraints in YAML, for robots whose description lacks them: see doc/closed_loops.md."""

from collections.abc import Mapping
from contextlib import suppress
from math import isfinite
from os import PathLike
from typing import Any

from rbd_ros._internal.text import did_you_mean, listed, printable
from rbd_ros._internal.yaml_files import read_yaml
from rbd_ros.errors import ModelError, named
from rbd_ros.model.arguments import check_model, shown
from rbd_ros.model.constraints import with_constraints
from rbd_ros.model.files.drive_files import yaml_names, yaml_numbers
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import pose, rotation_from_rpy

_TOP = ('constraints', 'independent', 'condition_limit')
_NAMES = ('name', 'kind', 'link_a', 'link_b')
_VECTORS = ('xyz_a', 'rpy_a', 'xyz_b', 'rpy_b')
Contents = tuple[list[Constraint] | None, list[str] | None, float | None]


def load_constraints(model: Model, path: str | PathLike[str]) -> Model:
    """
    Return the robot with the constraints of a YAML file, in place of its own.

    Parameters
    ----------
    model, path : Model, str or path-like
        The file has ``constraints``, a list of the arguments of `ModelBuilder.constraint`, or
        ``independent``, the names of the independent joints, or both. Without ``constraints`` the
        robot keeps its own. ``condition_limit`` is that of `with_constraints`.

    Raises
    ------
    ModelError
        If the file cannot be read, or the robot cannot have its constraints or independent joints.

    """
    check_model(model)
    found, independent, limit = read_constraints(path)
    with named(path):
        if found is None and not model.constraints:
            raise ModelError(f"it has no constraints, nor has robot '{model.name}'")
        return with_constraints(model, model.constraints if found is None else found, independent,
                                condition_limit=limit)


def read_constraints(path: str | PathLike[str]) -> Contents:
    """Return the constraints of a file, and other arguments of `with_constraints`."""
    # None stands for what the file does not have.
    document = read_yaml(path, ModelError)
    entries, independent, limit = (document.get(key) if isinstance(document, dict) else None
                                   for key in _TOP)
    with named(path):
        if not isinstance(entries, list) and (entries is not None or independent is None):
            raise ModelError('constraints: [{name: ..., kind: ..., link_a: ..., link_b: ...}, '
                             '...] are expected, or independent: [names of joints]')
        _check_keys('the file', document, _TOP)
        return (None if entries is None else [
                    _constraint(f'constraint {k}', entry) for k, entry in enumerate(entries, 1)],
                None if independent is None else [*yaml_names('independent', independent)],
                _number('condition_limit', limit))


def _check_keys(where: str, entries: Mapping[Any, Any], known: tuple[str, ...]) -> None:
    for key in entries:
        if key not in known:
            hint = did_you_mean(str(key), known, '; known are ' + listed(known))
            raise ModelError(f'{where} has {shown(key)}, which is not known{hint}')


def _constraint(where: str, entry: Any) -> Constraint:
    if not isinstance(entry, dict):
        raise ModelError(f'{where} must have name, kind, link_a and link_b, got {shown(entry)}')
    if isinstance(entry.get('name'), str):
        where = f"constraint '{printable(entry['name'], 100)}'"
    _check_keys(where, entry, (*_NAMES, *_VECTORS, 'length'))
    for key in _NAMES:
        if not isinstance(entry.get(key), str):
            got = f', got {shown(entry[key])}' if key in entry else ''
            raise ModelError(f'{where}: {key} must be a name{got}')
    xyz_a, rpy_a, xyz_b, rpy_b = (_numbers(f'{where}: {key}', entry.get(key, [0.0] * 3), 3)
                                  for key in _VECTORS)
    name, kind, link_a, link_b = (entry[key] for key in _NAMES)
    return Constraint(name, kind, link_a, link_b, pose(rotation_from_rpy(rpy_a), xyz_a),
                      pose(rotation_from_rpy(rpy_b), xyz_b),
                      _number(f'{where}: length', entry.get('length')))


def _number(label: str, value: Any) -> float | None:
    return None if value is None else _numbers(label, [value], 1)[0]


def _numbers(label: str, values: Any, count: int) -> list[float]:
    with suppress(ModelError):
        numbers = yaml_numbers(label, values)
        if len(numbers) == count and all(map(isfinite, numbers)):
            return numbers
    raise ModelError(f'{label} must be {count} finite number{"s" if count > 1 else ""}, got '
                     + shown(values[0] if count == 1 else values))
