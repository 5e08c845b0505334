# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reduce recordings here, in several processes or on a cluster, and compare them with robots."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from concurrent.futures import as_completed, ProcessPoolExecutor
from dataclasses import replace
from multiprocessing import active_children, get_context
import os
from signal import pthread_sigmask, SIG_BLOCK, SIG_SETMASK, SIGINT
from typing import NamedTuple, TypeVar

from rbd_ros.batch.torque_deviation import torque_deviation
from rbd_ros.errors import RbdError
from rbd_ros.identification.least_squares import Identification
from rbd_ros.identification.reduction import Partial
from rbd_ros.identification.report import Comparison
from rbd_ros.identification.torque_uncertainty import (
    FRICTION_SMOOTHING, left_out_residuals, LeftOut, model_torques, Residuals)
from rbd_ros.model.model import Model
from rbd_ros.recordings.preparation import prepare
from rbd_ros.recordings.recording import read_recording, Recording
from rbd_ros.recordings.samples import Samples

Result = TypeVar('Result')
EXCERPT = 20_000  # Samples of a recording that are searched for mistakes.
Progress = Callable[[int, int], object]


class Reading(NamedTuple):
    """How recordings are read: the arguments of `read_recording` and `prepare`."""

    rename: Mapping[str, str] | None = None     # new name for each joint name in the file
    scale: Mapping[str, float] | None = None    # factors of the efforts by joint
    start: float | None = None                  # s from the beginning of each recording
    stop: float | None = None
    topic: str | None = None                    # of bags
    cutoff: float | None = None                 # of the filter, Hz; None: chosen by `prepare`
    delay: float | str = 'estimate'             # of the efforts to remove, s


def read_for_robot(model: Model, path: str | os.PathLike[str], reading: Reading) -> Recording:
    """Read a recording of a robot."""
    return read_recording(path, topic=reading.topic, rename=reading.rename, scale=reading.scale,
                          start=reading.start, stop=reading.stop, joints=model.velocity_names)


def read_samples(model: Model, path: str | os.PathLike[str], reading: Reading) -> Samples:
    """Read a recording and return its samples for a robot."""
    return prepare(model, read_for_robot(model, path, reading), cutoff=reading.cutoff,
                   delay=reading.delay)


def compare_recording(path: str, *, urdf: Model, fit: Model, reading: Reading) -> Comparison:
    """Return a recording with the torques of the original and of the identified robot."""
    samples = read_samples(urdf, path, reading)
    smooth = FRICTION_SMOOTHING * samples.threshold
    identified, dry_friction = model_torques(fit, samples, smooth)
    deviation = None if fit.uncertainty is None else torque_deviation(
        fit, samples.q, samples.v, samples.a, bandwidth=samples.cutoff)
    return Comparison(path, samples.time, samples.v, samples.tau,
                      model_torques(urdf, samples, smooth)[0], identified, dry_friction,
                      samples.usable, samples.threshold, samples.segment, deviation)


def left_out_recording(path: str, *, found: Identification, left_out: LeftOut, reading: Reading
                       ) -> list[list[Residuals]]:
    """Return the residuals of a recording from robots that were identified without them."""
    return left_out_residuals(found, left_out, read_samples(found.parameters.model, path, reading))


def map_recordings(function: Callable[[str], Result], paths: Sequence[str], *, workers: int = 1,
                   scheduler: str | None = None, progress: Progress | None = None
                   ) -> Iterator[tuple[int, Result]]:
    """
    Call a function for each recording, and yield its index and result as they arrive.

    With several ``workers`` (processes), or the address of a Dask ``scheduler``, the function and
    its results must be picklable. A cluster needs paths as its workers see them; if one of these
    dies, its recording is given to another. ``progress`` is called with the number done and the
    total.

    """
    workers = min(workers, len(paths))
    results: Iterable[tuple[int, Result]] = enumerate(map(function, paths))
    if scheduler is not None:
        results = _on_cluster(function, paths, scheduler)
    elif workers > 1:
        results = _in_processes(function, paths, workers)
    for done, item in enumerate(results, 1):
        if progress is not None:
            progress(done, len(paths))
        yield item


def _in_processes(function: Callable[[str], Result], paths: Sequence[str], workers: int
                  ) -> Iterator[tuple[int, Result]]:
    from concurrent.futures.process import BrokenProcessPool
    others = set(active_children())
    # Numba's threads do not survive a fork.
    pool = ProcessPoolExecutor(workers, mp_context=get_context('spawn'))
    try:
        # Ctrl-C reaches all processes of a terminal. Workers inherit the blocked signal, and this
        # process terminates them.
        blocked = pthread_sigmask(SIG_BLOCK, {SIGINT})
        try:
            futures = {pool.submit(function, path): number for number, path in enumerate(paths)}
        finally:
            pthread_sigmask(SIG_SETMASK, blocked)
        for future in as_completed(futures):
            yield futures[future], future.result()
    except BaseException as error:
        # Discard work in progress.
        for child in set(active_children()) - others:
            child.terminate()
        if isinstance(error, BrokenProcessPool):
            raise RbdError('a worker was killed, perhaps out of memory: use fewer workers'
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
    """Return one process per recording, but not more than there are cores."""
    return max(1, min(len(paths), len(os.sched_getaffinity(0))))


def reduce_recording(path: str, *, model: Model, reading: Reading,
                     reduce: Callable[..., Partial]) -> tuple[Partial, Samples]:
    """Reduce a recording; also return an excerpt from its middle, for `verdict`."""
    samples = read_samples(model, path, reading)
    first = max(0, (len(samples) - EXCERPT) // 2)
    rows = slice(first, first + EXCERPT)
    return reduce(model, samples=samples), replace(samples, **{
        label: getattr(samples, label)[rows] for label in
        ('time', 'q', 'v', 'a', 'tau', 'raw', 'usable', 'moving', 'saturated', 'segment')})
