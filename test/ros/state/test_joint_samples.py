# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Plausible samples are taken in one compiled call, as if each had been judged."""

from covering import seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.ros.state import joint_states
from rbd_ros.ros.state.joint_states import JointStates, Rejected, TimeWentBack
from sensor_msgs.msg import JointState

KINDS = 'revolute', 'continuous', 'prismatic', 'revolute', 'continuous'
NAMES = [f'j{k}' for k in range(5)]
COUNT = 200


def chain():
    """Return a robot with joints of all kinds that joint states can hold."""
    builder = rbd_ros.ModelBuilder('chain').link('l0')
    for k, kind in enumerate(KINDS):
        builder.link(f'l{k + 1}', 1.0).joint(NAMES[k], kind, f'l{k}', f'l{k + 1}', velocity=2.0)
    return builder.build()


def messages(seed, stamped):
    """Yield times of receipt, stamps, fastest speeds and messages of a motion, some odd."""
    rng = np.random.default_rng(seed)
    t, q, v = 10.0, np.zeros(5), np.zeros(5)
    for _ in range(COUNT):
        t += rng.choice([0.001, 0.01, 0.05])
        v = np.clip(v + 0.2 * rng.normal(size=5), -1.5, 1.5)
        q = q + 0.005 * v
        some = rng.permutation(5)[:rng.choice([5, 5, 5, 3, 1])]
        sent_q, sent_v, effort = q[some].copy(), v[some].copy(), rng.normal(size=len(some))
        if rng.random() < 0.06:
            sent_q[0] += rng.choice([-3.0, 1.0, 2.0 * np.pi, np.nan, 1e13])
        if rng.random() < 0.06:
            sent_v[-1] = rng.choice([9.0, np.nan, np.inf])
        names = [NAMES[k] for k in some]
        if rng.random() < 0.1:      # a joint of another robot
            names, sent_q, sent_v, effort = ['x', *names], *(
                np.append(7.0, x) for x in (sent_q, sent_v, effort))
        have_v, have_effort = rng.random(2) < 0.9
        stamp = t - rng.choice([0.0, 0.0, 0.0, 0.0015, 0.02]) if rng.random() < stamped else 0.0
        yield t, stamp, rng.choice([3.0] * 19 + [np.inf]), JointState(
            name=names, position=sent_q.tolist(), velocity=sent_v.tolist() if have_v else [],
            effort=effort.tolist() if have_effort else [])


def outcome(states, t, stamp, fastest, message, filter_time):
    """Return the result of an update, and the state after it, as a text: NaN equals NaN."""
    try:
        result = states.update(message, t, stamp, 0.5, filter_time, fastest)
    except (Rejected, TimeWentBack) as error:
        result = str(error)
    judge = states.judge
    return str((result, states.q.tolist(), states.v.tolist(), states.effort.tolist(),
                states.missing(t, 0.5), states.ages(t), states._stamps.tolist(), judge.moved,
                sorted(judge.doubtful), judge.confirmed.tolist(),
                states.differentiator.rates.tolist()))


# Velocities are differentiated with every other seed.
@pytest.mark.parametrize('seed', seeds(8, few=2))
@pytest.mark.parametrize('stamped', [1.0, 0.0, 0.9])    # share of the messages with a stamp
def test_messages_taken_at_once_give_the_same_states_as_judged_samples(seed, stamped, monkeypatch):
    fast, judged, taken = JointStates(chain()), JointStates(chain()), []
    take = joint_states.take_plausible
    monkeypatch.setattr(joint_states, 'take_plausible',
                        lambda *arguments: taken.append(take(*arguments)) or taken[-1])
    monkeypatch.setattr(judged, '_take_plausible', lambda *_: False)
    filter_time = 0.02 if seed % 2 else None
    for message in messages(seed, stamped):
        assert outcome(fast, *message, filter_time) == outcome(judged, *message, filter_time)
    assert 0.2 * COUNT < sum(taken) < 0.9 * COUNT


@pytest.mark.parametrize('position', [1e13, np.inf, np.nan])
@pytest.mark.parametrize('stamp, fastest', [(5.0, 3.0), (0.0, np.inf)])
def test_a_position_that_is_no_measurement_concerns_its_joint_alone(position, stamp, fastest):
    states = JointStates(chain())
    for k in range(3):
        states.update(JointState(name=NAMES, position=[0.0] * 5), 10.0 + 0.01 * k, fastest=3.0)
    # The first stamp, or without a fastest speed: no distance is too far.
    states.update(JointState(name=NAMES, position=[0.01, 0.02, position, 0.03, 0.04]), 10.03,
                  stamp, fastest=fastest)
    assert states.q.tolist() == [0.01, 0.02, 0.0, 0.03, 0.04]
    assert states.missing(10.03, 0.5) == ['j2']
    assert f"the position of 'j2' is out of range: {position}" in states.judge.implausible
    states.update(JointState(name=NAMES, position=[0.01] * 5), 10.04, stamp and stamp + 0.01,
                  fastest=fastest)
    assert states.missing(10.04, 0.5) == [] and states.q.tolist() == [0.01] * 5


def test_nan_is_no_position_of_a_joint_that_another_publisher_measures():
    states = JointStates(chain())
    for k in range(9):
        t = 10.0 + 0.01 * k
        states.update(JointState(name=NAMES[4:], position=[0.01 * k]), t, t, 0.05)
        assert states.update(JointState(name=NAMES, position=[0.01] * 4 + [np.nan]), t + 0.001,
                             t + 0.001, 0.05)
        assert states.missing(t + 0.001, 0.05) == [] and not states.judge.implausible
        assert states.q.tolist() == [0.01] * 4 + [0.01 * k]
    # Once the other one is silent, its joint is as old as its last position.
    states.update(JointState(name=NAMES, position=[0.01] * 4 + [np.nan]), 10.15, 10.15, 0.05)
    assert states.missing(10.15, 0.05) == ['j4']


def test_in_a_message_with_late_and_recent_joints_the_recent_ones_count():
    states = JointStates(chain())
    states.update(JointState(name=NAMES, position=[0.0] * 5), 10.0, 10.0, 0.5)
    for k in range(1, 20):
        t = 10.0 + 0.01 * k
        states.update(JointState(name=NAMES[:4], position=[0.01 * k] * 4), t, t, 0.5)
        states.update(JointState(name=NAMES, position=[-9.0] * 4 + [0.02 * k]), t, t - 0.005, 0.5)
        assert states.q.tolist() == [0.01 * k] * 4 + [0.02 * k]
        assert states.missing(t, 0.5) == [] and not states.judge.implausible
    with pytest.raises(Rejected, match='before that of an earlier message'):
        states.update(JointState(name=NAMES, position=[0.0] * 5), 10.2, 10.1, 0.5)
    with pytest.raises(TimeWentBack):
        states.update(JointState(name=NAMES, position=[0.0] * 5), 10.2, 5.0, 0.5)


@pytest.mark.parametrize('age', [0.0, 0.49, 0.51])
def test_a_joint_in_a_message_of_its_own_is_missing_after_the_timeout(age):
    states = JointStates(chain())
    states.update(JointState(name=NAMES[:1], position=[0.0]), 10.0)
    states.update(JointState(name=NAMES[1:], position=[0.0] * 4), 10.0 + age)
    # However often it is asked for, and whenever the others come.
    for now in (10.0 + age, 10.3 + age):
        assert states.missing(now, 0.5) == (['j0'] if now > 10.5 else [])
        states.update(JointState(name=NAMES[1:], position=[0.0] * 4), now)
    assert states.missing(10.51 + age, 0.5) == ['j0']


@pytest.mark.parametrize('offset', [-0.03, 0.0, 0.03])
def test_the_age_of_a_joint_is_measured_by_the_clock_of_its_source(offset):
    states = JointStates(chain())
    for k in range(20):
        # Stamps are late by 1 ms, and those of an extra clock by their offset.
        t = 10.0 + 0.01 * k
        states.update(JointState(name=NAMES[:1], position=[0.0]), t, t - 0.001 - offset, 0.1,
                      lag=0.001 + offset)
        states.update(JointState(name=NAMES[1:], position=[0.0] * 4), t, t, 0.1, lag=0.0)
    # What is behind may be late; what is ahead is not younger than its receipt.
    late = max(offset, 0.0) + 0.001 * (offset >= 0.0)
    assert states.ages(t) == pytest.approx({'j0': late, **dict.fromkeys(NAMES[1:], 0.0)}, abs=2e-4)
    # A message that took 20 ms longer is that much older, by whatever clock.
    t += 0.05
    states.update(JointState(name=NAMES[:1], position=[0.0]), t, t - 0.021 - offset, 0.1,
                  lag=0.021 + offset)
    assert states.ages(t)['j0'] == pytest.approx(late + 0.02, abs=1e-3)
    notes = list(states.sources.clock_notes(NAMES))
    assert len(notes) == (offset != 0.0) and all('stamps of j0 are' in note for note in notes)
    assert not list(states.sources.clock_notes(NAMES))


def test_samples_are_judged_until_the_kernel_is_compiled(monkeypatch):
    def not_ready(*_):
        raise KernelNotReady(lambda: False)
    monkeypatch.setattr(joint_states, 'take_plausible', not_ready)
    states = JointStates(chain())
    for k in range(3):
        assert states.update(JointState(name=NAMES, position=[0.01 * k] * 5), 10.0 + 0.01 * k)
    assert states.q.tolist() == [0.02] * 5
