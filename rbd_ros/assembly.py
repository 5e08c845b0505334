# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From links and joints to the arrays that the kernels read (`rbd_ros.bodies`)."""

from dataclasses import dataclass

import numpy as np
from rbd_ros import bodies
from rbd_ros.joints import joint_screws, X, Y, Z
from rbd_ros.spatial import pose


@dataclass(frozen=True)
class Tree:
    """
    The arrays of a robot, with one velocity for every joint, mimicking ones included.

    Attributes
    ----------
    robot : ndarray, shape (velocities + 1, CONSTANTS)
        One row per body; row 0 is the ground. PARENT is the row of the parent.
    screws : int or None
        1 where every joint is a screw, None elsewhere.
    link_body : ndarray of int, shape (links,)
        The row of the body that each link belongs to.
    link_pose : ndarray, shape (links, 4, 4)
        The pose of each link's frame in that body's frame.

    """

    robot: np.ndarray
    screws: int | None
    link_body: np.ndarray
    link_pose: np.ndarray


def turn_z_to(axis):
    """Return a rotation whose third column is ``axis``; exact for the axes of coordinates."""
    if np.array_equal(axis, Z):
        return np.eye(3)
    # The coordinate axis least along the given one makes a well-conditioned triad.
    x = np.cross((X, Y, Z)[np.argmin(np.abs(axis))], axis)
    x = x / np.linalg.norm(x)
    return np.column_stack((x, np.cross(axis, x), axis))


def pseudo_inertia(mass, com, inertia):
    """Return the 4x4 integral of (r, 1) (r, 1)^T over a body's mass."""
    P = np.zeros((4, 4))
    P[:3, :3] = 0.5 * np.trace(inertia) * np.eye(3) - inertia + mass * np.outer(com, com)
    P[:3, 3] = P[3, :3] = mass * np.asarray(com)
    P[3, 3] = mass
    return P


def inertia_row(P):
    """Return a pseudo-inertia as the ten numbers Sigma, h, m of a row."""
    return [P[0, 0], P[1, 1], P[2, 2], P[0, 1], P[0, 2], P[1, 2], *P[:3, 3], P[3, 3]]


def assemble(links, joints, gravity):
    """
    Return the arrays of a robot.

    Parameters
    ----------
    links : sequence of Link
        Depth-first, the root first.
    joints : sequence of Joint
        Joint k leads to link k + 1.
    gravity : ndarray, shape (3,)
        Acceleration of gravity in the root's frame, m/s^2.

    Returns
    -------
    Tree
        With read-only arrays.

    """
    rows = [_row(np.eye(4), 0.0, 0.0, 0.0, 0, bodies.SCREW, 2, 0)]
    rows[0][bodies.GRAVITY:bodies.GRAVITY + 3] = gravity
    inertias = [np.zeros((4, 4))]
    body_of, pose_of = {}, {}
    if links:
        body_of[links[0].name], pose_of[links[0].name] = 0, np.eye(4)
    q = 0
    for joint in joints:
        up = body_of[joint.parent]
        rest = pose_of[joint.parent] @ joint.placement
        if joint.kind in ('spherical', 'free'):
            first = bodies.FREE if joint.kind == 'free' else bodies.BALL
            for k in range(joint.nv):
                turn, slide = (1.0, 0.0) if k < 3 else (0.0, 1.0)
                rows.append(_row(rest, turn, slide, joint.armature[k], up,
                                 first if k == 0 else bodies.FOLLOW, k % 3, q))
                up, rest = len(rows) - 1, np.eye(4)
        else:
            for k, (axis, turn, slide) in enumerate(joint_screws(joint)):
                turned = pose(turn_z_to(axis), np.zeros(3))
                rows.append(_row(rest @ turned, turn, slide, joint.armature[k], up,
                                 bodies.SCREW, 2, q + k))
                up, rest = len(rows) - 1, pose(turned[:3, :3].T, np.zeros(3))
        inertias += [np.zeros((4, 4))] * (len(rows) - len(inertias))
        body_of[joint.child], pose_of[joint.child] = up, rest
        q += joint.nq
    for link in links:
        T, body = pose_of[link.name], body_of[link.name]
        inertias[body] = inertias[body] + T @ pseudo_inertia(
            link.mass, link.com, link.inertia) @ T.T
    robot = np.array(rows)
    robot[0, bodies.Q] = q
    robot[:, bodies.INERTIA:bodies.INERTIA + 10] = [inertia_row(P) for P in inertias]
    tree = Tree(robot, 1 if np.all(robot[:, bodies.KIND] == bodies.SCREW) else None,
                np.array([body_of[link.name] for link in links], int),
                np.array([pose_of[link.name] for link in links]).reshape(-1, 4, 4))
    for array in (tree.robot, tree.link_body, tree.link_pose):
        array.flags.writeable = False
    return tree


def _row(T, turn, slide, armature, up, kind, axis, q):
    row = np.zeros(bodies.CONSTANTS)
    row[bodies.ROTATION:bodies.ROTATION + 9] = T[:3, :3].T.ravel()
    row[bodies.POSITION:bodies.POSITION + 3] = T[:3, 3]
    row[bodies.TURN], row[bodies.SLIDE] = turn, slide
    row[bodies.ARMATURE], row[bodies.PARENT] = armature, up
    row[bodies.KIND], row[bodies.AXIS], row[bodies.Q] = kind, axis, q
    return row
