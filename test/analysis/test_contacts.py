# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Dynamics with contacts: against Pinocchio, dense equations, closed forms and linear programs."""

import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.analysis import (check_contacts, constrained_dynamics, constrained_inverse_dynamics,
                              Contact)
from rbd_ros.model.se3 import pose, rotation_from_rpy
from robots import example_urdf, load_quietly, random_tree, relative_error, with_mimics
from scipy.optimize import linprog

# Rounding, times the condition number of X, up to 1e4 here.
EXACT = 1e-9
SOLE = pose(rotation_from_rpy((0.1, -0.2, 0.3)), (0.02, -0.01, -0.03))
ROBOTS = {
    'talos': ('talos_reduced.urdf', ('left_sole_link', 'right_sole_link'), 'surface', SOLE),
    'icub': ('icub.urdf', ('l_sole', 'r_sole'), 'surface', SOLE),
    'anymal': ('anymal_b_simple_description/robots/anymal.urdf',
               ('LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT'), 'point',
               pose(np.eye(3), SOLE[:3, 3])),
}


class Floating:
    """A robot with a floating base, here and in Pinocchio, with its feet."""

    def __init__(self, name):
        file, links, kind, placement = ROBOTS[name]
        path = example_urdf(file)
        self.model = load_quietly(path, floating_base=True)
        self.contacts = [Contact(link, kind, placement) for link in links]
        self.pin = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
        self.data = self.pin.createData()
        # Our velocity for each of Pinocchio's, which has linear ones first.
        names = self.model.velocity_names
        self.order = [3, 4, 5, 0, 1, 2] + [names.index(name) for name in list(self.pin.names)[2:]]

    def state(self, seed):
        """Return a random q, and v with which the contacts do not move, and tau of the joints."""
        rng = np.random.default_rng(seed)
        n = self.model.nv
        q = rbd_ros.integrate(self.model, rbd_ros.neutral(self.model), rng.normal(size=n), 0.5)
        J, _ = rows_of(self.model, q, np.zeros(n), self.contacts)
        v, tau = rng.normal(size=n), 10.0 * rng.normal(size=n)
        tau[:6] = 0.0
        return q, v - np.linalg.pinv(J) @ (J @ v), tau

    def pin_q(self, q):
        """Return Pinocchio's configuration; position first."""
        result = pinocchio.neutral(self.pin)
        result[:7] = *q[4:7], *q[:4]
        for joint, ours in zip(list(self.pin.joints)[2:], self.order[6:]):
            x = q[ours + 1]
            if joint.nq == 2:
                result[joint.idx_q:joint.idx_q + 2] = np.cos(x), np.sin(x)
            else:
                result[joint.idx_q] = x
        return result

    def pin_dynamics(self, q, v, tau, contacts, mu=1e-12, most=20):
        """Return accelerations and wrenches at the contacts, in the axes of the root."""
        models = pinocchio.StdVec_RigidConstraintModel()
        datas = pinocchio.StdVec_RigidConstraintData()
        kinds = {'point': pinocchio.ContactType.CONTACT_3D,
                 'surface': pinocchio.ContactType.CONTACT_6D}
        for one in contacts:
            frame = self.pin.frames[self.pin.getFrameId(one.link)]
            models.append(pinocchio.RigidConstraintModel(
                kinds[one.kind], self.pin, frame.parentJoint,
                frame.placement * pinocchio.SE3(one.placement), pinocchio.LOCAL))
            datas.append(models[len(models) - 1].createData())
        pinocchio.initConstraintDynamics(self.pin, self.data, models, datas)
        a = np.zeros(self.model.nv)
        a[self.order] = pinocchio.constraintDynamics(
            self.pin, self.data, self.pin_q(q), v[self.order], tau[self.order], models, datas,
            pinocchio.ProximalSettings(1e-15, mu, most))
        poses = rbd_ros.forward_kinematics(self.model, q)
        wrenches = []
        for one, data in zip(contacts, datas):
            R = (poses[self.model.link_index(one.link)] @ one.placement)[:3, :3]
            force = data.contact_force
            wrenches.append([*(R @ force.angular if one.kind == 'surface' else np.zeros(3)),
                             *R @ force.linear])
        return a, np.array(wrenches)


def rows_of(model, q, v, contacts):
    """Return J and Jdot v of contacts, from the Jacobians of their links."""
    J, rates = [], []
    poses = rbd_ros.forward_kinematics(model, q)
    for one in contacts:
        J_link = rbd_ros.world_jacobian(model, q, one.link)
        rate = analysis.world_jacobian_dot(model, q, v, one.link) @ v
        r = poses[model.link_index(one.link)][:3, :3] @ one.placement[:3, 3]
        omega = J_link[:3] @ v
        J += [J_link[:3]] * (one.kind == 'surface') + [
            J_link[3:] + np.cross(J_link[:3], r, axisa=0, axisc=0)]
        rates += [rate[:3]] * (one.kind == 'surface') + [
            rate[3:] + np.cross(rate[:3], r) + np.cross(omega, np.cross(omega, r))]
    return np.vstack(J), np.concatenate(rates)


def dense_dynamics(model, q, v, tau, contacts, external_wrenches=None):
    """Return a and f, by the pseudoinverse of J M^-1 J^T."""
    M = rbd_ros.mass_matrix(model, q)
    J, rate = rows_of(model, q, v, contacts)
    free = np.linalg.solve(M, tau - rbd_ros.bias_torques(
        model, q, v, external_wrenches=external_wrenches))
    f = np.linalg.pinv(J @ np.linalg.solve(M, J.T), rcond=1e-11, hermitian=True) @ (
        -rate - J @ free)
    return free + np.linalg.solve(M, J.T @ f), f


def flat(contacts, wrenches):
    """Return the unknown entries of wrenches; the others must be zero."""
    points = np.array([one.kind == 'point' for one in contacts])
    assert not np.any(wrenches[points, :3])
    return np.concatenate([wrench[3 * (one.kind == 'point'):]
                           for one, wrench in zip(contacts, wrenches)])


@pytest.fixture(scope='module', params=ROBOTS)
def robot(request):
    """Return a robot with feet, here and in Pinocchio."""
    return Floating(request.param)


@pytest.fixture(scope='module')
def talos():
    """Return a humanoid."""
    return Floating('talos')


@pytest.fixture(scope='module')
def anymal():
    """Return a quadruped."""
    return Floating('anymal')


# -- Forward dynamics. ---------------------------------------------------------------------------

@pytest.mark.parametrize('seed', range(3))
def test_accelerations_and_wrenches_match_pinocchio(robot, seed):
    q, v, tau = robot.state(seed)
    got = constrained_dynamics(robot.model, q, v, tau, robot.contacts)
    a, wrenches = robot.pin_dynamics(q, v, tau, robot.contacts)
    assert relative_error(got.a, a) < EXACT
    assert relative_error(got.wrenches, wrenches) < EXACT
    assert got.redundant == 0


@pytest.mark.parametrize('seed', range(2))
def test_accelerations_match_the_whole_matrix(robot, seed):
    q, v, tau = robot.state(seed)
    J, rate = rows_of(robot.model, q, v, robot.contacts)
    n, m = robot.model.nv, len(rate)
    M, b = rbd_ros.mass_matrix(robot.model, q), rbd_ros.bias_torques(robot.model, q, v)
    x = np.linalg.lstsq(np.block([[M, -J.T], [J, np.zeros((m, m))]]),
                        np.concatenate((tau - b, -rate)))[0]
    got = constrained_dynamics(robot.model, q, v, tau, robot.contacts)
    assert relative_error(got.a, x[:n]) < EXACT
    assert relative_error(flat(robot.contacts, got.wrenches), x[n:]) < EXACT


@pytest.mark.parametrize('mimics', [False, True], ids=['tree', 'mimics'])
@pytest.mark.parametrize('seed', range(4))
def test_moving_contacts_of_all_joints_match_dense_equations(seed, mimics):
    model = random_tree(seed, 12, ('revolute', 'prismatic', 'helical', 'universal', 'spherical',
                                   'cylindrical'))
    model = with_mimics(model, seed) if mimics else model
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


def test_contacts_stay_where_they_are(robot):
    # Second differences of poses, along q + t v + t^2 a / 2.
    q, v, tau = robot.state(5)
    a = constrained_dynamics(robot.model, q, v, tau, robot.contacts).a
    scale, h = np.abs(a).max(), 1e-4

    def places(t):
        poses = rbd_ros.forward_kinematics(
            robot.model, rbd_ros.integrate(robot.model, q, v + 0.5 * t * a, t))
        found = [poses[robot.model.link_index(one.link)] @ one.placement for one in robot.contacts]
        return np.array([T if one.kind == 'surface' else T[:3, 3:]
                         for T, one in zip(found, robot.contacts)])
    change = (places(h) - 2.0 * places(0.0) + places(-h)) / h ** 2
    assert np.abs(change).max() < 1e-4 * scale      # h^2 times fourth derivatives, rounding / h^2
    assert np.abs(places(h) - places(-h)).max() / h < 1e-4 * scale * h


def test_without_contacts_it_is_forward_dynamics(talos):
    q, v, tau = talos.state(0)
    got = constrained_dynamics(talos.model, q, v, tau, [])
    assert relative_error(got.a, rbd_ros.forward_dynamics(talos.model, q, v, tau)) < EXACT
    assert got.wrenches.shape == (0, 6) and got.redundant == 0


def test_a_wrench_on_a_foot_is_taken_by_the_ground(talos):
    q, v, tau = talos.state(1)
    contacts = [Contact('left_sole_link', 'surface'), Contact('right_sole_link', 'surface')]
    before = constrained_dynamics(talos.model, q, v, tau, contacts)
    wrench = np.array([1.0, 2.0, 3.0, 40.0, 50.0, 60.0])
    after = constrained_dynamics(talos.model, q, v, tau, contacts,
                                 external_wrenches={'right_sole_link': wrench})
    assert relative_error(after.a, before.a) < EXACT
    R = rbd_ros.forward_kinematics(talos.model, q)[talos.model.link_index('right_sole_link')][
        :3, :3]
    assert relative_error(before.wrenches[1] - after.wrenches[1],
                          (wrench.reshape(2, 3) @ R.T).ravel()) < EXACT
    assert relative_error(after.wrenches[0], before.wrenches[0]) < EXACT


# -- Redundant contacts. -------------------------------------------------------------------------

def test_a_contact_given_twice_shares_its_wrench(talos):
    q, v, tau = talos.state(2)
    left, right = talos.contacts
    once = constrained_dynamics(talos.model, q, v, tau, [left, right])
    twice = constrained_dynamics(talos.model, q, v, tau, [left, right, left])
    assert (once.redundant, twice.redundant) == (0, 6)
    assert relative_error(twice.a, once.a) < EXACT
    assert relative_error(twice.wrenches[1], once.wrenches[1]) < EXACT
    for k in (0, 2):
        assert relative_error(twice.wrenches[k], 0.5 * once.wrenches[0]) < EXACT


def corners(link, x, y, **options):
    """Return points at the corners of a sole."""
    return [Contact(link, 'point', SOLE[:3, :3] @ (i * x, j * y, 0.0) + SOLE[:3, 3], **options)
            for i in (-1, 1) for j in (-1, 1)]


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


# -- Inverse dynamics. ---------------------------------------------------------------------------

def stance(talos):
    """Return a bent posture of the humanoid, and its soles."""
    q = rbd_ros.neutral(talos.model)
    names = talos.model.position_names
    for side in ('left', 'right'):
        for joint, x in ((3, -0.45), (4, 0.9), (5, -0.45)):
            q[names.index(f'leg_{side}_{joint}_joint')] = x
    return q, [Contact(f'{side}_sole_link', 'surface', friction=0.6, half_size=(0.1, 0.06))
               for side in ('left', 'right')]


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


def balance(model, q, v, a, contacts, got):
    """Return tau + J^T f - M a - b, over the largest torque."""
    J, _ = rows_of(model, q, v, contacts)
    wanted = rbd_ros.inverse_dynamics(model, q, v, a)
    return np.abs(got.tau + J.T @ flat(contacts, got.wrenches) - wanted).max() / np.abs(
        wanted).max()


@pytest.mark.parametrize('seed', range(3))
def test_inverse_dynamics_inverts_forward_dynamics(robot, seed):
    q, v, tau = robot.state(seed)
    a = constrained_dynamics(robot.model, q, v, tau, robot.contacts).a
    got = constrained_inverse_dynamics(robot.model, q, v, a, robot.contacts)
    assert not np.any(got.tau[:6])
    assert balance(robot.model, q, v, a, robot.contacts, got) < EXACT
    again = constrained_dynamics(robot.model, q, v, got.tau, robot.contacts)
    assert relative_error(again.a, a) < EXACT
    assert relative_error(again.wrenches, got.wrenches) < 1e-8


@pytest.mark.parametrize('weighted', ['', 'wrenches', 'torques', 'both'])
def test_the_least_weighted_squares_are_found(robot, weighted):
    # Stationarity under the equations of the base, as one dense system.
    q, v, tau = robot.state(7)
    model, contacts, rng = robot.model, robot.contacts, np.random.default_rng(7)
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


def test_weights_of_zero_leave_the_least_torques(anymal):
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
    a[:3] += 0.01
    with pytest.raises(rbd_ros.StateError, match=r'cannot produce the acceleration a: no motor '
                       r"exerts .* at 'base_w.'"):
        constrained_inverse_dynamics(anymal.model, q, v, a, feet)
    with pytest.raises(rbd_ros.StateError, match=r"-?299 at 'base_vz'"):
        zero = np.zeros(anymal.model.nv)
        constrained_inverse_dynamics(anymal.model, rbd_ros.neutral(anymal.model), zero, zero, [])


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


def test_torsion_is_what_four_corners_with_friction_can_exert(talos):
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
    kept = constrained_dynamics(anymal.model, q, v, tau, anymal.contacts)
    copies = [part.copy() for part in kept[:2]]
    constrained_dynamics(anymal.model, q, 2.0 * v, -tau, anymal.contacts)
    assert all(map(np.array_equal, kept[:2], copies))


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
])
def test_wrong_contacts_are_refused(arguments, options, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        Contact(*arguments, **options)


def test_wrong_arguments_are_refused(anymal):
    q, v, tau = anymal.state(11)
    model, feet = anymal.model, anymal.contacts
    for wrong, message in ((None, 'contacts must be a sequence of Contact, got None'),
                           (['LF_FOOT'], "contacts must be a sequence of Contact, got 'LF_FOOT'"),
                           (feet[0], 'contacts must be a sequence of Contact, got Contact')):
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
