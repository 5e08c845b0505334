# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros generate``: write the functions of a robot in C, or a controller around them."""

import argparse
from hashlib import sha256
from pathlib import Path
from typing import Any

from rbd_ros._internal.atomic_write import whole_files
from rbd_ros._internal.text import listed
from rbd_ros.cli.common.options import add_list, add_robot, index_of, load_robot
from rbd_ros.cli.common.terminal import UsageError
from rbd_ros.codegen.functions import FUNCTIONS
from rbd_ros.codegen.package import package_files
from rbd_ros.control.generated_controller import controller_files
from rbd_ros.model.model import Model

DEFAULT = ['inverse_dynamics', 'gravity_torques', 'forward_dynamics', 'mass_matrix']


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, floating_base=True, lock=True, params=True)
    parser.add_argument('-o', '--output', required=True, metavar='FOLDER',
                        help='folder for the package, created if missing')
    add_list(parser, '--functions', choices=list(FUNCTIONS), metavar='NAME',
             help=f'functions: {", ".join(FUNCTIONS)} (default: {", ".join(DEFAULT)})')
    parser.add_argument('--float', action='store_true', help='float instead of double')
    add_list(parser, '--prescribed', metavar='JOINT',
             help='joints whose acceleration is given in hybrid_dynamics')
    parser.add_argument('--controller', action='store_true',
                        help='write a controller for ros2_control instead of functions')
    parser.add_argument('--link', help='link of Jacobians and of task_space_dynamics; with '
                                       '--controller, of the payload (default: the last that '
                                       'moves)')
    parser.add_argument('--prefix', help='beginning of all names (default: name of the robot or, '
                                         'with --controller, what FOLDER has before _controller)')


def run(options: argparse.Namespace) -> int:
    """Write the package."""
    if options.controller:
        if options.functions or options.float or options.prescribed:
            raise UsageError('--controller has its own functions, in double: leave out '
                             '--functions, --float and --prescribed')
        # A folder that is named as a controller names the package.
        name, ending = Path(options.output).resolve().name, '_controller'
        prefix = options.prefix or (name.endswith(ending) and name.removesuffix(ending)) or None
        files = controller_files(load_robot(options), tool=options.link, prefix=prefix,
                                 sources=digests(options))
    else:
        model, functions = load_robot(options), options.functions or DEFAULT
        files = package_files(
            model, functions, prefix=options.prefix, single=options.float,
            sources=digests(options), **function_options(model, options, functions))
    folder = Path(options.output)
    with whole_files(*(folder / name for name in files)) as drafts:
        for draft, text in zip(drafts, files.values()):
            draft.write_text(text, encoding='utf-8')
    print(f'{folder}: {listed(list(files))}')
    return 0


def function_options(model: Model, options: argparse.Namespace,
                     functions: list[str]) -> dict[str, Any]:
    """Return the options of the chosen functions."""
    needed = {name for function in functions for name in FUNCTIONS[function].options}
    for name in ('link', 'prescribed'):
        if (name in needed) != bool(getattr(options, name)):
            users = listed([one for one in FUNCTIONS if name in FUNCTIONS[one].options])
            raise UsageError(f'--{name} belongs to {users}: give both or neither')
    for name in options.prescribed:
        index_of('--prescribed', name, model.velocity_names)
    values = {'link': options.link,
              'prescribed': [name in options.prescribed for name in model.velocity_names]}
    return {name: values[name] for name in needed}


def digests(options: argparse.Namespace) -> dict[str, str]:
    """Return the digests of the files that the robot comes from."""
    paths = [Path(path) for path in (options.urdf, options.constraints, options.params) if path]
    return {path.name: sha256(path.read_bytes()).hexdigest() for path in paths}
