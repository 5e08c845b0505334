# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Joint states from ROS 2 bags, without ROS.

`rosbags` finds the messages. Those with the layout of an earlier one, usually all but the first of
each publisher, are read many at a time; the others one by one, by `rosbags`.

"""

from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rbd_ros._internal.cdr import JointStateLayout
from rbd_ros._internal.text import first_twice, listed, printable
from rbd_ros._internal.yaml_files import read_yaml
from rbd_ros.errors import RecordingError
from rbd_ros.recordings.series import JointSeries

STORAGES = ('.mcap', '.db3')
KIND = 'sensor_msgs/msg/JointState'
USUAL_TOPIC = '/joint_states'
# Number of messages read at a time, and of layouts of one length that are tried on them.
BLOCK, MOST_LAYOUTS = 8192, 8


def is_bag(path: Path) -> bool:
    """Return whether a path looks like that of a bag."""
    return path.is_dir() or path.suffix in STORAGES


def read_bag(path: Path, topic: str | None) -> tuple[list[JointSeries], list[str]]:
    """
    Return the joint states of a bag, one series for each set of joints.

    Parameters
    ----------
    path : Path
        A directory, or a single ``.mcap`` or ``.db3`` file.
    topic : str or None
        None: the only one with joint states, or the usual one.

    Returns
    -------
    list of JointSeries
        In the order in which the messages were recorded; time in s since the first of them.
    list of str
        What is odd about them.

    Raises
    ------
    RecordingError
        If the bag cannot be read, or has no joint states.

    """
    try:
        import rosbags.rosbag2  # noqa: F401
    except ImportError:
        raise RecordingError(f'{path}: bags are read with rosbags, which is not installed: pip '
                             "install 'rbd_ros[recordings]'") from None
    collector = _Collector(path)
    for storage in _storages(path):
        collector.read(storage, topic)
    return collector.series()


def _storages(path: Path) -> list[Path]:
    """Return what rosbags can open: the path, or the files of a directory without metadata."""
    metadata = path / 'metadata.yaml'
    if path.is_file() or metadata.exists():
        files = [path]
        if path.is_dir():
            # Before rosbags does, which sets no limits.
            read_yaml(metadata, RecordingError)
    else:
        files = sorted(file for file in path.iterdir() if file.suffix in STORAGES)
        if not files:
            raise RecordingError(f'{path}: it is a directory without metadata.yaml, .mcap or '
                                 '.db3, so not a bag; give the directory that ros2 bag wrote')
    logs = [log for file in files for log in (
        file.glob('*.db3-wal') if file.is_dir() else [file.with_name(file.name + '-wal')])
        if log.exists() and log.stat().st_size]
    if logs:
        raise RecordingError(
            f'{logs[0]}: it has messages that were not written into the bag; write them with  '
            f"sqlite3 '{str(logs[0]).removesuffix('-wal')}' 'PRAGMA wal_checkpoint(TRUNCATE)'")
    return files


class _Part(NamedTuple):
    """Messages with the same joints: index among all, stamp and time of receipt, ns; numbers."""

    place: np.ndarray
    stamp: np.ndarray
    received: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class _Collector:
    """Reads storages, and collects the numbers of joint states by the names of their joints."""

    def __init__(self, path: Path) -> None:
        from rosbags.typesys import get_typestore, Stores

        self._path, self._types = path, get_typestore(Stores.LATEST)
        self._layouts: dict[int, list[JointStateLayout]] = defaultdict(list)
        self._parts: dict[tuple[str, ...], list[_Part]] = defaultdict(list)
        self._refused: Counter[str] = Counter()
        self._count = 0

    def read(self, storage: Path, topic: str | None) -> None:
        """Take over the joint states of a storage."""
        from rosbags.rosbag2 import Reader

        try:
            with Reader(storage) as reader:
                connections = self._choose(reader.connections, topic)
                messages = reader.messages(connections)
                while block := list(islice(messages, BLOCK)):
                    self._take(block)
        except RecordingError:
            raise
        except Exception as error:
            # A damaged file may lead to anything: struct.error, AssertionError, TypeError, ...
            reason = printable(f'{type(error).__name__}: {error}', 200)
            raise RecordingError(
                f'{storage}: the bag is damaged or cut off, after {self._count} joint states '
                f'({reason}); repair it (ros2 bag reindex, mcap recover, or sqlite3 with '
                '.recover), or record it again') from error

    def _choose(self, connections: list[Any], topic: str | None) -> list[Any]:
        """Return the connections of one topic with joint states."""
        states = [one for one in connections if one.msgtype == KIND]
        topics = sorted({one.topic for one in states})
        if topic is None:
            if not topics:
                there = listed(f'{one.topic} ({one.msgtype})' for one in connections)
                raise RecordingError(f'{self._path}: the bag has no topic with {KIND}, but '
                                     + (there or 'none at all') + '; record /joint_states')
            if len(topics) > 1 and USUAL_TOPIC not in topics:
                raise RecordingError(f'{self._path}: joint states are on {listed(topics)}; choose '
                                     'one with topic=')
            topic = topics[0] if len(topics) == 1 else USUAL_TOPIC
        chosen = [one for one in states if one.topic == topic]
        if not chosen:
            raise RecordingError(f'{self._path}: the bag has no {KIND} on {topic}; it is on '
                                 + (listed(topics) or 'no topic'))
        return chosen

    def _take(self, block: list[tuple[Any, int, bytes]]) -> None:
        """Take over messages, those of the same length together."""
        by_length: dict[int, list[int]] = defaultdict(list)
        for k, (_, _, raw) in enumerate(block):
            by_length[len(raw)].append(k)
        for length, places in by_length.items():
            data = np.frombuffer(b''.join([block[k][2] for k in places]), np.uint8)
            data, rest = data.reshape(len(places), length), np.array(places)
            received = np.array([block[k][1] for k in places], np.int64)
            known = self._layouts[length]
            tried = 0
            while len(rest):
                if tried == len(known):
                    # The first of the rest has a new layout, or one that cannot be learned.
                    self._convert(block[rest[0]][2], self._count + rest[0], received[0])
                    data, rest, received = data[1:], rest[1:], received[1:]
                    continue
                layout, tried = known[tried], tried + 1
                fits = layout.fits(data)
                self._keep(tuple(layout.names), self._count + rest[fits], received[fits],
                           *layout.read_block(data[fits]))
                data, rest, received = data[~fits], rest[~fits], received[~fits]
        self._count += len(block)

    def _convert(self, raw: bytes, place: int, received: int) -> None:
        """Take over one message, and learn its layout."""
        message: Any = self._types.deserialize_cdr(raw, KIND)
        numbers = message.position, message.velocity, message.effort
        stamp = message.header.stamp
        self._keep(tuple(message.name), np.array([place]), np.array([received], np.int64),
                   np.array([stamp.sec * 1_000_000_000 + stamp.nanosec], np.int64),
                   *[np.array(x, float)[None] for x in numbers])
        known = self._layouts[len(raw)]
        if len(known) < MOST_LAYOUTS:
            try:
                known.append(JointStateLayout(raw, message.header.frame_id, message.name,
                                              *numbers))
            except ValueError:
                # Another layout: such messages are converted one by one.
                return

    def _keep(self, names: tuple[str, ...], place: np.ndarray, received: np.ndarray,
              stamp: np.ndarray, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray
              ) -> None:
        """Take over the numbers of messages with the same joints."""
        if not len(place):
            return
        count, lengths = len(names), [x.shape[1] for x in (position, velocity, effort)]
        if not count or lengths[0] != count or lengths[1] not in (0, count):
            self._refused[f'with {count} names, {lengths[0]} positions and {lengths[1]} '
                          'velocities'] += len(place)
            return
        if (twice := first_twice(names)) is not None:
            self._refused[f"with the joint '{printable(twice)}' twice"] += len(place)
            return
        nothing = np.full((len(place), count), np.nan)
        self._parts[names].append(_Part(
            place, stamp, received, position, velocity if lengths[1] else nothing,
            effort if lengths[2] == count else nothing))

    def series(self) -> tuple[list[JointSeries], list[str]]:
        """Return all that was taken over."""
        notes = [f'{count} messages left out {why}' for why, count in self._refused.items()]
        if not self._parts:
            raise RecordingError(f'{self._path}: there are no joint states in the '
                                 f'{self._count} messages of the topic'
                                 + (f" ({'; '.join(notes)})" if notes else ''))
        stamps = np.concatenate([part.stamp for parts in self._parts.values() for part in parts])
        # Simulated time may begin at 0; if more messages have stamp 0, they have no stamps.
        stamped = np.sum(stamps == 0) <= 1
        if not stamped:
            notes.append('the messages have no stamps: the time is that at which they were '
                         'recorded')
        held = [self._together(names, stamped) for names in self._sets()]
        held.sort(key=lambda one: one[1][0])
        origin = held[0][2][0]
        return [JointSeries(names, 1e-9 * (time - origin), *numbers)
                for names, _, time, numbers in held], notes

    def _sets(self) -> list[tuple[str, ...]]:
        """Return the sets of joint names, without repetitions in another order."""
        return list({frozenset(names): names for names in reversed(self._parts)}.values())

    def _together(self, names: tuple[str, ...], stamped: bool
                  ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return names, places, times, ns, and numbers of all messages with some joints."""
        columns = []
        for other, parts in self._parts.items():
            if set(other) == set(names):
                order = [other.index(name) for name in names]
                columns += [(part.place, part.stamp if stamped else part.received,
                             *[x[:, order] for x in part[3:]]) for part in parts]
        place, time, *numbers = [np.concatenate(column) for column in zip(*columns)]
        rows = np.argsort(place)
        return names, place[rows], time[rows], [x[rows] for x in numbers]
