# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""`Workspace` with all of its methods: this module imports every module that declares some."""

from rbd_ros import derivatives, dynamics, kinematics
from rbd_ros.analysis import (centroidal, constraint_forces, contacts,
                              directional_derivatives, jacobians, matrix_derivatives, regressors,
                              task_space)
from rbd_ros.workspace.quantity import QUANTITIES
from rbd_ros.workspace.workspace import Workspace, workspace_of

__all__ = ['QUANTITIES', 'Workspace', 'workspace_of']
DECLARED_IN = (derivatives, dynamics, kinematics, centroidal, constraint_forces, contacts,
               directional_derivatives, jacobians, matrix_derivatives, regressors, task_space)
