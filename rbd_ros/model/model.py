# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot: names, limits and the arrays that the kernels read; it never changes."""

from collections.abc import Sequence
from dataclasses import dataclass, field, fields, replace
from threading import local
from typing import Any
import warnings

import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, ModelWarning
from rbd_ros.kernels.layout import INERTIA
from rbd_ros.model.arguments import check_model, real_array, shown
from rbd_ros.model.body_table import assemble, Tree
from rbd_ros.model.coordinates import Coordinates, couple
from rbd_ros.model.description import check_joint, check_links, Link
from rbd_ros.model.friction import fold_drives
from rbd_ros.model.joints import DRIVE, Joint, joint_pose, KINDS
from rbd_ros.model.plausibility import implausible
from rbd_ros.model.topology import order_tree, require_unique, resolve_mimics

STANDARD_GRAVITY = (0.0, 0.0, -9.81)


class OfThread(local):
    """What each thread keeps for itself; copies hold nothing."""

    def __reduce__(self) -> tuple[type, tuple[()]]:
        return type(self), ()


@dataclass(frozen=True, eq=False)
class Model:
    """
    A robot. Make one with `load_urdf`, `load_urdf_string` or `build_model`.

    Attributes
    ----------
    name : str
        The robot's name.
    links : tuple of Link
        Depth-first, the root first.
    joints : tuple of Joint
        All of them, fixed ones included; joint k leads to link k + 1.
    gravity : ndarray, shape (3,)
        Acceleration of gravity in the root's frame, m/s^2.
    warnings : tuple of str
        What is odd about the description.
    nq, nv : int
        Number of positions and of velocities. They differ if a joint has a quaternion.
    position_names, velocity_names : tuple of str
        Names of the entries of q and v: the joint's name, with a suffix if it has several.
    lower, upper : ndarray, shape (nv,)
        Limits of the coordinates, rad or m; infinite if there is none.
    velocity_limit, effort_limit : ndarray, shape (nv,)
        rad/s or m/s; N m or N.
    damping, damping_asymmetry, friction, friction_asymmetry : ndarray, shape (nv,)
        Viscous friction, N m s/rad or N s/m, and Coulomb friction, N m or N: their sums with the
        asymmetries hold in the positive direction, their differences in the negative one.
    stribeck_friction, stribeck_velocity : ndarray, shape (nv,)
        Additional friction of a joint that hardly moves, N m or N, and the speed at which it has
        fallen to 1/e, rad/s or m/s.
    effort_offset : ndarray, shape (nv,)
        The effort at which a joint exerts no torque, N m or N. This and friction, with those of
        joints that mimic another, are part of `friction_torques`, not of the rigid-body terms.
    armature : ndarray, shape (nv,)
        Inertia of the rotors, kg m^2 or kg: part of the mass matrix.
    angular : ndarray of bool, shape (nv,)
        Whether the entry of v is in rad/s (and of tau in N m), rather than m/s (and N).
    mass : float
        Total mass of all links, kg.
    moving_joints : tuple of (Joint, slice, slice)
        The joints that have coordinates of their own, with their entries of q and of v.
    tree : Tree
        The arrays of the kernels.
    coordinates : Coordinates
        How q and v move the tree: joints that mimic others have no coordinates of their own.

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
    damping: np.ndarray
    damping_asymmetry: np.ndarray
    friction: np.ndarray
    friction_asymmetry: np.ndarray
    stribeck_friction: np.ndarray
    stribeck_velocity: np.ndarray
    effort_offset: np.ndarray
    armature: np.ndarray
    angular: np.ndarray
    mass: float
    moving_joints: tuple[tuple[Joint, slice, slice], ...]
    tree: Tree
    coordinates: Coordinates
    _link_index: dict[str, int] = field(repr=False)
    # Where each thread keeps its workspace: see `rbd_ros.workspace.workspace_of`.
    _of_thread: OfThread = field(default_factory=OfThread, init=False, repr=False)
    # Made when it is first needed.
    _spanning_tree: list['Model'] = field(default_factory=list, init=False, repr=False)

    def __getstate__(self) -> dict[str, Any]:
        """Return the content of copies: everything but workspaces."""
        return {**vars(self), '_of_thread': OfThread()}

    @property
    def spanning_tree(self) -> 'Model':
        """Return the robot in which every joint has coordinates of its own."""
        if self.coordinates.is_identity:
            return self
        if not self._spanning_tree:
            self._spanning_tree.append(rebuild(self, joints=[
                replace(joint, mimic=None) for joint in self.joints]))
        return self._spanning_tree[0]

    @property
    def folding(self) -> Coordinates | None:
        """Return the coordinates if joints mimic others, else None: their name until 0.2."""
        return None if self.coordinates.is_identity else self.coordinates

    @property
    def nq(self) -> int:
        """Return the number of positions."""
        return len(self.position_names)

    @property
    def nv(self) -> int:
        """Return the number of velocities."""
        return len(self.velocity_names)

    @property
    def joint_names(self) -> tuple[str, ...]:
        """Return the names of all joints, fixed ones included."""
        return tuple(joint.name for joint in self.joints)

    @property
    def link_names(self) -> tuple[str, ...]:
        """Return the names of all links, the root first."""
        return tuple(self._link_index)

    def link_index(self, name: str) -> int:
        """
        Return the index of a link.

        Raises
        ------
        ModelError
            If no link has that name.

        """
        try:
            return self._link_index[name]
        except (KeyError, TypeError):
            raise ModelError(f"robot '{self.name}' has no link '{name}'; its links are "
                             + listed(self.link_names)) from None

    def __repr__(self) -> str:
        """Return a line that identifies the robot."""
        return (f"<Model '{self.name}': {len(self.links)} links, {self.nv} degrees of freedom, "
                f'{self.mass:.6g} kg>')


def build_model(name: str, links: Sequence[Link], joints: Sequence[Joint], *,
                gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
                notes: Sequence[str] = ()) -> Model:
    """
    Check a description and return the robot.

    Parameters
    ----------
    name : str
        The robot's name.
    links : sequence of Link
        In any order.
    joints : sequence of Joint
        Their order decides in which order branches are numbered.
    gravity : array_like, shape (3,)
        Acceleration of gravity in the root's frame, m/s^2.
    strict : bool
        Refuse impossible inertias, joints that mimic unknown ones and empty robots, which
        otherwise cause warnings.
    notes : sequence of str
        Further warnings, found while the description was read.

    Returns
    -------
    Model
        The robot.

    Raises
    ------
    ModelError
        If the description is wrong; the message names the link or joint.

    Warns
    -----
    ModelWarning
        Once for every entry of ``Model.warnings``.

    """
    model = _build(name, links, joints, gravity, strict, notes)
    for note in model.warnings:
        warnings.warn(note, ModelWarning, stacklevel=2)
    return model


def rebuild(model: Model, *, links: Sequence[Link] | None = None,
            joints: Sequence[Joint] | None = None, gravity: npt.ArrayLike | None = None) -> Model:
    """
    Return a robot with other links, joints or gravity, without repeating known warnings.

    Parameters
    ----------
    model : Model
        The robot.
    links, joints, gravity
        As for `build_model`; None: those of the robot.

    Returns
    -------
    Model
        The other robot.

    Raises
    ------
    ModelError
        If the new description is wrong.
    StateError
        If ``model`` is not a robot.

    """
    check_model(model)
    return _build(model.name, model.links if links is None else links,
                  model.joints if joints is None else joints,
                  model.gravity if gravity is None else gravity, notes=model.warnings)


def _build(name: str, links: Sequence[Link], joints: Sequence[Joint], gravity: npt.ArrayLike,
           strict: bool = False, notes: Sequence[str] = ()) -> Model:
    given, gravity = gravity, real_array(gravity)
    if gravity is None or gravity.shape != (3,) or not np.all(np.isfinite(gravity)):
        raise ModelError(f'gravity must be three finite numbers, m/s^2, got {shown(given)}')
    notes = list(notes)
    impossible, checked = check_links(links), []
    for joint in joints:
        joint, odd, wrong = check_joint(joint)
        checked.append(joint)
        notes += odd
        impossible += wrong
    links, joints = order_tree(links, checked)
    mimics, unknown = resolve_mimics(joints)
    joints, held = _hold_copies(joints, mimics)
    for part in (*links, *joints):
        for value in vars(part).values():
            if isinstance(value, np.ndarray):
                value.flags.writeable = False
    lost = [f"joint '{joint.name}' mimics '{joint.mimic.joint}', which is not there"
            for joint in unknown if joint.mimic]
    grave = [f'{what}; it moves on its own' for what in lost] + held + impossible
    if not links:
        grave.append('the robot has no links: there is nothing to compute')
    if strict and lost:
        raise ModelError(f'{lost[0]}: add that joint, or remove the mimic')
    if strict and grave:
        raise ModelError(grave[0])
    tree = assemble(links, joints, gravity)
    notes = tuple(dict.fromkeys(grave + notes + _missing_masses(links, joints, tree)
                                + implausible(links, joints)))

    moving, q, v = [], 0, 0
    for joint in joints:
        if joint.nv and joint.name not in mimics:
            moving.append((joint, slice(q, q + joint.nq), slice(v, v + joint.nv)))
            q, v = q + joint.nq, v + joint.nv
    names = [joint.name + suffix for joint, _, _ in moving
             for suffix in dict.fromkeys(KINDS[joint.kind].position_suffixes
                                         + KINDS[joint.kind].velocity_suffixes)]
    require_unique('coordinate', names)
    coordinates = couple(joints, mimics, moving)

    def per_velocity(label: str) -> np.ndarray:
        return np.array([x for joint, _, _ in moving for x in getattr(joint, label)], float)

    model = Model(
        name=name, links=links, joints=joints, gravity=gravity, warnings=notes,
        position_names=tuple(joint.name + suffix for joint, _, _ in moving
                             for suffix in KINDS[joint.kind].position_suffixes),
        velocity_names=tuple(joint.name + suffix for joint, _, _ in moving
                             for suffix in KINDS[joint.kind].velocity_suffixes),
        lower=per_velocity('lower'), upper=per_velocity('upper'),
        velocity_limit=per_velocity('velocity'), effort_limit=per_velocity('effort'),
        **fold_drives(joints, None if coordinates.is_identity else coordinates.G),
        angular=np.array([x for joint, _, _ in moving for x in KINDS[joint.kind].angular], bool),
        mass=sum(link.mass for link in links),
        moving_joints=tuple(moving),
        tree=tree,
        coordinates=coordinates,
        _link_index={link.name: k for k, link in enumerate(links)})
    # Not by vars(), after which Python 3.11 looks all attributes up in a dict.
    for one in fields(model):
        value = getattr(model, one.name)
        if isinstance(value, np.ndarray):
            value.flags.writeable = False
    return model


def _hold_copies(
        joints: Sequence[Joint],
        mimics: dict[str, tuple[str, float, float]]) -> tuple[tuple[Joint, ...], list[str]]:
    """
    Return the joints, fixing those that mimic a fixed one, and a sentence for each of these.

    They are fixed at their offset and removed from ``mimics``.

    """
    fixed = {joint.name for joint in joints if joint.kind == 'fixed'}
    held, notes = [], []
    for joint in joints:
        leader, _, offset = mimics.get(joint.name, (None, 1.0, 0.0))
        if leader in fixed:
            del mimics[joint.name]
            notes.append(f"joint '{joint.name}' mimics '{leader}', which is fixed; it is fixed "
                         f'too, at its offset, {offset:g}')
            joint = fix(joint, (offset,))
        held.append(joint)
    return tuple(held), notes


def fix(joint: Joint, q: Sequence[float] | np.ndarray) -> Joint:
    """Return a joint, fixed at the coordinates q."""
    no_drive: dict[str, Any] = dict.fromkeys(DRIVE, ())
    return replace(joint, kind='fixed', placement=joint.placement @ joint_pose(joint, q),
                   mimic=None, lower=(), upper=(), velocity=(), effort=(), **no_drive)


def _missing_masses(links: Sequence[Link], joints: Sequence[Joint], tree: Tree) -> list[str]:
    """Return a warning of moving links without mass, including that of links fixed to them."""
    mass_of_body = tree.robot[:, INERTIA + 9]
    light = [link.name for link, joint, body in zip(links[1:], joints, tree.link_body[1:])
             if joint.nv and mass_of_body[body] == 0.0]
    if not light:
        return []
    return ['these links move but have no mass (is their inertial missing?): '
            + listed(light)]
