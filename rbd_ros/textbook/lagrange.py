# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The equations of motion by Lagrange: Christoffel symbols, and Vlasblom's sums.

For readers and for tests: `rbd_ros.mass_matrix`, `coriolis_matrix` and `gravity_torques` compute
the same in one pass.

"""

import numpy as np
import numpy.typing as npt
from rbd_ros.analysis.jacobians import analytic_jacobian, check_state, link_com_jacobian
from rbd_ros.analysis.matrix_derivatives import mass_matrix_derivatives
from rbd_ros.errors import ModelError
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import inertia_matrix
from rbd_ros.textbook.sums_over_links import armature_matrix


def christoffel_symbols(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the Christoffel symbols of the first kind of the mass matrix.

    Parameters
    ----------
    model : Model
        The robot; all of its joints must have v = dq/dt.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.

    Returns
    -------
    ndarray, shape (model.nv, model.nv, model.nv)
        ``Gamma[i, j, k]`` = 1/2 (d_k M_ij + d_j M_ik - d_i M_jk).

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.
    ModelError
        If a joint has a quaternion: the directions of its v do not commute, and these symbols
        are not those of its equations of motion.

    References
    ----------
    Vlasblom (1.15); Lynch and Park (9.13), (9.86).

    """
    q, = check_state(model, q)
    for joint, _, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws:
            raise ModelError(
                f"joint '{joint.name}' of the kind '{joint.kind}' has no Christoffel symbols, as "
                'its v is not dq/dt; coriolis_matrix is for all kinds, and euler_zyx or '
                'free_euler_zyx allow the same motions')
    dM = mass_matrix_derivatives(model, q)      # d_k M_ij at [i, j, k]
    return 0.5 * (dM + dM.transpose(0, 2, 1) - dM.transpose(2, 0, 1))


def christoffel_coriolis_matrix(model: Model, q: npt.ArrayLike, v: npt.ArrayLike) -> np.ndarray:
    """
    Return the Coriolis matrix by its definition, the sum of Christoffel symbols times velocities.

    Parameters
    ----------
    model : Model
        The robot; all of its joints must have v = dq/dt.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.
    v : array_like, shape (model.nv,)
        Velocity, rad/s and m/s.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        The same as ``coriolis_matrix(model, q, v)``.

    Raises
    ------
    StateError
        If ``q`` or ``v`` has the wrong shape or a non-finite entry.
    ModelError
        If a joint has a quaternion.

    References
    ----------
    Vlasblom (1.16); Lynch and Park (9.87).

    """
    q, v = check_state(model, q, v=v)
    return christoffel_symbols(model, q) @ v


def com_frame_mass_matrix(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the mass matrix as the sum over links in the frames of their centres of mass.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.

    Returns
    -------
    ndarray, shape (model.nv, model.nv)
        The same as ``mass_matrix(model, q)``.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Vlasblom (1.12), (2.17), summed over all bodies, with (2.19) in the axes of the link rather
    than its principal ones.

    """
    q, = check_state(model, q)
    M = armature_matrix(model)
    for link in model.links:
        J = link_com_jacobian(model, q, link.name)
        M = M + J.T @ inertia_matrix(link.mass, np.zeros(3), link.inertia) @ J
    return M


def com_frame_gravity_torques(model: Model, q: npt.ArrayLike) -> np.ndarray:
    """
    Return the gravity torques as the sum over links of weights seen by analytic Jacobians.

    Parameters
    ----------
    model : Model
        The robot.
    q : array_like, shape (model.nq,)
        Configuration, rad and m.

    Returns
    -------
    ndarray, shape (model.nv,)
        The same as ``gravity_torques(model, q)``.

    Raises
    ------
    StateError
        If ``q`` has the wrong shape or a non-finite entry.

    References
    ----------
    Vlasblom (1.17), (2.23), (2.24), summed over all bodies and with the sign that holds the robot
    still.

    """
    q, = check_state(model, q)
    return -sum(analytic_jacobian(model, q, link.name).T @ (link.mass * model.gravity)
                for link in model.links)
