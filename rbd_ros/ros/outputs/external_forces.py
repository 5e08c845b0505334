# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
External torques, the wrench that explains them, and contact, from the measured efforts.

Invariant, after any sequence of calls:

1. Estimates come only from an observer of the current robot that, since its last reset, has
   received complete, strictly increasing states with velocities and with efforts of the same
   joints, at most `LONGEST_GAP` apart. States that are late by no more than that are ignored.
   Joints without efforts have no estimate (NaN) and no contact; the others do not depend on them.
2. Estimates are published only after `SETTLED` time constants of such states, and only for the
   state that was observed last.
3. There is a contact only by thresholds that were given, or found by a requested and completed
   calibration of a robot with the same description.

The observer receives states only while a topic has subscribers, or during a calibration.

"""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from rbd_ros._internal.cdr import Stamp
from rbd_ros._internal.setting import Setting
from rbd_ros._internal.text import listed
from rbd_ros.control import ContactDetector, EffortConvention, external_wrench, MomentumObserver
from rbd_ros.control.contact import (
    contact_deviation, contact_deviations, detectable_forces, LEAST_DEVIATIONS, LONGEST_GAP,
    MARGIN, SETTLED)
from rbd_ros.control.momentum_observer import GAIN
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.kinematics import world_jacobian
from rbd_ros.ros import convert
from rbd_ros.ros.messages.topics import CONTACT, EXTERNAL_WRENCH
from rbd_ros.ros.outputs.terms import NO_TASK_LINK
from rbd_ros.ros.robot.read_model import driven_joints, per_velocity
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log
from rbd_ros.ros.services.background_services import BadRequest

MIN_THRESHOLD = 0.1    # N m or N, smallest threshold that a calibration finds
NOT_IDENTIFIED = ('contact_thresholds is deviation, but the robot has no uncertainty: identify it '
                  'with rbd_ros identify, and load the URDF and the parameter file that it writes')
SETTLING = 'the observer is settling'
NO_CONTACT = 1e12    # N m or N, threshold of a floating base: support by the ground is no contact


class ForceSettings(NamedTuple):
    """The parameters of the observer and of contact detection."""

    missing_velocity: str
    friction_dead_band: float
    effort_convention: EffortConvention
    observer_joints: tuple[str, ...]
    observer_gain: Annotated[tuple[float, ...], Setting(
        (GAIN,), 'Gain of the observer of external torques: the inverse of its time constant.',
        '1/s', per='observer_joints', condition='positive numbers')]
    contact_threshold: Annotated[tuple[float, ...], Setting(
        (), 'External torques beyond which there is contact; also the smallest thresholds that a '
        'calibration sets. Empty: ~/contact needs ~/calibrate_contact.', 'N m or N',
        per='observer_joints', condition='positive numbers')]
    contact_thresholds: Annotated[str, Setting(
        'calibrated', 'Origin of the thresholds: contact_threshold or ~/calibrate_contact, or '
        'deviations of the torques of an identified robot at each state: at least six, and '
        'contact_margin times the largest external torque of the recordings it was identified '
        'from. ~/calibrate_contact replaces these multiples.',
        choices=('calibrated', 'deviation'))]
    contact_margin: Annotated[float, Setting(
        MARGIN, 'Ratio of the thresholds to the external torques of free motion.', '',
        1.0, 1000.0)]
    contact_release: Annotated[float, Setting(
        0.5, 'Share of the thresholds below which a contact ends.', '', 0.0, 1.0)]
    contact_calibration_time: Annotated[float, Setting(
        10.0, 'Duration of ~/calibrate_contact.', 's', 0.1, 600.0)]


def _no_efforts(robot: Robot, joints: np.ndarray) -> str:
    return ('joint states have no efforts of '
            + listed(np.array(robot.model.velocity_names)[joints]))


class ExternalForces(Part):
    """Observes external torques."""

    def __init__(self, settings: ForceSettings, clocks: Clocks, log: Log) -> None:
        self._settings, self._clocks, self._log = settings, clocks, log
        self.wanted = False
        self._is_current = False        # whether the latest state has been observed
        self._robot: Robot | None = None
        self._detector: ContactDetector | None = None
        self._torques = np.zeros(0)
        self._unmeasured = np.zeros(0, bool)    # joints without efforts
        self._contact = False
        self._scale = np.zeros(0)     # Units of the thresholds: N m and N, or deviations
        self._origin: int | None = None
        self._time: float | None = None
        # Why there are no estimates; empty: there are.
        self.why_not = ''
        self._start_again(SETTLING)

    def configure(self, settings: ForceSettings) -> None:
        before, self._settings = self._settings, settings
        if settings != before and self._robot is not None:
            self._make_observer(self._robot)

    def reset(self) -> None:
        """Discard all states: time jumped."""
        self._start_again('the observer begins again after a jump of time')

    def _start_again(self, why_not: str) -> None:
        if self._time is None and why_not == self.why_not:
            return          # nothing has been observed since then
        self._time = None
        self._observed = 0.0
        self._contact = False
        self.why_not = why_not
        if self._robot is not None:
            self._observer.reset()
        if self._detector is not None:
            self._detector.reset()

    def _take_over(self, robot: Robot) -> None:
        """Observe another robot; thresholds stay if only its payload or gravity has changed."""
        settings, before = self._settings, self._robot
        self._make_observer(robot)
        if before is None or before.text != robot.text:
            self._detector = None
            if self._by_deviation(robot):
                self._detector = self._make_detector(
                    robot, threshold=contact_deviations(robot.model, settings.contact_margin))
            elif settings.contact_threshold and settings.contact_thresholds == 'calibrated':
                self._detector = self._make_detector(
                    robot, threshold=self._torque_thresholds(robot, settings.contact_threshold))
        self._start_again('the observer begins again with another robot' if before
                          else SETTLING)

    def _make_detector(self, robot: Robot, **options: Any) -> ContactDetector:
        return ContactDetector(robot.model, release=self._settings.contact_release,
                               longest_gap=LONGEST_GAP, **options)

    def _torque_thresholds(self, robot: Robot, numbers: Sequence[float]) -> np.ndarray:
        return per_velocity(robot.model, numbers, self._settings.observer_joints, NO_CONTACT)

    def _by_deviation(self, robot: Robot) -> bool:
        """Return whether the detector counts deviations, rather than N m or N."""
        return (self._settings.contact_thresholds == 'deviation'
                and robot.model.uncertainty is not None)

    def _make_observer(self, robot: Robot) -> None:
        settings = self._settings
        gain = per_velocity(robot.model, settings.observer_gain, settings.observer_joints,
                            settings.observer_gain[0])
        self._robot, self._slowest = robot, float(np.min(gain))
        self._observer = MomentumObserver(
            robot.model, gain, smooth=settings.friction_dead_band,
            friction=settings.effort_convention.states_have_friction, longest_gap=LONGEST_GAP)
        self._start_again('the observer begins again with other parameters')

    def note(self, robot: Robot) -> None:
        """Take another complete state of the robot, if it is needed."""
        self._is_current = self.wanted or self.calibration_left() > 0.0
        if not self._is_current:
            return
        if robot is not self._robot:
            self._take_over(robot)
        v = robot.velocity('differentiate' if self._settings.missing_velocity == 'differentiate'
                           else 'withhold')
        if v is None:
            self._leave_out(robot, 'velocities are not measured: '
                            + listed(robot.states.missing_velocities()))
            return
        torques = robot.measured_torques(v)
        if robot.base_joint is not None:
            torques[:robot.base_joint.nv] = 0.0
        unmeasured = ~np.isfinite(torques)
        if unmeasured.all() or (self._time is not None
                                and not np.array_equal(unmeasured, self._unmeasured)):
            self._leave_out(robot, _no_efforts(robot, unmeasured) if unmeasured.any() else
                            'the observer begins again with the efforts of all joints')
            if unmeasured.all() or self._time is not None:
                return
        self._unmeasured, torques[unmeasured] = unmeasured, 0.0
        self._observe(robot, v, torques)

    def _leave_out(self, robot: Robot, why_not: str) -> None:
        """Leave out a state that lacks something; begin again if that lasts too long."""
        self._is_current = False
        if self._time is None or abs(self._seconds(robot.time_stamp) - self._time) > LONGEST_GAP:
            self._start_again(why_not)

    def _seconds(self, stamp: Stamp) -> float:
        """Return the time of a state, s, from an origin that keeps its nanoseconds significant."""
        if not (stamp.sec or stamp.nanosec):
            return self._clocks.age_time()
        if self._origin is None:
            self._origin = stamp.sec
        return stamp.sec - self._origin + 1e-9 * stamp.nanosec

    def _observe(self, robot: Robot, v: np.ndarray, torques: np.ndarray) -> None:
        t, q = self._seconds(robot.time_stamp), robot.states.q
        step = 0.0 if self._time is None else t - self._time
        if self._time is not None and -LONGEST_GAP <= step <= 0.0:
            return          # a message with other joints, or a late one
        if abs(step) > LONGEST_GAP:
            self._start_again('the observer begins again after a gap in the states')
            step = 0.0
        self._torques = self._observer.update(t, q, v, torques)
        self._torques[self._unmeasured] = np.nan
        self._time, self._observed = t, self._observed + step
        if self._observed * self._slowest < SETTLED:
            self.why_not = self.why_not or SETTLING
            return
        if self._detector is not None:
            was_calibrated = self._detector.threshold is not None
            # Raises KernelNotReady while its kernels are compiled.
            self._scale = (contact_deviation(robot.model, q, v) if self._by_deviation(robot)
                           else np.ones(len(v)))
            self._contact = self._detector.update(t, np.where(
                self._unmeasured, 0.0 if was_calibrated else NO_CONTACT,
                self._torques / self._scale))
            if not was_calibrated and self._detector.threshold is not None:
                self._log_thresholds(robot, self._detector.threshold)
        self.why_not = ''

    def calibrate(self, robot: Robot | None) -> float:
        """Start to calibrate contact thresholds; return the duration without contact, s."""
        if robot is None:
            raise BadRequest('no robot description has arrived yet')
        if robot is not self._robot:
            self._take_over(robot)
        settings = self._settings
        if settings.contact_thresholds == 'deviation' and not self._by_deviation(robot):
            raise BadRequest(NOT_IDENTIFIED)
        least = (np.full(robot.model.nv, LEAST_DEVIATIONS) if self._by_deviation(robot)
                 else self._torque_thresholds(
                     robot, settings.contact_threshold or (MIN_THRESHOLD,)))
        self._detector = self._make_detector(
            robot, calibration_time=settings.contact_calibration_time,
            margin=settings.contact_margin, least=least)
        return settings.contact_calibration_time

    def calibration_left(self) -> float:
        """Return the remaining time of the calibration, s; 0 if there is none."""
        return self._detector.calibration_left if self._detector is not None else 0.0

    def _log_thresholds(self, robot: Robot, thresholds: np.ndarray) -> None:
        joints = driven_joints(robot.model)
        if self._by_deviation(robot):
            self._log.warning('contact is calibrated until the node ends; deviations that are a '
                              'contact: ' + ', '.join(f'{name} {x:.3g}' for name, x in
                                                      zip(joints, thresholds)))
            return
        self._log.warning(
            'contact is calibrated; to keep it, set the parameters observer_joints: ['
            + ', '.join(joints) + '] and contact_threshold: ['
            + ', '.join(f'{x:.4g}' for x in thresholds[len(thresholds) - len(joints):]) + ']')

    def values(self, topic: str, robot: Robot, q: np.ndarray) -> dict[str, Any] | str:
        """Return the terms of a topic of external forces, or why there are none."""
        if topic == EXTERNAL_WRENCH and not robot.task_link:
            return NO_TASK_LINK
        by_deviation = self._settings.contact_thresholds == 'deviation'
        known = self._by_deviation(robot) if by_deviation else self._settings.contact_threshold
        if topic == CONTACT and self._detector is None and not known:
            if by_deviation:
                return NOT_IDENTIFIED
            return ('its thresholds are unknown: call ~/calibrate_contact while nothing touches '
                    'the robot, or set contact_threshold')
        if robot is not self._robot or self._time is None or self.why_not:
            return self.why_not or 'the observer begins again with another robot'
        if not self._is_current:
            return SETTLING
        values: dict[str, Any] = {'external_torques': self._torques}
        if topic == EXTERNAL_WRENCH:
            if self._unmeasured.any() and (unknown := self._unmeasured & world_jacobian(
                    robot.model, q, robot.task_link).any(axis=0)).any():
                return _no_efforts(robot, unknown)
            values['external_wrench'] = convert.linear_first(external_wrench(
                robot.model, q, np.where(self._unmeasured, 0.0, self._torques),
                robot.task_link, frame='body'))
        elif topic == CONTACT:
            if self._detector is None or self._detector.threshold is None:
                return 'it is being calibrated: let the robot move, and touch nothing'
            values.update(contact=self._contact, thresholds=self._detector.threshold * self._scale)
        return values

    def facts(self) -> dict[str, str]:
        if not (self.wanted or self.calibration_left()):
            return {'external torques': 'no subscribers'}
        if self.why_not or self._robot is None:
            return {'external torques': self.why_not}
        facts = {'external torques': 'observed'}
        if self._unmeasured.any():
            facts['external torques'] += f'; {_no_efforts(self._robot, self._unmeasured)}'
        if self._detector is not None:
            if self._detector.threshold is None:
                facts['contact calibration left, s'] = f'{self.calibration_left():.1f}'
            else:
                facts['contact'] = str(int(self._contact))
                facts |= self._detectable(self._robot, self._detector.threshold)
        return facts

    def _detectable(self, robot: Robot, thresholds: np.ndarray) -> dict[str, str]:
        """Return the smallest forces on the task link that are noticed, N, in the last state."""
        if not robot.task_link:
            return {}
        try:
            J = world_jacobian(robot.model, robot.states.q, robot.task_link)
        except KernelNotReady:
            return {}
        forces = detectable_forces(J[None], (thresholds * self._scale)[None])[0]
        return {f'detectable force {axis}, N': f'{x:.4g}' for axis, x in zip('xyz', forces)}
