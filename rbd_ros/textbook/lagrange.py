# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Lagrange's equations of motion: Christoffel symbols, and Vlasblom's sums over links.

For readers and tests: `rbd_ros.mass_matrix`, `coriolis_matrix` and `gravity_torques` compute the
same in one pass. Arguments are the robot, q (nq,), rad and m, and v (nv,), rad/s and m/s; all
functions raise StateError if q or v is invalid. Those with Christoffel symbols need v = dq/dt and
raise ModelError for joints with quaternions: the directions of their v do not commute, so these
are not the symbols of the equations of motion.

"""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.analysis.jacobians import analytic_jacobian, link_com_jacobian
from rbd_ros.analysis.matrix_derivatives import mass_matrix_derivatives
from rbd_ros.errors import ModelError
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import inertia_matrix
from rbd_ros.textbook.sums_over_links import check_state


def christoffel_symbols(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the Christoffel symbols of the first kind of M [V (1.15), L (9.13), (9.86)].

    ``Gamma[i, j, k]`` = 1/2 (d_k M_ij + d_j M_ik - d_i M_jk), shape (nv, nv, nv).

    """
    q, = check_state(model, q)
    for joint, _, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws:
            raise ModelError(
                f"joint '{joint.name}' of kind '{joint.kind}' has no Christoffel symbols, because "
                'its v is not dq/dt; use coriolis_matrix, which supports all kinds, or a joint of '
                'kind euler_zyx or free_euler_zyx, which allows the same motions')
    dM = mass_matrix_derivatives(model, q)      # d_k M_ij at [i, j, k]
    return 0.5 * (dM + dM.transpose(0, 2, 1) - dM.transpose(2, 0, 1))


def christoffel_coriolis_matrix(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """Return C, (nv, nv), as the Christoffel symbols times v [V (1.16), L (9.87)]."""
    q, v = check_state(model, q, v=v)
    return christoffel_symbols(model, q) @ v


def com_frame_mass_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return M, (nv, nv), as a sum over links in frames at their centres of mass [V (1.12), (2.17)].

    V (2.19) is taken in the axes of the link instead of its principal axes.

    """
    q, = check_state(model, q)
    M = np.diag(model.armature)
    for link in model.links:
        J = link_com_jacobian(model, q, link.name)
        M = M + J.T @ inertia_matrix(link.mass, np.zeros(3), link.inertia) @ J
    return M


def com_frame_gravity_torques(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """Return g, (nv,), as a sum of weights times analytic Jacobians [V (1.17), (2.23), (2.24)]."""
    q, = check_state(model, q)
    return -sum(analytic_jacobian(model, q, link.name).T @ (link.mass * model.gravity)
                for link in model.links)
