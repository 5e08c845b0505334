# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``: every message is one line, and no file is left incomplete."""

from collections.abc import Collection, Sequence
from importlib import import_module
import os
import sys
import warnings

import rbd_ros
from rbd_ros._internal.text import printable
from rbd_ros.cli.common.terminal import heartbeat, Parser, print_error, UsageError
from rbd_ros.errors import RbdError

# Purpose and examples, which tests run, of each command: a module of this package with
# ``add_options(parser)`` and ``run(options)``, which returns the exit code.
COMMANDS = {
    'check': ('check a URDF or MJCF and print its content; exit code 1 if it is rejected',
              'robot.urdf', 'robot.urdf.xacro --xacro-args side:=left --json'),
    'torques': ('compute the torques of a state or along a trajectory, or the fastest motion',
                'robot.urdf', 'robot.urdf --q shoulder=0.6 elbow=1.2 --v elbow=-0.5',
                'robot.urdf motion.csv -o efforts.csv',
                'robot.urdf planned.yaml --retime --acceleration 5 -o fast.yaml'),
    'compare': ('print the differences between two robots; exit code 2 if there are any',
                'old.urdf new.urdf', 'old.urdf new.urdf --tolerance 1e-3'),
    'excite': ('plan a motion for identification, within the limits of the robot',
               'robot.urdf -o motion.yaml',
               'robot.urdf --duration 30 --velocity 1 -o motion.csv'),
    'diagnose': ('say why efforts differ from the torques of a robot; exit code 2 if anything is '
                 'found', 'robot.urdf run.mcap',
                 'robot.urdf run.csv --params dynamics.param.yaml --json findings.json '
                 '--report findings.html'),
    'identify': ('identify masses, friction and rotors from recordings; exit code 2 if in doubt',
                 'robot.urdf monday.mcap tuesday --validate wednesday.csv -o result',
                 'result/robot.urdf run.csv --payload tool --params result/dynamics.param.yaml '
                 '-o load'),
    'gains': ('find drive gains from recordings with and without a known payload',
              'robot.urdf run.csv --loaded loaded.csv --payload tool --mass 4 --com 0 0 0.1'),
    'replay': ('compute model efforts and external efforts for a recording',
               'robot.urdf run.mcap -o efforts.csv --plot',
               'result/robot.urdf run.csv -o efforts.csv --params result/dynamics.param.yaml'),
    'generate': ('write the dynamics of a robot as C source, in a package',
                 'robot.urdf -o robot_dynamics', 'robot.urdf -o robot_dynamics --float '
                 '--functions inverse_dynamics mass_matrix'),
    'view': ('show a robot and its dynamics in a browser, with sliders',
             'robot.urdf', 'robot.urdf --package-path ~/ros2_ws/src --port 8081'),
    'warmup': ('compile the kernels in advance, so that nodes and programs start quickly', ''),
    'doctor': ('check the installation', ''),
}
EXIT_CODES = """exit codes:
  0    success
  1    invalid input or wrong usage
  2    the command ran, but the result is negative
  70   internal error: a bug in rbd_ros
  130  interrupted by Ctrl-C"""
INTERNAL_ERROR, INTERRUPTED = 70, 130
# Environment variable: print the traceback of internal errors.
TRACEBACK_VARIABLE = 'RBD_ROS_TRACEBACK'


def main(arguments: Sequence[str] | None = None, program: str = 'rbd_ros') -> int:
    """Run the command with arguments (default: ``sys.argv``), and return the exit code."""
    arguments = sys.argv[1:] if arguments is None else list(arguments)
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('default')
            # Ctrl-C during an import leaves its file open, which is no concern of a user.
            warnings.simplefilter('ignore', ResourceWarning)
            warnings.showwarning = _show_warning
            code = _run(arguments, program)
            sys.stdout.flush()
        return code
    except KeyboardInterrupt:
        return print_error('interrupted; no file was changed', INTERRUPTED)
    except RbdError as error:
        return print_error(f'refused: {error}')
    except BrokenPipeError:
        # The reader of the output has exited; Python must not flush again at exit.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 1
    except OSError as error:
        named = f'{error.filename}: ' if error.filename else ''
        return print_error(f'refused: {named}{error.strerror or error}')
    except MemoryError as error:
        return print_error(f'refused: there is not enough memory: {error}')
    except Exception as error:
        if os.environ.get(TRACEBACK_VARIABLE):
            raise
        reason = printable(f'{type(error).__name__}: {error}', 500)
        return print_error(f'failed: {reason}; this is a bug in rbd_ros: set {TRACEBACK_VARIABLE}'
                           '=1, run the command again, and report the output', INTERNAL_ERROR)


def _run(arguments: Sequence[str], program: str) -> int:
    """Run the command that the arguments name; other commands are not imported."""
    parser = Parser(prog=program, description='Robot dynamics on the command line.',
                    epilog=f'{_examples(program, COMMANDS)}\n\n{EXIT_CODES}')
    parser.add_argument('--version', action='version', version=rbd_ros.__version__)
    subparsers = parser.add_subparsers(required=True, metavar='command', dest='command')
    chosen = next((word for word in arguments if not word.startswith('-')), None)
    for name, (text, *_) in COMMANDS.items():
        subparser = subparsers.add_parser(name, help=text, description=text,
                                          epilog=_examples(program, [name]))
        if name == chosen:
            import_module(f'rbd_ros.cli.{name}').add_options(subparser)
            subparser.set_defaults(parser=subparser)
    if not arguments:
        parser.print_help()
        return 0
    options = parser.parse_args(arguments)
    try:
        with heartbeat(f'{program} {options.command}') as options.ended:
            code: int = import_module(f'rbd_ros.cli.{options.command}').run(options)
    except UsageError as error:
        options.parser.error(str(error))
    return code


def _examples(program: str, names: Collection[str]) -> str:
    """Return the examples of a command, or the first one of several commands."""
    lines = [f'  {program} {name} {words}'.rstrip() for name in names for words in
             COMMANDS[name][1:2 if len(names) > 1 else None]]
    return '\n'.join(['examples:', *lines])


def _show_warning(message: Warning | str, *rest: object, **more: object) -> None:
    print_error(f'warning: {message}')


if __name__ == '__main__':
    sys.exit(main())
