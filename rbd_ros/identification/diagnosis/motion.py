# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The samples that hypotheses are compared with, and the torques that hypotheses are made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
from rbd_ros import batch
from rbd_ros.identification.parameters import LoadParameters, States
from rbd_ros.identification.reduction import states_of
from rbd_ros.model.changes.modifications import with_gravity
from rbd_ros.model.model import Model
from rbd_ros.recordings.delays import explanatory_columns
from rbd_ros.recordings.samples import Samples

# Samples of a recording that are compared at most, and their number per period of the cut-off:
# filtered noise has no more independent ones.
MAX_ROWS, ROWS_PER_PERIOD = 2500, 4.0
BLOCKS = 20     # Parts of the time of a recording.


@dataclass(frozen=True, eq=False)
class Motion:
    """Samples of recordings, as rows."""

    model: Model            # the description
    time: np.ndarray        # (rows,), s
    states: States
    tau: np.ndarray         # (rows, nv), efforts
    use: np.ndarray         # (rows, nv), whether each can be used
    block: np.ndarray       # (rows,), part of the time, numbered across recordings
    late: np.ndarray        # (rows, nv), change of the efforts per second of their delay
    factor: np.ndarray      # (nv,), known factors of the efforts, by which all else changes them
    # Sizes, by kind and place, about which changes that are not linear are linearised.
    about: Mapping[tuple[str, str], float]
    payload_link: str | None = None     # that may carry a payload; None: the last ones

    @property
    def recording(self) -> np.ndarray:
        """Return the number of the recording of each row."""
        return self.block // BLOCKS

    @cached_property
    def described(self) -> np.ndarray:
        """Return the torques of the description, friction and springs included, (rows, nv)."""
        return self.torques(self.states)

    def torques(self, states: States) -> np.ndarray:
        """Return the torques of the description for other states."""
        return LoadParameters(self.model, '').known(states)

    @cached_property
    def regressor(self) -> np.ndarray:
        """Return the torques per inertial parameter, (rows, nv, 10 bodies)."""
        return batch.torque_regressor(self.model, *self.states[:3])

    @cached_property
    def gravity(self) -> np.ndarray:
        """Return the torques per component of gravity, (rows, nv, 3)."""
        return np.stack([batch.gravity_torques(with_gravity(self.model, axis), self.states.q)
                         for axis in np.eye(3)], axis=2)


def motion_of(model: Model, recordings: Sequence[Samples], factor: np.ndarray | float = 1.0,
              about: Mapping[tuple[str, str], float] | None = None, delay: float = 0.0,
              payload_link: str | None = None, most: int = MAX_ROWS) -> Motion:
    """Return at most ``most`` samples of each recording as one motion; ``delay``: about it, s."""
    parts = [_rows(model, one, (about or {}).get(('delay', ''), delay), most)
             for one in recordings]
    states = States(*map(np.concatenate, zip(*(one.states for one in parts))))
    time, tau, use, block, late = map(np.concatenate, zip(*(
        (one.time, one.tau, one.use, one.block + k * BLOCKS, one.late)
        for k, one in enumerate(parts))))
    return Motion(model, time, states, tau, use, block, late, np.broadcast_to(factor, model.nv),
                  about or {}, payload_link)


def _rows(model: Model, samples: Samples, delay: float, most: int) -> Motion:
    rows = np.flatnonzero(np.any(samples.usable, axis=1))
    period = samples.rate / (ROWS_PER_PERIOD * samples.cutoff)
    rows = rows[::max(1, int(period), -(-len(rows) // most))]
    since = samples.time[rows] - samples.time[rows[0]]
    block = np.minimum((BLOCKS * since / max(since[-1], 1e-9)).astype(int), BLOCKS - 1)
    return Motion(model, samples.time[rows], States(*(x[rows] for x in states_of(samples))),
                  samples.tau[rows], samples.usable[rows], block,
                  _late(model, samples, delay)[rows], np.ones(model.nv), {})


def _late(model: Model, samples: Samples, delay: float) -> np.ndarray:
    """Return the change of the efforts per second of their delay, about some delay."""
    columns, late = explanatory_columns(model, samples), np.zeros_like(samples.tau)
    delay = delay or 1.0 / samples.rate
    for k in np.unique(samples.segment):
        rows = samples.segment == k
        time = samples.time[rows]
        for j in range(model.nv):
            x, use = columns[rows, j], samples.usable[rows, j]
            in_time = np.interp(time + delay, time, samples.tau[rows, j])
            smooth = x @ np.linalg.lstsq(x[use], in_time[use], rcond=None)[0]
            late[rows, j] = (np.interp(time - delay, time, smooth) - smooth) / delay
    return late


def span(N: np.ndarray) -> np.ndarray:
    """Return an orthonormal basis of columns, some of which may be zero or dependent."""
    U, sigma, _ = np.linalg.svd(N, full_matrices=False)
    return np.asarray(U[:, sigma > 1e-9 * np.max(sigma, initial=np.finfo(float).tiny)])
