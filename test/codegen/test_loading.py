# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Loaded machine code: equal to the library and to Pinocchio; its errors, too."""

from dataclasses import replace
from functools import cache, partial
from inspect import signature
from itertools import product

from closed_robots import closed_robot
from covering import covering
from generated_code import random_states
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, batch
from rbd_ros.batch.threads import CHUNK
from rbd_ros.codegen import FUNCTIONS, load, package_files
from rbd_ros.codegen.c import Style, Writer
from rbd_ros.codegen.graph import Array, Symbol, Tape
from rbd_ros.codegen.machine_code import calls, loading
from rbd_ros.codegen.machine_code.loading import Origin
from rbd_ros.kernels.jit import c_compiler as compiler
from rbd_ros.model import Constraint, inertial_parameters, with_constraints
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.se3 import pose
from rbd_ros.workspace.machine_methods import interpreted
from robots import (
    example_urdf, load_quietly, Oracle, random_tree, relative_error, with_mimics)

# Largest errors relative to the largest entry of an array, in double and in single precision.
ROUNDING, SINGLE = 1e-12, 1e-4
# The functions that solve with M, and their derivatives.
SOLVING = 'forward_dynamics', 'hybrid_dynamics'
# Functions with every kind of operation.
LANES = ('inverse_dynamics', 'forward_dynamics', 'all_terms', 'friction_torques', 'center_of_mass')
ROBOTS = {'arm': cache(lambda: load_quietly('urdf/demo_arm.urdf')),
          'mimics': lambda: with_mimics(random_tree(3, 3, ('revolute', 'prismatic')), 4),
          'kinds': lambda: random_tree(2, 2, ('spherical', 'free')),
          'axes': lambda: random_tree(4, 3, ('universal', 'euler_zyx', 'cylindrical')),
          'closed': lambda: closed_robot('four_bar').model}


@pytest.fixture(scope='session')
def folder(tmp_path_factory):
    """Return the directory of machine code of these tests."""
    return tmp_path_factory.mktemp('code')


@pytest.fixture
def quick_load(folder, monkeypatch):
    """Return `load` with a directory of its own, and a compiler that does not optimize."""
    monkeypatch.setattr(compiler, 'OPTIONS', ('-O0', *compiler.OPTIONS[1:]))
    return partial(load, directory=folder)


def library(name):
    """Return the plain function of a name."""
    return getattr(rbd_ros, name, None) or getattr(analysis, name)


def states_of(name, count=5):
    """Return a robot by name and states, by name of the argument; loops are closed."""
    model = ROBOTS[name]()
    states = random_states(model, count)
    states |= {'link': model.link_names[-1], 'prescribed': np.arange(model.nv) % 2 == 0}
    return model, states


def arguments_of(function, states, k=slice(None)):
    """Return the arguments of one state, or of all of them."""
    return [states[x] if x in ('link', 'prescribed') else states[x][k]
            for x in signature(function).parameters if x in states and not (
                x == 'q' and function is rbd_ros.friction_torques)]


def allowed(function, model, q):
    """Return the largest relative error of a function in one or several configurations."""
    if not function.startswith(SOLVING):
        return ROUNDING
    # Code rounds in other places than kernels do. Solving with M multiplies the difference by up
    # to the condition number: 1e-12 suffices for 100.
    kernels = interpreted(rbd_ros.Workspace(model))
    condition = max(np.linalg.cond(kernels.mass_matrix(x)) for x in np.atleast_2d(q))
    return ROUNDING * max(1.0, condition / 100.0)


def differences(found, expected):
    """Return the largest relative error of results."""
    found, expected = (x if isinstance(x, tuple) else (x,) for x in (found, expected))
    assert len(found) == len(expected)
    return max(relative_error(x, y) for x, y in zip(found, expected))


def message_of(function, *arguments, **options):
    """Return the type and the text of the error that a function raises."""
    with pytest.raises(rbd_ros.errors.RbdError) as raised:
        function(*arguments, **options)
    return type(raised.value), str(raised.value)


@pytest.mark.parametrize('name, way', covering(
    product(ROBOTS, ('extension', 'ctypes')), ('closed', 'extension'), ('closed', 'ctypes')))
def test_all_functions_equal_the_library(name, way, quick_load, monkeypatch):
    monkeypatch.setattr(calls, 'LONGEST', 10 ** 9)
    if way == 'ctypes':
        monkeypatch.setattr(loading, 'headers', lambda: None)
    model, states = states_of(name)
    code = quick_load(model, link=states['link'], prescribed=states['prescribed'])
    loaded = {function: one for function, one in code.report().items() if one.way[0] == 'C'}
    # The code itself must compute them.
    monkeypatch.setattr(calls.LoadedFunction, '_by_library', None)
    of_many = [one for one in FUNCTIONS.values()
               if one.method is None or hasattr(batch, one.name)]
    assert len(loaded) >= len(of_many) - 1
    assert {one.way for one in loaded.values()} == {f'C, {way}'}
    for function in loaded:
        plain = library(function)
        # Friction of passive joints needs their positions.
        needed = ['q'] if function == 'friction_torques' and model.loops is not None else []
        many = getattr(code, function)(*arguments_of(plain, states), **{
            x: states[x] for x in needed})
        for k in range(len(states['q'])):
            one, more = arguments_of(plain, states, k), {x: states[x][k] for x in needed}
            found, expected = getattr(code, function)(*one, **more), plain(model, *one, **more)
            assert type(found) is type(expected) is type(many), function
            most = allowed(function, model, states['q'][k])
            assert differences(found, expected) < most, function
            in_many = tuple(x[k] for x in many) if isinstance(many, tuple) else many[k]
            assert differences(in_many, expected) < most, function


def without_margins(graph):
    """Return a graph without the margins of checks, its last output, and what only they need."""
    tape = Tape()
    tape.operations += graph.operations
    outputs = loading.outputs_of(graph)
    values = [np.array([Symbol(tape, k) for k in numbers.ravel().tolist()], object).reshape(
        numbers.shape) for numbers in graph.results[:len(outputs)]]
    return tape.graph(graph.name, graph.robot, graph.inputs, tuple(outputs), values)


@pytest.mark.parametrize('name', covering(ROBOTS, 'mimics', 'closed'))
def test_loaded_code_is_the_text_of_generated_packages(name, quick_load, monkeypatch, tmp_path):
    model, states = states_of(name)
    options = {x: states[x] for x in ('link', 'prescribed')}
    write, written = loading.sources_of, []

    def record(model, style, graph):
        written.append((style, graph, write(model, style, graph)['robot_dynamics.c']))
        raise rbd_ros.errors.RbdError('nothing is compiled')
    monkeypatch.setattr(loading, 'sources_of', record)
    with pytest.raises(rbd_ros.errors.RbdError, match='nothing is compiled'):
        quick_load(model, directory=tmp_path, **options)
    # Packages take no wrenches.
    written = [one for one in written if 'wrenches' not in {x.name for x in one[1].inputs}]
    assert len(written) > 20
    generated = package_files(model, [graph.name for _, graph, _ in written], prefix='robot',
                              **options)['robot_dynamics.c']
    for style, graph, text in written:
        assert Writer(style, graph).function() in text, graph.name
        assert Writer(style, without_margins(graph)).function() in generated, graph.name
    checked = {graph.name for _, graph, _ in written if graph.outputs[-1].name == 'margins'}
    # Loops may be open; otherwise, checks are of joints that move no inertia.
    assert len(checked) > 20 if model.loops is not None else checked == {
        'forward_dynamics', 'forward_dynamics_derivatives', 'hybrid_dynamics'}


@pytest.mark.parametrize('name, single', covering(
    product(ROBOTS, (False, True)), ('kinds', True), ('closed', False)))
def test_states_in_lanes_equal_single_ones(name, single, quick_load, monkeypatch):
    monkeypatch.setattr(calls, 'LONGEST', 10 ** 9)
    monkeypatch.setattr(calls, 'MANY', 1)
    monkeypatch.setattr(calls.LoadedFunction, '_by_library', None)
    model, states = states_of(name, 37)     # not a multiple of any number of lanes
    states |= {'q': states['q'].astype(np.float32 if single else float)}
    functions = [one for one in LANES if model.loops is None or one != 'friction_torques']
    code = quick_load(model, functions, single=single)
    ran, run = [], calls.Runner.run_some
    monkeypatch.setattr(calls.Runner, 'run_some', lambda runner, first, end, given: (
        ran.append((first, end, run(runner, first, end, given))) or ran[-1][-1]))
    for function in functions:
        arguments = arguments_of(library(function), states)
        ran.clear()
        many = getattr(code, function)(*arguments)
        assert ran == [(0, 37, -1)], function     # none is left to the code of one state
        many = many if isinstance(many, tuple) else (many,)
        for k in (0, 7, 8, 15, 16, 31, 32, 35, 36):
            one = getattr(code, function)(*(x[k] for x in arguments))
            for x, y in zip(many, one if isinstance(one, tuple) else (one,)):
                assert relative_error(x[k], y) < (SINGLE if single else allowed(
                    function, model, states['q'][k])), (function, k)


@pytest.mark.parametrize('single', [False, True])
def test_every_operation_has_its_form_in_lanes(single, folder):
    kinds, tape = {'sqrt': np.sqrt, 'sin': np.sin, 'cos': np.cos, 'exp': np.exp, 'tanh': np.tanh,
                   'abs': np.abs, 'sign': np.sign}, Tape()
    first, second = tape.inputs(0, (2,))
    values = [tape.apply(kind, tape.apply('abs', first) if kind == 'sqrt' else first)
              for kind in kinds]
    values += [first + second, first - second, first * second, first / second, -first, 2.5]
    graph = tape.graph('operations', 'robot', (Array('q', (2,), ''),),
                       (Array('tau', (len(values),), ''),), [np.array(values, object)])
    code, _ = Origin(ROBOTS['arm'](), lambda: graph, '', Style('robot', single, True),
                     compiler.find_compiler(), compiler.code_directory(folder)).code()
    x = np.random.default_rng(4).normal(size=(37, 2)).astype(np.float32 if single else float)
    x[3, 0] = 0.0
    out = np.zeros((37, len(values)), x.dtype)
    assert code.run(37, [x], [out]) == -1
    a, b = x.T
    expected = [f(np.abs(a) if kind == 'sqrt' else a) for kind, f in kinds.items()] + [
        a + b, a - b, a * b, a / b, -a, np.full(37, 2.5)]
    assert np.allclose(out.T, expected, rtol=1e-6 if single else 1e-14, atol=0.0)


@pytest.mark.parametrize('threads', [1, 2])
def test_threads_share_states_and_results_go_where_they_are_wanted(threads, quick_load,
                                                                   monkeypatch):
    monkeypatch.setattr(calls.LoadedFunction, '_by_library', None)
    model, states = states_of('arm', 3000)
    code, done = quick_load(model, ['inverse_dynamics']), []
    given = [states[x] for x in ('q', 'v', 'a')]
    expected, out = batch.inverse_dynamics(model, *given), np.zeros_like(given[1])
    assert code.inverse_dynamics(*given, out=out, threads=threads,
                                 progress=lambda n, count: done.append((n, count))) is out
    assert relative_error(out, expected) < ROUNDING
    assert done[-1] == (3000, 3000)
    single, apart = np.zeros(out.shape, np.float32), np.zeros((3000, 14))[:, ::2]
    for other, tolerance in ((single, SINGLE), (apart, ROUNDING)):
        assert code.inverse_dynamics(*given, out=other, threads=threads) is other
        assert relative_error(other, expected) < tolerance
    for wrong in ((), out[1:], given[0]):
        with pytest.raises(rbd_ros.errors.StateError, match='out'):
            code.inverse_dynamics(*given, out=wrong, threads=threads)


def test_functions_of_many_states_take_loaded_code_instead_of_a_model(quick_load, monkeypatch):
    model, states = states_of('arm', 100)
    code = quick_load(model, ['forward_dynamics', 'hybrid_dynamics'],
                      prescribed=states['prescribed'])
    monkeypatch.setattr(calls.LoadedFunction, '_by_library', None)
    q, v, a, tau = (states[x] for x in ('q', 'v', 'a', 'tau'))
    wrenches, out = {model.link_names[-1]: np.arange(6.0)}, np.zeros_like(v)
    expected = batch.forward_dynamics(model, q, v, tau, external_wrenches=wrenches)
    assert batch.forward_dynamics(code, q, v, tau, external_wrenches=wrenches, out=out,
                                  threads=1) is out
    assert relative_error(out, expected) < allowed('forward_dynamics', model, q)
    given = q, v, a, tau, states['prescribed']
    assert differences(batch.hybrid_dynamics(code, *given),
                       batch.hybrid_dynamics(model, *given)) < allowed(
                           'hybrid_dynamics', model, q)
    with pytest.raises(AttributeError, match="'mass_matrix' is not loaded"):
        batch.mass_matrix(code, q)


def test_a_bad_state_among_many_is_named(quick_load):
    model, states = states_of('arm', 2500)
    states['v'][1777, 2] = np.nan
    code = quick_load(model, ['inverse_dynamics'])
    given = [states[x] for x in ('q', 'v', 'a')]
    assert message_of(code.inverse_dynamics, *given) == message_of(
        batch.inverse_dynamics, model, *given)
    code, pi = quick_load(model, ['inverse_dynamics'], parameters=['pi']), (
        inertial_parameters(model))
    with pytest.raises(rbd_ros.errors.StateError, match='state 1777: '):
        code.inverse_dynamics(*given, pi)
    states['v'][1777, 2] = 0.0
    assert relative_error(code.inverse_dynamics(*given, pi),
                          batch.inverse_dynamics(model, *given)) < ROUNDING


def test_optimized_code_equals_pinocchio(folder):
    path = example_urdf('ur5_robot.urdf')
    model = load_quietly(path)
    oracle, states = Oracle(path, model), random_states(model, 3)
    code = load(model, ['inverse_dynamics', 'forward_dynamics', 'mass_matrix'], directory=folder)
    for q, v, a, tau in zip(*(states[x] for x in ('q', 'v', 'a', 'tau'))):
        for function, given, expected in (
                ('inverse_dynamics', (q, v, a), oracle.tau(q, v, a)),
                ('forward_dynamics', (q, v, tau), oracle.forward(q, v, tau)),
                ('mass_matrix', (q,), oracle.M(q))):
            assert relative_error(getattr(code, function)(*given), expected) < allowed(
                function, model, q), function


@pytest.mark.parametrize('name', covering(['arm', 'mimics', 'closed'], 'mimics', 'closed'))
def test_wrenches_act_as_in_the_library(name, quick_load):
    model, states = states_of(name)
    names = ['inverse_dynamics', 'bias_torques', 'forward_dynamics', 'hybrid_dynamics',
             'forward_dynamics_derivatives']
    code = quick_load(model, names, prescribed=states['prescribed'])
    rng = np.random.default_rng(2)
    same = {link: rng.normal(size=6) for link in (*model.link_names[-2:], model.link_names[0])}
    others = {**same, model.link_names[-1]: rng.normal(size=(5, 6))}
    for function in names:
        plain, most = library(function), allowed(function, model, states['q'])
        one = arguments_of(plain, states, 1)
        found = getattr(code, function)(*one, external_wrenches=same)
        assert differences(found, plain(model, *one, external_wrenches=same)) < most, function
        many = arguments_of(plain, states)
        found = getattr(code, function)(*many, external_wrenches=others)
        for k in range(5):
            expected = plain(model, *arguments_of(plain, states, k), external_wrenches={
                link: np.broadcast_to(x, (5, 6))[k] for link, x in others.items()})
            assert differences(tuple(x[k] for x in found) if isinstance(found, tuple)
                               else found[k], expected) < most, function
        # Nothing is left of them.
        assert differences(getattr(code, function)(*one), plain(model, *one)) < most, function


@pytest.mark.parametrize('arguments', [
    ([0.0] * 6, np.zeros(7), np.zeros(7)), (np.zeros(7), np.zeros(7), np.zeros(8)),
    (np.zeros(7), np.full(7, np.nan), np.zeros(7)),
    (np.zeros(7), np.zeros(7), [0.0] * 6 + [np.inf]), (None, None, None),
    ('abcdefg', np.zeros(7), np.zeros(7)), (np.zeros(7), np.zeros((2, 7)), np.zeros(7)),
    (np.full(7, 1e200), np.full(7, 1e200), np.zeros(7)),
    (np.ma.masked_array(np.zeros(7), [True] + [False] * 6), np.zeros(7), np.zeros(7))])
def test_wrong_states_get_the_errors_of_the_library(arguments, quick_load):
    model = ROBOTS['arm']()
    code = quick_load(model, ['inverse_dynamics'])
    assert message_of(code.inverse_dynamics, *arguments) == message_of(
        rbd_ros.inverse_dynamics, model, *arguments)


def test_wrong_states_among_many_get_the_errors_of_the_library(quick_load):
    model, states = states_of('arm')
    code, q = quick_load(model, ['gravity_torques', 'inverse_dynamics']), states['q'].copy()
    q[3, 2] = np.nan
    for wrong in (q, states['q'][:, :4], [[None] * 7]):
        assert message_of(code.gravity_torques, wrong) == message_of(
            batch.gravity_torques, model, wrong)
    assert message_of(code.inverse_dynamics, states['q'], states['v'][:2], states['a']) == (
        message_of(batch.inverse_dynamics, model, states['q'], states['v'][:2], states['a']))
    for wrenches in ({'nothing': np.zeros(6)}, {'base_link': np.zeros(5)}, 3):
        one = states['q'][0], states['v'][0], states['a'][0]
        assert message_of(code.inverse_dynamics, *one, external_wrenches=wrenches) == message_of(
            rbd_ros.inverse_dynamics, model, *one, external_wrenches=wrenches)
    with pytest.raises(TypeError, match="missing a required argument: 'a'"):
        code.inverse_dynamics(*one[:2])


# A pivot that is zero at once, and one that becomes zero.
@pytest.mark.filterwarnings('error::RuntimeWarning')
@pytest.mark.parametrize('arm, hand', [(1.0, 'revolute'), (0.0, 'prismatic')])
def test_joints_without_inertia_are_named(arm, hand, quick_load):
    light = rbd_ros.ModelBuilder('light').link('base')
    for name, parent, kind, mass in (('arm', 'base', 'prismatic', arm),
                                     ('hand', 'arm', hand, 1.0)):
        light.link(name, mass, inertia=np.zeros((3, 3)))
        light.joint(name, kind, parent, name, axis=(0.0, 0.6, 0.8))
    model, state = light.build(), (np.zeros(2), np.zeros(2), np.ones(2))
    code = quick_load(model, ['forward_dynamics'])
    assert message_of(code.forward_dynamics, *state) == message_of(
        rbd_ros.forward_dynamics, model, *state)


def test_numbers_that_a_result_does_not_need_must_be_finite(quick_load):
    # Gravity torques of a cart are the same everywhere.
    cart = rbd_ros.ModelBuilder('cart').link('a').link('b', 1.0).joint(
        'rail', 'prismatic', 'a', 'b', axis=(0.0, 0.6, 0.8)).build()
    code = quick_load(cart, ['gravity_torques'])
    for q in (np.full(1, np.inf), np.full(1, np.nan)):
        assert message_of(code.gravity_torques, q) == message_of(
            rbd_ros.gravity_torques, cart, q)


def test_open_loops_are_refused(quick_load):
    model, states = states_of('closed')
    code, q = quick_load(model, ['gravity_torques']), states['q'][0].copy()
    assert relative_error(code.gravity_torques(q), rbd_ros.gravity_torques(model, q)) < ROUNDING
    q += 1e-3
    assert message_of(code.gravity_torques, q) == message_of(rbd_ros.gravity_torques, model, q)


def test_results_are_kept_or_written_where_the_caller_wants_them(quick_load):
    model, states = states_of('arm')
    code = quick_load(model, ['inverse_dynamics', 'all_terms'])
    one = [states[x][0] for x in ('q', 'v', 'a')]
    expected = rbd_ros.inverse_dynamics(model, *one)
    kept = code.inverse_dynamics(*one)
    assert code.inverse_dynamics(*(x + 1.0 for x in one)) is kept
    for dtype in (float, np.float32):
        out = np.full(2 * model.nv, np.nan, dtype)[::2]
        assert code.inverse_dynamics(*one, out=out) is out
        assert relative_error(out, expected) < (ROUNDING if dtype is float else SINGLE)
    assert not np.allclose(kept, expected)
    many = [states[x] for x in ('q', 'v')]
    out = tuple(np.empty((5, *x.shape)) for x in rbd_ros.all_terms(model, *one[:2]))
    assert code.all_terms(*many, out=out) is out
    assert differences(out, tuple(batch.all_terms(model, *many))) < ROUNDING
    # In one state as in many.
    for wrong, text in ((np.zeros(6), r'out has the shape \(6,\); it must be \(7,\)'),
                        (one[0], 'out shares memory with q'), (3, 'out must be an array'),
                        (np.broadcast_to(0.0, 7), 'out cannot be written to')):
        with pytest.raises(rbd_ros.StateError, match=text):
            code.inverse_dynamics(*one, out=wrong)


def test_arrays_for_results_need_no_checks_in_python(quick_load, monkeypatch):
    model, states = states_of('arm', calls.MANY)
    code = quick_load(model, ['inverse_dynamics'], parameters=('gravity',))
    other, gravity = rbd_ros.with_gravity(model, (1.0, 2.0, 3.0)), np.array([1.0, 2.0, 3.0])
    many, out = [states[x] for x in ('q', 'v', 'a')], np.empty_like(states['v'])
    without = quick_load(model, ['inverse_dynamics'])
    of_robot = batch.inverse_dynamics(model, *many)
    for one, last in ((code, [gravity]), (without, [])):
        one.inverse_dynamics(*many, *last)      # compiles the code of many states
    one, kept = [x[0] for x in many], code.inverse_dynamics(*(x[1] for x in many), gravity)
    before, expected = kept.copy(), batch.inverse_dynamics(other, *many)
    monkeypatch.setattr(calls.LoadedFunction, '__call__', lambda *_, **named: 'checked')
    assert code.inverse_dynamics(*one, gravity, out=out[0]).base is out
    assert relative_error(out[0], expected[0]) < ROUNDING
    assert np.array_equal(kept, before)
    for options in ({}, {'threads': 1}):
        out[:] = np.nan
        assert code.inverse_dynamics(*many, gravity, **options, out=out) is out
        assert relative_error(out, expected) < ROUNDING
        assert batch.inverse_dynamics(without, *many, **options, out=out) is out
        assert relative_error(out, of_robot) < ROUNDING
    # All others are checked.
    memory = np.zeros(3 * out.size)
    q = memory[out.size:2 * out.size].reshape(out.shape)
    overlaps = [memory[k:k + out.size].reshape(out.shape) for k in (1, out.size, 2 * out.size - 1)]
    read_only = np.broadcast_to(out, out.shape)
    for given, options in (
            *(((q, *many[1:], gravity), {'out': x}) for x in overlaps),
            *(((*many, gravity), {'out': x}) for x in (
                None, out[1:], out.T, out.astype(np.float32), out[0], read_only, (out,), memory,
                np.empty((calls.MANY, model.nv + 1)))),
            *(((*many, gravity), {'out': out, name: x}) for name, x in (
                ('threads', 2), ('threads', True), ('threads', None), ('progress', None))),
            ((many[0], many[1][1:], many[2], gravity), {'out': out}),
            ((*many, gravity), {'out': out, 'threads': 1, 'progress': None}),
            ((*many, gravity), {'threads': 1}), ((*many, gravity[None]), {'out': out}),
            ((many[0] * np.nan, *many[1:], gravity), {'out': out}),
            ((*one, gravity), {'out': out}), ((*one, gravity), {'out': one[0]})):
        assert code.inverse_dynamics(*given, **options) == 'checked'
    # Threads share states, and Ctrl-C does not wait for long.
    for count, options, alone in ((CHUNK + 1, {}, False), (CHUNK + 1, {'threads': 1}, True),
                                  (64 * CHUNK + 1, {'threads': 1}, False)):
        long = [np.resize(x, (count, model.nv)) for x in many]
        assert isinstance(code.inverse_dynamics(
            *long, gravity, **options, out=np.empty_like(long[0])), np.ndarray) is alone


def test_results_may_be_arguments(quick_load, monkeypatch):
    model, states = states_of('arm')
    code = quick_load(model, ['forward_dynamics', 'all_terms'])
    q, v = states['q'][0], states['v'][0]
    first, most = code.forward_dynamics(q, v, v).copy(), allowed('forward_dynamics', model, q)
    assert relative_error(first, rbd_ros.forward_dynamics(model, q, v, v)) < most
    expected = rbd_ros.forward_dynamics(model, q, v, first)
    assert relative_error(code.forward_dynamics(q, v, code.forward_dynamics(q, v, v)),
                          expected) < most
    g = rbd_ros.all_terms(model, q, v).g
    expected = rbd_ros.all_terms(model, q, g)
    kept = code.all_terms(q, v)
    assert differences(code.all_terms(q, kept.g), expected) < ROUNDING
    # They are copied before the code writes to them.
    monkeypatch.setattr(calls.LoadedFunction, '__call__', lambda *_: 'copied')
    assert code.all_terms(q, v) is kept
    for part in (kept.M[0], kept.coriolis_torques, kept.C.ravel()[5:12]):
        assert code.all_terms(q, part) == 'copied'


def test_lists_strided_and_swapped_arrays_are_converted(quick_load):
    model, states = states_of('arm')
    code = quick_load(model, ['gravity_torques'])
    q = states['q'][0]
    expected = rbd_ros.gravity_torques(model, q)
    strided, swapped = np.repeat(q, 2)[::2], q.astype('>f8')
    for x in (q.tolist(), tuple(q), strided, swapped, np.asfortranarray(q),
              np.ma.masked_array(q)):
        assert relative_error(code.gravity_torques(x), expected) < ROUNDING
    assert relative_error(code.gravity_torques(q=q), expected) < ROUNDING
    assert relative_error(code.gravity_torques(states['q'].tolist())[0], expected) < ROUNDING
    assert code.gravity_torques(np.zeros((0, 7))).shape == (0, 7)


def test_other_options_are_left_to_the_library(quick_load):
    model, states = states_of('arm')
    code = quick_load(model, ['jacobian', 'hybrid_dynamics', 'coriolis_matrix',
                              'friction_torques'],
                      link=states['link'], prescribed=states['prescribed'])
    q, v, a, tau = (states[x][0] for x in ('q', 'v', 'a', 'tau'))
    other = model.link_names[3]
    for link in (states['link'], other):
        assert relative_error(code.body_jacobian(q, link),
                              rbd_ros.body_jacobian(model, q, link)) < ROUNDING
    for mask in (states['prescribed'], ~states['prescribed'],
                 states['prescribed'].tolist(), states['prescribed'].astype(int)):
        assert differences(code.hybrid_dynamics(q, v, a, tau, mask),
                           rbd_ros.hybrid_dynamics(model, q, v, a, tau, mask)) < allowed(
                               'hybrid_dynamics', model, q)
    assert relative_error(code.coriolis_matrix(q, v, factorization='body'),
                          rbd_ros.coriolis_matrix(model, q, v, factorization='body')) < ROUNDING
    assert relative_error(code.friction_torques(v, smooth=0.5),
                          rbd_ros.friction_torques(model, v, smooth=0.5)) < ROUNDING


@pytest.mark.parametrize('name', ['arm', 'mimics'])
def test_parameters_are_arguments(name, quick_load, monkeypatch):
    monkeypatch.setattr(calls, 'MANY', 1)       # in lanes, too
    model, states = states_of(name)
    code = quick_load(model, ['inverse_dynamics', 'forward_dynamics'],
                      parameters=('pi', 'positions', 'gravity'))
    rng = np.random.default_rng(6)
    payload = rbd_ros.with_payload(model, model.link_names[-1], 2.0, (0.1, 0.2, 0.3))
    joints = [replace(joint, placement=pose(joint.placement[:3, :3], rng.normal(size=3)))
              if joint.nv else joint for joint in payload.joints]
    other = rbd_ros.with_gravity(rebuild(payload, joints=joints), (1.0, 2.0, 3.0))
    parameters = {'pi': inertial_parameters(other), 'positions': np.concatenate(
        [joint.placement[:3, 3] for joint in joints if joint.nv]), 'gravity': other.gravity}
    q, v, a, tau = (states[x] for x in ('q', 'v', 'a', 'tau'))
    for function, last in (('inverse_dynamics', a), ('forward_dynamics', tau)):
        expected, most = getattr(batch, function)(other, q, v, last), allowed(function, other, q)
        call, one, many = getattr(code, function), (q[0], v[0], last[0]), (q, v, last)
        assert relative_error(call(*one, *parameters.values()), expected[0]) < most
        assert relative_error(call(*one, **dict(reversed(parameters.items()))),
                              expected[0]) < most
        assert relative_error(call(*many, *parameters.values()), expected) < most


@pytest.mark.parametrize('label', ['pi', 'positions', 'gravity'])
def test_wrong_parameters_are_named(label, quick_load):
    model, states = states_of('arm')
    many = [states[x] for x in ('q', 'v', 'tau')]
    joints = [joint.placement[:3, 3] for joint in model.joints if joint.nv]
    parameters = {'pi': inertial_parameters(model), 'positions': np.concatenate(joints),
                  'gravity': model.gravity}
    code = quick_load(model, ['forward_dynamics'], parameters=[*parameters])
    for given in ([x[0] for x in many], many):
        for wrong, text in ((parameters[label] * np.nan, f'{label} must be finite'),
                            (np.zeros(2), rf'{label} has the shape \(2,\)')):
            with pytest.raises(rbd_ros.StateError, match=text):
                code.forward_dynamics(*given, **parameters | {label: wrong})
    with pytest.raises(rbd_ros.StateError, match='state 0: the dynamics of robot'):
        code.forward_dynamics(*many, **parameters | {'pi': 0.0 * parameters['pi']})
    with pytest.raises(rbd_ros.ModelError, match="no parameter 'mass'"):
        quick_load(model, ['inverse_dynamics'], parameters=('mass',))


def test_float_code_differs_only_by_rounding(quick_load):
    model, states = states_of('arm')
    code = quick_load(model, ['inverse_dynamics', 'all_terms'], single=True)
    rounded = [states[x].astype(np.float32) for x in ('q', 'v', 'a')]
    expected = batch.inverse_dynamics(model, *rounded)
    found = code.inverse_dynamics(*rounded)
    assert found.dtype == np.float32
    assert relative_error(found, expected) < SINGLE
    one = [x[1] for x in rounded]
    assert code.inverse_dynamics(*one) is code.inverse_dynamics(*(x.astype(float) for x in one))
    assert relative_error(code.inverse_dynamics(*one), expected[1]) < SINGLE
    assert {x.dtype for x in code.all_terms(*one[:2])} == {np.dtype(np.float32)}


def test_long_functions_are_left_to_kernels(quick_load, monkeypatch):
    monkeypatch.setattr(calls, 'LONGEST', 1000)
    model, states = states_of('arm')
    code = quick_load(model, ['gravity_torques', 'all_terms', 'jacobian', 'torque_regressor'],
                      link=states['link'])
    report = code.report()
    assert report['gravity_torques'].way == 'C, extension'
    assert report['torque_regressor'].way == 'kernels'
    assert report['all_terms'].way == 'kernels'
    assert 'operations' in report['all_terms'].reason
    for function in ('all_terms', 'torque_regressor'):
        plain = library(function)
        for k in (0, slice(None)):
            given = arguments_of(plain, states, k)
            expected = (plain if k == 0 else getattr(batch, function))(model, *given)
            found = getattr(code, function)(*given)
            assert type(found) is type(expected) and differences(found, expected) < ROUNDING


@pytest.mark.long
def test_a_hundred_joints_equal_the_library(quick_load, monkeypatch):
    monkeypatch.setattr(calls, 'LONGEST', 10 ** 9)
    model = random_tree(1, 100, ('revolute',))
    states = random_states(model, 2)
    code = quick_load(model, ['gravity_torques', 'inverse_dynamics'])
    assert code.report()['inverse_dynamics'].way == 'C, extension'
    state = [states[x] for x in ('q', 'v', 'a')]
    assert relative_error(code.gravity_torques(state[0]),
                          batch.gravity_torques(model, state[0])) < ROUNDING
    assert relative_error(code.inverse_dynamics(*state),
                          batch.inverse_dynamics(model, *state)) < ROUNDING


def test_errors_name_the_function_that_is_not_loaded(quick_load):
    model = ROBOTS['arm']()
    code = quick_load(model, ['gravity_torques'])
    with pytest.raises(AttributeError, match="'mass_matrix' is not loaded: pass it to load"):
        code.mass_matrix(np.zeros(model.nq))
    with pytest.raises(rbd_ros.ModelError, match="no code for a function 'gravity'"):
        quick_load(model, ['gravity'])
    with pytest.raises(rbd_ros.ModelError, match='jacobian needs the option link'):
        quick_load(model, ['body_jacobian'])
    with pytest.raises(rbd_ros.StateError):
        quick_load('robot.urdf')


@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
def test_functions_without_code_are_left_to_the_library(quick_load):
    model, states = states_of('arm')
    code = quick_load(model, ['task_space_dynamics'], link=states['link'])
    state = states['q'][0], states['v'][0], states['link']
    assert code.report()['task_space_dynamics'].way == 'kernels'
    assert code.task_space_dynamics(*state).condition == (
        rbd_ros.task_space_dynamics(model, *state).condition)
    rod = Constraint('rod', 'distance', model.link_names[0], model.link_names[-1], length=0.5)
    damped = quick_load(with_constraints(model, [rod], condition_limit=100.0), ['mass_matrix'])
    assert damped.report()['mass_matrix'].way == 'kernels'
    assert 'damped' in damped.report()['mass_matrix'].reason
    still = quick_load(rbd_ros.load_urdf_string('<robot name="x"><link name="a"/></robot>'),
                       ['gravity_torques'])
    assert still.gravity_torques(np.zeros(0)).shape == (0,)
    assert still.report()['gravity_torques'].reason == 'no joint moves'


def test_a_quaternion_that_is_zero_is_refused_although_no_result_depends_on_it(quick_load):
    model = load_quietly('urdf/demo_arm.urdf', floating_base=True)
    code, q = quick_load(model, ['mass_matrix']), rbd_ros.neutral(model)
    M = rbd_ros.mass_matrix(model, q)
    assert np.max(np.abs(code.mass_matrix(q) - M)) < ROUNDING * np.max(M)
    q[:4] = 0.0
    with pytest.raises(rbd_ros.StateError, match='quaternion'):
        code.mass_matrix(q)
