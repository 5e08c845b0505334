# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``."""

import os

# The matrices of a robot are small: several threads of BLAS take more than twice the CPU time for
# them, and processes of `identify` get into each other's way. Read when NumPy is imported.
os.environ.setdefault('OPENBLAS_NUM_THREADS', '1')
