# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots with closed loops at and near singular positions, damped on request."""

from closed_robots import closed_robot
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, SingularError, StateError
from rbd_ros.model import inertial_parameters, load_constraints, with_constraints
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.positions.closure import regular_map
from rbd_ros.model.positions.configurations import closed_along
from robots import relative_error
from test_closed_loop_derivatives import ROBOTS

LIMIT = 100.0
# The damped inverse of matrices with singular values down to 1/100 of the largest, two ways.
SOLUTIONS = 1e-9
# Of products of matrices with zeros added.
ROUNDING = 1e-12
# Central differences of functions that are quadratic: rounding over the step.
DIFFERENCES = 1e-7


def of_four_bar(crank):
    """Return the closed four-bar at positions of the crank."""
    return closed_along(closed_robot('four_bar').model, crank[:, None])


def of_five_bar(turn):
    """Return the symmetric five-bar whose upper arms, of 0.25 m, have turned from their zero."""
    angle = np.arctan2(0.2, -0.15) + turn
    x, z = -0.09 + 0.25 * np.cos(angle), 0.25 * np.sin(angle)
    tool = z + np.sqrt(0.4 ** 2 - x ** 2)
    elbow = np.arctan2(tool - z, -x) - np.arctan2(0.32, 0.24) - turn
    return np.stack([turn, elbow, -turn, -elbow], axis=1)


# Configurations through one where crank and coupler, or the lower arms, are in line, and the
# joints that are independent.
CASES = {'four_bar': (of_four_bar, (1.5, 2.5), ['rocker']),
         'five_bar': (of_five_bar, (-0.6, -1.4), ['left_shoulder', 'right_shoulder'])}


class Case:
    """A robot, plain and damped, and configurations through a singular one."""

    def __init__(self, name):
        configuration, ends, own = CASES[name]
        model, self.oracle, *_ = closed_robot(name)
        self.plain = with_constraints(model, model.constraints, own)
        self.damped = with_constraints(model, model.constraints, own, condition_limit=LIMIT)
        names = model.unconstrained.velocity_names
        self.own = [names.index(one) for one in own]
        self.dependent = [k for k in range(len(names)) if k not in self.own]
        x = np.linspace(*ends, 401)
        self.path = configuration(x)
        self.plane = np.linalg.svd(self.oracle.jacobian(self.path[0])[:, self.dependent])[0][:, :2]
        signs = np.sign([self.determinant(q) for q in self.path])
        self.k = int(np.flatnonzero(np.diff(signs))[0])
        low, high = x[self.k], x[self.k + 1]
        for _ in range(60):
            middle = 0.5 * (low + high)
            self.singular = configuration(np.array([middle]))[0]
            low, high = ((middle, high) if np.sign(self.determinant(self.singular))
                         == signs[self.k] else (low, middle))

    def determinant(self, q):
        """Return a determinant of J_d, of which planar loops have two independent rows."""
        J = self.oracle.jacobian(q)[:, self.dependent]
        return np.linalg.det(self.plane.T @ J)

    def condition(self, q):
        sizes = np.linalg.svd(self.oracle.jacobian(q)[:, self.dependent], compute_uv=False)
        return sizes[0] / sizes[-1]

    def G(self, q):
        """Return G with the damping that doc/closed_loops.md defines."""
        J = self.oracle.jacobian(q)
        J_d, J_i = J[:, self.dependent], J[:, self.own]
        _, sizes, V = np.linalg.svd(J_d)
        sizes = np.append(sizes, np.zeros(len(V) - len(sizes)))
        bound = sizes[0] / LIMIT
        D = sum((max(bound ** 2 - s ** 2, 0.0) * np.outer(v, v) for s, v in zip(sizes, V)),
                np.zeros((len(V), len(V))))
        G = np.zeros((J.shape[1], len(self.own)))
        G[self.own] = np.eye(len(self.own))
        G[self.dependent] = -np.linalg.solve(J_d.T @ J_d + D, J_d.T @ J_i)
        return G


@pytest.fixture(scope='module', params=CASES)
def case(request):
    return Case(request.param)


def test_the_path_of_the_test_crosses_a_singularity(case):
    assert case.condition(case.singular) > 1e8
    with pytest.raises(SingularError, match='is singular here'):
        rbd_ros.mass_matrix(case.plain, case.singular)
    assert min(case.condition(q) for q in (case.path[0], case.path[-1])) < 0.5 * LIMIT


def test_the_damped_map_equals_its_formula(case):
    near = case.path[case.k - 40:case.k + 40]
    inside = [q for q in near if case.condition(q) > LIMIT]
    assert len(inside) > 3 and len(inside) < len(near)
    for q in (*near, case.singular):
        G, M = case.G(q), case.oracle.mass_matrix(q)
        assert relative_error(regular_map(case.damped.loops, q), G) < SOLUTIONS
        assert relative_error(rbd_ros.mass_matrix(case.damped, q), G.T @ M @ G) < SOLUTIONS
        g = case.oracle.bias(q, np.zeros(len(G)))
        assert relative_error(rbd_ros.gravity_torques(case.damped, q), G.T @ g) < SOLUTIONS
    assert regular_map(case.plain.loops, case.singular) is None


def test_maps_are_bounded_and_continuous(case):
    found = np.array([rbd_ros.gravity_torques(case.damped, q) for q in case.path])
    maps = np.array([regular_map(case.damped.loops, q) for q in case.path])
    sizes = [np.linalg.norm(case.oracle.jacobian(q), 2) / np.linalg.norm(
        case.oracle.jacobian(q)[:, case.dependent], 2) for q in case.path]
    assert np.abs(maps[:, case.dependent]).max() <= LIMIT * max(sizes)
    # Twice as many steps are half as large.
    for values in (found, maps):
        fine, coarse = (np.abs(np.diff(values[::n], axis=0)).max() for n in (1, 2))
        assert 0.4 * coarse < fine < 0.65 * coarse
    assert np.abs(maps).max() > 5.0 * np.abs(maps[0]).max()


@pytest.mark.parametrize('name', ROBOTS)
def test_far_away_nothing_changes(name):
    model, _, q, v, a, tau = closed_robot(name)
    damped = with_constraints(model, model.constraints, model.velocity_names,
                              condition_limit=1e5)
    for function, given in (
            (rbd_ros.mass_matrix, (q,)), (rbd_ros.coriolis_matrix, (q, v)),
            (rbd_ros.inverse_dynamics, (q, v, a)), (rbd_ros.forward_dynamics, (q, v, tau)),
            (rbd_ros.center_of_mass, (q,))):
        assert np.array_equal(function(damped, *given), function(model, *given)), function
    for x, y in zip(rbd_ros.forward_dynamics_derivatives(damped, q, v, tau),
                    rbd_ros.forward_dynamics_derivatives(model, q, v, tau), strict=True):
        # Rates of undamped screws are second derivatives: rounded otherwise.
        assert relative_error(x, y) < ROUNDING
    wrenches = rbd_ros.constraint_forces(model, q, v, a)
    for key, wrench in rbd_ros.constraint_forces(damped, q, v, a).items():
        assert relative_error(wrench, wrenches[key]) < ROUNDING
    assert relative_error(rbd_ros.torque_regressor(damped, q, v, a),
                          rbd_ros.torque_regressor(model, q, v, a)) < ROUNDING


def test_functions_agree_with_each_other_at_the_singular_position(case):
    model, q, rng = case.damped, case.singular, np.random.default_rng(1)
    v, a = rng.normal(size=(2, model.nv))
    link = model.link_names[-1]
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < SOLUTIONS
    assert relative_error(rbd_ros.torque_regressor(model, q, v, a) @ inertial_parameters(model),
                          tau) < SOLUTIONS
    terms = rbd_ros.all_terms(model, q, v)
    assert relative_error(terms.M @ a + terms.C @ v + terms.g, tau) < SOLUTIONS
    M = rbd_ros.mass_matrix(model, q)
    assert np.all(np.linalg.eigvalsh(M) > 0.0)
    by = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    assert relative_error(by.by_input, M) < SOLUTIONS
    # In the velocity they are exact: D depends on q only.
    h = 1e-3
    for k, e in enumerate(np.eye(model.nv)):
        ends = [rbd_ros.inverse_dynamics(model, q, v + t * e, a) for t in (-h, h)]
        assert relative_error(by.by_velocity[:, k], (ends[1] - ends[0]) / (2 * h)) < DIFFERENCES
    for values in (by.by_position, rbd_ros.forward_dynamics_derivatives(model, q, v, tau)[0],
                   *rbd_ros.constraint_forces(model, q, v, a).values(),
                   *rbd_ros.jacobian_dot(model, q, v, link), *analysis.matrices_dot(
                       model, q, v, a), rbd_ros.task_space_dynamics(model, q, v, link).Lambda,
                   analysis.mass_matrix_derivatives(model, q)):
        assert np.all(np.isfinite(values))
    one = rbd_ros.batch.inverse_dynamics(model, q[None], v[None], a[None])[0]
    assert np.array_equal(one, tau)


def four_bars(cranks, limit):
    """Return damped four-bars beside each other, whose cranks have these lengths, m."""
    quarter, y = (np.pi / 2.0, 0.0, 0.0), (0.0, -1.0, 0.0)
    build = rbd_ros.ModelBuilder('bars').link('base')
    for k, crank in enumerate(cranks):
        for link, mass, com in (('crank', 0.3, (0.0, 0.0, 0.1)), ('coupler', 0.75, (0.25, 0, 0)),
                                ('rocker', 0.6, (0.0, 0.0, 0.2))):
            build.link(f'{link}{k}', mass=mass + 0.1 * crank, com=com, inertia=(8e-3, 8e-3, 7e-3))
        build.joint(f'crank{k}', 'continuous', 'base', f'crank{k}', axis=y)
        build.joint(f'coupler{k}', 'continuous', f'crank{k}', f'coupler{k}', xyz=(0, 0, crank),
                    axis=y)
        build.joint(f'rocker{k}', 'continuous', 'base', f'rocker{k}', xyz=(0.5, 0, -0.2), axis=y)
        build.constraint(f'pin{k}', 'revolute', f'coupler{k}', f'rocker{k}', xyz_a=(0.5, 0, 0),
                         rpy_a=quarter, xyz_b=(0, 0, 0.4), rpy_b=quarter)
    model = build.build()
    return with_constraints(model, model.constraints, [f'rocker{k}' for k in range(len(cranks))],
                            condition_limit=limit)


@pytest.mark.parametrize('limit', [LIMIT, 2.0])     # The condition number is 5 to 8.
def test_separate_damped_loops_do_not_affect_each_other(limit):
    cranks, rng = (0.2, 0.21, 0.19, 0.22), np.random.default_rng(3)
    alone, model = [four_bars([crank], limit) for crank in cranks], four_bars(cranks, limit)
    parts = [rbd_ros.integrate(one, rbd_ros.neutral(one), [x], 1.0)
             for one, x in zip(alone, (0.1, -0.2, 0.15, 0.3))]
    q, (v, a) = np.concatenate(parts), rng.normal(size=(2, 4))
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    wrenches = rbd_ros.constraint_forces(model, q, v, a)
    for k, (one, x) in enumerate(zip(alone, parts)):
        given = x, v[k:k + 1], a[k:k + 1]
        assert relative_error(tau[k:k + 1], rbd_ros.inverse_dynamics(one, *given)) < SOLUTIONS
        assert relative_error(wrenches[f'pin{k}'],
                              rbd_ros.constraint_forces(one, *given)['pin0']) < SOLUTIONS
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), a) < SOLUTIONS


def test_derivatives_by_position_are_exact_outside_of_the_damped_range(case):
    model, v = case.damped, np.full(case.damped.nv, 0.3)
    q = next(q for q in case.path[case.k:] if case.condition(q) < 0.8 * LIMIT)
    by = rbd_ros.inverse_dynamics_derivatives(model, q, v, v).by_position
    h = 1e-6
    for k, e in enumerate(np.eye(model.nv)):
        ends = [rbd_ros.inverse_dynamics(model, rbd_ros.integrate(model, q, e, t), v, v)
                for t in (-h, h)]
        assert relative_error(by[:, k], (ends[1] - ends[0]) / (2.0 * h)) < 1e-3


def test_changed_robots_stay_damped(case, tmp_path):
    q, link = case.singular, case.damped.link_names[-1]
    for model in (rbd_ros.with_payload(case.damped, link, 1.0), rebuild(case.damped, joints=list(
            case.damped.joints)), rbd_ros.with_gravity(case.damped, (0.0, 0.0, 0.0))):
        assert np.all(np.isfinite(rbd_ros.mass_matrix(model, q)))
    names = ', '.join(case.plain.velocity_names)
    path = tmp_path / 'loops.yaml'
    path.write_text(f'independent: [{names}]\ncondition_limit: {LIMIT}\n')
    read = load_constraints(case.plain, path)
    assert np.array_equal(rbd_ros.mass_matrix(read, q), rbd_ros.mass_matrix(case.damped, q))
    with pytest.warns(rbd_ros.ModelWarning, match='condition_limit'):
        rbd_ros.save_urdf(case.damped, tmp_path / 'robot.urdf')


def test_bad_limits_are_errors(case, tmp_path):
    model, path = case.plain, tmp_path / 'loops.yaml'
    for limit in (0.5, 2e5, np.nan, 'high'):
        with pytest.raises(StateError, match='condition_limit'):
            with_constraints(model, model.constraints, condition_limit=limit)
    for text in ('0.5', 'high', '[1]'):
        path.write_text(f'independent: [{", ".join(model.velocity_names)}]\n'
                        f'condition_limit: {text}\n')
        with pytest.raises(rbd_ros.ModelError, match=r'loops\.yaml: .*condition_limit'):
            load_constraints(model, path)
