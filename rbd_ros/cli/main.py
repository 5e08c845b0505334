# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The command ``rbd_ros``: look at robots, plan and replay recordings, and prepare the machine.

Exit codes: 0 good; 1 refused, or used wrongly; 2 done, but the result says no; 130 interrupted.
Every message is one line on standard error, and no file is left half written.

"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
import os
import sys
import warnings

import rbd_ros
from rbd_ros.cli.parser import Parser, UsageError
from rbd_ros.errors import RbdError
from rbd_ros.texts import printable

# Each is a file beside this one, with ``add_options(parser)`` and ``run(options)``, which returns
# the exit code.
COMMANDS = {
    'check': 'print the content of a URDF; exit code 1 if it is refused',
    'torques': 'print the torques of a state, or those along a trajectory',
    'compare': 'print the differences between two robots; exit code 2 if there are any',
    'excite': 'find a motion that excites the parameters of a robot well, to record',
    'identify': 'find masses, friction and rotors from recordings; exit code 2 if not believable',
    'replay': 'compute the efforts of a model, and external ones, for a recording',
    'view': 'show a robot and its dynamics in a browser, with sliders',
    'warmup': 'compile the kernels, so that nodes and programs start at once',
    'doctor': 'print what is installed, and what is missing',
}
INTERRUPTED = 130


def main(arguments: Sequence[str] | None = None) -> int:
    """
    Run the command.

    Parameters
    ----------
    arguments : list of str, optional
        Default ``sys.argv``.

    Returns
    -------
    int
        Exit code.

    """
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('default')
            warnings.showwarning = _show_warning
            code = _run(arguments)
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return _say('interrupted; no file was changed', INTERRUPTED)
    except RbdError as error:
        return _say(f'refused: {error}')
    except BrokenPipeError:
        # The reader of the output is gone; Python must not flush it again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        named = f'{error.filename}: ' if error.filename else ''
        return _say(f'refused: {named}{error.strerror or error}')


def _run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; only its own file is imported."""
    parser = Parser(prog='rbd_ros', description=__doc__.partition('\n\n')[0])
    parser.add_argument('--version', action='version', version=rbd_ros.__version__)
    subparsers = parser.add_subparsers(required=True, metavar='command', dest='command')
    chosen = next((word for word in arguments if not word.startswith('-')), None)
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=text)
        if name == chosen:
            import_module(f'rbd_ros.cli.{name}').add_options(subparser)
            subparser.set_defaults(parser=subparser)
    options = parser.parse_args(arguments)
    try:
        code: int = import_module(f'rbd_ros.cli.{options.command}').run(options)
    except UsageError as error:
        options.parser.error(str(error))
    return code


def _say(text: str, code: int = 1) -> int:
    print(printable(text), file=sys.stderr)
    return code


def _show_warning(message: Warning | str, *rest: object, **more: object) -> None:
    _say(f'warning: {message}')


if __name__ == '__main__':
    sys.exit(main())
