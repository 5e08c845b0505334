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

# Every public function of numbers: good arguments by name, and the names of those to spoil. The
# robot itself is the first.
FUNCTIONS = [
    (rbd_ros.inverse_dynamics, {'q': X, 'v': X, 'a': X}),
    (rbd_ros.bias_torques, {'q': X, 'v': X}),
    (rbd_ros.gravity_torques, {'q': X}),
    (rbd_ros.forward_dynamics, {'q': X, 'v': X, 'tau': X}),
    (rbd_ros.hybrid_dynamics, {'q': X, 'v': X, 'a': X, 'tau': X, 'prescribed': X > 0.2}),
    (rbd_ros.mass_matrix, {'q': X}),
    (rbd_ros.coriolis_matrix, {'q': X, 'v': X}),
    (rbd_ros.all_terms, {'q': X, 'v': X}),
    (rbd_ros.friction_torques, {'v': X, 'smooth': 0.1}),
    (rbd_ros.spring_torques, {'q': X}),
    (rbd_ros.forward_kinematics, {'q': X}),
    (rbd_ros.body_jacobian, {'q': X, 'link': LINK}),
    (rbd_ros.world_jacobian, {'q': X, 'link': LINK}),
    (rbd_ros.center_of_mass, {'q': X}),
    (rbd_ros.com_jacobian, {'q': X}),
    (rbd_ros.jacobian_dot, {'q': X, 'v': X, 'link': LINK}),
    (analysis.jacobian_ddot, {'q': X, 'v': X, 'a': X, 'link': LINK}),
    (analysis.jacobian_derivatives, {'q': X, 'link': LINK}),
    (analysis.jacobian_dot_derivatives, {'q': X, 'v': X, 'link': LINK}),
    (analysis.world_jacobian_dot, {'q': X, 'v': X, 'link': LINK}),
    (analysis.jacobian_dot_v, {'q': X, 'v': X, 'link': LINK}),
    (analysis.world_jacobian_dot_v, {'q': X, 'v': X, 'link': LINK}),
    (analysis.link_com_world_jacobian, {'q': X, 'link': LINK}),
    (analysis.link_com_jacobian, {'q': X, 'link': LINK}),
    (analysis.analytic_jacobian, {'q': X, 'link': LINK}),
    (analysis.com_jacobian_dot, {'q': X, 'v': X}),
    (analysis.centroidal_momentum_matrix, {'q': X}),
    (analysis.centroidal_momentum_matrix_dot, {'q': X, 'v': X}),
    (rbd_ros.inverse_dynamics_derivatives, {'q': X, 'v': X, 'a': X}),
    (rbd_ros.forward_dynamics_derivatives, {'q': X, 'v': X, 'tau': X}),
    (rbd_ros.hybrid_dynamics_derivatives,
     {'q': X, 'v': X, 'a': X, 'tau': X, 'prescribed': X > 0.2}),
    (analysis.mass_matrix_derivatives, {'q': X}),
    (analysis.coriolis_matrix_derivatives, {'q': X, 'v': X}),
    (analysis.gravity_torques_derivatives, {'q': X}),
    (analysis.matrices_dot, {'q': X, 'v': X, 'a': X}),
    (analysis.parameter_derivatives, {'q': X, 'v': X}),
    (analysis.acceleration_parameter_derivatives, {'q': X, 'v': X, 'tau': X}),
    (analysis.friction_regressor, {'v': X, 'a': X, 'smooth': 0.1}),
    (rbd_ros.torque_regressor, {'q': X, 'v': X, 'a': X}),
    (analysis.slotine_li_regressor, {'q': X, 'v': X, 'v_r': X, 'a_r': X}),
    (analysis.momentum_regressor, {'q': X, 'v': X}),
    (analysis.energy_regressor, {'q': X, 'v': X}),
    (rbd_ros.task_space_dynamics, {'q': X, 'v': X, 'link': LINK}),
    (analysis.constrained_dynamics, {'q': X, 'v': X, 'tau': X, 'contacts': CONTACTS}),
    (analysis.constrained_inverse_dynamics,
     {'q': X, 'v': X, 'a': X, 'contacts': CONTACTS, 'actuated': X > 0.0,
      'wrench_weights': np.ones((1, 6)), 'torque_weights': X}),
    (analysis.check_contacts, {'q': X, 'contacts': CONTACTS, 'wrenches': np.ones((1, 6))}),
    (analysis.kinetic_energy, {'q': X, 'v': X}),
    (analysis.potential_energy, {'q': X}),
    (analysis.energy, {'q': X, 'v': X}),
    (textbook.christoffel_symbols, {'q': X}),
    (textbook.christoffel_coriolis_matrix, {'q': X, 'v': X}),
    (textbook.com_frame_mass_matrix, {'q': X}),
    (textbook.com_frame_gravity_torques, {'q': X}),
    (textbook.stacked_terms, {'q': X, 'v': X}),
    (textbook.stacked_matrices, {'q': X}),
    (textbook.stacked_inverse_dynamics, {'q': X, 'v': X, 'a': X}),
    (rbd_ros.integrate, {'q': X, 'v': X, 'dt': 0.1}),
    (rbd_ros.difference, {'q_0': X, 'q_1': X}),
    (rbd_ros.model.normalize, {'q': X}),
    (rbd_ros.random_configuration, {'rng': np.random.default_rng(0)}),
    (rbd_ros.model.inconsistent_bodies, {'pi': PI}),
    (rbd_ros.model.with_inertial_parameters, {'pi': PI}),
    (rbd_ros.model.with_friction, {'damping': X, 'friction': X}),
    (rbd_ros.model.with_springs, {'stiffness': X, 'spring_reference': X}),
    (rbd_ros.with_armature, {'armature': X}),
    (rbd_ros.model.with_drive_parameters, {'parameters': np.repeat(X, 3)}),
    (rbd_ros.with_gravity, {'gravity': np.ones(3)}),
    (rbd_ros.with_payload, {'link': LINK, 'mass': 1.0, 'com': np.ones(3), 'inertia': np.ones(3)}),
    (rbd_ros.identify, {'q': STATES, 'v': STATES, 'a': STATES, 'tau': STATES}),
    (identification.identify_payload,
     {'link': LINK, 'q': STATES, 'v': STATES, 'a': STATES, 'tau': STATES}),
    (rbd_ros.simulate, {'q0': X, 'v0': X, 'torque': X, 't': np.array([0.0, 0.1])}),
    (analysis.trajectory_efforts, {'time': np.arange(float(len(STATES))), 'q': STATES,
                                   'v': STATES, 'a': STATES}),
    (analysis.effective_mass, {'q': X, 'link': LINK, 'direction': np.ones(3)}),
    (analysis.speed_limit, {'q': X, 'v': X, 'link': LINK, 'body_region': 'chest',
                            'direction': np.ones(3)}),
    (analysis.retime, {'waypoints': np.array([X, 2.0 * X, X]), 'velocity_limit': X,
                       'acceleration_limit': X, 'effort_share': 0.5}),
    (analysis.torque_deviation, {'q': X, 'v': X, 'a': X, 'smooth': 0.1}),
    (control.friction_compensation, {'v': X, 'dead_band': 0.1}),
    (control.external_wrench, {'q': X, 'tau_ext': X, 'link': LINK}),
    (analysis.explicit_euler, {'q': X, 'v': X, 'dt': 0.1}),
    (analysis.semi_implicit_euler, {'q': X, 'v': X, 'dt': 0.1}),
    (analysis.runge_kutta_4, {'q': X, 'v': X, 'dt': 0.1}),
    (batch.inverse_dynamics, {'Q': STATES, 'V': STATES, 'A': STATES}),
    (batch.forward_dynamics, {'Q': STATES, 'V': STATES, 'Tau': STATES}),
    (batch.hybrid_dynamics, {'Q': STATES, 'V': STATES, 'A': STATES, 'Tau': STATES,
                             'prescribed': X > 0.2}),
    (batch.all_terms, {'Q': STATES, 'V': STATES}),
    (batch.inverse_dynamics_derivatives, {'Q': STATES, 'V': STATES, 'A': STATES}),
    (batch.forward_dynamics_derivatives, {'Q': STATES, 'V': STATES, 'Tau': STATES}),
    (batch.torque_regressor, {'Q': STATES, 'V': STATES, 'A': STATES}),
    (batch.torque_regressor_product, {'Q': STATES, 'V': STATES, 'A': STATES, 'pi': PI}),
    (batch.torque_regressor_transposed_product, {'Q': STATES, 'V': STATES, 'A': STATES,
                                                 'X': STATES}),
    (batch.normal_equations, {'Q': STATES, 'V': STATES, 'A': STATES, 'Tau': STATES,
                              'weights': STATES ** 2}),
    (batch.regressor_factor, {'Q': STATES, 'V': STATES, 'A': STATES, 'Tau': STATES,
                              'weights': X ** 2}),
    (batch.gravity_torques, {'Q': STATES}),
    (batch.forward_kinematics, {'Q': STATES}),
    (batch.body_jacobian, {'Q': STATES, 'link': LINK}),
    (batch.world_jacobian, {'Q': STATES, 'link': LINK}),
    (batch.jacobian_dot, {'Q': STATES, 'V': STATES, 'link': LINK}),
    (batch.world_jacobian_dot, {'Q': STATES, 'V': STATES, 'link': LINK}),
    (batch.center_of_mass, {'Q': STATES}),
    (batch.com_jacobian, {'Q': STATES}),
    (batch.com_jacobian_dot, {'Q': STATES, 'V': STATES}),
    (batch.centroidal_momentum_matrix, {'Q': STATES}),
    (batch.centroidal_momentum_matrix_dot, {'Q': STATES, 'V': STATES}),
    (batch.integrate, {'Q': STATES, 'V': STATES, 'dt': 0.1}),
    (batch.difference, {'Q_0': STATES, 'Q_1': STATES}),
]
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
def test_fault_64_what_is_no_number_is_refused_by_the_name_of_the_argument(function, arguments):
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
def test_fault_64_what_is_no_robot_is_refused(function, arguments):
    for bad in (None, 'robot', X, {}):
        with pytest.raises(rbd_ros.StateError, match='model'):
            call(function, arguments, bad)


def test_every_public_function_of_a_robot_and_numbers_is_in_the_list_above():
    listed_here = {function.__name__ for function, _ in FUNCTIONS}
    # Those of a robot alone, or of other things than numbers; they have tests of their own.
    others = {'base_parameters', 'constraint_forces', 'diagnose', 'drive_parameter_names',
              'drive_parameters', 'estimate_delay', 'excitation_limits', 'excite', 'fit',
              'fit_payload', 'forward_dynamics_derivative', 'hybrid_dynamics_derivative',
              'identify_drive_gains', 'inertial_parameter_names', 'inertial_parameters',
              'inverse_dynamics_derivative', 'load_constraints', 'load_drives',
              'neutral', 'partial', 'payload_partial', 'prepare', 'save_drives',
              'save_urdf', 'subtree', 'verdict', 'with_constraints',
              'with_contact_calibration', 'with_floating_base', 'with_free_joints',
              'with_locked_joints', 'without_payload'}
    packages = (rbd_ros, rbd_ros.model, analysis, control, identification, textbook)
    public = {name for package in packages for name in package.__all__
              if isfunction(getattr(package, name))
              and next(iter(signature(getattr(package, name)).parameters)) == 'model'}
    assert public - listed_here == others


WRENCHED = [(rbd_ros.inverse_dynamics, 3), (rbd_ros.bias_torques, 2),
            (rbd_ros.forward_dynamics, 3), (rbd_ros.inverse_dynamics_derivatives, 3),
            (rbd_ros.forward_dynamics_derivatives, 3)]


@pytest.mark.parametrize('function, count', WRENCHED)
def test_fault_64_wrenches_that_are_none_are_refused_by_their_link(function, count):
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
