# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pose and twist of a floating base, from odometry."""

from collections import deque
from typing import NamedTuple

from nav_msgs.msg import Odometry

import numpy as np
from rbd_ros.model.configurations import quaternion_of_turn
from rbd_ros.model.joints import Joint, quaternion_matrix
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, inverse, log, pose
from rbd_ros.ros import convert
from rbd_ros.ros.joint_states import LARGEST, Rejected
from rbd_ros.ros.sample_judge import DEFAULT_VELOCITY_LIMITS

# How many messages are kept: a tenth of a second at 500 Hz.
HISTORY = 50
# How far from one the norm of a quaternion may be.
SLACK = 1e-2


class BaseState(NamedTuple):
    """
    One state of the base.

    Attributes
    ----------
    stamp : float
        Time of the measurement, s.
    came : float
        Time of receipt, s.
    frame : str
        Frame of the pose.
    q, v : ndarray, shape (7,) and (6,)
        Coordinates of the free joint: quaternion (x, y, z, w) and position, twist in the axes of
        its child.

    """

    stamp: float
    came: float
    frame: str
    q: np.ndarray
    v: np.ndarray


class OdometryStates:
    """
    The latest states of a floating base.

    Parameters
    ----------
    model : Model
        The robot.
    joint : Joint
        The free joint, from the root link to the base.
    prefix : str
        Prefix of the names of links in frame names.

    """

    def __init__(self, model: Model, joint: Joint, prefix: str = '') -> None:
        self._model, self._joint, self._prefix = model, joint, prefix
        self._body = model.tree.link_body[model.link_index(joint.child)]
        self._rest = inverse(joint.placement)
        self.forget()

    def forget(self) -> None:
        """Forget all states."""
        self._history: deque[BaseState] = deque(maxlen=HISTORY)

    def update(self, message: Odometry, now: float, fastest: float = np.inf) -> None:
        """
        Take over a message.

        Parameters
        ----------
        message : nav_msgs.msg.Odometry
            Pose of its child frame in the frame of its header, and twist in the child frame. The
            child frame is the base or a link fixed to it.
        now : float
            Time of receipt, s.
        fastest : float
            Fastest speed of the base, in multiples of `DEFAULT_VELOCITY_LIMITS`.

        Raises
        ------
        Rejected
            If the message cannot be used.

        """
        link = message.child_frame_id.removeprefix(self._prefix)
        if (link not in self._model.link_names
                or self._model.tree.link_body[self._model.link_index(link)] != self._body):
            raise Rejected(f"its child frame '{link}' is not the base '{self._joint.child}', nor "
                           'a link fixed to it', 'child frame')
        quaternion, position = convert.pose(message.pose.pose)
        V = convert.twist(message.twist.twist)
        if not np.max(np.abs([*quaternion, *position, *V])) < LARGEST:
            raise Rejected('its pose or twist is out of range', 'out of range')
        for speed, limit, unit in zip(map(np.linalg.norm, (V[:3], V[3:])),
                                      DEFAULT_VELOCITY_LIMITS, ('rad/s', 'm/s')):
            if speed > fastest * limit:
                raise Rejected(f'its velocity is {speed:.4g} {unit}, its fastest speed is '
                               f'{fastest * limit:.4g} {unit}: raise implausible_velocity if it '
                               'is that fast', 'implausible')
        if abs(np.linalg.norm(quaternion) - 1.0) > SLACK:
            raise Rejected(f'its quaternion has the norm {np.linalg.norm(quaternion):.3g}, not 1',
                           'quaternion')
        # The child frame may be fixed to the base: from here on, that of the base itself.
        T = self._model.tree.link_pose[self._model.link_index(link)]
        base = self._rest @ pose(quaternion_matrix(quaternion), position) @ inverse(T)
        self._history.append(BaseState(
            convert.seconds(message.header.stamp), now, message.header.frame_id,
            np.append(quaternion_of_turn(log(base)[:3]), base[:3, 3]), Ad(T) @ V))

    def nearest(self, stamp: float, now: float,
                timeout: float) -> tuple[BaseState | None, float | None]:
        """
        Return the state that is nearest in time to a stamp.

        Parameters
        ----------
        stamp : float
            s; 0: the latest state is returned.
        now : float
            Time, s.
        timeout : float
            Largest age of the state, and largest distance of its stamp from the given one, s.

        Returns
        -------
        BaseState or None
            The state, or None if there is none.
        float or None
            If there is none although recent ones exist: distance of the nearest from the stamp, s.

        """
        recent = [state for state in self._history if 0.0 <= now - state.came <= timeout]
        if not recent:
            return None, None
        # If one of the two has no stamp, the latest state is taken.
        if stamp == 0.0 or recent[-1].stamp == 0.0:
            return recent[-1], None
        best = min(recent, key=lambda state: abs(state.stamp - stamp))
        apart = abs(best.stamp - stamp)
        return (best, None) if apart <= timeout else (None, apart)
