# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros gains``: factors that turn recorded efforts, such as currents, into torques."""

import argparse
from functools import partial

from rbd_ros._internal.text import listed, printable
from rbd_ros.cli.common.options import add_list, add_reading, add_robot, load_robot, reading_of
from rbd_ros.cli.common.terminal import NEGATIVE, print_error, progress
from rbd_ros.identification.drive_gains import identify_drive_gains
from rbd_ros.identification.pipeline import map_recordings, read_samples

MAX_DEVIATION = 0.1     # Largest standard deviation of a gain, as a fraction of it.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, lock=True)
    parser.add_argument('recordings', nargs='+', metavar='RECORDING',
                        help='bags or tables of the robot without the payload')
    add_list(parser, '--loaded', metavar='RECORDING', required=True,
             help='bags or tables of similar motions with the payload')
    parser.add_argument('--payload', metavar='LINK', required=True, help='link that carries it')
    parser.add_argument('--mass', metavar='KG', type=float, required=True, help='its mass, kg')
    for name, axes, meaning in (('--com', 'X Y Z', "centre of mass in the link's frame, m"),
                                ('--inertia', 'XX YY ZZ', 'moments of inertia about it, kg m^2')):
        parser.add_argument(name, nargs=3, type=float, metavar=tuple(axes.split()),
                            default=[0.0] * 3, help=f'its {meaning} (default: 0 0 0)')
    add_reading(parser, confirm=False)


def run(options: argparse.Namespace) -> int:
    """Print the gain of each joint; return 2 if some were not determined."""
    model, count = load_robot(options), len(options.recordings)
    with progress('reading recordings') as update:
        samples = [one for _, one in map_recordings(
            partial(read_samples, model, reading=reading_of(options)),
            [*options.recordings, *options.loaded], progress=update)]
    found = identify_drive_gains(model, options.payload, options.mass, options.com,
                                 options.inertia, samples[:count], samples[count:])
    scale = ''
    unknown: list[str] = []
    for name, turns, gain, deviation in zip(model.velocity_names, model.angular, found.gains,
                                            found.deviation):
        text = (f'{gain:.4g}, deviation {deviation:.2g}, {"N m" if turns else "N"} per recorded '
                'unit')
        if deviation <= MAX_DEVIATION * abs(gain):
            scale += f' {name}={gain:.4g}'
        else:
            text = 'not determined'
            unknown.append(name)
        print(printable(f'{name:32s} {text}'))
    print(printable(f'apply them with --scale{scale}') if scale else 'no gain is known')
    if unknown:
        return print_error(f'doubtful: the payload is hardly felt by {listed(unknown)}: move them '
                           'more, or hold a heavier payload further out', NEGATIVE)
    return 0
