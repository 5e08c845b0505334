# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Effort commands that never step, whatever happens to the node or the robot.

The invariant, for any two consecutive commands:

1. Each number is for the joint at the same place in `EffortCommands.joints`.
2. During a blend, a command lies between the previous command and the computed efforts. The share
   of the distance that it covers is at most the elapsed time divided by what is left of the blend,
   and at most a fifth, however far apart states are. A blend starts from the last command after
   anything that could cause a step: another robot, load, gravity or parameter, a gap in the
   states, and commands that are enabled or activated again. A guard of the law, which changes
   commands of joints near or beyond their limits, acts on the blended commands: a blend from a
   large effort cannot drive a joint beyond its limits either.
3. With ``effort_rate_limit`` no command differs from the previous one by more than that rate
   allows for the time between them.
4. With ``limit_efforts`` no command exceeds the limits. This is applied last: if a limit is
   lowered below the last command, the next command is at the limit.

Time is that of the robot, simulated or not. If it goes back, commands go on from there after a
disturbance, and no blend, ramp or rate makes progress by the jump.

What is published are these commands, each number divided by the constant of the joint at its
place (parameter ``effort_convention.command_constants``). The computed efforts contain nothing
that the robot adds to commands by itself (``effort_convention.commands``): commands of zero always
leave the robot to itself, so that blends from zero and ramps to it never take off what the robot
adds.

The computed efforts have an invariant of their own: friction compensation in them never gives a
joint more energy than friction takes from it (`rbd_ros.control.friction`). A blend and
``effort_rate_limit`` delay it like everything else: as long as they last, a joint that has turned
round may get compensation for the other direction.

"""

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from typing import NamedTuple

import numpy as np

# s, the shortest blend after anything that could cause a step, and the shortest ramp
SMOOTH = 0.25
# s; however late a command is, it goes no further than in this time, unless states always come
# that slowly
LONGEST_STEP = 0.02
# s of a blend that one command may use up even then
MOST_OF_BLEND = SMOOTH / 5.0
# A pause between states is a gap if it is longer than this, s, and than so many usual pauses.
SHORTEST_GAP, MANY = 0.1, 5
# The usual pause is the median of so many.
PAUSES = 5
# s without a subscriber, after which the next one is taken for another controller: commands then
# begin at zero
FORGOTTEN = 1.0
# What the node logs, and the bring-up of controllers waits for, when they first are complete.
COMPLETE = '~/effort_commands have reached their full size'


class CommandSettings(NamedTuple):
    """The parameters that commands depend on."""

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

    The first command is blended in from zero over ``blend_time``; every later blend takes
    ``blend_time`` or `SMOOTH`, whichever is longer.

    When states stop, ``on_stale`` says what is commanded after ``state_timeout``:

    - ``stop``: nothing; a controller then keeps the last command.
    - ``hold``: the last command, repeated until states come again.
    - ``ramp_down``: a straight line from the last command to zero in ``ramp_time`` or `SMOOTH`,
      whichever is longer, or as slowly as ``effort_rate_limit`` demands; then zero until states
      come again.

    When commands are disabled, or the node is deactivated or ends, ``stop`` and ``hold`` send
    nothing more, and ``ramp_down`` goes to zero first.

    Parameters
    ----------
    settings : CommandSettings
        The parameters that they depend on.

    Attributes
    ----------
    joints : tuple of str
        The commanded joints in order; empty before there is a robot.
    enabled : bool
        Whether commands may be published.
    mismatch : str
        Why commands ended by themselves; empty if they did not.
    complete : bool
        Whether a command has been what was computed, within the limits, since they began.

    """

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings
        self.enabled, self.mismatch = True, ''
        self.joints: Sequence[str] = ()
        # Joints and limits that wait for commands to be enabled.
        self._waiting: tuple[Sequence[str], Sequence[float]] | None = None
        self._ended = False
        self._limits = self._last = self._blended = np.zeros(0)
        self._beyond = np.zeros(0, bool)
        self._pauses: deque[float] = deque(maxlen=PAUSES)
        # s, since when there is no subscriber.
        self._unheard: float | None = None
        self._now = -inf
        self._start()

    def _start(self) -> None:
        """Forget what was commanded: the next command is the first."""
        # s, time of the last command; and of the last one for a state, once there is one.
        self._commanded: float | None = None
        self._computed = 0.0
        self._disturbed = False         # whether a blend must begin
        self._left = 0.0                # s, left of the blend
        self.complete = False
        # s, left of the ramp to zero; None: it has not begun.
        self._ramp_left: float | None = None
        self._pauses.clear()
        self._last[:] = 0.0

    def configure(self, settings: CommandSettings) -> None:
        """Use other settings from now on; `disturb` keeps the next command from a step."""
        self._settings = settings

    # -- Joints, beginning and end. --------------------------------------------------------------

    def follow(self, joints: Sequence[str], limits: Sequence[float]) -> None:
        """
        Follow a change of the robot.

        If the joints are the same, commands keep their order. If they are not, and something was
        commanded, commands end until they are enabled again: the controller was set up for the
        joints before the change.

        Parameters
        ----------
        joints : sequence of str
            The joints that can be commanded.
        limits : sequence of float
            Their largest efforts, N m or N; infinite without a limit.

        """
        joints = tuple(joints)
        if self._commanded is not None and set(joints) != set(self.joints):
            self.enabled, self._ended = False, True
            self._wait(joints, limits)
            return
        if self.mismatch:
            # Even if the first robot's joints are back: nobody has enabled commands since.
            self._wait(joints, limits)
            return
        self._adopt(joints, limits)

    def _wait(self, joints: Sequence[str], limits: Sequence[float]) -> None:
        self._waiting = joints, limits
        self.mismatch = ('~/effort_commands have ended: the robot now has the joints '
                         + ', '.join(joints) + ', commands were for ' + ', '.join(self.joints)
                         + '; check the controller, then call ~/enable_commands')

    def _adopt(self, joints: Sequence[str], limits: Sequence[float]) -> None:
        limit = dict(zip(joints, limits))
        if set(joints) != set(self.joints):
            last = dict(zip(self.joints, self._last))
            self.joints = joints
            self._last = np.array([last.get(name, 0.0) for name in joints])
            self._beyond = np.zeros(len(joints), bool)
        self._limits = np.array([limit[name] for name in self.joints], float)
        self.disturb()

    def enable(self) -> None:
        """Enable commands (again), for the joints of the present robot."""
        if self._waiting is not None:
            joints, limits = self._waiting
            self._waiting, self.mismatch = None, ''
            self._adopt(joints, limits)
        self.enabled = True
        self.begin()

    def disable(self) -> None:
        """Disable commands: they end as `repeat` says."""
        self.enabled = False
        self.end()

    def begin(self) -> None:
        """Begin commands (again) if they are enabled: the node has become active."""
        if self.enabled:
            self._ended = False
            self.disturb()

    def end(self) -> None:
        """End commands, as `repeat` says."""
        self._ended = True

    def disturb(self) -> None:
        """Begin a blend from the last command with the next one."""
        self._disturbed = True

    def _come_to(self, now: float) -> None:
        """Note the time, s; if it went back, shift all times that were noted before."""
        back = now - self._now
        self._now = now
        if back >= 0.0:
            return
        self.disturb()
        self._computed += back
        if self._commanded is not None:
            self._commanded += back
        if self._unheard is not None:
            self._unheard += back

    # -- Commands. -------------------------------------------------------------------------------

    def update(self, efforts: np.ndarray, now: float,
               guard: Callable[[np.ndarray], np.ndarray] | None = None) -> np.ndarray:
        """
        Return the command for efforts that were just computed.

        Parameters
        ----------
        efforts : ndarray
            In the order of `joints`, N m or N.
        now : float
            Time of the robot, s.
        guard : callable, optional
            Returns what becomes of commands that joints near their limits must not get.

        Returns
        -------
        ndarray
            The command; the same array at every call.

        """
        settings = self._settings
        self._hear(now)
        self._beyond |= np.abs(efforts) > self._limits
        step = 0.0
        if self._commanded is None:
            self._left, self._disturbed = settings.blend_time, False
        else:
            step = now - self._commanded
            if step > LONGEST_STEP:
                step = min(step, max(LONGEST_STEP, self._usual_pause()))
            self._disturbed |= self._is_gap(now)
            pause = now - self._computed
            if pause <= self._longest_pause():
                self._pauses.append(pause)
        if self._commanded is None or self._disturbed:
            self._blended = self._last.copy()
        if self._disturbed:
            self._disturbed = False
            # A blend begins with the last command itself, but makes progress if disturbed again.
            step = step if self._left > 0.0 else 0.0
            self._left = max(settings.blend_time, SMOOTH)
        self._ramp_left, self._computed = None, now
        self._approach(efforts, step, self._left, now, guard)
        self._left = max(self._left - min(step, MOST_OF_BLEND), 0.0)
        if not self.complete:
            self.complete = np.array_equal(
                self._last, self._limited(guard(efforts) if guard else efforts))
        return self._last

    def repeat(self, now: float, states_come: bool = False) -> np.ndarray | None:
        """
        Return the command to send while no efforts are computed, or None.

        Parameters
        ----------
        now : float
            Time of the same clock, s.
        states_come : bool
            Whether the state of the robot is recent: with a low ``publish_rate`` the next command
            is then not overdue.

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

    def begins_anew(self, now: float) -> bool:
        """Return whether a command that is computed at this time, s, begins a blend."""
        return (self._commanded is None or self._disturbed or now < self._now
                or self._is_gap(now) or self._is_forgotten(now))

    def _approach(self, goal: np.ndarray, step: float, left: float, now: float,
                  guard: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        """Move the last command towards a goal, by the share of the time left that has passed."""
        settings = self._settings
        blend = min(step, MOST_OF_BLEND)
        first = self._blended if guard else self._last
        blended = goal if blend >= left else first + blend / left * (goal - first)
        goal = guard(blended) if guard else blended
        guarded = goal != blended
        if settings.effort_rate_limit > 0.0:
            reach = settings.effort_rate_limit * step
            goal = np.clip(goal, self._last - reach, self._last + reach)
        self._last[:] = self._limited(goal)
        # A blend does not go on from what a guard adds for a moment.
        self._blended = np.where(guarded, blended, self._last)
        self._commanded = now

    def _limited(self, efforts: np.ndarray) -> np.ndarray:
        """Return efforts within the limits, if these are to be kept."""
        if not self._settings.limit_efforts:
            return efforts
        return np.clip(efforts, -self._limits, self._limits)

    def nobody_listens(self, now: float) -> None:
        """Record that the commands have no subscriber at this time, s."""
        self._come_to(now)
        if self._unheard is None:
            self._unheard = now

    def _hear(self, now: float) -> None:
        """Note that the commands have a subscriber at this time, s."""
        self._come_to(now)
        if self._is_forgotten(now):
            self._start()
        self._unheard = None

    def _is_forgotten(self, now: float) -> bool:
        """Return whether whoever listens at this time, s, is another controller."""
        return self._unheard is not None and now - self._unheard > FORGOTTEN

    def _is_gap(self, now: float) -> bool:
        """Return whether efforts that are computed at this time, s, come after a gap."""
        pause = now - self._computed
        return pause > self._longest_pause() or (
            pause > SHORTEST_GAP and pause > MANY * self._usual_pause())

    def period(self) -> float:
        """Return the measured period of the computed efforts, s; 0: not known yet."""
        return self._usual_pause() if len(self._pauses) == PAUSES else 0.0

    def _usual_pause(self) -> float:
        """Return the usual pause between computed efforts, s; 0: not known."""
        return median(self._pauses) if self._pauses else 0.0

    def _longest_pause(self) -> float:
        """Return the longest pause between computed efforts that is none of the robot's, s."""
        return max(self._settings.state_timeout, self._wanted_pause())

    def beyond_limits(self) -> list[str]:
        """Return the joints whose efforts have exceeded their limits since the last call."""
        names = [name for name, beyond in zip(self.joints, self._beyond) if beyond]
        self._beyond[:] = False
        return names

    def _wanted_pause(self) -> float:
        """Return the pause between commands that a low ``publish_rate`` explains, s."""
        rate = self._settings.publish_rate
        return 2.0 / rate if rate > 0.0 else 0.0
