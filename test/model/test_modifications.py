# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots made from others: floating bases, gravity, loads, locked joints, parts, mimics."""

import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import load_urdf_string
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.joints import joint_pose
from rbd_ros.model.positions.configurations import random_configuration
from rbd_ros.textbook import sums_over_links
from robots import example_urdf, load_quietly, random_state, random_tree, relative_error
from urdf_texts import joint, link, mimic, robot

ROUNDING = 1e-11
AGREEMENT = 1e-9

FLOATING = ['talos_reduced.urdf', 'anymal_b_simple_description/robots/anymal.urdf', 'solo12.urdf',
            'icub_reduced.urdf', 'icub.urdf', 'g1_29dof_rev_1_0.urdf']


@pytest.fixture(scope='module')
def arm():
    """Return a UR5."""
    return load_quietly(example_urdf('ur5_robot.urdf'))


@pytest.fixture(scope='module')
def panda():
    """Return a Panda, whose second finger copies the first."""
    return load_quietly(example_urdf('panda.urdf'))


@pytest.mark.parametrize('name', FLOATING)
def test_floating_bases_agree_with_pinocchios_free_flyer(name):
    path = example_urdf(name)
    model = load_quietly(path, floating_base=True)
    pin = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
    data = pin.createData()
    rng = np.random.default_rng(0)
    q = rbd_ros.neutral(model)
    q[7:] = rng.uniform(-1.0, 1.0, model.nq - 7)
    quaternion = rng.normal(size=4)
    q[:4], q[4:7] = quaternion / np.linalg.norm(quaternion), rng.normal(size=3)
    v, a = rng.normal(size=(2, model.nv))

    # Pinocchio: position before quaternion, linear before angular, joints by its own order.
    assert list(model.position_names[:7]) == [
        'base_' + x for x in ('qx', 'qy', 'qz', 'qw', 'x', 'y', 'z')]
    assert list(model.velocity_names[:6]) == [
        'base_' + x for x in ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')]
    joints = [model.velocity_names.index(x) for x in list(pin.names)[2:]]
    order = np.array([3, 4, 5, 0, 1, 2, *joints])
    back = np.argsort(order)
    q_pin = np.concatenate((q[4:7], q[:4], q[np.array(joints) + 1]))
    v_pin, a_pin = v[order], a[order]

    terms = rbd_ros.all_terms(model, q, v)
    M = np.triu(pinocchio.crba(pin, data, q_pin))
    C = pinocchio.computeCoriolisMatrix(pin, data, q_pin, v_pin)
    for got, expected in (
            (rbd_ros.inverse_dynamics(model, q, v, a),
             pinocchio.rnea(pin, data, q_pin, v_pin, a_pin)[back]),
            (terms.M, (M + np.triu(M, 1).T)[np.ix_(back, back)]),
            (terms.C, C[np.ix_(back, back)]),
            (terms.g, pinocchio.computeGeneralizedGravity(pin, data, q_pin)[back]),
            (terms.com_jacobian, pinocchio.jacobianCenterOfMass(pin, data, q_pin)[:, back]),
            (terms.com, data.com[0])):
        assert relative_error(got, expected) < AGREEMENT
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < AGREEMENT * (
        1.0 + 1e-6 * np.linalg.cond(terms.M))


def test_floating_and_planar_joints_of_a_urdf_are_read():
    model = load_urdf_string(robot(
        link('world', ''), link('body'), link('cart'), joint('fly', 'world', 'body', 'floating'),
        joint('drive', 'body', 'cart', 'planar')))
    assert model.velocity_names == (*('fly_' + x for x in ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')),
                                    'drive_x', 'drive_y', 'drive_theta')
    q = rbd_ros.neutral(model)
    q[7:] = 1.0, 2.0, 0.5
    T = rbd_ros.forward_kinematics(model, q)[2]
    assert np.allclose(T[:3, 3], [1.0, 2.0, 0.0])
    assert np.allclose(T[:3, 0], [np.cos(0.5), np.sin(0.5), 0.0])


def test_the_world_of_a_floating_base_gets_a_name_of_its_own():
    model = load_urdf_string(robot(link('world')), floating_base=True)
    assert model.link_names == ('world_', 'world')
    with pytest.raises(rbd_ros.ModelError, match="2 joints are called 'base'"):
        load_urdf_string(robot(link('a'), link('b'), joint('base', 'a', 'b')), floating_base=True)
    empty = load_quietly(example_urdf('ur3.urdf'))
    with pytest.raises(rbd_ros.ModelError, match='no links'):
        rbd_ros.with_floating_base(empty)


def test_a_tilted_mount_is_a_turned_gravity():
    model = load_quietly(example_urdf('ur10_robot.urdf'))
    q, v, a = random_state(model, 0)
    # The same robot on a wall: fixed to a world whose gravity is straight down.
    floating = rbd_ros.with_floating_base(model)
    quaternion = np.array([0.3, -0.5, 0.1, 0.8])
    quaternion /= np.linalg.norm(quaternion)
    mounted = rbd_ros.with_locked_joints(floating, {'base': [*quaternion, 1.0, 2.0, 3.0]})
    R = joint_pose(floating.joints[0], [*quaternion, 0.0, 0.0, 0.0])[:3, :3]
    tilted = rbd_ros.with_gravity(model, R.T @ model.gravity)
    assert relative_error(rbd_ros.inverse_dynamics(mounted, q, v, a),
                          rbd_ros.inverse_dynamics(tilted, q, v, a)) < ROUNDING
    ceiling = rbd_ros.with_gravity(model, [0.0, 0.0, 9.81])
    assert np.allclose(rbd_ros.gravity_torques(ceiling, q), -rbd_ros.gravity_torques(model, q))
    with pytest.raises(rbd_ros.ModelError, match='gravity must be three finite'):
        rbd_ros.with_gravity(model, [0.0, np.nan, 0.0])


def test_a_payload_adds_its_weight_and_can_be_removed(panda):
    model = panda
    q, v, a = random_state(model, 1)
    mass, com, inertia = 2.5, np.array([0.01, 0.02, 0.1]), np.diag([0.02, 0.03, 0.04])
    loaded = rbd_ros.with_payload(model, 'panda_hand', mass, com, inertia)
    assert abs(loaded.mass - model.mass - mass) < 1e-12
    assert loaded.velocity_names == model.velocity_names
    # By hand: the momentum of one more body, through the Jacobian of the link.
    alone = rbd_ros.with_payload(
        rebuild(model, links=[Link(one.name) for one in model.links]),
        'panda_hand', mass, com, inertia)
    for function, state in ((rbd_ros.inverse_dynamics, (q, v, a)), (rbd_ros.mass_matrix, (q,)),
                            (rbd_ros.coriolis_matrix, (q, v)), (rbd_ros.gravity_torques, (q,))):
        total = function(model, *state) + function(alone, *state)
        assert relative_error(function(loaded, *state), total) < ROUNDING
    k = model.link_index('panda_hand')
    T, J = sums_over_links.poses(model, q)[k], sums_over_links.body_jacobians(model, q)[k]
    weight = np.concatenate((np.cross(com, T[:3, :3].T @ model.gravity * mass),
                             T[:3, :3].T @ model.gravity * mass))
    assert relative_error(rbd_ros.gravity_torques(alone, q), -J.T @ weight) < ROUNDING

    other = rbd_ros.with_payload(loaded, 'panda_hand', 1.0)
    assert abs(other.mass - model.mass - 1.0) < 1e-12
    bare = rbd_ros.model.without_payload(other, 'panda_hand')
    assert bare.mass == model.mass
    assert bare.link_names == model.link_names
    assert rbd_ros.model.without_payload(model, 'panda_hand') is model


@pytest.mark.parametrize('arguments, message', [
    (('claw', 1.0), "no link 'claw'"), (('panda_hand', -1.0), 'mass is negative'),
    (('panda_hand', np.nan), "on link 'panda_hand': its mass must be one finite"),
    (('panda_hand', 1.0, (0, 0, np.inf)), 'its centre of mass must be 3 finite'),
    (('panda_hand', 0.0), 'to remove a load'),
    (('panda_hand', 1.0, (0, 0, 0), np.diag([1.0, 0.1, 0.1])), 'triangle inequality')])
def test_impossible_payloads_are_refused(panda, arguments, message):
    with pytest.raises(rbd_ros.ModelError, match=message):
        rbd_ros.with_payload(panda, *arguments)


@pytest.mark.parametrize('seed', range(3))
def test_locked_joints_keep_masses_and_leave_the_rest_of_the_equations(seed):
    model = random_tree(seed, 8, kinds=['revolute', 'prismatic', 'universal', 'spherical', 'free'])
    rng = np.random.default_rng(seed)
    q, v, a = random_configuration(model, rng), *rng.normal(size=(2, model.nv))
    locked = [one.name for one, _, _ in model.moving_joints][1::2]
    positions = {one.name: q[i] for one, i, _ in model.moving_joints if one.name in locked}
    reduced = rbd_ros.with_locked_joints(model, positions)
    assert abs(reduced.mass - model.mass) < 1e-12
    q_kept = np.concatenate([q[i] for one, i, _ in model.moving_joints if one.name not in locked])
    kept = np.concatenate([np.arange(k.start, k.stop) for one, _, k in model.moving_joints
                           if one.name not in locked])
    v_all, a_all = np.zeros(model.nv), np.zeros(model.nv)
    v_all[kept], a_all[kept] = v[kept], a[kept]
    assert relative_error(rbd_ros.inverse_dynamics(reduced, q_kept, v[kept], a[kept]),
                          rbd_ros.inverse_dynamics(model, q, v_all, a_all)[kept]) < ROUNDING
    assert relative_error(rbd_ros.center_of_mass(reduced, q_kept),
                          rbd_ros.center_of_mass(model, q)) < ROUNDING
    assert relative_error(rbd_ros.forward_kinematics(reduced, q_kept),
                          rbd_ros.forward_kinematics(model, q)) < ROUNDING


def test_gripper_fingers_lock_with_those_that_mimic_them(panda):
    arm = rbd_ros.with_locked_joints(panda, {'panda_finger_joint1': 0.03})
    assert arm.nv == 7
    assert arm.coordinates.is_identity
    assert abs(arm.mass - panda.mass) < 1e-12
    q = np.linspace(-1.0, 1.0, 7)
    assert np.allclose(rbd_ros.forward_kinematics(arm, q),
                       rbd_ros.forward_kinematics(panda, [*q, 0.03]))
    same = rbd_ros.model.with_free_joints(panda, [f'panda_joint{k}' for k in range(1, 8)])
    assert same.velocity_names == arm.velocity_names


@pytest.mark.parametrize('positions, message', [
    ({'elbow': 0.0}, "no joint 'elbow'"),
    ({'panda_joint1': [0.0, 1.0]}, "'panda_joint1': its locked position must be 1 finite"),
    ({'panda_joint1': np.nan}, 'must be 1 finite'),
    ({'panda_finger_joint2': 0.0}, "mimics 'panda_finger_joint1'.*leave it out"),
    ({'panda_joint8': 0.0}, 'it is fixed')])
def test_impossible_locks_are_refused(panda, positions, message):
    with pytest.raises(rbd_ros.ModelError, match=message):
        rbd_ros.with_locked_joints(panda, positions)


def test_a_subtree_is_the_part_that_a_link_carries():
    model = load_quietly(example_urdf('talos_reduced.urdf'))
    arm = rbd_ros.subtree(model, 'torso_2_link')
    assert arm.link_names[0] == 'torso_2_link'
    assert all(not name.startswith('leg') for name in arm.velocity_names)
    assert any(name.startswith('arm_left') for name in arm.velocity_names)
    q, _, _ = random_state(arm, 0)
    full = np.zeros(model.nq)
    for name, x in zip(arm.velocity_names, q):
        full[model.velocity_names.index(name)] = x
    # Upright at q = 0, the torques of the arm are the same in the whole robot.
    expected = rbd_ros.gravity_torques(model, full)
    got = rbd_ros.gravity_torques(arm, q)
    for name, x in zip(arm.velocity_names, got):
        assert abs(x - expected[model.velocity_names.index(name)]) < 1e-9
    follower = load_urdf_string(robot(*(link(x) for x in 'abc'), joint('i', 'a', 'b'),
                                      joint('j', 'b', 'c', inside=mimic('i'))))
    with pytest.raises(rbd_ros.ModelError, match="joint 'j' mimics 'i'"):
        rbd_ros.subtree(follower, 'b')


FULL = [[0.01, 0.001, 0.002], [0.001, 0.02, 0.003], [0.002, 0.003, 0.025]]


@pytest.mark.parametrize('inertia, expected', [
    ((0.01, 0.02, 0.025), np.diag((0.01, 0.02, 0.025))),
    ((0.01, 0.02, 0.025, 0.001, 0.002, 0.003), FULL), (FULL, FULL)])
def test_inertias_of_payloads_are_moments_and_then_products_or_a_matrix(arm, inertia, expected):
    loaded = rbd_ros.with_payload(arm, arm.link_names[-1], 2.0, (0.1, 0.0, 0.0), inertia)
    assert np.array_equal(loaded.links[-1].inertia, expected)


@pytest.mark.parametrize('inertia', [0.01, (0.01, 0.02), np.eye(2), np.ones((1, 3)), np.eye(4)])
def test_payloads_with_too_few_numbers_are_refused(arm, inertia):
    with pytest.raises(rbd_ros.ModelError, match='3, 6 or 3 x 3 numbers'):
        rbd_ros.with_payload(arm, arm.link_names[-1], 2.0, inertia=inertia)
    with pytest.raises(rbd_ros.ModelError, match='3 finite numbers'):
        rbd_ros.with_payload(arm, arm.link_names[-1], 2.0, com=0.1)


def follower(kind='revolute', multiplier=-2.0, offset=0.3):
    """Return a robot whose second joint copies the first, which is of a kind."""
    return (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0, (0.1, 0.0, 0.0)).link('c', 2.0)
            .joint('lead', kind, 'a', 'b', axis=(0, 1, 0), xyz=(0, 0, 1))
            .joint('follow', 'revolute', 'b', 'c', axis=(0, 1, 0), xyz=(1, 0, 0),
                   mimic=('lead', multiplier, offset)))


def angle_of(model, q):
    """Return by how much the last link of `follower` is turned, rad."""
    R = rbd_ros.forward_kinematics(model, q)[2, :3, :3]
    return np.arctan2(R[0, 2], R[0, 0])


def test_a_locked_leader_holds_its_follower_at_multiplier_and_offset():
    model = follower().build()
    assert angle_of(model, [0.2]) == pytest.approx(0.2 - 2.0 * 0.2 + 0.3)
    for q in (0.0, 0.2, -0.5):
        locked = rbd_ros.with_locked_joints(model, {'lead': q})
        assert locked.nv == 0
        assert angle_of(locked, []) == pytest.approx(q - 2.0 * q + 0.3)
    free = rbd_ros.model.with_free_joints(model, [])
    assert angle_of(free, []) == pytest.approx(0.3)
    with pytest.raises(rbd_ros.ModelError, match="mimics 'lead': name that one"):
        rbd_ros.model.with_free_joints(model, ['follow'])


def test_a_joint_that_copies_a_fixed_one_stays_at_its_offset():
    with pytest.warns(rbd_ros.ModelWarning, match="'follow' mimics 'lead', which is fixed"):
        model = follower('fixed').build()
    assert model.nv == 0
    assert angle_of(model, []) == pytest.approx(0.3)
    with pytest.raises(rbd_ros.ModelError, match='which is fixed'):
        follower('fixed').build(strict=True)


def test_changes_leave_the_robot_that_they_started_from(panda):
    before = (panda.mass, panda.nv, panda.tree.robot.copy())
    rbd_ros.with_payload(panda, 'panda_hand', 1.0)
    rbd_ros.with_locked_joints(panda, {'panda_joint1': 1.0})
    rbd_ros.with_gravity(panda, [0.0, 0.0, 0.0])
    assert (panda.mass, panda.nv) == before[:2]
    assert np.array_equal(panda.tree.robot, before[2])


def test_a_link_named_like_a_payload_is_not_a_payload():
    robot = (rbd_ros.ModelBuilder('r').link('a', 1.0).link('a/payload', 5.0)
             .joint('mount', 'fixed', 'a', 'a/payload').build())
    assert rbd_ros.model.without_payload(robot, 'a').mass == 6.0
    with pytest.raises(rbd_ros.ModelError, match="2 links are called 'a/payload'"):
        rbd_ros.with_payload(robot, 'a', 1.0)
    loaded = rbd_ros.with_payload(rbd_ros.ModelBuilder('r').link('a', 1.0).build(), 'a', 2.0)
    with pytest.raises(rbd_ros.ModelError, match='is itself a load'):
        rbd_ros.with_payload(loaded, 'a/payload', 1.0)
