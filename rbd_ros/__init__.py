# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rigid-body dynamics of robots: recursive algorithms on SE(3), and ROS 2 nodes that serve them.

The library needs no ROS: ``model = rbd_ros.load_urdf(path)``, then ``rbd_ros.mass_matrix(model,
q)`` and its siblings, or a ``Workspace(model)`` in a control loop. What is needed less often is in
``rbd_ros.model``, ``analysis``, ``identification``, ``control``, ``simulation``, ``codegen`` and
``textbook``; the same functions for many states and other frameworks are in ``rbd_ros.batch``,
``casadi``, ``jax`` and ``torch``. Programs import the last two explicitly.

"""

from rbd_ros._internal.lazy_exports import export

__version__ = '0.3.0'
__getattr__, __dir__, __all__ = export(__name__, {
    'analysis': [],
    'analysis.contacts': ['constraint_forces'],
    'analysis.jacobians': ['jacobian_dot'],
    'analysis.regressors': ['torque_regressor'],
    'analysis.task_space': ['task_space_dynamics'],
    'batch': [],
    'casadi': [],
    'codegen': [],
    'control': [],
    'derivatives': [
        'forward_dynamics_derivatives', 'hybrid_dynamics_derivatives',
        'inverse_dynamics_derivatives'],
    'dynamics': [
        'all_terms', 'bias_torques', 'coriolis_matrix', 'forward_dynamics', 'friction_torques',
        'gravity_torques', 'hybrid_dynamics', 'inverse_dynamics', 'mass_matrix',
        'spring_torques'],
    'errors': [
        'ModelError', 'ModelWarning', 'RbdError', 'RecordingError', 'SingularError', 'StateError',
        'UrdfError'],
    'identification': [],
    'identification.least_squares': ['identify'],
    'kinematics': [
        'body_jacobian', 'center_of_mass', 'com_jacobian', 'forward_kinematics', 'world_jacobian'],
    'model': [],
    'model.builder': ['ModelBuilder'],
    'model.positions.configurations': [
        'difference', 'integrate', 'neutral', 'random_configuration'],
    'model.description': ['Link'],
    'model.changes.drives': ['with_armature'],
    'model.joints': ['Joint', 'Mimic'],
    'model.model': ['Model'],
    'model.changes.modifications': [
        'subtree', 'with_floating_base', 'with_gravity', 'with_locked_joints', 'with_payload'],
    'model.files.mjcf': ['load_mjcf'],
    'model.files.urdf': ['load_urdf', 'load_urdf_string'],
    'model.files.urdf_writer': ['save_urdf'],
    'simulation': [],
    'simulation.simulator': ['simulate'],
    'textbook': [],
    'workspace': ['Workspace']})
