# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure the limit of batched inverse dynamics on this machine: vectorized C.

`limit.c` is compiled for this processor and a robot's number of joints, and its results are
compared with ours. A second figure is the time of its arithmetic alone, without any stalls. The
states are already in the layout that it needs, which `rbd_ros.batch` has to produce first.

"""

import ctypes
from pathlib import Path
import subprocess
from tempfile import TemporaryDirectory

import numpy as np
import rbd_ros
from rbd_ros import batch
from rbd_ros.kernels.lanes.lanes import WIDTH, zeros_for_lanes
from rbd_ros.kernels.tree import columns
from robots import robots
from timing import one_core, options, save, take_turns

SOURCE = Path(__file__).with_name('limit.c')
FLAGS = ('-O3', '-march=native', '-ffp-contract=fast', '-fno-math-errno', '-fno-signed-zeros',
         '-fno-trapping-math', '-shared', '-fPIC')
LABELS = 'Panda', 'Talos'
STATES = 1024
PRODUCTS = 1_600_000
PARENT = 23     # column of the table of bodies
# The same sums in another order.
AGREEMENT = 1e-10
# `recursion` of limit.c for a joint of a chain: sine and cosine, root to leaves, leaves to root. A
# fused multiply-add is one instruction and two floating-point operations (flops).
INSTRUCTIONS, FLOPS = 31 + 103 + 31, 38 + 165 + 50


def library(robot):
    """Return `limit.c`, compiled for a table of bodies."""
    chain = np.all(robot[1:, PARENT] == np.arange(len(robot) - 1))
    with TemporaryDirectory() as folder:
        path = Path(folder, 'limit.so')
        subprocess.run(['cc', *FLAGS, f'-DWIDTH={WIDTH}', f'-DMOST={len(robot) - 1}',
                        f'-DCHAIN={chain:d}', str(SOURCE), '-o', str(path)], check=True)
        found = ctypes.CDLL(str(path))
    found.products.restype = ctypes.c_double
    return found


def table(model):
    """Return the bodies as `limit.c` reads them; all joints must be revolute, without mimics."""
    robot = model.tree.robot
    if not (type(model.tree.traits) is type(columns.ONLY_SCREWS)
            and np.all(robot[1:, columns.TURN] == 1.0)
            and np.all(robot[1:, columns.SLIDE] == 0.0)):
        raise ValueError(f"robot '{model.name}' is not a tree of revolute joints")
    return np.ascontiguousarray(np.hstack((
        robot[:, :12], robot[:, columns.INERTIA:columns.INERTIA + 10],
        robot[:, [columns.ARMATURE, columns.PARENT, columns.BRANCHES]])))


def side_by_side(X):
    """Return states in lanes."""
    lanes = zeros_for_lanes((len(X) // WIDTH, X.shape[1], WIDTH))
    lanes[:] = X.reshape(-1, WIDTH, X.shape[1]).swapaxes(1, 2)
    return lanes


def in_c(model, Q, V, A):
    """Return the call of `limit.c` for states, whose results are checked, and its library."""
    robot, gravity = table(model), np.array(model.gravity, float)
    lib, lanes = library(robot), [side_by_side(x) for x in (Q, V, A, np.zeros_like(V))]
    arguments = (ctypes.c_int(model.nv), *(x.ctypes.data_as(ctypes.c_void_p)
                                           for x in (robot, gravity, *lanes)),
                 ctypes.c_long(len(Q)))

    def run():
        lib.inverse_dynamics(*arguments)

    run()
    expected = batch.inverse_dynamics(model, Q, V, A)
    error = np.max(np.abs(lanes[3].swapaxes(1, 2).reshape(expected.shape) - expected))
    if not error < AGREEMENT * np.max(np.abs(expected)):
        raise AssertionError(f'results of C differ by {error:.1e}')
    return run, lib


def measure(model, quick=False):
    """
    Return the limits of inverse dynamics of a tree of revolute joints.

    Returns
    -------
    dict of str to float
        Per state: ``ns`` of the C code, ``floor`` of its arithmetic at the rate of fused
        multiply-adds without memory access, and ``flops``.

    """
    rng = np.random.default_rng(0)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)])
    run, lib = in_c(model, Q, *rng.normal(size=(2, STATES, model.nv)))
    times = take_turns({'C': run, 'products': lambda: lib.products(ctypes.c_long(PRODUCTS))},
                       quick=quick)
    instructions = model.nv * INSTRUCTIONS
    per_instruction = np.min(times['products']) / PRODUCTS
    return {'ns': 1e9 * float(np.min(times['C'])) / STATES,
            'floor': 1e9 * float(per_instruction) * instructions / WIDTH,
            'flops': float(model.nv * FLOPS)}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    with one_core():
        found = {robot.label: measure(robot.model, quick) for robot in robots()
                 if robot.label in LABELS}
    for label, one in found.items():
        print(f'{label}: {one["ns"]:.1f} ns a state in C; the arithmetic alone '
              f'{one["floor"]:.1f} ns; {one["flops"]:.0f} flops')
    save('limit', quick, {'robots': found})


if __name__ == '__main__':
    main()
