# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rigid-body dynamics of robots: recursive algorithms on SE(3), and ROS 2 nodes that serve them.

The library needs no ROS: ``model = rbd_ros.load_urdf(path)``, then ``rbd_ros.mass_matrix(model,
q)`` and its siblings, or a ``Workspace(model)`` in a control loop.

"""

from rbd_ros.dynamics import (all_terms, bias_torques, coriolis_matrix, forward_dynamics,
                              gravity_torques, hybrid_dynamics, inverse_dynamics, mass_matrix)
from rbd_ros.errors import ModelError, ModelWarning, RbdError, SingularError, StateError, UrdfError
from rbd_ros.kinematics import (body_jacobian, center_of_mass, com_jacobian, forward_kinematics,
                                world_jacobian)
from rbd_ros.model import build_model, Model
from rbd_ros.urdf import load_urdf, load_urdf_string
from rbd_ros.workspace import DynamicsTerms, Workspace

__all__ = [
                              'DynamicsTerms',
                              'Model',
                              'ModelError',
                              'ModelWarning',
                              'RbdError',
                              'SingularError',
                              'StateError',
                              'UrdfError',
                              'Workspace',
                              'all_terms',
                              'bias_torques',
                              'body_jacobian',
                              'build_model',
                              'center_of_mass',
                              'com_jacobian',
                              'coriolis_matrix',
                              'forward_dynamics',
                              'forward_kinematics',
                              'gravity_torques',
                              'hybrid_dynamics',
                              'inverse_dynamics',
                              'load_urdf',
                              'load_urdf_string',
                              'mass_matrix',
                              'world_jacobian',
]
