# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The dynamics node in this process; numbers are rows of doc/faults.md."""

from covering import covering
from diagnostic_msgs.msg import DiagnosticStatus
from harness import at, TOPICS
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
def arm(harness):
    """Return a node that has the description of a UR10."""
    return harness(state_timeout=60.0)


def shuffled(model, seed=0):
    """Return names, positions and velocities in a random order, and the state itself."""
    q, v, _ = random_state(model, seed)
    order = np.random.default_rng(seed).permutation(model.nv)
    names = [model.velocity_names[k] for k in order]
    return (names, q[order], v[order]), q, v


@pytest.fixture
def message(model):
    """Return a state of the UR10 with its joints in a random order."""
    return shuffled(model)[0]


@pytest.mark.parametrize('name', covering([
    'ur10_robot.urdf', 'panda.urdf', 'talos_reduced.urdf', 'talos_full_v2.urdf', 'tiago.urdf',
    'anymal_b_simple_description/robots/anymal.urdf'], 'panda.urdf', 'talos_full_v2.urdf'))
def test_fault_9_every_published_number_agrees_with_pinocchio_in_any_order_of_joints(
        name, harness, monkeypatch):
    # However long a cold cache takes, no pause between states is a gap: commands do not blend.
    monkeypatch.setattr(effort_commands, 'MIN_GAP', 60.0)
    path = example_urdf(name)
    model = load_quietly(path)
    oracle = Oracle(path, model)
    node = harness(path.read_text(), state_timeout=60.0)
    for seed in range(3):
        message, q, v = shuffled(model, seed)
        stamp = at()
        got = node.answer(*message, stamp=stamp)
        topics = set(TOPICS) - set(OPTIONAL)
        node.spin_until(lambda: all(len(node.heard[topic]) == seed + 1      # noqa: B023
                                    for topic in topics))                   # noqa: B023
        heard = {topic: node.heard[topic][-1] for topic in topics}
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


def test_fault_1_empty_joint_states_are_dropped_and_counted(arm):
    assert arm.nothing_new(lambda: arm.send([], []))
    assert arm.node.report.counts['joint states dropped'] == 1


def test_fault_2_joint_states_without_positions_are_dropped(arm, message):
    names, _, v = message
    assert arm.nothing_new(lambda: arm.send(names, [], v))
    assert 'no positions' in arm.node.report.last_error


def test_fault_3_lengths_that_differ_are_dropped(arm, message):
    names, q, v = message

    def send_all():
        arm.send(names, q[:-1], v)
        arm.send(names, q, v[:-1])
        arm.send(names[:-1], q, v)
    assert arm.nothing_new(send_all)
    assert arm.node.report.counts['joint states dropped'] == 3
    assert 'it has 5 names, 6 positions' in arm.node.report.last_error
    arm.answer(names, q, v)


@pytest.mark.parametrize('gone', ['all', 'one'])
def test_fault_4_topics_that_need_velocities_are_withheld_without_them(arm, message, gone):
    names, q, v = message
    arm.answer(names, q, v)
    arm.settle()
    v = [] if gone == 'all' else np.where(np.arange(6) == 2, np.nan, v)
    before = {topic: len(arm.heard[topic]) for topic in VELOCITY_TOPICS}
    for topic in set(TOPICS) - set(VELOCITY_TOPICS) - set(OPTIONAL):
        arm.answer(names, q, v, topic=topic)
    arm.settle()
    assert all(len(arm.heard[topic]) == before[topic] for topic in VELOCITY_TOPICS)
    level, text, _ = arm.diagnosis()
    assert level == DiagnosticStatus.WARN
    assert 'no velocity of' in text


def test_fault_4_velocities_taken_as_zero_are_reported(harness, message):
    node = harness(missing_velocity='zero', state_timeout=60.0)
    got = node.answer(*message[:2])
    assert list(got.velocity) == [0.0] * 6
    assert not np.any(got.coriolis_torques)
    assert 'taken as zero' in node.diagnosis()[1]


def test_fault_5_nonfinite_positions_are_dropped_and_the_joint_is_named(arm, message):
    names, q, v = message
    for joint, bad in ((3, np.nan), (0, np.inf), (5, -np.inf)):
        spoilt = np.where(np.arange(6) == joint, bad, q)
        assert arm.nothing_new(lambda: arm.send(names, spoilt, v))      # noqa: B023
        assert f"'{names[joint]}' is out of range" in arm.node.report.last_error
        arm.answer(names, q, v)


def test_fault_6_efforts_are_ignored(arm, model):
    (names, q, v), position, _ = shuffled(model)
    for effort in ([np.nan] * 6, [1.0]):
        assert list(arm.answer(names, q, v, effort=effort).position) == list(position)


def test_fault_7_unknown_joints_are_ignored(arm, model):
    (names, q, v), expected, _ = shuffled(model)
    got = arm.answer(['wheel', *names, 'door'], [9.0, *q, 9.0], [9.0, *v, 9.0])
    assert list(got.position) == list(expected)
    assert arm.node.robot.states.unknown_names == {'wheel', 'door'}
    # A message of others' joints alone is no state of this robot.
    assert arm.nothing_new(lambda: arm.send(['wheel'], [1.0], [1.0]))


def test_fault_8_partial_messages_are_merged_and_outputs_wait_for_all(arm, model):
    (names, q, v), expected, _ = shuffled(model)
    assert arm.nothing_new(lambda: arm.send(names[:2], q[:2], v[:2]))
    assert 'no recent position of' in arm.diagnosis()[1]
    assert arm.nothing_new(lambda: arm.send(names[4:], q[4:], v[4:]))
    arm.send(names[:2], q[:2], v[:2])
    arm.send(names[4:], q[4:], v[4:])
    stamp = at()
    got = arm.answer(names[2:4], q[2:4], v[2:4], stamp=stamp)
    assert list(got.position) == list(expected)
    assert (got.header.stamp.sec, got.header.stamp.nanosec) == stamp


def test_fault_8_a_part_that_is_too_old_withholds_the_rest(harness, message):
    node, (names, q, v) = harness(state_timeout=0.2), message
    node.answer(names, q, v)
    node.settle()
    assert node.nothing_new(lambda: node.send(names[:3], q[:3], v[:3]))
    node.answer(names, q, v)


def test_fault_10_a_message_with_duplicate_joints_is_dropped(arm, message):
    names, q, v = message
    assert arm.nothing_new(lambda: arm.send([*names, names[0]], [*q, 1.0], [*v, 1.0]))
    assert f"'{names[0]}' twice" in arm.node.report.last_error


def test_fault_18_a_bad_first_description_leaves_the_node_waiting_for_another(harness, message):
    node = harness(None)
    counts = node.node.report.counts
    for text in ('', 'hello', '/opt/arm.urdf', '<robot name="r"><link/></robot>',
                 ARM.replace('<mass value="7.778"/>', '<mass value="x"/>')):
        before = counts['descriptions refused']
        node.describe(text)
        node.spin_until(lambda: counts['descriptions refused'] > before)    # noqa: B023
    level, said, values = node.diagnosis()
    assert level == DiagnosticStatus.WARN
    assert 'waiting for a robot description' in said
    assert 'refused' in values['last error']
    node.describe(ARM)
    node.spin_until(lambda: node.node.robot is not None)
    node.answer(*message)


def test_fault_19_a_bad_later_description_leaves_the_model_in_use(arm, message):
    arm.answer(*message)
    arm.describe('<robot name="other"><link name="a"/><link name="b"/></robot>')
    arm.settle()
    assert '2 root links' in arm.node.report.last_error
    assert arm.answer(*message).model_id == 1


def test_fault_20_another_robot_is_swapped_in_whole(arm, message):
    assert arm.answer(*message).model_id == 1
    path = example_urdf('ur5_robot.urdf')
    other = load_quietly(path)
    arm.describe(path.read_text())
    arm.spin_until(lambda: arm.node.robot.model_id == 2)
    # The joints have the same names, but nothing is said before a whole state has come.
    names, q, v = shuffled(other)[0]
    assert arm.nothing_new(lambda: arm.send(names[:3], q[:3], v[:3]))
    got = arm.answer(names, q, v)
    assert got.model_id == 2
    assert got.mass == other.mass
    q = np.array(got.position)
    assert relative_error(got.gravity_torques, rbd_ros.gravity_torques(other, q)) < AGREEMENT


def test_fault_21_the_same_description_again_changes_nothing(arm, message):
    arm.answer(*message)
    robot = arm.node.robot
    arm.describe(ARM)
    arm.settle()
    assert arm.node.robot is robot


def test_fault_22_a_path_instead_of_a_urdf_gets_a_hint(arm):
    arm.describe('/opt/robots/arm.urdf')
    arm.settle()
    assert 'pass the text of the description, not its path' in arm.node.report.last_error


def test_fault_48_an_unknown_command_joint_is_named(harness):
    node = harness(None, command_joints=['shoulder_pan_joint', 'finger'])
    node.describe(ARM)
    node.settle()
    assert "command_joints names 'finger'" in node.node.report.last_error
    assert node.node.robot is None


def test_parameters_choose_joints_gravity_and_factorization(harness, model):
    order = list(model.velocity_names[::-2])
    node = harness(command_joints=order, gravity=[0.0, 0.0, 9.81], coriolis_factorization='body')
    message, q, v = shuffled(model)
    got, g = node.answer(*message), -rbd_ros.gravity_torques(model, q)
    assert np.allclose(got.gravity_torques, g)
    expected = rbd_ros.coriolis_matrix(model, q, v, factorization='body')
    assert relative_error(np.reshape(got.coriolis_matrix, (6, 6)), expected) < AGREEMENT
    got = node.answer(*message, topic='~/effort_commands')
    assert np.allclose(got.data, [g[model.velocity_names.index(name)] for name in order])


def test_publish_rate_limits_the_outputs_to_the_latest_states(harness, model):
    node = harness(publish_rate=20.0)
    for seed in range(20):
        message, q, _ = shuffled(model, seed)
        node.send(*message)
    node.spin_until(lambda: node.heard['~/dynamics']
                    and list(node.heard['~/dynamics'][-1].position) == list(q))
    assert len(node.heard['~/dynamics']) < 20
    # A state is answered once.
    assert node.nothing_new(lambda: None)


def test_outputs_flow_only_while_the_node_is_active(arm, message):
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
        arm, message, monkeypatch):
    arm.answer(*message)
    with monkeypatch.context() as patch:
        patch.setattr(arm.node.robot.workspace, 'all_terms', lambda *_, **__: 1 / 0)
        assert arm.nothing_new(lambda: arm.send(*message))
    assert 'division by zero' in arm.node.report.last_error
    assert 'division by zero' in arm.diagnosis()[2]['last error']
    arm.answer(*message)
