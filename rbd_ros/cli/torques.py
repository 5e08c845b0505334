# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros torques``: the torques of one state, or along a trajectory, by joint."""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from pathlib import Path
import sys

import numpy as np
from rbd_ros._internal.atomic_write import check_places, whole_files
from rbd_ros._internal.text import listed, printable
from rbd_ros.analysis.trajectories import beyond, trajectory_efforts, TrajectoryEfforts
from rbd_ros.cli.options import (add_list, add_robot, load_robot, number_of_joint, state_vector,
                                 warn_of_range)
from rbd_ros.cli.parser import UsageError
from rbd_ros.cli.trajectory_files import (
    check_suffix, read_trajectory, Trajectory, write_trajectory)
from rbd_ros.dynamics import friction_torques, inverse_dynamics
from rbd_ros.errors import RecordingError
from rbd_ros.model.files.drive_files import load_drives
from rbd_ros.model.model import Model

# Done, but the robot cannot follow.
BEYOND_LIMITS = 2


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, floating_base=True, lock=True)
    parser.add_argument('trajectory', nargs='?', metavar='TRAJECTORY',
                        help='.yaml: a trajectory_msgs/JointTrajectory; .csv or .parquet: a table '
                             'with time, <joint>/position and so on')
    parser.add_argument('-o', '--output', metavar='FILE',
                        help='where to write the trajectory with its efforts (.yaml, .csv or '
                             '.parquet)')
    for name, what in (('--q', 'positions, rad or m'), ('--v', 'velocities, per s'),
                       ('--a', 'accelerations, per s^2')):
        add_list(parser, name, type=number_of_joint, metavar='[JOINT=]NUMBER',
                 help=f'{what}: all, in the order that rbd_ros check prints, or some by name; the '
                      'others are 0')
    parser.add_argument('--friction', action='store_true',
                        help='add the torques of damping and friction')
    parser.add_argument('--params', metavar='FILE',
                        help='dynamics.param.yaml of the robot: its friction and rotors')


def run(options: argparse.Namespace) -> int:
    """Print M a + C v + g; return 2 if a trajectory is beyond the limits of the robot."""
    states = [name for name in ('q', 'v', 'a') if getattr(options, name)]
    if options.trajectory is not None and states:
        raise UsageError(f'--{states[0]}: give a trajectory or a state, not both')
    if options.output is not None and options.trajectory is None:
        raise UsageError('-o: one state has no file; give a trajectory to write it with efforts')
    model = load_robot(options)
    if options.params is not None:
        model = load_drives(model, options.params)
    if options.trajectory is not None:
        return _along(model, options)
    q = state_vector(model, '--q', options.q, positions=True)
    v = state_vector(model, '--v', options.v)
    tau = inverse_dynamics(model, q, v, state_vector(model, '--a', options.a))
    if options.friction:
        tau += friction_torques(model, v)
    for name, x, angular in zip(model.velocity_names, tau, model.angular):
        print(f'{name:32s} {x:16.9g} {"N m" if angular else "N"}')
    warn_of_range(model, q)
    for what, values, limits, units in (
            ('velocity', v, model.velocity_limit, ('rad/s', 'm/s')),
            ('effort', tau, model.effort_limit, ('N m', 'N'))):
        for k in np.flatnonzero(beyond(values, limits)):
            print(printable(f"warning: '{model.velocity_names[k]}': the {what} is "
                            f'{values[k]:.4g} {units[0 if model.angular[k] else 1]}, its limit is '
                            f'{limits[k]:.4g}'), file=sys.stderr)
    return 0


def _along(model: Model, options: argparse.Namespace) -> int:
    """Print what a trajectory takes, and write it with its efforts."""
    if options.output is not None:
        check_suffix(Path(options.output))
        check_places(options.output)
    trajectory = read_trajectory(Path(options.trajectory))
    order = _order(model, options.trajectory, trajectory)
    q = trajectory.positions[:, order]
    v, a = (None if x is None else x[:, order]
            for x in (trajectory.velocities, trajectory.accelerations))
    found = trajectory_efforts(model, trajectory.time, q, v, a, friction=options.friction)
    print('\n'.join(_report(model, trajectory.time, found)))
    warn_of_range(model, q)
    if options.output is not None:
        filled = Trajectory(model.velocity_names, trajectory.time, q, found.velocity,
                            found.acceleration, found.effort)
        with whole_files(options.output) as (draft,):
            write_trajectory(draft, filled)
    if found.time_scale <= 1.0:
        return 0
    print(_slower(found), file=sys.stderr)
    return BEYOND_LIMITS


def _order(model: Model, path: str, trajectory: Trajectory) -> list[int]:
    """Return where the joints of the robot are in a trajectory."""
    if model.nq != model.nv:
        raise UsageError(f'{path}: trajectories have one position for each joint; load the robot '
                         'without --floating-base, or lock what has several')
    place = {name: k for k, name in enumerate(trajectory.joint_names)}
    missing = [name for name in model.velocity_names if name not in place]
    if missing:
        raise RecordingError(f'{path}: the trajectory lacks {listed(missing)}: give the position '
                             'with --lock JOINT=POSITION')
    # Joints that are locked, or mimic others, may be in it.
    known = {joint.name for joint in model.joints}
    unknown = [name for name in place if name not in known]
    if unknown:
        raise RecordingError(f"{path}: robot '{model.name}' has no joint {listed(unknown)}; take "
                             'it out of the trajectory')
    return [place[name] for name in model.velocity_names]


def _report(model: Model, time: np.ndarray, found: TrajectoryEfforts) -> Iterator[str]:
    """Yield the greatest velocity and effort of each joint, and their limits."""
    yield (f'{len(time)} points in {time[-1] - time[0]:g} s; greatest velocities and efforts, '
           'and their limits:')
    for k, name in enumerate(model.velocity_names):
        unit, force = ('rad/s', 'N m') if model.angular[k] else ('m/s', 'N')
        row = f'{name:32s}'
        for values, limit, label in ((found.velocity, model.velocity_limit[k], unit),
                                     (found.effort, model.effort_limit[k], force)):
            worst = int(np.argmax(np.abs(values[:, k])))
            mark = '!' if beyond(values[worst, k], limit) else ' '
            bound = f'of {limit:g}' if np.isfinite(limit) else 'no limit'
            row += f' {values[worst, k]:10.4g}{mark}{label} at {time[worst]:.3f} s, {bound}'
        yield row


def _slower(found: TrajectoryEfforts) -> str:
    if not np.isfinite(found.time_scale):
        return ('beyond the limits of the robot, even at standstill: choose other positions, or '
                'take load off')
    return (f'beyond the limits of the robot: multiply all times by {found.time_scale:.4g}, and '
            'it is within')
