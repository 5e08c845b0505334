# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is read from serialized joint states, against what the middleware reads."""

import struct

from harness import joint_state
import numpy as np
import pytest
from rbd_ros._internal import cdr
from rbd_ros.ros import convert
from rclpy.serialization import deserialize_message, serialize_message
from sensor_msgs.msg import JointState

NAMES = ['a', 'elbow', 'wrist_1', 'wrist_22', 'Größe']
# Messages in a row
MANY = 60


def said(state):
    """Return what a State says, for comparison; numbers by their bits."""
    return (state.stamp.sec, state.stamp.nanosec, list(state.name),
            *(np.array(x, float).tobytes() for x in (state.position, state.velocity,
                                                     state.effort)))


def converted(raw):
    """Return the same as the middleware reads it, or the kind of error that it raises."""
    try:
        message = deserialize_message(raw, JointState)
    except Exception as error:
        return type(error)
    return said(cdr.JointStateContent(message.header.stamp, message.name, message.position,
                                      message.velocity, message.effort))


def read(reader, raw):
    """Return what a reader makes of it, or the kind of error that it raises."""
    try:
        return said(reader.read(raw))
    except Exception as error:
        return type(error)


def message(rng, names=NAMES, velocity=True, effort=False, frame=''):
    """Return a serialized joint state with numbers drawn at random."""
    n = len(names)
    state = joint_state(names, rng.normal(size=n), rng.normal(size=n) if velocity else (),
                        rng.normal(size=n) if effort else (),
                        stamp=(int(rng.integers(2 ** 31)), int(rng.integers(10 ** 9))))
    state.header.frame_id = frame
    return bytes(serialize_message(state))


def scrambled(rng, raw, places):
    """Return a message with other bytes at some places."""
    changed = bytearray(raw)
    for k in places:
        changed[k] = rng.integers(256)
    return bytes(changed)


def meaningless(raw):
    """Return where a message may be changed without saying anything else."""
    def says_the_same(changed):
        try:
            return deserialize_message(changed, JointState) == message
        except RuntimeError:
            return False

    message = deserialize_message(raw, JointState)
    return [k for k in range(4, len(raw))
            if all(says_the_same(raw[:k] + bytes([raw[k] ^ bit]) + raw[k + 1:])
                   for bit in (0x01, 0x80))]


@pytest.fixture
def rng():
    """Return a generator of random numbers."""
    return np.random.default_rng(7)


@pytest.fixture
def reader(monkeypatch):
    """Return a reader that looks at every message."""
    monkeypatch.setattr(cdr, 'LEARNING_PERIOD', 0.0)
    return convert.joint_state_reader()


@pytest.fixture
def conversions(reader, monkeypatch):
    """Return the list of the messages that were converted as a whole."""
    seen = []

    def count(raw):
        seen.append(raw)
        return deserialize_message(raw, JointState)

    monkeypatch.setattr(reader, '_deserialize', count)
    return seen


@pytest.mark.parametrize('velocity, effort', [(True, True), (True, False), (False, False)])
def test_messages_that_differ_in_numbers_alone_are_not_converted(
        rng, reader, conversions, velocity, effort):
    raw = message(rng, velocity=velocity, effort=effort)
    places = meaningless(raw)
    read(reader, raw)
    conversions.clear()
    for _ in range(MANY):
        raw = scrambled(rng, message(rng, velocity=velocity, effort=effort), places)
        assert read(reader, raw) == converted(raw)
    assert not conversions


def test_without_shortcuts_every_message_is_converted(rng, reader, conversions, monkeypatch):
    monkeypatch.setattr(cdr, 'SHORTCUTS', False)
    for _ in range(5):
        raw = message(rng)
        assert read(reader, raw) == converted(raw)
    assert len(conversions) == 5


def test_every_significant_byte_is_compared(rng, reader):
    raw = message(rng, effort=True, frame='base')
    places = meaningless(raw)
    assert 3 <= len(places) < 30
    for _ in range(MANY):
        reader.read(scrambled(rng, message(rng, effort=True, frame='base'), places))
    for k in range(len(raw)):
        for bit in (0x01, 0x80):
            changed = raw[:k] + bytes([raw[k] ^ bit]) + raw[k + 1:]
            assert read(reader, changed) == converted(changed), k
            assert read(reader, raw) == converted(raw), k


def test_senders_that_take_turns_are_all_read(rng, reader):
    kinds = [{}, {'names': ['b', *NAMES[1:]]}, {'velocity': False}, {'frame': 'base'},
             {'names': NAMES[::-1]}, {'names': NAMES[:2]}, {'effort': True}, {'names': []}]
    for k in rng.integers(len(kinds), size=300):
        raw = message(rng, **kinds[k])
        assert read(reader, raw) == converted(raw)


def test_more_senders_than_are_remembered_are_all_read(rng, reader):
    for k in range(3 * cdr.MAX_LAYOUTS):
        raw = message(rng, names=[f'joint{j}' for j in range(k)])
        assert read(reader, raw) == converted(raw)
        assert len(reader._layouts) <= cdr.MAX_LAYOUTS


def test_names_that_are_not_unicode_are_not_confused(rng, reader):
    good = message(rng, names=['joint_\u00f6'])
    place = good.index(b'joint_') + 6
    # Both of the first read as two replacement characters, and differ in what makes the third.
    for pair in (b'\xc3\xf6', b'\xff\xb6', b'\xc3\xb6', b'xy', b'\xc3\xf6', b'\xc3\xb6'):
        raw = good[:place] + pair + good[place + 2:]
        assert read(reader, raw) == converted(raw)


def serialized(rng, texts, frame=b'\x00'):
    """Return a message with texts as they are given, the NUL at their end included or not."""
    data = bytearray(b'\x00\x01\x00\x00')

    def put(form, *values):
        size = struct.calcsize(form[:2])
        data.extend(b'\xaa' * (-(len(data) - 4) % size))
        data.extend(struct.pack(form, *values))

    def put_text(text):
        put('<I', len(text))
        data.extend(text)

    put('<i', int(rng.integers(2 ** 31)))
    put('<I', int(rng.integers(10 ** 9)))
    put_text(frame)
    put('<I', len(texts))
    for text in texts:
        put_text(text)
    for _ in range(2):
        put('<I', len(texts))
        put('<d', rng.normal())
        for _ in texts[1:]:
            put('<d', rng.normal())
    put('<I', 0)
    return bytes(data)


@pytest.mark.parametrize('texts, frame', [
    ([b'joint_1\x00', b'joint_2\x00'], b'base\x00'),
    # Of fixed length, as from an array of characters.
    ([text.ljust(17, b'\x00') for text in (b'joint_1', b'joint_2', b'joint_3')], b'\x00'),
    ([b'joint_1\x00', b'joint_2\x00'], b'base'.ljust(33, b'\x00')),
    # Without the NUL at the end.
    ([b'abcd', b'cd\x00'], b'\x00'),
    ([b'abcd\x00'], b''),
    ([b'shoulder\x00', b'elbow\x00', b'w\x00'], b''),
], ids=['usual', 'padded names', 'padded frame', 'not terminated', 'no frame', 'no frame, three'])
def test_texts_are_read_however_they_are_laid_out(rng, reader, texts, frame):
    for _ in range(MANY):
        raw = serialized(rng, texts, frame=frame)
        assert not isinstance(converted(raw), type)
        assert read(reader, raw) == converted(raw)


def test_messages_with_several_layouts_of_one_text_are_read_correctly(rng, reader):
    for texts in ([b'ab\x00'], [b'ab'], [b'abc'], [b'ab\x00'], [b'ab'], [b'abc']):
        raw = serialized(rng, texts)
        assert read(reader, raw) == converted(raw)


def test_a_period_of_changing_messages_adds_one_layout(rng):
    reader = convert.joint_state_reader()
    for k in range(10):
        reader.read(message(rng, names=[f'joint{j}' for j in range(k)]))
    assert len(reader._layouts) == 1


def test_another_encapsulation_is_converted(rng, reader):
    raw = message(rng)
    for _ in range(3):
        reader.read(raw)
    # The same, most significant byte first: whatever the middleware makes of it.
    other = b'\x00\x00' + raw[2:]
    assert read(reader, other) == converted(other)


def test_invalid_messages_raise_the_errors_of_the_middleware(rng, reader):
    raw = message(rng)
    reader.read(raw)
    for cut in (b'', raw[:3], raw[:20], raw[:-9]):
        assert read(reader, cut) == converted(cut)


def test_the_stamp_can_be_sent_again(rng, reader):
    raw = message(rng)
    for _ in range(2):
        stamp = convert.time(reader.read(raw).stamp)
        assert stamp == deserialize_message(raw, JointState).header.stamp
