# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Fastest motions of a Panda through a hundred waypoints, by `retime` and by toppra alone.

Both keep to limits of velocity, acceleration and torque, toppra at its grid points, with our
inverse dynamics as its constraint. Durations, times of calls, and the largest excess of a limit at
1 kHz are compared.

"""

from functools import partial

import numpy as np
import rbd_ros
from rbd_ros import analysis, batch
from scipy.interpolate import CubicHermiteSpline
from timing import options, save, take_turns
import toppra
from toppra import algorithm, constraint
from trust import load, PANDA_URDF

ACCELERATION, WAYPOINTS = 15.0, 100     # rad/s^2
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
        toppra.SplineInterpolator(np.linspace(0.0, 1.0, len(waypoints)), waypoints,
                                  bc_type='natural'),
        solver_wrapper='seidel', parametrizer='ParametrizeConstAccel').compute_trajectory()


def main() -> None:
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    toppra.setup_logging('ERROR')
    model, rows = load(PANDA_URDF), {}
    for name, waypoints in paths().items():
        found, other = ours(model, waypoints), theirs(model, waypoints)
        times = take_turns({'ours': partial(ours, model, waypoints),
                            'theirs': partial(theirs, model, waypoints)}, quick=quick)
        rows[name] = [(duration, 1e3 * float(np.median(times[which])),
                       100.0 * excess(model, *(motion(np.arange(0.0, duration, 1e-3), k)
                                               for k in range(3))))
                      for which, duration, motion in (
                          ('ours', found.time[-1],
                           CubicHermiteSpline(found.time, found.q, found.v)),
                          ('theirs', other.duration, other))]
        print(f'{name:12}', *(f'{who}: {duration:.4f} s, {ms:.0f} ms, {above:.3f} % above'
                              for who, (duration, ms, above) in zip(('ours', 'toppra'),
                                                                    rows[name])), flush=True)
    save('retiming', quick, {'waypoints': WAYPOINTS, 'rows': rows})


if __name__ == '__main__':
    main()
