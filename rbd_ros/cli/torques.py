# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros torques``: compute the torques of a state or along a trajectory, or retime it."""

import argparse
from collections.abc import Iterator
from dataclasses import replace
from pathlib import Path

import numpy as np
from rbd_ros._internal.atomic_write import check_places
from rbd_ros._internal.text import listed
from rbd_ros.cli.common.options import (
    add_list, add_robot, joint_vector, load_robot, number_of_joint, state_vector,
    warn_of_other_positions, warn_of_range)
from rbd_ros.cli.common.terminal import NEGATIVE, print_error, UsageError
from rbd_ros.cli.common.trajectory_files import (
    check_suffix, read_trajectory, Trajectory, write_trajectory)
from rbd_ros.dynamics import friction_torques, inverse_dynamics, spring_torques
from rbd_ros.errors import RecordingError
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import closed_along, independent_positions
from rbd_ros.motions.limits import beyond, limits_of, slowdown
from rbd_ros.motions.retiming import retime
from rbd_ros.motions.trajectory_efforts import trajectory_efforts, TrajectoryEfforts


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, floating_base=True, lock=True, params=True)
    parser.add_argument('trajectory', nargs='?', metavar='TRAJECTORY',
                        help='trajectory_msgs/JointTrajectory, or message with one (.yaml), or '
                             'table (.csv, .parquet) with time, <joint>/position etc.')
    parser.add_argument('-o', '--output', metavar='FILE',
                        help='write the trajectory with efforts (.yaml, .csv, .parquet)')
    for name, meaning in (('--q', 'positions, rad or m'), ('--v', 'velocities, rad/s or m/s'),
                          ('--a', 'accelerations, rad/s^2 or m/s^2')):
        add_list(parser, name, type=number_of_joint, metavar='[JOINT=]NUMBER',
                 help=f'{meaning}: all, in the order of rbd_ros check, or some by name (else 0)')
    parser.add_argument('--friction', action='store_true',
                        help='add the torques of damping and friction')
    parser.add_argument('--springs', action='store_true', help='add the torques of springs')
    parser.add_argument('--retime', action='store_true',
                        help='replace the times of the trajectory: the fastest motion along its '
                             'path within the limits of velocity, acceleration and effort, with '
                             'friction and springs')
    for name, meaning in (('--velocity', 'velocity limit, rad/s or m/s'),
                          ('--acceleration', 'acceleration limit, rad/s^2 or m/s^2'),
                          ('--jerk', 'jerk limit, rad/s^3 or m/s^3')):
        add_list(parser, name, type=number_of_joint, metavar='[JOINT=]NUMBER',
                 help=f'for --retime: {meaning}, of one joint or of all, if it is smaller than '
                      'that of the robot')
    parser.add_argument('--effort-share', type=float, metavar='SHARE',
                        help='for --retime: share of the effort limits that is used; the rest is '
                             'left to feedback (default: 1)')


def run(options: argparse.Namespace) -> int:
    """Print M a + C v + g; return 2 if a trajectory exceeds the limits of the robot."""
    states = [name for name in ('q', 'v', 'a') if getattr(options, name)]
    if options.trajectory is not None and states:
        raise UsageError(f'--{states[0]}: give a trajectory or a state, not both')
    if options.output is not None and options.trajectory is None:
        raise UsageError('-o: requires a trajectory; give a trajectory to write it with efforts')
    if options.retime and options.trajectory is None:
        raise UsageError('--retime: requires a trajectory, whose times it replaces')
    for name in ('velocity', 'acceleration', 'jerk', 'effort_share'):
        if getattr(options, name) not in (None, []) and not options.retime:
            raise UsageError(f'--{name.replace("_", "-")}: is for --retime')
    model = load_robot(options)
    if options.trajectory is not None:
        return _trajectory(model, options)
    q = state_vector(model, '--q', options.q, positions=True)
    v = state_vector(model, '--v', options.v)
    a = state_vector(model, '--a', options.a)
    tau = inverse_dynamics(model, q, v, a)
    if options.friction:
        tau += friction_torques(model, v, q=q)
    if options.springs:
        tau += spring_torques(model, q)
    for name, x, angular in zip(model.velocity_names, tau, model.angular):
        print(f'{name:32s} {x:16.9g} {"N m" if angular else "N"}')
    warn_of_range(model, q)
    for quantity, values, limits, units in (
            ('velocity', v, model.velocity_limit, ('rad/s', 'm/s')),
            ('acceleration', a, limits_of(model).rates(v, a), ('rad/s^2', 'm/s^2')),
            ('effort', tau, model.effort_limit, ('N m', 'N'))):
        for k in np.flatnonzero(beyond(values, limits)):
            print_error(f"warning: '{model.velocity_names[k]}': the {quantity} is {values[k]:.4g} "
                        f'{units[0 if model.angular[k] else 1]}, its limit is {limits[k]:.4g}')
    return 0


def _trajectory(model: Model, options: argparse.Namespace) -> int:
    """Print the velocities and efforts along a trajectory, and write it with its efforts."""
    if options.output is not None:
        check_suffix(Path(options.output))
        check_places(options.output)
    trajectory = read_trajectory(Path(options.trajectory))
    order = _order(model, options.trajectory, trajectory)
    q = closed_along(model, trajectory.positions[:, order], options.trajectory)
    warn_of_other_positions(model, {
        name: trajectory.positions[:, k] for k, name in enumerate(trajectory.joint_names)
        if model.constraints and name in model.position_names}, q)
    if options.retime:
        return _retimed(model, options, q)
    v, a = (None if x is None else x[:, order]
            for x in (trajectory.velocities, trajectory.accelerations))
    found = trajectory_efforts(model, trajectory.time, q, v, a, friction=options.friction,
                               springs=options.springs)
    print('\n'.join(_report(model, trajectory.time, found)))
    warn_of_range(model, q)
    if options.output is not None:
        filled = Trajectory(model.velocity_names, trajectory.time, trajectory.positions[:, order],
                            found.velocity, found.acceleration, found.effort)
        write_trajectory(Path(options.output), filled)
    if found.time_scale <= 1.0:
        return 0
    return print_error('beyond the limits of the robot' + (
        f': multiply all times by {found.time_scale:.4g}, then it keeps to them'
        if np.isfinite(found.time_scale) else
        ', even at standstill: choose other positions, or reduce the payload'), NEGATIVE)


def _retimed(model: Model, options: argparse.Namespace, q: np.ndarray) -> int:
    """Print and write the fastest motion through the positions of a trajectory."""
    velocity, acceleration, jerk = (
        joint_vector(model, f'--{name}', getattr(options, name), np.full(model.nv, np.inf))
        for name in ('velocity', 'acceleration', 'jerk'))
    share = 1.0 if options.effort_share is None else options.effort_share
    found = retime(model, q, velocity_limit=velocity, acceleration_limit=acceleration,
                   jerk_limit=jerk, effort_share=share)
    limited = replace(model, velocity_limit=np.minimum(velocity, model.velocity_limit),
                      effort_limit=share * model.effort_limit)
    print('\n'.join(_report(limited, found.time, TrajectoryEfforts(
        found.v, found.a, found.effort, 1.0))))
    warn_of_range(model, q)
    if options.output is not None:
        # With accelerations that jump at the points, controllers would interpolate wrongly.
        written = Trajectory(model.velocity_names, found.time,
                             found.q[:, independent_positions(model)], found.v,
                             found.a if found.smooth else None, found.effort)
        write_trajectory(Path(options.output), written)
    return 0


def _order(model: Model, path: str, trajectory: Trajectory) -> list[int]:
    if model.unconstrained.nq != model.unconstrained.nv:
        raise UsageError(f'{path}: trajectories have one position per joint; load the robot '
                         'without --floating-base, or lock joints with several coordinates')
    index_of = {name: k for k, name in enumerate(trajectory.joint_names)}
    missing = [name for name in model.velocity_names if name not in index_of]
    if missing:
        raise RecordingError(f'{path}: the trajectory lacks {listed(missing)}: give the position'
                             + (' of each independent joint' if model.constraints else
                                ' with --lock JOINT=POSITION'))
    # Locked, mimic and passive joints are allowed.
    known = {joint.name for joint in model.joints}
    unknown = [name for name in index_of if name not in known]
    if unknown:
        raise RecordingError(f"{path}: robot '{model.name}' has no joint {listed(unknown)}; "
                             'remove it from the trajectory')
    return [index_of[name] for name in model.velocity_names]


def _report(model: Model, time: np.ndarray, found: TrajectoryEfforts) -> Iterator[str]:
    """Yield the peak velocity and effort of each joint, and their limits."""
    yield (f'{len(time)} points in {time[-1] - time[0]:g} s; peak velocities and efforts, and '
           'their limits:')
    too_fast = slowdown(model, time, found.velocity, found.acceleration) > 1.0
    for k, name in enumerate(model.velocity_names):
        unit, force = ('rad/s', 'N m') if model.angular[k] else ('m/s', 'N')
        row = f'{name:32s}'
        for values, limit, label in ((found.velocity, model.velocity_limit[k], unit),
                                     (found.effort, model.effort_limit[k], force)):
            worst = int(np.argmax(np.abs(values[:, k])))
            mark = '!' if beyond(values[worst, k], limit) else ' '
            bound = f'of {limit:g}' if np.isfinite(limit) else 'no limit'
            row += f' {values[worst, k]:10.4g}{mark}{label} at {time[worst]:.3f} s, {bound}'
        if too_fast[k] and not np.any(beyond(found.velocity[:, k], model.velocity_limit[k])):
            row += '; its acceleration or jerk is beyond the limit!'
        yield row
