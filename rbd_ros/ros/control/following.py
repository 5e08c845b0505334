# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Supervision of motions: tolerances, and how each motion ends."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rbd_msgs.msg import ReferenceStatus
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.ros.control.references import Motion, Motions, Part


class Tolerances(NamedTuple):
    """Largest errors of the robot with respect to its reference; infinite: no limit."""

    # For each label, during a motion and after it.
    path: np.ndarray
    goal: np.ndarray
    goal_time: float    # s after the end of a motion, in which the goal must be reached
    labels: Sequence[str]
    units: Sequence[str]


class Following:
    """
    A reference, its motions, and whether the robot follows them.

    Each added motion ends once: reached, replaced or aborted; `publish` is then called with its
    sender, a state of `ReferenceStatus` and the reason.

    """

    def __init__(self, reference: JointReference | PoseReference, tolerances: Tolerances,
                 publish: Callable[[Any, int, str], None]) -> None:
        self._motions, self._tolerances, self._publish = Motions(reference), tolerances, publish
        self._open: list[Part] = []
        self.at, self.left = self._motions.at, self._motions.left

    def add(self, now: float, begin: float, duration: float, motion: Motion, sender: Any) -> None:
        """Add a motion; see `Motions.add`."""
        for part in self._motions.add(now, begin, duration, motion, sender):
            self._conclude(part, ReferenceStatus.REPLACED, 'a later message replaces it')
        self._open.append(self._motions.part(begin))

    def judge(self, now: float, errors: np.ndarray) -> str:
        """Return why errors, one per label, abort the current motion; empty: they do not."""
        part, tolerances = self._motions.part(now), self._tolerances
        for other in [one for one in self._open if one.begin < part.begin]:
            self._conclude(other, ReferenceStatus.REPLACED, 'a later motion has begun')
        if part not in self._open:
            return ''
        if np.any(errors > tolerances.path):
            return self._why('path_tolerance', errors, tolerances.path)
        if now < part.end:
            return ''
        if np.all(errors <= tolerances.goal):
            self._conclude(part, ReferenceStatus.REACHED, '')
        elif now - part.end > tolerances.goal_time:
            return (self._why('goal_tolerance', errors, tolerances.goal)
                    + f', {tolerances.goal_time:g} s after the end of the motion')
        return ''

    def _why(self, name: str, errors: np.ndarray, most: np.ndarray) -> str:
        labels, units = self._tolerances.labels, self._tolerances.units
        return '; '.join(
            f'{labels[k]} is {errors[k]:.3g} {units[k]} from its reference, {name} is {most[k]:g}'
            for k in np.flatnonzero(errors > most).tolist())

    def abort(self, reason: str) -> None:
        """Abort all motions that have not ended."""
        for part in list(self._open):
            self._conclude(part, ReferenceStatus.ABORTED, reason)

    def _conclude(self, part: Part, state: int, reason: str) -> None:
        if part in self._open:
            self._open.remove(part)
            self._publish(part.sender, state, reason)
