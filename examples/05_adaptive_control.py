# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Adaptive control: the arm identifies a payload of 1 kg that is missing from its model.

The errors become small, and the inertia of the tool stays physically consistent. Its mass
approaches the true one as far as the motion excites it.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros.analysis import Simulator
from rbd_ros.control import JointReference, SlotineLi
from rbd_ros.model import inconsistent_bodies, with_friction

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
START = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
LOAD, PLACE = 1.0, (0.0, 0.02, 0.05)
SECONDS = 6


def swing(model, t):
    """Return a sine motion of all joints."""
    w = np.linspace(1.0, 3.0, model.nv)
    return JointReference(model, START + 0.3 * np.sin(w * t), 0.3 * w * np.cos(w * t),
                          -0.3 * w ** 2 * np.sin(w * t))


def main():
    """Print and return the RMS error of each second, rad, and the identified payload, kg."""
    names = rbd_ros.load_urdf(URDF).velocity_names
    arm = rbd_ros.with_armature(rbd_ros.load_urdf(URDF), dict.fromkeys(names, 0.1))
    arm = with_friction(arm, friction=dict.fromkeys(names, 0.0))
    heavy = rbd_ros.with_payload(arm, 'tool', LOAD, com=PLACE)
    law = SlotineLi(arm, rate=10.0, damping=20.0, adaptation=30.0, links=['tool'])
    before = law.parameters.copy()
    robot, rms, mass = Simulator(heavy, START), [], 0.0
    for second in range(1, SECONDS + 1):
        errors = []
        while robot.time < second - 1e-9:
            reference = swing(arm, robot.time)
            robot.advance(law.update(robot.time, robot.q, robot.v, reference))
            errors.append(reference.q - robot.q)
        rms.append(np.sqrt(np.mean(np.square(errors))))
        mass = law.parameters[-10] - before[-10]
        print(f'{second} s: error {1e3 * rms[-1]:6.3f} mrad, payload {mass:6.3f} kg')
    assert not inconsistent_bodies(arm, law.parameters)
    return np.array(rms), mass


if __name__ == '__main__':
    main()
