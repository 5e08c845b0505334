# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Effort commands that never step, whatever happens to the node or the robot.

The invariant, for any two consecutive commands:

1. Each number belongs to the joint at the same place in `EffortCommands.joints`.
2. During a blend, a command lies between the previous command and the computed efforts. It covers
   at most the share of this distance that is the elapsed time divided by the remaining time of the
   blend, and at most a fifth, whatever the time between states. A blend starts from the last
   command after anything that could cause a step: another robot, payload, gravity or parameter, a
   gap in the states, and when commands are enabled or activated. A guard of the law, which changes
   commands of joints near or beyond their limits, acts on the blended commands, so that a blend
   from a large effort cannot drive a joint beyond its limits.

   With the remaining times L_0 > L_1 > ... of a blend from u_0 to efforts tau_i, command n is

       u_n = L_n u_0 / L_0 + L_n sum_i (1/L_i - 1/L_(i-1)) tau_i,

   a mean with positive weights whose sum is 1; if 3. or 4. clamps it, with other weights. So its
   power on a joint is at most the largest that u_0 or one of the tau_i has at the velocity of the
   joint. A blend lags behind the law and may therefore add energy, but no more than the distance
   that the joint moves times the largest difference among u_0 and the tau_i; it ends after L_0.
3. With ``effort_rate_limit``, no command differs from the previous one by more than that rate
   allows for the time between them.
4. With ``limit_efforts``, no command exceeds the limits. This is applied last: if a limit is
   lowered below the last command, the next command is at the limit.

Time is that of the robot, simulated or not. If it jumps back, commands continue after a
disturbance, and the jump advances no blend, ramp or rate.

Published are these commands, divided by the constant of each joint (parameter
``effort_convention.command_constants``). The computed efforts do not contain the torques that the
robot adds to commands by itself (``effort_convention.commands``): zero commands leave these
torques unchanged, so blends from zero and ramps to zero never remove them.

The friction compensation in the computed efforts never gives a joint more energy than friction
takes from it (`rbd_ros.control.friction`). A blend and ``effort_rate_limit`` delay it: meanwhile,
a joint that has reversed may be compensated for its former direction.

"""

from collections import deque
from collections.abc import Callable, Sequence
from math import inf
from statistics import median
from typing import Annotated, NamedTuple

import numpy as np
from rbd_ros._internal.setting import Setting
from rbd_ros._internal.text import listed
from rbd_ros.ros.runtime.part import Part

MIN_BLEND = 0.25    # s: shortest blend after a disturbance, and shortest ramp
# s: time for which one command may advance, unless states always come more slowly.
MAX_STEP = 0.02
MAX_BLEND_STEP = MIN_BLEND / 5.0    # s: time of a blend by which one command may advance even then
# A pause between states is a gap if it exceeds this time, s, and this multiple of the usual pause
# between states, or between groups of them.
MIN_GAP, GAP_RATIO = 0.1, 5
PAUSES = 5    # Number of pauses whose median is the usual pause
# s without a subscriber, after which the next one counts as another controller: commands restart.
SUBSCRIBER_TIMEOUT = 1.0
# Multiple of an effort limit beyond which no measured effort is believed.
BELIEVED = 1.2
# Logged when commands are first complete; the bring-up of controllers waits for it.
COMPLETE = '~/effort_commands have reached their full size'


class CommandSettings(NamedTuple):
    """The parameters that commands depend on."""

    on_stale: Annotated[str, Setting(
        'stop', 'Behaviour of ~/effort_commands when states stop: end, hold the last command, or '
        'ramp down to zero.', choices=('stop', 'hold', 'ramp_down'), changeable=True)]
    state_timeout: float
    publish_rate: float
    ramp_time: Annotated[float, Setting(
        1.0, 'Duration of the ramp to zero, at least 0.25 s.', 's', 0.0, 4.0, changeable=True)]
    blend_time: Annotated[float, Setting(
        0.0, 'Time in which the first commands move from the measured efforts to the computed '
        'ones.', 's', 0.0, 60.0, changeable=True)]
    effort_rate_limit: Annotated[float, Setting(
        0.0, 'Largest rate of change of ~/effort_commands; 0: no limit.', 'N m/s or N/s', 0.0, 1e9,
        changeable=True)]
    limit_efforts: Annotated[bool, Setting(
        False, 'Clamp ~/effort_commands to the effort limits of the URDF, after everything else.',
        changeable=True)]


class EffortCommands(Part):
    """
    The commands of one node.

    The first command is blended in over ``blend_time``, from the efforts that the robot reports;
    every later blend takes ``blend_time`` or `MIN_BLEND`, whichever is longer. When states stop
    for ``state_timeout``, ``on_stale`` determines the commands:

    - ``stop``: none; a controller then keeps the last command.
    - ``hold``: the last command, repeated until states return.
    - ``ramp_down``: a straight line from the last command to zero in ``ramp_time`` or `MIN_BLEND`,
      whichever is longer, or slower to respect ``effort_rate_limit``; then zero until states
      return.

    When commands are disabled, or the node is deactivated or ends, ``stop`` and ``hold`` send
    nothing more, and ``ramp_down`` goes to zero first.

    """

    def __init__(self, settings: CommandSettings) -> None:
        self._settings = settings
        # Whether commands may be published; why they ended without a request, if they did.
        self.enabled, self.mismatch = True, ''
        # The commanded joints in order; empty before there is a robot.
        self.joints: Sequence[str] = ()
        # Joints and limits to adopt when commands are enabled.
        self._waiting: tuple[Sequence[str], Sequence[float]] | None = None
        self._ended = False
        self._limits = self._last = self._blended = np.zeros(0)
        self._beyond = np.zeros(0, bool)
        self._pauses: deque[float] = deque(maxlen=PAUSES)
        self._long_pauses: deque[float] = deque(maxlen=PAUSES)
        # s, time since which there is no subscriber.
        self._unsubscribed: float | None = None
        self._now = -inf
        self._discard()

    def _discard(self) -> None:
        # s: time of the last command, and of the last one that was computed from a state.
        self._commanded: float | None = None
        self._computed = self._taken = 0.0
        self._disturbed = False         # whether a blend must start
        self._left = 0.0                # s, remaining time of the blend
        # Whether a command has equalled the computed efforts, within the limits, since then.
        self.complete = False
        # s, remaining time of the ramp to zero; None: it has not started.
        self._ramp_left: float | None = None
        self._pauses.clear()
        self._long_pauses.clear()
        self._span = self._span_pause = 0.0
        self._last[:] = 0.0

    def set_joints(self, joints: Sequence[str], limits: Sequence[float]) -> None:
        """
        Set the joints that can be commanded, and their effort limits, N m or N (may be infinite).

        If the joints are the same, commands keep their order. Otherwise, if a command was sent,
        commands end until they are enabled again: the controller was set up for other joints.

        """
        joints = tuple(joints)
        if self._commanded is not None and set(joints) != set(self.joints):
            self.enabled, self._ended = False, True
        elif not self.mismatch:
            self._adopt(joints, limits)
            return
        # Commands must be enabled even if the joints are those of the first robot again.
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
        """Enable commands for the joints of the current robot."""
        if self._waiting is not None:
            joints, limits = self._waiting
            self._waiting, self.mismatch = None, ''
            self._adopt(joints, limits)
        self.enabled = True
        self.begin()

    def disable(self) -> None:
        """Disable commands, which end as in `repeat`."""
        self.enabled = False
        self.end()

    def begin(self) -> None:
        """Start commands if they are enabled: the node has become active."""
        if self.enabled:
            self._ended = False
            self.disturb()

    def end(self) -> None:
        """End commands; see `repeat`."""
        self._ended = True

    def disturb(self) -> None:
        """Start a blend from the last command with the next one."""
        self._disturbed = True

    def _set_time(self, now: float) -> None:
        """Set the time, s; if it jumped back, shift all stored times."""
        back = now - self._now
        self._now = now
        if back >= 0.0:
            return
        self.disturb()
        self._computed += back
        if self._commanded is not None:
            self._commanded = min(self._commanded + back, now)      # rounding could exceed now
        if self._unsubscribed is not None:
            self._unsubscribed += back

    @property
    def last(self) -> np.ndarray:
        """Return the last command, N m or N, in the order of `joints`."""
        return self._last

    def why_not_start(self, measured: np.ndarray) -> str:
        """
        Return why the first command cannot start at measured efforts, N m or N; '' if it can.

        A controller that is active already passes on the last command of the node before:
        anything else would be a step. Without blend and rate limit nothing is needed to start.

        """
        if self._settings.blend_time == 0.0 and self._settings.effort_rate_limit == 0.0:
            return ''
        beyond = np.abs(measured) > BELIEVED * self._limits
        for wrong, reason in (
                (np.isnan(measured), 'the efforts of {} at which commands must start are not '
                 'measured: publish them, or start at the full size with blend_time: 0 and '
                 'effort_rate_limit: 0'),
                (beyond, 'commands cannot start at the measured efforts, which are far beyond '
                 'the limits of {}: check effort_convention')):
            if wrong.any():
                return reason.format(', '.join(np.array(self.joints)[wrong]))
        return ''

    def update(self, efforts: np.ndarray, now: float,
               guard: Callable[[np.ndarray], np.ndarray] | None = None,
               start: np.ndarray | None = None) -> np.ndarray:
        """
        Return the command for efforts in the order of `joints`, N m or N, at the robot's time, s.

        `guard` returns commands that are safe for joints near their limits. The first command
        starts at `start`, the measured efforts; zero by default. The same array is returned at
        every call.

        """
        settings = self._settings
        self.note_subscriber(now)
        self._beyond |= np.abs(efforts) > self._limits
        step = 0.0
        if self._commanded is None:
            self._left, self._disturbed = settings.blend_time, False
            if start is not None:
                self._last[:] = np.nan_to_num(start)
        else:
            step = now - self._commanded
            if step > MAX_STEP:
                step = min(step, max(MAX_STEP, self._usual_pause()))
            self._disturbed |= self._is_gap(now)
            pause = now - self._computed
            if pause <= self._longest_pause():
                self._note_pause(pause)
        if self._commanded is None or self._disturbed:
            self._blended = self._last.copy()
        if self._disturbed:
            self._disturbed = False
            # A blend starts at the last command; repeated disturbances do not stop its progress.
            step = step if self._left > 0.0 else 0.0
            self._left = max(settings.blend_time, MIN_BLEND)
        self._ramp_left, self._computed, self._taken = None, now, 0.0
        self._move_towards(efforts, step, self._left, now, guard)
        self._left = max(self._left - min(step, MAX_BLEND_STEP), 0.0)
        if not self.complete:
            self.complete = np.array_equal(
                self._last, self._limited(guard(efforts) if guard else efforts))
        return self._last

    def note_duration(self, seconds: float) -> None:
        """Note how long the node took to answer the last state: no other one arrived meanwhile."""
        self._taken = seconds

    def repeat(self, now: float, states_come: bool = False) -> np.ndarray | None:
        """
        Return the command to send at time now, s, without new efforts, or None.

        `states_come`: the state of the robot is recent, and the next command is not overdue with a
        low ``publish_rate``.

        """
        settings = self._settings
        self.note_subscriber(now)
        if self._commanded is None or settings.on_stale == 'stop':
            return None
        patience = settings.state_timeout
        if states_come:
            patience = max(patience, self._requested_pause())
        if not self._ended and now - self._computed - self._taken <= patience:
            return None
        if self._ended and (settings.on_stale == 'hold' or not self._last.any()):
            return None
        step = min(now - self._commanded, MAX_STEP)
        if settings.on_stale == 'hold':
            self._move_towards(self._last, step, 0.0, now)
            return self._last
        if self._ramp_left is None:
            step = 0.0
            self._ramp_left = max(settings.ramp_time, MIN_BLEND)
            if settings.effort_rate_limit > 0.0:
                self._ramp_left = max(self._ramp_left,
                                      np.max(np.abs(self._last)) / settings.effort_rate_limit)
        self._move_towards(np.zeros(len(self._last)), step, self._ramp_left, now)
        self._ramp_left = max(self._ramp_left - step, 0.0)
        return self._last

    def starts_blend(self, now: float) -> bool:
        """Return whether a command at this time, s, would start a blend."""
        return self.starts(now) or self._disturbed or now < self._now or self._is_gap(now)

    def starts(self, now: float) -> bool:
        """Return whether a command at this time, s, would be the first one."""
        return self._commanded is None or self._is_new_subscriber(now)

    def _move_towards(self, goal: np.ndarray, step: float, left: float, now: float,
                      guard: Callable[[np.ndarray], np.ndarray] | None = None) -> None:
        """Move the last command towards a goal by the share step / left of the remaining way."""
        settings = self._settings
        blend = min(step, MAX_BLEND_STEP)
        first = self._blended if guard else self._last
        blended = goal if blend >= left else first + blend / left * (goal - first)
        goal = guarded = guard(blended) if guard else blended
        kept = blended
        if settings.effort_rate_limit > 0.0:
            reach = settings.effort_rate_limit * step
            goal = np.clip(goal, self._last - reach, self._last + reach)
            kept = np.clip(blended, first - reach, first + reach)
        self._last[:] = self._limited(goal)
        # A blend continues from what it would have commanded without the guard, but at the rate
        # limit: while efforts fall, it must not still rise to those of before.
        self._blended = np.where(guarded != blended, kept, self._last) if guard else self._last
        self._commanded = now

    def _limited(self, efforts: np.ndarray) -> np.ndarray:
        if not self._settings.limit_efforts:
            return efforts
        # As np.clip, which takes three times as long.
        return np.maximum(np.minimum(efforts, self._limits), -self._limits)

    def note_no_subscriber(self, now: float) -> None:
        """Note that commands have no subscriber at this time, s."""
        self._set_time(now)
        if self._unsubscribed is None:
            self._unsubscribed = now

    def note_subscriber(self, now: float) -> None:
        """Note that commands have a subscriber at this time, s."""
        self._set_time(now)
        if self._is_new_subscriber(now):
            self._discard()
        self._unsubscribed = None

    def _is_new_subscriber(self, now: float) -> bool:
        return self._unsubscribed is not None and now - self._unsubscribed > SUBSCRIBER_TIMEOUT

    def _is_gap(self, now: float) -> bool:
        """Return whether efforts computed at this time, s, follow a gap."""
        pause = now - self._computed
        return pause > self._longest_pause() or (
            pause > MIN_GAP and pause > GAP_RATIO * max(
                self._usual_pause(), median(self._long_pauses or [0.0])))

    def period(self) -> float:
        """Return the measured period of the computed efforts, s; 0: unknown."""
        return self._usual_pause() if len(self._pauses) == PAUSES else 0.0

    def longest_hold(self) -> float:
        """Return how long a command may act, s; infinite while unknown."""
        return max([*self._pauses, *self._long_pauses], default=inf)

    def effort_rate(self) -> float:
        """Return the largest rate of change of commands, N m/s or N/s; may be infinite."""
        return self._settings.effort_rate_limit or inf

    def _note_pause(self, pause: float) -> None:
        """Note a pause, s, and the longest one in each `MIN_GAP`: states may come in groups."""
        self._pauses.append(pause)
        self._span, self._span_pause = self._span + pause, max(self._span_pause, pause)
        if self._span >= MIN_GAP:
            self._long_pauses.append(self._span_pause)
            self._span = self._span_pause = 0.0

    def _usual_pause(self) -> float:
        return median(self._pauses) if self._pauses else 0.0

    def _longest_pause(self) -> float:
        """Return the longest pause between computed efforts that is no gap, s."""
        return max(self._settings.state_timeout, self._requested_pause())

    def facts(self) -> dict[str, str]:
        """Return what may be commanded, and what happens when states stop."""
        return {'commands': 'enabled' if self.enabled else 'disabled',
                'command joints': listed(self.joints), 'on_stale': self._settings.on_stale}

    def beyond_limits(self) -> list[str]:
        """Return the joints whose efforts have exceeded their limits since the last call."""
        names = [name for name, beyond in zip(self.joints, self._beyond) if beyond]
        self._beyond[:] = False
        return names

    def _requested_pause(self) -> float:
        """Return the pause between commands that a low ``publish_rate`` explains, s."""
        rate = self._settings.publish_rate
        return 2.0 / rate if rate > 0.0 else 0.0
