# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rigid-body dynamics of robots: recursive algorithms on SE(3), and ROS 2 nodes that serve them.

The library needs no ROS: ``model = rbd_ros.load_urdf(path)``, then ``rbd_ros.mass_matrix(model,
q)`` and its siblings, or a ``Workspace(model)`` in a control loop.

"""

from rbd_ros.builder import ModelBuilder
from rbd_ros.centroidal import (centroidal_momentum_matrix, centroidal_momentum_matrix_dot,
                                com_jacobian_dot)
from rbd_ros.changes import (subtree, with_armature, with_floating_base, with_free_joints,
                             with_gravity, with_locked_joints, with_payload, without_payload)
from rbd_ros.configurations import difference, integrate, neutral, normalize, random_configuration
from rbd_ros.derivatives import (forward_dynamics_derivatives, hybrid_dynamics_derivatives,
                                 inverse_dynamics_derivatives, terms_and_rates)
from rbd_ros.directional_derivatives import (forward_dynamics_derivative,
                                             hybrid_dynamics_derivative,
                                             inverse_dynamics_derivative)
from rbd_ros.dynamics import (all_terms, bias_torques, coriolis_matrix, forward_dynamics,
                              friction_torques, gravity_torques, hybrid_dynamics, inverse_dynamics,
                              mass_matrix)
from rbd_ros.errors import ModelError, ModelWarning, RbdError, SingularError, StateError, UrdfError
from rbd_ros.exponentials import ScrewChain, unit_screws
from rbd_ros.identification import (base_parameters, BaseParameters, Identification, identify,
                                    identify_payload, Payload)
from rbd_ros.inertial_parameters import (inconsistent_bodies, inertial_parameter_names,
                                         inertial_parameters, with_inertial_parameters)
from rbd_ros.integrators import explicit_euler, runge_kutta_4, semi_implicit_euler
from rbd_ros.jacobians import (analytic_jacobian, com_frame_jacobian, jacobian_ddot,
                               jacobian_derivatives, jacobian_dot, jacobian_dot_derivatives,
                               world_com_jacobian, world_jacobian_dot)
from rbd_ros.kinematics import (body_jacobian, center_of_mass, com_jacobian, forward_kinematics,
                                world_jacobian)
from rbd_ros.lagrange import (christoffel_coriolis_matrix, christoffel_symbols,
                              com_frame_gravity_torques, com_frame_mass_matrix, kinetic_energy,
                              potential_energy)
from rbd_ros.matrix_derivatives import (acceleration_parameter_derivatives,
                                        coriolis_matrix_derivatives, gravity_torques_derivatives,
                                        mass_matrix_derivatives, matrix_rates, MatrixRates,
                                        parameter_derivatives, ParameterDerivatives)
from rbd_ros.model import build_model, Model
from rbd_ros.regressors import (energy_regressor, momentum_regressor, slotine_li_regressor,
                                torque_regressor)
from rbd_ros.simulation import energy, Motion, simulate, Simulator
from rbd_ros.stacked import (stacked_inverse_dynamics, stacked_matrices, stacked_terms,
                             StackedDynamics, StackedMatrices, StackedTerms)
from rbd_ros.task_space import task_space_dynamics, TaskSpaceDynamics
from rbd_ros.urdf import load_urdf, load_urdf_string
from rbd_ros.variations import Variation
from rbd_ros.workspace import Derivatives, DynamicsTerms, TermsAndRates, Workspace

__all__ = [
    'acceleration_parameter_derivatives', 'all_terms', 'analytic_jacobian', 'base_parameters',
    'BaseParameters', 'bias_torques', 'body_jacobian', 'build_model', 'center_of_mass',
    'centroidal_momentum_matrix', 'centroidal_momentum_matrix_dot',
    'christoffel_coriolis_matrix', 'christoffel_symbols', 'com_frame_gravity_torques',
    'com_frame_jacobian', 'com_frame_mass_matrix', 'com_jacobian', 'com_jacobian_dot',
    'coriolis_matrix', 'coriolis_matrix_derivatives', 'Derivatives', 'difference',
    'DynamicsTerms', 'energy', 'energy_regressor', 'explicit_euler', 'forward_dynamics',
    'forward_dynamics_derivative', 'forward_dynamics_derivatives', 'forward_kinematics',
    'friction_torques', 'gravity_torques', 'gravity_torques_derivatives', 'hybrid_dynamics',
    'hybrid_dynamics_derivative', 'hybrid_dynamics_derivatives', 'Identification', 'identify',
    'identify_payload', 'inconsistent_bodies', 'inertial_parameter_names',
    'inertial_parameters', 'integrate', 'inverse_dynamics', 'inverse_dynamics_derivative',
    'inverse_dynamics_derivatives', 'jacobian_ddot', 'jacobian_derivatives', 'jacobian_dot',
    'jacobian_dot_derivatives', 'kinetic_energy', 'load_urdf', 'load_urdf_string',
    'mass_matrix', 'mass_matrix_derivatives', 'matrix_rates', 'MatrixRates', 'Model',
    'ModelBuilder', 'ModelError', 'ModelWarning', 'momentum_regressor', 'Motion', 'neutral',
    'normalize', 'parameter_derivatives', 'ParameterDerivatives', 'Payload',
    'potential_energy', 'random_configuration', 'RbdError', 'runge_kutta_4', 'ScrewChain',
    'semi_implicit_euler', 'simulate', 'Simulator', 'SingularError', 'slotine_li_regressor',
    'stacked_inverse_dynamics', 'stacked_matrices', 'stacked_terms', 'StackedDynamics',
    'StackedMatrices', 'StackedTerms', 'StateError', 'subtree', 'task_space_dynamics',
    'TaskSpaceDynamics', 'terms_and_rates', 'TermsAndRates', 'torque_regressor', 'unit_screws',
    'UrdfError', 'Variation', 'with_armature', 'with_floating_base', 'with_free_joints',
    'with_gravity', 'with_inertial_parameters', 'with_locked_joints', 'with_payload',
    'without_payload', 'Workspace', 'world_com_jacobian', 'world_jacobian',
    'world_jacobian_dot',
]
