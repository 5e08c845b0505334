# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Friction and drives of joints: the law, what it may be, and how copies fold in."""

from math import exp, tanh
import warnings

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import (drive_parameter_names, drive_parameters, with_drive_parameters,
                           with_friction)
from robots import example_urdf, load_quietly, random_tree

# A few additions and products of numbers near one.
ROUNDING = 1e-13
COLUMNS = ('viscous', 'viscous_asymmetry', 'coulomb', 'coulomb_asymmetry', 'stribeck', 'offset')


def random_drives(nv, rng):
    """Return coefficients of every kind that no robot refuses."""
    damping, friction = rng.uniform(0.1, 2.0, (2, nv))
    return {'damping': damping, 'damping_asymmetry': damping * rng.uniform(-1.0, 1.0, nv),
            'friction': friction, 'friction_asymmetry': friction * rng.uniform(-1.0, 1.0, nv),
            'stribeck_friction': rng.uniform(0.1, 1.0, nv),
            'stribeck_velocity': rng.uniform(0.05, 0.5, nv),
            'effort_offset': rng.uniform(-1.0, 1.0, nv)}


def slider(**drive):
    """Return a robot with one joint."""
    return (rbd_ros.ModelBuilder('slider').link('base').link('car', mass=2.0)
            .joint('rail', 'prismatic', 'base', 'car', **drive).build())


def gears(multiplier, leader, copy):
    """Return two joints of which the second copies the first, and the same two on their own."""
    def make(mimic):
        return (rbd_ros.ModelBuilder('gears').link('base').link('a', mass=1.0, com=(0.1, 0, 0))
                .link('b', mass=1.0, com=(0, 0.1, 0))
                .joint('lead', 'continuous', 'base', 'a', **leader)
                .joint('copy', 'continuous', 'base', 'b', mimic=mimic, **copy).build())
    return make(('lead', multiplier, 0.3)), make(None)


def test_friction_torques_are_those_of_the_law_written_out():
    model = slider(damping=3.0, damping_asymmetry=-1.0, friction=2.0, friction_asymmetry=0.5,
                   stribeck_friction=4.0, stribeck_velocity=0.1, effort_offset=0.25)
    decay = exp(-(0.2 / 0.1) ** 2)
    assert rbd_ros.friction_torques(model, [0.2])[0] == pytest.approx(
        3.0 * 0.2 - 1.0 * 0.2 + 2.0 + 0.5 + 4.0 * decay + 0.25, rel=ROUNDING)
    assert rbd_ros.friction_torques(model, [-0.2])[0] == pytest.approx(
        -3.0 * 0.2 - 1.0 * 0.2 - 2.0 + 0.5 - 4.0 * decay + 0.25, rel=ROUNDING)
    assert rbd_ros.friction_torques(model, [0.0]).tolist() == [0.25]
    s = tanh(-0.2 / 0.4)
    assert rbd_ros.friction_torques(model, [-0.2], smooth=0.4)[0] == pytest.approx(
        -3.0 * 0.2 - 1.0 * 0.2 + 2.0 * s + 0.5 * abs(s) + 4.0 * decay * s + 0.25, rel=ROUNDING)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        # Faster than any square of a velocity is finite.
        assert rbd_ros.friction_torques(model, [1e200])[0] == pytest.approx(2e200, rel=ROUNDING)
    # It is no part of the rigid-body terms.
    assert rbd_ros.inverse_dynamics(model, [0.0], [1.0], [0.0])[0] == 0.0
    with pytest.raises(rbd_ros.StateError, match='v has the shape'):
        rbd_ros.friction_torques(model, [0.0, 0.0])


@pytest.mark.parametrize('seed', range(2))
@pytest.mark.parametrize('smooth', [0.0, 0.1])
def test_friction_takes_energy_at_any_velocity(seed, smooth):
    rng = np.random.default_rng(seed)
    drives = random_drives(4, rng)
    # At the border: no friction at all in one direction.
    drives['damping_asymmetry'][0], drives['friction_asymmetry'][0] = (
        -drives['damping'][0], drives['friction'][0])
    model = with_friction(random_tree(seed, 4, kinds=('revolute',)), **drives)
    v = rng.normal(size=(1000, 4)) * rng.choice([1e-3, 0.1, 10.0], (1000, 1))
    power = v * (rbd_ros.friction_torques(model, v, smooth=smooth) - model.effort_offset)
    assert np.all(power >= 0.0)
    assert np.all(power[:, 1:] > 0.0)


@pytest.mark.parametrize('multiplier', [2.5, -2.5, 0.0])
def test_power_of_the_friction_of_copies_is_their_leaders(multiplier):
    rng = np.random.default_rng(0)
    leader, copy = ({label: float(x[0]) for label, x in random_drives(1, rng).items()}
                    for _ in range(2))
    copy['stribeck_velocity'] = abs(multiplier) * leader['stribeck_velocity'] or 0.7
    model, apart = gears(multiplier, leader, copy)
    for v in (-1.3, -0.1, 0.0, 0.05, 0.9):
        power = rbd_ros.friction_torques(model, [v])[0] * v
        expected = np.dot(rbd_ros.friction_torques(apart, [v, multiplier * v]),
                          [v, multiplier * v])
        assert power == pytest.approx(expected, rel=ROUNDING, abs=ROUNDING)
        # At rest no power tells of the offset.
        torque = np.dot([1.0, multiplier],
                        rbd_ros.friction_torques(apart, [v, multiplier * v]))
        assert rbd_ros.friction_torques(model, [v])[0] == pytest.approx(torque, rel=ROUNDING)


def test_stribeck_friction_of_copies_that_makes_no_single_curve_is_refused():
    curve = {'stribeck_friction': 1.0, 'stribeck_velocity': 0.1}
    with pytest.raises(rbd_ros.ModelError, match=r"'lead' and 'copy' move together.*in prop"):
        gears(2.0, curve, curve)
    model, _ = gears(-2.0, {}, curve)
    assert (model.stribeck_friction[0], model.stribeck_velocity[0]) == (2.0, 0.05)


@pytest.mark.parametrize('drive, message', [
    ({'damping': 1.0, 'damping_asymmetry': 1.1}, r'damping_asymmetry, \(1.1,\), is greater'),
    ({'friction': 1.0, 'friction_asymmetry': -1.1}, 'greater than its friction.*would drive'),
    ({'damping_asymmetry': 1.0, 'friction': 2.0}, 'greater than its damping'),
    ({'friction_asymmetry': np.inf, 'friction': 1.0}, 'friction_asymmetry must be finite'),
    ({'effort_offset': np.inf}, 'effort_offset must be finite'),
    ({'effort_offset': np.nan}, 'effort_offset must be one finite|1 finite'),
    ({'stribeck_friction': -1.0, 'stribeck_velocity': 1.0}, 'stribeck_friction must be finite'),
    ({'stribeck_friction': 1.0, 'stribeck_velocity': -1.0}, 'stribeck_velocity must be finite'),
    ({'stribeck_friction': 1.0}, 'stribeck_friction needs a stribeck_velocity'),
    ({'damping': -1.0}, 'damping must be finite and not negative'),
    ({'friction': np.inf}, 'friction must be finite and not negative'),
    ({'armature': -0.1}, 'armature must be finite and not negative')])
def test_impossible_drives_are_rejected_naming_the_joint(drive, message):
    with pytest.raises(rbd_ros.ModelError, match=f"joint 'rail': its .*({message})"):
        slider(**drive)


def test_coefficients_of_several_velocities_are_checked_one_by_one():
    def table(**drive):
        return (rbd_ros.ModelBuilder('table').link('base').link('top', mass=1.0)
                .joint('slide', 'planar', 'base', 'top', **drive).build())
    model = table(damping=(1.0, 2.0, 3.0), damping_asymmetry=(0.0, 2.0, -3.0))
    assert rbd_ros.friction_torques(model, [1.0, 1.0, 1.0]).tolist() == [1.0, 4.0, 0.0]
    assert rbd_ros.friction_torques(model, [-1.0, -1.0, -1.0]).tolist() == [-1.0, 0.0, -6.0]
    with pytest.raises(rbd_ros.ModelError, match=r"'slide'.*greater than its damping"):
        table(damping=(1.0, 2.0, 3.0), damping_asymmetry=(0.0, 2.1, 0.0))


def test_friction_by_the_names_of_joints_leaves_the_others():
    model = slider(damping=3.0, friction=1.0)
    changed = with_friction(model, friction={'rail': 2.0}, effort_offset={'rail': -0.5})
    assert [float(getattr(changed, label)[0]) for label in ('damping', 'friction',
                                                            'effort_offset')] == [3.0, 2.0, -0.5]
    assert (model.friction[0], model.effort_offset[0]) == (1.0, 0.0)
    with pytest.raises(rbd_ros.ModelError, match="friction: robot 'slider' has no joint 'belt'"):
        with_friction(model, friction={'belt': 2.0})
    for bad in ((1.0, 2.0), 'much', None):
        with pytest.raises(rbd_ros.ModelError, match="joint 'rail': its damping must be"):
            with_friction(model, damping={'rail': bad})
    with pytest.raises(rbd_ros.StateError, match='damping has the shape'):
        with_friction(model, damping=[1.0, 2.0])


def test_friction_as_an_array_is_that_of_the_robot_copies_included():
    model = load_quietly(example_urdf('panda.urdf'))
    copies = [joint for joint in model.joints if joint.mimic]
    assert copies
    rng = np.random.default_rng(2)
    drives = {**random_drives(model.nv, rng), 'armature': rng.uniform(0.0, 1.0, model.nv)}
    armature = drives.pop('armature')
    changed = rbd_ros.with_armature(with_friction(model, **drives), armature)
    for label, values in {**drives, 'armature': armature}.items():
        assert np.array_equal(getattr(changed, label), values), label
    q, still = rbd_ros.neutral(model), np.zeros(model.nv)
    plain = rbd_ros.with_armature(model, still)
    assert np.allclose(rbd_ros.mass_matrix(changed, q) - rbd_ros.mass_matrix(plain, q),
                       np.diag(armature), atol=ROUNDING)


def test_fixed_and_locked_joints_have_no_friction():
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    fixed = next(joint.name for joint in model.joints if not joint.nv)
    with pytest.raises(rbd_ros.ModelError, match=f"joint '{fixed}' is fixed: its damping has no"):
        with_friction(model, damping={fixed: 1.0})
    rubbed = with_friction(model, **random_drives(model.nv, np.random.default_rng(3)))
    locked = rbd_ros.with_locked_joints(rubbed, {'elbow_joint': 0.5})
    left = [k for k, name in enumerate(rubbed.velocity_names) if name != 'elbow_joint']
    assert np.array_equal(rbd_ros.friction_torques(locked, np.ones(locked.nv)),
                          rbd_ros.friction_torques(rubbed, np.ones(rubbed.nv))[left])


@pytest.mark.parametrize('columns', [('viscous', 'coulomb', 'offset'), (*COLUMNS, 'rotor'),
                                     ('rotor',), ()])
def test_drive_parameters_are_read_and_written_by_name(columns):
    rng = np.random.default_rng(4)
    model = random_tree(4, 4, kinds=('revolute', 'prismatic'))
    rubbed = rbd_ros.with_armature(with_friction(model, **random_drives(4, rng)),
                                   rng.uniform(0.0, 1.0, 4))
    parameters = drive_parameters(rubbed, columns=columns)
    names = drive_parameter_names(rubbed, columns=columns)
    assert len(names) == len(set(names)) == len(parameters) == 4 * len(columns)
    for name, value in zip(names, parameters):
        velocity, label = name.rsplit('.', 1)
        assert getattr(rubbed, label)[rubbed.velocity_names.index(velocity)] == value
    start = with_friction(model, stribeck_velocity=rubbed.stribeck_velocity)
    back = with_drive_parameters(start, parameters, columns=columns)
    assert np.array_equal(drive_parameters(back, columns=columns), parameters)


@pytest.mark.parametrize('columns, message', [
    (('viscous', 'dry'), 'columns must be'), (3, 'list of names'), (('offset',) * 2, 'twice')])
def test_unknown_columns_are_rejected(columns, message):
    for function in (drive_parameters, drive_parameter_names):
        with pytest.raises(rbd_ros.StateError, match=message):
            function(slider(), columns=columns)
