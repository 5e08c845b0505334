# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros excite``: plan a motion for identification."""

import argparse
from collections.abc import Iterator
from pathlib import Path

import numpy as np
from rbd_ros._internal.atomic_write import check_places
from rbd_ros.cli.common.options import (
    add_list, add_robot, joint_vector, load_robot, number_of_joint)
from rbd_ros.cli.common.terminal import NEGATIVE, print_error, progress
from rbd_ros.cli.common.trajectory_files import check_suffix, Trajectory, write_trajectory
from rbd_ros.model.model import Model
from rbd_ros.motions.excitation.fourier_series import even_times, whole_motion
from rbd_ros.motions.excitation.optimize import Excitation, excitation_limits, excite
from rbd_ros.motions.limits import Limits
from rbd_ros.motions.trajectory_efforts import effort_of_pace

MAX_CONDITION_NUMBER = 100.0  # Above this condition number some parameters are hardly excited.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, lock=True)
    add_list(parser, '-o', '--output', required=True, metavar='FILE',
             help='table (.csv, .parquet) or trajectory_msgs/JointTrajectory (.yaml)')
    parser.add_argument('--duration', type=float, default=20.0,
                        help='duration of the motion, s (default: 20)')
    parser.add_argument('--harmonics', type=int, default=8,
                        help='sines per joint, multiples of 1/duration (default: 8)')
    parser.add_argument('--seed', type=int, default=0, help='seed of the random initial motion')
    parser.add_argument('--steps', type=int, default=160,
                        help='steps of the search (default: 160)')
    parser.add_argument('--rate', type=float, default=100.0,
                        help='points per second in the file, Hz (default: 100)')
    parser.add_argument('--share', type=float, default=0.9,
                        help='fraction of every limit to use (default: 0.9)')
    for name, meaning in (
            ('--lower', 'lower position limit, rad or m'),
            ('--upper', 'upper position limit, rad or m'),
            ('--velocity', 'velocity limit, rad/s or m/s'),
            ('--acceleration', 'acceleration limit, rad/s^2 or m/s^2 (default: that of the '
             'robot, or such that the velocity limit is reached in 0.5 s)'),
            ('--effort', 'effort limit, N m or N')):
        add_list(parser, name, type=number_of_joint, metavar='[JOINT=]NUMBER',
                 help=f'{meaning}, of one joint or of all')


def run(options: argparse.Namespace) -> int:
    """Plan a motion and write it; return 2 if it excites some parameters too little."""
    paths = [Path(path) for path in options.output]
    for path in paths:
        check_suffix(path)
    check_places(*paths)
    model = load_robot(options)
    limits = _limits(model, options)
    for assumed in limits.assumed:
        print(f'{assumed}; using defaults, see --lower, --upper and --velocity')
    times = even_times(options.duration, options.rate)
    with progress('excite') as update:
        found = excite(model, limits, duration=options.duration, harmonics=options.harmonics,
                       seed=options.seed, steps=options.steps, progress=update)
    for path in paths:
        write_trajectory(path, Trajectory(found.joint_names, times, *found.motion.at(times)))
    print('\n'.join(_report(model, found, times)))
    if found.condition_number < MAX_CONDITION_NUMBER:
        return 0
    return print_error(f'doubtful: with a condition number above {MAX_CONDITION_NUMBER:g} some '
                       'parameters can hardly be identified; use more --steps or --harmonics, or '
                       'wider limits', NEGATIVE)


def _limits(model: Model, options: argparse.Namespace) -> Limits:
    own = {'lower': model.lower, 'upper': model.upper, 'velocity': model.velocity_limit,
           'effort': model.effort_limit}
    given = {name: joint_vector(model, f'--{name}', getattr(options, name), limit)
             for name, limit in own.items()}
    limits = excitation_limits(model, **given, share=options.share)
    if options.acceleration:
        acceleration = joint_vector(model, '--acceleration', options.acceleration,
                                    limits.acceleration / options.share)
        limits = excitation_limits(model, **given, acceleration=acceleration, share=options.share)
    return limits


def _report(model: Model, found: Excitation, times: np.ndarray) -> Iterator[str]:
    """Yield the peak velocity and effort of each joint, and their limits."""
    q, v, a = found.motion.at(times)
    whole = whole_motion(model, q)
    assert whole is not None
    tau = effort_of_pace(model, whole, v, a)(1.0)
    peaks = [np.max(np.abs(x), axis=0) for x in (v, a, tau)]
    yield (f'{found.motion.period:g} s, {len(times)} points; condition number of the base '
           f'regressor: {found.condition_number:.3g}; of the random initial motion: '
           f'{found.at_first:.3g}')
    yield 'Range of positions, and peak velocities, accelerations and efforts:'
    for k, joint in enumerate(found.joint_names):
        unit, effort = ('rad', 'N m') if model.angular[k] else ('m', 'N')
        yield (f'{joint:32s} {np.min(q[:, k]):8.3f} ... {np.max(q[:, k]):<7.3f} {unit:3s} '
               f'{peaks[0][k]:8.3f} {unit}/s {peaks[1][k]:9.3f} {unit}/s^2 '
               f'{peaks[2][k]:9.3f} {effort}')
    yield ('Collisions are not checked: simulate the motion first. Move the robot to its start: '
           + ' '.join(f'{joint}={x:.4f}' for joint, x in zip(found.joint_names, q[0])))
