# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What RViz needs to show a robot: its fixed frame, a configuration, and a URDF of its frames."""

from dataclasses import replace
from pathlib import Path
import warnings

from rbd_ros import Model, ModelWarning, save_urdf, subtree
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.files.urdf_document import SINGLE
from rbd_ros.model.joints import Joint
from rbd_ros.ros.robot.read_model import base_joint
from rbd_ros.ros.runtime.share_directory import share

# Topic of a description for RViz alone
SHOWN = 'shown_robot_description'
FAR = 1e6    # rad or m, and so on: limits that nothing reaches


def root_frame(robot: Model) -> str:
    """Return the link that stands still, or the base of a robot whose base floats."""
    base = base_joint(robot)
    return base.child if base else robot.link_names[0]


def frames_urdf(robot: Model, folder: Path) -> str:
    """Return a URDF with the frames of a robot, for robot_state_publisher; it has no shapes."""
    robot = subtree(robot.unconstrained, root_frame(robot))
    path = folder / 'frames.urdf'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)       # drives are left out
        save_urdf(rebuild(robot, joints=[_with_limits(joint) for joint in robot.joints]), path)
    return path.read_text(encoding='utf-8')


def _with_limits(joint: Joint) -> Joint:
    """Return a joint with the limits without which other programs refuse a URDF."""
    if joint.kind in ('revolute', 'prismatic'):
        joint = replace(joint, lower=(-FAR,), upper=(FAR,))
    return replace(joint, velocity=(FAR,), effort=(FAR,)) if joint.kind in SINGLE else joint


def configuration(folder: Path, prefix: str, *, has_shapes: bool) -> Path:
    """Return the configuration of RViz; without shapes, ellipsoids of inertia show the robot."""
    path = share('config', 'dynamics.rviz')
    text = before = path.read_text(encoding='utf-8')
    if prefix:      # RViz puts a / after its prefix
        for name in ('Description Source:', 'Robot Description:'):
            text = text.replace(name, f"TF Prefix: '{prefix.rstrip('/')}'\n      {name}")
    if not has_shapes:
        text = text.replace('ellipsoids: false', 'ellipsoids: true')
    if text != before:
        path = folder / 'dynamics.rviz'
        path.write_text(text, encoding='utf-8')
    return path
