# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What a controller is told: efforts that never step, whatever happens to the node or the robot.

The invariant, for any two commands that follow one another:

1. Every number is for the joint whose position in `EffortCommands.joints` it stands at.
2. While a blend lasts, a command lies between the one before it and the efforts that were
   computed, at no larger share of the way than the time that has passed has of the blend that is
   left, and by no more than a fifth of it however slowly states come. A blend begins at the last
   command after anything that could make it step: another robot, load, gravity or parameter, a
   gap in the states, and commands that are enabled or activated again.
3. With ``effort_rate_limit`` no command differs from the one before by more than that rate allows
   for the time between them.
4. With ``limit_efforts`` no command is beyond the limits. This comes last: where a limit was
   lowered below the last command, the command goes to the limit at once.

"""

from collections import deque
from statistics import median
from typing import NamedTuple

import numpy as np

# s, the shortest blend after anything that could make commands step, and the shortest ramp
SMOOTH = 0.25
# s; a command goes no further than this time allows, however late it is, unless states always come
# as slowly
LONGEST_STEP = 0.02
# s, of a blend, that one command may use up even then
MOST_OF_BLEND = SMOOTH / 5.0
# s; states that come later than this, and than five times as late as they use to, come after a gap
SHORTEST_GAP, MANY = 0.1, 5
# How many pauses between states say what is usual.
PAUSES = 5
# s, after which a listener is taken for another controller, which is told the efforts from zero
FORGOTTEN = 1.0


class CommandSettings(NamedTuple):
    """The parameters of a node that its commands depend on."""

    on_stale: str
    state_timeout: float
    publish_rate: float
    ramp_time: float
    blend_time: float
    effort_rate_limit: float
    limit_efforts: bool


class EffortCommands:
    """
    The commands of one node.

    The first command is blended in from zero over ``blend_time``, every later blend takes
    ``blend_time``, at least `SMOOTH`.

    When no state comes any longer, ``on_stale`` says what is commanded after ``state_timeout``:

    - ``stop``: nothing; a controller then goes on with the last command.
    - ``hold``: the last command, again and again until states come.
    - ``ramp_down``: from the last command straight to zero within ``ramp_time``, at least
      `SMOOTH`, or longer where ``effort_rate_limit`` says so; then zero until states come.

    When commands are disabled, or the node is deactivated or ends, ``stop`` and ``hold`` say
    nothing more, and ``ramp_down`` goes to zero first.

    Parameters
    ----------
    settings : CommandSettings
        Of the node.

    Attributes
    ----------
    joints : tuple of str
        Whose efforts are commanded, in this order; empty before there is a robot.
    enabled : bool
        Whether commands may be published.
    mismatch : str
        Why commands have ended by themselves; empty while they have not.

    """

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings
        self.enabled, self.joints, self.mismatch = True, (), ''
        self._waiting = None            # joints and limits that wait for commands to be enabled
        self._ended = False
        self._limits = self._last = np.zeros(0)
        self._beyond = np.zeros(0, bool)
        self._pauses = deque(maxlen=PAUSES)
        self._unheard = None            # s, since when nobody listens
        self._start()

    def _start(self):
        """Take nothing as commanded: the next command is the first."""
        self._commanded = None          # s, when the last command was
        self._computed = None           # s, when the last one for a state was
        self._disturbed = False         # whether a blend must begin
        self._left = 0.0                # s, of the blend
        self._ramp_left = None          # s, of the ramp to zero; None: it has not begun
        self._pauses.clear()
        self._last[:] = 0.0

    def configure(self, settings: CommandSettings) -> None:
        """Use other settings from now on; `disturb` keeps the next command from a step."""
        self._settings = settings

    # -- Whose efforts. --------------------------------------------------------------------------

    def follow(self, joints, limits):
        """
        Go on with another robot, or the same one changed.

        The order of the commands stays as it was where the joints are the same. Where they are not
        and there were commands, commands end until they are enabled again: the controller was made
        for the joints that were there before.

        Parameters
        ----------
        joints : sequence of str
            Whose efforts could be commanded.
        limits : sequence of float
            Of each, its largest effort, N m or N; infinite where there is none.

        """
        joints = tuple(joints)
        if self._commanded is not None and set(joints) != set(self.joints):
            self.enabled, self._ended = False, True
            self._wait(joints, limits)
            return
        if self.mismatch:
            # The first robot's joints may be back, and nobody has enabled commands since.
            self._wait(joints, limits)
            return
        self._adopt(joints, limits)

    def _wait(self, joints, limits):
        self._waiting = joints, limits
        self.mismatch = ('~/effort_commands have ended: the robot now has the joints '
                         + ', '.join(joints) + ', commands were for ' + ', '.join(self.joints)
                         + '; see to the controller, then call ~/enable_commands')

    def _adopt(self, joints, limits):
        limit = dict(zip(joints, limits))
        if set(joints) != set(self.joints):
            last = dict(zip(self.joints, self._last))
            self.joints = joints
            self._last = np.array([last.get(name, 0.0) for name in joints])
            self._beyond = np.zeros(len(joints), bool)
        self._limits = np.array([limit[name] for name in self.joints], float)
        self.disturb()

    def enable(self):
        """Let commands be published (again), for the joints of the present robot."""
        if self._waiting is not None:
            joints, limits = self._waiting
            self._waiting, self.mismatch = None, ''
            self._adopt(joints, limits)
        self.enabled = True
        self.begin()

    def disable(self):
        """Let commands come to an end."""
        self.enabled = False
        self.end()

    def begin(self):
        """Let commands flow (again) if they are enabled: the node is active."""
        if self.enabled:
            self._ended = False
            self.disturb()

    def end(self):
        """Let commands come to an end: see `repeat`."""
        self._ended = True

    def disturb(self):
        """Let the next command begin a blend, at the last one."""
        self._disturbed = True

    # -- What is commanded. ----------------------------------------------------------------------

    def update(self, efforts, now):
        """
        Return what to command for efforts that were just computed.

        Parameters
        ----------
        efforts : ndarray
            In the order of `joints`, N m or N.
        now : float
            s, of a clock that never jumps.

        Returns
        -------
        ndarray
            The same one at every call.

        """
        settings = self._settings
        self._hear(now)
        self._beyond |= np.abs(efforts) > self._limits
        step = 0.0
        if self._commanded is None:
            self._left, self._disturbed = settings.blend_time, False
        else:
            pause = now - self._computed
            usual = median(self._pauses) if self._pauses else 0.0
            step = min(now - self._commanded, max(LONGEST_STEP, usual))
            longest = max(settings.state_timeout, self._wanted_pause())
            if pause > min(longest, max(SHORTEST_GAP, MANY * usual)):
                self._disturbed = True
            if pause <= longest:
                self._pauses.append(pause)
        if self._disturbed:
            self._disturbed = False
            # It begins with the last command itself, but goes on if disturbed time and again.
            step = step if self._left > 0.0 else 0.0
            self._left = max(settings.blend_time, SMOOTH)
        self._ramp_left, self._computed = None, now
        self._approach(efforts, step, self._left, now)
        self._left = max(self._left - min(step, MOST_OF_BLEND), 0.0)
        return self._last

    def repeat(self, now, states_come=False):
        """
        Return what to command while no efforts are computed, None for nothing.

        Parameters
        ----------
        now : float
            s, of the same clock.
        states_come : bool
            Whether the state of the robot is recent: with a low ``publish_rate`` its commands then
            only have to wait for their turn.

        """
        settings = self._settings
        self._hear(now)
        if self._commanded is None or settings.on_stale == 'stop':
            return None
        patience = settings.state_timeout
        if states_come:
            patience = max(patience, self._wanted_pause())
        if not self._ended and now - self._computed <= patience:
            return None
        if self._ended and (settings.on_stale == 'hold' or not self._last.any()):
            return None
        step = min(now - self._commanded, LONGEST_STEP)
        if settings.on_stale == 'hold':
            self._approach(self._last, step, 0.0, now)
            return self._last
        if self._ramp_left is None:
            step = 0.0
            self._ramp_left = max(settings.ramp_time, SMOOTH)
            if settings.effort_rate_limit > 0.0:
                self._ramp_left = max(self._ramp_left,
                                      np.max(np.abs(self._last)) / settings.effort_rate_limit)
        self._approach(np.zeros(len(self._last)), step, self._ramp_left, now)
        self._ramp_left = max(self._ramp_left - step, 0.0)
        return self._last

    def _approach(self, goal, step, left, now):
        """Go from the last command towards a goal: as far as the step is of the time left."""
        settings = self._settings
        blend = min(step, MOST_OF_BLEND)
        goal = goal if blend >= left else self._last + blend / left * (goal - self._last)
        if settings.effort_rate_limit > 0.0:
            reach = settings.effort_rate_limit * step
            goal = np.clip(goal, self._last - reach, self._last + reach)
        if settings.limit_efforts:
            goal = np.clip(goal, -self._limits, self._limits)
        self._last[:] = goal
        self._commanded = now

    def nobody_listens(self, now):
        """Take note that at this time, s, nobody hears the commands."""
        if self._unheard is None:
            self._unheard = now

    def _hear(self, now):
        if self._unheard is not None and now - self._unheard > FORGOTTEN:
            self._start()
        self._unheard = None

    def beyond_limits(self):
        """Return the joints whose efforts went beyond their limits since the last call."""
        names = [name for name, beyond in zip(self.joints, self._beyond) if beyond]
        self._beyond[:] = False
        return names

    def _wanted_pause(self) -> float:
        """Return how long the pause between two commands may be because it is meant to be, s."""
        rate = self._settings.publish_rate
        return 2.0 / rate if rate > 0.0 else 0.0
