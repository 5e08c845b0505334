# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses, Jacobians, momentum and configurations of many states, against single calls."""

from functools import cache, partial
from itertools import product

from covering import covering
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis, batch
from rbd_ros.model.joints import KINDS
from robots import example_urdf, load_quietly, Oracle, random_tree, relative_error

# The same recursions on the same numbers, side by side: of the largest entry.
AGREEMENT = 1e-13
# Of Pinocchio, which adds up in another order, over 12 bodies; and of central differences.
ROUNDING, DIFFERENCES, STEP = 1e-12, 1e-7, 1e-5
SINGLE = 2.0 ** -23
MOVING = [kind for kind in KINDS if kind != 'fixed']
# s
DT = 0.3
# What each function takes: configurations, others, velocities, a link, a time.
ARGUMENTS = {
    'gravity_torques': 'Q', 'forward_kinematics': 'Q', 'body_jacobian': 'Ql',
    'world_jacobian': 'Ql', 'jacobian_dot': 'QVl', 'world_jacobian_dot': 'QVl',
    'center_of_mass': 'Q', 'com_jacobian': 'Q', 'com_jacobian_dot': 'QV',
    'centroidal_momentum_matrix': 'Q', 'centroidal_momentum_matrix_dot': 'QV',
    'integrate': 'QVt', 'difference': 'QP'}
NAMES = sorted(ARGUMENTS)
OF_LINK = [name for name in NAMES if 'l' in ARGUMENTS[name]]
ROBOTS = {'screws': random_tree(1, 6), 'all kinds': random_tree(3, 7, kinds=MOVING),
          'floating': rbd_ros.with_floating_base(random_tree(5, 9)), 'few': random_tree(3, 3),
          'mimic': load_quietly(example_urdf('panda.urdf'))}


@cache
def random_states(model, count, seed):
    """Return configurations, others, and velocities."""
    rng = np.random.default_rng(seed)
    return (*(np.reshape([rbd_ros.random_configuration(model, rng) for _ in range(count)],
                         (count, model.nq)) for _ in range(2)), rng.normal(size=(count, model.nv)))


def arguments(model, name, count, seed=0):
    """Return what a function takes for a number of states."""
    Q, P, V = (x.copy() for x in random_states(model, count, seed))
    known = {'Q': Q, 'P': P, 'V': V,
             'l': model.link_names[-1 - seed % len(model.link_names)], 't': DT}
    return [known[letter] for letter in ARGUMENTS[name]]


def single(name):
    """Return the function for one state."""
    return getattr(rbd_ros, name, None) or getattr(analysis, name)


def of_state(states, k):
    """Return the arguments of the function for one state."""
    return [x[k] if isinstance(x, np.ndarray) else x for x in states]


def assert_close(got, expected, tolerance=AGREEMENT):
    """Compare arrays by the largest entry."""
    assert got.shape == expected.shape
    largest = max(1.0, np.max(np.abs(expected), initial=0.0))
    assert np.all(np.abs(got - expected) <= tolerance * largest)


# None, one, a full set of lanes, one more, and more states than one task has.
@pytest.mark.parametrize('name, kind, count', covering(
    product(NAMES, ROBOTS, [0, 1, 2, 7, 8, 9, 19, batch.CHUNK + 37]),
    *product(NAMES, ['all kinds'], [0, 9]), *product(NAMES, ['floating'], [batch.CHUNK + 37]),
    ('gravity_torques', 'few', 9), ('jacobian_dot', 'screws', 9), ('body_jacobian', 'mimic', 9),
    ('center_of_mass', 'mimic', 0)))
def test_results_are_those_of_single_calls(name, kind, count):
    model, one = ROBOTS[kind], single(name)
    states = arguments(model, name, count, count)
    before = [x.copy() for x in states if isinstance(x, np.ndarray)]
    got = getattr(batch, name)(model, *states, threads=2)
    assert all(np.array_equal(x, y) for x, y in zip(before, states))
    assert len(got) == count and got.flags.carray
    for k in sorted({*range(min(count, 19)), *range(max(count - 5, 0), count)}):
        assert_close(got[k], one(model, *of_state(states, k)))


@pytest.mark.parametrize('kind, name', covering(
    product(['all kinds', 'mimic'], OF_LINK), *product(['all kinds'], OF_LINK),
    ('mimic', 'body_jacobian')))
def test_every_link_has_its_own_jacobian_and_the_root_has_none(kind, name):
    model = ROBOTS[kind]
    *states, _ = arguments(model, name, 9)
    for link in model.link_names:
        got = getattr(batch, name)(model, *states, link)
        for k in (0, 8):
            assert_close(got[k], single(name)(model, *of_state(states, k), link))
    assert not np.any(getattr(batch, name)(model, *states, model.link_names[0]))
    with pytest.raises(rbd_ros.ModelError, match="no link 'nowhere'"):
        getattr(batch, name)(model, *states, 'nowhere')


@pytest.mark.parametrize('kind', covering(['all kinds', 'mimic'], 'all kinds'))
@pytest.mark.parametrize('name', NAMES)
def test_results_are_written_where_the_user_wants_them(name, kind):
    model, function = ROBOTS[kind], getattr(batch, name)
    states = arguments(model, name, 21)
    expected = function(model, *states)
    for out in (np.full(expected.shape, 7.0), np.full((*expected.shape, 2), 7.0)[..., 0],
                np.full(expected.shape, 7.0, np.float32)):
        assert function(model, *states, out=out) is out
        assert np.array_equal(out, expected.astype(out.dtype))
    with pytest.raises(rbd_ros.StateError, match='out has the shape'):
        function(model, *states, out=np.zeros((20, *expected.shape[1:])))
    if name in ('integrate', 'difference') and expected.shape == states[0].shape:
        with pytest.raises(rbd_ros.StateError, match='out shares memory with Q'):
            function(model, *states, out=states[0])


@pytest.mark.parametrize('k', covering([0, 7, 8, 22, batch.CHUNK + 3], 8, batch.CHUNK + 3))
@pytest.mark.parametrize('kind', covering(['screws', 'floating', 'mimic'], 'floating'))
@pytest.mark.parametrize('name', NAMES)
def test_the_state_that_cannot_be_computed_is_named(name, kind, k):
    model, function = ROBOTS[kind], getattr(batch, name)
    count = max(23, k + 5)
    states = arguments(model, name, count)
    expected = function(model, *states)
    for bad, value in ((0, np.nan), (len([x for x in states if isinstance(x, np.ndarray)]) - 1,
                                     np.inf)):
        wrong = [x.copy() if isinstance(x, np.ndarray) else x for x in states]
        wrong[bad][k, -1] = value
        with pytest.raises(rbd_ros.StateError, match=rf'^state {k}: .*must be finite'):
            function(model, *wrong)
    # It leaves nothing behind.
    assert np.array_equal(function(model, *states), expected)


@pytest.mark.parametrize('name', NAMES)
def test_a_quaternion_that_is_zero_is_named(name):
    model = ROBOTS['floating']
    states = arguments(model, name, 12)
    states[0][9, :4] = 0.0
    with pytest.raises(rbd_ros.StateError, match=r'^state 9: the quaternion'):
        getattr(batch, name)(model, *states)


def test_progress_and_threads_are_as_for_dynamics():
    model = ROBOTS['floating']
    for name in NAMES:
        function, told = getattr(batch, name), []
        states = arguments(model, name, 2 * batch.CHUNK + 9)
        one = function(model, *states, threads=1)
        two = function(model, *states, threads=3,
                       progress=lambda *counts, told=told: told.append(counts))
        assert np.array_equal(one, two)
        assert len(told) == 3 and told[-1] == (len(one), len(one))


@pytest.fixture(scope='module')
def oracle():
    """Return the Panda here and in Pinocchio."""
    return Oracle(example_urdf('panda.urdf'), ROBOTS['mimic'])


# Single calls, with which the others agree, are compared with Pinocchio elsewhere, too.
@pytest.mark.long
def test_poses_jacobians_and_momentum_are_those_of_pinocchio(oracle):
    model = oracle.model
    Q, V = arguments(model, 'com_jacobian_dot', 9)
    links = ('panda_link4', 'panda_hand', 'panda_rightfinger')
    poses, g = batch.forward_kinematics(model, Q), batch.gravity_torques(model, Q)
    com, J_com = batch.center_of_mass(model, Q), batch.com_jacobian(model, Q)
    A, A_dot = (batch.centroidal_momentum_matrix(model, Q),
                batch.centroidal_momentum_matrix_dot(model, Q, V))
    J = {link: batch.body_jacobian(model, Q, link) for link in links}
    J_dot = {link: batch.world_jacobian_dot(model, Q, V, link) for link in links}
    aligned = pinocchio.ReferenceFrame.LOCAL_WORLD_ALIGNED
    for k, (q, v) in enumerate(zip(Q, V)):
        zero = np.zeros_like(v)
        assert relative_error(g[k], oracle.tau(q, zero, zero)) < ROUNDING
        for got, expected in zip((com[k], J_com[k]), oracle.com(q)):
            assert relative_error(got, expected) < ROUNDING
        for link in links:
            assert relative_error(poses[k, model.link_index(link)],
                                  oracle.pose(q, link)) < ROUNDING
            assert relative_error(J[link][k], oracle.jacobian(q, link)) < ROUNDING
            pinocchio.computeJointJacobiansTimeVariation(oracle.pin, oracle.data, oracle.q(q),
                                                         oracle.G @ v)
            pinocchio.updateFramePlacements(oracle.pin, oracle.data)
            frame = oracle.pin.getFrameId(link, pinocchio.FrameType.BODY)
            rate = pinocchio.getFrameJacobianTimeVariation(oracle.pin, oracle.data, frame,
                                                           aligned) @ oracle.G
            assert relative_error(J_dot[link][k], np.roll(rate, 3, axis=0)) < ROUNDING
    # The root's mass rests, but moves the centre: the linear rows alone are Pinocchio's.
    for k, (q, v) in enumerate(zip(Q, V)):
        pinocchio.dccrba(oracle.pin, oracle.data, oracle.q(q), oracle.G @ v)
        assert relative_error(A[k, 3:], oracle.data.Ag[:3] @ oracle.G) < ROUNDING
        assert relative_error(A_dot[k, 3:], oracle.data.dAg[:3] @ oracle.G) < ROUNDING


@pytest.mark.parametrize('kind', ['all kinds', 'floating'])
@pytest.mark.parametrize('name', [name for name in NAMES if name.endswith('_dot')])
def test_rates_are_those_of_central_differences(name, kind):
    model = ROBOTS[kind]
    Q, V, *link = arguments(model, name, 9)
    without = {'jacobian_dot': 'body_jacobian'}.get(name, name.removesuffix('_dot'))
    function = partial(single(without), model)
    got = getattr(batch, name)(model, Q, V, *link)
    for k in range(9):
        ahead, back = (function(rbd_ros.integrate(model, Q[k], V[k], h), *link)
                       for h in (STEP, -STEP))
        assert_close(got[k], (ahead - back) / (2.0 * STEP), DIFFERENCES)


@pytest.mark.parametrize('kind', covering(
    ['all kinds', 'floating', 'mimic'], 'all kinds', 'floating'))
def test_jacobians_are_the_differences_of_poses_and_points(kind):
    model, link = ROBOTS[kind], ROBOTS[kind].link_names[-1]
    Q, V = arguments(model, 'com_jacobian_dot', 9)
    ahead, back = (batch.integrate(model, Q, V, h) for h in (STEP, -STEP))
    where = model.link_index(link)
    speed = (batch.forward_kinematics(model, ahead)
             - batch.forward_kinematics(model, back))[:, where, :3, 3] / (2.0 * STEP)
    assert_close(np.einsum('tij,tj->ti', batch.world_jacobian(model, Q, link)[:, 3:], V), speed,
                 DIFFERENCES)
    speed = (batch.center_of_mass(model, ahead) - batch.center_of_mass(model, back)) / (2 * STEP)
    assert_close(np.einsum('tij,tj->ti', batch.com_jacobian(model, Q), V), speed, DIFFERENCES)
    momentum = np.einsum('tij,tj->ti', batch.centroidal_momentum_matrix(model, Q), V)
    assert_close(momentum[:, 3:], model.mass * np.einsum(
        'tij,tj->ti', batch.com_jacobian(model, Q), V), ROUNDING)


@pytest.mark.parametrize('turn', [0.0, 1e-9, 1e-5, 0.009, 0.011, 1.0, 3.1])
def test_configurations_move_as_in_pinocchio(turn):
    # A free joint and a ball joint, with turns around those where the series end.
    model = (rbd_ros.ModelBuilder('two').link('a').link('b', mass=1.0, inertia=[0.1] * 3)
             .link('c', mass=1.0, inertia=[0.1] * 3).joint('free', 'free', 'a', 'b')
             .joint('ball', 'spherical', 'b', 'c').build())
    rng = np.random.default_rng(1)
    pin = pinocchio.Model()
    first = pin.addJoint(0, pinocchio.JointModelFreeFlyer(), pinocchio.SE3.Identity(), 'free')
    pin.addJoint(first, pinocchio.JointModelSpherical(), pinocchio.SE3.Identity(), 'ball')
    # Ours: quaternion, position; twists angular first.
    to_pin, v_to_pin = [4, 5, 6, 0, 1, 2, 3, 7, 8, 9, 10], [3, 4, 5, 0, 1, 2, 6, 7, 8]
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(12)])
    V = rng.normal(size=(12, 9))
    for part in (slice(0, 3), slice(6, 9)):
        V[:, part] *= turn / np.linalg.norm(V[:, part], axis=1)[:, None]
    moved = batch.integrate(model, Q, V, 1.0)
    assert_close(batch.difference(model, Q, moved), V, 1e-14)
    for k in range(12):
        expected = pinocchio.integrate(pin, Q[k][to_pin], V[k][v_to_pin])
        same = np.sign(moved[k][:4] @ expected[3:7]), np.sign(moved[k][7:] @ expected[7:])
        assert_close(same[0] * moved[k][:4], expected[3:7], 1e-14)
        assert_close(moved[k][4:7], expected[:3], 1e-14)
        assert_close(same[1] * moved[k][7:], expected[7:], 1e-14)
        back = pinocchio.difference(pin, Q[k][to_pin], Q[k - 1][to_pin])
        assert_close(batch.difference(model, Q[k:k + 1], Q[k - 1][None])[0][v_to_pin], back, 1e-12)
    # The other sign of a quaternion is the same rotation.
    Q[:, :4] *= -1.0
    assert_close(batch.difference(model, Q, moved), V, 1e-14)
