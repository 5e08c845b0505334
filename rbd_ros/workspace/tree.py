# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Workspaces of robots whose coordinates are those of their tree."""

from rbd_ros.workspace import (derivatives, directional_derivatives, dynamics, kinematics,
                               regressors, scratch)
from rbd_ros.workspace.robot_arrays import RobotArrays


class TreeWorkspace(RobotArrays):
    """
    The methods of `rbd_ros.Workspace`, by topic; each topic is a file beside this one.

    Parameters
    ----------
    model : Model
        The robot.
    fresh : bool
        Return new arrays where a result has several of them, or is large.

    """

    _carriers = staticmethod(scratch.carriers)

    all_terms = dynamics.all_terms
    configuration_terms = dynamics.configuration_terms
    mass_matrix = dynamics.mass_matrix
    coriolis_matrix = dynamics.coriolis_matrix
    inverse_dynamics = dynamics.inverse_dynamics
    inverse_dynamics_packed = dynamics.inverse_dynamics_packed
    bias_torques = dynamics.bias_torques
    gravity_torques = dynamics.gravity_torques
    forward_dynamics = dynamics.forward_dynamics
    hybrid_dynamics = dynamics.hybrid_dynamics

    inverse_dynamics_derivatives = derivatives.inverse_dynamics_derivatives
    forward_dynamics_derivatives = derivatives.forward_dynamics_derivatives
    hybrid_dynamics_derivatives = derivatives.hybrid_dynamics_derivatives
    mass_matrix_derivatives = derivatives.mass_matrix_derivatives
    coriolis_matrix_derivatives = derivatives.coriolis_matrix_derivatives
    matrices_dot = derivatives.matrices_dot
    _write_rates = derivatives.write_rates
    inverse_dynamics_derivative = directional_derivatives.inverse_dynamics_derivative
    hybrid_dynamics_derivative = directional_derivatives.hybrid_dynamics_derivative
    _inverse_derivative = directional_derivatives.inverse_derivative

    forward_kinematics = kinematics.forward_kinematics
    center_of_mass = kinematics.center_of_mass
    com_jacobian = kinematics.com_jacobian
    com_jacobian_dot = kinematics.com_jacobian_dot
    world_jacobian = kinematics.world_jacobian
    body_jacobian = kinematics.body_jacobian
    jacobian_dot = kinematics.jacobian_dot
    world_jacobian_dot = kinematics.world_jacobian_dot
    jacobian_dot_v = kinematics.jacobian_dot_v
    world_jacobian_dot_v = kinematics.world_jacobian_dot_v
    jacobian_ddot = kinematics.jacobian_ddot
    jacobian_derivatives = kinematics.jacobian_derivatives
    jacobian_dot_derivatives = kinematics.jacobian_dot_derivatives
    _jacobian_and_bias = kinematics.jacobian_and_bias
    centroidal_momentum_matrix = kinematics.centroidal_momentum_matrix
    centroidal_momentum_matrix_dot = kinematics.centroidal_momentum_matrix_dot

    torque_regressor = regressors.torque_regressor
    slotine_li_regressor = regressors.slotine_li_regressor
    momentum_regressor = regressors.momentum_regressor
    energy_regressor = regressors.energy_regressor
    parameter_derivatives = regressors.parameter_derivatives
