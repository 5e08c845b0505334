# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
A forgotten wrist camera: identification finds what is missing from the URDF.

Torques measured on an arm with torque sensors, as a Franka has, differ by a fifth from those of
its URDF. A payload on the flange explains the difference: a camera of 0.6 kg with its bracket,
which nobody had entered. With it, the torques of another motion agree to less than a percent.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros import batch, identification

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
LINK = 'flange_roll_link'
# The camera with its bracket, in front of the flange: kg, m, kg m^2 about its centre of mass.
MASS, COM, INERTIA = 0.6, (0.05, 0.0, 0.12), np.diag([8e-4, 6e-4, 7e-4])
# The forearm is held out level; rad, s, Hz, N m.
HOME, REACH = [0.0, -0.15, 0.0, 1.7, 0.0, 0.0, 0.0], [0.8, 0.15, 0.6, 0.2, 0.8, 0.4, 0.9]
DURATION, RATE, NOISE = 20.0, 200.0, 0.1


def record(robot, seed):
    """Return a recording of three sines per joint: exact positions, torques with noise."""
    rng = np.random.default_rng(seed)
    t = np.arange(0.0, DURATION, 1.0 / RATE)[:, None]
    q, v, a = np.array(HOME), 0.0, 0.0
    for omega, phase in zip(rng.uniform(0.8, 2.5, (3, robot.nv)), rng.uniform(0.0, 6.0, (3, 7))):
        reach = np.array(REACH) / 3
        q = q + reach * np.sin(omega * t + phase)
        v = v + reach * omega * np.cos(omega * t + phase)
        a = a - reach * omega ** 2 * np.sin(omega * t + phase)
    tau = batch.inverse_dynamics(robot, q, v, a) + NOISE * rng.normal(size=q.shape)
    return identification.Recording(f'motion {seed}', robot.velocity_names, t[:, 0], q, v, tau)


def unexplained(robot, samples):
    """Return the share of the measured torques that a robot does not explain."""
    expected = batch.inverse_dynamics(robot, samples.q, samples.v, samples.a)
    return np.linalg.norm(samples.tau - expected) / np.linalg.norm(samples.tau)


def main():
    """Print and return the payload, its verdict, and the errors of another motion."""
    # Torque sensors on the output side of the gears measure no friction.
    urdf = rbd_ros.load_urdf(URDF)
    urdf = rbd_ros.model.with_friction(urdf, damping=np.zeros(urdf.nv))
    real = rbd_ros.with_payload(urdf, LINK, MASS, COM, INERTIA)
    samples, other = (identification.prepare(urdf, record(real, seed)) for seed in (0, 1))

    before = unexplained(urdf, samples)
    print(f'{100 * before:.0f} % of the torques are not explained by the URDF')
    part = identification.payload_partial(urdf, LINK, samples)
    found = identification.fit_payload(urdf, part)
    verdict = identification.verdict(urdf, part, found, samples)
    print(f'a payload on {LINK} of {found.mass:.3f} kg, at {found.com.round(3)} m, is '
          f'{verdict.grade}')

    corrected = rbd_ros.with_payload(urdf, LINK, found.mass, found.com, found.inertia)
    errors = unexplained(urdf, other), unexplained(corrected, other)
    print(f'another motion: {100 * errors[0]:.0f} % before, {100 * errors[1]:.1f} % with it')
    return found, verdict, (before, *errors)


if __name__ == '__main__':
    main()
