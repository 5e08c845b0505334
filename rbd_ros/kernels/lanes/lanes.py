# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Lanes: one number of each of several states, side by side.

The recursions are the same for lanes as for floats. Lanes are added, multiplied and so on lane by
lane, and with floats, which count for all lanes. They are the rows of an array of the shape
(..., WIDTH). Compiled, a row fills one register of the processor:
`rbd_ros.kernels.lanes.compiled_lanes` tells the compiler so.

What a kernel knows of the robot is then a pair, `(constants, work)`: the table of floats that one
state has alone, of which only the constants are read, and a table of lanes of the same layout for
all that differs from state to state.

"""

import math

import numpy as np
from rbd_ros.kernels.jit.compiler import COMPILES

if COMPILES:
    import llvmlite.binding
    import numba

# Bytes that the processor reads and writes at once.
LINE = 64
# Bytes from which on the results of a call go past the caches, where they would find no room.
STREAMED = 2 ** 20
# Interpreted, NumPy takes hardly longer for so many numbers than for one.
INTERPRETED = 256


def register_width():
    """Return how many floats the registers of this processor hold."""
    if numba.config.CPU_NAME or numba.config.CPU_FEATURES is not None:
        return 2
    features = llvmlite.binding.get_host_cpu_features()
    return 8 if features.get('avx512f') else 4 if features.get('avx') else 2


WIDTH = register_width() if COMPILES else INTERPRETED


def zeros_for_lanes(shape):
    """Return zeros; no register is read from two lines of memory, which takes twice the time."""
    return on_lines(np.zeros(8 * math.prod(shape) + LINE, np.uint8), shape)


def on_lines(memory, shape):
    """Return an array that begins with a line, in bytes of which there are LINE more."""
    start = -memory.ctypes.data % LINE
    return memory[start:start + 8 * math.prod(shape)].view(float).reshape(shape)


def constants_of(robot):
    """Return the table with the constants of the robot."""
    return robot[0] if isinstance(robot, tuple) else robot


def work_of(robot):
    """Return the table with all that differs from state to state."""
    return robot[1] if isinstance(robot, tuple) else robot


def side_by_side(robot):
    """Return whether several states are computed at once."""
    return isinstance(robot, tuple)


def entry(x, i):
    """Return entry i of a vector."""
    # A row of lanes is a value, as a float is: what is written to x later does not change it.
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
    """Write states from the first on to lanes; the last state fills the lanes that are left."""
    states = X[np.minimum(first + np.arange(WIDTH), len(X) - 1)]
    x[:] = np.moveaxis(states, 0, -1).reshape(x.shape)


def scatter(x, first, X):
    """Write lanes to states from the first on; of longer rows the rest is not written."""
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
    """Return the root of a number, NaN where it is negative."""
    return np.sqrt(x)


def finite(x):
    """Return whether a number is finite, in all lanes."""
    return bool(np.all(np.isfinite(x)))
