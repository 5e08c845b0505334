# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Regressors and inertial parameters, against the dynamics and Pinocchio."""

from dataclasses import replace

from covering import seeds
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.model import drive_parameters, with_friction
from rbd_ros.model.changes.inertial import (
    moving_bodies, parameters_of_pseudo_inertia, pseudo_inertia_of_parameters)
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.joints import KINDS, Mimic
from rbd_ros.model.positions.configurations import random_configuration
from robots import example_urdf, load_quietly, Oracle, random_tree, relative_error, with_mimics

# Both sides are exact: rounding, a hundred times below on the worst tree.
EXACT = 1e-9
# Differences of torques near a hundred.
DIFFERENCES = 1e-11
TREES = seeds(50)
ALL = ('rotor', 'offset', 'viscous', 'coulomb', 'viscous_asymmetry', 'coulomb_asymmetry',
       'stribeck')
SINGLE = ('revolute', 'prismatic', 'universal')


def random_robot(seed):
    """Return a random tree of all kinds of joints, some with armature, some copying others."""
    # Those with balls and mimics, as test_mimics.py has them, need kernels of their own.
    kinds = [kind for kind in KINDS if seed % 3 or KINDS[kind].is_screws]
    model = random_tree(seed, 5 + seed % 5, kinds=kinds)
    rng = np.random.default_rng(seed)
    single = [joint.name for joint in model.joints if joint.nv == 1]
    copies = {single[-1]: Mimic(single[0], -1.5, 0.2)} if seed % 3 == 0 and single[1:] else {}
    return rebuild(model, joints=[
        replace(joint, armature=tuple(rng.uniform(0.0, 0.2, joint.nv)),
                mimic=copies.get(joint.name)) for joint in model.joints])


def random_motion(model, seed):
    """Return a random q and three vectors of velocities."""
    rng = np.random.default_rng(seed)
    return (random_configuration(model, rng), *rng.normal(size=(3, model.nv)))


@pytest.mark.parametrize('seed', TREES)
def test_regressors_times_parameters_are_the_torques_on_trees_of_all_kinds(seed):
    model = random_robot(seed)
    q, v, v_r, a = random_motion(model, seed)
    pi, D = rbd_ros.model.inertial_parameters(model), np.diag(model.armature)
    assert len(rbd_ros.model.inertial_parameter_names(model)) == len(pi)
    Y = rbd_ros.torque_regressor(model, q, v, a)
    assert relative_error(Y @ pi + D @ a, rbd_ros.inverse_dynamics(model, q, v, a)) < EXACT
    for factorization in ('christoffel', 'body'):
        terms = rbd_ros.all_terms(model, q, v, factorization=factorization)
        Y = analysis.slotine_li_regressor(model, q, v, v_r, a, factorization=factorization)
        assert relative_error(Y @ pi + D @ a, terms.M @ a + terms.C @ v_r + terms.g) < EXACT
        assert relative_error(
            analysis.slotine_li_regressor(model, q, v, v, a, factorization=factorization),
            rbd_ros.torque_regressor(model, q, v, a)) < EXACT


@pytest.mark.parametrize('seed', TREES)
def test_momentum_and_energy_regressors_match_mass_matrix_and_com(seed):
    model = random_robot(seed)
    q, v, *_ = random_motion(model, seed)
    pi, D, M = (rbd_ros.model.inertial_parameters(model), np.diag(model.armature),
                rbd_ros.mass_matrix(model, q))
    assert relative_error(analysis.momentum_regressor(model, q, v) @ pi, (M - D) @ v) < EXACT
    kinetic, potential = analysis.energy_regressor(model, q, v) @ pi
    assert abs(kinetic - 0.5 * v @ (M - D) @ v) < EXACT * abs(kinetic)
    root = model.links[0].mass * model.links[0].com
    for k, joint in enumerate(model.joints, 1):
        if not any(k == part for parts in moving_bodies(model).values() for part, _ in parts):
            T = rbd_ros.forward_kinematics(model, q)[k]
            link = model.links[k]
            assert joint.nv == 0
            root = root + link.mass * (T[:3, :3] @ link.com + T[:3, 3])
    whole = model.mass * rbd_ros.center_of_mass(model, q)
    assert abs(potential + model.gravity @ (whole - root)) < EXACT * np.linalg.norm(whole) * 10


def test_torque_regressor_matches_pinocchio():
    path = example_urdf('ur5_robot.urdf')
    model = load_quietly(path)
    oracle = Oracle(path, model)
    q, v, _, a = random_motion(model, 0)
    theirs = pinocchio.computeJointTorqueRegressor(oracle.pin, oracle.data, q, v, a)
    # Pinocchio's order is m, mc, Ixx, Ixy, Iyy, Ixz, Iyz, Izz.
    order = [10 * k + i for k in range(6) for i in (0, 1, 2, 3, 4, 6, 9, 5, 7, 8)]
    assert relative_error(rbd_ros.torque_regressor(model, q, v, a), theirs[:, order]) < EXACT
    pi = np.concatenate([inertia.toDynamicParameters() for inertia in oracle.pin.inertias[1:]])
    assert relative_error(rbd_ros.model.inertial_parameters(model), pi[order]) < EXACT


@pytest.mark.parametrize('seed', TREES)
def test_parameters_describe_the_robot(seed):
    model = random_robot(seed)
    q, v, _, a = random_motion(model, seed)
    pi = rbd_ros.model.inertial_parameters(model)
    same = rbd_ros.model.with_inertial_parameters(model, pi)
    assert relative_error(rbd_ros.model.inertial_parameters(same), pi) < EXACT
    assert relative_error(rbd_ros.inverse_dynamics(same, q, v, a),
                          rbd_ros.inverse_dynamics(model, q, v, a)) < EXACT
    assert relative_error(rbd_ros.center_of_mass(same, q),
                          rbd_ros.center_of_mass(model, q)) < EXACT
    rng = np.random.default_rng(seed)
    other = pi * rng.uniform(0.9, 1.1, len(pi))
    heavier = rbd_ros.model.with_inertial_parameters(model, other)
    change = (rbd_ros.inverse_dynamics(heavier, q, v, a)
              - rbd_ros.inverse_dynamics(model, q, v, a))
    assert relative_error(change, rbd_ros.torque_regressor(model, q, v, a) @ (other - pi)) < EXACT


def test_inertial_parameters_are_those_of_the_link_and_its_payload():
    model = (rbd_ros.ModelBuilder('r').link('a', 9.0)
             .link('b', 2.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.25, 0.01, 0.02, 0.03))
             .joint('j', 'revolute', 'a', 'b').build())
    assert rbd_ros.model.inertial_parameter_names(model)[:5] == ('b/m', 'b/mcx', 'b/mcy', 'b/mcz',
                                                                 'b/Ixx')
    assert np.allclose(rbd_ros.model.inertial_parameters(model), [
        2.0, 0.2, 0.4, 0.6, 0.1 + 2 * 0.13, 0.2 + 2 * 0.1, 0.25 + 2 * 0.05,
        0.01 - 2 * 0.02, 0.02 - 2 * 0.03, 0.03 - 2 * 0.06])
    loaded = rbd_ros.with_payload(model, 'b', 1.0, (1.0, 0.0, 0.0))
    change = (rbd_ros.model.inertial_parameters(loaded)
              - rbd_ros.model.inertial_parameters(model))
    assert np.allclose(change,
                       [1.0, 1.0, 0.0, 0.0, 0.0, 1.0, 1.0, 0.0, 0.0, 0.0])


@pytest.mark.parametrize('seed', seeds(20))
def test_a_light_inertia_far_from_the_origin_stays_symmetric(seed):
    # 1e-8 kg m^2 of 10: a link refuses an inertia of which rounding has left no symmetric matrix.
    rng = np.random.default_rng(seed)
    model = random_tree(seed, 1, kinds=('revolute',))
    mass, com = rng.uniform(1.0, 5.0), rng.normal(size=3)
    x, y, z = com
    moments = mass * np.array([y * y + z * z, x * x + z * z, x * x + y * y,
                               -x * y, -x * z, -y * z])
    moments[:3] += 1e-8
    link = rbd_ros.model.with_inertial_parameters(
        model, np.array([mass, *(mass * com), *moments])).links[1]
    assert np.array_equal(link.inertia, link.inertia.T)
    assert np.max(np.abs(link.inertia - 1e-8 * np.eye(3))) < 1e-14 * mass * (1.0 + com @ com)


@pytest.mark.parametrize('seed', range(5))
def test_pseudo_inertia_is_the_second_moment_of_the_masses(seed):
    rng = np.random.default_rng(seed)
    points, masses = rng.normal(size=(6, 3)), rng.uniform(0.1, 1.0, 6)
    pi = np.zeros(10)
    P = np.zeros((4, 4))
    for (x, y, z), m in zip(points, masses):
        pi += m * np.array([1, x, y, z, y * y + z * z, x * x + z * z, x * x + y * y,
                            -x * y, -x * z, -y * z])
        P += m * np.outer([x, y, z, 1], [x, y, z, 1])
    assert np.allclose(pseudo_inertia_of_parameters(pi), P, rtol=1e-13)
    assert np.allclose(parameters_of_pseudo_inertia(P), pi, rtol=1e-13)


def test_impossible_bodies_are_named():
    model = random_tree(2, 4, kinds=('revolute',))
    pi = rbd_ros.model.inertial_parameters(model)
    assert rbd_ros.model.inconsistent_bodies(model, pi) == ()
    pi[10 + 4] = 10.0     # of link 2, Ixx far beyond Iyy + Izz
    assert rbd_ros.model.inconsistent_bodies(model, pi) == ('link2',)


def test_wrong_parameters_and_states_are_refused():
    model = random_tree(2, 4, kinds=('revolute',))
    pi, zero = rbd_ros.model.inertial_parameters(model), np.zeros(4)
    with pytest.raises(rbd_ros.StateError, match='pi'):
        rbd_ros.model.with_inertial_parameters(model, pi[:-1])
    with pytest.raises(rbd_ros.StateError, match='link1/mcx'):
        rbd_ros.model.with_inertial_parameters(model, np.where(np.arange(40) == 1, np.nan, pi))
    for value in (-1.0, 0.0):
        with pytest.raises(rbd_ros.ModelError, match="link 'link1': its mass"):
            rbd_ros.model.with_inertial_parameters(model, np.where(np.arange(40) == 0, value, pi))
    with pytest.raises(rbd_ros.StateError, match='v has'):
        rbd_ros.torque_regressor(model, zero, zero[1:], zero)
    with pytest.raises(rbd_ros.StateError, match='factorization'):
        analysis.slotine_li_regressor(model, zero, zero, zero, zero, factorization='other')


# -- Friction and rotors. -------------------------------------------------------------------------
def rubbing(seed, model):
    """Return a robot with every coefficient of friction."""
    rng = np.random.default_rng(seed)
    damping, friction, stribeck, speed = rng.uniform(0.1, 2.0, (4, model.nv))
    share = rng.uniform(-1.0, 1.0, (3, model.nv))
    return with_friction(model, damping=damping, damping_asymmetry=share[0] * damping,
                         friction=friction, friction_asymmetry=share[1] * friction,
                         stribeck_friction=stribeck, stribeck_velocity=speed,
                         effort_offset=share[2])


@pytest.mark.parametrize('smooth', [0.0, 0.3])
@pytest.mark.parametrize('seed', range(4))
def test_regressor_times_parameters_is_friction_and_rotors(seed, smooth):
    model = random_tree(seed, 6, kinds=SINGLE)
    if seed % 2:
        model = with_mimics(random_tree(seed, 6, kinds=SINGLE[:2]), seed)
    model, rng = rubbing(seed, model), np.random.default_rng(seed)
    v, a = rng.normal(size=(2, 5, model.nv))
    q, bare = rbd_ros.neutral(model), rbd_ros.with_armature(model, np.zeros(model.nv))
    rotors = np.array([rbd_ros.inverse_dynamics(model, q, *state)
                       - rbd_ros.inverse_dynamics(bare, q, *state) for state in zip(v, a)])
    got = analysis.friction_regressor(model, v, a, columns=ALL, smooth=smooth) @ drive_parameters(
        model, columns=ALL)
    expected = rbd_ros.friction_torques(model, v, smooth=smooth) + rotors
    assert np.max(np.abs(got - expected)) < DIFFERENCES
    assert (np.max(np.abs(rotors)) > 0.1) == bool(seed % 2)


def test_states_of_the_regressor_are_each_their_own():
    model = rubbing(1, random_tree(1, 4, kinds=('revolute',)))
    v = np.random.default_rng(1).normal(size=(6, 4))
    Y = analysis.friction_regressor(model, v)
    assert Y.shape == (6, 4, 12)
    assert np.array_equal(Y, [analysis.friction_regressor(model, one) for one in v])


def test_regressor_needs_accelerations_for_rotors_and_those_of_the_same_states():
    model = random_tree(1, 3, kinds=('revolute',))
    with pytest.raises(rbd_ros.StateError, match='a must be real numbers, got None'):
        analysis.friction_regressor(model, np.zeros(3), columns='rotor')
    with pytest.raises(rbd_ros.StateError, match='a has the shape'):
        analysis.friction_regressor(model, np.zeros((4, 3)), np.zeros(3), columns='rotor')
    with pytest.raises(rbd_ros.StateError, match='columns must be'):
        analysis.friction_regressor(model, np.zeros(3), columns=('damping',))
