# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the launch file starts, with which arguments, and nothing where one of them is bad."""

from pathlib import Path

import pytest
from rbd_ros.ros.launch.launch_files import values_for
from rbd_ros.ros.launch.launch_plan import (
    _is_installed, ARGUMENTS, check_installed, LaunchError, plan)
import yaml

HERE = Path(__file__).parents[3]
ARM = """<robot name="arm"><link name="stand"/><link name="rod"><inertial>
<mass value="{mass}"/><inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial>
</link><joint name="hinge" type="continuous"><parent link="stand"/><child link="rod"/></joint>
</robot>"""
XACRO = ARM.replace('name="arm">', 'name="arm" xmlns:xacro="http://www.ros.org/wiki/xacro">'
                    '<xacro:arg name="mass" default="1"/><xacro:arg name="side" default=""/>'
                    ).format(mass='$(arg mass)')


def start(**values):
    """Return what is started, by executable."""
    processes = plan(values)
    assert processes[0].executable == ('torque_controller' if 'mode' in values
                                       else 'dynamics_node')
    return {process.executable: process for process in processes}


def parameters(process):
    """Return the values of a process's parameters that are not in a file."""
    values = dict(process.parameters[-1])
    # A node that cannot be configured ends the launch.
    assert values.pop('exit_unless_configured', False) == (
        process.executable in ('dynamics_node', 'torque_controller'))
    return values


@pytest.fixture
def arm(tmp_path):
    """Return a file with a robot, whose path holds spaces."""
    path = tmp_path / 'my robots' / 'arm one.urdf'
    path.parent.mkdir()
    path.write_text(ARM.format(mass=1))
    return path


def test_the_viewer_follows_the_node_that_is_started():
    assert 'viewer' not in start()
    viewer = start(view='true', joint_states='/arm/states')['viewer']
    assert viewer.remappings == (('joint_states', '/arm/states'),) and not viewer.required
    assert 'robot_description' not in parameters(viewer)
    viewer = start(view='true', mode='computed_torque', robot_state_publisher='false',
                   frame_prefix='a1/')['viewer']
    assert {('dynamics/dynamics', 'torque_controller/dynamics'),
            ('dynamics/external_torques', 'torque_controller/external_torques'),
            ('dynamics/external_wrench', 'torque_controller/external_wrench'),
            ('dynamics/torque_deviation', 'torque_controller/torque_deviation')
            } == set(viewer.remappings[1:])
    assert parameters(viewer)['frame_prefix'] == 'a1/'
    assert parameters(viewer)['robot_description'].startswith('\n<!--')


def test_without_arguments_the_demo_arm_is_simulated_and_held():
    nodes = start()
    assert list(nodes) == ['dynamics_node', 'robot_state_publisher', 'simulated_robot']
    # The declaration goes: a text has no encoding.
    text = (HERE / 'urdf' / 'demo_arm.urdf').read_text().partition('?>')[2]
    assert parameters(nodes['robot_state_publisher'])['robot_description'] == text
    assert parameters(nodes['simulated_robot'])['robot_description'] == text
    assert len(parameters(nodes['simulated_robot'])['initial_positions']) == 7
    assert ('~/commands', 'dynamics/effort_commands') in nodes['simulated_robot'].remappings
    # It hears it from robot_state_publisher.
    assert parameters(nodes['dynamics_node']) == {'use_sim_time': False}
    assert Path(nodes['dynamics_node'].parameters[0]).name == 'dynamics.param.yaml'


def test_with_a_mode_the_torque_controller_is_in_place_of_the_node():
    nodes = start(mode='computed_torque', rviz='true')
    node = nodes['torque_controller']
    assert 'dynamics_node' not in nodes
    assert node.name == 'torque_controller'
    assert parameters(node) == {'use_sim_time': False, 'mode': 'computed_torque'}
    assert [Path(path).name for path in node.parameters[:2]] == [
        'dynamics.param.yaml', 'torque_controller.param.yaml']
    assert ('~/commands', 'torque_controller/effort_commands') in nodes[
        'simulated_robot'].remappings
    assert ('dynamics/markers', 'torque_controller/markers') in nodes['rviz2'].remappings


def test_a_given_robot_is_simulated_only_on_request(arm):
    assert list(start(model=str(arm))) == ['dynamics_node', 'robot_state_publisher']
    nodes = start(model=str(arm), sim='true')
    assert list(nodes) == ['dynamics_node', 'robot_state_publisher', 'simulated_robot']
    assert 'initial_positions' not in parameters(nodes['simulated_robot'])
    assert 'simulated_robot' not in start(sim='false')


def test_a_robot_may_be_simulated_by_mujoco(arm):
    nodes = start(sim='mujoco', commands='/efforts', joint_states='/states', use_sim_time='true')
    robot = nodes['mujoco_robot']
    assert 'simulated_robot' not in nodes
    assert len(parameters(robot)['initial_positions']) == 7
    assert parameters(robot)['use_sim_time'] is True
    assert '<robot name="demo_arm"' in parameters(robot)['robot_description']
    assert set(robot.remappings) == {('joint_states', '/states'), ('~/commands', '/efforts')}
    assert robot.required
    assert 'mujoco_robot' in start(model=str(arm), sim='MuJoCo', mode='gravity')


@pytest.mark.parametrize('engine', ['true', 'mujoco'])
def test_the_simulated_robot_falls_as_the_node_expects_and_leaves_the_description_to_one(
        engine, tmp_path):
    path = tmp_path / 'ceiling.yaml'
    path.write_text('/**: {ros__parameters: {gravity: [0.0, 0.0, -1.6], '
                    'mounting_rpy: [3.141592653589793, 0.0, 0.0]}}')
    name = 'mujoco_robot' if engine == 'mujoco' else 'simulated_robot'
    given = parameters(start(sim=engine, params=str(path))[name])
    assert given['gravity'] == pytest.approx([0.0, 0.0, 1.6])
    assert parameters(start(sim=engine)[name])['gravity'] == [0.0, 0.0, -9.81]
    # robot_state_publisher is the one that publishes it, if it is started.
    assert given['publish_description'] is False
    assert parameters(start(sim=engine, robot_state_publisher='false')[name])[
        'publish_description'] is True


def test_another_node_may_publish_the_description():
    nodes = start(model='none')
    assert list(nodes) == ['dynamics_node']
    assert parameters(nodes['dynamics_node']) == {'use_sim_time': False}


def test_without_robot_state_publisher_the_node_itself_is_given_the_description(arm):
    nodes = start(model=str(arm), robot_state_publisher='false')
    assert list(nodes) == ['dynamics_node']
    assert parameters(nodes['dynamics_node'])['robot_description'] == ARM.format(mass=1)


def test_topics_prefix_and_time_reach_all_nodes_concerned(arm):
    nodes = start(model=str(arm), sim='true', rviz='true', joint_states='/arm/states',
                  commands='/arm/efforts', frame_prefix='a1/', use_sim_time='True')
    for name in ('dynamics_node', 'robot_state_publisher', 'simulated_robot'):
        assert ('joint_states', '/arm/states') in nodes[name].remappings
    assert ('~/effort_commands', '/arm/efforts') in nodes['dynamics_node'].remappings
    assert ('~/commands', '/arm/efforts') in nodes['simulated_robot'].remappings
    assert parameters(nodes['dynamics_node'])['frame_prefix'] == 'a1/'
    assert parameters(nodes['robot_state_publisher'])['frame_prefix'] == 'a1/'
    assert all(parameters(node)['use_sim_time'] is True for node in nodes.values())
    # RViz looks from where the robot stands, and may be closed.
    assert nodes['rviz2'].arguments[-2:] == ('-f', 'a1/stand')
    assert [name for name, node in nodes.items() if not node.required] == ['rviz2']


def test_given_files_replace_those_of_the_demo_and_may_begin_with_a_tilde(arm, tmp_path,
                                                                          monkeypatch):
    monkeypatch.setenv('HOME', str(tmp_path))
    (tmp_path / 'my.yaml').write_text('/**:\n  ros__parameters: {}\n')
    for path in (str(tmp_path / 'my.yaml'), '~/my.yaml'):
        assert start(params=path)['dynamics_node'].parameters[0] == str(tmp_path / 'my.yaml')
    nodes = start(model='~/my robots/arm one.urdf')
    assert 'hinge' in parameters(nodes['robot_state_publisher'])['robot_description']


@pytest.mark.parametrize('namespace, section', [
    ('', 'dynamics'), ('', '/dynamics'), ('', '/**'), ('', '/*'), ('', '/**/dynamics'),
    ('left', '/left/dynamics'), ('/left', 'left/dynamics'), ('left', '/**'), ('left', '/left/**'),
    ('left', '/*/dynamics'), ('left', '/**/dynamics'), ('cell/left', '/**/left/dynamics'),
    ('cell/left', 'cell left dynamics')])
def test_a_parameter_file_names_the_node_or_a_pattern_of_it(tmp_path, namespace, section):
    path = tmp_path / 'my.yaml'
    content = {'ros__parameters': {'publish_rate': 5.0}}
    # Namespaces may be nested.
    for name in section.split(' ')[::-1]:
        content = {name: content}
    path.write_text(yaml.safe_dump({'other': {'ros__parameters': {}}, **content}))
    assert start(params=str(path), namespace=namespace)['dynamics_node'].parameters[0] == str(path)


@pytest.mark.parametrize('content, values, message', [
    ('dynamic: {ros__parameters: {}}', {}, 'for the node /dynamics, only for /dynamic: did you '
     "mean '/dynamics'"),
    ('dynamics: {ros__parameters: {}}', {'namespace': 'left'},
     'for the node /left/dynamics, only for /dynamics'),
    ('cell: {left: {dynamics: {ros__parameters: {}}}}', {'namespace': 'cell/right'},
     'for the node /cell/right/dynamics, only for /cell/left/dynamics: did you mean'),
    ('dynamics: {ros__parameters: {}}', {'mode': 'gravity'}, "did you mean '/torque_controller'"),
    ('/*: {ros__parameters: {}}', {'namespace': 'left'}, r'only for /\*'),
    ('/left/*: {ros__parameters: {}}', {}, r'only for /left/\*'),
    ('/dynamics_2: {ros__parameters: {}}', {}, 'only for /dynamics_2'),
    ('dynamics: {publish_rate: 5.0}', {}, 'has no parameters: they belong below the name of the '
     'node'),
    ('publish_rate: 5.0', {}, 'has no parameters'), ('', {}, 'has no parameters'),
    ('- 5.0', {}, 'has no parameters'),
    ('dynamics: [', {}, r'my\.yaml.*: this is not YAML')])
def test_a_parameter_file_without_effect_starts_nothing(tmp_path, content, values, message):
    path = tmp_path / 'my.yaml'
    path.write_text(content)
    files = [str(HERE / 'config' / 'dynamics.param.yaml'), str(path)]
    with pytest.raises(LaunchError, match=message) as error:
        plan({'params': ':'.join(files), **values})
    assert '\n' not in str(error.value)


@pytest.mark.parametrize('word, value', [
    *((word, True) for word in ('true', 'True', 'TRUE', '1', 'yes', 'Yes', 'on')),
    *((word, False) for word in ('false', 'False', '0', 'no', 'NO', 'off'))])
def test_booleans_are_written_as_people_write_them(word, value):
    nodes = start(use_sim_time=word, sim=word, rviz=word, view=word, robot_state_publisher=word)
    names = {'dynamics_node', 'robot_state_publisher', 'simulated_robot', 'rviz2', 'viewer'}
    assert set(nodes) == (names if value else {'dynamics_node'})
    assert parameters(nodes['dynamics_node'])['use_sim_time'] is value


def test_task_link_overrides_parameter_files(tmp_path):
    assert 'task_link' not in parameters(start()['dynamics_node'])
    for mode in ({}, {'mode': 'cartesian_impedance'}):
        nodes = start(task_link='tool', **mode)
        assert parameters(next(iter(nodes.values())))['task_link'] == 'tool'
    # Who publishes the description knows its links.
    assert parameters(start(model='none', task_link='any')['dynamics_node'])['task_link'] == 'any'


def hearing(published):
    """Return a function that hears a description, and the topics that it was asked for."""
    topics = []

    def hear(topic):
        topics.append(topic)
        return published
    return hear, topics


@pytest.mark.parametrize('same', [True, False])
def test_fault_76_next_to_a_driver_only_its_description_is_published(arm, same):
    text, said = ARM.format(mass=1 if same else 2), []
    hear, topics = hearing(('/driver', text))
    nodes = {one.executable: one for one in plan(
        {'model': str(arm), 'view': 'true', 'rviz': 'true', 'frame_prefix': 'a1/'},
        hear, said.append)}
    assert list(nodes) == ['dynamics_node', 'rviz2', 'viewer']
    assert topics == ['/robot_description']
    # Both nodes get the description that is published, as with model:=none.
    for name in ('dynamics_node', 'viewer'):
        assert 'robot_description' not in parameters(nodes[name])
    assert len(said) == 1
    assert '/driver publishes robot_description already' in said[0]
    assert ('is not the same as' in said[0]) == (not same)
    assert ('robot_state_publisher:=true' in said[0]) == (not same)


@pytest.mark.parametrize('values', [
    {}, {'sim': 'true'}, {'sim': 'mujoco'}, {'robot_state_publisher': 'true'},
    {'robot_state_publisher': 'false'}, {'model': 'none'}])
def test_explicit_and_simulated_descriptions_do_not_depend_on_other_nodes(arm, values):
    values = {'model': str(arm)} | values if values else values
    hear, topics = hearing(('/driver', ARM.format(mass=1)))
    nodes = [one.executable for one in plan(values, hear, pytest.fail)]
    assert topics == []
    assert nodes == [one.executable for one in plan(values)]


def test_an_unpublished_description_is_published(arm):
    hear, topics = hearing(None)
    nodes = plan({'model': str(arm), 'namespace': '/cell/left'}, hear, pytest.fail)
    assert [one.executable for one in nodes] == ['dynamics_node', 'robot_state_publisher']
    assert topics == ['/cell/left/robot_description']


def test_several_parameter_files_are_given_in_their_order(tmp_path):
    files = [str(tmp_path / name) for name in ('my own.yaml', 'dynamics.param.yaml')]
    for path in files:
        Path(path).write_text('/**:\n  ros__parameters: {}\n')
    node = start(params=':'.join(files))['dynamics_node']
    assert list(node.parameters[:2]) == files
    assert len(node.parameters) == 3
    with pytest.raises(LaunchError, match='there is no file /nowhere'):
        start(params=f'{files[0]}:/nowhere')


@pytest.mark.parametrize('robot', ['franka', 'generic', 'kinova', 'kuka_fri', 'ur',
                                   'ur_currents'])
def test_parameter_files_override_the_effort_convention_of_a_robot(robot):
    node = start(robot=robot, sim='false')['dynamics_node']
    first, second, third, _ = node.parameters
    assert Path(first).parts[-3:] == ('config', 'robots', f'{robot}.yaml')
    assert [Path(path).name for path in (second, third)] == [
        'dynamics.param.yaml', 'commands.param.yaml']
    # The defaults do not take it back.
    of_robot, defaults = (yaml.safe_load(Path(path).read_text())['/**']['ros__parameters']
                          for path in (first, second))
    assert set(of_robot) == {'effort_convention'}
    assert not any(name.startswith('effort_convention') for name in defaults)


def commands_of(node):
    """Return the parameters of commands that a node is given."""
    given = values_for(node.parameters, f'/{node.name}')
    return [given.get(name) for name in ('on_stale', 'blend_time', 'limit_efforts')]


SAFE = ['ramp_down', 0.5, True]


@pytest.mark.parametrize('mode', ['', 'pd_gravity'])
def test_with_a_driver_commands_end_with_the_states_start_slowly_and_are_limited(
        arm, tmp_path, mode):
    name = 'torque_controller' if mode else 'dynamics_node'
    for values in ({'model': 'none'}, {'robot': 'ur', 'model': str(arm)},
                   {'model': 'none', 'robot': 'franka'}):
        assert commands_of(start(**values, **{'mode': mode} if mode else {})[name]) == SAFE
    # A robot that is simulated has none of it, and a file of one's own counts more.
    assert commands_of(start()['dynamics_node']) != SAFE
    mine = tmp_path / 'mine.yaml'
    mine.write_text('/**: {ros__parameters: {blend_time: 2.0}}\n')
    node = start(model='none', params=str(mine))['dynamics_node']
    assert commands_of(node) == ['ramp_down', 2.0, True]


@pytest.mark.parametrize('after, values, mass', [
    ('', {}, '1'), ('', {'xacro_args': 'mass:=5'}, '5'),
    ('', {'xacro_args': '"mass:=5"  side:=left'}, '5'), (' mass:=5 side:=left', {}, '5')])
def test_xacro_takes_arguments_that_may_follow_the_file(tmp_path, after, values, mass):
    pytest.importorskip('xacro')
    path = tmp_path / 'an arm.urdf.xacro'
    path.write_text(XACRO)
    text = parameters(start(model=f'{path}{after}', **values)['robot_state_publisher'])
    assert f'<mass value="{mass}"/>' in text['robot_description']


def test_warnings_of_xacro_do_not_stop_the_launch(tmp_path, capfd):
    pytest.importorskip('xacro')
    path = tmp_path / 'arm.xacro'
    path.write_text(XACRO.replace('<link name="stand"/>', '<link name="stand"/>'
                                  '<xacro:property name="pi" value="3"/>'))
    assert 'robot_state_publisher' in start(model=str(path))
    assert 'redefining global symbol' in capfd.readouterr().err


@pytest.mark.parametrize('values, message', [
    ({'rviz': 'perhaps'}, "rviz must be true or false, got 'perhaps'"),
    ({'sim': '2'}, "sim must be true or false or mujoco, got '2'"),
    ({'model': 'none', 'sim': 'mujoco'}, 'sim:=mujoco needs the model'),
    ({'robot': 'ur', 'sim': 'mujoco'}, 'the simulated robot reports and takes full torques'),
    ({'use_sim_time': ''}, 'use_sim_time must be true or false'),
    ({'robot_state_publisher': 'never'}, 'robot_state_publisher must be true or false'),
    ({'task_link': 'toool'}, "task_link: the robot has no link 'toool', did you mean 'tool'"),
    ({'task_link': 'gripper'}, "the robot has no link 'gripper', only base_link, shoulder"),
    ({'model': '/nowhere/arm.urdf'}, 'there is no file /nowhere/arm.urdf'),
    ({'model': 'none', 'sim': 'true'}, 'sim:=true needs the model'),
    ({'params': '/nowhere/my.yaml'}, 'there is no file /nowhere/my.yaml'),
    ({'model': '~nosuchuser/arm.urdf'}, 'home directory'),
    ({'params': '~nosuchuser/my.yaml'}, 'home directory'),
    ({'model': 'none', 'xacro_args': 'mass:=5'}, 'xacro_args needs a xacro file'),
    ({'namespace': 'a b'}, "namespace: 'a b' is not a valid name"),
    ({'commands': '/efforts!'}, 'commands: '), ({'joint_states': '1x'}, 'joint_states: '),
    ({'robot': 'franka', 'sim': 'true'}, 'the simulated robot reports and takes full torques'),
    ({'autostart': 'later'}, "autostart must be true or false, got 'later'"),
    ({'rviz': 'true', 'rviz_config_file': '/nowhere'}, 'rviz_config_file: there is no file'),
    ({'modell': 'arm.urdf'}, "there is no argument 'modell', did you mean 'model'"),
    ({'colour': 'red'}, "there is no argument 'colour', only model, xacro_args")])
def test_fault_63_a_bad_argument_starts_nothing(values, message):
    with pytest.raises(LaunchError, match=message):
        plan(values)


@pytest.mark.parametrize('file, text, arguments, message', [
    ('arm.urdf', '<robot name="r"><link name="a"/><link name="b"/></robot>', '', '2 root links'),
    ('arm.urdf', 'hello', '', 'not XML'), ('arm.urdf', '<robot name="r"/>', '', 'has no links'),
    ('arm.urdf', ARM.format(mass=1), 'mass:=5', 'takes no arguments'),
    ('arm.xacro', XACRO, 'mass:="5', 'No closing quotation'),
    ('arm.xacro', XACRO, ':=5', 'name:=value'), ('arm.xacro', XACRO, 'mass', 'name:=value'),
    ('arm.xacro', XACRO, 'mass=5', 'name:=value'),
    ('arm.xacro', XACRO, 'mas:=2', "no xacro argument 'mas', did you mean 'mass'"),
    ('arm.xacro', XACRO.replace('$(arg mass)', '$(arg weight)'), '',
     r'arm\.xacro: xacro failed.*weight')])
def test_fault_63_a_bad_robot_or_argument_of_xacro_starts_nothing(tmp_path, file, text, arguments,
                                                                  message):
    if file.endswith('xacro'):
        pytest.importorskip('xacro')
    (tmp_path / file).write_text(text)
    with pytest.raises(LaunchError, match=message):
        plan({'model': str(tmp_path / file), 'xacro_args': arguments})


def test_a_description_may_declare_its_encoding(tmp_path):
    text = '<?xml version="1.0" encoding="latin-1"?><robot name="é"><link name="größe"/></robot>'
    (tmp_path / 'arm.urdf').write_bytes(text.encode('latin-1'))
    nodes = start(model=str(tmp_path / 'arm.urdf'))
    assert '<link name="größe"/>' in parameters(nodes['robot_state_publisher'])[
        'robot_description']
    (tmp_path / 'arm.urdf').write_bytes(text.replace('latin-1', 'utf-8').encode('latin-1'))
    with pytest.raises(LaunchError, match='cannot be decoded as utf-8'):
        plan({'model': str(tmp_path / 'arm.urdf')})


def test_fault_63_a_xacro_file_without_xacro_names_the_package_to_install(tmp_path, monkeypatch):
    (tmp_path / 'arm.xacro').write_text(XACRO)
    monkeypatch.setitem(__import__('sys').modules, 'xacro', None)
    with pytest.raises(LaunchError, match='pip install xacro'):
        plan({'model': str(tmp_path / 'arm.xacro')})


@pytest.mark.parametrize('missing, hint', [
    ('robot_state_publisher', 'robot_state_publisher:=false'), ('rviz2', 'rviz:=false'),
    ('rbd_ros', 'source its install/setup.bash')])
def test_fault_63_a_program_that_is_missing_starts_nothing(missing, hint, monkeypatch):
    monkeypatch.setattr('rbd_ros.ros.launch.launch_plan._is_installed',
                        lambda package, executable: package != missing)
    with pytest.raises(LaunchError, match=f'{missing} is not installed.*{hint}'):
        check_installed(plan({'rviz': 'true'}), ARGUMENTS)


def test_a_program_is_installed_where_ros_looks_for_it(tmp_path, monkeypatch):
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path))
    index = tmp_path / 'share' / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)
    assert not _is_installed('seer', '')
    (index / 'seer').write_text('')
    assert _is_installed('seer', '') and not _is_installed('seer', 'see')
    program = tmp_path / 'lib' / 'seer' / 'see'
    program.parent.mkdir(parents=True)
    program.write_text('#!/bin/sh')
    assert not _is_installed('seer', 'see')
    program.chmod(0o755)
    assert _is_installed('seer', 'see')


@pytest.mark.parametrize(('content', 'values', 'expected'), [
    ('gravity: [1.0]', {}, 'gravity must be'),
    ('gravity: [0.0, 0.0, -98.1]', {}, 'gravity_limit'),
    ('gravity: down', {}, 'gravity must be a list'),
    ('mode: cartesian_impedance', {'mode': ''}, None),
    ('friction: true', {'mode': 'cartesian_impedance'}, 'needs the parameter task_link'),
    ('task_link: nowhere', {'mode': 'cartesian_impedance'}, "no link 'nowhere'"),
    ('task_link: rod', {'mode': 'cartesian_impedance'}, None),
    ('friction: true', {'mode': 'cartesian_impedance', 'task_link': 'rod'}, None)])
def test_parameters_that_the_node_would_refuse_are_refused_before_anything_starts(
        content, values, expected, arm, tmp_path):
    path = tmp_path / 'own.yaml'
    path.write_text('/**:\n  ros__parameters:\n    ' + content)
    values = {'model': str(arm), 'params': str(path), **values}
    if expected is None:
        assert plan(values)
        return
    with pytest.raises(LaunchError, match=expected):
        plan(values)


@pytest.mark.parametrize('alias, name, value', [
    ('launch_rviz', 'rviz', 'true'), ('tf_prefix', 'frame_prefix', 'left/')])
def test_names_of_the_launch_files_for_ur_mean_the_same(alias, name, value):
    def comparable(processes):
        # Each plan has a folder of its own.
        return [one._replace(arguments=tuple(Path(word).name for word in one.arguments))
                for one in processes]
    more = {'rviz': 'true'} if name != 'rviz' else {}
    wanted = comparable(plan({name: value, **more}))
    assert comparable(plan({alias: value, **more})) == wanted
    assert comparable(plan({alias: value, name: value, **more})) == wanted
    assert comparable(plan(more)) != wanted
    with pytest.raises(LaunchError, match=f"{alias} is another name of {name}, .*'{value}' and"):
        plan({alias: value, name: 'true/' if name != 'rviz' else 'yes'})


def test_the_configuration_of_rviz_may_be_ones_own(tmp_path):
    path = tmp_path / 'own.rviz'
    path.write_text('Panels: []')
    rviz = start(launch_rviz='true', rviz_config_file=str(path))['rviz2']
    assert rviz.arguments[:2] == ('-d', str(path))


@pytest.mark.parametrize('mode', ['', 'computed_torque'])
def test_a_node_without_autostart_waits_for_its_transitions(mode):
    node = plan({'autostart': 'false', 'mode': mode})[0]
    assert parameters(node)['autostart'] is False
    assert 'autostart' not in parameters(plan({'mode': mode})[0])
