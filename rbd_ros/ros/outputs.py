# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the dynamics node publishes: kept messages, whose buffers NumPy writes to."""

from array import array

from geometry_msgs.msg import PointStamped
import numpy as np
from rbd_msgs.msg import DynamicsStamped, MatrixStamped
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

# In the order in which they are published: what a controller waits for first.
TOPICS = {
    '~/effort_commands': Float64MultiArray,
    '~/gravity_torques': JointState,
    '~/coriolis_torques': JointState,
    '~/mass_matrix': MatrixStamped,
    '~/coriolis_matrix': MatrixStamped,
    '~/com_jacobian': MatrixStamped,
    '~/com': PointStamped,
    '~/dynamics': DynamicsStamped,
    '~/mass_matrix_rate': MatrixStamped,
    '~/coriolis_matrix_rate': MatrixStamped,
    '~/gravity_torques_rate': JointState,
    '~/task_inertia': MatrixStamped,
}
# Those that need velocities.
RATE_TOPICS = ('~/mass_matrix_rate', '~/coriolis_matrix_rate', '~/gravity_torques_rate')
VELOCITY_TOPICS = ('~/coriolis_torques', '~/coriolis_matrix', '~/dynamics', *RATE_TOPICS)
# Those whose content may be missing although the state is whole, and what it is.
OPTIONAL = {'~/coriolis_matrix_rate': 'C_rate', '~/task_inertia': 'Lambda'}
# The rows and columns of task-space matrices.
TWIST = ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')


def _view(message, field, shape):
    """Fill a field of a message with zeros and return a NumPy view of them."""
    setattr(message, field, array('d', bytes(8 * int(np.prod(shape)))))
    # The message may have made a copy: the view must be of that.
    data = getattr(message, field)
    return np.frombuffer(data).reshape(shape) if len(data) else np.zeros(shape)


class Outputs:
    """
    The messages for one robot.

    Parameters
    ----------
    model : Model
        The robot.
    model_id : int
        Changes whenever the robot does.
    command_joints : sequence of str
        Order of the effort commands.

    """

    def __init__(self, model, model_id, command_joints):
        names, nq, nv = list(model.velocity_names), model.nq, model.nv
        # For every topic its message, and the views to write with the terms that go there.
        self._messages, self._views = {}, {}

        self._add('~/gravity_torques', JointState(name=names), effort=('g', (nv,)))
        self._add('~/coriolis_torques', JointState(name=names),
                  effort=('coriolis_torques', (nv,)))
        self._add('~/gravity_torques_rate', JointState(name=names), effort=('g_rate', (nv,)))
        for topic, term, rows, columns in (
                ('~/mass_matrix', 'M', names, names), ('~/coriolis_matrix', 'C', names, names),
                ('~/com_jacobian', 'com_jacobian', ('x', 'y', 'z'), names),
                ('~/mass_matrix_rate', 'M_rate', names, names),
                ('~/coriolis_matrix_rate', 'C_rate', names, names),
                ('~/task_inertia', 'Lambda', TWIST, TWIST)):
            message = MatrixStamped()
            message.matrix.row_names, message.matrix.column_names = list(rows), list(columns)
            self._add(topic, message, message.matrix, data=(term, (len(rows), len(columns))))
        self._add('~/com', PointStamped())
        self._add(
            '~/dynamics',
            DynamicsStamped(model_id=model_id, joint_names=names, mass=model.mass,
                            position_names=list(model.position_names)),
            position=('q', (nq,)), velocity=('v', (nv,)), gravity_torques=('g', (nv,)),
            coriolis_torques=('coriolis_torques', (nv,)), mass_matrix=('M', (nv, nv)),
            coriolis_matrix=('C', (nv, nv)), com_jacobian=('com_jacobian', (3, nv)))

        self._command_message = Float64MultiArray()
        self._commands = _view(self._command_message, 'data', (len(command_joints),))

    def _add(self, topic, message, holder=None, **fields):
        self._messages[topic], self._views[topic] = message, []
        for field, (term, shape) in fields.items():
            self._views[topic].append((_view(holder or message, field, shape), term))

    def message(self, topic, stamp, frame, values):
        """
        Return the message of a topic for one state; the next call writes to the same one.

        Parameters
        ----------
        topic : str
            One of `TOPICS`.
        stamp : builtin_interfaces.msg.Time
            Of the state.
        frame : str
            The frame that the centre of mass and its Jacobian are in.
        values : dict of str to ndarray
            What the topic holds: ``q``, ``v``, fields of `DynamicsTerms` and `TermsAndRates`,
            ``Lambda``, and ``commands`` for the effort commands.

        """
        if topic == '~/effort_commands':
            self._commands[:] = values['commands']
            return self._command_message
        message = self._messages[topic]
        message.header.stamp, message.header.frame_id = stamp, frame
        for view, term in self._views[topic]:
            view[:] = values[term]
        if topic in ('~/com', '~/dynamics'):
            point = message.point if topic == '~/com' else message.com
            point.x, point.y, point.z = values['com'].tolist()
        return message
