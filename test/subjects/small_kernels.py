# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A small kernel, for tests of how kernels are compiled."""

import numpy as np
from rbd_ros.kernels.jit.compiled import kernel


@kernel
def fold_vector(velocities, x, folded):
    """Write sums of x by the index in the first column, times the factor in the second."""
    for c in range(len(folded)):
        folded[c] = 0.0
    for k in range(len(velocities)):
        folded[np.int64(velocities[k, 0])] += velocities[k, 1] * x[k]
