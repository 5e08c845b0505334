# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Buffers of a workspace: `WorkspaceBase._kept` calls each of these functions once.

Those that are passed to `WorkspaceBase._result` are handed out. All are zero at first, and kernels
rely on it: entries for joints that do not carry each other are never written.

"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rbd_ros.kernels.mass_matrix_factor import lanes_of_columns, TOGETHER
from rbd_ros.kernels.tree.layout import BLOCK, LANES, NUMBER, PARENT, PRESCRIBED, Q, VELOCITY
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.memory.results import (
    derivative_layout, Derivatives, DynamicsTerms, Layout, term_layout)

Arrays = tuple[np.ndarray, ...]
Shape = Callable[[int], tuple[int, ...]]    # by the number of velocities


def zeros(shape: Shape, dtype: type = float) -> Callable[[WorkspaceBase], np.ndarray]:
    """Return the function that makes a buffer."""
    return lambda w: np.zeros(shape(w._nv), dtype)


def several(*shapes: Shape) -> Callable[[WorkspaceBase], Any]:
    """Return the function that makes several buffers."""
    return lambda w: tuple([np.zeros(shape(w._nv)) for shape in shapes])


def with_views(shape: Shape, places: Callable[[int], Sequence[Any]]) -> Callable[..., Any]:
    """Return the function that makes a buffer and views of it, given their indices."""
    def make(w: WorkspaceBase) -> Arrays:
        rows = np.zeros(shape(w._nv))
        return rows, *(rows[place] for place in places(w._nv))
    return make


def named(kind: type, layout: Callable[[int], Layout]) -> Callable[[WorkspaceBase], Any]:
    """Return the function that makes a buffer, and named views of it."""
    def make(w: WorkspaceBase) -> tuple[np.ndarray, Any]:
        rows = np.zeros(layout(w._nv).shape)
        return rows, tuple.__new__(kind, layout(w._nv).cut(rows))
    return make


none_prescribed = zeros(lambda n: (n,), bool)   # the mask for which no acceleration is given
matrix_rates = zeros(lambda n: (2 * n + 1, n))  # C, and the rates of C and g
com_rows = several(lambda n: (3, n), lambda n: (3,))    # Jacobian of the centre of mass, and that
link_acceleration = zeros(lambda n: (1, 6))     # Jdot v of a link
square = zeros(lambda n: (n, n))    # M
# Derivatives of a Jacobian, and of its rate, the coordinate first.
jacobian_change = zeros(lambda n: (n, 6, n))
jacobian_changes = several(lambda n: (n, 6, n), lambda n: (n, 6, n))
# Derivatives of M and of C, the coordinate first.
cube = zeros(lambda n: (n, n, n))
cubes = several(lambda n: (n, n, n), lambda n: (n, n, n))
# For the kernel of task space; Lambda, eta and the condition, J_bar and the null projector.
task_work = several(lambda n: (n, n), lambda n: (46 + 2 * n, 6))
task_results = several(lambda n: (8, 6), lambda n: (n, 6), lambda n: (n, n))
path = zeros(lambda n: (n,), int)   # indices of the joints on the way to the root
# Two scratch rows, da and dtau; and the last two.
directions_found = with_views(lambda n: (4, n), lambda n: (2, 3))
# The Jacobian of a link, two rates and Jdot v; and the first three.
jacobian_rates = with_views(lambda n: (19, max(n, 6)), lambda n: [
    np.s_[k:k + 6, :n] for k in (0, 6, 12)])
# The centroidal momentum matrix and its rate, and both.
momentum_rows = with_views(lambda n: (12, n), lambda n: (np.s_[:6], np.s_[6:]))
terms, torque_derivatives = named(DynamicsTerms, term_layout), named(
    Derivatives, derivative_layout)


def factor(w: WorkspaceBase) -> Arrays:
    """Return an `elimination_table`, and a buffer for L twice, M = L^T D L."""
    return w._kept(elimination_table)[0], *lanes_of_columns(w._nv, w._nv)


def equations_of_motion(w: WorkspaceBase) -> Arrays:
    """Return an `elimination_table`, and buffers for M, b, and L twice, M = L^T D L."""
    table, *L = w._kept(factor)
    return table, np.zeros((w._nv, w._nv)), np.zeros(w._nv), *L


def unknown_derivatives(w: WorkspaceBase) -> tuple[np.ndarray, np.ndarray, Derivatives]:
    """Return a buffer for the derivatives of unknown a and tau: a matrix, in lanes, its parts."""
    X, lanes = lanes_of_columns(w._nv, 3 * w._nv, TOGETHER)
    return X, lanes, tuple.__new__(Derivatives, derivative_layout(w._nv).cut(X))


def torque_derivatives_and_path(w: WorkspaceBase) -> Arrays:
    """Return buffers for the derivatives of tau, and for a path."""
    return np.zeros(derivative_layout(w._nv).shape), path(w)


def derivatives_and_factor(w: WorkspaceBase) -> Arrays:
    """Return buffers for the derivatives of tau, and for a factor of M."""
    rows, indices = torque_derivatives_and_path(w)
    return rows, *lanes_of_columns(w._nv, w._nv), indices


def elimination_table(w: WorkspaceBase) -> tuple[np.ndarray, np.ndarray]:
    """
    Return a table of bodies, one per velocity, in which carriers share entries of a factor of M.

    Also return the indices of its prescribed marks. M = G^T M_tree G has entries for velocities
    that move joints of which one carries the other. Eliminating the last velocity couples those
    with which it is coupled; the last of these carries it. And so on for the rest.

    """
    n, up = w._nv + 1, w.model.tree.robot[1:, PARENT].astype(int) - 1
    carried = np.eye(len(up), dtype=np.float32)     # products of booleans are slow
    for k, j in enumerate(up):
        if j >= 0:
            carried[k] += carried[j]
    moved = (w._moved_joints() != 0.0).astype(np.float32)
    coupled = moved.T @ (carried + carried.T) @ moved > 0.0
    carriers = np.full(n, -1)
    for k in range(w._nv - 1, -1, -1):
        before = np.flatnonzero(coupled[k, :k])
        if len(before):
            carriers[k + 1] = before[-1]
            coupled[before[-1], before] = True
    places = np.arange(n) // LANES * BLOCK + np.arange(n) % LANES
    table = np.zeros(-(-n // LANES) * BLOCK)
    whole = table.view(np.int64)
    whole[places + LANES * NUMBER] = np.arange(n)
    whole[places[1:] + LANES * PARENT] = places[carriers[1:] + 1]
    whole[LANES * PARENT], whole[LANES * VELOCITY], table[LANES * Q] = n, n - 1, w.model.nq
    return table, places[1:] + LANES * PRESCRIBED


def link_table(w: WorkspaceBase) -> np.ndarray:
    """Return for each link its body and its pose there, rotation and position."""
    tree = w.model.tree
    rotations = tree.link_pose[:, :3, :3].transpose(0, 2, 1).reshape(-1, 9)
    return np.column_stack((tree.link_body, rotations, tree.link_pose[:, :3, 3]))


def link_matrices(w: WorkspaceBase) -> np.ndarray:
    """Return a buffer for the poses of all links."""
    return np.empty((len(w._kept(link_table)), 4, 4))


def body_table(w: WorkspaceBase) -> np.ndarray:
    """Return the body of each link that a joint moves, and its rotation relative to the body."""
    tree, links = w.model.tree, [k for k, joint in enumerate(w.model.joints, 1) if joint.nv]
    rotations = tree.link_pose[links, :3, :3].transpose(0, 2, 1).reshape(-1, 9)
    return np.column_stack((tree.link_body[links], rotations))


def by_parameters(*shapes: Shape) -> Callable[[WorkspaceBase], Any]:
    """Return the function that makes buffers whose last axis is that of inertial parameters."""
    return lambda w: tuple([np.zeros((*shape(w._nv), 10 * len(w._kept(body_table))))
                            for shape in shapes])


regressor = by_parameters(lambda n: (n,))
energy_rows = by_parameters(lambda n: (2,))     # the regressors of both energies
matrices_by_parameters = by_parameters(     # derivatives of M, C and g
    lambda n: (n, n), lambda n: (n, n), lambda n: (n,))


def carriers(w: WorkspaceBase) -> np.ndarray:
    """Return for each velocity the last one before it with which it shares entries of M, or -1."""
    return w.model.tree.robot[1:, PARENT].astype(np.int64) - 1


def all_before(w: WorkspaceBase) -> np.ndarray:
    """Return the `carriers` of coupled coordinates, in which M is full."""
    return np.arange(w._nv) - 1
