# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Jacobians of functions with respect to q, v and input, and their derivatives, in NumPy."""

from functools import partial
from itertools import product

from closed_robots import closed_robot
from covering import covering
from differentiable_robots import (
    arguments_of, function_of_library, GRAVITY, KINDS_AND_NAMES, LENGTH, MASS, NAMES, OF_LINK,
    pendulum, ROBOTS, SHAPES, states)
import numpy as np
import pytest
import rbd_ros
from rbd_ros import ModelBuilder, ModelError
from rbd_ros.differentiable import (
    backend_of, changes, configuration_rate, jacobians, run_batch, value)
from rbd_ros.model.positions.steps import quaternion_joints
from robots import relative_error

# Sums of products of a few dozen numbers, of robots whose M has condition numbers below 1e4.
ROUNDING = 1e-11
# Differences of the fourth order: truncation and rounding, 3e-9 on the worst robot.
STEP, DIFFERENCES = 3e-4, 1e-8
# Differences of the eighth order, whose rounding is divided by a step of 0.02.
SECOND = 1e-10


def robot(model, name):
    link = model.link_names[-1] if name in OF_LINK else None

    def run(kernel, *states):
        return run_batch(model, kernel, states, link)
    return backend_of(model, name, link, np, run)


def difference(f, x):
    """Return the derivative of f(x(t)) with respect to t at 0, of the fourth order."""
    def central(t):
        return (f(*x(t)) - f(*x(-t))) / (2.0 * t)
    return (4.0 * central(STEP) - central(2.0 * STEP)) / 3.0


def line(x, directions):
    """Return a function of t, the points x + t d."""
    return lambda t: [y + t * d for y, d in zip(x, directions)]


@pytest.mark.parametrize('kind, name', KINDS_AND_NAMES)
def test_derivatives_hold_in_all_directions(kind, name):
    model = ROBOTS[kind]
    case, rng = robot(model, name), np.random.default_rng(1)
    xs = states(model, 2)[:arguments_of(name)]
    one = function_of_library(model, name, model.link_names[-1])
    assert relative_error(value(case, name, *xs), [one(*x) for x in zip(*xs)]) < ROUNDING
    # Any change of q, also of the length of a quaternion.
    for k in range(2):
        x = [y[k] for y in xs]
        J = jacobians(case, name, *x)
        directions = [rng.normal(size=y.shape) for y in x]
        found = sum(A @ d for A, d in zip(J, directions))
        expected = difference(lambda *y: one(*y).ravel(), line(x, directions))
        assert relative_error(found, expected) < DIFFERENCES
        assert [A.shape for A in J] == [(expected.size, len(y)) for y in x]


@pytest.mark.parametrize('kind, name', KINDS_AND_NAMES)
def test_second_derivatives_are_differences_of_the_first_and_symmetric(kind, name):
    model = ROBOTS[kind]
    case, rng = robot(model, name), np.random.default_rng(2)
    x = [y[0] for y in states(model, 1)[:arguments_of(name)]]
    matrices = partial(jacobians, case, name)
    d, e = ([rng.normal(size=y.shape) for y in x] for _ in range(2))
    found = np.hstack(changes(case, matrices, x, d))
    expected = difference(lambda *y: np.hstack(matrices(*y)), line(x, d))
    assert relative_error(found, expected) < DIFFERENCES
    other = np.hstack(changes(case, matrices, x, e))
    assert relative_error(found @ np.concatenate(e), other @ np.concatenate(d)) < 10.0 * SECOND


def test_second_derivatives_of_a_pendulum_are_those_of_its_sine():
    model = pendulum()
    case = robot(model, 'gravity_torques')
    q = np.linspace(-3.0, 3.0, 7)[:, None]
    # Of any size, also zero.
    for size in (1.0, 1e6, 1e-6, 0.0):
        found, = changes(case, partial(jacobians, case, 'gravity_torques'), [q],
                         [np.full_like(q, size)])
        expected = size * MASS * GRAVITY * LENGTH * np.sin(q)[..., None]
        assert relative_error(found, expected) < SECOND


def test_second_derivatives_where_a_joint_drives_others_by_a_gear():
    # The fast link turns by 100 q.
    arm = ModelBuilder('gear').link('base')
    for name, mimic in (('slow', None), ('fast', ('slow', 100.0, 0.0))):
        arm.link(name, mass=MASS, com=(0.0, 0.0, LENGTH), inertia=np.zeros((3, 3)))
        arm.joint(name, 'revolute', 'base', name, axis=(0.0, 1.0, 0.0),
                  **({'mimic': mimic} if mimic else {}))
    model = arm.build()
    case, q = robot(model, 'gravity_torques'), np.array([[0.3]])
    found, = changes(case, partial(jacobians, case, 'gravity_torques'), [q], [np.ones((1, 1))])
    expected = MASS * GRAVITY * LENGTH * (np.sin(0.3) + 100.0 ** 3 * np.sin(30.0))
    assert relative_error(found, expected) < SECOND


@pytest.mark.parametrize('size', [1e-3, 1e3])
def test_second_derivatives_do_not_depend_on_the_lengths_of_quaternions(size):
    model = ROBOTS['free']
    case, scale = robot(model, 'mass_matrix'), np.ones(model.nq)
    (_, i, _), = quaternion_joints(model)
    scale[i.start:i.start + 4] = size
    matrices = partial(jacobians, case, 'mass_matrix')
    q, d = states(model, 1)[0], np.zeros((1, model.nq))
    d[0, i.start:i.start + 4] = 0.4, -0.2, 0.3, 0.1
    expected, = changes(case, matrices, [q], [d])
    found, = changes(case, matrices, [q * scale], [d * scale])
    assert relative_error(found * scale, expected) < SECOND


@pytest.mark.parametrize('loop, name', covering(
    product(['five_bar', 'mimics and balls'], NAMES),
    *(('five_bar', name) for name in SHAPES if name != 'forward_dynamics'),
    ('mimics and balls', 'center_of_mass')))
def test_derivatives_along_motions_that_keep_loops_closed(loop, name):
    model, _, q, v, a, _ = closed_robot(loop)
    case, rng = robot(model, name), np.random.default_rng(3)
    x = [q, v, a][:arguments_of(name)]
    directions = rng.normal(size=(len(x), model.nv))
    one = function_of_library(model, name, model.link_names[-1])

    def point(t):
        return [rbd_ros.integrate(model, q, directions[0], t),
                *(y + t * d for y, d in zip(x[1:], directions[1:]))]
    along_q = difference(lambda q, *_: q, point)
    found = sum(A @ d for A, d in zip(jacobians(case, name, *x), [along_q, *directions[1:]]))
    assert relative_error(found, difference(lambda *y: one(*y).ravel(), point)) < DIFFERENCES
    with pytest.raises(ModelError, match='has closed loops, with which there are no second'):
        changes(case, partial(jacobians, case, name), x, x)


def test_configuration_rate_is_the_difference_of_two_steps():
    for model in ROBOTS.values():
        Q, V, _ = states(model, 3)
        unit = np.array([rbd_ros.integrate(model, q, np.zeros(model.nv), 0.0) for q in Q])
        before, after = (np.array([rbd_ros.integrate(model, q, v, h) for q, v in zip(unit, V)])
                         for h in (-1e-5, 1e-5))
        # Steps leave errors of their square, and rounding over them.
        found = configuration_rate(model, np, unit, V)
        assert relative_error(found, (after - before) / 2e-5) < 1e-9
