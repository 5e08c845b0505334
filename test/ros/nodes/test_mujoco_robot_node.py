# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The node that simulates in MuJoCo: commands, brakes, delay, noise and a load nobody knows."""

from functools import partial
import math

from geometry_msgs.msg import Vector3, Wrench
import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.parameters.parameters import BadParameter
from test_simulated_robot import command

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

# A mass of 1 kg on a rod of 1 m that stands on its head at zero, and turns about y.
ARM = """<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 1"/>
 <mass value="1"/><inertia ixx="1e-6" ixy="0" ixz="0" iyy="1e-6" iyz="0" izz="1e-6"/></inertial>
 </link><joint name="hinge" type="revolute"><parent link="base"/><child link="rod"/>
 <axis xyz="0 1 0"/><limit lower="-3" upper="3" effort="20" velocity="10"/></joint></robot>"""
START = 0.5
HOLDING = -9.81 * math.sin(START)      # N m


@pytest.fixture
def robot(robot):
    """Return a function that makes a robot in MuJoCo, by default the arm."""
    return partial(robot, RobotInMujoco, robot_description=ARM, initial_positions=[START],
                   tolerated_delay=0.0)


def test_efforts_are_within_the_limits_of_the_drives(robot):
    node, states = robot()
    command(node, [-50.0])
    assert states[-1][2] == [-20.0]


@pytest.mark.parametrize('parameters, moves', [
    ({}, False),
    ({'payload_link': 'rod', 'payload_mass': 1.0, 'payload_com': [0.0, 0.0, 1.0]}, True)])
def test_the_mujoco_robot_falls_under_an_added_payload(robot, parameters, moves):
    node, states = robot(**parameters)
    command(node, [HOLDING])
    # The load doubles gravity and inertia: 9.81 sin(0.5) / 2 rad/s^2 for at least 0.05 s.
    least = 0.9 * 0.5 * 9.81 * math.sin(START) * 0.05
    velocity, = states[-1][1]
    assert (velocity > least) if moves else abs(velocity) < 1e-9


def test_commands_act_after_the_delay(robot):
    node, states = robot(delay=1.0)
    command(node, [5.0])
    assert states[-1] == ([START], [0.0], [0.0])


def test_sensors_are_noisy_as_asked_and_the_same_again_for_a_seed(robot):
    noise = {'position_noise': 1e-3, 'velocity_noise': 1e-2, 'effort_noise': 0.1, 'seed': 3}
    first, again = robot(**noise), robot(**noise)
    for node, _ in (first, again):
        for _ in range(500):
            node._on_timer()
    assert first[1] == again[1]
    samples = np.squeeze(first[1], axis=2)
    # Deviations of 500 samples are within 10 % of the true one, by three of theirs.
    assert np.allclose(np.std(samples, axis=0), (1e-3, 1e-2, 0.1), rtol=0.1)
    assert np.allclose(np.mean(samples, axis=0), (START, 0.0, 0.0), atol=(2e-4, 2e-3, 2e-2))


@pytest.mark.parametrize('parameters, message', [
    ({'payload_mass': 1.0}, 'payload_mass needs payload_link'),
    ({'payload_link': 'nose', 'payload_mass': 1.0}, "no link 'nose'"),
    ({'payload_link': 'rod', 'payload_inertia': [1.0]}, 'payload_inertia')])
def test_invalid_parameters_of_the_mujoco_robot_are_refused(robot, parameters, message):
    with pytest.raises((rbd_ros.RbdError, BadParameter), match=message):
        robot(**parameters)


def test_a_wrench_on_the_mujoco_robot_acts_at_its_link_in_root_axes_until_the_next_one(robot):
    tip = ('<link name="tip"/><joint name="end" type="fixed"><parent link="rod"/>'
           '<child link="tip"/><origin xyz="0 0 1"/></joint></robot>')
    node, states = robot(robot_description=ARM.replace('</robot>', tip), push_link='tip')
    command(node, [HOLDING])
    assert abs(states[-1][1][0]) < 1e-9
    node._on_push(Wrench(force=Vector3(x=2.0)))
    # What is not finite is no push; the one before it goes on.
    node._on_push(Wrench(force=Vector3(x=math.nan)))
    command(node, [HOLDING])
    gained = states[-1][1]
    # 2 N along x on a lever of 1 m cos(0.5) turn 1 kg m^2.
    assert gained == pytest.approx([2.0 * math.cos(START) * 0.05], rel=0.03)
    node._on_push(Wrench())
    command(node, [HOLDING])
    assert states[-1][1] == pytest.approx(gained, rel=0.05)


def test_links_that_cannot_be_pushed_are_refused_by_name(robot):
    with pytest.raises(rbd_ros.ModelError, match='no_link'):
        robot(push_link='no_link')
    with pytest.raises(rbd_ros.ModelError, match="'base' is part of the root"):
        robot(push_link='base')
