# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Continuous joints take the shortest way to their reference, however many turns are counted."""

from control_robots import random_reference
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import (
    CartesianImpedance, ComputedTorque, Hybrid, JointImpedance, JointReference, JointTrajectory,
    PdGravity, PoseReference, SlotineLi)
from rbd_ros.model.positions.steps import turning, without_turns
from robots import relative_error

TURN = 2.0 * np.pi
# Angles of a few turns are rounded to 1e-15, and torques are some tens of N m.
ROUNDING = 1e-11


def arm(mimic=None, kind='continuous'):
    """Return an arm of a continuous, a revolute and a sliding joint, and a mimic of the first."""
    build = rbd_ros.ModelBuilder('arm').link('base')
    for k, (name, one) in enumerate((('pan', 'continuous'), ('lift', 'revolute'),
                                     ('slide', 'prismatic'), ('roll', 'continuous'))):
        before = ('base', 'a', 'b', 'c')[k]
        build.link('abcd'[k], mass=1.0 + k, com=(0.1, 0.02 * k, 0.3), inertia=np.eye(3) * 0.1)
        limits = {} if one == 'continuous' else {'lower': -9.0, 'upper': 9.0}
        build.joint(name, one, before, 'abcd'[k], xyz=(0.0, 0.1, 0.3),
                    axis=((0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 0))[k], **limits)
    if mimic is not None:
        build.link('copy', mass=1.0, com=(0.1, 0.0, 0.0), inertia=np.eye(3) * 0.1)
        build.joint('copy', kind, 'base', 'copy', axis=(0, 0, 1), mimic=('pan', mimic))
    return build.build()


def laws(model):
    """Return a controller of each kind that has an error of positions."""
    gain = np.linspace(50.0, 80.0, model.nv)
    return [PdGravity(model, gain, 10.0), ComputedTorque(model, gain), JointImpedance(model, gain),
            SlotineLi(model, 5.0, gain, 1.0), Hybrid(model, np.ones(model.nv, bool), gain),
            CartesianImpedance(model, 'd', 50.0, posture=[0.3, 0.9, 0.2, 0.4])]


@pytest.mark.parametrize('turns', [(1, 0), (-1, 2), (0, -3)])
@pytest.mark.parametrize('number', range(6), ids=[type(law).__name__ for law in laws(arm())])
def test_torques_are_the_same_in_every_turn(number, turns):
    model, rng = arm(), np.random.default_rng(1)
    q, v = np.array([0.5, 0.9, 0.2, -0.4]), rng.normal(size=4)
    law = laws(model)[number]
    reference = random_reference(model, rng, q)
    if law.reference_type is PoseReference:
        reference = PoseReference(np.eye(4))
    away = q + TURN * np.array([turns[0], 0, 0, turns[1]])
    expected = law.update(0.0, q, v, reference)
    law.reset()
    assert relative_error(law.update(0.0, away, v, reference), expected) < ROUNDING


@pytest.mark.parametrize('measured, wanted, way', [
    (3.0, -3.0, TURN - 6.0), (-3.0, 3.0, 6.0 - TURN), (7.0, 0.5, TURN - 6.5), (0.0, np.pi, np.pi),
    (0.1, 0.1 + np.pi, np.pi), (0.1, 0.1 - np.pi, -np.pi), (0.0, 9.0, 9.0 - TURN)])
def test_a_continuous_joint_is_pulled_along_the_shortest_way_and_others_are_not(measured, wanted,
                                                                                way):
    law, still = PdGravity(arm(), 10.0, 0.0), np.zeros(4)
    q, q_r = np.zeros(4), np.zeros(4)
    q[:3], q_r[:3] = measured, wanted
    tau = law.update(0.0, q, still, JointReference(arm(), q_r))
    pulled = tau - rbd_ros.gravity_torques(arm(), q)
    assert np.allclose(pulled, 10.0 * np.array([way, wanted - measured, wanted - measured, 0.0]))


@pytest.mark.parametrize('kind, ratio, returns', [
    ('continuous', 2.0, True), ('revolute', -1.0, True), ('continuous', 0.5, False),
    ('prismatic', 1.0, False)])
def test_a_joint_whose_mimic_does_not_return_after_a_turn_is_no_circle(kind, ratio, returns):
    model = arm(ratio, kind)
    assert turning(model).tolist() == [returns, False, False, True]
    step = np.array([TURN, TURN, TURN, TURN + 0.5])
    expected = [0.0 if returns else TURN, TURN, TURN, 0.5]
    assert np.allclose(without_turns(step, turning(model)), expected, atol=1e-15)


def four_bar():
    """Return a parallelogram of continuous joints, driven by its crank."""
    build = rbd_ros.ModelBuilder('four_bar').link('base')
    for name, before, xyz in (('crank', 'base', (0, 0, 0)), ('coupler', 'crank', (0, 0, 0.2)),
                              ('rocker', 'base', (0.5, 0, 0))):
        build.link(name, mass=1.0, com=(0.1, 0.0, 0.1), inertia=np.eye(3) * 0.01)
        build.joint(name, 'continuous', before, name, xyz=xyz, axis=(0, 1, 0))
    quarter = (-np.pi / 2.0, 0.0, 0.0)
    build.constraint('pin', 'revolute', 'coupler', 'rocker', xyz_a=(0.5, 0, 0), rpy_a=quarter,
                     xyz_b=(0, 0, 0.2), rpy_b=quarter)
    return build.build(independent=['crank'])


def test_the_crank_of_a_loop_takes_the_shortest_way():
    model = four_bar()
    q, q_r = (rbd_ros.model.normalize(model, [x, -x, x]) for x in (3.0, -3.0))
    error = PdGravity(model, 1.0, 1.0).error(q, JointReference(model, q_r))
    assert error.shape == (1,) and np.allclose(error, TURN - 6.0)


def test_points_of_a_loop_may_count_turns_of_passive_joints_otherwise():
    model = four_bar()
    points = [[0.3, -0.3, 0.3], [0.6, -0.6 + TURN, 0.6 - TURN]]
    motion = JointTrajectory(model, [0.0, 1.0], points)
    assert np.allclose(motion.at(0.5).q, [0.45, -0.45, 0.45])
