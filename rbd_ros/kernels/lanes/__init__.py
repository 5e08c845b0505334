# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Lanes: one number of each of several states, and how numba compiles operations on them."""

from rbd_ros.kernels.jit.numba_backend import COMPILES

if COMPILES:
    # Importing them registers lanes with numba.
    from rbd_ros.kernels.lanes import compiled_lanes    # noqa: F401
    from rbd_ros.kernels.lanes import compiled_sines    # noqa: F401
    from rbd_ros.kernels.lanes import compiled_states    # noqa: F401
