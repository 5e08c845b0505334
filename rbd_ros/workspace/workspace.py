# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The library with buffers that are kept, for control loops."""

from collections.abc import Callable
from weakref import ref

from rbd_ros.model.model import Model
from rbd_ros.workspace.derivatives import DerivativeMethods
from rbd_ros.workspace.directional_derivatives import DirectionalMethods
from rbd_ros.workspace.kernel_interface import Made
from rbd_ros.workspace.regressors import RegressorMethods
from rbd_ros.workspace.task_space import TaskSpaceMethods


class Workspace(TaskSpaceMethods, DerivativeMethods, DirectionalMethods, RegressorMethods):
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


class NewResults(Workspace):
    """A workspace that makes new arrays for results of several arrays, and for large ones."""

    def _result(self, make: Callable[..., Made]) -> Made:
        """Return new arrays to hand out."""
        return make(self)


def workspace_of(model: Model) -> NewResults:
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
        return model._of_thread.workspace
    except AttributeError:
        workspace = NewResults(model)
    # The robot keeps the workspace: this must not keep the robot in turn.
    workspace._model_of = ref(model)    # type: ignore[assignment]  # it outlives the workspace
    model._of_thread.workspace = workspace
    return workspace
