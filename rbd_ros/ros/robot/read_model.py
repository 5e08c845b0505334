# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Read the model of a robot from its description, changed by the parameters."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import cycle
from math import inf
from typing import Any
import warnings

import numpy as np
from rbd_ros import (
    Model, ModelError, ModelWarning, with_floating_base, with_locked_joints, with_payload)
from rbd_ros._internal.text import listed
from rbd_ros.model import load_constraints, with_free_joints
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.files.any_format import load_text
from rbd_ros.model.files.drive_files import with_named_drives
from rbd_ros.model.files.uncertainty_files import with_named_uncertainty
from rbd_ros.model.joints import Joint, KINDS
from rbd_ros.model.plausibility import NO_EFFORT
from rbd_ros.model.se3 import rotation_from_rpy
from rbd_ros.ros.robot.robot_settings import RobotSettings


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
    ends = np.cumsum(needed)
    return {name: given[end - count:end]
            for name, count, end in zip(settings.locked_joints, needed, ends)}
