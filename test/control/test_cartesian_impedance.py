# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: its stiffness, its energy, its singular poses."""

from control_robots import bare_arm, LINK, POSE
from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import CartesianImpedance, critical_damping, PoseReference
from rbd_ros.control.laws.cartesian_impedance import pose_error
from rbd_ros.model.se3 import exp, inverse, log
from robots import example_urdf, load_quietly, random_pose, relative_error

# Differences over a step of 1e-6: the square of the step, and rounding over the step.
STEP, BY_DIFFERENCES = 1e-6, 1e-6
# The law forms J M^-1 J^T, the kernel does not: rounding times the condition number of that.
SQUARED = 1e-9
# Anisotropic: N m/rad and N/m
STIFFNESS = np.array([20.0, 30.0, 40.0, 300.0, 600.0, 900.0])


def place(model, q):
    """Return the pose of the tool."""
    return rbd_ros.forward_kinematics(model, q)[model.link_index(LINK)].copy()


def twisted(T, V, h):
    """Return a pose after moving with a twist in the root's axes, at its own origin."""
    result = T.copy()
    result[:3, :3] = exp(np.concatenate((h * V[:3], np.zeros(3))))[:3, :3] @ T[:3, :3]
    result[:3, 3] += h * V[3:]
    return result


@pytest.mark.parametrize('seed', seeds(20))
def test_the_rate_of_the_pose_error_is_its_difference(seed):
    rng = np.random.default_rng(seed)
    T, goal, (V, V_r) = random_pose(rng), random_pose(rng), rng.normal(size=(2, 6))
    if seed < 5:
        goal = T @ exp(1e-3 * rng.normal(size=6))
    reference = PoseReference(goal, V_r)
    e, B, V_turned, _ = pose_error(T, V, reference)
    # The error leads to the reference.
    assert np.allclose(twisted(T, e, 1.0), goal)
    ahead, behind = (pose_error(twisted(T, V, h), V, PoseReference(twisted(goal, V_r, h), V_r))[0]
                     for h in (STEP, -STEP))
    assert np.allclose((ahead - behind) / (2.0 * STEP), B @ (V_turned - V), atol=1e-7)


@pytest.mark.parametrize('seed', range(5))
def test_the_rate_of_the_turned_twist_is_its_difference(seed):
    rng = np.random.default_rng(seed)
    T, goal, (V, V_r, V_r_dot) = random_pose(rng), random_pose(rng), rng.normal(size=(3, 6))
    _, _, _, rate = pose_error(T, V, PoseReference(goal, V_r, V_r_dot))
    ahead, behind = (pose_error(twisted(T, V, h), V, PoseReference(
        twisted(goal, V_r, h), V_r + h * V_r_dot))[2] for h in (STEP, -STEP))
    assert np.allclose((ahead - behind) / (2.0 * STEP), rate, atol=1e-7)


@pytest.mark.parametrize('seed', range(8))
def test_energy_falls_by_the_power_of_the_dampers(seed):
    arm, rng = bare_arm(), np.random.default_rng(seed)
    q, v = POSE + 0.3 * rng.normal(size=7), rng.normal(size=7)
    goal = PoseReference(place(arm, q) @ exp(rng.normal(scale=0.8, size=6)))
    law = CartesianImpedance(arm, LINK, STIFFNESS, posture=q, posture_stiffness=0.0,
                             damping_ratio=0.4)
    a = rbd_ros.forward_dynamics(arm, q, v, law.update(0.0, q, v, goal))

    def energy(h):
        e = log(inverse(place(arm, q + h * v)) @ goal.T)[:3]    # its length is that of phi
        e = np.concatenate((place(arm, q + h * v)[:3, :3] @ e,
                            goal.T[:3, 3] - place(arm, q + h * v)[:3, 3]))
        moving = v + h * a
        return (0.5 * moving @ rbd_ros.mass_matrix(arm, q + h * v) @ moving
                + 0.5 * STIFFNESS @ e ** 2)

    task = rbd_ros.task_space_dynamics(arm, q, v, LINK, frame='world-aligned')
    V = task.J @ v
    lost = V @ critical_damping(task.Lambda, STIFFNESS, 0.4) @ V
    rate = (energy(STEP) - energy(-STEP)) / (2.0 * STEP)
    assert rate == pytest.approx(-lost, rel=BY_DIFFERENCES, abs=1e-5)


def test_the_posture_does_not_accelerate_the_link():
    arm = bare_arm()
    q, v = POSE, np.random.default_rng(1).normal(size=7)
    tau = [CartesianImpedance(arm, LINK, STIFFNESS, posture=POSE + far,
                              posture_stiffness=30.0).update(
        0.0, q, v, PoseReference(place(arm, q))) for far in (0.0, 0.5)]
    a = [rbd_ros.forward_dynamics(arm, q, v, one) for one in tau]
    J = rbd_ros.world_jacobian(arm, q, LINK)
    assert np.max(np.abs(a[1] - a[0])) > 1.0
    assert np.max(np.abs(J @ (a[1] - a[0]))) < 1e-9


@pytest.mark.parametrize('limit', [3.0, 100.0, 2e3])
@pytest.mark.parametrize('name, link', [('arm', LINK), ('ur5', 'tool0'), ('stretched', 'tool0'),
                                        ('short', 'forearm_link')])
def test_torques_are_those_of_the_equations_in_task_space(name, link, limit):
    model = bare_arm() if name == 'arm' else load_quietly(example_urdf('ur5_robot.urdf'))
    damped = set()
    for seed in range(10):
        rng = np.random.default_rng(seed)
        q, v = rng.normal(size=model.nv), rng.normal(size=model.nv)
        if name == 'stretched':
            q = 1e-7 * seed * q
        law = CartesianImpedance(model, link, STIFFNESS, posture=POSE[:model.nv],
                                 posture_stiffness=15.0, damping_ratio=0.4,
                                 condition_limit=limit)
        T = rbd_ros.forward_kinematics(model, q)[model.link_index(link)]
        reference = PoseReference(random_pose(rng), *rng.normal(size=(2, 6)))
        task = rbd_ros.task_space_dynamics(model, q, v, link, frame='world-aligned',
                                           condition_limit=limit)
        damped.add(task.damped)
        terms, N = rbd_ros.all_terms(model, q, v), task.null_projector
        e, B, V_r, V_r_dot = pose_error(T, task.J @ v, reference)
        v_r = task.J_bar @ V_r
        a_r = task.J_bar @ (V_r_dot - task.J_dot @ v_r)
        F = B.T @ (STIFFNESS * e) + critical_damping(task.Lambda, STIFFNESS, 0.4) @ (
            V_r - task.J @ v)
        D_0 = critical_damping(terms.M, np.full(model.nv, 15.0), 0.4)
        tau = (terms.M @ a_r + terms.C @ v_r + terms.g + task.J.T @ F
               + N.T @ (15.0 * (POSE[:model.nv] - q) - D_0 @ N @ v)
               + rbd_ros.friction_torques(model, v_r, smooth=0.01))
        assert relative_error(law.update(0.0, q, v, reference), tau) < SQUARED
    assert True in damped or (limit > 10.0 and name in ('arm', 'ur5'))


def test_torques_stay_finite_in_singular_poses():
    arm = load_quietly(example_urdf('ur5_robot.urdf'))
    stretched = np.zeros(6)
    link = 'tool0'
    T = rbd_ros.forward_kinematics(arm, stretched)[arm.link_index(link)].copy()
    T[2, 3] += 0.1
    law = CartesianImpedance(arm, link, 500.0, posture=stretched)
    moving = PoseReference(T, [0.0, 0.0, 0.0, 0.1, 0.1, 0.1], np.ones(6))
    for away in (0.0, 1e-9, 1e-6, 1e-3, 1e-2):
        # 50 N of springs, dampers of 0.1 m/s, and 1 m/s^2
        tau = law.update(0.0, stretched + away, np.full(6, 0.1), moving)
        assert np.max(np.abs(tau)) < 200.0


@pytest.mark.parametrize('T, message', [
    (np.diag([1.0, 1.0, -1.0, 1.0]), 'T must be a pose'), (2.0 * np.eye(4), 'T must be a pose'),
    (np.eye(3), 'T has the shape'), (np.full((4, 4), np.nan), 'T must be finite')])
def test_invalid_poses_are_refused(T, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        PoseReference(T)
