# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever states come, efforts are judged once for each robot, by those of one long rest."""

from types import SimpleNamespace

from builtin_interfaces.msg import Time
from hypothesis import strategies as st
from hypothesis.stateful import rule, RuleBasedStateMachine
from machines import run_machine
import numpy as np
from rbd_ros import gravity_torques, with_gravity, Workspace
from rbd_ros.control import EffortConvention
from rbd_ros.model import with_springs
from rbd_ros.ros.robot.effort_diagnosis import EffortCheck
from robots import random_tree

# s and states of a rest that is long enough, and rad/s of a joint at rest
LONG, MANY, REST = 0.5, 20, 0.01
MODELS = [with_gravity(random_tree(seed, 3, kinds=('revolute',)), (0.0, 0.0, -9.81))
          for seed in (1, 2)]
# The torques that hold the springs of the second one at q = 0.5.
HOLDING = np.array([40.0, -30.0, 60.0])
MODELS[1] = with_springs(MODELS[1], stiffness=[40.0, 30.0, 20.0],
                         spring_reference=[-0.5, 1.5, -2.5])


class CheckMachine(RuleBasedStateMachine):
    """The check, and the rests that a witness has seen."""

    def __init__(self):
        super().__init__()
        self.said = []
        self.left_out = []
        self.one = EffortCheck(SimpleNamespace(warning=self.said.append,
                                               info=self.left_out.append))
        self.robots = [SimpleNamespace(
            model=model, workspace=Workspace(model), base_joint=None, time_stamp=Time(),
            convention=EffortConvention(), states=SimpleNamespace()) for model in MODELS]
        self.seen, self.judged, self.finding = None, False, ''
        self.now, self.rest = 100.0, []
        self.change_robot(0)

    @rule(number=st.sampled_from([0, 1]))
    def change_robot(self, number):
        """Let another robot come."""
        self.robot = self.robots[number]

    @rule()
    def jump(self):
        """Let time jump."""
        self.one.reset()
        self.rest = []

    @rule(times=st.sampled_from([1, 10, 30, 60]),
          pause=st.sampled_from([0.0041, 0.021, 0.11, -5.0]),
          speed=st.sampled_from([0.0, 0.0, 0.005, 0.05, np.nan]),
          share=st.sampled_from([1.0, 1.0, 0.1, -1.0, 0.0, np.nan]),
          unmeasured=st.sampled_from([None, None, ('effort', 0), ('effort', 2), ('v', 2)]))
    def states(self, times, pause, speed, share, unmeasured):
        """Let states come, at rest or not, perhaps without an effort or velocity of a joint."""
        robot, nv = self.robot, self.robot.model.nv
        if self.seen is not robot:
            self.seen, self.judged, self.finding, self.rest = robot, False, '', []
        for _ in range(times):
            self.now += pause if pause > 0.0 or not self.rest else 0.021
            robot.time_stamp = Time(sec=int(self.now), nanosec=round(1e9 * (self.now % 1.0)))
            q = np.full(nv, 0.5)
            effort = share * gravity_torques(robot.model, q)
            if robot.model is MODELS[1]:
                effort = effort + np.sign(share) ** 2 * HOLDING
            robot.states = SimpleNamespace(q=q, v=np.full(nv, speed), effort=effort.copy())
            if unmeasured:
                getattr(robot.states, unmeasured[0])[unmeasured[1]] = np.nan
            self.one.note(robot)
            if not self.judged:
                self._witness(speed, share, effort, unmeasured and unmeasured[1])
            assert self.one.finding == self.finding
            assert bool(self.finding) == any(self.finding == text for text in self.said[-1:]) or (
                not self.finding)

    def _witness(self, speed, share, effort, unmeasured):
        if self.rest and self.unmeasured != unmeasured:
            self.rest = []
        if not (speed <= REST and abs(share) > 0.0):
            self.rest = []
            return
        self.unmeasured = unmeasured
        self.rest.append((self.now, effort))
        if len(self.rest) >= MANY and self.now - self.rest[0][0] >= LONG:
            self.judged = True
            mean = np.mean([one for _, one in self.rest], axis=0)
            if self.robot.model is MODELS[1]:
                mean = mean - HOLDING
            g = gravity_torques(self.robot.model, np.full(self.robot.model.nv, 0.5))
            names = self.robot.model.velocity_names
            if unmeasured is not None:
                mean, g = (np.delete(x, unmeasured) for x in (mean, g))
                assert self.left_out.pop() == ('efforts at rest were compared without those of '
                                               f'{names[unmeasured]}, which are not measured')
                assert f"'{names[unmeasured]}'" not in self.one.finding
            assert not self.left_out
            errors = [np.linalg.norm(mean - g), np.linalg.norm(mean), np.linalg.norm(mean + g)]
            assert bool(self.one.finding) == (
                min(errors[1:]) < 0.5 * errors[0] or errors[0] > 0.7 * np.linalg.norm(g))
            self.finding = self.one.finding


def test_a_rest_restarts_if_other_joints_are_measured():
    machine = CheckMachine()
    for unmeasured, found in ((('effort', 0), False), (None, False), (None, True)):
        machine.states(times=25, pause=0.0161, speed=0.0, share=-1.0, unmeasured=unmeasured)
        assert bool(machine.one.finding) == found


def test_the_effort_check_keeps_its_invariant():
    run_machine(CheckMachine, 30, 30)
