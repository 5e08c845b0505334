# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Markers and services of the dynamics node; numbers are rows of doc/faults.md."""

from time import monotonic

from builtin_interfaces.msg import Time
from geometry_msgs.msg import WrenchStamped
from harness import SimulatedTime
import numpy as np
import pytest
from rbd_msgs.srv import (
    DynamicsTerms, ForwardDynamics, HybridDynamics, InverseDynamics, TorqueRegressor)
import rbd_ros
from rbd_ros.model.joints import quaternion_matrix
from rbd_ros.ros.messages.markers import Markers
from rclpy.serialization import deserialize_message
from robots import random_state, relative_error
from visualization_msgs.msg import Marker, MarkerArray

# Against Pinocchio: rounding is a hundredth of it.
AGREEMENT = 1e-9
pytestmark = pytest.mark.usefixtures('domain')


def state(model, seed=0):
    """Return names, positions and velocities in a random order, and the state itself."""
    q, v, _ = random_state(model, seed)
    order = np.random.default_rng(seed).permutation(model.nv)
    names = [model.velocity_names[k] for k in order]
    return (names, q[order], v[order]), q, v


def wrench(link, torque, force):
    """Return a message."""
    message = WrenchStamped()
    message.header.frame_id = link
    message.wrench.torque.x, message.wrench.torque.y, message.wrench.torque.z = torque
    message.wrench.force.x, message.wrench.force.y, message.wrench.force.z = force
    return message


@pytest.fixture
def markers():
    """Return a function that returns the list of the markers that a node publishes from now on."""
    subscriptions = []

    def subscribe(node):
        heard = []
        subscriptions.append((node.peer, node.peer.create_subscription(
            MarkerArray, '/dynamics/markers', heard.append, 10)))
        node.spin_until(lambda: node.node.publishing.publishers()[-1].get_subscription_count() > 0)
        return heard
    yield subscribe
    for peer, subscription in subscriptions:
        peer.destroy_subscription(subscription)


def test_markers_show_the_robot_thirty_times_a_second_at_most(harness, markers, model):
    node, (message, q, _) = harness(state_timeout=60.0), state(model)
    heard = markers(node)
    node.answer(*message)
    node.spin_until(lambda: len(heard) > 1)
    assert [marker.action for marker in heard[0].markers] == [Marker.DELETEALL]
    found = {(marker.ns, marker.id): marker for marker in heard[1].markers}
    assert len(found) == len(heard[1].markers)
    com = found['com', 0].pose.position
    assert np.allclose([com.x, com.y, com.z], rbd_ros.center_of_mass(model, q))
    assert any(space == 'gravity' for space, _ in found)
    count = len(heard)
    for _ in range(20):
        node.send(*message)
    node.settle()
    assert len(heard) - count < 20


def test_markers_show_inertias_in_the_frames_of_the_links(model):
    loaded = rbd_ros.with_payload(model, 'tool0', 2.0, com=(0.0, 0.0, 0.1))
    q = rbd_ros.neutral(loaded)
    _, *arrays = Markers(loaded, 'r1/').update(
        Time(), 'r1/base_link', rbd_ros.forward_kinematics(loaded, q),
        rbd_ros.all_terms(loaded, q, np.zeros(loaded.nv)))
    ellipsoids = {marker.id: marker for array in arrays
                  for marker in deserialize_message(array, MarkerArray).markers
                  if marker.ns == 'ellipsoids'}
    assert set(ellipsoids) == {k for k, link in enumerate(loaded.links) if link.mass > 0.0}
    for k, marker in ellipsoids.items():
        link, centre, turn = loaded.links[k], marker.pose.position, marker.pose.orientation
        # What broadcasts the frames knows of no load.
        assert marker.header.frame_id == 'r1/' + ('tool0' if link.is_load else link.name)
        assert marker.frame_locked
        assert np.allclose([centre.x, centre.y, centre.z], link.com, rtol=0.0, atol=1e-15)
        R = quaternion_matrix([turn.x, turn.y, turn.z, turn.w])
        a, b, c = 0.5 * np.array([marker.scale.x, marker.scale.y, marker.scale.z])
        # The inertia of an ellipsoid of even density with these semi-axes.
        moments = link.mass / 5.0 * np.array([b * b + c * c, a * a + c * c, a * a + b * b])
        assert np.allclose(R @ np.diag(moments) @ R.T, link.inertia, atol=2e-6)


def test_markers_show_the_wrenches_of_the_latest_request(arm, markers, model):
    heard, (message, q, _) = markers(arm), state(model)
    arm.answer(*message)
    got = arm.call(InverseDynamics, 'inverse_dynamics', acceleration=[0.0] * 6,
                   external_wrenches=[wrench('tool0', (0.0, 0.0, 0.0), (0.0, 3.0, 4.0))])
    assert got.success, got.message
    arm.settle()
    heard.clear()
    arm.answer(*message)
    found = {}

    def external_came():
        found.update({(marker.ns, marker.id): marker
                      for array in heard for marker in array.markers})
        return any(space == 'wrenches' for space, _ in found)
    arm.spin_until(external_came)
    poses = rbd_ros.forward_kinematics(model, q)
    tool = model.link_index('tool0')
    # Forces have odd numbers, moments even ones.
    arrow = found['wrenches', 2 * tool + 1]
    reach = [arrow.points[1].x - arrow.points[0].x, arrow.points[1].y - arrow.points[0].y,
             arrow.points[1].z - arrow.points[0].z]
    assert np.allclose(reach / np.linalg.norm(reach), poses[tool, :3, :3] @ [0.0, 0.6, 0.8])
    assert ('wrenches', 2 * tool) not in found
    # They are shown once, and RViz lets them fade.
    assert arrow.lifetime.sec > 0
    arm.settle()
    heard.clear()
    arm.answer(*message)
    arm.spin_until(lambda: heard)
    arm.settle()
    assert not [marker for array in heard for marker in array.markers
                if marker.ns == 'wrenches']


def test_services_answer_in_the_order_of_the_request(arm, model):
    q, v, a = random_state(model, 3)
    order = np.random.default_rng(3).permutation(6)
    names = [model.velocity_names[k] for k in order]
    push = {'tool0': np.arange(6.0)}
    external = [wrench('tool0', (0.0, 1.0, 2.0), (3.0, 4.0, 5.0))]
    common = {'joint_names': names, 'position': q[order].tolist(), 'velocity': v[order].tolist()}

    tau = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches=push)
    got = arm.call(InverseDynamics, 'inverse_dynamics', acceleration=a[order].tolist(),
                   external_wrenches=external, **common)
    assert got.success, got.message
    assert got.joint_names == names
    assert relative_error(got.effort, tau[order]) < AGREEMENT

    got = arm.call(ForwardDynamics, 'forward_dynamics', effort=tau[order].tolist(),
                   external_wrenches=external, **common)
    assert got.success, got.message
    assert relative_error(got.acceleration, a[order]) < AGREEMENT

    prescribed = np.array([True, False, True, True, False, False])
    got = arm.call(HybridDynamics, 'hybrid_dynamics', external_wrenches=external,
                   acceleration_prescribed=prescribed[order].tolist(),
                   acceleration=np.where(prescribed, a, np.nan)[order].tolist(),
                   effort=np.where(prescribed, np.nan, tau)[order].tolist(), **common)
    assert got.success, got.message
    assert relative_error(got.acceleration, a[order]) < AGREEMENT
    assert relative_error(got.effort, tau[order]) < AGREEMENT

    got = arm.call(DynamicsTerms, 'dynamics_terms', **common)
    assert got.success, got.message
    terms = rbd_ros.all_terms(model, q, v)
    assert got.dynamics.joint_names == list(model.velocity_names)
    assert relative_error(got.dynamics.mass_matrix, terms.M.ravel()) < AGREEMENT
    assert relative_error(got.dynamics.coriolis_matrix, terms.C.ravel()) < AGREEMENT


def test_terms_of_a_given_position_are_stamped_now_and_those_of_a_measured_one_with_its_stamp(
        harness):
    node = harness(use_sim_time=True, state_timeout=5.0)
    clock, names = SimulatedTime(node), node.node.robot.model.velocity_names
    clock.be(50.0)
    node.answer(names, [0.1] * 6, [0.0] * 6, stamp=(50, 0))
    clock.be(50.75)
    for given, stamp in ({}, (50, 0)), ({'velocity': [0.1] * 6}, (50, 0)), (
            {'position': [0.2] * 6}, (50, 750_000_000)):
        got = node.call(DynamicsTerms, 'dynamics_terms', **given)
        assert got.success, got.message
        assert (got.dynamics.header.stamp.sec, got.dynamics.header.stamp.nanosec) == stamp
        assert list(got.dynamics.position) == given.get('position', [0.1] * 6)


def test_fault_40_services_report_missing_descriptions_and_states(harness):
    got = harness(None).call(DynamicsTerms, 'dynamics_terms')
    assert (got.success, got.message) == (False, 'no robot description has arrived yet')


def test_fault_41_bad_requests_are_refused_with_the_reason(arm, model):
    arm.answer(*state(model)[0])
    for request, message in (
            ({'acceleration': [0.0] * 5}, 'acceleration has 5 entries, expected 6'),
            ({'acceleration': [np.nan] * 6}, "acceleration of 'shoulder_pan_joint' is nan"),
            ({'position': [0.0] * 7}, 'position has 7 entries'),
            ({'position': [np.inf] * 6}, "position of 'shoulder_pan_joint' is inf"),
            ({'velocity': [0.0] * 5 + [np.nan]}, "velocity of 'wrist_3_joint' is nan"),
            ({'velocity': [0.0]}, 'velocity has 1 entries'),
            ({'joint_names': ['a'] * 6}, "no joint 'a'"),
            ({'joint_names': ['elbow_joint'] * 6}, 'name every joint once'),
            ({'joint_names': ['elbow_joint']}, 'name every joint once'),
            ({'external_wrenches': [wrench('hand', (0.0,) * 3, (0.0,) * 3)]}, "no link 'hand'"),
            ({'external_wrenches': [wrench('tool0', (0.0,) * 3, (np.nan,) * 3)]},
             "link 'tool0'")):
        got = arm.call(InverseDynamics, 'inverse_dynamics',
                       **{'acceleration': [0.0] * 6, **request})
        assert not got.success and message in got.message
    arm.answer(*state(model)[0])
    _, q, _ = state(model)
    names, rest = model.velocity_names, {'position': list(q), 'velocity': [0.0] * 6}
    got = arm.call(ForwardDynamics, 'forward_dynamics', effort=[np.nan] * 6, **rest)
    assert got.message == f"effort of '{names[0]}' is nan; it must be finite"
    got = arm.call(TorqueRegressor, 'torque_regressor', reference_velocity=[np.inf] * 6, **rest)
    assert got.message == f"reference_velocity of '{names[0]}' is inf; it must be finite"
    # Squares of these overflow.
    got = arm.call(InverseDynamics, 'inverse_dynamics', position=list(q), velocity=[1e200] * 6)
    assert 'not finite here: position = ' in got.message and ', velocity = ' in got.message


def test_fault_40_old_velocities_are_not_used_for_given_positions(harness, model):
    node, (message, q, _) = harness(state_timeout=0.3), state(model)
    node.answer(*message)
    end = monotonic() + 0.5
    node.spin_until(lambda: monotonic() > end)
    got = node.call(InverseDynamics, 'inverse_dynamics', position=q.tolist())
    assert not got.success
    assert 'gives no velocity, and there is no recent one of' in got.message
    # Nor is anything of a state that is that old.
    got = node.call(InverseDynamics, 'inverse_dynamics')
    assert not got.success
    assert 'gives no position, and there is no recent one of shoulder_pan_joint' in got.message
