# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameter files of drives: what is saved comes back, what is wrong is named."""

from dataclasses import replace
from functools import partial

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import load_drives, save_drives, with_friction
from rbd_ros.model.constraints import rebuild
from robots import example_urdf, load_quietly, random_tree
import yaml

DRIVE = ('damping', 'damping_asymmetry', 'friction', 'friction_asymmetry', 'stribeck_friction',
         'stribeck_velocity', 'effort_offset', 'stiffness', 'spring_reference', 'armature')


def with_random_drives(model, seed):
    """Return a robot in which every joint, those that mimic others too, has a drive of its own."""
    rng = np.random.default_rng(seed)

    def drive(joint):
        damping, friction, stribeck, speed, stiffness, armature = 10.0 ** rng.uniform(
            -9.0, 3.0, (6, joint.nv))
        share = rng.uniform(-1.0, 1.0, (4, joint.nv))
        if any(one.mimic for one in model.joints):
            stribeck = 0.0 * stribeck
        values = (damping, share[0] * damping, friction, share[1] * friction, stribeck, speed,
                  share[2], stiffness, share[3], armature)
        return {label: tuple(x.tolist()) for label, x in zip(DRIVE, values)}
    return rebuild(model, joints=[replace(joint, **drive(joint)) for joint in model.joints])


@pytest.fixture
def arm():
    """Return two joints with numbers that YAML has trouble with."""
    return (rbd_ros.ModelBuilder('arm').link('base').link('upper', mass=1.0).link('tool', mass=1.0)
            .joint('yes', 'continuous', 'base', 'upper', damping=1e-5, friction=2.0)
            .joint('wrist: "1"', 'planar', 'upper', 'tool', damping=(1e-7, 1e17, 3.0)).build())


ROBOTS = [*(partial(load_quietly, example_urdf(name)) for name in (
    'panda.urdf', 'talos_reduced.urdf', 'pr2.urdf')), partial(
        random_tree, 2, 12, kinds=('planar', 'universal', 'spherical', 'free', 'revolute'))]


@pytest.mark.parametrize('make', ROBOTS)
def test_drives_of_all_kinds_of_joints_are_written_and_read_again_exactly(make, tmp_path):
    model = make()
    driven = with_random_drives(model, 0)
    save_drives(driven, tmp_path / 'drives.yaml')
    back = load_drives(model, tmp_path / 'drives.yaml')
    for label in DRIVE:
        for one, other in zip(back.joints, driven.joints):
            assert getattr(one, label) == getattr(other, label), (label, one.name)
        assert np.array_equal(getattr(back, label), getattr(driven, label))


def test_numbers_and_names_are_read_by_yaml_as_numbers_and_texts(arm, tmp_path):
    save_drives(arm, tmp_path / 'drives.yaml')
    drives = yaml.safe_load((tmp_path / 'drives.yaml').read_text())
    drives = drives['/**']['ros__parameters']['drives']
    assert drives['joints'] == ['yes', 'wrist: "1"_x', 'wrist: "1"_y', 'wrist: "1"_theta']
    assert drives['damping'] == [1e-5, 1e-7, 1e17, 3.0]
    assert set(drives) == {'joints', *DRIVE}
    # rcl takes lists of one type alone, and 1 for a whole number.
    assert all(type(x) is float for label in DRIVE for x in drives[label])


@pytest.mark.parametrize('text', [
    '/**: {ros__parameters: {drives: {joints: [yes_, no_], friction: [1, 2.5]}}}',
    '/**: {ros__parameters: {drives.joints: [yes_, no_], drives.friction: [1, 2.5]}}',
    'ns: {dynamics: {ros__parameters: {gravity: [0], drives: {joints: [no_, yes_], '
    'friction: [2.5, 1e0], damping: []}}}}\nother: {ros__parameters: {use_sim_time: true}}'])
def test_parameters_of_any_node_in_either_form_are_taken(text, tmp_path):
    (tmp_path / 'drives.yaml').write_text(text)
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', mass=1.0).link('c', mass=1.0)
             .joint('yes_', 'continuous', 'a', 'b', damping=7.0)
             .joint('no_', 'continuous', 'b', 'c', damping=8.0).build())
    driven = load_drives(model, tmp_path / 'drives.yaml')
    assert driven.friction.tolist() == [1.0, 2.5]
    assert driven.damping.tolist() == [7.0, 8.0]
    assert model.friction.tolist() == [0.0, 0.0]


def test_a_file_of_drives_leaves_other_joints_unchanged(arm, tmp_path):
    path = tmp_path / 'drives.yaml'
    path.write_text(
        '/**: {ros__parameters: {drives: {joints: [\'wrist: "1"_y\'], damping: [5.0]}}}')
    driven = load_drives(arm, path)
    assert driven.damping.tolist() == [1e-5, 1e-7, 5.0, 3.0]
    assert driven.friction.tolist() == arm.friction.tolist()
    path.write_text('/**: {ros__parameters: {drives: {joints: [], damping: [], friction: []}}}')
    assert load_drives(arm, path) is arm


NODE = '/**: {{ros__parameters: {}}}'


def uncertain(text):
    """Return a file with an uncertainty."""
    return NODE.format('{drives: {joints: [pan]}, uncertainty: ' + text + '}')


@pytest.mark.parametrize('text, message', [
    (uncertain('{joint: [pan]}'), r'no uncertainty\.joint, only uncertainty\.joints'),
    (uncertain('{joints: [pan, 3]}'), r'uncertainty\.joints must be a list of names'),
    (uncertain('{joints: [pan, tilt], parameters: 1}'), 'parameters must be a list of nam'),
    (uncertain('{joints: [pan, tilt], parameters: []}'), 'factor must be a list of numb'),
    *((uncertain('{joints: [pan, tilt], parameters: [a, b], factor: '
                 f'{factor}, speed: {speed}, noise: {noise}, external: [1, 1], inertial: []}}'),
       message)
      for (factor, speed, noise), message in (
        (('[1, 2]', '[1, 1]', '[1, 1]'), 'factor has 2 entries; 2 parameters need 3'),
        (('[1, 2, 3]', '[1]', '[1]'), r'each of the 2 joints, got 1 and 1'),
        (('[1, 2, 3]', '[1, 1]', '[1, 1, 1, 1]'), r'each of the 2 joints, got 2 and 4'),
        (('[1, 2, 3]', '[1, 0, 1, 2]', '[1, 1, 1, 1]'), 'speed must not decrease'),
        (('[1, 2, 3]', '[1, 1]', '[1, -1]'), 'noise must not be negative'),
        (('[1, .nan, 3]', '[1, 1]', '[1, 1]'), r'uncertainty\.factor has a number that is not'),
        (('[1, 2, 3]', '[1, 1]', '[1, 1]'), r'uncertainty\.parameters: there is no a, b'))),
    *((uncertain('{joints: [pan, tilt], parameters: [], factor: [], speed: [1, 1], noise: [1, 1], '
                 'inertial: []' + external + '}'), message) for external, message in (
        ('', r'uncertainty\.external must be a list of numbers'),
        (', external: [1]', r'external must have 2 entries'),
        (', external: [1, -1]', r'external must have 2 entries.* not negative'))),
    (NODE.format('{drives: {joints: [panned], damping: [1]}}'),
     "names 'panned', which robot 'r' does not have, did you mean 'pan'"),
    (NODE.format('{drives: {joints: [zzz], damping: [1]}}'), 'its joints are pan, tilt'),
    (NODE.format('{drives: {joints: [pan, pan], damping: [1, 1]}}'), "has 'pan' twice"),
    (NODE.format('{drives: {joints: [pan, 3], damping: [1, 1]}}'), 'must be a list of names'),
    (NODE.format('{drives: {joints: [pan], damping: [1, 2]}}'), 'damping has 2 entries.* has 1'),
    (NODE.format('{drives: {joints: [pan], dampng: [1]}}'), r'no drives\.dampng, only'),
    (NODE.format('{drives: {joints: [pan], damping: [x]}}'), 'must be a list of numbers'),
    (NODE.format('{drives: {joints: [pan], damping: 1.0}}'), 'must be a list of numbers'),
    (NODE.format('{drives: {joints: [pan], damping: [.nan]}}'), "joint 'pan': its damping must"),
    (NODE.format('{drives: {joints: [tilt], friction_asymmetry: [1.0]}}'), 'would drive'),
    (NODE.format('{friction: [1.0]}'), 'has no drives'), ('', 'has no drives'),
    (NODE.format('{drives: {joints: [pan]}}') + '\na: {ros__parameters: {drives: {joints: []}}}',
     r'drives for /\*\*, /a: keep those of one'),
    ('{', 'this is not YAML')])
def test_invalid_files_are_rejected_with_a_message(text, message, tmp_path):
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', mass=1.0).link('c', mass=1.0)
             .joint('pan', 'continuous', 'a', 'b').joint('tilt', 'continuous', 'b', 'c').build())
    path = tmp_path / 'drives.yaml'
    path.write_text(text)
    with pytest.raises(rbd_ros.ModelError, match=message) as caught:
        load_drives(model, path)
    assert str(caught.value).startswith(str(path))


def test_missing_files_are_rejected_and_no_file_is_written_partially(arm, tmp_path):
    for path in (tmp_path / 'none.yaml', tmp_path, 3):
        with pytest.raises(rbd_ros.ModelError, match='cannot be read'):
            load_drives(arm, path)
    with pytest.raises(rbd_ros.StateError, match='model must be a robot'):
        save_drives(None, tmp_path / 'drives.yaml')
    with pytest.raises(rbd_ros.RbdError, match='is not a file'):
        save_drives(arm, tmp_path)
    assert not list(tmp_path.iterdir())


def test_urdf_and_file_of_drives_restore_the_robot(tmp_path):
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    ones = np.ones(model.nv)
    model = with_friction(model, stribeck_friction=0.1 * ones, stribeck_velocity=ones,
                          effort_offset=np.linspace(-1.0, 1.0, model.nv))
    with pytest.warns(rbd_ros.ModelWarning, match='save_drives'):
        rbd_ros.save_urdf(model, tmp_path / 'robot.urdf')
    save_drives(model, tmp_path / 'dynamics.param.yaml')
    back = load_drives(load_quietly(tmp_path / 'robot.urdf'), tmp_path / 'dynamics.param.yaml')
    v = np.random.default_rng(0).normal(size=model.nv)
    assert np.array_equal(rbd_ros.friction_torques(back, v), rbd_ros.friction_torques(model, v))
