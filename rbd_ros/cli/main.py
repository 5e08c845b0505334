# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``: look at a robot, or compile the kernels, before they are used."""

import argparse
import sys
import warnings

from rbd_ros.errors import ModelWarning, RbdError
from rbd_ros.kernel_cache import cache_directory
from rbd_ros.model.urdf import load_urdf
from rbd_ros.warmup import warm_up


def describe(model):
    """
    Return a report on a robot.

    Parameters
    ----------
    model : Model
        The robot.

    Yields
    ------
    str
        Lines of text: size, order of the coordinates, tree, and what is odd.

    """
    yield (f'{model.name}: {len(model.links)} links, {len(model.joints)} joints, '
           f'{model.nv} degrees of freedom, {model.mass:.6g} kg')
    yield ''
    yield 'Coordinates, in the order of every vector:'
    for k, name in enumerate(model.velocity_names):
        unit, effort = ('rad', 'N m') if model.angular[k] else ('m', 'N')
        yield (f'{k:5d}  {name:32s} {model.lower[k]:8.4g} ... {model.upper[k]:<8.4g} {unit:4s}'
               f'effort {model.effort_limit[k]:.4g} {effort}')
    if model.nq != model.nv:
        yield 'Positions: ' + ', '.join(model.position_names)
    yield ''
    yield 'Tree (joint [kind] link, mass in kg):'
    depth = {}
    for k, link in enumerate(model.links):
        joint = model.joints[k - 1] if k else None
        depth[link.name] = depth[joint.parent] + 1 if joint else 0
        mimic = ''
        if joint and joint.mimic:
            mimic = (f' = {joint.mimic.multiplier:g} {joint.mimic.joint} '
                     f'{joint.mimic.offset:+g}')
        lead = f'{joint.name} [{joint.kind}{mimic}] ' if joint else ''
        yield '  ' * depth[link.name] + f'{lead}{link.name}, {link.mass:.6g}'
    yield ''
    if model.warnings:
        yield f'Warnings ({len(model.warnings)}):'
        yield from (f'  {note}' for note in model.warnings)
    else:
        yield 'No warnings.'


def check(options):
    """Print the report on a URDF; return 1 if it is refused."""
    try:
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            model = load_urdf(options.urdf, strict=options.strict,
                              floating_base=options.floating_base)
    except RbdError as error:
        print(f'refused: {error}', file=sys.stderr)
        return 1
    print('\n'.join(describe(model)))
    return 0


def warmup(options):
    """Compile all kernels, or load them from the cache, and say how long that takes."""
    for floating_base, robots in ((False, 'screws alone'), (True, 'ball and free joints')):
        for name, seconds in warm_up(floating_base=floating_base):
            print(f'{seconds:6.2f} s  {name}, joints: {robots}', flush=True)
    print(f'The kernels are in {cache_directory() or "memory alone: there is no home directory"}')
    return 0


def main(arguments=None):
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
    parser = argparse.ArgumentParser(prog='rbd_ros', description=__doc__)
    commands = parser.add_subparsers(required=True)
    checking = commands.add_parser(
        'check', help='print what is in a URDF; exit code 1 if it is refused')
    checking.add_argument('urdf', help='the file; run xacro on .xacro files first')
    checking.add_argument('--strict', action='store_true',
                          help='refuse what otherwise is warned of')
    checking.add_argument('--floating-base', action='store_true', help='let the root float')
    checking.set_defaults(run=check)
    warming = commands.add_parser(
        'warmup', help='compile the kernels, so that nodes and programs start at once')
    warming.set_defaults(run=warmup)
    options = parser.parse_args(arguments)
    return options.run(options)


if __name__ == '__main__':
    sys.exit(main())
