# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.model.changes.drives import (drive_parameter_names as drive_parameter_names,
    drive_parameters as drive_parameters, with_drive_parameters as with_drive_parameters,
    with_friction as with_friction, with_springs as with_springs)
from rbd_ros.model.changes.inertial import (inconsistent_bodies as inconsistent_bodies,
    inertial_parameter_names as inertial_parameter_names,
    inertial_parameters as inertial_parameters,
    with_inertial_parameters as with_inertial_parameters)
from rbd_ros.model.changes.modifications import (with_free_joints as with_free_joints,
    without_payload as without_payload)
from rbd_ros.model.constraints import with_constraints as with_constraints
from rbd_ros.model.files.constraint_files import load_constraints as load_constraints
from rbd_ros.model.files.drive_files import load_drives as load_drives, save_drives as save_drives
from rbd_ros.model.loops import Constraint as Constraint
from rbd_ros.model.model import build_model as build_model
from rbd_ros.model.positions.configurations import normalize as normalize
from rbd_ros.model.uncertainty import Uncertainty as Uncertainty
