# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Graphs as NumPy source and as expressions of SymPy are the functions that were traced."""

from dataclasses import replace
from itertools import product
import math
import subprocess
import sys

from covering import covering
import hidden_modules
import numpy as np
from optional import Optional
import pytest
import rbd_ros
from rbd_ros.codegen import numpy_source, sympy_expressions, trace
from rbd_ros.codegen.graph import Array, Tape
from rbd_ros.model import inertial_parameters, with_inertial_parameters
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.se3 import pose
from robots import random_tree, relative_error, with_mimics

sympy = Optional('sympy')

# Rounding: of the same operations in another order, and of numbers to 15 digits.
ROUNDING, DIGITS = 1e-12, 1e-12
SCREWS = ('revolute', 'prismatic', 'helical', 'universal', 'euler_zyx', 'cylindrical')
# Chosen by their seeds: with prismatic, ball and free joints, and a link on a fixed one.
ROBOTS = {
    'screws': random_tree(0, 4, SCREWS),
    'quaternions': random_tree(0, 4, ('revolute', 'spherical', 'free', 'universal')),
    'mimics': with_mimics(random_tree(24, 6), 24)}
FUNCTIONS = ('inverse_dynamics', 'forward_dynamics', 'all_terms', 'inverse_dynamics_derivatives',
             'forward_kinematics')


def states(model, graph, seed, *leading):
    """Return random arrays for the inputs; quaternions have any length."""
    rng = np.random.default_rng(seed)
    return [rng.normal(size=(*leading, *array.shape)) for array in graph.inputs]


def results(found):
    """Return the results of a function as a sequence."""
    return found if isinstance(found, (tuple, list)) else (found,)


def defined(source, name):
    """Return a function that a source defines."""
    names = {}
    exec(compile(source, name, 'exec'), names)
    return names[name]


@pytest.mark.parametrize('robot, name', covering(
    product(ROBOTS, FUNCTIONS), *product(['mimics', 'screws'], FUNCTIONS),
    ('quaternions', 'inverse_dynamics'), ('quaternions', 'forward_kinematics')))
def test_numpy_source_is_the_function_of_the_library(robot, name):
    model = ROBOTS[robot]
    graph = trace(model, name)
    function = defined(numpy_source(graph), name)
    given = states(model, graph, 0, 3)
    found = results(function(*given))
    assert len(found) == len(graph.outputs)
    for k in range(3):
        expected = results(getattr(rbd_ros, name)(model, *(x[k] for x in given)))
        for x, y in zip(found, expected):
            assert x[k].shape == y.shape and relative_error(x[k], y) < ROUNDING
    # One configuration for all velocities: leading axes broadcast.
    alone = [given[0][0], *given[1:]]
    for x, y in zip(results(function(*alone)), results(function(*(
            np.broadcast_to(one, other.shape) for one, other in zip(alone, given))))):
        assert np.array_equal(x, np.broadcast_to(y[0] if len(given) == 1 else y, x.shape))


def arithmetic(x, y, z):
    """Return expressions that need parentheses, or must not have them, and all functions."""
    return [x - (y - z), x - (y + z), (x - y) - z, x + (y + z), x / (y / z), x / (y * z),
            x * (y / z), (x * y) / z, (x + y) * z, -(x + y) * z, x - (-2.0) * y, x + -2.0 * y,
            x - -(y * z) / x, -x / -y, -(x * y), 3.0 - x, -2.0 / x, (x - y) * (x - z),
            ((x - y) * (y - z) - (z - x) * (x + y)) / ((x + z) * (y + z) - (x - z) / (y - z)),
            abs(x - y), 0.1, 0.0]


def test_operators_keep_their_precedence():
    tape = Tape()
    x, y, z = symbols = tape.inputs(0, (3,))
    values = [*arithmetic(x, y, z), *(tape.apply(kind, one) for kind, one in (
        ('sqrt', x), ('sin', y), ('cos', y - z), ('exp', z), ('tanh', x * y), ('sign', z - x)))]
    out = np.empty(len(values), object)
    out[:] = values
    graph = tape.graph('f', 'none', (Array('u', symbols.shape, 'numbers'),),
                       (Array('u', out.shape, 'results'),), (out,))
    for u in ([1.3, -0.7, 2.9], [0.21, 5.0, -3.0]):
        x, y, z = u
        expected = [*arithmetic(x, y, z), math.sqrt(x), math.sin(y), math.cos(y - z), math.exp(z),
                    math.tanh(x * y), math.copysign(1.0, z - x)]
        # A wrong sign or order changes these in the first digit.
        assert defined(numpy_source(graph), 'f')(u) == pytest.approx(expected, rel=1e-14)
        column, = sympy_expressions(graph, [sympy.Float(one, 30) for one in u])
        assert np.array(column.evalf(30), float).ravel() == pytest.approx(expected, rel=1e-14)


def test_numpy_source_needs_nothing_but_numpy_and_has_no_long_lines():
    graph = trace(ROBOTS['screws'], 'inverse_dynamics')
    source = numpy_source(graph)
    assert source == numpy_source(trace(ROBOTS['screws'], 'inverse_dynamics'))
    assert [line for line in source.splitlines() if 'import' in line] == ['import numpy as np']
    assert max(map(len, source.splitlines())) < 100
    text = defined(source, 'inverse_dynamics').__doc__
    for array in (*graph.inputs, *graph.outputs):
        assert f'{array.name} : ndarray, shape (..., {array.shape[0]})' in text
        assert array.meaning in text


@pytest.mark.parametrize('robot', ROBOTS)
def test_expressions_are_the_function_of_the_library(robot):
    model = ROBOTS[robot]
    for name in ('inverse_dynamics', 'mass_matrix'):
        graph = trace(model, name)
        given = states(model, graph, 1)
        found, = sympy_expressions(graph, *([sympy.Float(x, 30) for x in one] for one in given))
        expected = getattr(rbd_ros, name)(model, *given)
        assert found.shape[0] == expected.shape[0]
        found = np.array(found, float).reshape(expected.shape)
        assert relative_error(found, expected) < DIGITS


def test_equations_of_two_links_are_those_of_lynch_and_park():
    arm = (rbd_ros.ModelBuilder('arm').link('base').link('link_1', 1.0).link('link_2', 1.0)
           .joint('joint_1', 'revolute', 'base', 'link_1', axis=(0, 0, 1))
           .joint('joint_2', 'revolute', 'link_1', 'link_2', xyz=(1, 0, 0), axis=(0, 0, 1))
           .build(gravity=(0, -9.81, 0)))
    m1, m2, L1, L2, g, t1, t2, w1, w2 = sympy.symbols('m1 m2 L1 L2 g theta1 theta2 w1 w2')
    # Point masses at the ends of the links.
    pi = [x for m, L in ((m1, L1), (m2, L2))
          for x in (m, m * L, 0, 0, 0, m * L ** 2, m * L ** 2, 0, 0, 0)]
    graph = trace(arm, 'all_terms', parameters=['pi', 'positions', 'gravity'])
    M, C, gravity, coriolis, *_ = sympy_expressions(
        graph, (t1, t2), (w1, w2), pi, (0, 0, 0, L1, 0, 0), (0, -g, 0))
    # L (9.12), (9.13), with their misprints put right (doc/equations.md).
    c2, s2 = sympy.cos(t2), sympy.sin(t2)
    book_M = sympy.Matrix([
        [m1 * L1 ** 2 + m2 * (L1 ** 2 + 2 * L1 * L2 * c2 + L2 ** 2),
         m2 * (L1 * L2 * c2 + L2 ** 2)],
        [m2 * (L1 * L2 * c2 + L2 ** 2), m2 * L2 ** 2]])
    book_coriolis = sympy.Matrix([-m2 * L1 * L2 * s2 * (2 * w1 * w2 + w2 ** 2),
                                  m2 * L1 * L2 * w1 ** 2 * s2])
    book_gravity = sympy.Matrix([
        (m1 + m2) * L1 * g * sympy.cos(t1) + m2 * g * L2 * sympy.cos(t1 + t2),
        m2 * g * L2 * sympy.cos(t1 + t2)])
    for found, book in ((M, book_M), (coriolis, book_coriolis), (gravity, book_gravity),
                        (C * sympy.Matrix([w1, w2]), book_coriolis)):
        assert found.shape == book.shape
        # In exponentials, equal expressions have equal terms.
        assert all(x.rewrite(sympy.exp).expand() == 0 for x in found - book)
    # As a person would write it.
    assert str(sympy.simplify(M[3])) == 'L2**2*m2'


def test_sympy_numbers_are_short_rationals():
    tape = Tape()
    x, = tape.inputs(0, (1,))
    out = np.array([(0.1 + 0.2) * x], object)
    graph = tape.graph('f', 'none', (Array('q', (1,), 'number'),), (Array('y', (1,), 'number'),),
                       (out,))
    assert sympy_expressions(graph) == [sympy.Matrix([sympy.Rational(3, 10) * sympy.Symbol('q1')])]


@pytest.mark.parametrize('robot', ROBOTS)
def test_parameters_replace_those_of_the_robot(robot):
    model = ROBOTS[robot]
    rng = np.random.default_rng(7)
    joints = [replace(joint, placement=pose(joint.placement[:3, :3], rng.normal(size=3)))
              if joint.nv else joint for joint in model.joints]
    other = rbd_ros.with_gravity(with_inertial_parameters(
        rebuild(model, joints=joints), inertial_parameters(model) * 1.5), rng.normal(size=3))
    given = {'pi': inertial_parameters(other), 'gravity': other.gravity,
             'positions': np.concatenate([one.placement[:3, 3] for one in joints if one.nv])}
    for name in ('inverse_dynamics', 'all_terms'):
        graph = trace(model, name, parameters=list(given))
        assert [array.name for array in graph.inputs[-3:]] == list(given)
        state = states(model, graph, 8)[:-3]
        found = results(defined(numpy_source(graph), name)(*state, *given.values()))
        for x, y in zip(found, results(getattr(rbd_ros, name)(other, *state))):
            assert relative_error(x, y) < ROUNDING
    with pytest.raises(rbd_ros.ModelError, match="no parameter 'masses'"):
        trace(model, 'inverse_dynamics', parameters=['masses'])


def test_a_missing_package_is_named_with_its_extra_and_importing_rbd_ros_needs_no_extra(tmp_path):
    program = """
import importlib, sys, rbd_ros, rbd_ros.casadi, rbd_ros.codegen, rbd_ros.differentiable
from rbd_ros import *
assert not {'casadi', 'jax', 'sympy', 'torch'} & set(sys.modules)
arm = rbd_ros.load_urdf('urdf/demo_arm.urdf')
graph = rbd_ros.codegen.trace(arm, 'gravity_torques')
rbd_ros.codegen.numpy_source(graph)
for call in (lambda: rbd_ros.codegen.sympy_expressions(graph),
             lambda: rbd_ros.casadi.configuration_rate(arm),
             *(lambda name=name: importlib.import_module(name) for name in (
                 'rbd_ros.jax', 'rbd_ros.torch'))):
    try:
        call()
    except (rbd_ros.RbdError, ImportError) as error:
        print(error)
"""
    run = subprocess.run([sys.executable, '-c', program], check=False, capture_output=True,
                         env=hidden_modules.environment(
                             tmp_path, 'sympy', 'casadi', 'jax', 'torch'), text=True)
    assert run.stdout.splitlines() == [
        'expressions need SymPy: pip install "rbd_ros[sympy]"',
        'functions of CasADi need it: pip install "rbd_ros[casadi]"',
        *(f"rbd_ros.{name} needs the package {name}: pip install 'rbd_ros[{name}]'"
          for name in ('jax', 'torch'))], run.stderr
