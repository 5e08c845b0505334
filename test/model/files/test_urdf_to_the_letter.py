# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""URDF 1.0 to 1.2: objects of urdf_parser_py, quaternions and new limits."""

from dataclasses import replace
import re
import warnings

import numpy as np
import pytest
import rbd_ros
from rbd_ros import load_urdf, load_urdf_string, ModelWarning, save_urdf, UrdfError
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.files.xml_elements import parse
from robots import example_urdf
from urdf_parser_py import urdf as parser
from urdf_texts import ARM, changed

# Rounding of a rotation that was written as another one.
ROTATION = 1e-12
HALF = 0.5 ** 0.5
pytestmark = pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')


# -- urdf_parser_py. ------------------------------------------------------------------------------

def arm_object():
    """Return ARM as an object, made without a document."""
    robot = parser.URDF('r')
    robot.add_link(parser.Link('a'))
    robot.add_link(parser.Link('b', inertial=parser.Inertial(
        1.0, parser.Inertia(1.0, 0.0, 0.0, 1.0, 0.0, 1.0), parser.Pose([1, 0, 0], [0, 0, 0]))))
    robot.add_joint(parser.Joint('j', 'a', 'b', 'revolute', [0, 1, 0], limit=parser.JointLimit(
        9.0, 2.0, -1.0, 1.0), dynamics=parser.JointDynamics(0.1, 0.2)))
    return robot


def test_an_object_of_urdf_parser_py_is_loaded():
    model = load_urdf(arm_object())
    assert (model.name, model.velocity_names, model.link_names) == ('r', ('j',), ('a', 'b'))
    assert (model.lower[0], model.upper[0], model.effort_limit[0]) == (-1.0, 1.0, 9.0)
    assert (model.velocity_limit[0], model.damping[0], model.friction[0]) == (2.0, 0.1, 0.2)
    assert rbd_ros.gravity_torques(model, [0.0])[0] == pytest.approx(-9.81)


@pytest.mark.parametrize('name', ['panda.urdf', 'talos_full_v2.urdf'])
def test_an_object_read_from_a_file_gives_the_model_of_the_file(name):
    expected = load_urdf(example_urdf(name))
    found = load_urdf(parser.URDF.from_xml_string(example_urdf(name).read_bytes()))
    assert np.array_equal(found.tree.robot, expected.tree.robot)
    assert found.velocity_names == expected.velocity_names
    assert np.array_equal(found.lower, expected.lower)


@pytest.mark.parametrize('spoil, message', [
    (lambda robot: setattr(robot.joints[0].limit, 'effort', None), "joint 'j': .*effort"),
    (lambda robot: setattr(robot.joints[0], 'axis', [1, 0]), "joint 'j': "),
    (lambda robot: setattr(robot.links[1].inertial, 'mass', 'heavy'), "link 'b'.*mass"),
    (lambda robot: setattr(robot.joints[0], 'parent', 'nowhere'), 'nowhere')])
def test_a_broken_object_is_rejected_by_name(spoil, message):
    robot = arm_object()
    spoil(robot)
    with pytest.raises(UrdfError, match=message):
        load_urdf(robot)


def test_decoration_of_an_object_does_not_matter():
    robot = arm_object()
    robot.links[1].visual = parser.Visual()
    robot.joints[0].safety_controller = parser.SafetyController()
    robot.add_aggregate('material', parser.Material('none'))
    assert load_urdf(robot).nv == 1


def test_a_loop_in_the_gazebo_elements_of_an_object_is_named():
    notes = load_urdf(parser.URDF.from_xml_string(changed(
        (' version="1.2"', ''), ('</robot>', '<gazebo><joint/></gazebo></robot>')))).warnings
    assert any('closes a loop' in note for note in notes)


# -- URDF 1.1 and 1.2. ----------------------------------------------------------------------------

def test_a_quaternion_in_the_origin_of_a_joint_turns_its_axis():
    # A half turn about z, whose quaternion is (0, 0, 1, 0), points y, the axis, to -y.
    model = load_urdf_string(changed(('<axis', '<origin quat_xyzw="0 0 1 0"/><axis')))
    same = load_urdf_string(changed(('<axis', '<origin rpy="0 0 3.141592653589793"/><axis')))
    assert rbd_ros.gravity_torques(model, [0.3]) == pytest.approx(
        rbd_ros.gravity_torques(same, [0.3]))
    # A quarter turn about x makes the axis vertical.
    upright = load_urdf_string(changed(('<axis', f'<origin quat_xyzw="{HALF} 0 0 {HALF}"/><axis')))
    assert rbd_ros.gravity_torques(upright, [0.3])[0] == pytest.approx(0.0, abs=1e-12)
    fallen = load_urdf_string(changed(
        ('<axis xyz="0 1 0"/>', f'<origin quat_xyzw="{HALF} 0 0 {HALF}"/><axis xyz="0 0 1"/>')))
    assert rbd_ros.gravity_torques(fallen, [0.0])[0] == pytest.approx(9.81)


def test_a_quaternion_in_the_origin_of_an_inertial_turns_the_inertia():
    # A quarter turn about z exchanges ixx and iyy.
    model = load_urdf_string(changed(
        ('<origin xyz="1 0 0"/>', f'<origin xyz="1 0 0" quat_xyzw="0 0 {HALF} {HALF}"/>'),
        ('ixx="1"', 'ixx="1.5"')))
    assert np.allclose(model.links[1].inertia, np.diag([1.0, 1.5, 1.0]))


def test_a_quaternion_of_any_length_is_a_rotation():
    a, b = (load_urdf_string(changed(('<axis', f'<origin quat_xyzw="{text}"/><axis')))
            for text in ('1 2 3 4', '1e200 2e200 3e200 4e200'))
    assert np.allclose(a.joints[0].placement, b.joints[0].placement)
    # R of (1, 2, 3, 4) / sqrt(30), by hand.
    assert np.allclose(15.0 * a.joints[0].placement[:3, :3],
                       [[2.0, -10.0, 11.0], [14.0, 5.0, 2.0], [-5.0, 10.0, 10.0]])


@pytest.mark.parametrize('origin, message', [
    ('quat_xyzw="0 0 0 0"', "joint 'j': its quat_xyzw must be four finite numbers"),
    ('quat_xyzw="nan 0 0 1"', "joint 'j': its quat_xyzw"),
    ('quat_xyzw="0 0 1"', "joint 'j'.*quat_xyzw.*4 numbers"),
    ('quat_xyzw="0 0 0 1" rpy="0 0 0"', "joint 'j'.*both rpy and quat_xyzw")])
def test_bad_quaternions_are_rejected_by_name(origin, message):
    with pytest.raises(UrdfError, match=message):
        load_urdf_string(changed(('<axis', f'<origin {origin}/><axis')))


def notes_on(text):
    """Return the warnings about a robot, which are of the version or of the limits of j."""
    model = load_urdf_string(text)
    return model, [note for note in model.warnings if 'limit' in note or 'version' in note]


@pytest.mark.parametrize('version', ['', '1.0', '1.1', '1.2'])
@pytest.mark.parametrize('name', ['lower', 'upper', 'effort', 'velocity'])
def test_a_missing_limit_has_the_meaning_of_the_urdf_version(version, name):
    given = {'lower': -1, 'upper': 1, 'effort': 9, 'velocity': 2}
    text = changed((f' {name}="{given[name]}"', ''),
                   (' version="1.2"', version and f' version="{version}"'))
    model, notes = notes_on(text)
    joint = model.joints[0]
    missing = [f"joint 'j': its <limit> has no {name}; no limit is assumed"]
    # Before 1.2: 0 without a word for positions, an error in urdfdom for others. Since 1.2:
    # infinity for efforts and velocities, an error for positions.
    if name in ('effort', 'velocity'):
        assert getattr(joint, name) == (np.inf,)
        assert notes == ([] if version == '1.2' else missing)
    elif version == '1.2':
        assert getattr(joint, name) == (-np.inf if name == 'lower' else np.inf,)
        assert notes == missing
    else:
        assert (getattr(joint, name), notes) == ((0.0,), [])


@pytest.mark.parametrize('version', ['', ' version="1.2"'])
@pytest.mark.parametrize('given, expected', [
    ('acceleration="5"', (5.0, 5.0, np.inf)), ('deceleration="5"', (np.inf, 5.0, np.inf)),
    ('jerk="5"', (np.inf, np.inf, 5.0)), ('acceleration="5" deceleration="6"', (5.0, 6.0, np.inf)),
    ('', (np.inf, np.inf, np.inf))])
def test_braking_is_as_strong_as_accelerating_unless_it_has_its_own_limit(
        version, given, expected):
    joint = notes_on(changed(('velocity="2"', f'velocity="2" {given}'),
                             (' version="1.2"', version)))[0].joints[0]
    assert (*joint.acceleration, *joint.deceleration, *joint.jerk) == expected


@pytest.mark.parametrize('name', ['acceleration', 'deceleration', 'jerk'])
def test_limits_that_older_versions_lack_are_read_with_a_warning(name):
    for version in ('1.0', '1.1', '1.2'):
        model, notes = notes_on(changed(('velocity="2"', f'velocity="2" {name}="5"'),
                                        ('version="1.2"', f'version="{version}"')))
        assert getattr(model.joints[0], name) == (5.0,)
        assert [note for note in notes if 'version="1.2"' in note] == notes
        assert len(notes) == (version < '1.2')
    _, notes = notes_on(changed(('velocity="2"', f'velocity="2" {name}="-1"')))
    assert re.match(f"joint 'j': its {name} .*negative, -1", notes[0])


def test_a_quaternion_in_a_urdf_1_0_is_read_with_a_warning():
    text = changed(('<axis', '<origin quat_xyzw="0 0 1 0"/><axis'), (' version="1.2"', ''))
    with pytest.warns(ModelWarning, match='quat_xyzw'):
        model = load_urdf_string(text)
    assert model.joints[0].placement[0, 0] == pytest.approx(-1.0)


def test_a_capsule_is_as_long_as_its_cylinder_and_both_ends():
    pytest.importorskip('trimesh')
    from rbd_ros.model.files.xml_elements import Element
    from rbd_ros.view.geometry import _primitive
    shape = Element(parse('<robot><geometry><capsule radius="0.1" length="1"/></geometry></robot>')
                    [0], 'here')
    assert np.allclose(_primitive(shape).bounds, [[-0.1, -0.1, -0.6], [0.1, 0.1, 0.6]])


@pytest.mark.parametrize('with_source', [False, True])
def test_attributes_of_urdf_1_2_are_written_and_read_again(tmp_path, with_source):
    text = changed(('velocity="2"', 'velocity="2" acceleration="5" deceleration="6" jerk="70"'),
                   ('<axis', '<origin xyz="1 2 3" quat_xyzw="1 2 3 4"/><axis'))
    model = load_urdf_string(text)
    save_urdf(model, tmp_path / 'r.urdf', source=text if with_source else None)
    written = (tmp_path / 'r.urdf').read_text()
    assert 'version="1.2"' in written
    assert ('quat_xyzw="1 2 3 4"' in written) == with_source
    again = load_urdf(tmp_path / 'r.urdf').joints[0]
    assert np.allclose(again.placement, model.joints[0].placement, atol=ROTATION)
    assert (again.acceleration, again.deceleration, again.jerk) == ((5.0,), (6.0,), (70.0,))


def test_braking_without_a_limit_is_written_and_read_again(tmp_path):
    arm = (rbd_ros.ModelBuilder('r').link('a').link('b', mass=1.0)
           .joint('j', 'revolute', 'a', 'b', lower=-1.0, upper=1.0, velocity=2.0, effort=5.0,
                  acceleration=3.0).build())
    save_urdf(arm, tmp_path / 'r.urdf')
    again = load_urdf(tmp_path / 'r.urdf').joints[0]
    assert (again.acceleration, again.deceleration) == ((3.0,), (np.inf,))


def test_orientations_are_written_as_angles_that_all_versions_have(tmp_path):
    model = load_urdf_string(changed(('<axis', '<origin quat_xyzw="1 2 3 4"/><axis')))
    save_urdf(model, tmp_path / 'r.urdf')
    written = (tmp_path / 'r.urdf').read_text()
    assert 'rpy=' in written and 'quat_xyzw' not in written
    assert 'version' not in written.partition('<robot')[2]
    assert np.allclose(load_urdf(tmp_path / 'r.urdf').joints[0].placement,
                       model.joints[0].placement, rtol=0.0, atol=ROTATION)


def test_a_changed_origin_replaces_its_quaternion(tmp_path):
    text = changed(('<origin xyz="1 0 0"/>', '<origin xyz="1 0 0" quat_xyzw="0 0 0.6 0.8"/>'),
                   ('ixx="1"', 'ixx="1.5"'))
    model = load_urdf_string(text)
    link = model.links[1]
    heavier = rebuild(model, links=(model.links[0], replace(link, mass=2.0)))
    save_urdf(heavier, tmp_path / 'r.urdf', source=text)
    again = load_urdf(tmp_path / 'r.urdf').links[1]
    assert again.mass == 2.0
    # About z by the angle whose half has sine 0.6 and cosine 0.8: 0.96 and 0.28.
    assert link.inertia[0, 1] == pytest.approx(0.5 * 0.96 * 0.28)
    assert np.allclose(again.inertia, link.inertia, atol=ROTATION)


def test_joints_without_limits_are_named_when_they_are_saved(tmp_path):
    arm = (rbd_ros.ModelBuilder('r').link('a').link('b', mass=1.0).link('c', mass=1.0)
           .joint('j', 'revolute', 'a', 'b').joint('k', 'continuous', 'b', 'c').build())
    with pytest.warns(ModelWarning, match='joints without limits, j: other programs reject'):
        save_urdf(arm, tmp_path / 'r.urdf')
    limited = load_urdf_string(ARM)
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        save_urdf(limited, tmp_path / 'r.urdf')
