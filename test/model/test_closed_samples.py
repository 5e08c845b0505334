# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Samples of independent joints are closed one after the other, and open states are errors."""

from closed_robots import CASES, closed_robot
import numpy as np
import pytest
import rbd_ros
from rbd_ros import StateError
from rbd_ros.model.positions.configurations import closed_along, independent_positions
from rbd_ros.simulation.simulator import Simulator

# Gaps of closed loops, m and rad, and two solutions by Newton's method.
CLOSED = 1e-10
ROUNDING = 1e-9


@pytest.fixture(params=CASES)
def robot(request):
    return closed_robot(request.param)


def test_open_configurations_are_errors_that_state_the_gap(robot):
    model, oracle, q, v, _, _ = robot
    start = rbd_ros.integrate(model, q, v, 0.01)
    step = np.zeros(oracle.tree.nv)
    step[[k for k in range(len(step)) if k not in oracle.independent]] = 1e-3
    away = rbd_ros.integrate(oracle.tree, q, step, 1.0)
    assert oracle.gap(away) > 1e-5
    t = np.array([0.0, 0.01])
    for call in (lambda: rbd_ros.integrate(model, away, v, 0.01),
                 lambda: rbd_ros.difference(model, away, q),
                 lambda: rbd_ros.difference(model, q, away),
                 lambda: rbd_ros.batch.integrate(model, away[None], v[None], 0.01),
                 lambda: rbd_ros.simulate(model, away, v, 0.0 * v, t),
                 lambda: Simulator(model, away)):
        with pytest.raises(StateError, match=r'are open.*: constraint .* is open by .* mm.*; '
                           r'close them with rbd_ros\.model\.normalize'):
            call()
    # What functions of dynamics accept is closed.
    near = rbd_ros.integrate(oracle.tree, q, 1e-5 * step, 1.0)
    if 1e-9 < oracle.gap(near) < 3e-7:
        rbd_ros.mass_matrix(model, near)
        moved = rbd_ros.integrate(model, near, v, 0.01)
        assert oracle.gap(moved) < CLOSED and np.max(np.abs(moved - start)) < 1e-6


@pytest.mark.parametrize('name', ['four_bar', 'palletizer', 'delta', 'mimics'])
def test_samples_are_closed_one_after_the_other(name):
    model, oracle, *_ = closed_robot(name)
    own, q = independent_positions(model), rbd_ros.neutral(model)
    t = np.linspace(0.0, 1.0, 12)[:, None]
    X = q[own] + 0.1 * np.sin(3.0 * t * np.arange(1, len(own) + 1))
    X[8:] += 0.35       # a jump, longer than a stride
    found = closed_along(model, X)
    assert np.array_equal(found[:, own], X)
    for x, expected in zip(X, found):
        start = q[own]
        for part in np.linspace(0.0, 1.0, 5)[1:]:
            q = q.copy()
            q[own] = start + part * (x - start)
            q = oracle.close(q, oracle.independent)
        assert oracle.gap(expected) < CLOSED
        assert np.max(np.abs(q - expected)) < ROUNDING


def test_samples_of_joints_with_quaternions_are_closed():
    model, oracle, _, v, *_ = closed_robot('balls')
    Q = [rbd_ros.neutral(model)]
    for _ in range(5):
        Q.append(rbd_ros.integrate(model, Q[-1], v, 0.002))
    own = independent_positions(model)
    found = closed_along(model, np.array(Q)[:, own])
    assert np.max(np.abs(found - Q)) < ROUNDING
    assert max(oracle.gap(q) for q in found) < CLOSED
