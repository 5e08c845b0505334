# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots whose functions are differentiated, with states whose quaternions are not of length 1."""

from itertools import product

from covering import covering
import numpy as np
from rbd_ros import ModelBuilder, random_configuration
from rbd_ros.model.positions.steps import quaternion_joints
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.workspace import workspace_of
from robots import random_tree, with_mimics

MASS, LENGTH, GRAVITY = 2.0, 0.3, 9.81


def robots():
    """Return robots by name; the kinds of joints are those that their names tell."""
    found = {
        'ball': random_tree(4, 4, kinds=('spherical', 'universal', 'helical', 'free')),
        'free': random_tree(2, 2, kinds=('free',)),
        'mimics': with_mimics(random_tree(3, 4, kinds=('prismatic', 'universal', 'revolute')), 8),
        'mimics and ball': with_mimics(
            random_tree(8, 4, kinds=('spherical', 'universal', 'revolute')), 8)}
    joints = {name: [joint.kind for joint in model.joints] for name, model in found.items()}
    assert joints['ball'] == ['revolute', 'spherical', 'universal', 'helical']
    assert joints['free'] == ['revolute', 'free']
    assert joints['mimics'] == ['revolute', 'universal', 'prismatic', 'revolute']
    assert joints['mimics and ball'] == ['revolute', 'revolute', 'universal', 'spherical']
    # One joint mimics the first.
    assert found['mimics'].nq == 4 and found['mimics and ball'].nq == 7
    return found


ROBOTS = robots()


def states(model, count, seed=0):
    """Return q, v and a third vector for every state; quaternions have various lengths."""
    rng = np.random.default_rng(seed)
    Q = np.array([random_configuration(model, rng) for _ in range(count)])
    for _, i, _ in quaternion_joints(model):
        Q[:, i.start:i.start + 4] *= rng.uniform(0.5, 2.0, (count, 1))
    return [Q, *rng.normal(size=(2, count, model.nv))]


def pendulum():
    """Return a point mass on a rod that turns about y; its gravity torque is -m g l sin q."""
    arm = ModelBuilder('pendulum').link('base')
    arm.link('rod', mass=MASS, com=(0.0, 0.0, LENGTH), inertia=np.zeros((3, 3)))
    return arm.joint('swing', 'revolute', 'base', 'rod', axis=(0.0, 1.0, 0.0)).build()


def function_of_library(model, name, link):
    """Return the function of one state in rbd_ros, whose result is compared."""
    declared = QUANTITIES[name]
    if declared.by_link:
        return lambda q: declared.function(model, q)[model.link_index(link)]
    return lambda *state: declared.function(model, *state, *[link] * len(declared.options))


def arguments_of(name):
    """Return how many of q, v and the third vector a function takes."""
    return len(QUANTITIES[name].inputs)


def operations_of(model, name):
    """Return options of a function without rule, states, its results, and changes of them."""
    declared = QUANTITIES[name]
    known = {'link': model.link_names[-1], 'prescribed': np.arange(model.nv) % 2 == 0}
    own, rng = {x: known[x] for x in declared.options}, np.random.default_rng(3)
    x = {label: rng.normal(size=model.nv) for label in declared.inputs}
    if 'q' in x:
        x['q'] = states(model, 1)[0][0]
    direction = {label: rng.normal(size=len(y)) for label, y in x.items()}

    def results(t):
        found = declared.call(workspace_of(model), **own, **{
            label: y + t * direction[label] for label, y in x.items()})
        return np.concatenate([np.ravel(y) for y in found[:len(declared.results)]])
    change = (8.0 * (results(STEP) - results(-STEP))
              - results(2.0 * STEP) + results(-2.0 * STEP)) / (12.0 * STEP)
    return list(own.values()), list(x.values()), list(direction.values()), results(0.0), change


# Of differences of the fourth order: their step, and errors relative to the largest entry. Of
# operations in another order, where M is factored.
STEP, DIFFERENCES, OPERATIONS = 1e-3, 1e-7, 1e-10
NAMES = [name for name, one in QUANTITIES.items() if one.derivatives]
OF_LINK = {name for name in NAMES if QUANTITIES[name].by_link or QUANTITIES[name].options}
# One of each shape: they share their rules.
SHAPES = ('inverse_dynamics', 'forward_dynamics', 'mass_matrix', 'body_jacobian',
          'forward_kinematics')
# Robots and functions.
KINDS_AND_NAMES = covering(
    product(ROBOTS, NAMES), *product(['ball'], NAMES), ('free', 'forward_kinematics'))
# Those that frameworks evaluate and differentiate operation by operation. Few have every kind of
# operation, several results, a link or none.
WITHOUT_RULE = covering(
    [name for name, one in QUANTITIES.items() if not (one.untraced or one.derivatives)],
    'task_space_dynamics', 'friction_torques', 'spring_torques')
