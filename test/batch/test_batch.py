# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Many states at once, against one after the other."""

from copy import deepcopy
from dataclasses import replace
from functools import cache
import gc
import inspect
from itertools import product
import operator
import os
from pathlib import Path
import subprocess
import sys
import threading
import time
import weakref

from closed_robots import closed_robot
from covering import covering
import numpy as np
import pinocchio
import pytest
import rbd_ros
from rbd_ros import analysis, batch
from rbd_ros.batch import functions
from rbd_ros.batch.tasks import Problem, solve
from rbd_ros.kernels.lanes.lanes import INTERPRETED, WIDTH
from rbd_ros.model.joints import KINDS
from rbd_ros.quantities import QUANTITIES
from robots import example_urdf, load_quietly, random_tree

ROOT = Path(__file__).parents[2]
# The same kernels run on the same numbers, side by side: of the largest entry.
AGREEMENT = 1e-13
# Numbers of float32.
SINGLE = 2.0 ** -23
# More than two chunks of states, the last one not full.
CHUNK = batch.CHUNK
COUNT = 2 * CHUNK + 37
DT = 0.3    # s

MOVING = [kind for kind in KINDS if kind != 'fixed']
# Few and many joints, all kinds of joints, and mimicking ones. Of this seed, screws carry a ball
# and a free joint, which carry screws.
ROBOTS = {'screws': random_tree(1, 6), 'all kinds': random_tree(3, 7, kinds=MOVING),
          'many joints': random_tree(0, 21), 'few': random_tree(3, 3),
          'floating': rbd_ros.with_floating_base(random_tree(5, 9)),
          'mimic': load_quietly(example_urdf('panda.urdf')),
          'loops': closed_robot('delta').model,
          'loops with balls': closed_robot('mimics and balls').model}
# What each function takes: configurations, others, velocities, accelerations, torques, a mask of
# given accelerations, a link, a time.
DYNAMICS = {'inverse_dynamics': 'QVA', 'forward_dynamics': 'QVT', 'hybrid_dynamics': 'QVATp',
            'all_terms': 'QV', 'inverse_dynamics_derivatives': 'QVA',
            'forward_dynamics_derivatives': 'QVT', 'torque_regressor': 'QVA',
            'mass_matrix': 'Q', 'coriolis_matrix': 'QV', 'bias_torques': 'QV'}
KINEMATICS = {
    'gravity_torques': 'Q', 'forward_kinematics': 'Q', 'body_jacobian': 'Ql',
    'world_jacobian': 'Ql', 'jacobian_dot': 'QVl', 'world_jacobian_dot': 'QVl',
    'center_of_mass': 'Q', 'com_jacobian': 'Q', 'com_jacobian_dot': 'QV',
    'centroidal_momentum_matrix': 'Q', 'centroidal_momentum_matrix_dot': 'QV',
    'integrate': 'QVt', 'difference': 'QP'}
ARGUMENTS = {**DYNAMICS, **KINEMATICS}
NAMES = sorted(ARGUMENTS)
OF_LINK = [name for name in NAMES if 'l' in ARGUMENTS[name]]
# These multiply rounding by the condition of M.
SOLVING = 'forward_dynamics', 'forward_dynamics_derivatives', 'hybrid_dynamics'
OF_ALL_KINDS = [*product(NAMES, ('all kinds',))]


def picked(count):
    """Return the numbers of some states, from the first to the last."""
    return np.linspace(0, count - 1, 23).astype(int)


@cache
def random_states(model, count, seed):
    """Return what functions take for a number of states, by letter."""
    rng = np.random.default_rng(seed)
    A, Tau, V = rng.normal(size=(3, count, model.nv))
    Q, P = (np.reshape([rbd_ros.random_configuration(model, rng) for _ in range(count)],
                       (count, model.nq)) for _ in range(2))
    return {'Q': Q, 'P': P, 'V': V, 'A': A, 'T': Tau, 'p': np.arange(model.nv) % 3 == 0,
            'l': model.link_names[-1 - seed % len(model.link_names)], 't': DT}


def some_states(model, name, count, seed=0):
    """Return the arguments of a function for a number of states."""
    return [deepcopy(random_states(model, count, seed)[letter]) for letter in ARGUMENTS[name]]


def part_of(states, part):
    """Return the arguments for one state or some of them, copied."""
    return [x[part].copy() if np.ndim(x) == 2 else x for x in states]


def single(name):
    """Return the function for one state."""
    return getattr(rbd_ros, name, None) or getattr(analysis, name)


def of_state(model, name, states, k, **options):
    """Return the results of a single call, as a list of arrays."""
    mine = {key: {link: np.broadcast_to(w, (len(states[0]), 6))[k] for link, w in x.items()}
            for key, x in options.items()}
    return listed(single(name)(model, *part_of(states, k), **mine))


def one_by_one(model, name, states, **options):
    """Return the results of single calls: a list of arrays, the states first."""
    return [np.array(x) for x in zip(*(of_state(model, name, states, k, **options)
                                       for k in range(len(states[0]))))]


def rounding(model, name, q):
    """Return how much results may differ from those of single calls."""
    if model.loops is not None and name != 'mass_matrix':
        return 0.0      # the same kernels compute one after the other
    worse = np.linalg.cond(rbd_ros.mass_matrix(model, q)) if name in SOLVING else 1.0
    return AGREEMENT * worse


def listed(result):
    """Return results as a list of arrays."""
    return [np.array(x) for x in result] if isinstance(result, tuple) else [np.array(result)]


def equal(found, expected):
    """Return whether results are the same to the last bit."""
    return all(np.array_equal(x, y) for x, y in zip(listed(found), listed(expected), strict=True))


def assert_close(found, expected, tolerance=AGREEMENT, least=1.0):
    """Compare results, by the largest entry of all."""
    assert len(found) == len(expected) > 0
    for x, y in zip(found, expected):
        assert x.shape == y.shape
        assert np.all(np.abs(x - y) <= tolerance * np.max(np.abs(y), initial=least))


# None, one, a full set of lanes, one more, and more states than one or two chunks have.
@pytest.mark.parametrize('name, kind, count', covering(
    product(NAMES, ROBOTS, [0, 1, 2, 7, 8, 9, 19, CHUNK + 37, COUNT]),
    *product(NAMES, ['all kinds'], [0, 9]), *product(KINEMATICS, ['floating'], [CHUNK + 37]),
    ('gravity_torques', 'few', 9), ('jacobian_dot', 'screws', 9), ('body_jacobian', 'mimic', 9),
    ('center_of_mass', 'mimic', 0), *product(['integrate', 'difference'], ['loops'], [9]),
    *product(['inverse_dynamics', 'torque_regressor'], ['all kinds'], [COUNT]),
    *product(['inverse_dynamics', 'all_terms'], ['many joints', 'mimic'], [COUNT]),
    *product(['forward_dynamics', 'forward_dynamics_derivatives'], ['mimic'], [COUNT])))
def test_results_are_those_of_single_calls(name, kind, count):
    model = ROBOTS[kind]
    states = some_states(model, name, count, count)
    before = part_of(states, slice(None))
    got = getattr(batch, name)(model, *states, threads=2)
    assert all(np.array_equal(x, y) for x, y in zip(before, states))
    assert name in DYNAMICS or got.flags.carray
    results = listed(got)
    assert {len(x) for x in results} == {count}
    for k in sorted({*range(min(count, 19)), *picked(max(count, 1)), *range(count - 5, count)}
                    & {*range(count)}):
        assert_close([x[k] for x in results], of_state(model, name, states, k),
                     rounding(model, name, states[0][k]), 0.0 if name in DYNAMICS else 1.0)


@pytest.mark.parametrize('count', covering([1, 2, 3, 7, 8, 9, 10, 11, 19], 1, 8, 11))
@pytest.mark.parametrize('name', NAMES)
def test_the_result_of_a_state_does_not_depend_on_its_neighbours(name, count):
    model = ROBOTS['all kinds']
    states = some_states(model, name, count, count)
    for k in range(count):
        got = getattr(batch, name)(model, *part_of(states, slice(k, None)))
        assert_close([x[0] for x in listed(got)], of_state(model, name, states, k),
                     rounding(model, name, states[0][k]))


@pytest.mark.parametrize('kind, name', covering(
    product(['all kinds', 'mimic'], OF_LINK), *product(['all kinds'], OF_LINK),
    ('mimic', 'body_jacobian')))
def test_every_link_has_its_jacobian_and_that_of_the_root_is_zero(kind, name):
    model = ROBOTS[kind]
    *states, _ = some_states(model, name, 9)
    for link in model.link_names:
        got = getattr(batch, name)(model, *states, link)
        for k in (0, 8):
            assert_close([got[k]], of_state(model, name, [*states, link], k))
    assert not np.any(getattr(batch, name)(model, *states, model.link_names[0]))
    with pytest.raises(rbd_ros.ModelError, match="no link 'nowhere'"):
        getattr(batch, name)(model, *states, 'nowhere')


@pytest.mark.parametrize('name, kind', covering(
    product(NAMES, ('all kinds', 'many joints', 'mimic')), *OF_ALL_KINDS,
    ('all_terms', 'many joints'), ('hybrid_dynamics', 'mimic')))
def test_results_are_written_where_the_user_wants_them(name, kind):
    model = ROBOTS[kind]
    function, states = getattr(batch, name), some_states(model, name, 21)
    expected, result = (function(model, *states) for _ in range(2))
    again = part_of(states, slice(None, None, -1))
    mirrored, shapes = function(model, *again), [x.shape for x in listed(expected)]

    def as_result(arrays):
        return arrays if isinstance(result, tuple) else arrays[0]

    for out in (result,                                          # of an earlier call
                as_result(tuple(np.full(x, 7.0) for x in shapes)),  # arrays each on its own
                as_result(tuple(np.full((*x, 2), 7.0)[..., 0] for x in shapes))):   # with gaps
        for arguments, wanted in ((again, mirrored), (states, expected)):
            got = function(model, *arguments, out=out)
            assert type(got) is type(result) and (got is out or all(map(operator.is_, got, out)))
            assert equal(got, wanted)
    out = as_result(tuple(np.zeros(x, np.float32) for x in shapes))
    function(model, *states, out=out)
    assert equal(out, as_result(tuple(x.astype(np.float32) for x in listed(expected))))
    with pytest.raises(rbd_ros.StateError, match=r'out(\[0\])? has the shape'):
        function(model, *states, out=as_result(tuple(np.zeros((20, *x[1:])) for x in shapes)))
    if name in ('integrate', 'difference') and shapes[0] == states[0].shape:
        with pytest.raises(rbd_ros.StateError, match='out shares memory with Q'):
            function(model, *states, out=states[0])


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


def test_fields_of_out_in_another_order_are_filled_by_name():
    model = random_tree(3, 5)
    states = some_states(model, 'all_terms', 11)
    terms, expected = (batch.all_terms(model, *states) for _ in range(2))
    swapped = terms._replace(M=terms.C, C=terms.M)
    batch.all_terms(model, *states, out=swapped)
    assert all(np.array_equal(x, y) for x, y in zip(swapped, expected))


PUSHED = [name for name in DYNAMICS if name not in (
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
    product(PUSHED, ('all kinds', 'many joints', 'mimic', 'loops')),
    *product(PUSHED, ('all kinds',)), ('inverse_dynamics', 'many joints'),
    ('forward_dynamics', 'mimic'), ('inverse_dynamics', 'loops'), ('forward_dynamics', 'loops')))
def test_wrenches_of_many_states_act_as_in_single_calls(name, kind):
    model = ROBOTS[kind]
    function, states = getattr(batch, name), some_states(model, name, 19)
    rng = np.random.default_rng(2)
    link, other = model.link_names[-1], model.link_names[2]
    tolerance = max(rounding(model, name, q) for q in states[0])
    before = listed(function(model, *states))
    for wrenches in ({link: np.arange(6.0)}, {link: rng.normal(size=(19, 6))},
                     {name: rng.normal(size=(19, 6)) for name in model.link_names[1:]},
                     {link: rng.normal(size=6), other: rng.normal(size=(19, 6))}, {}):
        assert_close(listed(function(model, *states, external_wrenches=wrenches)),
                     one_by_one(model, name, states, external_wrenches=wrenches), tolerance)
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


def test_no_states_give_empty_results_with_external_wrenches():
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


@pytest.mark.parametrize('kind', ['all kinds', 'many joints', 'mimic', 'loops'])
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
        assert_close([x[k] for x in got], expected, 1e-9 if model.loops is None else 0.0)
    V[33, 1] = np.inf
    with pytest.raises(rbd_ros.StateError, match='state 33: '):
        batch.hybrid_dynamics(model, Q, V, A, Tau, prescribed)
    with pytest.raises(rbd_ros.StateError, match='prescribed'):
        batch.hybrid_dynamics(model, Q, V, A, Tau, prescribed[:39])


def test_states_that_fail_in_a_group_are_computed_alone(monkeypatch):
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
                    'not long', 'test/batch/test_batch.py', 'test/batch/test_batch_regressors.py',
                    '-k', 'neighbours or written or products or named or single_calls and not '
                    f'({CHUNK + 37} or {COUNT})'],
                   check=True, cwd=ROOT, env=env)


def test_any_number_of_threads_gives_the_same_results_and_reports_progress():
    model = ROBOTS['floating']
    for name in NAMES:
        function, states = getattr(batch, name), some_states(model, name, 2 * CHUNK + 9)
        expected = function(model, *states, threads=1)
        for threads in (2, 7):
            told = []
            assert equal(function(model, *states, threads=threads,
                                  progress=lambda *x, told=told: told.append(x)), expected)
            # After every chunk.
            assert len(told) == 3 and told[-1] == (2 * CHUNK + 9, 2 * CHUNK + 9)


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


@pytest.mark.parametrize('kind', covering(ROBOTS, 'all kinds', 'many joints', 'mimic'))
def test_lists_and_strided_arrays_are_taken(kind):
    model = ROBOTS[kind]
    Q, V, A = some_states(model, 'inverse_dynamics', COUNT)
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


# In the first chunk, in one amid the others, and in the last.
@pytest.mark.parametrize('name, kind, k', covering(
    product(NAMES, ['screws', 'floating', 'mimic'], [0, 7, 8, 22, CHUNK + 3, COUNT - 1]),
    *product(NAMES, ['floating'], [8, CHUNK + 3]), ('inverse_dynamics', 'mimic', COUNT - 1)))
def test_the_state_that_cannot_be_computed_is_named(name, kind, k):
    model, function = ROBOTS[kind], getattr(batch, name)
    states = some_states(model, name, 23 if k < 23 else COUNT)
    expected = function(model, *states)
    # Torques of given accelerations are not read.
    last = 1 if name == 'hybrid_dynamics' else sum(np.ndim(x) == 2 for x in states) - 1
    for bad, value in ((0, np.nan), (last, np.inf)):
        wrong = part_of(states, slice(None))
        wrong[bad][k, -1] = value
        names = model.velocity_names if bad and name != 'difference' else model.position_names
        with pytest.raises(rbd_ros.StateError,
                           match=rf"^state {k}: .*'{names[-1]}'.* must be finite"):
            function(model, *wrong)
    # It leaves nothing behind.
    assert equal(function(model, *states), expected)


@pytest.mark.parametrize('name', NAMES)
def test_a_quaternion_that_is_zero_is_named(name):
    model = ROBOTS['floating']
    states = some_states(model, name, 12)
    states[0][9, :4] = 0.0
    with pytest.raises(rbd_ros.StateError, match=r'^state 9: the quaternion'):
        getattr(batch, name)(model, *states)


def test_a_joint_that_moves_no_inertia_is_named():
    model = (rbd_ros.ModelBuilder('light').link('a').link('b').joint('j', 'revolute', 'a', 'b')
             .build())
    with pytest.raises(rbd_ros.SingularError, match="state 0: 'j' moves no inertia"):
        batch.forward_dynamics(model, *np.zeros((3, 4, 1)))


@pytest.mark.parametrize('name, kind', covering(
    product(DYNAMICS, ('screws', 'all kinds', 'mimic')), *product(DYNAMICS, ('all kinds',)),
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


@pytest.mark.parametrize('turn', [0.0, 1e-9, 1e-5, 0.009, 0.011, 1.0, 3.1])
def test_configurations_move_as_in_pinocchio(turn):
    # A free joint and a ball joint, with turns around those where the series end.
    model = (rbd_ros.ModelBuilder('two').link('a').link('b', mass=1.0, inertia=[0.1] * 3)
             .link('c', mass=1.0, inertia=[0.1] * 3).joint('free', 'free', 'a', 'b')
             .joint('ball', 'spherical', 'b', 'c').build())
    rng = np.random.default_rng(1)
    pin = pinocchio.Model()
    first = pin.addJoint(0, pinocchio.JointModelFreeFlyer(), pinocchio.SE3.Identity(), 'free')
    pin.addJoint(first, pinocchio.JointModelSpherical(), pinocchio.SE3.Identity(), 'ball')
    # Ours: quaternion, position; twists angular first.
    to_pin, v_to_pin = [4, 5, 6, 0, 1, 2, 3, 7, 8, 9, 10], [3, 4, 5, 0, 1, 2, 6, 7, 8]
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(12)])
    V = rng.normal(size=(12, 9))
    for part in (slice(0, 3), slice(6, 9)):
        V[:, part] *= turn / np.linalg.norm(V[:, part], axis=1)[:, None]
    moved = batch.integrate(model, Q, V, 1.0)
    assert_close([batch.difference(model, Q, moved)], [V], 1e-14)
    for k in range(12):
        expected = pinocchio.integrate(pin, Q[k][to_pin], V[k][v_to_pin])
        same = np.sign(moved[k][:4] @ expected[3:7]), np.sign(moved[k][7:] @ expected[7:])
        assert_close([same[0] * moved[k][:4]], [expected[3:7]], 1e-14)
        assert_close([moved[k][4:7]], [expected[:3]], 1e-14)
        assert_close([same[1] * moved[k][7:]], [expected[7:]], 1e-14)
        back = pinocchio.difference(pin, Q[k][to_pin], Q[k - 1][to_pin])
        ours = batch.difference(model, Q[k:k + 1], Q[k - 1][None])[0]
        assert_close([ours[v_to_pin]], [back], 1e-12)
    # The other sign of a quaternion is the same rotation.
    Q[:, :4] *= -1.0
    assert_close([batch.difference(model, Q, moved)], [V], 1e-14)
