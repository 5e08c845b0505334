# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Declarations of kernels for many states: arguments, scratch buffers and results."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, replace
from inspect import signature
from math import prod
from operator import itemgetter
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.kernels.lanes.lanes import WIDTH, zeros_for_lanes
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.workspace.documentation import ROWS
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
    """Return a table of bodies for states side by side, and lanes for q, v, a and tau."""
    nq, n = workspace.model.nq, workspace.model.nv
    return {use: zeros_for_lanes((size, WIDTH)) for use, size in (
        ('robot', len(workspace.robot)), ('Q', nq), ('V', n), ('A', n), ('Tau', n))}


def scratch_buffers(labels: Sequence[str],
                    *results: Make) -> Callable[[RobotArrays], tuple[np.ndarray, ...]]:
    """Return a function that makes a kernel's scratch buffers: table, lanes, and ``results``."""
    def make(workspace: RobotArrays) -> tuple[np.ndarray, ...]:
        table = workspace._kept(scratch_table)
        return (table['robot'], *(table[label] for label in labels),
                *(one(workspace) for one in results))
    return make


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


class Outputs(NamedTuple):
    """The blocks that a kernel writes for each state, and the results in them."""

    shapes: Shapes      # of the blocks, for a robot and a number of velocities
    cut: Callable[..., Sequence[np.ndarray]]    # blocks of many states to results, as views

    def written(self, shapes: Sequence[tuple[int, ...]]) -> Sequence[tuple[int, ...]]:
        """Return the shapes of the arrays, for one state, that the kernel writes blocks to."""
        # Results that are cut out are not contiguous anyway: each state can fill whole registers.
        return shapes if self.cut is as_written else [
            (-(-prod(shape) // WIDTH) * WIDTH,) for shape in shapes]

    def blocks(self, shapes: Sequence[tuple[int, ...]],
               raw: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the blocks in the arrays that the kernel has written."""
        return raw if self.cut is as_written else [
            x[:, :prod(shape)].reshape(len(x), *shape) for x, shape in zip(raw, shapes)]

    def results(self, shapes: Sequence[tuple[int, ...]],
                raw: Sequence[np.ndarray]) -> Sequence[np.ndarray]:
        """Return the results in the arrays that the kernel has written."""
        return self.cut(*self.blocks(shapes, raw))


class Closed(NamedTuple):
    """A kernel for many states of robots with closed loops, which are computed one by one."""

    kernel: str     # its name in `rbd_ros.kernels.states.closed_loops`, which is slow to import
    # Its arguments before the states, from the workspace of the robot.
    arrays: Callable[[Any], tuple[np.ndarray, ...]]


class Task(NamedTuple):
    """A quantity of many states, of any robot."""

    # Takes the arrays of the robot, states, external wrenches if `wrenched`, arguments that are
    # the same in all states, the scratch buffers, and the arrays that it writes results to.
    kernel: Callable[..., Any]
    labels: tuple[str, ...]             # names of the arrays of states
    outputs: Outputs
    scratch: Callable[[RobotArrays], tuple[Any, ...]]
    single: Callable[..., Sequence[np.ndarray]]     # the results of one state, by a workspace
    wrenched: bool = False
    of_link: Callable[[RobotArrays, str], tuple[Any, ...]] | None = None
    result: Callable[[Sequence[np.ndarray]], Any] = itemgetter(0)
    closed: Closed | None = None        # None: robots with closed loops use ``single``
    coupled: Any = None                 # the `Task` of robots whose joints share coordinates
    zeros: int = 0                      # how many of the states, the last ones, are zeros
    name: str = ''                      # of the quantity, if it is one

    def of_robot(self, model: Model) -> 'Task':
        """Return the task of a robot."""
        check_model(model)
        return self.coupled if not (self.coupled is None or model.coordinates.is_identity
                                    or model.loops is not None) else self


@dataclass(frozen=True)
class States:
    """The kernel of a quantity for many states, as it is declared."""

    kernel: Callable[..., Any]
    shapes: Shapes
    scratch: Sequence[Make] = ()        # in addition to the table and the lanes of the states
    cut: Callable[..., Sequence[np.ndarray]] = as_written
    result: Callable[[Sequence[np.ndarray]], Any] = itemgetter(0)
    of_link: Callable[[RobotArrays, str], tuple[Any, ...]] | None = None      # kernel arguments
    closed: Closed | None = None
    # The kernel and the scratch of robots whose joints share coordinates, if they are others.
    coupled: Mapping[str, Any] | None = None
    zeros: Sequence[str] = ()           # further vectors that the kernel takes, here zeros

    def task(self, method: Callable[..., Any], outputs: Outputs,
             single: Callable[..., Sequence[np.ndarray]]) -> Task:
        """Return the task, whose states are the vectors that the method takes."""
        names = signature(method).parameters
        labels = (*(ROWS[name] for name in names if name in ROWS), *self.zeros)
        coupled = None if self.coupled is None else replace(
            self, **self.coupled, coupled=None).task(method, outputs, single)
        return Task(self.kernel, labels, outputs, scratch_buffers(labels, *self.scratch), single,
                    'external_wrenches' in names, self.of_link, self.result, self.closed, coupled,
                    len(self.zeros), method.__name__)
