# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From every mode of the torque controller to every other one, measured in its commands."""

from itertools import pairwise, permutations

from harness import ros
import numpy as np
import pinocchio
import pytest
from rbd_msgs.srv import SetMode
from robots import example_urdf
from scipy.linalg import sqrtm
from torque_loop import Loop

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

UR5, LINK = example_urdf('ur5_robot.urdf'), 'tool0'
Q = np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.2])
V = np.array([0.5, -0.4, 0.3, 0.6, -0.2, 0.7])
MODES = ('gravity', 'pd_gravity', 'computed_torque', 'joint_impedance', 'cartesian_impedance',
         'slotine_li', 'hybrid')
# s; and how long commands take to another law
PERIOD, BLEND = 0.01, 0.25
# N m in some ten, of sums of a hundred numbers, and a square root of a matrix
AGREEMENT = 1e-7
GRAVITY_DAMPING, DAMPING, KD, STIFFNESS, RATE = 3.0, 5.0, 20.0, 40.0, 4.0
ALONG, ABOUT, FREE = 300.0, 30.0, 4


def walk():
    """Return modes one after the other, each pair of them once in both directions."""
    for k, one in enumerate(MODES):
        yield one
        for other in MODES[k + 2:]:
            yield other
            yield one
    yield from MODES[-2::-1]


def laws():
    """Return the torques of all modes for a reference that rests where the robot is, moving."""
    model = pinocchio.buildModelFromUrdf(str(UR5))
    data, still, e = model.createData(), np.zeros(6), np.eye(6)

    def rnea(v, a):
        return pinocchio.rnea(model, data, Q, v, a).copy()

    g = rnea(still, still)
    M = np.transpose([rnea(still, one) - g for one in e])
    J = pinocchio.computeFrameJacobian(model, data, Q, model.getFrameId(LINK),
                                       pinocchio.LOCAL_WORLD_ALIGNED)
    Lambda = np.linalg.inv(J @ np.linalg.inv(M) @ J.T)
    K = np.diag([ALONG] * 3 + [ABOUT] * 3)

    # The modes of M and K are damped critically: 2 M (M^-1 K)^(1/2).
    def damped(M, K):
        return 2.0 * M @ sqrtm(np.linalg.solve(M, K)).real

    a = -KD * V
    h = rnea(V, still)
    free, others = [FREE], [k for k in range(6) if k != FREE]
    a_free = a.copy()
    a_free[free] = np.linalg.solve(M[np.ix_(free, free)],
                                   -h[free] - M[np.ix_(free, others)] @ a[others])
    return dict(zip(MODES, (
        g - GRAVITY_DAMPING * V, g - DAMPING * V, rnea(V, a),
        g - damped(M, STIFFNESS * e) @ V, g - J.T @ damped(Lambda, K) @ J @ V,
        g - RATE * M @ V - DAMPING * V, np.where(np.arange(6) == FREE, 0.0, M @ a_free + h))))


@pytest.fixture
def loop():
    """Return a torque controller with all its gains."""
    with ros():
        one = Loop(UR5, Q, period=PERIOD, mode='gravity', task_link=LINK, **{
            'gravity_damping': [GRAVITY_DAMPING], 'pd_gravity.damping': [DAMPING],
            'computed_torque.kd': [KD], 'joint_impedance.stiffness': [STIFFNESS],
            'cartesian_impedance.stiffness': [ABOUT] * 3 + [ALONG] * 3,
            'slotine_li.rate': [RATE], 'slotine_li.damping': [DAMPING], 'hybrid.kd': [KD],
            'hybrid.free_joints': ['wrist_2_joint']})
        yield one
        one.close()


@pytest.mark.parametrize('ticks', [28, 5])
def test_commands_blend_linearly_between_all_modes(loop, ticks):
    expected, (first, *modes) = laws(), walk()
    assert {*pairwise([first, *modes])} == {*permutations(MODES, 2)}
    for _ in range(3):
        last = loop.answer(Q, V)
    assert np.max(np.abs(last - expected[first])) < AGREEMENT
    left = 0.0
    for mode in modes:
        assert loop.harness.call(SetMode, 'set_mode', mode=mode).success
        # A blend that is over begins with the last command, one that goes on with another step.
        step, left = PERIOD if left > 0.0 else 0.0, BLEND
        for _ in range(ticks):
            share = 1.0 if step >= left - 1e-9 else step / left
            last = last + share * (expected[mode] - last)
            left, step = max(left - step, 0.0), PERIOD
            assert np.max(np.abs(loop.answer(Q, V) - last)) < AGREEMENT, mode
