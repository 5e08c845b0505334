# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Lanes: one number of each of several states, processed together.

Recursions are written once, for floats and for lanes. Operators on lanes work lane by lane; floats
count for all lanes. Lanes are rows of an array with the shape (..., WIDTH); compiled, a row fills
one register of the processor (`rbd_ros.kernels.lanes.compiled_lanes`).

A kernel for lanes gets the robot as a pair `(constants, work)`: the table of one state, of which
only constants are read, and a table of lanes with the same layout for all state-dependent values.

"""

import math

import numpy as np
from rbd_ros.kernels.jit.numba_backend import COMPILES

if COMPILES:
    import llvmlite.binding
    import numba

# Bytes of a cache line.
LINE = 64
# Size of a result, bytes, from which on it is written past the caches, which it would overflow.
STREAMED = 2 ** 20
# Width of interpreted lanes: NumPy takes hardly longer for an array of this size than for a float.
INTERPRETED = 256


def register_width():
    """Return how many floats a register of this processor holds."""
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES is not None:
        return 2
    features = llvmlite.binding.get_host_cpu_features()
    return 8 if features.get('avx512f') else 4 if features.get('avx') else 2


WIDTH = register_width() if COMPILES else INTERPRETED


def zeros_for_lanes(shape):
    """Return zeros aligned to cache lines; loads across two lines take twice the time."""
    return on_lines(np.zeros(8 * math.prod(shape) + LINE, np.uint8), shape)


def on_lines(memory, shape):
    """Return an array aligned to cache lines in a buffer that has LINE bytes to spare."""
    start = -memory.ctypes.data % LINE
    return memory[start:start + 8 * math.prod(shape)].view(float).reshape(shape)


def constants_of(robot):
    """Return the table with the constants of the robot."""
    return robot[0] if isinstance(robot, tuple) else robot


def work_of(robot):
    """Return the table with all state-dependent values."""
    return robot[1] if isinstance(robot, tuple) else robot


def vectorized(robot):
    """Return whether a kernel processes several states at once."""
    return isinstance(robot, tuple)


# What the traits of a robot say, see `rbd_ros.kernels.tree.columns`.
def only_screws(traits):
    """Return whether every joint is a screw."""
    return type(traits) in (int, float)


def sharing(traits):
    """Return whether joints share coordinates."""
    return type(traits) in (float, bool)


def as_screw(traits):
    """Return the argument for a body that is known to be moved by a screw."""
    return 1.0 if sharing(traits) else 1


def entry(x, i):
    """Return entry i of a vector."""
    # A copy: lanes are values, as floats are, and do not change with x.
    return x[i] if x.ndim == 1 else x[i].copy()


def set_entry(x, i, value):
    """Write entry i of a vector."""
    x[i] = value


def element(x, i, j):
    """Return an entry of a matrix."""
    return x[i, j] if x.ndim == 2 else x[i, j].copy()


def set_element(x, i, j, value):
    """Write an entry of a matrix."""
    x[i, j] = value


def gather(X, first, x):
    """Copy WIDTH states, beginning with the first, to lanes; the last state fills up x."""
    states = X[np.minimum(first + np.arange(WIDTH), len(X) - 1)]
    x[:] = np.moveaxis(states, 0, -1).reshape(x.shape)


def scatter(x, first, X):
    """Copy lanes to WIDTH states, beginning with the first; X may have more entries than x."""
    states = X[first:first + WIDTH].reshape(-1, math.prod(X.shape[1:]))
    entries = np.moveaxis(x, -1, 0)[:len(states)].reshape(len(states), -1)
    states[:, :entries.shape[1]] = entries


def exceeds(x, y):
    """Return whether x > y, in all lanes."""
    return bool(np.all(x > y))


def reciprocal(x):
    """Return 1 / x where x > 0, else 0."""
    return np.divide(1.0, x, out=np.zeros_like(x), where=x > 0.0)


def square_root(x):
    """Return the square root of a number, NaN where it is negative."""
    return np.sqrt(x)


def finite(x):
    """Return whether a number is finite, in all lanes."""
    return bool(np.all(np.isfinite(x)))
