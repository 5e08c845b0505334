# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Forward dynamics with contacts: against Pinocchio and dense equations."""

from dataclasses import replace

import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis import (check_contacts, constrained_dynamics, constrained_inverse_dynamics,
                              Contact)
from rbd_ros.model.constraints import rebuild
from robots import example_urdf, load_quietly, random_tree, relative_error, with_mimics
from standing_robots import balance, corners, dense_dynamics, EXACT, flat, rows_of, SOLE


# -- Forward dynamics. ---------------------------------------------------------------------------
@pytest.mark.parametrize('seed', range(3))
def test_accelerations_and_wrenches_match_pinocchio(standing, seed):
    q, v, tau = standing.state(seed)
    got = constrained_dynamics(standing.model, q, v, tau, standing.contacts)
    a, wrenches = standing.pin_dynamics(q, v, tau, standing.contacts)
    assert relative_error(got.a, a) < EXACT
    assert relative_error(got.wrenches, wrenches) < EXACT
    assert got.redundant == 0


@pytest.mark.parametrize('mimics', [False, True], ids=['tree', 'mimics'])
@pytest.mark.parametrize('seed', range(4))
def test_moving_contacts_of_all_joints_match_dense_equations(seed, mimics):
    kinds = ('revolute', 'prismatic', 'helical', 'universal', 'cylindrical')
    model = (with_mimics(random_tree(seed, 12, kinds), seed) if mimics
             else random_tree(seed, 12, (*kinds, 'spherical')))
    rng = np.random.default_rng(seed)
    q = rbd_ros.random_configuration(model, rng)
    v, tau = rng.normal(size=(2, model.nv))
    deep = model.link_names[-1], model.link_names[-3], model.link_names[-2]
    contacts = [Contact(deep[0], 'surface', SOLE), Contact(deep[1], 'point', (0.1, 0.2, 0.3)),
                Contact(deep[0], 'point', (0.3, 0.0, 0.1)), Contact(deep[2], 'surface')]
    wrenches = {model.link_names[-2]: rng.normal(size=6)}
    for given in (contacts[:1], contacts[1:2], contacts):
        a, f = dense_dynamics(model, q, v, tau, given, wrenches)
        got = constrained_dynamics(model, q, v, tau, given, external_wrenches=wrenches)
        assert relative_error(got.a, a) < EXACT
        assert relative_error(flat(given, got.wrenches), f) < EXACT
        inverse = constrained_inverse_dynamics(model, q, v, a, given,
                                               torque_weights=np.ones(model.nv))
        assert balance(model, q, v, a, given, inverse) < EXACT


# -- Redundant contacts. -------------------------------------------------------------------------
def test_a_contact_given_twice_shares_its_wrench_between_both(talos):
    q, v, tau = talos.state(2)
    left, right = talos.contacts
    once = constrained_dynamics(talos.model, q, v, tau, [left, right])
    twice = constrained_dynamics(talos.model, q, v, tau, [left, right, left])
    assert (once.redundant, twice.redundant) == (0, 6)
    assert relative_error(twice.a, once.a) < EXACT
    assert relative_error(twice.wrenches[1], once.wrenches[1]) < EXACT
    for k in (0, 2):
        assert relative_error(twice.wrenches[k], 0.5 * once.wrenches[0]) < EXACT
    # Nothing of the last call is left.
    again = constrained_dynamics(talos.model, q, v, tau, [left, right, left])
    assert np.array_equal(again.wrenches, twice.wrenches)


def test_four_points_of_a_foot_hold_as_its_sole_does(talos):
    q, v, tau = talos.state(3)
    left, right = talos.contacts
    expected = constrained_dynamics(talos.model, q, v, tau, [left, right])
    points = corners(left.link, 0.1, 0.06)
    got = constrained_dynamics(talos.model, q, v, tau, [*points, right])
    assert got.redundant == 6
    assert relative_error(got.a, expected.a) < EXACT
    T = rbd_ros.forward_kinematics(talos.model, q)[talos.model.link_index(left.link)]
    levers = [T[:3, :3] @ (point.placement - left.placement)[:3, 3] for point in points]
    forces = got.wrenches[:4, 3:]
    total = [*np.cross(levers, forces).sum(axis=0), *forces.sum(axis=0)]
    assert relative_error(total, expected.wrenches[0]) < EXACT
    _, f = dense_dynamics(talos.model, q, v, tau, [*points, right])
    assert relative_error(flat([*points, right], got.wrenches), f) < 1e-8
    # Proximal iterations of Pinocchio
    a, wrenches = talos.pin_dynamics(q, v, tau, [*points, right], mu=1e-7, most=100)
    assert relative_error(got.a, a) < EXACT
    assert relative_error(got.wrenches, wrenches) < 1e-6     # rounding over its mu


@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
@pytest.mark.parametrize('scale', [1e-14, 1e6])
def test_redundant_contact_equations_are_found_at_any_mass(talos, scale):
    q, v, tau = talos.state(12)
    contacts = [*corners('left_sole_link', 0.1, 0.06), *talos.contacts]
    scaled = rebuild(talos.model, links=[replace(
        link, mass=scale * link.mass, inertia=scale * link.inertia)
        for link in talos.model.links])
    expected = constrained_dynamics(talos.model, q, v, tau, contacts)
    got = constrained_dynamics(scaled, q, v, scale * tau, contacts)
    assert got.redundant == expected.redundant == 12
    assert relative_error(got.a, expected.a) < EXACT
    assert relative_error(got.wrenches, scale * expected.wrenches) < 1e-8


def test_contradicting_contacts_are_satisfied_in_the_least_squares_sense(talos):
    q, _, tau = talos.state(4)
    v = np.random.default_rng(4).normal(size=talos.model.nv)
    contacts = [*corners('left_sole_link', 0.1, 0.06), talos.contacts[1]]
    got = constrained_dynamics(talos.model, q, v, tau, contacts)
    a, f = dense_dynamics(talos.model, q, v, tau, contacts)
    J, rate = rows_of(talos.model, q, v, contacts)
    assert np.abs(J @ a + rate).max() > 1e-3
    assert relative_error(got.a, a) < 1e-8
    assert relative_error(flat(contacts, got.wrenches), f) < 1e-8
    # No other acceleration comes closer.
    assert np.abs(J.T @ (J @ got.a + rate)).max() < 1e-9 * np.abs(J @ a).max()


def test_contacts_that_no_joint_moves_exert_nothing():
    arm = load_quietly(example_urdf('ur5_robot.urdf'))
    q, v, tau = np.full((3, arm.nv), 0.3)
    root = Contact(arm.link_names[0], 'surface')
    got = constrained_dynamics(arm, q, v, tau, [root])
    assert relative_error(got.a, rbd_ros.forward_dynamics(arm, q, v, tau)) < EXACT
    assert got.redundant == 6 and not np.any(got.wrenches)
    # More equations than joints: the arm is stuck.
    tip = Contact('tool0', 'surface')
    got = constrained_dynamics(arm, q, 0.0 * v, tau, [root, tip, Contact('tool0', 'point'), tip])
    assert np.abs(got.a).max() < 1e-9 and got.redundant == 15


# -- Use. ----------------------------------------------------------------------------------------
def test_workspaces_take_other_contacts_at_each_call(anymal):
    q, v, tau = anymal.state(10)
    workspace = rbd_ros.Workspace(anymal.model)
    for given in ((0, 1, 2, 3), (1, 2), (0, 3), (), (3,), (0, 1, 2, 3)):
        feet = [anymal.contacts[k] for k in given]
        expected = dense_dynamics(anymal.model, q, v, tau, feet)[0] if feet else (
            rbd_ros.forward_dynamics(anymal.model, q, v, tau))
        got = workspace.constrained_dynamics(list(q), list(v), list(tau), feet)
        assert relative_error(got.a, expected) < EXACT
        a = got.a.copy()
        if len(feet) > 2:
            inverse = workspace.constrained_inverse_dynamics(q, v, a, tuple(feet))
            assert balance(anymal.model, q, v, a, feet, inverse) < EXACT


def test_massless_links_are_refused():
    arm = rbd_ros.ModelBuilder('arm').link('base').link('hand')
    with pytest.warns(rbd_ros.ModelWarning, match='no mass'):
        model = arm.joint('wrist', 'revolute', 'base', 'hand').build()
    with pytest.raises(rbd_ros.SingularError, match="'wrist' moves no inertia"):
        constrained_dynamics(model, [0.0], [0.0], [0.0], [Contact('hand')])


@pytest.mark.parametrize('arguments, options, message', [
    (('hand', 'line'), {}, "kind of the contact of link 'hand' must be 'point' or 'surface'"),
    (('hand', 'point', (0.0, 0.0)), {}, "placement of the contact of link 'hand' has the shape"),
    (('hand', 'point', 2.0 * np.eye(4)), {}, 'must be a position or a pose'),
    (('hand', 'point', np.diag([1.0, 1.0, -1.0, 1.0])), {}, 'must be a position or a pose'),
    (('hand', 'point', [np.nan] * 3), {}, 'must be finite'),
    (('hand',), {'normal': (0.0, 0.0, 0.0)}, 'normal of .* must not be zero'),
    (('hand',), {'friction': -0.1}, 'friction of .* must be a number of at least 0, got -0.1'),
    (('hand',), {'friction': None}, 'friction of .* must be a number'),
    (('hand',), {'friction': np.nan}, 'friction of .* must be a number'),
    (('hand', 'surface'), {'half_size': (0.1, 0.0)}, 'half_size of .* must be two positive'),
    (('hand', 'surface'), {'half_size': 0.1}, 'half_size of .* must be two positive'),
    (('hand', 'point'), {'half_size': (0.1, np.inf)}, "half_size of .*: a 'point' has none"),
])
def test_wrong_contacts_are_refused(arguments, options, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        Contact(*arguments, **options)


def test_wrong_arguments_are_refused(anymal):
    q, v, tau = anymal.state(11)
    model, feet = anymal.model, anymal.contacts
    for wrong, message in ((None, 'contacts must be a list of Contact, got None'),
                           (['LF_FOOT'], "must be a list of Contact, got 'LF_FOOT' in it"),
                           (feet[0], 'contacts must be a list of Contact, got Contact')):
        with pytest.raises(rbd_ros.StateError, match=message):
            constrained_dynamics(model, q, v, tau, wrong)
    with pytest.raises(rbd_ros.ModelError, match='no link'):
        constrained_dynamics(model, q, v, tau, [Contact('fist')])
    for label, values in (('q', (q[1:], v, tau)), ('v', (q, v[1:], tau)), ('tau', (q, v, tau[1:])),
                          ('tau', (q, v, tau + [np.nan] * len(tau))),
                          ('v', (q, v * np.inf, tau)), ('tau', (q, v, 'fast'))):
        with pytest.raises(rbd_ros.StateError, match=f'^{label} '):
            constrained_dynamics(model, *values, feet)
    for options, message in (({'actuated': [True]}, 'actuated must be 18 truth values'),
                             ({'wrench_weights': np.ones(4)}, 'wrench_weights has the shape'),
                             ({'torque_weights': -np.ones(18)}, 'must not be negative, got -1')):
        with pytest.raises(rbd_ros.StateError, match=message):
            constrained_inverse_dynamics(model, q, v, 0.0 * v, feet, **options)
    with pytest.raises(rbd_ros.StateError, match=r'wrenches has the shape \(3, 6\)'):
        check_contacts(model, q, feet, np.zeros((3, 6)))
