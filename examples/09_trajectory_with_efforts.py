# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
A trajectory with efforts: the required torques, and the fastest allowed speed.

One second is too short for the velocity limits. The time scale tells how much slower the
trajectory must be to respect the limits of velocity and effort; a controller feeds forward the
efforts of the slower one.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros.analysis import trajectory_efforts

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
# s, and rad
TIME = np.array([0.0, 0.5, 1.0])
POINTS = np.array([[0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0],
                   [1.2, 0.2, 0.3, 0.4, -0.4, 0.9, 0.5],
                   [2.0, 0.6, 0.0, 1.0, 0.0, 0.5, 1.0]])


def main():
    """Print the largest efforts of both trajectories, and return the trajectories."""
    arm = rbd_ros.load_urdf(URDF)
    fast = trajectory_efforts(arm, TIME, POINTS)
    slow = trajectory_efforts(arm, fast.time_scale * TIME, POINTS)
    print(f'{TIME[-1]:.1f} s is too short, {fast.time_scale * TIME[-1]:.2f} s is enough')
    print('largest torque    in 1.0 s   slower     limit')
    for k, name in enumerate(arm.velocity_names):
        most = [np.abs(one.effort[:, k]).max() for one in (fast, slow)]
        print(f'{name:16}{most[0]:10.2f}{most[1]:9.2f}{arm.effort_limit[k]:10.0f} N m')
    return fast, slow


if __name__ == '__main__':
    main()
