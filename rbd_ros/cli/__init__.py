# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``."""

import os

# A robot's matrices are small: BLAS threads more than double the CPU time for them, and slow down
# the worker processes of `identify`. NumPy reads this variable when it is imported.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
