# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Springs of joints: their torques, their place in models, files and simulations."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import load_drives, save_drives, with_springs
from rbd_ros.simulation import MujocoRobot
from rbd_ros.simulation.simulator import Simulator
from urdf_texts import ARM

# Rounding of a few operations on numbers of order 1 to 100.
EXACT = 1e-12
# The inertias here are round numbers, not those of real bodies.
pytestmark = pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')


def couple(**more):
    """Return two joints with springs, the second of which mimics the first."""
    return (rbd_ros.ModelBuilder('couple').link('base').link('a', 1.0, (0, 0, 0.2), (1, 1, 1))
            .link('b', 1.0, (0, 0, 0.2), (1, 1, 1))
            .joint('lead', 'revolute', 'base', 'a', stiffness=3.0, spring_reference=0.2, **more)
            .joint('copy', 'revolute', 'a', 'b', mimic=('lead', -2.0, 0.5), stiffness=5.0,
                   spring_reference=-0.1).build(gravity=(0, 0, 0)))


def ball(kind='spherical', **more):
    """Return a body with a ball or free joint."""
    return (rbd_ros.ModelBuilder('ball').link('base').link('bob', 1.0, (0, 0, 0), (1, 1, 1))
            .joint('j', kind, 'base', 'bob', **more).build(gravity=(0, 0, 0)))


def test_springs_are_no_part_of_gravity_torques():
    model = couple()
    q = np.array([0.7])
    assert np.array_equal(rbd_ros.gravity_torques(model, q), [0.0])
    # 3 (q - 0.2), and the mimic: -2 times 5 (-2 q + 0.5 + 0.1).
    expected = 3.0 * (q - 0.2) - 2.0 * 5.0 * (-2.0 * q + 0.6)
    assert np.allclose(rbd_ros.spring_torques(model, q), expected, rtol=0, atol=EXACT)
    assert np.allclose(rbd_ros.spring_torques(model, [q, 2 * q])[0], expected, rtol=0, atol=EXACT)
    assert np.isclose(model.stiffness[0], 23.0)


def test_springs_of_balls_pull_along_the_rotation_vector():
    turn, reference = np.array([0.3, -0.5, 0.8]), np.array([0.4, 0.1, 0.2])
    model = ball(stiffness=7.0, spring_reference=reference)
    q = rbd_ros.integrate(model, rbd_ros.integrate(model, rbd_ros.neutral(model), reference, 1.0),
                          turn, 1.0)
    assert np.allclose(rbd_ros.spring_torques(model, q), 7.0 * turn, rtol=0, atol=EXACT)


def test_springs_of_free_joints_pull_to_a_position():
    at = np.array([0.0, 0.0, 0.0, 1.0, 2.0, 3.0])
    model = ball('free', stiffness=2.0, spring_reference=at)
    half = np.sqrt(0.5)
    # A quarter turn about z: the world's x is the body's -y.
    q = np.array([0.0, 0.0, half, half, 2.0, 2.0, 3.0])
    assert np.allclose(rbd_ros.spring_torques(model, q), [0, 0, np.pi, 0, -2, 0], atol=EXACT)
    both = rbd_ros.spring_torques(model, [q, rbd_ros.neutral(model)])
    assert np.allclose(both[1], [0, 0, 0, -2, -4, -6], atol=EXACT)


def test_springs_are_kept_by_files_and_changes(tmp_path):
    model = couple()
    save_drives(model, tmp_path / 'drives.yaml')
    back = load_drives(with_springs(model, stiffness={'lead': 0.0, 'copy': 0.0}),
                       tmp_path / 'drives.yaml')
    for label in ('stiffness', 'spring_reference'):
        assert np.array_equal(getattr(back, label), getattr(model, label))
    other = with_springs(model, stiffness=[4.0], spring_reference=[0.3])
    assert np.array_equal(rbd_ros.spring_torques(other, [0.8]), [4.0 * 0.5])
    carried = rbd_ros.with_payload(rbd_ros.with_floating_base(other), 'b', 1.0)
    assert carried.stiffness[-1] == 4.0
    locked = rbd_ros.with_locked_joints(other, {'lead': 0.1})
    assert not locked.stiffness.size


def test_a_urdf_without_springs_is_warned_of(tmp_path):
    with pytest.warns(rbd_ros.ModelWarning, match='stiffness of lead, copy'):
        rbd_ros.save_urdf(couple(lower=-1, upper=1), tmp_path / 'robot.urdf')


def test_configurations_of_several_states_are_checked():
    model = ball(stiffness=7.0)
    q = np.array([[0.0, 0.0, 0.0, 1.0], [0.0, 0.0, 3.0, 4.0]])
    # The second one is not a unit quaternion: a turn by 2 atan(3 / 4) about z.
    assert np.allclose(rbd_ros.spring_torques(model, q),
                       [[0, 0, 0], [0, 0, 14.0 * np.arctan(0.75)]], rtol=0, atol=EXACT)
    with pytest.raises(rbd_ros.StateError, match="quaternion of joint 'j'"):
        rbd_ros.spring_torques(model, np.zeros((2, 4)))
    with pytest.raises(rbd_ros.StateError, match='q of state 1 has an entry that is not finite'):
        rbd_ros.spring_torques(model, [[0, 0, 0, 1], [0, 0, 0, np.nan]])
    with pytest.raises(rbd_ros.StateError, match='needs'):
        rbd_ros.spring_torques(model, np.zeros((2, 3)))


@pytest.mark.parametrize('bad, message', [
    ({'stiffness': {'lead': -1.0}}, 'stiffness must be finite and not negative'),
    ({'spring_reference': [np.inf]}, 'spring_reference'),
    ({'stiffness': {'nobody': 1.0}}, 'nobody')])
def test_bad_springs_are_refused(bad, message):
    with pytest.raises(rbd_ros.RbdError, match=message):
        with_springs(couple(), **bad)


def test_a_spring_swings_at_its_frequency():
    model = ball(stiffness=4.0)
    turn = np.array([0.1, 0.2, -0.2])
    q = rbd_ros.integrate(model, rbd_ros.neutral(model), turn, 1.0)
    # Inertia 1: half a period is pi / 2 s, at which the rotation is the opposite one.
    t = np.linspace(0.0, np.pi / 2.0, 400)
    motion = rbd_ros.simulate(model, q, np.zeros(3), np.zeros(3), t)
    end = rbd_ros.difference(model, rbd_ros.neutral(model), motion.q[-1])
    assert np.allclose(end, -turn, atol=1e-8)
    assert np.max(np.abs(motion.energy_drift)) < 1e-9


def test_a_simulated_robot_rests_at_its_spring():
    model = rbd_ros.model.with_friction(couple(), damping={'lead': 10.0})
    robot = Simulator(model, [0.9], step=5e-3)
    robot.advance([0.0], 1200)
    assert np.allclose(robot.q, model.spring_reference, atol=1e-5)


def test_mujoco_gets_the_springs():
    pytest.importorskip('mujoco')
    strong = ARM.replace('effort="9"', 'effort="99"')
    model = with_springs(rbd_ros.load_urdf_string(strong), stiffness=[20.0],
                         spring_reference=[0.4])
    q = np.array([0.1])
    robot = MujocoRobot(strong, model, q, step=1e-6)
    hold = rbd_ros.gravity_torques(model, q) + rbd_ros.spring_torques(model, q)
    robot.advance(hold, 10)
    assert np.allclose(robot.v, 0.0, atol=1e-9)
