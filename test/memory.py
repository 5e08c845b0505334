# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How much memory calls leave behind."""

import gc
import tracemalloc


def memory_left(call, count=1000):
    """Return the bytes that so many calls leave behind, after as many that warmed up."""
    def after(count):
        for _ in range(count):
            call()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    # What is made once, machine code above all, is made before anything is traced.
    call()
    tracemalloc.start()
    try:
        first = after(count)
        return after(count) - first
    finally:
        tracemalloc.stop()
