# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Drive coefficients and uncertainties in files of parameters, which the dynamics node reads."""

from collections.abc import Mapping, Sequence
import json
from os import PathLike
from typing import Any
import warnings

import numpy as np
from rbd_ros._internal.atomic_write import whole_files
from rbd_ros._internal.text import did_you_mean, first_twice, listed, printable
from rbd_ros._internal.yaml_files import node_parameters, read_yaml
from rbd_ros.errors import ModelError, ModelWarning, named
from rbd_ros.model.arguments import check_model
from rbd_ros.model.changes.drives import with_drives
from rbd_ros.model.files.uncertainty_files import (
    uncertainty_lines, with_named_uncertainty, yaml_names, yaml_number, yaml_numbers)
from rbd_ros.model.joints import DRIVE, KINDS
from rbd_ros.model.model import Model

# Meaning and unit of each coefficient.
MEANINGS = {
    'damping': ('Viscous friction', 'N m s/rad or N s/m'),
    'damping_asymmetry': ('Added to drives.damping in the positive direction, subtracted in the '
                          'negative one', 'N m s/rad or N s/m'),
    'friction': ('Coulomb friction', 'N m or N'),
    'friction_asymmetry': ('Added to drives.friction in the positive direction, subtracted in the '
                           'negative one', 'N m or N'),
    'stribeck_friction': ('Additional Coulomb friction near rest', 'N m or N'),
    'stribeck_velocity': ('Speed at which 1/e of drives.stribeck_friction is left',
                          'rad/s or m/s'),
    'effort_offset': ('Effort of the drive at zero torque', 'N m or N'),
    'stiffness': ('Stiffness of springs', 'N m/rad or N/m'),
    'spring_reference': ('Coordinate at which a spring exerts no torque', 'rad or m'),
    'armature': ('Rotor inertia, reflected to the joint side (times the squared gear ratio)',
                 'kg m^2 or kg')}


def save_drives(model: Model, path: str | PathLike[str]) -> None:
    """
    Write the drives of a robot, including those of mimics, to a parameter file, atomically.

    The uncertainty of an identified robot is written with them.

    Parameters
    ----------
    model, path : Model, str or path-like
        An existing file is replaced.

    """
    check_model(model)
    name = printable(model.name, 100)
    lines = [f"# The drives of '{name}': parameters of the dynamics node of rbd_ros.", '/**:',
             '  ros__parameters:', '    drives:',
             '      joints: ' + json.dumps([*_coordinates(model)], ensure_ascii=False)]
    for label, meaning in MEANINGS.items():
        numbers = [yaml_number(x) for joint in model.joints for x in getattr(joint, label)]
        lines += ['      # ' + ', '.join(meaning), f'      {label}: [' + ', '.join(numbers) + ']']
    if model.uncertainty is not None:
        lines += ['    uncertainty:', *(f'      {line}' for line in uncertainty_lines(model))]
    with whole_files(path) as (draft,):
        draft.write_text('\n'.join([*lines, '']), encoding='utf-8')


def _coordinates(model: Model) -> dict[str, tuple[str, int]]:
    """Return the joint and index of each velocity by name, including those of mimics."""
    return {joint.name + suffix: (joint.name, k) for joint in model.joints
            for k, suffix in enumerate(KINDS[joint.kind].velocity_suffixes)}


def load_drives(model: Model, path: str | PathLike[str]) -> Model:
    """
    Return the robot with the drives of a parameter file, and with its uncertainty.

    Parameters
    ----------
    model, path : Model, str or path-like
        A file as written by `save_drives`. It may contain other parameters; joints and
        coefficients that it lacks stay as they are. An uncertainty that belongs to a robot with
        other joints or bodies is ignored; if only the inertial parameters are others, with a
        ModelWarning.

    Raises
    ------
    ModelError
        If the file cannot be read, has no drives, or has some that the robot cannot have.

    """
    check_model(model)
    drives, _ = _groups(path)
    with named(path):
        driven = with_named_drives(model, drives.pop('joints', ()), drives)
    return load_uncertainty(driven, path)


def load_uncertainty(model: Model, path: str | PathLike[str]) -> Model:
    """Return the robot with the uncertainty of a parameter file, if it belongs to it."""
    groups = _groups(path)
    with named(path):
        result = with_named_uncertainty(model, groups[1])
    if result.warnings != model.warnings:
        warnings.warn(f'{path}: {result.warnings[-1]}', ModelWarning, stacklevel=3)
    return result


def _groups(path: str | PathLike[str]) -> tuple[dict[str, Any], dict[str, Any]]:
    """Return the drives and the uncertainty in a parameter file."""
    found = {node: (drives, _group(parameters, 'uncertainty'))
             for node, parameters in node_parameters(read_yaml(path, ModelError))
             if isinstance(parameters, dict) and (drives := _group(parameters, 'drives'))}
    if len(found) != 1:
        what = f'drives for {listed(found)}: keep those of one' if found else (
            'no drives: ros__parameters of a node with drives: {joints: [...]} are expected')
        raise ModelError(f'{path} has {what}')
    return next(iter(found.values()))


def _group(parameters: dict[str, Any], group: str) -> dict[str, Any]:
    """Return the parameters of a group, whose names are nested or have dots."""
    nested, dot = parameters.get(group), f'{group}.'
    return {**(nested if isinstance(nested, dict) else {}),
            **{key.removeprefix(dot): value for key, value in parameters.items()
               if isinstance(key, str) and key.startswith(dot)}}


def with_named_drives(model: Model, joints: Sequence[str],
                      coefficients: Mapping[str, Sequence[float]]) -> Model:
    """Return the robot with other drives: a number per velocity in ``joints``, mimics included."""
    known = _coordinates(model)
    for name in yaml_names('drives.joints', joints):
        if name not in known:
            hint = did_you_mean(name, known, '; its joints are ' + listed(known))
            raise ModelError(f"drives.joints names '{name}', which robot '{model.name}' does not "
                             f'have{hint}')
    if twice := first_twice(joints):
        raise ModelError(f"drives.joints has '{twice}' twice")
    changes: dict[str, dict[str, np.ndarray]] = {}
    for label, values in coefficients.items():
        if label not in DRIVE:
            raise ModelError(f'there is no drives.{label}, only drives.joints and '
                             + ', '.join(f'drives.{one}' for one in DRIVE))
        numbers = yaml_numbers(f'drives.{label}', values)
        if not numbers:
            continue
        if len(numbers) != len(joints):
            raise ModelError(f'drives.{label} has {len(numbers)} entries, drives.joints has '
                             f'{len(joints)}: the numbers must be equal')
        change = changes[label] = {joint.name: np.array(getattr(joint, label))
                                   for joint in model.joints if joint.nv}
        for name, x in zip(joints, numbers):
            joint, k = known[name]
            change[joint][k] = x
    return with_drives(model, changes) if changes else model
