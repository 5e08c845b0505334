# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`Workspace`: the quantities of a robot, whose methods stand beside their equations."""

from __future__ import annotations

from typing import Any

from rbd_ros._internal.lazy_exports import LazyModule
from rbd_ros.analysis.centroidal import CentroidalMethods
from rbd_ros.analysis.contacts import ContactMethods
from rbd_ros.analysis.directional_derivatives import DirectionalDerivativeMethods
from rbd_ros.analysis.jacobians import JacobianMethods
from rbd_ros.analysis.matrix_derivatives import MatrixDerivativeMethods
from rbd_ros.analysis.regressors import RegressorMethods
from rbd_ros.analysis.task_space import TaskSpaceMethods
from rbd_ros.derivatives import DerivativeMethods
from rbd_ros.dynamics import DynamicsMethods
from rbd_ros.kernels.jit.numba_backend import WAY
from rbd_ros.kinematics import KinematicsMethods
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.workspace.machine_methods import MachineMethods
from rbd_ros.workspace.quantity import QUANTITIES

__all__ = ['QUANTITIES', 'Workspace']
# Most robots are trees, and kernels for closed loops are slow to import.
coupled_workspaces = LazyModule('rbd_ros.coupled_workspaces')


class Workspace(ContactMethods, TaskSpaceMethods, MatrixDerivativeMethods,
                DirectionalDerivativeMethods, CentroidalMethods, DynamicsMethods,
                KinematicsMethods, DerivativeMethods, JacobianMethods, RegressorMethods):
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
            cls = coupled_workspaces.ClosedWorkspace
        elif not model.coordinates.is_identity:
            cls = coupled_workspaces.CoupledWorkspace
        found = object.__new__(cls)
        if WAY == 'cc':
            MachineMethods(found, weak=options.get('fresh', False))
        return found
