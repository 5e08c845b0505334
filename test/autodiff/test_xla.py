# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How XLA calls the kernels, and the functions of JAX that replace them on other devices."""

import copy
import subprocess
import sys
import threading

from covering import covering
from differentiable_robots import ROBOTS, states
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, SingularError, StateError
from rbd_ros.batch import functions
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.workspace.workspace import workspace_of
from robots import random_tree, relative_error, with_mimics

jax = pytest.importorskip('jax')
jnp = pytest.importorskip('jax.numpy')
calls = pytest.importorskip('rbd_ros.jax.calls')
handler = pytest.importorskip('rbd_ros.jax.handler')
rbd_jax = pytest.importorskip('rbd_ros.jax')
jax.config.update('jax_enable_x64', True)

# Rounding of sums of some dozen products, in another order.
ROUNDING = 1e-11
TREES = {'nothing but axes': random_tree(2, 5), **ROBOTS}
# The functions of `rbd_ros.batch` that others are made of.
KERNELS = (
    'inverse_dynamics', 'forward_dynamics', 'gravity_torques', 'inverse_dynamics_derivatives',
    'forward_dynamics_derivatives', 'forward_kinematics', 'body_jacobian', 'jacobian_dot',
    'world_jacobian', 'world_jacobian_dot', 'center_of_mass', 'com_jacobian', 'com_jacobian_dot')
# How many of q, v and the third vector they take.
TAKEN = {name: 3 if 'dynamics' in name else 2 if name.endswith('dot') else 1 for name in KERNELS}


def link_of(model, name):
    of_link = 'jacobian' in name and not name.startswith('com')
    return model.link_names[-1] if of_link else None


def of_one_state(model, name, state):
    """Return the results of the function of one state, as a tuple."""
    function = getattr(rbd_ros, name, None) or getattr(analysis, name)
    link = link_of(model, name)
    found = function(model, *state, *([] if link is None else [link]))
    return found if isinstance(found, tuple) else (found,)


def assert_equal_to_states(model, name, results, arrays):
    """Assert that results, with two leading axes, are those of the states one by one."""
    for index in np.ndindex(arrays[0].shape[:-1]):
        expected = of_one_state(model, name, [x[index] for x in arrays])
        assert len(results) == len(expected)
        for x, y in zip(results, expected):
            assert x[index].shape == y.shape
            assert relative_error(x[index], y) < ROUNDING, name


@pytest.mark.parametrize('robot', covering(TREES, 'ball'))
def test_xla_calls_all_kernels(robot):
    model = TREES[robot]
    for name in KERNELS:
        arrays = [x.reshape(2, 3, -1) for x in states(model, 6)[:TAKEN[name]]]
        results = calls.call(model, name, arrays, link_of(model, name))
        assert_equal_to_states(model, name, results, arrays)


def test_vmap_and_empty_batches_give_results_of_the_right_shape():
    model = ROBOTS['ball']
    Q, V, A = states(model, 5)

    def derivatives(q, v, a):
        return calls.call(model, 'inverse_dynamics_derivatives', (q, v, a))
    # Every state with every velocity: (5, 5, nv, nv).
    results = jax.jit(jax.vmap(jax.vmap(derivatives, (None, 0, None)), (0, None, 0)))(Q, V, A)
    arrays = [np.broadcast_to(x, (5, 5, x.shape[-1])) for x in (Q[:, None], V[None], A[:, None])]
    assert_equal_to_states(model, 'inverse_dynamics_derivatives', results, arrays)
    assert [x.shape for x in derivatives(Q[:0], V[:0], A[:0])] == [(0, model.nv, model.nv)] * 3


def test_kernels_give_nan_for_bad_states_only():
    model, name = ROBOTS['ball'], 'inverse_dynamics_derivatives'
    arrays = states(model, 20)
    for array, row, value in zip(arrays, (3, 11, 12), (np.nan, np.inf, np.nan)):
        array[row, 0] = value
    bad = np.zeros(20, bool)
    bad[[3, 11, 12]] = True
    found = [np.asarray(x) for x in calls.call(model, name, arrays)]
    assert all(np.isnan(x[bad]).all() for x in found)
    good = np.flatnonzero(~bad)[:, None]    # with two leading axes
    assert_equal_to_states(model, name, [x[good] for x in found], [x[good] for x in arrays])


@pytest.mark.parametrize('name', [
    name for name in functions.__all__ if handler.block_width(ROBOTS['ball'], name)])
@pytest.mark.parametrize('robot', ['ball', 'free'])
def test_vector_jacobian_products_match_the_derivatives(robot, name, monkeypatch):
    model = ROBOTS[robot]
    # Two states at a time, in three parts.
    monkeypatch.setattr(handler, 'CACHED', 2 * handler.block_width(model, name))
    arrays, rng = states(model, 5), np.random.default_rng(3)
    rows = [np.hstack(of_one_state(model, name, [x[k] for x in arrays])) for k in range(5)]
    x, w = rng.normal(size=(5, 3 * model.nv)), rng.normal(size=(5, model.nv))
    found = calls.multiply(model, name, arrays, x, False)
    assert relative_error(found, [J @ y for J, y in zip(rows, x)]) < ROUNDING
    found = calls.multiply(model, name, arrays, w, True)
    assert relative_error(found, [y @ J for J, y in zip(rows, w)]) < ROUNDING
    arrays[1][2, 0] = np.nan
    found = np.asarray(calls.multiply(model, name, arrays, w, True))
    assert np.isnan(found[2]).all()
    assert relative_error(found[3:], [y @ J for J, y in zip(rows[3:], w[3:])]) < ROUNDING
    assert np.isfinite(found[:2]).all()


def test_a_gradient_takes_one_product_and_a_jacobian_one_evaluation():
    model = ROBOTS['free']
    arrays = [x[0] for x in states(model, 1)]
    f = rbd_jax.inverse_dynamics(model)

    def kernels(function):
        jaxpr = str(jax.make_jaxpr(function)(*arrays))
        return jaxpr.count('rbd_ros_jacobian_product'), jaxpr.count('ffi_call')
    gradient = jax.grad(lambda *x: jnp.sum(f(*x) ** 2), (0, 1, 2))
    assert kernels(gradient) == (1, 1)
    # All rows from one evaluation of the derivatives, and the result.
    assert kernels(jax.jacrev(f, (0, 1, 2))) == kernels(jax.jacfwd(f)) == (0, 2)
    exported = jax.export.export(
        jax.jit(gradient), platforms=['cpu'],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(handler.TARGET)])(*arrays)
    assert exported.mlir_module().count(f'@{handler.TARGET}(') == 2


def test_singular_states_give_nan():
    def function(x, out):
        if not np.isfinite(x).all():
            raise StateError('not finite')
        if (x > 5.0).any():
            raise SingularError('singular')
        out[:] = 2.0 * x
    x = np.array([[1.0], [6.0], [np.nan], [3.0], [7.0], [8.0], [4.0]])
    results = np.zeros_like(x)
    handler.compute_rows(function, [x], [results])
    np.testing.assert_array_equal(results[:, 0], [2.0, np.nan, np.nan, 6.0, np.nan, np.nan, 8.0])


def test_other_errors_reach_the_user(monkeypatch):
    model = ROBOTS['ball']
    arrays = states(model, 2)
    function = jax.jit(lambda *x: calls.call(model, 'inverse_dynamics', x))
    function(*arrays)

    def fails(*_, **__):
        raise MemoryError('no room')
    monkeypatch.setattr(handler, 'compute_rows', fails)
    with pytest.raises((ValueError, jax.errors.JaxRuntimeError),
                       match='rbd_ros: MemoryError: no room'):
        function(*arrays)

    def compiles(x, out):
        raise KernelNotReady(lambda: False)
    monkeypatch.undo()
    with pytest.raises(KernelNotReady):
        handler.compute_rows(compiles, [arrays[0]], [arrays[0]])


def test_function_numbers_differ_between_robots():
    model = with_mimics(ROBOTS['ball'], 0)
    number = handler.number_of(model, 'inverse_dynamics', None)
    # What is computed once and kept is not a part of the robot.
    assert model.spanning_tree is not model and model.coordinates.G.any()
    assert number == handler.number_of(copy.deepcopy(model), 'inverse_dynamics', None)
    heavier = rbd_ros.with_payload(model, model.link_names[-1], 1e-6, (0.0, 0.0, 0.0))
    assert len({number, handler.number_of(heavier, 'inverse_dynamics', None),
                handler.number_of(model, 'forward_dynamics', None),
                handler.number_of(model, 'world_jacobian', 'link1'),
                handler.number_of(model, 'world_jacobian', 'link2')}) == 5


def test_threads_of_xla_keep_their_buffers(monkeypatch):
    model = ROBOTS['ball']
    arrays = [jnp.asarray(x) for x in states(model, 64)]
    compute, seen = handler.compute_rows, []

    def observed(*arguments):
        compute(*arguments)
        seen.append((threading.get_ident(), id(workspace_of(model))))
    monkeypatch.setattr(handler, 'compute_rows', observed)
    # XLA runs programs with reductions in threads of its own.
    function = jax.jit(lambda *x: [jnp.sum(y, 1) for y in calls.call(
        model, 'inverse_dynamics_derivatives', x)])
    for _ in range(20):
        jax.block_until_ready(function(*arrays))
    assert {thread for thread, _ in seen} - {threading.get_ident()}
    assert len(set(seen)) == len({thread for thread, _ in seen})


def test_a_process_can_end_while_xla_computes():
    program = """
import jax, jax.numpy as jnp, rbd_ros, rbd_ros.jax
jax.config.update('jax_enable_x64', True)
arm = rbd_ros.ModelBuilder('arm').link('base').link('rod', mass=1.0, com=(0.0, 0.0, 1.0))
torques = rbd_ros.jax.gravity_torques(arm.joint('swing', 'revolute', 'base', 'rod').build())
function = jax.jit(lambda q: jnp.sum(torques(q) @ jnp.ones((1, 9)), 1))
for _ in range(50):
    result = function(jnp.ones((50_000, 1)))
"""
    subprocess.run([sys.executable, '-c', program], check=True, timeout=60)


# XLA compiles the loop of each function for a second.
@pytest.mark.parametrize('robot, name', covering([
    ('ball', 'inverse_dynamics'), ('ball', 'world_jacobian_dot'), ('mimics', 'com_jacobian_dot')],
    ('ball', 'world_jacobian_dot')))
def test_straight_line_code_equals_the_kernels(robot, name):
    model = ROBOTS[robot]
    arrays = [x.reshape(2, 1, -1) for x in states(model, 2)[:TAKEN[name]]]
    results = calls.straight_line(model, name, link_of(model, name))(*arrays)
    assert_equal_to_states(model, name, results, arrays)


def test_all_kernels_have_straight_line_code():
    model = ROBOTS['mimics']
    for name in KERNELS:
        link, arrays = link_of(model, name), states(model, 2)[:TAKEN[name]]
        shapes = jax.eval_shape(calls.straight_line(model, name, link), *arrays)
        assert shapes == jax.eval_shape(calls._kernels(model, name, link), *arrays), name


def test_other_devices_get_straight_line_code(monkeypatch):
    model = ROBOTS['ball']
    arrays = [jnp.asarray(x) for x in states(model, 2)]
    monkeypatch.setattr(jax, 'default_backend', lambda: 'gpu')
    function = jax.jit(lambda *x: calls.call(model, 'inverse_dynamics', x)[0])
    expected = [rbd_ros.inverse_dynamics(model, *x) for x in zip(*states(model, 2))]
    assert relative_error(function(*arrays), expected) < ROUNDING
    text = {platform: jax.export.export(
        function, platforms=[platform],
        disabled_checks=[jax.export.DisabledSafetyCheck.custom_call(handler.TARGET)])(
            *arrays).mlir_module() for platform in ('cpu', 'cuda')}
    assert f'@{handler.TARGET}(' in text['cpu'] and 'stablehlo.while' not in text['cpu']
    assert f'@{handler.TARGET}(' not in text['cuda'] and 'stablehlo.while' in text['cuda']
    product = jax.jit(lambda *x: calls.multiply(
        model, 'inverse_dynamics_derivatives', x, jnp.ones((2, model.nv)), True))
    text = jax.export.export(product, platforms=['cuda'])(*arrays).mlir_module()
    assert f'@{handler.TARGET}(' not in text and 'stablehlo.while' in text
