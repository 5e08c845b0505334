# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Options shared by several commands, and functions that evaluate them."""

from __future__ import annotations

import argparse
from collections.abc import Collection, Iterable, Mapping, Sequence
from contextlib import redirect_stdout
from importlib import import_module
import json
from math import isfinite
from pathlib import Path
import sys
from typing import Any, TYPE_CHECKING

import numpy as np
from rbd_ros._internal.atomic_write import check_places, whole_files
from rbd_ros._internal.text import did_you_mean, listed, printable
from rbd_ros.cli.common.terminal import print_error, UsageError
from rbd_ros.errors import RbdError
from rbd_ros.model.arguments import finite_vector
from rbd_ros.model.changes.modifications import with_locked_joints
from rbd_ros.model.files.any_format import is_mjcf_file, load_file
from rbd_ros.model.files.constraint_files import load_constraints
from rbd_ros.model.files.drive_files import load_drives, load_uncertainty
from rbd_ros.model.files.mjcf import compile_mjcf
from rbd_ros.model.files.urdf import read_file
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import (
    closed_along, independent_positions, neutral, normalize, out_of_range)

if TYPE_CHECKING:
    from rbd_ros.identification.pipeline import Reading
    from rbd_ros.view.geometry import Geometry

OTHER_POSITION = 1e-2  # Difference of a passive joint from what is given that is reported.


def add_list(parser: argparse.ArgumentParser, *names: str, **more: Any) -> None:
    """Add an option that takes one or more values and may be repeated."""
    parser.add_argument(*names, nargs='+', action='extend', default=[], **more)


# -- Robots. --------------------------------------------------------------------------------------
def add_robot(parser: argparse.ArgumentParser, *, floating_base: bool = False,
              lock: bool = False, params: bool = False) -> None:
    """Add the options of `load_robot`, those with a flag on request."""
    parser.add_argument('urdf', type=robot_file, help='URDF, xacro or MJCF file of the robot, or '
                        'its name in the package robot_descriptions, if that is installed')
    add_description(parser)
    parser.add_argument('--gravity', nargs=3, type=float, metavar=('X', 'Y', 'Z'),
                        help="gravity in the root link's frame, m/s^2 (default: 0 0 -9.81, or "
                             'that of an MJCF file)')
    add_list(parser, '--ignore', metavar='KIND',
             help='kinds of elements of an MJCF file to leave out, such as equality')
    if floating_base:
        parser.add_argument('--floating-base', action='store_true',
                            help='let the root link move freely')
    if lock:
        add_list(parser, '--lock', type=joint_number, metavar='JOINT[=POSITION]',
                 help='joints to lock, at a position in rad or m (default: 0)')
    if params:
        parser.add_argument('--params', metavar='FILE',
                            help='dynamics.param.yaml with friction, rotors and, if the robot was '
                                 'identified, error bars of its torques')


def robot_file(text: str) -> str:
    """Return a path as it is, and the path of a description that robot_descriptions knows."""
    package = 'robot_descriptions'
    if not text.isidentifier() or Path(text).exists():
        return text
    try:
        # The import clones a repository and prints that, but the output is that of the command.
        with redirect_stdout(sys.stderr):
            module = import_module(f'{package}.{text}')
            if 'XACRO_PATH' in vars(module):
                # Only this function knows the arguments and packages of the xacro file.
                return str(import_module(f'{package}._xacro').get_urdf_path(module))
    except Exception as error:
        if getattr(error, 'name', None) in (package, f'{package}.{text}'):
            return text
        raise RbdError(f"'{text}' of {package}: {printable(' '.join(str(error).split()), 500)}; "
                       'the first use of a name needs git and a network') from error
    return next((str(vars(module)[kind]) for kind in ('URDF_PATH', 'MJCF_PATH')
                 if kind in vars(module)), text)


def add_description(parser: argparse.ArgumentParser) -> None:
    """Add the options that complete a description: xacro arguments and a file of constraints."""
    add_list(parser, '--xacro-args', metavar='NAME:=VALUE', help='arguments for a xacro file')
    parser.add_argument('--constraints', metavar='FILE',
                        help='YAML file with constraints that close loops, or with the names of '
                             'the independent joints')


def load_robot(options: argparse.Namespace, **more: Any) -> Model:
    """Load the robot that the options of `add_robot` name; more: arguments of `load_file`."""
    if options.gravity is not None:
        more['gravity'] = options.gravity
    model = load_file(options.urdf, xacro_arguments=options.xacro_args,
                      floating_base=getattr(options, 'floating_base', False),
                      ignore=options.ignore, **more)
    if options.constraints is not None:
        model = load_constraints(model, options.constraints)
    params = getattr(options, 'params', None)
    if params is not None:
        model = load_drives(model, params)
    if lock := dict(getattr(options, 'lock', [])):
        q = neutral(model)
        for joint, at, _ in model.unconstrained.moving_joints:
            q[at] = lock.get(joint.name, q[at])
        unlocked, model = model, with_locked_joints(model, lock)
        warn_of_range(unlocked, q, lock)
        if params is not None:
            # The joints may have been locked when the robot was identified.
            model = load_uncertainty(model, params)
    return model


def warn_of_range(model: Model, q: np.ndarray, names: Collection[str] | None = None) -> None:
    """Print a warning for each joint out of range; q, rad or m: (nq,) or (points, nq)."""
    for text in out_of_range(model, q, names):
        print_error(f'warning: {text}')


def add_package_path(parser: argparse.ArgumentParser) -> None:
    """Add the option that `shapes_of` evaluates."""
    add_list(parser, '--package-path', metavar='FOLDER',
             help='folders that contain ROS packages, to resolve meshes at package://')


def shapes_of(options: argparse.Namespace, model: Model) -> Geometry:
    """Return the shapes of the robot, and print a note for each missing one."""
    # Imported lazily: most commands need no shapes.
    from rbd_ros.view.geometry import load_geometry, mjcf_geometry
    for folder in options.package_path:
        if not Path(folder).is_dir():
            raise UsageError(f'--package-path {printable(folder, 300)}: no such folder')
    if is_mjcf_file(options.urdf):
        return mjcf_geometry(model, compile_mjcf(options.urdf))
    geometry = load_geometry(model, read_file(options.urdf, options.xacro_args),
                             Path(options.urdf).parent, options.package_path)
    for note in geometry.notes:
        print_error(f'note: {note}')
    return geometry


# -- Recordings. ----------------------------------------------------------------------------------
def add_reading(parser: argparse.ArgumentParser, *, confirm: bool = True) -> None:
    """Add the options that `reading_of` evaluates."""
    add_list(parser, '--rename', type=two_names, metavar='OLD=NEW',
             help='rename joints of the recordings')
    add_list(parser, '--scale', type=factor_of_joint, metavar='JOINT=FACTOR',
             help='factors of the efforts, such as drive gains')
    parser.add_argument('--from', dest='start', type=float, metavar='T',
                        help='ignore states before this time, s from the beginning')
    parser.add_argument('--to', dest='stop', type=float, metavar='T',
                        help='ignore states from this time on, s from the beginning')
    if confirm:
        parser.add_argument('--efforts-are-torques', action='store_true',
                            help='confirm that efforts are torques although they are multiples '
                                 'of those of the URDF, or exceed its limits')
    parser.add_argument('--topic', metavar='NAME',
                        help='topic in bags (default: the only one with joint states, or '
                             '/joint_states)')
    parser.add_argument('--cutoff', type=float, metavar='HZ',
                        help='cut-off of the filter (default: chosen from motion and efforts)')


def reading_of(options: argparse.Namespace) -> Reading:
    """Return how recordings are read, from the options of `add_reading`."""
    # Imported lazily: most commands need no recordings.
    from rbd_ros.identification.pipeline import Reading
    return Reading(rename=dict(options.rename), scale=dict(options.scale), start=options.start,
                   stop=options.stop, topic=options.topic, cutoff=options.cutoff)


# -- Files that are written. ----------------------------------------------------------------------
def check_outputs(recordings: Iterable[str], given: Mapping[str, str | Path | None]) -> None:
    """Raise unless files, by the options that name them, can be written and are different."""
    taken = dict.fromkeys((Path(one).resolve() for one in recordings), 'the recording')
    for option, path in given.items():
        if path is not None:
            place, = check_places(path)
            if place in taken:
                raise UsageError(f'{option} {path}: this is {taken[place]}, which will not be '
                                 'replaced; choose another name')
            taken[place] = f'the file of {option}'


def write_text(path: str | Path, text: str) -> None:
    """Write a whole file, or none."""
    with whole_files(path) as (draft,):
        draft.write_text(text, encoding='utf-8')


def json_text(content: Any) -> str:
    """Return JSON; arrays are lists, and numbers that are not finite null."""
    return json.dumps(_plain(content), indent=2, ensure_ascii=False, allow_nan=False) + '\n'


def _plain(content: Any) -> Any:
    if isinstance(content, Mapping):
        return {name: _plain(one) for name, one in content.items()}
    if isinstance(content, (np.ndarray, np.generic)):
        content = content.tolist()
    if isinstance(content, (list, tuple)):
        return [_plain(one) for one in content]
    return None if isinstance(content, float) and not isfinite(content) else content


# -- Numbers and names. ---------------------------------------------------------------------------
def joint_number(text: str) -> tuple[str, float]:
    """Parse ``JOINT=NUMBER``, or ``JOINT``, which means 0."""
    name, position = number_of_joint(text if '=' in text else f'{text}=0')
    return name or '', position


def factor_of_joint(text: str) -> tuple[str, float]:
    """Parse ``JOINT=NUMBER``."""
    if text.rfind('=') < 1:
        raise argparse.ArgumentTypeError(f"'{printable(text, 120)}' is not JOINT=FACTOR")
    return joint_number(text)


def number_of_joint(text: str) -> tuple[str | None, float]:
    """Parse ``JOINT=NUMBER``, or ``NUMBER``, whose joint is None."""
    name, mark, number = text.rpartition('=')
    try:
        return name if mark else None, float(number)
    except ValueError:
        raise argparse.ArgumentTypeError(
            f"'{printable(text, 120)}' does not end in a number") from None


def two_names(text: str) -> tuple[str, str]:
    """Return the names of ``OLD=NEW``."""
    old, mark, new = text.partition('=')
    if not (old and mark and new):
        raise argparse.ArgumentTypeError(f"'{printable(text, 120)}' is not OLD=NEW")
    return old, new


def state_vector(model: Model, label: str, given: Sequence[tuple[str | None, float]], *,
                 positions: bool = False) -> np.ndarray:
    """Return q (if ``positions``), v or a, given in order or by name; others are neutral."""
    # With closed loops, q has the given positions of the independent joints; those of the others
    # are solved, and what is given of them is a guess.
    if given and all(name is None for name, _ in given):
        numbers = [x for _, x in given]
        if positions and model.constraints and len(numbers) == len(independent_positions(model)):
            return closed_along(model, np.array([numbers]), label)[0]
        q = finite_vector(model, label, numbers, positions=positions)
        return normalize(model, q, label) if positions and model.constraints else q
    names = model.position_names if positions else model.velocity_names
    vector = neutral(model) if positions else np.zeros(model.nv)
    for name, x in given:
        if name is None:
            raise UsageError(f'{label}: give either all numbers in the order of the model, or '
                             f'NAME={x:g} for each')
        vector[index_of(label, name, names)] = x
    vector = finite_vector(model, label, vector, positions=positions)
    if not positions or not model.constraints:
        return vector
    own, positions_of = independent_positions(model), {str(name): x for name, x in given}
    if positions_of.keys() <= {model.position_names[k] for k in own}:
        return closed_along(model, vector[None, own], label)[0]
    q = normalize(model, vector, label)
    warn_of_other_positions(model, positions_of, q)
    return q


def warn_of_other_positions(model: Model, given: Mapping[str, float | np.ndarray],
                            q: np.ndarray) -> None:
    """Print a warning for each position that is given, but not the one that closes the loops."""
    for name, x in given.items():
        found = q[..., model.position_names.index(name)]
        k = np.argmax(np.abs(np.subtract(found, x)))
        x, found = np.ravel(np.broadcast_to(x, np.shape(found)))[k], np.ravel(found)[k]
        if abs(found - x) > OTHER_POSITION:
            print_error(f"warning: '{name}' is at {found:.4g}, not at {x:.4g}: it depends on "
                        + listed(model.velocity_names))


def joint_vector(model: Model, label: str, given: Iterable[tuple[str | None, float]],
                 default: np.ndarray) -> np.ndarray:
    """Return a number per velocity: given by name or for all (later ones win), or the default."""
    vector = np.array(default, float)
    for name, x in given:
        vector[... if name is None else index_of(label, name, model.velocity_names)] = x
    return vector


def names_in(option: str, texts: Sequence[str], known: Sequence[str], more: str = '') -> list[str]:
    """Return the names in texts, separated by commas, without repetitions."""
    names = dict.fromkeys(name for text in texts for word in text.split(',')
                          if (name := word.strip()))
    # Texts without a name are errors.
    for name in names or [''] * len(texts):
        if name not in known:
            raise UsageError(f"{option}: there is no '{printable(name, 100)}', only "
                             f'{listed(known)}{more}')
    return [*names]


def index_of(label: str, name: str, names: tuple[str, ...]) -> int:
    """Return the index of a coordinate."""
    if name not in names:
        raise UsageError(f"{label}: the robot has no coordinate '{name}'"
                         + did_you_mean(name, names, '; it has ' + listed(names)))
    return names.index(name)
