# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The launch files with the launch of an installed ROS; without one, `test_launch` stands in.

The nodes are shell scripts: what they compute is tested elsewhere.

"""

import os
from pathlib import Path
import runpy
import signal
import subprocess
import sys

import pytest

launch = pytest.importorskip('launch')
pytest.importorskip('launch_ros')

HERE = Path(__file__).parents[3]
LAUNCH = HERE / 'launch'
# s, for launch to end
PATIENCE = 100.0
# What `ros2 launch` does, in a session of its own: the first argument is what is called at the
# number of times that the second says, and then comes what Ctrl-C sends to all of a terminal.
DRIVER = """
import importlib, os, signal, sys
import launch
from launch.actions import IncludeLaunchDescription
from launch.launch_description_sources import AnyLaunchDescriptionSource
where, count, path, *arguments = sys.argv[1:]
if where:
    module, kind, name = where.split(':')
    kind, calls = getattr(importlib.import_module(module), kind), []
    real = getattr(kind, name)
    def interrupted(*arguments, **options):
        calls.append(1)
        if len(calls) == int(count):
            os.killpg(0, signal.SIGINT)
        return real(*arguments, **options)
    setattr(kind, name, interrupted)
service = launch.LaunchService(argv=arguments)
service.include_launch_description(launch.LaunchDescription([IncludeLaunchDescription(
    AnyLaunchDescriptionSource(path),
    launch_arguments=[tuple(one.split(':=', 1)) for one in arguments])]))
sys.exit(service.run())
"""
RUNS = '#!/bin/sh\nexec sleep 1000'
FAILS = '#!/bin/sh\nexit 3'
ENDS = '#!/bin/sh\nexit 0'
IS_KILLED = '#!/bin/sh\nkill -9 $$'
CANNOT_RUN = '#!/nowhere/python\n'


@pytest.fixture
def run(tmp_path):
    """Return a function that launches a file with some programs, and returns code and output."""
    share, lib = tmp_path / 'share', tmp_path / 'lib'
    (share / 'rbd_ros').mkdir(parents=True)
    for name in ('config', 'launch', 'urdf'):
        (share / 'rbd_ros' / name).symlink_to(HERE / name)
    index = share / 'ament_index' / 'resource_index' / 'packages'
    index.mkdir(parents=True)

    def run(file, programs, *arguments, interrupt=('', 0)):
        for name, text in programs.items():
            path = lib / name
            path.parent.mkdir(parents=True, exist_ok=True)
            path.write_text(text)
            path.chmod(0o755)
            (index / path.parent.name).touch()
        mark = f'RBD_ROS_TEST={tmp_path}'
        paths = os.pathsep.join([str(tmp_path), os.environ.get('AMENT_PREFIX_PATH', '')])
        done = subprocess.run(
            [sys.executable, '-c', DRIVER, *map(str, interrupt), str(LAUNCH / file), *arguments],
            start_new_session=True, timeout=PATIENCE, capture_output=True, text=True,
            env=os.environ | dict([mark.split('=', 1)]) | {
                'AMENT_PREFIX_PATH': paths, 'ROS_LOG_DIR': str(tmp_path / 'log')})
        left = []
        for process in Path('/proc').glob('[0-9]*'):
            try:
                if mark.encode() in (process / 'environ').read_bytes():
                    left.append(int(process.name))
            except OSError:
                pass            # it belongs to somebody else, or has just ended
        for number in left:
            os.kill(number, signal.SIGKILL)
        assert not left
        return done.returncode, done.stdout + done.stderr
    return run


def programs(**changes):
    """Return the programs that the demo arm needs; all run until they are told to end."""
    return {'rbd_ros/dynamics_node': RUNS, 'rbd_ros/simulated_robot': RUNS,
            'robot_state_publisher/robot_state_publisher': RUNS} | {
        f'rbd_ros/{name}': text for name, text in changes.items()}


def visit(actions, context):
    """Execute all actions but those that start something; return these."""
    from launch.actions import ExecuteProcess
    found = []
    for action in actions or ():
        if isinstance(action, ExecuteProcess):
            found.append(action)
        else:
            found += visit(action.execute(context), context)
    return found


@pytest.mark.parametrize('file, executables', [
    ('dynamics.launch.py', ['dynamics_node', 'robot_state_publisher', 'simulated_robot']),
    ('bringup.launch.py', ['robot_state_publisher', 'ros2_control_node', 'spawner'])])
def test_launch_takes_the_actions_of_the_file(monkeypatch, file, executables):
    monkeypatch.setattr('rbd_ros.ros.launch.launch_plan._is_installed', lambda *_: True)
    names = runpy.run_path(str(LAUNCH / file))
    before = signal.getsignal(signal.SIGINT)
    try:
        nodes = visit(names['generate_launch_description']().entities, launch.LaunchContext())
    finally:
        signal.signal(signal.SIGINT, before)
    assert [node.node_executable for node in nodes] == executables


@pytest.mark.parametrize('program, code, reason', [
    (FAILS, 1, 'dynamics_node has failed, exit code 3'),
    (IS_KILLED, 1, 'dynamics_node has failed, exit code -9'),
    (CANNOT_RUN, 1, 'dynamics_node has failed, it could not be started'),
    (ENDS, 0, 'process has finished cleanly')],
    ids=['fails', 'is killed', 'cannot be started', 'ends'])
def test_launch_fails_if_a_required_node_fails(run, program, code, reason):
    returned, text = run('dynamics.launch.py', programs(dynamics_node=program))
    assert returned == code, text
    assert reason in text


@pytest.mark.parametrize('program', [FAILS, ENDS], ids=['fails', 'ends'])
def test_launch_continues_after_an_optional_node_ends(run, program):
    # The end comes from the simulated robot, and that is none of the viewer's.
    returned, text = run('dynamics.launch.py', programs(
        viewer=program, simulated_robot='#!/bin/sh\nsleep 3'), 'view:=yes')
    assert returned == 0, text


def test_the_failure_of_a_step_is_that_of_the_bring_up(run):
    control = {'rbd_ros/controller_guard': RUNS,
               'controller_manager/ros2_control_node': RUNS, 'controller_manager/spawner': FAILS,
               'joint_state_broadcaster/x': RUNS, 'forward_command_controller/x': RUNS}
    returned, text = run('bringup.launch.py', programs() | control)
    assert returned == 1
    assert 'spawner has failed, exit code 3' in text


@pytest.mark.parametrize('argument, reason', [
    ('modell:=x.urdf', "there is no argument 'modell', did you mean 'model'?"),
    ('mode:=fly', 'provided value "fly" is not valid. Valid options are'),
    ('robot:=fanuc', 'provided value "fanuc" is not valid. Valid options are')])
def test_a_bad_argument_fails_before_anything_starts(run, argument, reason):
    returned, text = run('dynamics.launch.py', programs(), argument)
    assert returned == 1
    assert reason in text
    assert 'process started' not in text


@pytest.mark.parametrize('moment', [
    ('rbd_ros.ros.launch.launch_plan:Process:__new__', 1), ('launch_ros.actions:Node:execute', 1),
    ('launch_ros.actions:Node:execute', 2), ('launch_ros.actions:Node:execute', 3),
    ('subprocess:Popen:__init__', 1), ('subprocess:Popen:__init__', 2),
    ('subprocess:Popen:__init__', 3), ('launch.events.process:ProcessStarted:__init__', 1),
    ('launch.events.process:ProcessStarted:__init__', 3)], ids='{0[0]} {0[1]}'.format)
def test_ctrl_c_at_any_moment_of_the_start_leaves_no_node_behind(run, moment):
    returned, text = run('dynamics.launch.py', programs(), interrupt=moment)
    assert returned == 0, text
    assert 'user interrupted with ctrl-c' in text
    # Each node ends by the signal that Ctrl-C is, and not seconds later by a stronger one.
    assert 'escalating' not in text
