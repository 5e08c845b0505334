# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots with closed loops of all kinds, with their oracles and closed states, for tests."""

from functools import cache
from typing import NamedTuple

from covering import covering
from loop_robots import loop_robot, MOTORS, moved_motors
from loops_oracle import independent_joints, LoopOracle, random_constraints
import numpy as np
import rbd_ros
from rbd_ros.model import with_constraints, with_friction, with_springs
from robots import random_tree, with_mimics

SCREWS = ('revolute', 'prismatic', 'continuous', 'universal', 'planar', 'helical', 'cylindrical')
ALL = (*SCREWS, 'spherical', 'free')
# Random trees of 12 joints: seed, kinds of constraints, pairs of links, kinds of joints, and
# whether half of the joints with one coordinate mimic another. link0 is the root.
RANDOM = {
    'point': (121, ('point',), [(9, 8)], SCREWS, False),
    'hinge': (82, ('revolute',), [(12, 7)], SCREWS, False),
    'weld': (43, ('weld',), [(9, 7)], SCREWS, False),
    'distance': (64, ('distance',), [(12, 8)], SCREWS, False),
    'weld of balls': (65, ('weld',), [(11, 10)], ALL, False),
    'balls': (6, ('point', 'distance'), [(6, 5), (12, 2)], ALL, False),
    'to the root': (67, ('revolute',), [(12, 0)], ALL, False),
    'coupled': (48, ('point', 'revolute'), [(11, 7), (5, 0)], ALL, False),
    'mimics': (69, ('point',), [(12, 0)], SCREWS, True),
    'mimics and balls': (10, ('weld', 'distance'), [(10, 2), (10, 6)], ALL, True)}
NAMES = [*MOTORS, *RANDOM]
# Kernels for balls without mimics, and for mimics without balls, take a minute to compile.
CASES = covering(NAMES, *MOTORS, 'point', 'hinge', 'weld', 'distance', 'mimics and balls')


class Closed(NamedTuple):
    """A robot with closed loops, the oracle of the same robot, and a closed state."""

    model: rbd_ros.Model
    oracle: LoopOracle
    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    tau: np.ndarray


@cache
def closed_robot(name):
    """Return a robot of urdf/ or a random one, by name."""
    rng = np.random.default_rng(7)
    if name in MOTORS:
        oracle = loop_robot(name)
        q = moved_motors(oracle, rng.uniform(0.1, 0.3, len(oracle.independent)))
        constraints = oracle.constraints
    else:
        oracle, q, constraints = _random(*RANDOM[name])
    model = with_constraints(
        oracle.tree, constraints, [oracle.tree.velocity_names[k] for k in oracle.independent])
    return Closed(model, oracle, q, *rng.normal(size=(3, model.nv)))


def _random(seed, kinds, pairs, joints, mimics):
    tree = random_tree(seed, 12, joints)
    if mimics:
        tree = with_mimics(tree, seed)
    q, constraints = random_constraints(
        tree, kinds, seed, [(f'link{a}', f'link{b}') for a, b in pairs])
    oracle = LoopOracle(tree, constraints)
    oracle = LoopOracle(tree, constraints, independent_joints(oracle, q))
    return oracle, q, oracle.constraints


def driven(model, seed):
    """Return a robot with friction, springs and rotors at all joints, passive ones included."""
    rng = np.random.default_rng(seed)
    names = [joint.name for joint in model.joints if joint.nv]

    def some(low, high):
        return dict(zip(names, rng.uniform(low, high, len(names))))
    own = [joint.name for joint in model.joints if joint.nv and joint.mimic is None]
    model = with_friction(
        model, damping=some(0.1, 1.0), friction=some(0.1, 1.0), effort_offset=some(-0.1, 0.1),
        stribeck_velocity=dict.fromkeys(own, 0.3),
        stribeck_friction=dict.fromkeys([] if len(own) < len(names) else own, 0.5))
    model = rbd_ros.with_armature(model, some(0.0, 0.2))
    return with_springs(model, stiffness=some(1.0, 9.0), spring_reference=some(-0.5, 0.5))
