# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command line as ``ros2 rbd``, an extension of ros2cli."""

from argparse import ArgumentParser, Namespace, REMAINDER
from typing import Any

from rbd_ros.cli.main import main
from ros2cli.command import CommandExtension

PROGRAM = 'ros2 rbd'


class RbdCommand(CommandExtension):
    """Inspect robots, plan and replay recordings; the same as rbd_ros."""

    def add_arguments(self, parser: ArgumentParser, cli_name: str, **_: Any) -> None:
        """Leave all arguments, also -h and --help, to the parser of rbd_ros."""
        parser.prefix_chars = '\0'       # no argument begins with it: none is an option of ros2
        parser.add_argument('arguments', nargs=REMAINDER)

    def main(self, *, parser: ArgumentParser, args: Namespace) -> int:
        """Run the command, and return its exit code."""
        return main(args.arguments, PROGRAM)
