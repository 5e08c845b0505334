# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Coordinates of a robot: how they map to those of its tree, in which each joint has its own."""

from collections.abc import Sequence
from dataclasses import dataclass, fields
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
    columns: np.ndarray  # The only nonzero of each row of G: its column and its value.
    nq: int
    nv: int
    is_identity: bool

    def __getstate__(self) -> dict[str, object]:
        return {one.name: getattr(self, one.name) for one in fields(self)}

    @cached_property
    def G(self) -> np.ndarray:
        """Return G, shape (tree velocities, nv)."""
        G = np.zeros((len(self.columns), self.nv))
        G[np.arange(len(G)), self._column] = self.columns[:, 1]
        G.flags.writeable = False
        return G

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return q of the tree, shape (..., tree positions), for q of shape (..., nq)."""
        return self.multiplier * np.take(q, self.source, -1) + self.offset

    def velocity(self, v: np.ndarray) -> np.ndarray:
        """Return G v, shape (..., tree velocities), for v of shape (..., nv)."""
        return self.columns[:, 1] * np.take(v, self._column, -1)

    @cached_property
    def _column(self) -> np.ndarray:
        return self.columns[:, 0].astype(int)

    def part(self, positions: Sequence[int], velocities: Sequence[int]) -> 'Coordinates':
        """Return the map to these positions and velocities of the tree alone."""
        return Coordinates(self.source[positions], self.multiplier[positions],
                           self.offset[positions], self.columns[velocities], self.nq, self.nv,
                           False)


class ClosedCoordinates(Coordinates):
    """The coordinates of a robot with closed loops, whose G depends on q."""

    @classmethod
    def of(cls, open_tree: Coordinates) -> 'ClosedCoordinates':
        return cls(**{one.name: getattr(open_tree, one.name) for one in fields(open_tree)}
                   | {'is_identity': False})

    @cached_property
    def G(self) -> np.ndarray:
        raise StateError('G of a robot with closed loops depends on q: use its workspace')

    def velocity(self, v: np.ndarray) -> np.ndarray:
        raise StateError('velocities of all joints of closed loops depend on q: use the '
                         'workspace of the robot')


def couple(joints: Sequence[Joint], mimics: dict[str, tuple[str, float, float]],
           moving: Sequence[tuple[Joint, slice, slice]]) -> Coordinates:
    """Return the coordinates; ``moving``: joints that are no mimics, with slices of q and v."""
    first = {joint.name: (q.start, v.start) for joint, q, v in moving}
    source: list[int] = []
    multiplier: list[float] = []
    offset: list[float] = []
    columns: list[tuple[int, float]] = []
    for joint in joints:
        if joint.nv:
            leader, m, shift = mimics.get(joint.name, (joint.name, 1.0, 0.0))
            q, v = first[leader]
            source += range(q, q + joint.nq)
            multiplier += [m] * joint.nq
            offset += [shift] * joint.nq
            columns += [(k, m) for k in range(v, v + joint.nv)]
    nq, nv = (moving[-1][1].stop, moving[-1][2].stop) if moving else (0, 0)
    return Coordinates(np.array(source, int), np.array(multiplier), np.array(offset),
                       np.array(columns, float).reshape(-1, 2), nq, nv, not mimics)


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
