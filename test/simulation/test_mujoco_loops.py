# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots with closed loops in MuJoCo, whose equality constraints close the loops."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import Constraint, with_constraints, with_friction
from rbd_ros.model.positions.closure import equations_and_gaps
from rbd_ros.model.se3 import rotation_from_rpy
from rbd_ros.ros.runtime.share_directory import share
from rbd_ros.simulation.mujoco_robot import MujocoRobot
from rbd_ros.simulation.simulator import Simulator
from robots import load_quietly

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

ROBOTS = 'four_bar', 'slider_crank', 'five_bar', 'palletizer', 'delta'
STEP = 5e-4
# m and rad: soft constraints of a moving robot; and the difference of two first-order
# integrations of 60 steps, relative.
GAP, SAME_MOTION = 5e-6, 0.02


def robot(name, seed=0, **options):
    """Return a robot in urdf/, a closed configuration, and the robot in MuJoCo."""
    path = share('urdf', f'{name}.urdf')
    model = load_quietly(path)
    q = rbd_ros.random_configuration(model, np.random.default_rng(seed))
    return model, q, MujocoRobot(path.read_text(), model, q, step=STEP, **options)


@pytest.mark.parametrize('name', ROBOTS)
def test_gravity_torques_of_the_motors_hold_it_and_its_loops_stay_closed(name):
    model, q, there = robot(name)
    for _ in range(400):
        there.advance(rbd_ros.gravity_torques(model, rbd_ros.model.normalize(model, there.q)))
        assert np.max(np.abs(equations_and_gaps(model.loops, there.q)[1])) < GAP
    assert np.max(np.abs(there.q - q)) < 1e-5


@pytest.mark.parametrize('name', ROBOTS)
def test_the_mujoco_robot_with_loops_falls_like_the_own_simulation(name):
    model, q, there = robot(name)
    own = Simulator(model, q, step=STEP)
    tau = 0.05 * np.minimum(model.effort_limit, 100.0)
    for one in (there, own):
        one.advance(tau, 60)
    way = np.max(np.abs(own.q - q))
    assert way > 1e-3
    assert np.max(np.abs(there.q - own.q)) < SAME_MOTION * way
    assert np.max(np.abs(equations_and_gaps(model.loops, there.q)[1])) < GAP
    assert len(there.v) == model.nv and len(there.q) == model.nq


def test_effort_offsets_of_passive_joints_count():
    path = share('urdf', 'palletizer.urdf')
    model = load_quietly(path)
    model = with_friction(model, friction={one.name: 0.0 for one in model.joints if one.nv},
                          effort_offset={'elbow': 20.0})
    q = rbd_ros.neutral(model)
    there, own = MujocoRobot(path.read_text(), model, q, step=STEP), Simulator(model, q, step=STEP)
    tau = rbd_ros.gravity_torques(model, q)
    for one in (there, own):
        one.advance(tau, 60)
    assert np.max(np.abs(own.q - q)) > 1e-4
    assert np.max(np.abs(there.q - own.q)) < SAME_MOTION * np.max(np.abs(own.q - q))


def test_measurements_are_of_all_positions_and_of_the_motors():
    _, q, there = robot('four_bar', position_noise=[0.0, 1.0, 2.0])
    measured = there.measure()
    assert measured.q[0] == q[0] and np.all(measured.q[1:] != q[1:])
    assert len(measured.v) == len(measured.tau) == 1


def test_a_weld_and_a_point_close_loops_as_well_as_a_hinge():
    path = share('urdf', 'four_bar.urdf')
    hinged = load_quietly(path)
    pin, = hinged.constraints
    q = rbd_ros.random_configuration(hinged, np.random.default_rng(1))
    expected = Simulator(hinged, q, step=STEP)
    expected.advance([1.0], 100)
    for kind in ('point', 'revolute'):
        model = with_constraints(hinged.unconstrained, [Constraint(
            'pin', kind, pin.link_a, pin.link_b, pin.placement_a, pin.placement_b)], ['crank'])
        there = MujocoRobot(path.read_text(), model, q, step=STEP)
        there.advance([1.0], 100)
        assert np.max(np.abs(there.q - expected.q)) < SAME_MOTION * np.max(np.abs(expected.q - q))
    # The crank held at its place in the world, by frames with a general rotation.
    T, B = rbd_ros.forward_kinematics(hinged, q)[hinged.link_index('crank_link')], np.eye(4)
    B[:3, :3] = rotation_from_rpy((0.3, -0.8, 1.9))
    model = with_constraints(hinged.unconstrained, [
        Constraint('brake', 'weld', hinged.link_names[0], 'crank_link', T @ B, B)],
        ['coupler', 'rocker'])
    there = MujocoRobot(path.read_text(), model, q, step=STEP)
    there.advance([0.0, 0.0], 200)
    assert abs(there.q[0] - q[0]) < GAP and np.all(np.abs(there.q - q)[1:] > 1e-3)


def test_a_hinge_holds_the_direction_of_its_axis():
    text = """<robot name="r"><link name="base"/><link name="a"><inertial><mass value="1"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
      <link name="b"><inertial><origin xyz="0.3 0.1 0.2"/><mass value="1"/>
      <inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>
      <joint name="turn" type="continuous"><parent link="base"/><child link="a"/>
      <axis xyz="0 0 1"/></joint><joint name="roll" type="continuous"><parent link="a"/>
      <child link="b"/><axis xyz="1 0 0"/></joint></robot>"""
    T = np.eye(4)
    T[:3, :3] = rotation_from_rpy((0.0, 0.5 * np.pi, 0.0))      # z along the axis of the roll
    model = with_constraints(rbd_ros.with_gravity(
        rbd_ros.load_urdf_string(text), (1.0, 6.0, -3.0)),
        [Constraint('bearing', 'revolute', 'base', 'b', T, T)], ['roll'])
    there = MujocoRobot(text, model, step=STEP)
    there.advance([0.0], 200)
    assert abs(there.q[0]) < GAP and abs(there.q[1]) > 1e-3


def test_loops_that_mujoco_cannot_model_are_refused_by_name():
    path = share('urdf', 'four_bar.urdf')
    hinged = load_quietly(path)
    pin, = hinged.constraints
    model = with_constraints(hinged.unconstrained, [Constraint(
        'rod', 'distance', 'coupler_link', 'rocker_link', placement_b=pin.placement_b,
        length=0.5)], ['crank', 'coupler'])
    with pytest.raises(rbd_ros.ModelError, match="'rod' keeps a distance"):
        MujocoRobot(path.read_text(), model)
    _, q, there = robot('four_bar')
    with pytest.raises(rbd_ros.RbdError, match='closed loops'):
        there.inverse_dynamics(q, [0.0], [0.0])
