# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Mistakes that no columns represent: detected, and undone so that others can be found."""

from collections.abc import Callable, Iterable, Sequence
from dataclasses import replace
from itertools import combinations, pairwise

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.diagnosis.motion import Motion, motion_of, span
from rbd_ros.identification.parameters import States
from rbd_ros.model.model import Model
from rbd_ros.recordings.plausibility import Detected, unwrapped
from rbd_ros.recordings.recording import Recording
from rbd_ros.recordings.samples import Samples

FULL_TURN = 2.0 * np.pi  # Angles beyond this suggest degrees, rad.
MAX_PAIRS = 60  # Most pairs of joints that are tried; for robots with more, only neighbours.
# Width of the beam search over orders of joints; it is 1 for robots with more joints than this.
BEAM_WIDTH, MAX_BEAM_JOINTS = 8, 8
RIDGE = 1e-10  # Ridge term, relative to unit columns: keeps dependent columns solvable.
# Samples that orders are compared with; share of the squared efforts that is no difference.
MAX_ORDER_ROWS, NEGLIGIBLE = 300, 1e-4
# Largest fraction of the samples in which an effort may exceed its limit, and by which factor.
MAX_BEYOND, BEYOND = 0.01, 1.1
# Fraction of the states during which a column that is stuck keeps one value, while the joint moves
# at least this far, rad or m.
MIN_STUCK, MIN_TRAVEL = 0.3, 0.05


# -- In recordings of a robot. --------------------------------------------------------------------
def wrapped(model: Model, one: Recording) -> Detected | None:
    """Detect positions that jump by a full turn."""
    position, notes = unwrapped(model, one.time, one.position)
    moved = np.ptp(position - one.position, axis=0) > 0.0
    return Detected(tuple(np.array(one.joint_names)[moved].tolist()),
                    f'{notes[0]}; have the driver publish positions that are continuous, as '
                    'controllers would follow the jump', FULL_TURN, one) if notes else None


def stuck(model: Model, one: Recording) -> Detected | None:
    """Detect columns that keep one value while the joint moves."""
    velocity = np.zeros_like(one.position) if one.velocity is None else one.velocity
    moved = np.cumsum(velocity * np.gradient(one.time)[:, None], axis=0)
    bad: dict[str, list[str]] = {}
    for label, place in (('position', moved), ('velocity', one.position),
                         ('effort', one.position)):
        x = getattr(one, label)
        if x is None or np.any(np.isnan(x)) or np.any(np.isnan(place)):
            continue
        for name, y, along in zip(one.joint_names, x.T, place.T):
            run = np.cumsum(np.diff(y, prepend=y[:1]) != 0.0)   # number of each value that is kept
            same = run == np.argmax(np.bincount(run))
            if np.mean(same) > MIN_STUCK and np.ptp(along[same]) > MIN_TRAVEL:
                bad.setdefault(name, []).append(label)
    text = 'these columns keep one value while the joint moves: ' + listed(
        f'{name} ({listed(labels)})' for name, labels in bad.items())
    return Detected(tuple(bad), f'{text}; check the cable and the driver of the joint, and record '
                    'again') if bad else None


# -- In samples, compared with the description. ---------------------------------------------------
def unexplained(motion: Motion) -> float:
    """Return the share of the squared efforts that no masses and drives explain."""
    A = []
    for j, use in enumerate(motion.use.T):
        size = np.linalg.norm(motion.tau[use, j])
        if size > 0.0:
            rows = np.column_stack((motion.regressor[use, j], motion.tau[use, j])) / size
            A.append(without_drive(motion, j, rows))
    G = sum(one.T @ one for one in A)
    scale = 1.0 / np.sqrt(np.maximum(np.diag(G), np.finfo(float).tiny))
    G = G * np.outer(scale, scale)
    beta = np.linalg.solve(G[:-1, :-1] + RIDGE * np.eye(len(G) - 1), G[:-1, -1])
    return float((G[-1, -1] - G[-1, :-1] @ beta) / scale[-1] ** 2 / len(A))


def without_drive(motion: Motion, j: int, x: np.ndarray) -> np.ndarray:
    """Return columns in the rows of a joint without what friction, rotor and offset explain."""
    use, states = motion.use[:, j], motion.states
    Q = span(np.stack((states.v[use, j], states.s[use, j], states.a[use, j],
                       np.ones(np.sum(use))), axis=1))
    return x - Q @ (Q.T @ x)


def degrees(model: Model, one: Samples) -> Iterable[Detected]:
    """Yield that positions are in degrees, if they are large."""
    angular = model.angular
    if model.nq == model.nv and np.any(np.abs(one.q[:, angular]) > FULL_TURN):
        unit = np.where(angular, np.pi / 180.0, 1.0)
        other = replace(one, q=one.q * unit, v=one.v * unit, a=one.a * unit)
        yield Detected(tuple(np.array(model.velocity_names)[angular]),
                       'positions seem to be in degrees: convert positions and velocities to '
                       'radians', 180.0 / np.pi, other)


def orders(model: Model, one: Samples) -> Iterable[Detected]:
    """Yield the best order of the efforts, and that of all columns."""
    from scipy.optimize import linear_sum_assignment  # Imported lazily: SciPy is slow to import.
    nv = model.nv
    if model.nq != nv or nv < 2:
        return
    motion = motion_of(model, [one], most=MAX_ORDER_ROWS)
    states, tau, use = motion.states, motion.tau, motion.use
    # How badly the efforts of each joint are explained as those of each, whatever the masses.
    share = np.zeros((nv, nv))
    for j, rows in enumerate(use.T):
        Q = span(without_drive(motion, j, motion.regressor[rows, j]))
        left = without_drive(motion, j, tau[rows])
        left = left - Q @ (Q.T @ left)
        share[j] = np.sum(left ** 2, axis=0) / np.maximum(
            np.sum(tau[rows] ** 2, axis=0), np.finfo(float).tiny)
    pairs = list(combinations(range(nv), 2))
    if len(pairs) > MAX_PAIRS:
        pairs = list(pairwise(range(nv)))

    def reordered(order: np.ndarray) -> float:
        return unexplained(replace(motion, states=States(*(x[:, order] for x in states)),
                                   tau=tau[:, order], use=use[:, order]))

    for order, with_states in ((linear_sum_assignment(np.log(share + NEGLIGIBLE))[1], False),
                               (_best_order(nv, pairs, reordered), True)):
        if np.all(order == np.arange(nv)):
            continue
        labels = ('q', 'v', 'a', 'moving', 'threshold') * with_states + (
            'tau', 'usable', 'saturated')
        other = replace(one, **{label: getattr(one, label)[..., order] for label in labels})
        names = [name for k, name in enumerate(model.velocity_names) if order[k] != k]
        yield Detected(tuple(names), _exchange_message(
            model.velocity_names, order.tolist(), with_states), None, other)


def _best_order(count: int, pairs: Sequence[tuple[int, int]],
                error_of: Callable[[np.ndarray], float]) -> np.ndarray:
    """Return the order with the least unexplained share: a beam search over exchanges."""
    first, width = tuple(range(count)), BEAM_WIDTH if count <= MAX_BEAM_JOINTS else 1
    errors, beam = {first: error_of(np.arange(count))}, [first]
    for _ in range(count - 1):
        before = len(errors)
        for order in beam:
            for i, j in pairs:
                other = list(order)
                other[i], other[j] = order[j], order[i]
                if tuple(other) not in errors:
                    errors[tuple(other)] = error_of(np.array(other))
        last, beam = beam, sorted(errors, key=lambda order: errors[order])[:width]
        if errors[beam[0]] < NEGLIGIBLE or len(errors) == before or beam == last:
            break
    return np.array(beam[0])


def _exchange_message(names: Sequence[str], order: Sequence[int], with_states: bool) -> str:
    moved = [k for k, other in enumerate(order) if k != other]
    who = ' and '.join(f"'{names[k]}'" for k in moved)
    looks = listed(f"'{names[order[k]]}' looks like '{names[k]}'" for k in moved)
    return (f'{"" if with_states else "the efforts of "}{who} seem to be exchanged ({looks}): '
            'check the order in which they were recorded')


def beyond_limits(model: Model, size: np.ndarray) -> Detected | None:
    """Detect efforts (samples, nv) that exceed the limits of the URDF."""
    limit = np.where(model.effort_limit > 0.0, model.effort_limit, np.inf)
    names = {name: f'{name} ({np.max(x):.3g}, limit {most:.3g})' for name, x, most in zip(
        model.velocity_names, size.T, limit) if np.mean(x > BEYOND * most) > MAX_BEYOND}
    return Detected(tuple(names), f'efforts exceed the effort limits of the URDF: '
                    f'{listed(names.values())}; are they torques in N m, or currents? Find the '
                    f'gains (rbd_ros gains, --scale); {CONFIRM}') if names else None


CONFIRM = ('if the efforts are torques and the description is wrong, confirm it with '
           '--efforts-are-torques')
