# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot: names, limits and the arrays that the kernels read. It is immutable."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from math import inf
from threading import local
from typing import Any
import warnings

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.arrays import real_array
from rbd_ros._internal.text import amount, did_you_mean, listed, shown
from rbd_ros.errors import ModelError, ModelWarning, StateError
from rbd_ros.kernels.tree.columns import INERTIA
from rbd_ros.model.body_table import assemble, Tree, with_shared_coordinates
from rbd_ros.model.coordinates import Coordinates, couple, map_drives
from rbd_ros.model.description import check_joint, check_links, Link
from rbd_ros.model.joints import Joint, joint_pose, KINDS, NEW_LIMITS, PER_VELOCITY
from rbd_ros.model.loops import Constraint, Loops
from rbd_ros.model.plausibility import implausible
from rbd_ros.model.topology import order_tree, require_unique, resolve_mimics
from rbd_ros.model.uncertainty import Uncertainty

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


class PerThreadWorkspaces(local):
    """Per-thread workspace cache of a model; dropped on copy and pickle."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()


@dataclass(frozen=True, eq=False)
class Model:
    """
    A robot, made by `load_urdf`, `load_urdf_string`, `ModelBuilder` or `build_model`.

    Attributes
    ----------
    name : str
    links, joints : tuple of Link, tuple of Joint
        Depth-first, the root link first; joint k, which may be fixed, leads to link k + 1.
    gravity : ndarray, shape (3,)
        Acceleration of gravity in the root's frame, m/s^2.
    warnings : tuple of str
        Suspicious properties of the description.
    nq, nv : int
        Number of positions and of velocities. They differ if a joint has a quaternion.
    position_names, velocity_names : tuple of str
        Names of the entries of q and v: the joint's name, with a suffix if it has several.
    lower, upper, velocity_limit, effort_limit : ndarray, shape (nv,)
        Limits of the coordinates, rad or m, infinite if there is none; rad/s or m/s; N m or N.
    acceleration_limit, deceleration_limit, jerk_limit : ndarray, shape (nv,)
        rad/s^2 or m/s^2 while a joint becomes faster or slower; rad/s^3 or m/s^3.
    damping ... spring_reference, armature : ndarray, shape (nv,)
        Drives, as in `Joint`, with those of mimics. Friction and offsets are part of
        `friction_torques`, springs of `spring_torques`, rotors (armature) of the mass matrix.
    angular : ndarray of bool, shape (nv,)
        Whether the entry of v is in rad/s (and of tau in N m), rather than m/s (and N).
    mass : float
        Total mass of all links, kg.
    moving_joints : tuple of (Joint, slice, slice)
        The joints that have coordinates of their own, with their slices of q and v. With closed
        loops, those whose velocities are all independent; all are in those of `unconstrained`.
    tree, coordinates : Tree, Coordinates
        The arrays of the kernels, and the map from q and v to those of all joints: mimics have no
        coordinates of their own.
    loops : Loops or None
        The constraints of a robot with closed loops, whose q is that of `unconstrained` and whose
        velocities are the independent ones.
    uncertainty : Uncertainty or None
        How far measured torques may be from the computed ones, if the robot was identified; see
        `rbd_ros.batch.torque_deviation`.

    """

    name: str
    links: tuple[Link, ...]
    joints: tuple[Joint, ...]
    gravity: np.ndarray
    warnings: tuple[str, ...]
    position_names: tuple[str, ...]
    velocity_names: tuple[str, ...]
    lower: np.ndarray
    upper: np.ndarray
    velocity_limit: np.ndarray
    effort_limit: np.ndarray
    acceleration_limit: np.ndarray
    deceleration_limit: np.ndarray
    jerk_limit: np.ndarray
    damping: np.ndarray
    damping_asymmetry: np.ndarray
    friction: np.ndarray
    friction_asymmetry: np.ndarray
    stribeck_friction: np.ndarray
    stribeck_velocity: np.ndarray
    effort_offset: np.ndarray
    stiffness: np.ndarray
    spring_reference: np.ndarray
    armature: np.ndarray
    angular: np.ndarray
    mass: float
    moving_joints: tuple[tuple[Joint, slice, slice], ...]
    tree: Tree
    coordinates: Coordinates
    _link_index: dict[str, int] = field(repr=False)
    loops: Loops | None = None
    uncertainty: Uncertainty | None = None
    _unconstrained: Model | None = field(default=None, repr=False)
    # Filled by `rbd_ros.workspace.workspace_of`.
    _workspaces: PerThreadWorkspaces = field(default_factory=PerThreadWorkspaces, init=False,
                                             repr=False)
    # Empty until `spanning_tree` is first called.
    _spanning_tree: list[Model] = field(default_factory=list, init=False, repr=False)

    def __post_init__(self) -> None:
        # vars() would make every later attribute access slower in Python 3.11.
        for one in fields(self):
            value = getattr(self, one.name)
            if isinstance(value, np.ndarray):
                value.flags.writeable = False

    def __getstate__(self) -> dict[str, Any]:
        return {**vars(self), '_workspaces': PerThreadWorkspaces(), '_spanning_tree': []}

    @property
    def spanning_tree(self) -> Model:
        """Return the robot in which each joint has coordinates of its own."""
        if self.coordinates.is_identity:
            return self
        if self._unconstrained is not None:
            return self._unconstrained.spanning_tree
        if not self._spanning_tree:
            self._spanning_tree.append(build_tree(
                self.name, self.links, [replace(joint, mimic=None) for joint in self.joints],
                self.gravity, notes=self.warnings))
        return self._spanning_tree[0]

    @property
    def unconstrained(self) -> Model:
        """Return the robot without its constraints, which is this one if there are none."""
        return self if self._unconstrained is None else self._unconstrained

    @property
    def constraints(self) -> tuple[Constraint, ...]:
        """Return the constraints, which close loops."""
        return self.loops.constraints if self.loops else ()

    @property
    def independent_joints(self) -> tuple[str, ...]:
        """Return the names of the joints whose velocities are those of the robot."""
        return tuple(dict.fromkeys(
            joint.name for joint, _, v in self.unconstrained.moving_joints
            if {*self.unconstrained.velocity_names[v]} & {*self.velocity_names}))

    @property
    def nq(self) -> int:
        return len(self.position_names)

    @property
    def nv(self) -> int:
        return len(self.velocity_names)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """
        Return the names of all joints, fixed ones and mimics included.

        Those that move by themselves are named by ``velocity_names``, in the order of v, a and
        tau, and by ``position_names``, in the order of q.

        """
        return tuple(joint.name for joint in self.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Return the names of all links, the root first."""
        return tuple(self._link_index)

    @property
    def configurations(self) -> dict[str, np.ndarray]:
        """
        Return q, (nq,), of the keyframes of the description, by name.

        Those of MJCF close the loops of a robot, which `normalize` does with others.

        """
        moving = self.unconstrained.moving_joints
        names = dict.fromkeys(name for joint, _, _ in moving for name in joint.configurations)
        return {name: np.concatenate([
            joint.configurations.get(name, np.eye(joint.nq)[3] if joint.nq > joint.nv
                                     else np.zeros(joint.nq))
            for joint, _, _ in moving]) for name in names}

    def link_index(self, name: str) -> int:
        """Return the index of a link; raise ModelError if there is none of that name."""
        try:
            return self._link_index[name]
        except (KeyError, TypeError):
            raise ModelError(f"robot '{self.name}' has no link '{name}'" + did_you_mean(
                str(name), self.link_names, '; its links are ' + listed(self.link_names))
                ) from None

    def __repr__(self) -> str:
        count = len(self.constraints)
        closed = f"{amount(count, 'constraint')}, " if count else ''
        return (f"<Model '{self.name}': {amount(len(self.links), 'link')}, {closed}"
                f"{amount(self.nv, 'degree')} of freedom, {self.mass:.6g} kg>")


def check_model(model: object) -> None:
    """Raise StateError unless an argument is a robot."""
    if not hasattr(model, 'velocity_names'):
        raise StateError('model must be a robot, made by load_urdf or ModelBuilder, got '
                         + shown(model))


def build_model(name: str, links: Sequence[Link], joints: Sequence[Joint], *,
                gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
                notes: Sequence[str] = ()) -> Model:
    """
    Check a description and return the robot; a ModelError names the link or joint.

    Parameters
    ----------
    name, links, joints : str, sequence of Link, sequence of Joint
        Links and joints in any order; branches are numbered in the order of their joints.
    gravity : array_like, shape (3,)
        Acceleration of gravity in the root's frame, m/s^2.
    strict, notes : bool, sequence of str
        Reject everything that otherwise causes a ModelWarning; further warnings.

    """
    return warned(build_tree(name, links, joints, gravity, notes), strict)


def warned(model: Model, strict: bool, notes: Sequence[str] = ()) -> Model:
    """Return the robot with more warnings; issue all of them, or raise the first if ``strict``."""
    model = replace(model, warnings=(*model.warnings, *notes))
    if strict and model.warnings:
        raise ModelError(model.warnings[0])
    for note in model.warnings:
        warnings.warn(note, ModelWarning, stacklevel=3)
    return model


def build_tree(name: str, links: Sequence[Link], joints: Sequence[Joint], gravity: npt.ArrayLike,
               notes: Sequence[str] = ()) -> Model:
    """Return the robot as `build_model` does, without issuing warnings."""
    given, gravity = gravity, real_array(gravity)
    if gravity is None or gravity.shape != (3,) or not np.all(np.isfinite(gravity)):
        raise ModelError(f'gravity must be three finite numbers, m/s^2, got {shown(given)}')
    impossible = check_links(links)
    found = [check_joint(joint) for joint in joints]
    impossible += [note for _, some in found for note in some]
    links, joints = order_tree(links, [joint for joint, _ in found])
    mimics, unknown = resolve_mimics(joints)
    joints, fixed = _fix_mimics_of_fixed(joints, mimics)
    for array in (*(array for link in links for array in (link.com, link.inertia)),
                  *(array for joint in joints
                    for array in (joint.placement, joint.axis, joint.second_axis))):
        if isinstance(array, np.ndarray):
            array.flags.writeable = False
    leaderless = [f"joint '{joint.name}' mimics '{joint.mimic.joint}', which is not there: it "
                  'moves on its own; add that joint, or remove the mimic'
                  for joint in unknown if joint.mimic]
    if not links:
        impossible.append('the robot has no links: there is nothing to compute')
    tree = assemble(links, joints, gravity)
    notes = tuple(dict.fromkeys((
        *leaderless, *fixed, *impossible, *notes, *_missing_masses(links, joints, tree),
        *implausible(links, joints))))

    moving, q, v = [], 0, 0
    for joint in joints:
        if joint.nv and joint.name not in mimics:
            moving.append((joint, slice(q, q + joint.nq), slice(v, v + joint.nv)))
            q, v = q + joint.nq, v + joint.nv
    kinds = [(joint.name, KINDS[joint.kind]) for joint, _, _ in moving]
    position_names = tuple(name + x for name, kind in kinds for x in kind.position_suffixes)
    velocity_names = tuple(name + x for name, kind in kinds for x in kind.velocity_suffixes)
    require_unique('coordinate', position_names)
    require_unique('coordinate', velocity_names)
    coordinates = couple(joints, mimics, moving)

    def per_velocity(label: str) -> np.ndarray:
        return np.array([x for joint, _, _ in moving for x in getattr(joint, label)], float)

    drives: dict[str, Any] = map_drives(joints, coordinates)
    # Limits of 0 are not stated, except that nothing drives a joint without a motor.
    limits: dict[str, Any] = {f'{label}_limit': np.array([
        x or (inf if joint.has_motor or label != 'effort' else 0.0)
        for joint, _, _ in moving for x in getattr(joint, label)], float)
        for label in ('velocity', 'effort', *NEW_LIMITS)}
    if not coordinates.is_identity:
        tree = with_shared_coordinates(tree, coordinates)
    return Model(
        name=name, links=links, joints=joints, gravity=gravity, warnings=notes,
        position_names=position_names, velocity_names=velocity_names,
        lower=per_velocity('lower'), upper=per_velocity('upper'),
        **limits, **drives,
        angular=np.array([x for _, kind in kinds for x in kind.angular], bool),
        mass=sum(link.mass for link in links), moving_joints=tuple(moving), tree=tree,
        coordinates=coordinates, _link_index={link.name: k for k, link in enumerate(links)})


def _fix_mimics_of_fixed(joints: Sequence[Joint], mimics: dict[str, tuple[str, float, float]]
                         ) -> tuple[tuple[Joint, ...], list[str]]:
    """Fix mimics of fixed joints at their offset, remove them from ``mimics``; return notes."""
    fixed = {joint.name for joint in joints if joint.kind == 'fixed'}
    result, notes = [], []
    for joint in joints:
        leader, _, offset = mimics.get(joint.name, (None, 1.0, 0.0))
        if leader in fixed:
            del mimics[joint.name]
            notes.append(f"joint '{joint.name}' mimics '{leader}', which is fixed; it is fixed "
                         f'too, at its offset, {offset:g}')
            joint = fix(joint, (offset,))
        result.append(joint)
    return tuple(result), notes


def fix(joint: Joint, q: Sequence[float] | np.ndarray) -> Joint:
    """Return the joint, fixed at the coordinates q."""
    nothing: dict[str, Any] = dict.fromkeys(PER_VELOCITY, ())
    return replace(joint, kind='fixed', placement=joint.placement @ joint_pose(joint, q),
                   mimic=None, **nothing)


def _missing_masses(links: Sequence[Link], joints: Sequence[Joint], tree: Tree) -> list[str]:
    """Return a warning about moving links that have no mass, nor have the links fixed to them."""
    mass_of_body = tree.robot[:, INERTIA + 9]
    light = [link.name for link, joint, body in zip(links[1:], joints, tree.link_body[1:])
             if joint.nv and mass_of_body[body] == 0.0 and not link.is_virtual]
    if not light:
        return []
    return ['these links move but have no mass (is their inertial missing?): ' + listed(light)]
