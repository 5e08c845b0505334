# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Contacts, their buffers in a workspace, and the results of the functions that take them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros._internal.text import shown
from rbd_ros.errors import StateError
from rbd_ros.kernels.contacts import BIAS, FRAME_ROWS, POSE, WORK_ROWS
from rbd_ros.model.arguments import choice, finite_array, number
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import pose
from rbd_ros.workspace.base import WorkspaceBase

CONTACT_KINDS = ('point', 'surface')
ORTHONORMAL = 1e-6      # largest deviation of R R^T from 1


@dataclass(frozen=True, eq=False)
class Contact:
    """
    A point or a surface of a link that the ground, or another body that cannot move, holds still.

    Attributes
    ----------
    link : str
    kind : {'point', 'surface'}
        A point, whose three coordinates are held, such as the foot of a quadruped; or a surface
        that cannot turn either, such as the sole of a humanoid.
    placement : array_like, shape (3,) or (4, 4)
        Position, m, or pose of the contact's frame in the link's frame. The z axis of a surface is
        normal to it and points from the ground into the robot.
    normal : array_like, shape (3,)
        Of the ground at a point, in the axes of the root, towards the robot; of any length.
    friction : float
        Coefficient of Coulomb friction; infinite where slip is not to be checked.
    half_size : array_like, shape (2,)
        Half the extent of a surface along its x and y axes, m; infinite if it is not to be checked
        whether it tilts or turns.

    """

    link: str
    kind: str = 'point'
    placement: ArrayLike = field(default_factory=lambda: np.eye(4))
    normal: ArrayLike = (0.0, 0.0, 1.0)
    friction: float = inf
    half_size: ArrayLike = (inf, inf)

    def __post_init__(self) -> None:
        where = f"contact of link '{self.link}'"
        choice(f'kind of the {where}', self.kind, CONTACT_KINDS)
        placement = finite_array(f'placement of the {where}', self.placement, (3,), (4, 4))
        if placement.ndim == 1:
            placement = pose(np.eye(3), placement)
        R = placement[:3, :3]
        if (np.abs(R @ R.T - np.eye(3)).max() > ORTHONORMAL or np.linalg.det(R) < 0.0
                or np.any(placement[3] != (0.0, 0.0, 0.0, 1.0))):
            raise StateError(f'placement of the {where} must be a pose: a rotation, a position, and '
                             f'0, 0, 0, 1 below, got {shown(self.placement)}')
        normal = finite_array(f'normal of the {where}', self.normal, (3,))
        length = float(np.linalg.norm(normal))
        if length == 0.0:
            raise StateError(f'normal of the {where} must not be zero')
        sizes = [_or_infinite(f'half_size of the {where}', x)
                 for x in _two(f'half_size of the {where}', self.half_size)]
        if min(sizes) == 0.0:
            raise StateError(f'half_size of the {where} must not be zero: use a point')
        friction = _or_infinite(f'friction of the {where}', self.friction)
        for label, value in (('placement', placement), ('normal', normal / length),
                             ('friction', friction), ('half_size', tuple(sizes))):
            object.__setattr__(self, label, value)


def _or_infinite(label: str, value: object) -> float:
    """Return a number that is not negative."""
    return inf if isinstance(value, float) and value == inf else number(label, value, 0.0)


def _two(label: str, values: object) -> Sequence[object]:
    try:
        x, y = values       # type: ignore[misc]
    except (TypeError, ValueError):
        raise StateError(f'{label} must be two numbers, got {shown(values)}') from None
    return x, y


class ContactCheck(NamedTuple):
    """Whether one contact can exert its wrench: see `check_contacts`."""

    normal_force: float     # N, positive where the ground presses
    friction_ratio: float   # tangential force over its limit, friction times normal force
    # Point on which the ground presses, (3,), in the root's frame, m; NaN if it does not press.
    center_of_pressure: np.ndarray
    # Tilting moment over its limit: 1 where the centre of pressure is at an edge.
    tilt_ratio: float
    torsion_ratio: float    # moment about the normal over its limit

    @property
    def holds(self) -> bool:
        """Return whether the contact neither lifts off nor slips, tilts or turns."""
        return (self.normal_force >= 0.0
                and max(self.friction_ratio, self.tilt_ratio, self.torsion_ratio) <= 1.0)


class ConstrainedDynamics(NamedTuple):
    """Result of `constrained_dynamics`."""

    a: np.ndarray           # accelerations (nv,), rad/s^2 or m/s^2
    # (contacts, 6): moment, N m, zero for points, and force, N, on the robot at the contact's
    # origin, in the axes of the root.
    wrenches: np.ndarray
    redundant: int          # equations of contacts that depend on others; 0: wrenches are unique


class ConstrainedInverseDynamics(NamedTuple):
    """Result of `constrained_inverse_dynamics`."""

    tau: np.ndarray         # torques (nv,), N m or N; zero where no motor is
    wrenches: np.ndarray    # (contacts, 6), as of `ConstrainedDynamics`
    checks: tuple[ContactCheck, ...]    # one for each contact


class ContactBuffers:
    """The contacts of the last call, and buffers for their Jacobians and the kernel."""

    def __init__(self, model: Model, contacts: tuple[Contact, ...]) -> None:
        for contact in contacts:
            if not isinstance(contact, Contact):
                raise StateError('contacts must be a sequence of Contact, got '
                                 f'{shown(contact)} in it')
            model.link_index(contact.link)
        n, self.contacts = model.nv, contacts
        self.table = np.array([[*contact.placement[:3, 3], contact.kind == 'surface']
                               for contact in contacts]).reshape(-1, 4)
        self.frames = np.zeros((len(contacts), FRAME_ROWS, max(n, 6)))
        # Link, and where its Jacobian, its Jdot v and its pose are written.
        self.places = [(contact.link, block[:BIAS, :n], block[BIAS, :6], block[POSE:, :4])
                       for contact, block in zip(contacts, self.frames)]
        # Which entries of the wrenches are unknown, as indices of all entries.
        held = np.ones((len(contacts), 6), bool)
        held[:, :3] = self.table[:, 3:]
        self.held = np.flatnonzero(held)
        m = self.equations = len(self.held)
        self.transposed = np.zeros((n, m + 1))      # J^T, and a column that the kernel uses
        self.work = (np.zeros((n, n)), self.transposed, np.zeros((m + 1, m + 1))[:m],
                     np.zeros(m, np.int64), np.zeros((WORK_ROWS, m + 1)))
        self.a, self.wrenches = np.zeros(n), np.zeros((len(contacts), 6))


class LastContacts:
    """Holds the buffers of the contacts that were last used."""

    def __init__(self, w: WorkspaceBase) -> None:
        self.buffers = ContactBuffers(w.model, ())

    def of(self, model: Model, contacts: object) -> ContactBuffers:
        """Return the buffers of contacts, which are new if others were used last."""
        try:
            given = tuple(contacts)     # type: ignore[arg-type]
        except TypeError:
            raise StateError('contacts must be a sequence of Contact, got '
                             f'{shown(contacts)}') from None
        if given != self.buffers.contacts:
            self.buffers = ContactBuffers(model, given)
        return self.buffers
