# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Many states at once, against one after the other."""

from dataclasses import replace
import gc
import inspect
from itertools import product
import os
from pathlib import Path
import subprocess
import sys
import threading
import time
import weakref

from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.batch import functions
from rbd_ros.batch.tasks import Problem, solve
from rbd_ros.kernels.lanes.lanes import INTERPRETED, WIDTH
from rbd_ros.model.joints import KINDS
from rbd_ros.quantities import QUANTITIES
from robots import example_urdf, load_quietly, random_tree

ROOT = Path(__file__).parents[2]
# The same kernels run on the same numbers; compiled for several states, their sums may round
# otherwise.
ROUNDING = 1e-12
# Of the largest entry.
AGREEMENT = 1e-13
# Numbers of float32.
SINGLE = 2.0 ** -23
# More than two chunks of states, the last one not full.
CHUNK = batch.CHUNK
COUNT = 2 * CHUNK + 37

MOVING = [kind for kind in KINDS if kind != 'fixed']


# Few and many joints, all kinds of joints, and mimicking ones. Of this seed, screws carry a ball
# and a free joint, which carry screws.
ROBOTS = {'screws': random_tree(1, 6), 'all kinds': random_tree(3, 7, kinds=MOVING),
          'many joints': random_tree(0, 21),
          'floating': rbd_ros.with_floating_base(random_tree(5, 9)),
          'mimic': load_quietly(example_urdf('panda.urdf'))}


# One of each sort, whose kernels are the same.
@pytest.fixture(scope='module', params=covering(ROBOTS, 'all kinds', 'many joints', 'mimic'))
def states(request):
    """Return a robot and many states."""
    model = ROBOTS[request.param]
    rng = np.random.default_rng(5)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(COUNT)])
    return model, Q, *rng.normal(size=(3, COUNT, model.nv))


def picked(count):
    """Return the numbers of some states, from the first to the last."""
    return np.linspace(0, count - 1, 23).astype(int)


@pytest.mark.parametrize('states, name', covering(
    product(ROBOTS, ('inverse_dynamics', 'forward_dynamics', 'torque_regressor',
                     'inverse_dynamics_derivatives', 'forward_dynamics_derivatives',
                     'all_terms')),
    ('all kinds', 'inverse_dynamics'), ('all kinds', 'torque_regressor'),
    ('many joints', 'inverse_dynamics'), ('many joints', 'all_terms'),
    ('mimic', 'inverse_dynamics'), ('mimic', 'all_terms'),
    ('mimic', 'forward_dynamics'), ('mimic', 'forward_dynamics_derivatives')),
    indirect=['states'])
def test_results_are_those_of_single_calls(states, name):
    model, *given = states[:3 if name == 'all_terms' else 4]
    got = listed(getattr(batch, name)(model, *given))
    for k in picked(COUNT):
        # Solving for accelerations multiplies rounding by the condition of M.
        worse = (np.linalg.cond(rbd_ros.mass_matrix(model, given[0][k]))
                 if name[0] == 'f' else 1.0)
        one = listed(getattr(rbd_ros, name)(model, *(x[k] for x in given)))
        for x, expected in zip(got, one):
            assert (np.max(np.abs(x[k] - expected))
                    <= AGREEMENT * worse * np.max(np.abs(expected)))


# What each function takes.
ARGUMENTS = {'inverse_dynamics': 'QVA', 'forward_dynamics': 'QVT', 'hybrid_dynamics': 'QVATp',
             'all_terms': 'QV', 'inverse_dynamics_derivatives': 'QVA',
             'forward_dynamics_derivatives': 'QVT', 'torque_regressor': 'QVA',
             'mass_matrix': 'Q', 'coriolis_matrix': 'QV', 'bias_torques': 'QV'}
OF_ALL_KINDS = [*product(sorted(ARGUMENTS), ('all kinds',))]


def some_states(model, name, count, seed=0):
    """Return the arguments of a function for a number of states."""
    rng = np.random.default_rng(seed)
    A, Tau, V = rng.normal(size=(3, count, model.nv))
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(count)])
    known = {'Q': Q.reshape(count, model.nq), 'V': V, 'A': A, 'T': Tau,
             'p': np.arange(model.nv) % 3 == 0}
    return [known[letter] for letter in ARGUMENTS[name]]


def one_by_one(model, name, states, **options):
    """Return the results of single calls: a list of arrays, the states first."""
    found = []
    for k in range(len(states[0])):
        one = [x if x.dtype == bool else x[k] for x in states]
        mine = {key: {link: np.broadcast_to(w, (len(states[0]), 6))[k] for link, w in x.items()}
                for key, x in options.items()}
        found.append(listed(getattr(rbd_ros, name)(model, *one, **mine)))
    return [np.array(x) for x in zip(*found)]


def listed(result):
    """Return results as a list of arrays."""
    return [np.array(x) for x in result] if isinstance(result, tuple) else [np.array(result)]


def assert_close(found, expected, tolerance=AGREEMENT):
    """Compare results, by the largest entry of all."""
    assert len(found) == len(expected) > 0
    for x, y in zip(found, expected):
        assert x.shape == y.shape
        assert np.all(np.abs(x - y) <= tolerance * np.max(np.abs(y), initial=1.0))


@pytest.mark.parametrize('count', covering([1, 2, 3, 7, 8, 9, 10, 11, 19], 1, 8, 11))
@pytest.mark.parametrize('name', sorted(ARGUMENTS))
def test_a_state_has_the_same_result_whatever_its_neighbours(name, count):
    model = ROBOTS['all kinds']
    states = some_states(model, name, count, count)
    expected = one_by_one(model, name, states)
    for k in range(count):
        got = getattr(batch, name)(model, *(x if x.dtype == bool else x[k:] for x in states))
        # Solving for accelerations multiplies rounding by the condition of M.
        worse = 1.0 if name[0] in 'iat' else np.linalg.cond(
            rbd_ros.mass_matrix(model, states[0][k]))
        assert_close([x[0] for x in listed(got)], [x[k] for x in expected], AGREEMENT * worse)


@pytest.mark.parametrize('name, kind', covering(
    product(sorted(ARGUMENTS), ('all kinds', 'many joints', 'mimic')), *OF_ALL_KINDS,
    ('all_terms', 'many joints'), ('hybrid_dynamics', 'mimic')))
def test_results_are_written_where_the_user_wants_them(name, kind):
    model = ROBOTS[kind]
    function, states = getattr(batch, name), some_states(model, name, 21)
    expected = listed(function(model, *states))
    result = function(model, *states)
    again = [x[::-1].copy() if x.dtype != bool else x for x in states]
    mirrored = listed(function(model, *again))
    for out in (result,                                          # of an earlier call
                tuple(np.full(x.shape, 7.0) for x in expected),  # arrays each on its own
                tuple(np.full((*x.shape, 2), 7.0)[..., 0] for x in expected)):      # with gaps
        if not isinstance(result, tuple):
            out, = out if isinstance(out, tuple) else (out,)
        for arguments, wanted in ((again, mirrored), (states, expected)):
            got = function(model, *arguments, out=out)
            one, other = ((out, got) if isinstance(result, tuple) else ((out,), (got,)))
            assert type(got) is type(result) and len(one) == len(other)
            assert all(x is y for x, y in zip(one, other))
            assert all(np.array_equal(x, y) for x, y in zip(listed(got), wanted))


@pytest.mark.parametrize('name', sorted(ARGUMENTS))
def test_results_of_float32_are_those_of_float64_rounded(name):
    model = ROBOTS['all kinds']
    function, states = getattr(batch, name), some_states(model, name, 19)
    expected = listed(function(model, *states))
    out = tuple(np.zeros(x.shape, np.float32) for x in expected)
    function(model, *states, out=out if len(out) > 1 else out[0])
    assert all(np.array_equal(x, y.astype(np.float32)) for x, y in zip(out, expected))


# Rows of states fill whole lines of memory with 8 joints, and do not with 7.
@pytest.mark.parametrize('name, joints', covering(
    product(['all_terms', 'inverse_dynamics_derivatives', 'torque_regressor'], [7, 8]),
    ('all_terms', 7), ('all_terms', 8), ('torque_regressor', 8)))
def test_large_results_that_go_past_the_caches_are_those_of_single_states(
        name, joints, monkeypatch):
    model = random_tree(4, joints, kinds=['revolute', 'prismatic'])
    function, states = getattr(batch, name), some_states(model, name, COUNT)
    numbers = [*range(10), *picked(COUNT), *range(CHUNK - 9, CHUNK + 9), *range(COUNT - 9, COUNT)]
    expected = one_by_one(model, name, [x[numbers] for x in states])
    result = function(model, *states)
    assert_close([x[numbers] for x in listed(result)], expected, AGREEMENT)
    # In the same arrays, which then have results of other states, and without copies.
    monkeypatch.delattr(Problem, 'piece')
    function(model, *(x[::-1].copy() for x in states), out=result)
    assert_close([x[::-1][numbers] for x in listed(result)], expected, AGREEMENT)


def test_an_array_for_large_results_begins_with_a_line_of_memory():
    model = random_tree(4, 7, kinds=['revolute', 'prismatic'])
    for states in (CHUNK, COUNT):
        terms = batch.all_terms(model, *np.zeros((2, states, model.nv)))
        assert terms.M.ctypes.data % 64 == 0 and terms.M.strides[0] % (8 * min(WIDTH, 8)) == 0


def test_results_that_do_not_fit_in_a_piece_are_whole():
    # Several pieces in a chunk, several chunks, in threads, none full.
    model = random_tree(1, 6)
    states = some_states(model, 'torque_regressor', COUNT)
    expected = batch.torque_regressor(model, *states)
    out = np.zeros(expected.shape, np.float32)
    batch.torque_regressor(model, *states, out=out, threads=3)
    assert np.array_equal(out, expected.astype(np.float32))


def test_an_array_for_results_that_does_not_fit_is_refused():
    model = random_tree(3, 5)
    assert model.nv == 4
    Q, V, A = np.random.default_rng(0).normal(size=(3, 9, 4))
    read_only = np.zeros((9, 4))
    read_only.flags.writeable = False
    for out, words in ((np.zeros((8, 4)), r'out has the shape \(8, 4\); it must be \(9, 4\)'),
                       (np.zeros((9, 4), int), 'out must be an array of float64 or float32'),
                       ([[0.0] * 4] * 9, 'out must be an array'),
                       ((V, A), 'out must be one array'),
                       (read_only, 'out cannot be written to'),
                       (A, 'out shares memory with A'),
                       (Q[::-1], 'out shares memory with Q')):
        with pytest.raises(rbd_ros.StateError, match=words):
            batch.inverse_dynamics(model, Q, V, A, out=out)
    both = np.zeros((9, 4))
    for out, words in (((both, both), r'out shares memory with out\[0\]'),
                       ((both, both[:8]), r'out\[1\] has the shape'),
                       (both, 'out must be 2 arrays')):
        with pytest.raises(rbd_ros.StateError, match=words):
            batch.hybrid_dynamics(model, Q, V, A, A, np.ones(4, bool), out=out)


def test_parts_of_results_in_another_order_are_filled_as_they_are_called():
    model = random_tree(3, 5)
    states = some_states(model, 'all_terms', 11)
    terms, expected = (batch.all_terms(model, *states) for _ in range(2))
    swapped = terms._replace(M=terms.C, C=terms.M)
    batch.all_terms(model, *states, out=swapped)
    assert all(np.array_equal(x, y) for x, y in zip(swapped, expected))


PUSHED = [name for name in sorted(ARGUMENTS) if name not in (
    'all_terms', 'coriolis_matrix', 'mass_matrix', 'torque_regressor')]


def functions_of_one_state():
    """Return the public functions of a state, by name, with the package they are in."""
    return {name: home for home in (rbd_ros.analysis, rbd_ros) for name in home.__all__
            if inspect.isfunction(one := getattr(home, name))
            and {'q', 'v'} & {*inspect.signature(one).parameters}}


def test_every_function_of_one_state_has_a_form_for_many_or_a_reason_why_not():
    # These are analysis.torque_deviation and analysis.trajectory_efforts, of many states.
    modules = 'torque_deviation', 'trajectory_efforts'
    without = [name for name in functions_of_one_state() if name not in (*batch.__all__, *modules)]
    assert {'task_space_dynamics', 'friction_regressor'} <= {*without}
    assert len(without) < len(functions_of_one_state())
    for name in without:
        home = functions_of_one_state()[name].__name__
        with pytest.raises(AttributeError, match=f"no '{name}': .*{home}.{name} "):
            getattr(batch, name)
    with pytest.raises(AttributeError, match="no attribute 'load_urdf'"):
        getattr(batch, 'load_' + 'urdf')


@pytest.mark.parametrize('name, kind', covering(
    product(PUSHED, ('all kinds', 'many joints', 'mimic')),
    *product(PUSHED, ('all kinds',)), ('inverse_dynamics', 'many joints'),
    ('forward_dynamics', 'mimic')))
def test_wrenches_push_as_in_single_calls_and_only_there(name, kind):
    model = ROBOTS[kind]
    function, states = getattr(batch, name), some_states(model, name, 19)
    rng = np.random.default_rng(2)
    link, other = model.link_names[-1], model.link_names[2]
    worse = max(np.linalg.cond(rbd_ros.mass_matrix(model, q)) for q in states[0])
    before = listed(function(model, *states))
    for wrenches in ({link: np.arange(6.0)}, {link: rng.normal(size=(19, 6))},
                     {name: rng.normal(size=(19, 6)) for name in model.link_names[1:]},
                     {link: rng.normal(size=6), other: rng.normal(size=(19, 6))}, {}):
        assert_close(listed(function(model, *states, external_wrenches=wrenches)),
                     one_by_one(model, name, states, external_wrenches=wrenches),
                     AGREEMENT * worse)
        after = listed(function(model, *states))
        assert all(np.array_equal(x, y) for x, y in zip(before, after))


def test_wrenches_of_many_states_reach_theirs():
    model = random_tree(1, 6)
    states = some_states(model, 'inverse_dynamics', COUNT)
    # The first joint moves this link.
    wrenches = {model.link_names[1]: np.random.default_rng(3).normal(size=(COUNT, 6))}
    got = batch.inverse_dynamics(model, *states, external_wrenches=wrenches, threads=3)
    for k in picked(COUNT):
        expected = rbd_ros.inverse_dynamics(model, *(x[k] for x in states), external_wrenches={
            link: w[k] for link, w in wrenches.items()})
        assert_close([got[k]], [expected])


def test_no_states_have_no_results_whatever_pushes():
    model = random_tree(1, 6)
    none, (first, second) = np.zeros((0, model.nv)), model.link_names[1:3]
    pushes = {first: np.zeros((0, 6)), second: np.arange(6.0)}
    for function in (batch.inverse_dynamics, batch.forward_dynamics):
        found = function(model, np.zeros((0, model.nq)), none, none, external_wrenches=pushes)
        assert found.shape == (0, model.nv)


def test_wrenches_that_do_not_fit_are_refused():
    model = random_tree(1, 4)
    Q, V, A = np.zeros((3, 9, model.nv))
    link = model.link_names[-1]
    for wrenches, error, words in (
            ({'nowhere': np.ones(6)}, rbd_ros.ModelError, "no link 'nowhere'"),
            ({link: np.ones((8, 6))}, rbd_ros.StateError, f"on link '{link}'"),
            ({link: np.full(6, np.nan)}, rbd_ros.StateError, 'must be finite'),
            ([np.ones(6)], rbd_ros.StateError, 'external_wrenches must be a dict')):
        with pytest.raises(error, match=words):
            batch.inverse_dynamics(model, Q, V, A, external_wrenches=wrenches)


@pytest.mark.parametrize('kind', ['all kinds', 'many joints', 'mimic'])
def test_every_state_can_have_accelerations_of_its_own_prescribed(kind):
    model = ROBOTS[kind]
    Q, V, A, Tau, _ = some_states(model, 'hybrid_dynamics', 40)
    rng = np.random.default_rng(4)
    prescribed = rng.integers(0, 2, size=(3, model.nv)).astype(bool)[rng.integers(0, 3, 40)]
    # What is not given is not looked at.
    A[~prescribed], Tau[prescribed] = np.nan, np.nan
    wrenches = {model.link_names[-1]: rng.normal(size=(40, 6))}
    told = []
    got = batch.hybrid_dynamics(model, Q, V, A, Tau, prescribed, external_wrenches=wrenches,
                                progress=lambda *x: told.append(x))
    assert told[-1] == (40, 40) and sorted(told) == told
    for k in range(40):
        expected = rbd_ros.hybrid_dynamics(
            model, Q[k], V[k], A[k], Tau[k], prescribed[k],
            external_wrenches={link: w[k] for link, w in wrenches.items()})
        assert_close([x[k] for x in got], expected, 1e-9)
    V[33, 1] = np.inf
    with pytest.raises(rbd_ros.StateError, match='state 33: '):
        batch.hybrid_dynamics(model, Q, V, A, Tau, prescribed)
    with pytest.raises(rbd_ros.StateError, match='prescribed'):
        batch.hybrid_dynamics(model, Q, V, A, Tau, prescribed[:39])


def test_states_that_fail_only_side_by_side_are_computed_alone(monkeypatch):
    model = random_tree(1, 4)
    states = some_states(model, 'inverse_dynamics', batch.CHUNK + 43)
    expected = batch.inverse_dynamics(model, *states)
    task, seen = QUANTITIES['inverse_dynamics'].states, []

    def unlucky(*arguments):
        # In the last chunk, the second WIDTH states of what is left fail.
        count, Tau = len(arguments[2]), arguments[-1]
        seen.append(count)
        if WIDTH < count < batch.CHUNK:
            task.kernel(*arguments[:2], *(x[:WIDTH] for x in arguments[2:5]), *arguments[5:-1],
                        Tau[:WIDTH])
            return WIDTH
        return task.kernel(*arguments)

    monkeypatch.setattr(functions, 'solve', lambda model, task, *rest, **options: solve(
        model, replace(task, kernel=unlucky), *rest, **options))
    inverse_dynamics = functions._make('inverse_dynamics')
    for out in (None, np.zeros(expected.shape, np.float32)):
        seen.clear()
        got = inverse_dynamics(model, *states, out=out, threads=1)
        assert batch.CHUNK in seen and 43 - 2 * WIDTH in seen
        assert_close([got], [expected], AGREEMENT if out is None else SINGLE)


@pytest.mark.long
@pytest.mark.parametrize(('variable', 'value', 'width'), [
    ('NUMBA_CPU_NAME', 'generic', 2), ('NUMBA_DISABLE_JIT', '1', INTERPRETED)])
def test_short_registers_and_no_compiler_give_the_same(variable, value, width):
    env = {**os.environ, 'NUMBA_DISABLE_JIT': '0', variable: value, 'PYTEST_ADDOPTS': ''}
    subprocess.run([sys.executable, '-c', 'from rbd_ros.kernels.lanes.lanes import WIDTH\n'
                    f'assert WIDTH == {width}'], check=True, env=env)
    subprocess.run([sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-m',
                    'not long', 'test/batch/test_batch.py', 'test/batch/test_batch_kinematics.py',
                    'test/batch/test_batch_regressors.py', '-k',
                    'neighbours or float32 or products or named or single_calls and not 1061'],
                   check=True, cwd=ROOT, env=env)


def test_any_number_of_threads_gives_the_same_and_tells_its_progress(states):
    model, Q, V, A, _ = states
    expected = batch.inverse_dynamics(model, Q, V, A, threads=1)
    for threads in (2, 7):
        told = []
        got = batch.inverse_dynamics(model, Q, V, A, threads=threads,
                                     progress=lambda *x, told=told: told.append(x))
        assert np.array_equal(got, expected)
        # After every chunk.
        assert len(told) == -(-len(Q) // CHUNK) and told[-1] == (len(Q), len(Q))


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


@pytest.mark.parametrize('share', [0.0, 0.7, 1.0])
def test_a_state_that_cannot_be_computed_is_named(states, share):
    model, Q, V, A, _ = states
    # In the first chunk, in one amid the others, and in the last.
    k, V = round(share * (len(Q) - 1)), V.copy()
    V[k, 2] = np.nan
    with pytest.raises(rbd_ros.StateError, match=f"state {k}: .*'{model.velocity_names[2]}'"):
        batch.inverse_dynamics(model, Q, V, A)


def test_a_joint_that_moves_no_inertia_is_named():
    model = (rbd_ros.ModelBuilder('light').link('a').link('b').joint('j', 'revolute', 'a', 'b')
             .build())
    with pytest.raises(rbd_ros.SingularError, match="state 0: 'j' moves no inertia"):
        batch.forward_dynamics(model, *np.zeros((3, 4, 1)))


@pytest.mark.parametrize('name, kind', covering(
    product(sorted(ARGUMENTS), ('screws', 'all kinds', 'mimic')), *OF_ALL_KINDS,
    ('inverse_dynamics', 'screws'), ('forward_dynamics', 'mimic')))
def test_few_states_of_a_wrong_shape_are_refused(name, kind):
    model, function = ROBOTS[kind], getattr(batch, name)
    states = some_states(model, name, 5)
    # Kernels are there already, and are tried first.
    expected = listed(function(model, *states))
    for k, letter in enumerate(ARGUMENTS[name].replace('p', '')):
        label = 'Tau' if letter == 'T' else letter
        fewer = states[k][:-1], np.concatenate((states[k], states[k][:1]))
        for wrong in (*(fewer if len(states) > 1 else ()), states[k][:, :-1].copy(),
                      np.column_stack((states[k], states[k])), states[k][0], states[k][None],
                      states[k].astype(complex)):
            # The first array says how many states there are.
            others = '|V|A|Tau' if k == 0 else ''
            with pytest.raises(rbd_ros.StateError, match=f'({label}{others}) (has|must)'):
                function(model, *states[:k], wrong, *states[k + 1:])
    assert all(np.array_equal(x, y) for x, y in zip(listed(function(model, *states)), expected))
    if 'dynamics' in name and name != 'hybrid_dynamics':
        with pytest.raises(rbd_ros.StateError, match='threads must be'):
            function(model, *states, threads=0)
