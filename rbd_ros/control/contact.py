# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""External torques of contacts, and the wrench that explains them; errors: `rbd_ros.dynamics`."""

from __future__ import annotations

from collections.abc import Iterable
from dataclasses import replace

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.arrays import lapack
from rbd_ros.analysis.task_space import unit_of_length
from rbd_ros.batch.torque_deviation import torque_deviation
from rbd_ros.control.momentum_observer import GAIN, MomentumObserver
from rbd_ros.errors import ModelError, RecordingError
from rbd_ros.model.arguments import check_model, choice, finite_vector, number, sizes
from rbd_ros.model.constraints import attach
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import closed_along
from rbd_ros.recordings.plausibility import unwrapped
from rbd_ros.recordings.recording import Recording
from rbd_ros.workspace import workspace_of
from rbd_ros.workspace.memory.results import Frame, FRAMES


def external_wrench(model: Model, q: npt.ArrayLike, tau_ext: npt.ArrayLike, link: str, *,
                    frame: Frame = 'world-aligned', condition_limit: float = 100.0) -> np.ndarray:
    """
    Return the wrench on a link whose torques J^T f are nearest to external torques.

    Lengths are in units of `rbd_ros.analysis.task_space.characteristic_length`. With the singular
    values sigma_i of J, and its singular vectors u_i and v_i,

        f = sum u_i (v_i^T tau_ext) sigma_i / max(sigma_i, sigma_max / condition_limit)^2:

    the pseudo-inverse of J^T, except that f fades in directions in which the link can hardly move,
    for which the torques contain almost no information.

    Reference: Haddadin, De Luca and Albu-Schaeffer, IEEE T-RO 33 (2017), section VI; the damping:
    Nakamura and Hanafusa, J. Dyn. Sys. Meas. Control 108 (1986), for small singular values only.

    Parameters
    ----------
    model, q, tau_ext
        Robot; configuration (model.nq,), rad or m; external torques (model.nv,) as from
        `MomentumObserver`, N m or N.
    link : str
        The link in contact; torques do not reveal the location of a contact.
    frame : {'body', 'world-aligned'}
        Axes of the wrench, of the link or of the root; both at the link's origin.
    condition_limit : float
        Condition number of J beyond which the inverse is damped, at least 1; it bounds the
        amplification of torque errors.

    Returns
    -------
    ndarray, shape (6,), moment, N m, and force, N, on the link

    """
    tau_ext = finite_vector(model, 'tau_ext', tau_ext)
    limit = number('condition_limit', condition_limit, 1.0)
    aligned = choice('frame', frame, FRAMES) == 'world-aligned'
    workspace = workspace_of(model)
    J, _ = (workspace.world_jacobian if aligned else workspace.body_jacobian)(q, link)
    size = np.ones(6)
    size[3:] = unit_of_length(workspace, link)
    if not J.any():
        return np.zeros(6)
    J = J / size[:, None]
    # Squares of singular values below 1e-8 of the largest are rounding errors: torques do not show
    # such directions, whatever the limit.
    squares, U, failed = lapack().dsyev(J @ J.T)
    if failed:
        raise np.linalg.LinAlgError(f"the Jacobian of '{link}' has no singular values")
    return U @ (J @ tau_ext @ U / np.maximum(squares, squares[-1] / limit ** 2)) / size


# Fewest deviations of external torques that are a contact, and by how much these exceed the
# largest ones without contact. The deviations are for speeds below which friction after a reversal
# is not known, rad/s or m/s.
LEAST_DEVIATIONS, MARGIN, REVERSAL_SPEED = 6.0, 2.0, 0.1
# Time constants until the observer has settled; s, the longest pause between two states after
# which it need not settle again.
SETTLED, LONGEST_GAP = 4.0, 0.25


def contact_deviation(model: Model, q: np.ndarray, v: np.ndarray) -> np.ndarray:
    """Return the deviation of external torques of an identified robot, for states like v."""
    # An observer passes as much white noise as a sharp filter of a quarter of its gain in Hz.
    return torque_deviation(model, q, v, np.zeros_like(v), smooth=REVERSAL_SPEED,
                            bandwidth=0.25 * GAIN)


def contact_deviations(model: Model, margin: float = MARGIN) -> np.ndarray:
    """Return the number of deviations that are a contact, by joint of an identified robot."""
    assert model.uncertainty is not None
    return np.maximum(LEAST_DEVIATIONS, margin * model.uncertainty.external)


def external_deviations(model: Model, recording: Recording, gain: npt.ArrayLike = GAIN
                        ) -> np.ndarray:
    """Return external torques in deviations, (states, nv), as a node estimates them."""
    # The observer takes the states as they were recorded, with all noise and uneven times.
    motion = recording.for_robot(model)
    motion = replace(motion, position=unwrapped(model, motion.time, motion.position)[0])
    if motion.effort is None or np.any(np.isnan(motion.effort)):
        raise RecordingError(f'{recording.name}: external torques need the efforts of all joints')
    time, q = motion.time, closed_along(model, motion.position)
    v = motion.velocities()
    observer = MomentumObserver(model, gain, longest_gap=LONGEST_GAP)
    external = np.array([observer.update(*state) for state in zip(time, q, v, motion.effort)])
    begins = np.concatenate(([True], np.diff(time) > LONGEST_GAP))
    since = time - np.maximum.accumulate(np.where(begins, time, -np.inf))
    external[since < SETTLED / np.min(gain)] = 0.0
    return np.abs(external) / contact_deviation(model, q, v)


def largest_external(model: Model, recording: Recording, gain: float = GAIN) -> np.ndarray:
    """Return the largest external torques in deviations, (nv,); 0: the observer never settled."""
    return np.asarray(np.max(external_deviations(model, recording, gain), axis=0, initial=0.0))


def with_contact_calibration(model: Model, recordings: Recording | Iterable[Recording], *,
                             gain: float = GAIN) -> Model:
    """
    Return an identified robot that knows its largest external torques without contact.

    They are what an observer makes of errors of the model, noise and uneven times, and decide
    which external torques are a contact (the node's ``contact_thresholds: deviation``).

    Parameters
    ----------
    model : Model
        A robot with an uncertainty, from `rbd_ros.identification.with_uncertainty`.
    recordings : Recording or iterable of Recording
        Motions in which nothing touches the robot, such as those of the identification.
    gain : float
        Gain of the `MomentumObserver`, 1/s.

    Returns
    -------
    Model
        The robot with `rbd_ros.model.Uncertainty.external`.

    Raises
    ------
    ModelError
        If the robot has no uncertainty.
    RecordingError
        If a joint or its effort was not recorded.

    """
    check_model(model)
    known = model.uncertainty
    if known is None:
        raise ModelError(f"robot '{model.name}' has no uncertainty: identify it, and use "
                         'identification.with_uncertainty')
    gain = number('gain', gain, 0.0)
    recordings = (recordings,) if isinstance(recordings, Recording) else recordings
    external = np.max([np.zeros(model.nv)] + [
        largest_external(model, one, gain) for one in recordings], axis=0)
    return attach(model, replace(known, external=external))


def detectable_forces(J: np.ndarray, threshold: np.ndarray) -> np.ndarray:
    """
    Return the smallest forces (states, 3), N, on a link at which a joint exceeds its threshold.

    ``J`` (states, 6, nv) are the link's Jacobians in the axes of the root, ``threshold`` (states,
    nv) is in N m or N. Forces act at the link's origin along x, y and z; inf: no joint feels them.

    """
    with np.errstate(divide='ignore'):
        return 1.0 / np.max(np.abs(J[:, 3:]) / threshold[:, None, :], axis=2)


class ContactDetector:
    """
    Detect contact by thresholds on external torques, calibrated in free motion.

    Without given thresholds, the detector calibrates first: the robot moves freely, as in later
    use, for ``calibration_time``. The threshold of each joint is ``margin`` times the largest
    external torque that model and sensor errors cause in that time. Afterwards

        contact:  a joint has exceeded its threshold, and since then the torques of all joints have
                  never been below release times their thresholds for as long as hold;
        free:     no joint has exceeded its threshold since the last contact ended, or a reset.

    Parameters
    ----------
    model : Model
    threshold : array_like, shape () or (model.nv,), optional
        N m or N; None: calibrated.
    least : array_like, shape () or (model.nv,)
        Smallest threshold that a calibration sets, N m or N.
    margin, release : float
        At least 1, and between 0 and 1.
    calibration_time, hold, longest_gap : float
        s; pauses longer than ``longest_gap`` do not count.

    Attributes
    ----------
    contact, threshold
        Whether there is contact; N m or N, None: not calibrated yet.

    """

    def __init__(self, model: Model, *, threshold: npt.ArrayLike | None = None,
                 calibration_time: float = 10.0, margin: float = 2.0, least: npt.ArrayLike = 0.0,
                 release: float = 0.5, hold: float = 0.05, longest_gap: float = 0.1) -> None:
        self.threshold: np.ndarray | None
        self._model = model
        self._calibration_time = number('calibration_time', calibration_time, 0.0)
        self._margin = number('margin', margin, 1.0)
        self._least = sizes('least', least, model.nv)
        self._release = number('release', release, 0.0, 1.0)
        self._hold = number('hold', hold, 0.0)
        self._longest_gap = number('longest_gap', longest_gap, 0.0)
        self.calibrate()
        if threshold is not None:
            self.threshold = sizes('threshold', threshold, model.nv)

    def calibrate(self) -> None:
        """Start a calibration, during which the robot moves freely."""
        self.threshold = None
        self._largest, self._calibrated = np.zeros(self._model.nv), 0.0
        self.reset()

    @property
    def calibration_left(self) -> float:
        """Return the remaining time of the calibration, s; 0: there are thresholds."""
        return (self._calibration_time - self._calibrated) if self.threshold is None else 0.0

    def reset(self) -> None:
        """Discard the contact; the next sample does not continue the last one."""
        self.contact = False
        self._time: float | None = None
        self._quiet = 0.0

    def update(self, t: float, tau_ext: npt.ArrayLike) -> bool:
        """
        Process a sample and return whether there is contact; False during the calibration.

        ``t`` is its time, s, and ``tau_ext`` (model.nv,) the external torques as from
        `MomentumObserver`, N m or N. A sample that is not later than the last one adds no time.
        After a StateError the detector is unchanged.

        """
        t, size = number('t', t), np.abs(finite_vector(self._model, 'tau_ext', tau_ext))
        step = 0.0 if self._time is None else t - self._time
        step = step if 0.0 < step <= self._longest_gap else 0.0
        self._time = t
        if self.threshold is None:
            self._largest = np.maximum(self._largest, size)
            self._calibrated += step
            if self._calibrated >= self._calibration_time:
                self.threshold = np.maximum(self._margin * self._largest, self._least)
        elif np.any(size > self.threshold):
            self.contact, self._quiet = True, 0.0
        elif self.contact:
            below = np.all(size <= self._release * self.threshold)
            self._quiet = self._quiet + step if below else 0.0
            self.contact = not (below and self._quiet >= self._hold)
        return self.contact
