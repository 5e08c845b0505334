# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.batch.configurations import difference as difference, integrate as integrate
from rbd_ros.batch.dynamics import (bias_torques as bias_torques,
    coriolis_matrix as coriolis_matrix, forward_dynamics as forward_dynamics,
    forward_dynamics_derivatives as forward_dynamics_derivatives,
    hybrid_dynamics as hybrid_dynamics, mass_matrix as mass_matrix)
from rbd_ros.batch.functions import (all_terms as all_terms, body_jacobian as body_jacobian,
    center_of_mass as center_of_mass, centroidal_momentum_matrix as centroidal_momentum_matrix,
    centroidal_momentum_matrix_dot as centroidal_momentum_matrix_dot, com_jacobian as com_jacobian,
    com_jacobian_dot as com_jacobian_dot, forward_kinematics as forward_kinematics,
    gravity_torques as gravity_torques, inverse_dynamics as inverse_dynamics,
    inverse_dynamics_derivatives as inverse_dynamics_derivatives, jacobian_dot as jacobian_dot,
    torque_regressor as torque_regressor, world_jacobian as world_jacobian,
    world_jacobian_dot as world_jacobian_dot)
from rbd_ros.batch.least_squares import (normal_equations as normal_equations,
    NormalEquations as NormalEquations, regressor_factor as regressor_factor)
from rbd_ros.batch.regressors import (torque_regressor_product as torque_regressor_product,
    torque_regressor_transposed_product as torque_regressor_transposed_product)
from rbd_ros.batch.threads import CHUNK as CHUNK
