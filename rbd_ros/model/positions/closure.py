# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Configurations that close the loops of a robot, by Newton's method.

``model`` is the robot with its constraints; q is a configuration of all of its joints.

"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np
from rbd_ros._internal.lazy_exports import LazyModule
from rbd_ros.errors import StateError
from rbd_ros.kernels.loops import arrays
from rbd_ros.kernels.loops.arrays import (
    ACCEPTED, ACCURACY, CLOSED, ITERATIONS, LONGEST_STEP, SINGULAR, STALLED)
from rbd_ros.model.loops import equation_rows, Loops
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import (
    moved, quaternion_joints, TINY, with_unit_quaternions)
from rbd_ros.model.se3 import ad

if TYPE_CHECKING:
    from rbd_ros.kernels.loops import closed_loops, samples as loop_samples
else:
    # Only robots with loops need a compiler before their dynamics are computed.
    loop_samples = LazyModule('rbd_ros.kernels.loops.samples')
    closed_loops = LazyModule('rbd_ros.kernels.loops.closed_loops')

TERMS = 30      # of the exponential series of turns by up to pi or so, to rounding
# If all joints may move, Newton's steps in which the gap must fall: else it has a minimum there.
PATIENCE = 20
CUTS = 8    # halvings of a step of `integrate` that Newton's method cannot follow


def _evaluator(loops: Loops, damped: bool = False) -> Callable[[np.ndarray], arrays.Parts]:
    """Return a function of q whose result the next call overwrites: the parts at q."""
    array, robot = loops.array(damped), loops.robot.copy()
    parts = arrays.cut(array)

    def evaluate(q: np.ndarray) -> arrays.Parts:
        closed_loops.loop_map(robot, loops.traits, array, q)
        return parts
    return evaluate


def _not_factored(loops: Loops) -> Loops:
    """Return loops whose ``J`` has the equations as they are."""
    return replace(loops, numbers=((), (), ()))


def equations_and_gaps(loops: Loops, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return J for all velocities of the unconstrained robot, and the gaps, m and rad."""
    return _equations(loops, _evaluator(_not_factored(loops))(q))


def _equations(loops: Loops, parts: arrays.Parts) -> tuple[np.ndarray, np.ndarray]:
    n = len(loops.order)
    return parts.J[:loops.equations, :n], parts.J[:loops.equations, n + 1]


def regular_map(loops: Loops, q: np.ndarray) -> np.ndarray | None:
    """Return G of v_tree = G v, damped on request, or None if open or singular at q."""
    found = _evaluator(loops, damped=True)(q).vectors
    gap, status = found[:2, -1].tolist()
    if status or not gap <= CLOSED:
        return None
    return found[arrays.G:, :len(loops.order)].T


def gap_in_words(loops: Loops, q: np.ndarray) -> str:
    """Return which constraint is open most, and by how much."""
    e, texts = equations_and_gaps(loops, q)[1], []
    for one, rows in equation_rows(loops.constraints):
        part = e[rows]
        turns = {'weld': 3, 'revolute': 2}.get(one.kind, 0)
        shift, turn = np.linalg.norm(part[turns:]), np.linalg.norm(part[:turns])
        # Less than `ACCEPTED` is rounding.
        gap = ' and '.join(f'{x:.3g} {unit}' for x, unit in (
            (round(1e3 * shift, 4), 'mm'), (round(np.degrees(turn), 4), 'deg')) if x)
        texts.append((max(shift, turn), f"constraint '{one.name}' "
                      + (f'is open by {gap}' if gap else 'is closed')))
    return max(texts)[1]


def open_loops(loops: Loops, name: str, q: np.ndarray, label: str = '') -> StateError:
    """Return the error for an open configuration of the robot ``name``."""
    where = f' in {label}' if label else ''
    return StateError(f"the loops of robot '{name}' are open{where}: " + gap_in_words(loops, q)
                      + '; close them with rbd_ros.model.normalize')


def close_nearby(tree: Model, loops: Loops, q: np.ndarray) -> np.ndarray | None:
    """Return a closed configuration near q, in which any joint may move, or None."""
    # Each step is the shortest one that fulfils the linear equations.
    return _newton(tree, replace(loops, nv=0), q, np.zeros(tree.nv))


def close(model: Model, q: np.ndarray, step: np.ndarray | None = None) -> np.ndarray | None:
    """Return the closed configuration after a step of the independent joints from q, or None."""
    # The dependent joints are solved from those in q; `step` (nv,) is in rad and m, or None.
    loops, tree = model.loops, model.unconstrained
    assert loops is not None
    total = np.zeros(tree.nv)
    if step is not None:
        total = step @ _evaluator(loops)(q).vectors[arrays.G:, :tree.nv]
        if not np.all(np.isfinite(total)):
            total = np.zeros(tree.nv)
            total[loops.own] = step
    return _newton(tree, loops, q, total)


def _newton(tree: Model, loops: Loops, start: np.ndarray,
            total: np.ndarray) -> np.ndarray | None:
    """Return the closed configuration near the one that is ``total`` from the start, or None."""
    own = set(loops.own.tolist())
    quaternions = [(i, k, own.intersection(range(tree.nv)[k]))
                   for _, i, k in quaternion_joints(tree)]
    turning = [(i, k) for i, k, some in quaternions if not some]
    partly = [k for _, k, some in quaternions if 0 < len(some) < k.stop - k.start]
    by_least_squares = bool(partly) or not own
    evaluate = _evaluator(_not_factored(loops) if by_least_squares else loops)
    q = moved(tree, start, total)
    lowest, fell = np.inf, 0
    for k in range(ITERATIONS):
        found = evaluate(q)
        gap, status = found.vectors[:2, -1].tolist()
        if not np.isfinite(gap):
            return None
        if gap <= ACCURACY or (lowest <= ACCEPTED and gap >= STALLED * lowest):
            return with_unit_quaternions(tree, q)
        if gap < STALLED * lowest:
            lowest, fell = gap, k
        change = (_least_squares(loops, found, total, partly) if by_least_squares
                  else found.vectors[arrays.STEP, :tree.nv])
        if status > 0 or not np.all(np.isfinite(change)) or (not own and k > fell + PATIENCE):
            return None
        total = total + change * min(1.0, LONGEST_STEP / np.max(np.abs(change), initial=TINY))
        q = moved(tree, start, total)
        if turning:
            # From here on: rotation vectors of large turns do not add up.
            start = start.copy()
            for at, turn in turning:
                start[at], total[turn] = q[at], 0.0
    return with_unit_quaternions(tree, q) if gap <= ACCEPTED else None


def _least_squares(loops: Loops, parts: arrays.Parts, total: np.ndarray,
                   partly: Sequence[slice]) -> np.ndarray:
    """Return Newton's step of ``total``, the coordinates of q about the start."""
    # Joints with a quaternion of which some velocities are independent are at `partly`: theirs are
    # V = (1 - ad/2! + ad^2/3! ...) d total/dt.
    J, e = _equations(loops, parts)
    for k in partly:
        along = np.zeros(6)
        along[:k.stop - k.start] = total[k]
        A = ad(along)[:k.stop - k.start, :k.stop - k.start]
        term = map_ = np.eye(len(A))
        for order in range(2, TERMS):
            term = -term @ A / order
            map_ = map_ + term
        J[:, k] = J[:, k] @ map_
    dependent = loops.order[:len(loops.order) - loops.nv]
    change = np.zeros(len(loops.order))
    change[dependent] = np.linalg.lstsq(J[:, dependent], -e, rcond=SINGULAR)[0]
    return change


def moved_closed(model: Model, q: np.ndarray, step: np.ndarray, cuts: int = CUTS) -> np.ndarray:
    """Return the closed configuration after a step (nv,) of the independent joints."""
    # Longer steps could end in another branch.
    found = close(model, q, step) if np.max(np.abs(step)) <= LONGEST_STEP or not cuts else None
    if found is not None:
        return found
    if not cuts:
        raise StateError(f"the loops of robot '{model.name}' cannot be closed after this step: "
                         'the independent joints leave the range in which the loops close')
    half = moved_closed(model, q, 0.5 * step, cuts - 1)
    return moved_closed(model, half, 0.5 * step, cuts - 1)


def close_samples(model: Model, first: int, stride: float, samples: np.ndarray) -> int:
    """Solve the dependent joints in rows of ``samples`` (points, nq), each from the row before."""
    # Rows before `first` are solved. The first row that is not is returned: a step of an
    # independent joint is longer than the stride, rad or m, Newton's method fails, or joints have
    # quaternions.
    loops, tree = model.loops, model.unconstrained
    assert loops is not None
    if tree.nq != tree.nv:
        return first
    return int(loop_samples.close_samples(
        loops.robot.copy(), loops.traits, loops.array(damped=False), first, stride, samples))
