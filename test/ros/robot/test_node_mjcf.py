# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Nodes, launch files and the demo take a robot description that is MJCF."""

from loop_robots import URDF
import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.demo.command import prepare
from rbd_ros.ros.launch import bringup_plan, launch_plan
from rbd_ros.ros.launch.launch_files import LaunchError
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rbd_ros.ros.robot.read_model import load_quietly
from rclpy.parameter import Parameter
from std_msgs.msg import String

pytest.importorskip('mujoco')
pytestmark = pytest.mark.usefixtures('domain')
TEXT = """<mujoco model="swing"><compiler angle="radian"/><worldbody><body name="bob">
<joint name="hinge" axis="0 1 0" range="-2 2" stiffness="3"/>
<inertial pos="0.4 0 0" mass="2" diaginertia=".01 .01 .01"/></body></worldbody></mujoco>"""


def test_the_node_takes_mjcf(harness):
    node = harness(TEXT)
    got = node.answer(['hinge'], np.array([0.3]), np.array([0.5]))
    model = rbd_ros.load_mjcf(TEXT)
    assert list(got.joint_names) == ['hinge']
    assert np.allclose(got.gravity_torques, rbd_ros.gravity_torques(model, [0.3]), atol=1e-12)
    assert node.node.robot.model.stiffness[0] == 3.0


@pytest.mark.parametrize('ignored, text', [([], 'the fluid (option density'), (['fluid'], '')])
def test_elements_of_mjcf_that_are_refused_are_named_and_may_be_left_out(ignored, text):
    node = DynamicsNode(parameter_overrides=[
        Parameter('ignore', Parameter.Type.STRING_ARRAY, ignored)])
    node.listening._on_description(String(data=TEXT.replace(
        '</mujoco>', '<option density="1.2"/></mujoco>')))
    assert text in node.report.last_error
    assert bool(node.robot) is bool(ignored)
    node.listening._on_description(String(data=(URDF / 'demo_arm.urdf').read_text()))
    assert ('not MJCF: there is nothing to ignore' in node.report.last_error) is bool(ignored)
    node.destroy_node()


@pytest.fixture
def path(tmp_path):
    """Return a file with a robot that includes another file."""
    body, rest = TEXT[TEXT.index('<joint'):].split('</body>')
    (tmp_path / 'hinge.xml').write_text(f'<mujocoinclude>{body}</mujocoinclude>')
    file = tmp_path / 'robot.xml'
    file.write_text(TEXT[:TEXT.index('<joint')] + '<include file="hinge.xml"/></body>' + rest)
    return file


@pytest.mark.parametrize('kind', [SimulatedRobot, RobotInMujoco])
def test_robots_of_mjcf_files_are_simulated(path, kind):
    node = kind(parameter_overrides=[Parameter('urdf', value=str(path)),
                                     Parameter('initial_positions', value=[0.3]),
                                     Parameter('tolerated_delay', value=0.0)])
    try:
        engine, model = node._engine, rbd_ros.load_mjcf(path)
        engine.advance([1.0], 1)
        expected = rbd_ros.forward_dynamics(
            model, [0.3], [0.0], 1.0 - rbd_ros.spring_torques(model, [0.3]))
        # One step of 1 ms from rest.
        assert engine.measure().v == pytest.approx(1e-3 * expected, rel=1e-2)
    finally:
        node.destroy_node()


def test_launch_files_take_mjcf_without_a_publisher_of_frames(path):
    started = {one.executable: one for one in launch_plan.plan(
        {'model': str(path), 'sim': 'true', 'view': 'true'})}
    assert set(started) == {'dynamics_node', 'simulated_robot', 'viewer'}
    for process in started.values():
        text = process.parameters[-1]['robot_description']
        assert load_quietly(text).velocity_names == ('hinge',)
    with pytest.raises(LaunchError, match='robot_state_publisher reads URDF, not MJCF'):
        launch_plan.plan({'model': str(path), 'robot_state_publisher': 'true'})
    with pytest.raises(LaunchError, match='ros2_control needs a URDF'):
        bringup_plan.plan({'model': str(path)})


def test_the_demo_takes_mjcf():
    mode, node, line = prepare('gravity', TEXT, load_quietly(TEXT), '')
    assert node == 'mujoco_robot' and mode.model.velocity_names == ('hinge',), line
