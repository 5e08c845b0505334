# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pose and twist of a floating base from odometry."""

from collections import deque
from typing import NamedTuple

from nav_msgs.msg import Odometry
import numpy as np
from rbd_ros.model.joints import Joint, quaternion_matrix
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import quaternion_of_turn
from rbd_ros.model.se3 import Ad, inverse, log, pose
from rbd_ros.ros import convert
from rbd_ros.ros.state.joint_states import MAX_MEASUREMENT, Rejected
from rbd_ros.ros.state.sample_judge import (
    CONFIRMATION_TIME, CONFIRMED, DEFAULT_VELOCITY_LIMITS, RECEIPT_JITTER, STAMP_JITTER)

HISTORY = 50    # Number of messages that are kept: a tenth of a second at 500 Hz
# Largest deviation of the norm of a quaternion from one.
NORM_TOLERANCE = 1e-2
UNITS = 'rad', 'm'


class BaseState(NamedTuple):
    """One state of the base: times, s, frame of the pose, and coordinates of the free joint."""

    stamp: float
    received: float
    frame: str
    # Quaternion (x, y, z, w) and position; twist in the axes of the base.
    q: np.ndarray
    v: np.ndarray


def _jump(before: BaseState, now: BaseState, fastest: float) -> str:
    """Return a sentence about an impossibly fast motion between two states; empty: it is not."""
    time, jitter = max(now.received - before.received, 0.0), RECEIPT_JITTER
    if before.stamp and now.stamp:
        time, jitter = max(abs(now.stamp - before.stamp), time), STAMP_JITTER
    way = (2.0 * np.arccos(min(abs(before.q[:4] @ now.q[:4]), 1.0)),
           np.linalg.norm(now.q[4:] - before.q[4:]))
    for x, limit, unit in zip(way, DEFAULT_VELOCITY_LIMITS, UNITS):
        if x > fastest * limit * (time + jitter):
            return (f'the base moved by {x:.4g} {unit} in {time:.3g} s, its fastest speed is '
                    f'{fastest * limit:.4g} {unit}/s')
    return ''


class OdometryStates:
    """The latest states of a floating base, whose free joint connects it with the root link."""

    def __init__(self, model: Model, joint: Joint, prefix: str = '') -> None:
        self._model, self._joint, self._prefix = model, joint, prefix
        self._body = model.tree.link_body[model.link_index(joint.child)]
        self._rest = inverse(joint.placement)
        self.forget()

    def forget(self) -> None:
        """Discard all states."""
        self._history: deque[BaseState] = deque(maxlen=HISTORY)
        self._unconfirmed: list[BaseState] = []    # Implausible poses that agree with each other

    def update(self, message: Odometry, now: float, fastest: float = np.inf) -> str:
        """
        Take a message; return how the base was moved between states, or ''; or raise Rejected.

        The child frame of the message is the base or a link fixed to it; its twist is in that
        frame. A pose that would require more than `fastest` times `DEFAULT_VELOCITY_LIMITS` is
        accepted after at least `CONFIRMED` messages, during at least `CONFIRMATION_TIME`, that
        agree with each other. `now` is the time of receipt, s.

        """
        link = message.child_frame_id.removeprefix(self._prefix)
        if (link not in self._model.link_names
                or self._model.tree.link_body[self._model.link_index(link)] != self._body):
            raise Rejected(f"its child frame '{link}' is not the base '{self._joint.child}', nor "
                           'a link fixed to it', 'child frame')
        quaternion, position = convert.pose(message.pose.pose)
        V = convert.twist(message.twist.twist)
        if not np.max(np.abs([*quaternion, *position, *V])) < MAX_MEASUREMENT:
            raise Rejected('its pose or twist is out of range', 'out of range')
        if abs(np.linalg.norm(quaternion) - 1.0) > NORM_TOLERANCE:
            raise Rejected(f'its quaternion has the norm {np.linalg.norm(quaternion):.3g}, not 1',
                           'quaternion')
        T = self._model.tree.link_pose[self._model.link_index(link)]
        base = self._rest @ pose(quaternion_matrix(quaternion), position) @ inverse(T)
        state = BaseState(convert.seconds(message.header.stamp), now, message.header.frame_id,
                          np.append(quaternion_of_turn(log(base)[:3]), base[:3, 3]), Ad(T) @ V)
        moved = self._judge(state, fastest)
        self._history.append(state)
        return moved

    def _judge(self, state: BaseState, fastest: float) -> str:
        """Return how the base was moved between states, or ''; raise Rejected for a glitch."""
        for speed, limit, unit in zip(map(np.linalg.norm, (state.v[:3], state.v[3:])),
                                      DEFAULT_VELOCITY_LIMITS, UNITS):
            if speed > fastest * limit:
                raise Rejected(f'its velocity is {speed:.4g} {unit}/s, its fastest speed is '
                               f'{fastest * limit:.4g} {unit}/s: raise implausible_velocity if '
                               'it is that fast', 'implausible')
        jump = _jump(self._history[-1], state, fastest) if self._history else ''
        if jump:
            if self._unconfirmed and _jump(self._unconfirmed[-1], state, fastest):
                self._unconfirmed.clear()
            self._unconfirmed.append(state)
            if (len(self._unconfirmed) < CONFIRMED
                    or state.received - self._unconfirmed[0].received < CONFIRMATION_TIME):
                raise Rejected(f'{jump}: raise implausible_velocity if it is that fast',
                               'implausible')
        self._unconfirmed.clear()
        return jump

    def nearest(self, stamp: float, now: float,
                timeout: float) -> tuple[BaseState | None, float | None]:
        """Return the state nearest to a stamp, s (0: the latest), or None and how far it is, s."""
        # Its age and the distance are at most `timeout`, s; no distance if no state is recent.
        recent = [state for state in self._history if 0.0 <= now - state.received <= timeout]
        if not recent:
            return None, None
        # If one of the two has no stamp, the latest state counts.
        if stamp == 0.0 or recent[-1].stamp == 0.0:
            return recent[-1], None
        best = min(recent, key=lambda state: abs(state.stamp - stamp))
        apart = abs(best.stamp - stamp)
        return (best, None) if apart <= timeout else (None, apart)
