# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Constraints that close the loops of a robot, and their table for the kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError
from rbd_ros.kernels import closed_loops
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
    robot, slots = pack(tree.robot)
    table, first = np.zeros((len(constraints), closed_loops.LOOP_COLUMNS)), 0
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
        row[closed_loops.LENGTH_M], row[closed_loops.FIRST] = one.length or 0.0, first
        first += one.equations
    n = coordinates.nv
    return Loops(tuple(constraints), first, robot, tree.screws, table, coordinates,
                 np.arange(n), n, np.zeros(0))
