# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions of the demo: all joints swing, within the limits of the robot."""

import numpy as np
from rbd_ros import Model
from rbd_ros.batch import inverse_dynamics
from rbd_ros.control import JointTrajectory
from rbd_ros.motions.limits import exceeding
from rbd_ros.motions.polynomials import smooth_step
from rbd_ros.ros import convert
from rbd_ros.ros.demo.robots import DemoFailed
from std_msgs.msg import Header
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage, JointTrajectoryPoint

FREQUENCY, AMPLITUDE, PRISMATIC_AMPLITUDE = 0.5, 0.3, 0.05    # Hz, and rad or m
SPACING, LEAD = 0.02, 1.0    # s: between points; from the start of a trajectory to its first point
# Largest share of the limits that a motion uses, and attempts at half the amplitude each.
LIMIT_SHARE, ATTEMPTS = 0.9, 6


class Motion:
    """
    A sine motion of all joints for `duration` s (at least two periods), faded in and out.

    It starts and ends at rest at q; `still` joints do not move. The amplitude is halved until the
    limits of the model, which includes the payload, hold; DemoFailed: they never do.

    """

    def __init__(self, model: Model, q: np.ndarray, duration: float,
                 still: tuple[int, ...] = ()) -> None:
        self._model, self._still, self.duration = model, still, duration
        self._times = np.arange(round(duration / SPACING) + 1) * SPACING
        size = np.minimum(
            np.where(model.angular, AMPLITUDE, PRISMATIC_AMPLITUDE),
            LIMIT_SHARE * np.maximum(np.minimum(model.upper - q, q - model.lower), 0.0))
        size[list(still)] = 0.0
        for _ in range(ATTEMPTS):
            self._q, self._v, self._a = swing(self._times, q, size, self._times[-1])
            if size.any() and self._allowed():
                break
            size *= 0.5
        else:
            raise DemoFailed(f"the limits of '{model.name}' leave no room for a motion")
        self._curve = JointTrajectory(model, self._times, self._q, self._v, self._a)

    def _allowed(self) -> bool:
        """Return whether velocities, their rates and efforts are within a share of the limits."""
        model, v, a = self._model, self._v / LIMIT_SHARE, self._a / LIMIT_SHARE
        tau = inverse_dynamics(model, self._q, self._v, self._a) / LIMIT_SHARE
        return not np.any(exceeding(model, self._times, v, a, tau))

    def at(self, t: float) -> np.ndarray:
        """Return the desired positions at a time, s."""
        return self._curve.at(t).q

    def message(self, begin: float) -> TrajectoryMessage:
        """Return the motion as a message that starts at a time, s since the epoch."""
        moving = [k for k in range(self._model.nv) if k not in self._still]
        header = Header(stamp=convert.time(convert.duration(begin)))
        return TrajectoryMessage(
            header=header, joint_names=[self._model.velocity_names[k] for k in moving],
            points=[JointTrajectoryPoint(
                positions=q[moving].tolist(), velocities=v[moving].tolist(),
                accelerations=a[moving].tolist(), time_from_start=convert.duration(t))
                for t, q, v, a in zip(self._times + LEAD, self._q, self._v, self._a)])


def swing(t: np.ndarray, q: np.ndarray, size: np.ndarray | float, end: float
          ) -> tuple[np.ndarray, np.ndarray, np.ndarray]:
    """Return positions, velocities and accelerations of a sine that rests at 0 and `end`, s."""
    w, period = 2.0 * np.pi * FREQUENCY, 1.0 / FREQUENCY
    up, down = (smooth_step(np.clip(x / period, 0.0, 1.0)) for x in (t, end - t))
    # Fade-in and fade-out do not overlap: one factor of each product is 1.
    share = up[0] * down[0]
    rate = (up[1] - down[1]) / period
    bend = (up[2] + down[2]) / period ** 2
    share, rate, bend = (x[:, None] for x in (share, rate, bend))
    angle = w * t[:, None] + np.arange(len(q))
    s, c = size * np.sin(angle), size * w * np.cos(angle)
    return q + share * s, share * c + rate * s, bend * s + 2.0 * rate * c - w * w * share * s
