# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Products of many regressors, their normal equations and R factors, without storing them."""

import tracemalloc

from closed_robots import closed_robot
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.model import inertial_parameters
from rbd_ros.model.joints import KINDS
from robots import example_urdf, load_quietly, random_tree

# Sums of a few thousand products, of the largest.
ROUNDING = 1e-12
MOVING = [kind for kind in KINDS if kind != 'fixed']
# Rotors are not among the parameters.
SCREWS = random_tree(1, 6)
ROBOTS = {'screws': rbd_ros.with_armature(SCREWS, {joint.name: 0.7 for joint, _, _
                                                   in SCREWS.moving_joints}),
          'all kinds': random_tree(3, 7, kinds=MOVING),
          'floating': rbd_ros.with_floating_base(random_tree(5, 9)),
          'mimic': load_quietly(example_urdf('panda.urdf')),
          'loops': closed_robot('delta').model}


@pytest.fixture(params=sorted(ROBOTS))
def model(request):
    """Return a robot."""
    return ROBOTS[request.param]


def some_states(model, count, seed=0):
    """Return Q, V, A and torques."""
    rng = np.random.default_rng(seed)
    Q = np.reshape([rbd_ros.random_configuration(model, rng) for _ in range(count)],
                   (count, model.nq))
    return (Q, *rng.normal(size=(3, count, model.nv)))


def stacked(model, Q, V, A, Tau):
    """Return the rows [Y, tau] of single calls."""
    return np.concatenate([np.column_stack((rbd_ros.torque_regressor(model, *state), tau))
                           for *state, tau in zip(Q, V, A, Tau)])


def assert_close(got, expected, tolerance=ROUNDING):
    """Compare arrays by the largest entry."""
    assert got.shape == expected.shape
    assert np.all(np.abs(got - expected) <= tolerance * np.max(np.abs(expected), initial=1e-300))


@pytest.mark.parametrize('count', [1, 7, 9, 40])
def test_products_are_those_of_the_regressors_of_single_calls(model, count):
    Q, V, A, X = some_states(model, count)
    Y = np.array([rbd_ros.torque_regressor(model, *state) for state in zip(Q, V, A)])
    # Such bodies need not exist.
    pi = np.random.default_rng(1).normal(size=Y.shape[2])
    assert_close(batch.torque_regressor_product(model, Q, V, A, pi), Y @ pi)
    assert_close(batch.torque_regressor_transposed_product(model, Q, V, A, X),
                 np.einsum('tij,ti->tj', Y, X))


@pytest.mark.parametrize('count', [0, 1, 9, 300])
@pytest.mark.parametrize('kind', [None, 'joint', 'state'])
def test_normal_equations_and_factors_are_those_of_the_stacked_regressors(model, count, kind):
    Q, V, A, Tau = some_states(model, count)
    weights = {None: None, 'joint': np.arange(1.0, model.nv + 1.0), 'state':
               np.random.default_rng(2).uniform(0.0, 2.0, (count, model.nv))}[kind]
    rows = (stacked(model, Q, V, A, Tau) if count
            else np.zeros((0, 1 + inertial_parameters(model).size)))
    if weights is not None:
        rows = rows * np.sqrt(np.broadcast_to(weights, Tau.shape)).reshape(-1, 1)
    expected = rows.T @ rows
    matrix, vector, square = batch.normal_equations(model, Q, V, A, Tau, weights=weights)
    assert_close(matrix, expected[:-1, :-1])
    assert_close(vector, expected[:-1, -1])
    assert abs(square - expected[-1, -1]) <= ROUNDING * max(expected[-1, -1], 1e-300)
    R = batch.regressor_factor(model, Q, V, A, Tau, weights=weights)
    assert not np.any(np.tril(R, -1))
    assert_close(R.T @ R, expected)


@pytest.mark.parametrize('function', [batch.normal_equations, batch.regressor_factor])
def test_threads_share_many_states_and_report_progress(function):
    model, told = ROBOTS['screws'], []
    states = some_states(model, 3 * batch.CHUNK + 11)

    def products(**options):
        found = function(model, *states, **options)
        return found[0] if isinstance(found, tuple) else found.T @ found

    expected = products(threads=1)
    assert_close(products(threads=3, progress=lambda *x: told.append(x)), expected)
    assert told[-1] == (len(states[0]), len(states[0])) and len(told) == 4
    Y = batch.torque_regressor(model, *states[:3])
    whole = np.einsum('tij,tik->jk', Y, Y)
    assert_close(expected[:whole.shape[0], :whole.shape[0]], whole)


@pytest.mark.parametrize('k', [0, 8, batch.CHUNK + 5])
def test_the_state_that_cannot_be_computed_is_named(k):
    model = ROBOTS['all kinds']
    states = some_states(model, batch.CHUNK + 20)
    weights, pi = np.ones(states[3].shape), inertial_parameters(model)
    for function in (batch.normal_equations, batch.regressor_factor):
        for place, value in ((1, np.nan), (3, np.inf), (4, -1.0), (4, np.nan)):
            wrong = [x.copy() for x in (*states, weights)]
            wrong[place][k, 1] = value
            with pytest.raises(rbd_ros.StateError, match=f'^state {k}: '):
                function(model, *wrong[:4], weights=wrong[4])
        for bad in (-np.ones(model.nv), np.ones(model.nv + 1), 'x', np.ones((3, model.nv))):
            with pytest.raises(rbd_ros.StateError, match='weights'):
                function(model, *states, weights=bad)
    wrong = [x.copy() for x in states]
    wrong[2][k, 0] = np.nan
    for function, last in ((batch.torque_regressor_product, pi),
                           (batch.torque_regressor_transposed_product, states[3])):
        with pytest.raises(rbd_ros.StateError, match=f'^state {k}: a of'):
            function(model, *wrong[:3], last)
    with pytest.raises(rbd_ros.StateError, match='pi'):
        batch.torque_regressor_product(model, *states[:3], pi[:-1])


@pytest.mark.parametrize('name', ['normal_equations', 'regressor_factor',
                                  'torque_regressor_product',
                                  'torque_regressor_transposed_product'])
def test_memory_does_not_grow_with_the_number_of_states(name):
    model = ROBOTS['screws']
    function, pi = getattr(batch, name), inertial_parameters(model)
    few, many = (some_states(model, 2 * batch.CHUNK, seed) for seed in (0, 1))
    many = [np.tile(x, (20, 1)) for x in many]

    def peak(states):
        last, out = states[3], {}
        if name == 'torque_regressor_product':
            last, out = pi, {'out': np.zeros(states[3].shape)}
        elif name == 'torque_regressor_transposed_product':
            out = {'out': np.zeros((len(states[0]), len(pi)))}
        # What a workspace keeps is kept from now on.
        function(model, *states[:3], last, **out, threads=1)
        tracemalloc.start()
        try:
            function(model, *states[:3], last, **out, threads=1)
            return tracemalloc.get_traced_memory()[1]
        finally:
            tracemalloc.stop()

    # The regressors of all states would take 80 MB.
    assert peak(many) <= 2 * peak(few) + 1e5
