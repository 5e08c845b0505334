# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cosines and sines of several angles at once, against those of the C library."""

import math
import os
import subprocess
import sys

import numba
import numpy as np
import pytest
from rbd_ros.kernels.sines import cosines_and_sines, WIDTH


@numba.njit
def fill(array, first, count):
    """Call what only kernels can call."""
    cosines_and_sines(array, first, count)


@pytest.mark.parametrize('scale', [1e-300, 1e-8, 1.0, 10.0, 1e5, 1e15, 1e300])
@pytest.mark.parametrize('count, first', [(WIDTH, 0), (2 * WIDTH, 3)])
def test_they_are_those_of_the_c_library(scale, count, first):
    rng = np.random.default_rng(1)
    for _ in range(200):
        angles = scale * rng.uniform(-1.0, 1.0, count)
        array = np.full(first + 2 * count + 5, 0.25)
        array[first:first + count] = angles
        fill(array, first, count)
        got = array[first:first + 2 * count].reshape(2, count)
        for expected, found in zip(([math.cos(x) for x in angles],
                                    [math.sin(x) for x in angles]), got):
            # 4 units in the last place is what libmvec promises.
            np.testing.assert_array_max_ulp(np.array(expected), found, maxulp=4)
        assert np.all(array[:first] == 0.25)
        assert np.all(array[first + 2 * count:] == 0.25)


def test_what_has_no_cosine_has_none():
    array = np.array([np.nan, np.inf, -np.inf, 0.0, *np.zeros(4)])
    fill(array, 0, 4)
    assert np.all(np.isnan(array[[0, 1, 2, 4, 5, 6]]))
    assert (array[3], array[7]) == (1.0, 0.0)


def test_the_loop_does_the_same():
    environment = {**os.environ, 'NUMBA_CPU_NAME': 'generic'}
    subprocess.run([sys.executable, '-c', """
import math, numba, numpy as np
from rbd_ros.kernels.sines import cosines_and_sines, has_vector_library
assert not has_vector_library()
@numba.njit
def fill(array):
    cosines_and_sines(array, 0, 4)
array = np.array([0.1, 1.0, -2.0, 30.0, *np.zeros(4)])
expected = [*map(math.cos, array[:4]), *map(math.sin, array[:4])]
fill(array)
np.testing.assert_array_max_ulp(array, np.array(expected), maxulp=1)
"""], env=environment, check=True)
