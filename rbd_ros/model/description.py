# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The links of a robot, and checks of the numbers of links and joints."""

from collections.abc import Sequence
from dataclasses import dataclass, field, replace
from math import inf, isfinite, isnan, sqrt
from typing import Any

import numpy as np
from rbd_ros._internal.arrays import ByValue, real_array
from rbd_ros.errors import ModelError
from rbd_ros.model.joints import DRIVE, Joint, KINDS, NEW_LIMITS, PER_VELOCITY

# Tolerances of inertias: violation of the triangle inequality relative to the largest principal
# moment, rounding error of a zero inertia, kg m^2, and asymmetry relative to the largest entry.
INERTIA_TOLERANCE, ZERO_INERTIA_TOLERANCE, ASYMMETRY_TOLERANCE = 1e-6, 1e-15, 1e-9
# Drive coefficients that may have either sign, each with the one that bounds it.
_SIGNED = {'damping_asymmetry': 'damping', 'friction_asymmetry': 'friction', 'effort_offset': None,
           'spring_reference': None}
# Of the squared length of a unit vector.
ROUNDING = 1e-15
# Upper bound of all numbers, in SI units: products of a few larger ones would overflow.
LARGEST = 1e30


@dataclass(frozen=True, eq=False)
class Link(ByValue):
    """
    One link of a robot's description.

    Attributes
    ----------
    name, mass : str, float
        Name, unique in the robot, and mass, kg.
    com : ndarray, shape (3,)
        Centre of mass in the link's frame, m.
    inertia : ndarray, shape (3, 3)
        About the centre of mass, in the axes of the link's frame, kg m^2.
    is_load : bool
        Whether it is a payload rather than a part of the robot.
    is_virtual : bool
        Whether it is only a frame between the joints of one body, and lacks a mass on purpose.

    """

    name: str
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    is_load: bool = False
    is_virtual: bool = False


def numbers(where: str, label: str, value: object, shape: tuple[int, ...], *, repeat: bool = False,
            infinite: bool = False) -> np.ndarray:
    """Return a user's numbers as an array; errors name the link or joint ``where``."""
    # `repeat` lets one number stand for all; `infinite` allows infinite ones, as for limits.
    array = real_array(value)
    if repeat and array is not None and array.ndim == 0:
        array = np.full(shape, array)
    if (array is None or array.shape != shape or np.any(np.isnan(array))
            or not (infinite or np.all(np.isfinite(array)))):
        size = ' x '.join(map(str, shape)) or 'one'
        raise ModelError(f'{where}: its {label} must be {size} finite number'
                         f'{"s" if shape else ""}, got {value!r}')
    return array


def inertia_matrix(where: str, value: object) -> np.ndarray:
    """Return a user's inertia, kg m^2, see `ModelBuilder.link`; errors name the link ``where``."""
    array = real_array(value)
    if array is None or array.shape not in ((3,), (6,), (3, 3)):
        raise ModelError(f'{where}: its inertia needs 3, 6 or 3 x 3 numbers, got {value!r}')
    array = numbers(where, 'inertia', value, array.shape)
    if array.shape == (3,):
        return np.diag(array)
    if array.shape == (6,):
        xx, yy, zz, xy, xz, yz = array
        return np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    return array


def check_links(links: Sequence[Link]) -> list[str]:
    """Return a sentence for each link whose inertia no body can have; raise for other errors."""
    shapes = {'mass': (), 'com': (3,), 'inertia': (3, 3)}
    try:
        masses, coms, inertias = (
            np.array([getattr(link, label) for link in links], float).reshape(-1, *shape)
            for label, shape in shapes.items())
        fine = bool(np.all(masses >= 0.0)) and all(
            np.all(np.abs(values) <= LARGEST) for values in (masses, coms, inertias))
    except (TypeError, ValueError):
        fine = False
    for link in () if fine else links:
        where = f"link '{link.name}'"
        for label, shape in shapes.items():
            what = 'centre of mass' if label == 'com' else label
            value = numbers(where, what, getattr(link, label), shape)
            if np.max(np.abs(value)) > LARGEST:
                raise ModelError(f'{where}: its {what} is beyond {LARGEST:.0e}: {value}')
        if link.mass < 0.0:
            raise ModelError(f'{where}: its mass is negative: {link.mass} kg')
    sizes = np.max(np.abs(inertias), axis=(1, 2))
    skewed = np.max(np.abs(inertias - inertias.transpose(0, 2, 1)), axis=(1, 2))
    for k in np.flatnonzero(skewed > ASYMMETRY_TOLERANCE * sizes).tolist():
        raise ModelError(f"link '{links[k].name}': its inertia is not symmetric: {inertias[k]}")
    moments = np.linalg.eigvalsh(inertias)
    small, middle, large = moments.T
    negative = small < -INERTIA_TOLERANCE * np.abs(large) - ZERO_INERTIA_TOLERANCE
    too_large = small + middle < large * (1.0 - INERTIA_TOLERANCE) - ZERO_INERTIA_TOLERANCE
    return [f"link '{links[k].name}': its " + (
        f'inertia has a negative principal moment, {small[k]:.3g} kg m^2; no body has that'
        if negative[k] else f'principal moments {small[k]:.3g}, {middle[k]:.3g}, {large[k]:.3g} '
        'kg m^2 break the triangle inequality; no body has those')
        for k in np.flatnonzero(negative | too_large).tolist()]


def check_joint(joint: Joint) -> tuple[Joint, list[str]]:
    """Return a joint with unit axes and one entry per velocity, and notes on ignored limits."""
    where = f"joint '{joint.name}'"
    if joint.kind not in KINDS:
        raise ModelError(f"{where}: its kind is '{joint.kind}', expected one of "
                         + ', '.join(KINDS))
    if not np.abs(joint.placement).max() <= LARGEST:
        raise ModelError(f'{where}: its origin is not finite or beyond {LARGEST:.0e} m')
    axes = [_unit(where, axis) for axis in
            (joint.axis, joint.second_axis)[:KINDS[joint.kind].axes]]
    if not isfinite(joint.pitch):
        raise ModelError(f'{where}: its pitch is not finite')

    values = {label: _per_velocity(joint, label) for label in PER_VELOCITY}
    notes, lower, upper = [], values['lower'], values['upper']
    if any(a > b for a, b in zip(lower, upper)):
        notes.append(f'{where}: its lower limit {lower} lies above its upper limit {upper}; '
                     'both ignored')
        values |= {'lower': (-inf,) * joint.nv, 'upper': (inf,) * joint.nv}
    negative = {label: min(values[label]) for label in ('velocity', 'effort', *NEW_LIMITS)
                if min(values[label], default=0.0) < 0.0}
    for label in negative:
        values[label] = tuple(inf if x < 0.0 else x for x in values[label])
    if negative:
        limit, it = ('limit is', 'it is') if len(negative) == 1 else ('limits are', 'they are')
        notes.append(f'{where}: its {" and ".join(negative)} {limit} negative, '
                     f'{" and ".join(f"{x:g}" for x in negative.values())}; {it} ignored')
    if any(any(values[label]) for label in DRIVE):
        _check_drive(where, values)
    changes: dict[str, Any] = {**values, **dict(zip(('axis', 'second_axis'), axes))}
    return replace(joint, **changes), notes


def _per_velocity(joint: Joint, label: str) -> tuple[float, ...]:
    """Return an attribute of a joint with a number per velocity, the default if it is empty."""
    default = 0.0 if label in DRIVE else -inf if label == 'lower' else inf
    values = tuple(map(float, getattr(joint, label))) or (default,) * joint.nv
    what = label if label in DRIVE else f'{label} limit'
    if len(values) != joint.nv:
        raise ModelError(f"joint '{joint.name}': {joint.nv} numbers expected for {what}, got "
                         f'{values}')
    if any(map(isnan, values)):
        raise ModelError(f"joint '{joint.name}': its {what} is not a number")
    return values


def _check_drive(where: str, values: dict[str, tuple[float, ...]]) -> None:
    """Raise ModelError if a joint cannot have such `DRIVE` coefficients."""
    for label in DRIVE:
        if label not in _SIGNED and not all(0.0 <= x < inf for x in values[label]):
            raise ModelError(f'{where}: its {label} must be finite and not negative, '
                             f'got {values[label]}')
    for label, most in _SIGNED.items():
        if not all(map(isfinite, values[label])):
            raise ModelError(f'{where}: its {label} must be finite, got {values[label]}')
        if most and any(abs(x) > y for x, y in zip(values[label], values[most])):
            raise ModelError(f'{where}: its {label}, {values[label]}, is greater than its {most}, '
                             f'{values[most]}: such friction would drive the joint')
    if any(x and not y for x, y in zip(values['stribeck_friction'], values['stribeck_velocity'])):
        raise ModelError(f'{where}: its stribeck_friction needs a stribeck_velocity: set that too')


def _unit(where: str, axis: np.ndarray) -> np.ndarray:
    axis = numbers(where, 'axis', axis, (3,)) if len(axis) != 3 else axis
    x, y, z = map(float, axis)
    size = max(abs(x), abs(y), abs(z))
    if not (size > 0.0 and isfinite(x) and isfinite(y) and isfinite(z)):
        raise ModelError(f'{where}: its axis must be three finite numbers, not all zero, '
                         f'got {axis}')
    if abs(x * x + y * y + z * z - 1.0) < ROUNDING:
        return np.array((x, y, z))      # A changed robot has exactly the axes that it had.
    x, y, z = x / size, y / size, z / size  # Squares of the entries themselves may overflow.
    length = sqrt(x * x + y * y + z * z)
    return np.array((x / length, y / length, z / length))
