# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Configurations that close the loops of a robot, by Newton's method.

``model`` is the robot with its constraints; q is a configuration of all of its joints.

"""

from collections.abc import Sequence
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
    moved, quaternion_joints, random_of_tree, step_between, with_unit_quaternions)
from rbd_ros.model.se3 import ad

if TYPE_CHECKING:
    from rbd_ros.kernels.loops import closed_loops, samples as loop_samples
else:
    # Only robots with loops need a compiler before their dynamics are computed.
    loop_samples = LazyModule('rbd_ros.kernels.loops.samples')
    closed_loops = LazyModule('rbd_ros.kernels.loops.closed_loops')

TERMS = 30      # of the exponential series of turns by up to pi or so, to rounding
DRAWS = 1000     # random configurations that are tried
CUTS = 8    # halvings of a step of `integrate` that Newton's method cannot follow


def equations_and_gaps(loops: Loops, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return J for all velocities of the unconstrained robot, and the gaps, m and rad."""
    n = len(loops.order)
    J = _evaluate(replace(loops, order=np.arange(n), nv=n, numbers=((), (), ())), q).J
    return J[:loops.equations, :n], J[:loops.equations, n + 1]


def _evaluate(loops: Loops, q: np.ndarray, damped: bool = False) -> arrays.Parts:
    array = loops.array(damped)
    closed_loops.loop_map(loops.robot.copy(), loops.traits, array, q)
    return arrays.cut(array)


def regular_map(loops: Loops, q: np.ndarray) -> np.ndarray | None:
    """Return G of v_tree = G v, damped on request, or None if open or singular at q."""
    found = _evaluate(loops, q, damped=True).vectors
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


def close_nearby(model: Model, loops: Loops, q: np.ndarray) -> np.ndarray | None:
    """Return a closed configuration near q, in which any joint may move, or None."""
    # `model` is unconstrained; each step is the shortest one that fulfils the linear equations.
    best = np.inf
    for _ in range(ITERATIONS):
        J, e = equations_and_gaps(loops, q)
        gap = float(np.linalg.norm(e))
        if not np.isfinite(gap):
            return None
        if gap <= ACCURACY or (best <= ACCEPTED and gap >= STALLED * best):
            return q
        best = min(best, gap)
        step = np.linalg.lstsq(J, -e, rcond=SINGULAR)[0]
        q = with_unit_quaternions(model, moved(model, q, _limited(step)))
    return q if gap <= ACCEPTED else None


def _limited(step: np.ndarray) -> np.ndarray:
    longest = np.max(np.abs(step), initial=0.0)
    return step if longest <= LONGEST_STEP else step * (LONGEST_STEP / longest)


def close(model: Model, q: np.ndarray, step: np.ndarray | None = None) -> np.ndarray | None:
    """Return the closed configuration after a step of the independent joints from q, or None."""
    # The dependent joints are solved from those in q; `step` (nv,) is in rad and m, or None.
    loops, tree = model.loops, model.unconstrained
    assert loops is not None
    start, total = q, np.zeros(tree.nv)
    best = np.inf
    own = set(loops.own.tolist())
    turning = [(i, k) for _, i, k in quaternion_joints(tree) if own.isdisjoint(range(tree.nv)[k])]
    partly = [k for _, _, k in quaternion_joints(tree)
              if not own.isdisjoint(range(tree.nv)[k]) and not own.issuperset(range(tree.nv)[k])]
    if step is not None:
        found = _evaluate(loops, q).vectors
        total = step @ found[arrays.G:, :tree.nv]
        if not np.all(np.isfinite(total)):
            total = np.zeros(tree.nv)
            total[loops.own] = step
        q = moved(tree, start, total)
    for _ in range(ITERATIONS):
        found = _evaluate(loops, q).vectors
        gap, status = found[:2, -1].tolist()
        if not np.isfinite(gap):
            return None
        if gap <= ACCURACY or (best <= ACCEPTED and gap >= STALLED * best):
            return with_unit_quaternions(tree, q)
        best = min(best, gap)
        change = (_change_of_total(loops, q, total, partly) if partly
                  else found[arrays.STEP, :tree.nv])
        if status > 0 or not np.all(np.isfinite(change)):
            return None
        total = total + _limited(change)
        q = moved(tree, start, total)
        if turning:
            # From here on: rotation vectors of large turns do not add up.
            start, total = start.copy(), total.copy()
            for i, k in turning:
                start[i], total[k] = q[i], 0.0
    return with_unit_quaternions(tree, q) if gap <= ACCEPTED else None


def _change_of_total(loops: Loops, q: np.ndarray, total: np.ndarray,
                     partly: Sequence[slice]) -> np.ndarray:
    """Return Newton's step of ``total``, the coordinates of q about the start."""
    # Joints with a quaternion of which some velocities are independent are at `partly`: theirs are
    # V = (1 - ad/2! + ad^2/3! ...) d total/dt.
    J, e = equations_and_gaps(loops, q)
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


def closed(model: Model, q: np.ndarray, label: str = 'q') -> np.ndarray:
    """Return q with its loops closed; the positions of independent joints are kept."""
    found = close(model, q)
    if found is None:
        assert model.loops is not None
        raise StateError(
            f"the loops of robot '{model.name}' cannot be closed from {label} with its positions "
            f'of the independent joints, {", ".join(model.velocity_names)}: '
            + gap_in_words(model.loops, q) + '; give positions that the robot can reach, and '
            'a guess of the others')
    return found


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


def nearly_closed(model: Model, q: np.ndarray, label: str) -> np.ndarray:
    """Return q with its loops closed to rounding; StateError if they are open, as in dynamics."""
    assert model.loops is not None
    if not np.linalg.norm(equations_and_gaps(model.loops, q)[1]) <= CLOSED:
        raise open_loops(model.loops, model.name, q, label)
    return closed(model, q, label)


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


def independent_step(model: Model, q_0: np.ndarray, q_1: np.ndarray) -> np.ndarray:
    """Return the step (nv,) of the independent joints between configurations (nq,)."""
    assert model.loops is not None
    return step_between(model.unconstrained, q_0, q_1)[..., model.loops.own]


def random_closed(model: Model, rng: np.random.Generator) -> np.ndarray:
    """Return a random closed configuration, within the limits of all joints if one is found."""
    tree = model.unconstrained
    assert model.loops is not None
    beyond = None
    for _ in range(DRAWS):
        guess = random_of_tree(tree, rng)
        q = close(model, guess)
        if q is None and beyond is None:
            q = close_nearby(tree, model.loops, guess)
        if q is None:
            continue
        if _within_limits(tree, q):
            return q
        beyond = q if beyond is None else beyond
    if beyond is None:
        raise StateError(f"no closed configuration of robot '{model.name}' was found in {DRAWS} "
                         'random ones')
    return beyond


def _within_limits(tree: Model, q: np.ndarray) -> bool:
    return all(np.all((q[i] >= tree.lower[k]) & (q[i] <= tree.upper[k]))
               for joint, i, k in tree.moving_joints if joint.nq == joint.nv)
