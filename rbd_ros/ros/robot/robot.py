# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot of the dynamics node: its model, its latest state, and its outgoing messages."""

from collections.abc import Sequence
from math import inf, isfinite
from typing import Any

import numpy as np
from rbd_ros import Model, Workspace
from rbd_ros._internal.cdr import Stamp
from rbd_ros._internal.text import listed
from rbd_ros.ros.convert import seconds
from rbd_ros.ros.messages.markers import Markers
from rbd_ros.ros.messages.topics import all_coordinates, Outputs
from rbd_ros.ros.robot.read_model import base_joint, driven_joints, RobotSettings
from rbd_ros.ros.state.closed_joint_states import ClosedJointStates
from rbd_ros.ros.state.joint_states import JointStates
from rbd_ros.ros.state.odometry import OdometryStates
from rbd_ros.ros.state.sources import prefix_hint


class Robot:
    """A model with its state, workspaces and messages; replaced as a whole by the next robot."""

    def __init__(self, text: str, model: Model, settings: RobotSettings) -> None:
        # The description of the model, and the number of this robot: 0 until it is in use.
        self.text, self.model, self.model_id = text, model, 0
        self.prefix = settings.frame_prefix
        # One for the stream of states, one for requests, which are answered in another thread.
        self.workspace, self.service_workspace = Workspace(model), Workspace(model)
        self.base_joint = base_joint(model)
        self.states = JointStates(model) if model.loops is None else ClosedJointStates(model)
        _, *places = all_coordinates(model)
        self._shown = model.unconstrained.coordinates.part(*places)
        self.odometry = (OdometryStates(model, self.base_joint, self.prefix)
                         if self.base_joint else None)
        self._base_received = -inf
        self._base_apart: float | None = None
        self._timeout = inf
        # Frame of the poses, of the centre of mass and of its Jacobian.
        self.frame = self.prefix + model.link_names[0] if model.links else ''
        # Newest stamp of the state, None if there is none; whether a complete one is unanswered.
        self.stamp: Any = None
        self.state_is_new = False
        # The joints that can be commanded, and the columns of those that are, in their order.
        self.possible_commands = settings.command_joints or driven_joints(model)
        self.command_columns = np.zeros(0, int)
        self.task_link = settings.task_link
        self.markers = Markers(model, self.prefix)
        self.convention = settings.effort_convention
        self._state_constants = self.convention.constants_of_states(model.velocity_names)

    def start(self, model_id: int, before: 'Robot | None' = None) -> None:
        """Prepare for use; keep the state of `before`, the same robot with another payload."""
        if before is not None:
            self.states, self.odometry = before.states, before.odometry
            self._base_received, self._base_apart = before._base_received, before._base_apart
            self.frame, self.stamp, self.state_is_new = (before.frame, before.stamp,
                                                         before.state_is_new)
        self.model_id = model_id
        self.outputs, self.service_outputs = (
            Outputs(self.model, model_id, self.task_link, self.prefix) for _ in range(2))

    def command_limits(self) -> list[float]:
        """Return the effort limits of `possible_commands`, N m or N; infinite without a limit."""
        return self.model.effort_limit[self.columns(self.possible_commands)].tolist()

    def columns(self, joints: Sequence[str]) -> np.ndarray:
        """Return the indices of joints among the velocities of the model."""
        columns = {name: k for k, name in enumerate(self.model.velocity_names)}
        return np.array([columns[name] for name in joints], int)

    def forget(self) -> None:
        """Discard all states."""
        self.states.forget()
        if self.odometry is not None:
            self.odometry.forget()
        self._base_received, self.stamp, self.state_is_new = -inf, None, False

    def note_stamp(self, stamp: Stamp, now: float, timeout: float) -> float:
        """Take the stamp of used samples; return by how much, s, stamps were set back, or 0."""
        newest = self.states.sources.note(stamp, now, timeout)
        back = 0.0 if self.stamp is None else seconds(self.stamp) - seconds(newest)
        if 0.0 < back <= timeout:
            return 0.0
        self.stamp = newest
        return max(back, 0.0)

    @property
    def time_stamp(self) -> Stamp:
        """Return the last stamp of the leading source, which times changes of the state."""
        leader = self.states.sources.leader
        return Stamp(0, 0) if leader is None else leader.stamp

    def join_base(self, stamp: float, now: float, timeout: float, any_stamp: bool) -> None:
        """Take the state of the base that is nearest in time to a stamp, s; 0: the latest one."""
        # With `any_stamp`, the latest one is taken if all stamps are more than `timeout`, s, away.
        if self.odometry is None:
            return
        state, self._base_apart = self.odometry.nearest(stamp, now, timeout)
        if self._base_apart is not None and any_stamp:
            state, self._base_apart = self.odometry.nearest(0.0, now, timeout)
        if state is not None:
            self.states.place_base(state.q, state.v)
            self._base_received, self.frame = state.received, state.frame

    def missing(self, now: float, timeout: float) -> list[str]:
        """Return the joints whose position is unknown, or older than a timeout, s; close loops."""
        self._timeout, missing = timeout, self.states.missing(now, timeout)
        if self.base_joint and not 0.0 <= now - self._base_received <= timeout:
            missing = [self.base_joint.name, *missing]
        return missing

    def why_missing(self, missing: Sequence[str],
                    what: str = 'no outputs: no recent position of') -> str:
        """Return a sentence about joints that are `missing`."""
        if self.states.why_open:
            return f'no outputs: {self.states.why_open}'
        text = f'{what} {listed(missing)}' + self._what_to_set(missing)
        if self.base_joint and self.base_joint.name in missing and self._base_apart is not None:
            text += (f'; odometry arrives, but its stamps are {self._base_apart:.3g} s from those '
                     'of the joint states: synchronise the clocks, or set check_stamps: false')
        return text

    def _what_to_set(self, missing: Sequence[str]) -> str:
        """Return hints about missing joints that never arrived, or that come too rarely."""
        names, sources = self.states.names, self.states.sources
        found = {name: sources.of(names.index(name)) for name in missing if name in names}
        never = [name for name, some in found.items() if not some]
        rare = [name for name, some in found.items()
                if some and min(one.pause for one in some) > self._timeout]
        text = ''
        if 0 < len(never) < len(names):
            text += f'; {listed(never)} never arrived: publish it, or lock it (locked_joints)'
        if rare:
            text += (f'; {listed(rare)} comes once, or less often than state_timeout allows: '
                     'publish it more often, raise state_timeout, or lock it (locked_joints)')
        return text + prefix_hint(never, self.states.unknown_names)

    def ages(self, now: float) -> dict[str, float]:
        """Return the age of the state of the base and of every joint, s, by name."""
        base = {self.base_joint.name: now - self._base_received} if self.base_joint else {}
        return {**base, **self.states.ages(now)}

    def known_velocity(self, missing_velocity: str) -> np.ndarray:
        """Return the velocity, NaN where unknown; parameter `missing_velocity` fills gaps."""
        if not self.states.missing_velocities():
            return self.states.v
        v = self.states.velocity_or({'zero': 0.0, 'differentiate': None}.get(
            missing_velocity, np.nan))
        # Passive joints of closed loops depend on all velocities.
        return v if self.model.loops is None else v + 0.0 * v.sum()

    def velocity(self, missing_velocity: str) -> np.ndarray | None:
        """Return `known_velocity`, or None if one is unknown."""
        v = self.known_velocity(missing_velocity)
        return v if isfinite(v.sum()) else None

    def all_joints(self, v: np.ndarray | None) -> dict[str, np.ndarray]:
        """Return the positions of all joints, mimics included, and velocities, none without v."""
        states = self.states
        if v is not None and isinstance(states, ClosedJointStates):
            v = states.all_velocities(v)
        return {'positions': self._shown.position(states.q),
                'velocities': np.zeros(0) if v is None else self._shown.velocity(v)}

    def measured_torques(self, v: np.ndarray | None) -> np.ndarray:
        """Return the joint torques that measured efforts stand for, N m or N; NaN if unknown."""
        torques, convention = self._state_constants * self.states.effort, self.convention
        return torques if convention.states == 'full' else (
            torques + convention.left_out_of_states(*self._shares(v)))

    def measured_commands(self, v: np.ndarray | None) -> np.ndarray:
        """Return the commands under which efforts are as measured, N m or N; NaN if unknown."""
        torques, convention = self.measured_torques(v), self.convention
        return torques if convention.commands == 'full' else (
            torques - convention.left_out_of_commands(*self._shares(v)))

    def _shares(self, v: np.ndarray | None) -> tuple[np.ndarray, np.ndarray]:
        """Return g and C v, which is NaN if the velocity is unknown."""
        g = self.workspace.gravity_torques(self.states.q).copy()
        if 'without_gravity_and_coriolis' not in (self.convention.states,
                                                  self.convention.commands):
            return g, np.zeros_like(g)
        return g, np.full_like(g, np.nan) if v is None or not isfinite(v.sum()) else (
            self.workspace.bias_torques(self.states.q, v) - g)

    def payloads(self) -> dict[str, float]:
        """Return the masses of the payloads, kg, by the link that carries them."""
        return {link.name.removesuffix('/payload'): link.mass for link in self.model.links
                if link.is_load}

    def lacks_friction(self) -> bool:
        """Return whether all joints lack friction, damping and effort offsets."""
        model = self.model.unconstrained    # passive joints of closed loops rub, too
        return not any(x.any() for x in (model.damping, model.friction, model.stribeck_friction,
                                         model.effort_offset))
