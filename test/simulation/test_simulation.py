# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The simulated robot's integration."""

from dataclasses import replace

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint
from rbd_ros.simulation.simulator import Simulator
from robots import example_urdf, load_quietly, random_state


def pendulum(**options):
    """Return a point mass on a rod of one metre."""
    return rbd_ros.model.build_model(
        'pendulum', [Link('base'), Link('rod', 1.0, np.array([0.0, 0.0, -1.0]))],
        [Joint('hinge', 'revolute', 'base', 'rod', axis=np.array([0.0, 1.0, 0.0]), **options)])


def test_gravity_torques_hold_a_robot_still():
    model = load_quietly(example_urdf('ur10_robot.urdf'))
    q, _, _ = random_state(model, 0)
    q = np.clip(q, model.lower + 0.1, model.upper - 0.1)
    simulator = Simulator(model, q)
    for _ in range(500):
        simulator.advance(rbd_ros.gravity_torques(model, simulator.q))
    assert np.max(np.abs(simulator.q - q)) < 1e-9


def test_pendulum_swings_with_the_period_of_its_closed_form():
    # Small swings: 2 pi sqrt(l / g), longer by 1 + q0^2 / 16.
    start = 0.05
    simulator = Simulator(pendulum(), [start], step=1e-3)
    crossings, farthest = [], start
    while len(crossings) < 3:
        before = simulator.q[0]
        simulator.advance([0.0])
        now = simulator.q[0]
        farthest = max(farthest, abs(now))
        if before * now <= 0.0 < abs(before):
            crossings.append(simulator.time - 1e-3 * now / (now - before))
    period = 2.0 * np.pi * np.sqrt(1.0 / 9.81) * (1.0 + start ** 2 / 16.0)
    assert abs(crossings[2] - crossings[0] - period) < 3e-4
    # The explicit method would gain a hundredth.
    assert farthest < 1.002 * start


def test_energy_of_a_free_robot_stays_within_the_order_of_the_method():
    model = load_quietly(example_urdf('panda.urdf'))
    model = rebuild(model, joints=[
        replace(joint, lower=(), upper=(), damping=(), armature=()) for joint in model.joints])
    q, _, _ = random_state(model, 1)

    def drift(step):
        simulator = Simulator(model, q, step=step)

        def energy():
            return (0.5 * simulator.v @ rbd_ros.mass_matrix(model, simulator.q) @ simulator.v
                    - model.mass * model.gravity @ rbd_ros.center_of_mass(model, simulator.q))

        start = energy()
        simulator.advance(np.zeros(model.nv), round(0.2 / step))
        return abs(energy() - start)

    coarse, fine = drift(1e-3), drift(1e-4)
    # First order: a tenth of the step, a tenth of the error.
    assert fine < 0.15 * coarse


@pytest.mark.parametrize('lower, upper, stop', [(0.2, 0.4, 0.2), (0.2, np.inf, 0.2),
                                                (-0.4, -0.2, -0.2), (-np.inf, -0.2, -0.2)])
def test_joint_limits_are_stops_that_support_a_joint_and_release_it(lower, upper, stop):
    # Gravity pulls towards zero, against the one or the other.
    model = pendulum(lower=(lower,), upper=(upper,))
    simulator = Simulator(model, [1.5 * stop])
    simulator.advance([0.0], 600)
    assert simulator.q[0] == stop
    assert simulator.v[0] == 0.0
    simulator.advance([np.sign(stop) * 0.5 * 9.81], 100)
    assert abs(simulator.q[0]) > abs(stop)


def test_stops_act_next_to_joints_with_quaternions_or_without_limits():
    hinge = {'axis': (0.0, 1.0, 0.0), 'lower': -0.3, 'upper': 0.5}
    model = (rbd_ros.ModelBuilder('swing')
             .link('base').link('ball', mass=1.0, com=(0.1, 0.2, -0.3), inertia=(0.1, 0.1, 0.1))
             .link('wheel', mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
             .link('hand', mass=1.0, com=(0, 0, -1), inertia=(0.1, 0.1, 0.1))
             .joint('socket', 'spherical', 'base', 'ball')
             .joint('axle', 'continuous', 'ball', 'wheel', axis=(1.0, 0.0, 0.0))
             .joint('wrist', 'revolute', 'ball', 'hand', xyz=(0.5, 0, 0), **hinge)
             .build())
    simulator = Simulator(model, rbd_ros.neutral(model))
    seen = []
    for push in (20.0, -20.0):
        for _ in range(800):
            simulator.advance([0.0, 0.0, 0.0, 0.0, push])
            seen.append(simulator.q.copy())
            assert -0.3 <= simulator.q[-1] <= 0.5
            assert abs(np.linalg.norm(simulator.q[:4]) - 1.0) < 1e-12
    seen = np.array(seen)
    assert (seen[:, -1].max(), seen[:, -1].min()) == (0.5, -0.3)
    # No other coordinate is stopped, nor is any number lost.
    assert np.all(np.ptp(seen[:, :5], axis=0) > 0.2)


def test_brakes_bring_a_robot_to_rest_where_it_is():
    simulator = Simulator(pendulum(), [1.0])
    simulator.advance([0.0], 100)
    q = simulator.q.copy()
    assert simulator.v[0] < 0.0
    simulator.brake()
    assert np.array_equal(simulator.v, [0.0])
    assert np.array_equal(simulator.q, q)


def test_wrong_starts_and_torques_are_refused():
    with pytest.raises(rbd_ros.StateError):
        Simulator(pendulum(), [0.0, 0.0])
    with pytest.raises(rbd_ros.StateError, match='tau'):
        Simulator(pendulum(), [0.0]).advance([np.nan])
