# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""All derivatives of inverse, forward and hybrid dynamics at once."""

from covering import seeds
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.model.joints import KINDS
from robots import example_urdf, load_quietly, Oracle, random_state, random_tree, relative_error

# Rounding, some twenty bodies deep.
ROUNDING = 1e-11
# Both sides are exact: rounding, a hundred times below on the worst tree.
AGREEMENT = 1e-9
# Differences of the fourth order; rounding, divided by the step, is left: 3e-8 on a tree that is
# close to singular, 1e-9 on the others.
STEP, DIFFERENCES = 3e-5, 1e-7

MOVING = [kind for kind in KINDS if kind != 'fixed']
ROBOTS = ['panda.urdf', 'ur5_robot.urdf', 'talos_reduced.urdf']


def tree_and_state(seed):
    """Return a random tree that mixes all kinds of joints, q, v, a and wrenches on two links."""
    model = random_tree(seed, 5, kinds=MOVING)
    rng = np.random.default_rng(seed)
    q = rbd_ros.random_configuration(model, rng)
    v, a = rng.normal(size=(2, model.nv))
    wrenches = {name: rng.normal(size=6) for name in model.link_names[-2:]}
    return model, q, v, a, wrenches


def robot_and_state(name):
    """Return a real robot, q, v, a and a wrench on its last link."""
    model = load_quietly(example_urdf(name))
    q, v, a = random_state(model, 1)
    return model, q, v, a, {model.link_names[-1]: np.arange(1.0, 7.0)}


def differences(model, f, x, directions):
    """Return the differences of f along directions, side by side."""
    def central(d):
        return (f(x(d)) - f(x(-d))) / (2.0 * STEP)
    columns = [(4.0 * central(STEP * d) - 0.5 * central(2.0 * STEP * d)) / 3.0
               for d in directions]
    return np.array(columns).T


def by_differences(model, f, q, v, x):
    """Return the derivatives of f(q, v, x) by q, v and x."""
    unit = np.eye(model.nv)
    return (differences(model, lambda y: f(y, v, x),
                        lambda d: rbd_ros.integrate(model, q, d, 1.0), unit),
            differences(model, lambda y: f(q, y, x), lambda d: v + d, unit),
            differences(model, lambda y: f(q, v, y), lambda d: x + d, unit))


def assert_equal_to_differences(got, expected):
    for one, other in zip(got, expected):
        assert relative_error(one, other) < DIFFERENCES


CASES = [pytest.param(tree_and_state, *one.values, id=f'tree{one.values[0]}', marks=one.marks)
         for one in seeds(50)] + [
    pytest.param(robot_and_state, name, id=name) for name in ROBOTS]


@pytest.mark.parametrize('make, case', CASES)
def test_inverse_dynamics_derivatives_are_those_of_differences(make, case):
    model, q, v, a, wrenches = make(case)
    got = rbd_ros.inverse_dynamics_derivatives(model, q, v, a, external_wrenches=wrenches)
    expected = by_differences(model, lambda *x: rbd_ros.inverse_dynamics(
        model, *x, external_wrenches=wrenches), q, v, a)
    assert_equal_to_differences(got, expected)
    assert relative_error(got.by_input, rbd_ros.mass_matrix(model, q)) < ROUNDING


@pytest.mark.parametrize('make, case', CASES)
def test_derivatives_in_a_direction_are_those_of_kims_tables(make, case):
    model, q, v, a, wrenches = make(case)
    rng = np.random.default_rng(7)
    dq, dv, dx = rng.normal(size=(3, model.nv))
    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches)
    prescribed = rng.random(model.nv) < 0.5

    def along(derivatives):
        return derivatives.by_position @ dq + derivatives.by_velocity @ dv + (
            derivatives.by_input @ dx)

    variation = analysis.Variation(dq=dq, dv=dv, da=dx, dtau=dx)
    expected = analysis.inverse_dynamics_derivative(model, q, v, a, variation,
                                                    external_wrenches=wrenches)
    got = along(rbd_ros.inverse_dynamics_derivatives(model, q, v, a, external_wrenches=wrenches))
    assert relative_error(got, expected) < AGREEMENT
    expected = analysis.forward_dynamics_derivative(model, q, v, tau, variation,
                                                    external_wrenches=wrenches)
    got = along(rbd_ros.forward_dynamics_derivatives(model, q, v, tau,
                                                     external_wrenches=wrenches))
    assert relative_error(got, expected) < AGREEMENT
    da, dtau = analysis.hybrid_dynamics_derivative(model, q, v, a, tau, prescribed, variation,
                                                   external_wrenches=wrenches)
    got = along(rbd_ros.hybrid_dynamics_derivatives(model, q, v, a, tau, prescribed,
                                                    external_wrenches=wrenches))
    assert relative_error(got, np.where(prescribed, dtau, da)) < AGREEMENT


@pytest.mark.parametrize('make, case', CASES)
def test_forward_dynamics_derivatives_are_those_of_differences_and_invert_inverse(make, case):
    model, q, v, a, wrenches = make(case)
    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches)
    got = rbd_ros.forward_dynamics_derivatives(model, q, v, tau, external_wrenches=wrenches)
    expected = by_differences(model, lambda *x: rbd_ros.forward_dynamics(
        model, *x, external_wrenches=wrenches), q, v, tau)
    assert_equal_to_differences(got, expected)
    # da/d(q, v) = -M^-1 dtau/d(q, v), da/dtau = M^-1.
    inverse = rbd_ros.inverse_dynamics_derivatives(model, q, v, a, external_wrenches=wrenches)
    M = inverse.by_input
    scale = np.linalg.cond(M) * np.finfo(float).eps / ROUNDING + 1.0
    assert relative_error(M @ got.by_position, -inverse.by_position) < AGREEMENT * scale
    assert relative_error(M @ got.by_velocity, -inverse.by_velocity) < AGREEMENT * scale
    assert relative_error(M @ got.by_input, np.eye(model.nv)) < AGREEMENT * scale


@pytest.mark.parametrize('make, case', CASES)
def test_hybrid_dynamics_derivatives_are_those_of_differences(make, case):
    model, q, v, a, wrenches = make(case)
    rng = np.random.default_rng(3)
    prescribed = rng.random(model.nv) < 0.5
    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=wrenches)

    def unknowns(q, v, given):
        a, tau = rbd_ros.hybrid_dynamics(model, q, v, given, given, prescribed,
                                         external_wrenches=wrenches)
        return np.where(prescribed, tau, a)

    given = np.where(prescribed, a, tau)
    got = rbd_ros.hybrid_dynamics_derivatives(model, q, v, a, tau, prescribed,
                                              external_wrenches=wrenches)
    assert_equal_to_differences(got, by_differences(model, unknowns, q, v, given))


@pytest.mark.parametrize('name', ['ur5_robot.urdf', 'talos_reduced.urdf', 'z1.urdf', 'solo12.urdf',
                                  'tiago_no_hand.urdf', 'go2.urdf'])
def test_derivatives_match_pinocchio(name):
    # Its derivatives are right where S is constant.
    path = example_urdf(name)
    model = load_quietly(path)
    oracle = Oracle(path, model)
    q, v, a = random_state(model, 2)
    pinocchio.computeRNEADerivatives(oracle.pin, oracle.data, oracle.q(q), oracle.G @ v,
                                     oracle.G @ a)
    got = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    for one, other in ((got.by_position, oracle.data.dtau_dq),
                       (got.by_velocity, oracle.data.dtau_dv)):
        assert relative_error(one, oracle.G.T @ other @ oracle.G) < AGREEMENT
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    pinocchio.computeABADerivatives(oracle.pin, oracle.data, oracle.q(q), oracle.G @ v,
                                    oracle.G @ tau)
    got = rbd_ros.forward_dynamics_derivatives(model, q, v, tau)
    for one, other in ((got.by_position, oracle.data.ddq_dq),
                       (got.by_velocity, oracle.data.ddq_dv)):
        assert relative_error(one, oracle.G.T @ other @ oracle.G) < AGREEMENT


def test_derivatives_of_many_joints_whose_columns_take_several_passes():
    # 3 * 200 columns of 200 numbers exceed what the kernel works on at once.
    model = random_tree(3, 200, kinds=['revolute'])
    rng = np.random.default_rng(3)
    q, v, a = rng.uniform(-1.0, 1.0, (3, model.nv)) * np.array([[3.0], [0.1], [0.1]])
    M = rbd_ros.mass_matrix(model, q)
    by_q, by_v, _ = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    got = rbd_ros.forward_dynamics_derivatives(model, q, v, tau)
    bound = ROUNDING * np.linalg.cond(M)
    for one, other in zip(got, (-np.linalg.solve(M, by_q), -np.linalg.solve(M, by_v),
                                np.linalg.inv(M))):
        assert relative_error(one, other) < bound


@pytest.mark.parametrize('name', ['solo12.urdf', 'talos_reduced.urdf'])
def test_derivatives_with_a_floating_base_match_pinocchio(name):
    path = example_urdf(name)
    model = load_quietly(path, floating_base=True)
    pin = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
    data = pin.createData()
    order = [3, 4, 5, 0, 1, 2] + [
        pin.joints[pin.getJointId(joint)].idx_v for joint in model.velocity_names[6:]]
    rng = np.random.default_rng(4)
    q = rbd_ros.random_configuration(model, rng)
    v, a = rng.normal(size=(2, model.nv))
    pin_q, pin_v, pin_a = np.zeros(pin.nq), np.zeros(pin.nv), np.zeros(pin.nv)
    pin_q[:3], pin_q[3:7], pin_v[order], pin_a[order] = q[4:7], q[:4], v, a
    for name_, x in zip(model.position_names[7:], q[7:]):
        pin_q[pin.joints[pin.getJointId(name_)].idx_q] = x
    pinocchio.computeRNEADerivatives(pin, data, pin_q, pin_v, pin_a)
    got = rbd_ros.inverse_dynamics_derivatives(model, q, v, a)
    assert relative_error(got.by_position, data.dtau_dq[np.ix_(order, order)]) < AGREEMENT
    assert relative_error(got.by_velocity, data.dtau_dv[np.ix_(order, order)]) < AGREEMENT


@pytest.mark.parametrize('function, arguments', [
    (rbd_ros.inverse_dynamics_derivatives, 3), (rbd_ros.forward_dynamics_derivatives, 3),
    (rbd_ros.analysis.matrices_dot, 3), (rbd_ros.torque_regressor, 3)])
def test_fault_41_bad_states_are_refused_by_name(function, arguments):
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    for k in range(arguments):
        bad = [np.zeros(6) for _ in range(arguments)]
        bad[k][2] = np.nan
        with pytest.raises(rbd_ros.StateError, match='elbow_joint'):
            function(model, *bad)
        bad[k] = np.zeros(5)
        with pytest.raises(rbd_ros.StateError, match='needs'):
            function(model, *bad)
