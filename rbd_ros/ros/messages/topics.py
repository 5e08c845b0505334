# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The messages that the dynamics node publishes: their topics, types and contents."""

from array import array
from collections.abc import Iterable, Mapping, Sequence
from typing import Any, ClassVar, NamedTuple

from builtin_interfaces.msg import Time
from geometry_msgs.msg import AccelStamped, PointStamped, PoseStamped, WrenchStamped
import numpy as np
import numpy.typing as npt
from rbd_msgs.msg import ContactStamped, DynamicsStamped, MatrixStamped, TaskDynamicsStamped
from rbd_ros._internal.cdr import Field, field, Stamp, Template
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
FULL_STATES = '~/full_joint_states'
C_RATE = '~/coriolis_matrix_rate'
TASK_POSE, TASK_JACOBIAN = '~/task_pose', '~/task_jacobian'
TASK_BIAS, TASK_INERTIA = '~/task_bias', '~/task_inertia'
EXTERNAL_TORQUES, EXTERNAL_WRENCH, CONTACT = (
    '~/external_torques', '~/external_wrench', '~/contact')
TWIST = ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')    # The rows and columns of task-space matrices
DATA = 'matrix.data'
RATES, TASK, EXTERNAL, DEVIATION = 'rates', 'task', 'external', 'deviation'


class Topic(NamedTuple):
    """The messages of a topic, and what they need."""

    kind: type
    terms: Mapping[str, str]    # The fields with numbers, and their terms
    source: str = ''    # What computes the terms, if not every state has them
    needs_velocity: bool = False
    in_link: bool = False    # Whether it is in the axes of the task link, which its header names
    # Names of the rows and columns of a matrix that are not the joints.
    rows: Sequence[str] = ()
    columns: Sequence[str] = ()


# Except commands, which come first. In the order of publishing.
TOPICS = {
    COMMANDED: Topic(JointState, {'effort': 'commanded'}, COMMANDED),
    GRAVITY: Topic(JointState, {'effort': 'holding'}),
    '~/coriolis_torques': Topic(JointState, {'effort': 'coriolis_torques'}, needs_velocity=True),
    '~/mass_matrix': Topic(MatrixStamped, {DATA: 'M'}),
    '~/coriolis_matrix': Topic(MatrixStamped, {DATA: 'C'}, needs_velocity=True),
    '~/com_jacobian': Topic(MatrixStamped, {DATA: 'com_jacobian'}, rows=('x', 'y', 'z')),
    '~/com': Topic(PointStamped, {'point': 'com'}),
    '~/dynamics': Topic(DynamicsStamped, {
        'position': 'q', 'velocity': 'v', 'gravity_torques': 'g', 'com': 'com',
        'coriolis_torques': 'coriolis_torques', 'mass_matrix': 'M', 'coriolis_matrix': 'C',
        'com_jacobian': 'com_jacobian'}, needs_velocity=True),
    FULL_STATES: Topic(JointState, {'position': 'positions', 'velocity': 'velocities'},
                       FULL_STATES),
    '~/mass_matrix_rate': Topic(MatrixStamped, {DATA: 'M_dot'}, RATES, needs_velocity=True),
    C_RATE: Topic(MatrixStamped, {DATA: 'C_dot'}, RATES, needs_velocity=True),
    '~/gravity_torques_rate': Topic(JointState, {'effort': 'g_dot'}, RATES, needs_velocity=True),
    '~/task_dynamics': Topic(TaskDynamicsStamped, {
        'pose': 'pose', 'twist': 'twist', 'jacobian': 'J', 'bias_acceleration': 'bias',
        'task_inertia': 'Lambda', 'bias_wrench': 'eta', 'condition_number': 'condition',
        'condition_limit': 'condition_limit'}, TASK, needs_velocity=True),
    TASK_POSE: Topic(PoseStamped, {'pose': 'pose'}, TASK),
    TASK_JACOBIAN: Topic(MatrixStamped, {DATA: 'J'}, TASK, in_link=True, rows=TWIST),
    TASK_BIAS: Topic(AccelStamped, {'accel': 'bias'}, TASK, needs_velocity=True, in_link=True),
    TASK_INERTIA: Topic(MatrixStamped, {DATA: 'Lambda'}, TASK, in_link=True, rows=TWIST,
                        columns=TWIST),
    '~/torque_deviation': Topic(JointState, {'effort': 'torque_deviation'}, DEVIATION,
                                needs_velocity=True),
    EXTERNAL_TORQUES: Topic(JointState, {'effort': 'external_torques'}, EXTERNAL),
    EXTERNAL_WRENCH: Topic(WrenchStamped, {'wrench': 'external_wrench'}, EXTERNAL, in_link=True),
    CONTACT: Topic(ContactStamped, {name: name for name in ('external_torques', 'thresholds')},
                   EXTERNAL)}


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


def number_field(message: Any, path: str, value: npt.ArrayLike) -> Field:
    """Return a field of a message with the shape of a value, in the order of its parts."""
    *outer, name = path.split('.')
    for part in outer:
        message = getattr(message, part)
    places = _scalars(message, name)
    if not places:
        return field(message, name, np.shape(value))

    def write(flat: 'array[float]') -> None:
        for (owner, one), x in zip(places, flat):
            setattr(owner, one, x)
    return (len(places),), write


def _scalars(message: Any, name: str) -> list[tuple[Any, str]]:
    """Return the numbers in a field, by their messages and names; none if it is a sequence."""
    part = getattr(message, name)
    if isinstance(part, float):
        return [(message, name)]
    inner: Iterable[str] = getattr(part, 'get_fields_and_field_types', dict)()
    return [place for one in inner for place in _scalars(part, one)]


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
        """Return the serialized message of one of `TOPICS` for the terms of one state."""
        # `frame` is that of the centre of mass and its Jacobian.
        if frame != self._frame:
            self._frame, self._templates = frame, {}
        key = topic, (values['contact'] if topic == CONTACT
                      else values['command_joints'] if topic == COMMANDED
                      else topic == FULL_STATES and len(values['velocities']))
        if key not in self._templates:
            self._templates[key] = self._template(topic, values)
        return self._templates[key].fill(stamp, values)

    def _template(self, topic: str, values: Mapping[str, Any]) -> Template:
        model, (kind, terms, _, _, in_link, rows, columns) = self._model, TOPICS[topic]
        message, names = kind(), list(model.velocity_names)
        message.header.frame_id = self._prefix + self._task_link if in_link else self._frame
        if topic == FULL_STATES:
            names = all_coordinates(model)[0]
        elif topic == COMMANDED:
            names = list(values['command_joints'])
        constants = {'name': names, 'joint_names': names, 'model_id': self._model_id,
                     'position_names': list(model.position_names), 'mass': model.mass,
                     'link': self._task_link, 'contact': values.get('contact')}
        for name in constants.keys() & message.get_fields_and_field_types().keys():
            setattr(message, name, constants[name])
        if kind is MatrixStamped:
            message.matrix.row_names = list(rows or names)
            message.matrix.column_names = list(columns or names)
        return template(message, [message.header], {
            term: number_field(message, path, values[term]) for path, term in terms.items()})
