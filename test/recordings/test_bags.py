# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joint states from bags, against what rosbags makes of each message."""

import shutil
import sqlite3
import struct
import sys

from bag_files import joint_state, KIND, storage, TYPES, write_bag
import numpy as np
import pytest
from rbd_ros import RecordingError
from rbd_ros._internal.cdr import JointStateLayout
from rbd_ros.identification import read_recording
from rbd_ros.recordings import bags

NAMES = ['shoulder', 'elbow', 'wrist_1', 'Größe']
SUFFIXES = ('.db3', '.mcap')
MS = 10 ** 6


@pytest.fixture
def rng():
    """Return a generator of random numbers."""
    return np.random.default_rng(5)


def messages(rng, count, names=NAMES, topic='/joint_states', start=1, **parts):
    """Return messages with numbers drawn at random, 1 ms apart."""
    made = []
    for k in range(start, start + count):
        numbers = {'velocity': rng.normal(size=len(names)),
                   'effort': rng.normal(size=len(names))} | parts
        made.append((topic, k * MS, joint_state(k * MS, names, rng.normal(size=len(names)),
                                                **numbers)))
    return made


def read_one_by_one(made):
    """Return positions, velocities and efforts as rosbags reads each message."""
    states = [TYPES.deserialize_cdr(raw, KIND) for _, _, raw in made]
    return [np.array([getattr(state, label) for state in states])
            for label in ('position', 'velocity', 'effort')]


def numbers(recording):
    """Return positions, velocities and efforts."""
    return [recording.position, recording.velocity, recording.effort]


def same(recording, made):
    """Return whether a recording says what messages say, bit by bit."""
    return all(np.array_equal(got, expected)
               for got, expected in zip(numbers(recording), read_one_by_one(made)))


@pytest.fixture
def layouts(monkeypatch):
    """Return a list to which the messages are added whose layout is new."""
    seen = []

    def note(raw, *parts):
        seen.append(raw)
        return JointStateLayout(raw, *parts)

    monkeypatch.setattr(bags, 'JointStateLayout', note)
    return seen


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_bag_reads_the_same_from_its_directory_and_its_file(tmp_path, rng, suffix, layouts):
    made = messages(rng, 50)
    path = write_bag(tmp_path / 'bag', made, suffix)
    for source in (path, storage(path)):
        got = read_recording(source)
        assert got.joint_names == tuple(NAMES) and got.notes == ()
        assert same(got, made)
        assert np.allclose(got.time, 1e-3 * np.arange(50), rtol=0.0, atol=1e-12)
    # All but the first of each bag are read together.
    assert len(layouts) == 2


def test_messages_with_another_order_of_joints_keep_values_by_name(tmp_path, rng):
    turned = NAMES[1:] + NAMES[:1]      # not its own inverse
    first, second = messages(rng, 5), messages(rng, 5, turned, start=6)
    got = read_recording(write_bag(tmp_path / 'bag', first + second))
    assert got.joint_names == tuple(NAMES)
    for found, one, other in zip(numbers(got), read_one_by_one(first), read_one_by_one(second)):
        assert np.array_equal(found, np.vstack((one, np.roll(other, 1, axis=1))))


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_directory_without_metadata_is_read_and_its_parts_follow_each_other(
        tmp_path, rng, suffix):
    made = messages(rng, 40)
    path = write_bag(tmp_path / 'bag', made[:25], suffix)
    (path / 'metadata.yaml').unlink()
    assert same(read_recording(path), made[:25])
    shutil.move(storage(write_bag(tmp_path / 'other', made[25:], suffix)),
                path / f'bag_1{suffix}')
    assert same(read_recording(path), made)


def test_more_layouts_of_one_length_than_are_kept_are_read(tmp_path, rng, monkeypatch):
    monkeypatch.setattr(bags, 'MAX_LAYOUTS', 2)
    made = []
    for k in range(1, 31):
        # Frames of the same length make other layouts with the same joints.
        row = rng.normal(size=4)
        made.append(('/joint_states', k * MS, joint_state(
            k * MS, NAMES, row, -row, 2.0 * row, frame=f'frame{k % 5}')))
    assert same(read_recording(write_bag(tmp_path / 'bag', made)), made)


def test_most_significant_byte_first_is_read(tmp_path, rng):
    def swapped(raw):
        state = TYPES.deserialize_cdr(raw, KIND)
        return bytes(TYPES.serialize_cdr(state, KIND, little_endian=False))

    made = [(topic, received, swapped(raw) if k % 2 else raw)
            for k, (topic, received, raw) in enumerate(messages(rng, 12))]
    assert made[1][2][:2] == b'\x00\x00'
    assert same(read_recording(write_bag(tmp_path / 'bag', made)), made)


@pytest.mark.parametrize('names', [['a'], ['a', 'bb'], NAMES])
@pytest.mark.parametrize('frame', ['', 'base', 'base_link'])
def test_blocks_are_read_as_messages_are_one_by_one(rng, names, frame):
    n = len(names)
    for velocity, effort in ((n, n), (n, 0), (0, 0)):
        raws = [joint_state(int(rng.integers(2 ** 31) * 10 ** 9 + rng.integers(10 ** 9)), names,
                            rng.normal(size=n), rng.normal(size=velocity),
                            rng.normal(size=effort), frame=frame) for _ in range(9)]
        # Nanoseconds have no sign, whatever a sender makes of them.
        raws[4] = raws[4][:8] + b'\xff' * 4 + raws[4][12:]
        first = TYPES.deserialize_cdr(raws[0], KIND)
        layout = JointStateLayout(raws[0], frame, first.name, first.position, first.velocity,
                                  first.effort)
        block = np.frombuffer(b''.join(raws), np.uint8).reshape(9, -1)
        assert all(map(layout.fits, raws))
        stamp, *arrays = layout.read_block(block)
        for k, raw in enumerate(raws):
            seconds, nanoseconds, *single = layout.read(raw)
            assert stamp[k] == seconds * 10 ** 9 + nanoseconds
            for array, row in zip(arrays, single):
                assert np.array_equal(array[k], row)
        # Any text or count that differs is seen.
        other = bytearray(raws[3])
        other[raws[0].index(names[0].encode())] ^= 1
        assert not layout.fits(bytes(other)) and layout.fits(raws[3])


# -- Topics. -------------------------------------------------------------------------------------

def test_the_usual_topic_is_taken_and_any_other_on_request(tmp_path, rng):
    usual, other = messages(rng, 5), messages(rng, 9, topic='/left/joint_states')
    path = write_bag(tmp_path / 'bag', usual + other, other=['/rosout'])
    assert same(read_recording(path), usual)
    assert same(read_recording(path, topic='/left/joint_states'), other)
    with pytest.raises(RecordingError, match='no sensor_msgs/msg/JointState on /rosout; it is on '
                                             '/joint_states, /left/joint_states'):
        read_recording(path, topic='/rosout')


@pytest.mark.parametrize('topics, said', [
    (['/a', '/b'], 'on /a, /b; choose one with --topic NAME'),
    ([], r'but /rosout \(std_msgs/msg/String\); record')])
def test_bags_without_the_usual_topic_are_refused_with_their_topics(tmp_path, rng, topics, said):
    path = write_bag(tmp_path / 'bag', [one for topic in topics for one in messages(
        rng, 2, topic=topic)], other=['/rosout'])
    with pytest.raises(RecordingError, match=said):
        read_recording(path)


# -- Messages that say nothing. ------------------------------------------------------------------

def test_messages_that_do_not_fit_their_names_are_left_out_and_counted(tmp_path, rng):
    made = messages(rng, 10)
    bad = [messages(rng, 1, start=20, velocity=[1.0])[0],
           ('/joint_states', 21 * MS, joint_state(21 * MS, NAMES, [])),
           ('/joint_states', 22 * MS, joint_state(22 * MS, [], [])),
           messages(rng, 1, names=['a', 'a'], start=23)[0]]
    got = read_recording(write_bag(tmp_path / 'bag', made + bad))
    assert same(got, made)
    text = '; '.join(got.notes)
    assert '1 messages left out with 4 names, 4 positions and 1 velocities' in text
    assert '1 messages left out with 4 names, 0 positions' in text
    assert "with the joint 'a' twice" in text
    (tmp_path / 'only').mkdir()
    with pytest.raises(RecordingError, match='no joint states in the 4 messages'):
        read_recording(write_bag(tmp_path / 'only' / 'bag', bad))


def test_efforts_of_another_length_are_not_measured(tmp_path, rng):
    got = read_recording(write_bag(tmp_path / 'bag', messages(rng, 5, effort=[1.0])))
    assert got.effort is None and got.velocity.shape == (5, 4)


# -- Damage. -------------------------------------------------------------------------------------

def refused(path):
    """Return the message with which a recording is refused, on one line."""
    with pytest.raises(RecordingError) as error:
        read_recording(path)
    text = str(error.value)
    assert text.startswith(str(path)) and '\n' not in text
    return text


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_a_file_that_is_cut_off_or_has_other_bytes_is_refused(tmp_path, rng, suffix):
    data = storage(write_bag(tmp_path / 'bag', messages(rng, 100), suffix)).read_bytes()
    file = tmp_path / f'part{suffix}'
    for share in (0.0, 0.01, 0.3, 0.7, 0.98):
        file.write_bytes(data[:int(share * len(data))])
        text = refused(file)
        assert 'damaged or cut off' in text and 'repair it' in text
    file.write_bytes(rng.bytes(5000))
    assert 'damaged' in refused(file)


@pytest.mark.parametrize('suffix', SUFFIXES)
def test_bytes_that_are_overwritten_are_refused_or_read(tmp_path, rng, suffix):
    data = storage(write_bag(tmp_path / 'bag', messages(rng, 60), suffix)).read_bytes()
    file = tmp_path / f'changed{suffix}'
    for start in rng.integers(0, len(data) - 16, 25):
        changed = bytearray(data)
        changed[start:start + 16] = rng.bytes(16)
        file.write_bytes(changed)
        try:
            got = read_recording(file)
        except RecordingError as error:
            assert '\n' not in str(error)
        else:
            assert np.all(np.diff(got.time) > 0.0)


def test_messages_that_are_cut_off_and_damaged_metadata_are_refused(tmp_path, rng):
    made = messages(rng, 5)
    topic, received, raw = made[3]
    made[3] = topic, received, raw[:-20]
    path = write_bag(tmp_path / 'bag', made)
    assert 'damaged' in refused(path)
    (path / 'metadata.yaml').write_text('rosbag2_bagfile_information: [', encoding='utf-8')
    assert 'metadata' in refused(path)


def test_messages_in_the_write_ahead_log_are_reported(tmp_path, rng):
    path = storage(write_bag(tmp_path / 'bag', messages(rng, 5)))
    connection = sqlite3.connect(path)
    connection.execute('PRAGMA journal_mode=WAL')
    connection.execute('DELETE FROM messages WHERE id > 3')
    connection.commit()
    with pytest.raises(RecordingError, match=r'-wal: .*wal_checkpoint'):
        read_recording(path.parent)
    with pytest.raises(RecordingError, match=r'-wal: .*wal_checkpoint'):
        read_recording(path)
    connection.close()
    assert len(read_recording(path)) == 3


def test_paths_that_are_not_bags_are_refused(tmp_path):
    assert 'no such file' in refused(tmp_path / 'nothing.db3')
    assert 'it is a directory without' in refused(tmp_path)
    odd = tmp_path / 'bag.db3.zstd'
    odd.write_bytes(struct.pack('<I', 0xFD2FB528))
    assert 'tables end in .csv or .parquet, bags in .mcap or .db3' in refused(odd)


def test_without_rosbags_the_extra_is_named(tmp_path, rng, monkeypatch):
    path = write_bag(tmp_path / 'bag', messages(rng, 2))
    monkeypatch.setitem(sys.modules, 'rosbags', None)
    with pytest.raises(RecordingError, match=r"pip install 'rbd_ros\[recordings\]'"):
        read_recording(path)
