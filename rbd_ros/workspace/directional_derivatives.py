# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of `Workspace`: derivatives by one scalar."""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.kernels import directional_derivatives as kernels
from rbd_ros.model.arguments import Wrenches
from rbd_ros.workspace import scratch
from rbd_ros.workspace.body_changes import body_changes, check_direction
from rbd_ros.workspace.robot_arrays import RobotArrays

if TYPE_CHECKING:
    from rbd_ros.workspace.variation import Variation


def inverse_dynamics_derivative(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                                variation: Variation, *,
                                external_wrenches: Wrenches | None = None) -> np.ndarray:
    """Return the derivative of tau."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return inverse_derivative(w, q, v, a, variation, external_wrenches)
    return inverse_derivative(w, q, v, a, variation, None)


def inverse_derivative(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                       variation: Variation, external_wrenches: Wrenches | None) -> np.ndarray:
    """Return the derivative of tau, whose wrenches are applied already."""
    directions = _directions(w, variation)[:3]
    if not kernels.inverse_dynamics_change(
            w.robot, w._screws, q, v, a, *directions,
            *body_changes(w.model, variation, external_wrenches), w._tau):
        _explain_directions(w, variation, 'dq', 'dv', 'da')
        w._explain(q=q, v=v, a=a)
    return w._tau


def hybrid_dynamics_derivative(
        w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
        prescribed: ArrayLike, variation: Variation, *,
        external_wrenches: Wrenches | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return the derivatives of a and tau."""
    if external_wrenches is not None:
        with w._wrenches(external_wrenches):
            return _hybrid_derivative(w, q, v, a, tau, prescribed, variation,
                                      external_wrenches)
    return _hybrid_derivative(w, q, v, a, tau, prescribed, variation, None)


def _hybrid_derivative(w: RobotArrays, q: ArrayLike, v: ArrayLike, a: ArrayLike,
                       tau: ArrayLike, prescribed: ArrayLike, variation: Variation,
                       external_wrenches: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
    found, da, dtau = w._kept(scratch.directions_found)
    if not kernels.hybrid_dynamics_change(
            w.robot, w._screws, q, v, a, tau, w._mask(prescribed), *_directions(w, variation),
            *body_changes(w.model, variation, external_wrenches), found):
        _explain_directions(w, variation, 'dq', 'dv', 'da', 'dtau')
        w._explain_accelerations(q, v, a, tau, prescribed)
    return da, dtau


def _directions(w: RobotArrays, variation: Variation) -> tuple[ArrayLike, ...]:
    """Return the derivatives of q, v, a and tau, zeros where none is given."""
    dq, dv, da, dtau = variation.dq, variation.dv, variation.da, variation.dtau
    zeros = w._zeros
    return (zeros if dq is None else dq, zeros if dv is None else dv,
            zeros if da is None else da, zeros if dtau is None else dtau)


def _explain_directions(w: RobotArrays, variation: Variation, *labels: str) -> None:
    """Raise the error for directions that are wrong."""
    for label in labels:
        check_direction(w.model, label, getattr(variation, label))
