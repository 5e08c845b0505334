# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of a robot, its state and external wrenches with respect to a scalar p [K (64)]."""

from __future__ import annotations

from collections.abc import Collection, Mapping
from dataclasses import dataclass, field

from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import shown, Wrenches


@dataclass(frozen=True, eq=False)
class Variation:
    """
    Derivatives with respect to a scalar p of all that dynamics depends on; default: constant.

    Attributes
    ----------
    dq : array_like, shape (nv,), optional
        Derivative of the configuration, along the directions of v: rad and m per unit of p. For
        ball and free joints the turn and shift of the moving body in its own axes.
    dv, da, dtau : array_like, shape (nv,), optional
        Derivatives of velocity, acceleration and torque.
    dwrenches : mapping of str to array_like of shape (6,)
        Derivatives of the components of external wrenches, by link, in its own axes.
    world_fixed : collection of str
        Links whose external wrench keeps its moment and force in the axes of the root while the
        link turns (a weight that hangs on it), rather than in the link's own axes.
    dinertia : mapping of str to array_like of shape (10,) or (6, 6)
        Derivatives of inertias about the origins of the links, by link: of the parameters m, mcx,
        mcy, mcz, Ixx, Iyy, Izz, Ixy, Ixz, Iyz, or of the matrix, in the form of a rigid body's.
    dplacement : mapping of str to array_like of shape (6,)
        Derivatives of the placements P of joints on their parents, by joint: the twist
        vee(P^-1 dP/dp) in the joint's frame, angular first.

    """

    dq: ArrayLike | None = None
    dv: ArrayLike | None = None
    da: ArrayLike | None = None
    dtau: ArrayLike | None = None
    dwrenches: Wrenches = field(default_factory=dict)
    world_fixed: Collection[str] = ()
    dinertia: Mapping[str, ArrayLike] = field(default_factory=dict)
    dplacement: Mapping[str, ArrayLike] = field(default_factory=dict)


def check_variation(variation: object) -> None:
    """Raise unless an argument is a `Variation`."""
    if not isinstance(variation, Variation):
        raise StateError(f'variation must be a Variation, got {shown(variation)}')
