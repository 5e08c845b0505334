# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What follows from dynamics: Jacobians, momentum, contacts, regressors, derivatives, motions."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'centroidal': [
        'centroidal_momentum_matrix', 'centroidal_momentum_matrix_dot', 'com_jacobian_dot'],
    'contact_speeds': [
        'BODY_REGIONS', 'BodyRegion', 'effective_mass', 'speed_limit', 'SpeedLimit'],
    'contacts': ['check_contacts', 'constrained_dynamics', 'constrained_inverse_dynamics'],
    'directional_derivatives': [
        'forward_dynamics_derivative', 'hybrid_dynamics_derivative',
        'inverse_dynamics_derivative'],
    'energies': ['energy', 'Energy', 'kinetic_energy', 'potential_energy'],
    'rbd_ros.simulation.integrators': ['explicit_euler', 'runge_kutta_4', 'semi_implicit_euler'],
    'jacobians': [
        'analytic_jacobian', 'jacobian_ddot', 'jacobian_derivatives', 'jacobian_dot_derivatives',
        'jacobian_dot_v', 'link_com_jacobian', 'link_com_world_jacobian', 'world_jacobian_dot',
        'world_jacobian_dot_v'],
    'matrix_derivatives': [
        'acceleration_parameter_derivatives', 'coriolis_matrix_derivatives',
        'gravity_torques_derivatives', 'mass_matrix_derivatives', 'matrices_dot', 'MatricesDot',
        'parameter_derivatives', 'ParameterDerivatives'],
    'regressors': [
        'energy_regressor', 'friction_regressor', 'momentum_regressor', 'slotine_li_regressor'],
    'rbd_ros.simulation.simulator': ['Motion', 'Simulator'],
    'task_space': ['TaskSpaceDynamics'],
    'rbd_ros.motions.retiming': ['retime', 'RetimedPath'],
    'rbd_ros.batch.torque_deviation': ['torque_deviation'],
    'rbd_ros.motions.trajectory_efforts': ['trajectory_efforts', 'TrajectoryEfforts'],
    'rbd_ros.workspace.contacts': [
        'ConstrainedDynamics', 'ConstrainedInverseDynamics', 'Contact', 'ContactCheck'],
    'rbd_ros.workspace.variation': ['Variation']})
