# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Samples that a joint cannot have count as missing; row 4 of doc/faults.md."""

import itertools
from time import time_ns

from diagnostic_msgs.msg import DiagnosticStatus
from harness import joint_state, odometry, said
import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.state.joint_states import JointStates
from rclpy.parameter import Parameter
from robots import example_urdf, load_quietly

ERROR = DiagnosticStatus.ERROR
COMMANDS = '~/effort_commands'
# N m in some hundreds, by rounding
AGREEMENT = 1e-9
# The bound of the parameter's default; rad/s and m/s, where the description has no limit.
FACTOR, WITHOUT_LIMIT = 3.0, {'continuous': 20.0, 'prismatic': 5.0}
# s: stamps, and times of receipt, may be wrong by so much.
STAMPS, RECEIPTS = 0.002, 0.02

UR10 = example_urdf('ur10_robot.urdf')

pytestmark = pytest.mark.usefixtures('domain')


def pair(kind='revolute', limit=2.0):
    """Return two joints of a kind, one after the other, with a velocity limit."""
    builder = rbd_ros.ModelBuilder('pair').link('a')
    for parent, child, joint in (('a', 'b', 'first'), ('b', 'c', 'second')):
        builder.link(child, 1.0).joint(joint, kind, parent, child, velocity=limit)
    return builder.build()


def states(model, q=(0.0, 0.0), t=10.0, stamp=0.0):
    """Return states that have had one message."""
    one = JointStates(model)
    feed(one, q, t, stamp=stamp)
    return one


def feed(one, q, t, v=(), stamp=0.0, names=('first', 'second'), factor=FACTOR):
    """Let a message come."""
    return one.update(joint_state(names, q, v), t, stamp, fastest=factor)


@pytest.mark.parametrize('way, fits', [(0.99, True), (1.01, False), (-1.01, False)])
@pytest.mark.parametrize('stamp, error', [(50.0, STAMPS), (0.0, RECEIPTS)])
def test_a_joint_moves_no_further_than_its_fastest_speed_allows(way, fits, stamp, error):
    one = states(pair(), stamp=stamp)
    step = 0.1
    way *= FACTOR * 2.0 * (step + error)
    feed(one, (0.01, way), 10.0 + step, stamp=stamp and stamp + step)
    assert one.q.tolist() == [0.01, way if fits else 0.0]
    assert one.missing(10.0 + step, 1.0) == ([] if fits else ['second'])
    assert len(one.judge.implausible) == (not fits)


def test_a_joint_that_jumped_is_missing_until_its_next_plausible_sample():
    one = states(pair())
    feed(one, (0.0, 1.0), 10.01, (0.1, 0.2))
    assert one.missing(10.01, 1.0) == ['second']
    assert "'second' moved by 1 rad" in one.judge.implausible[0]
    # It keeps the age, position and velocity of its last one.
    assert one.ages(10.5) == pytest.approx({'first': 0.49, 'second': 0.5})
    assert one.q.tolist() == [0.0, 0.0] and one.v[0] == 0.1 and np.isnan(one.v[1])
    feed(one, (0.03,), 10.02, names=('first',))
    assert one.missing(10.02, 1.0) == ['second']
    feed(one, (0.0,), 10.02, names=('second',))
    assert one.missing(10.02, 1.0) == [] and not one.judge.implausible


@pytest.mark.parametrize('speed', [(), (0.0, 0.0)])
def test_a_joint_that_stays_at_its_new_position_is_accepted_after_four_samples_and_10_ms(speed):
    for step, count in ((0.0013, 9), (0.005, 4)):
        one = states(pair())
        for k in range(1, count):
            feed(one, (0.0, 1.2), 10.0 + k * step, speed)
            assert one.missing(10.0 + k * step, 1.0) == ['second'] and not one.judge.moved
        feed(one, (0.0, 1.2), 10.0 + count * step, speed)
        assert one.q[1] == 1.2 and not one.missing(10.0 + count * step, 1.0)
        assert one.judge.moved == ["'second' was moved by 1.2 rad"]
        feed(one, (0.0, 1.2), 10.1, speed)
        assert not one.judge.moved


def test_a_joint_that_comes_back_from_a_glitch_has_not_moved():
    one = states(pair())
    for k in range(1, 30):
        # Spikes to both sides, twice as far each time, do not continue each other.
        feed(one, (0.0, (-1.0) ** k * (1.0 + 0.1 * k)), 10.0 + 0.001 * k)
        assert one.missing(10.0 + 0.001 * k, 1.0) == ['second']
    feed(one, (0.0, 0.001), 10.03)
    assert one.q[1] == 0.001 and not one.judge.moved and not one.judge.implausible


def test_a_truly_fast_joint_is_accepted():
    # From 5 rad/s on, 2 rad/s more with each sample: beyond 6 rad/s, and never a glitch.
    one, step, q = states(pair()), 0.002, 0.0
    for k in range(30):
        v = 5.0 + 2.0 * k
        feed(one, (0.0, q), 10.01 + step * k, (0.0, v))
        assert one.v[1] == v and one.q[1] == q and not one.missing(10.01 + step * k, 1.0)
        q += step * (v + 1.0)
    # A glitch in between is none of that motion.
    feed(one, (0.0, q), 10.01 + step * 30, (0.0, -90.0))
    assert np.isnan(one.v[1])


def test_a_motion_that_begins_beyond_the_fastest_speed_is_accepted_after_four_samples():
    speed, step = 15.0, 0.0021
    one, believed = states(pair()), []
    for k in range(1, 60):
        feed(one, (0.0, speed * step * k), 10.0 + step * k, (0.0, speed))
        believed.append(bool(one.v[1] == speed))
    # Four samples are too few in 8 ms; from 10 ms on all count.
    assert believed == [k >= 6 for k in range(1, 60)]


@pytest.mark.parametrize('step, share, stamp', [
    *itertools.product([0.00025, 0.001, 0.002, 0.01], [1.1, 3.0], [50.0]),
    (0.005, 1.2, 0.0), (0.005, -2e3, 0.0)])
def test_a_stuck_velocity_is_never_accepted_at_any_rate_of_states(step, share, stamp):
    one = states(pair(), stamp=stamp)
    for k in range(1, 200):
        t = step * k
        feed(one, (0.0, 0.0), 10.0 + t, (0.0, share * FACTOR * 2.0), stamp=stamp and stamp + t)
        assert np.isnan(one.v[1]) and not one.missing(10.0 + t, 1.0)


@pytest.mark.parametrize('step', [0.00025, 0.001, 0.002])
def test_a_velocity_that_rises_smoothly_while_the_joint_rests_is_not_accepted(step):
    one, believed = states(pair(), stamp=50.0), []
    for k in range(1, 400):
        t, v = step * k, 0.02 * k * FACTOR * 2.0
        feed(one, (0.0, 0.0), 10.0 + t, (0.0, v), stamp=50.0 + t)
        believed.append(0.0 if np.isnan(one.v[1]) else v)
    # Below the fastest speed all count; a little beyond it, positions do not contradict them yet.
    assert FACTOR * 2.0 * 0.98 <= max(believed) < 1.5 * FACTOR * 2.0


def test_each_joint_has_its_own_velocity_limit_in_any_order_of_joints():
    builder = rbd_ros.ModelBuilder('pair').link('a')
    for parent, child, joint, limit in (('a', 'b', 'slow', 1.0), ('b', 'c', 'fast', 10.0)):
        builder.link(child, 1.0).joint(joint, 'revolute', parent, child, velocity=limit)
    model = builder.build()
    for names in (('slow', 'fast'), ('fast', 'slow')):
        one = JointStates(model)
        feed(one, (0.0, 0.0), 10.0, (0.0, 0.0), names=names)
        feed(one, (0.0, 0.0), 10.01, (20.0, 20.0), names=names)
        assert one.missing_velocities() == ['slow']
        feed(one, (0.5, 0.5), 10.02, (0.0, 0.0), names=names)
        assert one.missing(10.02, 1.0) == ['slow']


def test_a_velocity_that_jumps_beyond_the_fastest_speed_counts_as_missing():
    one = states(pair(), stamp=50.0)
    feed(one, (0.0, 0.0), 10.001, (0.0, 4.0), stamp=50.001)
    # The positions agree with both: they cannot tell in a millisecond.
    feed(one, (0.0, 0.006), 10.002, (0.0, 7.5), stamp=50.002)
    assert np.isnan(one.v[1])


def test_a_truly_fast_continuous_joint_is_accepted_through_full_turns():
    one, step = states(pair('continuous'), stamp=50.0), 0.002
    angle = v = 0.0
    for k in range(1, 700):
        # From rest to 18 rad/s, three times what is believed of a sample alone.
        angle, v, t = angle + step * v, min(0.05 * k, 18.0), step * k
        q = np.remainder(angle + np.pi, 2.0 * np.pi) - np.pi
        feed(one, (0.0, q), 10.0 + t, (0.0, v), stamp=50.0 + t)
        assert one.v[1] == v and one.q[1] == q and not one.missing(10.0 + t, 1.0)


@pytest.mark.parametrize('count', [1, 2, 7, 40])
def test_any_number_of_joints_may_have_glitches_at_once_and_in_turn(count):
    model, rng = load_quietly(UR10), np.random.default_rng(count)
    names, q = model.velocity_names, np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.0])
    one, sound = JointStates(model), 0
    one.update(joint_state(names, q, np.zeros(6)), 10.0, 50.0, fastest=FACTOR)
    for k in range(1, 4 * count):
        t, hit = 0.002 * k, rng.random(6) < 0.5
        # Bursts of glitches to both sides, and sound samples in between.
        glitches = (k // count) % 2 == 0 and hit.any()
        way = np.where(hit, (-1.0) ** k * (1.0 + rng.random(6)), 0.0) * glitches
        one.update(joint_state(names, q + way, np.zeros(6)), 10.0 + t, 50.0 + t, fastest=FACTOR)
        assert one.q.tolist() == q.tolist()
        assert one.missing(10.0 + t, 1.0) == [n for n, x in zip(names, way) if x] or glitches
        assert len(one.judge.implausible) == np.count_nonzero(way) and not one.judge.moved
        sound += not glitches
    assert sound >= count


def test_a_spike_of_a_position_gives_no_velocity():
    one, rates = JointStates(pair()), []
    for k in range(60):
        spike = 1.0 if k in (20, 21, 40) else 0.0
        one.update(joint_state(('first', 'second'), (0.001 * k, 0.001 * k + spike)),
                   10.0 + 0.005 * k, 50.0 + 0.005 * k, filter_time=0.02, fastest=FACTOR)
        rates.append(one.velocity_or(None))
    # A millirad in 5 ms.
    assert np.max(np.abs(np.array(rates[1:]) - 0.2)) < 1e-9


def test_a_glitch_of_a_velocity_is_replaced_by_the_difference_of_positions():
    one = JointStates(pair())
    for k in range(10):
        t, v = 0.005 * k, (0.2, 1e4 if k == 9 else 0.0)
        one.update(joint_state(('first', 'second'), (0.001 * k, 0.0), v), 10.0 + t, 50.0 + t,
                   filter_time=0.02, fastest=FACTOR)
    assert one.missing_velocities() == ['second']
    assert one.velocity_or(None).tolist() == [0.2, 0.0]


def test_joints_that_mimic_others_are_not_judged_and_their_leaders_are():
    builder = rbd_ros.ModelBuilder('hand').link('palm').link('left', 1.0).link('right', 1.0)
    model = (builder.joint('leader', 'revolute', 'palm', 'left', velocity=2.0)
             .joint('follower', 'revolute', 'palm', 'right', velocity=2.0,
                    mimic=('leader', -1.0)).build())
    one = JointStates(model)
    for k, (q, fits) in enumerate([((0.0, 0.0), True), ((0.0, 9.0), True), ((1.0, 0.0), False)]):
        one.update(joint_state(('leader', 'follower'), q), 10.0 + 0.01 * k, fastest=FACTOR)
        assert one.missing(10.0 + 0.01 * k, 1.0) == ([] if fits else ['leader'])
        assert len(one.judge.implausible) == (not fits)


def test_the_first_sample_of_a_joint_is_confirmed_by_a_second_one_that_agrees():
    one = states(pair(), (1.0, 0.0))
    assert one.judge.unconfirmed
    feed(one, (0.0, 0.0), 10.001)
    assert one.judge.unconfirmed and one.missing(10.001, 1.0) == ['first']
    one = states(pair())
    feed(one, (0.0,), 10.001, names=('second',))
    assert one.judge.unconfirmed
    feed(one, (0.0,), 10.001, names=('first',))
    assert not one.judge.unconfirmed
    one.forget()
    assert one.judge.unconfirmed
    # Where nothing is judged, nothing waits.
    feed(one, (0.0, 0.0), 10.002, factor=np.inf)
    assert not one.judge.unconfirmed


@pytest.mark.parametrize('speed, fits', [(5.99, True), (6.01, False), (-6.01, False),
                                         (1e300, False), (np.inf, False)])
def test_a_velocity_beyond_the_fastest_speed_is_missing_and_its_position_is_not(speed, fits):
    one = states(pair())
    feed(one, (0.01, 0.02), 10.01, (0.5, speed))
    assert one.q.tolist() == [0.01, 0.02] and one.v[0] == 0.5
    assert one.missing(10.01, 1.0) == []
    assert one.missing_velocities() == ([] if fits else ['second'])
    assert (one.v[1] == speed) == fits


@pytest.mark.parametrize('kind', WITHOUT_LIMIT)
@pytest.mark.parametrize('limit', [0.0, np.inf])
def test_joints_without_a_velocity_limit_have_a_default(kind, limit):
    one = states(pair(kind, limit))
    fastest = FACTOR * WITHOUT_LIMIT[kind]
    feed(one, (0.0, 0.0), 10.01, (0.99 * fastest, 1.01 * fastest))
    assert one.missing_velocities() == ['second']


def test_samples_are_not_judged_without_a_factor():
    one = states(pair())
    feed(one, (5.0, -5.0), 10.001, (1e3, 1e4), factor=np.inf)
    assert one.q.tolist() == [5.0, -5.0] and one.v.tolist() == [1e3, 1e4]


def test_differences_of_positions_that_are_too_fast_are_no_velocity():
    one = JointStates(pair())
    for k, x in enumerate((0.0, 0.01, 0.04)):
        one.update(joint_state(('first', 'second'), (x, 0.01 * k)), 10.0 + 0.005 * k,
                   filter_time=0.0, fastest=1.5)
    # 0.03 rad in 5 ms are 6 rad/s, twice what the joint can do; times of receipt allow it.
    assert np.isnan(one.velocity_or(None)[0])
    assert one.velocity_or(None)[1] == pytest.approx(2.0)


@pytest.fixture
def node(harness):
    """Return a torque controller of the UR10 in the mode computed_torque, holding it."""
    return harness(kind=TorqueController, mode='computed_torque', implausible_velocity=FACTOR,
                   state_timeout=60.0)


@pytest.fixture
def stamps():
    """Return a function that returns stamps of every 2 ms, whatever time it is."""
    times = itertools.count(time_ns(), 2_000_000)
    return lambda: divmod(next(times), 10 ** 9)


@pytest.fixture
def rest(model):
    """Return names, a position and zero velocity of the UR10."""
    return model.velocity_names, np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.0]), np.zeros(6)


def test_fault_4_a_glitch_becomes_no_torque(node, rest, stamps):
    names, q, v = rest
    heard = node.heard[COMMANDS]
    node.send(*rest, stamp=stamps())
    glitches = itertools.cycle([(0.0, 100.0), (1.0, 0.0), (0.0, 1e4), (-1.0, 0.0)])
    for e, (dq, dv) in zip(np.eye(6), glitches):
        node.answer(*rest, topic=COMMANDS, stamp=stamps())
        before = len(heard)
        node.send(names, q + dq * e, v + dv * e, stamp=stamps())
        node.settle()
        assert len(heard) == before
    # In the report of that second, which may be out already.
    node.spin_until(lambda: any('implausible samples were ignored' in report.status[0].message
                                for report in node.heard['/diagnostics']))
    # The next sound sample is answered, by a law that holds the robot where it is.
    node.answer(*rest, topic=COMMANDS, stamp=stamps())
    assert np.max(np.abs(np.array(heard[-1].data) - heard[0].data)) < AGREEMENT


def test_fault_4_a_glitch_of_the_first_sample_commands_nothing(node, model, rest, stamps):
    names, q, v = rest
    heard, expected = node.heard[COMMANDS], rbd_ros.gravity_torques(model, q)
    for _ in range(2):
        before = len(heard)
        node.send(names, q + np.eye(6)[1], v, stamp=stamps())
        node.settle()
        # Not before the joint is believed to be elsewhere, after 10 ms, and two samples agree.
        for k in range(10):
            assert k > 6 or len(heard) == before
            node.send(*rest, stamp=stamps())
            node.settle()
        assert len(heard) > before
        # They hold it where it is.
        for command in heard[before:]:
            assert np.max(np.abs(np.array(command.data) - expected)) < AGREEMENT
        # After a jump of time the next sample is the first again.
        node.node._on_jump('time jumped')


def test_fault_4_joints_that_jumped_are_named_in_one_line_and_nothing_is_published(
        harness, rest, stamps, capfd):
    names, q, v = rest
    node = harness(implausible_velocity=FACTOR, state_timeout=60.0)
    node.answer(*rest, stamp=stamps())
    before = len(node.heard['~/dynamics'])
    node.send(names, q + [1.0, 0.0, -1.0, 0.0, 0.0, 0.0], v, stamp=stamps())
    counts = node.node.report.counts
    node.spin_until(lambda: counts['implausible samples'])
    for _ in range(3):
        # Of another robot on the same topic.
        node.send(['finger'], [0.0])
    node.spin_until(lambda: counts['joint states'] == 5)
    assert counts['implausible samples'] == 2
    line, = [one for one in capfd.readouterr().err.splitlines() if 'implausible: ' in one]
    for name, way in (('shoulder_pan', 1), ('elbow', -1)):
        assert f"'{name}_joint' moved by {way} rad" in line
    said(node, 'no recent position of shoulder_pan_joint, elbow_joint', ERROR)
    assert len(node.heard['~/dynamics']) == before


def test_fault_4_a_base_that_was_moved_is_followed_from_there(harness, stamps, capfd):
    node = harness(example_urdf('anymal_b_simple_description/robots/anymal.urdf').read_text(),
                   floating_base=True, implausible_velocity=FACTOR, state_timeout=60.0)
    still = [0.0] * 3
    for x in (0.0, 5.0):
        for _ in range(9):
            node.move_base(odometry('base', [0, 0, 0, 1], [x, 0.0, 0.5], still, still,
                                    stamp=stamps()))
    counts = node.node.report.counts
    # 10 ms are over with the sixth or, by rounding, the seventh.
    assert counts['odometry dropped'] in (5, 6) and counts['moved joints'] == 1
    assert node.node.robot.odometry.nearest(0.0, node.node.clocks.age_time(), 60.0)[0].q[4] == 5.0
    assert 'the base moved by 5 m' in capfd.readouterr().err


def test_fault_4_a_glitch_of_the_velocity_leaves_gravity_torques(harness, model, rest):
    names, q, v = rest
    node = harness(implausible_velocity=FACTOR)
    node.answer(*rest)
    node.settle()
    count = len(node.heard['~/coriolis_torques'])
    got = node.answer(names, q, [100.0, *v[1:]], topic=COMMANDS)
    assert np.max(np.abs(np.array(got.data) - rbd_ros.gravity_torques(model, q))) < AGREEMENT
    node.settle()
    assert len(node.heard['~/coriolis_torques']) == count


def test_a_factor_that_would_ignore_sound_samples_is_refused():
    node = DynamicsNode()
    for value, reason in ((0.5, 'at least 1'), (-1.0, 'out of range'), (np.nan, 'out of range')):
        result, = node.set_parameters([Parameter('implausible_velocity', value=value)])
        assert not result.successful and reason in result.reason
    node.destroy_node()
