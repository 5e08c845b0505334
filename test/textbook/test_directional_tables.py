# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Directional derivatives by compiled recursions, against the tables of Kim as printed."""

from dataclasses import fields, replace

from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis
from rbd_ros.analysis import Variation
from rbd_ros.model.changes.inertial import inertia_of_parameters
from rbd_ros.model.joints import KINDS
from rbd_ros.textbook.directional_tables import table_5, table_6, table_7
from robots import example_urdf, load_quietly, random_tree, relative_error, with_mimics

# Both are exact: rounding.
ROUNDING = 1e-10
FIELDS = [field.name for field in fields(Variation)]
CASES = covering([*range(20), *(f'mimics {seed}' for seed in range(6)), 'floating', 'panda.urdf',
                  'talos_reduced.urdf'], 0, 1, 2, 'mimics 0', 'mimics 1', 'floating')


def robot(case):
    """Return a random tree of all kinds of joints, with mimic joints or not, or a real robot."""
    if case == 'floating':
        return load_quietly(example_urdf('solo12.urdf'), floating_base=True)
    if isinstance(case, str) and case.endswith('.urdf'):
        return load_quietly(example_urdf(case))
    seed = int(str(case).split()[-1])
    # Every other joint fixed: bodies of several links, some of them fixed to the root.
    kinds = (['fixed'] * len(KINDS) if seed % 2 else []) + list(KINDS)
    tree = random_tree(seed, 10, kinds=kinds)
    return tree if isinstance(case, int) else with_mimics(tree, seed)


def problem(model, seed):
    """Return q, v, a, tau, a mask, wrenches and a variation of everything."""
    rng = np.random.default_rng(seed)
    q, (v, a, tau) = rbd_ros.random_configuration(model, rng), rng.normal(size=(3, model.nv))
    wrenches = {name: rng.normal(size=6) for name in model.link_names[::2]}
    variation = Variation(
        *rng.normal(size=(4, model.nv)),
        dwrenches={name: rng.normal(size=6) for name in model.link_names[::3]},
        # Including links without external wrenches.
        world_fixed=model.link_names[1::3],
        dinertia={name: rng.normal(size=10) if k % 2 else inertia_of_parameters(
            rng.normal(size=10)) for k, name in enumerate(model.link_names)},
        dplacement={joint.name: rng.normal(size=6) for joint in model.joints})
    return q, v, a, tau, rng.random(model.nv) < 0.5, wrenches, variation


def assert_equal_to_tables(model, q, v, a, tau, prescribed, variation, allowed, **push):
    workspace = rbd_ros.Workspace(model)
    five = table_5(model, q, v, a, variation, **push)
    six = table_6(model, q, v, tau, variation, **push)
    seven = table_7(model, q, v, a, tau, prescribed, variation, **push)
    for _ in range(2):
        assert relative_error(workspace.inverse_dynamics_derivative(q, v, a, variation, **push),
                              five) < ROUNDING
        assert relative_error(workspace.forward_dynamics_derivative(q, v, tau, variation, **push),
                              six) < allowed
        got = workspace.hybrid_dynamics_derivative(q, v, a, tau, prescribed, variation, **push)
        for one, other in zip(got, seven):
            assert relative_error(one, other) < allowed


@pytest.mark.parametrize('case', CASES)
def test_kernels_are_the_printed_tables(case):
    model = robot(case)
    q, v, a, tau, prescribed, wrenches, variation = problem(model, 1)
    allowed = ROUNDING + 1e-15 * np.linalg.cond(rbd_ros.mass_matrix(model, q))
    assert_equal_to_tables(model, q, v, a, tau, prescribed, variation, allowed,
                           external_wrenches=wrenches)
    assert_equal_to_tables(model, q, v, a, tau, prescribed, variation, allowed)


@pytest.mark.parametrize('name', FIELDS)
@pytest.mark.parametrize('case', [0, 'mimics 1'])
def test_each_field_alone_is_that_of_the_printed_tables(case, name):
    model = robot(case)
    q, v, a, tau, prescribed, wrenches, variation = problem(model, 2)
    alone = replace(Variation(), **{name: getattr(variation, name)})
    allowed = ROUNDING + 1e-15 * np.linalg.cond(rbd_ros.mass_matrix(model, q))
    if name == 'world_fixed':
        # Wrenches fixed in the world matter where links rotate.
        alone = replace(alone, dq=variation.dq)
    assert_equal_to_tables(model, q, v, a, tau, prescribed, alone, allowed,
                           external_wrenches=wrenches)


def test_inconsistent_changes_of_inertia_are_refused():
    model = robot(0)
    q, v, a, tau, _, _, _ = problem(model, 1)
    name = model.link_names[2]
    change = inertia_of_parameters(np.arange(1.0, 11.0))
    analysis.inverse_dynamics_derivative(model, q, v, a, Variation(
        dinertia={name: change * (1.0 + 1e-12 * np.random.default_rng(0).random((6, 6)))}))
    for k, j in ((0, 1), (0, 3), (3, 4), (5, 5)):
        wrong = change.copy()
        wrong[k, j] += 0.1
        variation = Variation(dinertia={name: wrong})
        with pytest.raises(rbd_ros.StateError, match=f"dinertia of link '{name}'"):
            analysis.forward_dynamics_derivative(model, q, v, tau, variation)


def test_results_share_no_memory_with_arguments_or_each_other():
    for model in (robot(0), robot('mimics 0')):
        q, v, a, tau, prescribed, _, variation = problem(model, 1)
        arguments = (q, v, a, tau, prescribed, *(getattr(variation, x) for x in FIELDS[:4]))
        kept = [x.copy() for x in arguments]
        one = (analysis.inverse_dynamics_derivative(model, q, v, a, variation),
               analysis.forward_dynamics_derivative(model, q, v, tau, variation),
               *analysis.hybrid_dynamics_derivative(model, q, v, a, tau, prescribed, variation))
        for x, y in zip(arguments, kept):
            assert np.array_equal(x, y)
            assert not any(np.shares_memory(x, part) for part in one)
        for part in one:
            assert part.base is None


@pytest.mark.parametrize('case', [0, 'mimics 0'])
def test_bad_arguments_are_refused_by_name_after_earlier_calls(case):
    model = robot(case)
    q, v, a, tau, prescribed, _, variation = problem(model, 1)
    workspace, name = rbd_ros.Workspace(model), model.velocity_names[-1]
    inverse, hybrid = workspace.inverse_dynamics_derivative, workspace.hybrid_dynamics_derivative
    labels = ('dq', 'dv', 'da', 'dtau')
    for _ in range(2):
        for label in labels:
            nan = getattr(variation, label).copy()
            nan[-1] = np.nan
            for bad, message in ((nan, f"of '{name}' is nan"),
                                 (np.zeros(model.nv + 1), 'has the shape'),
                                 (['x'] * model.nv, 'must be real numbers'),
                                 (np.zeros(model.nv, complex), 'must be real numbers')):
                wrong = replace(variation, **{label: bad})
                with pytest.raises(rbd_ros.StateError, match=f'{label} {message}'):
                    hybrid(q, v, a, tau, prescribed, wrong)
                if label == 'dtau':
                    inverse(q, v, a, wrong)     # reads none
                else:
                    with pytest.raises(rbd_ros.StateError, match=f'{label} {message}'):
                        inverse(q, v, a, wrong)
        with pytest.raises(rbd_ros.StateError, match=r'v of .* is nan'):
            hybrid(q, v * np.nan, a, tau, prescribed, variation)
        with pytest.raises(rbd_ros.StateError, match=r'a of .* is nan'):
            inverse(q, v, a * np.nan, variation)
        with pytest.raises(rbd_ros.StateError, match='prescribed must be'):
            hybrid(q, v, a, tau, prescribed[1:], variation)
        nothing = np.where(prescribed, a, np.nan), np.where(prescribed, np.nan, tau)
        lists = {label: getattr(variation, label).tolist() for label in labels}
        expected = np.array(hybrid(q, v, a, tau, prescribed, variation))
        assert np.array_equal(expected, hybrid(q, v, *nothing, prescribed,
                                               replace(variation, **lists)))


def test_robots_without_joints_have_no_derivatives():
    model = load_quietly(example_urdf('quadrotor_base.urdf'))
    variation = Variation(dinertia={model.link_names[0]: np.ones(10)})
    assert analysis.inverse_dynamics_derivative(model, [], [], [], variation).shape == (0,)
    assert analysis.forward_dynamics_derivative(model, [], [], [], variation).shape == (0,)
