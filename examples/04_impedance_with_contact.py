# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Impedance control with contact: the tool presses on a wall like a spring.

Its goal is 5 cm behind the wall. With 500 N/m it presses with 25 N, minus the deflection of the
wall, and does not bounce.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros.analysis import Simulator
from rbd_ros.control import CartesianImpedance, PoseMotion
from rbd_ros.model import with_friction

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
LINK = 'tool'
START = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
STIFFNESS = [50.0, 50.0, 50.0, 500.0, 500.0, 500.0]
# N/m and N s/m; m, of the wall from the start and of the goal from the wall
WALL, WALL_DAMPING, BEFORE, BEHIND = 2e4, 200.0, 0.05, 0.05


def main():
    """Print and return the force on the wall over time, N."""
    names = rbd_ros.load_urdf(URDF).velocity_names
    arm = rbd_ros.with_armature(rbd_ros.load_urdf(URDF), dict.fromkeys(names, 0.1))
    arm = with_friction(arm, friction=dict.fromkeys(names, 0.0))
    index = arm.link_index(LINK)
    start = rbd_ros.forward_kinematics(arm, START)[index]
    wall, goal = start[0, 3] + BEFORE, start.copy()
    goal[0, 3] = wall + BEHIND
    motion = PoseMotion(start, goal, 1.5)
    law = CartesianImpedance(arm, LINK, STIFFNESS, posture=START, posture_stiffness=20.0)
    robot, forces = Simulator(arm, START, step=5e-4), []
    while robot.time < 4.0:
        J = rbd_ros.world_jacobian(arm, robot.q, LINK)
        depth = rbd_ros.forward_kinematics(arm, robot.q)[index][0, 3] - wall
        push = WALL * depth + WALL_DAMPING * (J @ robot.v)[3]
        force = max(push, 0.0) if depth > 0.0 else 0.0
        tau = law.update(robot.time, robot.q, robot.v, motion.at(robot.time))
        robot.advance(tau - J[3] * force)
        forces.append(force)
        if len(forces) % 1000 == 0:
            print(f'{robot.time:4.1f} s: {1e3 * depth:7.2f} mm in the wall, {force:6.2f} N')
    return np.array(forces)


if __name__ == '__main__':
    main()
