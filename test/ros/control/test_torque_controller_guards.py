# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Blocked joints, glitches, limits and tolerances of the torque controller, in a closed loop."""

from pathlib import Path
from types import SimpleNamespace

from covering import covering
from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import PoseStamped
from harness import ros
import numpy as np
import pinocchio
import pytest
from rbd_msgs.msg import ReferenceStatus
from rbd_msgs.srv import SetMode
from rbd_ros.ros.control.law_factory import damping_limit
from rclpy.parameter import Parameter
from torque_loop import BlockedRobot, Loop
from trajectory_msgs.msg import JointTrajectory

URDF = Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf'
START = np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
WAY = np.array([0.3, 0.5, 0.0, 0.8, 0.3, 0.3, 0.5])
JOINTS = ('pd_gravity', 'computed_torque', 'joint_impedance', 'slotine_li', 'hybrid')
# How much faster than its limit the guard lets a joint become under any torque of the law.
OVERSPEED = 1.5
# The same where 180 N m act on an inertia of 0.25 kg m^2 with 500 samples a second.
TOO_FAST = 2.0
# N m, of differences of some ten
ROUNDING = 1e-12
# rad: path_tolerance, and what 2 ms and the blend of the commands add to it
PATH, BEYOND = 0.3, 0.05
NAMES = ('shoulder_pan', 'shoulder_lift', 'upper_arm_roll', 'elbow', 'forearm_roll', 'wrist_pitch',
         'flange_roll')
# About the inertia of each joint, kg m^2, and gains with which errors die out at 20/s.
INERTIA = np.array([2.0, 3.0, 0.5, 0.6, 0.007, 0.014, 0.0005])
STIFF = {'control_joints': list(NAMES), 'pd_gravity.stiffness': list(400.0 * INERTIA),
         'pd_gravity.damping': list(40.0 * INERTIA), 'computed_torque.kp': [400.0],
         'joint_impedance.stiffness': list(400.0 * INERTIA), 'slotine_li.rate': [20.0],
         'slotine_li.damping': list(20.0 * INERTIA), 'hybrid.kp': [400.0],
         'hybrid.free_joints': ['flange_roll']}


@pytest.fixture
def start():
    """Return a function that starts a loop, and runs it for `begin`, s; closed after the test."""
    started = []

    def make(*, begin=0.1, blocked=False, **options):
        robot = BlockedRobot(URDF, START)
        robot.blocked[:] = blocked
        started.append(Loop(URDF, START, robot=robot, **{**STIFF, **options}))
        if begin:
            started[-1].run(begin)
        return started[-1]
    with ros():
        yield make
        for one in started:
            one.close()


def limits():
    """Return the effort and velocity limits of the robot, by Pinocchio."""
    model = pinocchio.buildModelFromUrdf(str(URDF))
    return np.array(model.effortLimit), np.array(model.velocityLimit)


def ended(loop, state):
    """Return the statuses of a state."""
    return [one for one in loop.statuses if one.state == state]


def give(loop, name, value):
    """Set a parameter; return why it was refused, or nothing."""
    return loop.node.set_parameters([Parameter(name, value=value)])[0].reason


@pytest.mark.parametrize('mode', covering(JOINTS, 'computed_torque'))
def test_fault_70_a_blocked_joint_ends_the_motion_and_is_released_slowly(start, mode):
    effort, fastest = limits()
    loop = start(mode=mode)
    assert loop.follow(START + WAY, 2.0)
    loop.robot.blocked[1] = True
    speeds = []
    loop.run(2.0, lambda q, v, tau: speeds.append(np.abs(v)))
    first = len(loop.commands)
    loop.robot.blocked[1] = False
    loop.run(1.0, lambda q, v, tau: speeds.append(np.abs(v)))
    assert np.all(np.abs(loop.commands) <= effort)
    assert np.all(np.max(speeds, axis=0) <= OVERSPEED * fastest)
    aborted, = ended(loop, ReferenceStatus.ABORTED)
    assert 'is 0.3' in aborted.reason and 'path_tolerance is 0.3' in aborted.reason
    assert 'motion aborted' in loop.node.report.last_error
    # It stays where it was held, but for what it had been pressed.
    moved = np.abs(np.array(loop.q[first:])[:, 1] - loop.q[first][1])
    assert np.max(moved) < PATH


@pytest.mark.parametrize('mode', covering(JOINTS, 'pd_gravity'))
def test_fault_70_a_joint_that_is_released_when_its_motion_is_aborted_stays_slow(start, mode):
    # The commands still blend from what pressed against the obstacle.
    effort, fastest = limits()
    loop, joint = start(mode=mode), 3
    assert loop.follow(START + WAY, 2.0)
    loop.robot.blocked[joint] = True
    while not ended(loop, ReferenceStatus.ABORTED):
        loop.run(loop.period)
    held, speeds = loop.robot.q.copy(), []
    loop.robot.blocked[joint] = False
    loop.run(1.0, lambda q, v, tau: speeds.append(abs(v[joint])))
    assert max(speeds) <= OVERSPEED * fastest[joint]
    assert np.all(np.abs(loop.commands) <= effort)
    # It is back where it was held.
    assert np.max(np.abs(loop.robot.q - held)) < 0.02


def test_fault_70_a_goal_that_is_not_reached_in_time_is_aborted(start):
    # Springs of 80 N m/rad under a push of 16 N m end 0.2 rad beside their goal.
    loop = start(mode='pd_gravity', goal_tolerance=[0.1], goal_time=0.5,
                 **{'pd_gravity.stiffness': [800.0, 80.0, *list(400.0 * INERTIA)[2:]],
                    'pd_gravity.damping': [80.0, 30.0, *list(40.0 * INERTIA)[2:]]})
    loop.robot.push[1] = 16.0
    loop.run(1.5)
    assert loop.follow(START, 0.2)
    loop.run(0.6)
    assert not ended(loop, ReferenceStatus.ABORTED)
    loop.run(0.2)
    aborted, = ended(loop, ReferenceStatus.ABORTED)
    assert "'shoulder_lift' is 0.2" in aborted.reason and 'goal_tolerance is 0.1' in aborted.reason
    assert '0.5 s after the end' in aborted.reason


def test_tolerances_are_those_of_their_joints(start):
    # One joint may be far away, the other not.
    loop = start(mode='pd_gravity', path_tolerance=[0.0, *[0.3] * 6], goal_tolerance=[0.0])
    loop.robot.blocked[0] = True
    assert loop.follow(START + WAY, 1.0)
    loop.run(1.5)
    assert ended(loop, ReferenceStatus.REACHED) and not ended(loop, ReferenceStatus.ABORTED)


def test_tolerances_of_zero_set_no_limit_as_in_joint_trajectory_controller(start):
    # As constraints.goal_time, .trajectory and .goal of that controller: the goal is waited for.
    loop = start(mode='pd_gravity', goal_time=0.0, path_tolerance=[0.0], goal_tolerance=[0.1])
    loop.robot.blocked[0] = True
    assert loop.follow(START + WAY, 0.5)
    # By default goal_time is 2 s.
    loop.run(3.0)
    assert [one.state for one in loop.statuses] == [ReferenceStatus.ACCEPTED]
    loop.robot.blocked[0] = False
    loop.run(0.5)
    assert loop.statuses[-1].state == ReferenceStatus.REACHED


def test_the_mode_hybrid_checks_goals_of_controlled_joints_but_no_paths(start):
    loop = start(mode='hybrid', path_tolerance=[0.0], goal_tolerance=[0.1], goal_time=0.2)
    # The free joint, flange_roll, goes nowhere.
    assert loop.follow(START + WAY, 0.6)
    loop.run(0.7)
    assert ended(loop, ReferenceStatus.REACHED)
    loop.robot.blocked[0] = True
    assert loop.follow(START, 0.6)
    loop.run(0.9)
    aborted, = ended(loop, ReferenceStatus.ABORTED)
    assert "'shoulder_pan' is 0.3" in aborted.reason and 'goal_tolerance is 0.1' in aborted.reason
    assert 'flange_roll' not in aborted.reason


@pytest.mark.parametrize('topic', covering(['path', 'goal'], 'path'))
def test_a_blocked_hand_is_aborted_by_its_tolerances(start, topic):
    loop = start(mode='cartesian_impedance', task_link='tool', goal_time=0.2,
                 cartesian_path_tolerance=[0.0, 0.05 if topic == 'path' else 0.0],
                 cartesian_goal_tolerance=[0.0, 0.05 if topic == 'goal' else 0.0])
    loop.robot.blocked[:] = True
    message = PoseStamped()
    message.header.frame_id, message.pose.position.z = 'tool', -0.1
    assert loop.ask('pose_target', message)
    loop.run(2.2)
    aborted, = ended(loop, ReferenceStatus.ABORTED)
    assert "'tool' is 0." in aborted.reason and f'{topic}_tolerance is 0.05' in aborted.reason


@pytest.mark.parametrize('guard', [1.0, 0.0])
def test_a_joint_that_is_dragged_away_and_let_go_is_braked_by_the_velocity_guard(start, guard):
    effort, fastest = limits()
    loop = start(mode='pd_gravity', velocity_guard=guard)
    # Springs of 800 N m/rad at the shoulder bear 180 N m at most.
    loop.robot.push[0] = 182.0
    loop.run(1.0)
    assert loop.robot.q[0] > 0.6
    loop.robot.push[0] = 0.0
    speeds = []
    loop.run(1.0, lambda q, v, tau: speeds.append(abs(v[0])))
    assert (max(speeds) < TOO_FAST * fastest[0]) == bool(guard)
    assert np.all(np.abs(loop.commands) <= effort)
    assert abs(loop.robot.q[0]) < 0.02


def test_fault_71_a_robot_that_is_pushed_against_its_limit_is_pushed_back(start):
    loop = start(begin=0.0, mode='gravity')
    loop.robot.push[0], loop.robot.q[0] = 20.0, 2.5
    loop.run(1.5)
    assert 2.8 < loop.robot.q[0] < 2.9
    assert 'soft stops push back: shoulder_pan' in loop.harness.diagnosis()[1]
    loop.robot.push[0] = 0.0
    loop.run(1.0)
    assert loop.robot.q[0] < 2.82


def test_fault_71_a_joint_that_is_dragged_faster_than_its_limit_is_named(start):
    loop = start(mode='gravity')
    loop.robot.v = loop.robot.v + np.eye(7)[0] * 1.2 * limits()[1][0]
    loop.run(2 * loop.period)
    assert 'faster than their limits, braked: shoulder_pan' in loop.harness.diagnosis()[1]
    assert loop.commands[-1][0] < -1.0


@pytest.mark.parametrize('order, convention', [(1, 'full'), (-1, 'full'), (1, 'without_gravity')])
def test_the_guard_acts_on_blended_efforts(start, order, convention):
    loop = start(begin=0.0, mode='gravity', command_joints=list(NAMES[::order]),
                 **{'effort_convention.commands': convention})
    # How long a command acts is measured first.
    for _ in range(10):
        loop.answer(START, np.zeros(7))
    loop.answer(START, np.eye(7)[0] * 1.2 * limits()[1][0])
    modes, robot = loop.node.modes, loop.node.robot
    efforts = robot.workspace.gravity_torques(robot.states.q) * (convention == 'full')
    # The first joint is too fast: what slows it down is left to it, and the others are not meant.
    change = np.array([-5.0, 3.0, -2.0, 1.0, 0.5, -0.25, 0.1])[::order]
    one, other = (modes.guard(robot, efforts)(efforts[::order] + x) for x in (0.0, change))
    braked = (one - efforts[::order])[::order]
    assert braked[0] < -1.0 and np.max(np.abs(braked[1:])) < ROUNDING
    # What brakes more than the guard already is left as it is.
    added = change + np.eye(7)[0][::order] * min(-braked[0], 5.0)
    assert np.max(np.abs(other - one - added)) < ROUNDING
    faster = modes.guard(robot, efforts)(efforts[::order] - change)
    assert -5.0 < (faster - other)[::order][0] < 10.0


def test_commands_are_clamped_by_default_and_gains_have_bounds(start):
    effort, _ = limits()
    loop = start(mode='pd_gravity', path_tolerance=[0.0], soft_stop_zone=0.0, velocity_guard=0.0)
    assert 'pd_gravity.stiffness must be' in give(loop, 'pd_gravity.stiffness', [1e308])
    assert not give(loop, 'pd_gravity.stiffness', [1e5])
    loop.run(0.5)
    loop.robot.q += 0.01
    loop.run(0.02)
    assert np.all(np.abs(loop.commands) <= effort)
    assert np.any(np.abs(loop.commands) == effort)


def test_fault_73_joints_without_an_effort_limit_are_named_when_springs_start(start, capfd):
    loop = start(begin=0.0, mode='gravity')
    loop.harness.describe(URDF.read_text().replace(' effort="100"', ''))
    loop.harness.spin_until(lambda: loop.node.robot.model_id == 2)
    loop.run(0.1)
    assert 'no effort limit' not in capfd.readouterr().err
    assert not give(loop, 'mode', 'pd_gravity')
    loop.run(0.1)
    text = 'no effort limit of upper_arm_roll, elbow: their efforts are not clamped'
    assert capfd.readouterr().err.count(text) == 1
    assert text in loop.harness.diagnosis()[1]
    # Once for each start of such a mode, not for each gap; and no more when there are no springs.
    loop.now += 3.0
    loop.run(0.1)
    assert text not in capfd.readouterr().err
    assert not give(loop, 'mode', 'gravity')
    loop.run(0.1)
    assert text not in loop.harness.diagnosis()[1]
    assert not give(loop, 'mode', 'pd_gravity')
    loop.run(0.1)
    assert capfd.readouterr().err.count(text) == 1


def said_of_damping(loop):
    """Return what the law reports once its damping has been checked from now on."""
    modes = loop.node.modes
    loop.harness.spin_until(lambda: modes._check is None)   # a check of earlier states
    modes._check_damping()
    loop.harness.spin_until(lambda: modes._check is None)
    return '; '.join(text for _, text in modes.findings())


@pytest.mark.parametrize('mode, gain, value', [
    ('gravity', 'gravity_damping', [3.0]), ('pd_gravity', 'pd_gravity.damping', [3.0]),
    ('computed_torque', 'computed_torque.kd', [500.0]), ('hybrid', 'hybrid.kd', [500.0]),
    ('slotine_li', 'slotine_li.damping', [3.0]),
    ('joint_impedance', 'joint_impedance.damping_ratio', 10.0),
    ('cartesian_impedance', 'cartesian_impedance.damping_ratio', 10.0)])
def test_fault_72_damping_that_diverges_at_the_rate_of_states_is_reported_with_the_largest_gain(
        start, capfd, mode, gain, value):
    # Blocked, as it would diverge.
    loop = start(blocked=True, mode=mode, period=5e-3, task_link='tool', velocity_guard=0.0, **{
        'joint_impedance.stiffness': list(500.0 * INERTIA), gain: value})
    text = said_of_damping(loop)
    assert text.count('diverges') == text.count(f'lower {gain} ') == 1
    log = [one for one in capfd.readouterr().err.splitlines() if 'diverges' in one]
    assert len(log) == 1 and log[0].partition(': ')[2] in text
    assert log[0].partition(': ')[2] in loop.harness.diagnosis()[1]
    # The largest gain that is named, a tenth less or more of it, is at the edge.
    most = float(log[0].rpartition('at most ')[2].partition(',')[0])
    for share, diverges in ((0.9, False), (1.1, True)):
        give(loop, gain, [share * most] if isinstance(value, list) else share * most)
        loop.run(0.1)
        assert ('diverges' in said_of_damping(loop)) == diverges
        assert is_unstable(loop) == diverges


def is_unstable(loop, late=0):
    """Return whether velocities of some states before grow, by Pinocchio, of the law alone."""
    model, modes = pinocchio.buildModelFromUrdf(str(URDF)), loop.node.modes
    data, q, reference = model.createData(), loop.robot.q, None
    if modes._following is not None:
        reference = modes._following.at(loop.now)
    M = pinocchio.crba(model, data, q)
    M = np.triu(M) + np.triu(M, 1).T
    v = [1e-6 * np.random.default_rng(0).normal(size=7)] * (late + 1)
    still = modes._controller.update(loop.now, q, np.zeros(7), reference)
    for _ in range(300 * (late + 1)):
        tau = modes._controller.update(loop.now, q, v[-1 - late], reference) - still
        v.append(v[-1] + loop.period * np.linalg.solve(M, tau))
        if np.max(np.abs(v[-1])) > 1e-4:
            return True
    return False


@pytest.mark.parametrize('late', [*range(13), 0.1, 0.25, 0.5, 0.6, 0.9, 1.1, 1.5, 2.7, 5.5, 10.3])
def test_damping_of_late_states_is_stable_while_the_roots_of_its_polynomial_are(late):
    # A velocity between two samples lies on the line between them.
    n, share = divmod(late, 1.0)

    def largest(x):
        p = np.array([1.0, -1.0, *np.zeros(int(n) + 1)])
        p[-2:] += x * np.array([1.0 - share, share])
        return np.max(np.abs(np.roots(p)))
    limit = float(damping_limit(np.array(late)))
    assert largest(0.99 * limit) < 1.0
    if not share:
        assert largest(limit) == pytest.approx(1.0, abs=1e-6)
    # Between whole periods the limit is below the true one by a tenth at most.
    if late >= 0.5 or not share:
        assert largest((1.1 if share else 1.01) * limit) > 1.0
    assert limit <= 2.0 and damping_limit(np.array(late + 0.1)) <= limit


@pytest.mark.parametrize('mode, gain, late', [('pd_gravity', 'pd_gravity.damping', 1),
                                              ('computed_torque', 'computed_torque.kd', 3)])
def test_damping_that_diverges_because_states_are_late_is_reported_with_the_largest_gain(
        start, mode, gain, late):
    loop = start(blocked=True, begin=0.0, mode=mode, period=5e-3, velocity_guard=0.0,
                 **{gain: [5.0] if 'pd' in mode else [500.0]})
    loop.late = late * loop.period
    loop.run(0.6)
    text = said_of_damping(loop)
    assert f'at 200 states/s, {5 * late} ms late, and' in text
    most = float(text.rpartition('at most ')[2].partition(';')[0].partition(',')[0])
    for share, diverges in ((0.9, False), (1.1, True)):
        give(loop, gain, [share * most])
        loop.run(0.1)
        assert ('diverges' in said_of_damping(loop)) == diverges
        assert is_unstable(loop, late) == diverges
    # Stable without delay; and so are a few late states among many.
    loop.late = 0.0
    loop.run(0.6)
    for _ in range(4):
        loop.late = late * loop.period - loop.late
        loop.run(0.1)
    loop.late = 0.0
    loop.run(0.1)
    assert 'diverges' not in said_of_damping(loop) and not is_unstable(loop)


def test_a_slow_joint_does_not_make_others_late(start):
    loop = start(begin=0.6, blocked=True, mode='computed_torque', period=5e-3,
                 velocity_guard=0.0, **{'computed_torque.kd': [150.0]})
    assert 'diverges' not in said_of_damping(loop)
    ages = loop.node.robot.ages
    loop.node.robot.ages = lambda now: {**ages(now), 'flange_roll': 0.1}
    loop.run(0.6)
    assert "'flange_roll' is damped" in said_of_damping(loop)
    assert '100 ms late' in said_of_damping(loop)
    give(loop, 'computed_torque.kd', [150.0] * 6 + [10.0])
    loop.run(0.1)
    assert 'diverges' not in said_of_damping(loop)


def test_too_high_damping_of_one_joint_is_reported_for_that_joint_only(start):
    damping = 20.0 * INERTIA
    damping[3] = 400.0
    loop = start(blocked=True, mode='pd_gravity', period=5e-3,
                 **{'pd_gravity.damping': list(damping)})
    text = said_of_damping(loop)
    assert "'elbow' is damped by 400 N m s/rad" in text and 'other joints' not in text
    # By far less than 2 M_jj / T: the arm is lighter to turn if its other joints give way.
    model = pinocchio.buildModelFromUrdf(str(URDF))
    M_jj = pinocchio.crba(model, model.createData(), loop.robot.q)[3, 3]
    most = float(text.rpartition('from 400 to at most ')[2].partition(';')[0])
    assert most < 0.5 * 2.0 * M_jj / loop.period
    for share, diverges in ((0.9, False), (1.1, True)):
        damping[3] = share * most
        give(loop, 'pd_gravity.damping', list(damping))
        loop.run(0.1)
        assert ('diverges' in said_of_damping(loop)) == is_unstable(loop) == diverges
    give(loop, 'pd_gravity.damping', [3.0] * 7)
    loop.run(0.1)
    assert 'and the gains of the other joints by the same factor' in said_of_damping(loop)


def test_damping_that_depends_on_two_gains_is_reported_with_both(start):
    loop = start(blocked=True, mode='slotine_li', period=5e-3,
                 **{'slotine_li.rate': [300.0], 'slotine_li.damping': [3.0]})
    # The rate takes 300 of the 400/s that this period allows, so K = 100/s at most.
    text = said_of_damping(loop)
    most = float(text.rpartition('slotine_li.damping from 3 to at most ')[2].partition(';')[0])
    model = pinocchio.buildModelFromUrdf(str(URDF))
    M = pinocchio.crba(model, model.createData(), loop.robot.q)
    M = np.triu(M) + np.triu(M, 1).T
    assert most == pytest.approx(100.0 / np.max(np.linalg.eigvals(np.linalg.inv(M)).real),
                                 rel=2e-3)
    give(loop, 'slotine_li.rate', [500.0])
    loop.run(0.1)
    assert 'lower slotine_li.damping and slotine_li.rate' in said_of_damping(loop)


def test_damping_is_checked_again_when_states_become_fewer(start):
    loop = start(mode='gravity', period=1e-3, gravity_damping=list(20.0 * INERTIA))
    assert 'diverges' not in said_of_damping(loop)
    loop.period = 0.05
    loop.run(0.5)
    assert 'at 20 states/s' in said_of_damping(loop)


def test_a_check_of_damping_that_ends_after_the_gains_changed_is_ignored(start):
    loop, submitted = start(mode='pd_gravity', period=5e-3), []
    loop.run(0.1)
    said_of_damping(loop)
    modes = loop.node.modes
    loop.harness.spin_until(lambda: modes._check is None)
    worker, modes._worker = modes._worker, SimpleNamespace(
        submit=lambda work, then, may_wait: submitted.append(then))
    try:
        modes._check_damping()
        modes._check_damping()
        assert len(submitted) == 1      # one at a time
        give(loop, 'pd_gravity.damping', [2.0])
        submitted[0]('it diverges')
        assert 'it diverges' not in [text for _, text in modes.findings()]
        submitted[1]('it still diverges')
        assert 'it still diverges' in [text for _, text in modes.findings()]
    finally:
        modes._worker = worker


def test_each_reason_of_a_refusal_is_logged_and_published(start, capfd):
    loop = start(mode='computed_torque')
    goals = [([99.0] * 7, None), ([0.0], ['finger']), ([0.0] * 2, ['elbow'] * 2),
             ([np.nan], ['elbow']), ([3.0, 0.0], ['elbow']), ([2.2], ['elbow'])]
    for goal, names in goals:
        assert not loop.follow(goal, 0.3, names)
    log = capfd.readouterr().err
    reasons = [one.reason for one in loop.statuses]
    assert len(set(reasons)) == len(goals) == log.count('~/joint_trajectory refused')
    assert [one.id for one in loop.statuses] == list(range(1, 1 + len(goals)))
    assert all(one.state == ReferenceStatus.REFUSED and not one.accepted
               and one.topic == 'joint_trajectory' for one in loop.statuses)
    # The same again, soon, is not logged.
    assert not loop.follow(*goals[1][:1], 0.3, goals[1][1])
    assert 'refused' not in capfd.readouterr().err


def test_a_replaced_reference_gets_the_status_replaced(start):
    loop = start(mode='computed_torque')
    assert loop.follow(START + WAY, 1.0)
    loop.run(0.2)
    assert loop.ask('joint_trajectory', JointTrajectory())
    loop.run(0.5)
    assert [(one.id, one.state) for one in loop.statuses] == [
        (1, ReferenceStatus.ACCEPTED), (2, ReferenceStatus.ACCEPTED),
        (1, ReferenceStatus.REPLACED), (2, ReferenceStatus.REACHED)]


@pytest.mark.parametrize('cause, reason', [
    ('mode', 'mode or parameters have changed'), ('gap', 'states are missing')])
def test_a_change_of_mode_or_a_gap_in_the_states_aborts_the_motion_with_a_reason(
        start, cause, reason):
    loop = start(mode='computed_torque')
    assert loop.follow(START + WAY, 1.0)
    if cause == 'mode':
        assert not give(loop, 'mode', 'pd_gravity')
    else:
        loop.run(0.2)
        loop.now += 3.0
    loop.run(0.1)
    aborted, = ended(loop, ReferenceStatus.ABORTED)
    assert reason in aborted.reason
    assert loop.node.modes.facts()['reference'] == 'holding'


def test_disabling_commands_aborts_the_motion_with_a_reason(start):
    loop = start(mode='computed_torque')
    assert loop.follow(START + WAY, 1.0)
    loop.node.current.enable_commands(False)
    # The node looks at it once a second.
    loop.harness.spin_until(lambda: ended(loop, ReferenceStatus.ABORTED))
    aborted, = ended(loop, ReferenceStatus.ABORTED)
    assert 'commands are off' in aborted.reason
    assert not loop.follow(START, 1.0)
    assert 'nothing is commanded now' in loop.statuses[-1].reason


def test_a_reference_that_fails_in_an_unforeseen_way_is_refused_too(start, monkeypatch):
    def fail(*arguments):
        raise np.linalg.LinAlgError('no eigenvalues')
    monkeypatch.setattr('rbd_ros.ros.control.reference_receiver.read_trajectory', fail)
    loop = start(mode='computed_torque')
    assert not loop.follow(START, 1.0)
    assert loop.statuses[-1].state == ReferenceStatus.REFUSED
    assert loop.statuses[-1].reason == 'LinAlgError: no eigenvalues'
    assert 'see last error' in loop.harness.diagnosis()[1]


# -- Targets of the hand. -------------------------------------------------------------------------

def stamped(frame, pose):
    """Return a message with a pose in a frame."""
    message = PoseStamped()
    message.header.frame_id = frame
    for name, x in zip('xyz', pose.translation):
        setattr(message.pose.position, name, float(x))
    for name, x in zip('xyzw', pinocchio.Quaternion(pose.rotation).coeffs()):
        setattr(message.pose.orientation, name, float(x))
    return message


def poses(text, q, *links):
    """Return the poses of links of a robot, by Pinocchio."""
    model = pinocchio.buildModelFromXML(text)
    data = model.createData()
    pinocchio.framesForwardKinematics(model, data, q)
    return [data.oMf[model.getFrameId(name, pinocchio.BODY)].copy() for name in links]


# world - table - base_link, and a camera on the tool: no joint of theirs moves.
MOUNTED = URDF.read_text().replace('</robot>', ''.join(
    f'<link name="{child}"/><joint name="{child}_mount" type="fixed"><parent link="{parent}"/>'
    f'<child link="{below}"/><origin xyz="0.1 0.2 0.3" rpy="0 0 0.5"/></joint>'
    for child, parent, below in (('world', 'world', 'table'), ('table', 'table', 'base_link'),
                                 ('camera', 'tool', 'camera'))) + '</robot>')


@pytest.mark.parametrize('text, frames', [
    (URDF.read_text(), ('base_link', 'tool', 'elbow_link')),
    (MOUNTED, ('world', 'table', 'base_link', 'camera'))], ids=['links', 'fixed frames'])
def test_a_target_may_be_in_the_frame_of_any_link_and_in_one_that_is_fixed_to_the_robot(
        start, text, frames):
    loop = start(begin=0.0, blocked=True, mode='cartesian_impedance', task_link='tool',
                 cartesian_speed=1.0, frame_prefix='left/')
    if text is MOUNTED:
        loop.harness.describe(text)
        loop.harness.spin_until(lambda: loop.node.robot.model_id == 2)
    loop.run(0.1)
    for k, frame in enumerate(frames):
        goal, link = poses(text, loop.robot.q, 'tool', frame)
        goal.translation = goal.translation + [0.03, -0.02, -0.05 - 0.01 * k]
        assert loop.ask('pose_target', stamped(f'left/{frame}', link.inverse() * goal))
        loop.run(loop.period)
        reference = loop.node.modes._following.at(loop.now + 60.0)
        # Poses are those in the root, base_link or world.
        assert np.max(np.abs(reference.T - goal.homogeneous)) < 1e-9


def test_a_target_out_of_reach_or_in_a_frame_of_no_link_is_refused(start):
    loop = start(mode='cartesian_impedance', task_link='tool')
    for frame, way, why in (('tool', 5.0, "'tool' gets no closer than"),
                            ('map', 0.0, "'map' is none of the robot's frames: base_link"),
                            ('', 0.0, "its frame '' is none of the robot's")):
        goal = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, way]))
        assert not loop.ask('pose_target', stamped(frame, goal))
        assert why in loop.statuses[-1].reason


def test_another_task_link_ends_the_motion_of_the_one_before(start):
    loop = start(blocked=True, mode='cartesian_impedance', task_link='tool')
    goal = pinocchio.SE3(np.eye(3), np.array([0.0, 0.0, -0.1]))
    assert loop.ask('pose_target', stamped('tool', goal))
    loop.run(0.1)
    way = loop.node.modes._following.at(loop.now).T[:3, 3] - poses(
        URDF.read_text(), START, 'tool')[0].translation
    assert 1e-4 < np.linalg.norm(way) == pytest.approx(
        float(loop.node.modes.facts()['error of tool, m']), rel=1e-3)
    assert not give(loop, 'task_link', 'elbow_link')
    loop.harness.spin_until(lambda: loop.node.robot.task_link == 'elbow_link')
    loop.run(0.1)
    assert ended(loop, ReferenceStatus.ABORTED)
    assert float(loop.harness.diagnosis()[2]['error of elbow_link, m']) < 0.01


def test_the_task_link_may_be_set_while_the_node_runs(start):
    loop = start(mode='gravity')
    assert 'task_link' in give(loop, 'mode', 'cartesian_impedance')
    for link, why in (('hand', "no link 'hand'"), ('base_link', 'no joint moves')):
        assert why in give(loop, 'task_link', link)
    assert not give(loop, 'task_link', 'tool')
    loop.harness.spin_until(lambda: loop.node.robot.task_link == 'tool')
    assert not give(loop, 'mode', 'cartesian_impedance')
    loop.run(0.2)
    assert loop.harness.diagnosis()[2]['mode'] == 'cartesian_impedance'
    assert 'task_link' in give(loop, 'task_link', '')
    message = PoseStamped()
    message.header.frame_id, message.pose.position.z = 'tool', -0.05
    assert loop.ask('pose_target', message)


def test_fault_74_a_robot_that_compensates_gravity_itself_is_named_once(start, capfd):
    loop = start(mode='gravity', **{'effort_convention.commands': 'without_gravity'})
    text = 'this robot compensates gravity itself'
    assert capfd.readouterr().err.count(text) == 1
    level, message, _ = loop.harness.diagnosis()
    assert level == DiagnosticStatus.OK and text in message
    assert np.max(np.abs(loop.commands)) < ROUNDING
    response = loop.node._set_mode(SetMode.Request(mode='pd_gravity'), SetMode.Response())
    assert response.success
    response = loop.node._set_mode(SetMode.Request(mode='gravity'), SetMode.Response())
    assert text in response.message and 'alone hold' not in response.message


@pytest.mark.parametrize('late, is_too_old', [(0.0, False), (0.045, True)])
def test_states_that_are_too_old_for_stops_and_brakes_are_reported_with_the_remaining_share(
        start, late, is_too_old):
    loop = start(begin=0.0, mode='gravity', period=5e-3)
    stamp = loop.stamp
    loop.stamp = lambda seconds=0.0: stamp(seconds - late)
    loop.run(0.1)
    text = loop.harness.diagnosis()[1]
    # 0.5 / (0.05 s) of 40/s
    for one in ('up to 50 ms old', 'soft stops and brakes have 25% of their rate'):
        assert (one in text) == is_too_old
