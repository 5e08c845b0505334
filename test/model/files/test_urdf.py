# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the URDF reader accepts, warns of and refuses; numbers are rows of doc/faults.md."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros import load_urdf_string, ModelWarning, UrdfError
from robots import all_example_urdfs, example_urdf, load_quietly
from urdf_texts import INERTIAL, joint, link, mimic, robot

ARM = robot(link('a'), link('b'), joint('j', 'a', 'b'))


def test_numbers_of_a_urdf_are_read():
    model = load_urdf_string(robot(
        link('root'), link('arm'), link('tool'), link('slide'),
        joint('weld', 'arm', 'tool', 'fixed', '<origin xyz="0 0 1"/>'),
        joint('turn', 'root', 'arm', inside='<origin xyz="1 0 0" rpy="0 0 1.5707963267948966"/>'
              '<axis xyz="0 0 2"/><dynamics damping="0.5" friction="0.25"/>'),
        joint('push', 'tool', 'slide', 'prismatic', '<axis xyz="1 0 0"/>')))
    assert model.velocity_names == ('turn', 'push')
    assert model.link_names == ('root', 'arm', 'tool', 'slide')
    assert model.mass == 4.0
    assert (model.lower[0], model.upper[0], model.effort_limit[0]) == (-1.0, 1.0, 9.0)
    assert (model.velocity_limit[0], model.damping[0], model.friction[0]) == (2.0, 0.5, 0.25)
    poses = rbd_ros.forward_kinematics(model, [0.0, 0.5])
    assert np.allclose(poses[3, :3, 3], [1.0, 0.5, 1.0])


def test_joints_are_numbered_depth_first_in_document_order():
    model = load_urdf_string(robot(
        *(link(x) for x in 'abcdefg'), joint('z', 'a', 'b'), joint('y', 'a', 'c'),
        joint('x', 'b', 'd'), joint('w', 'c', 'e'), joint('r', 'b', 'g'), joint('s', 'b', 'f')))
    # Neither the names of joints nor those of links decide.
    assert model.velocity_names == ('z', 'x', 'r', 's', 'y', 'w')


def test_all_robots_of_example_robot_data_load():
    paths = all_example_urdfs()
    assert len(paths) == 69
    for path in paths:
        model = load_quietly(path)
        assert np.isfinite(model.mass)
        assert np.all(np.isfinite(rbd_ros.gravity_torques(model, np.zeros(model.nq))))


def test_strict_mode_refuses_by_name_the_joint_that_mimics_one_which_is_not_there():
    path = example_urdf('alex_psyonic_hands.urdf')
    with pytest.raises(UrdfError, match="joint 'Left_index_q2' mimics 'index_q1'"):
        rbd_ros.load_urdf(path, strict=True)
    model = load_quietly(path)
    assert any("mimics 'index_q1', which is not there" in note for note in model.warnings)
    assert 'Left_index_q2' in model.velocity_names


@pytest.mark.parametrize('text, message', [
    ('/opt/robots/arm.urdf', 'not XML'),
    ('', 'not XML'),
    ('<sdf version="1.6"><model name="m"/></sdf>', 'this is SDF'),
    ('<mujoco model="m"/>', 'this is MJCF.*rbd_ros.load_mjcf'),
    ('<html/>', '<html>'),
    ('<robot name="r" xmlns:xacro="http://www.ros.org/wiki/xacro"><xacro:include filename="f"/>'
     '</robot>', 'run xacro'),
])
def test_fault_22_texts_that_are_not_a_urdf_are_refused_with_a_hint(text, message):
    with pytest.raises(UrdfError, match=message):
        load_urdf_string(text)


def test_fault_22_a_file_that_is_not_there_is_named(tmp_path):
    with pytest.raises(UrdfError, match=r'nothing\.urdf'):
        rbd_ros.load_urdf(tmp_path / 'nothing.urdf')


@pytest.mark.parametrize('encoding', ['utf-8', 'utf-16'])
@pytest.mark.parametrize('doctype', [
    '<!DOCTYPE robot [<!ENTITY a "b">]>', '<!DOCTYPE robot SYSTEM "http://localhost/x.dtd">',
    '<!DOCTYPE r [<!ENTITY a "aaaaaaaaaa"><!ENTITY b "&a;&a;&a;&a;&a;&a;&a;&a;&a;&a;">]>'])
def test_fault_23_document_types_are_refused_before_parsing(doctype, encoding):
    with pytest.raises(UrdfError, match='DOCTYPE'):
        load_urdf_string((doctype + ARM).encode(encoding))


def chain_urdf(count, each='', parent=lambda k: k):
    """Return a robot of ``count`` joints; ``parent`` says from which link each one leaves."""
    return robot(link('l0'), *(link(f'l{k + 1}') + joint(f'j{k}', f'l{parent(k)}', f'l{k + 1}')
                               + each for k in range(count)))


def test_fault_24_deep_and_wide_robots_load():
    deep = load_urdf_string(chain_urdf(1200))
    wide = load_urdf_string(chain_urdf(2000, parent=lambda k: k // 2))
    assert (deep.nv, wide.nv) == (1200, 2000)
    assert np.all(np.isfinite(rbd_ros.gravity_torques(deep, np.zeros(1200))))


def test_fault_59_too_many_joints_are_refused_before_anything_is_made(monkeypatch):
    text = chain_urdf(30)
    assert load_urdf_string(text, max_joints=30).nv == 30
    monkeypatch.setattr(
        'rbd_ros.model.files.urdf.describe', lambda *_: pytest.fail('a link was read'))
    with pytest.raises(UrdfError, match='has 30 joints, max_joints is 29'):
        load_urdf_string(text, max_joints=29)


def test_fault_24_a_20_mb_text_loads_and_a_larger_one_is_refused():
    visual = '<gazebo>' + 'x' * 1_000_000 + '</gazebo>'
    assert load_urdf_string(chain_urdf(20, visual)).nv == 20
    with pytest.raises(UrdfError, match='longer than'):
        load_urdf_string(chain_urdf(70, visual))


def test_fault_25_meshes_are_never_opened(tmp_path):
    mesh = '<visual><geometry><mesh filename="{}"/></geometry></visual>'
    for uri in ('file:///dev/stdin', 'http://localhost:9/x.stl', 'package://x/y.stl',
                str(tmp_path / 'no.stl')):
        text = robot(link('a', INERTIAL + mesh.format(uri)))
        assert load_urdf_string(text).link_names == ('a',)


@pytest.mark.parametrize('text', [
    '\ufeff' + ARM, ARM.encode(), '\ufeff'.encode() + ARM.encode(), ARM.encode('utf-16'),
    '<?xml version="1.0" encoding="UTF-8"?>\n' + ARM,
    ('<?xml version="1.0" encoding="utf-8"?>' + ARM).encode(),
    ('<?xml version="1.0" encoding="latin-1"?>' + ARM.replace('"b"', '"\xe4"')).encode('latin-1'),
])
def test_fault_26_encodings_and_byte_order_marks_are_read(text):
    assert load_urdf_string(text).nv == 1


def test_fault_26_a_wrong_encoding_is_refused():
    with pytest.raises(UrdfError, match='decoded'):
        load_urdf_string(b'<?xml version="1.0" encoding="no-such-code"?><robot/>')
    with pytest.raises(UrdfError, match='decoded'):
        load_urdf_string(b'<robot name="\xff\xfe"/>')


@pytest.mark.parametrize('old, new, message', [
    *(('<mass value="1"', f'<mass value="{x}"', r"link 'a'.*mass")
      for x in ('1,5', '1kg', '${mass}', '')),
    *(('"b"', f'"{x}"', 'left over from xacro') for x in ('${prefix}b', '$(arg p)b'))])
def test_fault_27_leftovers_are_refused_by_name(old, new, message):
    with pytest.raises(UrdfError, match=message):
        load_urdf_string(ARM.replace(old, new))


def test_fault_28_duplicate_names_are_refused():
    with pytest.raises(UrdfError, match="2 links are called 'a'"):
        load_urdf_string(robot(link('a'), link('a')))
    with pytest.raises(UrdfError, match="2 joints are called 'j'"):
        load_urdf_string(robot(link('a'), link('b'), link('c'), joint('j', 'a', 'b'),
                               joint('j', 'b', 'c')))


@pytest.mark.parametrize('elements, message', [
    ((link('a'), link('b'), link('c')), "3 root links, 'a', 'b', 'c'"),
    ((link('a'), link('b'), joint('j', 'a', 'b'), joint('k', 'b', 'a')), 'cycle.*a.*b'),
    ((link('a'), link('b'), link('c'), joint('j', 'b', 'c'), joint('k', 'c', 'b')),
     'cycle.*b.*c'),
    ((link('a'), joint('j', 'a', 'a')), "joint 'j' joins link 'a' to itself"),
    ((link('a'), joint('j', 'a', 'x')), "joint 'j' names link 'x'"),
])
def test_fault_29_links_that_form_no_tree_are_refused_by_name(elements, message):
    with pytest.raises(UrdfError, match=message):
        load_urdf_string(robot(*elements))


def test_fault_30_a_link_with_two_parents_is_refused_and_the_remedy_named():
    with pytest.raises(UrdfError, match=r"'c' has two parents, 'a' and 'b', .*keep one of "
                       "the joints 'j' and 'k', and replace the other by a constraint"):
        load_urdf_string(robot(link('a'), link('b'), link('c'), joint('i', 'a', 'b'),
                               joint('j', 'a', 'c'), joint('k', 'b', 'c')))


def test_fault_31_mimic_chains_are_composed():
    model = load_urdf_string(robot(
        *(link(x) for x in 'abcd'), joint('i', 'a', 'b', inside=mimic('j', '2', '0.5')),
        joint('j', 'b', 'c', inside=mimic('k', '-3', '1')), joint('k', 'c', 'd')))
    assert model.velocity_names == ('k',)
    # i = 2 j + 0.5 = 2 (-3 k + 1) + 0.5; the sum of the three turns the last link about z.
    q = 0.1
    angle = (2 * (-3 * q + 1) + 0.5) + (-3 * q + 1) + q
    R = rbd_ros.forward_kinematics(model, [q])[3, :3, :3]
    assert np.allclose(R[:, 0], [np.cos(angle), np.sin(angle), 0.0])


@pytest.mark.parametrize('first, second, message', [
    ('j', 'i', 'circle: i -> j -> i'), ('i', None, 'circle: i -> i')])
def test_fault_32_mimic_circles_are_refused(first, second, message):
    text = robot(link('a'), link('b'), link('c'), joint('i', 'a', 'b', inside=mimic(first)),
                 joint('j', 'b', 'c', inside=mimic(second) if second else ''))
    with pytest.raises(UrdfError, match=message):
        load_urdf_string(text)


def test_fault_33_links_without_mass_are_listed_and_forward_dynamics_refuses_by_name():
    text = robot(link('a'), link('b', ''), link('c', ''), joint('i', 'a', 'b'),
                 joint('j', 'b', 'c'))
    with pytest.warns(ModelWarning, match='b, c'):
        model = load_urdf_string(text)
    with pytest.raises(rbd_ros.SingularError, match="'j' moves no inertia"):
        rbd_ros.forward_dynamics(model, [0.0, 0.0], [0.0, 0.0], [0.0, 0.0])
    assert np.array_equal(rbd_ros.gravity_torques(model, [0.0, 0.0]), [0.0, 0.0])


@pytest.mark.parametrize('mass', ['-1', 'nan', 'inf', '-inf'])
def test_fault_34_impossible_masses_are_refused(mass):
    with pytest.raises(UrdfError, match="link 'a': its mass"):
        load_urdf_string(ARM.replace('<mass value="1"/>', f'<mass value="{mass}"/>'))


@pytest.mark.parametrize('moments', ['ixx="-0.01"', 'ixx="0.1"'])
def test_fault_35_impossible_inertias_warn_or_are_refused_by_name(moments):
    text = ARM.replace('ixx="0.01"', moments, 1)
    with pytest.warns(ModelWarning, match=r"link 'a'.*no body has"):
        load_urdf_string(text)
    with pytest.raises(UrdfError, match=r"link 'a'.*no body has"):
        load_urdf_string(text, strict=True)


def test_fault_36_a_joint_that_moves_no_inertia_is_refused_by_name_but_has_a_gravity_torque():
    # The second axis goes through a point mass.
    point = ('<inertial><origin xyz="0.3 0 0"/><mass value="1"/></inertial>')
    model = load_urdf_string(robot(
        link('a'), link('b'), link('c', point), joint('i', 'a', 'b', inside='<axis xyz="0 1 0"/>'),
        joint('j', 'b', 'c', inside='<axis xyz="1 0 0"/>')))
    with pytest.raises(rbd_ros.SingularError, match="'j' moves no inertia"):
        rbd_ros.forward_dynamics(model, [0.1, 0.2], [0.0, 0.0], [0.0, 0.0])
    assert abs(rbd_ros.gravity_torques(model, [0.1, 0.2])[0]) > 1.0


@pytest.mark.parametrize('before', [1, 2])
def test_fault_36_inertia_that_other_joints_have_used_up_is_seen_in_any_position(before):
    # Four sliding axes in three dimensions, beyond turning ones that stand askew.
    builder, up = rbd_ros.ModelBuilder('gantry').link('base'), 'base'
    for k in range(before):
        builder.link(f'arm{k}', mass=1.0, com=(0.1, 0.0, 0.2), inertia=(0.1, 0.2, 0.2))
        builder.joint(f'turn{k}', 'revolute', up, f'arm{k}', xyz=(0.1, 0.2, 0.3),
                      rpy=(0.4, 0.5, 0.6), axis=(1.0, 2.0, 3.0))
        up = f'arm{k}'
    for name, axis in zip('abcd', ((1, 0, 0), (0, 1, 0), (0, 0, 1), (1, 0, 0))):
        builder.link(name, mass=2.0 if name == 'd' else 0.0)
        builder.joint(f'slide_{name}', 'prismatic', up, name, axis=axis)
        up = name
    with pytest.warns(ModelWarning):
        model = builder.build()
    rng = np.random.default_rng(before)
    for _ in range(20):
        q, v, tau = rng.normal(size=(3, model.nv))
        with pytest.raises(rbd_ros.SingularError, match="'slide_a' moves no inertia"):
            rbd_ros.forward_dynamics(model, q, v, tau)


@pytest.mark.parametrize('axis', ['0 0 0', 'nan 0 1', 'inf 0 0', '1 0'])
def test_fault_37_impossible_axes_are_refused_by_name(axis):
    with pytest.raises(UrdfError, match=r"'j'.*axis"):
        load_urdf_string(ARM.replace('<axis xyz="0 0 1"/>', f'<axis xyz="{axis}"/>'))


def test_fault_37_an_axis_of_another_length_is_normalised():
    model = load_urdf_string(ARM.replace('<axis xyz="0 0 1"/>', '<axis xyz="0 0 -7"/>'))
    assert np.array_equal(model.joints[0].axis, [0.0, 0.0, -1.0])


@pytest.mark.parametrize('limit, message', [
    ('<limit effort="1" velocity="1" lower="2" upper="-2"/>', "joint 'j'.*lower limit.*above"),
    ('<limit lower="-1" upper="1"/>', "joint 'j'.*<limit> has no"),
    ('', "joint 'j'.*no <limit>"),
])
def test_fault_39_missing_and_reversed_limits_warn(limit, message):
    text = ARM.replace('<limit effort="9" velocity="2" lower="-1" upper="1"/>', limit)
    with pytest.warns(ModelWarning, match=message):
        model = load_urdf_string(text)
    assert model.lower[0] <= model.upper[0]
    assert model.effort_limit[0] > 0.0


@pytest.mark.parametrize('label', ['effort', 'velocity'])
def test_fault_53_negative_limits_are_refused_or_taken_as_missing_by_name(label):
    limit = {'effort': '9', 'velocity': '2'}[label]
    text = ARM.replace(f'{label}="{limit}"', f'{label}="-20"')
    with pytest.warns(ModelWarning, match=f"joint 'j': its {label} limit is negative, -20"):
        model = load_urdf_string(text)
    assert getattr(model, f'{label}_limit')[0] == np.inf
    with pytest.raises(UrdfError, match=f"joint 'j': its {label} limit is negative, -20"):
        load_urdf_string(text, strict=True)


@pytest.mark.parametrize('before, after, message', [
    ('<origin xyz="0 0 0.1"/>', '<origin xyz="0 0 0.1" rpy="0 90 0"/>',
     "link 'a': rpy=\"0 90 0\" is more than a full turn; are these degrees"),
    ('<axis xyz="0 0 1"/>', '<origin xyz="0 425 0"/><axis xyz="0 0 1"/>',
     'joint j: more than 20 m from the parent; is the unit m'),
    ('<origin xyz="0 0 0.1"/>', '<origin xyz="0 0 280"/>',
     'link a: centre of mass more than 20 m from the frame'),
    ('<mass value="1"/>', '<mass value="8393"/>', 'the robot weighs 8394 kg; is the unit kg'),
    ('ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"',
     'ixx="100" ixy="0" ixz="0" iyy="100" iyz="0" izz="100"', 'link a: inertia of a body of more'),
    ('ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"',
     'ixx="1" ixy="0" ixz="0" iyy="1" iyz="0" izz="1"', 'would be lighter than air'),
    ('ixx="0.01" ixy="0" ixz="0" iyy="0.01" iyz="0" izz="0.01"',
     'ixx="1e-8" ixy="0" ixz="0" iyy="1e-8" iyz="0" izz="1e-8"', 'would be impossibly dense')])
def test_suspicious_values_cause_warnings(before, after, message):
    # More of them are in urdf_texts.DOUBTFUL.
    assert before in ARM
    with pytest.warns(ModelWarning) as caught:
        load_urdf_string(ARM.replace(before, after, 1))
    assert any(message in str(one.message) for one in caught)


@pytest.mark.parametrize('text', [
    robot(link('a'), '<joint name="j" type="revolute"><child link="a"/></joint>'),
    robot(link('a'), link('b'), joint('j', 'a', 'b', 'screw')),
    robot('<link/>'), '<robot name="r"><link name="a"></robot>', ARM[:-9]])
def test_broken_documents_are_refused(text):
    with pytest.raises(UrdfError):
        load_urdf_string(text)


def two_links(inertial=INERTIAL, kind='type="continuous"', parent='<parent link="a"/>', more=''):
    """Return the text of a robot with one joint."""
    return (f'<robot name="r"><link name="a"/><link name="b">{inertial}</link>'
            f'<joint name="j" {kind}>{parent}<child link="b"/>{more}</joint></robot>')


@pytest.mark.parametrize('text, message', [
    (two_links(kind='type="ball"'), "joint 'j': its type is 'ball', expected one of fixed, rev"),
    (two_links(kind=''), "joint 'j': its type is ''"),
    (two_links(parent=''), "joint 'j', line 1: <joint> has no parent"),
    (two_links('<inertial><mass/></inertial>'), "link 'b', line 1: <mass> has no value"),
    (two_links(INERTIAL.replace('ixy="0"', '')), "link 'b', line 1: <inertia> has no ixy"),
    (two_links(more='<mimic/>'), "joint 'j', line 1: <mimic> has no joint"),
    ('<robot name="r">\n<link/></robot>', 'the <link> on line 2 has no name')])
def test_missing_elements_are_named_with_their_line(text, message):
    with pytest.raises(UrdfError) as caught:
        load_urdf_string(text)
    assert message in str(caught.value)


@pytest.mark.parametrize('kind', ['planar', 'floating'])
@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
def test_elements_that_joints_with_several_coordinates_ignore_are_named(kind):
    said = ' '.join(load_urdf_string(two_links(
        kind=f'type="{kind}"', more='<dynamics damping="3"/><mimic joint="k"/>')).warnings)
    assert f'the <dynamics> of a {kind} joint is not used' in said
    assert f'the <mimic> of a {kind} joint is not used' in said


@pytest.mark.parametrize('text', [
    b'<?xml version="1.0" encoding="undefined"?><robot name="r"/>',
    b'<?xml version="1.0" encoding="punycode"?><robot name="\xff"/>', None,
    bytearray(b'<robot/>')])
def test_fault_26_texts_of_a_wrong_type_raise_urdf_error(text):
    with pytest.raises(UrdfError):
        load_urdf_string(text)
    with pytest.raises(UrdfError, match='is not the path of a file'):
        rbd_ros.load_urdf('a\0b')
