# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A node diagnoses the efforts of the last minute, in motion or in three poses."""

from types import SimpleNamespace

from builtin_interfaces.msg import Time
from covering import seeds
import measured
import numpy as np
from planted import robot
import pytest
import rbd_ros
from rbd_ros.ros.robot.effort_diagnosis import diagnosed, EffortDiagnosis

STEP = 0.02     # s between two states
PAYLOAD = 'payload of about 1.1 kg at tool0 not declared'


class Check:
    """The diagnosis of a robot, whose worker works at once."""

    def __init__(self, model):
        self.asked, self.said, self.now = [], [], 1000.0
        self.one = EffortDiagnosis(
            SimpleNamespace(submit=self.submit),
            SimpleNamespace(warning=lambda *words: self.said.append(words[0])))
        self.robot = SimpleNamespace(model=model, base_joint=None,
                                     measured_torques=lambda v: self.robot.states.effort)

    def submit(self, work, then, *, may_wait):
        """Do the work, and note when."""
        self.asked.append(self.now)
        then(work())

    def note(self, q, v, effort):
        """Let a state come."""
        self.now += STEP
        self.robot.time_stamp = Time(sec=int(self.now), nanosec=int(1e9 * (self.now % 1.0)))
        self.robot.states = SimpleNamespace(q=q, v=v, effort=effort)
        self.one.note(self.robot)

    def move(self, true, seconds, signs):
        """Let the states of a motion come."""
        _, q, v, a = measured.swing(true, np.random.default_rng(1), seconds, 1.0 / STEP)
        for state in zip(q, v, signs * measured.efforts(true, q, v, a)):
            self.note(*state)

    def stand(self, true, poses, seconds):
        """Let the states of rests come, one after the other."""
        rng, still = np.random.default_rng(3), np.zeros(true.nv)
        for _ in range(poses):
            q = rng.uniform(-1.0, 1.0, true.nq)
            for _ in range(int(seconds / poses / STEP)):
                self.note(q, still, rbd_ros.gravity_torques(true, q))
            self.note(q, still + 0.5, rbd_ros.gravity_torques(true, q))


@pytest.fixture(scope='module')
def arm():
    """Return an arm and the same arm with a payload."""
    model = robot('ur5_robot.urdf')
    return model, rbd_ros.with_payload(model, 'tool0', 1.1, (0.0, 0.02, 0.05))


def test_a_payload_is_reported_once_a_minute_and_taken_back(arm):
    model, loaded = arm
    check = Check(model)
    check.stand(loaded, 3, 61.0)
    assert PAYLOAD in check.one.finding
    assert check.said[-1] == check.one.finding
    check.stand(model, 3, 61.0)
    check.stand(model, 3, 61.0)
    assert check.one.finding == ''
    assert len(check.asked) <= 3 and np.all(np.diff(check.asked) >= 60.0 - STEP)


@pytest.mark.parametrize('is_loaded, signs, text', [
    (True, np.ones(6), PAYLOAD),
    (False, np.array([1, 1, -1, 1, 1, 1]), 'the efforts of elbow_joint have the wrong sign')])
def test_a_motion_shows_a_payload_and_the_other_sign_of_a_joint(arm, is_loaded, signs, text):
    check = Check(arm[0])
    check.move(arm[is_loaded], 61.0, signs)
    assert text in check.one.finding


def test_two_poses_reveal_no_payload_and_another_robot_resets_the_check(arm):
    model, loaded = arm
    check = Check(model)
    check.stand(loaded, 2, 61.0)
    assert len(check.asked) == 1 and check.one.finding == ''
    check.stand(loaded, 3, 61.0)
    assert 'payload' in check.one.finding
    check.robot = SimpleNamespace(**vars(check.robot))
    check.note(np.zeros(6), np.zeros(6), np.ones(6))
    assert check.one.finding == ''


@pytest.mark.parametrize('seed', seeds(4, few=2))
def test_random_efforts_at_three_poses_are_not_mistaken_for_a_payload(arm, seed):
    model, rng = arm[0], np.random.default_rng(seed)
    rows = []
    for k in range(3):
        q = rng.uniform(-1.0, 1.0, model.nq)
        effort = rbd_ros.gravity_torques(model, q)
        effort = effort + 0.05 * np.max(np.abs(effort)) * rng.normal(size=model.nv)
        rows += [[10.0 * k + STEP * i, *q, *np.zeros(model.nv), *effort] for i in range(50)]
        rows += [[10.0 * k + 5.0, *q, *np.ones(model.nv), *effort]]
    assert diagnosed(model, np.array(rows)) == ''
