# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``: what it prints, its exit codes, and that each message is one line."""

import errno
from functools import partial
import io
import os
import queue
import re
import shlex
import signal
import subprocess
import sys
from unittest.mock import Mock
import warnings

from command_line import ARM, code_of, one_line, ROOT, running
import pytest
import rbd_ros
from rbd_ros._internal.atomic_write import whole_files
from rbd_ros.cli.common.terminal import heartbeat, progress, SILENCE
from rbd_ros.cli.main import COMMANDS, main
from robots import example_urdf, load_quietly


# -- Being used wrongly. --------------------------------------------------------------------------

@pytest.mark.parametrize('arguments, message', [
    (['look'], "invalid choice: 'look'"), (['check'], 'urdf'),
    (['check', ARM, 'more'], 'unrecognized arguments: more'),
    (['check', ARM, '--gravity', '0', '0'], 'expected 3 arguments'),
    (['check', ARM, '--colour'], 'unrecognized arguments: --colour'),
    (['check', ARM, 'a\nb'], r'a\\nb'),
    (['torques', ARM, '--q', 'elbow=up'], "'elbow=up' does not end in a number"),
    (['torques', ARM, '--q', '1', 'elbow=2'], 'either all numbers in the order'),
    (['torques', ARM, '--q', 'knee=2'], "no coordinate 'knee'.*shoulder_pan"),
    (['torques', ARM, '--q'], 'expected at least one argument')])
def test_wrong_usage_is_one_line_that_leads_to_help_and_exit_code_1(capsys, arguments, message):
    assert code_of(*arguments) == 1
    line = one_line(capsys)
    assert re.search(message, line)
    assert re.match(r'rbd_ros( \w+)?: .*; see rbd_ros( \w+)? --help$', line)


@pytest.mark.parametrize('arguments, message', [
    (['check', 'nothing.urdf'], 'nothing.urdf cannot be read: No such file'),
    (['check', ARM, '--xacro-args', 'mass:=1'], r'does not end in \.xacro'),
    (['torques', ARM, '--q', '1', '2'], r'--q has the shape \(2,\).*needs \(7,\)'),
    (['torques', ARM, '--v', 'elbow=nan'], "--v of 'elbow' is nan"),
    (['torques', ARM, '--lock', 'knee'], "no joint 'knee'"),
    (['compare', ARM, ARM, '--configurations', '0'], '--configurations must be a whole number'),
    (['compare', ARM, ARM, '--tolerance', '-1'], '--tolerance must lie between'),
    # Numbers that take all memory, or for ever.
    (['compare', ARM, ARM, '--configurations', '1000000000'], 'whole number, from 1 to 100000'),
    (['compare', ARM, ARM, '--configurations', '9' * 400], 'whole number, from 1 to 100000'),
    (['excite', ARM, '-o', 'a.csv', '--harmonics', '100000'], 'harmonics must be .* to 100,'),
    (['excite', ARM, '-o', 'a.csv', '--duration', '1e12'], 'duration must lie between'),
    (['excite', ARM, '-o', 'a.csv', '--duration', '1e5', '--rate', '11', '--steps', '1'],
     '100000 s at 11 Hz are 1100001 points, at most 1000000 are possible: use a lower rate'),
    (['excite', ARM, '-o', 'a.csv', '--duration', 'nan'], 'duration must be finite'),
    (['excite', ARM, '-o', 'a.csv', '--rate', '1e12'], 'rate must lie between'),
    (['excite', ARM, '-o', 'a.csv', '--rate', '-1'], 'rate must lie between'),
    (['excite', ARM, '-o', 'a.csv', '--steps', '1000000000'], 'from 1 to 100000, got'),
    (['excite', ARM, '-o', 'a.csv', '--share', '1e9'], 'share must lie between'),
    (['torques', ARM, '--lock', 'elbow=1e308'], "'elbow': its locked position must not exceed"),
    (['torques', ARM, '--v', 'elbow=1e308'], 'are not finite here'),
    (['view', ARM, '--port', '99999'], '--port must be a whole number, from 0 to 65535')])
def test_refused_arguments_print_one_line_and_exit_with_code_1(capsys, tmp_path, monkeypatch,
                                                               arguments, message):
    monkeypatch.chdir(tmp_path)
    assert code_of(*arguments) == 1
    line = one_line(capsys)
    assert line.startswith('refused: ') and re.search(message, line), line
    assert not list(tmp_path.iterdir())


def help_of(capsys, *arguments):
    """Return what is printed instead of an answer."""
    assert code_of(*arguments) == 0
    out, err = capsys.readouterr()
    assert not err
    return out


def test_the_command_alone_prints_its_help(capsys):
    assert help_of(capsys) == help_of(capsys, '--help')


@pytest.mark.parametrize('name', ['', *COMMANDS])
def test_help_has_examples_and_no_marks_of_another_format(capsys, name):
    text = help_of(capsys, *name.split(), '--help')
    assert f'usage: rbd_ros {name}' in text
    assert not re.search(r'`|:\w+:|\*\*|\.\. \w+::', text)
    examples = text.partition('\nexamples:\n')[2].partition('\n\n')[0].splitlines()
    assert examples and all(line.startswith(f'  rbd_ros {name}') for line in examples)


@pytest.mark.parametrize('name', COMMANDS)
def test_examples_in_help_are_taken(capsys, monkeypatch, name):
    text = help_of(capsys, name, '--help') + help_of(capsys)
    seen = []
    monkeypatch.setattr(f'rbd_ros.cli.{name}.run', lambda options: seen.append(options) or 0)
    examples = re.findall(rf'^  rbd_ros ({name}\b.*)', text, re.MULTILINE)
    for example in examples:
        assert main(shlex.split(example)) == 0
    assert 1 < len(seen) == len(examples)


def test_version_is_that_of_the_package(capsys):
    assert code_of('--version') == 0
    assert capsys.readouterr().out == f'{rbd_ros.__version__}\n'


@pytest.mark.parametrize('arguments, unneeded', [
    (['--help'], ['numpy', 'lxml', 'yaml', 'numba', 'scipy', 'rbd_ros.model']),
    (['check', '--help'], ['numba', 'scipy', 'mujoco', 'xacro']),
    (['check', ARM], ['numba', 'scipy', 'mujoco', 'xacro'])])
def test_commands_import_no_unneeded_modules(arguments, unneeded):
    code = (f'import sys; from rbd_ros.cli.main import main\ntry:\n    main({arguments})\n'
            f'except SystemExit:\n    pass\nprint([x for x in {unneeded} if x in sys.modules])')
    run = subprocess.run([sys.executable, '-c', code], check=True, capture_output=True, cwd=ROOT,
                         text=True)
    *shown, imported = run.stdout.splitlines()
    assert imported == '[]' and len(shown) > 5


@pytest.mark.parametrize('error, code, message', [
    (KeyboardInterrupt(), 130, 'interrupted; no file was changed'),
    (PermissionError(errno.EACCES, 'Permission denied', '/x.csv'), 1, '/x.csv: Permission denied'),
    (OSError('disk\non fire'), 1, r'disk\\non fire'),
    # No mistake of the program.
    (MemoryError('9 TiB'), 1, 'refused: there is not enough memory: 9 TiB\n$'),
    (rbd_ros.ModelError('a\nb'), 1, r'refused: a\\nb')])
def test_errors_while_a_command_runs_are_one_line(capsys, monkeypatch, error, code, message):
    monkeypatch.setattr('rbd_ros.cli.check.run', Mock(side_effect=error))
    assert main(['check', ARM]) == code
    assert re.search(message, one_line(capsys))


def test_files_that_an_interrupt_leaves_open_are_not_reported(capsys, monkeypatch):
    def run(options):
        warnings.warn('unclosed file', ResourceWarning, stacklevel=1)
        warnings.warn('look at this', UserWarning, stacklevel=1)
        raise KeyboardInterrupt
    monkeypatch.setattr('rbd_ros.cli.check.run', run)
    assert main(['check', ARM]) == 130
    assert capsys.readouterr().err == ('warning: look at this\n'
                                       'interrupted; no file was changed\n')


@pytest.mark.parametrize('error', [
    ZeroDivisionError('a\nb'), KeyError('joint'), RecursionError('too deep'), AssertionError(),
    UnicodeEncodeError('ascii', 'é', 0, 1, 'a\nb'), SystemError('c' * 10_000)])
def test_mistakes_of_the_program_are_one_line_that_leads_to_the_traceback(capsys, monkeypatch,
                                                                          error):
    monkeypatch.delenv('RBD_ROS_TRACEBACK', raising=False)
    monkeypatch.setattr('rbd_ros.cli.check.run', Mock(side_effect=error))
    assert main(['check', ARM]) == 70
    line = one_line(capsys)
    assert line.startswith(f'failed: {type(error).__name__}: ') and len(line) < 1000
    assert line[:-1].isprintable() and 'set RBD_ROS_TRACEBACK=1' in line
    monkeypatch.setenv('RBD_ROS_TRACEBACK', '1')
    with pytest.raises(type(error)):
        main(['check', ARM])


def test_warnings_of_the_robot_are_one_line_each(capsys):
    path = example_urdf('anymal-kinova.urdf')
    notes = load_quietly(path).warnings
    assert notes
    assert main(['torques', str(path)]) == 0
    lines = capsys.readouterr().err.splitlines()
    assert lines[:len(notes)] == [f'warning: {note}' for note in notes]


def test_a_closed_pipe_causes_no_traceback():
    process = subprocess.Popen([sys.executable, '-m', 'rbd_ros.cli.main', 'check', ARM], cwd=ROOT,
                               stdout=subprocess.PIPE, stderr=subprocess.PIPE,
                               env={**os.environ, 'PYTHONUNBUFFERED': ''})
    process.stdout.close()
    assert process.stderr.read() == b''
    assert process.wait() == 1


def test_ctrl_c_ends_a_running_command_with_one_line():
    code = ('import time, rbd_ros.cli.check as c\n'
            'def run(options):\n'
            '    print("ready", flush=True); time.sleep(60)\n'
            'c.run = run\n'
            'import sys; from rbd_ros.cli.main import main; sys.exit(main(["check", "x"]))')
    with running('-c', code) as process:
        assert process.stdout.readline() == 'ready\n'
        process.send_signal(signal.SIGINT)
        _, err = process.communicate(timeout=60)
    assert process.returncode == 130
    assert err == 'interrupted; no file was changed\n'


@pytest.mark.filterwarnings('error::pytest.PytestUnraisableExceptionWarning')
def test_ctrl_c_in_a_destructor_ends_a_command(monkeypatch, capsys, request):
    class Loan:

        def __del__(self):
            signal.raise_signal(signal.SIGINT)

    def run(options):
        with progress('working') as update:
            Loan()
            update(1, 2)
        return 0
    monkeypatch.setattr('rbd_ros.cli.check.run', run)
    request.addfinalizer(partial(signal.signal, signal.SIGINT, signal.getsignal(signal.SIGINT)))
    signal.signal(signal.SIGINT, signal.default_int_handler)
    assert main(['check', ARM]) == 130
    assert capsys.readouterr().err == 'interrupted; no file was changed\n'
    assert signal.getsignal(signal.SIGINT) is signal.default_int_handler


# -- Files and progress. --------------------------------------------------------------------------

def test_files_appear_whole_or_not_at_all(tmp_path):
    paths = [tmp_path / 'new' / 'a.csv', tmp_path / 'new' / 'b.yaml']
    with whole_files(*paths) as drafts:
        for draft in drafts:
            draft.write_text('new')
        assert [draft.suffix for draft in drafts] == ['.csv', '.yaml']
        assert not any(path.exists() for path in paths)
    assert all(path.read_text() == 'new' for path in paths)
    with pytest.raises(KeyboardInterrupt), whole_files(*paths) as drafts:
        drafts[0].write_text('newer')
        raise KeyboardInterrupt
    assert all(path.read_text() == 'new' for path in paths)
    assert sorted(path.name for path in paths[0].parent.iterdir()) == ['a.csv', 'b.yaml']
    assert paths[0].stat().st_mode & 0o777 == 0o666 & ~umask()


def umask():
    """Return the bits that new files lack."""
    mask = os.umask(0)
    os.umask(mask)
    return mask


def test_a_link_is_followed_and_a_device_is_not_replaced(tmp_path):
    (tmp_path / 'link.csv').symlink_to(tmp_path / 'file.csv')
    with whole_files(tmp_path / 'link.csv') as (draft,):
        draft.write_text('text')
    assert (tmp_path / 'link.csv').is_symlink()
    assert (tmp_path / 'file.csv').read_text() == 'text'
    for place in ('/dev/null', tmp_path):
        with pytest.raises(rbd_ros.RbdError, match='is not a file'), whole_files(place):
            pass


class Terminal(io.StringIO):
    """Where somebody looks on."""

    def isatty(self):
        return True


def test_progress_is_shown_at_a_terminal_alone(monkeypatch):
    for stream, seen in ((Terminal(), True), (io.StringIO(), False)):
        monkeypatch.setattr('sys.stderr', stream)
        with progress('counting') as update:
            update(1, 4)
        assert ('counting' in stream.getvalue()) is seen
        if seen:
            assert '25' in stream.getvalue()


class Clock:
    """An event that is waited for in periods which pass when a test says so."""

    def __init__(self):
        self.asked, self.passed = queue.Queue(), queue.Queue()
        self.set = lambda: self.passed.put(True)

    def wait(self, seconds):
        self.asked.put(seconds)
        return self.passed.get()

    def tick(self):
        """Let a period pass, and return its seconds when the next one begins."""
        seconds = self.asked.get(timeout=60.0)
        self.passed.put(False)
        self.asked.put(self.asked.get(timeout=60.0))
        return seconds


@pytest.mark.parametrize('stream, counting', [
    (io.StringIO(), ['x: counting', 'x: counting, 25 %']),
    # A bar shows it.
    (Terminal(), [])])
def test_no_command_is_silent_for_more_than_five_seconds(monkeypatch, stream, counting):
    monkeypatch.setattr('sys.stderr', stream)
    monkeypatch.setattr('rbd_ros.cli.common.terminal.Event', Clock)
    monkeypatch.setattr('rbd_ros.cli.common.terminal.SILENCE', SILENCE)
    with heartbeat('x') as clock:
        assert clock.tick() <= 5.0
        with progress('counting') as update:
            clock.tick()
            update(1, 4)
            clock.tick()
        clock.tick()
    assert re.findall(r'x: .*', stream.getvalue()) == [
        'x: still working', *counting, 'x: still working']


def test_every_command_has_a_heartbeat_until_it_is_done(monkeypatch):
    seen = []
    monkeypatch.setattr('rbd_ros.cli.check.run', lambda options: seen.append(
        (options.ended, options.ended.is_set())) or 0)
    assert main(['check', ARM]) == 0
    (ended, before), = seen
    assert ended.is_set() and not before
