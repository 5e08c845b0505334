# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnose the efforts of a running robot; commands are none of its business."""

from collections.abc import Iterator
from functools import partial
from itertools import compress
from math import inf

import numpy as np
from rbd_ros import spring_torques
from rbd_ros._internal.text import listed
from rbd_ros.control.effort_convention import convention_mismatch
from rbd_ros.errors import RbdError
from rbd_ros.identification import prepare, Recording, Samples
from rbd_ros.identification.diagnosis.diagnose import diagnose_samples
from rbd_ros.identification.reduction import samples_of
from rbd_ros.model.model import Model
from rbd_ros.ros import convert
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log, WARN
from rbd_ros.ros.runtime.worker import Busy, Worker

REST_SPEED = 0.01    # rad/s or m/s: slower joints are at rest
# Efforts are averaged over at least this time, s, and this number of states.
REST_TIME, MIN_STATES = 0.5, 20


class _EffortFinding(Part):
    """What is wrong with the efforts of the current robot; empty: nothing, as far as is known."""

    def __init__(self, log: Log) -> None:
        self._log = log
        self._robot: Robot | None = None
        self.finding = ''
        self.reset()

    def reset(self) -> None:
        """Discard the states: time jumped."""

    def findings(self) -> Iterator[tuple[bytes, str]]:
        if self.finding:
            yield WARN, self.finding


class EffortCheck(_EffortFinding):
    """
    Compares the efforts of each robot with its gravity torques, once, at rest.

    Invariant: the mean is over consecutive states of one robot, all at rest; the finding is about
    the current robot. Joints whose efforts or velocities are not measured are left out.

    """

    _done = False

    def reset(self) -> None:
        """Wait again for a robot at rest: time jumped."""
        self._first: float | None = None
        self._count, self._sum, self._known = 0, np.zeros(1), np.zeros(0, bool)

    def note(self, robot: Robot) -> None:
        """Take another complete state of the robot."""
        if robot is not self._robot:
            self._robot, self._done, self.finding = robot, False, ''
            self.reset()
        if self._done or robot.base_joint is not None:
            return
        states = robot.states
        known = np.isfinite(states.effort) & np.isfinite(states.v)
        if not (states.effort[known].any()
                and np.abs(states.v[known]).max(initial=0.0) <= REST_SPEED):
            # It moves, or no effort is measured: efforts are zero while brakes hold a robot.
            self.reset()
            return
        stamp = convert.seconds(robot.time_stamp)
        if self._first is None or stamp < self._first or (known != self._known).any():
            self.reset()
            self._first, self._known = stamp, known
        self._count, self._sum = self._count + 1, self._sum + states.effort
        if self._count >= MIN_STATES and stamp - self._first >= REST_TIME:
            names = robot.model.velocity_names
            constants = robot.convention.constants_of_states(names)
            torques = constants * self._sum / self._count - spring_torques(robot.model, states.q)
            self.finding = convention_mismatch(
                robot.convention, [*compress(names, known)], torques[known],
                robot.workspace.gravity_torques(states.q)[known])
            self._done = True
            if not known.all():
                self._log.info('efforts at rest were compared without those of '
                               f'{listed([*compress(names, ~known)])}, which are not measured')
            if self.finding:
                self._log.warning(self.finding)


# States are collected every so many s, up to a number, and diagnosed once a minute.
PERIOD, MAX_STATES, MINUTE = 0.02, 3000, 60.0
# A motion is diagnosed if it lasts this long, s; otherwise poses, if there are so many, this far
# apart, rad or m.
MIN_MOTION, MIN_POSES, OTHER_POSE = 10.0, 3, 0.1
# What is diagnosed: a node is no place to identify a robot. Share of the residual of a finding.
KINDS, NUISANCE = ('sign', 'without_gravity', 'common_gain', 'gain', 'gravity_direction',
                   'payload', 'zero_offset'), ('rotor',)
MIN_EXPLAINED = 0.5


class EffortDiagnosis(_EffortFinding):
    """
    Diagnoses the states of the last minute in the worker's thread, at most once a minute.

    Invariant: the states that are collected, and the finding, are of the current robot.

    """

    def __init__(self, worker: Worker, log: Log) -> None:
        super().__init__(log)
        self._worker = worker
        self._rows = np.zeros((0, 0))   # of the last states, in turn

    def reset(self) -> None:
        """Discard the states: time jumped."""
        self._count, self._next = 0, inf

    def note(self, robot: Robot) -> None:
        """Take another complete state of the robot."""
        if robot is not self._robot:
            self._robot, self.finding = robot, ''
            self._rows = np.zeros((MAX_STATES, 1 + robot.model.nq + 2 * robot.model.nv))
            self.reset()
        stamp, states = convert.seconds(robot.time_stamp), robot.states
        last = self._rows[(self._count - 1) % MAX_STATES, 0] if self._count else -inf
        if robot.base_joint is not None or last <= stamp < last + PERIOD:
            return
        if self._next == inf or stamp < last:
            self.reset()
            self._next = stamp + MINUTE
        row = np.concatenate(([stamp], states.q, states.v, robot.measured_torques(states.v)))
        # Efforts are zero while brakes hold a robot.
        if np.isfinite(row).all() and states.effort.any():
            self._rows[self._count % MAX_STATES], self._count = row, self._count + 1
        if stamp < self._next:
            return
        self._next = stamp + MINUTE
        try:
            rows = np.roll(self._rows[:self._count], -self._count, axis=0)      # by time
            self._worker.submit(partial(diagnosed, robot.model, rows), partial(self._end, robot),
                                may_wait=False)
        except Busy:
            return

    def _end(self, robot: Robot, text: str) -> None:
        if robot is self._robot:
            self.finding = text
            if text:
                self._log.warning(text, 'diagnosis')


def diagnosed(model: Model, states: np.ndarray) -> str:
    """Return what is wrong with states, rows of stamp, q, v and torques; '' if nothing is."""
    try:
        samples = _samples(model, states) if len(states) else None
        found = diagnose_samples(model, [samples], KINDS, NUISANCE).findings if samples else ()
    except RbdError:    # too short, or with gaps: later ones may do
        return ''
    return '; '.join(one.advice for one in found if one.explains >= MIN_EXPLAINED)


def _samples(model: Model, states: np.ndarray) -> Samples | None:
    """Return the samples of a motion, or those of several poses; None: there are too few."""
    nq, nv = model.nq, model.nv
    time, q, v, tau = np.split(states, (1, 1 + nq, 1 + nq + nv), axis=1)
    moves = np.max(np.abs(v), axis=1) > REST_SPEED
    if np.sum(moves) * PERIOD >= MIN_MOTION:
        return prepare(model, Recording('the states of the last minute', model.velocity_names,
                                        time[:, 0] - time[0, 0], q, v, tau), delay=0.0)
    poses: list[np.ndarray] = []
    for rest in np.split(states[~moves], np.flatnonzero(np.diff(np.flatnonzero(~moves)) > 1) + 1):
        mean = np.mean(rest, axis=0)
        if len(rest) * PERIOD >= REST_TIME and all(
                np.max(np.abs(mean[1:1 + nq] - one[1:1 + nq])) > OTHER_POSE for one in poses):
            poses.append(mean)
    if len(poses) < MIN_POSES:
        return None
    time, q, _, tau = np.split(np.array(poses), (1, 1 + nq, 1 + nq + nv), axis=1)
    return samples_of(model, q, np.zeros_like(tau), np.zeros_like(tau), tau, time[:, 0])
