# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What may be wrong: each kind is declared once, and everything else derives from this table.

A hypothesis adds columns times sizes, which are fixed or fitted, to the torques of the
description. Efforts are measured = described + friction + columns @ sizes.

"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import NamedTuple

import numpy as np
from rbd_ros.identification.diagnosis.motion import Motion
from rbd_ros.identification.least_squares import body_size, LENGTH_POWERS
from rbd_ros.identification.parameters import LoadParameters
from rbd_ros.model.inertial import body_names, inertial_parameters, moving_bodies
from rbd_ros.model.model import Model

# Prior deviation of a size, as a multiple of the one that would explain all efforts alone.
WEAK = 10.0
MAX_PAYLOAD = 0.5   # Largest mass of a payload, as a fraction of that of the robot.
MAX_REACH = 4.0     # Largest distance of its centre, in typical distances of joints.
# Limits of a factor of gravity that is a tilt, and not another planet.
MAX_GRAVITY_CHANGE = 0.1


class Change(NamedTuple):
    """A change of the torques of a description."""

    place: str              # joint or link; '': all
    joints: tuple[str, ...]
    columns: np.ndarray     # (rows, nv, sizes)
    fixed: float | None = None              # size, if it is not fitted
    deviation: np.ndarray | None = None     # (sizes,), prior; None: weak


class Hypothesis(NamedTuple):
    """A kind of mistake."""

    changes: Callable[[Motion], Iterable[Change]]
    says: str       # with {joints}, {place}, {value}, {deviation}, and {more}
    advice: str     # with the same
    undo: str
    tell: str       # The motion that tells it from others.
    unit: Callable[[bool], str] = lambda angular: ''
    # The value of sizes (..., sizes).
    value: Callable[[np.ndarray, Model], np.ndarray] = lambda sizes, model: sizes[..., 0]
    valid: Callable[[np.ndarray, Model], bool] = lambda sizes, model: True


def _of_joints(column: Callable[[Motion, int], np.ndarray], fixed: float | None = None
               ) -> Callable[[Motion], Iterator[Change]]:
    """Return changes of one joint each, given the columns (rows, sizes) or (rows,) of a joint."""
    def changes(motion: Motion) -> Iterator[Change]:
        for j, name in enumerate(motion.model.velocity_names):
            own = column(motion, j).reshape(len(motion.tau), -1)
            columns = np.zeros((*motion.tau.shape, own.shape[1]))
            columns[:, j] = own
            yield Change(name, (name,), columns, fixed)
    return changes


def _of_all(columns: Callable[[Motion], np.ndarray], fixed: float | None = None
            ) -> Callable[[Motion], Iterator[Change]]:
    """Return one change of all joints, given its columns (rows, nv, sizes)."""
    def changes(motion: Motion) -> Iterator[Change]:
        yield Change('', motion.model.velocity_names, columns(motion), fixed)
    return changes


def _currents(motion: Motion) -> np.ndarray:
    return motion.described[:, :, None] * np.eye(motion.model.nv)


def _gravity(motion: Motion) -> np.ndarray:
    return motion.gravity @ motion.model.gravity


def _zero_offsets(motion: Motion) -> Iterator[Change]:
    """Return the changes if encoders read too much, as secants about the sizes known so far."""
    model = motion.model
    if model.nq != model.nv or model.loops is not None:
        return
    for j, name in enumerate(model.velocity_names):
        step = motion.about.get(('zero_offset', name), 1e-5)
        q = motion.states.q.copy()
        q[:, j] -= step
        change = motion.torques(motion.states._replace(q=q)) - motion.described
        yield Change(name, (name,), change[:, :, None] / step)


def leaves(model: Model) -> dict[str, int]:
    """Return the links at the ends of the robot that may carry a payload, and their bodies."""
    bodies = moving_bodies(model)
    up = {model.link_index(model.joints[body - 1].parent) for body in bodies}
    found = {}
    for number, parts in enumerate(bodies.values()):
        own = [k for k, _ in parts]
        if not up.intersection(own):
            # A frame for tools is a link without mass.
            tool = next((k for k in reversed(own) if model.links[k].mass == 0.0), own[0])
            found[model.link_names[tool]] = number
    return found


def _payloads(motion: Motion) -> Iterator[Change]:
    model = motion.model
    mass = MAX_PAYLOAD * np.sum(inertial_parameters(model)[::10])
    deviation = mass * (2.0 * body_size(model)) ** LENGTH_POWERS
    for link in leaves(model):
        columns, to_link = LoadParameters(model, link).columns_and_map
        yield Change(link, model.velocity_names, motion.regressor[:, :, columns] @ to_link, None,
                     deviation)


def _link_masses(motion: Motion) -> Iterator[Change]:
    pi = inertial_parameters(motion.model).reshape(-1, 10)
    for k, (name, one) in enumerate(zip(body_names(motion.model), pi)):
        if one[0] > 0.0:
            columns = motion.regressor[:, :, 10 * k:10 * k + 10] @ (one / one[0])
            yield Change(name, motion.model.velocity_names, columns[:, :, None])


def _tilt(sizes: np.ndarray, model: Model) -> np.ndarray:
    """Return the angle between gravity and that of the description, degrees."""
    g, changed = model.gravity, model.gravity + sizes
    across = np.linalg.norm(np.cross(changed, g), axis=-1)
    return np.degrees(np.arctan2(across, changed @ g))


def _is_tilt(sizes: np.ndarray, model: Model) -> bool:
    size = np.linalg.norm(model.gravity)
    return bool(abs(np.linalg.norm(model.gravity + sizes) - size) <= MAX_GRAVITY_CHANGE * size)


def _can_be_payload(sizes: np.ndarray, model: Model) -> bool:
    mass = sizes[0]
    return bool(0.0 < mass < MAX_PAYLOAD * np.sum(inertial_parameters(model)[::10])
                and np.linalg.norm(sizes[1:4]) < MAX_REACH * body_size(model) * mass)


def _centre(sizes: np.ndarray, model: Model) -> str:
    return ' '.join(f'{x:.3g}' for x in sizes[1:4] / sizes[0])


def torque_unit(angular: bool) -> str:
    """Return N m or N."""
    return 'N m' if angular else 'N'


HYPOTHESES = {
    'sign': Hypothesis(
        _of_joints(lambda one, j: one.described[:, j], -2.0), '', '', '', ''),
    'without_gravity': Hypothesis(
        _of_all(lambda one: _gravity(one)[:, :, None], -1.0), '', '', '', ''),
    'gain': Hypothesis(_of_joints(lambda one, j: one.described[:, j]), '', '', '', '',
                       value=lambda sizes, model: 1.0 + sizes[..., 0]),
    'common_gain': Hypothesis(_of_all(lambda one: one.described[:, :, None]), '', '', '', '',
                              value=lambda sizes, model: 1.0 + sizes[..., 0]),
    'current': Hypothesis(_of_all(_currents), '', '', '', '',
                          value=lambda sizes, model: 1.0 + sizes[..., 0]),
    'gravity_direction': Hypothesis(
        _of_all(lambda one: one.gravity), '', '', '', '', unit=lambda angular: 'deg',
        value=_tilt, valid=_is_tilt),
    'payload': Hypothesis(_payloads, '', '', '', '', unit=lambda angular: 'kg',
                          valid=_can_be_payload),
    'link_mass': Hypothesis(_link_masses, '', '', '', '', unit=lambda angular: 'kg'),
    'zero_offset': Hypothesis(_zero_offsets, '', '', '', ''),
    'torque_offset': Hypothesis(_of_joints(lambda one, j: np.ones(len(one.tau))), '', '', '', ''),
    'rotor': Hypothesis(_of_joints(lambda one, j: one.states.a[:, j]), '', '', '', ''),
    'spring': Hypothesis(_of_joints(lambda one, j: np.stack(
        (one.states.q[:, j], np.ones(len(one.tau))), axis=1)), '', '', '', ''),
    'delay': Hypothesis(_of_all(lambda one: one.late[:, :, None]), '', '', '', ''),
}
