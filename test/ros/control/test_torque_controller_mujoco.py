# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The torque controller in a loop with physics that others wrote: MuJoCo."""

from geometry_msgs.msg import PoseStamped
from harness import ros
import numpy as np
import pinocchio
import pytest
from rbd_msgs.srv import SetMode
from rbd_ros.simulation.mujoco_robot import Load
from rclpy.parameter import Parameter
from robots import example_urdf
from torque_loop import Loop

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

UR5, PANDA = (example_urdf(name) for name in ('ur5_robot.urdf', 'panda.urdf'))
START = np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.0])
WAY = np.array([0.4, -0.3, 0.3, 0.4, -0.5, 0.6])
BENT = np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8])
HAND, ELBOW, FINGER = 'panda_hand', 'panda_link4', 'panda_finger_joint1'
# rad: commands stay for 2 ms, kp is 400 1/s^2.
FOLLOWED = 1e-3
# N m: a new law needs some 10 N m more or less at once; 2 ms are less than a hundredth of a blend.
BLENDED = 0.5
# rad: what friction that is not compensated leaves of the way on which the robot comes to rest.
HELD = 0.05
# N/m and N: 20 mm
STIFFNESS, PUSH = 500.0, 10.0
# Share of a way or torque after one or two seconds, when what moves has all but come to rest
SETTLED = 0.02
# m: of 10 cm in 0.94 s, which damping and inertia would make centimetres
NEAR = 1e-3


@pytest.fixture
def start():
    """Return a function that starts a loop; it is taken down after the test."""
    started = []

    def make(*arguments, **options):
        started.append(Loop(*arguments, **options))
        return started[-1]
    with ros():
        yield make
        for one in started:
            one.close()


def test_a_trajectory_is_followed_and_a_change_of_mode_is_no_step(start):
    loop = start(UR5, START, mode='computed_torque',
                 **{'computed_torque.kp': [400.0], 'joint_impedance.stiffness': [20.0]})
    # The first command is whole, and those after it hold the robot.
    loop.run(0.1)
    assert np.max(np.abs(loop.robot.q - START)) < FOLLOWED
    first = len(loop.q)
    assert loop.follow(START + WAY, 1.0)
    loop.run(0.5)
    middle = loop.robot.q.copy()
    # A cubic from rest to rest in one second.
    s = loop.period * np.arange(1, len(loop.q) - first + 1)
    wanted = START + np.outer(3.0 * s ** 2 - 2.0 * s ** 3, WAY)
    assert np.max(np.abs(np.array(loop.q[first:]) - wanted)) < FOLLOWED

    # Another mode in the middle of the motion: the robot is held where it was.
    before, last = len(loop.commands), loop.commands[-1]
    assert loop.harness.call(SetMode, 'set_mode', mode='joint_impedance').success
    loop.run(0.8)
    steps = np.max(np.abs(np.diff([last, *loop.commands[before:]], axis=0)), axis=1)
    assert steps[0] == 0.0
    assert np.max(steps) < BLENDED
    loop.run(0.5)
    assert np.max(np.abs(loop.robot.q - middle)) < HELD

    # The next reference is followed from there.
    held = loop.robot.q.copy()
    loop.node.set_parameters([Parameter('mode', value='computed_torque')])
    loop.run(0.3)
    assert loop.follow(held - 0.5 * WAY, 1.0)
    loop.run(1.1)
    assert np.max(np.abs(loop.robot.q - (held - 0.5 * WAY))) < FOLLOWED


class Pinocchio:
    """The Panda without fingers, by Pinocchio."""

    def __init__(self):
        whole = pinocchio.buildModelFromUrdf(str(PANDA))
        fingers = [k for k, name in enumerate(whole.names) if 'finger' in name]
        self.model = pinocchio.buildReducedModel(whole, fingers, pinocchio.neutral(whole))
        self.data = self.model.createData()
        self.hand, self.elbow = (self.model.getFrameId(name) for name in (HAND, ELBOW))

    def pose(self, q):
        """Return the pose of the hand."""
        pinocchio.framesForwardKinematics(self.model, self.data, q)
        return self.data.oMf[self.hand].copy()

    def place(self, q):
        """Return where the hand is, m."""
        return self.pose(q).translation

    def jacobian(self, q, frame):
        """Return the Jacobian in the root's axes, linear first."""
        return pinocchio.computeFrameJacobian(self.model, self.data, q, frame,
                                              pinocchio.LOCAL_WORLD_ALIGNED).copy()

    def borne(self, q, force):
        """Return the wrench, linear first, that the hand feels of a force on the elbow."""
        J = self.jacobian(q, self.hand)
        pinocchio.crba(self.model, self.data, q)
        M = np.triu(self.data.M) + np.triu(self.data.M, 1).T
        inverse = np.linalg.inv(M)
        J_bar = inverse @ J.T @ np.linalg.inv(J @ inverse @ J.T)
        return J_bar.T @ self.jacobian(q, self.elbow)[:3].T @ force

    def g(self, q):
        """Return gravity torques, N m."""
        return pinocchio.computeGeneralizedGravity(self.model, self.data, q).copy()


def test_the_hand_yields_like_a_spring_and_a_pushed_elbow_returns_to_its_posture(start):
    loop = start(PANDA, BENT, locked=[FINGER], period=4e-3, mode='cartesian_impedance',
                 task_link=HAND, **{
                     'cartesian_impedance.stiffness': [50.0] * 3 + [STIFFNESS] * 3,
                     'cartesian_impedance.posture_stiffness': [20.0], 'cartesian_speed': 0.2})
    oracle = Pinocchio()
    loop.run(0.1)
    home = oracle.place(BENT)
    assert np.max(np.abs(loop.robot.q - BENT)) < FOLLOWED
    force = np.array([0.0, PUSH, 0.0])
    loop.robot.push(HAND, [0.0, 0.0, 0.0, *force])
    loop.run(1.0)
    shift = oracle.place(loop.robot.q) - home
    assert np.max(np.abs(shift - force / STIFFNESS)) < SETTLED * PUSH / STIFFNESS
    loop.robot.push(HAND, np.zeros(6))

    # The hand bears what of the push on the elbow no motion can avoid that leaves it in place.
    loop.robot.push(ELBOW, [0.0, 0.0, 0.0, *(2.0 * force)])
    loop.run(1.5)
    q = loop.robot.q
    borne = oracle.borne(q, 2.0 * force)
    shift = oracle.place(q) - home
    assert np.max(np.abs(shift - borne[:3] / STIFFNESS)) < SETTLED * np.max(
        np.abs(borne[:3])) / STIFFNESS
    moved = np.max(np.abs(q - BENT))
    assert moved > 0.05
    loop.robot.push(ELBOW, np.zeros(6))
    loop.run(2.0)
    assert np.max(np.abs(loop.robot.q - BENT)) < SETTLED * moved

    # To a pose in the root's frame the hand goes on a line.
    message = PoseStamped()
    message.header.frame_id = loop.model.link_names[0]
    orientation, position = message.pose.orientation, message.pose.position
    for name, x in zip('xyzw', pinocchio.Quaternion(oracle.pose(BENT).rotation).coeffs()):
        setattr(orientation, name, float(x))
    way = np.array([0.06, 0.0, -0.08])
    position.x, position.y, position.z = map(float, home + way)
    first, span = len(loop.q), 1.875 * 0.1 / 0.2
    assert loop.ask('pose_target', message)
    loop.run(1.2)
    for k, q in enumerate(loop.q[first::20]):
        s = min((20 * k + 1) * loop.period / span, 1.0)
        wanted = home + (10.0 * s ** 3 - 15.0 * s ** 4 + 6.0 * s ** 5) * way
        assert np.max(np.abs(oracle.place(q) - wanted)) < NEAR


def test_adaptive_control_reduces_the_sag_of_an_unknown_payload(start):
    rate, damping = 10.0, np.array([20.0, 20.0, 20.0, 20.0, 4.0, 4.0, 0.5])
    joints = [f'panda_joint{k}' for k in range(1, 8)]
    loop = start(PANDA, BENT, locked=[FINGER], load=Load(HAND, 1.0, (0.0, 0.02, 0.05)),
                 period=4e-3,
                 mode='slotine_li', control_joints=joints[::-1], **{
                     'slotine_li.rate': [rate], 'slotine_li.damping': damping[::-1].tolist(),
                     'slotine_li.links': [HAND]})
    loop.run(1.5)
    # Springs of rate times damping bear the load: MuJoCo's torques, less Pinocchio's.
    q = loop.robot.q
    still = np.zeros(7)
    unknown = loop.robot.inverse_dynamics(q, still, still) - Pinocchio().g(q)
    assert np.max(np.abs(unknown)) > 4.0
    assert np.max(np.abs(rate * damping * (BENT - q) - unknown)) < SETTLED * np.max(
        np.abs(unknown))
    sag = np.max(np.abs(BENT - q))

    result, = loop.node.set_parameters([Parameter('slotine_li.adaptation', value=30.0)])
    assert result.successful
    loop.run(0.3)
    assert loop.follow(BENT, 0.5)
    loop.run(1.5)
    assert np.max(np.abs(loop.robot.q - BENT)) < 0.2 * sag
