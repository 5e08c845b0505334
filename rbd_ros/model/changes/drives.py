# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Robots with other drives, and drive coefficients as one vector of parameters.

StateError is raised for vectors and columns of the wrong form, ModelError for unknown joints and
impossible coefficients.

"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, choice, finite_array, finite_vector, shown
from rbd_ros.model.changes.modifications import require_joints
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import numbers
from rbd_ros.model.model import Model

# Columns of the friction regressor, and the coefficient of each.
COLUMNS = {'viscous': 'damping', 'viscous_asymmetry': 'damping_asymmetry', 'coulomb': 'friction',
           'coulomb_asymmetry': 'friction_asymmetry', 'stribeck': 'stribeck_friction',
           'offset': 'effort_offset', 'rotor': 'armature'}
USUAL = ('viscous', 'coulomb', 'offset')

# By joint name, or an array for all velocities.
Values: TypeAlias = Mapping[str, npt.ArrayLike] | npt.ArrayLike


def with_armature(model: Model, armature: Values) -> Model:
    """
    Return the robot with other rotor inertias, which are part of M and of all that depends on M.

    Parameters
    ----------
    model, armature : Model, mapping of str to array_like or array_like of shape (model.nv,)
        Rotor inertias reflected to the joint side (motor inertia times gear ratio squared),
        kg m^2 or kg, as the coefficients of `rbd_ros.model.with_friction`; not negative.

    """
    return with_drives(model, {'armature': armature})


def with_friction(model: Model, *, damping: Values | None = None,
                  damping_asymmetry: Values | None = None, friction: Values | None = None,
                  friction_asymmetry: Values | None = None,
                  stribeck_friction: Values | None = None, stribeck_velocity: Values | None = None,
                  effort_offset: Values | None = None) -> Model:
    """
    Return the robot with other friction, see `rbd_ros.friction_torques`.

    Coefficients with which friction would drive a joint raise ModelError, see
    `rbd_ros.model.changes.friction`.

    Parameters
    ----------
    model : Model
        The robot.
    damping, damping_asymmetry, friction, friction_asymmetry : mapping or array_like, optional
        For each named joint a number, or one per velocity. Or an array (model.nv,), to which the
        robot's attribute is then equal: mimics have no friction of their own then, that of their
        leader includes it, and with closed loops joints that depend on others keep theirs.
        Coefficients that are not given stay.
    stribeck_friction, stribeck_velocity, effort_offset : mapping or array_like, optional
        In the same way.

    """
    given = {'damping': damping, 'damping_asymmetry': damping_asymmetry, 'friction': friction,
             'friction_asymmetry': friction_asymmetry, 'stribeck_friction': stribeck_friction,
             'stribeck_velocity': stribeck_velocity, 'effort_offset': effort_offset}
    return with_drives(model, {label: values for label, values in given.items()
                               if values is not None})


def with_springs(model: Model, *, stiffness: Values | None = None,
                 spring_reference: Values | None = None) -> Model:
    """
    Return the robot with other springs, see `rbd_ros.spring_torques`.

    Parameters
    ----------
    model, stiffness, spring_reference : Model, mapping or array_like, optional
        N m/rad or N/m, not negative; rad or m. By joint or for all velocities, as for
        `with_friction`; without springs of their own, the reference of mimics has no effect.

    """
    given = {'stiffness': stiffness, 'spring_reference': spring_reference}
    return with_drives(model, {label: values for label, values in given.items()
                               if values is not None})


def with_drives(model: Model, coefficients: Mapping[str, Values]) -> Model:
    """Return the robot with other `DRIVE` coefficients by name, each as for `with_friction`."""
    # It has no uncertainty: that belonged to the coefficients before.
    check_model(model)
    own = {joint.name: v for joint, _, v in model.unconstrained.moving_joints}
    joints = model.joints
    for label, values in coefficients.items():
        if isinstance(values, Mapping):
            try:
                require_joints(model, values, Mapping)
            except ModelError as error:
                raise ModelError(f'{label}: {error}') from None
            for joint in joints:
                if joint.name in values and not joint.nv:
                    raise ModelError(f"joint '{joint.name}' is fixed: its {label} has no effect; "
                                     'leave it out')
            new = {joint.name: numbers(f"joint '{joint.name}'", label, values[joint.name],
                                       (joint.nv,), repeat=True)
                   for joint in joints if joint.name in values}
        else:
            array = finite_vector(model, label, values)
            if model.loops is not None:     # joints that depend on others keep theirs
                whole = np.array(getattr(model.unconstrained, label))
                whole[model.loops.own] = array
                array = whole
            new = {joint.name: array[own[joint.name]] if joint.name in own else np.zeros(joint.nv)
                   for joint in joints}
        changes: dict[str, dict[str, Any]] = {
            name: {label: tuple(array.tolist())} for name, array in new.items()}
        joints = tuple(replace(joint, **changes.get(joint.name, {})) for joint in joints)
    return rebuild(replace(model, uncertainty=None), joints=joints)


def check_columns(columns: Sequence[str]) -> tuple[str, ...]:
    """Return the names of columns; raise StateError if one is unknown or repeated."""
    try:
        columns = (columns,) if isinstance(columns, str) else tuple(columns)
    except TypeError:
        raise StateError('columns must be a list of names, got ' + shown(columns)) from None
    for one in columns:
        choice('columns', one, tuple(COLUMNS))
    if len(set(columns)) < len(columns):
        raise StateError('columns must not have the same name twice, got ' + shown(columns))
    return columns


def drive_parameter_names(model: Model, *, columns: Sequence[str] = USUAL) -> tuple[str, ...]:
    """
    Return ``'<velocity>.damping'``, ``'<velocity>.friction'`` ..., for one velocity after another.

    Parameters
    ----------
    model, columns : Model, sequence of str
        Parameters of each velocity, as for `rbd_ros.analysis.friction_regressor`.

    """
    check_model(model)
    columns = check_columns(columns)
    return tuple(f'{name}.{COLUMNS[one]}' for name in model.velocity_names for one in columns)


def drive_parameters(model: Model, *, columns: Sequence[str] = USUAL) -> np.ndarray:
    """Return the drive parameters (nv * columns,); arguments as for `drive_parameter_names`."""
    check_model(model)
    columns = check_columns(columns)
    return np.array([getattr(model, COLUMNS[one]) for one in columns]).T.reshape(-1)


def with_drive_parameters(model: Model, parameters: npt.ArrayLike, *,
                          columns: Sequence[str] = USUAL) -> Model:
    """
    Return the robot with other drive parameters.

    Parameters
    ----------
    model, parameters, columns : Model, array_like of shape (nv * columns,), sequence of str
        Values, and names of columns, as of `drive_parameters`.

    """
    check_model(model)
    columns = check_columns(columns)
    parameters = finite_array('parameters', parameters, (model.nv * len(columns),))
    return with_drives(model, {COLUMNS[one]: values for one, values in zip(
        columns, parameters.reshape(model.nv, len(columns)).T)})
