# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Efforts against the torques of the description: doubts about bad ones, none about good ones."""

from dataclasses import replace
import re

from covering import covering
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import prepare
from rbd_ros.identification.verdicts import effort_doubts
from robots import example_urdf, load_quietly, random_tree

ROBOTS = ('ur5_robot.urdf', 'panda.urdf', 'kinova.urdf', 'xarm7.urdf', 'double_pendulum.urdf',
          'tree 2')


def robot(name, joints=4):
    """Return a robot of so many joints."""
    model = (random_tree(int(name[5:]), 4) if name.startswith('tree')
             else load_quietly(example_urdf(name)))
    return rbd_ros.with_locked_joints(model, dict.fromkeys(model.velocity_names[joints:], 0.0))


def motion(model, seed, **options):
    """Return a motion of the robot that a description describes badly, with drives."""
    rng = np.random.default_rng(seed)
    true = measured.with_drives(measured.changed(model, rng), rng)
    one = measured.recording(true, seed, 12.0, rate=100.0, **{'noise': 0.02, **options})
    assert np.max(np.abs(one.effort), initial=0.0) > 0.0
    return one


def doubts(model, recording):
    """Return the doubts about factors; limits are for the tests of limits."""
    found = effort_doubts(model, prepare(model, recording))
    return [text for kind, text in found.items() if kind != 'limits']


@pytest.mark.parametrize('joints', covering((4, 6), 4))
@pytest.mark.parametrize('number, name', [*enumerate(ROBOTS)])
def test_good_efforts_are_not_doubted(number, name, joints):
    model = robot(name, joints)
    assert doubts(model, motion(model, number)) == []
    # Nor with a noisy sensor, slow motion, or a payload that the description lacks.
    last = model.moving_joints[-1][0].child
    whole = sum(link.mass for link in model.links)
    loaded = rbd_ros.with_payload(model, last, 0.1 * whole, (0.0, 0.05, 0.05))
    true, options = ((model, {'noise': 0.2}), (model, {'speed': 0.5}), (loaded, {}))[number % 3]
    assert doubts(model, motion(true, 0, **options)) == []


@pytest.mark.parametrize('name, factor, joints', covering(
    [(ROBOTS[0], 0.1, 4), (ROBOTS[1], 0.4, 4), (ROBOTS[2], 3.0, 6), (ROBOTS[3], 20.0, 6)],
    (ROBOTS[0], 0.1, 4), (ROBOTS[1], 0.4, 4)))
def test_a_common_factor_is_found_even_if_masses_are_wrong(name, factor, joints):
    model = robot(name, joints)
    one = motion(model, 1)
    found = doubts(model, replace(one, effort=factor * one.effort))
    assert len(found) == 1 and ('times the torques' in found[0] or 'multiples of' in found[0])


@pytest.mark.parametrize('name, j, size, joints', covering(
    [(ROBOTS[0], 1, 12.0, 4), (ROBOTS[1], 1, 0.5, 4), (ROBOTS[2], 3, 12.0, 6),
     (ROBOTS[3], 1, 4.0, 6)], (ROBOTS[0], 1, 12.0, 4), (ROBOTS[1], 1, 0.5, 4)))
def test_factors_of_single_joints_are_found(name, j, size, joints):
    model = robot(name, joints)
    one = measured.recording(measured.with_drives(model, np.random.default_rng(1)), 1, 12.0,
                             rate=100.0)
    factor = np.where(np.arange(model.nv) == j, size, 1.0)
    found = doubts(model, replace(one, effort=factor * one.effort))
    words = rf'multiples of .*\b{model.velocity_names[j]} (\S+?)[,:].*--scale'
    assert len(found) == 1
    assert float(re.search(words, found[0])[1]) == pytest.approx(size, rel=0.02)
    scale = float(re.search(rf'\b{model.velocity_names[j]}=(\S+?)[; ]', found[0])[1])
    assert scale == pytest.approx(1.0 / size, rel=0.02)
    found = doubts(model, replace(one, effort=np.where(factor == 1.0, 1.0, -1.0) * one.effort))
    assert len(found) == 1 and 'wrong sign' in found[0]
    assert f'{model.velocity_names[j]}=-1' in found[0] and found[0].count('=-1') == 1


@pytest.mark.parametrize('name', covering(ROBOTS[1:3], ROBOTS[1]))
def test_efforts_without_gravity_torques_are_recognized(name):
    model = robot(name)
    one = motion(model, 2)
    still = rbd_ros.batch.gravity_torques(model, one.position)
    found = doubts(model, replace(one, effort=one.effort - still))
    assert len(found) == 1 and 'efforts are without gravity' in found[0]


def test_efforts_beyond_their_limits_are_in_doubt_unless_the_limit_is_not_stated():
    model = robot('ur5_robot.urdf')
    one = motion(model, 0)
    most = np.max(np.abs(one.effort), axis=0)
    for share, names in ((0.5, [2]), (1.0, [])):
        limit = np.where(np.arange(model.nv) == 2, share * most, 2.0 * most)
        limited = replace(model, effort_limit=limit)
        found = effort_doubts(limited, prepare(limited, one)).get('limits', '')
        assert bool(found) == bool(names)
        assert all(model.velocity_names[j] in found for j in names)
    zero = replace(model, effort_limit=np.zeros(model.nv))
    assert 'limits' not in effort_doubts(zero, prepare(zero, one))
