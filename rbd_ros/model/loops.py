# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Constraints that close the loops of a robot, and their table for the kernels."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from itertools import chain
from math import inf

import numpy as np
from rbd_ros._internal.arrays import ByValue
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError
from rbd_ros.kernels.loops import arrays
from rbd_ros.kernels.tree.columns import PARENT, VELOCITY
from rbd_ros.model.body_table import pack, Tree
from rbd_ros.model.description import LARGEST, numbers
from rbd_ros.model.se3 import is_pose
from rbd_ros.model.topology import require_unique

# Number of equations of each kind, in the order of their numbers in the kernels.
EQUATIONS = {'point': 3, 'revolute': 5, 'weld': 6, 'distance': 1}
ROTATION_TOLERANCE = 1e-6    # of R^T R - 1 for the rotation of a placement


@dataclass(frozen=True, eq=False)
class Constraint(ByValue):
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


def equation_rows(constraints: Sequence[Constraint]) -> list[tuple[Constraint, slice]]:
    """Return each constraint with the rows of its equations."""
    ends = np.cumsum([one.equations for one in constraints]).tolist()
    return [(one, slice(end - one.equations, end)) for one, end in zip(constraints, ends)]


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
        if not is_pose(T, ROTATION_TOLERANCE) or np.max(np.abs(T)) > LARGEST:
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
    return replace(constraint, placement_a=placements[0], placement_b=placements[1], length=length)


@dataclass(frozen=True, eq=False)
class Loops:
    """The constraints of a robot as `rbd_ros.kernels.loops.closed_loops` reads them."""

    constraints: tuple[Constraint, ...]
    equations: int
    robot: np.ndarray       # table of bodies, to be copied: kernels write to it
    traits: float | None
    table: np.ndarray       # one row for each constraint
    # Numbers of the dependent velocities, followed by those of the independent ones.
    order: np.ndarray
    nv: int                 # number of independent velocities
    # Blocks, ``order``, and rows of ``involved`` and ``members``, as in the `Parts` of kernels.
    numbers: tuple[Sequence[Sequence[int]], ...]
    neutral: np.ndarray     # the closed configuration found first from the neutral one
    condition_limit: float = inf    # of J_d; beyond, velocity maps are damped

    @property
    def own(self) -> np.ndarray:
        """Return the numbers of the independent velocities among those of all joints."""
        return self.order[len(self.order) - self.nv:]

    @property
    def rows(self) -> int:
        """Return the number of equations, those that damp the dependent velocities included."""
        return self.equations + (len(self.order) - self.nv if self.condition_limit < inf else 0)

    def array(self, damped: bool) -> np.ndarray:
        """Return a new array for the kernels, see `rbd_ros.kernels.loops.arrays`."""
        damped = damped and self.condition_limit < inf
        m, n, nv = self.rows if damped else self.equations, len(self.order), self.nv
        d, (blocks, involved, members) = n - nv, self.numbers
        table = self.table
        if damped:
            # The equations of a block are followed by those that damp its dependent velocities.
            table = table.copy()
            table[:, arrays.LIMIT] = self.condition_limit
            table[:, arrays.FIRST] += [blocks[int(k)][arrays.DEPENDENT]
                                       for k in table[:, arrays.BLOCK_OF]]
            blocks = [(first + start, end + stop, start, stop, *others) if end > first
                      else (first, end, start, stop, *others)
                      for first, end, start, stop, *others in blocks]
        ends = 1 + np.cumsum((
            1, len(blocks), len(involved), len(members), len(self.table),
            m + arrays.EXTRA_ROWS, arrays.G + nv, m, d, d, d,
            len(involved), n, nv, d if damped else 0))
        loops = np.zeros((ends[-1], max(arrays.ROW_LENGTH, n + 2, m + 1 if damped else 0)))
        sizes = *ends.tolist(), n, d
        for k, whole in enumerate((sizes, self.order.tolist(), *blocks, *involved, *members)):
            loops[k, :len(whole)].view(np.int64)[:] = whole
        parts = arrays.cut(loops)
        parts.table[:, :arrays.ROW_LENGTH] = table
        parts.vectors[arrays.G + np.arange(nv), self.order[d:]] = 1.0
        return loops


def make_loops(constraints: Sequence[Constraint], links: Mapping[str, int], tree: Tree) -> Loops:
    """Return the table of constraints, which are checked; all velocities count as independent."""
    # `links` has the indices of links, `tree` is of the robot without its constraints.
    require_unique('constraint', [one.name for one in constraints])
    bodies = tree.robot[:, PARENT].astype(int)
    robot, slots = pack(tree.robot)
    table = np.zeros((len(constraints), arrays.ROW_LENGTH))
    for row, (one, equations) in zip(table, equation_rows(constraints)):
        body_a, body_b = (tree.link_body[links[link]] for link in (one.link_a, one.link_b))
        if body_a == body_b:
            raise ModelError(f"constraint '{one.name}' joins links that are fixed to each other, "
                             f"'{one.link_a}' and '{one.link_b}': remove it")
        row[arrays.KIND] = list(EQUATIONS).index(one.kind)
        for link, placement, column in (
                (one.link_a, one.placement_a, arrays.BODY_A),
                (one.link_b, one.placement_b, arrays.BODY_B)):
            k = links[link]
            T = tree.link_pose[k] @ placement
            row[column] = slots[tree.link_body[k]]
            row[column + 1:column + 13] = (*T[:3, :3].T.ravel(), *T[:3, 3])
        row[arrays.CARRIER] = slots[max(_path(bodies, body_a) & _path(bodies, body_b))]
        row[arrays.LENGTH_M], row[arrays.FIRST] = one.length or 0.0, equations.start
        row[arrays.LIMIT] = inf
    n = int(tree.robot[0, VELOCITY])
    return Loops(tuple(constraints), sum(one.equations for one in constraints), robot, tree.traits,
                 table, np.arange(n), n, ((), (), ()), np.zeros(0))


def _path(bodies: np.ndarray, body: int) -> set[int]:
    """Return the bodies from the ground to one, given the parent of each."""
    path = {0}
    while body:
        path.add(body)
        body = int(bodies[body])
    return path


def with_independent(loops: Loops, tree: Tree, independent: Sequence[int]) -> Loops:
    """Return the table in which only some velocities, numbers in ascending order, are free."""
    parents, slots = tree.robot[:, PARENT].astype(int), pack(tree.robot)[1].tolist()
    # Of each constraint: the bodies that move in its loop, and their velocities.
    inside = [_path(parents, slots.index(row[arrays.BODY_A]))
              ^ _path(parents, slots.index(row[arrays.BODY_B])) for row in loops.table]
    velocities = [{int(tree.robot[body, VELOCITY]) for body in bodies} for bodies in inside]
    # A block ends where the constraints before and after it have no velocity in common.
    ends = [k for k in range(1, len(inside) + 1)
            if set().union(*velocities[:k]).isdisjoint(chain(*velocities[k:]))]
    rows = [rows for _, rows in equation_rows(loops.constraints)]
    table, order = loops.table.copy(), list[int]()
    blocks: list[tuple[int, ...]] = []
    involved: list[tuple[int, int]] = []
    members: list[tuple[int, int, int]] = []
    for number, (first, end) in enumerate(zip([0, *ends], ends)):
        table[first:end, arrays.BLOCK_OF] = number
        own = {k: c for c in range(first, end) for k in velocities[c]}
        # Columns that end first come first, which fill fewer others when they are eliminated.
        dependent = sorted({*own}.difference(independent), key=lambda k: (own[k], k))
        free = [(i, k) for i, k in enumerate(independent) if k in own]
        blocks.append((rows[first].start, rows[end - 1].stop, len(order),
                       len(order) + len(dependent), len(involved), len(involved) + len(free)))
        order += dependent
        involved += free
        bodies = set().union(*inside[first:end])
        members += [(number, body, int(parents[body] in bodies)) for body in sorted(bodies)]
    # No equation determines the rest, which the kernels report as singular.
    rest = sorted({*range(int(tree.robot[0, VELOCITY]))}.difference(order, independent))
    if rest:
        blocks.append((0, 0, len(order), len(order) + len(rest), len(involved), len(involved)))
    return replace(loops, table=table, order=np.array([*order, *rest, *independent], int),
                   nv=len(independent), numbers=(blocks, involved, members))
