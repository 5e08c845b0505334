# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the simulated robot and the demo say of themselves, and the damping that they choose."""

from collections import deque
from contextlib import suppress
from functools import partial
from importlib.util import find_spec
from itertools import product
import math
from threading import Timer

from covering import covering
from harness import ros
import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.demo import gravity
from rbd_ros.ros.nodes.mujoco_robot import RobotInMujoco
from rbd_ros.ros.nodes.simulated_robot import rest_position, SimulatedRobot, with_damping
from rbd_ros.ros.runtime.rclpy_workarounds import make_executor, spin
from rbd_ros.ros.runtime.share_directory import share
from rbd_ros.simulation.simulator import Simulator
import rclpy
from rclpy._rclpy_pybind11 import RCLError
from rclpy.executors import ExternalShutdownException
from rclpy.node import Node
from rclpy.parameter import Parameter
from rclpy.task import Future
from robots import load_quietly
from std_msgs.msg import Float64MultiArray

ARM = """<robot name="arm"><link name="base"/><link name="rod"><inertial><origin xyz="0 0 1"/>
 <mass value="1"/><inertia ixx="0" ixy="0" ixz="0" iyy="0" iyz="0" izz="0"/></inertial></link>
 <joint name="hinge" type="{}"><parent link="base"/><child link="rod"/><axis xyz="0 1 0"/>{}
 </joint></robot>"""
WHEEL = """<link name="wheel_{0}"><inertial><mass value="1"/><inertia ixx="0.1" ixy="0" ixz="0"
 iyy="0.1" iyz="0" izz="0.1"/></inertial></link><joint name="{0}" type="continuous">
 <parent link="base"/><child link="wheel_{0}"/><axis xyz="0 0 1"/></joint>"""
THREE_WHEELS = ('<robot name="wheels"><link name="base"/>'
                + ''.join(WHEEL.format(name) for name in 'abc') + '</robot>')
KINDS = pytest.mark.parametrize('kind', [SimulatedRobot, pytest.param(
    RobotInMujoco, marks=pytest.mark.skipif(find_spec('mujoco') is None, reason='no mujoco'))])
# A mass of 1 kg on a rod of 1 m: dg/dq = -9.81 N m/rad where it stands on its head.
STIFFNESS = 9.81


def arm(kind='continuous', extra=''):
    """Return a pendulum that stands on its head at zero."""
    return rbd_ros.load_urdf_string(ARM.format(kind, extra))


@pytest.mark.parametrize('lower, upper, expected', [
    (-1, 1, 0), (0, 1, 0), (1, 3, 2), (-3, -1, -2), (2, math.inf, 2), (-math.inf, -2, -2),
    (-math.inf, math.inf, 0)])
def test_robots_rest_at_zero_or_where_their_limits_let_them(lower, upper, expected):
    model = (rbd_ros.ModelBuilder('slide').link('base').link('car', mass=1.0)
             .joint('rail', 'prismatic', 'base', 'car', lower=lower, upper=upper).build())
    assert rest_position(model).tolist() == [expected]


def tilt_after(model, delay, seconds=10.0):
    """Return how far an arm on its head gets by a push of 1e-6 rad/s, its torques being late."""
    simulator, late = Simulator(model, [0.0]), deque(maxlen=round(delay / 1e-3) + 1)
    simulator.v[:] = 1e-6
    for _ in range(round(seconds / 1e-3)):
        late.append(-STIFFNESS * np.sin(simulator.q))
        simulator.advance(late[0])
    return abs(simulator.q[0])


def test_damping_of_the_simulated_robot_is_sufficient_for_its_delay():
    model = arm()
    assert tilt_after(with_damping(model, 0.05), 0.04) < 1e-5
    # Without it, torques that are late by T push the arm on, exp(9.81 T t / s^2) times as fast.
    assert tilt_after(with_damping(model, 0.0), 0.04) > 1e-4


@pytest.mark.parametrize('given, expected', [(0.1, 0.05 * STIFFNESS), (3.0, 3.0)])
def test_higher_damping_of_the_urdf_is_kept(given, expected):
    model = arm(extra=f'<dynamics damping="{given}"/>')
    # 50 random poses come within 1 % of the worst one.
    assert with_damping(model, 0.05).damping == pytest.approx([expected], rel=0.01)
    assert with_damping(model, 0.0).damping == [given]


@pytest.fixture
def robot(robot):
    """Return a function that makes a simulated robot, by default the arm."""
    return partial(robot, robot_description=ARM.format('continuous', ''))


def command(node, efforts, seconds=0.05):
    """Give a command, and let the node believe that some time has passed since the last state."""
    node._on_command(Float64MultiArray(data=efforts))
    node._simulated_until -= seconds
    node._on_timer()


@pytest.mark.parametrize('events, end, seed', covering(
    product([True, False], ['destroyed', 'shut down'], range(3)),
    (True, 'destroyed', 0), (True, 'shut down', 1), (False, 'destroyed', 1),
    (False, 'shut down', 2)))
def test_an_end_at_any_moment_while_states_stream_raises_nothing(events, end, seed):
    with ros():
        # A busy machine keeps up with it, too.
        node, peer = SimulatedRobot(parameter_overrides=[
            Parameter('rate', value=300.0), Parameter('step', value=3e-3)]), Node('peer')
        commands = peer.create_publisher(Float64MultiArray, '/simulated_robot/commands', 10)

        def command():
            # ROS may end between the timer and this; then it is the peer that cannot publish.
            with suppress(RCLError):
                commands.publish(Float64MultiArray(data=[1.0] * 7))
        peer.create_timer(3e-3, command)
        sent, publish = [], node._publisher.publish
        node._publisher.publish = lambda state: (publish(state), sent.append(state))
        executor = make_executor(events)
        executor.add_node(node)
        executor.add_node(peer)
        rng = np.random.default_rng(seed)
        while not sent or node._tau is None:
            executor.spin_once(0.01)
        executor.spin_until_future_complete(Future(), rng.uniform(0.0, 0.01))
        if end == 'destroyed':
            executor.create_task(node.destroy_node)
            executor.spin_until_future_complete(Future(), 0.05)
        else:
            Timer(rng.uniform(0.0, 0.01), rclpy.try_shutdown).start()
            with suppress(ExternalShutdownException):       # a normal end, see entry_points
                spin(executor, Future())
        executor.shutdown()
        assert not node._report.counts['errors']


@pytest.mark.parametrize('end', ['shut down', 'destroyed', 'shut down meanwhile'])
def test_callbacks_that_wait_while_the_robot_ends_do_nothing(end):
    with ros():
        node = SimulatedRobot()
        node._on_command(Float64MultiArray(data=[0.0] * 7))

        def shut_down_meanwhile(_):
            rclpy.try_shutdown()
            raise RCLError('context is invalid')
        if end == 'shut down':
            rclpy.try_shutdown()
        elif end == 'destroyed':
            node.destroy_node()
        else:
            node._publisher.publish = shut_down_meanwhile
        node._on_timer()
        node._describe()
        assert not node._report.counts['errors']


@KINDS
def test_brakes_hold_without_effort_and_then_the_last_command_is_the_effort(robot, kind):
    node, states = robot(kind, robot_description=THREE_WHEELS, initial_positions=[0.5] * 3)
    node._on_timer()
    assert states[-1] == ([0.5] * 3, [0.0] * 3, [0.0] * 3)
    command(node, [-2.0] * 3)
    position, velocity, effort = states[-1]
    assert max(position) < 0.5 and max(velocity) < 0.0
    assert effort == [-2.0] * 3
    for bad in ([], [1.0, 2.0], [1.0, math.nan, 1.0]):
        node._on_command(Float64MultiArray(data=bad))
    node._on_timer()
    assert states[-1][2] == [-2.0] * 3


@KINDS
@pytest.mark.parametrize('order, efforts', [
    (None, [1.0, 2.0, 3.0]), (['c', 'a', 'b'], [2.0, 3.0, 1.0])])
def test_commands_act_on_the_joints_that_command_joints_names(robot, kind, order, efforts):
    parameters = {'command_joints': order} if order else {}
    node, states = robot(kind, robot_description=THREE_WHEELS, **parameters)
    command(node, [1.0, 2.0, 3.0])
    position, velocity, effort = states[-1]
    assert list(node._state.name) == ['a', 'b', 'c']
    assert effort == efforts
    # Equal wheels: the larger the effort, the faster and the further.
    assert np.argsort(velocity).tolist() == np.argsort(efforts).tolist()
    assert np.argsort(position).tolist() == np.argsort(efforts).tolist()


def test_a_simulated_joint_moves_only_beyond_friction_of_urdf_or_drives(robot, tmp_path):
    path = tmp_path / 'drives.yaml'
    rbd_ros.model.save_drives(rbd_ros.model.with_friction(arm(), friction={'hinge': 6.0}), path)
    urdf = ARM.format('continuous', '<dynamics friction="6"/>')
    # Gravity exerts 9.81 N m * sin(0.5) = 4.7 N m; 6.3 N m with this command, in the end.
    for parameters in ({'robot_description': urdf}, {'drives': str(path)}):
        node, states = robot(initial_positions=[0.5], **parameters)
        for effort, moves in ((1.0, False), (1.6, True)):
            command(node, [effort], 0.1)
            assert (states[-1][0] != [0.5]) == moves
            assert (states[-1][1] != [0.0]) == moves
    with pytest.raises(rbd_ros.ModelError, match='cannot be read'):
        robot(drives=str(tmp_path / 'none.yaml'))


@KINDS
def test_a_file_of_constraints_closes_the_loops(robot, kind, tmp_path):
    path = tmp_path / 'loops.yaml'
    path.write_text("""independent: [a]
constraints:
  - {name: rod, kind: point, link_a: wheel_a, link_b: wheel_b,
     xyz_a: [1.0, 0.0, 0.0], xyz_b: [1.0, 0.0, 0.0]}
  - {name: other, kind: point, link_a: wheel_a, link_b: wheel_c,
     xyz_a: [1.0, 0.0, 0.0], xyz_b: [1.0, 0.0, 0.0]}
""")
    node, states = robot(kind, robot_description=THREE_WHEELS, constraints=str(path))
    assert list(node._state.name) == ['a']
    command(node, [1.0])
    assert states[-1][2] == [1.0] and states[-1][1][0] > 0.0
    path.write_text('constraint: []')
    with pytest.raises(rbd_ros.ModelError, match=r'loops\.yaml'):
        robot(kind, robot_description=THREE_WHEELS, constraints=str(path))


@pytest.mark.parametrize('parameters, message', [
    ({'initial_positions': [0.1, 0.2]}, 'initial_positions has 2 entries.*hinge'),
    ({'command_joints': ['elbow']}, 'command_joints must name every joint once: hinge'),
    ({'command_joints': ['hinge', 'hinge']}, "command_joints has 'hinge' twice"),
    ({'rate': 0.5}, 'rate out of range Min: 1.0'), ({'step': 'short'}, 'step must be a number'),
    ({'initial_positions': 'up'}, 'initial_positions must be a list')])
def test_parameters_that_do_not_fit_the_simulated_robot_are_refused(robot, parameters, message):
    # The message alone is shown to a user.
    with pytest.raises(SimulatedRobot.errors, match=message):
        robot(**parameters)


def test_fault_69_a_motion_that_diverges_ends_in_the_brakes(robot, capfd):
    node, states = robot(initial_positions=[0.5])
    command(node, [1e300])
    assert 'the simulation has diverged, brakes on: ' in capfd.readouterr().err
    assert np.all(np.isfinite(states[-1]))
    assert states[-1][1:] == ([0.0], [0.0])
    # The next command takes them off.
    command(node, [-2.0])
    assert states[-1][1] != [0.0]


def test_integers_are_numbers_and_a_misspelt_parameter_is_named(robot, capfd):
    node, states = robot(initial_positions=[1], rate=100, initial_position=[0.5])
    node._on_timer()
    assert states[-1] == ([1.0], [0.0], [0.0])
    assert ("there is no parameter 'initial_position', did you mean 'initial_positions'?"
            in capfd.readouterr().err)


def test_the_demo_explains_why_a_robot_fell_or_did_not_move():
    position = np.array([math.pi / 2])
    assert ('up to 80 ms late (the median is 2 ms)'
            in gravity.why_it_fell(arm(), position, 0.002, 0.08))
    assert ('never more than 8 ms late, so that is not the reason'
            in gravity.why_it_fell(arm(), position, 0.002, 0.008))
    creeping = arm(extra='<dynamics damping="4905"/>')
    assert ("'hinge', the fastest, at 0.002 rad/s under 9.8 N m"
            in gravity.why_it_stayed(creeping, position))
    assert 'stops' in gravity.why_it_stayed(arm(), position)
    stuck = arm(extra='<dynamics damping="0" friction="9.9"/>')
    assert 'friction' in gravity.why_it_stayed(stuck, position)
    # 0.01 N m of 9.81 are left.
    slow = arm(extra='<dynamics damping="5" friction="9.8"/>')
    assert "'hinge', the fastest, at 0.002 rad/s" in gravity.why_it_stayed(slow, position)
    weightless = rbd_ros.with_gravity(arm(), (0.0, 0.0, 0.0))
    assert 'gravity loads none of its joints' in gravity.why_it_stayed(weightless, position)


@KINDS
def test_a_robot_with_loops_publishes_and_takes_the_states_of_its_motors(kind, robot):
    path = share('urdf', 'palletizer.urdf')
    model = load_quietly(path)
    start = [0.1, 0.2, -0.3, 0.4]
    node, states = robot(kind, robot_description=path.read_text(), initial_positions=start,
                         command_joints=list(model.velocity_names[::-1]))
    node._on_timer()
    assert node._state.name == list(model.velocity_names)
    position, velocity, _ = states[-1]
    assert position == pytest.approx(start) and velocity == [0.0] * model.nv
    # Gravity torques, in the order of the commands, hold it.
    q = rbd_ros.model.normalize(model, node._engine.q)
    command(node, rbd_ros.gravity_torques(model, q)[::-1].tolist(), 0.1)
    position, _, effort = states[-1]
    assert position == pytest.approx(start, abs=1e-6)
    assert effort == pytest.approx(rbd_ros.gravity_torques(model, q).tolist())
    with pytest.raises(rbd_ros.StateError, match='initial_positions has 10 entries'):
        robot(kind, robot_description=path.read_text(), initial_positions=[0.0] * model.nq)
