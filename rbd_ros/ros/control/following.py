# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether the robot follows its reference within tolerances, and the fate of each motion."""

from collections.abc import Callable, Sequence
from typing import Any, NamedTuple

import numpy as np
from rbd_msgs.msg import ReferenceStatus
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.ros.control.references import Motion, Motions, Part


class Tolerances(NamedTuple):
    """
    How far the robot may be from its reference.

    Attributes
    ----------
    path, goal : ndarray
        Largest error of each label during a motion, and after it; infinite: no limit.
    goal_time : float
        Time after the end of a motion in which the goal must be reached, s; infinite: no limit.
    labels : sequence of str
        Names of the errors.
    units : sequence of str
        Their units.

    """

    path: np.ndarray
    goal: np.ndarray
    goal_time: float
    labels: Sequence[str]
    units: Sequence[str]


class Following:
    """
    A reference, its motions, and whether the robot follows them.

    Each motion that was added ends in one way: it is reached, replaced by a later one, or aborted.

    Parameters
    ----------
    reference : JointReference or PoseReference
        Where the reference rests at first.
    tolerances : Tolerances
        How far the robot may be from it.
    tell : callable
        Called with the sender of a motion, a state of `ReferenceStatus` and the reason.

    """

    def __init__(self, reference: JointReference | PoseReference, tolerances: Tolerances,
                 tell: Callable[[Any, int, str], None]) -> None:
        self._motions, self._tolerances, self._tell = Motions(reference), tolerances, tell
        self._open: list[Part] = []
        self.at, self.left = self._motions.at, self._motions.left

    def add(self, now: float, begin: float, duration: float, motion: Motion, sender: Any) -> None:
        """Add a motion; see `Motions.add`."""
        for part in self._motions.add(now, begin, duration, motion, sender):
            self._conclude(part, ReferenceStatus.REPLACED, 'a later message replaces it')
        self._open.append(self._motions.part(begin))

    def judge(self, now: float, errors: np.ndarray) -> str:
        """
        Return why the present motion must be aborted; empty: it need not.

        Parameters
        ----------
        now : float
            Time, s.
        errors : ndarray
            Distance of the robot from the reference, for each label.

        """
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
        """Return a sentence about the errors that exceed a tolerance."""
        labels, units = self._tolerances.labels, self._tolerances.units
        return '; '.join(
            f'{labels[k]} is {errors[k]:.3g} {units[k]} from its reference, {name} is {most[k]:g}'
            for k in np.flatnonzero(errors > most).tolist())

    def abort(self, reason: str) -> None:
        """Conclude all motions that have not ended."""
        for part in list(self._open):
            self._conclude(part, ReferenceStatus.ABORTED, reason)

    def _conclude(self, part: Part, state: int, reason: str) -> None:
        """Tell the sender of a motion how it ended."""
        if part in self._open:
            self._open.remove(part)
            self._tell(part.sender, state, reason)
