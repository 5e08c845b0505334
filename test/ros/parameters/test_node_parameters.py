# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters that are wrong, misspelt or changed while the node runs."""

from dataclasses import replace

from covering import covering
import pytest
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rbd_ros.ros.parameters.parameters import BadParameter, checked_value
from rclpy.parameter import Parameter
from rclpy.qos import ReliabilityPolicy
from robots import example_urdf

ARM = example_urdf('ur10_robot.urdf').read_text()

pytestmark = pytest.mark.usefixtures('domain')


def test_fault_48_an_invalid_rate_is_refused_and_timers_continue(harness, state):
    node = harness(on_stale='hold', state_timeout=0.2, topics=['~/effort_commands'])
    for value in (1e-10, 1e-3, -1.0, float('nan')):
        result, = node.node.set_parameters([Parameter('publish_rate', value=value)])
        assert not result.successful
        assert 'publish_rate' in result.reason
    heard = node.heard['~/effort_commands']
    node.answer(*state, topic='~/effort_commands')
    node.spin_until(lambda: len(heard) > 5)


def test_fault_48_a_joint_listed_twice_in_a_parameter_is_refused(harness, capfd):
    node = harness(None, command_joints=['elbow_joint', 'elbow_joint'])
    assert not node.node.configured
    assert "command_joints has 'elbow_joint' twice" in capfd.readouterr().err
    lists = [name for name, one in DynamicsNode.settings.items() if one.entry is str]
    assert len(lists) > 3
    for name in lists:
        with pytest.raises(BadParameter, match=f"{name} has 'elbow_joint' twice"):
            checked_value(name, DynamicsNode.settings[name], ['elbow_joint', 'elbow_joint'])


def test_fault_62_misspelt_parameters_are_reported_with_a_suggestion(harness, capfd):
    harness(None, topics=['~/com'], gravty=[0.0, 0.0, 1.0], quite_another=3, publish_rate=5.0)
    said = capfd.readouterr().err
    assert "there is no parameter 'gravty', did you mean 'gravity'?" in said
    assert "there is no parameter 'quite_another'; it has no effect" in said
    assert "'publish_rate'" not in said
    assert 'use_sim_time' not in said


def test_fault_62_whole_numbers_pass_for_others(harness, state):
    node = harness(publish_rate=100, gravity=[0, 0, -9], state_timeout=60, locked_positions=[1],
                   locked_joints=['wrist_3_joint'])
    assert node.node.parameters.publish_rate == 100.0
    assert node.node.robot.model.gravity.tolist() == [0.0, 0.0, -9.0]
    for name, value in (('publish_rate', 0), ('gravity', [0, 0, -3]), ('ramp_time', 2)):
        result, = node.node.set_parameters([Parameter(name, value=value)])
        assert result.successful, result.reason
    node.spin_until(lambda: node.node.robot.model.gravity[2] == -3.0)
    for name, value in (('publish_rate', True), ('publish_rate', 'fast'), ('friction', 1),
                        ('friction', 'yes'), ('gravity', 9.81), ('on_stale', 3)):
        result, = node.node.set_parameters([Parameter(name, value=value)])
        assert not result.successful
        assert name in result.reason


def test_the_quality_of_service_of_every_topic_is_a_parameter(harness):
    node = harness(**{f'qos_overrides.{topic}.reliability': 'best_effort' for topic in (
        '/joint_states.subscription', '/dynamics/gravity_torques.publisher')}).node
    own = f'{node.get_fully_qualified_name()}/'
    topics = {one.topic_name for one in (*node.publishers, *node.subscriptions)}
    wanted = {'/joint_states', '/robot_description', '/diagnostics', *(
        topic for topic in topics if topic.startswith(own) and 'transition' not in topic)}
    assert len(wanted) > 15
    assert wanted <= {name.split('.')[0] for name in node.get_parameters_by_prefix(
        'qos_overrides')}
    for topic, found in (
            ('/joint_states', node.get_subscriptions_info_by_topic),
            ('/dynamics/gravity_torques', node.get_publishers_info_by_topic)):
        qos, = (one.qos_profile for one in found(topic) if one.node_name == node.get_name())
        assert qos.reliability == ReliabilityPolicy.BEST_EFFORT


@pytest.mark.parametrize('name, value', covering([
    ('publish_rate', 1e9), ('ramp_time', -1.0), ('publish_rate', 'fast'), ('max_joints', 0)],
    ('publish_rate', 'fast'), ('max_joints', 0)))
def test_fault_48_a_start_with_a_bad_value_waits_for_a_better_one(harness, name, value, capfd):
    node = harness(None, **{name: value})
    assert not node.node.configured
    assert name in capfd.readouterr().err
    good = {'publish_rate': 10.0, 'ramp_time': 1.0}.get(name)
    if good is not None:
        result, = node.node.set_parameters([Parameter(name, value=good)])
        assert result.successful, result.reason
        node.node.trigger_configure()
        assert node.node.configured


def test_all_parameters_have_values_that_can_be_dumped_and_are_replaced_one_by_one(harness):
    from rcl_interfaces.srv import GetParameters, ListParameters
    node = harness(None)
    names = node.call(ListParameters, 'list_parameters').result.names
    values = node.call(GetParameters, 'get_parameters', names=names).values
    assert len(values) == len(names) > 30
    kinds = dict(zip(names, (value.type for value in values)))
    assert 0 not in kinds.values()
    # Empty lists are lists of what they will hold: of texts, of numbers.
    assert kinds['command_joints'] == 9
    assert kinds['drives.armature'] == 8
    # A change of one leaves the others as they are.
    before = node.node.parameters
    node.node.set_parameters([Parameter('ramp_time', value=2.0)])
    assert node.node.parameters == replace(before, ramp_time=2.0) != before


def test_the_description_may_come_as_a_parameter(harness, state, model):
    node = harness(None, robot_description=ARM)
    node.spin_until(lambda: node.node.robot is not None)
    assert node.answer(*state).mass == model.mass
