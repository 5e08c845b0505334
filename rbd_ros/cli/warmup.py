# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros warmup``: compile the kernels of single states in advance."""

import argparse

from rbd_ros.kernels.jit.kernel_cache import cache_directory
from rbd_ros.kernels.jit.numba_backend import COMPILES, OBSTACLE
from rbd_ros.workspace.warmup import warm_up, warm_up_loops


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add no option."""


def run(options: argparse.Namespace) -> int:
    """Compile the kernels of single states, or load them from the cache, and print the times."""
    if not COMPILES:
        print(f'There is nothing to compile in advance: {OBSTACLE or "NUMBA_DISABLE_JIT is set"}')
        return 1
    for floating_base, robots in ((False, 'screws only'), (True, 'ball and free joints')):
        for name, seconds in warm_up(floating_base=floating_base):
            print(f'{seconds:6.2f} s  {name}, joints: {robots}', flush=True)
    for name, seconds in warm_up_loops():
        print(f'{seconds:6.2f} s  {name}', flush=True)
    print(f'The kernels are in {cache_directory() or "memory only: there is no home directory"}')
    return 0
