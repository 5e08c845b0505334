# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Derivatives of inverse, forward and hybrid dynamics with respect to any scalar p, in O(n).

`rbd_ros.kernels.directional_derivatives` explains the recursions; Kim's tables as printed are in
`rbd_ros.textbook.directional_tables`. Errors are those of `rbd_ros.dynamics`.

"""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike
import rbd_ros.dynamics     # noqa: F401, declares methods that are called here
from rbd_ros.kernels import directional_derivatives as kernels
from rbd_ros.model.arguments import Wrenches
from rbd_ros.workspace import scratch
from rbd_ros.workspace.body_changes import body_changes, check_direction
from rbd_ros.workspace.quantity import add_method, quantity
from rbd_ros.workspace.robot_arrays import RobotArrays
from rbd_ros.workspace.variation import check_variation, Variation
from rbd_ros.workspace.workspace import Workspace


def _directions(w: RobotArrays, variation: Variation) -> tuple[ArrayLike, ...]:
    """Return the derivatives of q, v, a and tau, zeros where none is given."""
    dq, dv, da, dtau = variation.dq, variation.dv, variation.da, variation.dtau
    zeros = w._zeros
    return (zeros if dq is None else dq, zeros if dv is None else dv,
            zeros if da is None else da, zeros if dtau is None else dtau)


def _check_directions(w: RobotArrays, variation: Variation, *labels: str) -> None:
    for label in labels:
        check_direction(w.model, label, getattr(variation, label))


def _inverse_derivative(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                        variation: Variation, external_wrenches: Wrenches | None) -> np.ndarray:
    """Return the derivative of tau, with wrenches that are already applied."""
    directions = _directions(w, variation)[:3]
    if not kernels.inverse_dynamics_change(
            w.robot, w._screws, q, v, a, *directions,
            *body_changes(w.model, variation, external_wrenches), w._tau):
        _check_directions(w, variation, 'dq', 'dv', 'da')
        w._explain(q=q, v=v, a=a)
    return w._tau


add_method('_inverse_derivative', _inverse_derivative)


@quantity(kept=True, check={'variation': check_variation})
def inverse_dynamics_derivative(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                variation: Variation, *,
                                external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return d tau / dp, where the torques tau produce the accelerations a.

    Reference: Kim table 5 and (64). The ``dtau`` of the variation is not used.

    Returns
    -------
    ndarray, shape (nv,), N m or N per unit of p

    """
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return _inverse_derivative(w, q, v, a, variation, external_wrenches)
    return _inverse_derivative(w, q, v, a, variation, None)


@quantity(kept=True, check={'variation': check_variation})
def forward_dynamics_derivative(w: Workspace, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                variation: Variation, *,
                                external_wrenches: Wrenches | None = None) -> np.ndarray:
    """
    Return d a / dp, where a are the accelerations that the torques tau produce.

    Reference: Kim table 6 and (64). Where joints mimic others: Kim (33), differentiated. The
    ``da`` of the variation is not used.

    Returns
    -------
    ndarray, shape (nv,), rad/s^2 or m/s^2 per unit of p

    """
    return w.hybrid_dynamics_derivative(q, v, w._zeros, tau, w._kept(scratch.none_prescribed),
                                        variation, external_wrenches=external_wrenches)[0]


def _hybrid_derivative(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                       tau: ArrayLike, prescribed: ArrayLike, variation: Variation,
                       external_wrenches: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
    found, da, dtau = w._kept(scratch.directions_found)
    if not kernels.hybrid_dynamics_change(
            w.robot, w._screws, q, v, a, tau, w._mask(prescribed), *_directions(w, variation),
            *body_changes(w.model, variation, external_wrenches), found):
        _check_directions(w, variation, 'dq', 'dv', 'da', 'dtau')
        w._explain_accelerations(q, v, a, tau, prescribed)
    return da, dtau


@quantity(kept=True, check={'variation': check_variation})
def hybrid_dynamics_derivative(
        w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
        prescribed: ArrayLike, variation: Variation, *,
        external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return d a / dp and d tau / dp, given one of the two for every joint.

    Reference: Kim table 7 and (64). Where joints mimic others: Kim (33), differentiated. The
    ``da`` of the variation is used where ``prescribed``, ``dtau`` elsewhere.

    Returns
    -------
    da, dtau : ndarray, shape (nv,), rad/s^2 or m/s^2, and N m or N, per unit of p

    """
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return _hybrid_derivative(w, q, v, a, tau, prescribed, variation, external_wrenches)
    return _hybrid_derivative(w, q, v, a, tau, prescribed, variation, None)
