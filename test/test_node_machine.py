# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whatever happens to the node, what it publishes is right for a state that it really received.

A machine that hypothesis drives: messages good and bad, other robots, loads, jumps of simulated
time, parameters, requests, and transitions of the life cycle, in any order.

RBD_ROS_MACHINE_STEPS sets how many steps there are at least.

"""

from collections import Counter
import contextlib
from math import isfinite
import os

from geometry_msgs.msg import Inertia
from harness import joint_state, ros
from hypothesis import HealthCheck, Phase, settings, strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
import numpy as np
from rbd_msgs.srv import DynamicsTerms, InverseDynamics, SetPayload
import rbd_ros
from rbd_ros.ros.dynamics_node import DynamicsNode
from rbd_ros.ros.outputs import TOPICS
from rbd_ros.ros.services import Services
from rclpy.clock import ClockType
from rclpy.parameter import Parameter
from rclpy.serialization import deserialize_message, serialize_message
from rclpy.time import Time
from robots import example_urdf, load_quietly, relative_error
from std_msgs.msg import String
from std_srvs.srv import SetBool

# One pass against separate ones in the same order: rounding alone.
AGREEMENT = 1e-9
STEPS = int(os.environ.get('RBD_ROS_MACHINE_STEPS', '2000'))
STEPS_PER_RUN = 50
TIMEOUT = 0.5
TEXTS = [example_urdf(name).read_text() for name in ('ur5_robot.urdf', 'ur10_robot.urdf',
                                                     'panda.urdf')]
MODELS = [load_quietly(example_urdf(name)) for name in ('ur5_robot.urdf', 'ur10_robot.urdf',
                                                        'panda.urdf')]
BAD_TEXTS = ['', '/opt/arm.urdf', '<robot name="r"><link name="a"/><link name="b"/></robot>',
             TEXTS[0].replace('mass value="', 'mass value="-'), '<!DOCTYPE robot><robot/>']
# How often something was done, and something that was published was checked.
counts = Counter()


class Ear:
    """A publisher that keeps what is published instead of sending it."""

    def __init__(self, topic, heard):
        self._topic, self._heard = topic, heard

    def get_subscription_count(self):
        """Let the node think that somebody listens."""
        return 1

    def wait_for_all_acked(self, timeout):
        """Let the node think that what it said was heard."""
        return True

    def publish(self, message):
        """Keep the numbers of a message, which is serialized."""
        message = deserialize_message(message, TOPICS[self._topic])
        if self._topic == '~/effort_commands':
            self._heard.append((self._topic, None, np.array(message.data)))
        elif self._topic == '~/dynamics':
            self._heard.append((self._topic, message.header.stamp, {
                name: np.array(getattr(message, name)) for name in (
                    'position', 'velocity', 'mass_matrix', 'coriolis_matrix', 'gravity_torques',
                    'coriolis_torques', 'com_jacobian')} | {'model_id': message.model_id}))
        elif self._topic in ('~/gravity_torques', '~/coriolis_torques'):
            self._heard.append((self._topic, message.header.stamp, np.array(message.effort)))


class NodeMachine(RuleBasedStateMachine):
    """The node, called as its executor would, and what is known of what it was told."""

    def __init__(self):
        super().__init__()
        self._context = contextlib.ExitStack()
        self.node = None

    @initialize(robot=st.integers(0, 2),
                missing=st.sampled_from(['withhold', 'zero', 'differentiate']),
                on_stale=st.sampled_from(['stop', 'hold', 'ramp_down']))
    def start(self, robot, missing, on_stale):
        """Make a node in simulated time that knows a robot."""
        self.heard = []
        self.node = DynamicsNode(parameter_overrides=[
            Parameter('use_sim_time', value=True), Parameter('state_timeout', value=TIMEOUT),
            Parameter('missing_velocity', value=missing), Parameter('on_stale', value=on_stale)])
        self._listen()
        self.now = 100.0
        self._set_clock()
        self.robot, self.model, self.model_id, self.gravity = None, None, 0, -9.81
        # What was really received: by joint, (time, position, velocity or None).
        self.received = {}
        self.describe(robot)

    def _listen(self):
        self.node.answers._publishers = {topic: Ear(topic, self.heard) for topic in TOPICS}

    def _set_clock(self):
        self.node.get_clock().set_ros_time_override(
            Time(nanoseconds=round(self.now * 1e9), clock_type=ClockType.ROS_TIME))

    def teardown(self):
        """Take the node down."""
        if self.node is not None:
            self.node.destroy_node()

    # -- Rules. ----------------------------------------------------------------------------------

    @rule(robot=st.integers(0, 2))
    def describe(self, robot):
        """Publish a description."""
        self.node._inputs._on_description(String(data=TEXTS[robot]))
        if self.robot != robot:
            self.robot, self.model = robot, rbd_ros.with_gravity(MODELS[robot],
                                                                 (0.0, 0.0, self.gravity))
            self.model_id += 1
            self.received = {}

    @rule(text=st.sampled_from(BAD_TEXTS))
    def describe_badly(self, text):
        """Publish what is no description: the robot stays."""
        self.node._inputs._on_description(String(data=text))

    @rule(seed=st.integers(0, 999), part=st.sampled_from(['all', 'all', 'all', 'half', 'one']),
          velocity=st.sampled_from(['yes', 'yes', 'yes', 'no', 'nan']),
          extra=st.booleans(), late=st.sampled_from([0.0, 0.0, 0.0, 0.1, 0.6, -0.2, -0.7]))
    def send(self, seed, part, velocity, extra, late):
        """Publish a joint state, in any order, perhaps of a part, old or ahead of time."""
        rng = np.random.default_rng(seed)
        order = rng.permutation(self.model.nv)
        order = order[:{'all': None, 'half': self.model.nv // 2, 'one': 1}[part]]
        names = [self.model.velocity_names[k] for k in order]
        q, v = rng.uniform(-1.5, 1.5, len(order)), rng.normal(size=len(order))
        values = {'yes': v, 'no': [], 'nan': np.where(np.arange(len(v)) == 0, np.nan, v)}[velocity]
        stamp = self.now - late
        message = joint_state([*['door'] * extra, *names], [*[9.0] * extra, *q],
                              [*[9.0] * extra, *values] if len(values) else [],
                              stamp=divmod(round(stamp * 1e9), 10 ** 9))
        if abs(late) <= TIMEOUT and not self._is_late(names, stamp):
            for k, name in enumerate(names):
                known = len(values) and isfinite(values[k])
                self.received[name] = min(stamp, self.now), stamp, q[k], v[k] if known else None
        self._hear(message)

    @rule(seed=st.integers(0, 999))
    def send_all(self, seed):
        """Publish a whole state of now."""
        self.send(seed, 'all', 'yes', False, 0.0)

    @rule(seed=st.integers(0, 999), pause=st.sampled_from([0.001, 0.1]))
    def wait_and_send_all(self, seed, pause):
        """Publish a whole state a little later, to a node that is active."""
        self.node.trigger_activate()
        self.wait(pause)
        self.send_all(seed)

    def _is_late(self, names, stamp):
        """Say whether any of these joints was measured later already."""
        return any(self.received[name][1] - stamp > 1e-9 for name in names
                   if name in self.received)

    @rule(seed=st.integers(0, 999),
          how=st.sampled_from(['nan', 'inf', 'huge', 'lengths', 'twice', 'empty', 'none',
                               'velocities']))
    def send_badly(self, seed, how):
        """Publish a joint state that cannot be used: it changes nothing."""
        rng = np.random.default_rng(seed)
        names, q = list(self.model.velocity_names), rng.uniform(-1.5, 1.5, self.model.nv)
        v = list(q)
        if how in ('nan', 'inf', 'huge'):
            q[rng.integers(len(q))] = {'nan': np.nan, 'inf': -np.inf, 'huge': 1e300}[how]
        elif how == 'lengths':
            q = q[1:]
        elif how == 'twice':
            names[0] = names[1]
        elif how == 'empty':
            names, q, v = [], [], []
        elif how == 'none':
            q = []
        else:
            v = v[1:]
        self._hear(joint_state(names, q, v,
                               stamp=divmod(round(self.now * 1e9), 10 ** 9)))

    @rule(step=st.sampled_from([0.001, 0.01, 0.1, 0.4, 0.6]))
    def wait(self, step):
        """Let time go on."""
        self.now = round(self.now + step, 9)
        self._set_clock()
        self.node.answers._repeat_command()

    @rule(jump=st.sampled_from([-50.0, -1.0, -0.01, 5.0, 1000.0]))
    def jump(self, jump):
        """Let time jump: no state is known any longer."""
        self.now = round(max(self.now + jump, 1.0), 9)
        self._set_clock()
        self.received = {}

    @rule(mass=st.sampled_from([0.0, 1.0, 2.5, -1.0, np.nan]))
    def load(self, mass):
        """Set a load on the last link."""
        link = MODELS[self.robot].link_names[-1]
        response = Services(self.node)._set_payload(
            SetPayload.Request(link=link, inertia=Inertia(m=mass)), SetPayload.Response())
        assert response.success == (mass >= 0.0) or not self.node._parts
        if response.success:
            plain = rbd_ros.without_payload(self.model, link)
            self.model = rbd_ros.with_payload(plain, link, mass) if mass else plain
            self.model_id += 1

    @rule(gravity=st.sampled_from([-9.81, 9.81, -1.62]))
    def turn(self, gravity):
        """Set gravity."""
        self.node.set_parameters([Parameter('gravity', value=[0.0, 0.0, gravity])])
        if gravity != self.gravity:
            self.gravity = gravity
            self.model = rbd_ros.with_gravity(self.model, (0.0, 0.0, gravity))
            self.model_id += 1

    @rule(change=st.sampled_from([
        ('missing_velocity', 'zero'), ('missing_velocity', 'withhold'), ('publish_rate', 100.0),
        ('publish_rate', 0.0), ('on_stale', 'hold'), ('on_stale', 'ramp_down'), ('friction', True),
        ('friction', False), ('blend_time', 0.1), ('effort_rate_limit', 100.0),
        ('limit_efforts', True), ('limit_efforts', False), ('velocity_filter', 0.1),
        ('state_timeout', -1.0), ('gravity', [1.0]), ('on_stale', 'guess'),
        ('coriolis_factorization', 'body'), ('coriolis_factorization', 'christoffel')]))
    def set_parameter(self, change):
        """Change a parameter, or try to."""
        self.node.set_parameters([Parameter(change[0], value=change[1])])

    @rule()
    def tick(self):
        """Let the timer of a fixed rate run."""
        self.node.answers._on_timer()
        self.node.answers._repeat_command()

    @rule(transition=st.sampled_from(['deactivate', 'activate', 'activate', 'activate']))
    def change_state(self, transition):
        """Go through the life cycle."""
        self.node.set_parameters([Parameter('ramp_time', value=0.0)])
        getattr(self.node, f'trigger_{transition}')()

    @rule(wanted=st.booleans())
    def enable(self, wanted):
        """Enable or disable commands."""
        self.node._enable_commands(SetBool.Request(data=wanted), SetBool.Response())

    @rule(count=st.sampled_from([None, 5, 0]), bad=st.booleans())
    def ask(self, count, bad):
        """Call services with and without a state."""
        services, n = Services(self.node), self.model.nv
        request = InverseDynamics.Request(acceleration=[np.nan if bad else 1.0] * (count or n))
        response = services._inverse(request, InverseDynamics.Response())
        assert response.success or response.message
        if response.success:
            assert np.all(np.isfinite(response.effort))
        response = services._terms(DynamicsTerms.Request(), DynamicsTerms.Response())
        if response.success:
            self._check_state(response.dynamics.position, response.dynamics.velocity)

    @rule()
    def report(self):
        """Report."""
        self.node._parts[-2][1].publish = lambda message: None
        self.node.report.message('node', self.node.get_clock().now().to_msg(), [
            *self.node.health._findings_on_states(), *self.node.health._findings_on_commands(),
            (b'\x00', 'ok')], self.node.health._facts())

    # -- What must hold. -------------------------------------------------------------------------

    def _hear(self, message):
        self.node._inputs._answer(serialize_message(message))

    def _check_state(self, q, v):
        """Check that a state was really received, and lately."""
        zero = self.node.parameters.missing_velocity == 'zero'
        differentiate = self.node.parameters.missing_velocity == 'differentiate'
        for k, name in enumerate(self.model.velocity_names):
            assert name in self.received, f'no state of {name} was received'
            measured, _, position, velocity = self.received[name]
            assert self.now - measured <= TIMEOUT + 1e-6, f'the state of {name} is old'
            assert q[k] == position
            if velocity is None:
                assert v[k] == 0.0 if zero else differentiate and isfinite(v[k])
            else:
                assert v[k] == velocity

    @invariant()
    def published_is_right(self):
        """Check all that was published since the last step."""
        counts['steps'] += 1
        if self.node is None:
            return
        assert self.node.report.counts['errors'] == 0, self.node.report.last_error
        heard, self.heard[:] = list(self.heard), []
        assert not heard or self.node.active or all(
            topic == '~/effort_commands' for topic, _, _ in heard)
        for topic, _, values in heard:
            counts[topic] += 1
            if topic == '~/dynamics':
                q, v = values['position'], values['velocity']
                self._check_state(q, v)
                assert values['model_id'] == self.model_id
                expected = rbd_ros.all_terms(
                    self.model, q, v,
                    factorization=self.node.parameters.coriolis_factorization)
                for name, term in (('mass_matrix', expected.M), ('coriolis_matrix', expected.C),
                                   ('gravity_torques', expected.g),
                                   ('coriolis_torques', expected.coriolis_torques),
                                   ('com_jacobian', expected.com_jacobian)):
                    assert relative_error(values[name], term.ravel()) < AGREEMENT
            elif topic == '~/gravity_torques':
                q = np.array([self.received[name][2] for name in self.model.velocity_names])
                expected = rbd_ros.gravity_torques(self.model, q)
                assert relative_error(values, expected) < AGREEMENT
            elif topic == '~/effort_commands':
                assert np.all(np.isfinite(values))
                if self.node.parameters.limit_efforts and self.node.commands.enabled:
                    assert len(values) == self.model.nv


def test_what_is_published_is_right_for_a_state_that_was_received():
    counts.clear()
    NodeMachine.TestCase.settings = settings(
        max_examples=2 * STEPS // STEPS_PER_RUN, stateful_step_count=STEPS_PER_RUN,
        derandomize=STEPS == 2000, deadline=None, database=None, phases=[Phase.generate],
        suppress_health_check=list(HealthCheck))
    with ros():
        while counts['steps'] < STEPS:
            NodeMachine.TestCase('runTest').runTest()
    assert counts['~/dynamics'] > 0.05 * STEPS
    assert counts['~/effort_commands'] > 0.05 * STEPS
    print(dict(counts))
