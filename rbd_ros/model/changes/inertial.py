# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The inertial parameters of a robot's moving bodies as one vector.

A body is the link that a moving joint leads to, with all links fixed to it. It has ten parameters,
[m, m cx, m cy, m cz, Ixx, Iyy, Izz, Ixy, Ixz, Iyz], in that link's frame and about its origin,
where Ixy = -integral of x y. The root link and the links fixed to it do not move and have no
parameters. Armature belongs to joints and is not included. ``model`` is the robot; StateError is
raised for a vector of the wrong form, ModelError for negative masses.

"""

from __future__ import annotations

from dataclasses import replace

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, real_array
from rbd_ros.model.body_table import pseudo_inertias
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import inertia_matrix, skew

PARAMETERS = ('m', 'mcx', 'mcy', 'mcz', 'Ixx', 'Iyy', 'Izz', 'Ixy', 'Ixz', 'Iyz')
# Rows and columns of Ixx, Iyy, Izz, Ixy, Ixz, Iyz in the inertia matrix.
ENTRIES = ((0, 1, 2, 0, 0, 1), (0, 1, 2, 1, 2, 2))


def inertia_of_parameters(pi: npt.ArrayLike) -> np.ndarray:
    """Return the 6x6 inertia of ten parameters [Kim (22), Garofalo et al. (8)-(12)]."""
    pi = np.asarray(pi, float)
    inertia = np.zeros((3, 3))
    inertia[ENTRIES] = inertia[ENTRIES[::-1]] = pi[4:]
    return np.block([[inertia, skew(pi[1:4])], [-skew(pi[1:4]), pi[0] * np.eye(3)]])


def parameters_of_inertia(G: np.ndarray) -> np.ndarray:
    """Return the ten parameters of a 6x6 inertia: the inverse of `inertia_of_parameters`."""
    return np.array([G[3, 3], G[2, 4], G[0, 5], G[1, 3], *G[ENTRIES]])


def centre_and_inertia(pi: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the centre of mass of a body, m, and its inertia about it, kg m^2."""
    # Symmetric to the last bit: far from the origin, the rounding error of m c^2 may be as large
    # as the inertia.
    com = pi[1:4] / pi[0]
    steiner = pi[0] * (com @ com * np.eye(3) - np.outer(com, com))
    return com, inertia_of_parameters(pi)[:3, :3] - steiner


def pseudo_inertia_of_parameters(pi: npt.ArrayLike) -> np.ndarray:
    """Return the integrals (..., 4, 4) of (r, 1) (r, 1)^T over the mass of bodies (..., 10)."""
    pi = np.asarray(pi, float)
    P = np.zeros((*pi.shape[:-1], 4, 4))
    P[..., ENTRIES[0], ENTRIES[1]] = P[..., ENTRIES[1], ENTRIES[0]] = -pi[..., 4:]
    half_trace = 0.5 * pi[..., 4:7].sum(axis=-1)
    P[..., :3, :3] += half_trace[..., None, None] * np.eye(3)
    P[..., :3, 3] = P[..., 3, :3] = pi[..., 1:4]
    P[..., 3, 3] = pi[..., 0]
    return P


def parameters_of_pseudo_inertia(P: np.ndarray) -> np.ndarray:
    """Return ten parameters for each 4x4 matrix: the inverse of `pseudo_inertia_of_parameters`."""
    second = P[..., :3, :3]
    trace = np.trace(second, axis1=-2, axis2=-1)
    inertia = trace[..., None, None] * np.eye(3) - second
    return np.concatenate((P[..., 3, 3][..., None], P[..., :3, 3],
                           inertia[..., ENTRIES[0], ENTRIES[1]]), axis=-1)


def inertia_matrices(model: Model) -> np.ndarray:
    """Return the 6x6 inertia G_i of each link, shape (links, 6, 6) [K (22)]."""
    return np.array([inertia_matrix(link.mass, link.com, link.inertia)
                     for link in model.links]).reshape(-1, 6, 6)


def moving_bodies(model: Model) -> dict[int, list[tuple[int, np.ndarray]]]:
    """Return the links of each body, by the link of its joint (first), with poses in its frame."""
    bodies, place = {}, {}
    for k, joint in enumerate(model.joints, 1):
        up = model.link_index(joint.parent)
        if joint.nv:
            bodies[k], place[k] = [(k, np.eye(4))], (k, np.eye(4))
        elif up in place:
            body, T = place[up]
            place[k] = body, T @ joint.placement
            bodies[body].append((k, place[k][1]))
    return bodies


def body_names(model: Model) -> tuple[str, ...]:
    """Return the name of the link that stands for each moving body."""
    return tuple(model.link_names[k] for k in moving_bodies(model))


def inertial_parameter_names(model: Model) -> tuple[str, ...]:
    """Return the names ``'<link>/m'``, ``'<link>/mcx'`` ... ``'<link>/Iyz'`` for each body."""
    return tuple(f'{link}/{parameter}' for link in body_names(model) for parameter in PARAMETERS)


def inertial_parameters(model: Model) -> np.ndarray:
    """
    Return the inertial parameters pi (10 * bodies,), with the links that are fixed to each body.

    kg, kg m and kg m^2, in the order of `inertial_parameter_names`. [Garofalo et al. (8), (9),
    with the inertia about the frame's origin.]

    """
    bodies = moving_bodies(model)
    parts = [(row, k, T) for row, links in enumerate(bodies.values()) for k, T in links]
    P = np.zeros((len(bodies), 4, 4))
    if parts:
        rows, links, T = map(np.array, zip(*parts))
        np.add.at(P, rows, T @ pseudo_inertias(model.links)[links] @ T.transpose(0, 2, 1))
    return parameters_of_pseudo_inertia(P).ravel()


def with_inertial_parameters(model: Model, pi: npt.ArrayLike) -> Model:
    """
    Return the robot with other inertial parameters of its moving bodies.

    Parameters
    ----------
    model, pi : Model, array_like of shape (10 * bodies,)
        As returned by `inertial_parameters`; masses must not be negative. The link that a joint
        leads to gets them all; links fixed to it become massless. The uncertainty of the robot
        is dropped.

    """
    blocks = check_parameters(model, pi).reshape(-1, 10)
    links = list(model.links)
    for (body, parts), block in zip(moving_bodies(model).items(), blocks):
        for k, _ in parts:
            links[k] = replace(links[k], mass=0.0, com=np.zeros(3), inertia=np.zeros((3, 3)))
        mass, name = block[0], links[body].name
        if mass < 0.0 or (mass == 0.0 and np.any(block)):
            raise ModelError(f"link '{name}': its mass is {mass:.6g} kg, with the other "
                             f'parameters {block[1:]}; no link has that')
        if mass > 0.0:
            com, inertia = centre_and_inertia(block)
            links[body] = replace(links[body], mass=float(mass), com=com, inertia=inertia)
    return rebuild(replace(model, uncertainty=None), links=links)


def check_parameters(model: Model, pi: npt.ArrayLike) -> np.ndarray:
    """Return ``pi`` as an array with ten finite numbers per moving body."""
    check_model(model)
    names = inertial_parameter_names(model)
    pi = real_array(pi)
    if pi is None or pi.shape != (len(names),):
        raise StateError('pi must have ten real numbers for each moving body of robot '
                         f"'{model.name}', {len(names)} in all")
    if not np.all(np.isfinite(pi)):
        k = np.flatnonzero(~np.isfinite(pi))[0]
        raise StateError(f"pi of '{names[k]}' is {pi[k]}; it must be finite")
    return pi


def inconsistent_bodies(model: Model, pi: npt.ArrayLike) -> tuple[str, ...]:
    """
    Return the links whose body's pseudo-inertia is not positive definite.

    They include massless bodies and those whose mass lies in a point, on a line or in a plane.

    Parameters
    ----------
    model, pi : Model, array_like of shape (10 * bodies,)
        As returned by `inertial_parameters`.

    """
    blocks = check_parameters(model, pi).reshape(-1, 10)
    smallest = np.linalg.eigvalsh(pseudo_inertia_of_parameters(blocks))[:, 0]
    return tuple(name for name, least in zip(body_names(model), smallest) if least <= 0.0)
