# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The launch files themselves, with actions that only record what they were made with.

launch_ros is not on PyPI; what the files decide is tested in `test_launch_plan` and
`test_bringup_plan`.

"""

import os
import pathlib
import runpy
import signal
import sys
from types import ModuleType, SimpleNamespace

import pytest
from rbd_ros.ros.runtime.share_directory import share

LAUNCH = pathlib.Path(__file__).parents[3] / 'launch'
ACTIONS = {'launch': [], 'launch.action': ['Action'],
           'launch.actions': ['DeclareLaunchArgument', 'EmitEvent', 'IncludeLaunchDescription',
                              'OpaqueFunction', 'RegisterEventHandler', 'Shutdown'],
           'launch.event_handlers': ['OnExecutionComplete', 'OnProcessIO', 'OnProcessStart'],
           'launch.events': ['matches_action'], 'launch.events.process': ['SignalProcess'],
           'launch.launch_context': ['LaunchContext'],
           'launch.launch_description': ['LaunchDescription'], 'launch.logging': [],
           'launch.substitutions': ['LaunchConfiguration'], 'launch_ros': [],
           'launch_ros.actions': ['Node'],
           'launch_ros.parameter_descriptions': ['ParameterValue'],
           'launch_ros.utilities': []}
ARM = '<robot name="arm"><link name="stand"/></robot>'


class Recorded:
    """An action, and what it was made with."""

    def __init__(self, *arguments, **options):
        self.arguments, self.options = arguments, options
        vars(self).update(options)

    def perform(self, context):
        """Return the value of a launch argument."""
        return context.launch_configurations[self.arguments[0]]


class Context:
    """The context of launch: it runs, and was started with some arguments."""

    def __init__(self, configurations, argv=(), file=None):
        self.launch_configurations, self.argv = configurations, list(argv)
        self.is_shutdown, self.asyncio_loop = False, object()
        self.locals = SimpleNamespace()
        if file:
            source = SimpleNamespace(location=str(file))
            include = sys.modules['launch.actions'].IncludeLaunchDescription(
                launch_description_source=source)
            self.locals.event = SimpleNamespace(
                launch_description=SimpleNamespace(entities=[include]))


@pytest.fixture
def logged():
    """Return the warnings of the launch file."""
    return []


@pytest.fixture
def run(monkeypatch, logged):
    """Return a function that returns the names that a launch file defines."""
    for name, actions in ACTIONS.items():
        module = ModuleType(name)
        vars(module).update({action: type(action, (Recorded,), {}) for action in actions})
        monkeypatch.setitem(sys.modules, name, module)
    sys.modules['launch.logging'].get_logger = lambda name: SimpleNamespace(
        warning=logged.append, info=lambda text: None)
    monkeypatch.setattr('rbd_ros.ros.commands.controllers.caller',
                        lambda *_: lambda *_, **__: None)
    sys.modules['launch_ros.utilities'].prefix_namespace = (
        lambda base, name: f'{base}/{name}'.rstrip('/') if base else name)
    monkeypatch.setattr('rbd_ros.ros.launch.launch_plan._is_installed', lambda *_: True)
    monkeypatch.delitem(sys.modules, 'rbd_ros.ros.launch.launch_actions', raising=False)
    before = signal.getsignal(signal.SIGINT)
    yield lambda name: SimpleNamespace(**runpy.run_path(str(LAUNCH / name)))
    signal.signal(signal.SIGINT, before)
    # It was made with these actions.
    sys.modules.pop('rbd_ros.ros.launch.launch_actions', None)


def execute(launch_file, argv=(), file=None, **values):
    """Return the context, and the actions that a launch file returns for some arguments."""
    *declared, last = launch_file.generate_launch_description().arguments[0]
    context = Context({one.arguments[0]: one.options['default_value'] for one in declared}
                      | values, argv, file)
    return context, last.options['function'](context)


class Started:
    """What a launch file has returned: the nodes to start, and the handlers of their events."""

    def __init__(self, names, argv=(), file=None, **values):
        self.context, actions = execute(names, argv, file, **values)
        kinds = [type(one).__name__ for one in actions]
        self.at_once = [one for one, kind in zip(actions, kinds) if kind == 'Node']
        # Handlers come first: a node may end at once.
        assert kinds == ['RegisterEventHandler'] * 3 + ['Node'] * len(self.at_once)
        self.handlers = {type(one).__name__: one for one in (
            action.arguments[0] for action in actions[:3])}
        for one in self.handlers.values():
            # Other launch files may have nodes of their own.
            assert all(map(one.target_action, self.at_once)) and not one.target_action(object())

    @property
    def nodes(self):
        """Return the nodes to start by executable."""
        return {one.executable: one for one in self.at_once}

    def start(self, node):
        """Return what follows the start of a node."""
        return self.handlers['OnProcessStart'].on_start(SimpleNamespace(action=node), self.context)

    def end(self, node, code=0):
        """Return what follows the end of a node."""
        node.return_code = code
        return self.handlers['OnExecutionComplete'].on_completion(
            SimpleNamespace(action=node), self.context)

    def say(self, node, text, stream='stdout'):
        """Return what follows an output of a node."""
        return getattr(self.handlers['OnProcessIO'], f'on_{stream}')(
            SimpleNamespace(action=node, text=text))


def test_the_launch_file_starts_the_planned_processes(run):
    started = Started(run('dynamics.launch.py'), namespace='left', commands='/efforts',
                      rviz='true')
    nodes = started.nodes
    assert set(nodes) == {'dynamics_node', 'robot_state_publisher', 'simulated_robot', 'rviz2'}
    assert {node.namespace for node in nodes.values()} == {'left'}
    assert started.context.launch_configurations['use_sim_time'] == 'false'
    node = nodes['dynamics_node']
    assert (node.package, node.name) == ('rbd_ros', 'dynamics')
    assert ('~/effort_commands', '/efforts') in node.remappings
    assert nodes['simulated_robot'].name is None
    # A text that looks like YAML stays a text.
    description = nodes['robot_state_publisher'].parameters[0]['robot_description']
    assert type(description).__name__ == 'ParameterValue'
    assert description.options == {'value_type': str}
    assert '<robot' in description.arguments[0]


def test_the_failure_of_a_required_node_is_the_failure_of_launch(run):
    started = Started(run('dynamics.launch.py'), rviz='true')
    *needed, rviz = started.at_once
    assert started.end(rviz, 1) is None
    for node in needed:
        for code, reason in ((1, 'exit code 1'), (-9, 'exit code -9'),
                             (None, 'it could not be started')):
            with pytest.raises(RuntimeError, match=f'{node.executable} has failed, {reason}$'):
                started.end(node, code)
        assert type(started.end(node)).__name__ == 'Shutdown'
        # At the end of all, how one of them ends is no failure.
        started.context.is_shutdown = True
        assert started.end(node, -2) is None
        started.context.is_shutdown = False


@pytest.mark.parametrize('file', ['dynamics.launch.py', 'bringup.launch.py'])
def test_a_node_that_starts_after_ctrl_c_is_interrupted(run, file):
    started = Started(run(file))
    for node in started.at_once:
        started.context.is_shutdown = False
        assert started.start(node) is None
        started.context.is_shutdown = True
        event = started.start(node).event
        assert event.signal_number == signal.SIGINT
        assert event.process_matcher.arguments == (node,)


@pytest.fixture
def interruptible():
    """Let Ctrl-C raise KeyboardInterrupt, also in a process that was started to ignore it."""
    before = signal.signal(signal.SIGINT, signal.default_int_handler)
    yield
    signal.signal(signal.SIGINT, before)


@pytest.mark.usefixtures('interruptible')
@pytest.mark.parametrize('file', ['dynamics.launch.py', 'bringup.launch.py'])
def test_ctrl_c_during_the_start_is_left_to_launch(run, file):
    context, _ = execute(run(file))
    try:
        signal.raise_signal(signal.SIGINT)
    except KeyboardInterrupt:
        pytest.fail('it interrupts what launch is doing')
    # Where launch has ended and the program goes on, Python's own handler has its say.
    context.asyncio_loop = None
    with pytest.raises(KeyboardInterrupt):
        signal.raise_signal(signal.SIGINT)


def press(*_):
    """Press Ctrl-C; everything else is fine."""
    signal.raise_signal(signal.SIGINT)
    return True


@pytest.mark.parametrize('file', ['dynamics.launch.py', 'bringup.launch.py'])
def test_ctrl_c_before_the_first_node_starts_nothing(run, monkeypatch, file):
    monkeypatch.setattr('rbd_ros.ros.launch.launch_plan._is_installed', press)
    assert execute(run(file))[1] == []


def test_a_bad_argument_is_named_before_anything_starts(run):
    for file in ('dynamics.launch.py', 'bringup.launch.py'):
        names = run(file)
        with pytest.raises(RuntimeError, match="no argument 'modell', did you mean 'model'"):
            execute(names, ['modell:=x.urdf'], LAUNCH / file)
        with pytest.raises(RuntimeError, match="there is no argument 'colour', only model"):
            execute(names, ['colour:=red'], LAUNCH / file)
        with pytest.raises(RuntimeError, match='use_sim_time must be true or false'):
            execute(names, use_sim_time='perhaps')
        # What every launch file takes, and what launch itself was started with.
        assert execute(names, ['sigterm_timeout:=3', 'mode:=gravity', 'launch-prefix:=nice'],
                       LAUNCH / file)[1]


@pytest.mark.parametrize('file', [None, LAUNCH / 'bringup.launch.py', '<script>'])
def test_arguments_of_a_launch_file_that_includes_this_one_are_not_its_own(run, file):
    assert execute(run('dynamics.launch.py'), ['modell:=x.urdf'], file)[1]


@pytest.mark.parametrize('file', ['dynamics.launch.py', 'bringup.launch.py'])
def test_arguments_with_few_values_show_them(run, file):
    *declared, _ = run(file).generate_launch_description().arguments[0]
    shown = {one.arguments[0]: one.options['choices'] for one in declared}
    assert {name for name, values in shown.items() if values} == {'mode', 'robot'}
    assert shown['mode'] == ['', 'gravity', 'pd_gravity', 'cartesian_impedance', 'computed_torque',
                             'hybrid', 'joint_impedance', 'slotine_li']
    assert shown['robot'] == ['', 'franka', 'generic', 'kinova', 'kuka_fri', 'ur', 'ur_currents']


def test_a_description_that_is_published_already_is_not_published_again(run, monkeypatch, tmp_path,
                                                                        logged):
    (tmp_path / 'arm.urdf').write_text(ARM)
    asked = []

    def published(topic, is_over):
        asked.append((topic, is_over()))
        return '/left/driver', ARM
    monkeypatch.setattr('rbd_ros.ros.launch.published_description.published_description',
                        published)
    started = Started(run('dynamics.launch.py'), model=str(tmp_path / 'arm.urdf'),
                      namespace='left')
    assert set(started.nodes) == {'dynamics_node'}
    assert asked == [('/left/robot_description', False)]
    assert logged == [
        '/left/driver publishes robot_description already, so robot_state_publisher is not '
        f'started. That description is the same as {tmp_path}/arm.urdf']


@pytest.mark.parametrize('base, namespace, expected', [
    (None, '', ''), (None, 'left', 'left'), ('/cell', 'left', '/cell/left'),
    ('/cell', '', '/cell')])
def test_the_namespace_of_a_group_around_the_file_counts(run, base, namespace, expected):
    for file in ('dynamics.launch.py', 'bringup.launch.py'):
        started = Started(run(file), ros_namespace=base, namespace=namespace)
        assert {node.namespace for node in started.at_once} == {expected}


# -- ros2_control. --------------------------------------------------------------------------------
COMPLETE = (b'[INFO] [1.0] [left.torque_controller]: ~/effort_commands have reached their full '
            b'size\n')


def test_each_step_follows_the_one_before_and_the_controller_is_activated_last(run):
    started = Started(run('bringup.launch.py'), namespace='left', mode='gravity')
    assert [one.executable for one in started.at_once] == [
        'robot_state_publisher', 'ros2_control_node', 'spawner']
    broadcaster = started.at_once[-1]
    assert broadcaster.arguments[0] == 'joint_state_broadcaster'
    loading = started.end(broadcaster)
    assert loading.arguments[0] == 'effort_controller' and '--inactive' in loading.arguments
    node = started.end(loading)
    assert node.executable == 'torque_controller'
    # Nothing else that the node says, nobody else, and only once.
    assert started.say(node, b'[INFO] kernels ready after 1 s', 'stderr') is None
    assert started.say(loading, COMPLETE) is None
    guard = started.say(node, COMPLETE, 'stderr')
    assert guard.executable == 'controller_guard'
    assert started.say(node, COMPLETE) is None
    # Its end is the end of all: the controller is active no longer.
    for one in (*started.at_once[:2], node, guard):
        assert type(started.end(one)).__name__ == 'Shutdown'
    for one in (*started.at_once, loading, node, guard):
        assert one.namespace == 'left'
        with pytest.raises(RuntimeError, match=f'{one.executable} has failed, exit code 1'):
            started.end(one, 1)


def test_a_generated_controller_is_spawned_before_the_one_above_it(run, tmp_path, monkeypatch):
    index = tmp_path / 'share/ament_index/resource_index/packages'
    index.mkdir(parents=True)
    (index / 'my_controller').write_text('')
    folder = tmp_path / 'share/my_controller'
    folder.mkdir()
    (folder / 'controllers.yaml').write_text(
        '/**/joint_trajectory_controller: {ros__parameters: {joints: [elbow]}}')
    share()     # sets the path of this environment
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path), prepend=os.pathsep)
    started = Started(run('bringup.launch.py'), controller='my_controller')
    step, names = started.at_once[-1], []
    while step:
        names.append(step.arguments[0])
        step = started.end(step)
    assert names == ['joint_state_broadcaster', 'my_controller', 'joint_trajectory_controller']
