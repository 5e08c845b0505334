# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far the measured torques of an identified robot may be from the computed ones."""

from dataclasses import dataclass, field

import numpy as np

# Intervals hold this share of the torques, within so many deviations (normal distribution).
SHARE, HALF_WIDTH = 0.9, 1.6448536269514722


@dataclass(frozen=True, eq=False)
class Uncertainty:
    """
    Covariance of the identified parameters, and noise of the torques by joint and speed.

    Attributes
    ----------
    joints : tuple of str
        The velocities that ``noise`` belongs to: all of the robot, in its order.
    parameters : tuple of str
        Base parameters, by the names of the parameters that stand for them, as in
        `rbd_ros.model.inertial_parameter_names` and `rbd_ros.model.drive_parameter_names`.
    factor : ndarray, shape (parameters, parameters)
        Upper triangular R: R^T R is the covariance of the base parameters.
    speed : ndarray, shape (joints, speeds)
        Increasing speeds of each joint, rad/s or m/s.
    noise : ndarray, shape (bandwidths, joints, speeds), or (joints, speeds) for one bandwidth
        Standard deviation of its torque there, N m or N, apart from that of the parameters.
        Between two speeds it changes linearly, beyond them it is constant.
    external : ndarray, shape (joints,)
        Largest external torque of each joint in recordings without contact, in deviations, from
        `rbd_ros.control.with_contact_calibration`; 0: unknown.
    bandwidth : ndarray, shape (bandwidths,)
        Increasing bandwidths of the torques, Hz; the last one stands for those not filtered. The
        variance changes linearly between them, as that of white noise, and is constant beyond.

    """

    joints: tuple[str, ...]
    parameters: tuple[str, ...]
    factor: np.ndarray
    speed: np.ndarray
    noise: np.ndarray
    external: np.ndarray
    bandwidth: np.ndarray = field(default_factory=lambda: np.zeros(1))

    def noise_at(self, v: np.ndarray, bandwidth: float = np.inf) -> np.ndarray:
        """Return the noise of all joints at velocities, (..., joints); infinite: as recorded."""
        variance = np.square(self.noise).reshape(len(self.bandwidth), *self.speed.shape)
        at = np.interp(bandwidth, self.bandwidth, np.arange(len(variance)))
        below, above = variance[[int(np.floor(at)), int(np.ceil(at))]]
        noise = np.sqrt(below + at % 1.0 * (above - below))
        return np.stack([np.interp(np.abs(v[..., k]), *row)
                         for k, row in enumerate(zip(self.speed, noise))], axis=-1)
