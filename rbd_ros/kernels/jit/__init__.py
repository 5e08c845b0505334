# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compilation of kernels: whether numba is available, decorators, the cache on disk."""
