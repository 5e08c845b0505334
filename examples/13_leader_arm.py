# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
A leader arm: weight and friction are taken off, so that a hand moves it freely.

A hand leads the tool once around a circle and pulls as it must: without motors, with gravity
compensation, and with friction compensated as well. The real friction is a tenth larger than that
of the model, as after an identification. On a robot the node does the same, with `mode:=gravity`
and the parameter `friction`.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros.analysis import Simulator
from rbd_ros.control import Gravity
from rbd_ros.model import with_friction

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
LINK = 'tool'
START = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
# N m, and what the real arm has of it; kg m^2
FRICTION, REAL, ROTORS = np.array([2.0, 2.0, 1.5, 1.5, 0.8, 0.8, 0.5]), 1.1, 0.1
# Of the hand, N/m and N s/m; of the circle, m and s; of the simulation, s
STIFFNESS, DAMPING, RADIUS, SECONDS, STEP = 2000.0, 100.0, 0.1, 4.0, 2e-3


def circle(time):
    """Return position relative to the start and velocity of the hand, at rest at both ends."""
    s = min(time / SECONDS, 1.0)
    angle = 2.0 * np.pi * s ** 3 * (10.0 - 15.0 * s + 6.0 * s ** 2)
    rate = 2.0 * np.pi * 30.0 * s ** 2 * (1.0 - s) ** 2 / SECONDS
    place = RADIUS * np.array([np.cos(angle) - 1.0, np.sin(angle), 0.0])
    return place, RADIUS * rate * np.array([-np.sin(angle), np.cos(angle), 0.0])


def lead(arm, law):
    """Return the forces of the hand over time, N, and the work that it does, J."""
    robot, index = Simulator(arm, START, step=STEP), arm.link_index(LINK)
    start = rbd_ros.forward_kinematics(arm, START)[index][:3, 3]
    forces, work = [], 0.0
    while robot.time < SECONDS - 0.5 * STEP:
        J = rbd_ros.world_jacobian(arm, robot.q, LINK)[3:]
        place, velocity = circle(robot.time)
        miss = start + place - rbd_ros.forward_kinematics(arm, robot.q)[index][:3, 3]
        force = STIFFNESS * miss + DAMPING * (velocity - J @ robot.v)
        tau = law.update(robot.time, robot.q, robot.v, None) if law else np.zeros(arm.nv)
        robot.advance(tau + J.T @ force)
        forces.append(force)
        work += STEP * force @ J @ robot.v
    return np.array(forces), work


def main():
    """Print and return the mean force of the hand, N, and its work, J, by what is compensated."""
    arm = rbd_ros.load_urdf(URDF)
    arm = rbd_ros.with_armature(arm, np.full(arm.nv, ROTORS))
    model = with_friction(arm, friction=FRICTION)
    real = with_friction(arm, friction=REAL * FRICTION)
    laws = {'nothing': None, 'weight': Gravity(model),
            'weight and friction': Gravity(model, friction=True)}
    found = {}
    for compensated, law in laws.items():
        forces, work = lead(real, law)
        mean = np.mean(np.linalg.norm(forces, axis=1))
        found[compensated] = mean, work
        print(f'{compensated + " taken off:":30} the hand pulls with {mean:4.1f} N on average')
    return found


if __name__ == '__main__':
    main()
