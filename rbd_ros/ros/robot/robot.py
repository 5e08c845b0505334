# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of a dynamics node: its model, built as the parameters say, and its latest state."""

from array import array
from collections.abc import Sequence
from functools import cached_property
from math import inf, isfinite
from typing import Any
import warnings

import numpy as np

from rbd_ros import (
    load_urdf_string, Model, ModelError, ModelWarning, with_floating_base, with_locked_joints,
    with_payload, Workspace)
from rbd_ros._internal.text import listed
from rbd_ros.analysis.task_space import characteristic_length
from rbd_ros.model import inertial_parameter_names, inertial_parameters, with_free_joints
from rbd_ros.model.files.drive_files import with_named_drives
from rbd_ros.model.inertial import armature_matrix
from rbd_ros.model.joints import Joint, KINDS
from rbd_ros.model.se3 import rotation_from_rpy
from rbd_ros.ros.commands.effort_commands import EffortCommands
from rbd_ros.ros.convert import Stamp
from rbd_ros.ros.messages.markers import Markers
from rbd_ros.ros.messages.messages import Outputs
from rbd_ros.ros.robot.robot_settings import RobotSettings
from rbd_ros.ros.state.joint_states import JointStates
from rbd_ros.ros.state.odometry import OdometryStates


def gravity_in_root(gravity: Sequence[float], rpy: Sequence[float]) -> tuple[float, ...]:
    """Return gravity in the axes of a root link that is mounted like that, m/s^2."""
    return tuple((rotation_from_rpy(rpy).T @ gravity).tolist()) if any(rpy) else tuple(gravity)


def gravity_in_world(gravity: Sequence[float], rpy: Sequence[float]) -> tuple[float, ...]:
    """Return what `gravity_in_root` makes gravity in the root link of, m/s^2."""
    return tuple((rotation_from_rpy(rpy) @ gravity).tolist()) if any(rpy) else tuple(gravity)


def base_joint(model: Model) -> Joint | None:
    """Return the joint that lets the robot float, or None."""
    if model.moving_joints:
        joint = model.moving_joints[0][0]
        if joint.kind == 'free' and joint.parent == model.link_names[0]:
            return joint
    return None


def unlimited_efforts(model: Model) -> list[str]:
    """Return the joints without an effort limit, those of a floating base apart."""
    base = base_joint(model)
    first = base.nv if base else 0
    return [model.velocity_names[k] for k in range(first, model.nv)
            if model.effort_limit[k] == inf]


def read_model(text: str, settings: RobotSettings) -> Model:
    """
    Return the robot of a description, with the changes that the parameters ask for.

    Parameters
    ----------
    text : str
        URDF.
    settings : RobotSettings
        The parameters.

    Returns
    -------
    Model
        The robot.

    Raises
    ------
    ModelError
        If the description is wrong, or a parameter names a joint that is not there.

    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_urdf_string(
            text, gravity=gravity_in_root(settings.gravity, settings.mounting_rpy),
            strict=settings.strict_urdf, max_joints=settings.max_joints)
    if settings.floating_base and base_joint(model) is None:
        model = with_floating_base(model)
    base = base_joint(model) if settings.floating_base else None
    coefficients = {**settings.drives}
    model = with_named_drives(model, coefficients.pop('joints'), coefficients)
    if settings.locked_joints:
        model = with_locked_joints(model, _locked_positions(model, settings))
    if settings.joints:
        model = with_free_joints(model, (*settings.joints, *([base.name] if base else [])))
    for joint, _, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws and joint is not base_joint(model):
            raise ModelError(f"joint '{joint.name}' is {joint.kind}: joint states cannot hold its "
                             'quaternion; only the base of a robot may float here')
    floating = base_joint(model)
    if floating and not settings.floating_base:
        raise ModelError(f"joint '{floating.name}' lets the robot float: set the "
                         'parameter floating_base, and publish its odometry')
    check_task_link(model, settings.task_link)
    for label, names in (('command_joints', settings.command_joints),
                         ('observer_joints', settings.observer_joints),
                         ('effort_convention.joints', settings.effort_convention.joints)):
        for name in names:
            if name not in model.velocity_names:
                raise ModelError(f"parameter {label} names '{name}'; the joints of "
                                 f"'{model.name}' are {listed(model.velocity_names)}")
    own = model.velocity_names[floating.nv if floating else 0:]
    if settings.observer_joints and set(settings.observer_joints) != set(own):
        raise ModelError('parameter observer_joints must name every joint; missing: '
                         + listed(sorted(set(own) - set(settings.observer_joints))))
    if settings.payload_link:
        # ixx, iyy, izz, ixy, ixz, iyz
        model = with_payload(model, settings.payload_link, settings.payload_mass,
                             settings.payload_com, settings.payload_inertia)
    return model


def check_task_link(model: Model, link: str) -> None:
    """Raise ModelError if a link is not there, or no joint moves it; empty: none is needed."""
    if link and model.tree.link_body[model.link_index(link)] == 0:
        raise ModelError(f"parameter task_link names '{link}', which no joint moves")


def _locked_positions(model: Model, settings: RobotSettings) -> dict[str, Any]:
    """Return the coordinates of the locked joints by name; zeros if the parameters give none."""
    counts = {joint.name: joint.nq for joint in model.joints}
    needed = [counts.get(name, 1) for name in settings.locked_joints]
    given = settings.locked_positions or (0.0,) * sum(needed)
    if len(given) != sum(needed):
        raise ModelError(f'parameter locked_positions has {len(given)} entries, the locked joints '
                         f'have {sum(needed)} coordinates')
    ends = np.cumsum(needed)
    return {name: given[end - count:end]
            for name, count, end in zip(settings.locked_joints, needed, ends)}


class Robot:
    """
    A model with its state, workspaces and messages; another model replaces it as a whole.

    Parameters
    ----------
    text : str
        The description that the model was built from.
    model : Model
        The model.
    settings : RobotSettings
        The parameters.

    Attributes
    ----------
    model_id : int
        Changes whenever the robot does; 0 before it is the present one.
    stamp : Stamp or None
        Stamp of the latest complete state.
    state_is_new : bool
        Whether that state has not been answered yet.
    frame : str
        The frame of the centre of mass and its Jacobian.
    command_columns : ndarray of int
        Indices of the commanded joints among the velocities of the model.
    task_link : str
        The link of the topics of the task; empty: none.
    task_length : float
        Unit of length for the condition number of its Jacobian, m.

    """

    def __init__(self, text: str, model: Model, settings: RobotSettings) -> None:
        self.text, self.model, self.model_id = text, model, 0
        self.prefix = settings.frame_prefix
        # One for the stream of states, one for requests, which are answered in another thread.
        self.workspace, self.service_workspace = Workspace(model), Workspace(model)
        self.base_joint = base_joint(model)
        self.states = JointStates(model)
        self.odometry = (OdometryStates(model, self.base_joint, self.prefix)
                         if self.base_joint else None)
        self._base_came = -inf
        self._base_apart: float | None = None
        self.frame = self.prefix + model.link_names[0] if model.links else ''
        self.stamp: Any = None      # a Stamp whenever the state is complete
        self.state_is_new = False
        first = self.base_joint.nv if self.base_joint else 0
        self.possible_commands = settings.command_joints or model.velocity_names[first:]
        self.command_columns = np.zeros(0, int)
        self.task_link = settings.task_link
        self.task_length = (characteristic_length(model, self.task_link)
                            if self.task_link else 1.0)
        self.markers = Markers(model, self.prefix)
        self.convention = settings.effort_convention
        self._state_constants = self.convention.constants_of_states(model.velocity_names)

    def become(self, model_id: int, commands: EffortCommands,
               before: 'Robot | None' = None) -> None:
        """
        Become the present robot.

        Parameters
        ----------
        model_id : int
            Its number.
        commands : EffortCommands
            The commands, which follow this robot from now on.
        before : Robot, optional
            The same robot with another load or gravity, whose state is kept.

        """
        if before is not None:
            self.states, self.odometry = before.states, before.odometry
            self._base_came, self._base_apart = before._base_came, before._base_apart
            self.frame, self.stamp, self.state_is_new = (before.frame, before.stamp,
                                                         before.state_is_new)
        self.model_id = model_id
        self.outputs, self.service_outputs = (
            Outputs(self.model, model_id, self.task_link, self.prefix) for _ in range(2))
        columns = {name: k for k, name in enumerate(self.model.velocity_names)}
        limits = self.model.effort_limit
        commands.set_joints(self.possible_commands,
                            [limits[columns[name]] for name in self.possible_commands])
        self.arrange_commands(commands)

    def arrange_commands(self, commands: EffortCommands) -> None:
        """Look up the indices of the joints that are commanded."""
        if not commands.mismatch:
            columns = {name: k for k, name in enumerate(self.model.velocity_names)}
            self.command_columns = np.array([columns[name] for name in commands.joints], int)

    @cached_property
    def inertial_parameters(self) -> tuple[tuple[str, ...], array, np.ndarray]:
        """Return names and values of the inertial parameters, and armatures, for regressors."""
        return (inertial_parameter_names(self.model),
                array('d', inertial_parameters(self.model)),
                np.diag(armature_matrix(self.model)))

    def forget(self) -> None:
        """Forget all states."""
        self.states.forget()
        if self.odometry is not None:
            self.odometry.forget()
        self._base_came, self.stamp, self.state_is_new = -inf, None, False

    def complete(self, stamp: Stamp) -> None:
        """Record that the state is complete, and its stamp."""
        self.stamp, self.state_is_new = stamp, True

    def note_answered(self) -> None:
        """Record that the latest state has been answered."""
        self.state_is_new = False

    def join_base(self, stamp: float, now: float, timeout: float, any_stamp: bool) -> None:
        """
        Take over the state of the base that is nearest in time to a joint state.

        Parameters
        ----------
        stamp : float
            Stamp of the joint state, s; 0: take over the latest state of the base.
        now : float
            Time, s.
        timeout : float
            Largest age of the state of the base, and largest distance of its stamp from the joint
            state's, s.
        any_stamp : bool
            Whether to take over the latest if the stamps of all are too far away.

        """
        if self.odometry is None:
            return
        state, self._base_apart = self.odometry.nearest(stamp, now, timeout)
        if self._base_apart is not None and any_stamp:
            state, self._base_apart = self.odometry.nearest(0.0, now, timeout)
        if state is not None:
            self.states.place_base(state.q, state.v)
            self._base_came, self.frame = state.came, state.frame

    def missing(self, now: float, timeout: float) -> list[str]:
        """Return the joints whose position is unknown, or older than a timeout, s."""
        missing = self.states.missing(now, timeout)
        if self.base_joint and not 0.0 <= now - self._base_came <= timeout:
            missing = [self.base_joint.name, *missing]
        return missing

    def why_missing(self, missing: Sequence[str],
                    what: str = 'no outputs: no recent position of') -> str:
        """Return a sentence about joints that are `missing`."""
        text = f'{what} {listed(missing)}'
        if self.base_joint and self.base_joint.name in missing and self._base_apart is not None:
            text += (f'; odometry arrives, but its stamps are {self._base_apart:.3g} s from those '
                     'of the joint states: synchronise the clocks, or set check_stamps: false')
        return text

    def ages(self, now: float) -> dict[str, float]:
        """Return the age of the state of the base and of every joint, s, by name."""
        base = {self.base_joint.name: now - self._base_came} if self.base_joint else {}
        return {**base, **self.states.ages(now)}

    def velocity(self, missing_velocity: str) -> np.ndarray | None:
        """
        Return the velocity to compute with, or None if it is unknown.

        Parameters
        ----------
        missing_velocity : str
            What to do if it is not measured: the parameter of this name.

        """
        if not self.states.missing_velocities():
            return self.states.v
        if missing_velocity == 'zero':
            return self.states.velocity_or(0.0)
        if missing_velocity == 'differentiate':
            v = self.states.velocity_or(None)
            return v if isfinite(v.sum()) else None
        return None

    def measured_torques(self, v: np.ndarray | None) -> np.ndarray:
        """
        Return the torques that the measured efforts stand for, by their convention, N m or N.

        Parameters
        ----------
        v : ndarray or None
            Velocity, rad/s or m/s; None: not known.

        Returns
        -------
        ndarray
            NaN where no effort is measured, and for all joints if a velocity that the convention
            needs is not known.

        """
        torques, states = self._state_constants * self.states.effort, self.states
        if self.convention.states == 'full':
            return torques
        g = self.workspace.gravity_torques(states.q).copy()
        coriolis = np.zeros_like(g)
        if self.convention.states == 'without_gravity_and_coriolis':
            if v is None or not isfinite(v.sum()):
                return np.full_like(g, np.nan)
            coriolis = self.workspace.bias_torques(states.q, v) - g
        return torques + self.convention.left_out_of_states(g, coriolis)

    def payloads(self) -> dict[str, float]:
        """Return the masses of the loads, kg, by the link that carries them."""
        return {link.name.removesuffix('/payload'): link.mass for link in self.model.links
                if link.is_load}

    def lacks_friction(self) -> bool:
        """Return whether the robot's joints have no friction of any kind, and no offset."""
        model = self.model
        return not any(x.any() for x in (model.damping, model.friction, model.stribeck_friction,
                                         model.effort_offset))
