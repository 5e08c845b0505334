# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Contacts, their buffers in a workspace, and the results of the functions that take them."""

from collections.abc import Sequence
from dataclasses import dataclass, field
from math import inf
from typing import NamedTuple

import numpy as np
from rbd_ros._internal.arrays import real_array
from rbd_ros._internal.text import shown
from rbd_ros.errors import StateError
from rbd_ros.kernels.contacts import BIAS, FRAME_ROWS, POSE
from rbd_ros.kernels.lanes.lanes import zeros_for_lanes
from rbd_ros.kernels.mass_matrix_factor import lanes_of_columns
from rbd_ros.model.arguments import choice, finite_array
from rbd_ros.model.se3 import is_pose, pose
from rbd_ros.workspace.memory.robot_arrays import RobotArrays

CONTACT_KINDS = ('point', 'surface')
ORTHONORMAL = 1e-6      # largest deviation of R^T R from 1


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
    placement : ndarray, shape (4, 4)
        Pose of the contact's frame in the link's frame, given as such or as a position (3,), m.
        The z axis of a surface is normal to it and points from the ground into the robot.
    normal : ndarray, shape (3,)
        Unit normal of the ground at a point, in the axes of the root, towards the robot; given at
        any length.
    friction : float
        Coefficient of Coulomb friction; infinite (the default) if slip need not be checked.
    half_size : tuple of float
        Half the extent of a surface along its x and y axes, m; infinite (the default) if tilting
        and turning need not be checked.

    """

    link: str
    kind: str = 'point'
    placement: np.ndarray = field(default_factory=lambda: np.eye(4))
    normal: np.ndarray = field(default_factory=lambda: np.array([0.0, 0.0, 1.0]))
    friction: float = inf
    half_size: tuple[float, float] = (inf, inf)

    def __post_init__(self) -> None:
        where = f"contact of link '{self.link}'"
        choice(f'kind of the {where}', self.kind, CONTACT_KINDS)
        placement = finite_array(f'placement of the {where}', self.placement, (3,), (4, 4))
        if placement.ndim == 1:
            placement = pose(np.eye(3), placement)
        if not is_pose(placement, ORTHONORMAL):
            raise StateError(f'placement of the {where} must be a position or a pose, got '
                             f'{shown(self.placement)}')
        normal = finite_array(f'normal of the {where}', self.normal, (3,))
        length = np.linalg.norm(normal)
        half_size = real_array(self.half_size)
        if half_size is None or half_size.shape != (2,) or not np.all(half_size > 0.0):
            raise StateError(f'half_size of the {where} must be two positive lengths, got '
                             f'{shown(self.half_size)}')
        if self.kind == 'point' and np.any(half_size < inf):
            raise StateError(f"half_size of the {where}: a 'point' has none, use the kind "
                             "'surface'")
        friction = real_array(self.friction)
        if friction is None or friction.shape != () or not friction >= 0.0:
            raise StateError(f'friction of the {where} must be a number of at least 0, got '
                             f'{shown(self.friction)}')
        if length == 0.0:
            raise StateError(f'normal of the {where} must not be zero')
        for label, value in (('placement', placement), ('normal', normal / length),
                             ('friction', float(friction)),
                             ('half_size', tuple(half_size.tolist()))):
            object.__setattr__(self, label, value)


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
    """Contacts, and buffers for their Jacobians and the kernel."""

    def __init__(self, w: RobotArrays, contacts: tuple[Contact, ...]) -> None:
        model = w.model
        for contact in contacts:
            if not isinstance(contact, Contact):
                raise StateError(f'contacts must be a list of Contact, got {shown(contact)} in it')
            model.link_index(contact.link)
        n, self.contacts = model.nv, contacts
        self.table = np.array([[*contact.placement[:3, 3], contact.kind == 'surface']
                               for contact in contacts]).reshape(-1, 4)
        self.frames = np.zeros((len(contacts), FRAME_ROWS, max(n, 6)))
        # As kernels for trees read them; closed loops have none.
        self.link_rows = np.array([] if model.loops is not None else [
            w._link_row(contact.link)[0] for contact in contacts]).reshape(-1, 14)
        # Links, and where their Jacobian, Jdot v and pose are written.
        self.places = [(contact.link, block[:BIAS, :n], block[BIAS, :6], block[POSE:, :4])
                       for contact, block in zip(contacts, self.frames)]
        # Which entries of the wrenches are unknown, as indices of all entries.
        held = np.ones((len(contacts), 6), bool)
        held[:, :3] = self.table[:, 3:]
        self.held = np.flatnonzero(held)
        m = self.equations = len(self.held)
        # J^T, with columns that the kernel needs, and the same memory as lanes; its other buffers.
        self.transposed, lanes = lanes_of_columns(n, m + 1)
        squares = zeros_for_lanes(lanes.shape[1:])
        self.work = (np.zeros((n, n)), self.transposed, lanes, np.zeros((m, n)),
                     *lanes_of_columns(m, m + 1), np.zeros((m, m)), squares.reshape(-1), squares,
                     np.zeros(m, np.int64), np.zeros((4, max(m, n))))
        self.a, self.wrenches = np.zeros(n), np.zeros((len(contacts), 6))


def contact_buffers(w: RobotArrays, contacts: Sequence[Contact]) -> ContactBuffers:
    """Return the buffers of contacts, which are new if others were used last."""
    if not isinstance(contacts, (list, tuple)):
        raise StateError(f'contacts must be a list of Contact, got {shown(contacts)}')
    found, given = w._scratch.get(ContactBuffers), tuple(contacts)
    if found is None or found.contacts != given:
        found = w._scratch[ContactBuffers] = ContactBuffers(w, given)
    return found
