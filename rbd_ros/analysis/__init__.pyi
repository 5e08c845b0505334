# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.analysis.centroidal import (centroidal_momentum_matrix as centroidal_momentum_matrix,
    centroidal_momentum_matrix_dot as centroidal_momentum_matrix_dot,
    com_jacobian_dot as com_jacobian_dot)
from rbd_ros.analysis.contact_speeds import (BODY_REGIONS as BODY_REGIONS,
    BodyRegion as BodyRegion, effective_mass as effective_mass, speed_limit as speed_limit,
    SpeedLimit as SpeedLimit)
from rbd_ros.analysis.contacts import (check_contacts as check_contacts,
    constrained_dynamics as constrained_dynamics,
    constrained_inverse_dynamics as constrained_inverse_dynamics)
from rbd_ros.analysis.directional_derivatives import (
    forward_dynamics_derivative as forward_dynamics_derivative,
    hybrid_dynamics_derivative as hybrid_dynamics_derivative,
    inverse_dynamics_derivative as inverse_dynamics_derivative)
from rbd_ros.analysis.energies import (energy as energy, Energy as Energy,
    kinetic_energy as kinetic_energy, potential_energy as potential_energy)
from rbd_ros.analysis.jacobians import (analytic_jacobian as analytic_jacobian,
    jacobian_ddot as jacobian_ddot, jacobian_derivatives as jacobian_derivatives,
    jacobian_dot_derivatives as jacobian_dot_derivatives, jacobian_dot_v as jacobian_dot_v,
    link_com_jacobian as link_com_jacobian, link_com_world_jacobian as link_com_world_jacobian,
    world_jacobian_dot as world_jacobian_dot, world_jacobian_dot_v as world_jacobian_dot_v)
from rbd_ros.analysis.matrix_derivatives import (
    acceleration_parameter_derivatives as acceleration_parameter_derivatives,
    coriolis_matrix_derivatives as coriolis_matrix_derivatives,
    gravity_torques_derivatives as gravity_torques_derivatives,
    mass_matrix_derivatives as mass_matrix_derivatives, matrices_dot as matrices_dot,
    MatricesDot as MatricesDot, parameter_derivatives as parameter_derivatives,
    ParameterDerivatives as ParameterDerivatives)
from rbd_ros.batch.torque_deviation import torque_deviation as torque_deviation
from rbd_ros.motions.retiming import retime as retime, RetimedPath as RetimedPath
from rbd_ros.motions.trajectory_efforts import (trajectory_efforts as trajectory_efforts,
    TrajectoryEfforts as TrajectoryEfforts)
from rbd_ros.simulation.integrators import (explicit_euler as explicit_euler,
    runge_kutta_4 as runge_kutta_4, semi_implicit_euler as semi_implicit_euler)
from rbd_ros.simulation.simulator import Motion as Motion, Simulator as Simulator
from rbd_ros.workspace.contacts import (ConstrainedDynamics as ConstrainedDynamics,
    ConstrainedInverseDynamics as ConstrainedInverseDynamics, Contact as Contact,
    ContactCheck as ContactCheck)
from rbd_ros.workspace.variation import Variation as Variation
from rbd_ros.analysis.regressors import (energy_regressor as energy_regressor,
    friction_regressor as friction_regressor, momentum_regressor as momentum_regressor,
    slotine_li_regressor as slotine_li_regressor)
from rbd_ros.analysis.task_space import TaskSpaceDynamics as TaskSpaceDynamics
