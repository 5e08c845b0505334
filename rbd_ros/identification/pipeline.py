# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
From recordings to parts, in one process, in several, or on a cluster.

Each recording is reduced by itself, by a pure function; the parts are merged where they arrive.

"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import active_children, get_context
import os
from signal import pthread_sigmask, SIG_BLOCK, SIG_SETMASK, SIGINT
from typing import NamedTuple, TypeVar

import numpy as np
from rbd_ros import batch
from rbd_ros.errors import RbdError, StateError
from rbd_ros.identification.partials import Partial
from rbd_ros.identification.report import Comparison
from rbd_ros.model.friction import direction, friction
from rbd_ros.model.model import Model
from rbd_ros.recordings.recording import read_recording
from rbd_ros.recordings.samples import prepare, Samples

Result = TypeVar('Result')
# Samples of a recording in which mistakes are looked for.
EXCERPT = 20_000
# Speed over which dry friction changes its sign, as a share of that below which a joint stands.
STANDING = 0.5
Progress = Callable[[int, int], object]


class Reading(NamedTuple):
    """
    How recordings are read: the arguments of `read_recording` and `prepare`.

    Attributes
    ----------
    rename : dict of str to str
        New names of joints by those in the file.
    scale : dict of str to float
        Factors on efforts by joint.
    start, stop : float or None
        s from the beginning of each recording.
    topic : str or None
        Of bags.
    cutoff : float or None
        Of the filter, Hz; None: found by `prepare`.
    delay : float or 'estimate'
        Of the efforts, s, which is removed.

    """

    rename: Mapping[str, str] | None = None
    scale: Mapping[str, float] | None = None
    start: float | None = None
    stop: float | None = None
    topic: str | None = None
    cutoff: float | None = None
    delay: float | str = 'estimate'


def read_samples(model: Model, path: str | os.PathLike[str], reading: Reading) -> Samples:
    """
    Return samples of a recording.

    Parameters
    ----------
    model : Model
        The robot.
    path : path-like
        The recording.
    reading : Reading
        How it is read.

    Returns
    -------
    Samples
        Of `prepare`.

    """
    recording = read_recording(path, topic=reading.topic, rename=reading.rename,
                               scale=reading.scale, start=reading.start, stop=reading.stop,
                               joints=model.velocity_names)
    return prepare(model, recording, cutoff=reading.cutoff, delay=reading.delay)


def model_torques(model: Model, samples: Samples, smooth: float | np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the torques that a robot needs for recorded motions, filtered as these are.

    Parameters
    ----------
    model : Model
        The robot.
    samples : Samples
        Of a recording.
    smooth : float or ndarray, shape (nv,)
        Speed over which dry friction changes its sign, rad/s or m/s: well above what the filter
        leaves of noise in joints that stand.

    Returns
    -------
    torques, friction : ndarray, shape (samples, nv)
        All of them, N m or N, and the part that is friction.

    """
    v = samples.v
    dry = samples.low_pass(friction(model, v, direction(v, smooth), v))
    return batch.inverse_dynamics(model, samples.q, v, samples.a) + dry, dry


class Errors(NamedTuple):
    """
    How well a robot explains a recording, over the samples that move and can be used.

    Attributes
    ----------
    counts : ndarray of int, shape (nv,)
        How many samples those are.
    torque, urdf, fit : ndarray, shape (nv,)
        Sums of squares of the measured torques, and of their differences from those of the robot
        as described and as identified, (N m)^2 or N^2.

    """

    counts: np.ndarray
    torque: np.ndarray
    urdf: np.ndarray
    fit: np.ndarray

    def relative(self, sums: np.ndarray) -> float:
        """Return sqrt(sum of squared errors / sum of squared torques)."""
        whole = np.sum(self.torque)
        return float(np.sqrt(np.sum(sums) / whole)) if whole > 0.0 else float('nan')

    def rms(self, sums: np.ndarray) -> np.ndarray:
        """Return the root mean square by joint; NaN where a joint never moved."""
        with np.errstate(invalid='ignore', divide='ignore'):
            return np.sqrt(sums / self.counts)


def compare_recording(path: str, *, urdf: Model, fit: Model, reading: Reading
                      ) -> tuple[Errors, Comparison]:
    """
    Return how a recording compares with two robots.

    Parameters
    ----------
    path : str
        The recording.
    urdf, fit : Model
        The robot as described, and as identified.
    reading : Reading
        How it is read.

    Returns
    -------
    errors : Errors
        In sums, which can be added up over recordings.
    comparison : Comparison
        For a report.

    """
    samples = read_samples(urdf, path, reading)
    # Joints faster than their threshold have their full friction, as in the fit.
    smooth = STANDING * samples.threshold
    described = model_torques(urdf, samples, smooth)[0]
    identified, dry = model_torques(fit, samples, smooth)
    squares = [np.sum(np.square(x), axis=0, where=samples.usable)
               for x in (samples.tau, samples.tau - described, samples.tau - identified)]
    return (Errors(np.sum(samples.usable, axis=0), *squares),
            Comparison(path, samples.time, samples.v, samples.tau, described, identified,
                       dry, samples.usable, samples.threshold, samples.segment))


def map_recordings(function: Callable[[str], Result], paths: Sequence[str], *, workers: int = 1,
                   scheduler: str | None = None, progress: Progress | None = None
                   ) -> Iterator[tuple[int, Result]]:
    """
    Call a function for each recording and yield the results as they arrive.

    Parameters
    ----------
    function : callable
        Takes a path; it and its results can be pickled if there are workers.
    paths : sequence of str
        The recordings; for a cluster, as its workers see them.
    workers : int
        Processes; 1: this one alone.
    scheduler : str, optional
        Address of a Dask scheduler, which then does the work; a recording whose worker dies is
        given to another.
    progress : callable, optional
        Told how many are done, of how many.

    Yields
    ------
    (int, object)
        Number of the recording and the result.

    Raises
    ------
    RbdError
        If Dask is not installed or its scheduler is not there, a process was killed, and whatever
        the function raises.

    """
    for done, item in enumerate(_results(function, paths, workers, scheduler), 1):
        if progress is not None:
            progress(done, len(paths))
        yield item


def _results(function: Callable[[str], Result], paths: Sequence[str], workers: int,
             scheduler: str | None) -> Iterator[tuple[int, Result]]:
    if scheduler is not None:
        yield from _on_cluster(function, paths, scheduler)
    elif min(workers, len(paths)) <= 1:
        for number, path in enumerate(paths):
            yield number, function(path)
    else:
        yield from _in_processes(function, paths, min(workers, len(paths)))


def _in_processes(function: Callable[[str], Result], paths: Sequence[str], workers: int
                  ) -> Iterator[tuple[int, Result]]:
    from concurrent.futures.process import BrokenProcessPool

    others = set(active_children())
    # Threads of numba do not survive a fork.
    pool = ProcessPoolExecutor(workers, mp_context=get_context('spawn'))
    try:
        # Ctrl-C reaches all processes of a terminal: this one ends the others, which inherit what
        # is blocked while they start.
        blocked = pthread_sigmask(SIG_BLOCK, {SIGINT})
        try:
            futures = {pool.submit(function, path): number for number, path in enumerate(paths)}
        finally:
            pthread_sigmask(SIG_SETMASK, blocked)
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException as error:
        # Nobody waits for what the others are still computing.
        for child in set(active_children()) - others:
            child.terminate()
        if isinstance(error, BrokenProcessPool):
            raise RbdError('a worker was killed, perhaps for want of memory: use fewer workers'
                           ) from error
        raise
    finally:
        pool.shutdown(wait=True, cancel_futures=True)


def _on_cluster(function: Callable[[str], Result], paths: Sequence[str], scheduler: str
                ) -> Iterator[tuple[int, Result]]:
    try:
        from distributed import as_completed as completed, Client
    except ImportError as error:
        raise RbdError('a cluster needs Dask: pip install "rbd_ros[fleet]"') from error
    try:
        client = Client(scheduler)
    except (OSError, ValueError) as error:
        raise RbdError(f'no Dask scheduler answers at {scheduler}: {error}') from error
    with client:
        futures = client.map(function, list(paths), pure=False)
        number_of = {future.key: number for number, future in enumerate(futures)}
        for future in completed(futures):
            yield number_of[future.key], future.result()


def default_workers(paths: Sequence[str]) -> int:
    """Return how many processes are worth their start: one a recording, none beyond the cores."""
    return max(1, min(len(paths), len(os.sched_getaffinity(0))))


def check_workers(workers: int) -> int:
    """Return a number of workers, or refuse it."""
    if workers < 1:
        raise StateError(f'workers must be at least 1, got {workers}')
    return workers


def reduce_recording(path: str, *, model: Model, reading: Reading,
                     reduce: Callable[..., Partial]) -> tuple[Partial, Samples]:
    """
    Return what a recording says: a pure function, for other processes and machines.

    Parameters
    ----------
    path : str
        The recording.
    model : Model
        The robot.
    reading : Reading
        How it is read.
    reduce : callable
        `partial` or `payload_partial`, with their options bound.

    Returns
    -------
    part : Partial
        For `merge`.
    excerpt : Samples
        Of the middle, at most `EXCERPT` samples, for `verdict`.

    """
    samples = read_samples(model, path, reading)
    first = max(0, (len(samples) - EXCERPT) // 2)
    rows = slice(first, first + EXCERPT)
    return reduce(model, samples=samples), replace(samples, **{
        label: getattr(samples, label)[rows] for label in
        ('time', 'q', 'v', 'a', 'tau', 'usable', 'moving', 'saturated', 'segment')})
