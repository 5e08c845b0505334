# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots whose functions are differentiated, with states whose quaternions are not of length 1."""

import numpy as np
import rbd_ros
from rbd_ros import ModelBuilder, random_configuration
from rbd_ros.model.positions.steps import quaternion_joints
from robots import random_tree, with_mimics

MASS, LENGTH, GRAVITY = 2.0, 0.3, 9.81


def robots():
    """Return robots by name; the kinds of joints are those that their names tell."""
    kinds = ('spherical', 'universal', 'helical', 'free')
    found = {
        'ball': random_tree(4, 4, kinds=kinds), 'free': random_tree(0, 4, kinds=kinds),
        'mimics': with_mimics(random_tree(8, 4, kinds=('spherical', 'universal', 'revolute')), 8)}
    joints = {name: [joint.kind for joint in model.joints] for name, model in found.items()}
    assert joints['ball'] == ['revolute', 'spherical', 'universal', 'helical']
    assert joints['free'] == ['revolute', 'universal', 'helical', 'free']
    assert joints['mimics'] == ['revolute', 'revolute', 'universal', 'spherical']
    assert found['mimics'].nq == 7    # the second joint mimics the first
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
    function = getattr(rbd_ros, name)
    if name == 'forward_kinematics':
        return lambda q: function(model, q)[model.link_index(link)]
    if name.startswith(('body', 'world')):
        return lambda q: function(model, q, link)
    return lambda *state: function(model, *state)


def arguments_of(name):
    """Return how many of q, v and the third vector a function takes."""
    return {'inverse_dynamics': 3, 'forward_dynamics': 3, 'bias_torques': 2}.get(name, 1)


OF_LINK = {'forward_kinematics', 'body_jacobian', 'world_jacobian'}
NAMES = ['inverse_dynamics', 'forward_dynamics', 'gravity_torques', 'bias_torques', 'mass_matrix',
         'forward_kinematics', 'body_jacobian', 'world_jacobian', 'center_of_mass',
         'com_jacobian']
