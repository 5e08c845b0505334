# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots with closed loops, on the node in this process."""

from diagnostic_msgs.msg import DiagnosticStatus
from geometry_msgs.msg import Inertia
from harness import keep_sending, said
import numpy as np
import pytest
from rbd_msgs.srv import (
    DynamicsTerms, ForwardDynamics, HybridDynamics, HybridDynamicsDerivatives, InverseDynamics,
    SetPayload, TaskSpaceDynamics, TorqueRegressor)
import rbd_ros
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.runtime.share_directory import share
from rclpy.parameter import Parameter
from robots import load_quietly, relative_error

# The node closes the loops again, to 1e-13 m.
AGREEMENT = 1e-8
NAMES = 'four_bar', 'palletizer'
FILES = {name: share('urdf', f'{name}.urdf') for name in (*NAMES, 'slider_crank', 'demo_arm')}
TEXTS = {name: path.read_text() for name, path in FILES.items()}
MODELS = {name: load_quietly(path) for name, path in FILES.items()}

pytestmark = pytest.mark.usefixtures('domain')


@pytest.fixture
def harness(harness):
    """Return a function that starts a node with a robot, by name or URDF."""
    return lambda name, **parameters: harness(TEXTS.get(name, name), state_timeout=60.0,
                                              **parameters)


def moving(name, seed=0):
    """Return the model of a robot, a closed q and a v, and the positions of its motors."""
    model, rng = MODELS[name], np.random.default_rng(seed)
    step = 0.3 + 0.2 * rng.normal(size=model.nv)
    q = rbd_ros.integrate(model, rbd_ros.neutral(model), step, 1.0)
    own = [model.position_names.index(one) for one in model.velocity_names]
    return model, q, rng.normal(size=model.nv), q[own]


def velocities(model, q, v):
    """Return the velocities of all joints, by central differences."""
    step = 1e-6
    return (rbd_ros.integrate(model, q, v, step) - rbd_ros.integrate(model, q, v, -step)) / (
        2.0 * step)


@pytest.mark.parametrize('name', NAMES)
def test_outputs_are_of_the_motors_and_the_states_of_all_joints(harness, name):
    node = harness(name, task_link=MODELS[name].link_names[-1])
    model, q, v, own = moving(name)
    terms = rbd_ros.all_terms(model, q, v)
    got = node.answer(model.velocity_names[::-1], own[::-1], v[::-1])
    node.settle()
    assert tuple(got.joint_names) == model.velocity_names
    assert tuple(got.position_names) == model.position_names
    assert np.max(np.abs(np.array(got.position) - q)) < AGREEMENT
    assert relative_error(got.velocity, v) < AGREEMENT
    for field, expected in (('mass_matrix', terms.M), ('coriolis_matrix', terms.C),
                            ('gravity_torques', terms.g), ('com_jacobian', terms.com_jacobian),
                            ('coriolis_torques', terms.coriolis_torques)):
        assert relative_error(getattr(got, field), expected.ravel()) < AGREEMENT
    heard = {topic: messages[-1] for topic, messages in node.heard.items() if messages}
    for topic in ('~/gravity_torques', '~/coriolis_torques', '~/gravity_torques_rate'):
        assert tuple(heard[topic].name) == model.velocity_names
        assert len(heard[topic].effort) == model.nv
    for topic in ('~/mass_matrix', '~/coriolis_matrix', '~/mass_matrix_rate'):
        matrix = heard[topic].matrix
        assert tuple(matrix.row_names) == tuple(matrix.column_names) == model.velocity_names
        assert len(matrix.data) == model.nv ** 2
    assert tuple(heard['~/task_jacobian'].matrix.column_names) == model.velocity_names
    assert relative_error(heard['~/effort_commands'].data, terms.g) < AGREEMENT
    full = heard['~/full_joint_states']
    assert tuple(full.name) == model.position_names
    assert full.header.stamp == got.header.stamp
    assert np.max(np.abs(np.array(full.position) - q)) < AGREEMENT
    assert np.max(np.abs(np.array(full.velocity) - velocities(model, q, v))) < 1e-6


def test_a_state_without_velocity_has_no_velocities_of_all_joints(harness):
    node = harness('four_bar')
    model, q, _, own = moving('four_bar')
    got = node.answer(model.velocity_names, own, topic='~/full_joint_states')
    assert np.max(np.abs(np.array(got.position) - q)) < AGREEMENT
    assert not got.velocity
    assert 'no velocity of crank' in node.diagnosis()[1]


def test_mimics_are_among_the_states_of_all_joints(harness):
    text = TEXTS['demo_arm'].replace('</robot>', """<link name="finger"/>
        <joint name="finger" type="prismatic"><parent link="{}"/><child link="finger"/>
        <limit lower="-9" upper="9" effort="1" velocity="1"/>
        <mimic joint="{}" multiplier="2" offset="0.5"/></joint></robot>""".format(
            MODELS['demo_arm'].link_names[-1], MODELS['demo_arm'].velocity_names[0]))
    node = harness(text, topics=('~/full_joint_states',))
    model = MODELS['demo_arm']
    q, v = np.random.default_rng(0).normal(size=(2, model.nv))
    got = node.answer(model.velocity_names, q, v, topic='~/full_joint_states')
    assert tuple(got.name) == (*model.velocity_names, 'finger')
    assert got.position.tolist() == [*q, 2.0 * q[0] + 0.5]
    assert got.velocity.tolist() == [*v, 2.0 * v[0]]


def test_fault_79_a_state_that_cannot_be_closed_is_reported_and_nothing_is_published(harness):
    node = harness('slider_crank')
    model, q, _, _ = moving('slider_crank')
    slide = q[model.position_names.index('slider')]
    node.answer(['slider'], [slide], [0.1])
    # The crank and the rod are shorter than that.
    wrong = ['slider'], [slide + 1.0], [0.1]
    assert node.nothing_new(lambda: node.send(*wrong))
    text = ('no outputs: the loops cannot be closed with the measured positions of slider: '
            "constraint '")
    keep_sending(node, wrong, lambda: any(
        one.status[0].level == DiagnosticStatus.ERROR and text in one.status[0].message
        for one in node.heard['/diagnostics']))
    got = node.call(DynamicsTerms, 'dynamics_terms')
    assert not got.success
    assert got.message.startswith('the request gives no position, and the loops cannot be closed')
    got = node.answer(['slider'], [slide], [0.1])
    assert np.max(np.abs(np.array(got.position) - q)) < AGREEMENT
    node.spin_until(lambda: node.diagnosis()[0] != DiagnosticStatus.ERROR)


@pytest.mark.parametrize('name', NAMES)
def test_services_take_and_give_quantities_of_the_motors(harness, name):
    node = harness(name)
    model, q, v, own = moving(name)
    node.answer(model.velocity_names, own, v)
    rng = np.random.default_rng(1)
    a, names = rng.normal(size=model.nv), list(model.velocity_names[::-1])
    tau = rbd_ros.inverse_dynamics(model, q, v, a)
    given = {'joint_names': names, 'position': q.tolist(), 'velocity': v[::-1].tolist()}
    for request in ({'joint_names': names}, given):
        got = node.call(InverseDynamics, 'inverse_dynamics', acceleration=a[::-1].tolist(),
                        **request)
        assert got.success, got.message
        assert relative_error(got.effort, tau[::-1]) < AGREEMENT
        got = node.call(ForwardDynamics, 'forward_dynamics', effort=tau[::-1].tolist(), **request)
        assert got.success, got.message
        assert relative_error(got.acceleration, a[::-1]) < AGREEMENT
    prescribed = np.arange(model.nv) % 2 == 0
    got = node.call(HybridDynamics, 'hybrid_dynamics', acceleration=a[::-1].tolist(),
                    effort=tau[::-1].tolist(),
                    acceleration_prescribed=prescribed[::-1].tolist(), **given)
    assert got.success, got.message
    assert relative_error(got.acceleration, a[::-1]) < AGREEMENT
    assert relative_error(got.effort, tau[::-1]) < AGREEMENT
    for kind, service, extra in (
            (HybridDynamicsDerivatives, 'hybrid_dynamics_derivatives', {}),
            (TorqueRegressor, 'torque_regressor', {'acceleration': a[::-1].tolist()}),
            (TaskSpaceDynamics, 'task_space_dynamics', {'link': model.link_names[-1]}),
            (DynamicsTerms, 'dynamics_terms', {})):
        got = node.call(kind, service, **given, **extra)
        assert got.success, got.message
    got = node.call(InverseDynamics, 'inverse_dynamics', acceleration=a.tolist(),
                    position=(q + 0.01 * np.arange(model.nq)).tolist(), velocity=v.tolist())
    assert not got.success
    assert 'are open' in got.message
    # A payload acts through the loops.
    link = model.link_names[-1]
    assert node.call(SetPayload, 'set_payload', link=link, inertia=Inertia(m=4.0)).success
    got = node.answer(model.velocity_names, own, v)
    expected = rbd_ros.gravity_torques(rbd_ros.with_payload(model, link, 4.0), q)
    assert relative_error(got.gravity_torques, expected) < AGREEMENT


def test_friction_of_passive_joints_is_compensated_only_with_all_velocities(harness):
    node = harness('palletizer', friction=True, topics=('~/effort_commands',))
    model, q, _, own = moving('palletizer')
    g = rbd_ros.gravity_torques(model, q)
    got = node.answer(model.velocity_names, own, [1.0] * 4, topic='~/effort_commands')
    assert np.min(np.abs(got.data - g)) > 1.0
    heard = node.heard['~/effort_commands']
    keep_sending(node, (model.velocity_names, own, [1.0, np.nan, 1.0, 1.0]),
                 lambda: np.allclose(heard[-1].data, g))
    said(node, 'do not compensate friction of ' + ', '.join(model.velocity_names),
         DiagnosticStatus.WARN)


def test_every_control_mode_begins_with_gravity_torques_of_the_motors(harness):
    node = harness('palletizer', kind=TorqueController, task_link='flange_link',
                   topics=('~/effort_commands', '~/full_joint_states'))
    model, q, _, own = moving('palletizer')
    g = rbd_ros.gravity_torques(model, q)
    for mode in ('gravity', 'pd_gravity', 'computed_torque', 'joint_impedance',
                 'cartesian_impedance', 'slotine_li', 'hybrid'):
        result, = node.node.set_parameters([Parameter('mode', value=mode)])
        assert result.successful, result.reason
        got = node.answer(model.velocity_names, own, np.zeros(4), topic='~/effort_commands')
        assert np.max(np.abs(got.data - g)) < AGREEMENT * np.max(np.abs(g)), mode
        assert node.node.parameters.mode == mode
