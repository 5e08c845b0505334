# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a robot, merged by joint name from all joint states."""

from collections.abc import Sequence
from math import isnan

import numpy as np
from rbd_ros._internal.cdr import JointStateContent
from rbd_ros._internal.text import first_twice
from rbd_ros.kernels.jit.compiled import KernelNotReady
from rbd_ros.kernels.joint_samples import MAX_MEASUREMENT, take_plausible
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import without_turns
from rbd_ros.ros.state.sample_judge import RECEIPT_JITTER, SampleJudge, STAMP_JITTER
from rbd_ros.ros.state.sources import Source, Sources
from sensor_msgs.msg import JointState

MAX_UNKNOWN = 100    # Number of names of unknown joints that are kept for the log


class Rejected(Exception):
    """A message that cannot be used: the reason for an operator, and in short for counting."""

    def __init__(self, text: str, kind: str) -> None:
        super().__init__(text)
        self.kind = kind


class TimeWentBack(Exception):
    """The stamp of a message is too far back for a message that is merely late."""


def all_within(x: np.ndarray, bound: float) -> bool:
    """Return whether all numbers are finite and smaller than a bound in magnitude."""
    # The sum of squares, which is fast to compute, nearly always suffices.
    squares = x.dot(x)
    return bool(squares < bound * bound
                or (not isnan(squares) and np.abs(x).max(initial=0.0) < bound))


class Differentiator:
    """Velocities from low-pass filtered positions; `turns`: those that may jump by full turns."""

    def __init__(self, turns: Sequence[bool]) -> None:
        self._turns = np.asarray(turns, bool)
        # Velocities, rad/s or m/s; NaN where unknown.
        self.rates = np.empty(len(self._turns))
        self.forget()

    def forget(self) -> None:
        """Discard all positions."""
        self.rates[:] = np.nan
        self._positions = np.full(len(self._turns), np.nan)
        self._times = np.full(len(self._turns), np.nan)

    def update(self, joints: np.ndarray, positions: np.ndarray, time: float, filter_time: float,
               timeout: float) -> None:
        """Take positions, rad or m, of joints by index; the filter has a time constant, s."""
        # Those not newer than the last ones are ignored; after a pause longer than `timeout`, s,
        # or with another clock, differentiation starts again.
        step = time - self._times[joints]
        newer = ~((step <= 0.0) & (step >= -timeout))
        if not newer.all():
            joints, positions, step = joints[newer], positions[newer], step[newer]
        rates = without_turns(positions - self._positions[joints], self._turns[joints]) / step
        before = self.rates[joints]
        smooth = before + step / (filter_time + step) * (rates - before)
        rates = np.where(np.isfinite(before), smooth, rates)
        rates[np.abs(step) > timeout] = np.nan
        self.rates[joints], self._positions[joints], self._times[joints] = rates, positions, time


class JointStates:
    """
    The latest position and velocity of every joint, with stamp and time of receipt.

    Joint states name coordinates as `Model.position_names` does, without those of joints with a
    quaternion; `place_base` sets the coordinates of a floating base.

    """

    why_open = ''    # why the loops of the robot cannot be closed; empty: it has none

    def __init__(self, model: Model) -> None:
        # Names of the coordinates that are measured, their places in q and v, and which of them
        # have no limits.
        self.names: list[str] = []
        self.q_of: list[int] = []
        v_of: list[int] = []
        turns: list[bool] = []
        for joint, q, v in model.moving_joints:
            if KINDS[joint.kind].is_screws:
                self.names += model.position_names[q]
                self.q_of += range(q.start, q.stop)
                v_of += range(v.start, v.stop)
                turns += [joint.kind == 'continuous'] * joint.nq
        self.v_of = np.array(v_of, int)
        self.turns = np.array(turns, bool)
        self.differentiator = Differentiator(turns)
        self.judge = SampleJudge(model, self.names, self.v_of, turns)
        self._index = {name: k for k, name in enumerate(self.names)}
        # Mimic joints and locked joints may be measured, too, but are not needed.
        self._expected = {joint.name for joint in model.joints} | set(self.names)
        # Names in messages that the robot does not have, at most MAX_UNKNOWN.
        self.unknown_names: set[str] = set()
        self.sources = Sources()
        # NaN where unknown.
        self.q, self.v, self.effort = np.zeros(model.nq), np.zeros(model.nv), np.zeros(model.nv)
        self.forget()

    def forget(self) -> None:
        """Discard the states of all joints."""
        self.q[:] = self.v[:] = self.effort[:] = np.nan
        self._received = np.full(len(self.names), -np.inf)
        self._stamps = np.full(len(self.names), -np.inf)
        self.sources.forget()
        self.differentiator.forget()
        self.judge.forget()

    def place_base(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set the coordinates and the twist of a floating base, which come first."""
        self.q[:len(q)], self.v[:len(v)] = q, v

    def update(self, message: JointState | JointStateContent, now: float, stamp: float = 0.0,
               timeout: float = np.inf, filter_time: float | None = None,
               fastest: float = np.inf, lag: float | None = None) -> bool:
        """
        Take the samples in a message, except for glitches; return whether it names own joints.

        `now` is the time of receipt, s, `lag` the time from stamp to receipt, s, if it is known,
        and `stamp` the stamp, s, or 0 if it cannot be compared with others. Samples that are older
        than the last ones of their joints are ignored. If they are further back than `timeout`, s,
        raise TimeWentBack; if the message is unusable, raise Rejected: the state then does not
        change. With a `filter_time`, s, positions are differentiated. `fastest` is the fastest
        speed of joints, in multiples of their limits.

        """
        source = self.sources.find(message.name, self._places)
        if not len(source.places):
            return False
        now -= source.age(lag, now)
        self.judge.begin(fastest)
        if self._take_plausible(message, source, now, stamp):
            taken = source.places
        else:
            taken = self._take_judged(message, source, now, stamp, timeout)
        if filter_time is not None:
            joint, _, q, _ = taken.T
            self.differentiator.update(joint, self.q[q], stamp or now, filter_time, timeout)
        return True

    def _take_plausible(self, message: JointState | JointStateContent, source: Source, now: float,
                        stamp: float) -> bool:
        """Take all samples of a message in one call if they are obviously plausible."""
        if self.judge.runs or self.judge.doubtful:
            return False
        try:
            taken = take_plausible(
                np.asarray(message.position), np.asarray(message.velocity),
                np.asarray(message.effort), len(message.name), source.places, self.judge.slowness,
                float(now), float(stamp), STAMP_JITTER if stamp else RECEIPT_JITTER,
                self.judge.confirmed, self._received, self._stamps, self.q, self.v, self.effort)
        except KernelNotReady:
            return False
        source.measures |= taken
        return bool(taken)

    def _take_judged(self, message: JointState | JointStateContent, source: Source, now: float,
                     stamp: float, timeout: float) -> np.ndarray:
        """Take the samples of a message except for glitches; return the places of those taken."""
        position, velocity, effort = self._read(message, source.places)
        joint = source.places[:, 0]
        known, newer = np.abs(position) < MAX_MEASUREMENT, np.ones(len(joint), bool)
        if stamp:
            late = self._stamps[joint] - stamp
            if late.max() > timeout:
                raise TimeWentBack(f'stamps jumped back by {late.max():.6g} s')
            if late.min() > 0.0:
                raise Rejected(f'its stamp is {late.max():.6g} s before that of an earlier '
                               'message', 'out of order')
            newer = late <= 0.0
        # NaN is no measurement of a joint that only other messages measure.
        for k in np.flatnonzero(newer & ~known & (
                source.measures | np.isinf(self._received[joint]) | ~np.isnan(position))):
            self.judge.doubt(joint[k], f"the position of '{self.names[joint[k]]}' is out of "
                                       f'range: {position[k]}')
        source.measures |= known
        places, position, velocity, effort = (
            x[newer & known] for x in (source.places, position, velocity, effort))
        joint, _, q, v = places.T
        elapsed, jitter = ((stamp - self._stamps[joint], STAMP_JITTER) if stamp
                           else (now - self._received[joint], RECEIPT_JITTER))
        velocity, jumped = self.judge.judge(joint, position, velocity, stamp or now, self.q[q],
                                            self.v[v], elapsed, jitter)
        # A joint that has jumped keeps its last sample.
        taken = ~jumped
        joint, _, q, v = places[taken].T
        self.q[q], self.v[v], self.effort[v] = position[taken], velocity[taken], effort[taken]
        self._received[joint] = now
        if stamp:
            self._stamps[joint] = stamp
        return places[taken]

    def _read(self, message: JointState | JointStateContent, places: np.ndarray
              ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
        """Return position, velocity and effort of known joints in a message, or raise Rejected."""
        count = len(message.name)
        if not len(message.position):
            raise Rejected('it has no positions', 'no positions')
        if len(message.position) != count or len(message.velocity) not in (0, count):
            raise Rejected(f'it has {count} names, {len(message.position)} positions and '
                           f'{len(message.velocity)} velocities', 'lengths differ')
        source = places[:, 1]
        position, unknown = np.asarray(message.position)[source], np.full(len(source), np.nan)
        velocity = np.asarray(message.velocity)[source] if len(message.velocity) else unknown
        effort = np.asarray(message.effort)[source] if len(message.effort) == count else unknown
        return position, velocity, effort

    def _places(self, names: Sequence[str]) -> np.ndarray:
        """Return, of each known joint, its number, and its indices in a message, in q and in v."""
        if not names:
            raise Rejected('it has no names', 'empty')
        if (twice := first_twice(names)) is not None:
            raise Rejected(f"it has the joint '{twice}' twice", 'duplicate names')
        for name in names:
            if name not in self._expected and len(self.unknown_names) < MAX_UNKNOWN:
                self.unknown_names.add(name)
        return np.array([
            (k, source, self.q_of[k], self.v_of[k]) for source, k in enumerate(
                map(self._index.get, names)) if k is not None], int).reshape(-1, 4)

    def missing(self, now: float, timeout: float) -> list[str]:
        """Return the joints whose position is unknown, in doubt, or older than a timeout, s."""
        received, doubtful = self._received, list(self.judge.doubtful)
        if (not doubtful and now - received.min(initial=np.inf) <= timeout
                and received.max(initial=-np.inf) <= now):
            return []
        # A state from the future was timed with another clock: its age is unknown.
        stale = ~((received <= now) & (now - received <= timeout))
        stale[doubtful] = True
        return [self.names[k] for k in np.flatnonzero(stale)]

    def ages(self, now: float) -> dict[str, float]:
        """Return the age of the position of every joint, s, by name; inf: never received."""
        return dict(zip(self.names, (now - self._received).tolist()))

    @property
    def unconfirmed(self) -> bool:
        """Return whether a joint has no sample yet that agrees with an earlier one."""
        return self.judge.unconfirmed

    def missing_velocities(self) -> list[str]:
        """Return the joints whose velocity is unknown or out of range."""
        if all_within(self.v, MAX_MEASUREMENT):
            return []
        return [name for name, k in zip(self.names, self.v_of)
                if not abs(self.v[k]) < MAX_MEASUREMENT]

    def velocity_or(self, replacement: float | np.ndarray | None) -> np.ndarray:
        """Return the velocity; `replacement`, or differentiated positions, where it is unknown."""
        if replacement is None:
            rates = self.differentiator.rates
            replacement = np.where(np.abs(rates) <= self.judge.speed, rates, np.nan)
        v = self.v.copy()
        measured = v[self.v_of]
        v[self.v_of] = np.where(np.abs(measured) < MAX_MEASUREMENT, measured, replacement)
        return v
