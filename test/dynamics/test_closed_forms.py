# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots whose equations of motion a person can write down."""

import numpy as np
import rbd_ros
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint
from rbd_ros.model.se3 import pose

ROUNDING = 1e-13
Z = np.array([0.0, 0.0, 1.0])


def test_a_pendulum_takes_its_closed_form():
    mass, length, inertia = 1.3, 0.7, 0.05
    model = rbd_ros.model.build_model(
        'pendulum',
        [Link('base'), Link('rod', mass, np.array([0.0, 0.0, -length]), inertia * np.eye(3))],
        [Joint('hinge', 'revolute', 'base', 'rod', axis=np.array([0.0, 1.0, 0.0]))])
    for angle, rate, acceleration in ((0.3, 1.1, -0.4), (-2.0, 0.2, 3.0)):
        expected = ((inertia + mass * length ** 2) * acceleration
                    + mass * 9.81 * length * np.sin(angle))
        tau = rbd_ros.inverse_dynamics(model, [angle], [rate], [acceleration])
        assert abs(tau[0] - expected) < ROUNDING * 20
        assert abs(rbd_ros.coriolis_matrix(model, [angle], [rate])[0, 0]) < ROUNDING


def planar_2r(m1, m2, L1, L2):
    """Return Lynch and Park's 2R arm: point masses, gravity along -y."""
    def offset(x):
        return pose(np.eye(3), [x, 0.0, 0.0])

    return rbd_ros.model.build_model(
        '2R', [Link('base'), Link('one', m1, np.array([L1, 0.0, 0.0])),
               Link('two', m2, np.array([L2, 0.0, 0.0]))],
        [Joint('joint1', 'revolute', 'base', 'one', axis=Z),
         Joint('joint2', 'revolute', 'one', 'two', offset(L1), axis=Z)],
        gravity=[0.0, -9.81, 0.0])


def test_2r_arm_of_lynch_and_park_with_its_errata():
    m1, m2, L1, L2, g = 1.1, 0.7, 0.4, 0.3, 9.81
    model = planar_2r(m1, m2, L1, L2)
    rng = np.random.default_rng(0)
    for _ in range(5):
        (t1, t2), (w1, w2), (a1, a2) = rng.normal(size=(3, 2))
        c1, c2, s2, c12 = np.cos(t1), np.cos(t2), np.sin(t2), np.cos(t1 + t2)
        tau1 = (((m1 + m2) * L1 ** 2 + m2 * (2 * L1 * L2 * c2 + L2 ** 2)) * a1
                + m2 * (L1 * L2 * c2 + L2 ** 2) * a2
                - 2 * m2 * L1 * L2 * w1 * w2 * s2 - m2 * L1 * L2 * w2 ** 2 * s2
                + (m1 + m2) * L1 * g * c1 + m2 * g * L2 * c12)
        tau2 = (m2 * (L1 * L2 * c2 + L2 ** 2) * a1 + m2 * L2 ** 2 * a2
                + m2 * L1 * L2 * w1 ** 2 * s2 + m2 * g * L2 * c12)
        got = rbd_ros.inverse_dynamics(model, [t1, t2], [w1, w2], [a1, a2])
        assert np.allclose(got, [tau1, tau2], rtol=0.0, atol=20 * ROUNDING)
        # Christoffel symbols of the same M
        h = -m2 * L1 * L2 * s2
        assert np.allclose(rbd_ros.coriolis_matrix(model, [t1, t2], [w1, w2]),
                           [[h * w2, h * (w1 + w2)], [-h * w1, 0.0]], rtol=0.0, atol=ROUNDING)


def test_sliding_mass_has_the_gravity_force_m_g():
    model = rbd_ros.model.build_model(
        'lift', [Link('base', 5.0), Link('car', 2.0)],
        [Joint('rail', 'prismatic', 'base', 'car', axis=2.0 * Z)])
    assert np.allclose(rbd_ros.gravity_torques(model, [0.4]), [2.0 * 9.81])
    assert np.allclose(rbd_ros.center_of_mass(model, [0.7]), [0.0, 0.0, 0.2])
    assert np.allclose(rbd_ros.forward_dynamics(model, [0.0], [0.0], [0.0]), [-9.81])
