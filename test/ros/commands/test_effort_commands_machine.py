# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever happens in whatever order, effort commands keep their invariant."""

from collections import Counter
from dataclasses import replace

from command_watch import CommandWatch, Settings
from covering import covering
from hypothesis import strategies as st
from hypothesis.stateful import invariant, rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
from rbd_ros.ros.commands.effort_commands import EffortCommands

STEPS_PER_RUN = 50
# The same joints in two orders, others, and fewer.
ROBOTS = (('a', 'b', 'c'), ('c', 'a', 'b'), ('a', 'b', 'd'), ('a', 'b'))
PAUSES = st.sampled_from([0.001, 0.001, 0.001, 0.01, 0.01, 0.03, 0.08, 0.15, 0.45, 0.6, 2.0, 60.0])
MOSTLY = st.sampled_from([True, True, True, False])
counts = Counter()


class CommandMachine(RuleBasedStateMachine):
    """Commands, and a witness that is told the same."""

    def __init__(self):
        super().__init__()
        self.settings = Settings()
        self.one, self.watch = EffortCommands(self.settings), CommandWatch()
        self.now, self.heard, self.active, self.guard = 10.0, True, True, None
        self.efforts = dict.fromkeys('abcd', 40.0)
        self.follow(0, 1.0)
        self.one.begin()

    @invariant()
    def stream(self):
        """Let states keep coming, whatever happened."""
        counts['steps'] += 1
        self._states(0.001, 3)

    @rule(pause=PAUSES, seed=st.integers(0, 9), times=st.sampled_from([1, 1, 2, 5, 60]))
    def states(self, pause, seed, times):
        """Let states come with other efforts, or after a pause."""
        self.efforts = dict(zip('abcd', np.random.default_rng(seed).uniform(-90.0, 90.0, 4)
                                .tolist()))
        self._states(pause, times)

    def _states(self, pause, times):
        efforts = self.efforts
        for _ in range(times):
            self.now += pause
            if not (self.heard and self.active and self.one.enabled):
                continue
            assert not self.watch.ended
            assert list(self.one.joints) == self.watch.joints
            got = self.one.update(np.array([efforts[name] for name in self.one.joints]), self.now,
                                  self.guard)
            self.watch.on_state(got, efforts, self.limits, self.now, self.settings)

    @rule(pause=PAUSES, times=st.sampled_from([1, 5, 60]), states_come=MOSTLY)
    def silence(self, pause, times, states_come):
        """Let the timer look whether there is something to say."""
        for _ in range(times):
            self.now += pause
            if not self.active:
                continue
            if not self.heard:
                self.one.note_no_subscriber(self.now)
                self.watch.nobody_listens(self.now)
                continue
            got = self.one.repeat(self.now, states_come)
            self.watch.on_silence(got, self.limits, self.now, self.settings)

    @rule(back=st.sampled_from([0.001, 0.5, 7.0]))
    def jump(self, back):
        """Let the time of the robot go back."""
        self.now -= back

    @rule(robot=st.integers(0, 3), limit=st.sampled_from([1.0, 0.3]))
    def follow(self, robot, limit):
        """Change the robot, describe it anew, or load it."""
        joints = ROBOTS[robot]
        limits = {name: limit * x for name, x in zip('abcd', (50.0, 80.0, np.inf, 10.0))}
        self.one.set_joints(joints, [limits[name] for name in joints])
        self.watch.follow(joints)
        self.robot = joints
        if self.watch.ended:
            assert not self.one.enabled
            assert self.one.mismatch
        else:
            self.limits = limits

    @rule(wanted=MOSTLY)
    def enable(self, wanted):
        """Enable or disable commands."""
        if wanted:
            # Limits of another robot come into force when its joints do.
            self.one.enable()
            self.watch.enable(self.robot)
            self.limits = dict(zip(self.one.joints, self.one._limits.tolist()))
        else:
            self.one.disable()

    @rule(wanted=MOSTLY)
    def activate(self, wanted):
        """Activate or deactivate the node."""
        self.active = wanted
        if wanted:
            self.one.begin()
            self.watch.disturb()
        else:
            self.one.end()

    @rule(wanted=MOSTLY)
    def listen(self, wanted):
        """Let the controller come or go."""
        self.heard = wanted
        if not wanted:
            self.one.note_no_subscriber(self.now)
            self.watch.nobody_listens(self.now)

    @rule(wanted=MOSTLY)
    def watch_limits(self, wanted):
        """Let a guard, which no joint needs, look at the commands."""
        self.guard = (lambda tau: tau) if wanted else None

    @rule(change=st.sampled_from([
        ('on_stale', 'stop'), ('on_stale', 'hold'), ('on_stale', 'ramp_down'), ('blend_time', 0.0),
        ('blend_time', 1.0), ('effort_rate_limit', 0.0), ('effort_rate_limit', 100.0),
        ('limit_efforts', True), ('limit_efforts', False), ('ramp_time', 0.0), ('ramp_time', 2.0),
        ('state_timeout', 0.2), ('state_timeout', 5.0), ('publish_rate', 0.0),
        ('publish_rate', 1.0)]))
    def set_parameter(self, change):
        """Change a parameter: the node disturbs the commands then, as at jumps of time."""
        self.settings = replace(self.settings, **dict([change]))
        self.one.configure(self.settings)
        self.one.disturb()
        self.watch.disturb()

    def teardown(self):
        """Count what was checked."""
        counts['checked'] += self.watch.checked
        counts['means'] += self.watch.means


@pytest.mark.parametrize('steps', covering([800, 5000], 800))
def test_commands_keep_their_invariant(steps):
    counts.clear()
    run_machine(CommandMachine, 2 * steps // STEPS_PER_RUN, STEPS_PER_RUN)
    assert min(counts[name] for name in ('steps', 'checked', 'means')) > steps
