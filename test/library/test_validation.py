# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Whatever is given in place of numbers is refused by the name of the argument, in our words."""

from inspect import isfunction, signature
import warnings

import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, batch, control, identification, textbook
from rbd_ros._internal.text import arrows, first_twice, listed, printable
from rbd_ros.model.arguments import real_array
from rbd_ros.model.constraints import attach
from robots import random_tree

MODEL = random_tree(7, 3, kinds=('revolute', 'prismatic'))
MODEL = attach(MODEL, rbd_ros.model.Uncertainty(
    MODEL.velocity_names, rbd_ros.model.inertial_parameter_names(MODEL)[-1:], np.ones((1, 1)),
    np.zeros((MODEL.nv, 1)), np.ones((MODEL.nv, 1)), np.zeros(MODEL.nv)))
N, LINK = MODEL.nv, MODEL.link_names[-1]
X = np.linspace(0.1, 0.4, N)
STATES = np.tile(X, (3, 1))
PI = rbd_ros.model.inertial_parameters(MODEL)
CONTACTS = [analysis.Contact(LINK, 'surface')]
SIX = np.arange(1.0, 7.0)


class Tracer:
    """A number of another library, which will not be turned into one of ours."""

    shape, ndim = (N,), 1

    def __array__(self, *_, **__):
        raise RuntimeError('TracerArrayConversionError')

    def __len__(self):
        return N

    def __getitem__(self, k):
        return self


class TypeTracer(Tracer):
    """Another one."""

    def __array__(self, *_, **__):
        raise TypeError('a tracer')


class Frame:
    """Columns with names, as data frames of pandas and polars have them."""

    def __init__(self, columns):
        self._columns, self.columns = columns, list(columns)

    def __getitem__(self, name):
        return self._columns[name]

    def __array__(self, *_, **__):
        return np.column_stack(list(self._columns.values()))

    to_numpy = __array__


class Series:
    """Numbers with labels, as in pandas."""

    def __init__(self, numbers, index):
        self._numbers, self.index = np.array(numbers), index

    def __array__(self, *_, **__):
        return self._numbers

    to_numpy = __array__


# What nobody can compute with. A ragged list has the right length.
NO_NUMBERS = {
    'None': None, 'text': 'abc', 'texts': ['1.0'] * N, 'dict': {'a': 1.0}, 'set': {1.0, 2.0},
    'ragged': [[1.0, 2.0]] + [1.0] * (N - 1), 'object': object(), 'objects': [None] * N,
    'complex': X + 1j, 'complex list': [1j] * N, 'tracer': Tracer(), 'type tracer': TypeTracer(),
    'function': abs, 'truth values': np.full(N, True), 'generator': (x for x in range(N))}

# Good arguments by name, and those of functions that have others or options.
GOOD = {**dict.fromkeys(('q', 'v', 'a', 'tau', 'v_r', 'a_r', 'q_0', 'q_1', 'tau_ext'), X),
        **dict.fromkeys(('Q', 'V', 'A', 'Tau', 'X', 'Q_0', 'Q_1'), STATES),
        'link': LINK, 'prescribed': X > 0.2, 'contacts': CONTACTS, 'dt': 0.1, 'pi': PI}
ALL_STATES = dict.fromkeys(('q', 'v', 'a', 'tau'), STATES)
MORE = {
    'friction_torques': {'smooth': 0.1}, 'friction_regressor': {'a': X, 'smooth': 0.1},
    'constrained_inverse_dynamics': {
        'actuated': X > 0.0, 'wrench_weights': np.ones((1, 6)), 'torque_weights': X},
    'check_contacts': {'wrenches': np.ones((1, 6))},
    'random_configuration': {'rng': np.random.default_rng(0)},
    'with_friction': {'damping': X, 'friction': X},
    'with_springs': {'stiffness': X, 'spring_reference': X}, 'with_armature': {'armature': X},
    'with_drive_parameters': {'parameters': np.repeat(X, 3)},
    'with_gravity': {'gravity': np.ones(3)},
    'with_payload': {'mass': 1.0, 'com': np.ones(3), 'inertia': np.ones(3)},
    'identify': ALL_STATES, 'identify_payload': ALL_STATES,
    'simulate': {'q0': X, 'v0': X, 'torque': X, 't': np.array([0.0, 0.1])},
    'trajectory_efforts': {'time': np.arange(float(len(STATES))), 'q': STATES, 'v': STATES,
                           'a': STATES},
    'effective_mass': {'direction': np.ones(3)},
    'speed_limit': {'body_region': 'chest', 'direction': np.ones(3)},
    'retime': {'waypoints': np.array([X, 2.0 * X, X]), 'velocity_limit': X,
               'acceleration_limit': X, 'effort_share': 0.5},
    'torque_deviation': {'smooth': 0.1}, 'friction_compensation': {'dead_band': 0.1},
    'normal_equations': {'weights': STATES ** 2}, 'regressor_factor': {'weights': X ** 2}}
# Functions of a robot alone, or of other things than numbers; they have tests of their own.
OTHERS = {'base_parameters', 'constraint_forces', 'diagnose', 'drive_parameter_names',
          'drive_parameters', 'estimate_delay', 'excitation_limits', 'excite', 'fit',
          'fit_payload', 'forward_dynamics_derivative', 'hybrid_dynamics_derivative',
          'identify_drive_gains', 'inertial_parameter_names', 'inertial_parameters',
          'inverse_dynamics_derivative', 'load_constraints', 'load_drives', 'neutral', 'partial',
          'payload_partial', 'prepare', 'save_drives', 'save_urdf', 'subtree', 'verdict',
          'with_constraints', 'with_contact_calibration', 'with_floating_base',
          'with_free_joints', 'with_locked_joints', 'without_payload'}


def functions_of_robots():
    """Yield the public functions whose first argument is a robot, each once."""
    packages = (rbd_ros, rbd_ros.model, analysis, control, identification, textbook, batch)
    found = (getattr(package, name) for package in packages for name in package.__all__)
    for function in dict.fromkeys(one for one in found if isfunction(one)):
        if next(iter(signature(function).parameters), '') == 'model':
            yield function


# Every public function of a robot and numbers, with good arguments by name.
FUNCTIONS = [
    (function, {label: GOOD[label] for label, one in signature(function).parameters.items()
                if one.default is one.empty and label in GOOD} | MORE.get(function.__name__, {}))
    for function in functions_of_robots() if function.__name__ not in OTHERS]
# Where None stands for a default, and a function or a mask for what it is.
ALLOWED = {('with_payload', 'inertia', 'None'), ('with_friction', 'damping', 'None'),
           ('with_friction', 'friction', 'None'), ('with_springs', 'stiffness', 'None'),
           ('with_springs', 'spring_reference', 'None'), ('friction_regressor', 'a', 'None'),
           ('normal_equations', 'weights', 'None'), ('regressor_factor', 'weights', 'None'),
           ('simulate', 'torque', 'function'), ('trajectory_efforts', 'v', 'None'),
           ('trajectory_efforts', 'a', 'None'),
           ('speed_limit', 'direction', 'None'),
           *(('retime', name, 'None') for name in ('velocity_limit', 'acceleration_limit')),
           ('random_configuration', 'rng', 'None'),
           ('hybrid_dynamics', 'prescribed', 'truth values'),
           *(('constrained_inverse_dynamics', name, 'None')
             for name in ('actuated', 'wrench_weights', 'torque_weights')),
           ('constrained_inverse_dynamics', 'actuated', 'truth values'),
           ('hybrid_dynamics_derivatives', 'prescribed', 'truth values')}
each_function = pytest.mark.parametrize('function, arguments', FUNCTIONS, ids=[
    f'{function.__module__.split(".")[-1]}.{function.__name__}' for function, _ in FUNCTIONS])
# Words for arguments in messages where they are part of something larger.
CALLED = {'com': 'centre of mass'}


def call(function, arguments, model=MODEL):
    """Call a function with the robot and arguments by name."""
    if function.__name__ in ('explicit_euler', 'semi_implicit_euler', 'runge_kutta_4'):
        return function(model, lambda t, q, v: np.zeros(N), 0.0, **arguments)
    return function(model, **arguments)


@each_function
def test_fault_64_arguments_that_are_not_numbers_are_refused_by_name(function, arguments):
    with warnings.catch_warnings():
        warnings.simplefilter('error')
        call(function, arguments)
        for name in arguments:
            for kind, bad in NO_NUMBERS.items():
                if (function.__name__, name, kind) in ALLOWED:
                    continue
                with pytest.raises((rbd_ros.StateError, rbd_ros.ModelError)) as caught:
                    call(function, {**arguments, name: bad})
                assert CALLED.get(name, name) in str(caught.value), (name, kind)
                assert len(str(caught.value)) < 2000


# Other ways to write a vector.
FORMS = {'list': np.ndarray.tolist, 'tuple': lambda x: tuple(x.tolist()),
         'tuple of NumPy': tuple, 'every other entry': lambda x: np.repeat(x, 2, axis=0)[::2],
         'tuples in a list': lambda x: [*map(tuple, x)] if x.ndim == 2 else [*x]}


def numbers_of(result):
    """Return all numbers of a result as one vector; a robot has none."""
    if isinstance(result, tuple):
        return np.concatenate([np.zeros(0), *map(numbers_of, result)])
    return np.ravel(result) if isinstance(result, (np.ndarray, float)) else np.zeros(0)


@each_function
def test_vectors_in_every_form_give_the_numbers_of_arrays(function, arguments):
    vectors = {name: x for name, x in arguments.items()
               if isinstance(x, np.ndarray) and x.dtype == float}
    expected = numbers_of(call(function, arguments))
    for kind, form in (FORMS if vectors else {}).items():
        given = {**arguments, **{name: form(x) for name, x in vectors.items()}}
        assert np.array_equal(numbers_of(call(function, given)), expected), kind


@each_function
def test_fault_64_arguments_that_are_not_robots_are_refused(function, arguments):
    for bad in (None, 'robot', X, {}):
        with pytest.raises(rbd_ros.StateError, match='model'):
            call(function, arguments, bad)


def test_exceptions_of_the_validation_test_exist():
    assert {function.__name__ for function in functions_of_robots()} > OTHERS | {*MORE}


WRENCHED = [(rbd_ros.inverse_dynamics, 3), (rbd_ros.bias_torques, 2),
            (rbd_ros.forward_dynamics, 3), (rbd_ros.inverse_dynamics_derivatives, 3),
            (rbd_ros.forward_dynamics_derivatives, 3)]


@pytest.mark.parametrize('function, count', WRENCHED)
def test_fault_64_invalid_wrenches_are_refused_by_their_link(function, count):
    for bad in ('abc', [1.0] * 6, SIX, 3.0):
        with pytest.raises(rbd_ros.StateError, match='external_wrenches must be a dict'):
            function(MODEL, *[X] * count, external_wrenches=bad)
    for bad in (None, 'abc', SIX[:5], SIX + 1j, ['1'] * 6, [[1.0]] * 6, {}, SIX * np.nan):
        with pytest.raises(rbd_ros.StateError, match=f"external_wrenches on link '{LINK}'"):
            function(MODEL, *[X] * count, external_wrenches={LINK: bad})
    for bad in ('nowhere', None, 3):
        with pytest.raises(rbd_ros.ModelError, match='has no link'):
            function(MODEL, *[X] * count, external_wrenches={bad: SIX})


@pytest.mark.parametrize('field', ['dq', 'dv', 'da'])
def test_fault_64_variations_that_are_no_numbers_are_refused_by_name(field):
    for kind, bad in NO_NUMBERS.items():
        if kind == 'None':
            continue
        with pytest.raises(rbd_ros.StateError, match=field):
            analysis.inverse_dynamics_derivative(MODEL, X, X, X,
                                                 analysis.Variation(**{field: bad}))
    for field in ('dwrenches', 'dinertia', 'dplacement'):
        with pytest.raises(rbd_ros.StateError, match=field):
            analysis.inverse_dynamics_derivative(MODEL, X, X, X, analysis.Variation(**{field: 3}))


@pytest.mark.parametrize('good', [
    X, X.tolist(), tuple(X), X.astype(np.float32), np.arange(N), np.repeat(X, 2)[::2],
    X.astype(np.longdouble), [np.float64(x) for x in X], np.arange(N, dtype=np.uint8)])
def test_real_numbers_of_any_type_are_taken(good):
    expected = rbd_ros.gravity_torques(MODEL, np.array(good, float))
    assert np.array_equal(rbd_ros.gravity_torques(MODEL, good), expected)
    assert np.array_equal(real_array(good), np.array(good, float))


def test_fault_61_texts_of_others_are_printed_on_one_line_and_not_at_length():
    assert printable('a\nb\x1b[31m\u2028é') == 'a\\nb\\x1b[31m\\u2028é'
    assert printable('x' * 5000, 10) == 'xxxxxxxxxx ... (4990 more characters)'
    names = [f'j{k}' for k in range(100)]
    assert listed(names, 3) == 'j0, j1, j2 and 97 more'
    assert listed(names[:3], 3) == 'j0, j1, j2'
    assert arrows(names[:3], 4) == 'j0 -> j1 -> j2'
    assert arrows(names, 4) == 'j0 -> j1 -> ... (96 more) ... -> j98 -> j99'


@pytest.mark.parametrize('function, message', [
    (lambda: batch.inverse_dynamics(MODEL, np.ma.masked_less(STATES, 9.0), STATES, STATES),
     'Q must'),
    (lambda: rbd_ros.all_terms(MODEL, X, X, factorization=np.array(['body'] * 2)),
     'factorization must be'),
    (lambda: rbd_ros.coriolis_matrix(MODEL, X, X, factorization=None), 'factorization must be'),
    (lambda: batch.inverse_dynamics(MODEL, STATES, STATES, STATES, threads='two'), 'threads must'),
    (lambda: batch.inverse_dynamics(MODEL, STATES, STATES, STATES, threads=0), 'threads must be'),
    (lambda: batch.hybrid_dynamics(MODEL, STATES, STATES, STATES, STATES, np.ones((1, N), bool)),
     'prescribed must be 3 truth values, .* or 3 rows of them, got'),
    (lambda: textbook.stacked_inverse_dynamics(MODEL, X, X, X, external_wrenches='tool'),
     'external_wrenches must be a dict'),
    (lambda: analysis.inverse_dynamics_derivative(MODEL, X, X, X, None), 'variation must be a'),
    (lambda: analysis.forward_dynamics_derivative(MODEL, X, X, X, [X]), 'variation must be a'),
    (lambda: identification.base_parameters(None), 'model must be a robot'),
    (lambda: identification.base_parameters(MODEL, seed='x'), 'seed must be'),
    (lambda: rbd_ros.load_urdf_string('<robot name="r"/>', max_joints='many'), 'max_joints must'),
    (lambda: rbd_ros.with_floating_base(MODEL, name=3), 'the name of the joint must be a string')])
def test_fault_64_options_that_make_no_sense_are_refused_by_name(function, message):
    with pytest.raises(rbd_ros.RbdError, match=message):
        function()


def arrays(result):
    """Return all arrays of a result."""
    if isinstance(result, identification.Identification):
        result = tuple(vars(result).values())
    if isinstance(result, tuple):
        return [x for part in result for x in arrays(part)]
    return [result] if isinstance(result, np.ndarray) else []


@pytest.mark.parametrize('function, arguments', [
    (function, arguments) for function, arguments in FUNCTIONS
    if function.__name__ != 'simulate' and not function.__module__.endswith('integrators')])
def test_results_belong_to_the_caller(function, arguments):
    found = arrays(function(MODEL, **arguments))
    assert found or function.__name__ in ('kinetic_energy', 'potential_energy', 'energy',
                                          'inconsistent_bodies', 'with_inertial_parameters',
                                          'with_gravity', 'with_payload', 'with_friction',
                                          'with_armature', 'with_drive_parameters',
                                          'with_springs', 'effective_mass', 'speed_limit')
    kept = [x.copy() for x in found]
    others = {name: 0.7 * x if isinstance(x, np.ndarray) and x.dtype == float else x
              for name, x in arguments.items()}
    try:
        function(MODEL, **others)
        rbd_ros.all_terms(MODEL, 2.0 * X, X)
        rbd_ros.hybrid_dynamics_derivatives(MODEL, X, 2.0 * X, X, X, np.full(N, True))
    except rbd_ros.StateError:
        pass
    assert all(np.array_equal(x, y) for x, y in zip(found, kept))


class Counted(str):
    """A name that counts how often it is compared."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Counted.compared += 1
        return str.__eq__(self, other)


def test_the_first_name_that_is_there_twice_is_found_in_linear_time():
    assert first_twice([]) is None and first_twice(['a', 'b']) is None
    assert first_twice(['a', 'b', 'c', 'b', 'a']) == 'b' and first_twice(['', '']) == ''
    assert first_twice(Counted(f'j{k}') for k in range(10_000)) is None
    assert Counted.compared < 100


def frame(order, rows=STATES, **more):
    """Return states as columns with the names of the joints, in another order."""
    return Frame({MODEL.velocity_names[k]: rows[:, k] for k in order} | more)


def test_columns_of_data_frames_are_found_by_the_names_of_joints():
    rows = np.random.default_rng(0).normal(size=(5, N))
    expected = batch.inverse_dynamics(MODEL, rows, rows + 1.0, rows - 1.0)
    got = batch.inverse_dynamics(MODEL, frame([2, 0, 1], rows), frame([1, 0, 2], rows + 1.0),
                                 frame([0, 2, 1], rows - 1.0, time=np.arange(5.0)))
    assert np.array_equal(got, expected)
    assert np.array_equal(rbd_ros.friction_torques(MODEL, frame([1, 2, 0], rows)),
                          rbd_ros.friction_torques(MODEL, rows))


@pytest.mark.parametrize('given', [
    frame([0, 1]), frame([0, 1], other=X[:3]), Frame({str(k): X[:3] for k in range(N)}),
    Frame(dict(enumerate(STATES.T)))], ids=['too few', 'another', 'digits', 'numbers'])
def test_data_frames_with_other_names_are_refused(given):
    with pytest.raises(rbd_ros.StateError, match=r'V has the columns .* missing or there twice: '):
        batch.inverse_dynamics(MODEL, STATES, given, STATES)


def test_names_of_a_single_state_are_refused_and_numbers_are_not():
    for wrong in (Series(X, list(MODEL.velocity_names)), frame([0, 1, 2], STATES[:1]),
                  Series(X, [0, 'b', 'c'])):
        for function in (rbd_ros.gravity_torques, rbd_ros.mass_matrix):
            with pytest.raises(rbd_ros.StateError, match='q must be real numbers in the order'):
                function(MODEL, wrong)
    assert np.array_equal(rbd_ros.gravity_torques(MODEL, Series(X, range(N))),
                          rbd_ros.gravity_torques(MODEL, X))


@pytest.mark.parametrize('masked', [0, 2])
def test_masked_arrays_are_refused_while_anything_is_masked(masked):
    one, many = np.ma.array(X, mask=np.zeros(N)), np.ma.array(STATES, mask=np.zeros((3, N)))
    workspace = rbd_ros.Workspace(MODEL)
    expected = rbd_ros.inverse_dynamics(MODEL, X, X, X)
    assert np.array_equal(rbd_ros.inverse_dynamics(MODEL, one, X, one), expected)
    assert np.array_equal(batch.inverse_dynamics(MODEL, many, many, STATES)[0], expected)
    one[masked] = many[masked, 1] = np.ma.masked
    for function, given in ((workspace.inverse_dynamics, (X, one, X)),
                            (workspace.gravity_torques, (one,)), (workspace.mass_matrix, (one,)),
                            (batch.inverse_dynamics, (MODEL, STATES, STATES, many)),
                            (batch.gravity_torques, (MODEL, many)),
                            (rbd_ros.friction_torques, (MODEL, one))):
        with pytest.raises(rbd_ros.StateError, match='must be real numbers, got a masked array: '):
            function(*given)
    mask = np.ma.array(np.ones(N, bool), mask=np.arange(N) == masked)
    masks = np.ma.stack([mask] * 3)
    for function, given in (
            (rbd_ros.hybrid_dynamics, (MODEL, X, X, X, X, mask)),
            (batch.hybrid_dynamics, (MODEL, STATES, STATES, STATES, STATES, masks))):
        with pytest.raises(rbd_ros.StateError, match=r'truth values, .* got masked_array'):
            function(*given)
