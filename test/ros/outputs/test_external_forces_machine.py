# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever happens in whatever order, external forces are those that a witness observes."""

from types import SimpleNamespace

from builtin_interfaces.msg import Time
from covering import covering
from hypothesis import strategies as st
from hypothesis.stateful import rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
import pytest
from rbd_ros import with_gravity
from rbd_ros.control import EffortConvention, MomentumObserver
from rbd_ros.ros.messages.topics import CONTACT, EXTERNAL_TORQUES
from rbd_ros.ros.outputs.external_forces import ExternalForces, ForceSettings
from robots import random_tree

# One pass beside another in the same order: rounding of times of one second.
AGREEMENT = 1e-6
GAIN, THRESHOLD, MARGIN, RELEASE, CALIBRATION = 20.0, 50.0, 2.0, 0.5, 0.505
# s, and of ticks: no limit is a multiple of one
GAP, SETTLED, HOLD, TICK = 0.25, 4.0 / GAIN, 0.05, 2.0 ** -7
MODELS = [with_gravity(random_tree(seed, 3, kinds=('revolute',)), (0.0, 0.0, -9.81))
          for seed in (1, 1, 2)]
MODELS[1] = with_gravity(MODELS[1], (0.0, 3.0, -9.0))
# The second is the first one under another gravity.
TEXTS = ['one', 'one', 'two']
MOSTLY = st.sampled_from([True, True, True, False])


class Robot:
    """What the node's robot is to the observer."""

    def __init__(self, number):
        self.number, self.model, self.text = number, MODELS[number], TEXTS[number]
        self.base_joint, self.task_link, self.time_stamp = None, '', Time()
        self.states = SimpleNamespace(q=None, missing_velocities=lambda: ['joint'])
        self.v = self.torques = None

    def velocity(self, missing_velocity):
        assert missing_velocity == 'withhold'
        return self.v

    def measured_torques(self, v):
        return self.torques.copy()


class ForceMachine(RuleBasedStateMachine):
    """The part of the node, and what is known of the states that it was given."""

    given = ()

    def __init__(self):
        super().__init__()
        self.log = []
        self.one = ExternalForces(
            ForceSettings('zero', 0.02, EffortConvention(), (), (GAIN,), self.given, 'calibrated',
                          MARGIN, RELEASE, CALIBRATION),
            SimpleNamespace(age_time=lambda: 0.0),
            SimpleNamespace(warning=lambda text: self.log.append(text)))
        self.robots = [Robot(number) for number in range(len(MODELS))]
        self.robot = self.seen = None
        self.now, self.listens, self.observes = 1000.0, True, False
        self.one.wanted = True
        self.accepted, self.seen_by = [], None
        self.thresholds, self.learning, self.described = None, None, None
        self.touched, self.quiet = None, 0.0
        self.missing = np.zeros(0, bool)
        self.change_robot(0)

    @rule(number=st.sampled_from([0, 0, 1, 2]))
    def change_robot(self, number):
        """Let another description, load or gravity come."""
        self.robot = self.robots[number]

    def _see(self):
        """Let the witness know which robot the observer sees."""
        if self.seen is self.robot:
            return
        self.seen, self.accepted, self.touched = self.robot, [], None
        if self.described != self.robot.text:
            self.described, self.learning = self.robot.text, None
            self.thresholds = np.full(self.robot.model.nv, self.given[0]) if self.given else None

    @rule(seed=st.integers(0, 99), times=st.sampled_from([1, 3, 30]),
          pause=st.sampled_from([0, 1, 1, 1, 1, 6, 25, 40, -3, -40]),
          lost=st.sampled_from(['none'] * 12 + ['effort', 'efforts', 'velocity']),
          size=st.sampled_from([0.0, 0.0, 30.0, 300.0]))
    def states(self, seed, times, pause, lost, size):
        """Let states come, perhaps late, or without velocities, an effort or any."""
        rng = np.random.default_rng(seed)
        for _ in range(times):
            self.now += pause * TICK
            q, v, tau = rng.normal(size=(3, self.robot.model.nv))
            v, tau = 0.1 * v, size * tau
            robot = self.robot
            robot.time_stamp = Time(sec=int(self.now), nanosec=round(1e9 * (self.now % 1.0)))
            robot.states.q, robot.v = q, None if lost == 'velocity' else v
            robot.torques = tau.copy()
            missing = np.full(len(tau), lost == 'efforts')
            if lost == 'effort':
                missing[seed % len(tau)] = True
            robot.torques[missing] = np.nan
            self.one.note(robot)
            self._witness(q, v, tau, lost, missing)
            self._check()

    def _witness(self, q, v, tau, lost, missing):
        self.observes = self.listens or (self.learning is not None and self.thresholds is None)
        if not self.observes:
            return
        self._see()
        unusable = lost == 'velocity' or missing.all()
        self.left_out = unusable or bool(self.accepted and np.any(missing != self.missing))
        if self.left_out:
            # One state less; only if nothing else comes for long, the observer begins again.
            if not self.accepted or abs(self.now - self.accepted[-1][0]) > GAP:
                self.accepted, self.touched = [], None
            if unusable or self.accepted:
                return
            self.left_out = False
        self.missing = missing
        step = self.now - self.accepted[-1][0] if self.accepted else 1.0
        if -GAP <= step <= 0.0:
            return
        if abs(step) > GAP:
            self.accepted, self.touched = [], None
        self.accepted.append((self.now, q, v, tau))
        if self.accepted[-1][0] - self.accepted[0][0] < SETTLED:
            return
        self._touch(self._torques(), self.accepted[-1][0] - self.accepted[-2][0])

    def _torques(self):
        """Return what an observer says that has seen the accepted states, and no others."""
        if self.seen_by is not self.accepted:
            self.seen_by, self.count = self.accepted, 0
            self.observer = MomentumObserver(self.seen.model, GAIN, smooth=0.02, longest_gap=GAP)
        for t, *state in self.accepted[self.count:]:
            self.found = self.observer.update(t - self.accepted[0][0], *state)
        self.count = len(self.accepted)
        return np.where(self.missing, np.nan, self.found)

    def _touch(self, torques, step):
        """Follow the contact as its documentation says."""
        step = step if self.touched is not None else 0.0
        # Joints without efforts are no contact, now or after a calibration.
        size = np.where(self.missing, 1e12 if self.thresholds is None else 0.0, np.abs(torques))
        if self.thresholds is None:
            if self.learning is not None:
                largest, time = self.learning
                self.learning = np.maximum(largest, size), time + step
                self.touched = False
                if self.learning[1] >= CALIBRATION:
                    least = self.given[0] if self.given else 0.1
                    self.thresholds = np.maximum(MARGIN * self.learning[0], least)
            return
        if np.any(size > self.thresholds):
            self.touched, self.quiet = True, 0.0
        elif self.touched:
            below = np.all(size <= RELEASE * self.thresholds)
            self.quiet = self.quiet + step if below else 0.0
            self.touched = not (below and self.quiet >= HOLD)
        else:
            self.touched = False

    @rule(listens=MOSTLY)
    def listen(self, listens):
        self.listens = self.one.wanted = listens

    @rule()
    def jump(self):
        self.one.reset()
        self.accepted, self.touched = [], None

    @rule()
    def calibrate(self):
        self.one.calibrate(self.robot)
        self._see()
        self.learning, self.thresholds = (np.zeros(self.robot.model.nv), 0.0), None
        self.touched = None

    @rule(number=st.sampled_from([0, 1, 2]), size=st.sampled_from([1.0, 100.0]))
    def calibrate_to_the_end(self, number, size):
        """Calibrate as one should, and go on with this or another robot."""
        self.listen(True)
        self.calibrate()
        self.states(seed=1, times=50, pause=2, lost='none', size=size)
        self.change_robot(number)
        self.states(seed=2, times=15, pause=2, lost='none', size=size)

    def _check(self):
        robot = self.robot
        said = self.one.values(EXTERNAL_TORQUES, robot, robot.states.q)
        settled = (self.observes and self.seen is robot and self.accepted and not self.left_out
                   and self.accepted[-1][0] - self.accepted[0][0] >= SETTLED)
        if not settled:
            assert isinstance(said, str) and said
            assert isinstance(self.one.values(CONTACT, robot, robot.states.q), str)
            return
        assert not isinstance(said, str), said
        expected = self._torques()
        assert np.allclose(said['external_torques'], expected, rtol=0.0, equal_nan=True,
                           atol=AGREEMENT * (1.0 + np.nanmax(np.abs(expected))))
        said = self.one.values(CONTACT, robot, robot.states.q)
        if self.thresholds is None or self.touched is None:
            assert isinstance(said, str)
        else:
            assert said['contact'] == self.touched
            assert np.allclose(said['thresholds'], self.thresholds, rtol=AGREEMENT)


class GivenThresholds(ForceMachine):
    """The same, with a threshold from the start on."""

    given = (THRESHOLD,)


@pytest.mark.parametrize('runs', covering([8, 40], 8))
@pytest.mark.parametrize('machine', [ForceMachine, GivenThresholds])
def test_external_forces_keep_their_invariant(machine, runs):
    run_machine(machine, runs, 30)
