# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command line as ``ros2 rbd``, with an outline of ros2cli, which PyPI lacks."""

import argparse
from importlib import import_module
from pathlib import Path
import re
import sys
from types import ModuleType

import pytest

ROOT = Path(__file__).parents[3]
SETUP, ARM = ROOT / 'setup.py', str(ROOT / 'urdf' / 'demo_arm.urdf')


class CommandExtension:
    """The outline of `ros2cli.command.CommandExtension`."""

    NAME = None

    def add_arguments(self, parser, cli_name, *, argv=None):
        raise NotImplementedError

    def main(self, *, parser, args):
        raise NotImplementedError


@pytest.fixture
def extension(monkeypatch):
    """Return the command that setup.py offers to ros2cli as rbd."""
    monkeypatch.setitem(sys.modules, 'ros2cli', ModuleType('ros2cli'))
    outline = ModuleType('ros2cli.command')
    outline.CommandExtension = CommandExtension
    monkeypatch.setitem(sys.modules, 'ros2cli.command', outline)
    module, kind = re.search(r"'ros2cli.command': \[\s*'rbd = ([\w.]+):(\w+)'",
                             SETUP.read_text(encoding='utf-8')).groups()
    monkeypatch.delitem(sys.modules, module, raising=False)
    yield getattr(import_module(module), kind)()
    sys.modules.pop(module, None)


def ros2(extension, *words):
    """Run ``ros2 rbd`` as `ros2cli.cli.main` does, and return the exit code."""
    root = argparse.ArgumentParser(prog='ros2')
    root.add_argument('--use-python-default-buffering', action='store_true')
    command = root.add_subparsers(dest='command').add_parser(
        'rbd', formatter_class=argparse.RawDescriptionHelpFormatter)
    # Looked at once before the command is known, and again with its arguments.
    extension.add_arguments(command, 'ros2 rbd', argv=None)
    args = root.parse_args(['rbd', *words])
    try:
        return extension.main(parser=root, args=args)
    except SystemExit as end:
        return end.code


def test_ros2_rbd_is_an_extension_with_a_line_of_help(extension):
    assert isinstance(extension, CommandExtension)
    # What `ros2 --help` prints beside the name
    assert 'robots' in type(extension).__doc__.splitlines()[0]


@pytest.mark.parametrize('words, code, shown', [
    ((), 0, 'usage: ros2 rbd [-h]'),
    (('--help',), 0, 'ros2 rbd check robot.urdf'),
    (('-h',), 0, 'usage: ros2 rbd [-h]'),
    (('check', '--help'), 0, 'usage: ros2 rbd check [-h]'),
    (('torques', ARM, '--v', '-1e-3', '0', '0', '0', '0', '0', '0'), 0, 'N m')])
def test_ros2_rbd_takes_the_arguments_of_rbd_ros(extension, capsys, words, code, shown):
    assert ros2(extension, *words) == code
    out, err = capsys.readouterr()
    assert shown in out
    assert not err and 'rbd_ros check' not in out


def test_mistakes_name_the_command_that_was_typed(extension, capsys):
    assert ros2(extension, 'look') == 1
    assert re.match(r"ros2 rbd: .*'look'.*; see ros2 rbd --help$", capsys.readouterr().err)


def test_exit_codes_reach_the_shell(extension, tmp_path):
    other = tmp_path / 'other.urdf'
    other.write_text(Path(ARM).read_text('utf-8').replace('mass value="4', 'mass value="5', 1),
                     'utf-8')
    assert ros2(extension, 'compare', ARM, str(other)) == 2
