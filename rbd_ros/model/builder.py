# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Builds robots in Python: one call for each link and joint."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import numpy.typing as npt
from rbd_ros.errors import ModelError
from rbd_ros.model.constraints import with_constraints
from rbd_ros.model.description import inertia_matrix, Link, numbers
from rbd_ros.model.joints import Joint, KINDS, Mimic, PER_VELOCITY, X, Y
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import build_tree, Model, STANDARD_GRAVITY, warned
from rbd_ros.model.se3 import pose, rotation_from_rpy


class ModelBuilder:
    """
    Collects links and joints and builds a `Model`.

    Examples
    --------
    >>> model = (rbd_ros.ModelBuilder('pendulum')
    ...          .link('base')
    ...          .link('bob', mass=1.0, com=(0, 0, -0.5), inertia=(0.01, 0.01, 0.01))
    ...          .joint('ball', 'spherical', 'base', 'bob', xyz=(0, 0, 2))
    ...          .build())
    >>> model.position_names
    ('ball_qx', 'ball_qy', 'ball_qz', 'ball_qw')

    """

    def __init__(self, name: str) -> None:
        self._name = name
        self._links: list[Link] = []
        self._joints: list[Joint] = []
        self._constraints: list[Constraint] = []

    def link(self, name: str, mass: float = 0.0, com: npt.ArrayLike = (0.0, 0.0, 0.0),
             inertia: npt.ArrayLike = (0.0, 0.0, 0.0)) -> ModelBuilder:
        """
        Add a link and return the builder.

        Parameters
        ----------
        name, mass : str, float
            Name, unique in the robot, and mass, kg.
        com : array_like, shape (3,)
            Centre of mass in the link's frame, m.
        inertia : array_like, shape (3,), (6,) or (3, 3)
            About the centre of mass in the link's axes, kg m^2: principal moments, or ixx, iyy,
            izz, ixy, ixz, iyz, or the matrix.

        """
        where = f"link '{name}'"
        self._links.append(Link(name, float(numbers(where, 'mass', mass, ())),
                                numbers(where, 'centre of mass', com, (3,)),
                                inertia_matrix(where, inertia)))
        return self

    def joint(self, name: str, kind: str, parent: str, child: str, *,
              xyz: npt.ArrayLike = (0.0, 0.0, 0.0), rpy: npt.ArrayLike = (0.0, 0.0, 0.0),
              axis: npt.ArrayLike = X, second_axis: npt.ArrayLike = Y, pitch: float = 0.0,
              mimic: tuple[str] | tuple[str, float] | tuple[str, float, float] | None = None,
              **limits: npt.ArrayLike) -> ModelBuilder:
        """
        Add a joint and return the builder.

        Parameters
        ----------
        name, parent, child : str
            Name, unique in the robot, and links. Coordinates have the joint's name, with the
            suffixes in `rbd_ros.model.joints.KINDS` if there are several.
        kind : str
            fixed, revolute, continuous, prismatic, helical, cylindrical, universal, planar
            (x, y, theta), euler_zyx, free_euler_zyx, spherical (q: a quaternion x, y, z, w; v: the
            angular velocity in the child's axes) or free (q: quaternion and position; v: twist in
            the child's axes).
        xyz, rpy : array_like, shape (3,)
            Pose of the child's frame in the parent's at q = 0, m and rad, as in URDF.
        axis, second_axis : array_like, shape (3,)
            In the joint's frame, of any length: the axis, or normal of a planar joint, and the
            second axis of a universal joint at q = 0.
        pitch, mimic : float, tuple of (str, float, float)
            Pitch of a helical joint, m/rad; leading joint, multiplier and offset of a mimic.
        **limits
            Limits and drive coefficients of `rbd_ros.Joint`, such as ``lower``, ``effort`` and
            ``damping``: one number, or one per velocity.

        """
        where = f"joint '{name}'"
        if kind not in KINDS:
            raise ModelError(f"{where}: its kind is '{kind}', expected one of " + ', '.join(KINDS))
        for label in limits:
            if label not in PER_VELOCITY:
                raise ModelError(f"{where}: there is no '{label}', only "
                                 + ', '.join(PER_VELOCITY))
        per_velocity: dict[str, Any] = {
            label: tuple(numbers(where, label, value, (KINDS[kind].nv,), repeat=True,
                                 infinite=True).tolist()) for label, value in limits.items()}
        if mimic is not None and (isinstance(mimic, str) or not 1 <= len(mimic) <= 3):
            raise ModelError(f'{where}: mimic must be a joint, a multiplier and an offset, got '
                             f'{mimic!r}')
        xyz, rpy, axis, second_axis = (numbers(where, label, value, (3,)) for label, value in (
            ('xyz', xyz), ('rpy', rpy), ('axis', axis), ('second axis', second_axis)))
        self._joints.append(Joint(name, kind, parent, child, pose(rotation_from_rpy(rpy), xyz),
                                  axis, second_axis, float(numbers(where, 'pitch', pitch, ())),
                                  mimic=Mimic(*mimic) if mimic else None, **per_velocity))
        return self

    def constraint(self, name: str, kind: str, link_a: str, link_b: str, *,
                   xyz_a: npt.ArrayLike = (0.0, 0.0, 0.0), rpy_a: npt.ArrayLike = (0.0, 0.0, 0.0),
                   xyz_b: npt.ArrayLike = (0.0, 0.0, 0.0), rpy_b: npt.ArrayLike = (0.0, 0.0, 0.0),
                   length: float | None = None) -> ModelBuilder:
        """
        Add a constraint, which closes a loop, and return the builder.

        Parameters
        ----------
        name, kind, link_a, link_b, length
            As for `rbd_ros.model.Constraint`.
        xyz_a, rpy_a, xyz_b, rpy_b : array_like, shape (3,)
            Poses of the two frames in those of the links, m and rad.

        """
        where = f"constraint '{name}'"
        xyz_a, rpy_a, xyz_b, rpy_b = (numbers(where, label, value, (3,)) for label, value in (
            ('xyz_a', xyz_a), ('rpy_a', rpy_a), ('xyz_b', xyz_b), ('rpy_b', rpy_b)))
        self._constraints.append(Constraint(
            name, kind, link_a, link_b, pose(rotation_from_rpy(rpy_a), xyz_a),
            pose(rotation_from_rpy(rpy_b), xyz_b), length))
        return self

    def build(self, *, gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
              independent: Sequence[str] | None = None) -> Model:
        """
        Check the description and return the robot; errors name the link or joint.

        Parameters
        ----------
        gravity, strict
            As for `rbd_ros.model.build_model`.
        independent : sequence of str, optional
            As for `rbd_ros.model.with_constraints`, if there are constraints.

        """
        tree = build_tree(self._name, self._links, self._joints, gravity)
        return warned(with_constraints(tree, self._constraints, independent), strict)
