# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics with mimic joints: against dense algebra and Pinocchio, for many states."""

from dataclasses import replace

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros.batch.tasks import Problem
from rbd_ros.kernels.tree.layout import BLOCK, LANES, PARENT
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import Mimic
from rbd_ros.workspace.memory import scratch
from robots import Oracle, random_tree, relative_error

# Times the condition of M: the same equations, solved in another order.
ROUNDING = 1e-12
STATES = 11
# Pinocchio asks for limits.
LIMITS = {'lower': -1.0, 'upper': 1.0, 'velocity': 1.0, 'effort': 1.0}
SCREWS = ['revolute', 'prismatic', 'helical', 'universal']
BALLS = ['free', 'spherical', 'revolute', 'prismatic', 'helical']
# Kernels for mimics and balls take long to compile; kernels/test_interpreted.py runs their source.
TREES = [*(pytest.param(seed, SCREWS, id=f'screws{seed}') for seed in range(3)),
         *(pytest.param(seed, BALLS, id=f'balls{seed}', marks=pytest.mark.long)
           for seed in range(12))]
LIMITED = ('revolute', 'prismatic')


def coupled_tree(seed, count, kinds=('revolute', 'prismatic', 'continuous')):
    """Return a random tree in which joints mimic others before or behind them, on any branch."""
    rng = np.random.default_rng(seed)
    model = random_tree(seed, count, kinds=kinds)
    single = [joint.name for joint in model.joints if joint.nv == 1]
    leaders = list(rng.permutation(single)[:max(2, len(single) // 2)])
    copies = {name: Mimic(str(rng.choice(leaders)), rng.normal(), rng.normal())
              for name in single if name not in leaders}
    return rebuild(model, joints=[replace(joint, mimic=copies.get(joint.name),
                                          **{label: (sign * 9.0,) * joint.nv for label, sign in
                                             LIMITS.items() if joint.kind in LIMITED})
                                  for joint in model.joints])


def equations(model, q, v, a, push=None):
    """Return G^T M G, G^T tau and the derivatives G^T D G at a, from the tree alone."""
    tree = rebuild(model, joints=[replace(joint, mimic=None) for joint in model.joints])
    G, of_tree = model.coordinates.G, (model.coordinates.position(q), model.coordinates.G @ v,
                                       model.coordinates.G @ a)
    D = rbd_ros.inverse_dynamics_derivatives(tree, *of_tree, external_wrenches=push)
    return (G.T @ rbd_ros.mass_matrix(tree, of_tree[0]) @ G,
            G.T @ rbd_ros.inverse_dynamics(tree, *of_tree, external_wrenches=push),
            [G.T @ part @ G for part in D])


def states_of(model, seed, count=STATES):
    """Return states of a robot: q, v, a and tau."""
    rng = np.random.default_rng(seed)
    return (np.array([rbd_ros.random_configuration(model, rng) for _ in range(count)]),
            *rng.normal(size=(3, count, model.nv)))


@pytest.mark.parametrize('seed', seeds(20))
def test_accelerations_are_those_of_pinocchio_for_couplings_across_branches(seed, tmp_path):
    model = coupled_tree(seed, 12)
    path = tmp_path / 'robot.urdf'
    rbd_ros.save_urdf(model, path)
    model = rbd_ros.load_urdf(path)
    oracle = Oracle(path, model)
    oracle.pin.gravity.linear[:] = model.gravity
    for q, v, _, tau in zip(*states_of(model, seed, 3)):
        M, b = oracle.M(q), oracle.tau(q, v, np.zeros(model.nv))
        expected = np.linalg.solve(M, tau - b)
        allowed = ROUNDING * np.linalg.cond(M)
        assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), expected) < allowed
        by_tau = rbd_ros.forward_dynamics_derivatives(model, q, v, tau).by_input
        assert relative_error(by_tau, np.linalg.inv(M)) < allowed


@pytest.mark.parametrize('seed, kinds', TREES)
def test_many_states_of_robots_with_mimics_are_solved_together(seed, kinds, monkeypatch):
    model = coupled_tree(seed, 12, kinds)
    Q, V, A, Tau = states_of(model, seed)
    rng = np.random.default_rng(seed)
    mask = rng.random(model.nv) < 0.5
    push = {model.link_names[-1]: rng.normal(size=(STATES, 6))}
    nothing = np.where(mask, A, np.nan), np.where(mask, np.nan, Tau)

    def alone(problem, k):
        raise AssertionError(f'state {k} was computed alone')
    monkeypatch.setattr(Problem, 'alone', alone)
    got = rbd_ros.batch.forward_dynamics(model, Q, V, Tau, external_wrenches=push)
    derivatives = rbd_ros.batch.forward_dynamics_derivatives(model, Q, V, Tau,
                                                             external_wrenches=push)
    all_a, all_tau = rbd_ros.batch.hybrid_dynamics(model, Q, V, *nothing, mask,
                                                   external_wrenches=push)
    # Nothing of the hybrid dynamics or of the wrenches stays behind, nor of a single state.
    rbd_ros.hybrid_dynamics(model, Q[0], V[0], A[0], Tau[0], mask)
    plain = rbd_ros.batch.forward_dynamics(model, Q, V, Tau)
    for k, (q, v, a, tau) in enumerate(zip(Q, V, A, Tau)):
        of_state = {link: wrench[k] for link, wrench in push.items()}
        M, b, _ = equations(model, q, v, np.zeros(model.nv), of_state)
        allowed = ROUNDING * np.linalg.cond(M)
        expected = np.linalg.solve(M, tau - b)
        assert relative_error(got[k], expected) < allowed
        without = equations(model, q, v, np.zeros(model.nv))[1]
        assert relative_error(plain[k], np.linalg.solve(M, tau - without)) < allowed
        _, _, (by_q, by_v, _) = equations(model, q, v, expected, of_state)
        for one, D in zip(derivatives, (-by_q, -by_v, np.eye(model.nv))):
            assert relative_error(one[k], np.linalg.solve(M, D)) < allowed
        assert np.array_equal(all_a[k][mask], a[mask])
        assert np.array_equal(all_tau[k][~mask], tau[~mask])
        assert relative_error(M @ all_a[k] + b, all_tau[k]) < allowed


def test_results_of_many_states_go_to_arrays_of_the_user():
    model = coupled_tree(3, 12, SCREWS)
    Q, V, A, Tau = states_of(model, 3)
    expected = rbd_ros.batch.forward_dynamics(model, Q, V, Tau)
    for out in (np.empty(Tau.shape), np.empty(Tau.shape, np.float32), np.empty(Tau.shape[::-1]).T):
        assert rbd_ros.batch.forward_dynamics(model, Q, V, Tau, out=out) is out
        assert relative_error(out, expected) < np.finfo(out.dtype).eps
    mask = np.arange(model.nv) % 2 == 0
    found = rbd_ros.batch.hybrid_dynamics(model, Q, V, A, Tau, mask)
    outs = np.empty(A.shape, np.float32), np.empty(A.shape)
    rbd_ros.batch.hybrid_dynamics(model, Q, V, A, Tau, mask, out=outs)
    assert np.array_equal(outs[0], found[0].astype(np.float32))
    assert np.array_equal(outs[1], found[1])


@pytest.mark.filterwarnings('ignore:these links move but have no mass')
def test_states_that_cannot_be_solved_are_named():
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
             .link('c', 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1)).link('d')
             .joint('i', 'revolute', 'a', 'b', axis=(0, 0, 1))
             .joint('j', 'revolute', 'b', 'c', axis=(0, 0, 1), mimic=('i',))
             .joint('light', 'revolute', 'c', 'd', axis=(0, 0, 1)).build())
    states = states_of(model, 0)
    for function in (rbd_ros.batch.forward_dynamics, rbd_ros.batch.forward_dynamics_derivatives):
        with pytest.raises(rbd_ros.SingularError, match="state 0: 'light' moves no inertia"):
            function(model, states[0], states[1], states[3])
    mask = np.array([False, True])
    Q, V, A, Tau = (x.copy() for x in states)
    a, tau = rbd_ros.batch.hybrid_dynamics(model, Q, V, A, Tau, mask)
    assert relative_error(rbd_ros.batch.inverse_dynamics(model, Q, V, a), tau) < ROUNDING
    Tau[7, 0] = np.nan
    with pytest.raises(rbd_ros.StateError, match="state 7: tau of 'i' is nan"):
        rbd_ros.batch.hybrid_dynamics(model, Q, V, A, Tau, mask)


def carriers(model):
    """Return the velocity that carries each one in the elimination tree, or -1."""
    table = rbd_ros.Workspace(model)._kept(scratch.elimination_table)[0].view(np.int64)
    slots = [int(table[k // LANES * BLOCK + k % LANES + LANES * PARENT])
             for k in range(1, model.nv + 1)]
    return [b // BLOCK * LANES + b % BLOCK - 1 for b in slots]


def hand(mimics):
    """Return a wrist with two fingers of three joints, of which some mimic others."""
    builder = rbd_ros.ModelBuilder('hand').link('base')
    builder.link('wrist', 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
    builder.joint('wrist', 'revolute', 'base', 'wrist')
    for finger in 'ab':
        up = 'wrist'
        for k in range(3):
            name = f'{finger}{k}'
            builder.link(name, 1.0, (0.1, 0.0, 0.0), (0.1, 0.1, 0.1))
            builder.joint(name, 'revolute', up, name, mimic=mimics.get(name))
            up = name
    return builder.build()


def test_the_factor_keeps_fingers_apart_unless_they_are_coupled():
    # wrist, a0, a1, b0, b1, each followed by a mimic of its finger
    assert carriers(hand({'a2': ('a1',), 'b2': ('b1',)})) == [-1, 0, 1, 0, 3]
    # wrist, a0, a1, a2, b0, b1: what the last one moves is carried by a0 and a1, too
    assert carriers(hand({'b2': ('a1',)})) == [-1, 0, 1, 2, 2, 4]
    # wrist, a0, b0, b1, b2: b1 moves both fingers, so that eliminating it couples a0 and b0
    assert carriers(hand({'a1': ('b1',), 'a2': ('b1',)})) == [-1, 0, 1, 2, 3]
