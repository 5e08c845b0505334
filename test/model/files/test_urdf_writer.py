# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots that are written come back as they were, with everything that URDF has besides."""

from dataclasses import replace
from difflib import ndiff
from pathlib import Path
import warnings

from covering import covering
from lxml import etree
import numpy as np
import pytest
import rbd_ros
from rbd_ros import save_urdf
from rbd_ros.model import with_friction, without_payload
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.se3 import rotation_from_rpy, rpy_from_rotation
from robots import all_example_urdfs, example_urdf, load_quietly, Oracle, random_state

ARM = Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf'
# Sines and cosines of angles that were found from a rotation.
ROTATION = 1e-15
# Torques and masses of an arm by two programs, as a share of the largest.
AGREEMENT = 1e-12

COMMENTED = """<?xml version="1.0"?>
<!-- Made by hand. -->
<robot name="commented" xmlns:xacro="http://wiki.ros.org/xacro">
  <material name="blue"><color rgba="0 0 1 1"/></material>
  <link name="base"/>
  <!-- The first joint. -->
  <joint name="pan" type="revolute">
    <parent link="base"/> <child link="arm"/>
    <axis xyz="0 0 2"/>
    <limit lower="-1" upper="1" effort="30" velocity="2"/> <!-- of the drive -->
    <dynamics damping="0.10" friction="0.2" spring_stiffness="7"/>
    <safety_controller k_velocity="10"/>
  </joint>
  <link name="arm">
    <inertial><mass value="2.0"/>
      <inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/>
    </inertial>
    <visual><geometry><mesh filename="package://x/arm.dae" scale="1 1 1"/></geometry></visual>
    <collision><geometry><box size="1 2 3"/></geometry></collision>
  </link>
  <joint name="flange" type="fixed"><parent link="arm"/><child link="tool"/></joint>
  <link name="tool"/>
  <transmission name="t"><joint name="pan"/></transmission>
  <gazebo reference="arm"><mu1>0.2</mu1></gazebo>
</robot>
"""


def assert_same(got, expected, tolerance):
    """Compare two robots in all that URDF can say."""
    assert (got.name, got.link_names, got.joint_names, got.velocity_names) == (
        expected.name, expected.link_names, expected.joint_names, expected.velocity_names)
    for one, other in zip(got.links, expected.links):
        assert (one.mass, one.is_load) == (other.mass, other.is_load)
        assert np.array_equal(one.com, other.com)
        assert np.array_equal(one.inertia, other.inertia)
    for one, other in zip(got.joints, expected.joints):
        for label in ('kind', 'parent', 'child', 'lower', 'upper', 'velocity', 'effort', 'mimic'):
            assert getattr(one, label) == getattr(other, label), (one.name, label)
        assert np.max(np.abs(one.placement - other.placement)) <= tolerance
        if one.nv == 1:
            assert np.max(np.abs(one.axis - other.axis)) <= tolerance
            assert (one.damping, one.friction) == (other.damping, other.friction)
    for label in ('lower', 'upper', 'velocity_limit', 'effort_limit'):
        assert np.array_equal(getattr(got, label), getattr(expected, label))
    assert np.max(np.abs(got.tree.robot - expected.tree.robot), initial=0.0) <= 1e3 * tolerance


def canonical(text):
    """Return a document in the form in which equal documents are equal."""
    return etree.tostring(etree.fromstring(text.encode()).getroottree(), method='c14n')


@pytest.mark.parametrize('path', covering(all_example_urdfs(), *all_example_urdfs()[::5]),
                         ids=lambda path: path.stem)
def test_every_robot_is_written_and_read_again_as_strictly_as_before(path, tmp_path):
    model = load_quietly(path)
    try:
        load_quietly(path, strict=True)
        strict = True
    except rbd_ros.UrdfError:
        strict = False
    for name, options, tolerance in (('with.urdf', {'source': path}, 0.0),
                                     ('without.urdf', {}, ROTATION)):
        save_urdf(model, tmp_path / name, **options)
        assert_same(load_quietly(tmp_path / name, strict=strict), model, tolerance)


def test_unchanged_elements_keep_their_text(tmp_path):
    path = tmp_path / 'robot.urdf'
    for source in (COMMENTED, COMMENTED.encode(), '\ufeff ' + COMMENTED):
        save_urdf(rbd_ros.load_urdf_string(COMMENTED), path, source=source)
        text = path.read_text()
        assert canonical(text) == canonical(COMMENTED)
        # But for the declaration, and the order in which attributes of the robot stand.
        assert text.splitlines()[3:] == COMMENTED.splitlines()[3:]
        assert text.splitlines()[1] == '<!-- Made by hand. -->'


def test_changed_elements_are_written_and_the_rest_stays(tmp_path):
    model = rbd_ros.load_urdf_string(COMMENTED)
    changed = with_friction(model, damping={'pan': 0.3})
    changed = rbd_ros.with_payload(changed, 'tool', 1.5, (0.1, 0.0, 0.2), (0.01, 0.02, 0.02))
    changed = rebuild(changed, links=[replace(link, mass=3.5) if link.name == 'arm' else link
                                      for link in changed.links])
    path = tmp_path / 'robot.urdf'
    save_urdf(changed, path, source=COMMENTED)
    text = path.read_text()
    assert_same(rbd_ros.load_urdf(path), changed, 0.0)
    before, after = COMMENTED.splitlines()[3:], text.splitlines()[3:]
    difference = list(ndiff(before, after))
    assert [line[2:] for line in difference if line[0] == '-'] == [
        line for line in before if 'damping' in line or 'mass' in line or 'ixx' in line]
    assert [line[2:].strip() for line in difference if line[0] == '+'] == [
        '<dynamics damping="0.3" friction="0.2" spring_stiffness="7"/>',
        '<inertial><mass value="3.5"/>', '<inertia ixx="1.0" ixy="0.0" ixz="0.0" iyy="1.0" '
        'iyz="0.0" izz="1.0"/>', '<origin xyz="0.0 0.0 0.0" rpy="0 0 0"/>',
        '<link name="tool/payload">', '<inertial>', '<origin xyz="0.1 0.0 0.2" rpy="0 0 0"/>',
        '<mass value="1.5"/>', '<inertia ixx="0.01" ixy="0.0" ixz="0.0" iyy="0.02" iyz="0.0" '
        'izz="0.02"/>', '</inertial>', '</link>', '<joint name="tool/payload" type="fixed">',
        '<parent link="tool"/>', '<child link="tool/payload"/>', '</joint>']


def test_a_payload_is_written_and_read_again_as_a_payload(tmp_path):
    arm = rbd_ros.load_urdf(ARM)
    tip = arm.link_names[-1]
    loaded = rbd_ros.with_payload(arm, tip, 1.5, (0.1, 0.0, 0.2))
    for source in (ARM, None):
        save_urdf(loaded, tmp_path / 'robot.urdf', source=source)
        back = rbd_ros.load_urdf(tmp_path / 'robot.urdf', strict=True)
        assert_same(back, loaded, ROTATION)
        assert back.mass == pytest.approx(arm.mass + 1.5)
        assert without_payload(back, tip).mass == pytest.approx(arm.mass)
        heavier = rbd_ros.with_payload(back, tip, 2.0)
        assert heavier.mass == pytest.approx(arm.mass + 2.0)


def test_a_moving_link_named_like_a_payload_is_no_payload():
    text = """<robot name="r"><link name="a"/><link name="a/payload">
      <inertial><mass value="1"/></inertial></link>
      <joint name="j" type="{}"><parent link="a"/><child link="a/payload"/></joint></robot>"""
    assert [link.is_load for link in rbd_ros.load_urdf_string(text.format('fixed')).links] == [
        False, True]
    moving = rbd_ros.load_urdf_string(text.format('continuous'))
    assert not any(link.is_load for link in moving.links)


@pytest.mark.parametrize('source', [True, False])
@pytest.mark.parametrize('change', [
    lambda model: rbd_ros.with_locked_joints(model, {'elbow_joint': 0.7, 'wrist_2_joint': -0.3}),
    lambda model: rbd_ros.with_floating_base(model),
    lambda model: rbd_ros.subtree(model, 'forearm_link'),
    lambda model: rbd_ros.model.with_inertial_parameters(
        model, 1.1 * rbd_ros.model.inertial_parameters(model)),
    lambda model: rebuild(model, joints=[replace(joint, mimic=rbd_ros.Mimic(
        'elbow_joint', -0.5, 0.1)) if joint.name == 'wrist_1_joint' else joint
        for joint in model.joints])])
def test_changed_robots_are_written_and_read_again(change, source, tmp_path):
    path = example_urdf('ur5_robot.urdf')
    model = change(load_quietly(path))
    save_urdf(model, tmp_path / 'robot.urdf', source=path if source else None)
    assert_same(load_quietly(tmp_path / 'robot.urdf'), model, ROTATION)


@pytest.mark.parametrize('change', [
    {'placement': np.diag((-1.0, -1.0, 1.0, 1.0))}, {'axis': np.array([0.0, 1.0, 0.0])},
    {'kind': 'prismatic'}, {'parent': 'other'}, {'child': 'other'}, {'lower': (-0.5,)},
    {'upper': (0.5,)}, {'velocity': (9.0,)}, {'effort': (9.0,)}, {'damping': (9.0,)},
    {'friction': (9.0,)}, {'mimic': rbd_ros.Mimic('lead', -2.0, 0.5)}, {'mass': 9.0},
    {'com': np.array([0.0, 0.0, 9.0])}, {'inertia': 9.0 * np.eye(3)},
    {'mass': 0.0, 'com': np.zeros(3), 'inertia': np.zeros((3, 3))}], ids=str)
def test_every_single_change_is_written_over_the_source(change, tmp_path):
    inertia = {'mass': 1.0, 'com': (0.1, 0.0, 0.0), 'inertia': (1.0, 1.0, 1.0)}
    model = (rbd_ros.ModelBuilder('r').link('base').link('lead', **inertia).link('arm', **inertia)
             .joint('lead', 'continuous', 'base', 'lead')
             .joint('pan', 'revolute', 'base', 'arm', lower=-1.0, upper=1.0, velocity=2.0,
                    effort=3.0, damping=0.1, friction=0.2).build())
    source, path = tmp_path / 'source.urdf', tmp_path / 'robot.urdf'
    save_urdf(model, source)
    swapped = {'other': {'parent': 'lead'}.get(next(iter(change)), 'tool')}
    links, joints = list(model.links), list(model.joints)
    if 'child' in change:
        links[2] = replace(links[2], name='tool')
    change = {label: swapped.get(x, x) if isinstance(x, str) else x for label, x in change.items()}
    if set(change) & {'mass', 'com', 'inertia'}:
        links[2] = replace(links[2], **change)
    else:
        joints[1] = replace(joints[1], **change)
    changed = rebuild(model, links=links, joints=joints)
    save_urdf(changed, path, source=source)
    assert_same(load_quietly(path), changed, ROTATION)


def test_pinocchio_reads_the_same_robot(tmp_path):
    path, saved = example_urdf('ur5_robot.urdf'), tmp_path / 'robot.urdf'
    model = load_quietly(path)
    model = rbd_ros.with_locked_joints(model, {'wrist_2_joint': 1.1})
    model = rbd_ros.model.with_inertial_parameters(
        model, 0.9 * rbd_ros.model.inertial_parameters(model))
    model = rbd_ros.with_payload(model, 'tool0', 2.0, (0.1, 0.2, 0.3), (0.1, 0.2, 0.25))
    for source in (path, None):
        save_urdf(model, saved, source=source)
        q, v, a = random_state(model, 0)
        expected = Oracle(saved, model).tau(q, v, a)
        got = rbd_ros.inverse_dynamics(model, q, v, a)
        assert np.max(np.abs(got - expected)) < AGREEMENT * np.max(np.abs(expected))


def test_angles_of_a_rotation_make_the_rotation_at_any_pitch():
    rng = np.random.default_rng(0)
    cases = list(rng.uniform(-np.pi, np.pi, (200, 3)))
    for pitch in (np.pi / 2, -np.pi / 2, np.pi / 2 - 1e-9, 1e-9 - np.pi / 2):
        cases += [np.array([roll, pitch, yaw]) for roll, yaw in rng.uniform(-4.0, 4.0, (20, 2))]
    for rpy in cases:
        R = rotation_from_rpy(rpy)
        assert np.max(np.abs(rotation_from_rpy(rpy_from_rotation(R)) - R)) < ROTATION


def test_drive_coefficients_that_urdf_lacks_cause_a_warning(tmp_path):
    model = rbd_ros.load_urdf_string(COMMENTED)
    path = tmp_path / 'robot.urdf'
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        save_urdf(model, path)
    geared = with_friction(rbd_ros.with_armature(model, {'pan': 0.1}), effort_offset={'pan': -1.0})
    with pytest.warns(rbd_ros.ModelWarning, match='effort_offset of pan.*armature of pan.*save'):
        save_urdf(geared, path)
    assert_same(rbd_ros.load_urdf(path), model, 0.0)
    table = (rbd_ros.ModelBuilder('table').link('base').link('top', mass=1.0)
             .joint('slide', 'planar', 'base', 'top', axis=(0, 0, 1), damping=1.0).build())
    with pytest.warns(rbd_ros.ModelWarning, match='the damping of slide'):
        save_urdf(table, path)


@pytest.mark.parametrize('joint, message', [
    (('spherical', {}), "'j' is spherical: URDF has no such joint"),
    (('helical', {'pitch': 0.1}), "'j' is helical"),
    (('revolute', {'lower': -1.0}), "'j': URDF cannot hold the limits of this revolute"),
    (('revolute', {'effort': 3.0}), 'have both or nothing'),
    (('continuous', {'lower': -1.0, 'upper': 1.0}), 'limits of this continuous'),
    (('planar', {'velocity': 1.0}), 'limits of this planar'),
    (('free', {'lower': -1.0, 'upper': 1.0}), 'limits of this free')])
def test_joints_that_urdf_cannot_express_are_rejected_and_the_file_stays(joint, message, tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_text('before')
    kind, options = joint
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', mass=1.0, inertia=(1, 1, 1))
             .joint('j', kind, 'a', 'b', **options).build())
    with pytest.raises(rbd_ros.ModelError, match=message) as caught:
        save_urdf(model, path)
    assert str(caught.value).startswith("joint 'j'")
    assert path.read_text() == 'before'
    assert list(tmp_path.iterdir()) == [path]


def test_unlimited_joints_and_those_with_only_effort_limits_are_written_and_read_again(tmp_path):
    builder = rbd_ros.ModelBuilder('r').link('base')
    for k, (kind, options) in enumerate((
            ('revolute', {}), ('prismatic', {}), ('continuous', {'effort': 5.0}),
            ('continuous', {'velocity': 2.0, 'effort': 5.0}),
            ('revolute', {'lower': -1.0, 'upper': 2.0}),
            ('prismatic', {'lower': -1.0, 'upper': 2.0, 'velocity': 3.0}))):
        builder.link(f'l{k}', mass=1.0, com=(0.1, 0, 0)).joint(
            f'j{k}', kind, 'base', f'l{k}', axis=(1.0, 2.0, 3.0), **options)
    model = builder.build()
    save_urdf(model, tmp_path / 'robot.urdf')
    assert_same(load_quietly(tmp_path / 'robot.urdf'), model, ROTATION)


def test_a_source_may_be_a_xacro_file(tmp_path):
    source, path = tmp_path / 'robot.urdf.xacro', tmp_path / 'out.urdf'
    source.write_text(COMMENTED.replace('value="2.0"', 'value="${1 + 1.0}"'))
    save_urdf(rbd_ros.with_payload(rbd_ros.load_urdf(source), 'tool', 1.0), path, source=source)
    assert 'package://x/arm.dae' in path.read_text() and rbd_ros.load_urdf(path).mass == 3.0


def test_bad_sources_names_and_places_are_refused(tmp_path):
    model = rbd_ros.load_urdf_string(COMMENTED)
    path = tmp_path / 'robot.urdf'
    for source, message in (('<robot', 'well-formed'), ('nowhere.urdf', 'cannot be read'),
                            (b'<sdf/>', 'this is SDF'), (3, 'not the path')):
        with pytest.raises(rbd_ros.UrdfError, match=message):
            save_urdf(model, path, source=source)
    with pytest.raises(rbd_ros.RbdError, match='is not a file'):
        save_urdf(model, tmp_path)
    strange = rbd_ros.ModelBuilder('r').link('a\x00b', mass=1.0).build()
    with pytest.raises(rbd_ros.ModelError, match='a name that XML cannot hold'):
        save_urdf(strange, path)
    with pytest.raises(rbd_ros.StateError, match='model must be a robot'):
        save_urdf('robot', path)
    assert not list(tmp_path.iterdir())


def test_names_are_escaped(tmp_path):
    model = (rbd_ros.ModelBuilder('r & "s" <t>').link('ä', mass=1.0).link('<b>', mass=1.0)
             .joint('"j\' &', 'continuous', 'ä', '<b>').build())
    save_urdf(model, tmp_path / 'robot.urdf')
    assert_same(load_quietly(tmp_path / 'robot.urdf'), model, 0.0)
