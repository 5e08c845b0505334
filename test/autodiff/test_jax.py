# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of robots in JAX: values, derivatives of all orders and modes, errors."""

from itertools import product

from closed_robots import closed_robot
from covering import covering
from differentiable_robots import (
    arguments_of, DIFFERENCES, function_of_library, GRAVITY, LENGTH, MASS, NAMES, OF_LINK,
    OPERATIONS, operations_of, pendulum, ROBOTS, SHAPES, states, STEP, WITHOUT_RULE)
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch, ModelError, StateError
from rbd_ros.differentiable import backend_of, jacobians, run_batch
from robots import relative_error

jax = pytest.importorskip('jax')
jnp = pytest.importorskip('jax.numpy')
check_grads = pytest.importorskip('jax.test_util').check_grads
rbd_jax = pytest.importorskip('rbd_ros.jax')
jax.config.update('jax_enable_x64', True)

# Rounding, of a sum of a dozen products.
ROUNDING = 1e-12
# Second derivatives, by different sums of differences; those of accelerations are the worst.
SECOND = 1e-8
# Differences by check_grads with steps of 1e-5, of derivatives up to a few hundred.
CHECK = {'eps': 1e-5, 'atol': 1e-4, 'rtol': 1e-5}


def function(name, model):
    return getattr(rbd_jax, name)(model, *([model.link_names[-1]] if name in OF_LINK else []))


def joined(name, model):
    """Return the sine of a function's result, summed, as a function of one vector; a point."""
    x = [y[0] for y in states(model, 1)[:arguments_of(name)]]
    f, ends = function(name, model), np.cumsum([len(y) for y in x])[:-1]
    return lambda x: jnp.sum(jnp.sin(f(*jnp.split(x, ends)))), np.concatenate(x)


@pytest.mark.parametrize('name', covering(NAMES, *SHAPES))
def test_values_and_first_derivatives_equal_batch(name):
    model = ROBOTS['free']
    link = model.link_names[-1] if name in OF_LINK else None
    x = states(model, 3)[:arguments_of(name)]

    def run(kernel, *states):
        return run_batch(model, kernel, states, link)
    expected = jacobians(backend_of(model, name, link, np, run), name, *x)
    f = function(name, model)

    def entries(*x):
        y = f(*x)
        return y.reshape(-1), y
    for mode in (jax.jacrev, jax.jacfwd)[:len(x)]:
        found, values = jax.jit(jax.vmap(mode(entries, tuple(range(len(x))), has_aux=True)))(*x)
        for one, other in zip(found, expected):
            assert relative_error(one, other) < ROUNDING
    one = function_of_library(model, name, link)
    assert relative_error(values, [one(*y) for y in zip(*x)]) < ROUNDING


@pytest.mark.parametrize('name', WITHOUT_RULE)
def test_other_quantities_are_those_of_the_library_with_derivatives(name):
    model = ROBOTS['free']
    options, x, direction, expected, change = operations_of(model, name)
    function = getattr(rbd_jax, name)(model, *options)

    weights = np.random.default_rng(4).normal(size=len(expected))

    def weighted(*x):
        y = jnp.concatenate([jnp.ravel(y) for y in jax.tree.leaves(function(*x))])
        return y @ weights, y
    slopes, values = jax.jit(jax.grad(weighted, tuple(range(len(x))), has_aux=True))(*x)
    assert relative_error(values, expected) < OPERATIONS
    found = sum(float(y @ d) for y, d in zip(slopes, direction))
    assert abs(found - change @ weights) <= DIFFERENCES * np.abs(change) @ np.abs(weights)


def test_values_equal_batch_and_leading_axes_broadcast():
    model = ROBOTS['free']
    q, v, a = states(model, 6)
    expected = batch.inverse_dynamics(model, q, v, np.repeat(a[:1], 6, 0))
    f = rbd_jax.inverse_dynamics(model)
    found = f(q.reshape(2, 3, -1), v.reshape(2, 3, -1), a[0])
    assert relative_error(found, expected.reshape(2, 3, -1)) < ROUNDING
    for mapped in (jax.vmap(f, in_axes=(0, 0, None)), jax.jit(jax.vmap(f, (0, 0, None)))):
        assert relative_error(mapped(q, v, a[0]), expected) < ROUNDING


@pytest.mark.long
@pytest.mark.parametrize('kind, name', [
    ('mimics', 'forward_dynamics'), *product(['free'], SHAPES)])
def test_check_grads_to_the_second_order(kind, name):
    model = ROBOTS[kind]
    x = [y[0] for y in states(model, 1)[:arguments_of(name)]]
    check_grads(jax.jit(function(name, model)), x, order=2, **CHECK)


@pytest.mark.parametrize('kind, name', covering([
    ('ball', 'bias_torques'), ('ball', 'inverse_dynamics'), ('mimics and ball', 'mass_matrix')],
    ('ball', 'bias_torques')))
def test_second_derivatives_agree_in_all_modes_under_vmap_and_with_differences(kind, name):
    loss, x = joined(name, ROBOTS[kind])
    direction = np.random.default_rng(0).normal(size=x.shape)
    gradient = jax.grad(loss)

    @jax.jit
    def all_of_them(x):
        near = jax.vmap(gradient)(x + STEP * jnp.outer(jnp.array([1, -1, 2, -2]), direction))
        return ((8.0 * (near[0] - near[1]) - near[2] + near[3]) / (12.0 * STEP),
                jax.grad(lambda x: gradient(x) @ direction)(x),
                jax.grad(lambda x: jax.jvp(loss, (x,), (direction,))[1])(x),
                jax.vmap(jax.hessian(loss))(jnp.stack([x + 1.0, x]))[1] @ direction,
                jax.jacfwd(jax.jacfwd(loss))(x) @ direction)
    change, expected, *found = all_of_them(x)
    assert relative_error(expected, change) < DIFFERENCES
    assert [relative_error(one, expected) < SECOND for one in found] == [True] * 3


def test_derivatives_of_a_pendulum_are_those_of_its_sine():
    torque = rbd_jax.gravity_torques(pendulum())
    f = [lambda q: torque(jnp.reshape(q, 1))[0]]
    for mode in (jax.grad, jax.grad, jax.jacfwd):
        f.append(mode(f[-1]))
    for order, (one, sine) in enumerate(zip(f, (
            -np.sin(1.0), -np.cos(1.0), np.sin(1.0), np.cos(1.0)))):
        # Each order divides rounding by a step of 0.02.
        assert jax.jit(one)(1.0) == pytest.approx(MASS * GRAVITY * LENGTH * sine,
                                                  rel=1e-13 * 50 ** order)


def test_bad_states_give_nan_and_leave_the_others():
    model = ROBOTS['ball']
    x = states(model, 4)
    x[0][0, 3] = np.inf
    x[1][1, 0] = np.nan
    x[0][3, 1:5] = 0.0      # the quaternion
    f = rbd_jax.inverse_dynamics(model)
    found = jax.jit(f)(*x)
    assert np.all(np.isnan(np.asarray(found)[[0, 1, 3]]))
    assert relative_error(found[2], rbd_ros.inverse_dynamics(model, *(y[2] for y in x))) < ROUNDING
    gradient = jax.jit(jax.grad(lambda q: jnp.sum(f(q, *x[1:])[2])))(x[0])
    assert np.all(np.isfinite(gradient[2]))


def test_short_floats_are_computed_in_64_bits_and_returned_in_their_type():
    model = ROBOTS['ball']
    for dtype in (jnp.float32, jnp.float16, jnp.bfloat16):
        x = [y.astype(dtype) for y in states(model, 3)]
        tau = rbd_jax.inverse_dynamics(model)(*x)
        assert tau.dtype == dtype
        assert np.array_equal(tau, batch.inverse_dynamics(
            model, *(y.astype(float) for y in x)).astype(dtype))
    gradient = jax.jit(jax.grad(lambda q: jnp.sum(rbd_jax.gravity_torques(model)(q))))(x[0])
    assert gradient.dtype == dtype
    assert rbd_jax.gravity_torques(pendulum())(np.ones((3, 1), int)).dtype == np.float64
    assert rbd_jax.mass_matrix(model)(x[0].astype(float)).dtype == np.float64
    with jax.enable_x64(False), pytest.raises(StateError, match='jax_enable_x64'):
        rbd_jax.inverse_dynamics(model)(*x)


def test_configuration_rates_are_those_of_motions():
    model = ROBOTS['free']
    q, v, _ = states(model, 2)
    rate = rbd_jax.configuration_rate(model)
    # J T dq/dt is J v.
    found = jax.jit(lambda q, v: jax.jvp(
        rbd_jax.center_of_mass(model), (q,), (rate(q, v),))[1])(q, v)
    expected = np.einsum('tij,tj->ti', batch.com_jacobian(model, q), v)
    assert relative_error(found, expected) < ROUNDING


def test_closed_loops_have_first_derivatives():
    model, _, q, v, a, _ = closed_robot('five_bar')
    f = rbd_jax.inverse_dynamics(model)
    expected = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    assert relative_error(f(q, v, a), rbd_ros.inverse_dynamics(model, q, v, a)) < ROUNDING
    by_q, by_v = jax.jit(jax.jacrev(f, (0, 1)))(q, v, a)
    assert relative_error(by_v, expected.by_velocity) < ROUNDING
    assert relative_error(by_q[:, model.loops.own], expected.by_position) < ROUNDING
    with pytest.raises(ModelError, match='closed loops, with which there are no second'):
        jax.hessian(lambda q: jnp.sum(f(q, v, a)))(q)
    with pytest.raises(ModelError, match='closed loops, for which configuration_rate'):
        rbd_jax.configuration_rate(model)


def test_arguments_are_checked():
    model = pendulum()
    f = rbd_jax.bias_torques(model)
    q = np.zeros((4, 1))
    for arguments, message in [
            ((q, np.zeros((4, 2))), r'v has the shape \(4, 2\)'),
            ((0.0, q), r'q has the shape \(\)'),
            ((q, q[:3]), r'the leading axes of q \(4, 1\), v \(3, 1\) differ'),
            ((q, 1j * q), 'q, v must be real numbers, got complex128'),
            ((q,), r'bias_torques takes 2 arguments \(q, v\), got 1')]:
        with pytest.raises(StateError, match=message):
            f(*arguments)
        with pytest.raises(StateError, match=message):
            jax.jit(f)(*arguments)
    with pytest.raises(StateError, match=r'configuration_rate takes 2 arguments \(q, v\), got 1'):
        rbd_jax.configuration_rate(model)(q)
    with pytest.raises(ModelError, match="has no link 'hand'"):
        rbd_jax.body_jacobian(model, 'hand')
