# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read the model of a robot from its description, changed by its parameters."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle, islice
from math import inf
from typing import Annotated, Any, NamedTuple
import warnings

import numpy as np
from rbd_ros import (
    Model, ModelError, ModelWarning, with_floating_base, with_locked_joints, with_payload)
from rbd_ros._internal.setting import declared, Group, Setting
from rbd_ros._internal.text import listed
from rbd_ros.control.effort_convention import EffortConvention
from rbd_ros.model import load_constraints, with_free_joints
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.files.any_format import load_text
from rbd_ros.model.files.drive_files import (
    UNCERTAINTY, with_named_drives, with_named_uncertainty)
from rbd_ros.model.joints import DRIVE, Joint, KINDS
from rbd_ros.model.plausibility import NO_EFFORT
from rbd_ros.model.se3 import rotation_from_rpy
from rbd_ros.ros.parameters.parameters import BadParameter


def _without_prefix(values: dict[str, Any]) -> dict[str, Any]:
    return {name.partition('.')[2]: value for name, value in values.items()}


_DRIVE_SETTINGS = Group({
    'drives.joints': Setting((), 'Joints of the other drives.* parameters, in order; mimic joints '
                             'may be among them.', entry=str, of_robot=True),
    **{f'drives.{label}': Setting((), f'{meaning}.', unit, per='drives.joints', single=False,
                                  of_robot=True)
       for label, (meaning, unit) in DRIVE.items()}}, _without_prefix)
_UNCERTAINTY_SETTINGS = Group({
    f'uncertainty.{label}': Setting(
        (), f'{meaning} Written by rbd_ros identify.', of_robot=True,
        entry=str if label in ('joints', 'parameters') else float)
    for label, meaning in UNCERTAINTY.items()}, _without_prefix)
_CONVENTION_SETTINGS = Group(
    {f'effort_convention.{name}': one for name, one in declared(EffortConvention).items()
     if isinstance(one, Setting)}, lambda values: EffortConvention(**_without_prefix(values)))


class RobotSettings(NamedTuple):
    """The parameters from which the robot is built."""

    gravity: Annotated[tuple[float, ...], Setting(
        (0.0, 0.0, -9.81), 'Acceleration of gravity in the axes of the root link, or of the world '
        'if mounting_rpy is set or the base floats.', 'm/s^2', changeable=True)]
    constraints: Annotated[str, Setting(
        '', 'YAML file with constraints that close loops, or with the names of the independent '
        'joints; empty: those of the description.')]
    ignore: Annotated[tuple[str, ...], Setting(
        (), 'Kinds of elements of an MJCF description to leave out, such as equality.',
        entry=str)]
    joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints that move; all others are locked at zero. Empty: all.', entry=str)]
    locked_joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints that are locked; the masses of their links are kept.', entry=str)]
    locked_positions: Annotated[tuple[float, ...], Setting(
        (), 'Positions of the locked joints; empty: zero.', 'rad or m',
        condition='finite numbers')]
    drives: Annotated[dict[str, tuple[Any, ...]], _DRIVE_SETTINGS]
    uncertainty: Annotated[dict[str, tuple[Any, ...]], _UNCERTAINTY_SETTINGS]
    effort_convention: Annotated[EffortConvention, _CONVENTION_SETTINGS]
    payload_link: Annotated[str, Setting(
        '', 'Link with a payload from the start; empty: no payload.')]
    payload_mass: Annotated[float, Setting(0.0, 'Mass of that payload.', 'kg', 0.0, 1e6)]
    payload_com: Annotated[tuple[float, ...], Setting(
        (0.0, 0.0, 0.0), 'Its centre of mass in the frame of the link.', 'm', entries='x, y and z',
        sizes=(3,), condition='finite numbers')]
    payload_inertia: Annotated[tuple[float, ...], Setting(
        (0.0,) * 6, 'Its inertia about that centre, in the axes of the link; zeros: a point mass.',
        'kg m^2', entries='ixx, iyy, izz, ixy, ixz, iyz', sizes=(6,), condition='finite numbers')]
    mounting_rpy: Annotated[tuple[float, ...], Setting(
        (0.0, 0.0, 0.0), 'Orientation of the root link in the world, as rpy in URDF; gravity is '
        'then in the axes of the world.', 'rad', entries='roll, pitch and yaw', sizes=(3,),
        condition='finite numbers')]
    observer_joints: Annotated[tuple[str, ...], Setting(
        (), 'All joints of the robot, in the order of observer_gain and contact_threshold with '
        'several entries.', entry=str)]
    floating_base: Annotated[bool, Setting(
        False, 'Whether the root link floats; its state is read from the topic odom.')]
    command_joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints of ~/effort_commands, in the order of the controller; empty: those of the '
        'model, without the coordinates of a floating base.', entry=str)]
    command_limits: Annotated[tuple[float, ...], Setting(
        (), 'Effort limits of the commanded joints, in place of those of the description; '
        'required with limit_efforts where these are 0. Empty: those of the description.',
        'N m or N', per='command_joints', condition='positive numbers')]
    task_link: Annotated[str, Setting(
        '', 'Link of the topics ~/task_* and ~/external_wrench, and of ~/task_space_dynamics '
        'requests without a link; empty: none.', changeable=True)]
    frame_prefix: Annotated[str, Setting(
        '', 'Prefix of link names in frame names, as in robot_state_publisher.')]
    max_joints: Annotated[int, Setting(
        2000, 'Largest number of joints in a description, including fixed ones.', '', 1, 100000)]
    strict_urdf: Annotated[bool, Setting(
        False, 'Refuse descriptions that otherwise cause warnings.')]

    def check(self) -> None:
        """Raise if values do not fit together."""
        if self.locked_positions and not self.locked_joints:
            raise BadParameter('locked_positions is set, but locked_joints is not')
        if bool(self.payload_link) != (self.payload_mass > 0.0):
            raise BadParameter('payload_link and payload_mass belong together: name the link, and '
                               f"give a mass above 0, got '{self.payload_link}' and "
                               f'{self.payload_mass:g} kg')
        if self.floating_base and any(self.mounting_rpy):
            raise BadParameter('mounting_rpy is for robots that are fixed: the odometry of a '
                               'floating base contains its orientation')


def load_quietly(text: str, **options: Any) -> Model:
    """Return the model of a description without Python warnings; its ``warnings`` repeat them."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_text(text, **options)


def gravity_in_root(gravity: Sequence[float], rpy: Sequence[float]) -> tuple[float, ...]:
    """Return gravity in the axes of the root link, which is mounted with `rpy`, m/s^2."""
    return tuple((rotation_from_rpy(rpy).T @ gravity).tolist()) if any(rpy) else tuple(gravity)


def gravity_in_world(gravity: Sequence[float], rpy: Sequence[float]) -> tuple[float, ...]:
    """Return the inverse of `gravity_in_root`, m/s^2."""
    return tuple((rotation_from_rpy(rpy) @ gravity).tolist()) if any(rpy) else tuple(gravity)


def base_joint(model: Model) -> Joint | None:
    """Return the free joint between root link and base, or None if the base is fixed."""
    if model.moving_joints:
        joint = model.moving_joints[0][0]
        if joint.kind == 'free' and joint.parent == model.link_names[0]:
            return joint
    return None


def driven_joints(model: Model) -> tuple[str, ...]:
    """Return the velocity names without those of a floating base."""
    base = base_joint(model)
    return tuple(model.velocity_names[base.nv if base else 0:])


def unlimited_efforts(model: Model) -> list[str]:
    """Return the driven joints without an effort limit."""
    return [name for name in driven_joints(model)
            if model.effort_limit[model.velocity_names.index(name)] == inf]


def require_stated_efforts(model: Model, joints: Sequence[str]) -> None:
    """Raise ModelError if commands of these joints cannot be clamped: limits of 0 state none."""
    names = [name for joint, _, v in model.moving_joints
             for name, x in zip(model.velocity_names[v], joint.effort)
             if name in joints and x == 0.0 and joint.has_motor]
    if names:
        raise ModelError(
            'limit_efforts is true, but the description has effort limits of 0, which means not '
            f'stated, for {listed(names)}: set command_limits (N m or N, one number, or one for '
            'each of command_joints), or limit_efforts to false')


def _with_command_limits(model: Model, settings: RobotSettings) -> Model:
    """Return the robot with the effort limits that the parameters give its commanded joints."""
    given = dict(zip(settings.command_joints or driven_joints(model),
                     cycle(settings.command_limits)))
    if not given:
        return model
    limited = {joint.name: replace(joint, effort=(*map(
        given.get, model.velocity_names[v], joint.effort),))
        for joint, _, v in model.moving_joints}
    notes = tuple(note for note in model.warnings if not note.endswith(NO_EFFORT))
    return rebuild(replace(model, warnings=notes),
                   joints=[limited.get(one.name, one) for one in model.joints])


def per_velocity(model: Model, numbers: Sequence[float], joints: Sequence[str],
                 of_base: float = 0.0) -> np.ndarray:
    """Return one number per velocity, from one for all joints or one for each of `joints`."""
    driven = driven_joints(model)
    given = (dict.fromkeys(driven, numbers[0]) if len(numbers) == 1
             else dict(zip(joints, numbers)))
    return np.array([given[name] if name in driven and name in given else of_base
                     for name in model.velocity_names])


def read_model(text: str, settings: RobotSettings) -> Model:
    """Return the robot of a description, changed as the parameters ask, or raise ModelError."""
    model = load_quietly(text, gravity=gravity_in_root(settings.gravity, settings.mounting_rpy),
                         max_joints=settings.max_joints, ignore=settings.ignore)
    if settings.floating_base and base_joint(model) is None:
        model = with_floating_base(model)
    if settings.constraints:
        model = load_constraints(model, settings.constraints)
    base = base_joint(model) if settings.floating_base else None
    coefficients = {**settings.drives}
    model = with_named_drives(model, coefficients.pop('joints'), coefficients)
    if settings.locked_joints:
        model = with_locked_joints(model, _locked_positions(model, settings))
    if settings.joints:
        model = with_free_joints(model, (*settings.joints, *([base.name] if base else [])))
    _check_joint_names(model, settings)
    model = _with_command_limits(model, settings)
    if settings.strict_urdf and model.warnings:
        raise ModelError(model.warnings[0])
    model = with_named_uncertainty(model, settings.uncertainty)
    for joint, _, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws and joint is not base_joint(model):
            raise ModelError(f"joint '{joint.name}' is {joint.kind}: joint states cannot hold its "
                             'quaternion; only the base of a robot may float here')
    floating = base_joint(model)
    if floating and not settings.floating_base:
        raise ModelError(f"joint '{floating.name}' lets the robot float: set the "
                         'parameter floating_base, and publish its odometry')
    check_task_link(model, settings.task_link)
    if settings.payload_link:
        model = with_payload(model, settings.payload_link, settings.payload_mass,
                             settings.payload_com, settings.payload_inertia)
    return model


def check_task_link(model: Model, link: str) -> None:
    """Raise ModelError if a link does not exist or does not move; an empty name is accepted."""
    if link and model.tree.link_body[model.link_index(link)] == 0:
        raise ModelError(f"parameter task_link names '{link}', which no joint moves")


def _check_joint_names(model: Model, settings: RobotSettings) -> None:
    for label, names in (('command_joints', settings.command_joints),
                         ('observer_joints', settings.observer_joints),
                         ('effort_convention.joints', settings.effort_convention.joints)):
        for name in names:
            if name not in model.velocity_names:
                raise ModelError(f"parameter {label} names '{name}'; the joints of "
                                 f"'{model.name}' are {listed(model.velocity_names)}")
    own = set(driven_joints(model))
    if settings.observer_joints and set(settings.observer_joints) != own:
        raise ModelError('parameter observer_joints must name every joint; missing: '
                         + listed(sorted(own - set(settings.observer_joints))))


def _locked_positions(model: Model, settings: RobotSettings) -> dict[str, Any]:
    counts = {joint.name: joint.nq for joint in model.joints}
    needed = [counts.get(name, 1) for name in settings.locked_joints]
    given = settings.locked_positions or (0.0,) * sum(needed)
    if len(given) != sum(needed):
        raise ModelError(f'parameter locked_positions has {len(given)} entries, the locked joints '
                         f'have {sum(needed)} coordinates')
    numbers = iter(given)
    return {name: tuple(islice(numbers, count))
            for name, count in zip(settings.locked_joints, needed)}
