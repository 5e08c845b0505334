# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots made from others with closed loops keep their loops, motors and passive drives."""

from types import SimpleNamespace
from unittest.mock import MagicMock

from closed_robots import CASES, closed_robot, driven
from loop_robots import MOTORS
import numpy as np
import pytest
import rbd_ros
from rbd_ros import ModelError
from rbd_ros.model import (
    Constraint, drive_parameters, inertial_parameters, normalize, with_constraints,
    with_drive_parameters, with_free_joints, with_friction, with_inertial_parameters,
    without_payload)
from rbd_ros.view.sliders import Sliders
from rbd_ros.view.tables import coordinates
from robots import relative_error

ROUNDING = 1e-9


@pytest.fixture(params=CASES)
def robot(request):
    return closed_robot(request.param)


def passive(model):
    return np.setdiff1d(range(model.unconstrained.nv), model.loops.own)


def test_payloads_and_gravity_act_through_the_loops(robot):
    model, oracle, q, v, a, _ = robot
    link = model.link_names[-1]
    loaded = rbd_ros.with_payload(model, link, 2.0, (0.1, 0.2, 0.3))
    assert loaded.velocity_names == model.velocity_names and loaded.constraints
    tree, G = oracle.tree, oracle.G(q)
    heavy = rbd_ros.with_payload(tree, link, 2.0, (0.1, 0.2, 0.3))
    V, A = G @ v, G @ a + oracle.gamma(q, G @ v)
    assert relative_error(rbd_ros.inverse_dynamics(loaded, q, v, a),
                          G.T @ rbd_ros.inverse_dynamics(heavy, q, V, A)) < ROUNDING
    bare = without_payload(loaded, link)
    assert relative_error(rbd_ros.mass_matrix(bare, q), rbd_ros.mass_matrix(model, q)) < 1e-12
    floating = rbd_ros.with_gravity(model, (1.0, 2.0, 3.0))
    assert relative_error(rbd_ros.gravity_torques(floating, q), G.T @ rbd_ros.gravity_torques(
        rbd_ros.with_gravity(tree, (1.0, 2.0, 3.0)), q)) < ROUNDING
    assert floating.velocity_names == model.velocity_names
    assert np.array_equal(rbd_ros.neutral(floating), rbd_ros.neutral(model))


def test_torque_regressors_times_inertial_parameters_are_torques_with_closed_loops(robot):
    model, _, q, v, a, _ = robot
    pi = 1.5 * inertial_parameters(model)
    other = with_inertial_parameters(model, pi)
    assert other.velocity_names == model.velocity_names
    rotors = (rbd_ros.inverse_dynamics(model, q, v, a)
              - rbd_ros.torque_regressor(model, q, v, a) @ inertial_parameters(model))
    expected = rbd_ros.torque_regressor(model, q, v, a) @ pi + rotors
    assert relative_error(rbd_ros.inverse_dynamics(other, q, v, a), expected) < ROUNDING


def test_arrays_of_drives_are_for_independent_joints(robot):
    model = driven(robot.model, 1)
    rest = passive(model)
    new = np.arange(1.0, 1.0 + model.nv)
    for changed, label in ((with_friction(model, damping=new), 'damping'),
                           (rbd_ros.with_armature(model, new), 'armature')):
        assert changed.velocity_names == model.velocity_names
        assert np.array_equal(getattr(changed, label), new)
        before, after = (getattr(one.unconstrained, label) for one in (model, changed))
        assert np.array_equal(after[rest], before[rest]) and np.all(after[rest] > 0.0)
        assert np.array_equal(after[model.loops.own], new)
    parameters = drive_parameters(model)
    assert parameters.shape == (3 * model.nv,)
    again = with_drive_parameters(model, 2.0 * parameters)
    assert np.array_equal(drive_parameters(again), 2.0 * parameters)
    assert np.array_equal(again.unconstrained.damping[rest], model.unconstrained.damping[rest])


def test_drives_of_passive_joints_are_set_by_name():
    model = closed_robot('four_bar').model
    changed = with_friction(model, damping={'rocker': 3.0})
    assert changed.unconstrained.damping[2] == 3.0 and changed.damping == model.damping
    v, q = np.array([1.0]), closed_robot('four_bar').q
    G = closed_robot('four_bar').oracle.G(q)
    more = rbd_ros.friction_torques(changed, v, q=q) - rbd_ros.friction_torques(model, v, q=q)
    assert more == pytest.approx((3.0 - model.unconstrained.damping[2]) * G[2] ** 2, rel=1e-9)


def test_loops_that_locked_joints_stop_are_refused_with_the_remedy(monkeypatch):
    monkeypatch.setattr('rbd_ros.model.constraints.TRIES', 10)
    model = closed_robot('four_bar').model
    with pytest.raises(ModelError, match=r'^with crank locked, .* no degree of freedom: remove '
                       'pin; or lock fewer joints, or at other positions$'):
        rbd_ros.with_locked_joints(model, {'crank': 0.0})
    with pytest.raises(ModelError, match='leave no degree of freedom'):
        rbd_ros.with_locked_joints(model, {'coupler': 0.0})
    with pytest.raises(ModelError, match=r'^with crank, coupler locked, .* cannot be closed'):
        rbd_ros.with_locked_joints(model, {'crank': 0.0, 'coupler': 1.0})


def test_locked_joints_leave_the_other_motors():
    model, _, q, *_ = closed_robot('palletizer')
    k = model.position_names.index('shoulder')
    locked = rbd_ros.with_locked_joints(model, {'shoulder': q[k]})
    assert locked.velocity_names == ('yaw', 'flange', 'crank')
    kept = [0, 2, 3]
    q_l = normalize(locked, np.delete(q, k))
    assert np.max(np.abs(q_l - np.delete(q, k))) < ROUNDING
    assert relative_error(rbd_ros.mass_matrix(locked, q_l),
                          rbd_ros.mass_matrix(model, q)[np.ix_(kept, kept)]) < ROUNDING
    # A passive joint instead: one motor less is needed, too.
    k = model.position_names.index('drive_rod')
    locked = rbd_ros.with_locked_joints(model, {'drive_rod': q[k]})
    assert locked.nv == 3 and set(locked.velocity_names) < {*MOTORS['palletizer']}
    q_l = normalize(locked, np.delete(q, k))
    assert np.max(np.abs(q_l - np.delete(q, k))) < ROUNDING
    with pytest.raises(ModelError, match='it is fixed'):
        rbd_ros.with_locked_joints(locked, {'drive_rod': 0.0})


def test_free_joints_keep_the_passive_joints_that_depend_on_them():
    model = closed_robot('palletizer').model
    free = with_free_joints(model, ['shoulder', 'crank'])
    assert free.velocity_names == ('shoulder', 'crank')
    assert {'elbow', 'drive_rod'} <= {joint.name for joint, _, _ in
                                      free.unconstrained.moving_joints}


def test_a_floating_base_carries_the_loops():
    model, _, q, v, _, _ = closed_robot('five_bar')
    floating = rbd_ros.with_floating_base(model)
    assert floating.velocity_names[6:] == model.velocity_names and floating.nv == model.nv + 6
    assert floating.nq == model.nq + 7
    q_f = np.concatenate(([0.0, 0.0, 0.0, 1.0, 1.0, 2.0, 3.0], q))
    M = rbd_ros.mass_matrix(floating, q_f)
    assert relative_error(M[6:, 6:], rbd_ros.mass_matrix(model, q)) < ROUNDING
    assert np.allclose(M[3:6, 3:6], floating.mass * np.eye(3), atol=1e-9)
    turned = rbd_ros.integrate(floating, q_f, np.concatenate((np.ones(6), v)), 0.01)
    assert rbd_ros.mass_matrix(floating, turned).shape == (8, 8)


def test_parts_keep_the_loops_that_lie_in_them():
    model = closed_robot('palletizer').model
    with pytest.raises(ModelError, match=r"constraint '.*' joins links .* of which one is not in "
                       r"the part beyond '.*'"):
        rbd_ros.subtree(model, model.links[-1].name)
    part = rbd_ros.subtree(model, 'column_link')
    assert part.velocity_names == ('shoulder', 'flange', 'crank')
    assert [one.name for one in part.constraints] == [one.name for one in model.constraints]
    leaf = model.joints[[joint.name for joint in model.joints].index('flange')].child
    assert rbd_ros.subtree(model, leaf).constraints == ()


def test_a_joint_may_be_independent_in_part():
    builder = rbd_ros.ModelBuilder('cart').link('world')
    builder.link('cart', mass=2.0, inertia=(0.1, 0.1, 0.1)).joint(
        'drive', 'planar', 'world', 'cart', axis=(0, 0, 1))
    builder.link('rod', mass=1.0, com=(0.2, 0, 0), inertia=(0.01, 0.02, 0.02)).joint(
        'swing', 'continuous', 'cart', 'rod', axis=(0, 0, 1))
    tree = builder.build(gravity=(0.0, -9.81, 0.0))
    tie = Constraint('tie', 'distance', 'world', 'rod', placement_b=np.block(
        [[np.eye(3), np.array([[0.4], [0.0], [0.0]])], [np.zeros(3), 1.0]]), length=1.0)
    names = tree.velocity_names
    model = with_constraints(tree, [tie], [*names[1:]])
    assert model.nv == 3 and model.independent_joints == ('drive', 'swing')
    assert [joint.name for joint, _, _ in model.moving_joints] == ['swing']
    q = rbd_ros.random_configuration(model, 0)
    own = model.loops.own
    assert np.array_equal(coordinates(model, q), q[own])
    v = np.array([0.1, 0.2, 0.3])
    moved = rbd_ros.integrate(model, q, v, 0.01)
    assert np.max(np.abs((moved - q)[own] - 0.01 * v)) < 1e-12
    with pytest.raises(ModelError, match='leave no degree of freedom'):
        rbd_ros.with_locked_joints(model, {'drive': q[:3]})


def page():
    """Return what makes sliders, without a browser."""
    gui = MagicMock()
    gui.add_slider = lambda name, lower, upper, _, value: SimpleNamespace(
        name=name, min=lower, max=upper, value=value)
    return gui


def test_passive_quaternions_have_no_sliders():
    model = closed_robot('to the root').model
    rotating = {joint.name for joint, _, _ in model.unconstrained.moving_joints
                if joint.kind in ('spherical', 'free')}
    assert rotating == {'joint6', 'joint7', 'joint8'}   # of which joint6 is passive
    sliders = Sliders(page(), model)
    assert [[one.name for one in angles] for angles in sliders._angles.values()] == [
        [f'{name} {angle}' for angle in ('roll', 'pitch', 'yaw')] for name in ('joint7', 'joint8')]


def test_sliders_move_motors_and_the_rest_follows():
    model, oracle, *_ = closed_robot('delta')
    sliders = Sliders(page(), model)
    assert [one.name for one in sliders._q.values()] == MOTORS['delta']
    for angle in (0.1, 0.2, 0.3):
        for one in sliders._q.values():
            one.value = angle
        q = sliders.read().q
        assert oracle.gap(q) < 1e-10
        assert np.allclose(q[model.loops.own], angle)
    # Out of reach: the robot stays where it was.
    for one, angle in zip(sliders._q.values(), (1.5, -1.5, 1.5)):
        one.value = 4.0 * angle
    assert oracle.gap(sliders.read().q) < 1e-10
