# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Recognition of glitches among the samples of joints.

A sample is implausible if its velocity exceeds the fastest speed of the joint, a multiple of its
velocity limit, or if its position is further from the last one than that speed allows. Invariant,
for each joint:

1. An implausible sample that does not continue the motion of the previous one is a glitch. Its
   velocity is ignored; if its position is implausible, the whole sample is ignored, and the joint
   is in doubt until its next accepted sample.
2. An implausible sample is accepted if it continues the motion of an accepted sample: the joint
   really is that fast. Also accepted is the last of at least `CONFIRMED` samples, during at least
   `CONFIRMATION_TIME`, that continue each other: the joint really is there. A run of samples
   continues a motion only as long as its positions, from the first to the last, agree with its
   velocities.
3. A joint that was in doubt and is found elsewhere is reported as moved.
4. The first sample of a joint cannot be judged: commands start only once a second one agrees.

"""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import without_turns

# rad/s and m/s: velocity limits of joints whose description has no limit, or zero.
DEFAULT_VELOCITY_LIMITS = 20.0, 5.0
# s: error of the time between two samples by their stamps, and by their times of receipt.
STAMP_JITTER, RECEIPT_JITTER = 0.002, 0.02
# Number and duration, s, of a run of implausible samples that is accepted.
CONFIRMED, CONFIRMATION_TIME = 4, 0.01
# Samples of one motion: deviation of the change of position from the velocities, relative, and
# change of velocity in `STAMP_JITTER` or longer, relative to the fastest speed.
SAME_MOTION, SMOOTH = 0.3, 0.5


class Run(NamedTuple):
    """Samples of a joint that continue each other."""

    # The last sample: s; rad or m; rad/s or m/s, NaN if unknown.
    time: float
    position: float
    velocity: float
    # Time and position of the first sample, s and rad or m.
    since: float
    begin: float
    travel: float = 0.0    # Integral of the velocities between the two, rad or m
    # Number of samples, and whether they are accepted.
    number: int = 1
    believed: bool = False


class SampleJudge:
    """Judges the samples of joints, at `v_of` in the velocity; `turns`: those without limits."""

    def __init__(self, model: Model, names: Sequence[str], v_of: np.ndarray,
                 turns: Sequence[bool]) -> None:
        limit = model.velocity_limit
        limit = np.where(np.isfinite(limit), limit,
                         np.where(model.angular, *DEFAULT_VELOCITY_LIMITS))
        self._limit, self._names, self._turns = limit[v_of], names, np.array(turns, bool)
        self._units = np.where(model.angular[v_of], 'rad', 'm')
        self._fastest = 0.0
        self.forget()
        self.begin(np.inf)

    def begin(self, fastest: float) -> None:
        """Prepare for a message, with the fastest speed in multiples of the velocity limits."""
        # Sentences about the glitches in the message, and about joints found elsewhere.
        self.implausible: list[str] = []
        self.moved: list[str] = []
        if fastest != self._fastest:
            # `speed` is the fastest speed of each joint, rad/s or m/s; `slowness` its reciprocal.
            self._fastest, self.speed = fastest, fastest * self._limit
            self.slowness = 1.0 / self.speed

    def forget(self) -> None:
        """Discard all samples."""
        self.doubtful: set[int] = set()    # Joints in doubt
        # The current run of implausible samples of each joint.
        self.runs: dict[int, Run] = {}
        # Whether a second sample of a joint has agreed with an earlier one.
        self.confirmed = np.zeros(len(self._names), bool)

    def doubt(self, joint: int, why: str) -> None:
        """Put a joint in doubt that had no number for its position, with a sentence."""
        self.doubtful.add(int(joint))
        self.runs.pop(int(joint), None)
        self.implausible.append(why)

    def judge(self, joints: np.ndarray, position: np.ndarray, velocity: np.ndarray, time: float,
              last_position: np.ndarray, last_velocity: np.ndarray, elapsed: np.ndarray,
              jitter: float) -> tuple[np.ndarray, np.ndarray]:
        """
        Return the velocities of a message, NaN if glitches, and which whole samples are glitches.

        `joints` are indices, `position` and `velocity` their samples at `time`, s; NaN: none.
        `last_position` and `last_velocity` are the last accepted samples; `elapsed` is the time
        since then, s, with the error `jitter`.

        """
        speed, way = self.speed[joints], without_turns(position - last_position,
                                                       self._turns[joints])
        # Comparisons with NaN are false.
        jumped, fast = np.abs(way) > speed * (elapsed + jitter), np.abs(velocity) > speed
        if self.unconfirmed:
            self.confirmed[joints] |= ~(np.isnan(last_position) | jumped)
        wrong = jumped | fast
        if not (self.runs or self.doubtful or wrong.any()):
            return velocity, jumped
        velocity = velocity.copy()
        for k, joint in enumerate(joints.tolist()):
            run = self.runs.pop(joint, None)
            if wrong[k]:
                now = time, float(position[k]), float(velocity[k])
                if run is None or not run.believed:
                    since, begin = time - elapsed[k], float(last_position[k])
                    last = Run(since, begin, float(last_velocity[k]), since, begin, believed=True)
                    run = self._continued(joint, last, *now) or (
                        run and self._continued(joint, run, *now))
                else:
                    run = self._continued(joint, run, *now)
                run = self.runs[joint] = run or Run(*now, *now[:2])
                if not run.believed:
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

    @property
    def unconfirmed(self) -> bool:
        """Return whether a joint has no sample yet that agrees with an earlier one."""
        return self.unconfirmed_among(slice(None))

    def unconfirmed_among(self, joints: slice | np.ndarray) -> bool:
        """Return the same for some joints."""
        return not self.confirmed[joints].all() and bool(np.isfinite(self.speed).all())

    def _continued(self, joint: int, run: Run, time: float, position: float,
                   velocity: float) -> Run | None:
        """Return a run with one more sample, or None if the sample does not continue it."""
        step, speed = time - run.time, 0.5 * (run.velocity + velocity)
        if np.isnan(speed):
            if not np.isnan(velocity):
                return None         # a first velocity does not show the velocity before it
            speed = 0.0             # positions alone are measured
        elif abs(velocity - run.velocity) > (SMOOTH * self.speed[joint]
                                             * min(step / STAMP_JITTER, 1.0)):
            return None
        travel, number = run.travel + speed * step, run.number + 1
        for change, expected, duration in ((position - run.position, speed * step, step),
                                           (position - run.begin, travel, time - run.since)):
            slack = self._limit[joint] * (STAMP_JITTER + duration) + SAME_MOTION * abs(expected)
            if not abs(without_turns(change - expected, self._turns[joint])) <= slack:
                return None
        return Run(time, position, velocity, run.since, run.begin, travel, number,
                   run.believed or (number >= CONFIRMED and time - run.since >= CONFIRMATION_TIME))

    def _sentence(self, joint: int, way: float, velocity: float, elapsed: float,
                  jumped: bool) -> str:
        name, unit = self._names[joint], self._units[joint]
        return ((f"'{name}' moved by {way:.4g} {unit} in {max(elapsed, 0.0):.3g} s" if jumped
                 else f"the velocity of '{name}' is {velocity:.4g} {unit}/s")
                + f', its fastest speed is {self.speed[joint]:.4g} {unit}/s')
