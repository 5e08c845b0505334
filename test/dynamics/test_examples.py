# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The worked examples do what they say."""

import pathlib
import runpy
import subprocess
import sys

import hidden_modules
import numpy as np
import pinocchio
import pytest
import rbd_ros
import sympy

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples'
# Rounding, of sums of a dozen terms.
ROUNDING = 1e-12


def example(name):
    """Return the names of a numbered example."""
    path, = EXAMPLES.glob(f'[0-9][0-9]_{name}.py')
    return runpy.run_path(str(path))


def test_examples_are_numbered_without_a_gap():
    names = sorted(path.name for path in EXAMPLES.glob('*.py'))
    assert [int(name[:2]) for name in names] == list(range(1, len(names) + 1))


def test_the_example_that_needs_another_package_says_which_to_install(tmp_path):
    run = subprocess.run([sys.executable, str(EXAMPLES / '11_two_link_arm.py')], check=False,
                         env=hidden_modules.environment(tmp_path, 'sympy'), capture_output=True,
                         text=True)
    assert run.returncode == 1
    assert run.stderr == 'this example needs SymPy: pip install sympy\n'


def test_two_link_arm_derives_the_equations_of_lynch_and_park(capsys):
    arm = example('two_link_arm')
    m1, m2, L1, L2, g = arm['PARAMETERS']
    (t1, t2), (w1, w2), (a1, a2) = arm['q'], arm['v'], arm['a']
    # L, after (9.8), with its misprints put right.
    tau_1 = (((m1 + m2) * L1 ** 2 + m2 * (2 * L1 * L2 * sympy.cos(t2) + L2 ** 2)) * a1
             + m2 * (L1 * L2 * sympy.cos(t2) + L2 ** 2) * a2
             - m2 * L1 * L2 * (2 * w1 * w2 + w2 ** 2) * sympy.sin(t2)
             + (m1 + m2) * L1 * g * sympy.cos(t1) + m2 * g * L2 * sympy.cos(t1 + t2))
    tau_2 = (m2 * (L1 * L2 * sympy.cos(t2) + L2 ** 2) * a1 + m2 * L2 ** 2 * a2
             + m2 * L1 * L2 * w1 ** 2 * sympy.sin(t2) + m2 * g * L2 * sympy.cos(t1 + t2))
    torques = arm['equations_of_motion']()
    assert sympy.simplify(torques - sympy.Matrix([tau_1, tau_2])) == sympy.zeros(2, 1)

    M, C, gravity = arm['matrices']()
    v, a = sympy.Matrix([w1, w2]), sympy.Matrix([a1, a2])
    assert sympy.simplify(M * a + C * v + gravity - torques) == sympy.zeros(2, 1)
    M_rate = M.diff(t1) * w1 + M.diff(t2) * w2
    skew = sympy.simplify(M_rate - 2 * C)
    assert sympy.simplify(skew + skew.T) == sympy.zeros(2, 2)
    assert skew != sympy.zeros(2, 2)

    assert 0.0 < arm['largest_difference']() < ROUNDING
    arm['main']()
    assert 'tau2 = ' in capsys.readouterr().out


def test_an_arm_on_a_wall_bears_weight_on_its_first_joint():
    names = example('wall_mounted_arm')
    on_floor, on_wall = names['main']()
    assert abs(on_floor[0]) < 1e-9
    arm = rbd_ros.with_payload(rbd_ros.load_urdf(names['URDF']), 'tool', names['TOOL'],
                               com=names['PLACE'])
    # Down is the root's x axis.
    moment = np.cross(rbd_ros.center_of_mass(arm, names['Q']), (9.81 * arm.mass, 0.0, 0.0))
    assert on_wall[0] == pytest.approx(-moment[2])


def test_the_elbow_falls_and_the_others_hold():
    names = example('hybrid_question')
    a, tau = names['main']()
    arm = rbd_ros.load_urdf(names['URDF'])
    assert np.flatnonzero(a).tolist() == [3] and tau[3] == 0.0
    assert np.allclose(rbd_ros.inverse_dynamics(arm, names['Q'], np.zeros(7), a), tau)


def test_errors_die_out_as_the_equation_says():
    names = example('computed_torque')
    errors, w = names['main'](), names['W']
    for t, error in zip(names['TIMES'], errors):
        # Steps of a millisecond, of first order
        assert np.allclose(error, names['ERROR'] * (1.0 + w * t) * np.exp(-w * t), atol=2e-3)


def test_the_tool_presses_on_the_wall_like_a_spring():
    names = example('impedance_with_contact')
    forces = names['main']()
    # Two springs in a row
    stiffness = 1.0 / (1.0 / names['STIFFNESS'][3] + 1.0 / names['WALL'])
    assert forces[-1] == pytest.approx(stiffness * names['BEHIND'], rel=1e-2)
    first = np.flatnonzero(forces)[0]
    assert np.all(forces[first + 1:] > 0.0)       # it never lets go again


def test_the_load_is_learnt():
    names = example('adaptive_control')
    rms, mass = names['main']()
    assert np.max(rms[1:]) < 0.25 * rms[0]
    assert mass == pytest.approx(names['LOAD'], rel=0.15)


def test_feet_hold_the_floating_base():
    robot, wrenches, tau, a = example('floating_base_stance')['main']()
    assert np.max(np.abs(a)) < 1e-8
    assert np.max(np.abs(tau[:6])) < 1e-9         # the base has no motors
    assert wrenches[:, 5].sum() == pytest.approx(9.81 * robot.mass)


def test_no_change_of_the_torques_makes_the_motion_cheaper():
    names = example('ilqr')
    X, U, costs = names['main']()
    assert costs == sorted(costs, reverse=True)
    arm, n = names['arm'], names['n']
    # Steps of Pinocchio's forward dynamics
    robot = pinocchio.buildModelFromUrdf(str(names['URDF']))
    robot.armature[:] = names['ROTORS']
    data, size = robot.createData(), names['h']

    def motion(U):
        X = [names['START']]
        for u in U:
            q, v = X[-1][:n], X[-1][n:]
            v = v + size * pinocchio.aba(robot, data, q, v, u)
            X.append(np.concatenate((q + size * v, v)))
        return np.array(X)

    assert np.max(np.abs(motion(U) - X)) < ROUNDING * 1e4
    assert np.max(np.abs(X[-1] - names['GOAL'])) < 0.02
    assert np.all(np.abs(U) < arm.effort_limit)
    rng = np.random.default_rng(0)
    for _ in range(5):
        other = rng.normal(scale=0.01, size=U.shape)
        here, *both = (names['cost'](motion(V), V) for V in (U, U + other, U - other))
        # A minimum: the slope is nothing beside the curvature.
        assert abs(both[0] - both[1]) < 0.1 * (both[0] + both[1] - 2.0 * here)


def test_efforts_of_a_trajectory_are_those_of_inverse_dynamics_within_limits():
    names = example('trajectory_with_efforts')
    fast, slow = names['main']()
    arm = rbd_ros.load_urdf(names['URDF'])
    assert np.any(np.abs(fast.velocity) > arm.velocity_limit)
    shares = [np.abs(slow.velocity) / arm.velocity_limit, np.abs(slow.effort) / arm.effort_limit]
    assert np.max(shares) == pytest.approx(1.0, rel=1e-3)
    robot = pinocchio.buildModelFromUrdf(str(names['URDF']))
    data = robot.createData()
    for one in (fast, slow):
        for q, v, a, tau in zip(names['POINTS'], one.velocity, one.acceleration, one.effort):
            # With damping and Coulomb friction, as the URDF has them
            expected = (pinocchio.rnea(robot, data, q, v, a) + arm.damping * v
                        + arm.friction * np.sign(v))
            assert np.allclose(tau, expected, atol=1e-9)
