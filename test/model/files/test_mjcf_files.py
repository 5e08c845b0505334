# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""MJCF files become texts that compile anywhere, and MuJoCo moves their robots."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import with_friction, with_springs
from rbd_ros.model.files.any_format import load_text, read_description
from rbd_ros.model.files.mjcf import compile_mjcf, load_mjcf
from rbd_ros.simulation import Load, MujocoRobot

oracle = pytest.importorskip('mjcf_oracle')

# Rounding, N m, and rad/s^2 after a hundred steps of a microsecond.
EXACT, MOVED = 1e-10, 1e-3
pytestmark = pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
MESH = """v 0 0 0\nv .1 0 0\nv 0 .2 0\nv 0 0 .3\nf 1 3 2\nf 1 2 4\nf 1 4 3\nf 2 3 4\n"""
ARM = """<mujoco model="arm"><compiler angle="radian"/><option gravity="0 0 -9.81"/><worldbody>
<geom type="plane" size="1 1 1" pos="0 0 .2"/>
<body name="upper" pos="0 0 .5"><joint name="a" axis="0 1 0" pos="0 .1 0" armature=".2"/>
 <inertial pos=".2 0 .1" mass="2" fullinertia=".05 .04 .03 .002 .003 .001"/>
 <body name="lower" pos=".4 0 0" gravcomp="1"><joint axis="0 0 1"/><joint name="c" axis="1 1 0"/>
  <inertial pos=".2 0 .1" mass="1" fullinertia=".05 .04 .03 .002 .003 .001"/>
  <geom size=".5" mass="0"/></body></body></worldbody>
<actuator><position joint="a" kp="1000" forcerange="-500 500"/>
<general joint="c" gear="2" armature=".05" biastype="affine" biasprm="3 0 0"/></actuator></mujoco>
"""


def write_robot(folder, compiler=''):
    """Write a robot whose mass is that of meshes, with an included file, and return its path."""
    assets = folder / 'parts' / 'meshes'
    assets.mkdir(parents=True)
    for name in ('one', 'two'):
        (assets / f'{name}.obj').write_text(MESH)
    (folder / 'parts' / 'assets.xml').write_text(
        f'<mujocoinclude>{compiler}<asset><mesh name="one" file="{{}}one.obj"/></asset>'
        '<include file="parts/more.xml"/></mujocoinclude>'.format(
            '' if compiler else 'parts/meshes/'))
    (folder / 'parts' / 'more.xml').write_text(
        '<mujocoinclude><asset><mesh name="two" file="{}two.obj" scale="2 1 1"/></asset>'
        '</mujocoinclude>'.format('' if compiler else 'parts/meshes/'))
    path = folder / 'robot.xml'
    path.write_text("""<mujoco><include file="parts/assets.xml"/><worldbody>
        <body name="b" pos="0 0 1"><joint name="j" axis="0 1 0"/><geom type="mesh" mesh="one"/>
        <geom type="mesh" mesh="two" pos=".3 0 0"/></body></worldbody></mujoco>""")
    return path


@pytest.mark.parametrize('compiler', ['', '<compiler meshdir="parts/meshes"/>',
                                      '<compiler assetdir="parts/meshes"/>'])
def test_texts_of_files_compile_without_their_folder(tmp_path, monkeypatch, compiler):
    path = write_robot(tmp_path / 'robot', compiler)
    expected, text = load_mjcf(path), read_description(path)
    (tmp_path / 'elsewhere').mkdir()
    monkeypatch.chdir(tmp_path / 'elsewhere')
    found = load_text(text)
    assert found.mass == expected.mass > 0.0
    assert np.array_equal(rbd_ros.mass_matrix(found, [0.3]), rbd_ros.mass_matrix(expected, [0.3]))


def test_files_that_include_themselves_are_refused(tmp_path):
    path = tmp_path / 'robot.xml'
    path.write_text('<mujoco><include file="robot.xml"/></mujoco>')
    with pytest.raises(rbd_ros.ModelError, match='twice'):
        read_description(path)
    (tmp_path / 'part.xml').write_text('<mujocoinclude/>')
    path.write_text('<mujoco><include file="part.xml"/><include file="part.xml"/></mujoco>')
    with pytest.raises(rbd_ros.ModelError, match=r'part\.xml twice'):
        read_description(path)
    path.write_text('<mujoco><include file="nowhere.xml"/></mujoco>')
    with pytest.raises(rbd_ros.RbdError, match=r'nowhere\.xml cannot be read'):
        read_description(path)


def test_urdf_is_read_as_it_is(tmp_path):
    path = tmp_path / 'robot.urdf'
    path.write_text('<?xml version="1.0"?>\n<robot name="r"><link name="a"/></robot>')
    assert read_description(path).strip() == '<robot name="r"><link name="a"/></robot>'


LOAD = (0.8, (0.03, -0.02, 0.08), np.array([[4e-3, 5e-4, 0], [5e-4, 3e-3, 1e-4], [0, 1e-4, 3e-3]]))


def test_mujoco_moves_a_robot_of_mjcf_by_its_joint_torques_alone():
    model = with_springs(with_friction(load_mjcf(ARM), damping=[0.3, 0.2, 0.1]),
                         stiffness=[3.0, 2.0, 1.0], spring_reference=[0.5, -0.5, 1.0])
    assert model.velocity_names == ('a', 'joint_1', 'c')
    q, v, a = np.array([0.3, -0.5, 0.7]), np.array([1.0, -2.0, 0.5]), np.array([3.0, 1.0, -2.0])
    for load in (None, Load('lower', *LOAD)):
        loaded = rbd_ros.with_payload(model, 'lower', *LOAD) if load else model
        robot = MujocoRobot(ARM, model, q, step=1e-6, load=load)
        assert np.allclose(robot.inverse_dynamics(q, v, a),
                           rbd_ros.inverse_dynamics(loaded, q, v, a), rtol=0, atol=EXACT)
        robot.push('lower', [1.0, 2.0, -1.0, 20.0, -30.0, 10.0])
        robot.advance([1.0, 2.0, 3.0], 100)
        # No actuator, contact with the floor, or compensation of gravity acts.
        R = rbd_ros.forward_kinematics(model, q)[model.link_index('lower')][:3, :3]
        wrench = np.concatenate([R.T @ [1.0, 2.0, -1.0], R.T @ [20.0, -30.0, 10.0]])
        expected = rbd_ros.forward_dynamics(
            loaded, q, np.zeros(3), [1.0, 2.0, 3.0] - rbd_ros.spring_torques(model, q),
            external_wrenches={'lower': wrench})
        assert np.allclose(robot.v / 1e-4, expected, rtol=MOVED, atol=0)


def test_robots_of_mjcf_that_mujoco_cannot_move_are_refused():
    model = load_mjcf(ARM)
    with pytest.raises(rbd_ros.ModelError, match='locked'):
        MujocoRobot(ARM, rbd_ros.with_locked_joints(model, {'c': 0.1}))
    with pytest.raises(rbd_ros.ModelError, match="no link 'nowhere'"):
        MujocoRobot(ARM, model, load=Load('nowhere', *LOAD))
    with pytest.raises(rbd_ros.ModelError, match="'world' is part of the root"):
        MujocoRobot(ARM, model).push('world', np.zeros(6))
    assert compile_mjcf(ARM).nv == 3
