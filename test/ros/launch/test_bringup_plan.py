# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is started with ros2_control: names, order, and joints that are the same everywhere."""

import json
import os
from pathlib import Path
from types import SimpleNamespace
from xml.etree import ElementTree

from demo_gains import launched, made, warning
import pytest
from rbd_ros import load_urdf, load_urdf_string
from rbd_ros.control.generated_controller import controller_files
from rbd_ros.control.laws import control_laws
from rbd_ros.ros.commands.effort_commands import COMPLETE
from rbd_ros.ros.launch.bringup_plan import (
    ARGUMENTS, plan, single_joints, with_mock_hardware)
from rbd_ros.ros.launch.launch_files import values_for
from rbd_ros.ros.launch.launch_plan import check_installed, LaunchError
from rbd_ros.ros.nodes.controller_guard import start as start_guard
from rbd_ros.ros.runtime.share_directory import share
from rclpy.parameter import Parameter
import yaml

HERE = Path(__file__).parents[3]
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
PARTS = {'robot': ['robot_state_publisher', 'ros2_control_node', 'rviz2'], 'loading': ['spawner'],
         'node': ['dynamics_node', 'torque_controller'], 'guard': ['controller_guard']}
JOINT = """<joint name="{}"><command_interface name="{}"/><state_interface name="position"/>
<state_interface name="{}"/></joint>"""


@pytest.fixture
def arm(tmp_path):
    """Return a function that writes a robot, and returns its path."""
    def write(text=ROBOT):
        (tmp_path / 'arm.urdf').write_text(text)
        return str(tmp_path / 'arm.urdf')
    return write


def start(hear=None, log=pytest.fail, call=None, **values):
    """Return what is started, by its part in the bring-up."""
    processes = plan(values, hear, log, call)
    parts = {name: [one for one in processes if one.executable in executables]
             for name, executables in PARTS.items()}
    assert [one for part in parts.values() for one in part] == processes
    # Each step but the first waits for the one before it.
    steps = processes[len(parts['robot']):]
    assert [one.waits for one in processes] == [False] * len(parts['robot']) + [
        one is not steps[0] for one in steps]
    node, guard = (next(iter(parts[name]), None) for name in ('node', 'guard'))
    return SimpleNamespace(robot=parts['robot'], loading=parts['loading'], node=node, guard=guard)


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
    for spawner in bringup.loading:
        assert spawner.arguments[spawner.arguments.index('--param-file') + 1] == path
    return {key.removeprefix('/**/'): section['ros__parameters']
            for key, section in yaml.safe_load(Path(path).read_text()).items()}


def test_without_arguments_the_demo_arm_has_mock_hardware():
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


def test_controllers_and_node_have_the_same_joints_in_the_same_order(arm):
    for model in ('', arm()):
        bringup = start(model=model)
        given = controllers(bringup)['effort_controller']
        assert given['interface_name'] == 'effort'
        system = ElementTree.fromstring(description(bringup)).find('ros2_control')
        assert given['joints'] == own(bringup)['command_joints'] == [
            joint.get('name') for joint in system.findall('joint')]
    # As in the description, and none that takes its motion from another or has several velocities.
    assert given['joints'] == ['zeta', 'alpha']


def test_the_file_of_controllers_is_that_of_the_demo_arm():
    bringup = start()
    assert controllers(bringup) == controllers(
        start(controllers=str(CONFIG / 'controllers.yaml')))
    assert controllers(bringup)['effort_controller']['joints'] == DEMO_ARM


def test_names_are_those_of_ros2_control():
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


def test_the_controller_is_inactive_until_commands_are_complete():
    bringup = start()
    assert [one.arguments[0] for one in bringup.loading] == [
        'joint_state_broadcaster', 'effort_controller']
    assert ['--inactive' in one.arguments for one in bringup.loading] == [False, True]
    assert bringup.guard.executable == 'controller_guard'
    assert json.loads(bringup.guard.arguments[1]) == {
        'interface_name': 'effort', 'joints': DEMO_ARM,
        'type': 'forward_command_controller/ForwardCommandController'}
    processes = *bringup.robot, *bringup.loading, bringup.node, bringup.guard
    # Spawners end; the others may not.
    assert [one.once for one in processes] == [False, False, True, True, False, False]
    assert all(one.required for one in processes)
    assert 'full size' in COMPLETE


@pytest.mark.parametrize('own_file', [False, True])
def test_switching_is_strict_in_every_distribution_and_file_of_controllers(tmp_path, own_file):
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
    for spawner in bringup.loading:
        # Options that every supported spawner has; it always requests strict switching itself.
        assert {word for word in spawner.arguments if word.startswith('--')} <= {
            '--param-file', '--controller-manager', '--controller-manager-timeout', '--inactive'}


def test_commands_begin_with_a_blend_and_end_at_zero(tmp_path):
    files = [Path(path) for path in start().node.parameters[:-1]]
    assert [path.name for path in files] == ['dynamics.param.yaml', 'commands.param.yaml']
    # A file of one's own counts more.
    mine = tmp_path / 'mine.yaml'
    mine.write_text('/**:\n  ros__parameters:\n    blend_time: 1.0\n')
    assert [Path(path).name for path in start(params=str(mine), mode='gravity').node.parameters[
        :-1]] == ['drives.yaml', 'gains.yaml', 'commands.param.yaml', 'mine.yaml']
    values = yaml.safe_load((CONFIG / 'commands.param.yaml').read_text())['/**'][
        'ros__parameters']
    assert values == {'blend_time': 0.5, 'on_stale': 'ramp_down', 'limit_efforts': True}


def test_with_a_mode_the_torque_controller_is_fed():
    bringup = start(mode='computed_torque', robot='ur')
    assert (bringup.node.executable, bringup.node.name) == ('torque_controller',) * 2
    assert own(bringup)['mode'] == 'computed_torque'
    assert [Path(path).name for path in bringup.node.parameters[:-1]] == [
        'ur.yaml', 'dynamics.param.yaml', 'torque_controller.param.yaml', 'drives.yaml',
        'gains.yaml', 'commands.param.yaml']


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


def test_hardware_of_the_given_urdf_is_not_replaced(arm):
    assert description(start(model=arm(WITH_HARDWARE))) == WITH_HARDWARE


@pytest.mark.parametrize('values, starts', [
    ('{springs: true}', False), ('{blend_time: 0.0, effort_rate_limit: 9.0}', False),
    ('{blend_time: 0.0}', True)])
def test_hardware_without_efforts_needs_commands_that_start_at_their_full_size(
        arm, tmp_path, values, starts):
    text = ROBOT.replace('</robot>', HARDWARE.format(''.join(
        JOINT.format(name, 'effort', 'velocity') for name in ('zeta', 'alpha'))))
    mine = tmp_path / 'mine.yaml'
    mine.write_text(f'dynamics: {{ros__parameters: {values}}}')
    if starts:
        assert description(start(model=arm(text), params=str(mine))) == text
        return
    with pytest.raises(LaunchError, match=r"'effort' for the joint 'zeta'.*blend_time: 0"):
        start(model=arm(text), params=str(mine))


@pytest.mark.parametrize('mode', control_laws())
def test_the_demo_arm_has_the_gains_of_the_plain_demo_which_suit_the_rates_of_managers(
        mode):
    values, plain = values_for(start(mode=mode, task_link='tool').node.parameters,
                               '/torque_controller'), launched(mode)
    assert {name: values[name] for name in plain if name != 'robot_description'} == {
        name: one for name, one in plain.items() if name != 'robot_description'} | {
        name: values[name] for name in ('blend_time', 'on_stale')}
    # 500 Hz in the file of controllers, 100 Hz by default; states are used a period later.
    for period in (0.002, 0.01):
        assert warning(made(values), period, period) == ''
    if mode == 'pd_gravity':
        # The default gains, and links without rotors.
        law = made({'mode': mode, 'pd_gravity.damping': [5.0]})
        assert 'diverges' in warning(law, 0.002, 0.002)


def test_joints_may_be_in_another_order_and_fewer(arm, tmp_path):
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
     'type of effort_controller must be forward_command_controller/ForwardCommandController, got '
     'joint_traj')])
def test_controllers_that_do_not_fit_start_nothing(tmp_path, changes, message):
    with pytest.raises(LaunchError, match=message):
        start(controllers=str(file_of_controllers(tmp_path, **changes)))


@pytest.mark.parametrize('listed, own, message', [
    ('effort_controller: 5', 'type: mine', 'type of effort_controller must be .*, got mine'),
    ('effort_controller: {type: theirs}', 'type: mine', 'got theirs'),
    ('other: 5', 'joints: []', 'got None'), ('[', '', 'this is not YAML')])
def test_the_type_of_the_controller_is_that_which_the_manager_has(tmp_path, listed, own,
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
def test_hardware_that_does_not_take_torques_starts_nothing(arm, interfaces, message):
    text = ROBOT.replace('</robot>', HARDWARE.format(''.join(
        JOINT.format(*one) for one in interfaces)))
    with pytest.raises(LaunchError, match=message):
        start(model=arm(text))


@pytest.mark.parametrize('values, message', [
    ({'model': 'none'}, 'ros2_control needs the description'),
    ({'controllers': '/nowhere/my.yaml'}, 'controllers: there is no file /nowhere/my.yaml'),
    ({'params': '/nowhere/my.yaml'}, 'params: there is no file /nowhere/my.yaml'),
    ({'task_link': 'e'}, "task_link: the robot has no link 'e', only base_link, shoulder"),
    ({'sim': 'true'}, "there is no argument 'sim'"),
    # As the launch files for Universal Robots call it.
    ({'controllers_file': '/nowhere'}, 'controllers: there is no file /nowhere'),
    ({'controllers': 'a: ['}, 'mine.yaml'), ({'controllers': '7'}, 'has no parameters'),
    ({'params': '/**: {ros__parameters: {gravity: [1.0]}}'},
     'params: gravity must be three finite numbers')])
def test_a_bad_argument_or_file_starts_nothing(tmp_path, values, message):
    (label, content), = values.items()
    if label in ('controllers', 'params') and not content.startswith('/nowhere'):
        (tmp_path / 'mine.yaml').write_text(content)
        values = {label: str(tmp_path / 'mine.yaml')}
    with pytest.raises(LaunchError, match=message):
        start(**values)


@pytest.mark.parametrize('values, node', [({}, 'dynamics'), ({'mode': 'gravity'},
                                                             'torque_controller')])
def test_the_launch_arguments_of_ur_control_have_the_same_names_here(tmp_path, values, node):
    config = tmp_path / 'own.rviz'
    config.write_text('Panels: []')
    bringup = start(launch_rviz='true', rviz_config_file=str(config), tf_prefix='left/',
                    controllers_file=str(file_of_controllers(tmp_path, joints=DEMO_ARM[::-1])),
                    autostart='false', **values)
    assert [one.executable for one in bringup.robot] == [
        'robot_state_publisher', 'ros2_control_node', 'rviz2']
    publisher, _, rviz = bringup.robot
    assert rviz.arguments == ('-d', str(config), '-f', 'left/base_link')
    assert not rviz.required
    # The configuration names topics of the dynamics node; the same ones of the torque controller.
    assert set(rviz.remappings) == {(f'dynamics/{topic}', f'{node}/{topic}') for topic in (
        'markers', 'gravity_torques', 'external_torques') if node != 'dynamics'}
    assert publisher.parameters[0]['frame_prefix'] == own(bringup)['frame_prefix'] == 'left/'
    assert own(bringup)['autostart'] is False
    assert own(bringup)['command_joints'] == DEMO_ARM[::-1]


def test_rviz_shows_the_robot_of_a_running_manager_or_of_a_generated_controller(arm, package):
    for bringup, root in (
            (beside(Manager(joints=['zeta', 'alpha']), rviz='true'), 'stand'),
            (start(controller=package, rviz='true'), 'base_link')):
        rviz = bringup.robot[-1]
        assert rviz.executable == 'rviz2' and rviz.arguments[-2:] == ('-f', root)
        assert Path(rviz.arguments[1]).name == 'dynamics.rviz' and rviz.remappings == ()
    assert 'rviz2' not in [one.executable for one in start().robot]


@pytest.mark.parametrize('missing', ['controller_manager', 'robot_state_publisher',
                                     'forward_command_controller', 'joint_state_broadcaster',
                                     'rviz2'])
def test_a_package_that_is_missing_starts_nothing(monkeypatch, missing):
    monkeypatch.setattr('rbd_ros.ros.launch.launch_plan._is_installed',
                        lambda package, executable: package != missing)
    with pytest.raises(LaunchError, match=f'{missing} is not installed.*sudo apt install '
                                          f'ros-.ROS_DISTRO-{missing.replace("_", "-")}'
                                          f'{", or rviz:=false" * (missing == "rviz2")}$'):
        check_installed(plan({'rviz': 'true'}), ARGUMENTS)


# -- A controller manager that runs already. ------------------------------------------------------

STATES_TYPE = 'joint_state_broadcaster/JointStateBroadcaster'
EFFORTS_TYPE = 'forward_command_controller/ForwardCommandController'


class Manager:
    """A controller manager: `states` and `types` of its controllers, and what it was asked."""

    def __init__(self, efforts='inactive', joints=DEMO_ARM, interface='effort', more=(),
                 kind=EFFORTS_TYPE, broadcaster='active'):
        self.joints, self.interface, self.switched = joints, interface, []
        self.types = {'joint_state_broadcaster': STATES_TYPE, 'effort_controller': kind}
        self.states = {'joint_state_broadcaster': broadcaster, 'effort_controller': efforts,
                       **dict.fromkeys(more, 'active')}
        self.states = {name: state for name, state in self.states.items() if state}
        self.fails, self.takes_down = False, ()

    def __call__(self, package, kind, service, **request):
        """Answer a service call as ros2_control 5.16 does."""
        if kind == 'ListControllers':
            assert service == 'controller_manager/list_controllers'
            return SimpleNamespace(controller=[
                SimpleNamespace(name=name, state=state, type=self.types.get(name, 'x/X'))
                for name, state in self.states.items()])
        if kind == 'GetParameters':
            assert service == 'effort_controller/get_parameters'
            values = {'joints': Parameter('x', value=self.joints),
                      'interface_name': Parameter('x', value=self.interface)}
            # All or none, as rclcpp does.
            return SimpleNamespace(values=[
                values[name].get_parameter_value() for name in request['names']
            ] if set(request['names']) <= set(values) else [])
        assert (kind, service) == ('SwitchController', 'controller_manager/switch_controller')
        assert request.pop('strictness') == 2
        self.switched.append(request)
        if self.fails and request.get('activate_controllers') == ['effort_controller']:
            self.states.update(dict.fromkeys(self.takes_down, 'inactive'))
            return SimpleNamespace(ok=False, message='hardware refuses')
        self.states.update(dict.fromkeys(request.get('activate_controllers', ()), 'active'))
        self.states.update(dict.fromkeys(request.get('deactivate_controllers', ()), 'inactive'))
        return SimpleNamespace(ok=True, message='')


WITH_HARDWARE = with_mock_hardware(ROBOT)


def beside(manager, text=WITH_HARDWARE, log=None, **values):
    """Return what is started beside a manager that has the hardware of `text`."""
    return start(lambda topic: ('/driver', text), (log if log is not None else []).append,
                 manager, **values)


def test_a_running_manager_is_used_and_its_controllers_are_left_as_they_are():
    for state in ('inactive', 'active'):
        bringup = beside(Manager(state, ['zeta', 'alpha']))
        assert (bringup.robot, bringup.loading) == ([], [])
        assert own(bringup)['command_joints'] == ['zeta', 'alpha']
    assert [one.arguments[0] for one in beside(Manager(None)).loading] == ['effort_controller']
    both = beside(Manager(None, broadcaster=None)).loading
    assert [one.arguments[0] for one in both] == ['joint_state_broadcaster', 'effort_controller']
    assert '--inactive' in both[1].arguments
    # A controller that is loaded, and no more, is configured by its spawner.
    assert len(beside(Manager('unconfigured', ['zeta', 'alpha'])).loading) == 1


@pytest.mark.parametrize('state', ['active', 'inactive', 'unconfigured'])
def test_a_loaded_controller_with_joints_in_another_order_is_refused_naming_both(state):
    message = (r"joints \['alpha', 'zeta'\], not \['zeta', 'alpha'\]: commands would mean")
    with pytest.raises(LaunchError, match=message):
        beside(Manager(state, ['alpha', 'zeta']))


@pytest.mark.parametrize('changes, message', [
    ({'interface': 'velocity'}, 'interface_name velocity, not effort'),
    ({'kind': 'mine/Controller'}, f'type mine/Controller, not {EFFORTS_TYPE}'),
    ({'broadcaster': 'inactive'}, 'joint_state_broadcaster is loaded, but inactive')])
def test_parameters_that_a_loaded_controller_ignores_are_an_error(changes, message):
    with pytest.raises(LaunchError, match=message):
        beside(Manager(joints=['zeta', 'alpha'], **changes))


def test_a_parameter_that_a_loaded_controller_does_not_have_is_an_error(tmp_path):
    path = file_of_controllers(tmp_path, joints=['zeta', 'alpha'], update_rate=250)
    with pytest.raises(LaunchError, match='update_rate None, not 250'):
        beside(Manager(joints=['zeta', 'alpha']), controllers=str(path))


def test_beneath_an_active_controller_efforts_must_be_measured(tmp_path):
    mine = tmp_path / 'mine.yaml'
    mine.write_text('dynamics: {ros__parameters: {blend_time: 0.0}}')
    text = WITH_HARDWARE.replace('<state_interface name="effort"/>', '')
    assert text != WITH_HARDWARE
    assert beside(Manager('inactive', ['zeta', 'alpha']), text, params=str(mine))
    with pytest.raises(LaunchError, match="no state_interface 'effort' for the joint 'zeta'"):
        beside(Manager('active', ['zeta', 'alpha']), text, params=str(mine))


def test_a_running_manager_moves_the_robot_that_is_described_and_no_other(arm):
    log = []
    model = arm(ROBOT.replace('name="a"', 'name="z"').replace('"a"/', '"z"/'))
    assert own(beside(Manager(joints=['zeta', 'alpha']), log=log, model=model))
    assert 'not the same as' in log[0]
    with pytest.raises(LaunchError, match='needs the description'):
        start(call=Manager())
    # Without one, a manager is started.
    assert len(start(call=lambda *_, **__: None).robot) == 2


WANTED = {'interface_name': 'effort', 'joints': DEMO_ARM, 'type': EFFORTS_TYPE}


def test_the_controller_is_activated_strictly_or_accepted_as_it_is():
    manager = Manager()
    assert start_guard(manager, WANTED) == ''
    assert manager.switched == [{'activate_controllers': ['effort_controller']}]
    assert start_guard(manager, WANTED) == '' and len(manager.switched) == 1


def test_when_activating_fails_the_other_controllers_are_as_before():
    manager = Manager(more=['gripper', 'arm'])
    manager.fails, manager.takes_down = True, ['arm']
    before = dict(manager.states)
    assert start_guard(manager, WANTED) == (
        'effort_controller could not be activated: hardware refuses')
    assert manager.states == before
    assert manager.switched[1:] == [{'activate_controllers': ['arm']}]


def test_a_controller_that_is_not_that_of_the_plan_is_not_activated():
    for manager in (Manager(joints=DEMO_ARM[::-1]), Manager(None)):
        assert 'effort_controller is' in start_guard(manager, WANTED)
        assert not manager.switched
    # One that does not answer in time may have it.
    assert start_guard(lambda *_, **__: None, WANTED) == 'no controller manager answers'


@pytest.mark.parametrize('values, seconds', [('', 1.0), ('publish_rate: 2.0', 2.0),
                                             ('state_timeout: 3.0', 3.5)])
def test_the_guard_waits_longer_for_slow_commands(tmp_path, values, seconds):
    path = tmp_path / 'mine.yaml'
    path.write_text(f'/**:\n  ros__parameters: {{friction: false, {values}}}\n')
    assert float(start(params=str(path)).guard.arguments[0]) == seconds


# -- Generated controllers. -----------------------------------------------------------------------
@pytest.fixture
def package(tmp_path, monkeypatch):
    """Return the installed package of a generated controller for the demo arm."""
    name, prefix = 'demo_arm_controller', tmp_path / 'install'
    folder = prefix / 'share' / name
    folder.mkdir(parents=True)
    (folder / 'controllers.yaml').write_text(controller_files(load_urdf(
        HERE / 'urdf' / 'demo_arm.urdf'))['controllers.yaml'])
    index = prefix / 'share/ament_index/resource_index/packages'
    index.mkdir(parents=True)
    (index / name).write_text('')
    share()     # sets the path of this environment
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(prefix), prepend=os.pathsep)
    return name


def test_a_generated_controller_needs_no_node(package):
    bringup = start(controller=package)
    assert bringup.node is bringup.guard is None
    assert [one.executable for one in bringup.robot] == [
        'robot_state_publisher', 'ros2_control_node']
    assert [one.arguments[0] for one in bringup.loading] == [
        'joint_state_broadcaster', package, 'joint_trajectory_controller']
    given = controllers(bringup)
    assert given['controller_manager'][package]['type'] == f'{package}/Controller'
    assert given['joint_trajectory_controller']['command_joints'] == [
        f'{package}/{name}' for name in DEMO_ARM]
    # The broadcaster must leave the states of the controller to others.
    assert given['joint_state_broadcaster']['joints'] == DEMO_ARM


def test_a_file_of_controllers_replaces_that_of_the_package(package, tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text((tmp_path / 'install/share' / package / 'controllers.yaml').read_text().replace(
        'mode: computed_torque', 'mode: impedance'))
    assert controllers(start(controller=package, controllers=str(own)))[package]['mode'] == (
        'impedance')


def test_arguments_that_do_not_fit_a_generated_controller_are_named(arm, package):
    stiff = (HERE / 'urdf/demo_arm.urdf').read_text().replace('</robot>', HARDWARE.format(
        JOINT.format('shoulder_pan', 'position', 'velocity')))
    for values, words in (
            ({'controller': 'my_controller'}, 'there is no package my_controller'),
            ({'mode': 'gravity'}, 'mode would set a node'),
            ({'autostart': 'false'}, 'autostart would set a node'),
            ({'model': ROBOT}, "joint 'shoulder_pan' which the robot lacks; it has zeta, alpha"),
            ({'model': stiff}, "no command_interface 'effort' for the joint 'shoulder_pan'")):
        if 'model' in values:
            values['model'] = arm(values['model'])
        with pytest.raises(LaunchError, match=words):
            start(**{'controller': package, **values})


def test_with_a_running_manager_a_generated_controller_is_loaded_once(package):
    text = with_mock_hardware((HERE / 'urdf/demo_arm.urdf').read_text())
    bringup = beside(Manager(None), text, controller=package)
    assert bringup.robot == [] and [one.arguments[0] for one in bringup.loading] == [
        package, 'joint_trajectory_controller']
    assert beside(Manager(None, broadcaster=None), text, controller=package).loading[0].arguments[
        0] == 'joint_state_broadcaster'
    with pytest.raises(LaunchError, match=f'{package} is loaded already.*unspawner {package}'):
        beside(Manager(None, more=[package]), text, controller=package)
