# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Coordinates of a robot: how they map to those of its tree, in which each joint has its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.joints import DRIVE, Joint

# Relative tolerance for equal Stribeck velocities of coupled joints: rounding.
_SPEED_TOLERANCE = 1e-9


@dataclass(frozen=True, eq=False)
class Coordinates:
    """The map v_tree = G v from the coordinates of a robot to those of its tree."""

    source: np.ndarray  # Entry k of the tree's q is multiplier[k] * q[source[k]] + offset[k].
    multiplier: np.ndarray
    offset: np.ndarray
    column: np.ndarray  # The only nonzero of each row of G: its column and its value.
    ratio: np.ndarray
    nq: int
    nv: int
    is_identity: bool
    is_constant: bool = True    # Otherwise G depends on q, and this is the map without the loops.

    @cached_property
    def G(self) -> np.ndarray:
        """Return G, shape (tree velocities, nv)."""
        self._require_constant()
        G = np.zeros((len(self.column), self.nv))
        G[np.arange(len(G)), self.column] = self.ratio
        G.flags.writeable = False
        return G

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return q of the tree, shape (..., tree positions), for q of shape (..., nq)."""
        return self.multiplier * np.take(q, self.source, -1) + self.offset

    def velocity(self, v: np.ndarray) -> np.ndarray:
        """Return G v, shape (..., tree velocities), for v of shape (..., nv)."""
        self._require_constant()
        return self.ratio * np.take(v, self.column, -1)

    def part(self, positions: Sequence[int], velocities: Sequence[int]) -> 'Coordinates':
        """Return the map to these positions and velocities of the tree alone."""
        return Coordinates(self.source[positions], self.multiplier[positions],
                           self.offset[positions], self.column[velocities],
                           self.ratio[velocities], self.nq, self.nv, False)

    def _require_constant(self) -> None:
        if not self.is_constant:
            raise StateError('G of a robot with closed loops depends on q: use its workspace')


def couple(joints: Sequence[Joint], mimics: dict[str, tuple[str, float, float]],
           moving: Sequence[tuple[Joint, slice, slice]]) -> Coordinates:
    """Return the coordinates; ``moving``: joints that are no mimics, with slices of q and v."""
    first = {joint.name: (q.start, v.start) for joint, q, v in moving}
    source: list[int] = []
    multiplier: list[float] = []
    offset: list[float] = []
    column: list[int] = []
    ratio: list[float] = []
    for joint in joints:
        if joint.nv:
            leader, m, shift = mimics.get(joint.name, (joint.name, 1.0, 0.0))
            q, v = first[leader]
            source += range(q, q + joint.nq)
            multiplier += [m] * joint.nq
            offset += [shift] * joint.nq
            column += range(v, v + joint.nv)
            ratio += [m] * joint.nv
    nq, nv = (moving[-1][1].stop, moving[-1][2].stop) if moving else (0, 0)
    return Coordinates(np.array(source, int), np.array(multiplier), np.array(offset),
                       np.array(column, int), np.array(ratio), nq, nv, not mimics)


def map_drives(joints: tuple[Joint, ...], coordinates: Coordinates) -> dict[str, np.ndarray]:
    """Return all `DRIVE` coefficients by the coordinates of a robot, v_joints = G v."""
    # A mimic with the multiplier m contributes tau = m tau_mimic(m v). Springs of coupled joints
    # add up to one: stiffness sum m^2 k, at rest at sum m k (reference - offset) / stiffness.
    own = {label: np.array([x for joint in joints for x in getattr(joint, label)], float)
           for label in DRIVE}
    if coordinates.is_identity:
        return own
    G = coordinates.G
    size, square = np.abs(G), np.square(G)
    result = {label: weight.T @ own[label] for label, weight in (
        ('damping', square), ('damping_asymmetry', G * size), ('friction', size),
        ('friction_asymmetry', G), ('stribeck_friction', size), ('effort_offset', G),
        ('stiffness', square), ('armature', square))}
    # Joints with more positions than velocities have a quaternion, and neither mimic nor lead.
    at_zero = np.concatenate([np.zeros(0), *(
        coordinates.offset[start:start + joint.nv] for joint, start in zip(
            joints, np.cumsum([0, *(joint.nq for joint in joints)])))])
    moment = G.T @ (own['stiffness'] * (own['spring_reference'] - at_zero))
    reference = np.divide(moment, result['stiffness'], out=np.zeros(G.shape[1]),
                          where=result['stiffness'] > 0.0)
    speed = np.zeros(G.shape[1])
    names = [joint.name for joint in joints for _ in range(joint.nv)]
    of_column: dict[int, str] = {}
    for row, column in zip(*np.nonzero(size * own['stribeck_friction'][:, None])):
        at_leader = own['stribeck_velocity'][row] / size[row, column]
        first = of_column.setdefault(column, names[row])
        if first == names[row]:
            speed[column] = at_leader
        elif abs(at_leader - speed[column]) > _SPEED_TOLERANCE * at_leader:
            raise ModelError(f"joints '{first}' and '{names[row]}' move together, but their "
                             'stribeck_velocity is reached at different speeds: set one in '
                             'proportion to the other, or the stribeck_friction of one to 0')
    return {**result, 'spring_reference': reference, 'stribeck_velocity': speed}
