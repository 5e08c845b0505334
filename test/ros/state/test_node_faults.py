# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Publishers, clocks and loads that go wrong; numbers are rows of doc/faults.md."""

import re
from threading import Thread
from time import sleep

from diagnostic_msgs.msg import DiagnosticStatus
from harness import at, joint_state, keep_sending, said, SimulatedTime
import numpy as np
import pytest
from rbd_msgs.srv import HybridDynamics
import rbd_ros
from rbd_ros.ros.robot.subscriptions import Backlog
from rclpy.node import Node
from rclpy.qos import DurabilityPolicy, QoSProfile, ReliabilityPolicy
from robots import example_urdf, random_state, relative_error
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

# Rounding is a thousandth of it.
AGREEMENT = 1e-9
ARM = example_urdf('ur10_robot.urdf').read_text()
OK, WARN = DiagnosticStatus.OK, DiagnosticStatus.WARN
STALE, ERROR = DiagnosticStatus.STALE, DiagnosticStatus.ERROR

pytestmark = pytest.mark.usefixtures('domain')


def test_fault_11_two_publishers_of_joint_states_are_named(harness, state):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    said(node, '', OK)
    other = Node('second_robot')
    publisher = other.create_publisher(JointState, 'joint_states', 10)
    said(node, '2 publishers of /joint_states: /peer, /second_robot', WARN)
    # Both are heard: the state is what was measured last.
    node.spin_until(lambda: publisher.get_subscription_count() > 0)
    count = len(node.heard['~/dynamics'])
    publisher.publish(joint_state(*state))
    node.spin_until(lambda: len(node.heard['~/dynamics']) > count)
    other.destroy_node()
    said(node, 'publishing', OK)


def test_fault_13_a_stale_state_is_an_error_and_states_resume(harness, state):
    node = harness(state_timeout=0.3)
    said(node, 'no state has arrived yet', STALE)
    node.answer(*state)
    said(node, 'joint states have stopped; no recent position of shoulder_pan_joint', ERROR)
    age = float(node.diagnosis()[2]['age of elbow_joint, s'])
    assert 0.3 < age < 30.0
    node.answer(*state)


@pytest.mark.parametrize('asked', [
    {}, {'qos_overrides./joint_states.subscription.reliability': 'reliable'}])
def test_fault_17_best_effort_states_are_received_despite_an_override_of_reliability(
        harness, state, asked):
    node = harness(**asked)
    node.peer.destroy_publisher(node._send)
    node._send = node.peer.create_publisher(JointState, 'joint_states', QoSProfile(
        depth=10, reliability=ReliabilityPolicy.BEST_EFFORT))
    keep_sending(node, state, lambda: node.heard['~/dynamics'])


def test_fault_17_mismatched_publishers_and_subscribers_are_reported(harness, state, capfd):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    volatile = node.peer.create_publisher(String, 'robot_description', 1)
    said(node, 'nothing is received from a publisher of /robot_description: its quality', WARN)
    assert 'DURABILITY' in capfd.readouterr().err
    node.peer.destroy_publisher(volatile)
    deaf = node.peer.create_subscription(
        Float64MultiArray, '/dynamics/effort_commands', lambda message: None,
        QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL))
    said(node, 'a subscriber of /dynamics/effort_commands receives nothing', WARN)
    node.peer.destroy_subscription(deaf)
    said(node, 'publishing', OK)


def test_fault_47_a_second_node_of_the_same_name_is_an_error(harness, state):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    other = Node('dynamics')
    said(node, '2 nodes are called /dynamics', ERROR)
    other.destroy_node()
    said(node, 'publishing', OK)


def test_fault_12_old_and_future_stamps_are_dropped_with_a_hint(harness, state):
    node = harness(state_timeout=0.5)
    counts = node.node.report.counts
    assert node.nothing_new(lambda: node.send(*state, stamp=at(-0.7)))
    assert re.search(r'its stamp is \d\.\d+ s old', node.node.report.last_error)
    assert 'use_sim_time' in node.node.report.last_error
    assert node.nothing_new(lambda: node.send(*state, stamp=at(0.9)))
    assert 'ahead of the clock' in node.node.report.last_error
    assert counts['joint states dropped: old stamp'] == 1
    assert counts['joint states dropped: future stamp'] == 1
    node.answer(*state, stamp=at(-0.2))


def test_fault_12_zero_stamps_are_accepted_and_reported(harness, state):
    node = harness(state_timeout=60.0)
    got = node.answer(*state, stamp=(0, 0))
    assert (got.header.stamp.sec, got.header.stamp.nanosec) == (0, 0)
    said(node, 'joint states have no stamp', WARN)


def test_fault_12_a_state_is_as_old_as_its_stamp_and_dropped_after_a_later_one(harness, state):
    node = harness(state_timeout=10.0)
    node.answer(*state, stamp=at(-3.0))
    robot, clocks = node.node.robot, node.node.clocks
    assert 2.9 < robot.ages(clocks.age_time())['elbow_joint'] < 4.0
    assert node.nothing_new(lambda: node.send(*state, stamp=at(-9.0)))
    assert node.node.report.counts['joint states dropped: out of order'] == 1


def test_fault_12_stamps_may_be_left_unchecked(harness, state):
    node = harness(check_stamps=False)
    for stamp in ((5, 0), (1, 0), at(1000.0)):
        got = node.answer(*state, stamp=stamp)
        assert (got.header.stamp.sec, got.header.stamp.nanosec) == stamp


def test_fault_14_stamps_that_jump_back_begin_a_new_state(harness, state, monkeypatch):
    names, q, v = state
    node = harness(state_timeout=0.5)
    node.answer(*state)
    # The clock of the machine is set back, for the node and the robot alike.
    monkeypatch.setattr('rbd_ros.ros.runtime.clocks.time', lambda: 1000.0)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=(1000, 0)))
    assert 'stamps jumped back by' in node.node.report.last_error
    node.send(names[:3], q[:3], v[:3], stamp=(1000, 2))
    got = node.answer(names[3:], q[3:], v[3:], stamp=(1000, 2))
    assert list(got.position) == list(q)


@pytest.mark.parametrize('before, after, way', [
    (100, 10, 'back by 90 s'), (100, 150, 'forward by 50 s'), (1776, 0, 'back by 1776 s')])
def test_fault_14_simulated_time_that_jumps_begins_a_new_state(harness, state, before, after, way):
    names, q, v = state
    node = harness(use_sim_time=True)
    clock = SimulatedTime(node)
    clock.be(float(before))
    node.answer(*state, stamp=(before, 0))
    clock.be(float(after))
    assert f'time jumped {way}' in node.node.report.last_error
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=(after, 0)))
    got = node.answer(names[3:], q[3:], v[3:], stamp=(after, 0))
    assert got.header.stamp.sec == after
    assert list(got.position) == list(q)


def test_fault_14_ages_are_those_of_simulated_time(harness, state):
    node = harness(use_sim_time=True, state_timeout=0.2)
    clock = SimulatedTime(node)
    clock.be(100.0)
    names, q, v = state
    node.send(names[:3], q[:3], v[:3], stamp=(100, 0))
    node.settle()
    # Simulated time has stood still: the first half is as new as ever.
    assert list(node.answer(names[3:], q[3:], v[3:], stamp=(100, 0)).position) == list(q)
    clock.be(100.5)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=(100, 500_000_000)))


def test_fault_15_a_missing_clock_is_reported_and_states_are_answered(harness, state):
    node = harness(use_sim_time=True, state_timeout=60.0)
    node.answer(*state)
    said(node, 'nothing arrives on /clock', WARN)
    clock = SimulatedTime(node)
    clock.be(7.0)
    node.answer(*state, stamp=(7, 0))
    node.spin_until(lambda: 'nothing arrives on /clock' not in node.diagnosis()[1])


def test_fault_4_velocities_can_be_taken_from_the_change_of_positions(harness, model):
    node = harness(missing_velocity='differentiate', velocity_filter=0.0, state_timeout=2.0)
    q, v, _ = random_state(model, 3)
    names = model.velocity_names
    assert node.nothing_new(lambda: None)
    node.send(names, q, stamp=at(-0.1))
    node.settle()
    assert not node.heard['~/dynamics']
    begin = at(-0.05)
    node.send(names, q, stamp=begin)
    node.spin_until(lambda: node.heard['~/dynamics'])
    end = divmod(begin[0] * 10 ** 9 + begin[1] + 20_000_000, 10 ** 9)
    got = node.answer(names, q + 0.02 * v, stamp=end)
    # Stamps are kept as floating-point seconds: 2e-7 of 0.02 s.
    assert relative_error(got.velocity, v) < 1e-4
    expected = rbd_ros.all_terms(model, got.position, got.velocity)
    assert relative_error(got.coriolis_matrix, expected.C.ravel()) < AGREEMENT
    said(node, 'positions are differentiated', WARN)
    # What is measured comes before what is made up.
    assert list(node.answer(names, q, v).velocity) == list(v)


def test_fault_5_velocities_out_of_range_are_missing_and_positions_are_dropped(harness, state):
    names, q, v = state
    node = harness(missing_velocity='zero')
    for bad in (np.inf, -np.inf, 1e200):
        got = node.answer(names, q, [bad, *v[1:]])
        assert list(got.velocity) == [0.0, *v[1:]]
        assert np.all(np.isfinite(got.coriolis_matrix))
    assert node.nothing_new(lambda: node.send(names, [1e200, *q[1:]], v))
    assert "'shoulder_pan_joint' is out of range: 1e+200" in node.node.report.last_error


def test_fault_42_missing_prescribed_values_are_named(harness, state):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    # NaN where nothing is needed is fine.
    request = {'acceleration_prescribed': [True] * 3 + [False] * 3,
               'acceleration': [0.5] * 3 + [np.nan] * 3, 'effort': [np.nan] * 3 + [1.0] * 3}
    assert node.call(HybridDynamics, 'hybrid_dynamics', **request).success
    for change, message in (
            ({'acceleration_prescribed': [True] * 5}, 'acceleration_prescribed has 5 entries'),
            ({'acceleration_prescribed': []},
             'acceleration is given, but acceleration_prescribed is not'),
            ({'acceleration_prescribed': [True] * 7}, 'acceleration_prescribed has 7 entries'),
            ({'acceleration': [np.nan] * 6}, "'shoulder_pan_joint' is nan"),
            ({'effort': [np.nan] * 3 + [0.0, 0.0, np.inf]}, "'wrist_3_joint' is inf"),
            ({'effort': [1.0]}, 'effort has 1 entries')):
        got = node.call(HybridDynamics, 'hybrid_dynamics', **{**request, **change})
        assert not got.success and message in got.message


def test_fault_44_only_lasting_backlogs_count_as_overload():
    backlog = Backlog()
    for k in range(3000):
        assert not backlog.is_overload()
        # Two at a time, and now and then ten that have waited.
        backlog.note(k % 2 == 0 or k % 100 < 10)
    for _ in range(300):
        backlog.note(True)
    assert backlog.is_overload()


def test_fault_44_under_four_times_the_load_the_newest_state_is_answered(harness, model,
                                                                         monkeypatch):
    node = harness()
    robot, sent, newer = node.node.robot, [], []
    compute = robot.workspace.all_terms

    def slow(*arguments, **options):
        newer.append(len(sent) - 1 - sent.index((robot.stamp.sec, robot.stamp.nanosec)))
        sleep(0.02)
        return compute(*arguments, **options)
    monkeypatch.setattr(robot.workspace, 'all_terms', slow)
    names = model.velocity_names
    q, v, _ = random_state(model, 1)

    def flood():
        for _ in range(800):
            sent.append(at())
            node.send(names, q, v, stamp=sent[-1])
            sleep(0.005)
    thread = Thread(target=flood)
    thread.start()
    node.spin_until(lambda: not thread.is_alive())
    assert node.node.report.counts['overruns'] > 50
    # Each computation takes 4 periods. Once the node has seen that the load lasts, answers begin
    # with the newest state; the oldest in the queue has nine newer ones.
    assert np.median(newer[-40:]) < 5
    node.spin_until(lambda: any('states arrive faster' in report.status[0].message
                                for report in node.heard['/diagnostics']))


def test_fault_44_a_timer_skips_cycles_under_overload(harness, state, monkeypatch):
    node = harness(publish_rate=100.0)
    compute = node.node.robot.workspace.all_terms

    def slow(*arguments, **options):
        sleep(0.05)
        return compute(*arguments, **options)
    monkeypatch.setattr(node.node.robot.workspace, 'all_terms', slow)
    keep_sending(node, state, lambda: node.node.report.counts['overruns'] > 5)
    said_it = []
    keep_sending(node, state, lambda: said_it or [
        said_it.append(1) for message in node.heard['/diagnostics']
        if 'states arrive faster' in message.status[0].message])
