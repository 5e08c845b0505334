# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""External torques, wrenches and contact, on the node in this process."""

from functools import partial

from geometry_msgs.msg import Inertia
from harness import at
import numpy as np
import pinocchio as pin
import pytest
from rbd_msgs.srv import SetPayload
import rbd_ros
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.ros.outputs import external_forces
from robots import example_urdf, load_quietly
from std_srvs.srv import Trigger
from visualization_msgs.msg import Marker, MarkerArray

pytestmark = pytest.mark.usefixtures('domain')

URDF = example_urdf('ur10_robot.urdf')
ARM, MODEL = URDF.read_text(), load_quietly(URDF)
NAMES = list(MODEL.velocity_names)
TOOL = 'tool0'
FORCES = '~/external_torques', '~/external_wrench', '~/contact'
RATE = 100.0
# Moment and force on the tool, in its axes.
PUSH = np.array([0.5, -1.0, 0.8, 10.0, -6.0, 8.0])
# Five time constants after a push, 0.7 % of it is missing; the rest is what steps of 10 ms leave.
FOUND = 0.02
# N m; what steps of 10 ms leave of the torques of a free motion.
SILENT = 0.3


@pytest.fixture
def harness(harness):
    """Return a function that makes a node; stamps run faster than its clock."""
    return partial(harness, topics=FORCES, state_timeout=60.0, check_stamps=False, task_link=TOOL)


class Motion:
    """A smooth motion of the arm that a push begins in, by Pinocchio."""

    def __init__(self, push_after=np.inf, speed=1.0):
        self._robot = pin.buildModelFromUrdf(str(URDF))
        self._data = self._robot.createData()
        self._frame = self._robot.getFrameId(TOOL)
        self._push_after, self._speed = push_after, speed
        self.start = at()[0]

    def state(self, t):
        """Return q, v, tau and the torques of the push."""
        omega = self._speed * np.array([1.0, 1.5, 0.8, 2.0, 1.4, 1.7])
        phase = np.array([0.4, -1.2, 1.3, 0.2, 0.9, 0.1])
        q = phase + 0.4 * np.sin(omega * t)
        v, a = 0.4 * omega * np.cos(omega * t), -0.4 * omega ** 2 * np.sin(omega * t)
        tau = pin.rnea(self._robot, self._data, q, v, a)
        J = pin.computeFrameJacobian(self._robot, self._data, q, self._frame)
        pushed = J.T @ np.roll(PUSH, 3) * (t >= self._push_after)
        return q, v, tau - pushed, pushed

    def play(self, node, begin, end, *, effort=True, velocity=True, without=None):
        """
        Send the states from one time to another; return the torques of the push at the end.

        The joint `without` has no effort.

        """
        pushed = np.zeros(6)
        order = np.random.default_rng(1).permutation(6)
        names = [NAMES[k] for k in order]
        counts = node.node.report.counts
        for t in np.arange(round(begin * RATE), round(end * RATE)) / RATE:
            q, v, tau, pushed = self.state(t)
            if without is not None:
                tau[without] = np.nan
            before = counts['joint states']
            node.send(names, q[order], v[order] if velocity else (),
                      tau[order] if effort else (),
                      stamp=(self.start + int(t), round(1e9 * (t % 1.0))))
            node.spin_until(lambda: counts['joint states'] != before)       # noqa: B023
        node.settle()
        return pushed


def wrench_of(message):
    """Return moment and force."""
    parts = message.wrench.torque, message.wrench.force
    return np.array([getattr(part, axis) for part in parts for axis in 'xyz'])


def test_the_wrench_on_a_moving_tool_is_estimated(harness):
    node, motion = harness(), Motion(push_after=1.0)
    motion.play(node, 0.0, 1.0)
    assert np.max(np.abs(node.heard['~/external_torques'][-1].effort)) < SILENT
    pushed = motion.play(node, 1.0, 1.25)
    torques = node.heard['~/external_torques'][-1]
    assert list(torques.name) == NAMES
    size = np.max(np.abs(pushed))
    # It lags behind a push that changes as the arm moves, by a time constant.
    assert np.max(np.abs(np.array(torques.effort) - pushed)) < 3 * FOUND * size
    message = node.heard['~/external_wrench'][-1]
    assert message.header.frame_id == TOOL
    assert message.header.stamp == torques.header.stamp
    assert np.max(np.abs(wrench_of(message) - PUSH)) < 5 * FOUND * np.max(np.abs(PUSH))


@pytest.mark.parametrize('velocity', [True, False], ids=['measured', 'differentiated'])
def test_external_torques_of_a_robot_at_rest_are_right_within_two_percent(harness, velocity):
    node, motion = harness(missing_velocity='differentiate'), Motion(push_after=0.5, speed=0.0)
    pushed = motion.play(node, 0.0, 0.71, velocity=velocity)
    got = np.array(node.heard['~/external_torques'][-1].effort)
    assert np.max(np.abs(got - pushed)) < FOUND * np.max(np.abs(pushed))
    got = wrench_of(node.heard['~/external_wrench'][-1])
    assert np.max(np.abs(got - PUSH)) < FOUND * np.max(np.abs(PUSH))


def test_each_joint_has_its_own_gain(harness):
    gain = np.array([5.0, 10.0, 20.0, 40.0, 30.0, 15.0])
    node = harness(observer_joints=NAMES[::-1], observer_gain=gain[::-1].tolist())
    motion = Motion(push_after=1.0, speed=0.0)
    motion.play(node, 0.0, 1.0)
    pushed = motion.play(node, 1.0, 1.1)
    share = np.array(node.heard['~/external_torques'][-1].effort) / pushed
    # The last state is 0.09 s after the first one with the push, which counts half.
    assert np.allclose(share, -np.expm1(-0.095 * gain), atol=0.02)


@pytest.mark.parametrize('lost, why', [
    ({'effort': False}, 'joint states have no efforts of shoulder_pan_joint'),
    ({'velocity': False}, 'velocities are not measured: shoulder_pan_joint')])
def test_without_efforts_or_velocities_external_torques_are_withheld_with_the_reason(
        harness, lost, why):
    node, motion = harness(missing_velocity='zero'), Motion(speed=0.0)
    motion.play(node, 0.0, 0.3)
    count = len(node.heard['~/external_torques'])
    assert count
    motion.play(node, 0.3, 0.58, **lost)
    assert len(node.heard['~/external_torques']) == count
    assert node.diagnosis()[2]['external torques'].startswith(why)


def test_a_joint_without_efforts_takes_no_estimate_from_the_others(harness):
    node, motion = harness(missing_velocity='zero'), Motion(push_after=0.5, speed=0.0)
    lost = NAMES.index('wrist_3_joint')
    motion.play(node, 0.0, 0.5, without=lost)
    pushed = motion.play(node, 0.5, 0.75, without=lost)
    message = node.heard['~/external_torques'][-1]
    assert list(message.name) == NAMES
    others = np.arange(6) != lost
    assert np.isnan(message.effort[lost])
    assert np.allclose(np.array(message.effort)[others], pushed[others],
                       atol=FOUND * np.max(np.abs(pushed)))
    # The wrench on the tool needs all joints that move it.
    assert not node.heard['~/external_wrench']
    assert node.diagnosis()[2]['external torques'] == (
        'observed; joint states have no efforts of wrist_3_joint')


def test_the_wrench_on_a_link_does_not_need_efforts_of_joints_beyond_it(harness):
    node, motion = harness(task_link='forearm_link'), Motion(speed=0.0)
    motion.play(node, 0.0, 0.3, without=NAMES.index('wrist_3_joint'))
    assert np.max(np.abs(wrench_of(node.heard['~/external_wrench'][-1]))) < SILENT


def test_contact_is_calibrated_and_found_by_the_joints_with_efforts(harness):
    node, motion = harness(contact_calibration_time=0.2), Motion(push_after=0.6, speed=0.0)
    assert node.call(Trigger, 'calibrate_contact').success
    motion.play(node, 0.0, 0.5, without=0)
    assert not node.heard['~/contact'][-1].contact
    motion.play(node, 0.5, 0.8, without=0)
    message = node.heard['~/contact'][-1]
    assert message.contact
    assert message.thresholds[0] > 1e11


def test_the_observer_restarts_after_a_change_of_the_robot_and_a_jump_of_time(harness):
    node, motion = harness(), Motion(speed=0.0)
    motion.play(node, 0.0, 0.3)

    def begins_again(begin):
        count = len(node.heard['~/external_torques'])
        assert count
        motion.play(node, begin, begin + 0.1)
        assert len(node.heard['~/external_torques']) == count
        assert node.diagnosis()[2]['external torques'] != 'observed'
        motion.play(node, begin + 0.1, begin + 0.3)
        assert len(node.heard['~/external_torques']) > count
    assert node.call(SetPayload, 'set_payload', link=TOOL, inertia=Inertia(m=1.0)).success
    begins_again(0.3)
    # The load is not there: the tool is pushed up.
    force = wrench_of(node.heard['~/external_wrench'][-1])[3:]
    assert np.linalg.norm(force) == pytest.approx(9.81, rel=FOUND)
    node.node._on_jump('a test')
    begins_again(0.6)


def arrows_of(message, space):
    """Return the way of each arrow in a namespace, m."""
    return np.array([[getattr(marker.points[1], axis) - getattr(marker.points[0], axis)
                      for axis in 'xyz'] for marker in message.markers if marker.ns == space])


def test_markers_show_external_and_coriolis_torques_only_while_they_are_known(harness):
    node = harness(topics=(*FORCES, '~/gravity_torques', '~/coriolis_torques'))
    motion, heard = Motion(push_after=0.5), []
    node.peer.create_subscription(MarkerArray, '/dynamics/markers', heard.append, 100)
    node.spin_until(lambda: node.node.count_subscribers('/dynamics/markers') == 1)
    motion.play(node, 0.0, 1.0)
    message = [one for one in heard if any(marker.ns == 'com' for marker in one.markers)][-1]
    stamp = message.markers[0].header.stamp
    _, _, _, pushed = motion.state(stamp.sec - motion.start + 1e-9 * stamp.nanosec)
    g, Cv = (np.abs(next(one.effort for one in node.heard[topic] if one.header.stamp == stamp))
             for topic in ('~/gravity_torques', '~/coriolis_torques'))
    external, coriolis, gravity = (
        np.linalg.norm(arrows_of(message, space), axis=1)
        for space in ('external_torques', 'coriolis', 'gravity'))
    # To one scale: that of the largest gravity torque, which is by far the largest of all.
    unit = np.max(gravity) / np.max(g)
    assert np.allclose(gravity, unit * g) and np.allclose(coriolis, unit * Cv)
    assert np.max(np.abs(external - unit * np.abs(pushed))) < 0.1 * unit * np.max(np.abs(pushed))
    heard.clear()
    motion.play(node, 1.0, 1.2, velocity=False)
    shown = {marker.ns for one in heard for marker in one.markers}
    assert {'com', 'gravity'} <= shown and not {'coriolis', 'external_torques'} & shown
    assert any(marker.action == Marker.DELETEALL for one in heard for marker in one.markers)


def test_without_a_task_link_there_are_torques_but_no_wrench(harness, capfd):
    node, motion = harness(task_link=''), Motion(speed=0.0)
    motion.play(node, 0.0, 0.3)
    assert node.heard['~/external_torques']
    assert not node.heard['~/external_wrench']
    assert '~/external_wrench is withheld: the parameter task_link is not set' in (
        capfd.readouterr().err)


# -- Contact. -------------------------------------------------------------------------------------

def test_fault_82_contact_is_withheld_until_calibrated_and_then_detects_a_push(harness, capfd):
    node, motion = harness(contact_calibration_time=1.0, contact_margin=3.0), Motion(1.8)
    motion.play(node, 0.0, 0.3)
    assert not node.heard['~/contact']
    assert 'call ~/calibrate_contact' in capfd.readouterr().err
    assert node.call(Trigger, 'calibrate_contact').success
    motion.play(node, 0.3, 1.0)
    assert not node.heard['~/contact']
    left = float(node.diagnosis()[2]['contact calibration left, s'])
    assert 0.2 < left < 0.6
    motion.play(node, 1.0, 1.8)
    assert not any(message.contact for message in node.heard['~/contact'])
    log = capfd.readouterr().err
    assert f"observer_joints: [{', '.join(NAMES)}] and contact_threshold: [" in log
    free = node.heard['~/contact'][-1]
    motion.play(node, 1.8, 2.0)
    touched = node.heard['~/contact'][-1]
    assert touched.contact and list(touched.joint_names) == NAMES
    assert np.array_equal(touched.thresholds, free.thresholds)
    assert np.any(np.abs(touched.external_torques) > touched.thresholds)
    assert node.diagnosis()[2]['contact'] == '1'


def test_contact_ends_well_below_the_threshold_that_was_given(harness):
    node = harness(contact_threshold=[3.0], contact_release=0.4)
    motion = Motion(push_after=0.3, speed=0.0)
    motion.play(node, 0.0, 0.5)
    assert node.heard['~/contact'][-1].contact
    assert np.all(np.array(node.heard['~/contact'][-1].thresholds) == 3.0)
    motion._push_after = np.inf
    motion.play(node, 0.5, 1.0)
    ended = [k for k, message in enumerate(node.heard['~/contact']) if message.contact][-1] + 1
    largest = [np.max(np.abs(message.external_torques)) for message in node.heard['~/contact']]
    assert not node.heard['~/contact'][-1].contact
    assert largest[ended] <= 0.4 * 3.0


def test_thresholds_survive_a_change_of_payload_but_not_of_description(harness):
    node, motion = harness(contact_calibration_time=0.2), Motion(speed=0.0)
    assert node.call(Trigger, 'calibrate_contact').success
    motion.play(node, 0.0, 0.6)
    thresholds = node.heard['~/contact'][-1].thresholds
    assert node.call(SetPayload, 'set_payload', link=TOOL, inertia=Inertia(m=0.001)).success
    count = len(node.heard['~/contact'])
    motion.play(node, 0.6, 1.0)
    assert len(node.heard['~/contact']) > count
    assert node.heard['~/contact'][-1].thresholds == thresholds
    node.describe(ARM.replace('name="ur10"', 'name="other"'))
    node.spin_until(lambda: node.node.robot.model.name == 'other')
    count = len(node.heard['~/contact'])
    motion.play(node, 1.0, 1.5)
    assert len(node.heard['~/contact']) == count


def test_a_calibration_without_a_robot_is_refused(harness):
    got = harness(None).call(Trigger, 'calibrate_contact')
    assert not got.success
    assert got.message == 'no robot description has arrived yet'


@pytest.mark.parametrize('parameters, message', [
    ({'observer_gain': [1.0, 2.0]}, 'observer_gain has 2 entries, observer_joints has 0'),
    ({'observer_gain': [0.0]}, 'observer_gain must be positive numbers, 1/s'),
    ({'observer_joints': ['elbow_joint'], 'observer_gain': [1.0]},
     'observer_joints must name every joint; missing: shoulder_lift_joint'),
    ({'observer_joints': ['elbow']}, "parameter observer_joints names 'elbow'"),
    ({'contact_threshold': [-1.0]}, 'contact_threshold must be positive numbers, N m or N')])
def test_parameters_that_do_not_fit_are_refused_by_name(harness, parameters, message):
    node = harness(None, **parameters)
    if node.node.configured:
        node.describe(ARM)
        node.settle()
    assert message in node.node.report.last_error


def uncertainty(noise, external=(0.0,) * 6):
    """Return parameters of an uncertainty with a noise that grows with the speed, N m."""
    return {f'uncertainty.{label}': value for label, value in {
        'joints': NAMES, 'parameters': ['wrist_3_link/m'], 'factor': [0.0],
        'speed': [0.0, 1.0] * 6, 'noise': [noise, 2.0 * noise] * 6,
        'external': [*external],
        'inertial': rbd_ros.model.inertial_parameters(MODEL).tolist()}.items()}


def test_thresholds_by_deviation_need_no_calibration_and_grow_with_the_speed(harness, capfd):
    node = harness(contact_thresholds='deviation', **uncertainty(0.2))
    motion = Motion(0.6)
    motion.play(node, 0.0, 0.6)
    quiet = node.heard['~/contact']
    assert quiet and not any(message.contact for message in quiet)
    assert 'contact_thresholds is deviation' not in capfd.readouterr().err
    v = motion.state(0.59)[1]
    # Without dry friction, six deviations.
    assert np.allclose(quiet[-1].thresholds, 6.0 * 0.2 * (1.0 + np.minimum(np.abs(v), 1.0)))
    motion.play(node, 0.6, 0.8)
    assert node.heard['~/contact'][-1].contact
    facts = node.diagnosis()[2]
    q = motion.state(0.79)[0]
    J = np.abs(rbd_ros.world_jacobian(MODEL, q, TOOL)[3:])
    for row, axis in zip(J, 'xyz'):
        expected = np.min(np.array(node.heard['~/contact'][-1].thresholds) / row)
        assert np.isclose(float(facts[f'detectable force {axis}, N']), expected, rtol=1e-3)


def test_deviations_that_are_a_contact_exceed_those_without_contact(harness):
    # 2.9 and 3.1 deviations, or 1.5 times that: six at least.
    external = np.array([0.0, 2.9, 3.1, 4.5, 6.0, 10.0])
    for margin, expected in ((2.0, [6.0, 6.0, 6.2, 9.0, 12.0, 20.0]),
                             (1.5, [6.0, 6.0, 6.0, 6.75, 9.0, 15.0])):
        node = harness(contact_thresholds='deviation', contact_margin=margin,
                       **uncertainty(0.2, external))
        motion = Motion()
        motion.play(node, 0.0, 0.4)
        v = motion.state(0.39)[1]
        assert np.allclose(node.heard['~/contact'][-1].thresholds,
                           0.2 * (1.0 + np.minimum(np.abs(v), 1.0)) * expected)


def test_deviations_that_are_a_contact_are_raised_by_calibration(harness):
    node = harness(contact_thresholds='deviation', contact_calibration_time=0.5,
                   **uncertainty(1e-9))
    motion = Motion(1.4)
    motion.play(node, 0.0, 0.4)
    # What steps of 10 ms leave is far more than six deviations of so small a noise.
    assert node.heard['~/contact'][-1].contact
    assert node.call(Trigger, 'calibrate_contact').success
    motion.play(node, 0.4, 1.0)
    before = len(node.heard['~/contact'])
    motion.play(node, 1.0, 1.4)
    assert not any(message.contact for message in node.heard['~/contact'][before:])
    motion.play(node, 1.4, 1.6)
    assert node.heard['~/contact'][-1].contact


def test_contact_waits_for_the_kernels_of_deviations(harness, monkeypatch):
    def not_ready(*_):
        raise KernelNotReady(lambda: False)
    monkeypatch.setattr(external_forces, 'contact_deviation', not_ready)
    node = harness(contact_thresholds='deviation', **uncertainty(0.2))
    motion = Motion()
    motion.play(node, 0.0, 0.4)
    assert not node.heard['~/contact'] and not node.node.report.counts['errors']
    monkeypatch.undo()
    motion.play(node, 0.4, 0.5)
    assert node.heard['~/contact'] and not node.node.report.counts['errors']


def test_fault_81_thresholds_by_deviation_need_an_identified_robot(harness, capfd):
    node = harness(contact_thresholds='deviation', contact_threshold=[3.0])
    Motion().play(node, 0.0, 0.4)
    assert not node.heard['~/contact']
    assert 'but the robot has no uncertainty' in capfd.readouterr().err
    refused = node.call(Trigger, 'calibrate_contact')
    assert not refused.success and 'has no uncertainty' in refused.message
