# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Constraints that close the loops of a robot, and their table for the kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError
from rbd_ros.kernels import closed_loops
from rbd_ros.kernels.layout import PARENT
from rbd_ros.model.body_table import pack, Tree
from rbd_ros.model.coordinates import Coordinates
from rbd_ros.model.description import LARGEST, numbers
from rbd_ros.model.topology import require_unique

# Number of equations of each kind, in the order of the kernels' numbers for them.
EQUATIONS = dict(zip(('point', 'revolute', 'weld', 'distance'), closed_loops.EQUATIONS))
ROTATION_TOLERANCE = 1e-6    # of R^T R - 1 for the rotation of a placement


@dataclass(frozen=True, eq=False)
class Constraint:
    """
    A joint that closes a loop: it holds a frame of one link at a frame of another.

    Attributes
    ----------
    name, kind : str
        Name, unique among constraints; ``'point'`` (the origins coincide), ``'revolute'`` (and the
        z axes), ``'weld'`` (the frames coincide) or ``'distance'`` (the origins are apart by a
        length).
    link_a, link_b : str
        The links; the root link stands for the world.
    placement_a, placement_b : ndarray, shape (4, 4)
        Poses of the frames in those of the links, m.
    length : float, optional
        Distance of the origins, m; for this kind only.

    """

    name: str
    kind: str
    link_a: str
    link_b: str
    placement_a: np.ndarray = field(default_factory=lambda: np.eye(4))
    placement_b: np.ndarray = field(default_factory=lambda: np.eye(4))
    length: float | None = None

    @property
    def equations(self) -> int:
        """Return the number of equations."""
        return EQUATIONS[self.kind]


def check_constraint(constraint: Constraint, links: Mapping[str, int]) -> Constraint:
    """Return a constraint with arrays of its own; a ModelError names what is wrong."""
    where = f"constraint '{constraint.name}'"
    if constraint.kind not in EQUATIONS:
        raise ModelError(f"{where}: its kind is '{constraint.kind}', expected one of "
                         + ', '.join(EQUATIONS))
    for link in (constraint.link_a, constraint.link_b):
        if link not in links:
            raise ModelError(f"{where} names link '{link}', which is not there; links are "
                             + listed(list(links)))
    if constraint.link_a == constraint.link_b:
        raise ModelError(f"{where} joins link '{constraint.link_a}' to itself: name two links")
    placements = []
    for label in ('placement_a', 'placement_b'):
        T = numbers(where, label, getattr(constraint, label), (4, 4))
        if (np.max(np.abs(T[:3, :3].T @ T[:3, :3] - np.eye(3))) > ROTATION_TOLERANCE
                or np.linalg.det(T[:3, :3]) < 0.0 or T[3].tolist() != [0.0, 0.0, 0.0, 1.0]
                or np.max(np.abs(T)) > LARGEST):
            raise ModelError(f'{where}: its {label} is no pose: a rotation, a position, and the '
                             'row 0, 0, 0, 1')
        T.flags.writeable = False
        placements.append(T)
    length = constraint.length
    if constraint.kind == 'distance':
        length = float(numbers(where, 'length', length, ()))
        if not 0.0 < length <= LARGEST:
            raise ModelError(f'{where}: its length must be positive, m, got {length:g}; for a '
                             "length of 0 use the kind 'point'")
    elif length is not None:
        raise ModelError(f"{where}: only the kind 'distance' has a length; leave it out")
    return replace(constraint, placement_a=placements[0], placement_b=placements[1],
                   length=length)


@dataclass(frozen=True, eq=False)
class Loops:
    """The constraints of a robot as the kernels read them, see `rbd_ros.kernels.closed_loops`."""

    constraints: tuple[Constraint, ...]
    equations: int
    robot: np.ndarray       # table of bodies, to be copied: kernels write to it
    screws: int | None
    table: np.ndarray       # one row for each constraint
    coordinates: Coordinates    # of the robot without its constraints
    # Numbers of the dependent velocities, followed by those of the independent ones.
    order: np.ndarray
    # For each independent velocity in a loop, its number among these and the group of the loop;
    # for each body of a loop, its group, its number, and whether its parent is in that group, too.
    involved: np.ndarray
    members: np.ndarray
    nv: int                 # number of independent velocities
    neutral: np.ndarray     # the closed configuration found first from the neutral one

    @property
    def own(self) -> np.ndarray:
        """Return the numbers of the independent velocities among those of all joints."""
        return self.order[len(self.order) - self.nv:]

    def arrays(self) -> tuple[np.ndarray, np.ndarray]:
        """Return new arrays for the equations and for what the kernels find."""
        n, joints = len(self.order), len(self.coordinates.columns)
        return (np.zeros((self.equations + 1, n + 2)),
                np.zeros((closed_loops.G + self.nv, max(n, joints) + 1)))


def make_loops(constraints: Sequence[Constraint], links: Mapping[str, int], tree: Tree,
               coordinates: Coordinates) -> Loops:
    """
    Return the table of constraints, which are checked; all velocities count as independent.

    ``links`` has the indices of links, ``tree`` and ``coordinates`` are of the robot without its
    constraints.

    """
    require_unique('constraint', [one.name for one in constraints])
    bodies = tree.robot[:, PARENT].astype(int)
    robot, slots = pack(tree.robot)
    table, first = np.zeros((len(constraints), closed_loops.ROW_LENGTH)), 0
    for row, one in zip(table, constraints):
        body_a, body_b = (tree.link_body[links[link]] for link in (one.link_a, one.link_b))
        if body_a == body_b:
            raise ModelError(f"constraint '{one.name}' joins links that are fixed to each other, "
                             f"'{one.link_a}' and '{one.link_b}': remove it")
        row[closed_loops.KIND] = list(EQUATIONS).index(one.kind)
        for link, placement, column in (
                (one.link_a, one.placement_a, closed_loops.BODY_A),
                (one.link_b, one.placement_b, closed_loops.BODY_B)):
            k = links[link]
            T = tree.link_pose[k] @ placement
            row[column] = slots[tree.link_body[k]]
            row[column + 1:column + 13] = (*T[:3, :3].T.ravel(), *T[:3, 3])
        row[closed_loops.CARRIER] = slots[max(_path(bodies, body_a) & _path(bodies, body_b))]
        row[closed_loops.LENGTH_M], row[closed_loops.FIRST] = one.length or 0.0, first
        first += one.equations
    n = coordinates.nv
    return Loops(tuple(constraints), first, robot, tree.screws, table, coordinates,
                 np.arange(n), all_involved(n), np.zeros((0, 3), int), n, np.zeros(0))


def _path(bodies: np.ndarray, body: int) -> set[int]:
    """Return the bodies from the ground to one, given the parent of each."""
    path = {0}
    while body:
        path.add(body)
        body = int(bodies[body])
    return path


def all_involved(n: int) -> np.ndarray:
    """Return ``involved`` if all n velocities are independent and taken to be in one loop."""
    return np.stack((np.arange(n), np.zeros(n, int)), 1)


def with_independent(loops: Loops, tree: Tree, independent: Sequence[int]) -> Loops:
    """Return the table in which only some velocities, numbers in ascending order, are free."""
    bodies, slots = tree.robot[:, PARENT].astype(int), pack(tree.robot)[1].tolist()
    column = loops.coordinates.columns[:, 0].astype(int)
    # Loops that have velocities in common are one group.
    groups: list[tuple[set[int], set[int]]] = []     # bodies and velocities
    loop_bodies = []
    for row in loops.table:
        a, b = (_path(bodies, slots.index(row[k])) for k in (closed_loops.BODY_A,
                                                             closed_loops.BODY_B))
        inside = a ^ b
        loop_bodies.append(inside)
        velocities = {int(column[body - 1]) for body in inside}
        for other in [group for group in groups if group[1] & velocities]:
            groups.remove(other)
            inside, velocities = inside | other[0], velocities | other[1]
        groups.append((inside, velocities))
    table = loops.table.copy()
    for row, own in zip(table, loop_bodies):
        row[closed_loops.GROUP] = next(k for k, (inside, _) in enumerate(groups) if own <= inside)
    order = [k for k in range(loops.coordinates.nv) if k not in {*independent}] + [*independent]
    involved = [(i, g) for i, k in enumerate(independent)
                for g, (_, velocities) in enumerate(groups) if k in velocities]
    members = [(g, body, int(bodies[body] in inside)) for g, (inside, _) in enumerate(groups)
               for body in sorted(inside)]
    return replace(loops, table=table, order=np.array(order), nv=len(independent),
                   involved=np.array(involved, int).reshape(-1, 2), members=np.array(members, int))
