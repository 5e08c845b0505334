# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joints that mimic others: sums in the kernels against products with G, as it is written."""

from dataclasses import replace
from inspect import signature

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
import rbd_ros.coupled_workspaces
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import KINDS
from rbd_ros.quantities import QUANTITIES
from robots import example_urdf, load_quietly, random_tree, relative_error, with_mimics

# The same sums in another order.
ROUNDING = 1e-12
SEEDS = range(8)
MAPPED = [name for name, one in QUANTITIES.items() if one.maps and one.function]


def mimics_and_tree(seed):
    """Return a robot with mimics, the same with every joint free, q, v and a of both, and G."""
    model = random_tree(seed, 9, kinds=list(KINDS))
    # With a floating base, whose columns kernels treat apart, too.
    model = with_mimics(rbd_ros.with_floating_base(model) if seed == 2 else model, seed)
    tree = rebuild(model, joints=[replace(joint, mimic=None) for joint in model.joints])
    fold = model.coordinates
    assert model.nv < tree.nv
    rng = np.random.default_rng(seed)
    q, v, a = rbd_ros.random_configuration(model, rng), *rng.normal(size=(2, model.nv))
    of_tree = fold.multiplier * q[fold.source] + fold.offset, fold.G @ v, fold.G @ a
    return model, (q, v, a), tree, of_tree, fold.G


def assert_all_equal(got, expected):
    got, expected = list(got), list(expected)
    assert len(got) == len(expected)
    for one, other in zip(got, expected):
        assert relative_error(one, other) < ROUNDING


def folded(G, x, shape):
    """Return an array of the tree with every axis of coordinates, those that shrink, by G."""
    x = np.asarray(x)
    for axis, length in enumerate(shape):
        if length != x.shape[axis]:
            x = np.moveaxis(np.tensordot(x, G, (axis, 0)), -1, axis)
    return x


def parts(found):
    """Return the results of a method in a sequence."""
    return found if isinstance(found, tuple) else [found]


def arguments_of(method, link, **vectors):
    """Return the arguments of a method, in order, without options."""
    known = {**vectors, 'v_r': vectors['a'], 'a_r': 2.0 * vectors['v'], 'link': link}
    return [known[name] for name in signature(method).parameters if name in known]


# Kernels for mimics and balls take a minute to compile; test_interpreted.py runs their source.
@pytest.mark.parametrize('seed', SEEDS)
def test_all_joints_move_as_the_map_of_mimics_predicts(seed):
    model, (q, v, _), _, (Q, V, _), _ = mimics_and_tree(seed)
    fold, some = model.coordinates, [0, len(V) - 1]
    assert_all_equal((fold.position(q), fold.velocity(v)), (Q, V))
    assert_all_equal((fold.part(some, some).position(q), fold.part(some, some).velocity(v)),
                     (Q[some], V[some]))


@pytest.mark.parametrize('seed', [
    pytest.param(0, id='screws'), pytest.param(1, id='spherical', marks=pytest.mark.long),
    pytest.param(2, id='floating', marks=pytest.mark.long)])
@pytest.mark.parametrize('name', MAPPED)
def test_each_quantity_is_that_of_the_tree_mapped_by_g(name, seed):
    model, (q, v, a), tree, (q_t, v_t, a_t), G = mimics_and_tree(seed)
    w, t, link = rbd_ros.Workspace(model), rbd_ros.Workspace(tree), model.link_names[-1]
    method = QUANTITIES[name].method
    # The second time, nothing of the first state may be left.
    for factor in (1.0, -0.5):
        found, of_tree = (parts(getattr(one, name)(*arguments_of(
            method, link, q=x, v=factor * y, a=factor * z)))
            for one, x, y, z in ((w, q, v, a), (t, q_t, v_t, a_t)))
        assert_all_equal(found, [folded(G, x, np.shape(one)) for one, x in zip(found, of_tree)])
    if QUANTITIES[name].states is not None:
        factors = np.linspace(-1.0, 1.0, 9)
        many = parts(getattr(batch, name)(model, *arguments_of(
            method, link, q=np.tile(q, (9, 1)), v=np.outer(factors, v), a=np.outer(factors, a))))
        one_by_one = [parts(QUANTITIES[name].function(model, *arguments_of(
            method, link, q=q, v=factor * v, a=factor * a))) for factor in factors]
        assert_all_equal(many, [np.stack(x) for x in zip(*one_by_one)])


@pytest.mark.filterwarnings('ignore:these links move but have no mass')
def test_missing_entries_do_not_hide_the_cause_of_an_error():
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
             .link('c').joint('i', 'revolute', 'a', 'b', axis=(0, 0, 1))
             .joint('light', 'revolute', 'b', 'c', axis=(0, 0, 1)).build())
    prescribed, zeros = np.array([True, False]), np.zeros(2)
    with pytest.raises(rbd_ros.SingularError, match="'light' moves no inertia"):
        rbd_ros.hybrid_dynamics(model, zeros, zeros, [1.0, np.nan], [np.nan, 1.0], prescribed)


@pytest.mark.parametrize('seed', SEEDS)
def test_wrenches_and_both_factorizations_are_mapped_by_g(seed):
    model, (q, v, a), tree, (q_t, v_t, a_t), G = mimics_and_tree(seed)
    w, t = rbd_ros.Workspace(model), rbd_ros.Workspace(tree)
    push = {'external_wrenches': {model.link_names[-1]: np.arange(6.0)}}
    assert_all_equal([w.inverse_dynamics(q, v, a, **push)],
                     [G.T @ t.inverse_dynamics(q_t, v_t, a_t, **push)])
    for factorization in ('christoffel', 'body'):
        M, C, g, Cv, J, com = t.all_terms(q_t, v_t, factorization=factorization)
        assert_all_equal(w.all_terms(q, v, factorization=factorization),
                         [G.T @ M @ G, G.T @ C @ G, G.T @ g, G.T @ Cv, J @ G, com])
        assert_all_equal(
            [w.slotine_li_regressor(q, v, a, 2.0 * v - a, factorization=factorization)],
            [G.T @ t.slotine_li_regressor(q_t, v_t, a_t, 2.0 * v_t - a_t,
                                          factorization=factorization)])


@pytest.mark.parametrize('seed', SEEDS)
def test_hybrid_dynamics_and_its_derivatives_solve_the_folded_equations(seed):
    model, (q, v, a), tree, (q_t, v_t, _), G = mimics_and_tree(seed)
    w, t = rbd_ros.Workspace(model), rbd_ros.Workspace(tree)
    push = {'external_wrenches': {model.link_names[-1]: np.arange(6.0)}}
    rng = np.random.default_rng(seed)
    for prescribed in (rng.random(model.nv) < 0.5, np.zeros(model.nv, bool),
                       np.ones(model.nv, bool)):
        tau = rng.normal(size=model.nv)
        given = np.where(prescribed, a, np.nan), np.where(prescribed, np.nan, tau)
        M, b = G.T @ t.configuration_terms(q_t).M @ G, G.T @ t.bias_torques(q_t, v_t, **push)
        p = ~prescribed
        expected = np.where(prescribed, a, 0.0)
        expected[p] = np.linalg.solve(M[np.ix_(p, p)], (tau - b - M @ expected)[p])
        allowed = ROUNDING * np.linalg.cond(M)
        got = w.hybrid_dynamics(q, v, *given, prescribed, **push)
        assert relative_error(got[0], expected) < allowed
        assert relative_error(M @ got[0] + b, got[1]) < allowed
        assert np.array_equal(got[0][prescribed], a[prescribed])
        assert np.array_equal(got[1][p], tau[p])
        D = [G.T @ X @ G for X in t.inverse_dynamics_derivatives(
            q_t, v_t, G @ expected, **push)]
        derivatives, *again = w.hybrid_dynamics_derivatives(q, v, *given, prescribed, **push)
        assert np.array_equal(got, again)
        by_q, by_v, by_input = dense_derivatives(*D, prescribed)
        assert relative_error(derivatives.by_position, by_q) < allowed
        assert relative_error(derivatives.by_velocity, by_v) < allowed
        assert relative_error(derivatives.by_input, by_input) < allowed


def dense_derivatives(D_q, D_v, M, prescribed):
    """Return the derivatives of the unknowns, M_pp da_p = dtau_p - D_p dx - M_pa da_a."""
    given, free = np.flatnonzero(prescribed), np.flatnonzero(~prescribed)
    inverse = np.linalg.inv(M[np.ix_(free, free)])
    parts = []
    for D in (D_q, D_v):
        part = D.copy()
        part[free] = -inverse @ D[free]
        part[given] += M[np.ix_(given, free)] @ part[free]
        parts.append(part)
    by_input = np.zeros_like(M)
    by_input[np.ix_(free, free)] = inverse
    by_input[np.ix_(free, given)] = -inverse @ M[np.ix_(free, given)]
    by_input[np.ix_(given, given)] = M[np.ix_(given, given)]
    by_input[given] += M[np.ix_(given, free)] @ by_input[free]
    return *parts, by_input


@pytest.mark.parametrize('seed', seeds(30))
def test_hybrid_derivatives_of_trees_are_those_of_dense_algebra(seed):
    model = random_tree(seed, 8, kinds=[kind for kind in KINDS if kind != 'fixed'])
    rng = np.random.default_rng(seed)
    q, v, a, tau = rbd_ros.random_configuration(model, rng), *rng.normal(size=(3, model.nv))
    w = rbd_ros.Workspace(model)
    for share in (0.0, 0.2, 0.5, 0.8, 1.0):
        prescribed = rng.random(model.nv) < share
        got, a_all, tau_all = w.hybrid_dynamics_derivatives(q, v, a, tau, prescribed)
        got = [part.copy() for part in got]
        D = w.inverse_dynamics_derivatives(q, v, a_all)
        allowed = ROUNDING * np.linalg.cond(D.by_input)
        for one, other in zip(got, dense_derivatives(*D, prescribed)):
            assert relative_error(one, other) < allowed
        assert np.array_equal(w.hybrid_dynamics(q, v, a, tau, prescribed), (a_all, tau_all))


@pytest.mark.filterwarnings('ignore:these links move but have no mass')
@pytest.mark.parametrize('seed', range(16))
def test_a_joint_in_line_with_another_moves_no_inertia_despite_rounding(seed):
    rng = np.random.default_rng(seed)
    axis = rng.normal(size=3)
    model = (rbd_ros.ModelBuilder('r').link('a').link('b')
             .link('c', 1.7, rng.normal(size=3), (0.1, 0.2, 0.25))
             .link('d', 0.3, rng.normal(size=3), (0.01, 0.02, 0.025))
             .link('e', 0.4, rng.normal(size=3), (0.01, 0.02, 0.025))
             .joint('i', 'revolute', 'a', 'b', rpy=rng.uniform(-3.0, 3.0, 3), axis=axis)
             .joint('j', 'revolute', 'b', 'c', xyz=0.3 * axis, axis=axis)
             .joint('k', 'prismatic', 'c', 'd', xyz=rng.normal(size=3), axis=rng.normal(size=3))
             .joint('l', 'prismatic', 'c', 'e', axis=rng.normal(size=3), mimic=('k',)).build())
    assert not model.coordinates.is_identity
    q, v, tau = rng.normal(size=(3, 3))
    with pytest.raises(rbd_ros.SingularError, match="'i' moves no inertia"):
        rbd_ros.forward_dynamics(model, q, v, tau)
    # Nothing is wrong once one of the two is given.
    for given in ([True, False, False], [False, True, False]):
        a, tau = rbd_ros.hybrid_dynamics(model, q, v, v, tau, given)
        back = rbd_ros.inverse_dynamics(model, q, v, a)
        assert relative_error(back, tau) < 1e3 * ROUNDING


HYBRID = ('hybrid_dynamics', 'hybrid_dynamics_derivatives')
ROBOTS = {'tree': random_tree(2, 7), 'mimics': load_quietly(example_urdf('panda.urdf'))}


@pytest.mark.parametrize('robot', ROBOTS)
@pytest.mark.parametrize('method', HYBRID)
def test_ungiven_entries_are_ignored_and_arguments_stay_unchanged(robot, method):
    model = ROBOTS[robot]
    w, rng = rbd_ros.Workspace(model), np.random.default_rng(0)
    q, (v, a, tau) = rng.normal(size=model.nq), rng.normal(size=(3, model.nv))
    prescribed = np.arange(model.nv) % 2 == 0
    plain = getattr(w, method)(q, v, a, tau, prescribed)[-2:]
    for nothing in (np.nan, np.inf, 1e300):
        a_n, tau_n = np.where(prescribed, a, nothing), np.where(prescribed, nothing, tau)
        for mask in (prescribed, prescribed.tolist(), prescribed.astype(int)):
            arguments = [x.copy() for x in (q, v, a_n, tau_n)]
            got = getattr(w, method)(*arguments, mask)[-2:]
            assert np.array_equal(got, plain)
            for x, y in zip(arguments, (q, v, a_n, tau_n)):
                assert np.array_equal(x, y, equal_nan=True)
                assert not any(np.shares_memory(x, part) for part in got)
            # They stay as they are when the workspace is used again.
            w.forward_dynamics(q, v, tau)
            w.hybrid_dynamics(q, 2.0 * v, a, tau, ~prescribed)
            assert np.array_equal(got, plain)
