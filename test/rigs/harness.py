# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A dynamics node in this process, and a peer that talks to it over DDS."""

from array import array
import contextlib
import gc
import os
from time import monotonic, time_ns

from builtin_interfaces.msg import Time
from diagnostic_msgs.msg import DiagnosticArray
from domain_coordinator import domain_id
from geometry_msgs.msg import AccelStamped, PointStamped, PoseStamped, WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rbd_msgs.msg import ContactStamped, DynamicsStamped, MatrixStamped, TaskDynamicsStamped
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.runtime.rclpy_workarounds import make_executor
import rclpy
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.qos import DurabilityPolicy, QoSProfile
from rclpy.serialization import deserialize_message
from rosgraph_msgs.msg import Clock
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String
from trajectory_msgs.msg import JointTrajectory

# s: discovery takes up to 2.3 s on an idle machine
PATIENCE = 20.0
# QoS of robot_state_publisher.
LATCHED = QoSProfile(depth=1, durability=DurabilityPolicy.TRANSIENT_LOCAL)
# The public topics of the dynamics node.
TOPICS = {
    '~/effort_commands': Float64MultiArray,
    '~/commanded_efforts': JointState,
    '~/gravity_torques': JointState,
    '~/coriolis_torques': JointState,
    '~/mass_matrix': MatrixStamped,
    '~/coriolis_matrix': MatrixStamped,
    '~/com_jacobian': MatrixStamped,
    '~/com': PointStamped,
    '~/dynamics': DynamicsStamped,
    '~/full_joint_states': JointState,
    '~/mass_matrix_rate': MatrixStamped,
    '~/coriolis_matrix_rate': MatrixStamped,
    '~/gravity_torques_rate': JointState,
    '~/task_dynamics': TaskDynamicsStamped,
    '~/task_pose': PoseStamped,
    '~/task_jacobian': MatrixStamped,
    '~/task_bias': AccelStamped,
    '~/task_inertia': MatrixStamped,
    '~/torque_deviation': JointState,
    '~/external_torques': JointState,
    '~/external_wrench': WrenchStamped,
    '~/contact': ContactStamped,
}
# Additional topics of the torque controller.
CONTROLLER_TOPICS = {'~/effort_trajectory': JointTrajectory}

# Values of /diagnostics that are not numbers.
WORDS = ('robot', 'joints', 'command joints', 'commands', 'on_stale', 'model_changes', 'kernels',
         'kernels run as', 'external torques', 'last error', 'mode', 'reference')

_left_open = []


def check_values(report):
    """Check that diagnostics have one value per key, all numbers except for some known words."""
    for status in report.status:
        keys = [pair.key for pair in status.values]
        assert len(keys) == len(set(keys))
        for pair in status.values:
            assert pair.key.isprintable()
            assert pair.value.isprintable()
            if pair.key not in WORDS:
                float(pair.value)


@contextlib.contextmanager
def ros():
    """Give this process a ROS domain that no other test uses."""
    with contextlib.ExitStack() as stack:
        # Descending: nodes started by hand are usually in low domains.
        domain = stack.enter_context(domain_id(iter(range(100, 0, -1)).__next__))
        saved = {name: os.environ.get(name)
                 for name in ('ROS_DOMAIN_ID', 'ROS_AUTOMATIC_DISCOVERY_RANGE')}
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        rclpy.init()
        try:
            yield
        except BaseException:
            # What a failing test leaves open, no later test may hear: the domain stays taken.
            _left_open.append(stack.pop_all())
            raise
        finally:
            rclpy.try_shutdown()
            for name, value in saved.items():
                os.environ.pop(name, None)
                if value is not None:
                    os.environ[name] = value


def at(seconds=0.0):
    """Return the stamp, s and ns, of a time relative to now, s."""
    return divmod(time_ns() + round(1e9 * seconds), 10 ** 9)


def joint_state(names, position, velocity=(), effort=(), stamp=None):
    """Return a message, by default with the current time as its stamp."""
    message, stamp = JointState(name=list(names)), stamp or at()
    message.header.stamp = Time(sec=stamp[0], nanosec=stamp[1])
    message.position, message.velocity = array('d', position), array('d', velocity)
    message.effort = array('d', effort)
    return message


def odometry(child, quaternion, position, angular, linear, frame='odom', stamp=None):
    """Return a message with the twist of the child frame in its own axes."""
    message, stamp = Odometry(child_frame_id=child), stamp or at()
    message.header.frame_id, message.header.stamp = frame, Time(sec=stamp[0], nanosec=stamp[1])
    pose, twist = message.pose.pose, message.twist.twist
    for part, names, values in ((pose.orientation, 'xyzw', quaternion),
                                (pose.position, 'xyz', position), (twist.angular, 'xyz', angular),
                                (twist.linear, 'xyz', linear)):
        for name, value in zip(names, values):
            setattr(part, name, float(value))
    return message


class Harness:
    """The node, a peer subscribed to its topics (default: all), and an executor for both."""

    def __init__(self, description=None, kind=DynamicsNode, topics=None, **parameters):
        # The peer subscribes to commands, which by default blocks a change of the robot; tests
        # move their robots to any state at once.
        parameters = {'model_changes': 'accept', 'implausible_velocity': 0.0, **parameters}
        self.node = kind(parameter_overrides=[
            Parameter(name, value=value) for name, value in parameters.items()])
        self.name, self.peer = f'/{self.node.get_name()}', Node('peer')
        every = TOPICS | (CONTROLLER_TOPICS if kind is not DynamicsNode else {})
        topics = {name: every[name] for name in topics or every}
        self.executor = make_executor(events=True)
        self.executor.add_node(self.node)
        self.executor.add_node(self.peer)
        self.heard = {topic: [] for topic in (*topics, '/diagnostics')}
        for topic, kind in (*topics.items(), ('/diagnostics', DiagnosticArray)):
            self.peer.create_subscription(kind, topic.replace('~', self.name),
                                          self.heard[topic].append, 50)
        self._describe = self.peer.create_publisher(String, 'robot_description', LATCHED)
        self._send = self.peer.create_publisher(JointState, 'joint_states', 10)
        self._send_odometry = self.peer.create_publisher(Odometry, 'odom', 10)
        if self.node.configured:
            self.spin_until(lambda: self._send.get_subscription_count() > 0 and all(
                self.peer.count_publishers(topic.replace('~', self.name)) > 0
                for topic in topics))
        if description is not None:
            self.describe(description)
            self.spin_until(lambda: self.node.robot is not None)

    def close(self):
        self.executor.shutdown()
        self.node.destroy_node()
        self.peer.destroy_node()
        # Collect rclpy's lifecycle nodes, which are in reference cycles: ROS still sees this one.
        del self.node
        gc.collect()

    def spin_until(self, done, explain=lambda: 'the node did not do it'):
        """Spin both nodes until a condition holds; fail on timeout."""
        end = monotonic() + PATIENCE
        while not done():
            self.executor.spin_once(timeout_sec=0.05)
            assert monotonic() < end, explain()

    def settle(self):
        """Wait until all messages sent so far are received and answered."""
        for _ in range(3):
            end = monotonic() + 0.1
            while monotonic() < end:
                self.executor.spin_once(timeout_sec=0.02)

    def describe(self, text):
        self._describe.publish(String(data=text))

    def send(self, *arguments, **options):
        self._send.publish(joint_state(*arguments, **options))

    def move_base(self, message):
        """Publish the odometry of a floating base, and wait until the node has received it."""
        counts = self.node.report.counts
        self.spin_until(lambda: self._send_odometry.get_subscription_count() > 0)
        before = counts['odometry']
        self._send_odometry.publish(message)
        self.spin_until(lambda: counts['odometry'] != before)

    def answer(self, *arguments, topic='~/dynamics', **options):
        """Publish a joint state and return the output of the node on a topic."""
        count = len(self.heard[topic])
        self.send(*arguments, **options)
        self.spin_until(lambda: len(self.heard[topic]) > count, self.diagnosis)
        return self.heard[topic][-1]

    def nothing_new(self, act):
        """Return whether the node publishes nothing after an action."""
        self.settle()
        before = {topic: len(self.heard[topic]) for topic in TOPICS}
        act()
        self.settle()
        return all(len(self.heard[topic]) == before[topic] for topic in TOPICS)

    def diagnosis(self):
        """Return the next diagnostics of the node: level, message and values."""
        count = len(self.heard['/diagnostics'])
        self.spin_until(lambda: len(self.heard['/diagnostics']) > count)
        status = self.heard['/diagnostics'][-1].status[0]
        return status.level, status.message, {pair.key: pair.value for pair in status.values}

    def call(self, kind, name, **request):
        client = self.peer.create_client(kind, f'{self.name}/{name}')
        self.spin_until(client.service_is_ready)
        future = client.call_async(kind.Request(**request))
        self.spin_until(future.done)
        self.peer.destroy_client(client)
        return future.result()


def said(node, text, level):
    """Wait until the node reports something at a level."""
    def heard():
        got = node.diagnosis()
        return got[0] == level and text in got[1]
    node.spin_until(heard, node.diagnosis)


def keep_sending(node, state, done, period=0.02):
    """Send states with a period, s, until a condition holds."""
    due = 0.0

    def sent_and_done():
        nonlocal due
        if monotonic() > due:
            due = monotonic() + period
            node.send(*state)
        return done()
    node.spin_until(sent_and_done)


class SimulatedTime:
    """A publisher of /clock."""

    def __init__(self, node):
        self._node = node
        self._publisher = node.peer.create_publisher(Clock, '/clock', 10)

    def be(self, seconds):
        """Let it be that late, for the node too."""
        message = Clock(clock=Time(sec=int(seconds), nanosec=round(seconds % 1.0 * 1e9)))
        self._node.spin_until(lambda: self._publisher.get_subscription_count() > 0)
        self._publisher.publish(message)
        self._node.spin_until(lambda: abs(self._node.node.clocks.stamp_time() - seconds) < 1e-6)


class Ear:
    """A publisher that keeps what is published instead of sending it."""

    def __init__(self, topic, heard):
        self._topic, self._heard, self.listens = topic, heard, True
        self.topic_name = topic.replace('~', '/dynamics')

    def get_subscription_count(self):
        """Let the node think that somebody listens, or nobody."""
        return int(self.listens)

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
