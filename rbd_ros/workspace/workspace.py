# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The class `Workspace`, whose methods `rbd_ros.workspace.quantity` adds, and one per robot."""

from __future__ import annotations

from typing import Any
from weakref import ref

from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.workspace.closed_loops import ClosedMethods
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.robot_arrays import RobotArrays


class Workspace(RobotArrays):
    """
    The buffers of one robot, and the functions of `rbd_ros` and `rbd_ros.analysis` that use them.

    The methods have the names and the units of those functions. Some also return intermediate
    results: the Jacobian of a link comes with the link's pose, its rates with the Jacobian, the
    rate of the centroidal momentum matrix with the matrix, derivatives of hybrid dynamics with a
    and tau. `inverse_dynamics_packed` and `configuration_terms` exist only here.

    The next call of any method may overwrite the arrays that a method returned. Contiguous float64
    arrays are used as they are; anything else is converted, which costs time. A workspace serves
    one thread.

    """

    def __new__(cls, model: Model, **options: Any) -> Workspace:
        check_model(model)
        if model.loops is not None:
            return object.__new__(ClosedWorkspace)
        return object.__new__(cls if model.coordinates.is_identity else CoupledWorkspace)


class CoupledWorkspace(CoupledMethods, Workspace):
    """A workspace of a robot whose coordinates are not those of its tree."""

    def __init__(self, model: Model, *, fresh: bool = False) -> None:
        CoupledMethods.__init__(self, model, Workspace(model.spanning_tree), fresh=fresh)


class ClosedWorkspace(ClosedMethods, Workspace):
    """A workspace of a robot with closed loops."""

    def __init__(self, model: Model, *, fresh: bool = False) -> None:
        ClosedMethods.__init__(self, model, Workspace(model.unconstrained), fresh=fresh)


def workspace_of(model: Model) -> Workspace:
    """
    Return the workspace that plain functions of a robot use in this thread.

    It is created at the first call and lives as long as the robot and the thread. Plain functions
    return copies of arrays that the workspace keeps.

    """
    try:
        return model._workspaces.workspace
    except AttributeError:
        workspace = Workspace(model, fresh=True)
    # The robot keeps the workspace, which must not keep the robot in turn.
    workspace._model_of = ref(model)    # type: ignore[assignment]
    model._workspaces.workspace = workspace
    return workspace
