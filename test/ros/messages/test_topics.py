# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The messages of the node, which are written to in their serialized form."""

from functools import partial

from builtin_interfaces.msg import Time
from harness import TOPICS
import numpy as np
import pytest
from rbd_ros import with_gravity
from rbd_ros._internal.cdr import field
from rbd_ros.ros import convert
from rbd_ros.ros.messages.topics import CommandMessages, Outputs
from rclpy.serialization import deserialize_message
from robots import random_tree
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory

VECTORS = {'~/gravity_torques': 'holding', '~/coriolis_torques': 'coriolis_torques',
           '~/gravity_torques_rate': 'g_dot', '~/torque_deviation': 'torque_deviation',
           '~/external_torques': 'external_torques'}
TWIST = ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')
# What is in them, and the names of rows and columns that are not the joints.
MATRICES = {'~/mass_matrix': ('M', None, None), '~/coriolis_matrix': ('C', None, None),
            '~/com_jacobian': ('com_jacobian', ('x', 'y', 'z'), None),
            '~/mass_matrix_rate': ('M_dot', None, None),
            '~/coriolis_matrix_rate': ('C_dot', None, None),
            '~/task_jacobian': ('J', TWIST, None), '~/task_inertia': ('Lambda', TWIST, TWIST)}
# Whose content is in the axes of the task link.
OF_THE_LINK = ('~/task_jacobian', '~/task_bias', '~/task_inertia', '~/external_wrench')
# Shapes of messages of geometry_msgs, linear parts first, and of the condition.
PARTS = {'pose': (7,), 'twist': (6,), 'bias': (6,), 'eta': (6,), 'external_wrench': (6,),
         'condition': (), 'condition_limit': ()}


def numbers(part):
    """Return the numbers of a message."""
    return [getattr(part, name) for name in part.get_fields_and_field_types()]


def values_of(model, seed):
    """Return all that outputs may hold, each number another."""
    rng, nv = np.random.default_rng(seed), model.nv
    shapes = {'q': (model.nq,), 'v': (nv,), 'g': (nv,), 'coriolis_torques': (nv,), 'M': (nv, nv),
              'C': (nv, nv), 'com_jacobian': (3, nv), 'com': (3,), 'M_dot': (nv, nv),
              'C_dot': (nv, nv), 'g_dot': (nv,), 'Lambda': (6, 6), 'J': (6, nv), 'commands': (2,),
              'torque_deviation': (nv,), 'external_torques': (nv,), 'thresholds': (nv,),
              'commanded': (2,), 'holding': (nv,), 'positions': (nv,), 'velocities': (nv,),
              **PARTS}
    return {name: rng.normal(size=shape) for name, shape in shapes.items()} | {
        'contact': seed % 2 == 1, 'command_joints': (f'{seed}a', 'b')}


def check(message, **expected):
    """Check the fields of a message."""
    for name, value in expected.items():
        found = getattr(message, name)
        assert (found if isinstance(found, (int, float, str)) else list(found)) == (
            np.ravel(value).tolist() if isinstance(value, (tuple, np.ndarray)) else value), name


@pytest.mark.parametrize('count', [0, 1, 9])
def test_every_message_holds_its_values(count, deserialize):
    model = with_gravity(random_tree(count, count, kinds=('revolute',)), (0.0, 0.0, -9.81))
    outputs, commands = Outputs(model, 7, 'tool', 'r1/'), CommandMessages()
    names = model.velocity_names
    for seed, frame in enumerate(('root', 'root', 'odom')):
        values, stamp = values_of(model, seed), Time(sec=100 + seed, nanosec=5 * seed)
        got = {topic: deserialize(outputs.message(topic, stamp, frame, values), kind)
               for topic, kind in TOPICS.items() if topic != '~/effort_commands'}
        for efforts in (values['commands'], values['g']):
            joints = tuple(f'{seed} {k}' for k in range(len(efforts)))
            check(deserialize(commands.message('~/effort_commands', joints, efforts),
                              Float64MultiArray), data=efforts)
            message = deserialize(commands.message('~/effort_trajectory', joints, efforts),
                                  JointTrajectory)
            check(message, joint_names=joints)
            point, = message.points
            check(point, effort=efforts, positions=[])
        for topic, message in got.items():
            assert message.header.stamp == stamp
            assert message.header.frame_id == ('r1/tool' if topic in OF_THE_LINK else frame)
        check(got['~/commanded_efforts'], name=values['command_joints'],
              effort=values['commanded'])
        for topic, term in VECTORS.items():
            check(got[topic], name=names, effort=values[term], position=[])
        for topic, (term, rows, columns) in MATRICES.items():
            check(got[topic].matrix, row_names=rows or names, column_names=columns or names,
                  data=values[term])
        check(got['~/full_joint_states'], name=names, position=values['positions'],
              velocity=values['velocities'])
        still = values | {'velocities': np.zeros(0)}
        check(deserialize(outputs.message('~/full_joint_states', stamp, frame, still), JointState),
              position=values['positions'], velocity=[])
        whole = got['~/dynamics']
        check(whole, model_id=7, mass=model.mass, joint_names=names,
              position_names=model.position_names, position=values['q'], velocity=values['v'],
              gravity_torques=values['g'], coriolis_torques=values['coriolis_torques'],
              mass_matrix=values['M'], coriolis_matrix=values['C'],
              com_jacobian=values['com_jacobian'])
        for com in got['~/com'].point, whole.com:
            assert numbers(com) == values['com'].tolist()
        check(got['~/contact'], contact=values['contact'], joint_names=names,
              external_torques=values['external_torques'], thresholds=values['thresholds'])
        task = got['~/task_dynamics']
        check(task, model_id=7, link='tool', joint_names=names, jacobian=values['J'],
              task_inertia=values['Lambda'], condition_number=float(values['condition']),
              condition_limit=float(values['condition_limit']))
        for key, part in (('pose', task.pose), ('twist', task.twist),
                          ('bias', task.bias_acceleration), ('eta', task.bias_wrench),
                          ('pose', got['~/task_pose'].pose), ('bias', got['~/task_bias'].accel),
                          ('external_wrench', got['~/external_wrench'].wrench)):
            linear, angular = (('position', 'orientation') if key == 'pose' else
                               ('force', 'torque') if hasattr(part, 'force') else
                               ('linear', 'angular'))
            assert numbers(getattr(part, linear)) == values[key][:3].tolist()
            assert numbers(getattr(part, angular)) == values[key][3:].tolist()


@pytest.mark.parametrize('write, effort', [
    # As if they had been left out, or stood elsewhere than they seem to.
    (lambda message, numbers: None, []),
    (lambda message, numbers: setattr(message, 'effort', 2 * numbers), [0.5, 1.5, 2.5] * 2)])
def test_messages_with_unknown_layout_are_serialized_by_the_middleware(write, effort, caplog):
    message = JointState(name=['joint'])
    template = convert.template(
        message, [message.header], {'effort': ((3,), partial(write, message))})
    for sec in (3, 4):
        filled = template.fill(Time(sec=sec), {'effort': np.array([0.5, 1.5, 2.5])})
        assert deserialize_message(filled, JointState) == JointState(
            header=Header(stamp=Time(sec=sec)), name=['joint'], effort=effort)
    assert len(caplog.messages) == 1
    assert 'RMW_IMPLEMENTATION' in caplog.text


def test_stale_bytes_are_not_taken_for_the_numbers():
    for _ in range(50):
        message = JointState(name=['joint'])
        template = convert.template(
            message, [message.header], {'effort': field(message, 'effort', (1,))})
        filled = template.fill(Time(sec=3), {'effort': [0.5]})
        assert deserialize_message(filled, JointState) == JointState(
            header=Header(stamp=Time(sec=3)), name=['joint'], effort=[0.5])
