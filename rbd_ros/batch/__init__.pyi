# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.functions import Loaded
from rbd_ros.batch.threads import Progress
from rbd_ros.model.arguments import Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.results import Derivatives, DynamicsTerms
from rbd_ros.batch.configurations import difference as difference, integrate as integrate
from rbd_ros.batch.regressors import (normal_equations as normal_equations,
    NormalEquations as NormalEquations, regressor_factor as regressor_factor,
    torque_regressor_product as torque_regressor_product,
    torque_regressor_transposed_product as torque_regressor_transposed_product)
from rbd_ros.batch.threads import CHUNK as CHUNK

def all_terms(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, *,
        out: DynamicsTerms | None = None, threads: int | None = None,
        progress: Progress | None = None) -> DynamicsTerms:
    """Return M, C, g, C v, the centre of mass and its Jacobian, in one pass of composite bodies,
    for each of many states."""

def bias_torques(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the torques at zero acceleration, C v + g - sum J^T f, for each of many states."""

def body_jacobian(model: Model | Loaded, Q: ArrayLike, link: str, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the Jacobian of a link about its origin, in its own axes, for each of many states."""

def center_of_mass(model: Model | Loaded, Q: ArrayLike, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the centre of mass of the whole robot, root link included, for each of many
    states."""

def centroidal_momentum_matrix(model: Model | Loaded, Q: ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the matrix A that maps v to the robot's momentum about its centre of mass, for each
    of many states."""

def centroidal_momentum_matrix_dot(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the time derivative of `centroidal_momentum_matrix`, for each of many states."""

def com_jacobian(model: Model | Loaded, Q: ArrayLike, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the Jacobian of the centre of mass, for each of many states."""

def com_jacobian_dot(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the time derivative of `com_jacobian`, for each of many states."""

def coriolis_matrix(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the Coriolis matrix C(q, v), with dM/dt - 2 C skew, for each of many states."""

def forward_dynamics(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, Tau: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the accelerations that the torques tau produce, for each of many states."""

def forward_dynamics_derivatives(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, Tau: ArrayLike,
        *, external_wrenches: Wrenches | None = None, out: Derivatives | None = None,
        threads: int | None = None, progress: Progress | None = None) -> Derivatives:
    """Return the derivatives of the accelerations with respect to q, v and tau, for each of many
    states."""

def forward_kinematics(model: Model | Loaded, Q: ArrayLike, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the poses of all links in the root's frame, for each of many states."""

def gravity_torques(model: Model | Loaded, Q: ArrayLike, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return g(q), the torques that hold the robot still, for each of many states."""

def hybrid_dynamics(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, A: ArrayLike,
        Tau: ArrayLike, prescribed: ArrayLike, *, external_wrenches: Wrenches | None = None,
        out: tuple[np.ndarray, np.ndarray] | None = None, threads: int | None = None,
        progress: Progress | None = None) -> tuple[np.ndarray, np.ndarray]:
    """Return all accelerations and torques, given one of the two for every joint, for each of many
    states."""

def inverse_dynamics(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *,
        external_wrenches: Wrenches | None = None, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the torques that produce the accelerations a, for each of many states."""

def inverse_dynamics_derivatives(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, A: ArrayLike,
        *, external_wrenches: Wrenches | None = None, out: Derivatives | None = None,
        threads: int | None = None, progress: Progress | None = None) -> Derivatives:
    """Return the derivatives of the torques with respect to q, v and a, for each of many
    states."""

def jacobian_dot(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, link: str, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the time derivative of the body Jacobian of a link, for each of many states."""

def mass_matrix(model: Model | Loaded, Q: ArrayLike, *, out: np.ndarray | None = None,
        threads: int | None = None, progress: Progress | None = None) -> np.ndarray:
    """Return the joint-space mass matrix M(q), symmetric positive definite, for each of many
    states."""

def torque_regressor(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, A: ArrayLike, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return Y(q, v, a) with Y pi = tau - (armature) a, for each of many states."""

def world_jacobian(model: Model | Loaded, Q: ArrayLike, link: str, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the Jacobian of a link about its origin, in the axes of the root, for each of many
    states."""

def world_jacobian_dot(model: Model | Loaded, Q: ArrayLike, V: ArrayLike, link: str, *,
        out: np.ndarray | None = None, threads: int | None = None,
        progress: Progress | None = None) -> np.ndarray:
    """Return the rate of `world_jacobian`, Ad_R (Jdot + blockdiag([omega], [omega]) J), for each
    of many states."""
