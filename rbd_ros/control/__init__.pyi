# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.control.contact import (ContactDetector as ContactDetector,
    external_wrench as external_wrench, with_contact_calibration as with_contact_calibration)
from rbd_ros.control.controller import (Controller as Controller,
    critical_damping as critical_damping)
from rbd_ros.control.effort_convention import EffortConvention as EffortConvention
from rbd_ros.control.friction import friction_compensation as friction_compensation
from rbd_ros.control.laws.cartesian_impedance import CartesianImpedance as CartesianImpedance
from rbd_ros.control.laws.computed_torque import ComputedTorque as ComputedTorque
from rbd_ros.control.laws.gravity import Gravity as Gravity
from rbd_ros.control.laws.hybrid import Hybrid as Hybrid
from rbd_ros.control.laws.joint_impedance import JointImpedance as JointImpedance
from rbd_ros.control.laws.pd_gravity import PdGravity as PdGravity
from rbd_ros.control.laws.slotine_li import SlotineLi as SlotineLi
from rbd_ros.control.momentum_observer import MomentumObserver as MomentumObserver
from rbd_ros.motions.motion_guard import MotionGuard as MotionGuard
from rbd_ros.motions.references import (JointReference as JointReference,
    PoseReference as PoseReference)
from rbd_ros.motions.trajectories import (JointTrajectory as JointTrajectory,
    PoseMotion as PoseMotion)
