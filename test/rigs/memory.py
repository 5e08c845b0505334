# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Memory leaked by calls."""

import gc
import tracemalloc


def memory_left(call, count=1000):
    """Return the bytes leaked by a number of calls, after as many warm-up calls."""
    def after(count):
        for _ in range(count):
            call()
        gc.collect()
        return tracemalloc.get_traced_memory()[0]

    # One-time allocations, above all machine code, must happen before tracing.
    call()
    # What is there now need not be searched.
    gc.collect()
    gc.freeze()
    tracemalloc.start()
    try:
        first = after(count)
        return after(count) - first
    finally:
        tracemalloc.stop()
