# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What all nodes share: start and end, logging, clocks, the worker thread, compiled kernels."""
