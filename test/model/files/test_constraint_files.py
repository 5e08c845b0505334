# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Constraints in URDF and YAML: what is written comes back, what is wrong is named."""

from lxml import etree
import numpy as np
import pytest
from rbd_ros import ModelError
from rbd_ros.model import Constraint
from rbd_ros.model.files.constraint_elements import constraint_parts, constraints_of
from rbd_ros.model.files.constraint_files import read_constraints
from rbd_ros.model.files.urdf_writer import append, set_child
from rbd_ros.model.files.xml_elements import parse
from rbd_ros.model.se3 import inverse, pose, rotation_from_rpy
from robots import random_pose

ROUNDING = 1e-14
HINGE = ('<constraint name="pin" type="revolute"><parent link="a"/>'
         '<parent_origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><parent_axis xyz="0 2 0"/>'
         '<child link="b"/><child_origin xyz="4 5 6" rpy="0 0 1"/><child_axis xyz="1 0 -1"/>'
         '</constraint>')


def read(*constraints):
    """Return the constraints of a URDF."""
    return constraints_of(parse('<robot name="r">' + ''.join(constraints) + '</robot>'))


def test_hinge_turns_about_its_axes():
    (found,) = read(HINGE)
    assert (found.name, found.kind, found.link_a, found.link_b, found.length) == (
        'pin', 'revolute', 'a', 'b', None)
    for T, xyz, rpy, axis in ((found.placement_a, [1, 2, 3], [0.1, 0.2, 0.3], [0, 1, 0]),
                              (found.placement_b, [4, 5, 6], [0, 0, 1],
                               np.array([1, 0, -1]) / np.sqrt(2.0))):
        assert np.array_equal(T[:3, 3], xyz)
        assert np.allclose(T[:3, :3] @ T[:3, :3].T, np.eye(3), atol=ROUNDING)
        assert np.linalg.det(T[:3, :3]) > 0.0
        assert np.allclose(T[:3, 2], rotation_from_rpy(rpy) @ axis, atol=ROUNDING)


@pytest.mark.parametrize('axis', [(0, 0, 1), (0, 0, -3), (0, 0, 1e-300), (1.5e308, 1.5e308, 0),
                                  (1e-9, 0, 1), (-1e-9, 1e-9, -1)])
def test_hinges_have_any_axis(axis):
    text = HINGE.replace('0 2 0', ' '.join(map(str, axis))).replace('0.1 0.2 0.3', '0 0 0')
    (found,) = read(text)
    R, axis = found.placement_a[:3, :3], np.array(axis) / np.max(np.abs(axis))
    assert np.allclose(R[:, 2], axis / np.linalg.norm(axis), atol=ROUNDING)
    assert np.allclose(R.T @ R, np.eye(3), atol=ROUNDING)


def test_axis_is_x_by_default_and_the_same_at_both_ends():
    (found,) = read('<constraint name="c" type="revolute"><parent link="a"/><child link="b"/>'
                    '</constraint>')
    assert np.allclose(found.placement_a[:3, 2], [1, 0, 0], atol=ROUNDING)
    assert np.array_equal(found.placement_a, found.placement_b)
    (found,) = read('<constraint name="c" type="revolute"><parent link="a"/>'
                    '<parent_axis xyz="0 1 0"/><child link="b"/></constraint>')
    assert np.allclose(found.placement_b[:3, 2], [0, 1, 0], atol=ROUNDING)


@pytest.mark.parametrize('name, kind, turn, rpy', [
    ('spherical', 'point', 'rpy="0.3 0.2 0.1"', (0.3, 0.2, 0.1)),
    ('link', 'weld', 'quat_xyzw="0 0 2 2"', (0.0, 0.0, 0.5 * np.pi))])
def test_types_without_axes_keep_their_frames(name, kind, turn, rpy):
    (found,) = read(f'<constraint name="c" type="{name}"><parent link="a"/><child link="b"/>'
                    f'<child_origin xyz="1 2 3" {turn}/></constraint>')
    assert found.kind == kind and np.array_equal(found.placement_a, np.eye(4))
    assert np.allclose(found.placement_b, pose(rotation_from_rpy(rpy), (1, 2, 3)),
                       rtol=0.0, atol=ROUNDING)


def test_a_rod_must_have_a_length():
    rod = ('<constraint name="rod" type="distance"><parent link="a"/><child link="b"/>{}'
           '</constraint>')
    (found,) = read(rod.format('<length value="0.25"/>'))
    assert (found.kind, found.length) == ('distance', 0.25)
    with pytest.raises(ModelError, match="constraint 'rod', line 1: <constraint> has no length"):
        read(rod.format(''))


def test_order_is_that_of_the_document_and_other_elements_do_not_matter():
    found = read('<link name="a"/>', HINGE, '<gazebo><constraint/></gazebo>',
                 HINGE.replace('pin', 'second'))
    assert [one.name for one in found] == ['pin', 'second'] and read() == []


@pytest.mark.parametrize('kind', ['point', 'revolute', 'weld', 'distance'])
def test_constraints_are_read_back_from_xml(kind):
    rng = np.random.default_rng(0)
    given = Constraint('loop', kind, 'a', 'b', random_pose(rng), random_pose(rng),
                       rng.uniform() if kind == 'distance' else None)
    root = etree.Element('robot')
    element = append(root, 'constraint', name=given.name)
    name, parts = constraint_parts(given)
    element.set('type', name)
    for tag, attributes in parts.items():
        set_child(element, tag, attributes)
    (found,) = constraints_of(parse(etree.tostring(root, encoding='unicode')))
    for label, value in vars(given).items():
        if label.startswith('placement'):
            assert np.max(np.abs(getattr(found, label) @ inverse(value) - np.eye(4))) < ROUNDING
        else:
            assert getattr(found, label) == value


@pytest.mark.parametrize('old, new, message', [
    ('name="pin"', '', 'the <constraint> on line 1 has no name'),
    ('type="revolute"', '', "constraint 'pin', line 1: <constraint> has no type"),
    ('"revolute"', '"hinge"', "constraint 'pin': its type is 'hinge', expected one of spherical"),
    ('"revolute"', '"universal"', 'cut the loop at another joint, or cut a link'),
    ('"revolute"', '"spherical"', '<parent_axis>, which a constraint of this type does not use'),
    ('<parent link="a"/>', '', "constraint 'pin', line 1: <constraint> has no parent"),
    ('<child link="b"/>', '<child/>', '<child> has no link'),
    ('<child link="b"/>', '<child link="b"/><child link="b"/>', 'has two <child> elements'),
    ('<child link="b"/>', '<child link="b"/><origin/>', 'it has <origin>'),
    ('<child link="b"/>', '<child link="b"/><length value="1"/>', 'it has <length>'),
    ('rpy="0 0 1"', 'yaw="1"', '<child_origin> has the attribute yaw, which is not known'),
    ('rpy="0 0 1"', 'quat_xyzw="0 0 0 0"', "constraint 'pin': its quat_xyzw must be"),
    ('rpy="0 0 1"', 'rpy="0 0 1" quat_xyzw="0 0 0 1"', 'has both rpy and quat_xyzw'),
    ('link="b"', 'link="b" xyz="0 0 0"', '<child> has the attribute xyz'),
    ('name="pin"', 'name="pin" kind="point"', '<constraint> has the attribute kind'),
    ('0 2 0', '0 0 0', 'its <parent_axis> is zero'),
    ('1 2 3', '1 2', '<parent_origin xyz="1 2"> must hold 3 numbers'),
    ('1 2 3', '1 2 nan', 'the xyz of its <parent_origin> is not finite'),
    ('0 2 0', '0 inf 0', 'the xyz of its <parent_axis> is not finite')])
def test_wrong_elements_are_named(old, new, message):
    assert old in HINGE
    with pytest.raises(ModelError) as error:
        read(HINGE.replace(old, new, 1))
    assert message in str(error.value)


YAML = """\
independent: [crank]
constraints:
- {name: pin, kind: revolute, link_a: coupler, link_b: rocker, xyz_a: [0.3, 0, 0],
   rpy_b: [0, 0, 1e-1], xyz_b: [1, 2, 3]}
- {name: rod, kind: distance, link_a: coupler, link_b: rocker, length: 5e-1}
"""


@pytest.fixture
def written(tmp_path):
    """Return a function that writes a file and reads it."""
    def function(text):
        path = tmp_path / 'constraints.yaml'
        path.write_text(text)
        return read_constraints(path)[:2]
    return function


def test_yaml_is_read(written):
    (pin, rod), independent = written(YAML)
    assert independent == ['crank']
    assert pin == Constraint('pin', 'revolute', 'coupler', 'rocker', pose(np.eye(3), (0.3, 0, 0)),
                             pose(rotation_from_rpy((0, 0, 0.1)), (1, 2, 3)))
    assert (rod.kind, rod.length) == ('distance', 0.5)
    assert np.array_equal(rod.placement_b, np.eye(4))
    assert written(YAML.partition('\n')[2])[1] is None
    assert written('constraints: []') == ([], None)


@pytest.mark.parametrize('text, message', [
    ('', 'constraints: [{name: ..., kind: ..., link_a: ..., link_b: ...}, ...] are expected'),
    ('[1]', 'are expected'), ('constraints: {a: 1}', 'are expected'),
    ('constraints: [1]', 'constraint 1 must have name, kind, link_a and link_b, got 1'),
    (YAML + 'dependent: [a]', "the file has 'dependent', which is not known, did you mean"),
    (YAML + '1: [a]', 'the file has 1, which is not known'),
    (YAML.replace('[crank]', 'crank'), "independent must be a list of names, got 'cr"),
    (YAML.replace('name: pin, ', ''), 'constraint 1: name must be a name'),
    (YAML.replace('kind: distance, ', ''), "constraint 'rod': kind must be a name"),
    (YAML.replace('link_b: rocker', 'link_b: [x]', 1), "'pin': link_b must be a name, got ['x']"),
    (YAML.replace('xyz_b', 'xyz'), "constraint 'pin' has 'xyz', which is not known, did you mean"),
    (YAML.replace('[0.3, 0, 0]', '[0.3, 0]'), 'xyz_a must be 3 finite numbers, got [0.3, 0]'),
    (YAML.replace('[0.3, 0, 0]', '[0.3, 0, .nan]'), 'xyz_a must be 3 finite numbers'),
    (YAML.replace('[0.3, 0, 0]', '1.0'), 'xyz_a must be 3 finite numbers, got 1.0'),
    (YAML.replace('[0, 0, 1e-1]', '[0, 0, up]'), 'rpy_b must be 3 finite numbers'),
    (YAML.replace('5e-1', '[5]'), "constraint 'rod': length must be 1 finite number, got [5]"),
    (YAML.replace('5e-1', 'true'), 'length must be 1 finite number, got True')])
def test_wrong_yaml_is_named(written, text, message):
    with pytest.raises(ModelError) as error:
        written(text)
    assert message in str(error.value)
    assert 'constraints.yaml: ' in str(error.value) and '\n' not in str(error.value)


def test_missing_file_is_named(tmp_path):
    with pytest.raises(ModelError, match=r'nothing\.yaml cannot be read'):
        read_constraints(tmp_path / 'nothing.yaml')
