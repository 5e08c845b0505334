# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whether something touches the robot: external torques beyond what free motion shows."""

from __future__ import annotations

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_vector, number, shown
from rbd_ros.model.model import Model


class ContactDetector:
    """
    Tell contact from the errors of model and sensors, by thresholds learnt in free motion.

    Unless thresholds are given, it is calibrated at first: the robot moves freely, as it will
    later, for ``calibration_time``; the largest external torque of each joint that appears
    meanwhile, times ``margin``, is the threshold of that joint. Afterwards contact begins when one
    joint is beyond its threshold, and ends when all of them have been below ``release`` times
    theirs for ``hold``.

    While thresholds are known, and only then,

        contact:  some joint was beyond its threshold, and since then never all were below
                  release times theirs for as long as hold;
        free:     since the end of the last contact, or a reset, no joint was beyond its threshold.

    Parameters
    ----------
    model : Model
        The robot.
    threshold : array_like, shape () or (model.nv,), optional
        N m or N; None: learnt by calibration.
    calibration_time : float
        s. What counts is the time that samples cover: pauses longer than ``longest_gap`` do not.
    margin : float
        At least 1.
    least : array_like, shape () or (model.nv,)
        Least threshold, N m or N, whatever free motion shows.
    release : float
        Between 0 and 1.
    hold : float
        s.
    longest_gap : float
        s.

    Attributes
    ----------
    contact : bool
        Whether something touches the robot.
    threshold : ndarray, shape (model.nv,), or None
        N m or N; None: not calibrated yet.

    """

    def __init__(self, model: Model, *, threshold: npt.ArrayLike | None = None,
                 calibration_time: float = 10.0, margin: float = 2.0,
                 least: npt.ArrayLike = 0.0, release: float = 0.5, hold: float = 0.05,
                 longest_gap: float = 0.1) -> None:
        self.threshold: np.ndarray | None
        self._model = model
        self._calibration_time = number('calibration_time', calibration_time, 0.0)
        self._margin = number('margin', margin, 1.0)
        self._least = self._sizes('least', least)
        self._release = number('release', release, 0.0, 1.0)
        self._hold = number('hold', hold, 0.0)
        self._longest_gap = number('longest_gap', longest_gap, 0.0)
        self.calibrate()
        if threshold is not None:
            self.threshold = self._sizes('threshold', threshold)

    def _sizes(self, label: str, values: npt.ArrayLike) -> np.ndarray:
        """Return a number for each velocity that is not negative."""
        sizes = finite_vector(self._model, label, np.broadcast_to(values, (self._model.nv,))
                              if np.ndim(values) == 0 else values)
        if np.any(sizes < 0.0):
            raise StateError(f'{label} must not be negative, got {shown(values)}')
        return sizes

    def calibrate(self) -> None:
        """Begin to learn the thresholds anew: from now on the robot moves freely."""
        self.threshold = None
        self._largest, self._learnt = np.zeros(self._model.nv), 0.0
        self.reset()

    @property
    def calibration_left(self) -> float:
        """Return how much longer the calibration takes, s; 0 where thresholds are known."""
        return (self._calibration_time - self._learnt) if self.threshold is None else 0.0

    def reset(self) -> None:
        """Forget the contact: what comes next does not continue the last sample."""
        self.contact = False
        self._time: float | None = None
        self._quiet = 0.0

    def update(self, t: float, tau_ext: npt.ArrayLike) -> bool:
        """
        Take another sample, and return whether there is contact.

        A sample that is not later than the last one adds no time.

        Parameters
        ----------
        t : float
            Time of the sample, s.
        tau_ext : array_like, shape (model.nv,)
            External torques, as `MomentumObserver` finds them, N m or N.

        Returns
        -------
        bool
            False while it is being calibrated.

        Raises
        ------
        StateError
            If an argument has the wrong shape or is not finite; the detector is as before.

        """
        t, size = number('t', t), np.abs(finite_vector(self._model, 'tau_ext', tau_ext))
        step = 0.0 if self._time is None else t - self._time
        step = step if 0.0 < step <= self._longest_gap else 0.0
        self._time = t
        if self.threshold is None:
            self._largest = np.maximum(self._largest, size)
            self._learnt += step
            if self._learnt >= self._calibration_time:
                self.threshold = np.maximum(self._margin * self._largest, self._least)
        elif np.any(size > self.threshold):
            self.contact, self._quiet = True, 0.0
        elif self.contact:
            below = np.all(size <= self._release * self.threshold)
            self._quiet = self._quiet + step if below else 0.0
            self.contact = not (below and self._quiet >= self._hold)
        return self.contact
