# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cosines and sines of several angles at once, against those of the C library."""

import math
import os
import subprocess
import sys

import numpy as np
import pytest
from rbd_ros.kernels.lanes.lanes import WIDTH
from rbd_ros.kernels.lanes.sines import cosines_and_sines

numba = pytest.importorskip('numba')
# Counts are multiples of this.
EIGHT = 8
# Units in the last place: 2.5 of ours and 0.5 of the C library.
UNITS = 3
QUARTER = math.pi / 2.0


@numba.njit
def fill(array, first, count):
    """Call what only kernels can call."""
    cosines_and_sines(array, first, count)


@pytest.mark.parametrize('scale', [1e-300, 1e-8, 1.0, 10.0, 1e5, 1e15, 1e300])
@pytest.mark.parametrize('count, first', [(EIGHT, 0), (2 * EIGHT, 3)])
def test_cosines_and_sines_agree_with_the_c_library(scale, count, first):
    rng = np.random.default_rng(1)
    for _ in range(200):
        angles = scale * rng.uniform(-1.0, 1.0, count)
        array = np.full(first + 2 * count + 5, 0.25)
        array[first:first + count] = angles
        fill(array, first, count)
        got = array[first:first + 2 * count].reshape(2, count)
        for expected, found in zip(([math.cos(x) for x in angles],
                                    [math.sin(x) for x in angles]), got):
            np.testing.assert_array_max_ulp(np.array(expected), found, maxulp=UNITS)
        assert np.all(array[:first] == 0.25)
        assert np.all(array[first + 2 * count:] == 0.25)


@pytest.mark.parametrize('step', [0.0, 1e-16, 1e-9, 1e-3, 0.25, 0.5])
def test_sines_are_right_near_multiples_of_a_quarter_turn(step):
    array = np.empty(2 * EIGHT)
    for k in [*range(-17, 18), 2 ** 17 + 1, 636_619, 636_620, 636_621]:
        angles = np.nextafter((k + step) * QUARTER, np.linspace(-1e7, 1e7, EIGHT))
        array[:EIGHT] = angles
        fill(array, 0, EIGHT)
        for expected, found in zip(([math.cos(x) for x in angles],
                                    [math.sin(x) for x in angles]), array.reshape(2, EIGHT)):
            np.testing.assert_array_max_ulp(np.array(expected), found, maxulp=UNITS)


@pytest.mark.parametrize('lane', range(EIGHT))
@pytest.mark.parametrize('far', [1e6, -1e6, 1.5e6, -1e9, 1e22])
def test_an_angle_out_of_range_does_not_affect_the_others(lane, far):
    angles = np.linspace(-3.0, 3.0, EIGHT)
    angles[lane] = far
    array = np.concatenate((angles, np.zeros(EIGHT)))
    fill(array, 0, EIGHT)
    for found, function in zip(array.reshape(2, EIGHT), (math.cos, math.sin)):
        np.testing.assert_array_max_ulp(np.array([*map(function, angles)]), found, maxulp=UNITS)


def test_cosines_of_non_finite_angles_are_nan():
    array = np.array([np.nan, np.inf, -np.inf, *np.zeros(13)])
    fill(array, 0, EIGHT)
    assert np.all(np.isnan(array[[0, 1, 2, 8, 9, 10]]))
    assert (array[3], array[11]) == (1.0, 0.0)


def test_lanes_have_the_cosines_of_floats():
    angles = np.random.default_rng(2).uniform(-9.0, 9.0, (EIGHT, WIDTH))
    array = np.full((3 + 2 * EIGHT + 1, WIDTH), 0.25)
    array[3:3 + EIGHT] = angles
    fill(array, 3, EIGHT)
    np.testing.assert_array_max_ulp(array[3:3 + EIGHT], np.cos(angles), maxulp=UNITS)
    np.testing.assert_array_max_ulp(array[3 + EIGHT:-1], np.sin(angles), maxulp=UNITS)
    assert np.all(array[:3] == 0.25) and np.all(array[-1] == 0.25)


def test_short_registers_without_fused_products_do_the_same():
    environment = {**os.environ, 'NUMBA_CPU_NAME': 'generic'}
    subprocess.run([sys.executable, '-c', """
import math, numba, numpy as np
from rbd_ros.kernels.lanes.compiled_sines import OF_ONE_STATE
from rbd_ros.kernels.lanes.sines import cosines_and_sines
assert OF_ONE_STATE == 2
@numba.njit
def fill(array):
    cosines_and_sines(array, 0, 8)
array = np.array([0.1, 1.0, -2.0, 30.0, 5.0, -0.5, 0.0, 7.0, *np.zeros(8)])
expected = [*map(math.cos, array[:8]), *map(math.sin, array[:8])]
fill(array)
np.testing.assert_array_max_ulp(array, np.array(expected), maxulp=3)
"""], env=environment, check=True)
