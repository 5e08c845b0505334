# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Configurations of robots with closed loops are closed, and errors say what is wrong."""

from copy import copy, deepcopy
from dataclasses import replace
import pickle

from closed_robots import CASES, closed_robot, RANDOM
from covering import covering
from hypothesis import HealthCheck, settings, strategies as st
from hypothesis.stateful import initialize, invariant, precondition, rule, RuleBasedStateMachine
from loop_robots import MOTORS
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, ModelBuilder, ModelError, SingularError, StateError
from rbd_ros.model import Constraint, normalize, with_constraints, with_springs
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.positions import closure
from rbd_ros.model.positions.configurations import closed_along, independent_positions
from rbd_ros.model.se3 import pose, rotation_from_rpy
from rbd_ros.simulation.simulator import Simulator

# Gaps of closed loops, m and rad.
CLOSED = 1e-10
ROUNDING = 1e-9
LENGTHS = {'crank': 0.3, 'coupler': 0.7, 'rocker': 0.6}
ABOUT_Y = rotation_from_rpy((np.pi / 2, 0.0, 0.0))


@pytest.fixture(params=CASES)
def robot(request):
    return closed_robot(request.param)


def planar_tree(lengths=LENGTHS, **joints):
    """Return a crank, a coupler and a rocker in the x-z plane, whose loop is open."""
    builder = ModelBuilder('bars').link('ground')
    for name, x in lengths.items():
        builder.link(name, mass=x, com=(x / 2, 0, 0), inertia=(1e-3, 1e-2, 1e-2))
    builder.joint('j1', 'revolute', 'ground', 'crank', axis=(0, 1, 0), **joints)
    builder.joint('j2', 'revolute', 'crank', 'coupler', xyz=(lengths['crank'], 0, 0),
                  axis=(0, 1, 0))
    builder.joint('j3', 'revolute', 'ground', 'rocker', xyz=(0.8, 0, 0), axis=(0, 1, 0))
    return builder.build()


def pin(kind='revolute', lengths=LENGTHS, **options):
    return Constraint(**{
        'name': 'pin', 'kind': kind, 'link_a': 'coupler', 'link_b': 'rocker',
        'placement_a': pose(ABOUT_Y, np.array([lengths['coupler'], 0, 0])),
        'placement_b': pose(ABOUT_Y, np.array([lengths['rocker'], 0, 0])),
        'length': 0.01 if kind == 'distance' else None, **options})


def four_bar(**options):
    return with_constraints(planar_tree(), [pin()], **options)


def independent(model, oracle, q_0, q_1):
    """Return the step of the independent joints, with differences of the tree."""
    return rbd_ros.difference(oracle.tree, q_0, q_1)[oracle.independent]


def test_configurations_are_closed(robot):
    model, oracle, q, v, _, _ = robot
    assert oracle.gap(rbd_ros.neutral(model)) < CLOSED
    for seed in range(3):
        assert oracle.gap(rbd_ros.random_configuration(model, seed)) < CLOSED
    moved = q
    for _ in range(10):
        moved = rbd_ros.integrate(model, moved, v, 0.01)
        assert oracle.gap(moved) < CLOSED
    assert moved.shape == (model.nq,) and model.nq > model.nv


def test_names_and_sizes_are_those_of_independent_joints(robot):
    model, oracle, _, _, _, _ = robot
    tree = model.unconstrained
    assert tree.constraints == () and tree.unconstrained is tree and tree is oracle.tree
    assert model.position_names == tree.position_names and model.nq == tree.nq
    names = [tree.velocity_names[k] for k in oracle.independent]
    assert list(model.velocity_names) == names and model.nv == len(names)
    assert [one.name for one in model.constraints] == [one.name for one in oracle.constraints]
    for label in ('lower', 'upper', 'effort_limit', 'velocity_limit', 'damping', 'armature',
                  'stiffness', 'angular'):
        assert np.array_equal(getattr(model, label), getattr(tree, label)[oracle.independent])
    count = len(model.constraints)
    assert (f'{count} constraint' + 's' * (count > 1)) in repr(model)
    assert 'constraint' not in repr(tree)


def test_motors_are_chosen_by_default():
    for name in MOTORS:
        one = closed_robot(name)
        chosen = with_constraints(one.oracle.tree, one.model.constraints)
        assert chosen.independent_joints == tuple(
            joint.name for joint in one.oracle.tree.joints if joint.name in MOTORS[name])


def test_difference_is_the_inverse_of_integrate(robot):
    model, oracle, q, v, _, _ = robot
    moved = rbd_ros.integrate(model, q, v, 0.1)
    step = rbd_ros.difference(model, q, moved)
    assert np.max(np.abs(step - 0.1 * v)) < ROUNDING
    assert np.max(np.abs(step - independent(model, oracle, q, moved))) < ROUNDING
    back = rbd_ros.integrate(model, q, step, 1.0)
    assert np.max(np.abs(back - moved)) < ROUNDING
    assert np.max(np.abs(rbd_ros.integrate(model, moved, -step, 1.0) - q)) < 1e-6
    velocity = rbd_ros.difference(oracle.tree, rbd_ros.integrate(model, q, v, -1e-5),
                                  rbd_ros.integrate(model, q, v, 1e-5)) / 2e-5
    assert np.max(np.abs(velocity - oracle.G(q) @ v)) < 1e-6 * max(1.0, np.max(np.abs(velocity)))


def test_normalize_keeps_independent_joints(robot):
    model, oracle, q, _, _, _ = robot
    rng = np.random.default_rng(1)
    dependent = np.setdiff1d(range(oracle.tree.nv), oracle.independent)
    step = np.zeros(oracle.tree.nv)
    step[dependent] = 0.01 * rng.normal(size=len(dependent))
    opened = rbd_ros.integrate(oracle.tree, q, step, 1.0)
    assert oracle.gap(opened) > 1e-4
    found = normalize(model, opened)
    assert oracle.gap(found) < CLOSED
    assert np.max(np.abs(independent(model, oracle, opened, found))) < ROUNDING
    assert np.max(np.abs(normalize(model, found) - found)) < ROUNDING
    assert np.max(np.abs(found - q)) < 0.3


def test_normalize_takes_the_branch_of_its_guess():
    model = four_bar(independent=['j1'])
    crossed, parallel = (normalize(model, [-1.0, guess, rocker]) for guess, rocker in (
        (1.5, -0.3), (0.5, -2.0)))
    assert crossed[0] == parallel[0] == -1.0
    assert np.max(np.abs(crossed - parallel)) > 0.5
    for q in (crossed, parallel):
        ends = rbd_ros.forward_kinematics(model, q)
        a = ends[model.link_index('coupler')] @ pin().placement_a
        b = ends[model.link_index('rocker')] @ pin().placement_b
        assert np.max(np.abs(a - b)[:3, 3]) < CLOSED
        # A small step stays on the branch.
        near = rbd_ros.integrate(model, q, [0.01], 1.0)
        assert np.max(np.abs(near - q)) < 0.05


@pytest.mark.parametrize('name, reach', [('four_bar', 6.0), ('slider_crank', 6.0),
                                         ('palletizer', 1.0), ('delta', 0.9)])
def test_long_steps_of_loops_end_at_the_same_configuration_as_short_ones(name, reach):
    model, _, q, *_ = closed_robot(name)
    for seed in range(4):
        step = reach * np.random.default_rng(seed).uniform(-1.0, 1.0, model.nv)
        there = q
        for _ in range(100):
            there = rbd_ros.integrate(model, there, step, 0.01)
        assert np.max(np.abs(rbd_ros.integrate(model, q, step, 1.0) - there)) < ROUNDING


@pytest.mark.parametrize('name', ['delta', 'weld of balls', 'to the root', 'coupled'])
def test_closing_loops_converges_quadratically(name, monkeypatch):
    model, oracle, q, *_ = closed_robot(name)
    rng = np.random.default_rng(0)
    dependent = np.setdiff1d(range(oracle.tree.nv), oracle.independent)
    closed = []
    monkeypatch.setattr(closure, 'ITERATIONS', 10)
    for _ in range(20):
        step = np.zeros(oracle.tree.nv)
        step[dependent] = 0.2 * rng.normal(size=len(dependent))
        found = closure.close(model, rbd_ros.integrate(oracle.tree, q, step, 1.0))
        closed.append(found is not None and oracle.gap(found) < 1e-12)
    assert np.mean(closed) > 0.8


@pytest.mark.parametrize('name', ['slider_crank', 'delta'])
def test_loops_are_closed_near_any_guess(name):
    model, oracle, *_ = closed_robot(name)
    for seed in range(60):
        guess = rbd_ros.random_configuration(oracle.tree, seed)
        q = closure.close_nearby(oracle.tree, model.loops, guess)
        assert oracle.gap(q) < CLOSED and np.max(np.abs(q - guess)) < np.pi


def test_loops_that_cannot_be_closed_are_given_up_before_the_last_step(monkeypatch):
    steps, step = [], closure.moved
    monkeypatch.setattr(closure, 'moved', lambda *given: steps.append(given) or step(*given))
    monkeypatch.setattr('rbd_ros.model.constraints.TRIES', 0)
    with pytest.raises(ModelError, match='cannot be closed'):
        with_constraints(planar_tree(), [pin('distance', length=99.0)])
    assert 10 < len(steps) < closure.ITERATIONS // 2


@pytest.mark.parametrize('name', list(MOTORS))
def test_random_configurations_are_within_limits(name):
    model, rng = closed_robot(name).model, np.random.default_rng(0)
    tree = model.unconstrained
    draws = np.array([rbd_ros.random_configuration(model, rng) for _ in range(20)])
    assert np.all(draws >= tree.lower - 1e-12) and np.all(draws <= tree.upper + 1e-12)
    assert np.min(np.ptp(draws, axis=0)) > 0.01
    same = [rbd_ros.random_configuration(model, 5) for _ in range(2)]
    assert np.array_equal(*same)


def test_an_open_configuration_is_refused_with_its_gap(robot):
    model, oracle, q, v, a, tau = robot
    step = np.zeros(oracle.tree.nv)
    size = np.abs(oracle.jacobian(q)).max(axis=0)
    step[np.argmax(size)] = 1e-3
    opened = rbd_ros.integrate(oracle.tree, q, step, 1.0)
    link, t = model.link_names[-1], np.array([0.0, 0.01])
    workspace = rbd_ros.Workspace(model)
    sprung = with_springs(model, stiffness={
        joint.name: 1.0 for joint in model.joints if joint.nv})
    for function, *rest in (
            (rbd_ros.mass_matrix,), (rbd_ros.inverse_dynamics, v, a), (rbd_ros.gravity_torques,),
            (rbd_ros.forward_dynamics, v, tau), (rbd_ros.bias_torques, v), (rbd_ros.all_terms, v),
            (rbd_ros.coriolis_matrix, v), (rbd_ros.com_jacobian,), (rbd_ros.body_jacobian, link),
            (rbd_ros.hybrid_dynamics, v, a, tau, np.arange(model.nv) == 0),
            (rbd_ros.jacobian_dot, v, link), (rbd_ros.torque_regressor, v, a),
            (rbd_ros.inverse_dynamics_derivatives, v, a), (rbd_ros.constraint_forces, v, a),
            (rbd_ros.forward_dynamics_derivatives, v, tau), (analysis.energy, v),
            (analysis.mass_matrix_derivatives,), (analysis.link_com_jacobian, link),
            (analysis.analytic_jacobian, link), (rbd_ros.integrate, v, 0.01),
            (rbd_ros.difference, q), (rbd_ros.simulate, v, 0.0 * v, t), (Simulator,),
            (lambda *_: rbd_ros.friction_torques(model, v, q=opened),),
            (lambda *_: rbd_ros.difference(model, q, opened),),
            (lambda *_: rbd_ros.batch.integrate(model, opened[None], v[None], 0.01),),
            (lambda *_: rbd_ros.spring_torques(sprung, opened),),
            (lambda *_: workspace.configuration_terms(opened),),
            (lambda *_: workspace.inverse_dynamics_packed(np.concatenate((opened, v, a))),)):
        with pytest.raises(StateError, match=r"the loops of robot '.*' are open.*: constraint "
                           r"'.*' is open by .* mm.*; close them with rbd_ros.model.normalize"):
            function(model, opened, *rest)
    # Nothing of it stays.
    assert np.all(np.isfinite(rbd_ros.mass_matrix(model, q)))


def test_configurations_within_the_tolerance_of_closed_loops_can_be_integrated():
    model, oracle, q, v, *_ = closed_robot('four_bar')
    near = q + np.array([0.0, 0.0, 1e-7])
    assert 1e-9 < oracle.gap(near) < 3e-7
    rbd_ros.mass_matrix(model, near)
    moved = rbd_ros.integrate(model, near, v, 0.01)
    assert oracle.gap(moved) < CLOSED
    assert np.max(np.abs(moved - rbd_ros.integrate(model, q, v, 0.01))) < 1e-6


@pytest.mark.parametrize('name', covering(
    ['four_bar', 'palletizer', 'delta', 'mimics'], 'four_bar', 'mimics'))
def test_samples_of_loops_are_closed_in_sequence(name):
    model, oracle, *_ = closed_robot(name)
    own, q = independent_positions(model), rbd_ros.neutral(model)
    t = np.linspace(0.0, 1.0, 12)[:, None]
    X = q[own] + 0.1 * np.sin(3.0 * t * np.arange(1, len(own) + 1))
    X[8:] += 0.35       # a jump, longer than a stride
    found = closed_along(model, X)
    assert np.array_equal(found[:, own], X)
    for x, expected in zip(X, found):
        start = q[own]
        for part in np.linspace(0.0, 1.0, 5)[1:]:
            q = q.copy()
            q[own] = start + part * (x - start)
            q = oracle.close(q, oracle.independent)
        assert oracle.gap(expected) < CLOSED
        assert np.max(np.abs(q - expected)) < ROUNDING


def test_samples_of_joints_with_quaternions_are_closed():
    model, oracle, _, v, *_ = closed_robot('balls')
    Q = [rbd_ros.neutral(model)]
    for _ in range(5):
        Q.append(rbd_ros.integrate(model, Q[-1], v, 0.002))
    own = independent_positions(model)
    found = closed_along(model, np.array(Q)[:, own])
    assert np.max(np.abs(found - Q)) < ROUNDING
    assert max(oracle.gap(q) for q in found) < CLOSED


def test_positions_out_of_reach_are_refused():
    short = {**LENGTHS, 'coupler': 0.2}
    model = with_constraints(planar_tree(short), [pin(lengths=short)], ['j1'])
    with pytest.raises(StateError, match=r'cannot be closed from q with its positions of the '
                       'independent joints, j1.*give positions that the robot can reach'):
        normalize(model, [np.pi, 0.0, 0.0])


@pytest.mark.parametrize('turn, words', [
    (0.0, 'closed'), (1e-9, 'closed'), (2e-6, 'open by 0.0012 mm'), (1e-3, 'open by 0.6 mm')])
def test_gaps_in_messages_are_rounded(turn, words):
    # The rocker is 0.6 m long and turns about the axis of the pin.
    loops = four_bar().loops
    text = closure.gap_in_words(loops, loops.neutral + [0.0, 0.0, turn])
    assert text == f"constraint 'pin' is {words}"


def test_wrong_vectors_are_named(robot):
    model, _, q, v, a, _ = robot
    for call, label in ((lambda: rbd_ros.inverse_dynamics(model, q[:-1], v, a), 'q'),
                        (lambda: rbd_ros.inverse_dynamics(model, q, np.zeros(model.nq + 9), a),
                         'v'),
                        (lambda: rbd_ros.forward_dynamics(model, q, v, np.nan * a), 'tau'),
                        (lambda: rbd_ros.mass_matrix(model, np.nan * q), 'q')):
        with pytest.raises(StateError, match=f'^{label} '):
            call()


def test_singular_configurations_name_loop_and_joints():
    lengths = {'crank': 0.5, 'coupler': 0.5, 'rocker': 0.4}
    tree = planar_tree(lengths)
    model = with_constraints(tree, [pin('point', lengths)], ['j3'])
    # Stretched: the crank and the coupler in line.
    crank = -np.arccos((1.0 ** 2 + 0.8 ** 2 - 0.4 ** 2) / (2 * 1.0 * 0.8))
    tip = 1.0 * np.array([np.cos(crank), -np.sin(crank)])
    q = np.array([crank, 0.0, np.arctan2(-tip[1], tip[0] - 0.8)])
    for call in (lambda: rbd_ros.mass_matrix(model, q),
                 lambda: rbd_ros.inverse_dynamics(model, q, [1.0], [0.0])):
        with pytest.raises(SingularError, match=r"the loop of 'pin' is singular here: its "
                           r"independent joints do not determine 'j1', 'j2'"):
            call()
    other = with_constraints(tree, [pin('point', lengths)], ['j1'])
    assert np.all(np.isfinite(rbd_ros.mass_matrix(other, q)))


@pytest.mark.parametrize('constraint, words', [
    (pin(kind='screw'), "its kind is 'screw', expected one of point, revolute, weld, distance"),
    (pin(link_a='cupler'), "names link 'cupler', which is not there"),
    (pin(link_b='coupler'), "joins link 'coupler' to itself"),
    (pin('distance', length=0.0), 'its length must be positive'),
    (pin('distance', length=-1.0), 'its length must be positive'),
    (pin('distance', length=None), 'length'),
    (pin(length=1.0), "only the kind 'distance' has a length"),
    (pin(placement_a=2.0 * np.eye(4)), 'its placement_a is no pose'),
    (pin(placement_b=np.diag([1.0, 1.0, -1.0, 1.0])), 'its placement_b is no pose'),
    (pin(placement_b=np.full((4, 4), np.nan)), 'placement_b'),
    (pin('distance', length=99.0), 'cannot be closed: '),
    (pin('weld', placement_b=pose(rotation_from_rpy((0.0, np.pi / 2, 0.0)) @ ABOUT_Y,
                                  np.array([LENGTHS['rocker'], 0, 0]))),
     'leave no degree of freedom')])
def test_wrong_constraints_are_refused_by_name(constraint, words, monkeypatch):
    monkeypatch.setattr('rbd_ros.model.constraints.TRIES', 10)
    with pytest.raises(ModelError) as raised:
        with_constraints(planar_tree(), [constraint])
    assert words in str(raised.value) and 'pin' in str(raised.value)


def test_links_that_are_fixed_to_each_other_form_no_loop():
    tree = rbd_ros.with_payload(planar_tree(), 'crank', 1.0)
    with pytest.raises(ModelError, match='joins links that are fixed to each other'):
        with_constraints(tree, [pin('point', link_a='crank', link_b='crank/payload')])
    with pytest.raises(ModelError, match="'pin'"):
        with_constraints(planar_tree(), [pin('point'), pin('point')])


@pytest.mark.parametrize('names, words', [
    (['nothing'], "independent joint 'nothing': robot 'bars' has no such joint"),
    (['j1', 'j2'], 'has 1 degree of freedom, but the independent joints have 2 velocities'),
    ([], 'has 1 degree of freedom, but the independent joints have 0 velocities'),
    ('j1', 'independent must be a list of names of joints')])
def test_wrong_independent_joints_are_refused_by_name(names, words):
    with pytest.raises(ModelError) as raised:
        four_bar(independent=names)
    assert words in str(raised.value)


def test_independent_joints_that_do_not_determine_the_rest_are_refused():
    builder = ModelBuilder('two').link('ground')
    for name in 'ab':
        builder.link(name, mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint(f'j{name}', 'prismatic', 'ground', name, axis=(1, 0, 0))
        builder.link(f'{name}2', mass=1.0, inertia=(1.0, 1.0, 1.0))
        builder.joint(f'j{name}2', 'prismatic', name, f'{name}2', axis=(0, 1, 0))
    tree = builder.build()
    distance = Constraint('tie', 'point', 'a2', 'b2')
    assert with_constraints(tree, [distance], ['ja', 'ja2']).nv == 2
    with pytest.raises(ModelError, match=r'do not determine j[ab]2'):
        with_constraints(tree, [distance], ['ja', 'jb'])


def test_without_constraints_the_tree_is_back():
    tree = planar_tree()
    model = with_constraints(tree, [pin()])
    assert with_constraints(model, []) is tree
    assert with_constraints(model, [pin('point')]).constraints[0].kind == 'point'


@pytest.mark.parametrize('again', [copy, deepcopy, lambda x: pickle.loads(pickle.dumps(x))])
def test_copies_compute_the_same(robot, again):
    model, _, q, v, a, _ = robot
    same = again(model)
    assert np.array_equal(rbd_ros.inverse_dynamics(same, q, v, a),
                          rbd_ros.inverse_dynamics(model, q, v, a))
    assert np.array_equal(rbd_ros.neutral(same), rbd_ros.neutral(model))
    workspace = again(rbd_ros.Workspace(model))
    assert np.array_equal(workspace.mass_matrix(q), rbd_ros.mass_matrix(model, q))


class ClosedMachine(RuleBasedStateMachine):
    """Motions and changes of a robot, after which loops are closed and energies consistent."""

    @initialize(name=st.sampled_from([*MOTORS, *RANDOM]))
    def start(self, name):
        self.model, self.oracle, self.q, *_ = closed_robot(name)
        self.locked = 0

    @rule(seed=st.integers(0, 99), time=st.floats(-0.05, 0.05))
    def integrate(self, seed, time):
        v = np.random.default_rng(seed).normal(size=self.model.nv)
        try:
            q = rbd_ros.integrate(self.model, self.q, v, time)
        except StateError as error:
            assert 'leave the range in which the loops close' in str(error)
            return
        assert np.max(np.abs(rbd_ros.difference(self.model, self.q, q) - time * v)) < ROUNDING
        self.q = q

    @rule(seed=st.integers(0, 99))
    def normalize(self, seed):
        tree = self.model.unconstrained
        step = 1e-3 * np.random.default_rng(seed).normal(size=tree.nv)
        self.q = normalize(self.model, rbd_ros.integrate(tree, self.q, step, 1.0))

    @rule(mass=st.floats(0.1, 2.0), k=st.integers(0, 99))
    def load(self, mass, k):
        links = [one.name for one in self.model.links if not one.is_load]
        before = self.model.mass
        link = links[k % len(links)]
        self.model = rbd_ros.model.without_payload(self.model, link)
        self.model = rbd_ros.with_payload(self.model, link, mass, (0.1, 0.0, 0.2))
        assert self.model.mass > before - 2.0

    @rule(x=st.floats(-10.0, 10.0))
    def gravity(self, x):
        self.model = rbd_ros.with_gravity(self.model, (x, 1.0, -9.0))

    @precondition(lambda self: self.locked < 2 and self.model.nv > 2)
    @rule(k=st.integers(0, 99))
    def lock(self, k):
        moving = self.model.moving_joints
        if not moving:
            return
        joint, at, _ = moving[k % len(moving)]
        if joint.nv >= self.model.nv:
            return
        before = self.model
        self.model = rbd_ros.with_locked_joints(before, {joint.name: self.q[at]})
        kept = [before.velocity_names.index(name) for name in self.model.velocity_names
                if name in before.velocity_names]
        whole, self.q = self.q, np.delete(self.q, at)
        self.q = normalize(self.model, self.q)
        self.locked += 1
        if self.model.velocity_names == tuple(before.velocity_names[j] for j in kept):
            M = rbd_ros.mass_matrix(before, whole)[np.ix_(kept, kept)]
            assert np.max(np.abs(rbd_ros.mass_matrix(self.model, self.q) - M)) < 1e-6 * M.max()

    @invariant()
    def closed_and_consistent(self):
        model, q = self.model, self.q
        v, a = np.random.default_rng(0).normal(size=(2, model.nv))
        tau = rbd_ros.inverse_dynamics(model, q, v, a)      # refuses an open q
        assert np.max(np.abs(rbd_ros.forward_dynamics(model, q, v, tau) - a)) < 1e-6
        C = rbd_ros.coriolis_matrix(model, q, v)
        h = 1e-5
        ends = [sum(analysis.energy(model, rbd_ros.integrate(model, q, v + 0.5 * t * a, t),
                                    v + t * a)) for t in (-h, h)]
        power = v @ tau
        scale = np.abs(v * tau).sum() + np.abs(v @ C @ v) + 1e-6 * abs(ends[0]) / h
        assert abs((ends[1] - ends[0]) / (2.0 * h) - power) < 1e-5 * max(1.0, scale)


TestClosedMachine = ClosedMachine.TestCase
TestClosedMachine.settings = settings(
    max_examples=6, stateful_step_count=12, deadline=None, derandomize=True,
    suppress_health_check=list(HealthCheck))


def two_bars(distance):
    """Return two bars of 1 m between pivots; and a parallelogram, if there is no distance."""
    y, inertia = (0.0, 1.0, 0.0), (0.1, 0.1, 0.1)
    builder = rbd_ros.ModelBuilder('bars').link('base')
    for name in ('a', 'b', *(() if distance else ('c',))):
        builder.link(name, 1.0, (0.5, 0.0, 0.0), inertia)
    builder.joint('ja', 'revolute', 'base', 'a', axis=y)
    builder.joint('jb', 'revolute', 'a', 'b', xyz=(1.0, 0.0, 0.0), axis=y)
    if distance:
        return builder.constraint('pin', 'point', 'base', 'b', xyz_a=(distance, 0.0, 0.0),
                                  xyz_b=(1.0, 0.0, 0.0))
    builder.joint('jc', 'revolute', 'base', 'c', xyz=(0.5, 0.0, 0.0), axis=y)
    return builder.constraint('pin', 'point', 'b', 'c', xyz_a=(0.5, 0.0, 0.0),
                              xyz_b=(1.0, 0.0, 0.0))


@pytest.mark.parametrize('distance', [1.5, 2.0])
def test_rigid_loops_leave_no_degree_of_freedom_also_where_they_are_stretched(distance):
    # Stretched, at 2 m, the equations allow a velocity, but no motion.
    with pytest.raises(ModelError, match='leave no degree of freedom'):
        two_bars(distance).build()


def test_a_neutral_configuration_that_is_singular_is_reported():
    model = two_bars(None).build()
    assert model.nv == 1 and any('singular in the neutral' in one for one in model.warnings)
    with pytest.raises(rbd_ros.SingularError):
        rbd_ros.mass_matrix(model, rbd_ros.neutral(model))
    assert not any('singular' in one for one in four_bar().warnings)


# -- Bad input, and ties. -------------------------------------------------------------------------
@pytest.mark.parametrize('name, own', [
    ('five_bar', ('left_shoulder', 'right_elbow')), ('delta', None)])
def test_ties_of_independent_joints_do_not_depend_on_rounding(name, own):
    # No joint is preferred for its motor.
    model = rebuild(closed_robot(name).model.unconstrained, joints=[
        replace(joint, effort=(1.0,) * joint.nv) for joint in closed_robot(name).model.joints])
    constraints, rng, found = closed_robot(name).model.constraints, np.random.default_rng(0), set()
    for k in range(8):
        joints = [replace(joint, placement=joint.placement + (k > 0) * np.block([
            [np.zeros((3, 3)), 1e-9 * rng.uniform(-0.3, 0.3, (3, 1))], [np.zeros(4)]]))
            for joint in model.joints]
        found.add(with_constraints(rebuild(model, joints=joints), constraints).velocity_names)
    assert len(found) == 1
    if own:
        assert found == {own}


def test_a_distance_that_no_joint_changes_is_an_error():
    tree = planar_tree()
    # The pivot of the coupler is a point of both links.
    fixed = pin('distance', name='rod', link_a='ground', link_b='coupler', length=0.5,
                placement_a=np.eye(4), placement_b=np.eye(4))
    axis = replace(fixed, link_b='crank', length=0.3,
                   placement_b=pose(np.eye(3), np.array([0.3, 0.0, 0.0])))
    for first in (pin(), pin('point')):
        with pytest.raises(ModelError, match=r"constraint 'rod' holds points at a distance that "
                           r'no joint changes: remove it, or check its links and placements'):
            with_constraints(tree, [first, axis])
    with pytest.raises(ModelError, match="'rod' holds points"):
        with_constraints(tree, [pin(), replace(fixed, length=0.3)])
