# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whatever the samples, modes and obstacles: no command beyond the limits, and none from a glitch.

Two torque controllers watch one robot. One of them receives glitches among the samples, the other
nothing in their place; their commands must be the same.

"""

from collections import Counter
import contextlib
from pathlib import Path
from unittest.mock import patch
from xml.etree import ElementTree

from builtin_interfaces.msg import Duration
from harness import Ear, joint_state, ros, TOPICS
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rclpy.clock import ClockType
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rclpy.time import Time
from std_msgs.msg import String
from std_srvs.srv import SetBool
from torque_loop import BlockedRobot
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

STEPS = 2000
STEPS_PER_RUN = 50
COMMANDS = '~/effort_commands'
TEXT = (URDF := Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf').read_text()
JOINTS = [joint for joint in ElementTree.fromstring(TEXT).iter('joint')
          if joint.get('type') == 'revolute']
NAMES = [joint.get('name') for joint in JOINTS]
STRONGEST, FASTEST = (np.array([float(joint.find('limit').get(key)) for joint in JOINTS])
                      for key in ('effort', 'velocity'))
START = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
MODES = ('gravity', 'pd_gravity', 'computed_torque', 'joint_impedance', 'slotine_li', 'hybrid',
         'cartesian_impedance')
# s; s of the machine's own clock per second of the robot's
PERIOD, SLOW = 0.002, 7.0
# The parameter's default, the error of stamps, s, and the longest run of glitches.
FACTOR, STAMPS, LONGEST_RUN = 3.0, 0.002, 30
# N m in some hundreds
ROUNDING = 1e-9
MOSTLY = st.sampled_from([True, True, True, False])
counts = Counter()


class GlitchMachine(RuleBasedStateMachine):
    """A robot, and two controllers that see it."""

    def __init__(self):
        super().__init__()
        self._context, self.nodes = contextlib.ExitStack(), []

    @initialize(mode=st.sampled_from(MODES), on_stale=st.sampled_from(['stop', 'ramp_down']))
    def start(self, mode, on_stale):
        """Make both controllers."""
        self.now, self.steady = 100.0, 1000.0
        self._context.enter_context(patch(
            'rbd_ros.ros.runtime.clocks.monotonic', lambda: self.steady))
        self.robot, self.tau = BlockedRobot(URDF, START), np.zeros(7)
        self.heard, self.ears = ([], []), []
        for heard, namespace in zip(self.heard, ('with_glitches', 'without')):
            node = TorqueController(namespace=namespace, parameter_overrides=[
                Parameter(name, value=value) for name, value in (
                    ('use_sim_time', True), ('mode', mode), ('task_link', 'tool'),
                    ('on_stale', on_stale), ('model_changes', 'accept'), ('ramp_time', 0.25))])
            self.nodes.append(node)
            ears = {topic: Ear(topic, heard) for topic in TOPICS}
            for topic, ear in ears.items():
                ear.listens = topic == COMMANDS
            self.ears.append(ears.pop(COMMANDS))
            node.commanding._publishers = {COMMANDS: self.ears[-1]}
            node.publishing._publishers = ears
        self._set_clock()
        for node in self.nodes:
            node.listening._on_description(String(data=TEXT))
            assert node.robot is not None

    def _set_clock(self):
        for node in self.nodes:
            node.get_clock().set_ros_time_override(
                Time(nanoseconds=round(self.now * 1e9), clock_type=ClockType.ROS_TIME))

    def teardown(self):
        """Take both down."""
        for node in self.nodes:
            node.destroy_node()
        self._context.close()

    def _wait(self, step):
        """Let time go on; the robot moves under the last command."""
        self.now, self.steady = round(self.now + step, 9), self.steady + SLOW * step
        self._set_clock()
        q, most = self.robot.q.copy(), 0.9 * FASTEST
        self.robot.advance(self.tau, 2)
        # It has stops. It keeps to its velocity limits: a joint that is faster while its samples
        # are glitches is taken for one that was moved.
        self.robot.q = np.clip(np.clip(self.robot.q, q - step * most, q + step * most), -6.0, 6.0)
        np.clip(self.robot.v, -most, most, out=self.robot.v)

    def _show(self, q, v, count=2):
        """Let the first controllers see a sample, and check what they command."""
        message = joint_state(NAMES, q, v, stamp=divmod(round(self.now * 1e9), 10 ** 9))
        for node in self.nodes[:count]:
            node.listening._answer(serialize_message(message))
        self._check()

    def _check(self):
        """Check the commands since the last time."""
        for node in self.nodes:
            assert not node.report.counts['errors'], node.report.last_error
        first, second = ([values for _, _, values in heard] for heard in self.heard)
        assert len(first) == len(second) <= 1, 'a glitch was answered, or has more effect'
        for heard in self.heard:
            heard.clear()
        for one, other in zip(first, second):
            counts['commands'] += 1
            assert np.all(np.abs(one) <= STRONGEST + ROUNDING), 'beyond the limits'
            assert np.max(np.abs(one - other)) <= ROUNDING, 'a glitch has an effect'
            self.tau = one

    @invariant()
    def stream(self):
        """Let states keep coming, whatever happened."""
        counts['steps'] += 1
        if self.nodes:
            self.samples(2)

    @rule(times=st.sampled_from([3, 10, 30]))
    def samples(self, times):
        """Let sound samples come."""
        for _ in range(times):
            self._wait(PERIOD)
            self._show(self.robot.q, self.robot.v)

    @rule(joints=st.sets(st.integers(0, 6), min_size=1, max_size=7),
          kind=st.sampled_from(['velocity', 'position', 'both', 'nan', 'inf']),
          size=st.sampled_from([1.01, 2.0, 30.0, 1e4, 1e9]),
          times=st.sampled_from([1, 1, 1, 2, 5, LONGEST_RUN]), back=st.booleans())
    def glitch(self, joints, kind, size, times, back):
        """Let samples come that the robot cannot have had, in any number of joints at once."""
        hit = np.isin(np.arange(7), list(joints))
        q, moment = self.robot.q.copy(), self.now
        for k in range(times):
            self._wait(PERIOD)
            # From where the joint was: such a step, and such a speed, are too much.
            way = FACTOR * FASTEST * (self.now - moment + PERIOD + STAMPS)
            sign = (-1.0) ** (k + back)
            q_, v_ = self.robot.q.copy(), self.robot.v.copy()
            if kind in ('position', 'both'):
                q_[hit] = (q + sign * (size * way + 0.1))[hit]
            if kind in ('velocity', 'both'):
                v_[hit] = (sign * (size * FACTOR + 1.0) * FASTEST)[hit]
            if kind in ('nan', 'inf'):
                (v_ if kind == 'nan' else q_)[hit] = float(kind)
            counts['glitches'] += 1
            self._show(q_, v_, 1)

    @rule(joint=st.integers(0, 6), blocked=st.booleans())
    def block(self, joint, blocked):
        """Block a joint, or let it go."""
        self.robot.blocked[joint] = blocked
        self.samples(20)

    @rule(joint=st.integers(0, 6), share=st.sampled_from([-1.0, -0.1, 0.0, 0.1, 1.0]))
    def push(self, joint, share):
        """Push a joint."""
        self.robot.push[joint] = share * STRONGEST[joint]

    @rule(joint=st.integers(0, 6), way=st.sampled_from([-1.0, -0.2, 0.2, 1.0]))
    def carry(self, joint, way):
        """Move a joint at once: after a few samples it is believed to be there."""
        self.robot.q[joint] += way
        self.samples(12)

    @rule(change=st.sampled_from([('mode', mode) for mode in MODES] + [
        ('effort_rate_limit', 0.0), ('effort_rate_limit', 200.0), ('blend_time', 0.0),
        ('blend_time', 1.0), ('soft_stop_zone', 0.0), ('soft_stop_zone', 0.1),
        ('velocity_guard', 0.0), ('velocity_guard', 1.0), ('path_tolerance', [0.0]),
        ('path_tolerance', [0.3]), ('state_timeout', 0.05), ('state_timeout', 0.5)]))
    def set_parameter(self, change):
        """Change a parameter."""
        for node in self.nodes:
            result, = node.set_parameters([Parameter(change[0], value=change[1])])
            assert result.successful

    @rule(seed=st.integers(0, 9), span=st.sampled_from([0.5, 1.0]))
    def follow(self, seed, span):
        """Ask for a motion, which is followed for a while."""
        goal = START + 0.3 * np.random.default_rng(seed).normal(size=7)
        point = JointTrajectoryPoint(positions=goal.tolist(), time_from_start=Duration(
            sec=int(span), nanosec=round(1e9 * (span % 1.0))))
        for node in self.nodes:
            node.modes.on_joint_trajectory(JointTrajectory(joint_names=NAMES, points=[point]))
        self.samples(30)

    @rule(pause=st.sampled_from([0.05, 0.09, 0.11, 0.6, 3.0]))
    def miss(self, pause):
        """Let no samples come for a while."""
        for _ in range(round(pause / 0.01)):
            self._wait(0.01)
            for node in self.nodes:
                node.commanding._repeat()
            self._check()

    @rule(seconds=st.sampled_from([0.01, 1.0]))
    def stop_the_clock(self, seconds):
        """Let the machine's own clock go on alone."""
        self.steady += seconds
        self._show(self.robot.q, self.robot.v)

    @rule(to=st.sampled_from([-50.0, -0.5, 5.0, 1000.0]))
    def jump(self, to):
        """Let the time of the robot jump."""
        self.now = max(self.now + to, 1.0)
        self._set_clock()

    @rule(wanted=MOSTLY)
    def enable(self, wanted):
        """Enable or disable commands."""
        for node in self.nodes:
            node._enable_commands(SetBool.Request(data=wanted), SetBool.Response())

    @rule(seconds=st.sampled_from([0.3, 2.0]))
    def lose_the_controller(self, seconds):
        """Let whoever takes the commands go, and come back."""
        for listens in (False, True):
            for node, ear in zip(self.nodes, self.ears):
                ear.listens, node.publishing._listeners_due = listens, 0.0
            self._wait(PERIOD)
            self._show(self.robot.q, self.robot.v)
            if not listens:
                self._wait(seconds)


@pytest.mark.long
def test_no_command_is_beyond_the_limits_nor_from_a_glitch():
    counts.clear()
    with ros():
        run_machine(GlitchMachine, 2 * STEPS // STEPS_PER_RUN, STEPS_PER_RUN)
    assert min(counts['steps'], counts['commands'], 10 * counts['glitches']) > STEPS
