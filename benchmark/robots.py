# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robots of the benchmarks, and a state of each."""

from dataclasses import dataclass, field
from pathlib import Path
import warnings
from xml.etree import ElementTree

import numpy as np
import pinocchio
import rbd_ros

DATA = Path(pinocchio.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'
UR5 = DATA / 'ur_description/urdf/ur5_robot.urdf'
PANDA = DATA / 'panda_description/urdf/panda.urdf'
TALOS = DATA / 'talos_data/robots/talos_reduced.urdf'
# With joints that mimic others, those of their grippers.
WITH_MIMICS = {'Panda': PANDA,
               'Tiago Pro': DATA / 'tiago_pro_description/robots/tiago_pro.urdf',
               'Talos': DATA / 'talos_data/robots/talos_full_v2.urdf'}
DEMO_ARM = Path(__file__).resolve().parents[1] / 'urdf' / 'demo_arm.urdf'
FINGERS = ('panda_finger_joint1', 'panda_finger_joint2')
# Head, grippers, torso and wrists: 25 of Talos' 32 joints remain.
SPARED = ('head_1_joint', 'head_2_joint', 'gripper_left_joint', 'gripper_right_joint',
          'torso_2_joint', 'arm_left_7_joint', 'arm_right_7_joint')


@dataclass
class Robot:
    """
    A robot and a state of it; other libraries build the same from ``path`` and ``locked``.

    Attributes
    ----------
    label : str
        Name in the tables.
    path : pathlib.Path
        Its URDF.
    size : str
        Column of the table of targets: small, large or floating.
    locked : tuple of str
        Joints held at zero.
    floating : bool
        Whether it has a floating base.

    """

    label: str
    path: Path
    size: str
    locked: tuple = ()
    floating: bool = False
    model: rbd_ros.Model = field(init=False)

    def __post_init__(self):
        """Load it, and choose a state."""
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', rbd_ros.ModelWarning)
            model = rbd_ros.load_urdf(self.path, floating_base=self.floating)
            own = {joint.name for joint, _, _ in model.moving_joints}
            self.model = model = rbd_ros.with_locked_joints(
                model, {name: 0.0 for name in self.locked if name in own})
        rng = np.random.default_rng(0)
        self.q = rbd_ros.random_configuration(model, rng)
        self.v, self.a = rng.normal(size=(2, model.nv))
        self.tau = rbd_ros.inverse_dynamics(model, self.q, self.v, self.a)
        # The last link with a moving joint of its own.
        self.tip = model.moving_joints[-1][0].child


def bare_urdf(robot):
    """
    Return the root element of a robot's URDF reduced to its dynamics, for other parsers.

    Locked joints are fixed, others have no limits; shapes, transmissions, damping and mimic joints
    are removed.

    """
    root = ElementTree.parse(robot.path).getroot()
    for link in root.iter('link'):
        for shape in link.findall('visual') + link.findall('collision'):
            link.remove(shape)
    for transmission in root.findall('transmission'):
        root.remove(transmission)
    for joint in root.findall('joint'):
        if joint.get('name') in robot.locked:
            joint.set('type', 'fixed')
        for name in ('mimic', 'dynamics', 'limit', 'safety_controller'):
            for part in joint.findall(name):
                joint.remove(part)
        if joint.get('type') == 'revolute':
            joint.set('type', 'continuous')
    return root


def robots():
    """Return all robots."""
    return (Robot('UR5', UR5, 'small'), Robot('Panda', PANDA, 'small', locked=FINGERS),
            Robot('Humanoid', TALOS, 'large', locked=SPARED), Robot('Talos', TALOS, 'large'),
            Robot('Talos, floating', TALOS, 'floating', floating=True))
