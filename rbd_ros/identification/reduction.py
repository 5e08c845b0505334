# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reduce recordings to their information about parameters, in constant memory, and merge results.

Torques are linear in the parameters, so the R factor of [Y_j, tau_j] for each joint j contains all
information of a recording. Each recording is cut into `BLOCKS` of time, the k-th blocks of all
recordings are merged, and each block keeps its own factors: their scatter shows how certain an
estimate is. The R factor of two stacked R factors is that of both parts: merging is associative
and, up to rounding, independent of the order. StateError is raised for invalid samples or options,
ModelError for a robot without moving joints.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.batch.regressors import triangle
from rbd_ros.errors import ModelError, StateError
from rbd_ros.identification.parameters import (base_of, BaseParameters, Parameters,
                                               robot_parameters, States)
from rbd_ros.model.arguments import check_model, finite_array, rows, shown
from rbd_ros.model.changes.drives import USUAL
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples

# Blocks of time: enough to estimate a variance between them (with a standard deviation of a
# quarter), and long compared with the correlation time of torque errors. Smallest length, s.
BLOCKS, MIN_BLOCK_LENGTH = 32, 0.5
MAX_REGRESSOR_SIZE = 2 ** 22  # Most numbers of a regressor held in memory: 32 MB.


@dataclass(frozen=True, eq=False)
class Partial:
    """
    Information of recordings about parameters; see `partial` and `merge`.

    Attributes
    ----------
    kind : tuple of str
        ``('robot', *drive columns)`` or ``('load', link)``.
    names, base : tuple of str, BaseParameters
        All parameters, and the base parameters of the factors.
    columns : tuple of ndarray of int
        For each joint, the base parameters on which its torque depends.
    factors : tuple of ndarray, shape (BLOCKS, columns + 1, columns + 1)
        For each joint, R of [Y_j, tau_j - known torques] over the usable samples.
    counts, squares : ndarray, shape (BLOCKS, nv) and (nv,)
        Number of usable samples, and sum of tau_j^2 over them.
    samples, duration : int, float
        Number of all samples, and total duration, s; 0 if unknown.
    moving, saturated : ndarray of int, shape (nv,)
        Number of samples in which the joint moved, or its drive was at its limit.
    motion : ndarray, shape (2, nv)
        Sums of v^2 and of a^2 over all samples.

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
    Reduce a recording to its information about a robot's parameters, for `merge` and `fit`.

    A pure function of picklable arguments, for other processes and machines.

    Parameters
    ----------
    model, samples : Model, Samples
        The robot, and the result of `prepare`.
    friction : sequence of str
        Friction columns to identify, see `rbd_ros.analysis.friction_regressor`; if empty, the
        friction of the model is assumed. With closed loops, the friction and rotors of dependent
        joints are those of the model.
    rotors : bool
        Whether to identify rotor inertias or to assume those of the model.
    threads, progress
        As in `rbd_ros.batch`.

    """
    return reduce_samples(robot_parameters(model, friction, rotors), samples, threads, progress)


def reduce_samples(parameters: Parameters, samples: Samples, threads: int | None = None,
                   progress: Callable[[int, int], object] | None = None, *,
                   structure: tuple[BaseParameters, np.ndarray] | None = None) -> Partial:
    """Reduce a recording as `partial` does, for any parameters; structure: see `base_of`."""
    base, support = base_of(parameters) if structure is None else structure
    model, count = parameters.model, len(samples.q)
    columns = tuple(np.flatnonzero(one) for one in support)
    factors = tuple(np.zeros((BLOCKS, len(one) + 1, len(one) + 1)) for one in columns)
    states, block = states_of(samples), block_of(samples)
    used = np.asarray(samples.usable, bool)
    for chunk, part in chunks(parameters, states):
        Y = parameters.regressor(part, threads)[:, :, base.independent]
        unknown = samples.tau[chunk] - parameters.known(part, threads)
        for j, active in enumerate(columns):
            rows = np.column_stack((Y[:, j, active], unknown[:, j]))
            for k in np.unique(block[chunk]):
                own = used[chunk, j] & (block[chunk] == k)
                factors[j][k] = triangle(factors[j][k], rows[own])
        if progress is not None:
            progress(chunk.stop, count)
    counts = np.zeros((BLOCKS, model.nv), int)
    np.add.at(counts, block, used)
    time = samples.time
    return Partial(
        kind=parameters.kind, names=parameters.names, base=base, columns=columns, factors=factors,
        counts=counts, squares=np.sum(samples.tau ** 2, axis=0, where=used), samples=count,
        moving=np.sum(samples.moving, axis=0), saturated=np.sum(samples.saturated, axis=0),
        motion=np.array([np.sum(x ** 2, axis=0) for x in (samples.v, samples.a)]),
        duration=float(time[-1] - time[0]) if count > 1 else 0.0)


def chunks(parameters: Parameters, states: States) -> Iterator[tuple[slice, States]]:
    """Yield states in parts whose regressor fits into memory, with their rows."""
    count = len(states.q)
    step = 1 + MAX_REGRESSOR_SIZE // (parameters.model.nv * len(parameters.names))
    for start in range(0, count, step):
        chunk = slice(start, min(start + step, count))
        yield chunk, States(*(x[chunk] for x in states))


def merge(*parts: Partial) -> Partial:
    """Merge ``parts``, results of `partial`; StateError if there are none or parameters differ."""
    if not parts:
        raise StateError('merge needs at least one part')
    first = parts[0]
    for other in parts[1:]:
        same = (other.kind, other.names, other.base.names) == (first.kind, first.names,
                                                               first.base.names)
        if not same or not np.allclose(other.base.combination, first.base.combination):
            raise StateError('these recordings were reduced for different parameters, or robots '
                             'with different geometry: use the same robot, friction and rotors '
                             'for all of them')
    return replace(
        first, factors=tuple(np.stack([triangle(*blocks) for blocks in zip(*same)])
                             for same in zip(*(part.factors for part in parts))),
        **{label: sum(getattr(part, label) for part in parts) for label in
           ('counts', 'squares', 'samples', 'moving', 'saturated', 'motion', 'duration')})


def states_of(samples: Samples) -> States:
    """Return the states, with directions of motion filtered as the efforts were."""
    return States(samples.q, samples.v, samples.a, samples.low_pass(np.sign(samples.v)))


def block_of(samples: Samples) -> np.ndarray:
    """Return the number of the block of every sample."""
    time = np.asarray(samples.time, float)
    if len(time) < 2:
        return np.zeros(len(time), int)
    length = max((time[-1] - time[0]) / BLOCKS, MIN_BLOCK_LENGTH)
    # Absolute time: parts of a recording agree on the blocks.
    return np.floor(time / length).astype(int) % BLOCKS


def samples_of(model: Model, q: ArrayLike, v: ArrayLike, a: ArrayLike, tau: ArrayLike,
               time: ArrayLike | None = None, usable: ArrayLike | None = None) -> Samples:
    """Return arrays of a user as samples, validated; see `identify`."""
    check_model(model)
    if not model.nv:
        raise ModelError(f"robot '{model.name}' has no joint that moves")
    q = rows(model, 'q', q, positions=True)
    v, a, tau = (rows(model, label, x, len(q)) for label, x in (('v', v), ('a', a), ('tau', tau)))
    if not len(q):
        raise StateError('q holds no samples')
    time = (np.arange(float(len(q))) if time is None else finite_array('time', time, (len(q),)))
    if np.any(np.diff(time) <= 0.0):
        raise StateError('time must increase from sample to sample')
    usable = np.ones(v.shape, bool) if usable is None else np.asarray(usable)
    if usable.dtype != bool or usable.shape != v.shape:
        raise StateError(f'usable must be truth values of the shape {v.shape}, got '
                         + shown(usable))
    none, rate = np.zeros(v.shape, bool), 1.0 / np.mean(np.diff(time)) if len(time) > 1 else 1.0
    return Samples(time=time, q=q, v=v, a=a, tau=tau, raw=tau, usable=usable, moving=v != 0.0,
                   saturated=none, threshold=np.zeros(model.nv), segment=np.zeros(len(q), int),
                   rate=rate, cutoff=np.inf)
