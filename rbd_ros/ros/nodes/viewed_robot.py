# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The newest state of a robot from joint states and the topics of the dynamics node."""

from contextlib import suppress
from dataclasses import replace
from math import inf, isfinite
from time import monotonic
from typing import Any

from geometry_msgs.msg import WrenchStamped
from nav_msgs.msg import Odometry
import numpy as np
from rbd_msgs.msg import DynamicsStamped
from rbd_ros.model.joints import quaternion_matrix
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import neutral
from rbd_ros.model.se3 import pose
from rbd_ros.ros import convert
from rbd_ros.ros.runtime.rclpy_workarounds import WaitingMessages
from rbd_ros.ros.state.closed_joint_states import ClosedJointStates
from rbd_ros.ros.state.joint_states import JointStates, Rejected
from rbd_ros.view.state import computed_state, State
from rclpy.callback_groups import CallbackGroup
from rclpy.node import Node
from rclpy.qos import QoSProfile, ReliabilityPolicy
from rclpy.serialization import deserialize_message
from rclpy.subscription import Subscription
from sensor_msgs.msg import JointState

# s: largest age of results of the dynamics node that are shown.
MAX_AGE = 0.5
QUATERNION_ERROR = 0.01     # largest deviation of a norm from one
STATES, DYNAMICS = 'joint_states', 'dynamics/dynamics'
TORQUES, WRENCH = 'dynamics/external_torques', 'dynamics/external_wrench'
DEVIATION, BASE = 'dynamics/torque_deviation', 'odom'
KINDS = {STATES: JointState, DYNAMICS: DynamicsStamped, TORQUES: JointState, WRENCH: WrenchStamped,
         DEVIATION: JointState, BASE: Odometry}
SEVERAL = 10    # joint states that wait at most, since several nodes may publish them
ANY_AGE = 1e9    # s


class _Unattended(CallbackGroup):
    """Subscriptions whose messages wait until they are taken, not executed by the executor."""

    def can_execute(self, entity: Any) -> bool:
        return False

    def beginning_execution(self, entity: Any) -> bool:
        return False

    def ending_execution(self, entity: Any) -> None:
        pass


class ViewedRobot:
    """The newest state of a robot; `prefix` is that of link names in frame names."""

    def __init__(self, node: Node, model: Model, prefix: str) -> None:
        self._node, self._model, self._prefix = node, model, prefix
        self._group = _Unattended()
        self._waiting = {topic: WaitingMessages(kind) for topic, kind in KINDS.items()}
        self._reader = convert.joint_state_reader()
        self._subscriptions: dict[str, Subscription] = {}
        self._states = JointStates(model) if model.loops is None else ClosedJointStates(model)
        self._neutral = neutral(model)
        self._base: np.ndarray | None = None
        self._columns = {name: k for k, name in enumerate(model.velocity_names)}
        # Time and content of the last message on each topic of the dynamics node.
        self._last: dict[str, tuple[float, Any]] = {}

    def listen(self, wanted: bool) -> None:
        """Subscribe or unsubscribe: topics without subscribers cost their publishers nothing."""
        if wanted and not self._subscriptions:
            for topic, kind in KINDS.items():
                qos = QoSProfile(depth=_depth(topic), reliability=ReliabilityPolicy.BEST_EFFORT)
                self._subscriptions[topic] = self._node.create_subscription(
                    kind, topic, lambda _: None, qos, callback_group=self._group, raw=True)
        elif not wanted:
            for subscription in self._subscriptions.values():
                self._node.destroy_subscription(subscription)
            self._subscriptions.clear()

    def newest(self) -> State | None:
        """Return the newest state, or None before the first."""
        for topic, subscription in self._subscriptions.items():
            for _ in range(_depth(topic)):
                raw = self._waiting[topic].take(subscription)
                if raw is None:
                    break
                if topic == STATES:
                    with suppress(Rejected):
                        self._states.update(self._reader.read(raw), monotonic())
                elif topic == BASE:
                    self._move_base(deserialize_message(raw, Odometry))
                else:
                    self._last[topic] = monotonic(), deserialize_message(raw, KINDS[topic])
        model, states, now = self._model, self._states, monotonic()
        age = min(states.ages(now).values(), default=inf)
        if not isfinite(age) or (model.loops is not None and states.missing(now, ANY_AGE)):
            return None
        # Joints that were not measured yet are shown at neutral positions, and at rest.
        q = np.where(np.isfinite(states.q), states.q, self._neutral)
        moves = np.isfinite(states.v)
        state = replace(computed_state(model, q, np.where(moves, states.v, 0.0), {}, self._base),
                        effort=_known(states.effort), external=np.full(model.nv, np.nan), age=age)
        if not moves.any():
            state = replace(state, coriolis=np.full(model.nv, np.nan))
        return self._with_published(state)

    def _move_base(self, message: Odometry) -> None:
        """Take the pose of the root link, unless it is not one."""
        quaternion, position = convert.pose(message.pose.pose)
        size = np.linalg.norm(quaternion)
        if np.all(np.isfinite(position)) and abs(size - 1.0) < QUATERNION_ERROR:
            self._base = pose(quaternion_matrix(quaternion / size), position)

    def _fresh(self, topic: str) -> Any:
        came, message = self._last.get(topic, (-np.inf, None))
        return message if monotonic() - came < MAX_AGE else None

    def _with_published(self, state: State) -> State:
        dynamics, torques, wrench, deviation = map(
            self._fresh, (DYNAMICS, TORQUES, WRENCH, DEVIATION))
        changes: dict[str, Any] = {}
        if dynamics is not None:
            names = dynamics.joint_names
            changes['gravity'] = self._vector(names, dynamics.gravity_torques)
            changes['coriolis'] = self._vector(names, dynamics.coriolis_torques)
            if set(self._columns) <= set(names):
                order = np.ix_(*2 * ([names.index(name) for name in self._columns],))
                for field, data in (('M', dynamics.mass_matrix), ('C', dynamics.coriolis_matrix)):
                    if len(data) == len(names) ** 2 and np.all(np.isfinite(data)):
                        changes[field] = np.reshape(data, 2 * (len(names),))[order]
        if torques is not None:
            changes['external'] = self._vector(torques.name, torques.effort)
        if deviation is not None:
            changes['deviation'] = self._vector(deviation.name, deviation.effort)
        if wrench is not None:
            link = wrench.header.frame_id.removeprefix(self._prefix)
            values = convert.wrench(wrench.wrench)
            if link in self._model.link_names and np.all(np.isfinite(values)):
                changes['wrenches'] = {link: values}
        return replace(state, **changes)

    def _vector(self, names: list[str], values: Any) -> np.ndarray:
        """Return numbers by name in the order of the model; NaN for other joints."""
        found = np.full(self._model.nv, np.nan)
        for name, value in zip(names, values):
            if name in self._columns:
                found[self._columns[name]] = value
        return _known(found)


def _depth(topic: str) -> int:
    return SEVERAL if topic == STATES else 1


def _known(values: np.ndarray) -> np.ndarray:
    return np.where(np.isfinite(values), values, np.nan)
