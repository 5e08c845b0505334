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
import rbd_ros.kernels.compiled    # noqa: F401   tells numba of angles
from rbd_ros.kernels.lanes import WIDTH
from rbd_ros.kernels.sines import cosines_and_sines

# Counts are multiples of this.
EIGHT = 8


@numba.njit
def fill(array, first, count):
    """Call what only kernels can call."""
    cosines_and_sines(array, first, count)


@pytest.mark.parametrize('scale', [1e-300, 1e-8, 1.0, 10.0, 1e5, 1e15, 1e300])
@pytest.mark.parametrize('count, first', [(EIGHT, 0), (2 * EIGHT, 3)])
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
    array = np.array([np.nan, np.inf, -np.inf, *np.zeros(13)])
    fill(array, 0, EIGHT)
    assert np.all(np.isnan(array[[0, 1, 2, 8, 9, 10]]))
    assert (array[3], array[11]) == (1.0, 0.0)


def test_rows_of_lanes_are_taken_as_numbers_are():
    angles = np.random.default_rng(2).uniform(-9.0, 9.0, (EIGHT, WIDTH))
    array = np.full((3 + 2 * EIGHT + 1, WIDTH), 0.25)
    array[3:3 + EIGHT] = angles
    fill(array, 3, EIGHT)
    np.testing.assert_array_max_ulp(array[3:3 + EIGHT], np.cos(angles), maxulp=4)
    np.testing.assert_array_max_ulp(array[3 + EIGHT:-1], np.sin(angles), maxulp=4)
    assert np.all(array[:3] == 0.25) and np.all(array[-1] == 0.25)


def test_the_loop_does_the_same():
    environment = {**os.environ, 'NUMBA_CPU_NAME': 'generic'}
    subprocess.run([sys.executable, '-c', """
import math, numba, numpy as np
from rbd_ros.kernels.compiled_sines import has_vector_library
from rbd_ros.kernels.sines import cosines_and_sines
assert not has_vector_library()
@numba.njit
def fill(array):
    cosines_and_sines(array, 0, 8)
array = np.array([0.1, 1.0, -2.0, 30.0, 5.0, -0.5, 0.0, 7.0, *np.zeros(8)])
expected = [*map(math.cos, array[:8]), *map(math.sin, array[:8])]
fill(array)
np.testing.assert_array_max_ulp(array, np.array(expected), maxulp=1)
"""], env=environment, check=True)
