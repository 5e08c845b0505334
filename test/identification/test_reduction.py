# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parts of what recordings say: each for itself, merged in any order, and in constant room."""

from dataclasses import replace
import itertools
import pickle
import tracemalloc

import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification import reduction
from rbd_ros.identification.parameters import robot_parameters, States
from robots import example_urdf, load_quietly, relative_error

# Sums of products in another order: rounding, a hundred times below.
EXACT = 1e-12
USUAL = ('viscous', 'coulomb', 'offset')


@pytest.fixture(scope='module')
def arm():
    """Return an arm with six joints, friction and rotors."""
    return measured.with_drives(load_quietly(example_urdf('ur5_robot.urdf')),
                                np.random.default_rng(0))


def cut(some, start, stop):
    """Return a part of samples."""
    labels = ('time', 'q', 'v', 'a', 'tau', 'usable', 'moving', 'saturated', 'segment')
    return replace(some, **{label: getattr(some, label)[start:stop] for label in labels})


def products(part):
    """Return R^T R for each joint: what its torques and their columns are, multiplied."""
    return [np.einsum('kra,krb->ab', factors, factors) for factors in part.factors]


def check_same(part, other):
    """Compare what two parts say."""
    for mine, yours in zip(products(part), products(other)):
        assert relative_error(mine, yours) < EXACT
    for label in ('counts', 'samples', 'moving', 'saturated'):
        assert np.array_equal(np.sum(getattr(part, label), axis=0),
                              np.sum(getattr(other, label), axis=0))
    for label in ('squares', 'motion'):
        assert relative_error(getattr(part, label), getattr(other, label)) < EXACT


def with_gaps(some, seed=0):
    """Return samples of which a third says nothing, and is none that could be right."""
    usable = np.random.default_rng(seed).uniform(size=some.tau.shape) < 0.7
    return replace(some, usable=usable, tau=np.where(usable, some.tau, 1e6))


@pytest.mark.parametrize('friction, rotors', [(USUAL, True), ((), False)])
def test_factors_are_those_of_the_regressor_and_the_torques(arm, friction, rotors):
    some = with_gaps(measured.samples(arm, 1, 5.0, noise=0.1))
    part = identification.partial(arm, some, friction=friction, rotors=rotors)
    parameters = robot_parameters(arm, friction, rotors)
    states = States(some.q, some.v, some.a, np.sign(some.v))
    Y, rest = parameters.regressor(states), some.tau - parameters.known(states)
    B = part.base.combination
    for j, (R, own) in enumerate(zip(products(part), part.columns)):
        use = some.usable[:, j]
        # All columns, not only the independent ones.
        T = np.zeros((len(own) + 1, Y.shape[2] + 1))
        T[:-1, :-1], T[-1, -1] = B[own], 1.0
        rows = np.column_stack((Y[use, j], rest[use, j]))
        assert relative_error(T.T @ R @ T, rows.T @ rows) < 1e-10
    assert np.array_equal(part.counts.sum(axis=0), some.usable.sum(axis=0))
    assert np.allclose(part.squares, np.sum(some.tau ** 2, axis=0, where=some.usable))


def test_merged_reductions_equal_that_of_the_whole_in_any_order(arm):
    some = with_gaps(measured.samples(arm, 2, 20.0, noise=0.1))
    whole = identification.partial(arm, some)
    borders = [0, 100, 101, 420, 1000]
    parts = [identification.partial(arm, cut(some, *ends))
             for ends in itertools.pairwise(borders)]
    for order in ((0, 1, 2, 3), (3, 2, 1, 0), (2, 0, 3, 1)):
        a, b, c, d = (parts[k] for k in order)
        check_same(identification.merge(a, b, c, d), whole)
        merged = identification.merge(identification.merge(a, b), identification.merge(c, d))
        check_same(merged, whole)
    for consistent in (False, True):
        one, other = (identification.fit(arm, identification.merge(*some), consistent=consistent)
                      for some in (parts, parts[::-1]))
        assert relative_error(one.values, other.values) < 1e-6
        assert relative_error(one.deviation, other.deviation) < 1e-6


def test_parts_of_a_long_recording_have_stretches_of_their_own(arm):
    # Two seconds are four stretches, and what is cut later follows in the next ones.
    some = measured.samples(arm, 3, 16.0)
    parts = [identification.partial(arm, cut(some, k, k + 100)) for k in range(0, 800, 100)]
    used = [np.flatnonzero(part.counts[:, 0]) for part in parts]
    assert np.array_equal(np.concatenate(used), np.arange(reduction.BLOCKS))
    assert np.ptp(identification.merge(*parts).counts) == 0


def test_the_size_of_chunks_does_not_change_the_reduction(arm, monkeypatch):
    some = with_gaps(measured.samples(arm, 4, 5.0, noise=0.1))
    whole = identification.partial(arm, some)
    seen = []
    for states in (1, 7, 100):
        size = states * arm.nv * len(whole.names) - 1
        monkeypatch.setattr(reduction, 'MAX_REGRESSOR_SIZE', size)
        check_same(identification.partial(arm, some, progress=lambda *done: seen.append(done)),
                   whole)
        assert seen[-1] == (250, 250)
        assert len(seen) == -(-250 // states)
        seen.clear()


def test_memory_of_a_reduction_does_not_grow_with_the_recording(arm, monkeypatch):
    monkeypatch.setattr(reduction, 'MAX_REGRESSOR_SIZE', 2 ** 16)
    peaks = []
    for seconds in (40.0, 160.0):
        some = measured.samples(arm, 5, seconds)
        identification.partial(arm, some, threads=1)
        tracemalloc.start()
        identification.partial(arm, some, threads=1)
        peaks.append(tracemalloc.get_traced_memory()[1])
        tracemalloc.stop()
    # Directions of velocities and a few masks; the regressor has 84 numbers for each joint.
    numbers = (peaks[1] - peaks[0]) / 8.0 / (120.0 * 50.0 * arm.nv)
    assert numbers < 8.0


def test_reductions_can_be_pickled(arm):
    some = measured.samples(arm, 6, 3.0, noise=0.1)
    function, model, there = pickle.loads(pickle.dumps((identification.partial, arm, some)))
    part = pickle.loads(pickle.dumps(function(model, there)))
    check_same(part, identification.partial(arm, some))
    merged = pickle.loads(pickle.dumps(identification.merge))(part, part)
    assert merged.samples == 2 * len(some)


def test_merging_reductions_of_different_parameters_is_refused(arm):
    some = measured.samples(arm, 7, 2.0)
    part = identification.partial(arm, some)
    other = load_quietly(example_urdf('ur10_robot.urdf'))
    others = (identification.partial(arm, some, rotors=False),
              identification.partial(arm, some, friction=('viscous',)),
              identification.payload_partial(arm, 'tool0', some),
              identification.partial(other, some))
    for one in others:
        with pytest.raises(rbd_ros.StateError, match='reduced for different parameters'):
            identification.merge(part, one)
    with pytest.raises(rbd_ros.StateError, match='at least one'):
        identification.merge()
    with pytest.raises(rbd_ros.StateError, match='what partial returned'):
        identification.fit(arm, others[2])
    with pytest.raises(rbd_ros.StateError, match='what payload_partial returned'):
        identification.fit_payload(arm, part)
