# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Turns links and joints into the arrays that the kernels read (`rbd_ros.kernels.tree.layout`)."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import sqrt

import numpy as np
from rbd_ros.kernels.tree import columns
from rbd_ros.model.coordinates import Coordinates
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, joint_screws
from rbd_ros.model.se3 import pose

# Entries of a 4x4 pseudo-inertia in the order of the kernels: Sigma (6), h (3), m.
PSEUDO_ENTRIES = ..., (0, 1, 2, 0, 0, 1, 0, 1, 2, 3), (0, 1, 2, 1, 2, 2, 3, 3, 3, 3)

AXIAL = [2, 8, 9]   # integrals of z^2, z and 1 among them


@dataclass(frozen=True)
class Tree:
    """The arrays of a robot."""

    # (bodies, CONSTANTS): row 0 is the ground, PARENT the parent's row.
    robot: np.ndarray
    traits: float | None    # see `rbd_ros.kernels.tree.columns`
    # For each link, the row of its body and the pose (4, 4) of its frame in the body's frame.
    link_body: np.ndarray
    link_pose: np.ndarray


def turn_z_to(axis: np.ndarray) -> np.ndarray:
    """Return a rotation whose third column is ``axis``; exact for coordinate axes."""
    z = axis.tolist()
    if z == [0.0, 0.0, 1.0]:
        return np.eye(3)
    # The coordinate axis farthest from the given one makes a well-conditioned triad.
    least = min(range(3), key=lambda k: abs(z[k]))
    x, y, w = _cross([float(k == least) for k in range(3)], z)
    length = sqrt(x * x + y * y + w * w)
    x = (x / length, y / length, w / length)
    return np.array((x, _cross(z, x), z)).T


def _cross(a: Sequence[float], b: Sequence[float]) -> tuple[float, float, float]:
    """Return a x b; np.cross takes ten times as long for single vectors."""
    (ax, ay, az), (bx, by, bz) = a, b
    return (ay * bz - az * by, az * bx - ax * bz, ax * by - ay * bx)


def pseudo_inertias(links: Sequence[Link]) -> np.ndarray:
    """Return the 4x4 integral of (r, 1) (r, 1)^T over the mass of each link, in its frame."""
    masses = np.array([link.mass for link in links])
    coms = np.array([link.com for link in links]).reshape(-1, 3)
    inertias = np.array([link.inertia for link in links]).reshape(-1, 3, 3)
    P = np.zeros((len(links), 4, 4))
    P[:, :3, :3] = (0.5 * np.trace(inertias, axis1=1, axis2=2)[:, None, None] * np.eye(3)
                    - inertias + masses[:, None, None] * coms[:, :, None] * coms[:, None, :])
    P[:, :3, 3] = P[:, 3, :3] = masses[:, None] * coms
    P[:, 3, 3] = masses
    return P


def assemble(links: Sequence[Link], joints: Sequence[Joint], gravity: np.ndarray) -> Tree:
    """Return the arrays of a robot; links are depth-first, joint k leads to link k + 1."""
    rows = [_row(np.eye(4), 0.0, 0.0, 0.0, 0, columns.SCREW, 2, 0)]
    body_of, pose_of = {}, {}
    if links:
        body_of[links[0].name], pose_of[links[0].name] = 0, np.eye(4)
    q = 0
    for joint in joints:
        up = body_of[joint.parent]
        rest = pose_of[joint.parent] @ joint.placement
        if joint.kind in ('spherical', 'free'):
            first = columns.FREE if joint.kind == 'free' else columns.BALL
            for k in range(joint.nv):
                turn, slide = (1.0, 0.0) if k < 3 else (0.0, 1.0)
                rows.append(_row(rest, turn, slide, joint.armature[k], up,
                                 first if k == 0 else columns.FOLLOW, k % 3, q))
                up, rest = len(rows) - 1, np.eye(4)
        else:
            for k, (axis, turn, slide) in enumerate(joint_screws(joint)):
                turned = pose(turn_z_to(axis), 0.0)
                rows.append(_row(rest @ turned, turn, slide, joint.armature[k], up,
                                 columns.SCREW, 2, q + k))
                up, rest = len(rows) - 1, turned.T
        body_of[joint.child], pose_of[joint.child] = up, rest
        q += joint.nq
    link_body = np.array([body_of[link.name] for link in links], int)
    link_pose = np.array([pose_of[link.name] for link in links]).reshape(-1, 4, 4)
    P = np.zeros((len(rows), 4, 4))
    np.add.at(P, link_body, link_pose @ pseudo_inertias(links) @ link_pose.transpose(0, 2, 1))
    robot = np.array(rows)
    robot[0, columns.GRAVITY:columns.GRAVITY + 3] = gravity
    robot[0, columns.Q], robot[0, columns.VELOCITY] = q, len(rows) - 1
    robot[1:, columns.VELOCITY] = np.arange(len(rows) - 1)
    parents = robot[1:, columns.PARENT].astype(int)
    robot[parents[parents != np.arange(len(parents))], columns.BRANCHES] = 1.0
    robot[:, columns.INERTIA:columns.INERTIA + 10] = P[PSEUDO_ENTRIES]
    tree = Tree(robot, columns.ONLY_SCREWS if np.all(robot[:, columns.KIND] == columns.SCREW)
                else columns.ANY_JOINTS, link_body, link_pose)
    for array in (tree.robot, tree.link_body, tree.link_pose):
        array.flags.writeable = False
    return tree


def with_shared_coordinates(tree: Tree, to_tree: Coordinates) -> Tree:
    """Return the arrays of a robot whose joints share coordinates."""
    # Multipliers scale the columns of S, offsets turn and slide the bodies' frames at q = 0.
    robot = tree.robot.copy()
    bodies, q = robot[1:], tree.robot[1:, columns.Q].astype(int)
    multiplier, offset = to_tree.ratio, to_tree.offset[q]
    turn = (bodies[:, columns.TURN] * offset)[:, None]
    x, y, z = (bodies[:, k:k + 3].copy() for k in columns.ROTATION + np.arange(0, 9, 3))
    bodies[:, columns.ROTATION:columns.ROTATION + 6] = np.hstack((
        np.cos(turn) * x + np.sin(turn) * y, np.cos(turn) * y - np.sin(turn) * x))
    bodies[:, columns.POSITION:columns.POSITION + 3] += (
        bodies[:, columns.SLIDE] * offset)[:, None] * z
    for column, power in ((columns.TURN, 1), (columns.SLIDE, 1), (columns.ARMATURE, 2)):
        bodies[:, column] *= multiplier ** power
    bodies[:, columns.Q], bodies[:, columns.VELOCITY] = to_tree.source[q], to_tree.column
    robot[0, columns.Q], robot[0, columns.VELOCITY] = to_tree.nq, to_tree.nv
    robot.flags.writeable = False
    return replace(tree, robot=robot, traits=columns.SHARING_JOINTS
                   if tree.traits is columns.ANY_JOINTS else columns.SHARING_SCREWS)


def carrying(tree: Tree) -> np.ndarray:
    """Return the rows of the ground, of links' bodies, and of those that get their rods, too."""
    rows, up = {0, *tree.link_body.tolist()}, tree.robot[:, columns.PARENT].astype(int).tolist()
    # Between the axes of a joint there is no link.
    for k in np.flatnonzero(hinges(tree.robot))[::-1].tolist():
        if k in rows:
            rows.add(up[k])
    return np.array(sorted(rows))


def hinges(bodies: np.ndarray) -> np.ndarray:
    """Return whether bodies turn about an axis and do nothing else; none beside quaternions."""
    return np.all(bodies[:, columns.KIND] == columns.SCREW) & (
        bodies[:, columns.TURN] != 0.0) & (bodies[:, columns.SLIDE] == 0.0)


def without_rods(bodies: np.ndarray) -> np.ndarray:
    """
    Return the table of bodies in which those on hinges have fewer inertial parameters.

    A thin rod on the axis of a hinge moves in the same way if it is fixed to the parent. The rod
    that is moved there has the mass of the body and its integrals of z and z^2. This changes no
    torques and no matrices, except those of Coriolis terms that are summed over bodies.

    """
    bodies, up = bodies.copy(), bodies[:, columns.PARENT].astype(int)
    G = bodies[:, columns.INERTIA:columns.INERTIA + 10]
    for k in np.flatnonzero(hinges(bodies))[::-1]:
        T = np.vstack((bodies[k, :12].reshape(4, 3).T, np.eye(4)[3]))[:, 2:]
        zz, z, m = G[k, AXIAL]
        G[k, AXIAL] = 0.0
        G[up[k]] += (T @ np.array([[zz, z], [z, m]]) @ T.T)[PSEUDO_ENTRIES[1:]]
    return bodies


def inertial_constants(tree: Tree, whole: bool = False) -> np.ndarray:
    """Return gravity, m/s^2, and inertias of links' bodies, whole or `without_rods`."""
    bodies = tree.robot if whole else without_rods(tree.robot)
    return np.append(bodies[0, columns.GRAVITY:columns.GRAVITY + 3],
                     bodies[carrying(tree), columns.INERTIA:columns.INERTIA + 10])


def empty_bodies(tree: Tree, stays: Sequence[bool]) -> Tree:
    """Return the arrays of a robot without `inertial_constants`, and without some links."""
    robot = tree.robot.copy()
    robot[0, columns.GRAVITY:columns.GRAVITY + 3] = 0.0
    robot[:, columns.INERTIA:columns.INERTIA + 10] = 0.0
    return replace(tree, robot=robot, link_body=tree.link_body[stays],
                   link_pose=tree.link_pose[stays])


def _row(T: np.ndarray, turn: float, slide: float, armature: float, up: int, kind: int, axis: int,
         q: int) -> list[float]:
    """Return the constants of a body without its inertia, in the order of their columns."""
    return [*T[:3, :3].T.ravel().tolist(), *T[:3, 3].tolist(), turn, slide, up, armature,
            *(0.0,) * 10, kind, axis, q, 0.0, 0.0, 0.0]


def pack(bodies: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return the table of `rbd_ros.kernels.tree.layout`, and the slots of the bodies."""
    i, lanes = np.arange(len(bodies)), columns.LANES
    # As `layout.end` and `layout.slot`, which only kernels can call.
    robot = np.zeros(-(-len(bodies) // lanes) * columns.BLOCK + len(bodies) - 1)
    slots = i + i // lanes * (columns.BLOCK - lanes)
    robot[slots[:, None] + lanes * np.arange(columns.CONSTANTS)] = bodies
    whole = robot.view(np.int64)
    whole[slots + lanes * columns.NUMBER] = i
    whole[slots + lanes * columns.VELOCITY] = bodies[:, columns.VELOCITY]
    whole[slots + lanes * columns.PARENT] = slots[bodies[:, columns.PARENT].astype(int)]
    whole[lanes * columns.PARENT] = len(bodies)
    return robot, slots
