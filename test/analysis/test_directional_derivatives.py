# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Derivatives of the dynamics by any scalar p, against differences and the dense equations."""

from dataclasses import replace

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.analysis import Variation
from rbd_ros.model.changes.inertial import inertia_of_parameters, parameters_of_inertia
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.joints import KINDS, Mimic
from rbd_ros.model.positions.configurations import integrate, random_configuration
from rbd_ros.model.se3 import exp, inertia_matrix, skew
from robots import example_urdf, load_quietly, random_tree, relative_error

# Both sides are exact: rounding, a hundred times below on the worst tree.
EXACT = 1e-9
# And against differences: central, with Richardson's extrapolation, so that 1e-4 is a good step.
STEP, DIFFERENCES = 1e-4, 1e-8
TREES = seeds(50)


def random_tree_with_rotors(seed):
    """Return a random tree of all kinds of joints, some with armature."""
    model = random_tree(seed, 4 + seed % 5, kinds=list(KINDS))
    rng = np.random.default_rng(seed)
    return rebuild(model, joints=[replace(joint, armature=tuple(rng.uniform(0.0, 0.2, joint.nv)))
                                  for joint in model.joints])


def random_problem(model, seed):
    """Return a state, external wrenches, and a variation of everything."""
    rng = np.random.default_rng(seed)
    q = random_configuration(model, rng)
    v, a, tau = rng.normal(size=(3, model.nv))
    heavy = [link.name for link in model.links[1:] if link.mass]
    last, middle = heavy[-1], heavy[len(heavy) // 2]
    wrenches = {last: rng.normal(size=6), middle: rng.normal(size=6)}
    variation = Variation(
        *rng.normal(size=(4, model.nv)),
        dwrenches={last: rng.normal(size=6), model.link_names[1]: rng.normal(size=6)},
        world_fixed=(last,),
        dinertia={middle: 0.1 * rng.normal(size=10),
                  last: inertia_of_parameters(0.1 * rng.normal(size=10))},
        dplacement={joint.name: rng.normal(size=6) for joint in model.joints[::2]})
    return q, v, a, tau, wrenches, variation


def moved(model, q, v, a, tau, wrenches, variation, p):
    """Return the robot, its state and the wrenches after p has changed from zero."""
    links = []
    for link in model.links:
        G = inertia_matrix(link.mass, link.com, link.inertia)
        change = np.asarray(variation.dinertia.get(link.name, np.zeros(10)))
        G = G + p * (inertia_of_parameters(change) if change.ndim == 1 else change)
        pi = parameters_of_inertia(G)
        com = pi[1:4] / pi[0] if pi[0] else np.zeros(3)
        links.append(Link(link.name, pi[0], com, G[:3, :3] + pi[0] * skew(com) @ skew(com)))
    joints = [replace(joint, placement=joint.placement @ exp(
        p * variation.dplacement.get(joint.name, np.zeros(6)))) for joint in model.joints]
    other = rebuild(model, links=links, joints=joints)
    q_p = integrate(model, q, variation.dq, p)
    pushes = {link: wrenches.get(link, np.zeros(6)) + p * np.asarray(
        variation.dwrenches.get(link, np.zeros(6))) for link in model.link_names}
    for link in variation.world_fixed:
        k = model.link_index(link)
        R = (rbd_ros.forward_kinematics(other, q_p)[k, :3, :3].T
             @ rbd_ros.forward_kinematics(model, q)[k, :3, :3])
        pushes[link] = np.concatenate((R @ pushes[link][:3], R @ pushes[link][3:]))
    return (other, q_p, v + p * variation.dv, a + p * variation.da, tau + p * variation.dtau,
            pushes)


def difference_by_p(function):
    """Return the derivative of a function of p at zero, by differences of fourth order."""
    once = (function(STEP) - function(-STEP)) / (2 * STEP)
    twice = (function(2 * STEP) - function(-2 * STEP)) / (4 * STEP)
    return (4 * once - twice) / 3


def check_against_differences(model, seed):
    """Compare all three derivatives with differences."""
    problem = random_problem(model, seed)
    q, v, a, tau, wrenches, variation = problem
    prescribed = np.random.default_rng(seed).random(model.nv) < 0.5

    def all_three(p):
        other, q_p, v_p, a_p, tau_p, pushes = moved(model, *problem, p)
        workspace = rbd_ros.Workspace(other)
        push = {'external_wrenches': pushes}
        return np.array([workspace.inverse_dynamics(q_p, v_p, a_p, **push).copy(),
                         workspace.forward_dynamics(q_p, v_p, tau_p, **push).copy(),
                         *workspace.hybrid_dynamics(q_p, v_p, a_p, tau_p, prescribed, **push)])

    push = {'external_wrenches': wrenches}
    got = (analysis.inverse_dynamics_derivative(model, q, v, a, variation, **push),
           analysis.forward_dynamics_derivative(model, q, v, tau, variation, **push),
           *analysis.hybrid_dynamics_derivative(model, q, v, a, tau, prescribed, variation,
                                                **push))
    for one, other in zip(got, difference_by_p(all_three)):
        assert relative_error(one, other) < DIFFERENCES


@pytest.mark.parametrize('seed', TREES)
def test_derivatives_by_everything_match_differences_on_trees_of_all_kinds(seed):
    check_against_differences(random_tree_with_rotors(seed), seed)


@pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf', 'talos_reduced.urdf'])
def test_derivatives_by_everything_match_differences_on_real_robots(name):
    # The fingers of the Panda mimic each other.
    check_against_differences(load_quietly(example_urdf(name)), 1)


def tree_with_mimics(seed, *kinds):
    """Return a random tree in which some joints copy others."""
    model = random_tree(seed, 7, kinds=('revolute', 'prismatic', 'universal', *kinds))
    single = [joint.name for joint in model.joints if joint.nv == 1]
    copies = {name: Mimic(single[0], 0.5 + k, 0.1 * k) for k, name in enumerate(single[2:])}
    return rebuild(model, joints=[
        replace(joint, mimic=copies.get(joint.name), armature=(0.1,) * joint.nv)
        for joint in model.joints])


# Kernels for mimics and balls take long to compile; kernels/test_interpreted.py runs their source.
@pytest.mark.parametrize('seed, kinds', [
    *(pytest.param(seed, (), id=f'screws{seed}') for seed in range(3)),
    *(pytest.param(seed, ('spherical',), id=f'balls{seed}', marks=pytest.mark.long)
      for seed in range(6))])
def test_derivatives_by_everything_match_differences_where_joints_mimic(seed, kinds):
    model = tree_with_mimics(seed, *kinds)
    assert not model.coordinates.is_identity
    check_against_differences(model, seed)


@pytest.mark.parametrize('seed', TREES)
def test_hybrid_derivative_is_that_of_the_dense_equations(seed):
    # M a + b = tau, differentiated [K (33)], against the recursion.
    model = random_tree_with_rotors(seed)
    q, v, a, tau, wrenches, variation = random_problem(model, seed)
    push = {'external_wrenches': wrenches}
    p = np.random.default_rng(seed).random(model.nv) < 0.5
    a, _ = rbd_ros.hybrid_dynamics(model, q, v, a, tau, ~p, **push)
    da, dtau = analysis.hybrid_dynamics_derivative(model, q, v, a, tau, ~p, variation, **push)
    M = rbd_ros.mass_matrix(model, q)
    change = analysis.inverse_dynamics_derivative(model, q, v, a, replace(variation, da=None),
                                                  **push)
    known = np.where(p, 0.0, variation.da)
    expected = known.copy()
    expected[p] = np.linalg.solve(M[np.ix_(p, p)], (variation.dtau - change - M @ known)[p])
    allowed = EXACT + 1e-15 * np.linalg.cond(M)
    assert relative_error(da, expected) < allowed
    assert relative_error(dtau, np.where(p, variation.dtau, M @ expected + change)) < allowed


@pytest.mark.parametrize('seed', TREES)
def test_inverse_derivative_by_a_v_and_tau_is_that_of_the_matrices(seed):
    model = random_tree_with_rotors(seed)
    q, v, a, tau, _, variation = random_problem(model, seed)
    M, x = rbd_ros.mass_matrix(model, q), variation.da
    assert relative_error(
        analysis.inverse_dynamics_derivative(model, q, v, a, Variation(da=x)), M @ x) < EXACT
    # Quadratic in v: a central difference of any size is exact.
    expected = (rbd_ros.bias_torques(model, q, v + x).copy()
                - rbd_ros.bias_torques(model, q, v - x)) / 2
    assert relative_error(
        analysis.inverse_dynamics_derivative(model, q, v, a, Variation(dv=x)), expected) < EXACT
    assert relative_error(
        analysis.forward_dynamics_derivative(model, q, v, tau, Variation(dtau=x)),
        np.linalg.solve(M, x)) < EXACT + 1e-15 * np.linalg.cond(M)


def test_wrong_variations_are_refused_by_name():
    model = random_tree(1, 4)
    q, v, a, *_ = random_problem(model, 1)
    for variation, error, message in (
            (Variation(dq=np.zeros(model.nv + 1)), rbd_ros.StateError, 'dq'),
            (Variation(dv=np.full(model.nv, np.nan)), rbd_ros.StateError, 'dv'),
            (Variation(dwrenches={'nowhere': np.zeros(6)}), rbd_ros.ModelError, 'nowhere'),
            (Variation(world_fixed=['nowhere']), rbd_ros.ModelError, 'nowhere'),
            (Variation(dinertia={'link1': np.zeros(9)}), rbd_ros.StateError, 'link1'),
            (Variation(dplacement={'hinge': np.zeros(6)}), rbd_ros.ModelError, 'hinge')):
        with pytest.raises(error, match=message):
            analysis.inverse_dynamics_derivative(model, q, v, a, variation)
