# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Shapes of links: meshes by package, primitives, boxes of inertia."""

import io
import warnings

import numpy as np
from optional import Optional
import pytest
import rbd_ros
from rbd_ros.view.geometry import load_geometry
from robots import DATA, example_urdf, load_quietly

trimesh = Optional('trimesh')

# Meshes hold single precision.
SINGLE = 1e-6
INERTIA = ('<inertial><origin xyz=".1 0 0"/><mass value="{}"/><inertia ixx="{}" iyy="{}" izz="{}"'
           ' ixy="0" ixz="0" iyz="0"/></inertial>')
KILOGRAM = INERTIA.format(1, 1, 1, 1)


def bounds(shape):
    return trimesh.load_scene(io.BytesIO(shape), file_type='glb').bounds


def one_link(body, inertial=KILOGRAM):
    return f'<robot name="r"><link name="a">{inertial}{body}</link></robot>'


def load(text, *more):
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        model = rbd_ros.load_urdf_string(text)
    return load_geometry(model, text, *more)


@pytest.fixture
def package(tmp_path):
    """Return a folder with a package, whose mesh is a box of 1 x 2 x 3 m."""
    folder = tmp_path / 'here' / 'some_robot' / 'meshes'
    folder.mkdir(parents=True)
    trimesh.creation.box((1, 2, 3)).export(folder / 'box.stl')
    return tmp_path / 'here'


MESH = ('<visual><origin xyz="0 0 1" rpy="0 0 1.5707963267948966"/><geometry><mesh filename="{}" '
        'scale="1 1 0.5"/></geometry></visual>')
AT_PACKAGE = MESH.format('package://some_robot/meshes/box.stl')
# Scaled, then turned, then moved.
PLACED = [[-1.0, -0.5, 0.25], [1.0, 0.5, 1.75]]


@pytest.mark.parametrize('place', ['option', 'package itself', 'ament', 'ros', 'above'])
def test_meshes_are_found_by_their_package(package, place, monkeypatch, tmp_path):
    monkeypatch.delenv('ROS_PACKAGE_PATH', raising=False)
    folder, path = tmp_path, ()
    if place == 'option':
        path = ('/nowhere', package)
    elif place == 'package itself':
        path = (package / 'some_robot',)
    elif place == 'ament':
        (package / 'share').symlink_to(package)
        monkeypatch.setenv('AMENT_PREFIX_PATH', f'/nowhere:{package}')
    elif place == 'ros':
        monkeypatch.setenv('ROS_PACKAGE_PATH', f'/nowhere:{package}')
    else:
        folder = package / 'some_robot' / 'urdf'
        folder.mkdir()
    found = load(one_link(AT_PACKAGE), folder, path)
    assert found.notes == ()
    np.testing.assert_allclose(bounds(found.shapes[0]), PLACED, atol=SINGLE)


def test_meshes_are_found_by_path(package):
    for name in ('meshes/box.stl', f'file://{package}/some_robot/meshes/box.stl',
                 f'{package}/some_robot/meshes/box.stl'):
        found = load(one_link(MESH.format(name)), package / 'some_robot')
        np.testing.assert_allclose(bounds(found.shapes[0]), PLACED, atol=SINGLE)


def test_collada_has_its_unit_but_not_its_upward_axis(tmp_path):
    source = (DATA / 'panda_description/meshes/visual/link1.dae').read_text()
    bare = trimesh.load_scene(DATA / 'panda_description/meshes/visual/link1.dae').bounds
    for up in ('Y_UP', 'Z_UP'):
        text = source.replace('<up_axis>Z_UP', f'<up_axis>{up}').replace(
            '<unit name="meter" meter="1"/>', '<unit name="millimeter" meter="0.001"/>')
        assert 'millimeter' in text and up in text
        (tmp_path / 'a.dae').write_text(text)
        found = load(one_link('<visual><geometry><mesh filename="a.dae"/></geometry></visual>'),
                     tmp_path)
        assert found.notes == ()
        np.testing.assert_allclose(bounds(found.shapes[0]), 1e-3 * bare, atol=SINGLE)


@pytest.mark.parametrize('name,reason', [
    ('package://nowhere_at_all/a.stl', "there is no package 'nowhere_at_all'"),
    ('/etc/passwd', 'are read as meshes'), ('http://a.b/c.stl', 'only package:// and file://'),
    ('a.stl', 'there is no such file'), ('broken.stl', 'broken')])
def test_unreadable_meshes_are_reported_and_replaced(tmp_path, name, reason):
    (tmp_path / 'broken.stl').write_text('solid nothing')
    collision = '<collision><geometry><sphere radius="2"/></geometry></collision>'
    found = load(one_link(MESH.format(name) + collision), tmp_path)
    note, = found.notes
    assert name in note and reason in note
    np.testing.assert_allclose(bounds(found.shapes[0]), [[-2] * 3, [2] * 3], atol=SINGLE)
    # Without primitives: the box that has the link's mass and inertia.
    inertial = INERTIA.format(12, 13, 10, 5)        # of 1 x 2 x 3 m: 12 / 12 (4 + 9), ...
    found = load(one_link(MESH.format(name), inertial), tmp_path)
    np.testing.assert_allclose(bounds(found.shapes[0]), [[-0.4, -1.0, -1.5], [0.6, 1.0, 1.5]],
                               atol=SINGLE)


@pytest.mark.parametrize('shape,size', [
    ('<box size="1 2 3"/>', (1, 2, 3)), ('<cylinder radius="1" length="3"/>', (2, 2, 3)),
    ('<capsule radius="1" length="3"/>', (2, 2, 5)), ('<sphere radius="1"/>', (2, 2, 2))])
def test_primitives_have_their_sizes(shape, size):
    found = load(one_link(f'<visual><geometry>{shape}</geometry></visual>'))
    low, high = bounds(found.shapes[0])
    np.testing.assert_allclose(low + high, 0.0, atol=SINGLE)
    np.testing.assert_allclose(high - low, size, rtol=0.01)


def test_invalid_visuals_are_reported_without_failing():
    for body in ('<visual/>', '<visual><geometry/></visual>',
                 '<visual><geometry><box size="1 2"/></geometry></visual>',
                 '<visual><geometry><mesh/></geometry></visual>'):
        found = load(one_link(body))
        assert 0 in found.shapes and len(found.notes) == 1 and "link 'a'" in found.notes[0]
    for material in ('<material name="unknown"/>', '<material><color rgba="red"/></material>',
                     '<material><color rgba="1 2 3 4"/></material>', '<material/>'):
        found = load(one_link(
            f'<visual><geometry><sphere radius="1"/></geometry>{material}</visual>'))
        assert found.notes == ()


def test_colors_are_those_of_materials():
    text = ('<robot name="r"><material name="red"><color rgba="1 0 0 1"/></material>'
            '<link name="a"><visual><geometry><sphere radius="1"/></geometry>'
            '<material name="red"/></visual>'
            '</link></robot>')
    mesh, = trimesh.load_scene(io.BytesIO(load(text).shapes[0]),
                               file_type='glb').geometry.values()
    assert tuple(mesh.visual.material.baseColorFactor) == (255, 0, 0, 255)


def test_links_without_mass_or_shape_are_not_drawn():
    assert load(one_link('', '')).shapes == {}


@pytest.mark.parametrize('name', ['panda.urdf', 'ur5_robot.urdf', 'talos_reduced.urdf'])
def test_real_robots_have_their_meshes(name):
    path = example_urdf(name)
    model = load_quietly(path)
    found = load_geometry(model, path.read_bytes(), path.parent)
    assert found.notes == ()
    heavy = {k for k, link in enumerate(model.links) if link.mass > 0.0}
    assert heavy <= set(found.shapes)
