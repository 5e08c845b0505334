# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a URDF contains besides its robot: named if it is not used, and no obstacle."""

from command_line import code_of
import pytest
import rbd_ros
from rbd_ros import load_urdf, load_urdf_string, ModelWarning, save_urdf, UrdfError
from rbd_ros.model.files.xml_elements import decode, parse
from urdf_texts import ARM, changed, INERTIAL


# -- Nothing ignored silently. --------------------------------------------------------------------


@pytest.mark.parametrize('old, new, message', [
    ('version="1.2"', 'version="7.0"', 'version="7.0" is not known'),
    ('<link name="a"/>', '<bogus/><link name="a"/>', '<bogus> in <robot> is not used'),
    ('<link name="a"/>', '<link name="a"><bogus/></link>', "link 'a': <bogus> in <link>"),
    ('<axis', '<bogus/><axis', "joint 'j': <bogus> in <joint> is not used"),
    ('<mass ', '<bogus/><mass ', "link 'b': <bogus> in <inertial>"),
    ('<mass value="1"', '<mass value="1" unit="g"', "link 'b': unknown .*<mass>.*: unit"),
    ('velocity="2"', 'velocity="2" efort="3"', "joint 'j': unknown .*<limit>.*: efort"),
    ('type="revolute"', 'type="continuous"', "joint 'j': the lower and upper limits of a con"),
    ('type="revolute"', 'type="planar"', "joint 'j': the <limit> of a planar joint is not used"),
    ('type="revolute"', 'type="revolute" damping="3"', "joint 'j': .*<joint>.*: damping"),
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


@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
def test_contents_of_one_kind_are_named_once_with_all_their_joints():
    model = load_urdf_string(changed(
        ('<axis', '<bogus/><axis'),
        ('</robot>', '<link name="c"/><joint name="k" type="fixed"><bogus/>'
         '<parent link="b"/><child link="c"/></joint></robot>')))
    assert [note for note in model.warnings if 'bogus' in note] == [
        '2 joints, j, k: <bogus> in <joint> is not used: it is not known']


DECORATION = """<visual bogus="1"><bogus/></visual><collision><bogus/></collision>
<contact><bogus/></contact>"""


def test_decoration_is_harmless_even_if_strict():
    text = changed(('<link name="a"/>', f'<link name="a">{DECORATION}</link><material bogus="1"/>'
                    '<transmission><bogus/></transmission><gazebo><bogus/></gazebo>'
                    '<ros2_control bogus="1"/>'),
                   ('<axis', '<safety_controller k_velocity="1"/><calibration rising="0"/><axis'))
    notes = load_urdf_string(text).warnings
    assert not [note for note in notes if 'not used' in note]


ROTOR = ('<transmission name="t"><joint name="j"/><actuator name="m"><drake:rotor_inertia '
         'value="0.002"/><drake:gear_ratio value="50"/></actuator></transmission></robot>')


@pytest.mark.parametrize('declared', ['', ' xmlns:drake="http://drake.mit.edu"'])
def test_rotor_inertias_of_drake_are_armatures_times_the_gear_ratio_squared(declared):
    text = changed(('</robot>', ROTOR), (' version="1.2"', declared))
    model = load_urdf_string(text)
    assert not any('not used' in note for note in model.warnings)
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
    assert load_urdf_string(changed(('</robot>', gazebo))).nv == 1
    assert load_urdf_string(changed(('</robot>', gazebo), (
        '<robot ', '<robot xmlns:a="some:uri" '))).nv == 1
    assert load_urdf_string('<!-- <robot> --> ' + changed(('</robot>', gazebo))).nv == 1
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string(changed(('</robot>', '<gazebo><a:b></gazebo></robot>')))
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string('<sdf><a:b/></sdf>')
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string(changed(('</robot>', gazebo), ('value="1"', 'value="1" value="2"')))


def test_a_fault_of_xml_among_many_undeclared_prefixes_is_rejected():
    many = '<gazebo>' + '<a:b/>' * 300 + '</gazebo>'
    fault = '<link name="x" name="x"/>'
    with pytest.raises(UrdfError, match='well-formed'):
        load_urdf_string(changed(('</robot>', many + fault + many + '</robot>')))


@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
def test_the_warnings_about_thousands_of_unknown_tags_are_bounded():
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


def test_calls_that_xacro_left_over_are_named_and_ignored_at_the_top_level_only():
    banner = '<!-- | This document was autogenerated by xacro from r.urdf.xacro | -->'
    text = banner + changed(('<link name="a"/>', '<xacro:arm prefix="l"/><link name="a"/>'))
    with pytest.warns(ModelWarning, match='<xacro:arm> is not used: it is left over from xacro'):
        assert load_urdf_string(text).link_names == ('a', 'b')
    with pytest.raises(UrdfError, match='<xacro:arm> is not used'):
        load_urdf_string(text, strict=True)
    with pytest.raises(UrdfError, match='run xacro on the file first'):
        load_urdf_string(banner + changed(('<axis', '<xacro:limits/><axis')))
    with pytest.raises(UrdfError, match='<xacro:include> on line 1: parts of the robot are miss'):
        load_urdf_string(text.replace('xacro:arm prefix="l"', 'xacro:include filename="arm"'))


@pytest.mark.parametrize('old, new', [
    ('<mass ', '<xacro:mass/><mass '), ('<axis', '<xacro:limits/><axis'),
    ('<link name="a"/>', '<xacro:arm prefix="left"/><link name="a"/>'),
    ('<link name="a"/>', '<xacro:include filename="x.xacro"/><link name="a"/>'),
    ('<link name="a"/>', '<arm xmlns="http://www.ros.org/wiki/xacro"/><link name="a"/>'),
    ('<link name="a"/>', '<x:arm xmlns:x="http://wiki.ros.org/xacro"/><link name="a"/>'),
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
    assert [one.tag for one in parse(decode(text)).iter()] == [
        one.tag for one in parse(decode(ARM)).iter()]
    loaded = rbd_ros.with_payload(load_urdf_string(text), 'b', 2.0)
    save_urdf(loaded, tmp_path / 'r.urdf', source=text)
    assert load_urdf(tmp_path / 'r.urdf').mass == loaded.mass == 3.0


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

@pytest.fixture
def check(tmp_path, capsys):
    """Return a function that returns the exit code, the output and errors of `rbd_ros check`."""
    def run(text):
        (tmp_path / 'r.urdf').write_text(text)
        return code_of('check', str(tmp_path / 'r.urdf')), *capsys.readouterr()
    return run


def test_check_exits_with_1_if_every_torque_will_be_zero(check):
    code, _, errors = check(changed(('<mass value="1"/>', '<mass value="0"/>')))
    assert code == 1
    assert 'the total mass is 0: every torque will be zero' in errors


@pytest.mark.parametrize('limit, degrees', [('1e16', False), ('180', True)])
@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
def test_huge_limits_are_taken_for_unlimited_and_not_for_degrees(limit, degrees):
    model = load_urdf_string(changed(
        ('lower="-1" upper="1"', f'lower="-{limit}" upper="{limit}"')))
    assert any('are these degrees' in note for note in model.warnings) is degrees


def test_check_names_joints_with_the_same_mistake_in_one_line(check):
    second = (f'<link name="c">{INERTIAL}</link><joint name="k" type="continuous">'
              '<axis xyz="1 0 0"/><parent link="b"/><child link="c"/>'
              '<limit effort="-1" velocity="-1"/></joint></robot>')
    _, text, _ = check(changed(('effort="9" velocity="2"', 'effort="-1" velocity="-1"'),
                               ('</robot>', second)))
    lines = [line.strip() for line in text.splitlines() if 'negative' in line]
    assert lines == ['each of 2 joints, j, k: its velocity and effort limits are negative, -1 and '
                     '-1; they are ignored']


def test_an_undeclared_world_is_rejected_with_the_remedy():
    with pytest.raises(UrdfError, match='add <link name="world"/>'):
        load_urdf_string(changed(('<link name="a"/>', ''), ('link="a"', 'link="world"')))


@pytest.mark.parametrize('value, message', [
    ('$(arg mass)', 'mass; give it .*--xacro-args'),
    ('$(find no_such_package)', 'no_such_package.*; source the workspace')])
def test_failures_of_xacro_are_reported_with_the_remedy(tmp_path, value, message, monkeypatch):
    pytest.importorskip('xacro')
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    (tmp_path / 'r.xacro').write_text(ARM.replace('value="1"', f'value="{value}"'))
    with pytest.raises(UrdfError, match=f'xacro failed: .*{message}'):
        load_urdf(tmp_path / 'r.xacro')


def test_check_shows_rotors(check):
    assert 'effort 9 N m, armature 5 kg m^2\n' in check(changed(('</robot>', ROTOR)))[1]
