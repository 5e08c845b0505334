# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Dynamics of a robot that stands on its feet, or touches something else that cannot move.

    M a + C v + g = tau + sum_i J_i^T f_i,    J_i a + Jdot_i v = 0

where f_i is the wrench or force on the robot at contact i, and J_i v is the velocity of its link
there: of a point, three rows; of a surface, with the angular velocity, six. Contacts hold in all
directions: forces that pull or slip are found and reported by `check_contacts`, not avoided. The
wrenches by which constraints close loops are here, too. Errors are those of `rbd_ros.dynamics`;
StateError is also raised for invalid contacts.

"""

from __future__ import annotations

from collections.abc import Sequence
from math import hypot, inf, isinf

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros._internal.text import listed
from rbd_ros.analysis.jacobians import JacobianMethods
from rbd_ros.dynamics import DynamicsMethods
from rbd_ros.errors import StateError
from rbd_ros.kernels import contacts as kernels
from rbd_ros.kernels.link_jacobians import jacobians_and_biases
from rbd_ros.kinematics import forward_kinematics, KinematicsMethods
from rbd_ros.model.arguments import finite_array, mask, Wrenches
from rbd_ros.model.joints import KINDS
from rbd_ros.model.loops import equation_rows
from rbd_ros.model.model import Model
from rbd_ros.workspace.base import WorkspaceBase
from rbd_ros.workspace.contacts import (
    ConstrainedDynamics, ConstrainedInverseDynamics, Contact, contact_buffers, ContactBuffers,
    ContactCheck)
from rbd_ros.workspace.quantity import plain, quantity
from rbd_ros.workspace.workspace import workspace_of

__all__ = ['check_contacts', 'constrained_dynamics', 'constrained_inverse_dynamics',
           'constraint_forces']
# Largest imbalance of velocities without motors, as a share of the largest torque.
IMBALANCE = 1e-8
RANK = 1e-10  # Singular values below this share of the largest count as zero.

BRANCHES = 'the rank of the contacts decides how they are solved'


class ContactMethods(DynamicsMethods, KinematicsMethods, JacobianMethods):
    """Dynamics of a robot with contacts."""

    def _write_frames(self, q: ArrayLike, v: ArrayLike, found: ContactBuffers) -> None:
        """Write the Jacobian, Jdot v and the pose of each contact's link."""
        if self.model.loops is None:
            if not jacobians_and_biases(self.robot, self._traits, q, v, found.link_rows,
                                        found.frames):
                self._explain(q=q, v=v)
            return
        for link, J, rate, T in found.places:
            J[:], T[:] = self.world_jacobian(q, link)
            rate[:] = self.world_jacobian_dot_v(q, v, link)

    @quantity(kept=True, untraced=BRANCHES)
    def constrained_dynamics(self, q: ArrayLike, v: ArrayLike, tau: ArrayLike,
                             contacts: Sequence[Contact], *,
                             external_wrenches: Wrenches | None = None) -> ConstrainedDynamics:
        """
        Return the accelerations of a robot whose contacts hold, and the wrenches there.

        The velocities of contacts do not change, whatever they are: after a touchdown, v must be
        that after the impact, in which J v = 0. Positions drift if accelerations are integrated.
        The torques of a floating base are usually zero in the first six entries.

        Contacts may be redundant, such as four points of one foot, or the contact of a link that
        no joint moves. Accelerations are unique nevertheless; of the wrenches that explain them,
        those with the smallest sum of squares (N m and N) are returned. Redundant contacts can
        contradict each other if J v is not 0; they are then satisfied in the sense of least
        squares.

        Reference: Gauss's principle; Featherstone (2008), (8.4); the limit of proximal iterations,
        as in Carpentier, Budhiraja and Mansard (2021).

        Other Parameters
        ----------------
        contacts : list or tuple of Contact
            Any number. Reuse the same objects in a control loop.

        Returns
        -------
        ConstrainedDynamics
            With the fields ``a wrenches redundant``.

        """
        found = contact_buffers(self, contacts)
        M, b = self.mass_matrix(q), self.bias_torques(q, v, external_wrenches)
        self._write_frames(q, v, found)
        status = kernels.constrained_dynamics(
            M, b, self._kept(self._carriers), found.frames, found.table, v, tau, *found.work,
            found.a, found.wrenches)
        if status < 0:
            self._refuse(-status - 1, q)
        if not status:
            self._explain(q=q, v=v, tau=tau)
        return ConstrainedDynamics(found.a, found.wrenches, found.equations + 1 - status)

    @quantity(untraced=BRANCHES)
    def constrained_inverse_dynamics(
            self, q: ArrayLike, v: ArrayLike, a: ArrayLike, contacts: Sequence[Contact], *,
            actuated: ArrayLike | None = None, wrench_weights: ArrayLike | None = None,
            torque_weights: ArrayLike | None = None,
            external_wrenches: Wrenches | None = None) -> ConstrainedInverseDynamics:
        """
        Return torques and contact wrenches that produce accelerations, and check the wrenches.

        The equations of velocities without motors, such as those of a floating base, are satisfied
        exactly; a StateError tells what is missing if these contacts cannot. Of all solutions,
        that with the smallest

            sum wrench_weights wrenches^2 + sum torque_weights tau^2

        is returned. Friction cones and the extent of soles are reported, not imposed: that would
        take a quadratic program. Whether a keeps the contacts still is not checked.

        Other Parameters
        ----------------
        contacts : list or tuple of Contact
            Any number. Reuse the same objects in a control loop.
        actuated : array_like of bool, shape (nv,), optional
            Which velocities a motor drives; by default all but those of free joints.
        wrench_weights : array_like, shape (contacts, 6), optional
            Weights of moments, 1/(N m)^2, and forces, 1/N^2, in axes of the root; by default 1.
        torque_weights : array_like, shape (nv,), optional
            Weights of torques, 1/(N m)^2 or 1/N^2; by default 0.

        Returns
        -------
        ConstrainedInverseDynamics
            With the fields ``tau wrenches checks``.

        """
        model, found = self.model, contact_buffers(self, contacts)
        motors = self._kept(_motors) if actuated is None else mask(model, 'actuated', actuated)
        largest = np.abs(self.bias_torques(q, v, external_wrenches)).max(initial=0.0)
        tau = self.inverse_dynamics(q, v, a, external_wrenches).copy()
        largest = max(largest, np.abs(tau).max(initial=0.0))
        self._write_frames(q, v, found)
        kernels.contact_jacobian(found.frames, found.table, found.transposed)
        J_T, held = found.transposed[:, :found.equations], found.held
        # J^T f = tau without motors: the shortest f, and directions that change nothing.
        U, s, V_T = np.linalg.svd(J_T[~motors])
        rank = int(np.sum(s > RANK * s[0])) if s.size else 0
        f = V_T[:rank].T @ (U[:, :rank].T @ tau[~motors] / s[:rank])
        if wrench_weights is not None or torque_weights is not None:
            weights = [1.0] if wrench_weights is None else _weights(
                'wrench_weights', wrench_weights, (len(found.contacts), 6)).ravel()[held]
            of_torques = (np.zeros(model.nv) if torque_weights is None else
                          _weights('torque_weights', torque_weights, (model.nv,)))
            free, rows = V_T[rank:].T, np.sqrt(of_torques[motors, None]) * J_T[motors]
            scales = np.sqrt(weights)
            A = np.vstack((scales[:, None] * free, rows @ free))
            x = np.concatenate((scales * f, rows @ f - np.sqrt(of_torques[motors]) * tau[motors]))
            f = f - free @ np.linalg.lstsq(A, x)[0]
        tau -= J_T @ f
        _check_balance(model, tau, motors, largest)
        tau[~motors] = 0.0
        wrenches = np.zeros((len(found.contacts), 6))
        wrenches.flat[held] = f
        checks = tuple(_check(contact, T, wrench) for contact, (_, _, _, T), wrench
                       in zip(found.contacts, found.places, wrenches))
        return ConstrainedInverseDynamics(tau, wrenches, checks)

    def constraint_forces(self, q: ArrayLike, v: ArrayLike, a: ArrayLike) -> np.ndarray:
        """Return the forces of all equations of constraints, N and N m, in axes of frames a."""
        self.check(q=q, v=v, a=a)
        return np.zeros(0)      # without closed loops


constrained_dynamics = plain(ContactMethods.constrained_dynamics)
constrained_inverse_dynamics = plain(ContactMethods.constrained_inverse_dynamics)


def _motors(w: WorkspaceBase) -> np.ndarray:
    """Return the mask of velocities that motors drive, unless told otherwise: all but the base."""
    base = {f'{joint.name}{suffix}' for joint in w.model.joints
            if joint.kind in ('free', 'free_euler_zyx')
            for suffix in KINDS[joint.kind].velocity_suffixes}
    return np.array([name not in base for name in w.model.velocity_names], bool)


def _weights(label: str, values: ArrayLike, shape: tuple[int, ...]) -> np.ndarray:
    weights = finite_array(label, values, shape)
    if np.any(weights < 0.0):
        raise StateError(f'{label} must not be negative, got {weights.min():g}')
    return weights


def _check_balance(model: Model, rest: np.ndarray, motors: np.ndarray, largest: float) -> None:
    """Raise StateError unless velocities without motors need no torque."""
    missing = np.flatnonzero(~motors & (np.abs(rest) > IMBALANCE * largest))
    if missing.size:
        values = [f"{rest[k]:.3g} at '{model.velocity_names[k]}'" for k in missing]
        raise StateError('these contacts cannot produce the acceleration a: no motor exerts '
                         f'{listed(values)} (N m or N); add contacts, take a from '
                         '`constrained_dynamics`, or correct `actuated`')


def check_contacts(model: Model, q: ArrayLike, contacts: Sequence[Contact],
                   wrenches: ArrayLike) -> tuple[ContactCheck, ...]:
    """
    Return for each contact whether it can exert its wrench: how much it presses, slips and tilts.

    A contact holds if it presses, the tangential force lies in the friction cone, the centre of
    pressure in the surface, and the moment about the normal within the limit for four corners with
    friction that press as unevenly as the wrench requires.

    Reference: Caron, Pham and Nakamura (2015), for torsion, with pyramids of friction.

    Parameters
    ----------
    model, q, contacts
        Robot; configuration (nq,), rad or m; any number of contacts.
    wrenches : array_like, shape (contacts, 6)
        Moment, N m, and force, N, on the robot at each contact, in the axes of the root, as in the
        results of `constrained_dynamics`.

    Returns
    -------
    tuple of ContactCheck
        With the fields ``normal_force friction_ratio center_of_pressure tilt_ratio torsion_ratio``
        and the property ``holds``. Ratios are shares of what the contact can exert; they are
        infinite if it can exert nothing.

    """
    w = workspace_of(model)
    found = contact_buffers(w, contacts)
    wrenches = finite_array('wrenches', wrenches, (len(found.contacts), 6))
    return tuple(_check(contact, w.world_jacobian(q, contact.link)[1], wrench)
                 for contact, wrench in zip(found.contacts, wrenches))


def _check(contact: Contact, link: np.ndarray, wrench: np.ndarray) -> ContactCheck:
    T = link @ contact.placement
    if contact.kind == 'point':
        force = wrench[3:]
        normal = float(contact.normal @ force)
        tangential = float(np.linalg.norm(force - normal * contact.normal))
        return ContactCheck(normal, _ratio(tangential, contact.friction, normal), T[:3, 3], 0.0,
                            0.0)
    (mx, my, mz), (fx, fy, normal) = (wrench.reshape(2, 3) @ T[:3, :3]).tolist()
    (X, Y), mu, center = contact.half_size, contact.friction, np.full(3, np.nan)
    if normal > 0.0:
        center = T[:3, 3] + T[:3, :2] @ (-my / normal, mx / normal)
    tilt = max(_ratio(abs(my), X, normal), _ratio(abs(mx), Y, normal))
    torsion = 0.0
    if not isinf(mu + X + Y):
        limit, uneven = mu * (X + Y) * normal, (Y * fx, mu * mx, X * fy, mu * my)
        least = abs(uneven[0] - uneven[1]) + abs(uneven[2] - uneven[3]) - limit
        most = limit - abs(uneven[0] + uneven[1]) - abs(uneven[2] + uneven[3])
        torsion = _ratio(abs(mz - 0.5 * (least + most)), 1.0, 0.5 * (most - least))
    return ContactCheck(normal, _ratio(hypot(fx, fy), mu, normal), center, tilt, torsion)


def _ratio(x: float, factor: float, normal: float) -> float:
    """Return x as a share of its limit, factor times normal."""
    if x == 0.0:
        return 0.0
    return x / (factor * normal) if factor > 0.0 and normal > 0.0 else inf


def constraint_forces(model: Model, q: ArrayLike, v: ArrayLike,
                      a: ArrayLike) -> dict[str, np.ndarray]:
    """
    Return the wrenches by which constraints close the loops of a robot.

    They are those of rigid-body dynamics, without friction of passive joints; of least norm where
    constraints are redundant. For reading: it is slower than `inverse_dynamics`.

    Parameters
    ----------
    model, q, v, a
        Robot; arguments as for `inverse_dynamics`.

    Returns
    -------
    dict of str to ndarray of shape (6,)
        By the name of the constraint: moment, N m, and force, N, on link b about the origin of
        frame a, in its axes; link a has the opposite.

    """
    forces, wrenches = workspace_of(model).constraint_forces(q, v, a), {}
    for one, rows in equation_rows(model.constraints):
        part, wrench = forces[rows], np.zeros(6)
        wrenches[one.name] = wrench
        if one.kind == 'distance':
            T = forward_kinematics(model, q)
            T_a = T[model.link_index(one.link_a)] @ one.placement_a
            p_b = T[model.link_index(one.link_b)] @ one.placement_b[:, 3]
            line = T_a[:3, :3].T @ (p_b[:3] - T_a[:3, 3])
            wrench[3:] = part[0] * line / np.linalg.norm(line)
        else:
            wrench[:one.equations - 3], wrench[3:] = part[:-3], part[-3:]
    return wrenches
