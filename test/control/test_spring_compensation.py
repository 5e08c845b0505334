# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Springs in control laws, in the guard of joint limits and in the momentum observer."""

from dataclasses import replace

from control_robots import bare_arm, POSE
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import (ComputedTorque, Gravity, Hybrid, JointImpedance, JointReference,
                             MomentumObserver, PdGravity, SlotineLi)
from rbd_ros.model import with_springs
from rbd_ros.motions.motion_guard import MotionGuard

# Both sides are exact, but for the condition of M.
EXACT = 1e-8
STIFFNESS, REFERENCE = np.linspace(5.0, 40.0, 7), np.linspace(-1.0, 1.0, 7)
# stiffness (q - reference), written a second time
HOLDING = STIFFNESS * (POSE - REFERENCE)
V = np.linspace(-1.0, 1.0, 7)


@pytest.fixture(scope='module')
def arm():
    """Return an arm with a spring at each joint."""
    return with_springs(bare_arm(), stiffness=STIFFNESS, spring_reference=REFERENCE)


LAWS = [lambda model: Gravity(model, 3.0), lambda model: PdGravity(model, 50.0, 10.0),
        lambda model: ComputedTorque(model, 50.0), lambda model: JointImpedance(model, 50.0),
        lambda model: SlotineLi(model, 5.0, 50.0, 1.0)]


@pytest.mark.parametrize('k', range(len(LAWS)))
def test_laws_hold_springs_at_the_measured_configuration_on_request(arm, k):
    law, plain = LAWS[k](arm), LAWS[k](bare_arm())
    reference = None if k == 0 else JointReference(arm, POSE + 0.1, V, V)
    tau = plain.update(0.0, POSE, V, reference)
    assert np.array_equal(law.update(0.0, POSE, V, reference), tau)
    law.compensates_springs = True
    assert np.allclose(law.update(0.0, POSE, V, reference), tau + HOLDING, rtol=0, atol=1e-9)


@pytest.mark.parametrize('friction_speed', [None, 0.01])
def test_springs_of_free_joints_move_them_and_do_not_disturb_the_others(arm, friction_speed):
    prescribed = np.arange(7) % 2 == 0
    law = Hybrid(arm, prescribed, 50.0, friction_speed=friction_speed)
    law.compensates_springs = True
    reference = JointReference(arm, POSE, V, 0.5 * V, tau=np.linspace(1.0, 2.0, 7))
    tau = law.update(0.0, POSE, V, reference)
    assert np.allclose(tau[~prescribed], reference.tau[~prescribed], rtol=0, atol=1e-12)
    # The motors' torques and the springs together.
    a = rbd_ros.forward_dynamics(arm, POSE, V, tau - HOLDING)
    assert np.allclose(a[prescribed], 0.5 * V[prescribed], rtol=0, atol=EXACT)
    expected, _ = law.solve(POSE, V, reference)
    assert np.allclose(a, expected, rtol=0, atol=EXACT)


def test_the_guard_lets_springs_hold_joints_in_their_zones(arm):
    lower, upper = POSE - 1.0, POSE + 0.01
    narrow = replace(arm, lower=lower, upper=upper, velocity_limit=np.ones(7),
                     effort_limit=np.full(7, np.inf))
    guard = MotionGuard(narrow, zone=0.1)
    still = np.zeros(7)
    balanced = rbd_ros.gravity_torques(arm, POSE) + HOLDING
    # More than half into the zone outward torques are limited to those that hold the joint.
    tau = guard.limit(balanced + 5.0, POSE, still, None)
    depth, free = 0.09, np.linalg.inv(rbd_ros.mass_matrix(arm, POSE))
    assert np.all(guard.stopping)
    assert np.allclose(tau, balanced - 4000.0 * depth ** 2 / np.diag(free), rtol=0, atol=EXACT)


def test_springs_are_not_external_torques(arm):
    observer, still = MomentumObserver(arm, 50.0), np.zeros(7)
    push = np.linspace(-1.0, 2.0, 7)
    tau = rbd_ros.gravity_torques(arm, POSE) + HOLDING - push
    for t in np.arange(0.0, 2.0, 0.01):
        found = observer.update(t, POSE, still, tau)
    # exp(-50 * 2) of the push is left.
    assert np.allclose(found, push, rtol=0, atol=EXACT)
