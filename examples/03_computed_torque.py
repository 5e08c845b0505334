# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Computed torque: inverse dynamics decouples the joints.

The arm starts 0.2 rad away from its motion. The error of every joint decays by the same factor
(1 + w t) exp(-w t), although the joints are coupled.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros.analysis import Simulator
from rbd_ros.control import ComputedTorque, JointReference
from rbd_ros.model import with_friction

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
START = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
W, ERROR = 10.0, 0.2
TIMES = (0.0, 0.1, 0.2, 0.4, 0.8)


def motion(model, t):
    """Return a sine motion of all joints that starts at rest."""
    w = 1.0 + 0.3 * np.arange(model.nv)
    return JointReference(model, START + 0.3 * (1.0 - np.cos(w * t)), 0.3 * w * np.sin(w * t),
                          0.3 * w ** 2 * np.cos(w * t))


def main():
    """Print the errors at some times next to the predicted ones, and return them."""
    names = rbd_ros.load_urdf(URDF).velocity_names
    arm = rbd_ros.with_armature(rbd_ros.load_urdf(URDF), dict.fromkeys(names, 0.1))
    arm = with_friction(arm, damping=dict.fromkeys(names, 0.0), friction=dict.fromkeys(names, 0.0))
    law, robot, errors = ComputedTorque(arm, W ** 2), Simulator(arm, START - ERROR), []
    for t in TIMES:
        while robot.time < t - 1e-9:
            reference = motion(arm, robot.time)
            robot.advance(law.update(robot.time, robot.q, robot.v, reference))
        errors.append(motion(arm, t).q - robot.q)
        print(f'{t:4.1f} s: errors from {errors[-1].min():7.4f} to {errors[-1].max():7.4f} rad; '
              f'predicted {ERROR * (1.0 + W * t) * np.exp(-W * t):7.4f} rad')
    return np.array(errors)


if __name__ == '__main__':
    main()
