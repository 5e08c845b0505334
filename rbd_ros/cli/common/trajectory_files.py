# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Trajectory files: trajectory_msgs/JointTrajectory as YAML, and tables."""

from collections.abc import Iterator
import json
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rbd_ros._internal.text import listed, printable
from rbd_ros._internal.yaml_files import read_yaml
from rbd_ros.cli.common.options import write_text
from rbd_ros.cli.common.terminal import UsageError
from rbd_ros.errors import RecordingError
from rbd_ros.model.arguments import real_array
from rbd_ros.recordings.tables import read_table, SUFFIXES, write_table

YAML_SUFFIXES = ('.yaml', '.yml')
# Fields of a message's point, and the corresponding table columns of a joint.
FIELDS = {'positions': 'position', 'velocities': 'velocity', 'accelerations': 'acceleration',
          'effort': 'effort'}


class Trajectory(NamedTuple):
    """A joint trajectory; fields are None where unknown."""

    joint_names: tuple[str, ...]
    time: np.ndarray            # (points,), s from the start
    positions: np.ndarray       # (points, joints), rad or m; velocities per s and so on
    velocities: np.ndarray | None = None
    accelerations: np.ndarray | None = None
    effort: np.ndarray | None = None


def check_suffix(path: Path) -> None:
    """Raise unless a file name has the suffix of a trajectory."""
    if path.suffix not in SUFFIXES + YAML_SUFFIXES:
        raise UsageError(f'{printable(str(path))}: the name must end in .csv, .parquet or .yaml')


def read_trajectory(path: Path) -> Trajectory:
    """Return the trajectory in a file; RecordingError names the place if there is none."""
    check_suffix(path)
    found = _of_message(path) if path.suffix in YAML_SUFFIXES else _of_table(path)
    if found.positions is None:
        raise RecordingError(f'{path}: the trajectory has no positions')
    return found


def write_trajectory(path: Path, trajectory: Trajectory) -> None:
    """Write a whole file of all known fields, in the format that the suffix selects."""
    check_suffix(path)
    if path.suffix in YAML_SUFFIXES:
        write_text(path, '\n'.join(_message(trajectory)) + '\n')
        return
    names, columns = ['time'], [trajectory.time]
    known = [label for label in FIELDS if getattr(trajectory, label) is not None]
    for k, joint in enumerate(trajectory.joint_names):
        names += [f'{joint}/{FIELDS[label]}' for label in known]
        columns += [getattr(trajectory, label)[:, k] for label in known]
    write_table(path, names, *columns)


def _message(trajectory: Trajectory) -> Iterator[str]:
    yield "header: {stamp: {sec: 0, nanosec: 0}, frame_id: ''}"
    yield f'joint_names: {json.dumps(trajectory.joint_names, ensure_ascii=False)}'
    yield 'points:'
    known = [label for label in FIELDS if getattr(trajectory, label) is not None]
    for k, t in enumerate(trajectory.time):
        for label in known:
            row = ', '.join(f'{x:.12e}' for x in getattr(trajectory, label)[k])
            yield f'{"-" if label == known[0] else " "} {label}: [{row}]'
        sec, nanosec = divmod(round(t * 1e9), 10 ** 9)
        yield f'  time_from_start: {{sec: {sec}, nanosec: {nanosec}}}'


def _of_message(path: Path) -> Trajectory:
    # `ros2 topic echo` writes one document per message.
    message = _joint_trajectory(path, read_yaml(path, RecordingError, first=True))
    try:
        names, points = message['joint_names'], message['points']
        if '...' in points:
            raise RecordingError(f"{path}: the points end in '...': ros2 topic echo --full-length "
                                 'prints all of them')
        times = [point['time_from_start']['sec'] + 1e-9 * point['time_from_start']['nanosec']
                 for point in points]
    except (TypeError, KeyError) as error:
        reason = (f'it lacks {error}' if isinstance(error, KeyError) else
                  'it needs joint_names and points, with time_from_start: {sec: 0, nanosec: 0}')
        raise RecordingError(
            f'{path}: the file is not a trajectory_msgs/JointTrajectory: {reason}') from None
    if (not isinstance(names, list) or not all(isinstance(name, str) for name in names)
            or len(set(names)) < len(names)):
        raise RecordingError(f'{path}: joint_names must be a list of different names')
    if not points:
        raise RecordingError(f'{path}: the trajectory has no points')
    fields: dict[str, Any] = {label: _field(path, label, points, len(names)) for label in FIELDS}
    return Trajectory(tuple(names), np.array(times, float), **fields)


def _joint_trajectory(path: Path, message: Any) -> Any:
    """Return the trajectory_msgs/JointTrajectory in a message or goal that contains one."""
    if isinstance(message, dict) and 'trajectory' in message:
        message = message['trajectory']
        if isinstance(message, list):
            # moveit_msgs/DisplayTrajectory
            if len(message) != 1:
                raise RecordingError(f'{path}: the message has {len(message)} trajectories, '
                                     'expected one: keep one of them')
            message = message[0]
    return message.get('joint_trajectory', message) if isinstance(message, dict) else message


def _field(path: Path, label: str, points: list[dict[str, Any]], width: int) -> np.ndarray | None:
    """Return a field of all points, or None if it is empty in all of them."""
    given = [point.get(label) or [] for point in points]
    if not any(given):
        return None
    for k, one in enumerate(given):
        array = real_array(one)
        if array is None or array.shape != (width,):
            raise RecordingError(f'{path}: {label} of point {k} must be {width} numbers, one per '
                                 'joint')
    return np.array(given, float)


def _of_table(path: Path) -> Trajectory:
    names, data = read_table(path)
    column = dict(zip(names, data.T))
    if 'time' not in column:
        raise RecordingError(f"{path}: the table has no column 'time', only {listed(names)}")
    joints = tuple(name.rpartition('/')[0] for name in names if name.endswith('/position'))
    fields: dict[str, Any] = {}
    for label, end in FIELDS.items():
        there = [f'{joint}/{end}' in column for joint in joints]
        if any(there) and not all(there):
            missing = joints[there.index(False)]
            raise RecordingError(f"{path}: the table has no column '{missing}/{end}', but has it "
                                 'for other joints')
        fields[label] = (np.stack([column[f'{joint}/{end}'] for joint in joints], axis=1)
                         if any(there) else None)
    return Trajectory(joints, column['time'], **fields)
