# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is started with ros2_control: names, order, and joints that are the same everywhere."""

from pathlib import Path
import runpy
from xml.etree import ElementTree

import pytest
from rbd_ros import load_urdf_string
from rbd_ros.ros.commands.effort_commands import COMPLETE
from rbd_ros.ros.launch.bringup_plan import ARGUMENTS, plan, single_joints, with_mock_hardware
from rbd_ros.ros.launch.launch_plan import LaunchError
import yaml

HERE = Path(__file__).parents[2]
CONFIG = HERE / 'config' / 'ros2_control'
DEMO_ARM = ['shoulder_pan', 'shoulder_lift', 'upper_arm_roll', 'elbow', 'forearm_roll',
            'wrist_pitch', 'flange_roll']
LINK = """<link name="{0}"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1"
iyz="0" izz="0.1"/></inertial></link>"""
# Joints that a controller cannot command among those that it can.
ROBOT = ('<robot name="arm"><!-- kept --><link name="stand"/>'
         + ''.join(LINK.format(name) for name in 'abcd') + """
<joint name="zeta" type="revolute"><parent link="stand"/><child link="a"/><axis xyz="0 1 0"/>
<limit lower="0.5" upper="1.5" effort="10" velocity="1"/></joint>
<joint name="follower" type="continuous"><parent link="a"/><child link="b"/><axis xyz="0 1 0"/>
<mimic joint="zeta"/></joint>
<joint name="table" type="planar"><parent link="stand"/><child link="c"/></joint>
<joint name="alpha" type="prismatic"><parent link="c"/><child link="d"/><axis xyz="1 0 0"/>
<limit lower="-1" upper="1" effort="10" velocity="1"/></joint></robot>""")
HARDWARE = """<ros2_control name="drives" type="system"><hardware><plugin>my_robot/Drives</plugin>
</hardware>{}</ros2_control></robot>"""
JOINT = """<joint name="{}"><command_interface name="{}"/><state_interface name="position"/>
<state_interface name="{}"/></joint>"""


def everything(package, executable):
    """Say that everything is installed."""
    return True


@pytest.fixture
def arm(tmp_path):
    """Return a function that writes a robot, and returns its path."""
    def write(text=ROBOT):
        (tmp_path / 'arm.urdf').write_text(text)
        return str(tmp_path / 'arm.urdf')
    return write


@pytest.fixture
def start(tmp_path):
    """Return a function that returns what is started."""
    return lambda **values: plan(values, tmp_path, everything)


def description(bringup):
    """Return the URDF that everybody is given."""
    publisher, = (one for one in bringup.robot if one.executable == 'robot_state_publisher')
    return publisher.parameters[0]['robot_description']


def own(bringup):
    """Return the parameters of the node that are not in files."""
    return bringup.node.parameters[-1]


def controllers(bringup):
    """Return the parameters of the controllers by node, from the file that they are given."""
    manager, = (one for one in bringup.robot if one.executable == 'ros2_control_node')
    path = manager.parameters[0]
    for spawner in (*bringup.loading, bringup.activating):
        assert spawner.arguments[spawner.arguments.index('--param-file') + 1] == path
    return {key.removeprefix('/**/'): section['ros__parameters']
            for key, section in yaml.safe_load(Path(path).read_text()).items()}


def test_without_arguments_the_demo_arm_has_mock_hardware(start):
    bringup = start()
    system = ElementTree.fromstring(description(bringup)).find('ros2_control')
    assert system.get('type') == 'system'
    assert system.findtext('hardware/plugin') == 'mock_components/GenericSystem'
    assert [joint.get('name') for joint in system.findall('joint')] == DEMO_ARM
    for joint in system.findall('joint'):
        assert [one.get('name') for one in joint.findall('command_interface')] == ['effort']
        assert [one.get('name') for one in joint.findall('state_interface')] == [
            'position', 'velocity', 'effort']
    bent = [float(joint.findtext('state_interface/param')) for joint in system.findall('joint')]
    assert bent == [0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0]
    assert bringup.node.executable == 'dynamics_node'


def test_controllers_and_node_have_the_same_joints_in_the_same_order(start, arm):
    for model in ('', arm()):
        bringup = start(model=model)
        given = controllers(bringup)['effort_controller']
        assert given['interface_name'] == 'effort'
        system = ElementTree.fromstring(description(bringup)).find('ros2_control')
        assert given['joints'] == own(bringup)['command_joints'] == [
            joint.get('name') for joint in system.findall('joint')]
    # As in the description, and none that takes its motion from another or has several velocities.
    assert given['joints'] == ['zeta', 'alpha']


def test_the_file_of_controllers_is_that_of_the_demo_arm(start):
    bringup = start()
    assert controllers(bringup) == controllers(
        start(controllers=str(CONFIG / 'controllers.yaml')))
    assert controllers(bringup)['effort_controller']['joints'] == DEMO_ARM


def test_names_are_those_of_ros2_control(start):
    bringup = start(mode='gravity')
    given = controllers(bringup)
    assert set(given) == {'controller_manager', 'joint_state_broadcaster', 'effort_controller'}
    manager = given['controller_manager']
    assert isinstance(manager['update_rate'], int)
    # As in the plugin descriptions of these packages.
    assert manager['joint_state_broadcaster']['type'] == (
        'joint_state_broadcaster/JointStateBroadcaster')
    assert manager['effort_controller']['type'] == (
        'forward_command_controller/ForwardCommandController')
    # The topic of a forward_command_controller, and those of a broadcaster that are not its own.
    assert bringup.node.remappings == (('~/effort_commands', 'effort_controller/commands'),)
    assert given['joint_state_broadcaster']['use_local_topics'] is False
    assert {(one.package, one.executable) for one in bringup.loading} == {
        ('controller_manager', 'spawner')}


def test_the_controller_is_inactive_until_commands_are_complete(start):
    bringup = start()
    assert [one.arguments[0] for one in bringup.loading] == [
        'joint_state_broadcaster', 'effort_controller']
    assert ['--inactive' in one.arguments for one in bringup.loading] == [False, True]
    assert bringup.activating.arguments[0] == 'effort_controller'
    assert '--inactive' not in bringup.activating.arguments
    # Spawners end; the others may not.
    once = {id(one): one.once for one in (
        *bringup.robot, *bringup.loading, bringup.node, bringup.activating)}
    assert list(once.values()) == [False, False, True, True, False, True]
    assert all(one.required for one in (*bringup.robot, *bringup.loading, bringup.node,
                                        bringup.activating))
    assert 'full size' in COMPLETE


@pytest.mark.parametrize('own_file', [False, True])
def test_switching_is_strict_whatever_the_distribution_and_the_file_of_controllers(
        start, tmp_path, own_file):
    values = {}
    if own_file:
        path = file_of_controllers(tmp_path)
        content = yaml.safe_load(path.read_text())
        content['/**/controller_manager']['ros__parameters']['defaults'] = {
            'switch_controller': {'strictness': 'best_effort'}}
        path.write_text(yaml.safe_dump(content))
        values['controllers'] = str(path)
    bringup = start(**values)
    manager, = (one for one in bringup.robot if one.executable == 'ros2_control_node')
    # The last of the parameters counts. Name and values as in controller_manager_parameters.yaml
    # of ros2_control 5.16, where 'best_effort' is the default; 6.0 has 'strict'.
    assert manager.parameters[-1]['defaults.switch_controller.strictness'] == 'strict'
    for spawner in (*bringup.loading, bringup.activating):
        # Options that every supported spawner has; it always requests strict switching itself.
        assert {word for word in spawner.arguments if word.startswith('--')} <= {
            '--param-file', '--controller-manager', '--controller-manager-timeout', '--inactive'}


def test_commands_begin_with_a_blend_and_end_at_zero(start, tmp_path):
    files = [Path(path) for path in start().node.parameters[:-1]]
    assert [path.name for path in files] == ['dynamics.param.yaml', 'commands.param.yaml']
    # A file of one's own counts more.
    mine = tmp_path / 'mine.yaml'
    mine.write_text('/**:\n  ros__parameters:\n    blend_time: 1.0\n')
    assert [Path(path).name for path in start(params=str(mine), mode='gravity').node.parameters[
        :-1]] == ['commands.param.yaml', 'mine.yaml']
    values = yaml.safe_load((CONFIG / 'commands.param.yaml').read_text())['/**'][
        'ros__parameters']
    assert values == {'blend_time': 0.5, 'on_stale': 'ramp_down', 'limit_efforts': True}


def test_with_a_mode_the_torque_controller_is_fed(start):
    bringup = start(mode='computed_torque', robot='ur')
    assert (bringup.node.executable, bringup.node.name) == ('torque_controller',) * 2
    assert own(bringup)['mode'] == 'computed_torque'
    assert [Path(path).name for path in bringup.node.parameters[:-1]] == [
        'ur.yaml', 'dynamics.param.yaml', 'torque_controller.param.yaml', 'commands.param.yaml']


def test_mock_hardware_is_where_joints_can_be_and_the_robot_stays_the_same(arm):
    text = with_mock_hardware(ROBOT)
    joints = {joint.get('name'): joint for joint in
              ElementTree.fromstring(text).findall('ros2_control/joint')}
    assert {name: float(joint.findtext('state_interface/param'))
            for name, joint in joints.items()} == {'zeta': 1.0, 'alpha': 0.0}
    before, after = load_urdf_string(ROBOT), load_urdf_string(text)
    assert after.velocity_names == before.velocity_names
    assert single_joints(after) == ['zeta', 'alpha']
    assert '<!-- kept -->' in text


def test_a_robot_of_ones_own_stands_where_its_limits_allow_it(start, arm):
    joints = ElementTree.fromstring(description(start(model=arm()))).iterfind(
        'ros2_control/joint')
    assert [float(joint.findtext('state_interface/param')) for joint in joints] == [1.0, 0.0]


def test_hardware_of_ones_own_is_left_alone(start, arm):
    text = ROBOT.replace('</robot>', HARDWARE.format(''.join(
        JOINT.format(name, 'effort', 'velocity') for name in ('zeta', 'alpha'))))
    assert description(start(model=arm(text))) == text


def test_joints_may_be_in_another_order_and_fewer(start, arm, tmp_path):
    for joints in (['alpha', 'zeta'], ['alpha']):
        path = file_of_controllers(tmp_path, joints=joints)
        bringup = start(model=arm(), controllers=str(path))
        assert own(bringup)['command_joints'] == joints
        assert controllers(bringup)['effort_controller']['joints'] == joints


def file_of_controllers(folder, kind='forward_command_controller/ForwardCommandController',
                        **changes):
    """Return a file with changes of the effort controller."""
    content = yaml.safe_load((CONFIG / 'controllers.yaml').read_text())
    content['/**/controller_manager']['ros__parameters']['effort_controller']['type'] = kind
    content['/**/effort_controller']['ros__parameters'].update(changes)
    path = folder / 'mine.yaml'
    path.write_text(yaml.safe_dump(content))
    return path


@pytest.mark.parametrize('changes, message', [
    ({'joints': ['elbow', 'wrist']}, "names the joint 'wrist' which the robot lacks; it has "
                                     'shoulder_pan'),
    ({'joints': ['elbow', 'elbow']}, "names the joint 'elbow' twice"),
    ({'joints': []}, 'effort_controller has no joints; those of the robot are shoulder_pan'),
    ({'interface_name': 'velocity'}, 'interface_name of effort_controller must be effort'),
    ({'kind': 'joint_trajectory_controller/JointTrajectoryController'},
     'must have the type forward_command_controller/ForwardCommandController, got joint_traj')])
def test_controllers_that_do_not_fit_start_nothing(start, tmp_path, changes, message):
    with pytest.raises(LaunchError, match=message):
        start(controllers=str(file_of_controllers(tmp_path, **changes)))


@pytest.mark.parametrize('listed, own, message', [
    ('effort_controller: 5', 'type: mine', 'must have the type .*, got mine'),
    ('effort_controller: {type: theirs}', 'type: mine', 'got theirs'),
    ('other: 5', 'joints: []', 'got None'), ('[', '', 'this is not YAML')])
def test_the_type_of_the_controller_is_that_which_the_manager_has(start, tmp_path, listed, own,
                                                                  message):
    path = tmp_path / 'controllers.yaml'
    path.write_text(f'controller_manager:\n  ros__parameters:\n    {listed}\n'
                    f'effort_controller:\n  ros__parameters:\n    {own}\n')
    with pytest.raises(LaunchError, match=message):
        start(controllers=str(path))


@pytest.mark.parametrize('interfaces, message', [
    ([('zeta', 'effort', 'velocity')], "no command_interface 'effort' for the joint 'alpha'"),
    ([('zeta', 'effort', 'velocity'), ('alpha', 'position', 'velocity')],
     "no command_interface 'effort' for the joint 'alpha'"),
    ([('zeta', 'effort', 'effort'), ('alpha', 'effort', 'velocity')],
     "no state_interface 'velocity' for the joint 'zeta'")])
def test_hardware_that_does_not_take_torques_starts_nothing(start, arm, interfaces, message):
    text = ROBOT.replace('</robot>', HARDWARE.format(''.join(
        JOINT.format(*one) for one in interfaces)))
    with pytest.raises(LaunchError, match=message):
        start(model=arm(text))


@pytest.mark.parametrize('values, message', [
    ({'model': 'none'}, 'ros2_control needs the description'),
    ({'controllers': '/nowhere/my.yaml'}, 'controllers: there is no file /nowhere/my.yaml'),
    ({'params': '/nowhere/my.yaml'}, 'params: there is no file /nowhere/my.yaml'),
    ({'mode': 'fly'}, "mode: there is no 'fly'"),
    ({'namespace': 'a b'}, "namespace: 'a b' is not a valid name"),
    ({'use_sim_time': '2'}, 'use_sim_time must be true or false'),
    ({'task_link': 'e'}, "task_link: the robot has no link 'e', only base_link, shoulder"),
    ({'sim': 'true'}, "there is no argument 'sim'")])
def test_a_bad_argument_starts_nothing(start, values, message):
    with pytest.raises(LaunchError, match=message):
        start(**values)


@pytest.mark.parametrize('text, message', [('a: [', 'mine.yaml'), ('7', 'has no parameters')])
def test_a_file_that_cannot_be_read_starts_nothing(start, tmp_path, text, message):
    (tmp_path / 'mine.yaml').write_text(text)
    with pytest.raises(LaunchError, match=message):
        start(controllers=str(tmp_path / 'mine.yaml'))


@pytest.mark.parametrize('missing', ['controller_manager', 'robot_state_publisher',
                                     'forward_command_controller', 'joint_state_broadcaster'])
def test_a_package_that_is_missing_starts_nothing(tmp_path, missing):
    with pytest.raises(LaunchError, match=f'{missing} is not installed.*sudo apt install '
                                          f'ros-.ROS_DISTRO-{missing.replace("_", "-")}$'):
        plan({}, tmp_path, lambda package, executable: package != missing)


def test_every_argument_is_on_the_page():
    page = runpy.run_path(str(HERE / 'doc/generate.py'))['parameters_page']()
    page = page.partition('### bringup.launch.py')[2].partition('\n##')[0]
    for name in ARGUMENTS:
        assert f'`{name}`' in page
