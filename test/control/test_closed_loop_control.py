# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Task-space laws, observers, guards and trajectories of robots with closed loops."""

from dataclasses import replace

from closed_robots import closed_robot, driven
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, control, ModelError, StateError, textbook
from rbd_ros.model import with_constraints
from rbd_ros.model.constraints import rebuild
from rbd_ros.workspace.passive_joints import velocity_map
from robots import relative_error

ROUNDING = 1e-8


def test_cartesian_impedance_is_silent_at_its_reference():
    model, _, q, _, _, _ = closed_robot('delta')
    link = next(name for name in model.link_names if 'platform' in name)
    T = rbd_ros.forward_kinematics(model, q)[model.link_index(link)]
    law = control.CartesianImpedance(model, link, 100.0, posture=q, friction_speed=None)
    still = np.zeros(3)
    tau = law.update(0.0, q, still, control.PoseReference(T))
    assert relative_error(tau, rbd_ros.gravity_torques(model, q)) < 1e-6
    moved = T.copy()
    moved[2, 3] += 0.01
    F = np.array([0.0, 0.0, 0.0, 0.0, 0.0, 1.0])
    J = rbd_ros.world_jacobian(model, q, link)
    tau = law.update(0.0, q, still, control.PoseReference(moved)) - tau
    assert relative_error(tau, J.T @ F) < 1e-4


def test_the_momentum_observer_finds_an_external_wrench():
    bare, _, q, _, _, _ = closed_robot('five_bar')
    model = driven(bare, 2)
    link = model.link_names[-1]
    wrench = np.array([0.0, 0.3, 0.0, 2.0, 0.0, -1.0])
    observer = control.MomentumObserver(model, 100.0, smooth=0.1)
    tau, dt = np.array([1.0, -0.5]), 1e-3

    def acceleration(t, q, v):
        return rbd_ros.forward_dynamics(
            model, q, v, tau - rbd_ros.friction_torques(model, v, smooth=0.1, q=q)
            - rbd_ros.spring_torques(model, q), external_wrenches={link: wrench})
    v = np.zeros(2)
    for k in range(150):
        r = observer.update(k * dt, q, v, tau)
        external = rbd_ros.body_jacobian(model, q, link).T @ wrench
        q, v = analysis.runge_kutta_4(model, acceleration, 0.0, q, v, dt)
    assert np.max(np.abs(v)) > 0.1
    assert relative_error(r, external) < 0.02
    found = control.external_wrench(model, q, external, link, frame='body')
    assert relative_error(rbd_ros.body_jacobian(model, q, link).T @ found,
                          rbd_ros.body_jacobian(model, q, link).T @ wrench) < 0.05


def limited_four_bar(reach=0.3, velocity=40.0):
    """Return a four-bar in which only the rocker, a passive joint, has limits."""
    model, _, q, _, _, _ = closed_robot('four_bar')
    tree, k = model.unconstrained, model.position_names.index('rocker')
    joints = [replace(joint, kind='revolute', lower=(q[k] - reach,), upper=(q[k] + reach,),
                      velocity=(velocity,), effort=(0.0,)) if joint.name == 'rocker' else joint
              for joint in tree.joints]
    return with_constraints(rebuild(tree, joints=joints), model.constraints, ['crank']), q, k


@pytest.mark.parametrize('push', [0.3, -0.3])
def test_motion_guard_stops_a_passive_joint_before_its_limit(push):
    model, q, k = limited_four_bar()
    start, guard = q[k], control.MotionGuard(model)

    def reached(limit):
        """Return how far the rocker gets in 0.8 s, or until it is far beyond its limit."""
        q, v, far = closed_robot('four_bar').q, np.zeros(1), [0.0]
        while len(far) < 400 and far[-1] <= 0.4:
            tau = limit(rbd_ros.gravity_torques(model, q) + push, q, v)
            q, v = analysis.semi_implicit_euler(
                model, lambda t, q, v, tau=tau: rbd_ros.forward_dynamics(model, q, v, tau),
                0.0, q, v, 2e-3)
            far.append(abs(q[k] - start))
        return max(far)
    assert 0.2 < reached(guard.limit) < 0.3
    assert reached(lambda tau, q, v: tau) > 0.4


def test_motion_guard_leaves_torques_alone_away_from_limits():
    model, q, _ = limited_four_bar()
    tau = np.array([5.0])
    assert control.MotionGuard(model).limit(tau, q, np.array([0.1])) is tau
    model, q, _ = limited_four_bar(velocity=0.1)
    braked = control.MotionGuard(model).limit(tau, q, np.array([1.0]))
    assert braked[0] < rbd_ros.gravity_torques(model, q)[0]


def test_motion_guard_brakes_passive_joints_given_the_torques_of_the_others():
    model, _, q, _, _, _ = closed_robot('four_bar')
    tree, v = model.unconstrained, np.array([1.0])
    speed = dict(zip(tree.velocity_names, velocity_map(model, q) @ v))

    def limit(tau, *slow):
        """Return torques where some joints are a little too fast; without age, k is fixed."""
        joints = [replace(joint, velocity=tuple(
            0.8 * abs(speed[joint.name]) if joint.name in slow else np.inf
            for _ in range(joint.nv))) for joint in tree.joints]
        robot = with_constraints(rebuild(tree, joints=joints), model.constraints, ['crank'])
        return control.MotionGuard(robot).limit(tau, q, v, age=0.0)
    tau = rbd_ros.gravity_torques(model, q) + 30.0
    whole = limit(tau, 'crank', 'rocker')
    np.testing.assert_allclose(whole, limit(limit(tau, 'crank'), 'rocker'), rtol=ROUNDING)
    assert abs(whole - limit(limit(tau, 'rocker'), 'crank')).max() > 1e-3


def test_trajectories_are_closed_and_follow_the_motors():
    model, oracle, q, _, _, _ = closed_robot('delta')
    own = oracle.independent
    goal = rbd_ros.integrate(model, q, [0.2, -0.1, 0.3], 1.0)
    end = rbd_ros.integrate(model, goal, [-0.3, 0.1, 0.0], 1.0)
    # Guesses of passive joints are closed.
    guess = goal.copy()
    guess[np.setdiff1d(range(model.nq), own)] += 1e-3
    motion = control.JointTrajectory(model, [0.0, 1.0, 2.0], [q, guess, end])
    assert np.max(np.abs(motion.at(1.0).q - goal)) < ROUNDING
    assert np.max(np.abs(motion.at(5.0).q - end)) < ROUNDING
    h = 1e-4
    for t in (0.3, 0.8, 1.4):
        before, now, after = (motion.at(x) for x in (t - h, t, t + h))
        assert oracle.gap(now.q) < 1e-10
        assert np.max(np.abs(rbd_ros.difference(model, before.q, after.q) / (2.0 * h)
                             - now.v)) < 1e-6
        assert np.max(np.abs((after.v - before.v) / (2.0 * h) - now.a)) < 1e-4
    motion.check_limits(effort=False)
    with pytest.raises(StateError, match=r'needs .* its limit is'):
        control.JointTrajectory(model, [0.0, 0.06], [q, goal]).check_limits()


def test_trajectories_respect_limits_of_passive_joints():
    model, q, _ = limited_four_bar(0.1)
    goal = rbd_ros.integrate(model, q, [0.6], 1.0)
    with pytest.raises(StateError, match=r"'rocker' reaches .* rad at .*, its limit is"):
        control.JointTrajectory(model, [0.0, 1.0, 2.0], [q, goal, q]).check_limits()
    model, q, _ = limited_four_bar(3.0, velocity=0.2)
    with pytest.raises(StateError, match=r"'rocker' moves at .* rad/s at .*, its limit is"):
        control.JointTrajectory(model, [0.0, 1.0], [q, goal]).check_limits()
    control.JointTrajectory(model, [0.0, 9.0], [q, goal]).check_limits()


def test_trajectories_stay_on_a_branch():
    model, _, q, _, _, _ = closed_robot('four_bar')
    other = rbd_ros.model.normalize(model, [q[0], -2.5, -2.5])
    assert np.max(np.abs(other - q)) > 0.5
    with pytest.raises(StateError, match='must be on one branch of the closed loops'):
        control.JointTrajectory(model, [0.0, 1.0], [q, other])


def test_efforts_along_a_trajectory_include_springs_and_friction():
    bare, _, q, _, _, _ = closed_robot('five_bar')
    model = driven(bare, 3)
    time = np.linspace(0.0, 1.0, 21)
    X = np.outer(time ** 2 * (3.0 - 2.0 * time), [0.3, -0.2])
    Q = np.array([rbd_ros.integrate(model, q, x, 1.0) for x in X])
    found = analysis.trajectory_efforts(model, time, Q)
    assert np.max(np.abs(found.velocity - np.outer(6.0 * time * (1.0 - time), [0.3, -0.2]))) < 1e-2
    for k in (3, 10):
        state = Q[k], found.velocity[k], found.acceleration[k]
        expected = (rbd_ros.inverse_dynamics(model, *state) + rbd_ros.spring_torques(model, Q[k])
                    + rbd_ros.friction_torques(model, state[1], q=Q[k]))
        assert relative_error(found.effort[k], expected) < ROUNDING


def test_functions_for_trees_refuse_closed_loops():
    model, _, q, v, a, _ = closed_robot('four_bar')
    for name, *state in (
            ('christoffel_symbols', q), ('christoffel_coriolis_matrix', q, v),
            ('com_frame_mass_matrix', q), ('com_frame_gravity_torques', q),
            ('stacked_matrices', q, v), ('stacked_inverse_dynamics', q, v, a),
            ('stacked_terms', q, v)):
        with pytest.raises(ModelError, match=r"robot 'four_bar' has closed loops, for which .* is "
                           'not available; model.unconstrained is the tree'):
            getattr(textbook, name)(model, *state)
    # Instead of the constant map of mimics there is one that depends on q.
    with pytest.raises(StateError, match='depends on q'):
        _ = model.coordinates.G
