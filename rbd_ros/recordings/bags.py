# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read joint states from ROS 2 bags without ROS, with `rosbags`."""

from collections import Counter, defaultdict
from itertools import islice
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from rbd_ros._internal.cdr import JointStateLayout
from rbd_ros._internal.text import first_twice, listed, printable
from rbd_ros._internal.yaml_files import read_yaml
from rbd_ros.errors import RecordingError
from rbd_ros.recordings.joint_series import JointSeries

STORAGES = ('.mcap', '.db3')
JOINT_STATE = 'sensor_msgs/msg/JointState'
DEFAULT_TOPIC = '/joint_states'
TOPIC_OPTION = '--topic NAME (in Python: topic=)'
# Messages decoded at a time; byte layouts remembered for each message length.
BLOCK_SIZE, MAX_LAYOUTS = 8192, 8


def is_bag(path: Path) -> bool:
    """Return whether a path looks like a bag."""
    return path.is_dir() or path.suffix in STORAGES


def read_bag(path: Path, topic: str | None) -> tuple[list[JointSeries], list[str]]:
    """Return the joint states of a bag, one series for each set of joints, and notes."""
    # Times are in s since the first message.
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
    """Return the paths rosbags opens: the bag, or the files of a directory without metadata."""
    metadata = path / 'metadata.yaml'
    if path.is_file() or metadata.exists():
        files = [path]
        if path.is_dir():
            # Validate the size first: rosbags reads YAML without limits.
            read_yaml(metadata, RecordingError)
    else:
        files = sorted(file for file in path.iterdir() if file.suffix in STORAGES)
        if not files:
            raise RecordingError(f'{path}: it is a directory without metadata.yaml, .mcap or '
                                 '.db3, not a bag; pass the directory that ros2 bag wrote')
    logs = [log for file in files for log in (
        file.glob('*.db3-wal') if file.is_dir() else [file.with_name(file.name + '-wal')])
        if log.exists() and log.stat().st_size]
    if logs:
        raise RecordingError(
            f'{logs[0]}: some messages were never written into the bag; write them with  '
            f"sqlite3 '{str(logs[0]).removesuffix('-wal')}' 'PRAGMA wal_checkpoint(TRUNCATE)'")
    return files


class _Block(NamedTuple):
    """Messages with the same joints: number in the bag; stamp and receive time, ns; values."""

    number: np.ndarray
    stamp: np.ndarray
    received: np.ndarray
    position: np.ndarray
    velocity: np.ndarray
    effort: np.ndarray


class _Collector:
    """Collect the joint states of storages by the names of their joints."""

    def __init__(self, path: Path) -> None:
        from rosbags.typesys import get_typestore, Stores
        self._path, self._types = path, get_typestore(Stores.LATEST)
        self._layouts: dict[int, list[JointStateLayout]] = defaultdict(list)
        self._parts: dict[tuple[str, ...], list[_Block]] = defaultdict(list)
        self._rejected: Counter[str] = Counter()
        self._count = 0

    def read(self, storage: Path, topic: str | None) -> None:
        from rosbags.rosbag2 import Reader
        try:
            with Reader(storage) as reader:
                connections = self._choose(reader.connections, topic)
                messages = reader.messages(connections)
                while block := list(islice(messages, BLOCK_SIZE)):
                    self._decode_block(block)
        except RecordingError:
            raise
        except Exception as error:
            # Damaged files raise anything: struct.error, AssertionError, TypeError, ...
            reason = printable(f'{type(error).__name__}: {error}', 200)
            raise RecordingError(
                f'{storage}: the bag is damaged or cut off, after {self._count} joint states '
                f'({reason}); repair it (ros2 bag reindex, mcap recover, or sqlite3 with '
                '.recover), or record it again') from error

    def _choose(self, connections: list[Any], topic: str | None) -> list[Any]:
        """Return the connections of one topic with joint states."""
        states = [one for one in connections if one.msgtype == JOINT_STATE]
        topics = sorted({one.topic for one in states})
        if topic is None:
            if not topics:
                there = listed(f'{one.topic} ({one.msgtype})' for one in connections)
                raise RecordingError(f'{self._path}: the bag has no topic with {JOINT_STATE}, but '
                                     + (there or 'no topics') + '; record /joint_states')
            if len(topics) > 1 and DEFAULT_TOPIC not in topics:
                raise RecordingError(f'{self._path}: joint states are on {listed(topics)}; choose '
                                     f'one with {TOPIC_OPTION}')
            topic = topics[0] if len(topics) == 1 else DEFAULT_TOPIC
        topic = '/' + topic.removeprefix('/')
        chosen = [one for one in states if one.topic == topic]
        if not chosen:
            raise RecordingError(f'{self._path}: the bag has no {JOINT_STATE} on {topic}; it is '
                                 f"on {listed(topics) or 'no topic'}")
        return chosen

    def _decode_block(self, block: list[tuple[Any, int, bytes]]) -> None:
        """Collect messages; those of equal length are decoded together."""
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
                    # No known layout fits the first remaining message.
                    self._convert(block[rest[0]][2], self._count + rest[0], received[0])
                    data, rest, received = data[1:], rest[1:], received[1:]
                    continue
                layout, tried = known[tried], tried + 1
                fits = layout.fits(data)
                self._store(tuple(layout.names), self._count + rest[fits], received[fits],
                            *layout.read_block(data[fits]))
                data, rest, received = data[~fits], rest[~fits], received[~fits]
        self._count += len(block)

    def _convert(self, raw: bytes, number: int, received: int) -> None:
        """Collect one message decoded by rosbags, and remember its layout."""
        message: Any = self._types.deserialize_cdr(raw, JOINT_STATE)
        numbers = message.position, message.velocity, message.effort
        stamp = message.header.stamp
        self._store(tuple(message.name), np.array([number]), np.array([received], np.int64),
                    np.array([stamp.sec * 1_000_000_000 + stamp.nanosec], np.int64),
                    *[np.array(x, float)[None] for x in numbers])
        known = self._layouts[len(raw)]
        if len(known) < MAX_LAYOUTS:
            try:
                known.append(JointStateLayout(raw, message.header.frame_id, message.name,
                                              *numbers))
            except ValueError:
                # Not a fixed layout: decode such messages one by one.
                return

    def _store(self, names: tuple[str, ...], number: np.ndarray, received: np.ndarray,
               stamp: np.ndarray, position: np.ndarray, velocity: np.ndarray, effort: np.ndarray
               ) -> None:
        """Store the values of messages with the same joints, or count them as rejected."""
        if not len(number):
            return
        count, lengths = len(names), [x.shape[1] for x in (position, velocity, effort)]
        if not count or lengths[0] != count or lengths[1] not in (0, count):
            self._rejected[f'with {count} names, {lengths[0]} positions and {lengths[1]} '
                           'velocities'] += len(number)
            return
        if (twice := first_twice(names)) is not None:
            self._rejected[f"with the joint '{printable(twice)}' twice"] += len(number)
            return
        missing = np.full((len(number), count), np.nan)
        self._parts[names].append(_Block(
            number, stamp, received, position, velocity if lengths[1] else missing,
            effort if lengths[2] == count else missing))

    def series(self) -> tuple[list[JointSeries], list[str]]:
        """Return all series in the order in which they were recorded, and notes."""
        notes = [f'{count} messages left out {why}' for why, count in self._rejected.items()]
        if not self._parts:
            raise RecordingError(f'{self._path}: there are no joint states in the '
                                 f'{self._count} messages of the topic'
                                 + (f" ({'; '.join(notes)})" if notes else ''))
        stamps = np.concatenate([part.stamp for parts in self._parts.values() for part in parts])
        # Simulated time may start at 0, so a single zero is a stamp; several are missing stamps.
        stamped = np.sum(stamps == 0) <= 1
        if not stamped:
            notes.append('the messages have no stamps: receive times are used instead')
        # Each set of joints in the order of its first message.
        sets = {frozenset(names): names for names in reversed(self._parts)}.values()
        joined = sorted((self._join(names, stamped) for names in sets), key=lambda one: one[1][0])
        origin = joined[0][2][0]
        return [JointSeries(names, 1e-9 * (time - origin), *numbers)
                for names, _, time, numbers in joined], notes

    def _join(self, names: tuple[str, ...], stamped: bool
              ) -> tuple[tuple[str, ...], np.ndarray, np.ndarray, list[np.ndarray]]:
        """Return names, indices, times, ns, and values of all messages with these joints."""
        columns = []
        for other, parts in self._parts.items():
            if set(other) == set(names):
                order = [other.index(name) for name in names]
                columns += [(part.number, part.stamp if stamped else part.received,
                             *[x[:, order] for x in part[3:]]) for part in parts]
        number, time, *numbers = [np.concatenate(column) for column in zip(*columns)]
        rows = np.argsort(number)
        return names, number[rows], time[rows], [x[rows] for x in numbers]
