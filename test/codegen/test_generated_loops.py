# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Closed loops in traced functions and in C: equal to the library; a step that closes loops."""

import ctypes
from functools import partial
from itertools import pairwise, product
import re

from closed_robots import closed_robot, driven, NAMES, RANDOM
from covering import covering
from generated_code import (
    assert_of_library, COMPILERS, evaluate, Library, options_of, run_test, STRICT)
from loop_robots import MOTORS
import numpy as np
import pytest
import rbd_ros
from rbd_ros.codegen import FUNCTIONS, package_files, trace
from rbd_ros.model import normalize, with_constraints, with_springs

# Of the largest entry: rounding, which solutions with J_d and M amplify by condition numbers of
# some thousands.
TOLERANCE = 1e-11
# Of a configuration, rad or m: the library ends at gaps of 1e-13, condition numbers apply.
CLOSED = 1e-10
# Of random robots: what maps differently with loops, without the many operations of derivatives.
MAPPED = ['inverse_dynamics', 'forward_dynamics', 'coriolis_matrix', 'world_jacobian_dot',
          'com_jacobian_dot', 'torque_regressor', 'friction_torques']


# Robots with a joint that has a quaternion, of which some velocities are independent.
PARTLY = ['weld of balls', 'balls', 'coupled', 'mimics and balls']


def states_of(robot):
    """Return closed states by name, the first axis of states."""
    found = {name: getattr(robot, name)[None] for name in ('q', 'v', 'a', 'tau')}
    return {**found, 'v_r': found['a'], 'a_r': found['v']}


def compare(robot, model, functions, link=None):
    """Compare traced functions with the library at a closed state."""
    states = states_of(robot)
    for function in functions:
        options = options_of(model, function, link)
        graph = trace(model, function, **options)
        found = evaluate(graph, *(states[x.name] for x in graph.inputs))
        assert_of_library(found, model, graph, states, TOLERANCE, **options)


@pytest.mark.parametrize('name', covering(MOTORS, 'slider_crank'))
def test_all_functions_equal_the_library(name):
    robot = closed_robot(name)
    compare(robot, driven(robot.model, 3),
            [one for one in FUNCTIONS if one != 'task_space_dynamics'])


# Those that are left out have many times the operations.
@pytest.mark.parametrize('name, functions', covering(
    [('mimics and balls', ('inverse_dynamics',)),
     *product((name for name in RANDOM if name not in ('balls', 'mimics and balls')),
              [(*MAPPED, 'forward_dynamics_derivatives')])],
    ('mimics and balls', ('inverse_dynamics',))))
def test_mimics_and_quaternions_may_be_in_loops(name, functions):
    robot = closed_robot(name)
    compare(robot, driven(robot.model, 3), functions)


def test_task_space_of_a_link_that_a_loop_moves():
    robot = closed_robot('hinge')
    link = next(link for link in reversed(robot.model.link_names) if np.linalg.cond(
        rbd_ros.body_jacobian(robot.model, robot.q, link)) < 500.0)
    compare(robot, robot.model, ['task_space_dynamics'], link)


@pytest.mark.parametrize('name', covering(
    (name for name in NAMES if name not in PARTLY), 'five_bar', 'delta', 'distance', 'weld',
    'mimics'))
def test_steps_close_loops(name):
    robot = closed_robot(name)
    model, rng = robot.model, np.random.default_rng(5)
    own = rbd_ros.model.positions.configurations.independent_positions(model)
    step = partial(evaluate, trace(model, 'closure_step'))
    guess = robot.q + rng.uniform(-0.02, 0.02, model.nq)
    guess[own] = robot.q[own]
    q, gaps = guess, []
    for _ in range(8):
        (q,), (gap,) = step(q[None])
        gaps.append(gap[0])
    assert np.max(np.abs(q - normalize(model, guess))) < CLOSED
    # Quadratic down to rounding: a gap is at most the square of that before times a constant.
    assert gaps[0] > 1e-4
    assert all(after < 1e3 * before ** 2 or after < 1e-12
               for before, after in pairwise(gaps))


def test_steps_of_a_part_of_a_ball_joint_are_refused():
    with pytest.raises(rbd_ros.ModelError, match='of which some velocities are independent'):
        trace(closed_robot('coupled').model, 'closure_step')


def test_long_steps_are_cut():
    robot = closed_robot('four_bar')
    guess = robot.q + [0.0, 2.0, -2.0]
    (q,), _ = evaluate(trace(robot.model, 'closure_step'), guess[None])
    # The longest step of the library, rad.
    assert np.max(np.abs(q - guess)) == pytest.approx(0.5, abs=1e-12)


@pytest.mark.parametrize('single', [False, True], ids=['double', 'float'])
def test_code_with_loops_passes_its_self_test(single, tmp_path):
    files = package_files(driven(closed_robot('five_bar').model, 3), [
        'inverse_dynamics', 'forward_dynamics', 'friction_torques'], prefix='r', single=single)
    flags = [*STRICT, *(['-Wdouble-promotion'] if single else [])]
    for compiler in COMPILERS:
        assert run_test(files, tmp_path, compiler, *flags) == '0 differences\n'
    assert '`r_close_loops` does' in files['README.md'] and 'Quat' not in files['README.md']
    assert 'int r_close_loops(' in files['r_dynamics.h']


def test_the_self_test_of_generated_code_notices_open_loops(tmp_path):
    files = package_files(closed_robot('five_bar').model, ['gravity_torques'], prefix='r')
    source = files['r_dynamics.c']
    assert source.count('q[k] = next[k];') == 1
    files['r_dynamics.c'] = source.replace('q[k] = next[k];', ';')
    found = run_test(files, tmp_path, COMPILERS[0])
    assert re.fullmatch('((close_loops: the loops are open|.*: q differs by .*)\n){6}'
                        r'\d+ differences\n', found), found


def test_loops_in_c_are_closed_or_refused(tmp_path):
    robot = closed_robot('five_bar')
    code = Library(package_files(robot.model, ['mass_matrix'], prefix='r'), tmp_path, 'r', '-O1')
    close = code._code.r_close_loops
    q = robot.q + 0.1
    for position in rbd_ros.model.positions.configurations.independent_positions(robot.model):
        q[position] = robot.q[position]
    expected = normalize(robot.model, q)
    assert close(ctypes.c_void_p(q.ctypes.data)) == 1
    assert np.max(np.abs(q - expected)) < CLOSED
    for wrong in (np.full(robot.model.nq, np.nan), np.array([1e300] * robot.model.nq)):
        assert close(ctypes.c_void_p(wrong.ctypes.data)) == 0


def test_code_of_regular_damped_loops_equals_the_library_and_takes_no_parameters():
    robot = closed_robot('delta')
    damped = with_constraints(robot.model, robot.model.constraints, robot.model.velocity_names,
                              condition_limit=1e5)
    # Far from singular configurations there is none.
    compare(robot, damped, ['inverse_dynamics', 'forward_dynamics_derivatives'])
    with pytest.raises(rbd_ros.ModelError, match='has closed loops, for which parameters'):
        trace(robot.model, 'inverse_dynamics', parameters=['gravity'])
    with pytest.raises(rbd_ros.ModelError, match="no code for a function 'closure_step'"):
        trace(robot.model.unconstrained, 'closure_step')


def test_springs_of_ball_joints_are_refused():
    model = closed_robot('weld of balls').model
    joint = next(joint.name for joint in model.joints if joint.kind == 'spherical')
    with pytest.raises(rbd_ros.ModelError, match=f"'{joint}', whose position is a quaternion"):
        trace(with_springs(model, stiffness={joint: 1.0}), 'spring_torques')
