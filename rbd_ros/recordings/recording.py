# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recorded joint states, from ROS 2 bags and from tables, as arrays by joint name."""

from collections.abc import Iterable, Mapping
from dataclasses import dataclass, replace
from difflib import get_close_matches
import os
from pathlib import Path
from typing import Any

import numpy as np
from rbd_ros._internal.text import first_twice, listed
from rbd_ros.errors import RecordingError
from rbd_ros.model.arguments import check_model, number, real_array, shown
from rbd_ros.model.model import Model
from rbd_ros.recordings.bags import is_bag, read_bag, TOPIC_OPTION
from rbd_ros.recordings.joint_series import clean, incomplete, JointSeries, merge
from rbd_ros.recordings.tables import read_table, write_table

# Suffixes of the columns of a table, after the name of the joint.
QUANTITIES = ('/position', '/velocity', '/effort')
POSITION = QUANTITIES[0]
# Suggestions of similar names: their number and similarity (1: equal).
MAX_SUGGESTIONS, MIN_SIMILARITY = 3, 0.4


@dataclass(frozen=True, eq=False)
class Recording:
    """
    Joint states in order of time.

    Attributes
    ----------
    name, joint_names : str, tuple of str
        Source, for messages, and names of the columns.
    time : ndarray, shape (states,)
        s, strictly increasing; starts at 0 for bags, as written for tables.
    position : ndarray, shape (states, joints)
        rad or m.
    velocity, effort : ndarray, shape (states, joints), or None
        rad/s or m/s; N m or N. A column of NaN, or None: not measured.
    notes, left_out : tuple of str, float
        Changes and omissions; fraction of the states omitted because a value was missing or not
        finite.

    """

    name: str
    joint_names: tuple[str, ...]
    time: np.ndarray
    position: np.ndarray
    velocity: np.ndarray | None = None
    effort: np.ndarray | None = None
    notes: tuple[str, ...] = ()
    left_out: float = 0.0

    def __post_init__(self) -> None:
        """Raise RecordingError if the arrays do not match, or cannot be measurements."""
        names = tuple(self.joint_names)
        if not all(isinstance(name, str) for name in names):
            raise RecordingError(f'{self.name}: joint_names must be strings, got {shown(names)}')
        if (twice := first_twice(names)) is not None:
            raise RecordingError(f"{self.name}: the joint '{twice}' is there twice")
        object.__setattr__(self, 'joint_names', names)
        shape = (len(np.atleast_1d(self.time)), len(names))
        for label, wanted in (('time', shape[:1]), ('position', shape), ('velocity', shape),
                              ('effort', shape)):
            given = getattr(self, label)
            if given is None and label in ('velocity', 'effort'):
                continue
            array = real_array(given)
            if array is None or array.shape != wanted:
                raise RecordingError(
                    f'{self.name}: {label} must be real numbers of the shape {wanted}, got '
                    + (shown(given) if array is None else f'the shape {array.shape}'))
            measured = np.ones(array.shape, bool)
            if label in ('velocity', 'effort'):
                measured &= ~np.all(np.isnan(array), axis=0)
            if not np.all(np.isfinite(array[measured])):
                raise RecordingError(f'{self.name}: {label} holds a number that is not finite; '
                                     'leave such states out')
            array.flags.writeable = False
            object.__setattr__(self, label, array)
        if not np.all(np.diff(self.time) > 0.0):
            raise RecordingError(f'{self.name}: the time does not increase from state to state; '
                                 'sort the states and remove duplicate times')

    def __len__(self) -> int:
        return len(self.time)

    def part(self, start: float | None = None, stop: float | None = None) -> 'Recording':
        """Return the states with start <= t < stop, s from the beginning of the recording."""
        since = self.time - self.time[0] if len(self) else self.time
        keep = np.ones(len(self), bool)
        if start is not None:
            keep &= since >= number('start', start)
        if stop is not None:
            keep &= since < number('stop', stop)
        if not np.any(keep):
            raise RecordingError(f'{self.name}: no states between '
                                 f"{'its beginning' if start is None else f'{start:g} s'} and "
                                 f"{'its end' if stop is None else f'{stop:g} s'}; it lasts "
                                 f'{since[-1] if len(self) else 0.0:.3f} s')
        return replace(self, time=self.time[keep], **self._arrays(keep))

    def _arrays(self, rows: np.ndarray | slice, columns: list[int] | slice = slice(None)
                ) -> dict[str, Any]:
        arrays = {'position': self.position, 'velocity': self.velocity, 'effort': self.effort}
        return {label: None if x is None else x[rows][:, columns] for label, x in arrays.items()}

    def velocities(self) -> np.ndarray:
        """Return the measured velocities or, if there are none, the rates of the positions."""
        if self.velocity is not None:
            return self.velocity
        return np.asarray(np.gradient(self.position, self.time, axis=0))

    def for_robot(self, model: Model) -> 'Recording':
        """
        Return the recording with the joints of a robot, in the order of its velocities.

        Joints that mimic others are left out. Velocities are None if one of the joints has none.
        Raise RecordingError, with similar names, if a joint of the robot was not recorded.

        """
        check_model(model)
        index = {name: k for k, name in enumerate(self.joint_names)}
        missing = [name for name in model.velocity_names if name not in index]
        if missing:
            raise RecordingError(self._missing(missing, model))
        known = {joint.name for joint in model.joints} | set(model.velocity_names)
        extra = [name for name in self.joint_names if name not in known]
        notes = self.notes
        if extra:
            notes += (f"left out, not in robot '{model.name}': {listed(extra)}",)
        columns = [index[name] for name in model.velocity_names]
        one = replace(self, joint_names=model.velocity_names, notes=notes,
                      **self._arrays(slice(None), columns))
        if one.velocity is None or not np.any(np.isnan(one.velocity)):
            return one
        without = [name for name, x in zip(one.joint_names, one.velocity[0]) if np.isnan(x)]
        return replace(one, velocity=None, notes=(
            *notes, f'velocities left out, missing for {listed(without)}'))

    def _missing(self, missing: list[str], model: Model) -> str:
        free = [name for name in self.joint_names if name not in model.velocity_names]
        text = f"{self.name}: robot '{model.name}' has the joint '{missing[0]}'"
        if len(missing) > 1:
            text += f' ({len(missing)} joints in all)'
        text += ', which was not recorded; '
        near = near_names(missing[0], free)
        if near:
            return text + (f"rename a similar one, as in rename={{'{near[0]}': '{missing[0]}'}} "
                           f'(similar: {listed(near)})')
        return text + (f'recorded are {listed(self.joint_names)}: rename one of them, or lock the '
                       'joint (--lock, with_locked_joints)')


def near_names(name: str, names: Iterable[str]) -> list[str]:
    """Return the names most similar to another, best match first."""
    names = list(names)
    # Names usually differ by a prefix, such as a namespace.
    same_end = [other for other in names if other.endswith(name) or name.endswith(other)]
    similar = get_close_matches(name, names, MAX_SUGGESTIONS, MIN_SIMILARITY)
    return list(dict.fromkeys([*same_end, *similar]))


def read_recording(path: str | os.PathLike[str], *, topic: str | None = None,
                   rename: Mapping[str, str] | None = None,
                   scale: Mapping[str, float] | None = None, start: float | None = None,
                   stop: float | None = None, joints: Iterable[str] | None = None) -> Recording:
    """
    Read recorded joint states.

    Messages with a subset of the joints are merged with those of other publishers that are nearest
    in time: there is one state per message of the slowest publisher.

    Parameters
    ----------
    path : path-like
        A ROS 2 bag (a directory, or a single ``.mcap`` or ``.db3``), or a table, ``.csv`` or
        ``.parquet``, with the columns ``time`` and, for each joint, ``<joint>/position``,
        ``<joint>/velocity`` and ``<joint>/effort``; velocities and efforts may be missing.
    topic : str, optional
        Topic of sensor_msgs/JointState in a bag; default: the only one, or ``/joint_states``.
    rename, scale : mapping of str, optional
        New name for each joint name in the file, and factors of the efforts, for example drive
        gains, by new joint names.
    start, stop : float, optional
        Interval to read, s from the beginning of the recording.
    joints : iterable of str, optional
        Joints to read, by new names, for example those of a robot: the others need not be
        complete; default: all.

    Raises
    ------
    RecordingError
        If the file cannot be read or is damaged, has no joint states, or lacks joints that are to
        be renamed or scaled.

    """
    path = Path(path)
    if not path.exists():
        raise RecordingError(f'{path}: no such file or directory')
    if is_bag(path):
        series, notes = read_bag(path, topic)
    else:
        if topic is not None:
            raise RecordingError(f'{path}: a table has no topics; leave out {TOPIC_OPTION}')
        series, notes = _table_series(path)
    series = _renamed(path, series, dict(rename or {}))
    scale = {} if scale is None else dict(scale)
    names = [name for one in series for name in one.names]
    _require(path, 'scale', scale, names)
    if joints is not None:
        wanted = set(joints)
        series = [one.joints([name for name in one.names if name in wanted])
                  for one in series if wanted.intersection(one.names)]
        if not series:
            raise RecordingError(f'{path}: none of the joints {listed(sorted(wanted))} was '
                                 f'recorded, only {listed(dict.fromkeys(names))}; rename them')
    left_out = max((float(np.mean(incomplete(one))) for one in series if len(one.time)),
                   default=0.0)
    one, joined = merge(series)
    one, removed = clean(one)
    notes = (*notes, *joined, *removed)
    if not len(one.time):
        raise RecordingError(f'{path}: no state is complete' + (': ' if notes else '')
                             + '; '.join(notes))
    velocity, effort = (None if np.all(np.isnan(x)) else x for x in one.values[1:])
    if effort is not None:
        effort = effort * [number(f"scale of '{name}'", scale.get(name, 1.0))
                           for name in one.names]
    recording = Recording(
        str(path), one.names, one.time - one.time[0] if is_bag(path) else one.time,
        one.values[0], velocity, effort, notes, left_out)
    return recording if start is None and stop is None else recording.part(start, stop)


def _renamed(path: Path, series: list[JointSeries], rename: Mapping[str, str]
             ) -> list[JointSeries]:
    names = list(dict.fromkeys(name for one in series for name in one.names))
    _require(path, 'rename', rename, names)
    new = [rename.get(name, name) for name in names]
    if (twice := first_twice(new)) is not None:
        raise RecordingError(f"{path}: two joints would be called '{twice}'; rename both")
    return [replace(one, names=tuple(rename.get(name, name) for name in one.names))
            for one in series]


def _require(path: Path, label: str, wanted: Iterable[str], names: list[str]) -> None:
    for name in wanted:
        if name not in names:
            near = near_names(name, names)
            raise RecordingError(f'{path}: {label} names the joint {shown(name)}, which was not '
                                 'recorded; ' + (f'similar: {listed(near)}' if near else
                                                 f'recorded are {listed(names)}'))


def _table_series(path: Path) -> tuple[list[JointSeries], list[str]]:
    names, data = read_table(path)
    index = {name: k for k, name in enumerate(names)}
    if 'time' not in index:
        raise RecordingError(f"{path}: there is no column 'time', s; there are {listed(names)}")
    joints = [name.removesuffix(POSITION) for name in names if name.endswith(POSITION)]
    if not joints:
        raise RecordingError(f"{path}: there is no column '<joint>{POSITION}'; there are "
                             + listed(names))
    other = []
    for name in names:
        joint, slash, quantity = name.rpartition('/')
        if slash + quantity in QUANTITIES:
            if joint + POSITION not in index:
                raise RecordingError(f"{path}: there is a column '{name}', but no "
                                     f"'{joint}{POSITION}'")
        elif name != 'time':
            other.append(name)
    missing = np.full(len(data), np.nan)
    values = [[data[:, index[name]] if (name := joint + quantity) in index else missing
               for joint in joints] for quantity in QUANTITIES]
    notes = [f'columns left out: {listed(other)}'] if other else []
    return [JointSeries(tuple(joints), data[:, index['time']],
                        np.array(values).swapaxes(1, 2))], notes


def write_recording(path: str | os.PathLike[str], recording: Recording) -> None:
    """
    Write a recording as a table that `read_recording` reads, completely or not at all.

    Parameters
    ----------
    path : str or path-like
        ``.csv``, or ``.parquet``; RecordingError is raised for others, RbdError if the file cannot
        be written.
    recording : Recording
        Velocities and efforts that were not measured get no columns.

    """
    names, columns = ['time'], [recording.time]
    for k, joint in enumerate(recording.joint_names):
        for quantity, values in zip(QUANTITIES, (
                recording.position, recording.velocity, recording.effort)):
            if values is not None and not np.all(np.isnan(values[:, k])):
                names.append(joint + quantity)
                columns.append(values[:, k])
    write_table(path, names, *columns)
