# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot and the controller that launch starts for a mode, in a closed loop."""

from pathlib import Path

from geometry_msgs.msg import PoseStamped
from harness import ros
import numpy as np
import pinocchio
import pytest
from rbd_ros.ros.launch.launch_plan import LaunchError, plan
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rclpy.parameter import Parameter
from robots import example_urdf
from torque_loop import Loop
import yaml

DEMO = Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf'
UR10 = example_urdf('ur10_robot.urdf')
NODES = {'mujoco_robot': RobotInMujoco, 'simulated_robot': SimulatedRobot}
# rad and s: the move, and what may be left of it at its end, or when springs must have reached the
# goal (goal_time); m, of the hand
WAY, MOVE, HAND_MOVE, LEFT, DOWN = 0.4, 1.0, 2.0, 2e-3, 0.1
SPRINGS = 2.0
# s: the delay that the demo promises to bear
DELAY = 0.05
# kg m^2, that drives add to each joint of an arm whose shoulder moves some 3 kg m^2
ROTORS = 0.01, 0.1


def flat(values, prefix=''):
    """Yield the names and values of nested parameters."""
    for name, value in values.items():
        if isinstance(value, dict):
            yield from flat(value, f'{prefix}{name}.')
        else:
            yield prefix + name, value


def parameters(process):
    """Return what a node gets: later files and values count more."""
    found = {}
    for one in process.parameters:
        for values in ([node['ros__parameters'] for node in yaml.safe_load(
                Path(one).read_text()).values()] if isinstance(one, str) else [one]):
            found.update(flat(values))
    del found['use_sim_time']
    return found


def launched(mode, engine, model='', **more):
    """Return the parameters of controller and robot, and the robot's executable."""
    values = {'mode': mode, 'sim': engine, 'model': str(model), **more}
    nodes = {one.executable: one for one in plan(values)}
    robot, = set(nodes) & set(NODES)
    return parameters(nodes['torque_controller']), parameters(nodes[robot]), robot


@pytest.fixture
def start():
    """Return a function that starts what launch starts; it is taken down after the test."""
    started = []

    def make(mode, engine, model='', **more):
        controller, robot, name = launched(mode, engine, model, **more)
        node = NODES[name](parameter_overrides=[
            Parameter(key, value=value) for key, value in robot.items()])
        started.append(node.destroy_node)
        engine = node._engine
        loop = Loop(model or DEMO, engine.q, robot=engine, step=engine.step,
                    **controller)
        started.append(loop.close)
        return loop
    with ros():
        yield make
        for end in reversed(started):
            end()


@pytest.mark.parametrize('mode, engine, model', [
    ('computed_torque', 'mujoco', ''), ('computed_torque', 'true', ''),
    ('pd_gravity', 'mujoco', UR10),
    *(pytest.param(*case, '', marks=pytest.mark.long) for case in (
        ('pd_gravity', 'mujoco'), ('pd_gravity', 'true'), ('hybrid', 'mujoco'),
        ('joint_impedance', 'mujoco'), ('slotine_li', 'mujoco')))])
def test_a_simulated_robot_of_launch_reaches_its_goal_in_each_mode(start, capfd, mode, engine,
                                                                   model):
    if engine == 'mujoco':
        # There are no wheels of version 4 for Python 3.10.
        pytest.importorskip('mujoco')
    loop = start(mode, engine, model)
    loop.run(0.05)
    goal = loop.robot.q + WAY
    assert loop.follow(goal, MOVE)
    loop.run(MOVE + (SPRINGS if mode == 'pd_gravity' else 0.1))
    assert np.max(np.abs(loop.robot.q - goal)) < LEFT
    assert 'diverges' not in capfd.readouterr().err


def test_the_hand_of_a_simulated_robot_of_launch_reaches_its_target(start):
    pytest.importorskip('mujoco')
    loop = start('cartesian_impedance', 'mujoco', task_link='tool')
    model = pinocchio.buildModelFromUrdf(str(DEMO))
    data, tool = model.createData(), model.getFrameId('tool', pinocchio.BODY)

    def place():
        pinocchio.framesForwardKinematics(model, data, loop.robot.q)
        return data.oMf[tool].copy()

    loop.run(0.05)
    goal = place().act(np.array([0.0, 0.0, -DOWN]))
    message = PoseStamped()
    message.header.frame_id, message.pose.position.z = 'tool', -DOWN
    assert loop.ask('pose_target', message)
    loop.run(HAND_MOVE + 0.1)
    assert np.max(np.abs(place().translation - goal)) < LEFT


def test_the_controller_damps_a_robot_enough_for_the_delay_of_gravity_torques():
    # In the start pose: torques that are late by T act as damping -T dg/dq.
    controller, robot, _ = launched('gravity', 'true')
    assert robot['tolerated_delay'] == 0.0
    model, q = pinocchio.buildModelFromUrdf(str(DEMO)), np.array(robot['initial_positions'])
    stiffness = pinocchio.computeGeneralizedGravityDerivatives(model, model.createData(), q)
    assert np.all(controller['gravity_damping'] >= DELAY * np.abs(stiffness).sum(axis=1))


@pytest.mark.parametrize('mode', ['gravity', 'computed_torque', 'slotine_li'])
@pytest.mark.parametrize('engine', ['true', 'mujoco'])
def test_robot_and_controller_have_the_same_drives_and_only_these_damp_the_robot(mode, engine):
    controller, robot, _ = launched(mode, engine)
    drives, = yaml.safe_load(Path(robot['drives']).read_text()).values()
    drives = dict(flat(drives['ros__parameters']))
    assert {name: controller[name] for name in drives} == drives
    own = pinocchio.buildModelFromUrdf(str(DEMO))
    assert drives['drives.joints'] == controller['control_joints'] == list(own.names)[1:]
    assert drives['drives.damping'] == list(own.damping)
    assert all(ROTORS[0] < x < ROTORS[1] for x in drives['drives.armature'])
    assert robot['tolerated_delay'] == 0.0 and controller['friction'] is True


def test_given_parameters_override_the_gains_of_a_simulated_robot(tmp_path):
    own = tmp_path / 'own.yaml'
    own.write_text('/**:\n  ros__parameters: {pd_gravity.stiffness: [7.0]}\n')
    node = plan({'mode': 'pd_gravity', 'params': str(own)})[0]
    assert node.parameters[-2] == str(own)
    assert parameters(node)['pd_gravity.stiffness'] == [7.0]
    assert parameters(node)['friction'] is True
    # The defaults count less.
    given = parameters(plan({'mode': 'pd_gravity'})[0])
    assert len(given['pd_gravity.stiffness']) == 7


def test_robots_that_are_not_simulated_or_moved_by_gravity_torques_alone_are_left_alone():
    for values in ({'mode': 'pd_gravity', 'sim': 'false'}, {}):
        nodes = {one.executable: parameters(one) for one in plan(values)}
        for given in nodes.values():
            assert 'drives' not in given and 'tolerated_delay' not in given
            assert 'drives.armature' not in given and given.get('friction') is not True


def test_fault_63_a_robot_that_cannot_be_simulated_starts_nothing(tmp_path):
    path = tmp_path / 'empty.urdf'
    path.write_text('<robot name="r"><link name="a"/><link name="b"/><joint name="j" '
                    'type="continuous"><parent link="a"/><child link="b"/></joint></robot>')
    with pytest.raises(LaunchError, match='cannot be simulated'):
        plan({'model': str(path), 'mode': 'computed_torque', 'sim': 'true'})
