# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Control laws and observers, as plain functions and small classes that need no ROS."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'laws.cartesian_impedance': ['CartesianImpedance'], 'laws.computed_torque': ['ComputedTorque'],
    'contact': ['ContactDetector', 'external_wrench', 'with_contact_calibration'],
    'controller': ['Controller', 'critical_damping'],
    'effort_convention': ['EffortConvention'], 'friction': ['friction_compensation'],
    'laws.gravity': ['Gravity'], 'laws.hybrid': ['Hybrid'],
    'laws.joint_impedance': ['JointImpedance'], 'momentum_observer': ['MomentumObserver'],
    'laws.pd_gravity': ['PdGravity'], 'laws.slotine_li': ['SlotineLi'],
    'rbd_ros.motions.motion_guard': ['MotionGuard'],
    'rbd_ros.motions.references': ['JointReference', 'PoseReference'],
    'rbd_ros.motions.trajectories': ['JointTrajectory', 'PoseMotion']})
