# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The messages of the node, which are written to in their serialized form."""

from functools import partial
from pathlib import Path
import sys

from builtin_interfaces.msg import Time
from harness import TOPICS
import numpy as np
import pytest
from rbd_ros import with_gravity, Workspace
from rbd_ros._internal import cdr
from rbd_ros._internal.cdr import field
from rbd_ros.ros import convert
from rbd_ros.ros.messages.markers import Markers, NAMESPACES
from rbd_ros.ros.messages.topics import CommandMessages, Outputs
from rclpy import serialization
from rclpy.serialization import deserialize_message, serialize_message
from robots import random_tree
from rosidl_parser.definition import AbstractSequence, BasicType
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, Header
from trajectory_msgs.msg import JointTrajectory
from visualization_msgs.msg import Marker, MarkerArray
import yaml

ROOT = Path(__file__).parents[3]
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


def copy_sequences(monkeypatch):
    """Let messages keep copies of sequences that they are given, as those of Lyrical do."""
    def copying(own):
        def keep(message, value):
            assert not isinstance(value, (set, frozenset))      # deprecated there
            own.fset(message, list(value))
        return own.setter(keep)
    kinds = [kind for name, module in list(sys.modules.items()) if '.msg._' in name
             for kind in vars(module).values() if hasattr(kind, 'SLOT_TYPES')]
    for kind in kinds:
        for name, slot in zip(kind.get_fields_and_field_types(), kind.SLOT_TYPES):
            if isinstance(slot, AbstractSequence) and not isinstance(slot.value_type, BasicType):
                monkeypatch.setattr(kind, name, copying(getattr(kind, name)))
    names = ['a']
    message = JointState(name=names)
    names.append('b')
    assert message.name == ['a']


@pytest.fixture(params=['this machine', 'Lyrical', 'no shortcuts', 'the other way round'])
def deserialize(request, monkeypatch, caplog):
    """Serialize as this middleware does, or as another would, and return what reads it."""
    if request.param == 'Lyrical':
        copy_sequences(monkeypatch)
    if request.param == 'no shortcuts':
        monkeypatch.setattr(cdr, 'SHORTCUTS', False)
    if request.param != 'the other way round':
        yield deserialize_message
        assert not caplog.get_records('call')
        return
    monkeypatch.setattr(serialization, 'serialize_message',
                        lambda message: bytes(serialize_message(message))[::-1])
    monkeypatch.setattr(serialization, 'deserialize_message',
                        lambda raw, kind: deserialize_message(raw[::-1], kind))
    yield serialization.deserialize_message
    assert any('one by one' in record.message for record in caplog.get_records('call'))


def check(message, **expected):
    """Check the fields of a message."""
    for name, value in expected.items():
        found = getattr(message, name)
        assert (found if isinstance(found, (int, float, str)) else list(found)) == (
            np.ravel(value).tolist() if isinstance(value, (tuple, np.ndarray)) else value), name


@pytest.mark.parametrize('count', [0, 1, 9])
def test_every_message_holds_what_it_is_filled_with(count, deserialize):
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


@pytest.mark.parametrize('count', [0, 1, 20])
def test_markers_stand_where_the_links_are(count, deserialize):
    model = random_tree(count, count)
    markers, workspace = Markers(model, 'r1/'), Workspace(model)
    for seed, frame in enumerate(('root', 'root', 'odom')):
        q, stamp = np.random.default_rng(seed).normal(size=model.nq), Time(sec=seed)
        poses, terms = workspace.forward_kinematics(q), workspace.all_terms(q, np.zeros(model.nv))
        arrays = list(markers.update(stamp, frame, poses, terms))
        if seed == 0:
            # What another robot has left behind goes first, and once.
            assert [marker.action for marker in arrays.pop(0).markers] == [Marker.DELETEALL]
        moved = deserialize(arrays[0], MarkerArray)
        assert all((marker.header.stamp, marker.header.frame_id) == (stamp, frame)
                   for marker in moved.markers)
        com, centres, *arrows = moved.markers
        at = com.pose.position
        assert [at.x, at.y, at.z] == terms.com.tolist()
        assert np.allclose([[point.x, point.y, point.z] for point in centres.points], [
            (T @ [*link.com, 1.0])[:3] for T, link in zip(poses, model.links) if link.mass > 0.0])
        turning = [k for k, joint in enumerate(model.joints, 1)
                   if joint.name in model.velocity_names]
        starts = [[getattr(arrow.points[0], axis) for axis in 'xyz'] for arrow in arrows]
        assert np.array_equal(np.reshape(starts, (-1, 3)), poses[turning, :3, 3])


def ends_of(array, space):
    """Return the ends of the arrows of a namespace."""
    return np.array([[[point.x, point.y, point.z] for point in marker.points]
                     for marker in array.markers if marker.ns == space])


def test_arrows_of_torques_share_a_scale_and_unknown_torques_are_deleted():
    model = random_tree(6, 1)
    names = list(model.velocity_names)
    one_axis = [k for k, joint in enumerate(model.joints, 1) if joint.name in names]
    columns = [names.index(model.joints[k - 1].name) for k in one_axis]
    markers, q = Markers(model), np.random.default_rng(1).normal(size=model.nq)
    poses = Workspace(model).forward_kinematics(q).copy()
    terms = Workspace(model).all_terms(q, np.ones(model.nv))
    coriolis, external = np.random.default_rng(2).normal(size=(2, model.nv)) * [[3.0], [50.0]]
    given = {'gravity': terms.g, 'coriolis': coriolis, 'external_torques': external}
    longest = max(np.abs(torques).max() for torques in given.values())

    def update(*torques):
        deleting, *others = [], *markers.update(Time(), 'root', poses, terms, *torques)
        if isinstance(others[0], MarkerArray):
            deleting = [marker.action for marker in others.pop(0).markers]
        moved, *rest = (deserialize_message(one, MarkerArray) for one in others)
        return deleting, moved, rest

    _, moved, _ = update(coriolis, external)
    for space, torques in given.items():
        ends = ends_of(moved, space)
        along = np.einsum('kij,kj->ki', poses[one_axis, :3, :3],
                          [model.joints[k - 1].axis for k in one_axis])
        # An arrow of 0.4 m is the largest of all torques.
        assert np.allclose(ends[:, 1] - ends[:, 0],
                           0.4 * torques[columns, None] / longest * along, atol=1e-12), space
        beside = ends[:, 0] - poses[one_axis, :3, 3]
        assert np.allclose(np.einsum('ki,ki->k', beside, along), 0.0, atol=1e-12)
    starts = [ends_of(moved, space)[:, 0] for space in given]
    for k, one in enumerate(starts):
        for other in starts[:k]:
            assert np.all(np.linalg.norm(one - other, axis=1) > 0.02)
    # What is no longer known is not left standing; what never changes is sent again with the rest.
    deleting, moved, rest = update(coriolis, None)
    assert deleting == [Marker.DELETEALL]
    assert {marker.ns for marker in moved.markers} == {'com', 'link_coms', 'gravity', 'coriolis'}
    assert {marker.ns for array in rest for marker in array.markers} == {'ellipsoids'}
    deleting, moved, _ = update(None, external)
    assert deleting == [Marker.DELETEALL]
    assert {marker.ns for marker in moved.markers} == {'com', 'link_coms', 'gravity',
                                                       'external_torques'}
    assert update(coriolis, external)[0] == []


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


def test_ellipsoids_of_many_links_come_in_parts_within_their_period(monkeypatch):
    # They would stop the stream of states if they were all made at once.
    now, model = [0.0], random_tree(1, 250)
    monkeypatch.setattr('rbd_ros.ros.messages.markers.monotonic', lambda: now[0])
    markers, workspace = Markers(model, 'r1/'), Workspace(model)
    q = np.zeros(model.nq)
    poses, terms = workspace.forward_kinematics(q), workspace.all_terms(q, np.zeros(model.nv))
    heavy = {k for k, link in enumerate(model.links) if link.mass > 0.0}
    assert len(heavy) > 200
    for begin in (0.0, 1.0):
        came, largest = [], 0
        for now[0] in begin + np.arange(0.0, 0.999, 1.0 / 30.0):
            for one in markers.update(Time(), 'root', poses, terms):
                if isinstance(one, bytes) and b'ellipsoids' in one:
                    found = [(marker.id, marker.header.frame_id) for marker in
                             deserialize_message(one, MarkerArray).markers
                             if marker.ns == 'ellipsoids']
                    came, largest = came + found, max(largest, len(found))
        assert sorted(came) == [(k, 'r1/' + model.links[k].name) for k in sorted(heavy)]
        assert largest <= 100


def test_rviz_lists_every_namespace_of_the_markers_and_hears_all_arrays():
    path = ROOT / 'config' / 'dynamics.rviz'
    display = next(one for one in yaml.safe_load(path.read_text())['Visualization Manager'][
        'Displays'] if one['Class'].endswith('/MarkerArray'))
    assert list(display['Namespaces']) == list(NAMESPACES)
    # Deleting, moving, ellipsoids and wrenches come one right after the other.
    assert display['Topic']['Depth'] >= 4
