# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The control modes: the law of the current mode and its reference.

The invariant, after any sequence of calls:

1. Efforts are those of the law of the current mode, gains and robot; `MotionGuard` limits the
   commands that are blended from them. A law has seen only states since its last reset. It is
   reset whenever `EffortCommands` start a blend, the law or robot is replaced, or a motion is
   aborted.
2. At a reset, the reference is the configuration of the robot, at rest, until a motion is
   accepted. The reference and its velocity are continuous: a motion starts with those of the
   reference. A motion that the robot does not follow within its tolerances is aborted.
3. A refused motion changes nothing. Each motion is accepted or refused, and each accepted one ends
   once: reached, replaced or aborted. Its sender is informed.
4. Without a measured velocity, or a law, there are no efforts.

`EffortCommands` ensure that commands never step.

"""

from collections import deque
from collections.abc import Callable, Iterator
from contextlib import suppress
from functools import partial
from math import inf, sqrt
from typing import Any

import numpy as np
from numpy.linalg import LinAlgError
from rbd_msgs.msg import ReferenceStatus
from rbd_ros import neutral, RbdError
from rbd_ros._internal.text import listed
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.control.controller import Circumstances, Controller
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rotation_vector
from rbd_ros.motions.motion_guard import braking_rate, MARGIN, MotionGuard, RATE
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.control.compensation import compensates_itself, Law
from rbd_ros.ros.control.law_factory import (
    ControlSettings, damping_warning, make_controller, tolerances)
from rbd_ros.ros.control.reference_messages import Following
from rbd_ros.ros.control.reference_receiver import LawSettings, link_pose, ReferenceReceiver
from rbd_ros.ros.parameters.parameters import BadParameter
from rbd_ros.ros.robot.read_model import unlimited_efforts
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.clocks import Clocks
from rbd_ros.ros.runtime.report import ERROR, Log, OK, Report, WARN
from rbd_ros.ros.runtime.worker import Busy, Worker
from rbd_ros.workspace.memory.results import DynamicsTerms

AGES = 100      # Number of states whose ages are known
ENOUGH = 0.5    # of the rate of the guard, below which a warning says that states are too late
# Why motions end when the law is reset.
LOST = ('the robot is held where it is: states are missing, commands are off, or the robot has '
        'changed')


class ControlModes(ReferenceReceiver, Law):
    """
    The `Law` of the torque controller, with its mode, gains and tolerances in `control`.

    References use the clock of ages. `publish` is called with each `ReferenceStatus`. `why_not` is
    the reason for the lack of a law; empty: there is one, or it is not needed yet.

    """

    def __init__(self, settings: LawSettings, control: ControlSettings, clocks: Clocks,
                 commands: EffortCommands, report: Report, log: Log, worker: Worker,
                 publish: Callable[[ReferenceStatus], object]) -> None:
        super().__init__(settings, control, clocks, commands, report, log, publish)
        self._worker, self._note = worker, ''
        self._discard_check()
        # s: ages of the states that the last efforts were computed from, by joint.
        self._ages: deque[dict[str, float]] = deque([{}] * AGES, maxlen=AGES)
        self._drop_law('')

    def _drop_law(self, why_not: str) -> None:
        self._abort(why_not or LOST)
        self._controller: Controller | None = None
        self._following = None
        self._q: np.ndarray | None = None
        self.why_not = why_not
        # Largest error since the last report, for each label.
        self._labels: list[str] = []
        self._errors = np.zeros(0)

    def configure(self, settings: LawSettings, control: ControlSettings) -> None:
        """Replace the settings; the node then disturbs the commands, which resets the law."""
        self._settings, self._control = settings, control
        self._discard_check()
        self._abort('mode or parameters have changed: the robot is held where it is')

    def check(self, control: ControlSettings, robot: Robot) -> None:
        """Raise BadParameter, RbdError or KernelNotReady if a law cannot start."""
        model, q = robot.model, neutral(robot.model)
        law = self._make(control, model, control.task_link, q)
        try:
            law.update(0.0, q, np.zeros(model.nv),
                       self._resting_reference(law, robot, control.task_link, q))
        except KernelNotReady:
            raise
        except (RbdError, LinAlgError):
            pass                        # singular here; the robot is in another configuration

    def prepare(self, robot: Robot) -> None:
        """Compile the kernels of the current law; errors are reported at its first reset."""
        with suppress(Exception):
            self.check(self._control, robot)

    def _make(self, control: ControlSettings, model: Model, task_link: str,
              q: np.ndarray) -> Controller:
        settings = self._settings
        return make_controller(control, Circumstances(
            model, task_link, q, settings.friction, settings.friction_dead_band,
            settings.springs))

    def efforts(self, robot: Robot, v: np.ndarray | None, terms: DynamicsTerms, now: float,
                reset: bool) -> np.ndarray | str:
        """Return the efforts of the law, or why there are none; see `Law`."""
        # A velocity that is assumed to be zero damps nothing.
        if robot.states.missing_velocities() and self._settings.missing_velocity == 'zero':
            v = None
        if v is None:
            self.why_not = ('the law needs the velocities of '
                            + listed(robot.states.missing_velocities()))
            return self.why_not
        q = robot.states.q
        if reset or robot is not self._robot or self._controller is None:
            if not reset:
                self._commands.disturb()
            self._reset(robot, q)
        if self._controller is None:
            return self.why_not
        self.why_not = ''
        reference: Any = None if self._following is None else self._following.at(now)
        if self._following is not None:
            errors = self._distance(robot, q, reference)
            if reason := self._following.judge(now, errors):
                self._abort_motion(reason)
                return self.efforts(robot, v, terms, now, True)
            np.maximum(self._errors, errors, out=self._errors)
        self._q = q.copy()
        self._ages.append({name: age for name, age in robot.ages(now).items() if age < inf})
        tau = self._controller.update(now, q, v, reference)
        if not np.isfinite(tau).all():
            return 'the efforts of the law are not finite'
        coriolis = (terms.coriolis_torques if self._controller.contains_coriolis
                    else np.zeros_like(terms.g))
        efforts = self._settings.effort_convention.subtract_onboard_compensation(
            tau, terms.g, coriolis)
        self._state = q, v, (reference.q if isinstance(reference, JointReference) else None)
        self._onboard = tau - efforts
        return efforts

    def guard(self, robot: Robot, efforts: np.ndarray) -> Callable[[np.ndarray], np.ndarray]:
        """Return the limits of the joints as a function of commands; see `Law`."""
        columns = robot.command_columns

        def limit(commands: np.ndarray) -> np.ndarray:
            tau = efforts + self._onboard
            tau[columns] = commands + self._onboard[columns]
            limited = self._guard.limit(tau, *self._state, age=self._largest_age(),
                                        effort_rate=self._commands.effort_rate())
            return commands if limited is tau else (limited - self._onboard)[columns]
        return limit

    def _largest_age(self) -> float:
        """Return the largest age of a state while a command computed from it acts, s."""
        return max(self._ages[-1].values(), default=0.0) + self._commands.longest_hold()

    def _guard_share(self) -> float:
        """Return the share of the rate of the guard that the age of states allows; 1: unused."""
        if not (self._control.soft_stop_zone or self._control.velocity_guard):
            return 1.0
        age = self._largest_age()
        return braking_rate(age) / RATE if age < inf else 1.0

    def _reset(self, robot: Robot, q: np.ndarray) -> None:
        """Replace the law by a new one whose reference is the configuration of the robot."""
        self._drop_law('')
        if robot is not self._robot:
            self._robot, self._note = robot, ''
            self._discard_check()
        control, model = self._control, robot.model
        try:
            controller = self._make(control, model, robot.task_link, q)
        except (BadParameter, RbdError) as error:
            self._drop_law(str(error))
            return
        self._controller = controller
        self._posture = q.copy()
        self._guard = MotionGuard(model, zone=control.soft_stop_zone,
                                  velocity=control.velocity_guard)
        reference = self._resting_reference(controller, robot, robot.task_link, q)
        if reference is not None:
            self._labels = ([f'error of {name}, rad or m' for name in model.velocity_names]
                            if isinstance(reference, JointReference) else
                            [f'error of {robot.task_link}, {unit}' for unit in ('rad', 'm')])
            self._following = Following(
                reference, tolerances(control, controller, robot.task_link), self._publish_status)
            self._errors = np.zeros(len(self._labels))
        self._warn_of_missing_limits(model)

    def _resting_reference(self, law: Controller, robot: Robot, task_link: str,
                           q: np.ndarray) -> JointReference | PoseReference | None:
        """Return a reference at rest of the type of a law, or None if the law takes none."""
        if law.reference_type is JointReference:
            return JointReference(robot.model, q)
        if law.reference_type is PoseReference:
            return PoseReference(link_pose(robot, q, task_link))
        return None

    def _abort_motion(self, reason: str) -> None:
        """Abort the current motion and report it; the next efforts hold the robot."""
        text = f'motion aborted: {reason}; the robot is held where it is'
        self._report.fail('motions aborted', text)
        self._log.warning(text)
        self._abort(reason)
        self._commands.disturb()

    def _warn_of_missing_limits(self, model: Model) -> None:
        """Log once per robot and mode the joints that have springs but no effort limit."""
        before, self._note = self._note, ''
        if self._following is not None and (names := unlimited_efforts(model)):
            self._note = (f'mode {self._control.mode} has springs, but the description has no '
                          f'effort limit of {listed(names)}: their efforts are not clamped')
            if self._note != before:
                self._log.warning(self._note)

    def _discard_check(self) -> None:
        # What is wrong with the damping, whether that was logged, and the check under way.
        self._damping, self._warned_of_damping = '', False
        self._check: Callable[[], str] | None = None

    def _check_damping(self) -> None:
        """Let the worker check the damping: with many joints, that takes longer than a period."""
        robot, period = self._robot, self._commands.period()
        if robot is None or self._q is None or not period or self._check is not None:
            return
        self._check = check = partial(
            self._damping_warning, robot, self._control, self._posture, self._q, period,
            list(self._ages))
        try:
            self._worker.submit(check, partial(self._end_check, check), may_wait=False)
        except Busy:
            self._check = None

    def _damping_warning(self, robot: Robot, control: ControlSettings, posture: np.ndarray,
                         q: np.ndarray, period: float, ages: list[dict[str, float]]) -> str:
        """Return a warning if gains are too high for the rate and age of states."""
        # Medians of many: single states are late on every busy machine.
        late = np.median([[one.get(name, 0.0) for name in robot.model.velocity_names]
                          for one in ages], axis=0)
        try:
            law = self._make(control, robot.model, robot.task_link, posture)
            return damping_warning(law, control, q, period, late)
        except (BadParameter, RbdError, LinAlgError):
            return ''           # there is no such law, or a joint moves no inertia

    def _end_check(self, check: Callable[[], str], text: str) -> None:
        """Take the result of the check under way; log it once."""
        if check is not self._check:
            return              # the robot or its settings have changed
        self._damping, self._check = text, None
        if text and not self._warned_of_damping:
            self._warned_of_damping = True
            self._log.warning(text)

    def _distance(self, robot: Robot, q: np.ndarray,
                  reference: JointReference | PoseReference) -> np.ndarray:
        """Return the distances of the robot from the reference, one per label."""
        if isinstance(reference, PoseReference):
            T = link_pose(robot, q, robot.task_link)
            turn = rotation_vector(T[:3, :3].T @ reference.T[:3, :3])
            way = reference.T[:3, 3] - T[:3, 3]
            return np.array([sqrt(turn @ turn), sqrt(way @ way)])
        assert self._controller is not None
        return np.abs(self._controller.error(q, reference))

    def facts(self) -> dict[str, str]:
        """Return mode, reference and largest errors of position since the last call."""
        now = self._clocks.age_time()
        if not self._commands.enabled or self._commands.starts_blend(now):
            self._abort(LOST)
        left = self._following.left(now) if self._following is not None else 0.0
        errors, self._errors = self._errors, np.zeros_like(self._errors)
        return {'mode': self._control.mode,
                'reference': ('none' if self._following is None else 'moving' if left
                              else 'holding'),
                'reference, seconds left': f'{left:.3f}',
                **{label: f'{x:.6g}' for label, x in zip(self._labels, errors)}}

    def findings(self) -> Iterator[tuple[bytes, str]]:
        """Yield why there is no law, and warnings about it."""
        recent = self._report.recent
        if self.why_not:
            yield ERROR, f'mode {self._control.mode} commands nothing: {self.why_not}'
        if recent('references refused'):
            yield WARN, f"references were refused ({recent('references refused')})"
        if recent('motions aborted'):
            yield WARN, f"motions were aborted ({recent('motions aborted')}): see last error"
        self._check_damping()
        for text in (self._note, self._damping):
            if text:
                yield WARN, text
        if self._controller is None or self._robot is None:
            return
        names, share = np.array(self._robot.model.velocity_names), self._guard_share()
        if share < ENOUGH:
            yield WARN, (f'states are up to {1e3 * self._largest_age():.3g} ms old while commands '
                         f'act: soft stops and brakes have {share:.0%} of their rate, for all of '
                         f'it period and delay must add up to {1e3 * MARGIN / RATE:.3g} ms')
        for which, what in ((self._guard.stopping, 'soft stops push back'),
                            (self._guard.braking, 'faster than their limits, braked')):
            if which.any():
                yield WARN, f'{what}: {listed(names[which])}'
        if self._following is None and (
                text := compensates_itself(self._settings.effort_convention)):
            yield OK, text
