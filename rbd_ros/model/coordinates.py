# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The map from the coordinates of a robot to those of its tree, where each joint has its own."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rbd_ros.errors import ModelError
from rbd_ros.model.joints import DRIVE, Joint

# Share by which the Stribeck velocities of coupled joints may differ: rounding.
_SAME_SPEED = 1e-9


@dataclass(frozen=True, eq=False)
class Coordinates:
    """
    How the coordinates of a robot move its tree: v_tree = G v.

    Kernels know trees only. Torques map as G^T tau_tree, and M as G^T M_tree G.

    Attributes
    ----------
    source, multiplier, offset : ndarray, shape (tree positions,)
        Entry k of the tree's q is ``multiplier[k] * q[source[k]] + offset[k]``.
    columns : ndarray, shape (tree velocities, 2)
        The only entry of each row of G: its column and its value.
    nv : int
        Number of velocities of the robot.
    is_identity : bool
        Whether the robot's coordinates are those of its tree.

    """

    source: np.ndarray
    multiplier: np.ndarray
    offset: np.ndarray
    columns: np.ndarray
    nv: int
    is_identity: bool

    @cached_property
    def G(self) -> np.ndarray:
        """Return G, shape (tree velocities, nv)."""
        G = np.zeros((len(self.columns), self.nv))
        G[np.arange(len(G)), self.columns[:, 0].astype(int)] = self.columns[:, 1]
        G.flags.writeable = False
        return G

    def position(self, q: np.ndarray) -> np.ndarray:
        """Return q of the tree, shape (..., tree positions), for q of shape (..., nq)."""
        return self.multiplier * np.take(q, self.source, -1) + self.offset

    def velocity(self, v: np.ndarray) -> np.ndarray:
        """Return G v, shape (..., tree velocities), for v of shape (..., nv)."""
        return self.columns[:, 1] * np.take(v, self.columns[:, 0].astype(int), -1)


def couple(joints: Sequence[Joint], mimics: dict[str, tuple[str, float, float]],
           moving: Sequence[tuple[Joint, slice, slice]]) -> Coordinates:
    """
    Return the coordinates of a robot some of whose joints mimic others.

    Parameters
    ----------
    joints : sequence of Joint
        All of them.
    mimics : dict of str to tuple
        For each joint that mimics another: its leader, multiplier and offset.
    moving : sequence of tuple
        The others, with their entries of q and of v.

    """
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
    return Coordinates(np.array(source, int), np.array(multiplier), np.array(offset),
                       np.array(columns, float).reshape(-1, 2),
                       moving[-1][2].stop if moving else 0, not mimics)


def map_drives(joints: tuple[Joint, ...], G: np.ndarray | None) -> dict[str, np.ndarray]:
    """
    Return the coefficients of all drives, for the coordinates of a robot.

    A joint that turns m times as fast as the one that it mimics has m times the power per torque
    of its own: tau = m tau_mimic(m v).

    Parameters
    ----------
    joints : tuple of Joint
        All of them, those that mimic others included.
    G : ndarray, shape (tree velocities, nv), or None
        Maps the velocities of the robot to theirs; None: they are the same.

    Returns
    -------
    dict of str to ndarray, shape (nv,)
        Every one of `DRIVE`.

    Raises
    ------
    ModelError
        If joints that mimic each other have Stribeck velocities that do not give a single curve.

    """
    own = {label: np.array([x for joint in joints for x in getattr(joint, label)], float)
           for label in DRIVE}
    if G is None:
        return own
    size, square = np.abs(G), np.square(G)
    result = {label: weight.T @ own[label] for label, weight in (
        ('damping', square), ('damping_asymmetry', G * size), ('friction', size),
        ('friction_asymmetry', G), ('stribeck_friction', size), ('effort_offset', G),
        ('armature', square))}
    speed = np.zeros(G.shape[1])
    names = [joint.name for joint in joints for _ in range(joint.nv)]
    of_column: dict[int, str] = {}
    for row, column in zip(*np.nonzero(size * own['stribeck_friction'][:, None])):
        felt = own['stribeck_velocity'][row] / size[row, column]
        first = of_column.setdefault(column, names[row])
        if first == names[row]:
            speed[column] = felt
        elif abs(felt - speed[column]) > _SAME_SPEED * felt:
            raise ModelError(f"joints '{first}' and '{names[row]}' move together, but their "
                             'stribeck_velocity is reached at different speeds: set one in '
                             'proportion to the other, or the stribeck_friction of one to 0')
    return {**result, 'stribeck_velocity': speed}
