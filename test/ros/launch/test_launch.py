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

    def __getattr__(self, name):
        """Return an option that launch shows as an attribute."""
        try:
            return self.options[name]
        except KeyError:
            raise AttributeError(name) from None

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


@pytest.fixture
def launch_file(run):
    """Return the names that the launch file of the node defines."""
    return run('dynamics.launch.py')


@pytest.fixture
def bringup(run):
    """Return the names that the launch file for ros2_control defines."""
    return run('bringup.launch.py')


def execute(launch_file, argv=(), file=None, **values):
    """Return the context, and the actions that a launch file returns for some arguments."""
    *declared, last = launch_file.generate_launch_description().arguments[0]
    context = Context({one.arguments[0]: one.options['default_value'] for one in declared}
                      | values, argv, file)
    return context, last.options['function'](context)


def handlers(actions, kind):
    """Return the event handlers of one kind, by the action that they are for."""
    found = [one.arguments[0] for one in actions if type(one).__name__ == 'RegisterEventHandler']
    return {one.options['target_action']: one for one in found if type(one).__name__ == kind}


def started(launch_file, **values):
    """Return the values of the arguments, the namespace and the nodes, by executable."""
    context, actions = execute(launch_file, **values)
    nodes = {one.options['executable']: one for one in actions if type(one).__name__ == 'Node'}
    namespace, = {node.options['namespace'] for node in nodes.values()}
    return context.launch_configurations, namespace, nodes


def test_the_file_starts_what_is_planned(launch_file):
    context, namespace, nodes = started(launch_file, namespace='left', commands='/efforts',
                                        rviz='true')
    assert set(nodes) == {'dynamics_node', 'robot_state_publisher', 'simulated_robot', 'rviz2'}
    assert namespace == 'left'
    assert context['use_sim_time'] == 'false'
    node = nodes['dynamics_node'].options
    assert (node['package'], node['name']) == ('rbd_ros', 'dynamics')
    assert ('~/effort_commands', '/efforts') in node['remappings']
    assert 'name' not in nodes['simulated_robot'].options
    # A text that looks like YAML stays a text.
    description = nodes['robot_state_publisher'].options['parameters'][0]['robot_description']
    assert type(description).__name__ == 'ParameterValue'
    assert description.options == {'value_type': str}
    assert '<robot' in description.arguments[0]


def test_the_failure_of_a_node_that_others_need_is_that_of_launch(launch_file):
    context, actions = execute(launch_file, rviz='true')
    ends = handlers(actions, 'OnExecutionComplete')
    nodes = [one for one in actions if type(one).__name__ == 'Node']
    assert {node.options['executable'] for node in ends} == {
        'dynamics_node', 'robot_state_publisher', 'simulated_robot'}
    assert set(ends) == set(nodes[:3])
    for node, one in ends.items():
        for code, reason in ((1, 'exit code 1'), (-9, 'exit code -9'),
                             (None, 'it could not be started')):
            node.return_code = code
            with pytest.raises(RuntimeError, match=f'{node.executable} has failed, {reason}$'):
                one.on_completion(SimpleNamespace(action=node), context)
        node.return_code = 0
        end = one.on_completion(SimpleNamespace(action=node), context)
        assert type(end).__name__ == 'Shutdown'
        # At the end of all, how one of them ends is no failure.
        context.is_shutdown, node.return_code = True, -2
        assert one.on_completion(SimpleNamespace(action=node), context) is None
        context.is_shutdown = False


@pytest.mark.parametrize('file', ['dynamics.launch.py', 'bringup.launch.py'])
def test_a_node_that_starts_after_ctrl_c_is_interrupted(run, file):
    context, actions = execute(run(file))
    starts = handlers(actions, 'OnProcessStart')
    assert len(starts) == {'dynamics.launch.py': 3, 'bringup.launch.py': 6}[file]
    for node, one in starts.items():
        context.is_shutdown = False
        assert one.on_start(None, context) is None
        context.is_shutdown = True
        event = one.on_start(None, context).options['event']
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


def test_a_bad_argument_is_named_before_anything_starts(launch_file, bringup):
    for names, file in ((launch_file, 'dynamics.launch.py'), (bringup, 'bringup.launch.py')):
        with pytest.raises(RuntimeError, match="no argument 'modell', did you mean 'model'"):
            execute(names, ['modell:=x.urdf'], LAUNCH / file)
        with pytest.raises(RuntimeError, match="there is no argument 'colour', only model"):
            execute(names, ['colour:=red'], LAUNCH / file)
        with pytest.raises(RuntimeError, match="mode: there is no 'fly'"):
            execute(names, mode='fly')
        # What every launch file takes, and what launch itself was started with.
        assert execute(names, ['sigterm_timeout:=3', 'mode:=gravity', 'launch-prefix:=nice'],
                       LAUNCH / file)[1]


@pytest.mark.parametrize('file', [None, LAUNCH / 'bringup.launch.py', '<script>'])
def test_arguments_of_a_launch_file_that_includes_this_one_are_not_its_own(launch_file, file):
    assert execute(launch_file, ['modell:=x.urdf'], file)[1]


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
    nodes = started(run('dynamics.launch.py'), model=str(tmp_path / 'arm.urdf'),
                    namespace='left')[2]
    assert set(nodes) == {'dynamics_node'}
    assert asked == [('/left/robot_description', False)]
    assert 'no moving joint' in logged.pop()
    assert logged == [
        '/left/driver publishes robot_description already, so robot_state_publisher is not '
        f'started. That description is the same as {tmp_path}/arm.urdf']


@pytest.mark.parametrize('base, namespace, expected', [
    (None, '', ''), (None, 'left', 'left'), ('/cell', 'left', '/cell/left'),
    ('/cell', '', '/cell')])
def test_the_namespace_of_a_group_around_the_file_counts(run, base, namespace, expected):
    values = {'ros_namespace': base, 'namespace': namespace}
    assert started(run('dynamics.launch.py'), **values)[1] == expected
    _, actions = execute(run('bringup.launch.py'), **values)
    assert {node.options['namespace'] for node in handlers(actions, 'OnProcessStart')} == {
        expected}


# -- ros2_control. --------------------------------------------------------------------------------

def begun(bringup, **values):
    """Return what is started at once, what ends, by executable and first argument, and output."""
    context, actions = execute(bringup, **values)
    says, = handlers(actions, 'OnProcessIO').values()
    ends = handlers(actions, 'OnExecutionComplete')

    def end(node, code):
        """Return what follows the end of a node."""
        node.return_code = code
        return ends[node].on_completion(SimpleNamespace(action=node), context)
    return [one for one in actions if type(one).__name__ == 'Node'], end, says


def test_each_step_follows_the_one_before_and_the_controller_is_activated_last(bringup):
    at_once, end, says = begun(bringup, namespace='left', mode='gravity')
    assert [one.options['executable'] for one in at_once] == [
        'robot_state_publisher', 'ros2_control_node', 'spawner']
    broadcaster = at_once[-1]
    assert broadcaster.options['arguments'][0] == 'joint_state_broadcaster'
    loading = end(broadcaster, 0)
    assert loading.options['arguments'][0] == 'effort_controller'
    assert '--inactive' in loading.options['arguments']
    node = end(loading, 0)
    assert node.options['executable'] == 'torque_controller'
    assert says.options['target_action'] is node
    # Nothing else that the node says, and only once.
    say = says.options['on_stderr']
    assert say(SimpleNamespace(text=b'[INFO] kernels ready after 1 s')) is None
    line = SimpleNamespace(text=b'[INFO] [1.0] [left.torque_controller]: '
                           b'~/effort_commands have reached their full size\n')
    guard = say(line)
    assert guard.options['executable'] == 'controller_guard'
    assert says.options['on_stdout'](line) is None
    # Its end is the end of all: the controller is active no longer.
    assert type(end(guard, 0)).__name__ == 'Shutdown'
    for one in (*at_once, loading, node, guard):
        assert one.options['namespace'] == 'left'


def test_a_step_that_fails_is_the_failure_of_launch(bringup):
    at_once, end, says = begun(bringup)
    broadcaster = at_once[-1]
    loading = end(broadcaster, 0)
    node = end(loading, 0)
    guard = says.options['on_stdout'](SimpleNamespace(
        text=b'~/effort_commands have reached their full size'))
    for step in (broadcaster, loading, guard):
        with pytest.raises(RuntimeError, match=r'(spawner|controller_guard) has failed, exit '
                                               r'code 1'):
            end(step, 1)
    for one in (*at_once[:2], node):
        assert type(end(one, 0)).__name__ == 'Shutdown'
        with pytest.raises(RuntimeError, match=f'{one.executable} has failed, exit code -9'):
            end(one, -9)


def test_a_generated_controller_is_spawned_before_the_one_above_it(bringup, tmp_path, monkeypatch):
    index = tmp_path / 'share/ament_index/resource_index/packages'
    index.mkdir(parents=True)
    (index / 'my_controller').write_text('')
    folder = tmp_path / 'share/my_controller'
    folder.mkdir()
    (folder / 'controllers.yaml').write_text(
        '/**/joint_trajectory_controller: {ros__parameters: {joints: [elbow]}}')
    share()     # sets the path of this environment
    monkeypatch.setenv('AMENT_PREFIX_PATH', str(tmp_path), prepend=os.pathsep)
    context, actions = execute(bringup, controller='my_controller')
    assert not handlers(actions, 'OnProcessIO')
    *_, step = [one for one in actions if type(one).__name__ == 'Node']
    ends, names = handlers(actions, 'OnExecutionComplete'), []
    while step:
        names.append(step.options['arguments'][0])
        step.return_code = 0
        step = ends[step].on_completion(SimpleNamespace(action=step), context)
    assert names == ['joint_state_broadcaster', 'my_controller', 'joint_trajectory_controller']
