# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions in time: orders of the methods, energies, and bodies whose motion is known."""

from dataclasses import replace
from itertools import pairwise

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import KINDS, quaternion_matrix
from rbd_ros.model.positions.configurations import difference, integrate, random_configuration
from rbd_ros.model.positions.steps import quaternion_of_turn
from rbd_ros.simulation.integrators import coordinate_rate
from robots import random_tree

# Central differences with the step 1e-6.
STEP, DIFFERENCES = 1e-6, 1e-6
# What solve_ivp reaches in a tenth of a second with its tolerance of 1e-9 for each step.
SOLVED = 1e-7
ORDERS = [('explicit_euler', 1), ('semi_implicit_euler', 1), ('runge_kutta_4', 4)]
# Ball and free joints take v along axes that turn, the others along coordinates.
ROBOTS = [('spherical',), ('free',), ('universal', 'revolute', 'helical'),
          ('planar', 'free_euler_zyx')]


def heavy_tree(kinds, seed=2):
    """Return a random tree whose smallest inertias are not so small that it moves fast."""
    model = random_tree(seed, 3, kinds=kinds)
    return rebuild(model, joints=[replace(joint, armature=(0.2,) * joint.nv)
                                  for joint in model.joints])


def random_motion(model, seed):
    """Return a random q and v, and a torque that depends on everything."""
    rng = np.random.default_rng(seed)
    q, v, size = random_configuration(model, rng), *rng.normal(size=(2, model.nv))

    def torque(t, q, v):
        return size * np.sin(3.0 * t) - 0.3 * v

    return q, v, torque


@pytest.mark.parametrize('kinds', ROBOTS)
@pytest.mark.parametrize('method, order', ORDERS)
def test_methods_have_their_orders(method, order, kinds):
    model = heavy_tree(kinds)
    q, v, torque = random_motion(model, 0)
    v, end = 2.0 * v, 0.4
    exact = rbd_ros.simulate(model, q, v, torque, [0.0, end], method='solve_ivp')
    errors = []
    for steps in (4, 8, 16) if order == 4 else (100, 200, 400):
        motion = rbd_ros.simulate(model, q, v, torque, np.linspace(0.0, end, steps + 1),
                                  method=method)
        errors.append(np.linalg.norm(np.concatenate((
            difference(model, exact.q[-1], motion.q[-1]), motion.v[-1] - exact.v[-1]))))
    # The error is that of the method, not of the reference.
    assert errors[-1] > 1e-8
    for coarse, fine in pairwise(errors):
        assert abs(np.log2(coarse / fine) - order) < 0.35


@pytest.mark.parametrize('kinds', ROBOTS)
@pytest.mark.parametrize('method, order', ORDERS)
def test_energy_drift_vanishes_with_the_order_of_the_method(method, order, kinds):
    model = heavy_tree(kinds)
    q, v, torque = random_motion(model, 1)
    drifts = []
    for steps in (20, 40, 80):
        motion = rbd_ros.simulate(model, q, v, torque, np.linspace(0.0, 0.2, steps + 1),
                                  method=method)
        assert motion.energy_drift[0] == 0.0
        drifts.append(np.max(np.abs(motion.energy_drift)))
    assert np.log2(drifts[0] / drifts[2]) / 2 > order - 0.35


@pytest.mark.parametrize('method', [*(name for name, _ in ORDERS), 'solve_ivp'])
def test_energy_and_drift_are_those_of_the_motion(method):
    model = heavy_tree(('revolute',))
    q, v, _ = random_motion(model, 3)
    push = np.array([0.4, -1.0, 0.3])
    motion = rbd_ros.simulate(model, q, v, push, np.linspace(0.0, 0.1, 11), method=method)
    for k, (q_k, v_k) in enumerate(zip(motion.q, motion.v)):
        kinetic = 0.5 * v_k @ rbd_ros.mass_matrix(model, q_k) @ v_k
        potential = -model.mass * model.gravity @ rbd_ros.center_of_mass(model, q_k)
        assert abs(motion.energy[k] - kinetic - potential) < 1e-12 * (kinetic + abs(potential))
        # The work of constant torques on joints with v = dq/dt is tau (q - q0), exactly so where
        # the steps of q are dt times the velocity that the power is taken with.
        if method in ('explicit_euler', 'solve_ivp'):
            work = push @ (q_k - q)
            drift = motion.energy[k] - motion.energy[0] - work
            assert abs(motion.energy_drift[k] - drift) < SOLVED * (abs(work) + kinetic)


@pytest.mark.parametrize('seed', seeds(50))
def test_energy_changes_by_the_power_of_the_torques_for_all_kinds(seed):
    model = random_tree(seed, 6, kinds=list(KINDS))
    rng = np.random.default_rng(seed)
    q, v, a = random_configuration(model, rng), *rng.normal(size=(2, model.nv))

    def total(t):
        return sum(analysis.energy(model, integrate(model, q, v + 0.5 * t * a, t), v + t * a))

    rate = (total(STEP) - total(-STEP)) / (2 * STEP)
    power = v @ rbd_ros.inverse_dynamics(model, q, v, a)
    size = abs(power) + sum(map(abs, analysis.energy(model, q, v)))
    assert abs(rate - power) < DIFFERENCES * size


@pytest.mark.parametrize('method', ['runge_kutta_4', 'solve_ivp'])
@pytest.mark.parametrize('kind', ['spherical', 'free'])
def test_a_symmetric_top_precesses_as_in_the_textbooks(kind, method):
    # Without gravity: the momentum is constant in space, and about it the axis of the top turns.
    A, C = 0.3, 0.5
    model = (rbd_ros.ModelBuilder('top').link('world').link('top', 2.0, inertia=(A, A, C))
             .joint('base', kind, 'world', 'top').build(gravity=(0, 0, 0)))
    omega = np.array([1.0, 0.5, 3.0])
    drift = [0.2, -0.3, 0.1] if kind == 'free' else []
    q0, v0 = rbd_ros.neutral(model), np.concatenate((omega, drift))
    t = np.linspace(0.0, 2.0, 201)
    motion = rbd_ros.simulate(model, q0, v0, np.zeros(model.nv), t, method=method)
    H = np.array([A, A, C]) * omega
    spin = (C - A) / A * omega[2]
    for time, q, v in zip(t[::50], motion.q[::50], motion.v[::50]):
        c, s = np.cos(spin * time), np.sin(spin * time)
        turned = [c * omega[0] - s * omega[1], s * omega[0] + c * omega[1], omega[2]]
        assert np.allclose(v[:3], turned, rtol=0.0, atol=SOLVED)
        R = (quaternion_matrix(quaternion_of_turn(H / A * time))
             @ quaternion_matrix(quaternion_of_turn(np.array([0.0, 0.0, -spin * time]))))
        assert np.allclose(quaternion_matrix(q[:4]), R, rtol=0.0, atol=SOLVED)
        if kind == 'free':
            assert np.allclose(q[4:], np.multiply(drift, time), rtol=0.0, atol=SOLVED)
            assert np.allclose(R @ v[3:], drift, rtol=0.0, atol=SOLVED)


def test_coordinate_rate_inverts_the_derivative_of_the_exponential():
    model = random_tree(1, 4, kinds=('spherical', 'free', 'universal'))
    rng = np.random.default_rng(0)
    q, direction, rate = random_configuration(model, rng), *rng.normal(size=(2, model.nv))
    errors = []
    for size in (0.2, 0.1):
        xi = size * direction
        forward = integrate(model, q, xi + STEP * rate, 1.0)
        backward = integrate(model, q, xi - STEP * rate, 1.0)
        v = difference(model, backward, forward) / (2 * STEP)
        errors.append(np.max(np.abs(coordinate_rate(model, xi, v) - rate)))
    # In error by xi^4 / 720.
    assert errors[0] < np.linalg.norm(0.2 * direction) ** 4 / 100
    assert errors[0] > 8.0 * errors[1]


def test_torques_at_times_are_linear_in_between():
    model = heavy_tree(('revolute', 'spherical'))
    q, v, _ = random_motion(model, 5)
    t = np.linspace(0.0, 0.1, 11)
    rng = np.random.default_rng(5)
    start, slope = rng.normal(size=(2, model.nv))
    for method in ('runge_kutta_4', 'solve_ivp'):
        one = rbd_ros.simulate(model, q, v, start + np.outer(t, slope), t, method=method)
        other = rbd_ros.simulate(model, q, v, lambda t, q, v: start + slope * t, t, method=method)
        assert np.allclose(one.q, other.q, rtol=0.0, atol=1e-12)


def test_wrong_motions_are_refused():
    model = heavy_tree(('revolute',))
    zero, t = np.zeros(model.nv), [0.0, 0.1]
    for change, message in (({'t': [0.0, 0.0]}, 'increasing'), ({'t': [0.0]}, 'two or more'),
                            ({'method': 'leapfrog'}, 'leapfrog'),
                            ({'torque': np.zeros(7)}, 'torque'), ({'v0': zero[1:]}, 'v0 has'),
                            ({'torque': lambda t, q, v: [np.nan, 0.0, 0.0]}, 'torque'),
                            ({'torque': lambda t, q, v: np.zeros(7)}, 'torque')):
        arguments = {'q0': zero, 'v0': zero, 'torque': zero, 't': t, **change}
        with pytest.raises(rbd_ros.StateError, match=message):
            rbd_ros.simulate(model, **arguments)
    with pytest.raises(rbd_ros.StateError, match='v has'):
        analysis.energy(model, zero, zero[1:])
