# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever happens to the node, what it publishes is right for a state that it really received."""

from collections import Counter
import contextlib
from math import isfinite
from unittest.mock import patch
import warnings

from command_watch import CommandWatch
from covering import covering
from geometry_msgs.msg import Inertia, Vector3, Vector3Stamped
from harness import check_values, Ear, joint_state, ros, TOPICS
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
from rbd_msgs.srv import DynamicsTerms, InverseDynamics, SetGravity, SetPayload
import rbd_ros
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.clock import ClockType
from rclpy.parameter import Parameter
from rclpy.serialization import serialize_message
from rclpy.time import Time
from robots import example_urdf, relative_error
from std_msgs.msg import String
from std_srvs.srv import SetBool

# One pass against separate ones in the same order: rounding alone.
AGREEMENT = 1e-9
STEPS_PER_RUN = 50
TIMEOUT = 0.5
# Three joints on one link: their order is that of the document.
FAN = """<robot name="fan"><link name="base"/>{}</robot>"""
ARM = """<link name="{0}"><inertial><origin xyz="{1} 0 0"/><mass value="{1}"/><inertia ixx="0.1"
 ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="{0}" type="revolute">
 <parent link="base"/><child link="{0}"/><axis xyz="0 1 0"/>
 <dynamics damping="0.3" friction="{2}"/><limit lower="-3" upper="3"
 velocity="9" effort="{2}"/></joint>"""
ARMS = (ARM.format('a', 1, 5), ARM.format('b', 2, 15), ARM.format('c', 3, 50))
TEXTS = [*(example_urdf(name).read_text() for name in ('ur5_robot.urdf', 'ur10_robot.urdf',
                                                       'panda.urdf')),
         FAN.format(''.join(ARMS)), FAN.format(''.join(ARMS[::-1])), FAN.format(''.join(ARMS[:2]))]
with warnings.catch_warnings():
    warnings.simplefilter('ignore', rbd_ros.ModelWarning)
    MODELS = [rbd_ros.load_urdf_string(text) for text in TEXTS]
ROBOTS = st.sampled_from([0, 1, 2, 3, 3, 3, 4, 4, 4, 5])
BAD_TEXTS = ['', '/opt/arm.urdf', '<robot name="r"><link name="a"/><link name="b"/></robot>',
             TEXTS[0].replace('mass value="', 'mass value="-'), '<!DOCTYPE robot><robot/>']
MOSTLY = st.sampled_from([True, True, True, False])
# What is made of other topics must only raise nothing.
CHECKED = {'~/effort_commands', '~/gravity_torques', '~/dynamics'}
# How often something was done, and something that was published was checked.
counts = Counter()


class NodeMachine(RuleBasedStateMachine):
    """The node, called as its executor would, and what is known of what it was told."""

    def __init__(self):
        super().__init__()
        self._context = contextlib.ExitStack()
        self.node = None

    @initialize(robot=ROBOTS,
                missing=st.sampled_from(['withhold', 'zero', 'differentiate']),
                on_stale=st.sampled_from(['stop', 'hold', 'ramp_down']),
                changes=st.sampled_from(['accept', 'accept', 'while_disabled', 'never']),
                commands=st.sampled_from(['full', 'full', 'without_gravity']))
    def start(self, robot, missing, on_stale, changes, commands):
        self.heard, self.watch = [], CommandWatch()
        self.moving = None      # joints whose friction is compensated
        # The machine's own time, and how far commands at the end are ahead of the robot's.
        self.steady, self.later = 1000.0, 0.0
        self._context.enter_context(patch(
            'rbd_ros.ros.runtime.clocks.monotonic', lambda: self.steady))
        self.node = DynamicsNode(parameter_overrides=[
            Parameter('use_sim_time', value=True), Parameter('state_timeout', value=TIMEOUT),
            Parameter('missing_velocity', value=missing), Parameter('on_stale', value=on_stale),
            Parameter('model_changes', value=changes), Parameter('ramp_time', value=0.25),
            Parameter('effort_convention.commands', value=commands),
            Parameter('implausible_velocity', value=0.0)])
        self._listen()
        self.now = 100.0
        self._set_clock()
        self.robot, self.model, self.model_id, self.gravity = None, None, 0, -9.81
        # What was really received: by joint, (time, position, velocity or None).
        self.received = {}
        self.jumps, self.stamp = None, 0.0
        self.describe(robot)

    def _listen(self):
        ears = {topic: Ear(topic, self.heard) for topic in TOPICS}
        for topic in set(TOPICS) - CHECKED:
            ears[topic].publish = lambda _: None
        self.commands = ears.pop('~/effort_commands')
        self.node.commanding._publishers = {'~/effort_commands': self.commands}
        self.node.publishing._publishers = ears
        self.node.clocks.steady_time = lambda: self.steady
        # The witness notices who listens when the node does.
        commands = self.node.commands
        lost, heard = commands.note_no_subscriber, commands.note_subscriber
        commands.note_no_subscriber = lambda now: (lost(now), self.watch.nobody_listens(now))
        commands.note_subscriber = lambda now: (heard(now), self.watch.somebody_listens(now))

    def _time(self):
        return self.node.clocks.age_time() + self.later

    def _set_clock(self):
        self.node.get_clock().set_ros_time_override(
            Time(nanoseconds=round(self.now * 1e9), clock_type=ClockType.ROS_TIME))

    def teardown(self):
        if self.node is not None:
            counts['commands checked'] += self.watch.checked
            self.node.destroy_node()
        self._context.close()

    # -- Rules. ----------------------------------------------------------------------------------

    @rule(robot=ROBOTS)
    def describe(self, robot):
        """Publish a description: what becomes of it is a matter of policy."""
        node = self.node
        flowing = node.active and node.commands.enabled and self.commands.listens
        policy = node.parameters.model_changes
        wanted = (self.robot is None or policy == 'accept'
                  or (policy == 'while_disabled' and not flowing))
        node.listening._on_description(String(data=TEXTS[robot]))
        if self.robot != robot and wanted:
            self.robot, self.model = robot, rbd_ros.with_gravity(MODELS[robot],
                                                                 (0.0, 0.0, self.gravity))
            self.model_id += 1
            self.received = {}
            self._follow()

    def _follow(self):
        self.watch.follow(self.model.velocity_names)
        if not self.watch.ended:
            self.limits = dict(zip(self.model.velocity_names, self.model.effort_limit))
        assert bool(self.node.commands.mismatch) == self.watch.ended

    @rule(bad=st.integers(0, len(BAD_TEXTS) - 1))
    def describe_badly(self, bad):
        """Publish what is no description: the robot stays."""
        self.node.listening._on_description(String(data=BAD_TEXTS[bad]))

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
        for k, name in enumerate(names if abs(late) <= TIMEOUT else ()):
            if not self._is_late(name, stamp):
                known = len(values) and isfinite(values[k])
                self.received[name] = min(stamp, self.now), stamp, q[k], v[k] if known else None
        self._hear(message)

    @rule(seed=st.integers(0, 999))
    def send_all(self, seed):
        self.send(seed, 'all', 'yes', False, 0.0)

    @rule(seed=st.integers(0, 999), pause=st.sampled_from([0.001, 0.1]))
    def wait_and_send_all(self, seed, pause):
        """Publish a whole state a little later, to a node that is active."""
        self.change_state('activate')
        self._wait(pause)
        self.send_all(seed)

    def _is_late(self, name, stamp):
        return name in self.received and self.received[name][1] - stamp > 1e-9

    @rule(seed=st.integers(0, 999),
          how=st.sampled_from(['nan', 'inf', 'huge', 'lengths', 'twice', 'empty', 'none',
                               'velocities']))
    def send_badly(self, seed, how):
        """Publish a joint state that cannot be used: it changes nothing, or not one joint."""
        rng = np.random.default_rng(seed)
        names, q = list(self.model.velocity_names), rng.uniform(-1.5, 1.5, self.model.nv)
        v = list(q)
        if how in ('nan', 'inf', 'huge'):
            q[rng.integers(len(q))] = {'nan': np.nan, 'inf': -np.inf, 'huge': 1e300}[how]
            for name, x, dx in zip(names, q, v):
                if abs(x) < 1e12 and not self._is_late(name, self.now):
                    self.received[name] = self.now, self.now, x, dx
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

    @rule(step=st.sampled_from([0.001, 0.01, 0.1, 0.4, 0.6, 2.0]), tick=st.booleans())
    def wait(self, step, tick):
        """Let time go on, with the timer of the commands awake or as asleep as the process."""
        self._wait(step)
        if tick:
            self._tick_commands()

    def _wait(self, step):
        if self.now == 0.0:
            # Simulated time begins: what was measured by another clock is forgotten.
            self._jump()
        self.now, self.steady = round(self.now + step, 9), self.steady + step
        self._set_clock()

    def _tick_commands(self):
        before = len(self.heard)
        self.node.commanding._repeat()
        said = [values for topic, _, values in self.heard[before:]]
        del self.heard[before:]
        if not self.node.active or not self.commands.listens:
            assert not said
        else:
            self.watch.on_silence(said[0] if said else None, self.limits, self._time(),
                                  self.node.parameters)

    @rule(to=st.sampled_from([-50.0, -1.0, -0.01, 5.0, 1000.0, 'zero', 0.02, 0.3]))
    def jump(self, to):
        """Let time jump, or begin again: no state is known any longer."""
        self.now = (0.0 if to == 'zero' else to if 0.0 < to < 1.0
                    else round(max(self.now + to, 1.0), 9))
        before = self.node.report.counts['time jumps']
        self._set_clock()
        self.node.clocks.age_time()
        if self.node.report.counts['time jumps'] > before:
            self._jump()
        else:
            # A small step ahead is none; then states only grow older.
            assert self.received == {} or self.now > 0.0

    def _jump(self):
        self.received = {}
        self.watch.disturb()

    @rule(mass=st.sampled_from([0.0, 1.0, 2.5, -1.0, np.nan]))
    def load(self, mass):
        link, response = MODELS[self.robot].link_names[-1], SetPayload.Response()
        if not self.node.configured:
            return
        self.node.calls['~/set_payload'].answer(
            SetPayload.Request(link=link, inertia=Inertia(m=mass)), response, lambda: None)
        # A load that is not there cannot be removed.
        there = any(one.is_load for one in self.model.links)
        assert response.success == (mass > 0.0 or (mass == 0.0 and there))
        if response.success:
            plain = rbd_ros.model.without_payload(self.model, link)
            self.model = rbd_ros.with_payload(plain, link, mass) if mass else plain
            self.model_id += 1
            self._follow()

    @rule(gravity=st.sampled_from([-9.81, 9.81, -1.62, -981.0, -1e300, 0.0]),
          by_service=st.booleans(), meant=st.booleans())
    def turn(self, gravity, by_service, meant):
        if by_service and self.node.configured:
            response = SetGravity.Response()
            self.node.calls['~/set_gravity'].answer(
                SetGravity.Request(gravity=Vector3Stamped(vector=Vector3(z=gravity)),
                                   allow_zero=meant), response, lambda: None)
            accepted = response.success
            assert accepted == (abs(gravity) < 29.0 and (gravity != 0.0 or meant))
        else:
            there = self.node.robot is not None and self.gravity != 0.0
            result, = self.node.set_parameters([
                Parameter('gravity', value=[0.0, 0.0, gravity])])
            accepted = result.successful
            assert accepted == (abs(gravity) < 29.0 and (gravity != 0.0 or not there))
        if accepted and (by_service or gravity != self.gravity):
            self.gravity = gravity
            self.model = rbd_ros.with_gravity(self.model, (0.0, 0.0, gravity))
            self.model_id += 1
            self._follow()

    @rule(change=st.sampled_from([
        ('missing_velocity', 'zero'), ('missing_velocity', 'withhold'), ('publish_rate', 100.0),
        ('publish_rate', 0.0), ('on_stale', 'hold'), ('on_stale', 'ramp_down'), ('friction', True),
        ('friction', False), ('blend_time', 0.1), ('effort_rate_limit', 100.0),
        ('limit_efforts', True), ('limit_efforts', False), ('velocity_filter', 0.1),
        ('state_timeout', -1.0), ('gravity', [1.0]), ('on_stale', 'guess'),
        ('coriolis_factorization', 'body'), ('coriolis_factorization', 'christoffel')]))
    def set_parameter(self, change):
        before = self.node.get_parameter(change[0]).value
        result, = self.node.set_parameters([Parameter(change[0], value=change[1])])
        if result.successful and before != change[1]:
            self.watch.disturb()

    @rule()
    def tick(self):
        before = len(self.heard)
        self.node.publishing._on_timer()
        self._check_commands(before)

    @rule(transition=st.sampled_from(['deactivate', 'activate', 'activate', 'activate']))
    def change_state(self, transition):
        active = self.node.active
        # Before 8.0, rclpy raises where a transition is impossible.
        impossible = contextlib.suppress(RuntimeError)
        if transition == 'deactivate':
            with impossible, patch('rbd_ros.ros.outputs.commanding.sleep', self._check_ramp):
                self.node.trigger_deactivate()
            if active and self.commands.listens:
                self.watch.on_silence(None, self.limits, self._time(), self.node.parameters)
            self.later = 0.0
        else:
            with impossible:
                self.node.trigger_activate()
        if transition == 'activate' and not active and self.node.commands.enabled:
            self.watch.disturb()

    def _check_ramp(self, seconds):
        """Check the command that was said before the node sleeps for a moment."""
        _, _, values = self.heard.pop()
        self.watch.on_silence(values, self.limits, self._time(), self.node.parameters)
        # While the node ends, it hears no clock.
        self.steady, self.later = self.steady + seconds, self.later + seconds

    @rule(wanted=MOSTLY)
    def enable(self, wanted):
        self.node._enable_commands(SetBool.Request(data=wanted), SetBool.Response())
        if wanted:
            self.watch.enable(self.model.velocity_names)
            self.limits = dict(zip(self.model.velocity_names, self.model.effort_limit))

    @rule(pause=st.sampled_from([0.3, 2.0]), comes_back=MOSTLY)
    def lose_the_controller(self, pause, comes_back):
        """Let the controller go, and perhaps come back."""
        if not self.node.configured:
            return
        for listens in (False, comes_back):
            self.commands.listens = listens
            self.node.publishing._listeners_due = 0.0
            self.states_keep_coming()
            self._wait(pause)

    @rule(count=st.sampled_from([None, 5, 0]), bad=st.booleans())
    def ask(self, count, bad):
        if not self.node.configured:
            return
        calls, n, response = self.node.calls, self.model.nv, InverseDynamics.Response()
        calls['~/inverse_dynamics'].answer(
            InverseDynamics.Request(acceleration=[np.nan if bad else 1.0] * (count or n)),
            response, lambda: None)
        assert response.success or response.message
        if response.success:
            assert np.all(np.isfinite(response.effort))
        response = DynamicsTerms.Response()
        calls['~/dynamics_terms'].answer(DynamicsTerms.Request(), response, lambda: None)
        if response.success:
            self._check_state(response.dynamics.position, response.dynamics.velocity)

    @rule()
    def report(self):
        if self.node.configured:
            message = self.node.health.message()
            check_values(message)

    # -- What must hold. -------------------------------------------------------------------------

    def _hear(self, message):
        before = len(self.heard)
        self.node.listening._answer(serialize_message(message))
        self._check_commands(before)

    def _check_commands(self, before):
        """Check the command that a state was answered with, if it was."""
        commands = [values for topic, _, values in self.heard[before:]
                    if topic == '~/effort_commands']
        assert len(commands) <= 1
        if not commands:
            return
        got, = commands
        robot, parameters = self.node.robot, self.node.parameters
        q = np.array([self.received[name][2] for name in self.model.velocity_names])
        efforts = rbd_ros.gravity_torques(self.model, q)
        if parameters.effort_convention.commands == 'without_gravity':
            efforts = 0.0 * efforts         # the robot adds them
        v = robot.known_velocity(parameters.missing_velocity) if parameters.friction else None
        # The friction of a joint is compensated while its velocity is known.
        moving = None if v is None else np.isfinite(v).tolist()
        if moving != self.moving:
            self.moving = moving
            self.watch.disturb()
        if v is not None:
            # All but the first 0.02 rad/s, and Coulomb friction in full from 0.04 rad/s on.
            v = np.where(np.isfinite(v), v, 0.0)
            slower = np.sign(v) * np.maximum(np.abs(v) - 0.02, 0.0)
            efforts = efforts + (self.model.damping * slower
                                 + self.model.friction * np.clip(slower / 0.02, -1.0, 1.0))
        assert not self.watch.ended
        self.watch.on_state(got, dict(zip(self.model.velocity_names, efforts.tolist())),
                            self.limits, self._time(), parameters)

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
    def states_keep_coming(self):
        """Let a few states come, as from a robot that hardly moves."""
        counts['steps'] += 1
        self.published_is_right()
        if self.node is None or not self.node.configured:
            return
        for _ in range(2):
            self._wait(0.001)
            self.send(7, 'all', 'yes', False, 0.0)
            self.published_is_right()

    def published_is_right(self):
        """Check all that was published since the last time."""
        assert self.node.report.counts['errors'] == 0, self.node.report.last_error
        heard, self.heard[:] = list(self.heard), []
        assert not heard or self.node.active or all(
            topic == '~/effort_commands' for topic, _, _ in heard)
        jumps = self.node.report.counts['time jumps'], self.model_id
        for topic, stamp, values in heard:
            counts[topic] += 1
            if stamp is not None:
                # Stamps go back only after a jump of time, which is reported, or with a robot.
                stamp = stamp.sec + 1e-9 * stamp.nanosec
                assert jumps != self.jumps or stamp >= self.stamp
                self.jumps, self.stamp = jumps, stamp
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


@pytest.mark.parametrize('steps', covering([400, 4000], 400))
def test_published_outputs_are_right_for_a_received_state(steps):
    counts.clear()
    with ros():
        run_machine(NodeMachine, 2 * steps // STEPS_PER_RUN, STEPS_PER_RUN)
    assert counts['steps'] >= steps
    assert counts['~/dynamics'] > 0.05 * steps
    assert counts['commands checked'] > 0.2 * steps
