# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What recordings say about parameters, in constant memory: computed in parts, which are merged.

Torques are linear in the parameters, so all that a recording says of them is in the R factors of
[Y_j, tau_j], one for each joint j, so that joints can be weighed afterwards. Each recording is cut
into `STRETCHES` of time, the k-th of all recordings are put together, and each has factors of its
own: how the estimate differs between them is what tells how certain it is (`uncertainty`). Factors
of two parts, one above the other, have the R factor of both: merging is associative, and the order
does not matter but for rounding.

"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.least_squares import triangle
from rbd_ros.errors import ModelError, StateError
from rbd_ros.identification.parameters import (base_of, BaseParameters, Parameters,
                                               robot_parameters, States)
from rbd_ros.model.arguments import check_model, finite_array, rows, shown
from rbd_ros.model.drives import USUAL
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples

# Stretches of time: enough for a variance between them (its deviation is a quarter of it), and
# long compared with the time over which errors of torques are correlated. The shortest, s.
STRETCHES, SHORTEST = 32, 0.5
# Numbers in the regressors that are held at once: 32 MB.
ROOM = 2 ** 22


@dataclass(frozen=True)
class Partial:
    """
    What recordings say of the parameters of a robot or a load; see `partial` and `merge`.

    Attributes
    ----------
    kind : tuple of str
        What was looked for: ``'robot'`` and the columns of its drives, or ``'load'`` and the link
        that carries it.
    names : tuple of str
        All parameters.
    base : BaseParameters
        The combinations that torques can show: factors are of their columns.
    columns : tuple of ndarray of int
        For each joint, which of the base parameters its torque depends on.
    factors : tuple of ndarray, shape (STRETCHES, columns + 1, columns + 1)
        For each joint, R of [Y_j, tau_j - known torques], over the samples that can be used.
    counts : ndarray of int, shape (STRETCHES, nv)
        How many those are.
    squares : ndarray, shape (nv,)
        Sum of tau_j^2 over them.
    samples : int
        How many there were at all.
    moving : ndarray of int, shape (nv,)
        In how many the joint moved.
    saturated : ndarray of int, shape (nv,)
        In how many its drive was at its limit.
    motion : ndarray, shape (2, nv)
        Sums of v^2 and of a^2 over all samples.
    duration : float
        Of all recordings, s; 0 if not known.

    """

    kind: tuple[str, ...]
    names: tuple[str, ...]
    base: BaseParameters
    columns: tuple[np.ndarray, ...]
    factors: tuple[np.ndarray, ...]
    counts: np.ndarray
    squares: np.ndarray
    samples: int
    moving: np.ndarray
    saturated: np.ndarray
    motion: np.ndarray
    duration: float


def partial(model: Model, samples: Samples, *, friction: Sequence[str] = USUAL,
            rotors: bool = True, threads: int | None = None,
            progress: Callable[[int, int], object] | None = None) -> Partial:
    """
    Return what a recording says of a robot's parameters.

    A pure function, of what can be pickled, for a process of its own or another machine.

    Parameters
    ----------
    model : Model
        The robot.
    samples : Samples
        As `prepare` returns them.
    friction : sequence of str
        What is looked for of friction, see `rbd_ros.analysis.friction_regressor`; none: that of
        the model is taken to be right.
    rotors : bool
        Whether the inertias of rotors are looked for, or taken to be as in the model.
    threads, progress
        As in `rbd_ros.batch`.

    Returns
    -------
    Partial
        For `merge` and `fit`.

    Raises
    ------
    StateError
        If there is no such friction.

    """
    return reduce_samples(robot_parameters(model, friction, rotors), samples, threads, progress)


def reduce_samples(parameters: Parameters, samples: Samples, threads: int | None = None,
                   progress: Callable[[int, int], object] | None = None, *,
                   structure: tuple[BaseParameters, np.ndarray] | None = None) -> Partial:
    """Return what a recording says of parameters, as `partial` does; structure: see `base_of`."""
    base, support = base_of(parameters) if structure is None else structure
    model, count = parameters.model, len(samples.q)
    columns = tuple(np.flatnonzero(one) for one in support)
    factors = tuple(np.zeros((STRETCHES, len(one) + 1, len(one) + 1)) for one in columns)
    states, stretch = states_of(samples), _stretches(samples)
    borders = np.flatnonzero(np.diff(stretch)) + 1
    used = np.asarray(samples.usable, bool)
    step = 1 + ROOM // (model.nv * len(parameters.names))
    for start in range(0, count, step):
        chunk = slice(start, min(start + step, count))
        part = States(*(x[chunk] for x in states))
        Y = parameters.regressor(part, threads)[:, :, base.independent]
        rest = samples.tau[chunk] - parameters.known(part, threads)
        inside = borders[(borders > chunk.start) & (borders < chunk.stop)] - start
        pieces = np.split(np.arange(len(part.q)), inside)
        for j, own in enumerate(columns):
            rows = np.column_stack((Y[:, j, own], rest[:, j]))
            for piece in pieces:
                k = stretch[start + piece[0]]
                factors[j][k] = triangle(factors[j][k], rows[piece][used[chunk][piece, j]])
        if progress is not None:
            progress(chunk.stop, count)
    counts = np.zeros((STRETCHES, model.nv), int)
    np.add.at(counts, stretch, used)
    time = samples.time
    return Partial(
        kind=parameters.kind, names=parameters.names, base=base, columns=columns,
        factors=factors, counts=counts,
        squares=np.sum(samples.tau ** 2, axis=0, where=used), samples=count,
        moving=np.sum(samples.moving, axis=0), saturated=np.sum(samples.saturated, axis=0),
        motion=np.array([np.sum(x ** 2, axis=0) for x in (samples.v, samples.a)]),
        duration=float(time[-1] - time[0]) if count > 1 else 0.0)


def merge(*parts: Partial) -> Partial:
    """
    Return what several recordings say together.

    Parameters
    ----------
    *parts : Partial
        Of the same robot and the same parameters; or merged ones.

    Returns
    -------
    Partial
        The order matters only for rounding, and so does which were merged before.

    Raises
    ------
    StateError
        If there are none, or they are of other parameters.

    """
    if not parts:
        raise StateError('merge needs at least one part')
    first = parts[0]
    for other in parts[1:]:
        same = (other.kind, other.names, other.base.names) == (first.kind, first.names,
                                                               first.base.names)
        if not same or not np.allclose(other.base.combination, first.base.combination):
            raise StateError('these recordings were reduced for different parameters, or robots '
                             'whose joints are not in the same places: use the same robot, '
                             'friction and rotors for all of them')
    return replace(
        first,
        factors=tuple(np.stack([triangle(*blocks) for blocks in zip(*same)])
                      for same in zip(*(part.factors for part in parts))),
        **{label: sum(getattr(part, label) for part in parts) for label in
           ('counts', 'squares', 'samples', 'moving', 'saturated', 'motion', 'duration')})


def states_of(samples: Samples) -> States:
    """Return the states, their directions filtered as the efforts were."""
    s = np.sign(samples.v)
    if np.isfinite(samples.cutoff):
        s = samples.low_pass(s)
    return States(samples.q, samples.v, samples.a, s)


def _stretches(samples: Samples) -> np.ndarray:
    """Return for every sample the number of its stretch."""
    time = np.asarray(samples.time, float)
    if len(time) < 2:
        return np.zeros(len(time), int)
    length = max((time[-1] - time[0]) / STRETCHES, SHORTEST)
    # From the same zero for all parts of a recording that was cut.
    return np.floor(time / length).astype(int) % STRETCHES


def samples_of(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
               time: ArrayLike | None = None, usable: ArrayLike | None = None) -> Samples:
    """Return arrays of a user as samples, or refuse them; see `identify`."""
    check_model(model)
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves")
    q = rows(model, 'q', q, positions=True)
    v, a, tau = (rows(model, label, x, len(q)) for label, x in (('v', v), ('a', a), ('tau', tau)))
    if not len(q):
        raise StateError('q holds no samples')
    time = (np.arange(float(len(q))) if time is None
            else finite_array('time', time, (len(q),)))
    if np.any(np.diff(time) <= 0.0):
        raise StateError('time must increase from sample to sample')
    usable = np.ones(v.shape, bool) if usable is None else np.asarray(usable)
    if usable.dtype != bool or usable.shape != v.shape:
        raise StateError(f'usable must be truth values of the shape {v.shape}, got '
                         + shown(usable))
    none, rate = np.zeros(v.shape, bool), 1.0 / np.mean(np.diff(time)) if len(time) > 1 else 1.0
    return Samples(
        time=time, q=q, v=v, a=a, tau=tau, usable=usable, moving=v != 0.0, saturated=none,
        threshold=np.zeros(model.nv), segment=np.zeros(len(q), int), rate=rate, cutoff=np.inf,
        delay=0.0, delay_deviation=np.inf, delay_explains=0.0, delay_removed=0.0, left_out=0.0,
        notes=())
