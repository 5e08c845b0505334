# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The reference of a control law: motions that never step, and whether the robot follows."""

from collections.abc import Callable, Sequence
from math import sqrt
from typing import Any, NamedTuple, TypeAlias

from geometry_msgs.msg import PoseStamped
import numpy as np
from rbd_msgs.msg import ReferenceStatus
from rbd_ros._internal.text import listed
from rbd_ros.control import JointReference, JointTrajectory, PoseMotion, PoseReference
from rbd_ros.model.joints import quaternion_matrix
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import moved_closed
from rbd_ros.model.positions.steps import turning, without_turns
from rbd_ros.model.se3 import pose, rotation_vector
from rbd_ros.ros import convert
from rbd_ros.workspace import Workspace
# Loaded at once, so that the first motion is not delayed.
import scipy.interpolate    # noqa: F401
from trajectory_msgs.msg import JointTrajectory as TrajectoryMessage

START_TOLERANCE = 0.05    # rad or m: largest distance of a point at 0 s from the reference
REST_SPEED = 1e-3    # rad/s or m/s: slower joints are at rest
# s: time in which a motion stops, and shortest motion of a pose.
STOP_TIME, MIN_DURATION = 0.25, 0.5
REACHED_ANGLE = 0.05    # rad: largest error of a rotation that counts as reached
PEAK = 1.875    # Ratio of the largest to the mean speed of `PoseMotion`
NORM_TOLERANCE = 1e-3    # Largest deviation of the norm of a quaternion from 1
# Largest numbers of motions that wait, and of points of one motion.
MAX_WAITING, MAX_POINTS = 8, 5000


class Refused(Exception):
    """A reference is refused; the message states the reason."""


Motion: TypeAlias = JointTrajectory | PoseMotion


class Part(NamedTuple):
    """A motion of the reference from `begin` to `end`, s; initial rest has no sender."""

    begin: float
    end: float
    at: Callable[[float], Any]    # The reference at a time since `begin`, s
    sender: Any


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
    The reference at any time, at first at rest, and whether the robot follows its motions.

    Each added motion ends once: reached, replaced or aborted; `publish` is then called with its
    sender, a state of `ReferenceStatus` and the reason.

    """

    def __init__(self, reference: JointReference | PoseReference, tolerances: Tolerances,
                 publish: Callable[[Any, int, str], None]) -> None:
        self._tolerances, self._publish = tolerances, publish
        self._parts = [Part(-np.inf, -np.inf, lambda t: reference, None)]
        self._open: list[Part] = []

    def _part(self, t: float) -> Part:
        """Return the motion at a time, s, which may have ended."""
        return next(part for part in reversed(self._parts) if part.begin <= t)

    def at(self, t: float) -> Any:
        """Return the reference at a time, s."""
        part = self._part(t)
        return part.at(t - part.begin)

    def left(self, now: float) -> float:
        """Return the time until the reference rests, s."""
        return max(self._parts[-1].end - now, 0.0)

    def add(self, now: float, begin: float, duration: float, at: Callable[[float], Any],
            sender: Any) -> None:
        """Add a motion that starts at `begin`, s, in place of those that start later."""
        parts = [part for part in self._parts if part.begin < begin]
        dropped = self._parts[len(parts):]
        while len(parts) > 1 and parts[1].begin <= now:
            parts.pop(0)
        if len(parts) > MAX_WAITING:
            raise Refused(f'{MAX_WAITING} motions are already waiting')
        self._parts = [*parts, Part(begin, begin + duration, at, sender)]
        for part in dropped:
            self._conclude(part, ReferenceStatus.REPLACED, 'a later message replaces it')
        self._open.append(self._parts[-1])

    def judge(self, now: float, errors: np.ndarray) -> str:
        """Return why errors, one per label, abort the current motion; empty: they do not."""
        part, tolerances = self._part(now), self._tolerances
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


def read_trajectory(message: TrajectoryMessage, model: Model, start: JointReference,
                    with_efforts: bool) -> tuple[Motion, float]:
    """
    Return the motion of a trajectory from a reference, and its duration, s, or raise Refused.

    Joints without a column do not move, and continuous ones go the shortest way to the first point
    and across half a turn; without points, all joints stop. With `with_efforts`, free joints get
    the efforts; else these are ignored. Raise StateError if the motion exceeds limits; joints that
    start beyond one may move back.

    """
    if model.unconstrained.nq != model.unconstrained.nv:
        raise Refused(f"'{model.name}' has joints with quaternions, which trajectories lack")
    if not message.points:
        return (JointTrajectory(model, [0.0, STOP_TIME], [start.q, start.q],
                                [start.v, np.zeros(model.nv)],
                                tau=[start.tau, np.zeros(model.nv)]), STOP_TIME)
    columns = _columns(message.joint_names, model)
    times = np.array([convert.seconds(point.time_from_start) for point in message.points])
    if len(times) > MAX_POINTS:
        raise Refused(f'it has {len(times)} points, more than {MAX_POINTS}')
    if times[0] < 0.0 or np.any(np.diff(times) <= 0.0):
        raise Refused('its times do not increase, or begin before 0 s')
    given = {}
    for label in ('positions', 'velocities', 'accelerations', 'effort'):
        rows = [getattr(point, label) for point in message.points]
        lengths = {len(row) for row in rows}
        if lengths == {len(columns)}:
            given[label] = np.array(rows, float)
            if not np.all(np.isfinite(given[label])):
                raise Refused(f'not all {label} are finite')
        elif lengths != {0}:
            raise Refused(f'its points must all have {len(columns)} {label}, or none')
    if 'positions' not in given:
        raise Refused('its points have no positions')
    if 'accelerations' in given and 'velocities' not in given:
        raise Refused('it has accelerations, but no velocities')
    x = start.q if model.loops is None else start.q[model.loops.own]
    given['positions'] = _unwrapped(given['positions'], x[columns], turning(model)[columns])
    away = np.abs(given['positions'][0] - x[columns])
    if times[0] == 0.0 and np.any(away > START_TOLERANCE):
        raise Refused(f"'{model.velocity_names[columns[np.argmax(away)]]}' is more than "
                      f'{START_TOLERANCE} rad or m from the current reference, at 0 s')
    if 'velocities' in given and np.any(np.abs(given['velocities'][-1]) > REST_SPEED):
        raise Refused('its last point is not at rest')

    def all_joints(rest: np.ndarray, label: str, first: np.ndarray) -> np.ndarray:
        rows = np.tile(rest, (len(times), 1))
        rows[:, columns] = given.get(label, rows[:, columns])
        return np.vstack((first, rows if times[0] > 0.0 else rows[1:]))

    still = np.zeros(model.nv)
    q = all_joints(x, 'positions', x)
    if model.loops is not None:
        closed = [start.q]
        for step in np.diff(q, axis=0):
            closed.append(moved_closed(model, closed[-1], step))
        q = np.array(closed)
    v = all_joints(still, 'velocities', start.v) if 'velocities' in given else None
    a = all_joints(still, 'accelerations', start.a) if 'accelerations' in given else None
    tau = all_joints(start.tau, 'effort', start.tau) if with_efforts else None
    if times[0] > 0.0:
        times = np.concatenate(([0.0], times))
    if len(times) == 1:
        raise Refused('its only point is at 0 s: give the time at which the robot reaches it')
    motion = JointTrajectory(model, times, q, v, a, tau, start.v if v is None else None)
    # Efforts of the other joints depend on the motion of free joints, which is unknown.
    motion.check_limits(effort=not with_efforts)
    return motion, float(times[-1])


def _unwrapped(q: np.ndarray, start: np.ndarray, turns: np.ndarray) -> np.ndarray:
    """
    Return points (points, joints) with the shortest ways of joints that turn without limits.

    The first point is at most half a turn from the start, as for joint_trajectory_controller, and
    so is a point from the one before, if both are within half a turn of zero.

    """
    steps = np.diff(q, axis=0, prepend=[start])
    turned = without_turns(steps, turns) - steps
    turned[1:][np.maximum(np.abs(q[1:]), np.abs(q[:-1])) > np.pi] = 0.0
    return q + np.cumsum(turned, axis=0)


def _columns(names: list[str], model: Model) -> np.ndarray:
    places = {name: k for k, name in enumerate(model.velocity_names)}
    unknown = [name for name in names if name not in places]
    if unknown:
        raise Refused(f"the robot has no joint '{unknown[0]}', only "
                      + listed(model.velocity_names))
    if not names or len(set(names)) < len(names):
        raise Refused('it names no joint, or one twice: ' + listed(names))
    return np.array([places[name] for name in names])


def read_pose(message: PoseStamped, frame: np.ndarray, start: PoseReference, speed: float,
              angular_speed: float) -> tuple[PoseMotion, float]:
    """
    Return the motion from `start` to the pose of a message, and its duration, s.

    `frame` is the pose of the header's frame in the root's frame; `speed` and `angular_speed` are
    the largest speeds of a motion from rest, m/s and rad/s. Raise Refused for an invalid pose.

    """
    quaternion, position = convert.pose(message.pose)
    norm = np.linalg.norm(quaternion)
    if not (np.all(np.isfinite(position)) and abs(norm - 1.0) <= NORM_TOLERANCE):
        raise Refused('it is not a pose: its position is not finite, or the norm of its '
                      'quaternion is not 1')
    goal = frame @ pose(quaternion_matrix(quaternion / norm), position)
    angle = np.linalg.norm(rotation_vector(goal[:3, :3] @ start.T[:3, :3].T))
    way = np.linalg.norm(goal[:3, 3] - start.T[:3, 3])
    duration = max(MIN_DURATION, PEAK * way / speed, PEAK * angle / angular_speed)
    return PoseMotion(start.T, goal, duration, twist=start.V), float(duration)


def check_reach(motion: PoseMotion, duration: float, model: Model, link: str,
                q: np.ndarray) -> str:
    """Refuse a goal out of reach; return a warning if only its rotation may be."""
    angle, distance = reach_error(model, link, motion.at(duration).T, q)
    if distance > REACHED:
        raise Refused(f"it is out of reach: '{link}' gets no closer than {distance:.3g} m")
    return (f"its rotation may be out of reach: '{link}' was found to get no closer than "
            f'{angle:.3g} rad' if angle > REACHED_ANGLE else '')


REACHED = 0.01  # m: largest error of a position that counts as reached
STARTS = 6  # additional searches from random configurations within the limits
# Steps of one search, its initial and smallest damping, and the factors after a better and a worse
# step.
MAX_STEPS, DAMPING, MIN_DAMPING, BETTER, WORSE = 60, 1e-2, 1e-8, 0.3, 5.0
MAX_DAMPING = 1e6   # damping at which a search ends: no step improves


def reach_error(model: Model, link: str, T: np.ndarray, q: np.ndarray) -> tuple[float, float]:
    """Return the smallest pose error of a link, rad and m, that a search within limits finds."""
    # Damped least squares (Levenberg-Marquardt: Nocedal and Wright, "Numerical Optimization",
    # Springer 2006, 10.3) start at q with the rotation. If the position is not reached, the
    # rotation is dropped, and they start at q and at `STARTS` other configurations, the same at
    # every call. Joints at a limit are held there. The model must have no quaternions.
    angle, distance = _search(model, link, T, q, slice(0, 6))
    if distance <= REACHED:
        return angle, distance
    lower, upper = np.maximum(model.lower, -np.pi), np.minimum(model.upper, np.pi)
    others = np.random.default_rng(0).uniform(lower, upper, (STARTS, model.nv))
    for start in (q, 0.5 * (lower + upper), *others):
        distance = min(distance, _search(model, link, T, start, slice(3, 6))[1])
        if distance <= REACHED:
            break
    return angle, distance


def _search(model: Model, link: str, T: np.ndarray, q: np.ndarray,
            rows: slice) -> tuple[float, float]:
    """Return the remaining rotation and distance that minimize some rows of the error."""
    workspace = Workspace(model)

    def error(q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        J, pose = workspace.body_jacobian(q, link)
        R = pose[:3, :3]
        e = np.concatenate((rotation_vector(T[:3, :3] @ R.T), T[:3, 3] - pose[:3, 3]))
        return e, (R @ J.reshape(2, 3, -1)).reshape(6, -1)
    q = np.clip(q, model.lower, model.upper)
    (e, J), damping = error(q), DAMPING
    for _ in range(MAX_STEPS):
        if damping > MAX_DAMPING or np.linalg.norm(e[rows]) <= 0.1 * REACHED:
            break
        slope = J[rows].T @ e[rows]
        # Exclude joints that the error drives beyond a limit.
        free = ~(((q <= model.lower) & (slope < 0.0)) | ((q >= model.upper) & (slope > 0.0)))
        A, step = J[rows][:, free], np.zeros(model.nv)
        step[free] = A.T @ np.linalg.solve(A @ A.T + damping * np.eye(len(A)), e[rows])
        tried = np.clip(q + step, model.lower, model.upper)
        e_tried, J_tried = error(tried)
        if e_tried[rows] @ e_tried[rows] < e[rows] @ e[rows]:
            q, e, J, damping = tried, e_tried, J_tried, max(BETTER * damping, MIN_DAMPING)
        else:
            damping *= WORSE
    return sqrt(e[:3] @ e[:3]), sqrt(e[3:] @ e[3:])
