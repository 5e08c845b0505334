# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Steps of the equations of motion on the configuration manifold, of orders 1, 1 and 4.

All have the same arguments: the robot, a function ``acceleration(t, q, v)``, rad/s^2 or m/s^2, the
time t, s, the state q (nq,), rad and m, and v (nv,) or longer, rad/s or m/s, and the step dt, s.
All return q and v at the end of the step, and raise StateError if one of them is not finite or a
vector is too short. Entries of v and of the acceleration beyond ``model.nv`` (for example work and
power) are integrated, too.

"""

from collections.abc import Callable
from typing import TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, number
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import integrate, on_closure
from rbd_ros.model.positions.steps import step_between
from rbd_ros.model.se3 import ad
from rbd_ros.workspace.passive_joints import velocity_map

# A function of time, q and v, whose result has as many entries as v.
Rates: TypeAlias = Callable[[float, np.ndarray, np.ndarray], np.ndarray]


def explicit_euler(model: Model, acceleration: Rates, t: float, q: np.ndarray, v: np.ndarray,
                   dt: float) -> tuple[np.ndarray, np.ndarray]:
    """Return q and v after a step with the initial v and acceleration [Lynch and Park 9.5]."""
    q, v, dt = _checked(model, q, v, dt)
    return integrate(model, q, v[:model.nv], dt), v + dt * acceleration(t, q, v)


def semi_implicit_euler(model: Model, acceleration: Rates, t: float, q: np.ndarray, v: np.ndarray,
                        dt: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Return q and v after a step with the acceleration at its beginning and the velocity at its end.

    Without torques the energy oscillates, while it grows with `explicit_euler`.

    """
    q, v, dt = _checked(model, q, v, dt)
    v = v + dt * acceleration(t, q, v)
    return integrate(model, q, v[:model.nv], dt), v


def runge_kutta_4(model: Model, acceleration: Rates, t: float, q: np.ndarray, v: np.ndarray,
                  dt: float) -> tuple[np.ndarray, np.ndarray]:
    """
    Return q and v after a step of the classical method of Runge and Kutta, by Munthe-Kaas.

    Exponential coordinates xi of q about its value before the step obey d xi / dt = dexp^-1_xi v.

    """
    q, v, dt = _checked(model, q, v, dt)
    n = model.nv
    xi_rate, v_rate = v[:n], acceleration(t, q, v)
    xi_sum, v_sum = xi_rate, v_rate
    for part, weight in ((0.5, 2.0), (0.5, 2.0), (1.0, 1.0)):
        xi, v_k = part * dt * xi_rate, v + part * dt * v_rate
        q_k = integrate(model, q, xi, 1.0)
        v_rate = acceleration(t + part * dt, q_k, v_k)
        xi_rate = (coordinate_rate(model, xi, v_k[:n]) if model.loops is None
                   else _closed_rate(model, q, q_k, v_k[:n]))
        xi_sum, v_sum = xi_sum + weight * xi_rate, v_sum + weight * v_rate
    return integrate(model, q, xi_sum, dt / 6.0), v + dt / 6.0 * v_sum


def _checked(model: Model, q: ArrayLike, v: ArrayLike,
             dt: float) -> tuple[np.ndarray, np.ndarray, float]:
    q, v, dt = on_closure(model, q), finite_array('v', v, (None,)), number('dt', dt)
    if len(v) < model.nv:
        raise StateError(f"v must have {model.nv} real numbers or more for robot '{model.name}', "
                         f'got {len(v)}')
    return q, v, dt


def coordinate_rate(model: Model, xi: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return dexp^-1_xi v, the rate of the coordinates xi of ``integrate(model, q, xi, 1.0)``."""
    rate = np.array(v)
    for joint, _, k in model.moving_joints:
        if not KINDS[joint.kind].is_screws:
            # v + [xi, v] / 2 + [xi, [xi, v]] / 12: the error, of order xi^4, suits order 4.
            along = np.zeros(6)
            along[:joint.nv] = xi[k]
            bracket = ad(along)[:joint.nv, :joint.nv]
            rate[k] += bracket @ v[k] / 2.0 + bracket @ bracket @ v[k] / 12.0
    return rate


def _closed_rate(model: Model, q_0: np.ndarray, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the rate of the independent coordinates of q about q_0."""
    # Those of a quaternion also depend on its dependent velocities.
    tree = model.unconstrained
    if tree.nq == tree.nv:
        return v
    assert model.loops is not None
    return coordinate_rate(tree, step_between(tree, q_0, q), velocity_map(model, q) @ v)[
        model.loops.own]
