# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots, states and central differences for the tests of derivatives."""

from covering import seeds
import numpy as np
import pytest
from rbd_ros.model.joints import KINDS
from rbd_ros.model.positions.configurations import integrate, random_configuration
from robots import example_urdf, load_quietly, random_tree

# Step of central differences: truncation falls with its square, rounding grows with its inverse.
STEP = 1e-5

# Smaller values, in SI units, may be rounding errors of zero.
SMALL = 1e-3

TREES = seeds(50)
REAL = ('panda.urdf', 'ur5_robot.urdf', 'talos_reduced.urdf')
ALL_KINDS = list(KINDS)
SCREWS = [kind for kind in KINDS if KINDS[kind].is_screws]


def tree(seed, kinds=ALL_KINDS):
    """Return a small random tree of the given kinds of joints, and a state of it."""
    model = random_tree(seed, 3 + seed % 4, kinds=kinds)
    rng = np.random.default_rng(seed)
    return model, random_configuration(model, rng), *rng.normal(size=(2, model.nv))


def real_robot(name):
    """Return a robot of example-robot-data, and a state of it."""
    model = load_quietly(example_urdf(name))
    rng = np.random.default_rng(1)
    return model, random_configuration(model, rng), *rng.normal(size=(2, model.nv))


def trees_and_robots(function):
    """Parametrize a test over random trees of all kinds of joints and real robots."""
    cases = [pytest.param(tree, one.values, id=f'tree{one.values[0]}', marks=one.marks)
             for one in TREES]
    cases += [pytest.param(real_robot, (name,), id=name) for name in REAL]
    return pytest.mark.parametrize('make, arguments', cases)(function)


def rate(f, model, q, v):
    """Return the derivative of f(q) along the motion with v."""
    return (f(integrate(model, q, v, STEP)) - f(integrate(model, q, v, -STEP))) / (2 * STEP)


def by_q(f, model, q):
    """Return the derivatives of f(q) along each direction of v, stacked along the first axis."""
    return np.array([rate(f, model, q, unit) for unit in np.eye(model.nv)])


def second_order(model, q, v, a, t):
    """Return q and v at time t on a path with velocity v + t a."""
    # Up to t^2 this is the motion with the mean velocity, on any manifold.
    return integrate(model, q, v + 0.5 * t * a, t), v + t * a


def time_rate(f, model, q, v, a):
    """Return the time derivative of f(q, v) on a path with acceleration a."""
    forward, backward = (f(*second_order(model, q, v, a, t)) for t in (STEP, -STEP))
    return (forward - backward) / (2 * STEP)


def error(got, expected):
    """Return the largest difference as a share of the largest entry (at least `SMALL`)."""
    expected = np.asarray(expected)
    return np.max(np.abs(got - expected), initial=0.0) / max(
        np.max(np.abs(expected), initial=0.0), SMALL)


def leading(x):
    """Return an array with its last axis, that of the coordinate, moved to the front."""
    return np.moveaxis(x, -1, 0)
