# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rigid-body dynamics of robots: recursive algorithms on SE(3), and ROS 2 nodes that serve them.

The library needs no ROS: ``model = rbd_ros.load_urdf(path)``, then ``rbd_ros.mass_matrix(model,
q)`` and its siblings, or a ``Workspace(model)`` in a control loop.

"""

from importlib import import_module

# Where the names are. They are imported when they are first asked for: a node hears signals before
# it waits for numba.
_NAMES = {
    'model.builder': ['ModelBuilder'],
    'analysis.centroidal': [
        'centroidal_momentum_matrix', 'centroidal_momentum_matrix_dot', 'com_jacobian_dot'],
    'model.modifications': [
        'subtree', 'with_armature', 'with_floating_base', 'with_free_joints', 'with_gravity',
        'with_locked_joints', 'with_payload', 'without_payload'],
    'model.configurations': [
        'difference', 'integrate', 'neutral', 'normalize', 'random_configuration'],
    'derivatives': [
        'forward_dynamics_derivatives', 'hybrid_dynamics_derivatives',
        'inverse_dynamics_derivatives', 'terms_and_rates'],
    'analysis.directional_derivatives': [
        'forward_dynamics_derivative', 'hybrid_dynamics_derivative',
        'inverse_dynamics_derivative'],
    'dynamics': [
        'all_terms', 'bias_torques', 'coriolis_matrix', 'forward_dynamics', 'friction_torques',
        'gravity_torques', 'hybrid_dynamics', 'inverse_dynamics', 'mass_matrix'],
    'errors': [
        'ModelError', 'ModelWarning', 'RbdError', 'SingularError', 'StateError', 'UrdfError'],
    'textbook.screw_chains': ['ScrewChain', 'unit_screws'],
    'identification.least_squares': [
        'base_parameters', 'BaseParameters', 'Identification', 'identify', 'identify_payload',
        'Payload'],
    'model.inertial_parameters': [
        'inconsistent_bodies', 'inertial_parameter_names', 'inertial_parameters',
        'with_inertial_parameters'],
    'analysis.integrators': ['explicit_euler', 'runge_kutta_4', 'semi_implicit_euler'],
    'analysis.jacobians': [
        'analytic_jacobian', 'com_frame_jacobian', 'jacobian_ddot', 'jacobian_derivatives',
        'jacobian_dot', 'jacobian_dot_derivatives', 'world_com_jacobian', 'world_jacobian_dot'],
    'kinematics': [
        'body_jacobian', 'center_of_mass', 'com_jacobian', 'forward_kinematics', 'world_jacobian'],
    'textbook.lagrange': [
        'christoffel_coriolis_matrix', 'christoffel_symbols', 'com_frame_gravity_torques',
        'com_frame_mass_matrix', 'kinetic_energy', 'potential_energy'],
    'analysis.matrix_derivatives': [
        'acceleration_parameter_derivatives', 'coriolis_matrix_derivatives',
        'gravity_torques_derivatives', 'mass_matrix_derivatives', 'matrix_rates', 'MatrixRates',
        'parameter_derivatives', 'ParameterDerivatives'],
    'model.model': ['build_model', 'Model'],
    'analysis.regressors': [
        'energy_regressor', 'momentum_regressor', 'slotine_li_regressor', 'torque_regressor'],
    'analysis.simulation': ['energy', 'Motion', 'simulate', 'Simulator'],
    'textbook.stacked_form': [
        'stacked_inverse_dynamics', 'stacked_matrices', 'stacked_terms', 'StackedDynamics',
        'StackedMatrices', 'StackedTerms'],
    'analysis.task_space': ['task_space_dynamics', 'TaskSpaceDynamics'],
    'model.urdf': ['load_urdf', 'load_urdf_string'],
    'analysis.variation': ['Variation'],
    'workspace': ['Derivatives', 'DynamicsTerms', 'TermsAndRates', 'Workspace'],
}
_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names}
__all__ = sorted(_MODULE_OF)


def __getattr__(name):
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'rbd_ros' has no attribute '{name}'")
    value = globals()[name] = getattr(import_module(f'rbd_ros.{_MODULE_OF[name]}'), name)
    return value


def __dir__():
    return sorted({*globals(), *__all__})
