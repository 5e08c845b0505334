# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Columns of friction and rotors, for identification."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis import friction_regressor
from rbd_ros.model import drive_parameters, with_friction
from robots import random_tree, with_mimics

# Differences of torques near a hundred.
DIFFERENCES = 1e-11
ALL = ('rotor', 'offset', 'viscous', 'coulomb', 'viscous_asymmetry', 'coulomb_asymmetry',
       'stribeck')
KINDS = ('revolute', 'prismatic', 'universal')


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
    model = random_tree(seed, 6, kinds=KINDS)
    if seed % 2:
        model = with_mimics(random_tree(seed, 6, kinds=KINDS[:2]), seed)
    model, rng = rubbing(seed, model), np.random.default_rng(seed)
    v, a = rng.normal(size=(2, 5, model.nv))
    q, bare = rbd_ros.neutral(model), rbd_ros.with_armature(model, np.zeros(model.nv))
    rotors = np.array([rbd_ros.inverse_dynamics(model, q, *state)
                       - rbd_ros.inverse_dynamics(bare, q, *state) for state in zip(v, a)])
    got = friction_regressor(model, v, a, columns=ALL, smooth=smooth) @ drive_parameters(
        model, columns=ALL)
    expected = rbd_ros.friction_torques(model, v, smooth=smooth) + rotors
    assert np.max(np.abs(got - expected)) < DIFFERENCES
    assert (np.max(np.abs(rotors)) > 0.1) == bool(seed % 2)


def test_states_of_the_regressor_are_each_their_own():
    model = rubbing(1, random_tree(1, 4, kinds=('revolute',)))
    v = np.random.default_rng(1).normal(size=(6, 4))
    Y = friction_regressor(model, v)
    assert Y.shape == (6, 4, 12)
    assert np.array_equal(Y, [friction_regressor(model, one) for one in v])


def test_regressor_needs_accelerations_for_rotors_and_those_of_the_same_states():
    model = random_tree(1, 3, kinds=('revolute',))
    with pytest.raises(rbd_ros.StateError, match='a must be real numbers, got None'):
        friction_regressor(model, np.zeros(3), columns='rotor')
    with pytest.raises(rbd_ros.StateError, match='a has the shape'):
        friction_regressor(model, np.zeros((4, 3)), np.zeros(3), columns='rotor')
    with pytest.raises(rbd_ros.StateError, match='columns must be'):
        friction_regressor(model, np.zeros(3), columns=('damping',))
