# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Jacobians in all frames and their derivatives, against differences and closed forms."""

from differences import (by_q, error, leading, rate, real_robot, SCREWS, time_rate, tree, TREES,
                         trees_and_robots)
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.model.description import Link
from rbd_ros.model.joints import KINDS
from rbd_ros.model.se3 import Ad, ad, inverse, pose
from rbd_ros.textbook import sums_over_links
from rbd_ros.textbook.jacobian_recursions import (body_jacobian_derivatives,
                                                  body_jacobian_rate_derivatives,
                                                  body_jacobian_second_rates)
from robots import example_urdf, load_quietly, Oracle

# Rounding, over some forty bodies.
ROUNDING = 1e-11
# Central differences with the step 1e-6: rounding, divided by it, and a margin.
DIFFERENCES = 1e-6


def precedes(model):
    """Return whether column j strictly precedes column h on the way from the root."""
    parent = {joint.child: joint for joint in model.joints}
    result = np.zeros((model.nv, model.nv), bool)
    columns = {joint.name: range(k.start, k.stop) for joint, _, k in model.moving_joints}
    for joint, _, k in model.moving_joints:
        for h in range(k.start, k.stop):
            if KINDS[joint.kind].is_screws:
                result[k.start:h, h] = True
            above = parent.get(joint.parent)
            while above is not None:
                result[list(columns.get(above.name, ())), h] = True
                above = parent.get(above.parent)
    return result


@trees_and_robots
def test_jacobian_dot_is_the_rate_of_the_jacobian(make, arguments):
    model, q, v, _ = make(*arguments)
    J, J_rate = sums_over_links.body_jacobian_rates(model, q, v)
    differences = rate(lambda x: sums_over_links.body_jacobians(model, x), model, q, v)
    assert error(J_rate, differences) < DIFFERENCES
    _, dJ = body_jacobian_derivatives(model, q)
    assert error(J_rate, np.einsum('ihaj,h->iaj', dJ, v)) < ROUNDING
    workspace = rbd_ros.Workspace(model)
    for k, link in enumerate(model.link_names):
        assert error(rbd_ros.jacobian_dot(model, q, v, link), J_rate[k]) < ROUNDING
        assert error(rbd_ros.body_jacobian(model, q, link), J[k]) < ROUNDING
        got, got_rate = workspace.jacobian_dot(q, v, link)
        assert error(got, J[k]) < ROUNDING
        assert error(got_rate @ v, J_rate[k] @ v) < ROUNDING
        assert error(workspace.jacobian_dot_v(q, v, link), J_rate[k] @ v) < ROUNDING
        got, T = workspace.body_jacobian(q, link)
        assert error(got, J[k]) < ROUNDING
        assert error(T, rbd_ros.forward_kinematics(model, q)[k]) < ROUNDING


@pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf', 'talos_reduced.urdf'])
def test_jacobian_dot_matches_pinocchio(name):
    path = example_urdf(name)
    model = load_quietly(path)
    oracle = Oracle(path, model)
    _, q, v, _ = real_robot(name)
    pinocchio.computeJointJacobiansTimeVariation(oracle.pin, oracle.data, oracle.q(q),
                                                 oracle.G @ v)
    link = model.link_names[-1]
    frame = oracle.pin.getFrameId(link, pinocchio.FrameType.BODY)
    pinocchio.updateFramePlacements(oracle.pin, oracle.data)
    for got, reference in ((rbd_ros.jacobian_dot, pinocchio.LOCAL),
                           (analysis.world_jacobian_dot, pinocchio.LOCAL_WORLD_ALIGNED)):
        expected = pinocchio.getFrameJacobianTimeVariation(oracle.pin, oracle.data, frame,
                                                           reference)
        expected = np.vstack((expected[3:], expected[:3])) @ oracle.G
        assert error(got(model, q, v, link), expected) < ROUNDING


@trees_and_robots
def test_jacobian_ddot_is_the_second_rate_of_the_jacobian(make, arguments):
    model, q, v, a = make(*arguments)
    J, J_rate, J_second = body_jacobian_second_rates(model, q, v, a)
    differences = time_rate(lambda x, w: sums_over_links.body_jacobian_rates(model, x, w)[1],
                            model, q, v, a)
    assert error(J_second, differences) < DIFFERENCES
    expected_J, expected_J_rate, dJ, dJ_rate = body_jacobian_rate_derivatives(model, q, v)
    chain = np.einsum('ihaj,h->iaj', dJ_rate, v) + np.einsum('ihaj,h->iaj', dJ, a)
    assert error(J_second, chain) < ROUNDING
    assert error(J, expected_J) < ROUNDING
    assert error(J_rate, expected_J_rate) < ROUNDING
    for k, link in enumerate(model.link_names):
        assert error(analysis.jacobian_ddot(model, q, v, a, link), J_second[k]) < ROUNDING


@trees_and_robots
def test_jacobian_derivatives_are_differences(make, arguments):
    model, q, _, _ = make(*arguments)
    _, dJ = body_jacobian_derivatives(model, q)
    differences = by_q(lambda x: sums_over_links.body_jacobians(model, x), model, q)
    assert error(dJ, differences.transpose(1, 0, 2, 3)) < DIFFERENCES
    for k, link in enumerate(model.link_names):
        assert error(leading(analysis.jacobian_derivatives(model, q, link)), dJ[k]) < ROUNDING


@trees_and_robots
def test_jacobian_dot_derivatives_are_differences(make, arguments):
    model, q, v, _ = make(*arguments)
    link = model.link_names[-1]
    by_position, by_velocity = map(leading, analysis.jacobian_dot_derivatives(model, q, v, link))
    differences = by_q(lambda x: sums_over_links.body_jacobian_rates(model, x, v)[1][-1], model, q)
    assert error(by_position, differences) < DIFFERENCES
    _, _, dJ, dJ_rate = body_jacobian_rate_derivatives(model, q, v)
    for k, other in enumerate(model.link_names):
        got = [leading(x) for x in analysis.jacobian_dot_derivatives(model, q, v, other)]
        assert error(got[0], dJ_rate[k]) < ROUNDING
        assert error(got[1], dJ[k]) < ROUNDING
    # Jdot is linear in v.
    expected = [rbd_ros.jacobian_dot(model, q, unit, link) for unit in np.eye(model.nv)]
    chain = np.einsum('haj,h->aj', by_velocity, v)
    assert error(by_velocity, np.array(expected)) < ROUNDING
    assert error(chain, rbd_ros.jacobian_dot(model, q, v, link)) < ROUNDING


@pytest.mark.parametrize('seed', TREES)
def test_jacobian_derivatives_are_brackets_of_columns(seed):
    # d_h J^j = -ad_{J^h} J^j if j strictly precedes h, else 0.
    model, q, v, _ = tree(seed)
    J, _, dJ, dJ_rate = body_jacobian_rate_derivatives(model, q, v)
    before = precedes(model)
    for k in range(len(model.links)):
        closed = np.zeros_like(dJ[k])
        for h in range(model.nv):
            moves = np.any(J[k, :, h])
            closed[h] = -ad(J[k, :, h]) @ J[k] * (before[:, h] & moves)
        assert error(dJ[k], closed) < ROUNDING
        # Jdot^j = -ad_(what moves after j) J^j, differentiated by the product rule.
        for h in range(model.nv):
            for j in range(model.nv):
                after = before[j] * v
                expected = (-ad(closed[h] @ after) @ J[k, :, j]
                            - ad(J[k] @ after) @ closed[h][:, j])
                assert np.allclose(dJ_rate[k, h, :, j], expected, rtol=0.0, atol=1e-10)


@pytest.mark.parametrize('seed', TREES)
def test_jacobians_have_no_curvature(seed):
    # d_i J_j - d_j J_i = [J_j, J_i], where v = dq/dt.
    model, q, _, _ = tree(seed, SCREWS)
    J, dJ = body_jacobian_derivatives(model, q)
    bracket = np.array([[[ad(J_k[:, j]) @ J_k[:, i] for j in range(model.nv)]
                         for i in range(model.nv)] for J_k in J])
    derivative = dJ.transpose(0, 1, 3, 2)
    assert error(derivative - derivative.transpose(0, 2, 1, 3), bracket) < ROUNDING


@trees_and_robots
def test_world_jacobian_dot_is_the_rate_of_the_world_jacobian(make, arguments):
    model, q, v, _ = make(*arguments)
    link = model.link_names[-1]
    differences = rate(lambda x: rbd_ros.world_jacobian(model, x, link), model, q, v)
    assert error(analysis.world_jacobian_dot(model, q, v, link), differences) < DIFFERENCES
    # R (Jdot + omega x J), of the closed form.
    workspace = rbd_ros.Workspace(model)
    for link, T, J, J_rate in zip(model.link_names, sums_over_links.poses(model, q),
                                  *sums_over_links.body_jacobian_rates(model, q, v)):
        turn = Ad(pose(T[:3, :3], np.zeros(3)))
        expected = turn @ (J_rate + ad([*(J @ v)[:3], 0.0, 0.0, 0.0]) @ J)
        assert error(analysis.world_jacobian_dot(model, q, v, link), expected) < ROUNDING
        assert error(workspace.world_jacobian_dot(q, v, link)[0], turn @ J) < ROUNDING
        assert error(workspace.world_jacobian_dot_v(q, v, link), expected @ v) < ROUNDING


@trees_and_robots
def test_analytic_jacobian_is_the_derivative_of_the_com_of_a_link(make, arguments):
    model, q, _, _ = make(*arguments)
    link = model.link_names[-1]
    com = np.append(model.links[-1].com, 1.0)
    J = analysis.analytic_jacobian(model, q, link)
    differences = by_q(lambda x: (sums_over_links.poses(model, x)[-1] @ com)[:3], model, q)
    assert error(J, differences.T) < DIFFERENCES
    # The same through the body's own axes: R times the linear rows about the centre of mass.
    T = sums_over_links.poses(model, q)[-1]
    body = Ad(inverse(pose(np.eye(3), com[:3]))) @ sums_over_links.body_jacobians(model, q)[-1]
    assert error(analysis.link_com_jacobian(model, q, link), body) < ROUNDING
    turned = np.vstack((T[:3, :3] @ body[:3], T[:3, :3] @ body[3:]))
    assert error(analysis.link_com_world_jacobian(model, q, link), turned) < ROUNDING
    assert error(J, turned[3:]) < ROUNDING


@trees_and_robots
def test_com_jacobian_dot_is_the_rate_of_the_com_jacobian(make, arguments):
    model, q, v, _ = make(*arguments)
    got = analysis.com_jacobian_dot(model, q, v)
    differences = rate(lambda x: rbd_ros.com_jacobian(model, x), model, q, v)
    assert error(got, differences) < DIFFERENCES
    # Masses times the rates of the velocities of the links' own centres of mass.
    jacobians = 0.0
    for link, T, J, J_rate in zip(model.links, sums_over_links.poses(model, q),
                                  *sums_over_links.body_jacobian_rates(model, q, v)):
        shift = Ad(inverse(pose(np.eye(3), link.com)))
        J, J_rate = shift @ J, shift @ J_rate
        turning = ad([*(J @ v)[:3], 0.0, 0.0, 0.0])
        jacobians = jacobians + link.mass * T[:3, :3] @ (J_rate + turning @ J)[3:]
    assert error(got, jacobians / model.mass) < ROUNDING


@trees_and_robots
def test_centroidal_momentum_is_that_of_all_links(make, arguments):
    model, q, v, _ = make(*arguments)
    A = analysis.centroidal_momentum_matrix(model, q)
    com = rbd_ros.center_of_mass(model, q)
    momentum = np.zeros(6)
    for link, T, J in zip(model.links, sums_over_links.poses(model, q),
                          sums_over_links.body_jacobians(model, q)):
        R, V = T[:3, :3], J @ v
        spin, p = R @ V[:3], R @ (V[3:] + np.cross(V[:3], link.com)) * link.mass
        arm = T[:3, 3] + R @ link.com - com
        momentum[:3] += R @ link.inertia @ R.T @ spin + np.cross(arm, p)
        momentum[3:] += p
    assert error(A @ v, momentum) < ROUNDING
    assert error(A[3:], model.mass * rbd_ros.com_jacobian(model, q)) < ROUNDING
    differences = rate(lambda x: analysis.centroidal_momentum_matrix(model, x), model, q, v)
    rates = analysis.centroidal_momentum_matrix_dot(model, q, v)
    assert error(rates, differences) < DIFFERENCES
    assert error(rates[3:], model.mass * analysis.com_jacobian_dot(model, q, v)) < ROUNDING


@pytest.mark.parametrize('name', ['ur5_robot.urdf', 'talos_reduced.urdf'])
def test_centroidal_momentum_matches_pinocchio(name):
    path = example_urdf(name)
    model = load_quietly(path)
    oracle = Oracle(path, model)
    _, q, v, _ = real_robot(name)
    # Pinocchio leaves out what does not move: here its mass shifts the centre and nothing else.
    without = rbd_ros.model.build_model(model.name, [
        link if body else Link(link.name) for link, body in zip(model.links,
                                                                model.tree.link_body)],
        model.joints)
    pinocchio.dccrba(oracle.pin, oracle.data, oracle.q(q), oracle.G @ v)
    for got, expected in zip(rbd_ros.Workspace(without).centroidal_momentum_matrix_dot(q, v),
                             (oracle.data.Ag, oracle.data.dAg)):
        expected = np.vstack((expected[3:], expected[:3])) @ oracle.G
        assert error(got, expected) < ROUNDING


@pytest.mark.parametrize('seed', range(10))
def test_rate_of_centroidal_momentum_equals_ground_wrench_plus_weight(seed):
    # A robot on a free joint: the ground exerts the joint's torque, here none.
    model = rbd_ros.with_floating_base(tree(seed)[0])
    rng = np.random.default_rng(seed)
    q, v = rbd_ros.random_configuration(model, rng), rng.normal(size=model.nv)
    tau = rng.normal(size=model.nv)
    tau[:6] = 0.0
    a = rbd_ros.forward_dynamics(model, q, v, tau)
    change = (analysis.centroidal_momentum_matrix(model, q) @ a
              + analysis.centroidal_momentum_matrix_dot(model, q, v) @ v)
    weight = np.concatenate((np.zeros(3), model.mass * model.gravity))
    size = np.max(np.abs(analysis.centroidal_momentum_matrix(model, q))) * np.max(np.abs(a))
    assert np.max(np.abs(change - weight)) < 1e-9 * size


def test_wrong_links_are_refused_by_name_and_robots_without_joints_taken():
    model, q, _, _ = tree(3)
    for call in (analysis.jacobian_derivatives, analysis.link_com_jacobian,
                 analysis.analytic_jacobian, analysis.link_com_world_jacobian):
        with pytest.raises(rbd_ros.ModelError, match="no link 'hand'"):
            call(model, q, 'hand')
    ball = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0).joint('hip', 'spherical', 'a', 'b')
            .build())
    with pytest.raises(rbd_ros.StateError, match='hip'):
        analysis.jacobian_derivatives(ball, np.zeros(4), 'b')
    assert np.allclose(analysis.com_jacobian_dot(
        rbd_ros.model.build_model('empty', ball.links[:1], []), [], []), np.zeros((3, 0)))


def test_states_of_joints_that_do_not_carry_the_link_are_checked_too():
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0).link('c', 1.0)
             .joint('hip', 'spherical', 'a', 'b').joint('knee', 'revolute', 'a', 'c').build())
    workspace, fine, v = rbd_ros.Workspace(model), rbd_ros.neutral(model), np.ones(4)
    names = ('jacobian_dot', 'world_jacobian_dot', 'jacobian_dot_v',
             'world_jacobian_dot_v', 'jacobian_dot_derivatives')
    for link in ('a', 'c'):
        for name in names:
            getattr(workspace, name)(fine, v, link)
            with pytest.raises(rbd_ros.StateError, match='hip'):
                getattr(workspace, name)(np.zeros(5), v, link)
            with pytest.raises(rbd_ros.StateError, match='hip_wy'):
                getattr(workspace, name)(fine, [0.0, np.nan, 0.0, 0.0], link)
        with pytest.raises(rbd_ros.StateError, match='hip'):
            workspace.jacobian_derivatives(np.zeros(5), link)
        with pytest.raises(rbd_ros.StateError, match=r'a of .*hip_wz'):
            workspace.jacobian_ddot(fine, v, [0.0, 0.0, np.inf, 0.0], link)
