# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros import analysis as analysis
from rbd_ros.analysis.contacts import constraint_forces as constraint_forces
from rbd_ros.analysis.jacobians import jacobian_dot as jacobian_dot
from rbd_ros.analysis.regressors import torque_regressor as torque_regressor
from rbd_ros.analysis.task_space import task_space_dynamics as task_space_dynamics
from rbd_ros import batch as batch
from rbd_ros import casadi as casadi
from rbd_ros import codegen as codegen
from rbd_ros import control as control
from rbd_ros.derivatives import (forward_dynamics_derivatives as forward_dynamics_derivatives,
    hybrid_dynamics_derivatives as hybrid_dynamics_derivatives,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives)
from rbd_ros.dynamics import (all_terms as all_terms, bias_torques as bias_torques,
    coriolis_matrix as coriolis_matrix, forward_dynamics as forward_dynamics,
    friction_torques as friction_torques, gravity_torques as gravity_torques,
    hybrid_dynamics as hybrid_dynamics, inverse_dynamics as inverse_dynamics,
    mass_matrix as mass_matrix, spring_torques as spring_torques)
from rbd_ros.errors import (ModelError as ModelError, ModelWarning as ModelWarning,
    RbdError as RbdError, RecordingError as RecordingError, SingularError as SingularError,
    StateError as StateError, UrdfError as UrdfError)
from rbd_ros import identification as identification
from rbd_ros.identification.least_squares import identify as identify
from rbd_ros.kinematics import (body_jacobian as body_jacobian, center_of_mass as center_of_mass,
    com_jacobian as com_jacobian, forward_kinematics as forward_kinematics,
    world_jacobian as world_jacobian)
from rbd_ros import model as model
from rbd_ros.model.builder import ModelBuilder as ModelBuilder
from rbd_ros.model.changes.drives import with_armature as with_armature
from rbd_ros.model.changes.modifications import (subtree as subtree,
    with_floating_base as with_floating_base, with_gravity as with_gravity,
    with_locked_joints as with_locked_joints, with_payload as with_payload)
from rbd_ros.model.description import Link as Link
from rbd_ros.model.files.mjcf import load_mjcf as load_mjcf
from rbd_ros.model.files.urdf import load_urdf as load_urdf, load_urdf_string as load_urdf_string
from rbd_ros.model.files.urdf_writer import save_urdf as save_urdf
from rbd_ros.model.joints import Joint as Joint, Mimic as Mimic
from rbd_ros.model.model import Model as Model
from rbd_ros.model.positions.configurations import (difference as difference,
    integrate as integrate, neutral as neutral, random_configuration as random_configuration)
from rbd_ros import simulation as simulation
from rbd_ros.simulation.simulator import simulate as simulate
from rbd_ros import textbook as textbook
from rbd_ros.workspace import Workspace as Workspace

__version__: str
