# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Traced functions: equal to the library, with nothing to fold, and refused where impossible."""

from collections import Counter

from control_robots import with_drives
from covering import covering
from generated_code import assert_of_library, evaluate, options_of, random_states
import pytest
import rbd_ros
from rbd_ros.codegen import FUNCTIONS, trace
from rbd_ros.codegen.graph import Tape
from rbd_ros.model.constraints import rebuild
from robots import example_urdf, load_quietly, random_tree, with_mimics

STATES = 4
# Of the largest entry: results lose digits as the library's do, in another order of operations.
TOLERANCE = 1e-12
# Of a solution with the mass matrix, with condition numbers of some thousands.
SOLVED = 1e-11


# Friction of all kinds.
DRIVES = {'damping': 0.4, 'damping_asymmetry': 0.1, 'friction': 0.5, 'friction_asymmetry': -0.2,
          'stribeck_friction': 0.3, 'stribeck_velocity': 0.7, 'effort_offset': 0.05}


def robots():
    ur5 = load_quietly(example_urdf('ur5_robot.urdf'))
    return {'ur5': with_drives(ur5, **DRIVES), 'floating': rbd_ros.with_floating_base(ur5),
            'panda': load_quietly(example_urdf('panda.urdf')),
            'mimics': with_mimics(random_tree(3, 9), 4),
            'kinds': with_drives(random_tree(
                4, 4, ('spherical', 'universal', 'helical', 'free')), **DRIVES)}


ROBOTS = robots()
LINKS = {'ur5': 'tool0', 'floating': 'tool0', 'panda': 'panda_hand'}


# Mimics and task spaces are compared as C, too.
@pytest.mark.parametrize('name', covering(ROBOTS, 'kinds'))
def test_traced_functions_equal_the_library(name):
    model = ROBOTS[name]
    link, states = LINKS.get(name, model.link_names[-1]), random_states(model, STATES)
    for function in FUNCTIONS:
        if function == 'task_space_dynamics' and name not in LINKS:
            continue
        options = options_of(model, function, link)
        graph = trace(model, function, **options)
        found = evaluate(graph, *(states[x.name] for x in graph.inputs))
        solved = function.startswith(('forward_dynamics', 'hybrid', 'task'))
        assert_of_library(found, model, graph, states, SOLVED if solved else TOLERANCE, **options)


# Code takes the frame of the body that stands on the ground for the root's.
@pytest.mark.parametrize('kind', ('prismatic', 'helical', 'universal', 'spherical', 'free'))
def test_code_is_right_for_any_kind_of_first_joint(kind):
    tree = random_tree(6, 3, ('revolute',))
    first, *others = tree.joints
    root = rbd_ros.Joint(first.name, kind, first.parent, first.child, first.placement,
                         axis=first.axis, second_axis=first.axis[::-1], pitch=0.2)
    model = rebuild(tree, joints=[root, *others])
    states = random_states(model, STATES)
    for function in 'all_terms', 'forward_dynamics_derivatives', 'torque_regressor':
        graph = trace(model, function)
        found = evaluate(graph, *(states[x.name] for x in graph.inputs))
        assert_of_library(found, model, graph, states, SOLVED)


def test_forward_dynamics_of_deep_trees_take_operations_in_proportion_to_the_joints():
    counts = []
    for joints in 40, 80:
        model = random_tree(1, joints, ('revolute',))
        graph, states = trace(model, 'forward_dynamics'), random_states(model, STATES)
        found = evaluate(graph, *(states[x.name] for x in graph.inputs))
        assert_of_library(found, model, graph, states, SOLVED)
        counts.append(len(graph.operations))
    assert counts[1] < 2.2 * counts[0]


def test_traced_graphs_have_nothing_left_to_fold():
    model = ROBOTS['ur5']
    for function in ('inverse_dynamics', 'forward_dynamics', 'all_terms'):
        graph = trace(model, function)
        operations = graph.operations
        assert len(set(operations)) == len(operations)
        used = {k for numbers in graph.results for k in numbers.ravel().tolist()}
        for number, (kind, arguments) in enumerate(operations):
            if kind in ('constant', 'input'):
                continue
            assert all(k < number for k in arguments)
            used.update(arguments)
            constants = [operations[k].arguments[0] for k in arguments
                         if operations[k].kind == 'constant']
            assert len(constants) < len(arguments)
            assert 0.0 not in constants or kind == 'neg'
            assert kind != 'mul' or all(c > 0.0 and c != 1.0 for c in constants)
        assert used == set(range(len(operations)))
        kinds = Counter(kind for kind, _ in operations)
        # The first joint turns about the vertical, so that its angle affects the CoM alone.
        assert kinds['cos'] == kinds['sin'] == (6 if function == 'all_terms' else 5)


def test_constant_and_trivial_operations_fold():
    tape = Tape()
    x, y = tape.inputs(0, (2,))
    for found, expected in (
            (x * 0.0, 0.0), (1.0 * x, x), (x + 0.0, x), (0.0 - x, -x),
            (x.__neg__().__neg__(), x), (x - x, 0.0),
            (2.0 * x - x, x), (x * -2.0 + y, y - 2.0 * x), (0.5 * (4.0 * x), 2.0 * x),
            (x + x, 2.0 * x), (-x * -y, x * y), (y * x, x * y), (-x - y, -(x + y)),
            (x / 4.0, 0.25 * x), (0.0 / x, 0.0), (-(x - y), y - x), (x - 3.0, x - 3.0),
            (tape.apply('cos', -x), tape.apply('cos', x)),
            (tape.apply('sin', -x), -tape.apply('sin', x)), (tape.apply('abs', -2.0), 2.0),
            (tape.apply('sign', 0.0), 0.0), (x ** 2, x * x)):
        assert found is expected or found == expected
    with pytest.raises(TypeError, match='cannot branch'):
        bool(x)
    with pytest.raises(TypeError, match='cannot compare'):
        x > y       # noqa: B015


def test_impossible_code_is_refused():
    model = ROBOTS['ur5']
    with pytest.raises(rbd_ros.ModelError, match=r"no code for a function 'simulate' of robot "
                       r"'ur5': choose from .*inverse_dynamics, "):
        trace(model, 'simulate')
    with pytest.raises(rbd_ros.ModelError, match="has no link 'hand'"):
        trace(model, 'jacobian', link='hand')
    with pytest.raises(rbd_ros.ModelError, match="'forearm_link', which has too few joints"):
        trace(model, 'task_space_dynamics', link='forearm_link')
    with pytest.raises(rbd_ros.ModelError, match="link 'base_link' is part of the root"):
        trace(model, 'task_space_dynamics', link='base_link')
