# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Several nodes in one process, namespaces, prefixes; the life cycle of one."""

from dataclasses import replace

from diagnostic_msgs.msg import DiagnosticArray
from harness import joint_state, LATCHED, TOPICS
import numpy as np
import pytest
from rbd_msgs.msg import DynamicsStamped
import rbd_ros
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.executors import SingleThreadedExecutor
from rclpy.lifecycle import TransitionCallbackReturn
from rclpy.parameter import Parameter
from robots import example_urdf, load_quietly, random_state, relative_error
from sensor_msgs.msg import JointState
from std_msgs.msg import String

pytestmark = pytest.mark.usefixtures('peer')
AGREEMENT = 1e-9
NAMES = ('ur5_robot.urdf', 'ur10_robot.urdf', 'panda.urdf')


class Fleet:
    """Nodes and a peer in one executor."""

    def __init__(self, peer, *nodes):
        self.nodes, self.peer, self.executor = nodes, peer, SingleThreadedExecutor()
        for node in (*nodes, peer):
            self.executor.add_node(node)

    def spin_until(self, done):
        for _ in range(2000):
            if done():
                return
            self.executor.spin_once(timeout_sec=0.02)
        raise AssertionError('the nodes did not do it')

    def close(self):
        self.executor.shutdown()
        for node in self.nodes:
            node.destroy_node()


def test_three_robots_in_one_process_do_not_know_of_each_other(peer):
    nodes = [DynamicsNode(namespace=f'robot{k}', parameter_overrides=[
        Parameter('gravity', value=[0.0, 0.0, -9.81 + k]),
        Parameter('implausible_velocity', value=0.0)]) for k in range(3)]
    fleet = Fleet(peer, *nodes)
    models = [rbd_ros.with_gravity(load_quietly(example_urdf(name)), (0.0, 0.0, -9.81 + k))
              for k, name in enumerate(NAMES)]
    heard, reports, senders = [[], [], []], [], []
    fleet.peer.create_subscription(DiagnosticArray, '/diagnostics', reports.append, 10)
    for k, name in enumerate(NAMES):
        fleet.peer.create_subscription(DynamicsStamped, f'/robot{k}/dynamics/dynamics',
                                       heard[k].append, 10)
        describe = fleet.peer.create_publisher(String, f'/robot{k}/robot_description',
                                               LATCHED)
        describe.publish(String(data=example_urdf(name).read_text()))
        senders.append(fleet.peer.create_publisher(JointState, f'/robot{k}/joint_states', 10))
    fleet.spin_until(lambda: all(node.robot for node in nodes))
    for seed in range(3):
        states = [random_state(model, seed) for model in models]

        def answered(states=states):
            for sender, model, (q, v, _) in zip(senders, models, states):
                sender.publish(joint_state(model.velocity_names, q, v))
            return all(got and list(got[-1].position) == list(q)
                       for got, (q, _, _) in zip(heard, states))
        fleet.spin_until(answered)
        for got, model, (q, v, _) in zip(heard, models, states):
            terms = rbd_ros.all_terms(model, q, v)
            assert got[-1].model_id == 1
            assert relative_error(got[-1].gravity_torques, terms.g) < AGREEMENT
            assert relative_error(got[-1].coriolis_matrix, terms.C.ravel()) < AGREEMENT
    names = {f'/robot{k}/dynamics: dynamics' for k in range(3)}
    fleet.spin_until(lambda: names <= {report.status[0].name for report in reports})
    assert not any('nodes are called' in report.status[0].message for report in reports)
    fleet.close()


def test_prefixed_robots_share_a_topic_of_joint_states(peer):
    text = example_urdf('ur5_robot.urdf').read_text()
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    texts = []
    for side in ('left_', 'right_'):
        prefixed = text
        for name in model.velocity_names:
            prefixed = prefixed.replace(f'"{name}"', f'"{side}{name}"')
        texts.append(prefixed)
    nodes = [DynamicsNode(namespace=side, cli_args=[
        '--ros-args', '-r', 'joint_states:=/joint_states'], parameter_overrides=[
            Parameter('frame_prefix', value=f'{side}/')]) for side in ('left', 'right')]
    fleet = Fleet(peer, *nodes)
    heard = [[], []]
    for k, side in enumerate(('left', 'right')):
        fleet.peer.create_subscription(DynamicsStamped, f'/{side}/dynamics/dynamics',
                                       heard[k].append, 10)
        fleet.peer.create_publisher(String, f'/{side}/robot_description',
                                    LATCHED).publish(String(data=texts[k]))
    send = fleet.peer.create_publisher(JointState, '/joint_states', 10)
    fleet.spin_until(lambda: all(node.robot for node in nodes))
    q, v, _ = random_state(model, 1)
    names = [side + name for side in ('left_', 'right_') for name in model.velocity_names]

    def answered():
        send.publish(joint_state(names, [*q, *-q], [*v, *-v]))
        return all(heard)
    fleet.spin_until(answered)
    for got, sign, side in zip(heard, (1.0, -1.0), ('left', 'right')):
        assert np.array_equal(got[-1].position, sign * q)
        assert got[-1].header.frame_id == f'{side}/{model.link_names[0]}'
    fleet.close()


# -- Life cycle. ---------------------------------------------------------------------------------

def own_topics(node):
    """Return the topics that a node publishes on under its own name."""
    return [name for name, _ in node.get_publisher_names_and_types_by_node(
        'dynamics', '/') if name.startswith('/dynamics/') and 'transition' not in name]


def test_topics_exist_from_configuring_to_cleaning_up(peer):
    node = DynamicsNode(parameter_overrides=[Parameter('autostart', value=False)])
    fleet = Fleet(peer, node)
    assert not own_topics(node)
    for _ in range(2):
        assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
        fleet.spin_until(lambda: len(own_topics(node)) == len(TOPICS) + 1)
        assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
        assert node.trigger_deactivate() == TransitionCallbackReturn.SUCCESS
        assert len(own_topics(node)) == len(TOPICS) + 1
        assert node.trigger_cleanup() == TransitionCallbackReturn.SUCCESS
        fleet.spin_until(lambda: not own_topics(node))
    fleet.close()


def test_an_error_in_a_transition_leaves_the_node_unconfigured_and_it_may_be_tried_again(
        monkeypatch, capfd):
    node = DynamicsNode(parameter_overrides=[Parameter('autostart', value=False)])
    with monkeypatch.context() as patch:
        patch.setattr('rbd_ros.ros.services.dynamics_services.Services.answers',
                      property(lambda self: 1 / 0))
        assert node.trigger_configure() == TransitionCallbackReturn.ERROR
    assert 'on_configure: ZeroDivisionError' in capfd.readouterr().err
    assert node._state_machine.current_state[1] == 'unconfigured'
    assert not node.configured
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    with monkeypatch.context() as patch:
        patch.setattr(node.commands, 'begin', lambda: 1 / 0)
        assert node.trigger_activate() == TransitionCallbackReturn.ERROR
    assert node._state_machine.current_state[1] == 'unconfigured'
    assert not node.active
    assert node.trigger_configure() == TransitionCallbackReturn.SUCCESS
    assert node.trigger_activate() == TransitionCallbackReturn.SUCCESS
    node.destroy_node()


@pytest.fixture
def node():
    """Return a node that runs."""
    node = DynamicsNode()
    yield node
    node.destroy_node()


def test_fault_48_parameters_are_refused_with_the_reason_while_the_node_runs(node):
    before = replace(node.parameters)
    for name, value, reason in (
            ('state_timeout', float('nan'), 'state_timeout'), ('ramp_time', 5.0, 'range'),
            ('blend_time', -1.0, 'range'),
            ('effort_rate_limit', float('inf'), 'effort_rate_limit'),
            ('on_stale', 'jump', 'on_stale must be one of'), ('frame_prefix', 'a/', 'read-only'),
            ('gravity', [0.0, 0.0, float('nan')], 'three finite'), ('publish_rate', 1e9, 'range')):
        result, = node.set_parameters([Parameter(name, value=value)])
        assert not result.successful and reason in result.reason, name
        assert node.parameters == before


def test_several_parameters_change_together_or_not_at_all(node):
    before = replace(node.parameters)
    result = node.set_parameters_atomically([Parameter('ramp_time', value=2.0),
                                             Parameter('on_stale', value='jump')])
    assert not result.successful
    assert node.parameters == before
    result = node.set_parameters_atomically([Parameter('ramp_time', value=2.0),
                                             Parameter('on_stale', value='hold')])
    assert result.successful
    assert (node.parameters.ramp_time, node.parameters.on_stale) == (2.0, 'hold')
