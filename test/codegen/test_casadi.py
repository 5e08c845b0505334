# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Functions in CasADi, and their derivatives, are those of the library."""

from functools import cache
from inspect import signature
from itertools import product
import subprocess

from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, casadi as functions, codegen
from rbd_ros.model import inertial_parameters, normalize
from robots import random_tree, relative_error, with_mimics

casadi = pytest.importorskip('casadi')

# Rounding of the same operations in another order.
ROUNDING = 1e-12
STEP = 1e-5      # of differences, s
# Derivatives of accelerations contain M^-1 three times.
DERIVATIVES = 1e-9
SCREWS = ('revolute', 'prismatic', 'helical', 'universal', 'euler_zyx', 'cylindrical')
ROBOTS = {
    'screws': random_tree(2, 4, SCREWS),
    'quaternions': random_tree(2, 2, ('spherical', 'free')),
    'mimics': with_mimics(random_tree(3, 3, ('revolute', 'prismatic')), 4)}
DYNAMICS = ('inverse_dynamics', 'forward_dynamics')


@cache
def dynamics(robot, name):
    """Return inverse or forward dynamics of a robot."""
    return getattr(functions, name)(ROBOTS[robot])


def dense(x):
    """Return a result of CasADi as an array, one-dimensional if it is a column."""
    x = casadi.DM(x).full()
    return x[:, 0] if x.shape[1] == 1 else x


def state(model, seed):
    """Return q, with quaternions of any length, and three vectors of velocities."""
    rng = np.random.default_rng(seed)
    return rng.normal(size=model.nq), *rng.normal(size=(3, model.nv))


def jacobians(function, kind):
    """Return a function of the Jacobians with respect to each input, for symbols of a kind."""
    inputs = [kind.sym(function.name_in(k), *function.size_in(k))
              for k in range(function.n_in())]
    output = function(*inputs)
    return casadi.Function('jacobians', inputs, [casadi.jacobian(output, x) for x in inputs])


@pytest.mark.parametrize('robot', ROBOTS)
def test_the_pose_of_an_inner_link_equals_the_library(robot):
    model, q = ROBOTS[robot], state(ROBOTS[robot], 0)[0]
    found = dense(functions.forward_kinematics(model, model.link_names[1])(q))
    assert relative_error(found, rbd_ros.forward_kinematics(model, q)[1]) < ROUNDING


@pytest.mark.parametrize('robot', covering(ROBOTS, 'quaternions'))
def test_every_function_of_casadi_equals_the_library(robot):
    model = ROBOTS[robot]
    given = dict(zip(('q', 'v', 'a', 'tau'), state(model, 3)))
    given |= {'v_r': given['a'], 'a_r': given['tau']}
    options = {'link': model.link_names[-1], 'prescribed': np.arange(model.nv) % 2 == 0}
    # Of one link, and of links that move in six directions: tested elsewhere.
    others = {'configuration_rate', 'forward_kinematics', 'task_space_dynamics'}
    assert len(functions.__all__) > 20 and others < set(functions.__all__)
    for name in sorted({*functions.__all__} - others):
        make = getattr(functions, name)
        own = [options[one] for one in list(signature(make).parameters)[1:]]
        function = make(model, *own)
        library = getattr(rbd_ros, name, None) or getattr(analysis, name)
        labels = [function.name_in(k) for k in range(function.n_in())]
        assert labels == [x for x, one in signature(library).parameters.items()
                          if x in given and one.default is one.empty], name
        inputs = [given[x] for x in labels]
        expected = library(model, *inputs, *own)
        found = function.call(inputs)
        for x, y in zip(found, expected if isinstance(expected, tuple) else [expected]):
            assert relative_error(casadi.DM(x).full().reshape(y.shape), y) < 1e-11, name
        assert function.name() == name


@pytest.mark.parametrize('robot', ROBOTS)
def test_rate_of_the_configuration_is_the_difference_of_two_steps(robot):
    model = ROBOTS[robot]
    q, v = state(model, 1)[:2]
    q = rbd_ros.integrate(model, q, v, 0.0)     # with quaternions of unit length
    found = dense(functions.configuration_rate(model)(q, v))
    expected = (rbd_ros.integrate(model, q, v, STEP) - rbd_ros.integrate(model, q, v, -STEP)) / (
        2.0 * STEP)
    # Steps leave errors of their square, and rounding over them.
    assert relative_error(found, expected) < 1e-9


@pytest.mark.parametrize('robot, name', covering(
    product(ROBOTS, DYNAMICS), *product(['quaternions', 'mimics'], DYNAMICS)))
def test_jacobians_are_the_derivatives_of_the_library(robot, name):
    model = ROBOTS[robot]
    q, v, x, rate = state(model, 2)
    function = dynamics(robot, name)
    expected = getattr(rbd_ros, f'{name}_derivatives')(model, q, v, x)
    q_dot = dense(functions.configuration_rate(model)(q, rate))
    # Calls in MX take the Jacobian of the library; in SX, CasADi differentiates the operations.
    both = [[casadi.DM(J).full() for J in jacobians(function, kind)(q, v, x)]
            for kind in (casadi.MX, casadi.SX)]
    for by_q, by_v, by_x in both:
        assert relative_error(by_v, expected[1]) < DERIVATIVES
        assert relative_error(by_x, expected[2]) < DERIVATIVES
        assert relative_error(by_q @ q_dot, expected[0] @ rate) < DERIVATIVES
    # Entry by entry: also where a quaternion changes its length.
    assert both[0][0].shape == (model.nv, model.nq)
    assert relative_error(both[0][0], both[1][0]) < DERIVATIVES
    unit = normalize(model, q)
    if model.nq > model.nv:
        assert np.max(np.abs(unit - q)) > 0.1
        for joint, i, _ in model.moving_joints:
            if joint.kind in ('spherical', 'free'):
                radial = np.zeros(model.nq)
                radial[i.start:i.start + 4] = q[i.start:i.start + 4]
                assert np.max(np.abs(both[0][0] @ radial)) < DERIVATIVES * np.abs(both[0][0]).max()


def called(function):
    """Return the names of the functions that a function of MX calls."""
    return {function.instruction_MX(k).which_function().name()
            for k in range(function.n_instructions())
            if function.instruction_id(k) == casadi.OP_CALL}


@pytest.mark.parametrize('name', DYNAMICS)
def test_mx_jacobians_use_library_derivatives_and_gradients_those_of_casadi(name):
    model = ROBOTS['screws']
    function = dynamics('screws', name)
    assert 'jac_' + name in called(jacobians(function, casadi.MX))
    plain = codegen.casadi_function(codegen.trace(model, name))
    assert 'jac_' + name not in called(jacobians(plain, casadi.MX))
    q, v, x = (casadi.MX.sym(label, model.nv) for label in 'qvx')
    gradient = casadi.Function('gradient', [q, v, x], [casadi.gradient(function(q, v, x)[0], q)])
    assert called(gradient) == {f'adj1_{name}'}


@pytest.mark.parametrize('name', DYNAMICS)
def test_hessians_are_differences_of_the_derivatives_of_the_library(name):
    model = ROBOTS['screws']
    q, v, x, weights = state(model, 3)
    function = dynamics('screws', name)
    symbols = [casadi.MX.sym(label, model.nv) for label in 'qvx']
    weighted = casadi.dot(weights, function(*symbols))
    both = casadi.vertcat(*symbols)
    hessian = casadi.Function('hessian', symbols, [casadi.hessian(weighted, both)[0]])
    found = dense(hessian(q, v, x))
    derivatives = getattr(rbd_ros, f'{name}_derivatives')

    def gradient(y):
        return np.hstack(derivatives(model, *np.split(y, 3))).T @ weights

    at, step = np.concatenate((q, v, x)), 1e-4
    expected = np.array([(gradient(at + step * e) - gradient(at - step * e)) / (2.0 * step)
                         for e in np.eye(3 * model.nv)])
    # Differences: an error of step^2, and rounding divided by the step.
    assert relative_error(found, expected) < 1e-6


def test_derivatives_with_respect_to_inertial_parameters_are_the_regressor():
    model = ROBOTS['quaternions']
    q, v, a = state(model, 7)[:3]
    function = codegen.casadi_function(codegen.trace(model, 'inverse_dynamics',
                                                     parameters=['pi']))
    *_, Y = jacobians(function, casadi.SX)(q, v, a, inertial_parameters(model))
    assert relative_error(casadi.DM(Y).full(), rbd_ros.torque_regressor(model, q, v, a)
                          ) < ROUNDING


def test_entries_that_are_always_zero_are_not_stored():
    two = rbd_ros.ModelBuilder('two').link('base')
    for name in 'ab':
        two.link(name, 1.0, com=(1.0, 0.0, 0.0), inertia=np.eye(3))
        two.joint(name, 'revolute', 'base', name, axis=(0.0, 0.0, 1.0))
    model = two.build()
    assert functions.mass_matrix(model).nnz_out(0) == 2
    # Columns are dense, as acados and others expect.
    assert functions.gravity_torques(model).nnz_out(0) == 2


def test_the_c_that_casadi_writes_is_the_function(tmp_path, monkeypatch):
    monkeypatch.chdir(tmp_path)
    model = ROBOTS['quaternions']
    function = dynamics('quaternions', 'inverse_dynamics')
    function.generate('robot.c')
    subprocess.run(['gcc', '-O0', '-shared', '-fPIC', '-o', 'robot.so', 'robot.c', '-lm'],
                   check=True)
    compiled = casadi.external('inverse_dynamics', './robot.so')
    given = state(model, 6)[:3]
    assert relative_error(dense(compiled(*given)), rbd_ros.inverse_dynamics(model, *given)
                          ) < ROUNDING


def test_robots_links_and_masks_that_have_no_functions_are_refused():
    closed = rbd_ros.load_urdf('urdf/four_bar.urdf')
    for function in (functions.mass_matrix, functions.configuration_rate):
        with pytest.raises(rbd_ros.ModelError, match='closed loops'):
            function(closed)
        with pytest.raises(rbd_ros.StateError, match='model must be a robot'):
            function('urdf/four_bar.urdf')
    for function in (functions.forward_kinematics, functions.body_jacobian,
                     functions.world_jacobian):
        with pytest.raises(rbd_ros.ModelError, match="'nose'"):
            function(ROBOTS['screws'], 'nose')
    with pytest.raises(rbd_ros.StateError, match='prescribed must be 7 truth values'):
        functions.hybrid_dynamics(ROBOTS['screws'], [True])
