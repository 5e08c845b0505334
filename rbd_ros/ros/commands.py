# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What a controller is told: efforts, made safe where they begin, jump, go stale or end."""

import numpy as np

# s, at the least, over which commands go from the last ones to those of a robot that has changed,
# or to those after a pause
SMOOTH = 0.25
# s; the rate limit allows no larger step than for this time, however long nothing was commanded
LONGEST_STEP = 0.1


class Commands:
    """
    The commands of one node.

    The first command is blended in from zero over ``blend_time``. When the robot has changed, when
    commands are enabled or the node is activated again, and after a stale state that was answered
    by ``hold`` or ``ramp_down``, commands go from the last one to the new ones over
    ``blend_time``, at least `SMOOTH`. With ``limit_efforts`` they stay within the limits of the
    URDF, with an ``effort_rate_limit`` none of them changes faster.

    When no state comes any longer, ``on_stale`` says what is commanded after ``state_timeout``:

    - ``stop``: nothing; a controller then goes on with the last command.
    - ``hold``: the last command, again and again until states come.
    - ``ramp_down``: from the last command straight to zero within ``ramp_time``, then zero until
      states come.

    When commands are disabled, or the node is deactivated or ends, ``stop`` and ``hold`` say
    nothing more, and ``ramp_down`` goes to zero first.

    Attributes
    ----------
    joints : tuple of str
        Whose efforts are commanded, in this order.
    enabled : bool
        Whether commands may be published.

    """

    def __init__(self):
        self.enabled, self.joints = True, None
        self._updated = None            # s, when these joints were commanded last; None: never
        self._ended = False
        self._ramp = None               # once it has begun: when, s, and from where
        self._blend_due = 0.0           # s, how long it shall take at least; None: none is due
        self._blend = None              # once it has begun: when, for how long, s, and from where

    def follow(self, joints, limits):
        """
        Go on with another robot, or the same one changed.

        Parameters
        ----------
        joints : sequence of str
            Order of the efforts.
        limits : ndarray
            Largest efforts, N m or N; infinite where there is none.

        """
        joints = tuple(joints)
        if self.joints is not None:
            self._blend_due = SMOOTH
        if joints != self.joints:
            self.joints, self._updated = joints, None
            self._last, self._beyond = np.zeros(len(joints)), np.zeros(len(joints), bool)
        self._limits = limits

    def update(self, efforts, now, settings):
        """
        Return what to command for efforts that were just computed.

        Parameters
        ----------
        efforts : ndarray
            In the order of `joints`, N m or N.
        now : float
            s, of a clock that never jumps.
        settings : Parameters
            ``limit_efforts``, ``blend_time`` and ``effort_rate_limit`` are used.

        Returns
        -------
        ndarray
            The same one at every call.

        """
        beyond = np.abs(efforts) > self._limits
        if beyond.any():
            self._beyond |= beyond
            if settings.limit_efforts:
                efforts = np.clip(efforts, -self._limits, self._limits)
        if self._blend_due is not None:
            self._blend = now, max(settings.blend_time, self._blend_due), self._last.copy()
            self._blend_due = None
        if self._blend is not None:
            begin, span, origin = self._blend
            if now - begin < span:
                efforts = origin + (now - begin) / span * (efforts - origin)
            else:
                self._blend = None
        if settings.effort_rate_limit > 0.0:
            pause = LONGEST_STEP if self._updated is None else now - self._updated
            step = settings.effort_rate_limit * min(pause, LONGEST_STEP)
            efforts = np.clip(efforts, self._last - step, self._last + step)
        self._last[:] = efforts
        self._updated, self._ramp = now, None
        return self._last

    def repeat(self, now, settings):
        """
        Return what to command while no efforts are computed, None for nothing.

        Parameters
        ----------
        now : float
            s, of the same clock.
        settings : Parameters
            ``on_stale``, ``state_timeout`` and ``ramp_time`` are used.

        """
        if self._updated is None or settings.on_stale == 'stop':
            return None
        if not self._ended and now - self._updated <= settings.state_timeout:
            return None
        self._blend_due = SMOOTH
        if settings.on_stale == 'hold':
            return None if self._ended else self._last
        if self._ramp is None:
            self._ramp = now, self._last.copy()
        elif self._ended and not self._last.any():
            return None
        begin, origin = self._ramp
        share = (now - begin) / settings.ramp_time if settings.ramp_time > 0.0 else 1.0
        self._last[:] = max(1.0 - share, 0.0) * origin
        return self._last

    def begin(self):
        """Let commands be published (again)."""
        self._ended = False
        if self._updated is not None:
            self._blend_due = SMOOTH

    def end(self):
        """Let commands come to an end: see `repeat`."""
        self._ended = True

    def forget(self):
        """Take nothing as commanded: nobody listened."""
        if self._updated is not None:
            self._updated, self._ramp, self._blend_due = None, None, 0.0
            self._last[:] = 0.0

    def beyond_limits(self):
        """Return the joints whose efforts went beyond their limits since the last call."""
        if self.joints is None:
            return []
        names = [name for name, beyond in zip(self.joints, self._beyond) if beyond]
        self._beyond[:] = False
        return names
