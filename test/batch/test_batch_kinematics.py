# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Poses, Jacobians, momentum and configurations of many states, against single calls."""

from functools import cache
from itertools import product

from covering import covering
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis, batch
from rbd_ros.model.joints import KINDS
from robots import example_urdf, load_quietly, random_tree

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
