# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Input that is incomplete, forged, endless or impossible, and topics that fail."""

from diagnostic_msgs.msg import DiagnosticStatus
from harness import joint_state
import pytest
from rclpy.serialization import serialize_message
from robots import fan

ERROR = DiagnosticStatus.ERROR

pytestmark = pytest.mark.usefixtures('domain')


POINT = ('<robot name="point"><link name="a"/>'
         '<link name="b"><inertial><mass value="1"/></inertial></link>'
         '<joint name="j" type="continuous"><parent link="a"/><child link="b"/></joint>'
         '</robot>')


def test_fault_36_a_joint_without_inertia_withholds_only_affected_topics(harness, capfd):
    node = harness(POINT, task_link='b', state_timeout=60.0)
    for _ in range(3):
        node.answer(['j'], [0.1], [0.2], [0.3], topic='~/gravity_torques_rate')
    assert node.heard['~/mass_matrix_rate']
    assert node.heard['~/dynamics']
    assert not node.heard['~/coriolis_matrix_rate']
    assert not node.heard['~/task_inertia']
    assert node.node.report.counts['errors'] == 0
    log = capfd.readouterr().err
    for topic in ('~/coriolis_matrix_rate', '~/task_inertia'):
        assert log.count(f'{topic} is withheld') == 1


def test_a_failing_topic_does_not_affect_the_others(harness, state, monkeypatch):
    node = harness(state_timeout=60.0)
    node.answer(*state)
    message = node.node.robot.outputs.message

    def fail(topic, *arguments):
        if topic == '~/mass_matrix':
            raise RuntimeError('no template')
        return message(topic, *arguments)
    monkeypatch.setattr(node.node.robot.outputs, 'message', fail)
    count = len(node.heard['~/mass_matrix'])
    node.answer(*state, topic='~/gravity_torques_rate')
    assert len(node.heard['~/mass_matrix']) == count
    assert 'no template' in node.diagnosis()[2]['last error']


def test_fault_80_a_withheld_topic_is_logged_once(harness, state, capfd):
    names, q, v = state
    node = harness(state_timeout=60.0)
    for _ in range(10):
        node.answer(names, q, topic='~/gravity_torques')
    log = capfd.readouterr().err
    assert log.count('~/coriolis_torques is withheld: the velocity is unknown') == 1
    assert log.count('~/task_inertia is withheld: the parameter task_link is not set') == 1
    assert {topic for topic, why in node.node.publishing._withheld.reasons.items()
            if why == 'the velocity is unknown'} == {
        '~/coriolis_torques', '~/coriolis_matrix', '~/dynamics', '~/mass_matrix_rate',
        '~/coriolis_matrix_rate', '~/gravity_torques_rate', '~/torque_deviation'}
    # What comes back is withheld no longer.
    node.answer(names, q, v, topic='~/coriolis_torques')
    assert '~/coriolis_torques' not in node.node.publishing._withheld.reasons


def test_fault_61_unknown_names_are_capped_in_number_log_and_memory(harness, state, capfd):
    names, q, v = state
    node = harness(state_timeout=60.0)
    counts = node.node.report.counts
    for k in range(100):
        node.send([*names, *(f'stranger_{k}_{j}' for j in range(10))], [*q, *[0.0] * 10],
                  [*v, *[0.0] * 10])
        node.spin_until(lambda k=k: counts['joint states'] > k)
    assert len(node.node.robot.states.unknown_names) <= 100
    log = capfd.readouterr().err
    assert log.count('are ignored') <= 3
    assert max(map(len, log.splitlines())) < 2300


def test_fault_61_names_cannot_forge_lines_of_the_log_or_colour_it(harness, state, capfd):
    names, q, v = state
    node = harness(state_timeout=60.0)
    forged = 'x\n[ERROR] [0.0] [dynamics]: on fire\x1b[31m'
    node.answer([*names, forged], [*q, 0.0], [*v, 0.0])
    node.send([*names, forged, forged], [*q, 0.0, 0.0], [*v, 0.0, 0.0])
    node.describe(fan('abc').replace('name="c"', 'name="c&#10;[ERROR] on fire"'))
    node.settle()
    log = capfd.readouterr().err
    assert '\\n[ERROR]' in log
    assert '\x1b' not in log
    assert not any(line.startswith(('[ERROR] [0.0]', '[ERROR] on fire'))
                   for line in log.splitlines())
    _, text, values = node.diagnosis()
    assert all(part.isprintable() for part in (text, *values, *values.values()))
    # Diagnostics stay short, too.
    node.send(['j' * 100_000] * 2, [0.0] * 2)
    node.settle()
    _, text, values = node.diagnosis()
    assert len(values['last error']) < 700
    assert sum(len(key) + len(value) for key, value in values.items()) + len(text) < 10_000


def test_fault_59_too_many_joints_are_refused_before_anything_is_made(harness):
    node = harness(fan('a'), max_joints=3)
    node.describe(fan('abcd'))
    node.spin_until(lambda: node.node.report.counts['descriptions refused'])
    assert 'the robot has 4 joints, max_joints is 3' in node.node.report.last_error
    node.describe(fan('abc'))
    node.spin_until(lambda: node.node.robot.model_id == 2)


@pytest.mark.parametrize('executor', ['single', 'events'])
def test_a_state_that_the_executor_held_when_the_node_was_taken_down_does_no_harm(harness, state,
                                                                                  executor):
    node = harness(state_timeout=60.0, executor=executor)
    node.answer(*state)
    raw = serialize_message(joint_state(*state))
    listening, robot = node.node.listening, node.node.robot
    count = node.node.report.counts['joint states']
    # It is taken down by an answer, too: nothing is read from what is gone.
    listening._answer_state = lambda *_: listening.close()
    listening._on_joint_state(raw)
    assert node.node.report.counts['joint states'] == count + 1
    listening._on_joint_state(raw)
    assert node.node.report.counts['joint states'] == count + 1
    assert node.node.report.counts['errors'] == 0
    assert node.node.robot is robot
