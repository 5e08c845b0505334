# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The positions of all joints while the independent joints of a robot with closed loops move."""

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import close_samples, moved_closed
from rbd_ros.model.positions.configurations import independent_positions, neutral

# Longest step of an independent joint from one closure to the next, rad or m, and how often it is
# halved where Newton's method fails.
STRIDE, CUTS = 0.2, 2


def whole_motion(model: Model, q: np.ndarray) -> np.ndarray | None:
    """Return configurations (points, nq) for positions of the independent joints, or None."""
    # The loops are closed all the way from the neutral configuration through the points, if they
    # can be. Without loops these are the positions.
    if model.loops is None:
        return q
    own, start = independent_positions(model), neutral(model)
    way = np.concatenate((start[None, own], q))
    parts = np.maximum(1, np.ceil(np.max(np.abs(np.diff(way, axis=0)), axis=1) / STRIDE))
    ends = np.concatenate(([0.0], np.cumsum(parts)))
    found = np.tile(start, (int(ends[-1]) + 1, 1))
    found[:, own] = np.stack([np.interp(np.arange(len(found)), ends, x) for x in way.T], 1)
    row = 1
    while (row := close_samples(model, row, 2.0 * STRIDE, found)) < len(found):
        try:
            step = found[row, own] - found[row - 1, own]
            found[row] = moved_closed(model, found[row - 1], step, CUTS)
        except StateError:
            return None
        row += 1
    return found[ends[1:].astype(int)]


def passive_limits(model: Model) -> np.ndarray:
    """Return the limits (nq, 2) of dependent joints, infinite for other ones and quaternions."""
    tree, limits = model.unconstrained, np.full((model.nq, 2), np.inf) * (-1.0, 1.0)
    assert model.loops is not None
    own = set(model.loops.own.tolist())
    for joint, q, v in tree.moving_joints:
        for i, k in zip(range(q.start, q.stop), range(v.start, v.stop)):
            if KINDS[joint.kind].is_screws and k not in own:
                limits[i] = tree.lower[k], tree.upper[k]
    return limits


def shrunk(limits: np.ndarray, share: float) -> np.ndarray:
    """Return limits (nq, 2), of which those with two ends shrink about their middle."""
    both = np.all(np.isfinite(limits), axis=1, keepdims=True)
    middle = np.mean(np.where(both, limits, 0.0), axis=1, keepdims=True)
    return np.where(both, middle + share * (limits - middle), limits)
