# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Operations on configurations, which may have quaternions; StateError for invalid arguments."""

from __future__ import annotations

from collections.abc import Collection

import numpy as np
import numpy.typing as npt
from rbd_ros.errors import StateError
from rbd_ros.kernels.loops.arrays import CLOSED
from rbd_ros.model.arguments import check_model, finite_vector, number, shown
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import (
    close, close_nearby, close_samples, equations_and_gaps, gap_in_words, moved_closed, open_loops)
from rbd_ros.model.positions.steps import (
    moved, neutral_of_tree, quaternion_joints, random_of_tree, step_between)

# Largest step of an independent joint, rad or m, from one closed configuration to the next one.
LONGEST_STEP = 0.3
ROUNDING = 1e-6     # Tolerance for positions at their limits, rad or m.
DRAWS = 1000    # random configurations that are tried


def neutral(model: Model) -> np.ndarray:
    """
    Return the neutral configuration (nq,) of ``model``, rad and m: zeros and unit quaternions.

    With closed loops it is a closed configuration near that one.

    """
    check_model(model)
    return neutral_of_tree(model) if model.loops is None else model.loops.neutral.copy()


def normalize(model: Model, q: npt.ArrayLike, label: str = 'q') -> np.ndarray:
    """
    Return a configuration (nq,) with unit quaternions and closed loops.

    Positions of the independent joints are kept; those of the others are solved from the given
    ones, the nearest of several solutions as a rule. StateError is raised if there is none.

    Parameters
    ----------
    model, q : Model, array_like of shape (model.nq,)
        The configuration, rad and m, may have quaternions of any nonzero length.
    label : str
        Its name in errors.

    """
    q = checked(model, q, label)
    if model.loops is None:
        return q
    found = close(model, q)
    if found is None:
        raise StateError(
            f"the loops of robot '{model.name}' cannot be closed from {label} with its positions "
            f'of the independent joints, {", ".join(model.velocity_names)}: '
            + gap_in_words(model.loops, q) + '; give positions that the robot can reach, and '
            'a guess of the others')
    return found


def on_closure(model: Model, q: npt.ArrayLike, label: str = 'q') -> np.ndarray:
    """Return q as `normalize` does, but raise StateError if its loops are open."""
    q = checked(model, q, label)
    if model.loops is None:
        return q
    if not np.linalg.norm(equations_and_gaps(model.loops, q)[1]) <= CLOSED:
        raise open_loops(model.loops, model.name, q, label)
    return normalize(model, q, label)


def checked(model: Model, q: npt.ArrayLike, label: str = 'q') -> np.ndarray:
    """Return q with unit quaternions, without closing loops; arguments as for `normalize`."""
    q = finite_vector(model, label, q, positions=True)
    for joint, i, _ in quaternion_joints(model.unconstrained):
        quaternion = q[i.start:i.start + 4]
        length = np.linalg.norm(quaternion)
        if not 0.0 < length < np.inf:
            raise StateError(f"the quaternion of joint '{joint.name}' is {quaternion}; it must be "
                             'finite and not zero')
        quaternion /= length
    return q


def independent_positions(model: Model) -> list[int]:
    """Return the indices in q of the coordinates of independent joints."""
    found = []
    tree, names = model.unconstrained, set(model.velocity_names)
    for joint, i, k in tree.moving_joints:
        own = [n for n, name in enumerate(tree.velocity_names[k]) if name in names]
        found += [i.start + n for n in (own if joint.nq == joint.nv or not own
                                        else range(joint.nq))]
    return found


def closed_along(model: Model, positions: np.ndarray, label: str = 'positions') -> np.ndarray:
    """Return configurations (points, nq) for those of the independent joints, by point."""
    # Each one is reached from the one before, and the first one from the neutral configuration.
    if model.loops is None:
        return positions
    # The first row is the start.
    own, found = independent_positions(model), np.tile(neutral(model), (len(positions) + 1, 1))
    found[1:, own] = positions
    row = close_samples(model, 1, LONGEST_STEP, found)
    while row < len(found):
        where = f'{label}, point {row - 1},' if len(positions) > 1 else label
        found[row] = _closed_beyond(model, found[row - 1], positions[row - 1], own, where)
        row = close_samples(model, row + 1, LONGEST_STEP, found)
    return found[1:]


def _closed_beyond(model: Model, q: np.ndarray, positions: np.ndarray, own: list[int],
                   label: str) -> np.ndarray:
    """Return the closed configuration with positions of the independent joints, from q."""
    assert model.loops is not None
    end = q.copy()
    end[own] = positions
    end = normalize(model.unconstrained, end, label)
    step = step_between(model.unconstrained, q, end)[model.loops.own]
    count = max(1, int(np.ceil(np.max(np.abs(step)) / LONGEST_STEP)))
    try:
        for _ in range(count):
            q = moved_closed(model, q, step / count)
    except StateError:
        pass    # The way there is not closed, but its end may be.
    q = q.copy()
    q[own] = end[own]
    return normalize(model, q, label)


def out_of_range(model: Model, q: np.ndarray, names: Collection[str] | None = None) -> list[str]:
    """Return a sentence for each joint out of range; q, rad or m: (nq,) or (points, nq)."""
    model, found = model.unconstrained, []
    for joint, at, where in model.moving_joints:
        if joint.nq != joint.nv or (names is not None and joint.name not in names):
            continue
        for k, x in zip(range(where.start, where.stop), np.atleast_2d(q)[:, at].T):
            low, high = model.lower[k], model.upper[k]
            worst = x[np.argmax(np.maximum(low - x, x - high))]
            if not low - ROUNDING <= worst <= high + ROUNDING:
                found.append(f"'{model.velocity_names[k]}': the position is {worst:.4g} "
                             f'{"rad" if model.angular[k] else "m"}, its limits are {low:.4g} ... '
                             f'{high:.4g}')
    return found


def random_configuration(model: Model, rng: np.random.Generator | int) -> np.ndarray:
    """
    Return a random configuration (nq,) within the joint limits.

    It is uniform between limits; without a limit, within pi rad or 1 m of zero or of the other
    limit. Rotations of ball and free joints are uniform. With closed loops all joints are drawn,
    then the loops are closed, within all limits if such a configuration is found.

    Parameters
    ----------
    model, rng : Model, numpy.random.Generator or int
        The random generator or a seed.

    """
    check_model(model)
    try:
        rng = np.random.default_rng(rng)
    except (TypeError, ValueError):
        raise StateError(f'rng must be a generator of random numbers or a seed, got {shown(rng)}'
                         ) from None
    if model.loops is None:
        return random_of_tree(model, rng)
    tree, beyond = model.unconstrained, None
    for _ in range(DRAWS):
        guess = random_of_tree(tree, rng)
        q = close(model, guess)
        if q is None and beyond is None:
            q = close_nearby(tree, model.loops, guess)
        if q is None:
            continue
        if all(np.all((q[i] >= tree.lower[k]) & (q[i] <= tree.upper[k]))
               for joint, i, k in tree.moving_joints if joint.nq == joint.nv):
            return q
        beyond = q if beyond is None else beyond
    if beyond is None:
        raise StateError(f"no closed configuration of robot '{model.name}' was found in {DRAWS} "
                         'random ones')
    return beyond


def integrate(model: Model, q: npt.ArrayLike, v: npt.ArrayLike, dt: float) -> np.ndarray:
    """
    Return the configuration (nq,), with unit quaternions, after a motion at constant velocity.

    Parameters
    ----------
    model, q, v : Model, array_like of shape (model.nq,) and (model.nv,)
        Configuration, rad and m, and velocity, rad/s and m/s; for ball and free joints in the axes
        of the moving body, which turn with it.
    dt : float
        Duration, s.

    Raises
    ------
    StateError
        If the loops are open at q, or cannot be closed after the step.

    """
    v, dt = finite_vector(model, 'v', v), number('dt', dt)
    q = on_closure(model, q)
    if model.loops is not None:
        return moved_closed(model, q, dt * v)
    result = moved(model, q, dt * v)
    return result if model.nq == model.nv else normalize(model, result)


def difference(model: Model, q_0: npt.ArrayLike, q_1: npt.ArrayLike) -> np.ndarray:
    """
    Return the velocity (nv,) that leads from one configuration to another in unit time.

    This is the inverse of `integrate`: ``integrate(model, q_0, difference(model, q_0, q_1), 1.0)``
    is q_1. Rotations of ball and free joints are by at most pi.

    Parameters
    ----------
    model, q_0, q_1 : Model, array_like of shape (model.nq,)
        Configurations, rad and m.

    Raises
    ------
    StateError
        If the loops are open.

    """
    check_model(model)
    step = step_between(model.unconstrained, on_closure(model, q_0, 'q_0'),
                        on_closure(model, q_1, 'q_1'))
    return step if model.loops is None else step[model.loops.own]
