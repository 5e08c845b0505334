# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Declarations of kernels for many states: arguments, scratch buffers and results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.kernels.lanes.lanes import WIDTH, zeros_for_lanes
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.memory.scratch import elimination_table

Shapes = Callable[[Model, int], Sequence[tuple[int, ...]]]
Make = Callable[[RobotArrays], np.ndarray]


@dataclass(frozen=True)
class Scratch:
    """Makes a buffer of zeros for a workspace, which keeps it under this key."""

    use: str                    # tells buffers of the same shape apart
    shape: tuple[int, ...]

    def __call__(self, workspace: RobotArrays) -> np.ndarray:
        return zeros_for_lanes(self.shape)


def scratch_table(workspace: RobotArrays) -> dict[str, np.ndarray]:
    """Return a table of bodies for states side by side, and lanes for vectors of states."""
    nq, n = workspace.model.nq, workspace.model.nv
    return {use: zeros_for_lanes((size, WIDTH)) for use, size in (
        ('robot', len(workspace.robot)), ('Q', nq), ('V', n), ('A', n), ('Tau', n), ('X', n))}


def lanes_of(shapes: Shapes) -> Make:
    """Return a function that makes lanes for a result; entries never written stay zero."""
    return lambda workspace: zeros_for_lanes((*shapes(workspace.model, workspace._nv)[0], WIDTH))


def lane_of(label: str) -> Make:
    """Return a function that returns the lanes of a vector of states, here for results."""
    return lambda workspace: workspace._kept(scratch_table)[label]


def shape(*sizes: int) -> Shapes:
    """Return the shapes of one block, in which -k stands for k times the number of velocities."""
    known: dict[int, Sequence[tuple[int, ...]]] = {}

    def shapes(model: Model, n: int) -> Sequence[tuple[int, ...]]:
        if n not in known:
            known[n] = [tuple(-size * n if size < 0 else size for size in sizes)]
        return known[n]
    return shapes


# For robots whose joints share coordinates: `elimination_table`, and lanes for M, b and L.
EQUATIONS = (lambda w: w._kept(elimination_table)[0], lanes_of(shape(-1, -1)),
             lanes_of(shape(-1)), lanes_of(shape(-1, -1)))


def as_written(*arrays: np.ndarray) -> Sequence[np.ndarray]:
    """Return the arrays that a kernel writes, if these are the results."""
    return arrays


class Closed(NamedTuple):
    """A kernel for many states of robots with closed loops, which are computed one by one."""

    kernel: str     # its name in `rbd_ros.kernels.states.closed_loops`, which is slow to import
    # Its arguments before the states, from the workspace of the robot.
    arrays: Callable[[Any], tuple[np.ndarray, ...]]


@dataclass(frozen=True, eq=False)
class States:
    """How a quantity of many states is computed."""

    # Takes the arrays of the robot, states, external wrenches if `wrenched`, arguments that are
    # the same in all states, the scratch buffers, and the arrays that it writes results to.
    kernel: Callable[..., Any]
    shapes: Shapes      # of the blocks that it writes for each state
    scratch: Sequence[Make] = ()        # in addition to the table and the lanes of the states
    # Returns the results in blocks of many states, as views.
    cut: Callable[..., Sequence[np.ndarray]] = as_written
    result: Callable[[Sequence[np.ndarray]], Any] = itemgetter(0)   # what is returned of these
    of_link: Callable[[RobotArrays, str], tuple[Any, ...]] | None = None      # kernel arguments
    closed: Closed | None = None        # None: robots with closed loops use ``single``
    # The kernel and the scratch of robots whose joints share coordinates, if they are others.
    coupled: Mapping[str, Any] | None = None
    zeros: Sequence[str] = ()           # further vectors that the kernel takes, here zeros
    # What `rbd_ros.workspace.quantity` adds: names of the arrays of states, the results of one
    # state by a workspace, whether there are external wrenches, and the name of the quantity.
    labels: tuple[str, ...] = ()
    single: Any = None
    wrenched: bool = False
    name: str = ''

    @cached_property
    def buffers(self) -> Callable[[RobotArrays], tuple[np.ndarray, ...]]:
        def make(workspace: RobotArrays) -> tuple[np.ndarray, ...]:
            table = workspace._kept(scratch_table)
            return (table['robot'], *(table[label] for label in (*self.labels, *self.zeros)),
                    *(one(workspace) for one in self.scratch))
        return make

    @cached_property
    def _of_coupled(self) -> 'States':
        return replace(self, coupled=None, **self.coupled or {})

    def of_robot(self, model: Model) -> 'States':
        check_model(model)
        return self if (self.coupled is None or model.coordinates.is_identity
                        or model.loops is not None) else self._of_coupled

    def written(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """Return the shapes of the arrays, for one state, that the kernel writes blocks to."""
        # Results that are cut out are not contiguous anyway: each state can fill whole registers.
        return shapes if self.cut is as_written else [
            (-(-prod(shape) // WIDTH) * WIDTH,) for shape in shapes]

    def results(self, shapes: Sequence[tuple[int, ...]],
                raw: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        return raw if self.cut is as_written else self.cut(*(
            x[:, :prod(shape)].reshape(len(x), *shape) for x, shape in zip(raw, shapes)))
