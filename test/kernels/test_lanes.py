# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers of several states side by side, against NumPy."""

from itertools import product

import numpy as np
import pytest
from rbd_ros.kernels.lanes.lanes import (
    constants_of, element, entry, exceeds, finite, gather, reciprocal, scatter, set_element,
    set_entry, square_root, WIDTH, work_of)

numba = pytest.importorskip('numba')
needs_compiler = pytest.mark.skipif(bool(numba.config.DISABLE_JIT), reason='lanes are compiled')


def compiled(function):
    """Compile a function as kernels are, without reordering of sums."""
    return numba.njit(function)


@compiled
def arithmetic(x, y, s, found):
    """Write what operators make of two rows of lanes and a number."""
    a, b = entry(x, 0), entry(y, 0)
    set_entry(found, 0, a + b)
    set_entry(found, 1, a - b)
    set_entry(found, 2, a * b)
    set_entry(found, 3, a / b)
    set_entry(found, 4, -a)
    set_entry(found, 5, s - a)
    set_entry(found, 6, a / s)
    set_entry(found, 7, 2 * a)
    set_entry(found, 8, s)
    total = 0.0
    for k in range(3):
        total += a * k
        total -= b
    set_entry(found, 9, total)
    set_entry(found, 10, reciprocal(b))


@pytest.fixture
def rows():
    """Return two rows of lanes."""
    return np.random.default_rng(1).normal(size=(2, 1, WIDTH))


@needs_compiler
def test_operators_work_lane_by_lane(rows):
    (x, y), s, found = rows, 3.5, np.zeros((11, WIDTH))
    arithmetic(x, y, s, found)
    a, b = x[0], y[0]
    expected = [a + b, a - b, a * b, a / b, -a, s - a, a / s, 2 * a, np.full(WIDTH, s),
                3.0 * a - 3.0 * b, np.where(b > 0.0, 1.0 / b, 0.0)]
    # Sums of six terms, and a division that may be one by multiplication: rounding.
    np.testing.assert_allclose(found, expected, rtol=1e-15, atol=1e-15)


@needs_compiler
def test_one_non_finite_lane_is_detected(rows):
    check = compiled(lambda x: finite(entry(x, 0)))
    assert check(rows[0])
    for lane, bad in product(range(WIDTH), (np.nan, np.inf, -np.inf)):
        x = rows[0].copy()
        x[0, lane] = bad
        assert not check(x)


@needs_compiler
def test_one_lane_that_does_not_exceed_is_detected():
    check = compiled(lambda x, y: exceeds(entry(x, 0), entry(y, 0)))
    x, y = np.full((1, WIDTH), 2.0), np.full((1, WIDTH), 1.0)
    assert check(x, y)
    for lane, low in product(range(WIDTH), (1.0, 0.5, np.nan)):
        less = x.copy()
        less[0, lane] = low
        assert not check(less, y)


@compiled
def copy_matrix(x, to):
    """Copy a matrix of lanes."""
    for i in range(x.shape[0]):
        for j in range(x.shape[1]):
            set_element(to, i, j, element(x, i, j))


@needs_compiler
@pytest.mark.parametrize('shape', [(3, 4, WIDTH), (3, 4)])
def test_matrix_entries_are_copied_in_place(shape):
    x, to = np.random.default_rng(2).normal(size=shape), np.zeros(shape)
    copy_matrix(x, to)
    assert np.array_equal(x, to)


@compiled
def to_lanes(X, first, x):
    """Write states to lanes."""
    gather(X, first, x)


@compiled
def from_lanes(x, first, X):
    """Write lanes to states."""
    scatter(x, first, X)


@pytest.mark.parametrize('kind', [float, np.float32])
@pytest.mark.parametrize('shape', [(1,), (WIDTH - 1,), (WIDTH,), (2 * WIDTH + 1,), (3, 5)])
@pytest.mark.parametrize('count', [1, WIDTH - 1, WIDTH, 2 * WIDTH + 1])
def test_conversion_between_states_and_lanes_writes_nothing_else(count, shape, kind):
    X = np.random.default_rng(3).normal(size=(count, *shape)).astype(kind)
    room, rows = np.full((2 + np.prod(shape), WIDTH), 7.0), np.full((count + 2, *shape), 9.0, kind)
    x = room[1:-1].reshape(*shape, WIDTH)
    for first in range(count):
        to_lanes(X, first, x)
        # The last state fills the lanes that are left.
        states = X[np.minimum(first + np.arange(WIDTH), count - 1)]
        assert np.array_equal(x, np.moveaxis(states, 0, -1))
        rows[:] = 9.0
        from_lanes(x, first, rows[1:-1])
        there = slice(first, first + WIDTH)
        assert np.array_equal(rows[1:-1][there], X[there])
        rows[1:-1][there] = 9.0
        assert np.all(rows == 9.0) and np.all(room[[0, -1]] == 7.0)


@needs_compiler
def test_states_that_are_not_contiguous_are_rejected():
    x = np.zeros((3, WIDTH))
    for X in (np.zeros((4, 6))[:, ::2], np.asfortranarray(np.zeros((4, 3)))):
        with pytest.raises(numba.errors.TypingError):
            to_lanes(X, 0, x)
        with pytest.raises(numba.errors.TypingError):
            from_lanes(x, 0, X)


@needs_compiler
def test_roots_are_taken_lane_by_lane():
    @compiled
    def root(x, found):
        set_entry(found, 0, square_root(entry(x, 0)))

    x, found = np.linspace(-1.0, 9.0, WIDTH)[None], np.zeros((1, WIDTH))
    root(x, found)
    with np.errstate(invalid='ignore'):
        assert np.array_equal(found, np.sqrt(x), equal_nan=True)
    one = np.zeros(1)
    root(np.array([2.0]), one)
    assert one[0] == np.sqrt(2.0)


@needs_compiler
def test_a_robot_is_one_table_or_a_pair():
    @compiled
    def first_entries(robot):
        return constants_of(robot)[0], work_of(robot).size

    one, other = np.array([1.0]), np.zeros((5, WIDTH))
    assert first_entries(one) == (1.0, 1)
    assert first_entries((one, other)) == (1.0, 5 * WIDTH)


def test_interpreted_entries_are_values_not_views():
    x, y = np.ones((2, WIDTH)), np.ones((2, 2, WIDTH))
    a, b = entry(x, 1), element(y, 1, 0)
    set_entry(x, 1, 2.0)
    set_element(y, 1, 0, 2.0)
    assert np.all(a == 1.0) and np.all(b == 1.0)
    assert np.all(entry(x, 1) == 2.0) and np.all(element(y, 1, 0) == 2.0)
