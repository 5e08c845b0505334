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
from rbd_ros.analysis import constrained_dynamics, constrained_inverse_dynamics, Contact

SOLES = [Contact(foot, 'surface', (0.0, 0.0, -0.05), friction=0.6, half_size=(0.12, 0.05))
         for foot in ('left_foot', 'right_foot')]
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
    stance = constrained_inverse_dynamics(robot, q, still, still, SOLES)
    for sole, wrench, check in zip(SOLES, stance.wrenches, stance.checks):
        print(f'{sole.link:11} moment {wrench[:3].round(1)} N m, force {wrench[3:].round(1)} N, '
              + ('holds' if check.holds else 'does not hold'))
    for name, one in zip(robot.velocity_names[6:], stance.tau[6:]):
        print(f'{name:18}{one:8.2f} N m')
    a = constrained_dynamics(robot, q, still, stance.tau, SOLES).a
    return robot, stance.wrenches, stance.tau, a


if __name__ == '__main__':
    main()
