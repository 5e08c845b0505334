# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Drive coefficients and uncertainties in files of parameters, which the dynamics node reads.

An uncertainty has the attributes of `Uncertainty`, matrices as one list by rows, and ``inertial``,
by which the identified robot is recognized: its drives alone would fit the URDF before the
identification, too, whose torques are further off.

"""

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import replace
import json
from os import PathLike
from typing import Any
import warnings

import numpy as np
from rbd_ros._internal.atomic_write import whole_files
from rbd_ros._internal.text import did_you_mean, first_twice, listed, printable
from rbd_ros._internal.yaml_files import node_parameters, read_yaml
from rbd_ros.errors import ModelError, ModelWarning, named
from rbd_ros.model.arguments import check_model, shown
from rbd_ros.model.changes.drives import COLUMNS, drive_parameter_names, with_drives
from rbd_ros.model.changes.inertial import inertial_parameter_names, inertial_parameters
from rbd_ros.model.changes.modifications import without_payload
from rbd_ros.model.constraints import attach
from rbd_ros.model.joints import DRIVE, KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.uncertainty import Uncertainty

# Meaning of each part of an uncertainty.
UNCERTAINTY = {
    'joints': 'All joints of the robot that was identified, in its order.',
    'parameters': 'Names of its base parameters.',
    'factor': 'Upper triangle by rows of R: R^T R is the covariance of the base parameters.',
    'speed': 'Increasing speeds for each joint, one joint after another, rad/s or m/s.',
    'noise': 'Standard deviations of the torques at these speeds beyond that of the parameters, '
             'one bandwidth after another, N m or N.',
    'bandwidth': 'Increasing bandwidths of filtered torques to which the noise belongs, Hz; the '
                 'last one stands for torques as they were recorded.',
    'external': 'Largest external torques of the joints without contact, in deviations.',
    'inertial': 'Inertial parameters of its bodies without payloads, kg, kg m and kg m^2. A robot '
                'with others, such as those of the URDF before the identification, has no '
                'uncertainty.'}
# Files of earlier versions have one bandwidth, that of the fit, which is not known.
_EARLIER: dict[str, tuple[float, ...]] = {'bandwidth': (0.0,), 'inertial': ()}
_DIGITS = 6  # Significant digits of numbers that are estimates.
# Difference of inertial parameters, of the largest of each unit, that rounding explains.
ROUNDING = 1e-4
NO_INERTIAL = ('the uncertainty in the parameters has no inertial parameters and is not used: '
               'identify the robot again')
NO_BANDWIDTH = ('the uncertainty in the parameters has no bandwidth and holds for torques '
                'filtered as those of the identification alone: identify the robot again')
OTHER_ROBOT = ('the uncertainty in the parameters belongs to a robot with other inertial '
               'parameters and is not used: load the robot.urdf that rbd_ros identify wrote with '
               'them')


def save_drives(model: Model, path: str | PathLike[str]) -> None:
    """
    Write the drives of a robot, including those of mimics, to a parameter file, atomically.

    The uncertainty of an identified robot is written with them.

    Parameters
    ----------
    model, path : Model, str or path-like
        An existing file is replaced; RbdError is raised if it cannot be written.

    """
    check_model(model)
    name = printable(model.name, 100)
    lines = [f"# The drives of '{name}': parameters of the dynamics node of rbd_ros.", '/**:',
             '  ros__parameters:', '    drives:', _line('joints', _coordinates(model))]
    for label, meaning in DRIVE.items():
        lines += ['      # ' + ', '.join(meaning), _line(label, [
            x for joint in model.joints for x in getattr(joint, label)])]
    if (uncertainty := model.uncertainty) is not None:
        upper = uncertainty.factor[np.triu_indices(len(uncertainty.factor))]
        values = {**vars(uncertainty), 'factor': upper, 'inertial': _inertial_parameters(model)}
        lines.append('    uncertainty:')
        for label, meaning in UNCERTAINTY.items():
            lines += [f'      # {meaning}', _line(label, [
                x if isinstance(x, str) else float(f'{x:.{_DIGITS}g}')
                for x in np.ravel(values[label]).tolist()])]
    with whole_files(path) as (draft,):
        draft.write_text('\n'.join([*lines, '']), encoding='utf-8')


def _line(label: str, values: Iterable[str | float]) -> str:
    """Return a parameter, a list of names or numbers, as YAML."""
    return f'      {label}: [' + ', '.join(
        json.dumps(x, ensure_ascii=False) if isinstance(x, str) else yaml_number(x)
        for x in values) + ']'


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


def with_named_uncertainty(model: Model, given: Mapping[str, Any]) -> Model:
    """Return the robot with an uncertainty, given by attribute, if it belongs to it."""
    # If it belongs to a robot with other inertial parameters, `Model.warnings` has a note.
    if not any(given.values()):
        return model
    for label in given:
        if label not in UNCERTAINTY:
            raise ModelError(f'there is no uncertainty.{label}, only '
                             + listed(f'uncertainty.{one}' for one in UNCERTAINTY))
    joints, parameters = (yaml_names(f'uncertainty.{label}', given.get(label))
                          for label in ('joints', 'parameters'))
    arrays = {}
    for label in [*UNCERTAINTY][2:]:
        values = given.get(label) or _EARLIER.get(label, given.get(label))
        arrays[label] = np.array(yaml_numbers(f'uncertainty.{label}', values))
    for label, numbers in arrays.items():
        if not np.all(np.isfinite(numbers)):
            raise ModelError(f'uncertainty.{label} has a number that is not finite')
    factor, speed, noise, bandwidth, external, inertial = arrays.values()
    size = len(parameters)
    if len(factor) != size * (size + 1) // 2:
        raise ModelError(f'uncertainty.factor has {len(factor)} entries; {size} parameters need '
                         f'{size * (size + 1) // 2}')
    if not len(joints) * len(speed) or len(speed) % len(joints) or (
            len(noise) != len(bandwidth) * len(speed)):
        raise ModelError('uncertainty.speed and, by bandwidth, uncertainty.noise must have the '
                         f'same number of entries for each of the {len(joints)} joints, got '
                         f'{len(speed)} and {len(noise)}')
    if len(external) != len(joints) or np.any(external < 0.0):
        raise ModelError(f'uncertainty.external must have {len(joints)} entries, one for each '
                         'joint, which are not negative')
    speed = speed.reshape(len(joints), -1)
    if np.any(np.diff(speed) < 0.0) or np.any(noise < 0.0) or np.any(np.diff(bandwidth) < 0.0):
        raise ModelError('uncertainty.speed must not decrease within a joint, nor '
                         'uncertainty.bandwidth, and uncertainty.noise must not be negative')
    R = np.zeros((size, size))
    R[np.triu_indices(size)] = factor
    result = attach(model, Uncertainty(
        joints, parameters, R, speed, noise.reshape(-1, *speed.shape), external, bandwidth))
    if result.uncertainty is not None:
        known = {*inertial_parameter_names(model),
                 *drive_parameter_names(model, columns=tuple(COLUMNS))}
        unknown = [name for name in parameters if name not in known]
        if unknown:
            raise ModelError(f'uncertainty.parameters: there is no {listed(unknown)}')
        same = _are_same(_inertial_parameters(model), inertial)
        if not (same and given.get('bandwidth')):
            note = NO_BANDWIDTH if same else OTHER_ROBOT if len(inertial) else NO_INERTIAL
            return replace(result if same else model, warnings=(*model.warnings, note))
    return result


def _inertial_parameters(model: Model) -> np.ndarray:
    """Return the inertial parameters without payloads, which change while a robot works."""
    for joint in model.joints:
        model = without_payload(model, joint.parent)
    return inertial_parameters(model)


def _are_same(own: np.ndarray, given: np.ndarray) -> bool:
    """Return whether inertial parameters are the same, up to rounding."""
    if own.shape != given.shape:
        return False
    own, given = own.reshape(-1, 10), given.reshape(-1, 10)
    return all(np.max(np.abs(a - b)) <= ROUNDING * np.max(np.abs(b)) for a, b in (
        (own[:, unit], given[:, unit]) for unit in (slice(1), slice(1, 4), slice(4, 10))))


def yaml_number(x: float) -> str:
    """Return a number as text that every YAML reader takes for a float."""
    text = repr(float(x))
    return text if '.' in text else text.replace('e', '.0e')


def yaml_names(label: str, values: Any) -> tuple[str, ...]:
    """Return the names in a list."""
    if not isinstance(values, (list, tuple)) or not all(isinstance(one, str) for one in values):
        raise ModelError(f'{label} must be a list of names, got {shown(values)}')
    return tuple(values)


def yaml_numbers(label: str, values: Any) -> list[float]:
    """Return the numbers in a list; YAML reads 1e-3 as a string."""
    try:
        if isinstance(values, (list, tuple)) and not any(isinstance(x, bool) for x in values):
            return [float(x) for x in values]
    except (TypeError, ValueError):
        pass
    raise ModelError(f'{label} must be a list of numbers, got {shown(values)}')
