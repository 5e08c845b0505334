# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros gains``: find the factors that turn recorded efforts, such as currents, into torques."""

from __future__ import annotations

import argparse
from functools import partial
import sys

import numpy as np
from rbd_ros._internal.text import listed, printable
from rbd_ros.cli.options import add_list, add_reading, add_robot, load_robot, reading_of
from rbd_ros.cli.progress import progress
from rbd_ros.identification.drive_gains import identify_drive_gains
from rbd_ros.identification.pipeline import map_recordings, read_samples

MAX_DEVIATION = 0.1     # Largest standard deviation of a gain, as a share of it.
EXIT_DOUBTFUL = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, lock=True)
    parser.add_argument('recordings', nargs='+', metavar='RECORDING',
                        help='bags or tables of the robot without the payload')
    add_list(parser, '--loaded', metavar='RECORDING', required=True,
             help='bags or tables of similar motions with the payload')
    parser.add_argument('--payload', metavar='LINK', required=True,
                        help='link that carries the payload')
    parser.add_argument('--mass', metavar='KG', type=float, required=True, help='its mass, kg')
    parser.add_argument('--com', nargs=3, type=float, metavar=('X', 'Y', 'Z'),
                        default=[0.0, 0.0, 0.0],
                        help="its centre of mass in the link's frame, m (default: 0 0 0)")
    parser.add_argument('--inertia', nargs=3, type=float, metavar=('XX', 'YY', 'ZZ'),
                        default=[0.0, 0.0, 0.0], help='its moments of inertia about the centre '
                        'of mass, kg m^2 (default: 0 0 0)')
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Print the gain of each joint; return 2 if some were not determined."""
    model, reading = load_robot(options), reading_of(options)
    paths = [*options.recordings, *options.loaded]
    with progress('reading recordings') as update:
        samples = [one for _, one in map_recordings(
            partial(read_samples, model, reading=reading), paths, progress=update)]
    count = len(options.recordings)
    with progress('gains'):
        found = identify_drive_gains(model, options.payload, options.mass, options.com,
                                     options.inertia, samples[:count], samples[count:])
    sure = found.deviation <= MAX_DEVIATION * np.abs(found.gains)
    for name, turns, gain, deviation, known in zip(model.velocity_names, model.angular,
                                                   found.gains, found.deviation, sure):
        text = (f'{gain:.4g}, deviation {deviation:.2g}, {"N m" if turns else "N"} per recorded '
                'unit' if known else 'not determined')
        print(printable(f'{name:32s} {text}'))
    if np.any(sure):
        print(printable('apply them with --scale ' + ' '.join(
            f'{name}={gain:.4g}' for name, gain, known in zip(
                model.velocity_names, found.gains, sure) if known), 2000))
    if np.all(sure):
        return 0
    print(printable('doubtful: the payload is hardly felt by '
                    + listed(np.array(model.velocity_names)[~sure])
                    + ': move them more, or hold a heavier payload further out'),
          file=sys.stderr)
    return EXIT_DOUBTFUL
