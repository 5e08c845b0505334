# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Which samples of joints are glitches.

A sample is implausible if its velocity exceeds the fastest speed of the joint, a multiple of its
velocity limit, or if its position is further from the last one than that speed allows. The
invariant, for each joint:

1. An implausible sample that does not continue the motion of the sample before is a glitch. Its
   velocity does not count, and if its position is implausible, nothing of it does; the joint is
   then in doubt until its next sample that counts.
2. An implausible sample counts if it continues the motion of a sample that counted: the joint
   really is that fast. So does the last of `CONFIRMED` samples or more in `CONFIRMATION_TIME` or
   longer that continue each other: the joint really is there.
3. A joint that was in doubt and is found elsewhere is reported as moved.

"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rbd_ros.control.motion_guard import stated_speeds
from rbd_ros.model.model import Model

# rad/s and m/s: velocity limits of joints whose description has none, or zero.
DEFAULT_VELOCITY_LIMITS = 20.0, 5.0
# s: error of the time between two samples by their stamps, and by their times of receipt.
STAMP_JITTER, RECEIPT_JITTER = 0.002, 0.02
# Number and duration, s, of implausible samples that are believed.
CONFIRMED, CONFIRMATION_TIME = 4, 0.01
# Samples of one motion: share by which the change of positions may differ from the velocities, and
# largest change of the velocity, as a share of the fastest speed.
SAME_MOTION, SMOOTH = 0.3, 0.5


class Sample(NamedTuple):
    """
    A sample of a joint.

    Attributes
    ----------
    time, position, velocity : float
        s; rad or m; rad/s or m/s, NaN if it is not known.
    since, number : float, int
        Time of the first of the samples of one motion that ends with this one, s; their number.

    """

    time: float
    position: float
    velocity: float
    since: float
    number: int = 1


class SampleJudge:
    """
    Judges the samples of joints.

    Parameters
    ----------
    model : Model
        The robot.
    names : sequence of str
        The joints.
    v_of : ndarray of int
        Their places in the velocity of the robot.
    turns : sequence of bool
        For each joint, whether its position may be counted from another turn.

    Attributes
    ----------
    speed : ndarray
        Fastest speed of each joint, rad/s or m/s.
    doubtful : set of int
        The joints in doubt.
    implausible, moved : list of str
        The glitches in the latest message, and the joints that it shows to be elsewhere.

    """

    def __init__(self, model: Model, names: Sequence[str], v_of: np.ndarray,
                 turns: Sequence[bool]) -> None:
        limit = stated_speeds(model.velocity_limit)
        limit = np.where(np.isfinite(limit), limit,
                         np.where(model.angular, *DEFAULT_VELOCITY_LIMITS))
        self._limit, self._names, self._turns = limit[v_of], names, np.array(turns, bool)
        self._units = np.where(model.angular[v_of], 'rad', 'm')
        self.allow(np.inf)
        self.forget()

    def allow(self, fastest: float) -> None:
        """Set the fastest speed of all joints, in multiples of their velocity limits."""
        self.speed = fastest * self._limit

    def forget(self) -> None:
        """Forget all samples."""
        self.doubtful: set[int] = set()
        # The latest glitches of joints.
        self._suspects: dict[int, Sample] = {}
        self.implausible: list[str] = []
        self.moved: list[str] = []

    def judge(self, joints: np.ndarray, position: np.ndarray, velocity: np.ndarray, time: float,
              last_position: np.ndarray, last_velocity: np.ndarray, elapsed: np.ndarray,
              jitter: float) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the velocities of a message, NaN where they are glitches, and who has jumped.

        Parameters
        ----------
        joints : ndarray of int
            The joints in the message.
        position, velocity : ndarray
            Their samples; NaN where there is none.
        time : float
            Time of the message, s.
        last_position, last_velocity : ndarray
            Their last samples that counted; NaN where there is none.
        elapsed : ndarray
            Time since then, s.
        jitter : float
            Error of that time, s.

        Returns
        -------
        velocity : ndarray
            The velocities.
        jumped : ndarray of bool
            The joints whose samples are glitches as a whole.

        """
        speed, way = self.speed[joints], self._way(joints, position - last_position)
        # Comparisons with NaN are false.
        jumped, fast = np.abs(way) > speed * (elapsed + jitter), np.abs(velocity) > speed
        self.implausible, self.moved = [], []
        wrong = jumped | fast
        if not (self._suspects or wrong.any()):
            return velocity, jumped
        velocity = velocity.copy()
        for k, joint in enumerate(joints.tolist()):
            suspect = self._suspects.pop(joint, None)
            if not wrong[k] and suspect is None:
                continue
            now = Sample(time, float(position[k]), float(velocity[k]), time)
            last = Sample(time - elapsed[k], float(last_position[k]), float(last_velocity[k]), 0.0)
            if wrong[k] and not self._continues(joint, last, now):
                if suspect is not None and self._continues(joint, suspect, now):
                    now = now._replace(since=suspect.since, number=suspect.number + 1)
                if now.number < CONFIRMED or time - now.since < CONFIRMATION_TIME:
                    self._suspects[joint] = now
                    self.implausible.append(self._sentence(joint, way[k], velocity[k], elapsed[k],
                                                           bool(jumped[k])))
                    velocity[k] = np.nan if fast[k] else velocity[k]
                    if jumped[k]:
                        self.doubtful.add(joint)
                    continue
            if joint in self.doubtful and not fast[k] and (
                    abs(way[k]) > self._limit[joint] * (elapsed[k] + jitter)):
                self.moved.append(f"'{self._names[joint]}' was moved by {way[k]:.4g} "
                                  f'{self._units[joint]}')
            self.doubtful.discard(joint)
            jumped[k] = False
        return velocity, jumped

    def _continues(self, joint: int, before: Sample, now: Sample) -> bool:
        """Return whether two samples are those of one motion."""
        step, speed = now.time - before.time, 0.5 * (before.velocity + now.velocity)
        way = float(self._way(joint, np.asarray(now.position - before.position)))
        slack = self._limit[joint] * (STAMP_JITTER + step)
        if np.isnan(speed):
            # Of positions alone; a velocity that appears does not tell what it was before.
            return np.isnan(now.velocity) and abs(way) <= slack
        return bool(abs(now.velocity - before.velocity) <= SMOOTH * self.speed[joint]
                    and abs(way - speed * step) <= slack + SAME_MOTION * abs(speed) * step)

    def _way(self, joints: np.ndarray | int, change: np.ndarray) -> np.ndarray:
        """Return changes of positions; of continuous joints, without full turns."""
        turns = self._turns[joints]
        if not np.any(turns):
            return change
        return np.where(turns, np.remainder(change + np.pi, 2.0 * np.pi) - np.pi, change)

    def _sentence(self, joint: int, way: float, velocity: float, elapsed: float,
                  jumped: bool) -> str:
        """Return what is implausible of a sample."""
        name, unit = self._names[joint], self._units[joint]
        return ((f"'{name}' moved by {way:.4g} {unit} in {max(elapsed, 0.0):.3g} s" if jumped
                 else f"the velocity of '{name}' is {velocity:.4g} {unit}/s")
                + f', its fastest speed is {self.speed[joint]:.4g} {unit}/s')
