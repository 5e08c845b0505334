# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The command ``rbd_ros``: look at robots, plan and replay recordings, and prepare the machine.

Every message is one line on standard error, and no file is left half written.

"""

from __future__ import annotations

from collections.abc import Collection, Sequence
from importlib import import_module
import os
import sys
import warnings

import rbd_ros
from rbd_ros._internal.text import printable
from rbd_ros.cli.parser import Parser, UsageError
from rbd_ros.errors import RbdError

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
# Shown by --help; tests run them.
EXAMPLES = {
    'check': ('robot.urdf', 'robot.urdf.xacro --xacro-args side:=left --json'),
    'torques': ('robot.urdf', 'robot.urdf --q shoulder=0.6 elbow=1.2 --v elbow=-0.5',
                'robot.urdf motion.csv -o efforts.csv'),
    'compare': ('old.urdf new.urdf', 'old.urdf new.urdf --tolerance 1e-3'),
    'excite': ('robot.urdf -o motion.yaml', 'robot.urdf --duration 30 --velocity 1 -o motion.csv'),
    'identify': ('robot.urdf monday.mcap tuesday --validate wednesday.csv -o result',
                 'robot.urdf run.csv --payload tool --params result/dynamics.param.yaml -o load'),
    'replay': ('robot.urdf run.mcap -o efforts.csv --plot',
               'robot.urdf run.csv -o efforts.csv --params result/dynamics.param.yaml'),
    'view': ('robot.urdf', 'robot.urdf --package-path ~/ros2_ws/src --port 8081'),
    'warmup': ('',),
    'doctor': ('',),
}
EXIT_CODES = """exit codes:
  0    success
  1    the input was refused, or the command was used wrongly
  2    the command ran, but with a negative result
  70   the command failed because of a mistake in rbd_ros
  130  interrupted by Ctrl-C"""
FAILED, INTERRUPTED = 70, 130
# If this variable is set, mistakes of the program are shown with their traceback.
TRACEBACK = 'RBD_ROS_TRACEBACK'


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
    except MemoryError as error:
        return _say(f'refused: there is not enough memory: {error}')
    except Exception as error:
        if os.environ.get(TRACEBACK):
            raise
        return _say(f'failed: {printable(f"{type(error).__name__}: {error}", 500)}; this is a '
                    f'mistake in rbd_ros: set {TRACEBACK}=1, run the command again, and report '
                    'what it prints', FAILED)


def _run(arguments: Sequence[str]) -> int:
    """Run the command that the arguments name; only its own file is imported."""
    parser = Parser(prog='rbd_ros', description='Robot dynamics on the command line.',
                    epilog=f'{_examples(COMMANDS)}\n\n{EXIT_CODES}')
    parser.add_argument('--version', action='version', version=rbd_ros.__version__)
    subparsers = parser.add_subparsers(required=True, metavar='command', dest='command')
    chosen = next((word for word in arguments if not word.startswith('-')), None)
    for name, text in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=text,
                                          epilog=_examples([name]))
        if name == chosen:
            import_module(f'rbd_ros.cli.{name}').add_options(subparser)
            subparser.set_defaults(parser=subparser)
    if not arguments:
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    try:
        code: int = import_module(f'rbd_ros.cli.{options.command}').run(options)
    except UsageError as error:
        options.parser.error(str(error))
    return code


def _examples(names: Collection[str]) -> str:
    """Return examples of commands, the first of each if there are several commands."""
    lines = [f'  rbd_ros {name} {words}'.rstrip() for name in names for words in
             EXAMPLES[name][:1 if len(names) > 1 else None]]
    return '\n'.join(['examples:', *lines])


def _say(text: str, code: int = 1) -> int:
    print(printable(text), file=sys.stderr)
    return code


def _show_warning(message: Warning | str, *rest: object, **more: object) -> None:
    _say(f'warning: {message}')


if __name__ == '__main__':
    sys.exit(main())
