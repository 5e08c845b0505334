# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Clocks that begin, jump or stand still, and stamps of other clocks."""

from diagnostic_msgs.msg import DiagnosticStatus
from harness import at, joint_state, odometry, said, SimulatedTime
import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.state.joint_states import JointStates
from robots import example_urdf, random_state

WARN, ERROR = DiagnosticStatus.WARN, DiagnosticStatus.ERROR

pytestmark = pytest.mark.usefixtures('domain')


@pytest.mark.parametrize('first', [0.02, 5.0])
def test_fault_56_states_from_before_the_clock_are_forgotten_when_it_begins(harness, state, first):
    names, q, v = state
    node = harness(use_sim_time=True, state_timeout=0.2)
    clock = SimulatedTime(node)
    node.answer(*state)
    clock.be(first)
    # Nothing that was measured by another clock is answered or completed.
    stamp = divmod(round(first * 1e9), 10 ** 9)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=stamp))
    assert 'ages are now measured by /clock' in node.node.report.last_error
    node.answer(names[3:], q[3:], v[3:], stamp=stamp)
    # And grows old as others do.
    clock.be(first + 0.5)
    later = divmod(round((first + 0.5) * 1e9), 10 ** 9)
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3], stamp=later))


def test_fault_56_a_state_of_the_future_is_stale(model):
    states = JointStates(model)
    q, _, _ = random_state(model, 0)
    states.update(joint_state(model.velocity_names, q), 10.0)
    assert states.missing(10.0, 0.5) == []
    assert states.missing(10.4, 0.5) == []
    assert states.missing(10.6, 0.5) == list(model.velocity_names)
    assert states.missing(9.9, 0.5) == list(model.velocity_names)
    states.update(joint_state(model.velocity_names[:1], q[:1]), 11.0)
    assert states.missing(10.4, 0.5) == [model.velocity_names[0]]


def test_fault_12_alternating_stamps_are_logged_at_intervals(harness, state, capfd):
    node = harness(state_timeout=2.5)
    counts = node.node.report.counts
    for k in range(50):
        node.send(*state, stamp=at(2.0 if k % 2 else -2.0))
        node.spin_until(lambda k=k: counts['joint states'] > k)
    assert counts['time jumps'] > 20
    assert capfd.readouterr().err.count('stamps jumped back') < 3
    # In the report of that second, which may be out already.
    node.spin_until(lambda: any('time jumped' in report.status[0].message
                                for report in node.heard['/diagnostics']))


DOG = example_urdf('anymal_b_simple_description/robots/anymal.urdf')


def dog_states(node, base_stamp, stamp):
    """Send a base and joints with stamps."""
    joints = [name for name in node.node.robot.model.velocity_names
              if not name.startswith('base_')]
    node.move_base(odometry('base', [0, 0, 0, 1], [0, 0, 0], [0, 0, 0], [0, 0, 0],
                            stamp=base_stamp))
    node.send(joints, [0.1] * len(joints), [0.0] * len(joints), stamp=stamp)


@pytest.mark.parametrize('stamps', ['odometry has none', 'unchecked'])
def test_fault_12_odometry_with_unmatched_stamps_is_used_by_its_receipt(harness, stamps):
    node = harness(DOG.read_text(), floating_base=True, check_stamps=stamps != 'unchecked')
    for _ in range(3):
        dog_states(node, (0, 0) if stamps == 'odometry has none' else (12, 0), at())
    node.spin_until(lambda: node.heard['~/dynamics'])


def test_fault_12_odometry_timed_with_another_clock_is_reported(harness):
    node = harness(DOG.read_text(), floating_base=True, state_timeout=2.0)
    # Each passes the check against the clock, and they are too far apart.
    dog_states(node, at(-1.9), at(1.9))
    node.settle()
    level, text, _ = node.diagnosis()
    assert level == ERROR
    assert 'odometry arrives, but its stamps are 3.8 s from those of the joint states' in text


def test_fault_15_a_stopped_clock_without_states_is_reported(harness, state):
    node = harness(use_sim_time=True, state_timeout=0.5)
    clock = SimulatedTime(node)
    clock.be(7.0)
    node.answer(*state, stamp=(7, 0))
    node.diagnosis()
    said(node, 'no joint states arrived since the last report', WARN)


def sim_state(node, clock, state, t, topic='~/effort_commands'):
    """Let it be so late, and return the command for a state of then; None: there is none."""
    clock.be(t)
    heard = node.heard[topic]
    before, counts = len(heard), node.node.report.counts
    outputs = counts['outputs']
    node.send(*state, np.zeros(len(state[0])), stamp=divmod(round(1e9 * t), 10 ** 9))
    node.spin_until(lambda: counts['outputs'] > outputs)
    node.settle()
    return np.array(heard[-1].data) if len(heard) > before else None


def test_rates_and_blends_of_commands_are_those_of_simulated_time(harness, model, state):
    # However much slower the simulation is than the machine: `sim_state` pauses between states.
    rate, step = 200.0, 0.002
    node = harness(use_sim_time=True, effort_rate_limit=rate, topics=['~/effort_commands'])
    clock, t, last = SimulatedTime(node), 50.0, np.zeros(6)
    sim_state(node, clock, state, t)
    for _ in range(6):
        t += step
        got = sim_state(node, clock, state, t)
        assert np.max(np.abs(got - last)) <= rate * step + 1e-9
        last = got
    # 0.4 N m in each step.
    assert np.max(np.abs(last)) == pytest.approx(6 * rate * step)
    # While the clock stands still, nothing changes.
    assert np.array_equal(sim_state(node, clock, state, t), last)
    # Where it jumps back, commands go on from there.
    t -= 7.0
    again = sim_state(node, clock, state, t)
    again = sim_state(node, clock, state, t + step) if again is None else again
    assert np.max(np.abs(again - last)) <= rate * step + 1e-9
    assert np.max(np.abs(again)) > 1.0


def test_a_blend_takes_its_time_in_simulated_seconds(harness, model, state):
    node = harness(use_sim_time=True, blend_time=1.0, topics=['~/effort_commands'])
    clock, g = SimulatedTime(node), rbd_ros.gravity_torques(model, state[1])
    # A fiftieth at a time, at most; the way there is straight.
    got = [sim_state(node, clock, state, 50.0 + 0.02 * k) for k in range(12)]
    for k, command in enumerate(got):
        assert np.max(np.abs(command - 0.02 * k * g)) < 1e-9
