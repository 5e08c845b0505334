# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Identification: mass, centre of mass and inertia of a payload from noisy torques.

An arm with an unknown payload swings all its joints for twenty seconds. Its positions are exact;
velocities, accelerations and torques are noisy. The payload explains the torques that remain
after subtracting those of the bare arm with its friction.

"""

import pathlib

import numpy as np
import rbd_ros

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
LINK = 'tool'
MASS, COM = 2.5, np.array([0.03, -0.02, 0.08])
INERTIA = np.array([[0.012, 0.001, 0.0], [0.001, 0.010, -0.002], [0.0, -0.002, 0.006]])
DURATION, RATE = 20.0, 50.0
# Standard deviations: rad/s, rad/s^2, and N m as a share of the joint's effort limit.
VELOCITY_NOISE, ACCELERATION_NOISE, TORQUE_NOISE = 1e-3, 1e-2, 5e-4


def swing(model, t):
    """Return q, v and a of a motion with two frequencies per joint."""
    q, v, a = np.zeros((3, len(t), model.nv))
    for k in range(model.nv):
        for omega, part in ((1.7 + 0.6 * k, 0.5), (4.3 + 0.7 * k, 0.5)):
            reach = part * 0.5 * model.velocity_limit[k] / omega
            q[:, k] += reach * np.sin(omega * t + k)
            v[:, k] += reach * omega * np.cos(omega * t + k)
            a[:, k] -= reach * omega ** 2 * np.sin(omega * t + k)
    return q, v, a


def record(model, rng):
    """Return the measurements of the loaded arm: q, v, a and tau."""
    loaded = rbd_ros.Workspace(rbd_ros.with_payload(model, LINK, MASS, COM, INERTIA))
    q, v, a = swing(model, np.arange(0.0, DURATION, 1.0 / RATE))
    tau = np.array([loaded.inverse_dynamics(*state) + rbd_ros.friction_torques(model, state[1])
                    for state in zip(q, v, a)])
    return (q, v + VELOCITY_NOISE * rng.normal(size=v.shape),
            a + ACCELERATION_NOISE * rng.normal(size=a.shape),
            tau + TORQUE_NOISE * model.effort_limit * rng.normal(size=tau.shape))


def main(seed=0):
    """Identify the payload, print it next to the true one, and return it."""
    model = rbd_ros.load_urdf(URDF)
    q, v, a, tau = record(model, np.random.default_rng(seed))
    load = rbd_ros.identification.identify_payload(model, LINK, q, v, a, tau)
    print(f'{len(q)} samples identify {load.rank} of 10 parameters')
    print('           estimate      truth')
    rows = [('mass, kg', load.mass, MASS)]
    rows += [(f'com {axis}, m', load.com[k], COM[k]) for k, axis in enumerate('xyz')]
    rows += [(f'I{a}{b}, kg m^2', load.inertia[i, j], INERTIA[i, j])
             for i, a in enumerate('xyz') for j, b in enumerate('xyz') if i <= j]
    for label, estimate, truth in rows:
        print(f'{label:12}{estimate:9.5f}{truth:11.5f}')
    return load


if __name__ == '__main__':
    main()
