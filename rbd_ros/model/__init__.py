# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots as data: links and joints, read from URDF or built in Python, and models of them."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'positions.configurations': ['normalize'],
    'constraints': ['with_constraints'],
    'files.constraint_files': ['load_constraints'],
    'files.drive_files': ['load_drives', 'save_drives'],
    'changes.drives': [
        'drive_parameter_names', 'drive_parameters', 'with_drive_parameters', 'with_friction',
        'with_springs'],
    'changes.inertial': [
        'inconsistent_bodies', 'inertial_parameter_names', 'inertial_parameters',
        'with_inertial_parameters'],
    'loops': ['Constraint'],
    'model': ['build_model'],
    'changes.modifications': ['with_free_joints', 'without_payload'],
    'uncertainty': ['Uncertainty'],
})
