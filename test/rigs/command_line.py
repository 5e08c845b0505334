# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``, for tests of its output."""

from contextlib import contextmanager
from pathlib import Path
import signal
import subprocess
import sys

from rbd_ros.cli.main import main

ROOT = Path(__file__).parents[2]
ARM = str(ROOT / 'urdf/demo_arm.urdf')


def code_of(*arguments):
    """Return the exit code, whether it is returned or raised."""
    try:
        return main(arguments)
    except SystemExit as end:
        return end.code


def one_line(capsys):
    """Return the only line of standard error, if nothing else was printed."""
    captured = capsys.readouterr()
    assert captured.out == ''
    assert captured.err.count('\n') == 1 and captured.err.endswith('\n'), captured.err
    return captured.err


@contextmanager
def running(*arguments):
    """Start a Python process that Ctrl-C ends; kill it if it still runs at the end."""
    # Background jobs of shells ignore Ctrl-C, which their children inherit.
    with subprocess.Popen(
            [sys.executable, *arguments], cwd=ROOT, text=True, stdout=subprocess.PIPE,
            stderr=subprocess.PIPE,
            preexec_fn=lambda: signal.signal(signal.SIGINT, signal.SIG_DFL)) as process:
        try:
            yield process
        finally:
            process.kill()
