# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""URDF 1.0 to 1.2: objects of urdf_parser_py, quaternions, new limits, and unused contents."""

from pathlib import Path
import subprocess
import sys
import time
import warnings

import numpy as np
import pytest
import rbd_ros
from rbd_ros import load_urdf, load_urdf_string, ModelWarning, save_urdf, UrdfError
from rbd_ros.model.files.xml_elements import decode, parse
from robots import example_urdf, load_quietly
from urdf_parser_py import urdf as parser

# s of CPU time for 5,000 links; a busy processor needs more than the 2 s of a quiet one.
MOST_TIME = 4.0
# Rounding of a rotation that was written as another one.
ROTATION = 1e-12
INERTIAL = ('<inertial><mass value="1"/>'
            '<inertia ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"/></inertial>')
# A unit mass 1 m from a joint about y: g = 9.81 N m if the rotation is read.
ARM = """<robot name="r" version="1.2"><link name="a"/><link name="b">{inertial}</link>
<joint name="j" type="revolute"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<limit lower="-1" upper="1" effort="9" velocity="2"/></joint></robot>""".format(
    inertial=INERTIAL.replace('<mass', '<origin xyz="1 0 0"/><mass'))
HALF = 0.5 ** 0.5


def changed(*pairs):
    """Return ARM with texts replaced, each of which it contains."""
    text = ARM
    for old, new in pairs:
        assert old in text
        text = text.replace(old, new, 1)
    return text


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
    text = example_urdf(name).read_bytes()
    expected, found = load_quietly(example_urdf(name)), None
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        found = load_urdf(parser.URDF.from_xml_string(text))
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
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        notes = load_urdf(parser.URDF.from_xml_string(changed(
            (' version="1.2"', ''), ('</robot>', '<gazebo><joint/></gazebo></robot>')))).warnings
    assert any('closes a loop' in note for note in notes)


def test_the_document_is_read_by_urdf_parser_py(monkeypatch):
    monkeypatch.setattr(parser.URDF, 'from_xml', lambda *_: arm_object())
    model = load_urdf_string('<robot name="other"><link name="x"/></robot>')
    assert model.velocity_names == ('j',)


def test_5000_links_load_in_seconds():
    text = '<robot name="r"><link name="l0"/>' + ''.join(
        f'<link name="l{k + 1}">{INERTIAL}</link><joint name="j{k}" type="revolute">'
        f'<origin xyz="0 0 1" rpy="0 0.1 0"/><parent link="l{k // 2}"/><child link="l{k + 1}"/>'
        '<axis xyz="0 0 1"/><limit lower="-1" upper="1" effort="3" velocity="4"/></joint>'
        for k in range(5000)) + '</robot>'
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        start = time.process_time()
        assert load_urdf_string(text).nv == 5000
    assert time.process_time() - start < MOST_TIME


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


def test_a_missing_limit_of_effort_is_no_limit():
    with pytest.warns(ModelWarning, match="joint 'j': its <limit> has no effort"):
        assert load_urdf_string(changed((' effort="9"', ''))).effort_limit[0] == np.inf


def test_a_quaternion_in_a_urdf_1_0_is_read_with_a_warning():
    text = changed(('<axis', '<origin quat_xyzw="0 0 1 0"/><axis'), (' version="1.2"', ''))
    with pytest.warns(ModelWarning, match='quat_xyzw'):
        model = load_urdf_string(text)
    assert model.joints[0].placement[0, 0] == pytest.approx(-1.0)


def test_limits_of_acceleration_deceleration_and_jerk_are_read():
    joint = load_urdf_string(changed(
        ('velocity="2"', 'velocity="2" acceleration="5" deceleration="6" jerk="70"'))).joints[0]
    assert (joint.acceleration, joint.deceleration, joint.jerk) == ((5.0,), (6.0,), (70.0,))
    joint = load_urdf_string(changed(('velocity="2"', 'velocity="2" acceleration="5"'))).joints[0]
    assert (joint.acceleration, joint.deceleration, joint.jerk) == ((5.0,), (5.0,), (np.inf,))
    with pytest.warns(ModelWarning, match="joint 'j': its jerk limit is negative, -1"):
        load_urdf_string(changed(('velocity="2"', 'velocity="2" jerk="-1"')))


def test_a_capsule_is_as_long_as_its_cylinder_and_both_ends():
    pytest.importorskip('trimesh')
    from rbd_ros.model.files.xml_elements import Element
    from rbd_ros.view.geometry import _primitive
    shape = Element(parse('<robot><geometry><capsule radius="0.1" length="1"/></geometry></robot>')
                    [0], 'here')
    assert np.allclose(_primitive(shape).bounds, [[-0.1, -0.1, -0.6], [0.1, 0.1, 0.6]])


@pytest.mark.parametrize('with_source', [False, True])
def test_what_urdf_1_2_has_is_written_and_read_again(tmp_path, with_source):
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


def test_a_changed_origin_replaces_its_quaternion(tmp_path):
    text = changed(('<origin xyz="1 0 0"/>', '<origin xyz="1 0 0" quat_xyzw="0 0 0.6 0.8"/>'),
                   ('ixx="1"', 'ixx="1.5"'))
    model = load_urdf_string(text)
    link = model.links[1]
    from dataclasses import replace
    from rbd_ros.model.model import rebuild
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


# -- Nothing ignored silently. --------------------------------------------------------------------

@pytest.mark.parametrize('old, new, message', [
    ('version="1.2"', 'version="7.0"', 'version="7.0" is not known'),
    ('<link name="a"/>', '<bogus/><link name="a"/>', '<bogus> in <robot> is ignored'),
    ('<link name="a"/>', '<link name="a"><bogus/></link>', "link 'a': <bogus> in <link>"),
    ('<axis', '<bogus/><axis', "joint 'j': <bogus> in <joint> is ignored"),
    ('<mass ', '<bogus/><mass ', "link 'b': <bogus> in <inertial>"),
    ('<mass value="1"', '<mass value="1" unit="g"', "link 'b': the attribute unit of <mass>"),
    ('velocity="2"', 'velocity="2" efort="3"', "joint 'j': the attribute efort of <limit>"),
    ('type="revolute"', 'type="planar"', "joint 'j': the <limit> of a planar joint is ignored"),
    ('type="revolute"', 'type="revolute" damping="3"', "joint 'j': the attribute damping"),
    ('<link name="a"/>', '<link name="a"/><constraint name="c"/>', '<constraint> .*closes a loop'),
    ('<link name="a"/>', '<link name="a"/><loop_joint name="c"/>', '<loop_joint> .*closes a loop'),
    ('<link name="a"/>', '<link name="a"/><drake:ball_constraint/>', 'closes a loop'),
    ('<link name="a"/>', '<link name="a"/><gazebo><joint name="x"/></gazebo>', 'closes a loop'),
    ('<link name="a"/>', '<link name="a"/><gazebo reference="j"><springStiffness>3'
     '</springStiffness></gazebo>', "gazebo 'j': <springStiffness>"),
])
def test_contents_that_are_not_used_are_named_and_rejected_if_strict(old, new, message):
    text = changed((old, new))
    with pytest.warns(ModelWarning, match=message):
        assert load_urdf_string(text).joint_names == ('j',)
    with pytest.raises(UrdfError, match=message):
        load_urdf_string(text, strict=True)


def test_contents_of_one_kind_are_named_once_with_all_their_joints():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_urdf_string(changed(
            ('<axis', '<bogus/><axis'),
            ('</robot>', '<link name="c"/><joint name="k" type="fixed"><bogus/>'
             '<parent link="b"/><child link="c"/></joint></robot>')))
    assert [note for note in model.warnings if 'bogus' in note] == [
        "joint 'j', joint 'k': <bogus> in <joint> is ignored: it is not known"]


DECORATION = """<visual bogus="1"><bogus/></visual><collision><bogus/></collision>
<contact><bogus/></contact>"""


def test_decoration_is_harmless_even_if_strict():
    text = changed(('<link name="a"/>', f'<link name="a">{DECORATION}</link><material bogus="1"/>'
                    '<transmission><bogus/></transmission><gazebo><bogus/></gazebo>'
                    '<ros2_control bogus="1"/>'),
                   ('<axis', '<safety_controller k_velocity="1"/><calibration rising="0"/><axis'))
    assert not [note for note in load_urdf_string(text, strict=True).warnings if 'igno' in note]


@pytest.mark.parametrize('declared', ['', ' xmlns:drake="http://drake.mit.edu"'])
def test_rotor_inertias_of_drake_are_armatures_times_the_gear_ratio_squared(declared):
    rotor = ('<transmission name="t"><joint name="j"/><actuator name="m"><drake:rotor_inertia '
             'value="0.002"/><drake:gear_ratio value="50"/></actuator></transmission></robot>')
    text = changed(('</robot>', rotor), (' version="1.2"', declared))
    model = load_urdf_string(text, strict=True)
    assert model.armature[0] == pytest.approx(0.002 * 2500.0)
    # M = I + m l^2 + armature.
    assert rbd_ros.mass_matrix(model, [0.0])[0, 0] == pytest.approx(1.0 + 1.0 + 5.0)


def test_a_rotor_of_no_single_joint_is_named():
    rotor = ('<transmission name="t"><joint name="j"/><joint name="k"/><actuator>'
             '<drake:rotor_inertia value="0.002"/></actuator></transmission></robot>')
    with pytest.warns(ModelWarning, match="transmission 't': its <drake:rotor_inertia>"):
        assert load_urdf_string(changed(('</robot>', rotor))).armature[0] == 0.0


# -- Sound files that were rejected. --------------------------------------------------------------

def test_prefixes_need_no_declaration_but_other_faults_of_xml_are_rejected():
    gazebo = '<gazebo><sensor:camera a:b="1"/></gazebo></robot>'
    assert load_urdf_string(changed(('</robot>', gazebo)), strict=True).nv == 1
    assert load_urdf_string(changed(('</robot>', gazebo), (
        '<robot ', '<robot xmlns:a="some:uri" ')), strict=True).nv == 1
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string(changed(('</robot>', '<gazebo><a:b></gazebo></robot>')))
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string(changed(('</robot>', gazebo), ('value="1"', 'value="1" value="2"')))


def test_a_fault_of_xml_among_many_undeclared_prefixes_is_rejected():
    many = '<gazebo>' + '<a:b/>' * 300 + '</gazebo>'
    fault = '<link name="x" name="x"/>'
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string(changed(('</robot>', many + fault + many + '</robot>')))


def test_the_warnings_about_thousands_of_unknown_tags_are_bounded():
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_urdf_string(changed(
            ('</robot>', ''.join(f'<b{k}/>' for k in range(3000)) + '</robot>')))
    assert len(model.warnings) < 100
    assert any('2950 more kinds' in note for note in model.warnings)


@pytest.mark.parametrize('declared', ['', ' xmlns:xacro="http://www.ros.org/wiki/xacro"'])
@pytest.mark.parametrize('old, new', [
    ('<link name="a"/>', '<link name="a"><visual><xacro:box/></visual></link>'),
    ('<link name="a"/>', '<xacro:property name="p" value="1"/><link name="a"/>'),
    ('<link name="a"/>', '<xacro:macro name="p"><link name="x"/></xacro:macro><link name="a"/>')])
def test_harmless_leftovers_of_xacro_are_named_and_ignored(declared, old, new):
    text = changed((old, new), (' version="1.2"', declared))
    with pytest.warns(ModelWarning, match='<xacro:.*left over from xacro'):
        assert load_urdf_string(text).link_names == ('a', 'b')


@pytest.mark.parametrize('old, new', [
    ('<mass ', '<xacro:mass/><mass '), ('<axis', '<xacro:limits/><axis'),
    ('<link name="a"/>', '<xacro:arm prefix="left"/><link name="a"/>'),
    ('<link name="a"/>', '<xacro:if value="1"><link name="x"/></xacro:if><link name="a"/>')])
def test_leftovers_of_xacro_that_may_hold_dynamics_are_rejected(old, new):
    with pytest.raises(UrdfError, match='run xacro on the file first'):
        load_urdf_string(changed((old, new)))


def test_an_axis_without_numbers_is_accepted_where_no_axis_is_needed():
    joint = ('<link name="c"/><joint name="k" type="fixed"><parent link="b"/><child link="c"/>'
             '<axis/></joint></robot>')
    assert load_urdf_string(changed(('</robot>', joint))).nv == 1
    with pytest.raises(UrdfError, match=r"joint 'j'.*<axis> has no xyz"):
        load_urdf_string(changed(('<axis xyz="0 1 0"/>', '<axis/>')))


def test_a_default_namespace_is_no_obstacle(tmp_path):
    text = changed(('<robot ', '<robot xmlns="http://www.ros.org" '))
    model = load_urdf_string(text, strict=True)
    assert model.mass == 1.0
    save_urdf(rbd_ros.with_payload(model, 'b', 2.0), tmp_path / 'r.urdf', source=text)
    assert load_urdf(tmp_path / 'r.urdf').mass == 3.0


def test_a_floating_joint_of_the_robot_is_its_base():
    text = changed(('type="revolute"', 'type="floating"'))
    model = load_urdf_string(text, floating_base=True)
    assert model.nv == 6
    assert model.velocity_names == load_urdf_string(text).velocity_names
    # An object that floats beside an arm is no base of it.
    beside = changed(('</robot>', f'<link name="ball">{INERTIAL}</link><joint name="k" '
                      'type="floating"><parent link="a"/><child link="ball"/></joint></robot>'))
    assert load_urdf_string(beside, floating_base=True).nv == 13


# -- check. ---------------------------------------------------------------------------------------

def check(tmp_path, text):
    """Return the exit code, the output and the errors of `rbd_ros check`."""
    (tmp_path / 'r.urdf').write_text(text)
    done = subprocess.run([sys.executable, '-m', 'rbd_ros.cli.main', 'check',
                           str(tmp_path / 'r.urdf')], capture_output=True, text=True, check=False,
                          cwd=Path(__file__).parents[2])
    return done.returncode, done.stdout, done.stderr


def test_check_exits_with_1_if_every_torque_will_be_zero(tmp_path):
    code, _, errors = check(tmp_path, changed(('<mass value="1"/>', '<mass value="0"/>')))
    assert code == 1
    assert 'the total mass is 0: every torque will be zero' in errors


def test_check_takes_huge_limits_for_unlimited_and_not_for_degrees(tmp_path):
    _, text, _ = check(tmp_path, changed(('lower="-1" upper="1"', 'lower="-1e16" upper="1e16"')))
    assert 'are these degrees' not in text
    _, text, _ = check(tmp_path, changed(('lower="-1" upper="1"', 'lower="-180" upper="180"')))
    assert 'are these degrees' in text


def test_check_names_joints_with_the_same_mistake_in_one_line(tmp_path):
    second = (f'<link name="c">{INERTIAL}</link><joint name="k" type="continuous">'
              '<axis xyz="1 0 0"/><parent link="b"/><child link="c"/>'
              '<limit effort="-1" velocity="-1"/></joint></robot>')
    _, text, _ = check(tmp_path, changed(('effort="9"', 'effort="-1"'), ('</robot>', second)))
    lines = [line for line in text.splitlines() if 'effort limit is negative' in line]
    assert len(lines) == 1
    assert '2 joints, j, k: ' in lines[0]


def test_an_undeclared_world_is_rejected_with_the_remedy():
    with pytest.raises(UrdfError, match='add <link name="world"/>'):
        load_urdf_string(changed(('<link name="a"/>', ''), ('link="a"', 'link="world"')))


@pytest.mark.parametrize('text, name', [
    ('<mujoco model="m"/>', 'MJCF'), ('<sdf version="1.9"/>', 'SDF')])
def test_other_formats_are_recognized_by_name(text, name):
    with pytest.raises(UrdfError, match=f'this is {name}'):
        load_urdf_string(text)


def test_a_missing_argument_of_xacro_is_rejected_with_the_remedy(tmp_path):
    pytest.importorskip('xacro')
    (tmp_path / 'r.xacro').write_text(ARM.replace('value="1"', 'value="$(arg mass)"'))
    with pytest.raises(UrdfError, match=r'xacro failed: .*mass.*--xacro-args'):
        load_urdf(tmp_path / 'r.xacro')


def test_parsing_twice_gives_the_same_document():
    text = changed(('<robot ', '<robot xmlns="http://www.ros.org" '))
    assert [one.tag for one in parse(decode(text)).iter()] == [
        one.tag for one in parse(decode(ARM)).iter()]
