# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Stance of a floating base: the contact forces at the feet and the torques that hold a robot.

A trunk on two legs has a floating base. The six equations of the base, which has no drives,
determine the wrenches from the ground; of many solutions, the smallest in the least-squares sense
is chosen. The other equations then determine the joint torques.

"""

import numpy as np
import rbd_ros

FEET = ('left_foot', 'right_foot')
Q = np.array([0.4, -0.8, 0.4, 0.5, -1.0, 0.5])


def biped():
    """Return a trunk with a floating base on two legs of three joints."""
    builder = rbd_ros.ModelBuilder('biped')
    builder.link('trunk', mass=20.0, inertia=np.diag([0.8, 0.6, 0.4]))
    for side, y in (('left', 0.1), ('right', -0.1)):
        above = 'trunk'
        for part, z, mass in (('thigh', 0.0, 4.0), ('shin', -0.4, 3.0), ('foot', -0.4, 1.0)):
            link = f'{side}_{part}'
            builder.link(link, mass=mass, com=(0.0, 0.0, -0.2 if part != 'foot' else -0.03),
                         inertia=np.diag([0.04, 0.04, 0.01]))
            builder.joint(f'{link}_joint', 'revolute', above, link, axis=(0.0, 1.0, 0.0),
                          xyz=(0.0, y if part == 'thigh' else 0.0, z))
            above = link
    return rbd_ros.with_floating_base(builder.build())


def main():
    """Print wrenches and torques; return the robot, both, and the remaining accelerations."""
    robot = biped()
    q = rbd_ros.neutral(robot)
    q[-6:] = Q
    still = np.zeros(robot.nv)
    g = rbd_ros.gravity_torques(robot, q)
    J = np.vstack([rbd_ros.world_jacobian(robot, q, foot) for foot in FEET])
    base = slice(0, 6)
    wrenches = np.linalg.lstsq(J[:, base].T, g[base], rcond=None)[0]
    tau = g - J.T @ wrenches
    for foot, wrench in zip(FEET, wrenches.reshape(-1, 6)):
        print(f'{foot:11} moment {wrench[:3].round(1)} N m, force {wrench[3:].round(1)} N')
    for name, one in zip(robot.velocity_names[6:], tau[6:]):
        print(f'{name:18}{one:8.2f} N m')
    pushed = {}
    for foot, wrench in zip(FEET, wrenches.reshape(-1, 6)):
        R = rbd_ros.forward_kinematics(robot, q)[robot.link_index(foot)][:3, :3]
        pushed[foot] = np.concatenate((R.T @ wrench[:3], R.T @ wrench[3:]))
    a = rbd_ros.forward_dynamics(robot, q, still, tau, external_wrenches=pushed)
    return robot, wrenches, tau, a


if __name__ == '__main__':
    main()
