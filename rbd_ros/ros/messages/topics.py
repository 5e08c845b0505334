# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The messages that the dynamics node publishes: their topics, types and contents."""

from array import array
from collections.abc import Mapping, Sequence
from typing import Any, ClassVar

from builtin_interfaces.msg import Time
from geometry_msgs.msg import (Accel, AccelStamped, PointStamped, Pose, PoseStamped, Twist, Wrench,
                               WrenchStamped)
import numpy as np
from rbd_msgs.msg import ContactStamped, DynamicsStamped, MatrixStamped, TaskDynamicsStamped
from rbd_ros._internal.cdr import Field, field, numbers, Stamp, Template
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.ros.convert import template
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory, JointTrajectoryPoint

GRAVITY = '~/gravity_torques'
COMMANDS = '~/effort_commands'
EFFORT_TRAJECTORY = '~/effort_trajectory'    # The same commands in another message type
COMMANDED = '~/commanded_efforts'    # The same with names, for displays: no controller listens
# In the order of publishing: first what a controller waits for.
TOPICS = {
    COMMANDS: Float64MultiArray,
    COMMANDED: JointState,
    '~/gravity_torques': JointState,
    '~/coriolis_torques': JointState,
    '~/mass_matrix': MatrixStamped,
    '~/coriolis_matrix': MatrixStamped,
    '~/com_jacobian': MatrixStamped,
    '~/com': PointStamped,
    '~/dynamics': DynamicsStamped,
    '~/full_joint_states': JointState,
    '~/mass_matrix_rate': MatrixStamped,
    '~/coriolis_matrix_rate': MatrixStamped,
    '~/gravity_torques_rate': JointState,
    '~/task_dynamics': TaskDynamicsStamped,
    '~/task_pose': PoseStamped,
    '~/task_jacobian': MatrixStamped,
    '~/task_bias': AccelStamped,
    '~/task_inertia': MatrixStamped,
    '~/torque_deviation': JointState,
    '~/external_torques': JointState,
    '~/external_wrench': WrenchStamped,
    '~/contact': ContactStamped,
}
TORQUE_DEVIATION = '~/torque_deviation'
FULL_STATES = '~/full_joint_states'
C_RATE = '~/coriolis_matrix_rate'
TASK_DYNAMICS, TASK_POSE, TASK_JACOBIAN = '~/task_dynamics', '~/task_pose', '~/task_jacobian'
TASK_BIAS, TASK_INERTIA = '~/task_bias', '~/task_inertia'
TASK_TOPICS = (TASK_DYNAMICS, TASK_POSE, TASK_JACOBIAN, TASK_BIAS, TASK_INERTIA)
EXTERNAL_TORQUES, EXTERNAL_WRENCH, CONTACT = EXTERNAL_TOPICS = (
    '~/external_torques', '~/external_wrench', '~/contact')
RATE_TOPICS = ('~/mass_matrix_rate', C_RATE, '~/gravity_torques_rate')
VELOCITY_TOPICS = ('~/coriolis_torques', '~/coriolis_matrix', '~/dynamics', *RATE_TOPICS,
                   TASK_DYNAMICS, TASK_BIAS, TORQUE_DEVIATION)
# Topics in the axes of the task link, which their header names.
LINK_TOPICS = (TASK_JACOBIAN, TASK_BIAS, TASK_INERTIA, EXTERNAL_WRENCH)
TWIST = ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')    # The rows and columns of task-space matrices
# Topics with one number per joint, and their terms.
VECTORS = {GRAVITY: 'holding', '~/coriolis_torques': 'coriolis_torques',
           '~/gravity_torques_rate': 'g_dot', TORQUE_DEVIATION: 'torque_deviation',
           EXTERNAL_TORQUES: 'external_torques'}
# Topics with a matrix: the term, and the names of rows and columns if they are not the joints.
MATRICES = {'~/mass_matrix': ('M', None, None), '~/coriolis_matrix': ('C', None, None),
            '~/com_jacobian': ('com_jacobian', ('x', 'y', 'z'), None),
            '~/mass_matrix_rate': ('M_dot', None, None),
            '~/coriolis_matrix_rate': ('C_dot', None, None),
            TASK_JACOBIAN: ('J', TWIST, None), TASK_INERTIA: ('Lambda', TWIST, TWIST)}


def all_coordinates(model: Model) -> tuple[list[str], list[int], list[int]]:
    """Return names of the coordinates of all joints, and their places in q and v of the tree."""
    # Without joints with a quaternion; mimics and passive joints of loops are joints of the tree.
    names: list[str] = []
    places: tuple[list[int], list[int]] = [], []
    nq = nv = 0
    for joint in model.joints:
        if joint.nv and KINDS[joint.kind].is_screws:
            names += [joint.name + suffix for suffix in KINDS[joint.kind].position_suffixes]
            places[0].extend(range(nq, nq + joint.nq))
            places[1].extend(range(nv, nv + joint.nv))
        nq, nv = nq + joint.nq, nv + joint.nv
    return names, *places


class CommandMessages:
    """Messages of effort commands, as numbers or as trajectories; the joints may change."""

    kinds: ClassVar[dict[str, type]] = {COMMANDS: Float64MultiArray,
                                        EFFORT_TRAJECTORY: JointTrajectory}

    def __init__(self) -> None:
        self._joints: Sequence[str] | None = None

    def message(self, topic: str, joints: Sequence[str], efforts: np.ndarray) -> bytes:
        """Return the serialized message of a topic with efforts."""
        if joints != self._joints:
            self._joints = joints
            self._templates: dict[str, Template] = {}
        if topic not in self._templates:
            message = self.kinds[topic]()
            holder, name = message, 'data'
            if topic == EFFORT_TRAJECTORY:
                # The stamp stays zero: execute at once.
                message.joint_names = list(joints)
                message.points = [JointTrajectoryPoint()]
                holder, name = message.points[0], 'effort'
            self._templates[topic] = template(
                message, [], {'commands': field(holder, name, (len(joints),))})
        return self._templates[topic].fill(None, {'commands': efforts})


def geometry(message: Accel | Pose | Twist | Wrench) -> Field:
    """Return all numbers of a message as one field of a `Template`; `convert` returns them."""
    parts = [getattr(message, part) for part in message.get_fields_and_field_types()]
    places = [(part, name) for part in parts for name in part.get_fields_and_field_types()]

    def write(flat: 'array[float]') -> None:
        for (part, name), x in zip(places, flat):
            setattr(part, name, x)
    return (len(places),), write


class Outputs:
    """The messages of one robot, except commands."""

    def __init__(self, model: Model, model_id: int, task_link: str = '', prefix: str = '') -> None:
        # `model_id` changes with the robot; `prefix` is that of link names in frame names.
        self._model, self._model_id = model, model_id
        self._task_link, self._prefix = task_link, prefix
        self._frame: str | None = None
        self._templates: dict[tuple[str, Any], Template] = {}

    def message(self, topic: str, stamp: Time | Stamp, frame: str,
                values: Mapping[str, Any]) -> bytes:
        """
        Return the serialized message of one of `TOPICS`, except the commands, for one state.

        `frame` is the frame of the centre of mass and its Jacobian. `values` holds the terms in
        the topic: ``q``, ``v``, fields of `DynamicsTerms`, and the results of `outputs.terms`,
        `Commanding.last` and `ExternalForces.values`.

        """
        if frame != self._frame:
            self._frame, self._templates = frame, {}
        key = topic, (values['contact'] if topic == CONTACT
                      else values['command_joints'] if topic == COMMANDED
                      else topic == FULL_STATES and 'velocities' in values)
        if key not in self._templates:
            self._templates[key] = self._template(*key)
        return self._templates[key].fill(stamp, values)

    def _template(self, topic: str, variant: Any) -> Template:
        names, nq, nv = list(self._model.velocity_names), self._model.nq, self._model.nv
        message = TOPICS[topic]()
        message.header.frame_id = (self._prefix + self._task_link if topic in LINK_TOPICS
                                   else self._frame)
        if topic in VECTORS:
            message.name = names
            fields = {VECTORS[topic]: field(message, 'effort', (nv,))}
        elif topic in MATRICES:
            term, rows, columns = MATRICES[topic]
            rows, columns = list(rows or names), list(columns or names)
            message.matrix.row_names, message.matrix.column_names = rows, columns
            fields = {term: field(message.matrix, 'data', (len(rows), len(columns)))}
        elif topic == FULL_STATES:
            message.name = all_coordinates(self._model)[0]
            fields = {'positions': field(message, 'position', (len(message.name),))}
            if variant:
                fields['velocities'] = field(message, 'velocity', (len(message.name),))
        elif topic == COMMANDED:
            message.name = list(variant)
            fields = {'commanded': field(message, 'effort', (len(variant),))}
        elif topic == '~/com':
            fields = {'com': numbers(message.point, 'x', 'y', 'z')}
        elif topic == EXTERNAL_WRENCH:
            fields = {'external_wrench': geometry(message.wrench)}
        elif topic == CONTACT:
            message.contact, message.joint_names = variant, names
            fields = {name: field(message, name, (nv,))
                      for name in ('external_torques', 'thresholds')}
        elif topic == TASK_POSE:
            fields = {'pose': geometry(message.pose)}
        elif topic == TASK_BIAS:
            fields = {'bias': geometry(message.accel)}
        elif topic == TASK_DYNAMICS:
            message.model_id, message.joint_names = self._model_id, names
            message.link = self._task_link
            fields = {'pose': geometry(message.pose), 'twist': geometry(message.twist),
                      'J': field(message, 'jacobian', (6, nv)),
                      'bias': geometry(message.bias_acceleration),
                      'Lambda': field(message, 'task_inertia', (6, 6)),
                      'eta': geometry(message.bias_wrench),
                      'condition': numbers(message, 'condition_number', 'condition_limit')}
        else:
            message.model_id, message.joint_names = self._model_id, names
            message.position_names = list(self._model.position_names)
            message.mass = self._model.mass
            shapes = {'q': ('position', (nq,)), 'v': ('velocity', (nv,)),
                      'g': ('gravity_torques', (nv,)),
                      'coriolis_torques': ('coriolis_torques', (nv,)),
                      'M': ('mass_matrix', (nv, nv)), 'C': ('coriolis_matrix', (nv, nv)),
                      'com_jacobian': ('com_jacobian', (3, nv))}
            fields = {term: field(message, *shape) for term, shape in shapes.items()}
            fields['com'] = numbers(message.com, 'x', 'y', 'z')
        return template(message, [message.header], fields)
