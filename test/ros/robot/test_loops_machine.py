# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whatever is measured of a robot with closed loops, what reaches it is right.

A machine that hypothesis drives: states of motors, of passive joints, of all or of some, with
impossible positions, pauses, noise and singular positions, in any order. The invariant: nothing is
published unless the last state determines a closed configuration that agrees with everything
measured; its numbers are finite and those of a dense calculation; commands are of the motors and
within their limits; and a sound state is answered, whatever came before.

"""

from collections import Counter
from math import ceil

from covering import covering
from harness import Ear, joint_state, ros, TOPICS
from hypothesis import strategies as st
from hypothesis.stateful import initialize, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.positions.closure import equations_and_gaps
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.runtime.share_directory import share
from rclpy.clock import ClockType
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.time import Time
from robots import load_quietly
from std_msgs.msg import String

STEPS_PER_RUN = 40
TIMEOUT = 0.5
# m and rad; the node closes to 1e-13, and dense calculations agree to rounding.
CLOSED, AGREEMENT = 1e-9, 1e-8
# Largest difference between a measured passive joint and the solution, rad or m, as documented.
TOLERATED = 0.1
NAMES = 'four_bar', 'slider_crank', 'five_bar', 'palletizer', 'delta'
FILES = {name: share('urdf', f'{name}.urdf') for name in NAMES}
MODELS = {name: load_quietly(path) for name, path in FILES.items()}
counts = Counter()


class LastEar(Ear):
    """A publisher that keeps the last message instead of sending it."""

    def publish(self, message):
        """Keep a message."""
        self._heard[self._topic] = deserialize_message(message, TOPICS[self._topic])


def dense_gravity(model, q):
    """Return the gravity torques of the motors, with G by the pseudo-inverse of all equations."""
    J = equations_and_gaps(model.loops, q)[0]
    own = model.loops.own
    rest = np.setdiff1d(np.arange(model.nq), own)
    G = np.zeros((model.nq, model.nv))
    G[own] = np.eye(model.nv)
    G[rest] = -np.linalg.pinv(J[:, rest]) @ J[:, own]
    return G.T @ rbd_ros.gravity_torques(model.unconstrained, q)


class LoopsMachine(RuleBasedStateMachine):
    """The node, called as its executor would, and a robot whose true configuration is known."""

    robot: str

    def __init__(self):
        super().__init__()
        self.node = None

    @initialize(friction=st.booleans())
    def start(self, friction):
        """Make a node in simulated time that knows a robot, at rest where it is closed."""
        self.model, self.heard, self.now = MODELS[self.robot], {}, 100.0
        self.node = DynamicsNode(parameter_overrides=[
            Parameter('use_sim_time', value=True), Parameter('state_timeout', value=TIMEOUT),
            Parameter('implausible_velocity', value=0.0), Parameter('limit_efforts', value=True),
            Parameter('friction', value=friction), Parameter('blend_time', value=0.01)])
        publishing = self.node.publishing
        ears = {topic: LastEar(topic, self.heard) for topic in TOPICS}
        self.node.commanding._publishers = {'~/effort_commands': ears.pop('~/effort_commands')}
        publishing._publishers = ears
        self._wait(0.0)
        self.node.listening._on_description(String(data=FILES[self.robot].read_text()))
        self.q = rbd_ros.neutral(self.model)
        self.v = np.zeros(self.model.nv)
        # Positions that were measured last, with their times.
        self.received = {}

    def teardown(self):
        """Take the node down."""
        if self.node is not None:
            self.node.destroy_node()

    def _wait(self, seconds):
        self.now = round(self.now + seconds, 9)
        self.node.get_clock().set_ros_time_override(
            Time(nanoseconds=round(self.now * 1e9), clock_type=ClockType.ROS_TIME))

    @rule(seed=st.integers(0, 999), time=st.sampled_from([0.001, 0.01, 0.3]))
    def move(self, seed, time):
        """Move the motors, as far as the loops close and are not singular."""
        step = np.random.default_rng(seed).uniform(-1.0, 1.0, self.model.nv)
        try:
            q = rbd_ros.integrate(self.model, self.q, step, time)
            rbd_ros.gravity_torques(self.model, q)
        except rbd_ros.RbdError:
            return
        tree = self.model.unconstrained
        if np.all((q >= tree.lower) & (q <= tree.upper)):
            self.q, self.v = q, step

    @rule(time=st.sampled_from([0.001, 0.1, 0.6, 2.0]))
    def wait(self, time):
        """Let time pass without a state."""
        self._wait(time)
        self.node.commanding._repeat()
        self._check_commands()

    @rule(seed=st.integers(0, 999),
          some=st.sampled_from(['motors', 'all', 'all', 'any', 'passive']),
          wrong=st.sampled_from([0.0, 0.0, 1e-3, 0.3, 0.7, 2.0]),
          velocity=st.sampled_from(['yes', 'yes', 'no', 'nan']))
    def send(self, seed, some, wrong, velocity):
        """Send positions of some joints, one of which may be wrong."""
        model, rng = self.model, np.random.default_rng(seed)
        own = model.loops.own
        places = {'motors': own, 'all': np.arange(model.nq),
                  'passive': np.setdiff1d(np.arange(model.nq), own),
                  'any': rng.permutation(model.nq)[:rng.integers(1, model.nq + 1)]}[some]
        places = rng.permutation(places)
        q = self.q.copy()
        q[rng.choice(places)] += wrong
        v = np.full(len(places), np.nan if velocity == 'nan' else 0.01)
        names = [model.position_names[k] for k in places]
        self._wait(0.001)
        self.heard.clear()
        self.node.listening._answer(serialize_message(joint_state(
            names, q[places], () if velocity == 'no' else v, np.zeros(len(places)),
            stamp=divmod(round(self.now * 1e9), 10 ** 9))))
        self.received.update({name: (self.now, q[k]) for name, k in zip(names, places)})
        counts['sent'] += 1
        self._check()

    @rule()
    def send_soundly(self):
        """Send true positions of all joints: they are answered, whatever came before."""
        self.send(0, 'all', 0.0, 'yes')
        assert '~/gravity_torques' in self.heard, self.node.robot.states.why_open
        assert np.max(np.abs(np.array(self.heard['~/full_joint_states'].position)
                             - self.q)) < 1e-6
        counts['sound'] += 1

    @rule()
    def report(self):
        """Report: a state that is not answered has a reason."""
        text = self.node.health.message().status[0].message
        missing = self.node.robot.missing(self.now, TIMEOUT)
        assert bool(missing) == ('no outputs' in text), text

    def _check(self):
        """Check everything that the last state was answered with."""
        assert self.node.report.counts['errors'] == 0, self.node.report.last_error
        self._check_commands()
        if '~/gravity_torques' not in self.heard:
            assert not {*self.heard} - {'~/effort_commands'}
            assert self.node.robot.missing(self.now, TIMEOUT)
            counts['withheld'] += 1
            return
        counts['answered'] += 1
        model, full = self.model, self.heard['~/full_joint_states']
        assert tuple(full.name) == model.position_names
        q = np.array(full.position)
        assert np.max(np.abs(equations_and_gaps(model.loops, q)[1])) < CLOSED
        for k, name in enumerate(model.position_names):
            time, position = self.received.get(name, (-np.inf, 0.0))
            if self.now - time <= TIMEOUT:
                assert abs(q[k] - position) <= TOLERATED + 1e-9
        own = [model.position_names[k] for k in model.loops.own]
        if all(self.now - self.received.get(name, (-np.inf,))[0] <= TIMEOUT for name in own):
            # Motors that are measured keep their positions.
            assert np.max(np.abs(q[model.loops.own]
                                 - [self.received[name][1] for name in own])) < CLOSED
        g = np.array(self.heard['~/gravity_torques'].effort)
        expected = dense_gravity(model, q)
        assert np.all(np.isfinite(g))
        assert np.max(np.abs(g - expected)) <= AGREEMENT * max(np.max(np.abs(expected)), 1.0)

    def _check_commands(self):
        got = self.heard.get('~/effort_commands')
        if got is not None:
            counts['commands'] += 1
            assert len(got.data) == self.model.nv
            assert np.all(np.isfinite(got.data))
            assert np.all(np.abs(got.data) <= self.model.effort_limit * (1.0 + 1e-12))


@pytest.mark.parametrize('states', covering([150, 400], 150))
def test_nodes_with_closed_loops_keep_their_invariant(states):
    counts.clear()
    with ros():
        for name in NAMES:
            run_machine(type(name, (LoopsMachine,), {'robot': name}),
                        ceil(8 * states / STEPS_PER_RUN / len(NAMES)), STEPS_PER_RUN)
    assert counts['sent'] >= states
    assert counts['answered'] > 0.2 * states and counts['withheld'] > 0.05 * states
    assert counts['commands'] > 0.2 * states and counts['sound'] > 0.05 * states
