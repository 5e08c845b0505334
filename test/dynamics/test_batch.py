# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Many states at once, against one after the other."""

import gc
import os
from pathlib import Path
import subprocess
import sys
import threading
import time
import weakref

import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.model.joints import KINDS
from robots import example_urdf, load_quietly, random_tree

ROOT = Path(__file__).parents[2]
# The same kernels run on the same numbers; compiled into a loop, their sums may round otherwise.
ROUNDING = 1e-12
# Of the largest entry.
AGREEMENT = 1e-13
# More than two chunks of states, the last one not full.
COUNT = 2 * batch.CHUNK + 37

MOVING = [kind for kind in KINDS if kind != 'fixed']


def robots():
    """Return robots with one kind of joint, with all kinds, and with mimicking joints."""
    return {'screws': random_tree(1, 6), 'all kinds': random_tree(2, 5, kinds=MOVING),
            'mimic': load_quietly(example_urdf('panda.urdf'))}


@pytest.fixture(params=robots().items(), ids=lambda item: item[0])
def states(request):
    """Return a robot and many states."""
    model = request.param[1]
    rng = np.random.default_rng(5)
    count = 50 if model.folding else COUNT
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(count)])
    return model, Q, *rng.normal(size=(3, count, model.nv))


def picked(count):
    """Return the numbers of some states, from the first to the last."""
    return np.linspace(0, count - 1, 23).astype(int)


@pytest.mark.parametrize('name', ['inverse_dynamics', 'forward_dynamics', 'torque_regressor'])
def test_results_are_those_of_single_calls(states, name):
    model, Q, V, A, _ = states
    got = getattr(batch, name)(model, Q, V, A)
    for k in picked(len(Q)):
        expected = getattr(rbd_ros, name)(model, Q[k], V[k], A[k])
        # Solving for accelerations multiplies rounding by the condition of M.
        worse = np.linalg.cond(rbd_ros.mass_matrix(model, Q[k])) if name[0] == 'f' else 1.0
        assert (np.max(np.abs(got[k] - expected))
                <= AGREEMENT * worse * np.max(np.abs(expected)))


@pytest.mark.parametrize('count', [1, 2, 3, 7, 8, 9, 10, 11, 19])
@pytest.mark.parametrize('name', ['inverse_dynamics', 'forward_dynamics', 'all_terms'])
def test_a_state_has_the_same_result_whatever_its_neighbours(name, count):
    model = random_tree(3, 5)
    rng = np.random.default_rng(count)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(count)])
    states = [Q, *rng.normal(size=(2, count, model.nv))]
    if name == 'all_terms':
        states.pop()
    for k, one in enumerate(zip(*states)):
        got = getattr(batch, name)(model, *(x[k:] for x in states))
        expected = getattr(rbd_ros, name)(model, *one)
        if name != 'all_terms':
            got, expected = [got], [expected]
        for found, other in zip(got, expected):
            assert np.max(np.abs(found[0] - other)) <= AGREEMENT * np.max(np.abs(other))


@pytest.mark.parametrize('k', range(24))
def test_of_several_states_the_bad_one_is_named(k):
    model = random_tree(1, 4)
    Q, V, Tau = np.random.default_rng(k).normal(size=(3, 24, model.nv))
    bad = V.copy()
    bad[k, 1] = np.inf
    with pytest.raises(rbd_ros.StateError, match=f'state {k}: '):
        batch.forward_dynamics(model, Q, bad, Tau)
    # It leaves nothing behind.
    got = batch.forward_dynamics(model, Q, V, Tau)
    for j in range(24):
        expected = rbd_ros.forward_dynamics(model, Q[j], V[j], Tau[j])
        assert np.allclose(got[j], expected, rtol=ROUNDING, atol=ROUNDING)


def test_a_processor_with_short_registers_computes_the_same():
    code = (
        'import numpy as np, rbd_ros\n'
        'from rbd_ros import batch\n'
        'from rbd_ros.kernels.lanes import WIDTH\n'
        'assert WIDTH == 2\n'
        'arm = rbd_ros.load_urdf("urdf/demo_arm.urdf")\n'
        'Q, V, A = np.random.default_rng(1).normal(size=(3, 7, arm.nv))\n'
        'Tau = batch.inverse_dynamics(arm, Q, V, A)\n'
        'for k in range(7):\n'
        '    one = rbd_ros.inverse_dynamics(arm, Q[k], V[k], A[k])\n'
        '    assert np.allclose(Tau[k], one, rtol=1e-13, atol=1e-13)\n')
    compiled = {**os.environ, 'NUMBA_CPU_NAME': 'generic', 'NUMBA_DISABLE_JIT': '0'}
    subprocess.run([sys.executable, '-W', 'ignore', '-c', code], check=True, cwd=ROOT,
                   timeout=300, env=compiled)


@pytest.mark.parametrize('name', ['inverse_dynamics_derivatives', 'forward_dynamics_derivatives'])
def test_derivatives_are_those_of_single_calls(states, name):
    model, Q, V, A, _ = states
    got = getattr(batch, name)(model, Q, V, A)
    for k in picked(len(Q)):
        expected = getattr(rbd_ros, name)(model, Q[k], V[k], A[k])
        for one, other in zip(got, expected):
            scale = np.max(np.abs(other))
            assert np.allclose(one[k], other, rtol=0.0, atol=ROUNDING * scale)


def test_all_terms_are_those_of_single_calls(states):
    model, Q, V, _, _ = states
    got = batch.all_terms(model, Q, V, threads=2)
    for k in picked(len(Q)):
        for one, other in zip(got, rbd_ros.all_terms(model, Q[k], V[k])):
            assert np.allclose(one[k], other, rtol=ROUNDING, atol=ROUNDING)


def test_hybrid_dynamics_is_that_of_single_calls_and_leaves_its_arguments_alone(states):
    model, Q, V, A, Tau = states
    prescribed = np.arange(model.nv) % 2 == 0
    before = A.copy(), Tau.copy()
    got = batch.hybrid_dynamics(model, Q, V, A, Tau, prescribed)
    assert np.array_equal(A, before[0])
    assert np.array_equal(Tau, before[1])
    for k in picked(len(Q)):
        expected = rbd_ros.hybrid_dynamics(model, Q[k], V[k], A[k], Tau[k], prescribed)
        for one, other in zip(got, expected):
            assert np.allclose(one[k], other, rtol=1e-9, atol=1e-9)


@pytest.mark.parametrize('bad', [False, True])
def test_what_is_prescribed_to_a_batch_does_not_outlive_it(bad):
    model = random_tree(1, 4)
    Q, V, A, Tau = np.random.default_rng(1).normal(size=(4, 5, model.nv))
    before = rbd_ros.forward_dynamics(model, Q[0], V[0], Tau[0]).copy()
    if bad:
        V[3] = np.nan
        with pytest.raises(rbd_ros.StateError, match='state 3: '):
            batch.hybrid_dynamics(model, Q, V, A, Tau, np.ones(model.nv, bool), threads=1)
    else:
        batch.hybrid_dynamics(model, Q, V, A, Tau, np.ones(model.nv, bool), threads=1)
    assert np.array_equal(rbd_ros.forward_dynamics(model, Q[0], V[0], Tau[0]), before)


def test_any_number_of_threads_gives_the_same(states):
    model, Q, V, A, _ = states
    one, two, seven = (batch.inverse_dynamics(model, Q, V, A, threads=n) for n in (1, 2, 7))
    assert np.array_equal(one, two)
    assert np.array_equal(one, seven)


def test_an_error_in_one_thread_ends_the_others():
    model = random_tree(1, 3)
    Q = np.zeros((100 * batch.CHUNK, model.nv))
    told = []

    def progress(*counts):
        told.append(counts)
        if len(told) == 1:
            raise KeyboardInterrupt
        time.sleep(0.05)            # the other thread computes on, slowly, unless it is told

    with pytest.raises(KeyboardInterrupt):
        batch.inverse_dynamics(model, Q, Q, Q, threads=2, progress=progress)
    assert len(told) < 50


def test_threads_are_kept_and_a_call_within_a_call_is_answered():
    model = random_tree(1, 3)
    Q = np.zeros((4 * batch.CHUNK, model.nv))
    expected = batch.inverse_dynamics(model, Q, Q, Q, threads=1)

    def helpers():
        return [one for one in threading.enumerate() if one.name.startswith('rbd_ros.batch')]

    batch.inverse_dynamics(model, Q, Q, Q, threads=3)
    before = helpers()
    found = []
    for _ in range(20):
        batch.inverse_dynamics(model, Q, Q, Q, threads=3, progress=lambda *_: found.append(
            batch.inverse_dynamics(model, Q, Q, Q, threads=3)))
    assert helpers() == before and 0 < len(before) <= 3
    assert len(found) == 80 and all(np.array_equal(one, expected) for one in found)


def test_workspaces_that_threads_keep_end_with_the_robot():
    model = random_tree(1, 3)
    Q = np.zeros((4 * batch.CHUNK, model.nv))
    batch.inverse_dynamics(model, Q, Q, Q, threads=3)
    gone = weakref.ref(model)
    del model
    gc.collect()
    assert gone() is None


@pytest.mark.skipif(not hasattr(os, 'fork'), reason='needs fork')
def test_a_process_that_was_forked_has_threads_of_its_own():
    code = (
        'import os, numpy as np, rbd_ros\n'
        'from rbd_ros import batch\n'
        'arm = rbd_ros.load_urdf("urdf/demo_arm.urdf")\n'
        'Q = np.zeros((4 * batch.CHUNK, arm.nv))\n'
        'tau = batch.inverse_dynamics(arm, Q, Q, Q, threads=3)\n'
        'child = os.fork()\n'
        'again = batch.inverse_dynamics(arm, Q, Q, Q, threads=3)\n'
        'same = np.array_equal(tau, again)\n'
        'if child == 0:\n'
        '    os._exit(0 if same else 3)\n'
        'assert same and os.waitpid(child, 0)[1] == 0\n')
    subprocess.run([sys.executable, '-W', 'ignore', '-c', code], check=True, cwd=ROOT, timeout=120)


def test_progress_is_told_after_every_chunk(states):
    model, Q, V, A, _ = states
    told = []
    batch.inverse_dynamics(model, Q, V, A, progress=lambda *x: told.append(x))
    assert len(told) == -(-len(Q) // batch.CHUNK)
    assert told[-1] == (len(Q), len(Q))


def test_lists_and_strided_arrays_are_taken(states):
    model, Q, V, A, _ = states
    expected = batch.inverse_dynamics(model, Q[::7], V[::7], A[::7])
    got = batch.inverse_dynamics(model, Q[::7].tolist(), np.asfortranarray(V[::7]), A[::7])
    assert np.array_equal(got, expected)


def test_arrays_that_are_not_aligned_or_cannot_be_written_are_taken():
    model = random_tree(1, 3)
    expected = np.random.default_rng(6).normal(size=(20, model.nv))
    inside = np.frombuffer(bytearray(8 * expected.size + 1), float, offset=1)
    Q = inside.reshape(expected.shape)
    Q[:] = expected
    assert not Q.flags.aligned
    Q.flags.writeable = False
    assert np.array_equal(batch.inverse_dynamics(model, Q, Q, Q),
                          batch.inverse_dynamics(model, expected, expected, expected))


def test_no_states_have_no_results(states):
    model = states[0]
    got = batch.inverse_dynamics(model, np.zeros((0, model.nq)), *np.zeros((2, 0, model.nv)))
    assert got.shape == (0, model.nv)


@pytest.mark.parametrize('share', [0.0, 0.7, 1.0])
def test_a_state_that_cannot_be_computed_is_named(states, share):
    model, Q, V, A, _ = states
    # In the first chunk, in one amid the others, and in the last.
    k = round(share * (len(Q) - 1))
    V[k, 2] = np.nan
    with pytest.raises(rbd_ros.StateError, match=f"state {k}: .*'{model.velocity_names[2]}'"):
        batch.inverse_dynamics(model, Q, V, A)


def test_a_wrong_shape_is_named(states):
    model, Q, V, A, _ = states
    with pytest.raises(rbd_ros.StateError, match='A has the shape'):
        batch.inverse_dynamics(model, Q, V, A[:-1])
    with pytest.raises(rbd_ros.StateError, match='Q has the shape'):
        batch.inverse_dynamics(model, Q[:, 1:], V, A)
    with pytest.raises(rbd_ros.StateError, match='prescribed'):
        batch.hybrid_dynamics(model, Q, V, A, A, [True])


def test_a_joint_that_moves_no_inertia_is_named():
    model = (rbd_ros.ModelBuilder('light').link('a').link('b').joint('j', 'revolute', 'a', 'b')
             .build())
    with pytest.raises(rbd_ros.SingularError, match="state 0: 'j' moves no inertia"):
        batch.forward_dynamics(model, *np.zeros((3, 4, 1)))
