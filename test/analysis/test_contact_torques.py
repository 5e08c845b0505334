# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Torques and contact wrenches of robots on their feet, and whether contacts hold."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis import (check_contacts, constrained_dynamics, constrained_inverse_dynamics,
                              Contact)
from rbd_ros.model.se3 import pose, rotation_from_rpy
from robots import relative_error
from scipy.optimize import linprog
from standing_robots import balance, EXACT, flat, rows_of, SOLE, stance


# -- Inverse dynamics. ---------------------------------------------------------------------------
def test_standing_forces_carry_the_weight_below_the_centre_of_mass(talos):
    q, soles = stance(talos)
    zero = np.zeros(talos.model.nv)
    got = constrained_inverse_dynamics(talos.model, q, zero, zero, soles)
    weight = 9.81 * sum(link.mass for link in talos.model.links)
    assert relative_error(got.wrenches[:, 3:].sum(axis=0), [0.0, 0.0, weight]) < EXACT
    normal = np.array([one.normal_force for one in got.checks])
    assert relative_error(normal.sum(), weight) < EXACT
    center = normal @ [one.center_of_pressure for one in got.checks] / weight
    com = rbd_ros.center_of_mass(talos.model, q)
    # Moments due to tangential forces cancel: both soles are at the same height.
    assert np.allclose(center[:2], com[:2], atol=1e-9)
    assert all(one.holds for one in got.checks)
    assert not np.any(got.tau[:6])
    # And it stands.
    assert np.abs(constrained_dynamics(talos.model, q, zero, got.tau, soles).a).max() < 1e-9


@pytest.mark.parametrize('seed', range(3))
def test_inverse_dynamics_inverts_forward_dynamics(standing, seed):
    q, v, tau = standing.state(seed)
    a = constrained_dynamics(standing.model, q, v, tau, standing.contacts).a
    got = constrained_inverse_dynamics(standing.model, q, v, a, standing.contacts)
    assert not np.any(got.tau[:6])
    assert balance(standing.model, q, v, a, standing.contacts, got) < EXACT
    again = constrained_dynamics(standing.model, q, v, got.tau, standing.contacts)
    assert relative_error(again.a, a) < EXACT
    assert relative_error(again.wrenches, got.wrenches) < 1e-8


@pytest.mark.parametrize('weighted', ['', 'wrenches', 'torques', 'both'])
def test_the_least_weighted_squares_are_found(standing, weighted):
    # Stationarity under the equations of the base, as one dense system.
    q, v, tau = standing.state(7)
    model, contacts, rng = standing.model, standing.contacts, np.random.default_rng(7)
    a = constrained_dynamics(model, q, v, tau, contacts).a
    wrench_weights = np.ones((len(contacts), 6))
    torque_weights, options = np.zeros(model.nv), {}
    if weighted in ('wrenches', 'both'):
        wrench_weights = options['wrench_weights'] = rng.uniform(0.5, 2.0, wrench_weights.shape)
    if weighted in ('torques', 'both'):
        torque_weights = options['torque_weights'] = rng.uniform(0.5, 2.0, model.nv)
    J, _ = rows_of(model, q, v, contacts)
    W = np.concatenate([x[3 * (one.kind == 'point'):] for one, x in zip(contacts, wrench_weights)])
    h, m = rbd_ros.inverse_dynamics(model, q, v, a), len(W)
    moved = J[:, 6:] * torque_weights[6:]
    K = np.block([[np.diag(W) + moved @ J[:, 6:].T, J[:, :6]], [J[:, :6].T, np.zeros((6, 6))]])
    f = np.linalg.solve(K, np.concatenate((moved @ h[6:], h[:6])))[:m]
    got = constrained_inverse_dynamics(model, q, v, a, contacts, **options)
    assert relative_error(flat(contacts, got.wrenches), f) < 1e-8
    assert balance(model, q, v, a, contacts, got) < EXACT
    assert not np.any(got.tau[:6])


def test_wrench_weights_of_zero_minimize_the_torques(anymal):
    q, v, tau = anymal.state(8)
    a = constrained_dynamics(anymal.model, q, v, tau, anymal.contacts).a
    got = constrained_inverse_dynamics(
        anymal.model, q, v, a, anymal.contacts, wrench_weights=np.zeros((4, 6)),
        torque_weights=np.ones(anymal.model.nv))
    others = constrained_inverse_dynamics(anymal.model, q, v, a, anymal.contacts)
    assert np.linalg.norm(got.tau) < np.linalg.norm(others.tau)
    assert np.linalg.norm(got.tau) <= np.linalg.norm(tau) * (1.0 + 1e-9)
    assert balance(anymal.model, q, v, a, anymal.contacts, got) < EXACT


def test_motors_and_external_wrenches_are_those_that_are_given(talos):
    q, soles = stance(talos)
    zero = np.zeros(talos.model.nv)
    push = {'torso_2_link': np.array([0.0, 0.0, 0.0, 30.0, 0.0, 0.0])}
    got = constrained_inverse_dynamics(talos.model, q, zero, zero, soles, external_wrenches=push)
    assert np.abs(constrained_dynamics(talos.model, q, zero, got.tau, soles,
                                       external_wrenches=push).a).max() < 1e-9
    R = rbd_ros.forward_kinematics(talos.model, q)[talos.model.link_index('torso_2_link')][:3, :3]
    assert np.allclose(got.wrenches[:, 3:5].sum(axis=0), -(R @ (30.0, 0.0, 0.0))[:2])
    # With a passive ankle, and with a motor for each velocity
    ankle = talos.model.velocity_names.index('leg_left_5_joint')
    actuated = np.arange(talos.model.nv) >= 6
    actuated[ankle] = False
    got = constrained_inverse_dynamics(talos.model, q, zero, zero, soles, actuated=actuated)
    assert not np.any(got.tau[~actuated])
    assert balance(talos.model, q, zero, zero, soles, got) < EXACT
    got = constrained_inverse_dynamics(talos.model, q, zero, zero, soles,
                                       actuated=np.ones(talos.model.nv, bool))
    assert not np.any(got.wrenches)
    assert relative_error(got.tau, rbd_ros.gravity_torques(talos.model, q)) < EXACT


def test_impossible_accelerations_are_refused(anymal):
    # Two feet on the ground: no moment about the line between them.
    q, v, tau = anymal.state(9)
    feet = anymal.contacts[::3]
    a = constrained_dynamics(anymal.model, q, v, tau, feet).a
    got = constrained_inverse_dynamics(anymal.model, q, v, a, feet)
    assert balance(anymal.model, q, v, a, feet, got) < EXACT
    J, _ = rows_of(anymal.model, q, v, feet)
    h = rbd_ros.inverse_dynamics(anymal.model, q, v, a)
    f = np.linalg.pinv(J[:, :6].T, rcond=1e-9) @ h[:6]      # of rank 5
    assert relative_error(flat(feet, got.wrenches), f) < 1e-8
    a[:3] += 0.01
    with pytest.raises(rbd_ros.StateError, match=r'cannot produce the acceleration a: no motor '
                       r"exerts .* at 'base_w.'"):
        constrained_inverse_dynamics(anymal.model, q, v, a, feet)
    with pytest.raises(rbd_ros.StateError, match=r"-?299 at 'base_vz'"):
        zero = np.zeros(anymal.model.nv)
        constrained_inverse_dynamics(anymal.model, rbd_ros.neutral(anymal.model), zero, zero, [])


@pytest.mark.parametrize('gravity', [(0.0, 0.0, 0.0), (0.0, 0.0, -9.81)], ids=['none', 'earth'])
@pytest.mark.parametrize('falls', [False, True])
def test_rounding_is_no_imbalance_where_all_torques_or_all_biases_vanish(anymal, gravity, falls):
    # At rest without gravity there is no bias, and in free fall there are no torques.
    model = rbd_ros.with_gravity(anymal.model, gravity)
    q, _, tau = anymal.state(9)
    zero = np.zeros(model.nv)
    if falls:
        a = rbd_ros.forward_dynamics(model, q, zero, zero)
    else:
        a = constrained_dynamics(model, q, zero, tau, anymal.contacts[::3]).a
    got = constrained_inverse_dynamics(model, q, zero, a, anymal.contacts[::3])
    assert balance(model, q, zero, a, anymal.contacts[::3], got) < EXACT if not falls else (
        np.abs(got.tau).max() < 1e-9)
    # An impossible acceleration is one, however small torques and biases are.
    a = 1e-6 * np.eye(model.nv)[3] + (a if falls else 0.0)
    with pytest.raises(rbd_ros.StateError, match='cannot produce'):
        constrained_inverse_dynamics(model, q, zero, a, [])


# -- What contacts can exert. --------------------------------------------------------------------

MASS, HEIGHT, HALF = 5.0, 0.3, (0.2, 0.1)


def block_on_slope(slope, friction=0.5, kind='surface', turned=0.0):
    """Return checks of a block at rest on a slope that descends along x; its centre is higher."""
    model = rbd_ros.with_floating_base(
        rbd_ros.ModelBuilder('block').link('block', mass=MASS, com=(0.0, 0.0, HEIGHT),
                                           inertia=0.1 * np.eye(3)).build())
    R = rotation_from_rpy((0.0, slope, turned))
    q = rbd_ros.neutral(model)
    half = slope / 2.0
    q[:4] = 0.0, np.sin(half), 0.0, np.cos(half)
    if kind == 'surface':
        contacts = [Contact('block', 'surface', pose(rotation_from_rpy((0.0, 0.0, turned)),
                                                     np.zeros(3)),
                            friction=friction, half_size=HALF)]
    else:
        normal = 7.0 * R[:, 2]
        contacts = [Contact('block', 'point', (x, y, 0.0), normal, friction)
                    for x in (-HALF[0], HALF[0]) for y in (-HALF[1], HALF[1])]
    zero = np.zeros(model.nv)
    found = constrained_inverse_dynamics(model, q, zero, zero, contacts)
    again = check_contacts(model, q, contacts, found.wrenches)
    for one, two in zip(found.checks, again):
        assert np.array_equal(one.center_of_pressure, two.center_of_pressure)
        assert one[:2] + one[3:] == two[:2] + two[3:]
    return found.checks, R


@pytest.mark.parametrize('slope, holds', [(0.0, True), (0.4, True), (0.5, False), (-0.4, True),
                                          (-0.5, False)])
def test_a_block_slips_where_the_slope_exceeds_friction(slope, holds):
    # tan 0.4 = 0.42, tan 0.5 = 0.55
    (check,), R = block_on_slope(slope)
    assert np.isclose(check.normal_force, MASS * 9.81 * np.cos(slope))
    assert np.isclose(check.friction_ratio, np.tan(abs(slope)) / 0.5, atol=1e-12)
    assert np.allclose(check.center_of_pressure, R @ (HEIGHT * np.tan(slope), 0.0, 0.0))
    assert np.isclose(check.tilt_ratio, HEIGHT * np.tan(abs(slope)) / HALF[0], atol=1e-12)
    assert check.holds == holds
    # Four points: the sum is the same, and so is the direction of all forces together.
    points, _ = block_on_slope(slope, kind='point')
    assert np.isclose(sum(one.normal_force for one in points), MASS * 9.81 * np.cos(slope))
    below = R @ (HALF[0], HALF[1], 0.0)
    assert np.allclose(points[3].center_of_pressure, below)


def test_a_block_tilts_where_its_weight_is_beyond_its_edge():
    # The edge is nearer across the block: 0.3 tan 0.4 = 0.127 lies between 0.1 and 0.2.
    (along,), _ = block_on_slope(0.4)
    (across,), _ = block_on_slope(0.4, turned=np.pi / 2.0)
    assert along.holds and not across.holds
    assert across.tilt_ratio == pytest.approx(HEIGHT * np.tan(0.4) / HALF[1])
    (slippery,), _ = block_on_slope(0.1, friction=0.0)
    assert slippery.friction_ratio == np.inf and not slippery.holds
    (rough,), _ = block_on_slope(0.4, friction=np.inf)
    assert rough.friction_ratio == rough.torsion_ratio == 0.0 and rough.holds


def test_contacts_that_pull_do_not_hold(talos):
    q, soles = stance(talos)
    wrenches = np.tile([1.0, 2.0, 3.0, 10.0, 20.0, -100.0], (2, 1))
    point = Contact('left_sole_link')
    for check in check_contacts(talos.model, q, [soles[0], point], wrenches):
        assert check.normal_force == pytest.approx(-100.0)
        assert check.friction_ratio == np.inf and not check.holds
    assert np.all(np.isnan(check_contacts(talos.model, q, soles, wrenches)[0].center_of_pressure))
    for check in check_contacts(talos.model, q, [soles[0], point], np.zeros((2, 6))):
        assert check.holds and check.friction_ratio == check.tilt_ratio == 0.0
    # Straight up, or straight down
    for force, holds in ((50.0, True), (-50.0, False)):
        check, = check_contacts(talos.model, q, [point], [[0, 0, 0, 0, 0, force]])
        assert check.holds == holds and check.friction_ratio == 0.0


def test_torsion_limit_is_that_of_four_corners_with_friction(talos):
    q = talos.state(6)[0]
    mu, (X, Y) = 0.7, (0.1, 0.06)
    sole = Contact('left_sole_link', 'surface', SOLE, friction=mu, half_size=(X, Y))
    R = (rbd_ros.forward_kinematics(talos.model, q)[talos.model.link_index(sole.link)] @ SOLE)[
        :3, :3]
    places = np.array([(i * X, j * Y, 0.0) for i in (-1, 1) for j in (-1, 1)])
    A = np.vstack((np.hstack([np.cross(np.eye(3), -p) for p in places]), np.tile(np.eye(3), 4)))
    pyramid = [[i, 0.0, -mu] for i in (-1.0, 1.0)] + [[0.0, j, -mu] for j in (-1.0, 1.0)]
    rng, seen = np.random.default_rng(6), []
    for _ in range(300):
        wrench = rng.uniform(-1.0, 1.0, 6) * (1.3 * Y, 1.3 * X, 0.5 * mu * (X + Y), mu, mu, 0.0)
        wrench[5] = 1.0
        possible = linprog(np.zeros(12), np.kron(np.eye(4), pyramid), np.zeros(16), A, wrench,
                           bounds=(None, None)).status == 0
        check, = check_contacts(talos.model, q, [sole], [(wrench.reshape(2, 3) @ R.T).ravel()])
        in_pyramid = np.abs(wrench[3:5]).max() <= mu
        assert possible == (in_pyramid and check.tilt_ratio <= 1.0 and check.torsion_ratio <= 1.0)
        if in_pyramid and check.tilt_ratio <= 1.0:
            seen.append(check.torsion_ratio <= 1.0)
    assert 20 < sum(seen) < len(seen) - 20


def test_surfaces_without_size_are_not_checked_for_torsion(talos):
    q = talos.state(6)[0]
    R = (rbd_ros.forward_kinematics(talos.model, q)[
        talos.model.link_index('left_sole_link')] @ SOLE)[:3, :3]
    for friction in (0.0, 0.5):
        for size in (np.inf, 0.1):
            sole = Contact('left_sole_link', 'surface', SOLE, friction=friction,
                           half_size=(size, size))
            check, = check_contacts(talos.model, q, [sole], [[0.0, 0.0, 0.0, *100.0 * R[:, 2]]])
            assert check.torsion_ratio == pytest.approx(0.0, abs=1e-9)
            # Without friction, rounding of the tangential force is too much.
            assert check.holds or friction == 0.0
