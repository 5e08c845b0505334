# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The state of a robot, put together by joint name from whatever joint states arrive."""

from collections import Counter
from math import isfinite

import numpy as np

from rbd_ros.joints import KINDS


class Rejected(Exception):
    """A message that says nothing usable; the message of the error says why."""


class JointStates:
    """
    The latest position and velocity of every joint, each with the time at which it came.

    Parameters
    ----------
    model : Model
        The robot, whose coordinates are measured under the names of its positions. Those of a
        joint with a quaternion are no joint states: their entries of q and v are left alone.

    Attributes
    ----------
    q, v : ndarray
        Position and velocity; NaN where none is known.
    unknown_names : set of str
        Names that messages held and the robot has not.

    """

    def __init__(self, model):
        self._names, self._q_of, self._v_of = [], [], []
        for joint, q, v in model.moving_joints:
            if KINDS[joint.kind].is_screws:
                self._names += model.position_names[q]
                self._q_of += range(q.start, q.stop)
                self._v_of += range(v.start, v.stop)
        self._index = {name: k for k, name in enumerate(self._names)}
        # Joints that mimic others or are locked are measured too, and not needed.
        self._expected = {joint.name for joint in model.joints} | set(self._names)
        self.unknown_names = set()
        self._layout_of = None
        self.q, self.v = np.zeros(model.nq), np.zeros(model.nv)
        self.forget()

    def forget(self):
        """Take no joint's state as known any longer."""
        self.q[:] = self.v[:] = np.nan
        self._came = np.full(len(self._names), -np.inf)

    def update(self, message, now):
        """
        Take over what a message says.

        Parameters
        ----------
        message : sensor_msgs.msg.JointState
            Names in any order; it may hold a part of the joints, or others. Efforts are ignored.
        now : float
            Time of receipt, s.

        Returns
        -------
        bool
            Whether it holds any joint of this robot.

        Raises
        ------
        Rejected
            If the message cannot be used at all; then nothing is taken over.

        """
        if message.name != self._layout_of:
            self._lay_out(message.name)
        count = len(message.name)
        if not len(message.position):
            raise Rejected('it has no positions')
        if len(message.position) != count or len(message.velocity) not in (0, count):
            raise Rejected(f'it has {count} names, {len(message.position)} positions and '
                           f'{len(message.velocity)} velocities')
        position = np.frombuffer(message.position)[self._source]
        if not isfinite(position.sum()):
            bad = self._names[self._target[np.flatnonzero(~np.isfinite(position))[0]]]
            raise Rejected(f"the position of '{bad}' is not a number")
        self.q[self._q_target] = position
        self.v[self._v_target] = (np.frombuffer(message.velocity)[self._source]
                                  if len(message.velocity) else np.nan)
        self._came[self._target] = now
        return len(self._target) > 0

    def _lay_out(self, names):
        """Find out where in a message with these names the joints stand."""
        names = list(names)
        if not names:
            raise Rejected('it has no names')
        twice = [name for name, count in Counter(names).items() if count > 1]
        if twice:
            raise Rejected(f"it has the joint '{twice[0]}' twice")
        self.unknown_names.update(name for name in names if name not in self._expected)
        known = [(k, self._index[name]) for k, name in enumerate(names) if name in self._index]
        self._source = np.array([k for k, _ in known], int)
        self._target = np.array([k for _, k in known], int)
        self._q_target = np.array([self._q_of[k] for _, k in known], int)
        self._v_target = np.array([self._v_of[k] for _, k in known], int)
        self._layout_of = names

    def missing(self, now, timeout):
        """
        Return the joints whose position is not known, or too old.

        Parameters
        ----------
        now : float
            Time, s.
        timeout : float
            Greatest age, s.

        Returns
        -------
        list of str
            Empty when the state is complete.

        """
        if not len(self._names) or now - self._came.min() <= timeout:
            return []
        return [self._names[k] for k in np.flatnonzero(now - self._came > timeout)]

    def missing_velocities(self):
        """Return the joints whose velocity is not known or not a number."""
        if isfinite(self.v.sum()):
            return []
        return [name for name, k in zip(self._names, self._v_of) if not isfinite(self.v[k])]
