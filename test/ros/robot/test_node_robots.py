# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Floating bases, loads, gravity, locked joints and friction, on the node in this process."""

from functools import partial
from time import monotonic
import warnings

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Inertia, Vector3, Vector3Stamped
from harness import at, odometry
from loop_robots import document, without_constraints
import numpy as np
import pinocchio
import pytest
from rbd_msgs.srv import DynamicsTerms, InverseDynamics, SetGravity, SetPayload
import rbd_ros
from rbd_ros.model.se3 import Ad, inverse
from rbd_ros.ros.nodes.dynamics_node import DynamicsNode
from rclpy.parameter import Parameter
from robots import example_urdf, load_quietly, random_state, relative_error
from std_msgs.msg import Header, String

# Against Pinocchio: rounding is a hundredth of it.
AGREEMENT = 1e-9
ARM = example_urdf('ur10_robot.urdf').read_text()
DOG = example_urdf('solo12.urdf')
FLYER = """
<robot name="flyer">
  <link name="map"/>
  <joint name="fly" type="floating">
    <origin xyz="1 2 3" rpy="0.1 0.2 0.3"/><parent link="map"/><child link="body"/></joint>
  <link name="body"><inertial><mass value="2"/>
    <inertia ixx="0.1" iyy="0.2" izz="0.15" ixy="0" ixz="0" iyz="0"/></inertial></link>
  <joint name="hinge" type="continuous"><parent link="body"/><child link="arm"/></joint>
  <link name="arm"><inertial><origin xyz="0 0 -0.3"/><mass value="1"/>
    <inertia ixx="0.1" iyy="0.1" izz="0.1" ixy="0" ixz="0" iyz="0"/></inertial></link>
</robot>"""

# The hinge of the four-bar.
PIN = ('{name: pin, kind: revolute, link_a: coupler_link, link_b: rocker_link, '
       'xyz_a: [0.5, 0, 0], rpy_a: [1.5707963267948966, 0, 0], '
       'xyz_b: [0, 0, 0.4], rpy_b: [1.5707963267948966, 0, 0]}')

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture(scope='module')
def dog():
    """Return Solo with a floating base."""
    return load_quietly(DOG, floating_base=True)


@pytest.fixture
def harness(harness):
    """Return a function that starts a node to which states may be late."""
    return partial(harness, state_timeout=60.0)


def floating_state(model, seed):
    """Return a random q and v of a robot whose base floats."""
    rng = np.random.default_rng(seed)
    q = rbd_ros.random_configuration(model, rng)
    return q, rng.normal(size=model.nv)


def base_odometry(q, v, **options):
    """Return the odometry of a base that is itself the child frame."""
    return odometry('base_link', q[:4], q[4:7], v[:3], v[3:6], **options)


def send_joints(model, q, v):
    """Return the joint states of what the base carries, the last joint first."""
    return model.position_names[:6:-1], q[:6:-1], v[:5:-1]


def test_a_floating_base_is_joined_with_its_joints_and_agrees_with_pinocchio(harness, dog):
    node = harness(DOG.read_text(), floating_base=True)
    pin = pinocchio.buildModelFromUrdf(str(DOG), pinocchio.JointModelFreeFlyer())
    data = pin.createData()
    # Ours by Pinocchio's: it has the linear part first; its joints come in its own order.
    order = [3, 4, 5, 0, 1, 2] + [
        pin.joints[pin.getJointId(name)].idx_v for name in dog.velocity_names[6:]]
    for seed in range(3):
        q, v = floating_state(dog, seed)
        stamp = at()
        node.move_base(base_odometry(q, v, frame='map', stamp=stamp))
        got = node.answer(*send_joints(dog, q, v), stamp=stamp)
        assert list(got.joint_names[:6]) == [f'base_{x}' for x in ('wx', 'wy', 'wz', 'vx', 'vy',
                                                                   'vz')]
        assert list(got.position_names) == list(dog.position_names)
        assert got.header.frame_id == 'map'
        node.settle()
        full = node.heard['~/full_joint_states'][-1]
        assert (full.position.tolist(), full.velocity.tolist()) == (q[7:].tolist(), v[6:].tolist())
        pin_q, pin_v = np.empty(pin.nq), np.empty(pin.nv)
        pin_q[:3], pin_q[3:7] = q[4:7], q[:4]
        pin_v[order] = v
        for k, name in enumerate(dog.position_names[7:]):
            pin_q[pin.joints[pin.getJointId(name)].idx_q] = q[7 + k]
        M = np.triu(pinocchio.crba(pin, data, pin_q))
        M = (M + np.triu(M, 1).T)[np.ix_(order, order)]
        C = pinocchio.computeCoriolisMatrix(pin, data, pin_q, pin_v)[np.ix_(order, order)]
        g = pinocchio.computeGeneralizedGravity(pin, data, pin_q)[order]
        J_com = pinocchio.jacobianCenterOfMass(pin, data, pin_q)[:, order]
        assert relative_error(np.reshape(got.mass_matrix, M.shape), M) < AGREEMENT
        assert relative_error(np.reshape(got.coriolis_matrix, C.shape), C) < AGREEMENT
        assert relative_error(got.gravity_torques, g) < AGREEMENT
        assert relative_error(np.reshape(got.com_jacobian, (3, -1)), J_com) < AGREEMENT
        assert relative_error([got.com.x, got.com.y, got.com.z], data.com[0]) < AGREEMENT
        if seed == 0:
            # Commands leave out the coordinates of the base; later ones blend.
            assert relative_error(node.heard['~/effort_commands'][-1].data, g[6:]) < AGREEMENT


def test_the_child_frame_may_be_any_link_that_is_fixed_to_the_base(harness):
    text = FLYER.replace('</robot>', """
        <link name="imu"/><joint name="mount" type="fixed"><origin xyz="0.1 -0.2 0.3" rpy="1 2 3"/>
        <parent link="body"/><child link="imu"/></joint></robot>""")
    node = harness(text, floating_base=True)
    model = node.node.robot.model
    q, v = floating_state(model, 5)
    T = rbd_ros.forward_kinematics(model, q)
    imu, body = (T[model.link_index(name)] for name in ('imu', 'body'))
    twist = Ad(inverse(imu) @ body) @ v[:6]
    turn = pinocchio.SE3ToXYZQUAT(pinocchio.SE3(imu))[3:]
    node.move_base(odometry('imu', turn, imu[:3, 3], twist[:3], twist[3:], frame='map'))
    got = node.answer(['hinge'], q[7:], v[6:])
    expected = rbd_ros.all_terms(model, q, v)
    assert relative_error(np.reshape(got.mass_matrix, (7, 7)), expected.M) < AGREEMENT
    assert relative_error(got.coriolis_torques, expected.coriolis_torques) < AGREEMENT
    assert relative_error(got.position[4:7], q[4:7]) < AGREEMENT
    # The joint of the URDF is the base: none is added before it.
    assert list(got.joint_names) == [f'fly_{x}' for x in ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')] + [
        'hinge']


def test_the_base_state_nearest_in_time_is_used(harness, dog):
    node = harness(DOG.read_text(), floating_base=True, check_stamps=False)
    q, v = floating_state(dog, 1)
    for k in range(5):
        q[4] = k
        node.move_base(base_odometry(q, v, stamp=(10, k * 100_000_000)))
    for k in (0, 3, 4):
        got = node.answer(*send_joints(dog, q, v), stamp=(10, k * 100_000_000 + 20_000_000))
        assert got.position[4] == k


def test_fault_8_missing_odometry_withholds_outputs_and_is_reported(harness, dog):
    node = harness(DOG.read_text(), floating_base=True, state_timeout=0.3)
    q, v = floating_state(dog, 1)
    assert node.nothing_new(lambda: node.send(*send_joints(dog, q, v)))
    level, message, _ = node.diagnosis()
    assert level == DiagnosticStatus.ERROR
    assert 'no recent position of base' in message
    node.move_base(base_odometry(q, v))
    node.answer(*send_joints(dog, q, v))
    node.settle()
    # By now the base's state is too old.
    assert node.nothing_new(lambda: node.send(*send_joints(dog, q, v)))


def test_fault_5_bad_odometry_is_dropped_with_the_reason(harness, dog):
    node = harness(DOG.read_text(), floating_base=True)
    q, v = floating_state(dog, 2)
    good = {'child': 'base_link', 'quaternion': q[:4], 'position': q[4:7], 'angular': v[:3],
            'linear': v[3:6]}
    for change, message in (
            ({'position': [np.nan, 0.0, 0.0]}, 'out of range'),
            ({'child': 'FL_FOOT'}, "child frame 'FL_FOOT' is not the base"),
            ({'child': ''}, "child frame '' is not the base"),
            ({'quaternion': [0.0, 0.0, 0.0, 0.0]}, 'quaternion has the norm 0'),
            ({'linear': [np.inf, 0.0, 0.0]}, 'out of range')):
        node.move_base(odometry(**{**good, **change}))
        assert message in node.node.report.last_error
    assert node.node.report.counts['odometry dropped'] == 5
    assert node.nothing_new(lambda: node.send(*send_joints(dog, q, v)))


def test_services_take_the_position_of_a_floating_robot_in_the_order_of_its_names(harness, dog):
    node = harness(DOG.read_text(), floating_base=True)
    q, v = floating_state(dog, 4)
    a = np.arange(18.0)
    names = list(dog.velocity_names[::-1])
    got = node.call(InverseDynamics, 'inverse_dynamics', joint_names=names, position=q.tolist(),
                    velocity=v[::-1].tolist(), acceleration=a[::-1].tolist())
    assert got.success, got.message
    expected = rbd_ros.inverse_dynamics(dog, q, v, a)
    assert relative_error(got.effort, expected[::-1]) < AGREEMENT
    got = node.call(InverseDynamics, 'inverse_dynamics', position=q[1:].tolist(),
                    velocity=v.tolist(), acceleration=a.tolist())
    assert 'position has 18 entries, expected 19: base_qx' in got.message
    got = node.call(InverseDynamics, 'inverse_dynamics', position=[0.0] * 19,
                    velocity=v.tolist(), acceleration=a.tolist())
    assert "quaternion of joint 'base'" in got.message


def refusal(description, **parameters):
    """Return why a node with parameters refuses a description."""
    node = DynamicsNode(parameter_overrides=[
        Parameter(name, value=value) for name, value in parameters.items()])
    node.listening._on_description(String(data=description))
    assert node.robot is None
    node.destroy_node()
    return node.report.last_error


def test_a_floating_joint_without_the_parameter_is_refused():
    assert 'set the parameter floating_base' in refusal(FLYER)


def test_fault_38_a_floating_joint_beyond_the_base_is_refused_by_name():
    assert "joint 'hinge' is free" in refusal(FLYER.replace('continuous', 'floating').replace(
        'type="floating"', 'type="fixed"', 1))


def test_fault_38_a_planar_joint_is_read_by_the_names_of_its_coordinates(harness):
    node = harness(FLYER.replace('type="floating"', 'type="planar"'))
    got = node.answer(['hinge', 'fly_theta', 'fly_x', 'fly_y'], [0.4, 0.3, 0.1, 0.2], [0.0] * 4)
    assert dict(zip(got.joint_names, got.position)) == {
        'fly_x': 0.1, 'fly_y': 0.2, 'fly_theta': 0.3, 'hinge': 0.4}


def test_a_payload_acts_until_it_or_its_description_is_removed(harness, model, capfd):
    node = harness(ARM)
    q, v, _ = random_state(model, 1)
    node.answer(model.velocity_names, q, v)
    load = Inertia(m=2.5, ixx=0.01, ixy=0.001, ixz=0.002, iyy=0.02, iyz=0.003, izz=0.025)
    load.com.y, load.com.z = 0.1, 0.05
    got = node.call(SetPayload, 'set_payload', link='tool0', inertia=load)
    assert got.success, got.message
    assert got.total_mass == pytest.approx(model.mass + 2.5, rel=1e-12)
    loaded = rbd_ros.with_payload(model, 'tool0', 2.5, (0.0, 0.1, 0.05), [
        [0.01, 0.001, 0.002], [0.001, 0.02, 0.003], [0.002, 0.003, 0.025]])
    # The state is still true: no new one is waited for.
    terms = node.call(DynamicsTerms, 'dynamics_terms').dynamics
    assert relative_error(terms.gravity_torques, rbd_ros.gravity_torques(loaded, q)) < AGREEMENT
    got = node.answer(model.velocity_names, q, v)
    assert relative_error(got.mass_matrix, rbd_ros.mass_matrix(loaded, q).ravel()) < AGREEMENT
    assert got.model_id == 2
    assert node.diagnosis()[2]['load on tool0, kg'] == '2.5'
    got = node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia())
    assert got.total_mass == pytest.approx(model.mass, rel=1e-12)
    got = node.answer(model.velocity_names, q, v)
    assert relative_error(got.gravity_torques, rbd_ros.gravity_torques(model, q)) < AGREEMENT
    node.call(SetPayload, 'set_payload', link='tool0', inertia=Inertia(m=2.0))
    node.describe(ARM + ' ')
    node.spin_until(lambda: node.node.robot.model_id == 5)
    assert node.node.robot.model.mass == model.mass
    assert 'the new description removes the payloads on tool0' in capfd.readouterr().err
    # A report from before may still be on its way.
    node.spin_until(lambda: 'load on tool0, kg' not in node.diagnosis()[2])


def test_gravity_can_be_set_and_stays_for_later_descriptions(harness, model):
    node = harness(ARM)
    (q, v, _), tilted = random_state(model, 1), [-4.905, 0.0, -8.4957]
    got = node.call(SetGravity, 'set_gravity', gravity=Vector3Stamped(
        header=Header(frame_id='world'), vector=Vector3(x=tilted[0], y=tilted[1], z=tilted[2])))
    assert got.success, got.message
    assert list(node.node.get_parameter('gravity').value) == tilted
    expected = rbd_ros.gravity_torques(rbd_ros.with_gravity(model, tilted), q)
    for model_id in (2, 3):
        got = node.answer(model.velocity_names, q, v)
        assert got.model_id == model_id
        assert relative_error(got.gravity_torques, expected) < AGREEMENT
        node.describe(ARM + ' ')
        node.spin_until(lambda: node.node.robot.model_id == 3)
    got = node.call(SetGravity, 'set_gravity', gravity=Vector3Stamped(
        header=Header(frame_id='tool0')))
    assert "must be given in the frame 'world', got 'tool0'" in got.message
    got = node.call(SetGravity, 'set_gravity', gravity=Vector3Stamped(vector=Vector3(x=np.nan)))
    assert 'three finite numbers' in got.message
    assert node.answer(model.velocity_names, q, v).model_id == 3


def test_locked_joints_and_a_choice_of_joints_keep_the_mass(harness, model):
    names = model.velocity_names
    node = harness(ARM, locked_joints=[names[1]], locked_positions=[0.7], joints=list(names[2:5]))
    reduced = node.node.robot.model
    assert reduced.velocity_names == names[2:5]
    assert reduced.mass == pytest.approx(model.mass, rel=1e-12)
    q, v, _ = random_state(model, 2)
    q[[0, 1, 5]] = 0.0, 0.7, 0.0
    # All joints are measured; those that are locked are expected to be, and not needed.
    got = node.answer(names, q, v)
    assert relative_error(got.gravity_torques, rbd_ros.gravity_torques(model, q)[2:5]) < AGREEMENT
    assert not node.node.robot.states.unknown_names


@pytest.mark.parametrize('given, message', [
    ({'locked_joints': ['hand']}, "no joint 'hand'"),
    ({'joints': ['hand']}, "no joint 'hand'"),
    ({'constraints': '/nowhere.yaml'}, '/nowhere.yaml'),
    ({'locked_joints': ['elbow_joint'], 'locked_positions': [0.1, 0.2]}, 'has 2 entries')])
def test_fault_48_parameters_that_do_not_fit_the_robot_refuse_it_by_name(given, message):
    assert message in refusal(ARM, **given)


def test_loops_are_closed_by_the_file_in_the_parameter(harness, tmp_path):
    path = tmp_path / 'loops.yaml'
    path.write_text(f'independent: [rocker]\nconstraints: [{PIN}]')
    node = harness(None, constraints=str(path))
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        tree = without_constraints(document('four_bar'))
        rbd_ros.save_urdf(tree, tmp_path / 'tree.urdf')
    node.describe((tmp_path / 'tree.urdf').read_text())
    node.spin_until(lambda: node.node.robot or node.node.report.last_error)
    assert not node.node.report.last_error
    model = node.node.robot.model
    assert (model.nq, model.velocity_names) == (3, ('rocker',))
    assert [one.name for one in model.constraints] == ['pin']


class SlowWorker:
    """Keeps the work for later."""

    def __init__(self):
        self.jobs = []

    def submit(self, work, done):
        """Keep work, and what is done with its result."""
        self.jobs.append((work, done))


@pytest.mark.parametrize('first', [ARM.replace('</robot>', ''), ARM + '<!-- the same -->'])
def test_only_the_newest_description_comes_into_use(harness, first):
    current = harness(ARM).node.current
    current._worker, newest = SlowWorker(), ARM.replace('<mass value="', '<mass value="1')
    current.describe(first)
    (work, done), = current._worker.jobs
    made = work()
    current.describe(newest)        # before the first is in use
    done(made)
    assert current.robot.text == ARM
    work, done = current._worker.jobs[1]
    done(work())
    assert current.robot.text == newest


def test_a_description_is_outdated_by_the_one_in_use(harness):
    node = harness(ARM)
    node.node.current.describe(ARM.replace('<mass value="', '<mass value="1'))
    node.node.current.describe(ARM)
    model_id = node.node.robot.model_id
    end = monotonic() + 1.0
    node.spin_until(lambda: monotonic() > end)
    assert node.node.robot.text == ARM and node.node.robot.model_id == model_id
