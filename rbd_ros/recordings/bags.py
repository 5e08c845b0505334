# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read joint states from ROS 2 bags without ROS, with `rosbags`."""

from array import array
from collections import Counter, defaultdict, deque
from functools import partial
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
MAX_LAYOUTS = 8     # Byte layouts remembered for each message length


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


class _Messages(NamedTuple):
    """Messages of one layout: numbers in the bag and receive times, ns, in turn; bytes."""

    layout: JointStateLayout
    times: 'array[int]'
    data: bytearray


class _Collector:
    """Collect the joint states of storages."""

    def __init__(self, path: Path) -> None:
        from rosbags.typesys import get_typestore, Stores
        self._path, self._count = path, 0
        self._types: Any = get_typestore(Stores.LATEST)
        self._all: list[_Messages] = []
        # The last few layouts for each length of a message.
        self._recent: dict[int, deque[_Messages]] = defaultdict(partial(deque, maxlen=MAX_LAYOUTS))

    def read(self, storage: Path, topic: str | None) -> None:
        from rosbags.rosbag2 import Reader
        try:
            with Reader(storage) as reader:
                connections = self._choose(reader.connections, topic)
                for _, received, raw in reader.messages(connections):
                    self._take(received, raw)
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

    def _take(self, received: int, raw: bytes) -> None:
        """Keep a message with others of its layout; rosbags decodes those with new layouts."""
        kept = self._like(raw)
        if kept is None:
            # Write it again: little-endian, without padding.
            message = self._types.deserialize_cdr(raw, JOINT_STATE)
            raw = bytes(self._types.serialize_cdr(message, JOINT_STATE))
            kept = self._like(raw)
        if kept is None:
            numbers = [np.array(x, float)
                       for x in (message.position, message.velocity, message.effort)]
            kept = _Messages(JointStateLayout(raw, message.header.frame_id, message.name,
                                              *numbers), array('q'), bytearray())
            self._all.append(kept)
            self._recent[len(raw)].append(kept)
        kept.times.extend((self._count, received))
        kept.data.extend(raw)
        self._count += 1

    def _like(self, raw: bytes) -> _Messages | None:
        return next((one for one in self._recent[len(raw)] if one.layout.fits(raw)), None)

    def series(self) -> tuple[list[JointSeries], list[str]]:
        """Return all series in the order in which they were recorded, and notes."""
        rejected: Counter[str] = Counter()
        # Messages with the same joints, in the order of the first of these.
        orders: dict[frozenset[str], tuple[str, ...]] = {}
        parts: dict[tuple[str, ...], list[tuple[np.ndarray, ...]]] = defaultdict(list)
        for layout, times, data in self._all:
            names, count = tuple(layout.names), len(times) // 2
            stamp, *numbers = layout.read_block(np.frombuffer(data, np.uint8).reshape(count, -1))
            lengths = [x.shape[1] for x in numbers]
            if not names or lengths[0] != len(names) or lengths[1] not in (0, len(names)):
                rejected[f'with {len(names)} names, {lengths[0]} positions and {lengths[1]} '
                         'velocities'] += count
            elif (twice := first_twice(names)) is not None:
                rejected[f"with the joint '{printable(twice)}' twice"] += count
            else:
                own = orders.setdefault(frozenset(names), names)
                columns = [names.index(name) for name in own]
                missing = np.full(numbers[0].shape, np.nan)
                parts[own].append((*np.reshape(times, (-1, 2)).T, stamp, *(
                    x[:, columns] if x.shape == missing.shape else missing for x in numbers)))
        notes = [f'{count} messages left out {why}' for why, count in rejected.items()]
        if not parts:
            raise RecordingError(f'{self._path}: there are no joint states in the '
                                 f'{self._count} messages of the topic'
                                 + (f" ({'; '.join(notes)})" if notes else ''))
        # Simulated time may start at 0, so a single zero is a stamp; several are missing stamps.
        stamped = sum(np.sum(one[2] == 0) for some in parts.values() for one in some) <= 1
        if not stamped:
            notes.append('the messages have no stamps: receive times are used instead')
        joined = sorted(((names, _joined(some)) for names, some in parts.items()),
                        key=lambda one: one[1][0][0])
        clock = 2 if stamped else 1
        origin = joined[0][1][clock][0]
        return [JointSeries(names, 1e-9 * (one[clock] - origin), np.stack(one[3:]))
                for names, one in joined], notes


def _joined(parts: list[tuple[np.ndarray, ...]]) -> list[np.ndarray]:
    """Return numbers, receive times, stamps and values of messages, in the order of numbers."""
    whole = [np.concatenate(column) for column in zip(*parts)]
    rows = np.argsort(whole[0])
    return [x[rows] for x in whole]
