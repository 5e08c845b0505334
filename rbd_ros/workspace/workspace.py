# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The library with buffers that are kept, for control loops."""

from __future__ import annotations

from typing import Any
from weakref import ref

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.model.arguments import check_model, choice, number, Wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace import scratch
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.results import Frame, FRAMES, TaskSpaceDynamics
from rbd_ros.workspace.task_space import characteristic_length, task_terms
from rbd_ros.workspace.tree import TreeWorkspace


class Workspace(TreeWorkspace):
    """
    Buffers for one robot, and the recursions that use them.

    The methods are the functions of the same names in `rbd_ros` and `rbd_ros.analysis`, where
    shapes, units and errors are documented; only `inverse_dynamics_packed` has none. Some return,
    too, what they compute on the way: the Jacobian of a link comes with the link's pose, its rates
    with the Jacobian, the rate of the centroidal momentum matrix with the matrix, and derivatives
    of hybrid dynamics with a and tau.

    What methods return may be overwritten by the next call of any method. Vectors are used as they
    are if they are contiguous float64 arrays, and are converted otherwise, which costs time. A
    workspace serves one thread.

    Parameters
    ----------
    model : Model
        The robot.

    """

    def __new__(cls, model: Model, **options: Any) -> Workspace:
        """Return a workspace that knows the coordinates of the robot."""
        check_model(model)
        return object.__new__(cls if model.coordinates.is_identity else CoupledWorkspace)

    def gravity_torques_derivatives(self, q: ArrayLike) -> np.ndarray:
        """Return the derivatives of g: of the torques by q, where nothing moves."""
        return self.inverse_dynamics_derivatives(q, self._zeros, self._zeros).by_position

    def forward_dynamics_derivative(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                                    variation: Any, *,
                                    external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivative of a in one direction."""
        return self.hybrid_dynamics_derivative(
            q, v, self._zeros, tau, self._kept(scratch.none_prescribed), variation,
            external_wrenches=external_wrenches)[0]

    def acceleration_parameter_derivatives(
            self, q: ArrayLike, v: ArrayLike, tau: ArrayLike, *,
            external_wrenches: Wrenches | None = None) -> np.ndarray:
        """Return the derivatives of a by the parameters, shape (nv, 10 bodies)."""
        a = self.forward_dynamics(q, v, tau, external_wrenches)
        Y = self.torque_regressor(q, v, a)
        return -np.linalg.solve(self.mass_matrix(q), Y)

    def task_space_dynamics(self, q: ArrayLike, v: ArrayLike, link: str, *,
                            frame: Frame = 'body',
                            condition_limit: float = 2e3) -> TaskSpaceDynamics:
        """Return the `TaskSpaceDynamics` of a link."""
        if type(condition_limit) is not float or not 1.0 <= condition_limit < np.inf:
            condition_limit = number('condition_limit', condition_limit, 1.0)
        aligned = choice('frame', frame, FRAMES) == 'world-aligned'
        rows, J, J_dot, last = self._jacobian_and_bias(q, v, link, aligned)
        b, M, lengths = self.bias_torques(q, v), self.mass_matrix(q), self._kept(lengths_of_links)
        if link not in lengths:
            lengths[link] = characteristic_length(self.model, link)
        out, J_bar, N = task_terms(self, q, M, b, rows, link, last, lengths[link],
                                   condition_limit)
        condition = float(out[7, 0])
        return TaskSpaceDynamics(out[:6], out[6], J, J_dot, J_bar, N, condition,
                                 condition > condition_limit)

    def task_inertia(self, M: np.ndarray, q: ArrayLike, link: str, *, condition_limit: float,
                     length: float) -> tuple[np.ndarray, float]:
        """
        Return Lambda of a link in its own axes and the condition of its Jacobian.

        Parameters
        ----------
        M : ndarray, shape (nv, nv)
            Mass matrix at q.
        q : ndarray, shape (nq,)
            Configuration.
        link : str
            The link's name.
        condition_limit : float
            Condition number of the Jacobian beyond which the inverse is damped.
        length : float
            Unit of length in which the Jacobian is judged, m.

        """
        rows, _, _, last = self._jacobian_and_bias(q, self._zeros, link, False)
        out, _, _ = task_terms(self, q, M, self._zeros, rows, link, last, length, condition_limit)
        return out[:6], float(out[7, 0])


class CoupledWorkspace(CoupledMethods, Workspace):
    """A workspace of a robot whose coordinates are not those of its tree."""


def lengths_of_links(w: Workspace) -> dict[str, float]:
    """Return a place to keep the characteristic lengths of links."""
    return {}


def workspace_of(model: Model) -> Workspace:
    """
    Return the workspace that plain functions of a robot use in this thread.

    It is made at the first call, belongs to the robot and ends with it, or with the thread. Where
    its methods return arrays that it keeps, functions hand out copies.

    Parameters
    ----------
    model : Model
        The robot.

    """
    try:
        return model._workspaces.workspace
    except AttributeError:
        workspace = Workspace(model, fresh=True)
    # The robot keeps the workspace: this must not keep the robot in turn.
    workspace._model_of = ref(model)    # type: ignore[assignment]  # it outlives the workspace
    model._workspaces.workspace = workspace
    return workspace
