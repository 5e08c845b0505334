# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Forward and hybrid dynamics of many states of robots with coupled coordinates."""

from collections.abc import Sequence

import numpy as np
from rbd_ros.batch.tasks import Problem, run_kernel
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.kernels.batch import dense_hybrid_dynamics_states
from rbd_ros.workspace.lanes import Scratch
from rbd_ros.workspace.workspace import workspace_of


def solve_dense(problem: Problem, bias: Problem, terms: Problem,
                given: tuple[np.ndarray, np.ndarray, np.ndarray], arrays: Sequence[np.ndarray],
                threads: int | None, progress: Progress | None) -> None:
    """
    Solve the equations of motion in the coordinates of the robot [K (33)].

    ``problem`` is forward or hybrid dynamics, used for errors; ``bias`` and ``terms`` are inverse
    dynamics without accelerations, and all terms, of the same states; ``given`` has the
    accelerations, the torques and the mask. ``arrays`` receive the accelerations, or accelerations
    and torques.

    """
    model, (a, tau, prescribed) = problem.model, given
    step = min(bias.states_in_piece(), terms.states_in_piece())

    def work(start: int, stop: int) -> None:
        workspace = workspace_of(model)     # not of the tree: its buffers are smaller
        for first in range(start, max(stop, start + 1), step):
            last = min(first + step, stop)
            b, M = bias.piece(first, last)[0], np.ascontiguousarray(terms.piece(first, last)[0])
            found, k = np.empty((2, last - first, model.nv)), 0
            while True:
                bad = run_kernel(
                    dense_hybrid_dynamics_states, M[k:], b[k:], a[first + k:last],
                    tau[first + k:last], prescribed,
                    workspace._kept(Scratch('factor', (model.nv, model.nv))), *found[:, k:])
                if bad < 0:
                    break
                k += bad
                values = problem.alone(first + k)
                for x, value in zip(found, values):
                    x[k] = value
                k += 1
                if k == len(b):
                    break
            for array, x in zip(arrays, found):
                array[first:last] = x

    compute(len(a), work, threads, progress)
