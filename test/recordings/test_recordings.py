# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings by joint name: cleaned, joined, renamed, scaled and fitted to a robot."""

from bag_files import joint_state, write_bag
import numpy as np
import pytest
import rbd_ros
from rbd_ros import RecordingError
from rbd_ros.identification import read_recording, Recording
from robots import example_urdf, load_quietly

NAMES = ('b', 'a', 'c')
MS = 10 ** 6
# Times in a bag are whole nanoseconds.
RESOLUTION = 1e-9


def truth(time, joints=NAMES):
    """Return positions that tell joint and time, with the slope of 1 per s."""
    return np.asarray(time)[:, None] + 10.0 * np.array([ord(name[-1]) for name in joints])


def states(stamps, joints=NAMES, topic='/joint_states', late=5 * MS, **numbers):
    """Return messages whose positions, velocities and efforts tell joint and time."""
    messages = []
    for stamp, row in zip(stamps, truth(1e-9 * np.array(stamps), joints)):
        parts = {'velocity': -row, 'effort': 2.0 * row} | numbers
        messages.append((topic, stamp + late, joint_state(stamp, joints, row, **parts)))
    return messages


def bag(tmp_path, *messages, **options):
    """Write messages in the order in which they were received."""
    everything = sorted((one for some in messages for one in some), key=lambda one: one[1])
    return write_bag(tmp_path / 'bag', everything, **options)


@pytest.fixture(scope='module')
def arm():
    """Return a Panda, whose second finger copies the first."""
    return load_quietly(example_urdf('panda.urdf'))


def recording(names, states=5, **changes):
    """Return a recording with numbers that differ."""
    numbers = np.arange(float(states * len(names))).reshape(states, len(names))
    parts = {'velocity': numbers + 0.1, 'effort': numbers + 0.2} | changes
    return Recording('here', names, np.arange(states) / 10.0, numbers, **parts)


# -- Cleaned. ------------------------------------------------------------------------------------

def test_stamps_that_do_not_increase_are_left_out_and_counted(tmp_path):
    stamps = [MS * k for k in (1, 2, 2, 3, 1, 2, 3, 4, 5)]
    messages = [(topic, 10 * k, raw) for k, (topic, _, raw) in enumerate(states(stamps))]
    got = read_recording(bag(tmp_path, messages))
    assert np.allclose(got.time, [0.0, 1e-3, 2e-3, 3e-3, 4e-3], rtol=0.0, atol=RESOLUTION)
    assert np.array_equal(got.position, truth([0.001, 0.002, 0.003, 0.004, 0.005]))
    text = ' '.join(got.notes)
    assert '2 states left out that have the stamp of the one before' in text
    assert '2 states left out whose stamp lies before an earlier one, by up to 0.002 s' in text


def test_a_quantity_that_is_never_a_number_is_not_measured(tmp_path):
    effort = [1.0, np.nan, 2.0]
    got = read_recording(bag(tmp_path, states([MS, 2 * MS], velocity=[np.nan] * 3,
                                              effort=effort)))
    assert got.velocity is None and len(got) == 2
    assert np.array_equal(got.effort, [effort, effort], equal_nan=True)


def test_without_stamps_the_time_is_that_of_receipt(tmp_path):
    messages = [('/joint_states', 10 ** 18 + k * MS, joint_state(0, ['a'], [k]))
                for k in range(4)]
    got = read_recording(bag(tmp_path, messages))
    assert np.allclose(got.time, 1e-3 * np.arange(4), rtol=0.0, atol=RESOLUTION)
    assert 'no stamps' in got.notes[0]


def test_stamps_of_the_present_keep_their_nanoseconds(tmp_path):
    stamps = [1_700_000_000_123_456_789 + k * 1_000_003 for k in range(5)]
    got = read_recording(bag(tmp_path, states(stamps, velocity=(), effort=())))
    assert np.allclose(np.diff(got.time), 1.000003e-3, rtol=0.0, atol=1e-12)
    assert got.time[0] == 0.0


# -- Joined. -------------------------------------------------------------------------------------

def test_publishers_in_turns_make_complete_states(tmp_path):
    stamps = [MS * k for k in range(1, 20)]
    got = read_recording(bag(tmp_path, states(stamps, ['b', 'a']),
                             states(stamps, ['c'], late=6 * MS)))
    assert got.joint_names == NAMES
    assert np.array_equal(got.position, truth(1e-9 * np.array(stamps)))
    assert np.array_equal(got.velocity, -got.position)
    assert np.array_equal(got.effort, 2.0 * got.position)


def test_a_joint_of_two_publishers_keeps_its_column(tmp_path):
    stamps = [MS * k for k in range(1, 20)]
    got = read_recording(bag(tmp_path, states(stamps),
                             states([stamp + MS // 2 for stamp in stamps], ['a'])))
    assert got.joint_names == NAMES
    assert np.array_equal(got.position, truth(1e-9 * np.array(stamps)))


def test_the_slowest_publisher_gives_the_times(tmp_path):
    slow, fast = [10 * MS * k for k in range(1, 9)], [MS * k for k in range(5, 90)]
    shift = 300_000
    got = read_recording(bag(tmp_path, states([t + shift for t in slow], ['c']),
                             states(fast, ['a', 'b'])))
    assert np.allclose(got.time, 1e-2 * np.arange(8), rtol=0.0, atol=RESOLUTION)
    # Each number was measured, nowhere further away than half a period.
    assert got.joint_names == ('a', 'b', 'c')
    assert np.array_equal(got.position[:, :2], truth(1e-9 * np.array(slow), 'ab'))
    assert '2 publishers' in got.notes[0] and '0.3 ms apart' in got.notes[0]


def test_no_state_is_held_while_a_publisher_is_silent(tmp_path):
    stamps = [10 * MS * k for k in range(1, 101)]
    silent = [stamp for stamp in stamps if not 300 * MS <= stamp < 600 * MS]
    got = read_recording(bag(tmp_path, states(stamps, ['a']), states(silent, ['b', 'c'])))
    assert np.array_equal(got.position, truth(1e-9 * np.array(silent), got.joint_names))
    # And the other way round, with the silent one not the slowest.
    (tmp_path / 'other').mkdir()
    rare = stamps[::5]
    got = read_recording(bag(tmp_path / 'other', states(rare, ['a']), states(silent, ['b', 'c'])))
    kept = [stamp for stamp in rare if stamp in silent]
    assert np.array_equal(got.position, truth(1e-9 * np.array(kept), got.joint_names))


def test_publishers_without_common_times_are_refused(tmp_path):
    path = bag(tmp_path, states([MS * k for k in range(1, 9)], ['a']),
               states([MS * k for k in range(100, 109)], ['b']))
    with pytest.raises(RecordingError, match='no state is complete'):
        read_recording(path)
    assert read_recording(path, joints=['b']).joint_names == ('b',)


# -- Parts, names and scales. --------------------------------------------------------------------

def test_times_of_a_part_count_from_the_beginning_of_the_recording():
    one = Recording('here', ['a'], np.arange(5.0, 6.0, 0.1), np.zeros((10, 1)))
    assert np.array_equal(one.part(0.15, 0.45).time, one.time[2:5])
    assert np.array_equal(one.part(stop=0.25).time, one.time[:3])
    with pytest.raises(RecordingError, match=r'here: no states between 7 s and its end; it lasts '
                                             r'0\.900 s'):
        one.part(7.0)


def test_joints_are_renamed_and_scaled_by_their_new_name(tmp_path):
    path = bag(tmp_path, states([MS, 2 * MS]))
    plain = read_recording(path)
    got = read_recording(path, rename={'a': 'elbow', 'b': 'a'}, scale={'elbow': -3.0})
    assert got.joint_names == ('a', 'elbow', 'c')
    assert np.array_equal(got.effort, plain.effort * [1.0, -3.0, 1.0])
    assert np.array_equal(got.position, plain.position)


@pytest.mark.parametrize('options, said', [
    ({'rename': {'joint_a': 'x'}}, r"rename names the joint 'joint_a', .*similar: a"),
    ({'rename': {'a': 'b'}}, r"two joints would be called 'b'"),
    ({'scale': {'elbow': 2.0}}, r"scale names the joint 'elbow', .*recorded are b, a, c"),
    ({'scale': {'a': np.nan}}, r"scale of 'a' must be finite"),
    ({'joints': ['elbow']}, r'none of the joints elbow was recorded, only b, a, c'),
])
def test_joints_that_are_not_there_are_named(tmp_path, options, said):
    path = bag(tmp_path, states([MS, 2 * MS]))
    with pytest.raises(rbd_ros.RbdError, match=said):
        read_recording(path, **options)


def test_a_robot_gets_its_joints_in_its_order(arm):
    names = ('gripper', *arm.velocity_names[::-1], 'panda_finger_joint2')
    one = recording(names)
    got = one.for_robot(arm)
    assert got.joint_names == arm.velocity_names
    for label in ('position', 'velocity', 'effort'):
        columns = [names.index(name) for name in arm.velocity_names]
        assert np.array_equal(getattr(got, label), getattr(one, label)[:, columns])
    assert got.notes == (f"left out, not in robot '{arm.name}': gripper",)


def test_a_joint_that_was_not_recorded_is_named_with_those_alike(arm):
    names = ['fr3_joint4' if name == 'panda_joint4' else name for name in arm.velocity_names]
    with pytest.raises(RecordingError, match=r"'panda_joint4', which was not recorded.*"
                                             r"rename=\{'fr3_joint4': 'panda_joint4'\}"):
        recording(names).for_robot(arm)
    names[3] = 'left/panda_joint4'
    with pytest.raises(RecordingError, match=r"\{'left/panda_joint4': 'panda_joint4'\}"):
        recording(names).for_robot(arm)
    with pytest.raises(RecordingError, match=r'\(8 joints in all\).*recorded are 0.*lock the'):
        recording(['0']).for_robot(arm)


def test_velocities_that_one_joint_lacks_are_left_out(arm):
    names = arm.velocity_names
    velocity = np.zeros((5, len(names)))
    velocity[:, 2] = np.nan
    got = recording(names, velocity=velocity).for_robot(arm)
    assert got.velocity is None and names[2] in got.notes[0]


@pytest.mark.parametrize('changes, said', [
    ({'time': [0.0, 1.0, 1.0]}, 'does not increase'),
    ({'time': [0.0, 1.0, np.nan]}, 'time holds a number that is not finite'),
    ({'time': None}, 'time must be real numbers'),
    ({'position': np.zeros((3, 1))}, r'position must be .*\(3, 2\), got the shape \(3, 1\)'),
    ({'position': np.full((3, 2), np.nan)}, 'position holds a number that is not finite'),
    ({'effort': [[0, 0], [0, np.inf], [0, 0]]}, 'effort holds a number that is not finite'),
    ({'joint_names': ('a', 'a')}, "the joint 'a' is there twice"),
    ({'joint_names': (1, 2)}, 'joint_names must be strings'),
])
def test_arrays_that_do_not_fit_together_are_refused(changes, said):
    parts = {'name': 'here', 'joint_names': ('a', 'b'), 'time': [0.0, 1.0, 2.0],
             'position': np.zeros((3, 2))} | changes
    with pytest.raises(RecordingError, match=said):
        Recording(**parts)


def test_recordings_are_immutable():
    one = recording(('a', 'b'))
    with pytest.raises(ValueError, match='read-only'):
        one.position[0, 0] = 1.0


def test_velocities_are_those_measured_or_the_rates_of_the_positions():
    time = np.array([0.0, 0.1, 0.3, 0.35, 1.0])
    recording = Recording('r', NAMES, time, truth(time))
    assert np.allclose(recording.velocities(), 1.0, rtol=1e-12)
    measured = np.arange(15.0).reshape(5, 3)
    recording = Recording('r', NAMES, time, truth(time), measured)
    assert np.array_equal(recording.velocities(), measured)
