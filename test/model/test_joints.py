# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every kind of joint, in every algorithm, against independent formulations."""

from copy import deepcopy
from dataclasses import fields, replace
import pickle

from covering import seeds
from differences import rate
from loops_oracle import LoopOracle
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.joints import (
    Joint, joint_pose, joint_screws, joint_subspace, joint_subspace_rate, KINDS, Mimic)
from rbd_ros.model.positions.configurations import difference, integrate, random_configuration
from rbd_ros.model.se3 import Ad, inverse, pose, vee
from rbd_ros.textbook import sums_over_links
from robots import random_tree, relative_error

# Rounding, some twenty bodies deep.
ROUNDING = 1e-11
# Both sides are exact: rounding, a hundred times below on the worst tree.
AGREEMENT = 1e-9
# Central differences of the second order with steps of 1e-5.
DIFFERENCES = 2e-7

MOVING = [kind for kind in KINDS if kind != 'fixed']
SCREWS = [kind for kind in MOVING if KINDS[kind].is_screws]
TREES = seeds(100)


def random_joint(kind, seed):
    """Return a joint of a kind with random axes, and random coordinates and velocities."""
    rng = np.random.default_rng(seed)
    axes = [x / np.linalg.norm(x) for x in rng.normal(size=(2, 3))]
    joint = Joint('joint', kind, 'a', 'b', axis=axes[0], second_axis=axes[1], pitch=0.3)
    q, v = rng.normal(size=joint.nq), rng.normal(size=joint.nv)
    if not KINDS[kind].is_screws:
        q[:4] /= np.linalg.norm(q[:4])
    return joint, q, v


def rate_of(function, joint, q, v):
    """Return the rate of function(joint, q) if the joint moves with v."""
    model = rbd_ros.model.build_model('one', [Link('a'), Link('b', 1.0, inertia=np.eye(3))],
                                      [joint])
    return rate(lambda q: function(joint, q), model, q, v)


@pytest.mark.parametrize('kind', MOVING)
def test_velocities_are_angular_where_their_columns_turn(kind):
    joint, q, _ = random_joint(kind, 0)
    turns = np.any(np.abs(joint_subspace(joint, q)[:3]) > ROUNDING, axis=0)
    assert tuple(turns) == KINDS[kind].angular


@pytest.mark.parametrize('kind', MOVING)
def test_subspace_is_the_derivative_of_the_pose(kind):
    joint, q, v = random_joint(kind, 1)
    twist = vee(inverse(joint_pose(joint, q)) @ rate_of(joint_pose, joint, q, v))
    assert relative_error(joint_subspace(joint, q) @ v, twist) < DIFFERENCES


@pytest.mark.parametrize('kind', MOVING)
def test_subspace_rate_is_the_derivative_of_the_subspace(kind):
    joint, q, v = random_joint(kind, 2)
    assert np.allclose(joint_subspace_rate(joint, q, v), rate_of(joint_subspace, joint, q, v),
                       rtol=0.0, atol=1e-8)


def test_planar_joint_slides_in_its_plane_and_turns_about_its_normal():
    joint = Joint('p', 'planar', 'a', 'b', axis=np.array([0.0, 0.0, 1.0]))
    T = joint_pose(joint, [1.0, 2.0, np.pi / 2])
    assert np.allclose(T, pose([[0, -1, 0], [1, 0, 0], [0, 0, 1]], [1.0, 2.0, 0.0]))


@pytest.mark.parametrize('seed', TREES)
def test_all_algorithms_agree_with_the_closed_forms_on_trees_of_all_kinds(seed):
    model = random_tree(seed, 5 + seed % 7, kinds=list(KINDS))
    rng = np.random.default_rng(seed)
    q = random_configuration(model, rng)
    v, a = rng.normal(size=(2, model.nv))

    terms = rbd_ros.all_terms(model, q, v)
    M = sums_over_links.mass_matrix(model, q)
    C = sums_over_links.coriolis_matrix(model, q, v)
    C_body = sums_over_links.coriolis_matrix(model, q, v, factorization='body')
    g = sums_over_links.gravity_torques(model, q)
    assert relative_error(terms.M, M) < ROUNDING
    assert relative_error(terms.C, C) < ROUNDING
    assert relative_error(rbd_ros.coriolis_matrix(model, q, v, factorization='body'),
                          C_body) < ROUNDING
    assert relative_error(terms.g, g) < ROUNDING
    assert relative_error(C @ v, C_body @ v) < ROUNDING

    link = model.link_names[-1]
    push = rng.normal(size=6)
    jacobians, poses = sums_over_links.body_jacobians(model, q), sums_over_links.poses(model, q)
    tau = M @ a + C @ v + g - jacobians[-1].T @ push
    wrenches = {link: push}
    assert relative_error(rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches),
                          tau) < ROUNDING
    allowed = AGREEMENT + 1e-15 * np.linalg.cond(M)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau, external_wrenches=wrenches),
                          a) < allowed
    prescribed = rng.random(model.nv) < 0.5
    got_a, got_tau = rbd_ros.hybrid_dynamics(model, q, v, a, tau, prescribed,
                                             external_wrenches=wrenches)
    assert relative_error(got_a, a) < allowed
    assert relative_error(got_tau, tau) < allowed

    assert relative_error(rbd_ros.forward_kinematics(model, q), poses) < ROUNDING
    for k in range(0, len(model.links), 3):
        assert relative_error(rbd_ros.body_jacobian(model, q, model.link_names[k]),
                              jacobians[k]) < ROUNDING
    masses = np.array([link.mass for link in model.links])
    centres = np.array([(T @ [*link.com, 1.0])[:3] for T, link in zip(poses, model.links)])
    assert relative_error(terms.com, masses @ centres / model.mass) < ROUNDING
    assert relative_error(terms.g, -model.mass * terms.com_jacobian.T @ model.gravity) < ROUNDING


@pytest.mark.parametrize('factorization', ['christoffel', 'body'])
@pytest.mark.parametrize('seed', seeds(20))
def test_mdot_minus_2c_is_skew_for_all_kinds(seed, factorization):
    model = random_tree(seed, 6, kinds=MOVING)
    rng = np.random.default_rng(seed)
    q, v = random_configuration(model, rng), rng.normal(size=model.nv)
    M_rate = rate(lambda q: rbd_ros.mass_matrix(model, q), model, q, v)
    C = rbd_ros.coriolis_matrix(model, q, v, factorization=factorization)
    assert relative_error(C + C.T, M_rate) < DIFFERENCES


@pytest.mark.parametrize('seed', range(3))
def test_com_jacobian_is_the_derivative_of_the_com_for_all_kinds(seed):
    model = random_tree(seed, 6, kinds=MOVING)
    rng = np.random.default_rng(seed)
    q, v = random_configuration(model, rng), rng.normal(size=model.nv)
    com_rate = rate(lambda q: rbd_ros.center_of_mass(model, q), model, q, v)
    assert relative_error(rbd_ros.com_jacobian(model, q) @ v, com_rate) < DIFFERENCES


def as_chain(model):
    """Return the robot with every joint of screws as one-dof joints between massless links."""
    links, joints = list(model.links), []
    for joint in model.joints:
        parent, placement = joint.parent, joint.placement
        screws = joint_screws(joint) if KINDS[joint.kind].is_screws and joint.nv > 1 else []
        for k, (axis, turn, slide) in enumerate(screws):
            last = k == len(screws) - 1
            child = joint.child if last else f'{joint.name}.{k}'
            if not last:
                links.append(Link(child))
            joints.append(Joint(f'{joint.name}.{k}', 'helical' if turn else 'prismatic', parent,
                                child, placement, axis=axis, pitch=slide))
            parent, placement = child, np.eye(4)
        if not screws:
            joints.append(joint)
    return rbd_ros.model.build_model(model.name, links, joints, gravity=model.gravity)


@pytest.mark.filterwarnings('ignore:these links move but have no mass')
@pytest.mark.parametrize('kind', [kind for kind in SCREWS if KINDS[kind].nv > 1])
def test_a_joint_of_screws_is_a_chain_of_joints_with_massless_links(kind):
    model = random_tree(7, 5, kinds=[kind])
    chain = as_chain(model)
    assert chain.nv == model.nv
    rng = np.random.default_rng(7)
    q, v, a = rng.normal(size=(3, model.nv))
    assert relative_error(rbd_ros.inverse_dynamics(model, q, v, a),
                          rbd_ros.inverse_dynamics(chain, q, v, a)) < ROUNDING
    assert relative_error(rbd_ros.coriolis_matrix(model, q, v),
                          rbd_ros.coriolis_matrix(chain, q, v)) < ROUNDING
    assert relative_error(sums_over_links.mass_matrix(model, q),
                          rbd_ros.mass_matrix(chain, q)) < ROUNDING


@pytest.mark.parametrize('seed', TREES)
def test_all_kinds_agree_with_pinocchio_where_it_is_right(seed):
    # Its q-dependent S (SphericalZYX, Composite) is wrong in C: here such joints are chains.
    model = random_tree(1000 + seed, 4 + seed % 8, kinds=list(KINDS))
    oracle = LoopOracle(model, ())
    rng = np.random.default_rng(seed)
    q = random_configuration(model, rng)
    v, a = rng.normal(size=(2, model.nv))
    state, P = (oracle.pin, oracle.data, oracle.q_pin(q)), oracle.P
    tau = P.T @ pinocchio.rnea(*state, P @ v, P @ a)
    assert relative_error(rbd_ros.inverse_dynamics(model, q, v, a), tau) < AGREEMENT
    got = rbd_ros.forward_dynamics(model, q, v, tau)
    expected = P.T @ pinocchio.aba(*state, P @ v, P @ tau)
    M = oracle.mass_matrix(q)
    assert relative_error(got, expected) < AGREEMENT * (1.0 + 1e-6 * np.linalg.cond(M))
    assert relative_error(rbd_ros.mass_matrix(model, q), M) < AGREEMENT
    C = P.T @ pinocchio.computeCoriolisMatrix(*state, P @ v) @ P
    assert relative_error(rbd_ros.coriolis_matrix(model, q, v), C) < AGREEMENT


def test_a_robot_far_away_loses_no_digits():
    link = Link('body', 2.0, np.array([0.1, 0.0, 0.0]), 0.01 * np.eye(3))
    arm = Link('arm', 0.5, np.array([0.0, 0.1, 0.0]), 0.001 * np.eye(3))
    model = rbd_ros.model.build_model('far', [Link('world'), link, arm], [
        Joint('base', 'free', 'world', 'body'),
        Joint('hinge', 'revolute', 'body', 'arm', pose(np.eye(3), [0.2, 0.0, 0.0]))])
    rng = np.random.default_rng(0)
    q, v = random_configuration(model, rng), rng.normal(size=model.nv)
    near = rbd_ros.all_terms(model, q, v)
    q[4:7] += [1e6, -2e6, 3e6]
    far = rbd_ros.all_terms(model, q, v)
    for name in ('M', 'C', 'g', 'com_jacobian'):
        # The position itself has lost the digits before the comma.
        assert relative_error(getattr(far, name), getattr(near, name)) < 1e-13
    assert np.allclose(far.com - near.com, [1e6, -2e6, 3e6], rtol=1e-15)


@pytest.mark.parametrize('kind', MOVING)
def test_armature_is_in_m_and_in_every_algorithm(kind):
    plain = random_tree(3, 5, kinds=[kind])
    rng = np.random.default_rng(3)
    armature = [tuple(rng.uniform(0.1, 1.0, joint.nv)) for joint in plain.joints]
    model = rebuild(plain, joints=[
        replace(joint, armature=x) for joint, x in zip(plain.joints, armature)])
    q = random_configuration(model, rng)
    v, a = rng.normal(size=(2, model.nv))
    D = np.diag([x for values in armature for x in values])
    assert relative_error(rbd_ros.mass_matrix(model, q),
                          rbd_ros.mass_matrix(plain, q) + D) < ROUNDING
    assert relative_error(sums_over_links.mass_matrix(model, q),
                          rbd_ros.mass_matrix(model, q)) < ROUNDING
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    assert relative_error(tau, rbd_ros.inverse_dynamics(plain, q, v, a) + D @ a) < ROUNDING
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < AGREEMENT
    prescribed = np.arange(model.nv) % 2 == 0
    got = rbd_ros.hybrid_dynamics(model, q, v, a, tau, prescribed)
    assert relative_error(got[0], a) < AGREEMENT
    assert relative_error(got[1], tau) < AGREEMENT


@pytest.mark.parametrize('kind', MOVING)
def test_difference_undoes_integrate(kind):
    model = random_tree(4, 4, kinds=[kind])
    rng = np.random.default_rng(4)
    for size in (1e-9, 1e-3, 1.0, 3.0):
        q, v = random_configuration(model, rng), rng.normal(size=model.nv)
        v *= size / np.linalg.norm(v)
        moved_to = integrate(model, q, v, 1.0)
        assert np.allclose(difference(model, q, moved_to), v, rtol=1e-6, atol=1e-12)
        there = random_configuration(model, rng)
        arrived = integrate(model, q, difference(model, q, there), 1.0)
        assert np.allclose(sums_over_links.poses(model, arrived),
                           sums_over_links.poses(model, there))


def one_joint(kind, **options):
    """Return a body on a joint."""
    return (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0, inertia=(1.0, 1.0, 1.0))
            .joint('j', kind, 'a', 'b', **options).build())


def test_the_difference_of_half_turns_is_half_a_turn():
    model = one_joint('spherical')
    for axis in np.vstack((np.eye(3), -np.eye(3), [[0.6, -0.8, 0.0]])):
        for angle in (np.pi - 1e-9, np.pi):
            there = integrate(model, rbd_ros.neutral(model), angle * axis, 1.0)
            got = difference(model, rbd_ros.neutral(model), there)
            assert np.isclose(np.linalg.norm(got), angle, atol=1e-9)
            assert np.allclose(np.abs(got @ axis), angle, atol=1e-8)


def test_quaternions_of_any_length_are_the_same_configuration():
    model = random_tree(5, 5, kinds=['spherical', 'free'])
    rng = np.random.default_rng(5)
    q, v, a = random_configuration(model, rng), *rng.normal(size=(2, model.nv))
    scaled = q.copy()
    for joint, i, _ in model.moving_joints:
        if joint.kind in ('spherical', 'free'):
            scaled[i.start:i.start + 4] *= -3.0
    assert relative_error(rbd_ros.inverse_dynamics(model, scaled, v, a),
                          rbd_ros.inverse_dynamics(model, q, v, a)) < ROUNDING
    assert np.allclose(np.abs(rbd_ros.model.normalize(model, scaled)), np.abs(q))


def test_a_zero_quaternion_is_refused_by_name():
    model = one_joint('spherical')
    for call in (lambda q: rbd_ros.inverse_dynamics(model, q, np.zeros(3), np.zeros(3)),
                 lambda q: rbd_ros.model.normalize(model, q)):
        with pytest.raises(rbd_ros.StateError, match="'j'"):
            call(np.zeros(4))


def test_neutral_and_random_configurations_keep_to_limits():
    model = random_tree(6, 12, kinds=list(KINDS))
    assert np.allclose(sums_over_links.poses(model, rbd_ros.neutral(model))[1],
                       model.joints[0].placement)
    limited = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0).link('c', 1.0)
               .joint('i', 'prismatic', 'a', 'b', lower=2.0, upper=2.5)
               .joint('j', 'prismatic', 'b', 'c', lower=5.0)
               .link('d', 1.0).joint('k', 'revolute', 'c', 'd', upper=-5.0).build())
    q = np.array([random_configuration(limited, np.random.default_rng(k)) for k in range(50)])
    assert np.all((q[:, 0] >= 2.0) & (q[:, 0] <= 2.5))
    assert np.all((q[:, 1] >= 5.0) & (q[:, 1] <= 6.0))
    assert np.all((q[:, 2] >= -9.0) & (q[:, 2] <= -5.0))


def test_builder_makes_the_described_model():
    model = (rbd_ros.ModelBuilder('r').link('a', 1.0)
             .link('b', 2.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.25, 0.01, 0.02, 0.03))
             .joint('u', 'universal', 'a', 'b', xyz=(1, 2, 3), rpy=(0.1, 0.2, 0.3),
                    axis=(0, 0, 2), second_axis=(0, 3, 0), lower=-1, upper=(1, 2), damping=0.5)
             .build(gravity=(0, 0, -1.6)))
    assert model.velocity_names == ('u_1', 'u_2')
    assert list(model.upper) == [1.0, 2.0]
    assert list(model.damping) == [0.5, 0.5]
    assert list(model.gravity) == [0.0, 0.0, -1.6]
    assert model.links[1].inertia.tolist() == [[0.1, 0.01, 0.02], [0.01, 0.2, 0.03],
                                               [0.02, 0.03, 0.25]]
    T = rbd_ros.forward_kinematics(model, [0.0, 0.0])[1]
    assert np.allclose(T[:3, 3], [1, 2, 3])
    with pytest.raises(rbd_ros.ModelError, match='expected one of fixed, revolute'):
        rbd_ros.ModelBuilder('r').joint('j', 'hinge', 'a', 'b')
    with pytest.raises(rbd_ros.ModelError, match="link 'a': its inertia"):
        rbd_ros.ModelBuilder('r').link('a', inertia=(1.0, 2.0))


def test_twists_of_a_free_body_are_its_own():
    model = one_joint('free')
    q = random_configuration(model, np.random.default_rng(0))
    J = rbd_ros.body_jacobian(model, q, 'b')
    assert np.allclose(J, np.eye(6))
    T = rbd_ros.forward_kinematics(model, q)[1]
    world = rbd_ros.world_jacobian(model, q, 'b')
    assert np.allclose(world, Ad(pose(T[:3, :3], np.zeros(3))))
    assert model.velocity_names == tuple(
        'j_' + x for x in ('wx', 'wy', 'wz', 'vx', 'vy', 'vz'))


@pytest.mark.parametrize('change, message', [
    ({'rpy': (0, 0)}, "'j': its rpy must be 3 finite numbers, got"),
    ({'xyz': (0, 'a', 0)}, "'j': its xyz must be 3"),
    ({'axis': (0, 1)}, "'j': its axis must be 3"),
    ({'damping': (1, 2)}, "'j': its damping must be 3"), ({'lower': np.nan}, "'j': its lower"),
    ({'rigidity': 3.0}, "'j': there is no 'rigidity', only lower"),
    ({'mimic': 'k'}, "'j': mimic must be a joint, a multiplier and an offset"),
    ({'pitch': 'x'}, "'j': its pitch must be one finite")])
def test_builder_names_the_argument_that_it_rejects(change, message):
    builder = rbd_ros.ModelBuilder('r').link('a').link('b', 1.0)
    with pytest.raises(rbd_ros.ModelError, match=message):
        builder.joint('j', 'planar', 'a', 'b', **change)


def test_coordinates_of_one_name_are_refused():
    builder = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0).link('c', 1.0)
               .joint('p', 'planar', 'a', 'b').joint('p_x', 'revolute', 'b', 'c'))
    with pytest.raises(rbd_ros.ModelError, match="2 coordinates are called 'p_x'"):
        builder.build()


@pytest.mark.parametrize('kind, q', [('universal', [0.3, 0.0]),
                                     ('euler_zyx', [0.2, np.pi / 2, 0.1]),
                                     ('free_euler_zyx', [1, 2, 3, 0.2, -np.pi / 2, 0.1])])
def test_errors_distinguish_axes_in_line_from_joints_without_inertia(kind, q):
    axes = {'second_axis': (1, 0, 0)} if kind == 'universal' else {}
    model, zero = one_joint(kind, axis=(1, 0, 0), **axes), np.zeros(len(q))
    with pytest.raises(rbd_ros.SingularError, match="axes of the joint 'j' are in line here"):
        rbd_ros.forward_dynamics(model, q, zero, zero)


def test_integrate_refuses_other_velocities_than_the_robot_has():
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0).link('c', 1.0)
             .joint('s', 'spherical', 'a', 'b').joint('j', 'revolute', 'b', 'c').build())
    q = rbd_ros.neutral(model)
    with pytest.raises(rbd_ros.StateError, match="v of 'j' is nan"):
        integrate(model, q, [0.0, 0.0, 0.0, np.nan], 0.1)
    for v in (0.0, np.zeros(5)):
        with pytest.raises(rbd_ros.StateError, match=r'needs \(4,\)'):
            integrate(model, q, v, 0.1)


# -- Joints and links are compared by the values of their fields. --------------------------------
LINK = Link('a', 1.0, np.ones(3), np.eye(3))
JOINT = Joint('j', 'revolute', 'a', 'b', np.eye(4), np.array([0.0, 0.0, 1.0]))
# Other values of the fields; those of the others are tuples of one number.
OTHER = {
    'name': 'x', 'kind': 'prismatic', 'parent': 'x', 'child': 'x', 'mass': 2.0, 'pitch': 0.1,
    'com': np.array([1.0, 1.0, 2.0]), 'inertia': np.diag([1.0, 1.0, 2.0]), 'is_load': True,
    'is_virtual': True, 'placement': np.diag([1.0, 1.0, 1.0, 2.0]), 'axis': np.ones(3),
    'second_axis': np.ones(3), 'configurations': {'home': (1.0,)}, 'mimic': Mimic('x'),
    'has_motor': False}


@pytest.mark.parametrize('one, label', [
    (one, field.name) for one in (LINK, JOINT) for field in fields(one)])
def test_joints_that_differ_in_one_field_are_unequal(one, label):
    other = replace(one, **{label: OTHER.get(label, (1.5,))})
    assert (one == other) is (other == one) is False and one != other
    assert (other == deepcopy(other)) is True


def test_copies_are_equal_and_other_types_are_not():
    for one in (LINK, JOINT):
        for copy in (deepcopy(one), replace(one), pickle.loads(pickle.dumps(one))):
            assert copy == one
    assert LINK != JOINT and LINK != 'a' and JOINT != None     # noqa: E711
    with pytest.raises(TypeError, match='unhashable'):
        hash(LINK)
