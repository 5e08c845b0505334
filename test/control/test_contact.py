# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Contact: thresholds that are learnt, hysteresis, and the wrench at a link."""

from dataclasses import replace
from functools import cache

from control_robots import bare_arm, LINK, POSE
from covering import covering
from hypothesis import strategies as st
from hypothesis.stateful import initialize, invariant, rule, RuleBasedStateMachine
from machines import run_machine
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.control import ContactDetector, external_wrench, with_contact_calibration
from rbd_ros.identification import Recording
from rbd_ros.model.constraints import attach
from robots import example_urdf, load_quietly

PERIOD = 0.01
# s, whose multiples are exact
TICK = 2.0 ** -7
FREE = np.array([1.0, 2.0, 1.0, 0.5, 0.5, 0.2, 0.0])
LEAST = 0.1


def calibrated(**options):
    """Return a detector that has seen free motion for a second, and the time of its end."""
    detector = ContactDetector(bare_arm(), calibration_time=1.0, margin=2.0, least=LEAST,
                               **options)
    for k in range(110):
        assert not detector.update(PERIOD * k, FREE * np.sin(0.3 * k))
    return detector, 1.1


def test_contact_begins_beyond_the_threshold_and_ends_well_below_it():
    detector, t = calibrated(release=0.5, hold=0.05)
    torque = np.zeros(7)
    for size, contact in ((1.9, False), (2.1, True), (1.9, True), (1.1, True)):
        torque[0] = -size
        for _ in range(20):
            t += PERIOD
            assert detector.update(t, torque) == contact
    torque[0] = -0.9
    answers = []
    for _ in range(10):
        t += PERIOD
        answers.append(detector.update(t, torque))
    assert answers == [True] * 4 + [False] * 6    # after five hundredths of a second


def test_a_touch_in_between_holds_the_contact():
    detector, t = calibrated(hold=0.05)
    torque = np.zeros(7)
    for k in range(40):
        t += PERIOD
        torque[1] = 5.0 if k % 5 == 0 else 0.0
        assert detector.update(t, torque)


def test_a_torque_between_release_and_threshold_restarts_the_hold_time():
    detector, t = calibrated(release=0.5, hold=0.045)
    torque = np.zeros(7)
    answers = []
    for size in (2.5, 0.0, 0.0, 0.0, 1.5, 0.0, 0.0, 0.0, 0.0, 0.0):
        t += PERIOD
        torque[0] = size
        answers.append(detector.update(t, torque))
    assert answers == [True] * 9 + [False]


def test_long_gaps_between_samples_reset_the_calibration_of_contact():
    detector = ContactDetector(bare_arm(), calibration_time=1.0, longest_gap=0.1)
    for k in range(100):
        detector.update(5.0 * k, FREE)
    assert detector.threshold is None
    for k in range(13):
        detector.update(1000.0 + 0.09 * k, FREE)
    assert detector.threshold is not None
    detector.calibrate()
    assert detector.threshold is None and not detector.contact


# Noise of the torques, N m, by joint; gain of the observer, 1/s; a torque that the model lacks,
# N m, and its frequency, rad/s.
NOISE, GAIN = np.array([2.0, 4.0, 1.0, 1.0, 0.5, 0.2, 0.1]), 25.0
LACKING, OMEGA = np.array([1.0, -2.0, 0.5, 3.0, 0.0, 0.4, 1.0]), 20.0


def known_arm():
    """Return an arm without friction, and with a known noise."""
    arm = bare_arm()
    # White noise behind an observer is as large as behind a filter at a quarter of its gain in Hz.
    bandwidth = np.array([0.25 * 25.0, 100.0])
    return attach(arm, rbd_ros.model.Uncertainty(
        arm.velocity_names, (), np.zeros((0, 0)), np.zeros((7, 1)),
        np.array([NOISE[:, None], 9.0 * NOISE[:, None]]), np.zeros(7), bandwidth))


@cache
def motion():
    """Return times, q, v, and efforts that the model does not explain."""
    arm = known_arm()
    t, q, v, a = measured.swing(arm, np.random.default_rng(4), 4.0, 500.0, 0.5)
    return t, q, v, batch.inverse_dynamics(arm, q, v, a) - np.sin(OMEGA * t)[:, None] * LACKING


def recorded(change=lambda t, tau: tau, keep=lambda t: t >= 0.0, velocity=True):
    """Return a recording of the motion, whose efforts and rows may be changed."""
    t, q, v, tau = motion()
    rows = keep(t)
    return Recording('quiet', known_arm().velocity_names, t[rows], q[rows],
                     v[rows] if velocity else None, change(t, tau)[rows])


def calibrated_by(recordings, **options):
    """Return the largest external torques of some recordings, in deviations."""
    return with_contact_calibration(known_arm(), recordings, **options).uncertainty.external


# What a first-order filter leaves of a sine, in deviations.
EXPECTED = np.abs(LACKING) / NOISE / np.hypot(1.0, OMEGA / GAIN)


@pytest.mark.parametrize('gain, velocity', covering(
    [(GAIN, True), (GAIN, False), (10.0, True), (10.0, False)], (GAIN, True), (10.0, False)))
def test_a_recording_without_contact_calibrates_the_observer_to_model_errors(gain, velocity):
    arm = known_arm()
    found = with_contact_calibration(arm, recorded(velocity=velocity), gain=gain)
    expected = np.abs(LACKING) / NOISE / np.hypot(1.0, OMEGA / gain)
    assert np.allclose(found.uncertainty.external, expected, rtol=0.02, atol=0.02)
    assert np.array_equal(found.uncertainty.noise, arm.uncertainty.noise)


def test_wrapped_positions_without_velocities_are_no_external_torques():
    # The first axis is vertical, so that torques are the same half a turn further.
    one = recorded(velocity=False)
    pan = np.array(one.position)
    pan[:, 0] = np.remainder(pan[:, 0] + 2.0 * np.pi, 2.0 * np.pi) - np.pi
    assert np.ptp(pan[:, 0]) > 6.2
    assert np.allclose(calibrated_by(replace(one, position=pan)), calibrated_by(one), rtol=1e-6)


def test_thresholds_are_the_largest_of_several_recordings_for_each_joint():
    def more(joint):
        return recorded(lambda t, tau: tau - np.sin(OMEGA * t)[:, None] * LACKING
                        * (np.arange(7) == joint))
    found = calibrated_by((more(0), more(3)))
    assert np.allclose(found, EXPECTED * [2, 1, 1, 2, 1, 1, 1], rtol=0.02, atol=0.02)


@pytest.mark.parametrize('offset', [3.0, -3.0])
def test_external_torques_of_both_signs_count(offset):
    found = calibrated_by(recorded(lambda t, tau: tau + offset))
    assert np.allclose(found, 3.0 / NOISE + EXPECTED, rtol=0.02)


@pytest.mark.parametrize('begin', [0.0, 2.1])
def test_calibration_ignores_the_time_in_which_the_observer_settles(begin):
    # A pulse of 20 ms, that four time constants after its begin has decayed since its end.
    def stepped(t, tau):
        return tau - 200.0 * ((t >= begin) & (t < begin + 0.02))[:, None]

    def gap(t):
        return (t < begin - 0.3) | (t >= begin)
    found = calibrated_by(recorded(stepped, gap))
    left = 200.0 / NOISE * -np.expm1(-GAIN * 0.02) * np.exp(-4.0 + GAIN * 0.02)
    assert np.all(found <= EXPECTED + left)
    # It counts from then on.
    assert np.all(found >= 0.9 * left - EXPECTED)


def test_a_calibration_needs_an_identified_robot_and_efforts():
    with pytest.raises(rbd_ros.ModelError, match='has no uncertainty: identify it'):
        with_contact_calibration(bare_arm(), recorded())
    for effort in (None, np.full((2000, 7), np.nan)):
        with pytest.raises(rbd_ros.RecordingError, match='quiet: external torques need the eff'):
            calibrated_by(replace(recorded(), effort=effort))
    assert np.array_equal(calibrated_by(()), np.zeros(7))


class ContactMachine(RuleBasedStateMachine):
    """
    Drive the detector beside a history of all samples, from which the answer is found anew.

    Calibrated, and only then: contact if and only if some joint was beyond its threshold, and
    since then never all joints were below their release for as long as the hold.

    """

    @initialize()
    def begin(self):
        """Begin uncalibrated."""
        self.detector = ContactDetector(bare_arm(), calibration_time=6 * TICK, margin=1.5,
                                        least=LEAST, release=0.6, hold=3 * TICK,
                                        longest_gap=10 * TICK)
        self.t, self.learnt, self.past = 0.0, None, []

    def sample(self, step, torque):
        """Take a sample."""
        self.t += step
        was = self.detector.threshold
        assert self.detector.update(self.t, torque) == self.detector.contact
        if was is not None:
            counted = step if 0.0 < step <= 10 * TICK else 0.0
            self.past.append((counted, np.abs(torque)))

    @rule(step=st.sampled_from([-64, 0, 1, 2, 10, 400]), joint=st.integers(0, 6),
          size=st.sampled_from([0.0, 0.05, 0.5, 0.8, 1.4, 1.6, 3.0]), count=st.integers(1, 4))
    def push(self, step, joint, size, count):
        """Push one joint."""
        for _ in range(count):
            torque = np.zeros(7)
            torque[joint] = size * max(FREE[joint], LEAST)
            self.sample(step * TICK, -torque)

    @rule()
    def calibrate(self):
        """Begin anew, and move freely."""
        self.detector.calibrate()
        self.past = []
        for _ in range(7):
            assert not self.detector.contact
            self.sample(TICK, FREE)
        assert np.allclose(self.detector.threshold, np.maximum(1.5 * FREE, LEAST))

    @rule()
    def refuse(self):
        """Refuse a sample that is none."""
        with pytest.raises(rbd_ros.StateError):
            self.detector.update(self.t + 0.01, np.full(7, np.nan))

    @invariant()
    def contact_is_what_the_past_says(self):
        """Find the answer from all samples."""
        if not hasattr(self, 'detector'):
            return
        threshold = self.detector.threshold
        if threshold is None:
            assert not self.detector.contact
            return
        beyond = [k for k, (_, size) in enumerate(self.past) if np.any(size > threshold)]
        contact = bool(beyond)
        quiet = 0.0
        for counted, size in self.past[beyond[-1] + 1:] if beyond else []:
            low = np.all(size <= 0.6 * threshold)
            quiet = quiet + counted if low else 0.0
            if low and quiet >= 3 * TICK:
                contact = False
        assert self.detector.contact == contact


@pytest.mark.parametrize('runs', covering([15, 80], 15))
def test_contact_detector_keeps_its_invariant(runs):
    run_machine(ContactMachine, runs, 40)


# -- The wrench at a link, from external torques. -------------------------------------------------
WRENCH = np.array([1.0, -2.0, 0.5, 10.0, 20.0, -30.0])
EXACT = 1e-9


@pytest.mark.parametrize('frame, jacobian', [
    ('body', rbd_ros.body_jacobian), ('world-aligned', rbd_ros.world_jacobian)])
def test_a_wrench_is_found_from_its_torques(frame, jacobian):
    arm = bare_arm()
    tau = jacobian(arm, POSE, LINK).T @ WRENCH
    assert np.allclose(external_wrench(arm, POSE, tau, LINK, frame=frame), WRENCH, atol=EXACT)


def test_torques_that_no_wrench_causes_are_ignored():
    arm = bare_arm()
    J = rbd_ros.world_jacobian(arm, POSE, LINK)
    aside = np.linalg.svd(J)[2][-1]               # seven joints: J^T f is in six dimensions
    found = external_wrench(arm, POSE, J.T @ WRENCH + 5.0 * aside, LINK)
    assert np.allclose(found, WRENCH, atol=EXACT)


def test_near_singular_poses_only_the_observable_part_of_a_wrench_is_estimated():
    arm = load_quietly(example_urdf('ur5_robot.urdf'))
    sizes = []
    for away in (0.3, 1e-2, 1e-4, 0.0):
        q = np.array([0.0, -0.5, away, 0.3, 1.0, 0.0])         # the elbow is stretched at 0
        J = rbd_ros.world_jacobian(arm, q, 'tool0')
        noise = 0.1 * np.linalg.svd(J)[2][-1]                  # of what moves the link the least
        found = external_wrench(arm, q, J.T @ WRENCH + noise, 'tool0')
        sizes.append(np.linalg.norm(found))
        # Its torques are never farther from what was given than none at all.
        assert np.linalg.norm(J.T @ found - J.T @ WRENCH - noise) < 0.2 * np.linalg.norm(
            J.T @ WRENCH)
    assert max(sizes) < 5.0 * np.linalg.norm(WRENCH)


def test_the_wrench_on_a_link_with_few_joints_reproduces_their_torques():
    arm = bare_arm()
    tau = np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = external_wrench(arm, POSE, tau, 'shoulder_pan_link')
    J = rbd_ros.world_jacobian(arm, POSE, 'shoulder_pan_link')
    assert np.allclose(J.T @ found, tau)
    assert np.array_equal(external_wrench(arm, POSE, tau, 'base_link'), np.zeros(6))


@pytest.mark.parametrize('options, message', [
    ({'tau_ext': np.zeros(3)}, 'tau_ext has'), ({'frame': 'tool'}, 'frame must be'),
    ({'condition_limit': 0.0}, 'condition_limit'), ({'q': np.full(7, np.nan)}, 'q of')])
def test_wrong_input_of_external_wrenches_is_refused_by_name(options, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        external_wrench(bare_arm(), **{'q': POSE, 'tau_ext': np.zeros(7), 'link': LINK, **options})
