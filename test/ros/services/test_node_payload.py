# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The service that identifies a load while the robot moves."""

from geometry_msgs.msg import Inertia
from harness import at, joint_state
import numpy as np
import pinocchio as pin
import pytest
from rbd_msgs.srv import IdentifyPayload, InverseDynamics, SetPayload
from rclpy.serialization import serialize_message
from robots import example_urdf

URDF = example_urdf('ur10_robot.urdf')
LINK, JOINT = 'wrist_3_link', 6
LOAD = pin.Inertia(2.0, np.array([0.03, 0.06, -0.02]), 0.006 * np.eye(3))
# Noise of the efforts, N m, and what it leaves uncertain, kg and m, with margin.
NOISE, MASS, COM = 0.05, 0.02, 0.005
RATE = 100.0

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture
def arm(harness):
    """Return a node that has the description of a UR10; stamps run faster than its clock."""
    return harness(state_timeout=60.0, check_stamps=False, topics=('~/gravity_torques',))


def motion(seconds=8.0, still=False):
    """Return times, positions and velocities, and the efforts with the load."""
    robot = pin.buildModelFromUrdf(str(URDF))
    robot.inertias[JOINT] += LOAD
    rng = np.random.default_rng(0)
    t = np.arange(0.0, seconds, 1.0 / RATE)
    frequency = 2.0 * np.pi * np.array([0.25, 0.5, 0.75])
    amplitude, phase = rng.uniform(0.3, 0.6, (3, 6)), rng.uniform(0.0, 2.0 * np.pi, (3, 6))
    amplitude *= 0.0 if still else 1.0
    angle = frequency[:, None, None] * t[:, None] + phase[:, None]
    q, v, a = (np.sum(amplitude[:, None] * frequency[:, None, None] ** k * wave(angle), axis=0)
               for k, wave in enumerate((np.sin, np.cos, lambda x: -np.sin(x))))
    data = robot.createData()
    tau = np.array([pin.rnea(robot, data, *state) for state in zip(q, v, a)])
    return t, q, v, tau + rng.normal(scale=NOISE, size=tau.shape)


class Call:
    """A request to a node that goes on while states are sent."""

    def __init__(self, harness, **request):
        self._harness = harness
        self._client = harness.peer.create_client(IdentifyPayload, '/dynamics/identify_payload')
        harness.spin_until(self._client.service_is_ready)
        self._future = self._client.call_async(IdentifyPayload.Request(**request))
        harness.settle()

    def answer(self):
        """Return the response."""
        self._harness.spin_until(self._future.done)
        self._harness.peer.destroy_client(self._client)
        return self._future.result()


def play(harness, states, efforts=True, later=0):
    """Let the node receive a motion at once: its time is not over before it spins again."""
    names = list(pin.buildModelFromUrdf(str(URDF)).names)[1:]
    order = np.random.default_rng(1).permutation(6)
    start = at()[0] + later
    for t, q, v, tau in zip(*states):
        harness.node.listening._on_joint_state(bytes(serialize_message(joint_state(
            [names[k] for k in order], q[order], v[order], tau[order] if efforts else (),
            stamp=(start + int(t), round(1e9 * (t % 1.0)))))))


def test_a_payload_is_identified_in_motion_and_applied_on_request(arm):
    call = Call(arm, link=LINK, duration=2.0, apply=True)
    states = motion()
    play(arm, states)
    got = call.answer()
    assert got.success, got.message
    assert got.believable, got.reasons
    assert abs(got.inertia.m - 2.0) < MASS and got.mass_deviation < MASS
    com = np.array([got.inertia.com.x, got.inertia.com.y, got.inertia.com.z])
    assert np.allclose(com, LOAD.lever, atol=COM)
    assert 300 < got.states <= len(states[0])
    assert f'carries {got.inertia.m:.4g} kg' in got.message
    # The node computes with it.
    q = states[1][100]
    robot = pin.buildModelFromUrdf(str(URDF))
    robot.inertias[JOINT] += LOAD
    terms = arm.call(InverseDynamics, 'inverse_dynamics', position=q.tolist(),
                     velocity=[0.0] * 6, acceleration=[0.0] * 6)
    expected = pin.computeGeneralizedGravity(robot, robot.createData(), q)
    assert np.allclose(terms.effort, expected, atol=0.5)
    # What is set already does not count twice; not asked to, the node goes on with it.
    assert arm.call(SetPayload, 'set_payload', link=LINK, inertia=Inertia(m=1.0)).success
    call = Call(arm, link=LINK, duration=2.0)
    play(arm, states, later=20)
    got = call.answer()
    assert got.success and abs(got.inertia.m - 2.0) < MASS
    assert arm.node.robot.payloads() == {LINK: 1.0}


def test_a_payload_identified_at_rest_is_not_believable_nor_applied(arm):
    call = Call(arm, link=LINK, duration=1.5, apply=True)
    play(arm, motion(2.0, still=True))
    got = call.answer()
    assert (got.success and not got.believable and got.reasons) or not got.success
    assert not arm.node.robot.payloads()


def test_wrong_requests_are_answered_at_once(arm):
    for link, duration, message in (
            (LINK, 0.0, 'duration must lie between'), (LINK, np.nan, 'duration must lie between'),
            ('hand', 2.0, "'hand'"), ('base_link', 2.0, 'no joint moves')):
        got = arm.call(IdentifyPayload, 'identify_payload', link=link, duration=duration)
        assert not got.success and message in got.message


def test_one_payload_is_identified_at_a_time_and_missing_data_are_named(arm):
    call = Call(arm, link=LINK, duration=2.0)
    second = arm.call(IdentifyPayload, 'identify_payload', link=LINK, duration=1.5)
    assert not second.success and 'another payload' in second.message
    play(arm, motion(1.0), efforts=False)
    got = call.answer()
    assert not got.success and 'efforts' in got.message
    # The next one is welcome, and nothing arrives meanwhile.
    got = Call(arm, link=LINK, duration=1.0).answer()
    assert not got.success and 'joint states' in got.message
