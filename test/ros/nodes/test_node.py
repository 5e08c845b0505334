# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node in this process; numbers are rows of doc/faults.md."""

from diagnostic_msgs.msg import DiagnosticStatus
from harness import at, Harness, TOPICS
import numpy as np
import pytest
from rbd_msgs.srv import InverseDynamics
import rbd_ros
from rbd_ros.ros.commands import effort_commands
from robots import example_urdf, load_quietly, Oracle, random_state, relative_error

# Against Pinocchio: rounding is a hundredth of it.
AGREEMENT = 1e-9
# What needs velocities, and what needs more than a state.
VELOCITY_TOPICS = ('~/coriolis_torques', '~/coriolis_matrix', '~/dynamics', '~/mass_matrix_rate',
                   '~/coriolis_matrix_rate', '~/gravity_torques_rate')
OPTIONAL = ('~/coriolis_matrix_rate', '~/task_dynamics', '~/task_pose', '~/task_jacobian',
            '~/task_bias', '~/task_inertia', '~/torque_deviation', '~/external_torques',
            '~/external_wrench', '~/contact')
ARM = (example_urdf('ur10_robot.urdf')).read_text()

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture
def arm():
    """Return a node that has the description of a UR10, and that model."""
    harness = Harness(ARM, state_timeout=60.0)
    yield harness
    harness.close()


def state(model, seed=0):
    """Return names, positions and velocities in a random order, and the state itself."""
    q, v, _ = random_state(model, seed)
    order = np.random.default_rng(seed).permutation(model.nv)
    names = [model.velocity_names[k] for k in order]
    return (names, q[order], v[order]), q, v


@pytest.mark.parametrize('name', [
    'ur10_robot.urdf', 'panda.urdf', 'talos_reduced.urdf', 'talos_full_v2.urdf', 'tiago.urdf',
    'anymal_b_simple_description/robots/anymal.urdf'])
def test_every_published_number_agrees_with_pinocchio_whatever_the_order(name, monkeypatch):
    # However long a cold cache takes, no pause between states is a gap: commands do not blend.
    monkeypatch.setattr(effort_commands, 'MIN_GAP', 60.0)
    path = example_urdf(name)
    model = load_quietly(path)
    oracle = Oracle(path, model)
    harness = Harness(path.read_text(), state_timeout=60.0)
    try:
        for seed in range(3):
            message, q, v = state(model, seed)
            stamp = at()
            got = harness.answer(*message, stamp=stamp)
            topics = set(TOPICS) - set(OPTIONAL)
            harness.spin_until(lambda: all(len(harness.heard[topic]) == seed + 1  # noqa: B023
                                           for topic in topics))  # noqa: B023
            heard = {topic: harness.heard[topic][-1] for topic in topics}
            zero, n = np.zeros(model.nv), model.nv
            g = oracle.tau(q, zero, zero)
            com, J_com = oracle.com(q)
            expected = {'M': oracle.M(q), 'C': oracle.C(q, v), 'g': g,
                        'Cv': oracle.tau(q, v, zero) - g, 'J': J_com}

            assert got.joint_names == list(model.velocity_names)
            assert list(got.position) == list(q)
            assert list(got.velocity) == list(v)
            assert got.mass == model.mass
            for value, key in ((got.mass_matrix, 'M'), (got.coriolis_matrix, 'C'),
                               (got.gravity_torques, 'g'), (got.coriolis_torques, 'Cv'),
                               (got.com_jacobian, 'J')):
                assert relative_error(np.reshape(value, expected[key].shape),
                                      expected[key]) < AGREEMENT
            for topic, key in (('~/mass_matrix', 'M'), ('~/coriolis_matrix', 'C'),
                               ('~/com_jacobian', 'J')):
                matrix = heard[topic].matrix
                assert matrix.column_names == list(model.velocity_names)
                assert matrix.row_names == (['x', 'y', 'z'] if key == 'J'
                                            else list(model.velocity_names))
                assert relative_error(np.reshape(matrix.data, (-1, n)), expected[key]) < AGREEMENT
            for topic, key in (('~/gravity_torques', 'g'), ('~/coriolis_torques', 'Cv')):
                assert heard[topic].name == list(model.velocity_names)
                assert relative_error(heard[topic].effort, expected[key]) < AGREEMENT
            for point in (heard['~/com'].point, got.com):
                assert relative_error([point.x, point.y, point.z], com) < AGREEMENT
            assert relative_error(heard['~/effort_commands'].data, g) < AGREEMENT
            for topic in topics:
                if topic != '~/effort_commands':
                    header = heard[topic].header
                    assert (header.stamp.sec, header.stamp.nanosec) == stamp
                    assert header.frame_id == model.link_names[0]
    finally:
        harness.close()


def test_fault_1_empty_joint_states_are_dropped_and_counted(arm):
    assert arm.nothing_new(lambda: arm.send([], []))
    assert arm.node.report.counts['joint states dropped'] == 1


def test_fault_2_joint_states_without_positions_are_dropped(arm, model):
    (names, _, v), _, _ = state(model)
    assert arm.nothing_new(lambda: arm.send(names, [], v))
    assert 'no positions' in arm.node.report.last_error


def test_fault_3_lengths_that_differ_are_dropped(arm, model):
    (names, q, v), _, _ = state(model)
    assert arm.nothing_new(lambda: arm.send(names, q[:-1], v))
    assert arm.nothing_new(lambda: arm.send(names, q, v[:-1]))
    assert arm.nothing_new(lambda: arm.send(names[:-1], q, v))
    assert 'it has 5 names, 6 positions' in arm.node.report.last_error
    arm.answer(names, q, v)


@pytest.mark.parametrize('gone', ['all', 'one'])
def test_fault_4_topics_that_need_velocities_are_withheld_without_them(arm, model, gone):
    (names, q, v), _, _ = state(model)
    arm.answer(names, q, v)
    arm.settle()
    v = [] if gone == 'all' else np.where(np.arange(6) == 2, np.nan, v)
    before = {topic: len(arm.heard[topic]) for topic in VELOCITY_TOPICS}
    for topic in set(TOPICS) - set(VELOCITY_TOPICS) - set(OPTIONAL):
        arm.answer(names, q, v, topic=topic)
    arm.settle()
    assert all(len(arm.heard[topic]) == before[topic] for topic in VELOCITY_TOPICS)
    level, message, _ = arm.diagnosis()
    assert level == DiagnosticStatus.WARN
    assert 'no velocity of' in message


def test_fault_4_velocities_taken_as_zero_are_reported(model):
    harness = Harness(ARM, missing_velocity='zero', state_timeout=60.0)
    (names, q, _), _, _ = state(model)
    got = harness.answer(names, q)
    assert list(got.velocity) == [0.0] * 6
    assert not np.any(got.coriolis_torques)
    assert 'taken as zero' in harness.diagnosis()[1]
    harness.close()


@pytest.mark.parametrize('bad', [np.nan, np.inf, -np.inf])
def test_fault_5_nonfinite_positions_are_dropped_and_the_joint_is_named(arm, model, bad):
    (names, q, v), _, _ = state(model)
    q = q.copy()
    q[3] = bad
    assert arm.nothing_new(lambda: arm.send(names, q, v))
    assert f"'{names[3]}' is out of range" in arm.node.report.last_error


def test_fault_6_efforts_are_ignored(arm, model):
    (names, q, v), position, _ = state(model)
    for effort in ([np.nan] * 6, [1.0]):
        assert list(arm.answer(names, q, v, effort=effort).position) == list(position)


def test_fault_7_unknown_joints_are_ignored(arm, model):
    (names, q, v), expected, _ = state(model)
    got = arm.answer(['wheel', *names, 'door'], [9.0, *q, 9.0], [9.0, *v, 9.0])
    assert list(got.position) == list(expected)
    assert arm.node.robot.states.unknown_names == {'wheel', 'door'}
    # A message of others' joints alone is no state of this robot.
    assert arm.nothing_new(lambda: arm.send(['wheel'], [1.0], [1.0]))


def test_fault_8_partial_messages_are_merged_and_outputs_wait_for_all(arm, model):
    (names, q, v), expected, _ = state(model)
    assert arm.nothing_new(lambda: arm.send(names[:2], q[:2], v[:2]))
    _, message, _ = arm.diagnosis()
    assert 'no recent position of' in message
    assert arm.nothing_new(lambda: arm.send(names[4:], q[4:], v[4:]))
    arm.send(names[:2], q[:2], v[:2])
    arm.send(names[4:], q[4:], v[4:])
    stamp = at()
    got = arm.answer(names[2:4], q[2:4], v[2:4], stamp=stamp)
    assert list(got.position) == list(expected)
    assert (got.header.stamp.sec, got.header.stamp.nanosec) == stamp


def test_fault_8_a_part_that_is_too_old_withholds_the_rest(model):
    harness = Harness(ARM, state_timeout=0.2)
    (names, q, v), _, _ = state(model)
    harness.answer(names, q, v)
    harness.settle()
    assert harness.nothing_new(lambda: harness.send(names[:3], q[:3], v[:3]))
    harness.answer(names, q, v)
    harness.close()


def test_fault_9_the_order_may_change_in_every_message(arm, model):
    for seed in range(6):
        message, q, v = state(model, seed)
        got = arm.answer(*message)
        assert list(got.position) == list(q)
        assert list(got.velocity) == list(v)


def test_fault_10_a_message_with_duplicate_joints_is_dropped(arm, model):
    (names, q, v), _, _ = state(model)
    assert arm.nothing_new(lambda: arm.send([*names, names[0]], [*q, 1.0], [*v, 1.0]))
    assert f"'{names[0]}' twice" in arm.node.report.last_error


@pytest.mark.parametrize('text', ['', 'hello', '/opt/arm.urdf', '<robot name="r"><link/></robot>',
                                  ARM.replace('<mass value="7.778"/>', '<mass value="x"/>')])
def test_fault_18_a_bad_first_description_leaves_the_node_waiting_for_another(text, model):
    harness = Harness()
    harness.describe(text)
    harness.settle()
    level, message, values = harness.diagnosis()
    assert level == DiagnosticStatus.WARN
    assert 'waiting for a robot description' in message
    assert 'refused' in values['last error']
    harness.describe(ARM)
    harness.spin_until(lambda: harness.node.robot is not None)
    harness.answer(*state(model)[0])
    harness.close()


def test_fault_19_a_bad_later_description_leaves_the_model_in_use(arm, model):
    arm.answer(*state(model)[0])
    arm.describe('<robot name="other"><link name="a"/><link name="b"/></robot>')
    arm.settle()
    assert '2 root links' in arm.node.report.last_error
    assert arm.answer(*state(model)[0]).model_id == 1


def test_fault_20_another_robot_is_swapped_in_whole(arm, model):
    assert arm.answer(*state(model)[0]).model_id == 1
    path = example_urdf('ur5_robot.urdf')
    other = load_quietly(path)
    arm.describe(path.read_text())
    arm.spin_until(lambda: arm.node.robot.model_id == 2)
    # The joints have the same names, but nothing is said before a whole state has come.
    (names, q, v), _, _ = state(other)
    assert arm.nothing_new(lambda: arm.send(names[:3], q[:3], v[:3]))
    got = arm.answer(names, q, v)
    assert got.model_id == 2
    assert got.mass == other.mass
    q = np.array(got.position)
    assert relative_error(got.gravity_torques, rbd_ros.gravity_torques(other, q)) < AGREEMENT


def test_fault_21_the_same_description_again_changes_nothing(arm, model):
    arm.answer(*state(model)[0])
    robot = arm.node.robot
    arm.describe(ARM)
    arm.settle()
    assert arm.node.robot is robot


def test_fault_22_a_path_instead_of_a_urdf_gets_a_hint(arm):
    arm.describe('/opt/robots/arm.urdf')
    arm.settle()
    assert 'pass the text of the description, not its path' in arm.node.report.last_error


@pytest.mark.parametrize('name, value, message', [
    ('gravity', [0.0, 9.81], 'gravity must be three'),
    ('missing_velocity', 'guess', 'missing_velocity must be one of'),
    ('coriolis_factorization', 'lu', 'coriolis_factorization must be one of')])
def test_fault_48_a_bad_parameter_keeps_the_node_from_being_configured(name, value, message,
                                                                       capfd):
    harness = Harness(**{name: value})
    assert not harness.node.configured
    assert message in capfd.readouterr().err
    harness.close()


def test_fault_48_an_unknown_command_joint_is_named():
    harness = Harness(command_joints=['shoulder_pan_joint', 'finger'])
    harness.describe(ARM)
    harness.settle()
    assert "command_joints names 'finger'" in harness.node.report.last_error
    assert harness.node.robot is None
    harness.close()


def test_effort_commands_follow_the_order_of_the_controller(model):
    order = list(model.velocity_names[::-2])
    harness = Harness(ARM, command_joints=order)
    message, q, _ = state(model)
    got = harness.answer(*message, topic='~/effort_commands')
    g = rbd_ros.gravity_torques(model, q)
    assert np.allclose(got.data, [g[model.velocity_names.index(name)] for name in order])
    harness.close()


def test_gravity_parameter_turns_the_robot_upside_down(model):
    harness = Harness(ARM, gravity=[0.0, 0.0, 9.81])
    message, q, _ = state(model)
    got = harness.answer(*message)
    assert np.allclose(got.gravity_torques, -rbd_ros.gravity_torques(model, q))
    harness.close()


def test_publish_rate_limits_the_outputs_to_the_latest_states(model):
    harness = Harness(ARM, publish_rate=20.0)
    for seed in range(20):
        message, q, _ = state(model, seed)
        harness.send(*message)
    harness.spin_until(lambda: harness.heard['~/dynamics']
                       and list(harness.heard['~/dynamics'][-1].position) == list(q))
    assert len(harness.heard['~/dynamics']) < 20
    # A state is answered once.
    assert harness.nothing_new(lambda: None)
    harness.close()


def test_coriolis_factorization_follows_the_parameter(model):
    harness = Harness(ARM, coriolis_factorization='body')
    message, q, v = state(model)
    got = harness.answer(*message)
    expected = rbd_ros.coriolis_matrix(model, q, v, factorization='body')
    assert relative_error(np.reshape(got.coriolis_matrix, (6, 6)), expected) < AGREEMENT
    harness.close()


def test_outputs_flow_only_while_the_node_is_active(arm, model):
    message, _, _ = state(model)
    arm.answer(*message)
    arm.node.trigger_deactivate()
    assert arm.nothing_new(lambda: arm.send(*message))
    assert arm.diagnosis()[1] == 'inactive'
    response = arm.call(InverseDynamics, 'inverse_dynamics', acceleration=[0.0] * 6)
    assert response.success
    arm.node.trigger_activate()
    arm.answer(*message)
    arm.node.trigger_deactivate()
    arm.node.trigger_cleanup()
    arm.node.trigger_configure()
    arm.node.trigger_activate()
    arm.spin_until(lambda: arm.node.robot is not None)
    arm.spin_until(lambda: not arm.nothing_new(lambda: arm.send(*message)))


def test_fault_45_an_exception_in_a_callback_is_reported_and_the_node_lives(
        arm, model, monkeypatch):
    message, _, _ = state(model)
    arm.answer(*message)
    with monkeypatch.context() as patch:
        patch.setattr(arm.node.robot.workspace, 'all_terms', lambda *_, **__: 1 / 0)
        assert arm.nothing_new(lambda: arm.send(*message))
    assert 'division by zero' in arm.node.report.last_error
    assert 'division by zero' in arm.diagnosis()[2]['last error']
    arm.answer(*message)
