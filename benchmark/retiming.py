# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Fastest motions of a Panda through a hundred waypoints, by `retime` and by toppra alone.

Both keep to limits of velocity, acceleration and torque, toppra at its grid points, with our
inverse dynamics as its constraint. Prints durations, times of calls, and by how much each motion
exceeds a limit at 1 kHz.

"""

import sys
from time import perf_counter

import numpy as np
import rbd_ros
from rbd_ros import analysis, batch
from scipy.interpolate import CubicHermiteSpline
import toppra
from toppra import algorithm, constraint
from trust import load, PANDA_URDF

ACCELERATION, WAYPOINTS, ROUNDS = 15.0, 100, 5      # rad/s^2
BENT = np.array([0.0, -0.4, 0.0, -1.8, 0.0, 1.6, 0.8])


def paths() -> dict[str, np.ndarray]:
    """Return waypoints (points, nq) by the name of the path."""
    s, rng = np.linspace(0.0, 1.0, WAYPOINTS)[:, None], np.random.default_rng(0)
    phase, turns = np.arange(7.0), np.array([1.0, 2.0, 1.5, 1.0, 2.5, 2.0, 3.0])
    walk = np.cumsum(0.1 * rng.normal(size=(WAYPOINTS, 7)), axis=0)
    return {'line': BENT + 0.5 * s, 'random walk': BENT + np.clip(walk, -0.6, 0.6),
            'sines': BENT + 0.6 * (np.sin(2.0 * np.pi * turns * s + phase) - np.sin(phase))}


def excess(model: rbd_ros.Model, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> float:
    """Return by how much states exceed limits of the robot, as a share."""
    tau = batch.inverse_dynamics(model, q, v, a)
    return max(0.0, *(float(np.max(np.abs(x) / most)) - 1.0 for x, most in (
        (v, model.velocity_limit), (a, ACCELERATION), (tau, model.effort_limit))))


def ours(model: rbd_ros.Model, waypoints: np.ndarray) -> analysis.RetimedPath:
    """Return the motion of `retime`."""
    return analysis.retime(model, waypoints, acceleration_limit=np.full(7, ACCELERATION))


def theirs(model: rbd_ros.Model, waypoints: np.ndarray):
    """Return the trajectory of toppra."""
    velocity, acceleration, effort = (np.stack((-x, x), axis=1) for x in (
        model.velocity_limit, np.full(7, ACCELERATION), model.effort_limit))
    torques = constraint.JointTorqueConstraint(
        lambda q, v, a: rbd_ros.inverse_dynamics(model, q, v, a), effort, np.zeros(7))
    return algorithm.TOPPRA(
        [constraint.JointVelocityConstraint(velocity),
         constraint.JointAccelerationConstraint(acceleration), torques],
        toppra.SplineInterpolator(np.linspace(0.0, 1.0, len(waypoints)), waypoints),
        solver_wrapper='seidel', parametrizer='ParametrizeConstAccel').compute_trajectory()


def milliseconds(call, *arguments) -> float:
    """Return the median time of a call."""
    times = []
    for _ in range(ROUNDS):
        start = perf_counter()
        call(*arguments)
        times.append(perf_counter() - start)
    return 1e3 * float(np.median(times))


def main() -> int:
    """Print the table."""
    toppra.setup_logging('ERROR')
    model = load(PANDA_URDF)
    print(f'{"":12}{"retime: s":>11}{"ms":>7}{"above":>9}{"toppra: s":>13}{"ms":>7}{"above":>9}')
    for name, waypoints in paths().items():
        found, other = ours(model, waypoints), theirs(model, waypoints)
        spline = CubicHermiteSpline(found.time, found.q, found.v)
        line = f'{name:12}'
        for width, duration, call, motion in ((11, found.time[-1], ours, spline),
                                              (13, other.duration, theirs, other)):
            t = np.arange(0.0, duration, 1e-3)
            above = excess(model, *(motion(t, k) for k in range(3)))
            line += (f'{duration:{width}.4f}{milliseconds(call, model, waypoints):7.0f}'
                     f'{100.0 * above:7.3f} %')
        print(line)
    return 0


if __name__ == '__main__':
    sys.exit(main())
