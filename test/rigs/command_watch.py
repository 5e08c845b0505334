# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The invariant of effort commands, implemented from its documentation.

Commands never step: each lies between the previous command and the computed effort, within the
distance allowed for the time that has passed; limits are applied last; each value belongs to the
joint at its place. In a blend, each is the mean of the command before and of the efforts since.

"""

from dataclasses import dataclass
from math import inf, isfinite, isinf
from statistics import median

# s: the shortest blend, the longest time step, the longest pause that is no gap, and the longest
# time without a subscriber after which the next one is not considered another controller.
SMOOTH, LONGEST_STEP, SHORTEST_GAP, FORGOTTEN = 0.25, 0.02, 0.1, 1.0
# Share of the distance to the computed effort allowed for the first command after a disturbance.
MOST_AT_ONCE = 0.2
# N m, in sums of a few numbers below 1000.
ROUNDING = 1e-9


class CommandWatch:
    """Records all inputs of a controller, and checks its commands."""

    def __init__(self):
        # Order of the commands, and whether other joints ended them, until they are enabled.
        self.joints, self.ended = None, False
        self.checked, self.means, self.now = 0, 0, -inf
        self.forget()

    def forget(self):
        """Reset: nothing has been received."""
        self.last, self.told, self.computed = {}, None, None
        self.left, self.ramp, self.disturbed, self.pauses = 0.0, None, False, []
        # The pauses since the last SHORTEST_GAP, and the longest one in each.
        self.group, self.groups = [], []
        self.unheard = None

    def _come_to(self, now):
        """Record the time; if it goes back, no time has passed, and commands may step."""
        if now < self.now:
            shift = now - self.now
            self.told, self.computed, self.unheard = (
                None if t is None else t + shift
                for t in (self.told, self.computed, self.unheard))
            self.disturb()
        self.now = now

    def disturb(self):
        """Record an event that could make commands step."""
        self.disturbed = True

    def follow(self, joints):
        """Record that the robot has other joints, or the same in another order."""
        if self.joints is not None and set(joints) == set(self.joints) and not self.ended:
            self.disturb()
        elif self.told is None and not self.ended:
            self.joints = list(joints)
            self.disturb()
        else:
            self.ended = True

    def enable(self, joints):
        """Record that commands are enabled for a robot with these joints."""
        if self.ended and set(joints) != set(self.joints):
            # New joints begin at zero.
            self.last = {name: self.last.get(name, 0.0) for name in joints}
            self.joints = list(joints)
        self.ended = False
        self.disturb()

    def nobody_listens(self, now):
        """Record that the topic has no subscriber at this time."""
        self._come_to(now)
        if self.unheard is None:
            self.unheard = now

    def somebody_listens(self, now):
        """Record that the topic has a subscriber at this time."""
        self._come_to(now)
        if self.unheard is not None and now - self.unheard > FORGOTTEN:
            joints = self.joints
            self.forget()
            self.joints = joints
        self.unheard = None

    def on_state(self, got, efforts, limits, now, settings):
        """Check a command that follows a state, given efforts and limits by joint."""
        self.somebody_listens(now)
        step = 0.0
        if self.told is None:
            self.left, self.disturbed = settings.blend_time, False
            self._begin_mean()
        else:
            usual = median(self.pauses[-5:]) if self.pauses else 0.0
            pause = now - self.computed
            step = min(now - self.told, max(LONGEST_STEP, usual))
            longest = settings.state_timeout
            if settings.publish_rate > 0.0:
                longest = max(longest, 2.0 / settings.publish_rate)
            between = median(self.groups[-5:]) if self.groups else 0.0
            if pause > min(longest, max(SHORTEST_GAP, 5 * max(usual, between))):
                self.disturb()
            if pause <= longest:
                self.pauses.append(pause)
                self.group.append(pause)
                if sum(self.group) >= SHORTEST_GAP:
                    self.groups.append(max(self.group))
                    self.group = []
        if self.disturbed:
            step = step if self.left > 0.0 else 0.0
            self.left, self.disturbed = max(settings.blend_time, SMOOTH), False
            self._begin_mean()
            # Whatever else is true of it: no more than a fifth of the way, however long ago
            # the last command was.
            self._check_way(got, efforts, MOST_AT_ONCE, limits, settings)
        blend = min(step, MOST_AT_ONCE * SMOOTH)
        share = 1.0 if blend >= self.left else blend / self.left
        before, self.left = self.left, max(self.left - blend, 0.0)
        self._check(got, efforts, share, step, limits, settings)
        self._check_mean(got, efforts, before, limits, settings)
        self.told, self.computed, self.ramp = now, now, None

    def on_silence(self, got, limits, now, settings):
        """Check a command without new states; None: no command was published."""
        self.somebody_listens(now)
        if got is None:
            return
        assert self.told is not None, 'nothing was commanded before'
        assert settings.on_stale != 'stop'
        step = min(now - self.told, LONGEST_STEP)
        if settings.on_stale == 'hold':
            self._check(got, dict(self.last), 0.0, step, limits, settings)
        else:
            if self.ramp is None:
                self.ramp, step = max(settings.ramp_time, SMOOTH), 0.0
                if settings.effort_rate_limit > 0.0:
                    self.ramp = max(self.ramp, max(map(abs, self.last.values()))
                                    / settings.effort_rate_limit)
            share = 1.0 if step >= self.ramp else step / self.ramp
            self.ramp = max(self.ramp - step, 0.0)
            self._check(got, dict.fromkeys(self.joints, 0.0), share, step, limits, settings)
        self.disturb()
        self.told = now

    def _begin_mean(self):
        """Begin a blend, or the first commands, from the last command."""
        self.length, self.exact = self.left, True
        self.start = {name: self.last.get(name, 0.0) for name in self.joints}
        self.sums, self.bounds = dict.fromkeys(self.joints, 0.0), {
            name: (x, x) for name, x in self.start.items()}

    def _check_mean(self, got, efforts, before, limits, settings):
        """Check that a command is a mean of the first one and of the efforts since."""
        # Clamped commands are means with other weights.
        self.exact &= settings.effort_rate_limit == 0.0 and not settings.limit_efforts
        for name, x in zip(self.joints, got):
            limit = limits.get(name, inf) if settings.limit_efforts else inf
            low, high = self.bounds[name]
            low, high = self.bounds[name] = min(low, efforts[name]), max(high, efforts[name])
            assert max(low, -limit) - ROUNDING <= x <= min(high, limit) + ROUNDING or (
                abs(x) == limit), f'{name}: {x} is no mean of what was computed'
            if self.exact and self.left > 0.0:
                self.sums[name] += (1.0 / self.left - 1.0 / before) * efforts[name]
                mean = self.left * (self.start[name] / self.length + self.sums[name])
                assert abs(x - mean) <= ROUNDING * self.length / self.left, f'{name}: {x}, {mean}'
                self.means += 1

    def _check_way(self, got, goals, most, limits, settings):
        for name, x in zip(self.joints, got):
            limit = limits.get(name, float('inf')) if settings.limit_efforts else float('inf')
            last = max(-limit, min(limit, self.last.get(name, 0.0)))
            way = abs(goals[name] - self.last.get(name, 0.0))
            assert abs(x - last) <= most * way + ROUNDING, f'{name} steps after a disturbance'

    def _check(self, got, goals, share, step, limits, settings):
        self.checked += 1
        assert len(got) == len(self.joints), 'a number too many or too few'
        for name, x in zip(self.joints, got):
            assert isfinite(x)
            limit = limits.get(name, float('inf')) if settings.limit_efforts else float('inf')
            assert isinf(limit) or abs(x) <= limit + ROUNDING, f'{name} is beyond its limit'
            # Where limits were lowered, or turned on, the way begins at the limit.
            last = max(-limit, min(limit, self.last.get(name, 0.0)))
            goal = max(-limit, min(limit, goals[name]))
            low, high = sorted((last, goal))
            assert low - ROUNDING <= x <= high + ROUNDING, (
                f'{name}: {x} is not between {last} and {goal}')
            way = abs(goals[name] - self.last.get(name, 0.0))
            assert abs(x - last) <= share * way + ROUNDING, f'{name} steps beyond the blend'
            if settings.effort_rate_limit > 0.0:
                assert abs(x - last) <= settings.effort_rate_limit * step + ROUNDING, (
                    f'{name} steps beyond the rate limit')
            elif share == 1.0:
                assert abs(x - goal) <= ROUNDING, f'{name} is not where it should be by now'
        self.last.update(zip(self.joints, map(float, got)))


@dataclass(frozen=True)
class Settings:
    """The parameters that matter here, with their defaults."""

    on_stale: str = 'stop'
    state_timeout: float = 0.5
    ramp_time: float = 1.0
    blend_time: float = 0.0
    effort_rate_limit: float = 0.0
    limit_efforts: bool = False
    publish_rate: float = 0.0
