# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""RViz shows the robot that the node has, also one that another node or a MJCF file describes."""

from pathlib import Path
from xml.etree import ElementTree

from loop_robots import URDF
import numpy as np
import pytest
from rbd_ros import forward_kinematics, random_configuration
from rbd_ros.ros.launch.launch_plan import LaunchError, plan
from rbd_ros.ros.messages.topics import all_coordinates, TOPICS
from rbd_ros.ros.robot.read_model import load_quietly
from sensor_msgs.msg import JointState
import yaml

ARM = """<robot name="arm"><link name="{root}"/><link name="rod"><inertial><mass value="1"/>
<inertia ixx=".1" ixy="0" ixz="0" iyy=".1" iyz="0" izz=".1"/></inertial></link><joint name="hinge"
type="continuous"><parent link="{root}"/><child link="rod"/></joint></robot>"""
BOB = """<inertial pos="0.4 0 0" mass="2" diaginertia=".01 .02 .02"/>"""
SWING = f"""<mujoco model="swing"><compiler angle="radian"/><worldbody><body name="rail"
pos="0 .1 .9"><joint name="slide" type="slide" axis="0 1 0"/>{BOB}<body name="bob"
euler=".1 .2 .3"><joint name="hinge" axis="0 1 0" range="-2 2"/><joint
name="twist" axis="1 0 0" pos="0 0 .2"/>{BOB}</body></body></worldbody></mujoco>"""
FLOATING = SWING.replace('<joint name="slide" type="slide" axis="0 1 0"/>', '<freejoint/>')
FOUR_BAR = f"""<mujoco model="bars"><worldbody><body name="a"><joint name="a" axis="0 1 0"/>{BOB}
<body name="b" pos="0 0 1"><joint name="b" axis="0 1 0"/>{BOB}<body name="c" pos="1 0 0"><joint
name="c" axis="0 1 0"/>{BOB}</body></body></body></worldbody><equality><connect body1="c"
anchor="0 0 -1"/></equality></mujoco>"""
OWN = 'dynamics/full_joint_states'


def start(published=None, log=pytest.fail, **values):
    """Return what is started with RViz, by executable, next to a node that publishes something."""
    processes = plan({'rviz': 'true', **values}, lambda topic: published, log)
    return {one.executable: one for one in processes}


def fixed_frame(nodes):
    """Return the fixed frame that RViz is given, or None."""
    given = nodes['rviz2'].arguments
    return given[given.index('-f') + 1] if '-f' in given else None


def shown(nodes):
    """Return the displays of RViz by name."""
    config = yaml.safe_load(Path(nodes['rviz2'].arguments[1]).read_text())
    return {one['Name']: one for one in config['Visualization Manager']['Displays']}


@pytest.fixture
def file(tmp_path):
    """Return a function that writes a description to a file."""
    def write(text):
        path = tmp_path / 'robot.xml'
        path.write_text(text)
        return str(path)
    return write


def test_the_fixed_frame_is_the_root_of_the_robot_that_another_node_describes(file):
    published = '/driver', ARM.format(root='base')
    nodes = start(published, model='none', frame_prefix='left/')
    # The other node has its own publisher of frames.
    assert list(nodes) == ['dynamics_node', 'rviz2'] and fixed_frame(nodes) == 'left/base'
    assert shown(nodes)['Robot']['TF Prefix'] == 'left'
    assert {one.get('TF Prefix') for one in shown(nodes).values() if one['Class'] in (
        'rviz_default_plugins/Effort', 'rviz_default_plugins/RobotModel')} == {'left'}
    assert shown(nodes)['Robot']['Description Topic']['Value'] == 'robot_description'
    assert nodes['rviz2'].remappings == ()
    # Also where a file was given, which is not used then.
    said = []
    nodes = start(published, said.append, model=file(ARM.format(root='stand')))
    assert fixed_frame(nodes) == 'base' and len(said) == 1 and 'is not used' in said[0]


def test_rviz_may_show_frames_of_a_description_without_a_publisher_of_frames():
    published = '/driver', ARM.format(root='base')
    nodes = start(published, model='none', robot_state_publisher='true', joint_states='/states')
    frames = nodes['robot_state_publisher']
    assert frames.parameters[0]['robot_description'] == published[1]
    # /robot_description has one publisher.
    other, = {one for one in frames.remappings if one[0] == 'robot_description'}
    assert other in nodes['rviz2'].remappings and other[1] not in TOPICS
    assert ('joint_states', '/states') in frames.remappings


def test_the_effort_displays_of_rviz_show_messages_with_joint_names_of_the_node():
    for mode, name in (('', 'dynamics'), ('gravity', 'torque_controller')):
        nodes = start(mode=mode)
        displays = [one for one in shown(nodes).values() if one['Class'].endswith('/Effort')]
        topics = dict(nodes['rviz2'].remappings)
        assert len(displays) == 2
        for one in displays:
            topic = one['Topic']['Value']
            topic = topics.get(topic, topic)
            assert topic.partition('/')[0] == name
            assert TOPICS['~/' + topic.partition('/')[2]].kind is JointState
            assert one['Robot Description'] == 'robot_description'


def test_without_rviz_launch_does_not_wait_for_a_description():
    assert plan({'model': 'none'}, pytest.fail)


def test_a_robot_that_is_not_described_yet_has_no_fixed_frame():
    said = []
    nodes = start(None, said.append, model='none')
    assert list(nodes) == ['dynamics_node', 'rviz2'] and fixed_frame(nodes) is None
    assert len(said) == 1 and 'set the Fixed Frame of RViz' in said[0]


@pytest.mark.parametrize('text', ['hello', '<robot name="r"/>'])
def test_a_published_description_that_is_no_robot_starts_nothing(text):
    with pytest.raises(LaunchError, match='the description of /driver: '):
        start(('/driver', text), model='none')


@pytest.mark.parametrize('text, root', [(SWING, 'world'), (FLOATING, 'rail'),
                                        (FOUR_BAR, 'world')])
@pytest.mark.parametrize('is_file', [True, False])
def test_the_frames_of_mjcf_are_published_for_rviz(text, root, is_file, file):
    pytest.importorskip('mujoco')
    nodes = (start(model=file(text), frame_prefix='left/') if is_file else
             start(('/driver', text), model='none', frame_prefix='left/'))
    assert list(nodes) == ['dynamics_node', 'robot_state_publisher', 'rviz2']
    assert fixed_frame(nodes) == f'left/{root}'
    assert shown(nodes)['Dynamics']['Namespaces']['ellipsoids'] is True
    frames = nodes['robot_state_publisher']
    urdf, model = frames.parameters[0]['robot_description'], load_quietly(text)
    assert frames.parameters[0]['frame_prefix'] == 'left/'
    # Nodes that want the robot itself are not given this URDF.
    (_, topic), = {one for one in frames.remappings if one[0] == 'robot_description'}
    assert ('robot_description', topic) in nodes['rviz2'].remappings
    assert ('robot_description' in nodes['dynamics_node'].parameters[-1]) == is_file
    # What urdfdom requires of joints, which MJCF does not have.
    for joint in ElementTree.fromstring(urdf).iterfind('joint'):
        if joint.get('type') in ('revolute', 'prismatic', 'continuous'):
            limit = joint.find('limit')
            assert limit.get('effort') and limit.get('velocity')
            assert joint.get('type') == 'continuous' or limit.get('lower') < limit.get('upper')
    # The same frames, relative to the fixed one, at positions that the node publishes by name.
    there, tree = load_quietly(urdf), model.unconstrained
    q = random_configuration(tree, np.random.default_rng(0))
    names, places, _ = all_coordinates(model)
    values = dict(zip(names, q[places]))
    assert set(there.position_names) <= set(names)
    expected = dict(zip(tree.link_names, forward_kinematics(tree, q)))
    found = forward_kinematics(there, [values[name] for name in there.position_names])
    for name, pose in zip(there.link_names, found):
        np.testing.assert_allclose(expected[root] @ pose, expected[name], atol=1e-12)
    assert set(there.link_names) >= set(tree.link_names) - {'world'}


def test_the_node_gives_positions_of_passive_joints_to_the_publisher_of_frames(file):
    pytest.importorskip('mujoco')
    closed = (URDF / 'four_bar.urdf').read_text()
    for text, topic in ((ARM.format(root='base'), 'joint_states'), (closed, OWN),
                        (SWING, 'joint_states'), (FOUR_BAR, OWN)):
        nodes = start(model=file(text))
        assert ('joint_states', topic) in nodes['robot_state_publisher'].remappings
    assert f'~/{OWN.partition("/")[2]}' in TOPICS


def test_frames_of_mjcf_are_published_only_where_they_are_wanted(file):
    pytest.importorskip('mujoco')
    for values in ({'rviz': 'false'}, {'robot_state_publisher': 'false'}):
        assert 'robot_state_publisher' not in start(model=file(SWING), **values)
    nodes = start(model=file(SWING), sim='true')
    assert nodes['simulated_robot'].parameters[0]['publish_description'] is True
    assert nodes['simulated_robot'].parameters[0]['robot_description'].startswith('<mujoco')
    assert shown(start())['Dynamics']['Namespaces']['ellipsoids'] is False
