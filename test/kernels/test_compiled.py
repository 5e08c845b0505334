# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels are compiled when they are prepared, and at no other time."""

import numba
import numpy as np
import pytest
from rbd_ros.kernels import compiled
from rbd_ros.kernels.compiled import kernel, prepare

X = np.arange(3.0)


def total(x):
    """Be a kernel."""
    return x[0] + x[1] + x[2]


@pytest.fixture
def made(monkeypatch):
    """Return a kernel that is kept in no file."""
    monkeypatch.setattr(compiled, '_directory', None)
    return kernel(total)


@pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason='nothing is compiled')
@pytest.mark.parametrize('other', [X.astype(np.float32), np.ones(6)[::2], [0.0, 1.0, 2.0], None])
def test_a_kernel_refuses_what_it_was_not_prepared_for(made, other):
    with pytest.raises(TypeError):
        made(X)
    assert prepare(made, X)
    assert not prepare(made, X)
    assert made(X) == 3.0
    with pytest.raises(TypeError):
        made(other)
    assert len(made.signatures) == 1
    # Once prepared for another type, it takes both.
    prepare(made, X.astype(np.float32))
    assert made(X.astype(np.float32)) == made(X) == 3.0
