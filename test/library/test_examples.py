# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The worked examples do what they say."""

import pathlib
import runpy
import subprocess
import sys

import hidden_modules
import numpy as np
from optional import Optional
import pinocchio
import pytest
import rbd_ros
from rbd_ros.analysis import Simulator

sympy = Optional('sympy')

EXAMPLES = pathlib.Path(__file__).parents[2] / 'examples'
# Rounding, of sums of a dozen terms.
ROUNDING = 1e-12


def example(name):
    """Return the names of a numbered example."""
    path, = EXAMPLES.glob(f'[0-9][0-9]_{name}.py')
    return runpy.run_path(str(path))


@pytest.mark.parametrize('name, package, module', [
    ('two_link_arm', 'SymPy', 'sympy'), ('swing_up', 'CasADi', 'casadi'),
    ('predictive_control', 'CasADi', 'casadi'), ('policy_gradient', 'PyTorch', 'torch'),
    ('gradient_through_simulation', 'JAX', 'jax')])
def test_examples_name_the_package_to_install(name, package, module, tmp_path):
    path, = EXAMPLES.glob(f'[0-9][0-9]_{name}.py')
    run = subprocess.run([sys.executable, str(path)], check=False,
                         env=hidden_modules.environment(tmp_path, module), capture_output=True,
                         text=True)
    assert run.returncode == 1
    assert run.stderr == f'this example needs {package}: pip install {module}\n'


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
    M, C, gravity = arm['matrices']()
    # Expressions of trigonometric functions that agree at random points are the same.
    evaluate = sympy.lambdify((*arm['PARAMETERS'], t1, t2, w1, w2, a1, a2), [
        arm['equations_of_motion'](), sympy.Matrix([tau_1, tau_2]), M, C, gravity,
        M.diff(t1) * w1 + M.diff(t2) * w2])
    for numbers in np.random.default_rng(0).uniform(0.5, 2.0, (5, 11)):
        torques, expected, M, C, gravity, M_rate = evaluate(*numbers)
        v, a = numbers[7:9, None], numbers[9:, None]
        assert np.allclose(torques, expected, rtol=0.0, atol=100 * ROUNDING)
        assert np.allclose(M @ a + C @ v + gravity, torques, rtol=0.0, atol=100 * ROUNDING)
        skew = M_rate - 2.0 * C
        assert np.allclose(skew, -skew.T, rtol=0.0, atol=100 * ROUNDING)
        assert np.max(np.abs(skew)) > 0.1

    arm['main']()
    said = capsys.readouterr().out
    assert 'tau2 = ' in said
    assert 0.0 < float(said.split()[-1]) < ROUNDING


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


def test_tracking_errors_decay_as_the_error_equation_predicts():
    names = example('computed_torque')
    errors, w = names['main'](), names['W']
    for t, error in zip(names['TIMES'], errors):
        # Steps of a millisecond, of first order
        assert np.allclose(error, names['ERROR'] * (1.0 + w * t) * np.exp(-w * t), atol=2e-3)


def test_the_tool_presses_on_the_wall_like_a_spring():
    names = example('impedance_with_contact')
    # With twice the step of the example.
    names['main'].__globals__['Simulator'] = lambda *arguments, step: Simulator(
        *arguments, step=2.0 * step)
    forces = names['main']()
    # Two springs in a row
    stiffness = 1.0 / (1.0 / names['STIFFNESS'][3] + 1.0 / names['WALL'])
    assert forces[-1] == pytest.approx(stiffness * names['BEHIND'], rel=1e-2)
    first = np.flatnonzero(forces)[0]
    assert np.all(forces[first + 1:] > 0.0)       # it never lets go again


def test_adaptive_control_identifies_the_payload():
    names = example('adaptive_control')
    names['main'].__globals__['SECONDS'] = 4
    rms, mass = names['main']()
    assert np.max(rms[1:]) < 0.25 * rms[0]
    assert mass == pytest.approx(names['LOAD'], rel=0.15)


def test_contact_wrenches_of_the_feet_carry_the_floating_base():
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


def test_identification_finds_a_camera_missing_from_the_urdf():
    names = example('wrist_camera')
    found, verdict, (before, other_before, after) = names['main']()
    assert 0.17 < before < 0.23        # a fifth, as its description says
    assert verdict.grade == 'believable'
    truth = names['MASS'] * np.array([1.0, *names['COM']])
    errors = found.mass * np.array([1.0, *found.com]) - truth
    assert np.all(np.abs(errors) < 4.0 * found.deviation[:4])
    assert np.all(found.deviation[:4] < 0.002 * names['MASS'])
    assert after < 0.01 < 0.15 < other_before


def test_compensation_reduces_the_force_and_work_that_move_the_leader_arm():
    names = example('leader_arm')
    names['main'].__globals__['STEP'] = 4e-3      # twice that of the example
    (nothing, _), (weight, work), (both, less) = names['main']().values()
    assert weight < 0.2 * nothing
    assert both < 0.5 * weight
    assert 0.0 < less < 0.4 * work
    # Without friction, the work of the hand comes back, except for what moves the elbow on.
    arm = rbd_ros.load_urdf(names['URDF'])
    arm = rbd_ros.with_armature(arm, np.full(arm.nv, names['ROTORS']))
    smooth = rbd_ros.model.with_friction(arm, damping=np.zeros(arm.nv))
    forces, moved = names['lead'](smooth, rbd_ros.control.Gravity(arm))
    assert abs(moved) < 0.1 * work
    assert np.mean(np.linalg.norm(forces, axis=1)) < both


def test_the_arm_swings_up_by_torques_that_cannot_hold_it():
    names = example('swing_up')
    arm, h, limit = names['arm'], names['h'], names['LIMIT']
    Q, V, A, Tau = names['main']()
    # Horizontally, the shoulder bears more than its drive does.
    assert abs(rbd_ros.gravity_torques(arm, np.zeros(7))[1]) > 1.2 * limit[1]
    assert np.all(np.abs(Tau) <= limit * (1.0 + names['TOLERANCE']))
    assert np.all(np.abs(V) <= arm.velocity_limit + names['TOLERANCE'])
    assert np.all(np.clip(Q, arm.lower, arm.upper) == pytest.approx(Q, abs=names['TOLERANCE']))
    assert np.allclose(Q[0], names['DOWN']) and np.allclose(Q[-1], names['UP'])
    assert np.allclose(V[[0, -1]], 0.0)
    # It goes back first, and then up.
    assert np.max(Q[:, 1]) > names['DOWN'][1] + 0.2
    # The torques give the accelerations in the middle, which are constant between knots.
    robot = pinocchio.buildModelFromUrdf(str(names['URDF']))
    robot.armature[:], robot.gravity.linear = 0.1, arm.gravity
    data = robot.createData()
    for k, tau in enumerate(Tau):
        q = Q[k] + h / 2 * V[k] + h ** 2 / 8 * A[k]
        v = V[k] + h / 2 * A[k]
        assert np.allclose(pinocchio.aba(robot, data, q, v, tau), A[k], atol=1e-6)
        assert np.allclose(Q[k + 1], Q[k] + h * V[k] + h ** 2 / 2 * A[k], atol=1e-6)
        assert np.allclose(V[k + 1], V[k] + h * A[k], atol=1e-6)


def test_plans_lead_to_the_goal_within_the_limits():
    names = example('predictive_control')
    times, states, torques = names['main']()
    arm = names['arm']
    assert len(times) == len(states) == round(names['DURATION'] / names['PERIOD'])
    q, v = states[-1]
    assert np.max(np.abs(q - names['GOAL'])) < 1e-3 and np.max(np.abs(v)) < 1e-2
    share = np.abs(torques) / names['LIMIT'][:7]
    # Torques are linearized: the last change of the plan is not quite within the limits.
    assert 0.99 < np.max(share) < 1.01
    speeds = np.array([np.abs(v) / arm.velocity_limit for _, v in states])
    assert 0.95 < np.max(speeds) < 1.01


def test_a_network_learns_to_bring_the_tool_to_goals(capsys):
    pytest.importorskip('torch')
    names = example('policy_gradient')
    names['main'].__globals__['ROUNDS'] = 20
    before, after = names['main']()
    assert after < 0.7 * before
    assert 'before learning' in capsys.readouterr().out


def test_newtons_method_finds_torques_by_the_gradient_of_a_simulation():
    pytest.importorskip('jax')
    names = example('gradient_through_simulation')
    torques, errors = names['main']()
    assert errors[0] > 0.1
    # Quadratic convergence, to rounding.
    assert errors[4] < 1e-9
    # The same motion, simulated by the library.
    arm, q, v = names['arm'], names['START'], np.zeros(7)
    for _ in range(names['STEPS']):
        v = v + names['h'] * rbd_ros.forward_dynamics(
            arm, q, v, rbd_ros.gravity_torques(arm, q) + torques - v)
        q = q + names['h'] * v
    assert np.max(np.abs(q - names['GOAL'])) < 1e-9
