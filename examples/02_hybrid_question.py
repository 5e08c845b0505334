# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Hybrid dynamics: the elbow's drive fails, and all other joints must stand still.

The elbow's torque is known (zero) and its acceleration is not; for the other joints it is the
other way round. One call computes both.

"""

import pathlib

import numpy as np
import rbd_ros

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
Q = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])


def main():
    """Print and return accelerations and torques."""
    arm = rbd_ros.load_urdf(URDF)
    zeros = np.zeros(arm.nv)
    prescribed = np.array([name != 'elbow' for name in arm.velocity_names])
    a, tau = rbd_ros.hybrid_dynamics(arm, Q, zeros, zeros, zeros, prescribed)
    held = rbd_ros.gravity_torques(arm, Q)
    for k, name in enumerate(arm.velocity_names):
        print(f'{name:16}{a[k]:9.2f} rad/s^2{tau[k]:9.2f} N m, before {held[k]:8.2f} N m')
    return a, tau


if __name__ == '__main__':
    main()
