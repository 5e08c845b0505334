# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Methods of workspaces that machine code runs, as where numba is missing, equal the library's."""

import gc
from importlib import import_module
from inspect import signature
from itertools import product

from covering import covering
from generated_code import PENDULUM
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch, SingularError, StateError, Workspace
from rbd_ros.batch import functions, tasks
from rbd_ros.codegen import FUNCTIONS
from rbd_ros.kernels.jit import c_compiler, compiled, machine_code
from rbd_ros.kernels.jit.compile_process import CompileProcess
from rbd_ros.kernels.jit.numba_backend import COMPILES
from rbd_ros.model import with_constraints
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace import machine_methods
from rbd_ros.workspace.documentation import ROWS
from rbd_ros.workspace.machine_methods import MachineMethods
from robots import relative_error
from test_loading import allowed, ROBOTS, ROUNDING, states_of

TRACED = sorted(
    name for name, one in QUANTITIES.items() if one.method and one.in_code in FUNCTIONS)
# Every method takes seconds to compile: all of them for mimics, those of dynamics for loops.
MIMICS, LOOPS = (pytest.mark.parametrize('name', covering(ROBOTS, name))
                 for name in ('mimics', 'closed'))


class Codes(machine_code.Codes):
    """The code of a program in which nothing is compiled before a test says so."""

    def __init__(self):
        super().__init__()
        self.process = CompileProcess(lambda: True)

    def begin(self):
        """Start no process."""

    def work(self):
        """Compile in this process; return how much that was."""
        count = 0
        while not self._requests.empty():
            self._make(self.process, *self._requests.get())
            count += 1
        return count


@pytest.fixture
def codes(monkeypatch, tmp_path_factory):
    """Return the code of a program, compiled here and without optimization."""
    folder = tmp_path_factory.getbasetemp() / 'machine-code'
    monkeypatch.setattr(c_compiler, 'OPTIONS', ('-O0', *c_compiler.OPTIONS[1:]))
    monkeypatch.setattr(CompileProcess, 'call', lambda self, module, name, arguments: getattr(
        import_module(module), name)(*arguments))
    monkeypatch.setattr(c_compiler, 'cache_root', lambda: folder)
    monkeypatch.setattr(machine_code, 'CODES', Codes())
    return machine_code.CODES


@pytest.fixture
def pendulum():
    """Return a robot of which code is made at once."""
    return rbd_ros.load_urdf_string(PENDULUM)


def workspace_of(model, **options):
    """Return a workspace as it is without numba."""
    workspace = Workspace(model, **options)
    MachineMethods(workspace)
    return workspace


def library(model):
    """Return a workspace whose methods are kernels, compiled by numba or interpreted."""
    return machine_methods.interpreted(Workspace(model))


def code_of(codes, model, name, key=()):
    """Return the code of a method."""
    assert machine_code.CODES is codes
    return machine_methods.code_of(model, name, key)


def arguments_of(quantity, states, k):
    """Return the arguments of a method for one state."""
    return [states[x] if x in ('link', 'prescribed') else states[x][k]
            for x in signature(QUANTITIES[quantity].method).parameters if x in states]


def flat(found):
    """Return the arrays in nested tuples, copied, and numbers as such."""
    return [x for part in found for x in flat(part)] if isinstance(found, tuple) else [
        np.array(found, float)]


def difference(found, expected):
    """Return the largest error of results, relative to the largest entry of each array."""
    assert type(found) is type(expected)
    # 1 - J_bar J is zero, a difference of ones, if the arm is not redundant.
    found, expected = (one._replace(null_projector=1.0 + one.null_projector) if hasattr(
        one, 'null_projector') else one for one in (found, expected))
    pairs = list(zip(flat(found), flat(expected), strict=True))
    assert all(x.shape == y.shape for x, y in pairs)
    # Equal numbers may be infinite.
    return max((relative_error(x, y) for x, y in pairs if not np.array_equal(x, y)), default=0.0)


def most(quantity, model, q):
    """Return the largest error of a quantity in one or several configurations."""
    return of_task(2e3) if quantity == 'task_space_dynamics' else allowed(quantity, model, q)


def of_task(limit):
    """Return the largest error of task-space dynamics, given the limit of condition numbers."""
    # J M^-1 J^T has the square of the condition number of J.
    return max(ROUNDING, 1e-15 * limit ** 2)


@MIMICS
def test_every_method_equals_that_of_the_library(name, codes):
    model, states = states_of(name, 2)
    ours, theirs = workspace_of(model), library(model)
    # The first call is interpreted, here by numba.
    for k, largest in ((0, 0.0), (0, np.inf), (1, np.inf)):
        for quantity in TRACED:
            given = arguments_of(quantity, states, k)
            assert difference(getattr(ours, quantity)(*given), getattr(theirs, quantity)(
                *given)) <= min(largest, most(quantity, model, states['q'][k])), quantity
        codes.work()
    made = codes._codes[machine_methods.robot_of(model)]
    assert {quantity: code.made.reason for (quantity, _), code in made.items()
            if code.runner is None} == {}
    assert {quantity for quantity, _ in made} == {*TRACED}


def test_inertia_reaches_bodies_between_the_axes_of_a_joint(codes):
    model, states = states_of('axes', 2)
    ours, theirs = workspace_of(model), library(model)
    for k in range(2):
        for quantity in ('all_terms', 'forward_dynamics'):
            given = arguments_of(quantity, states, k)
            assert difference(getattr(ours, quantity)(*given), getattr(theirs, quantity)(
                *given)) < most(quantity, model, states['q'][k]), quantity
        codes.work()
    assert all(code.runner for code in codes._codes[machine_methods.robot_of(model)].values())


def test_options_have_code_of_their_own(codes):
    model, states = states_of('arm', 1)
    ours, theirs = workspace_of(model), library(model)
    q, v = states['q'][0], states['v'][0]
    given = [{}, {'factorization': 'christoffel'}, {'factorization': 'body'}]
    for _ in range(2):
        for options in given:
            assert difference(ours.all_terms(q, v, **options),
                              theirs.all_terms(q, v, **options)) < ROUNDING
        for link in model.link_names[-2:]:
            assert difference(ours.body_jacobian(q, link=link),
                              theirs.body_jacobian(q, link)) < ROUNDING
        codes.work()
    assert set(codes._codes[machine_methods.robot_of(model)]) == {
        ('all_terms', ()), ('all_terms', (('factorization', 'body'),)),
        *(('body_jacobian', (('link', link),)) for link in model.link_names[-2:])}


def test_lists_slices_and_keywords_are_taken(codes, pendulum):
    ours, theirs = workspace_of(pendulum), library(pendulum)
    ours.inverse_dynamics([0.1], [0.2], [0.3])
    codes.work()
    expected = theirs.inverse_dynamics([0.1], [0.2], [0.3])
    q, v, a = np.array([[0.1, 9.0], [0.2, 9.0], [0.3, 9.0]])[:, ::2]
    for found in (ours.inverse_dynamics([0.1], (0.2,), [0.3]), ours.inverse_dynamics(q, v, a),
                  ours.inverse_dynamics(a=a, q=q, v=v),
                  ours.inverse_dynamics(q, v, a, external_wrenches=None)):
        assert difference(found, expected) < 1e-12
    # An argument that is a result is read before it is overwritten.
    again = theirs.inverse_dynamics(q, v, expected.copy())
    assert difference(ours.inverse_dynamics(q, v, ours.inverse_dynamics(q, v, a)), again) < 1e-12


@LOOPS
def test_external_wrenches_are_an_input_of_code(name, codes):
    model, states = states_of(name, 2)
    ours, theirs = workspace_of(model), library(model)
    wrenches = [{}, {model.link_names[-1]: np.arange(1.0, 7.0)},
                {link: np.sin(np.arange(6.0) + k) for k, link in enumerate(model.link_names)}]
    methods = {quantity: arguments_of(quantity, states, 1) for quantity in TRACED
               if 'external_wrenches' in signature(QUANTITIES[quantity].method).parameters}
    assert len(methods) == 7
    for _ in range(2):
        for quantity, given in methods.items():
            for more in ({}, *({'external_wrenches': x} for x in wrenches)):
                expected = getattr(theirs, quantity)(*given, **more)
                assert difference(getattr(ours, quantity)(*given, **more),
                                  expected) < most(
                                      quantity, model, states['q'][1]), quantity
        codes.work()
    ran = vars(ours)['inverse_dynamics'], methods['inverse_dynamics'], wrenches[2]
    assert difference(ran[0](*ran[1], ran[2]), theirs.inverse_dynamics(*ran[1], ran[2])) < ROUNDING
    made = codes._codes[machine_methods.robot_of(model)]
    assert sum('external_wrenches' in dict(key) and code.runner is not None
               for (_, key), code in made.items()) == len(methods)
    with pytest.raises(rbd_ros.ModelError, match='nothing'):
        ours.inverse_dynamics(*methods['inverse_dynamics'], {'nothing': np.ones(6)})
    # Code computes: nothing is interpreted any more.
    for quantity, given in methods.items():
        ours_again = workspace_of(model)
        vars(ours_again)[quantity].methods.interpret = None
        getattr(ours_again, quantity)(*given, external_wrenches=wrenches[1])


class ReadyCodes(Codes):
    """The code of a program that waits for each function, compiled here."""

    def find(self, robot, name, options):
        """Return code that is ready."""
        code = super().find(robot, name, options)
        self.work()
        return code


@pytest.fixture
def batch_by_code(codes, monkeypatch):
    """Let functions of many states run machine code; return a switch and what ran, by name."""
    ran = []
    run = tasks.Problem._run_code
    monkeypatch.setattr(machine_code, 'CODES', ReadyCodes())
    monkeypatch.setattr(tasks.Problem, '_run_code', lambda problem, *given: (
        ran.append(problem.task.name) or run(problem, *given)))

    def use(way, many=1):
        monkeypatch.setattr(tasks, 'MANY', many)
        monkeypatch.setattr(tasks, 'WAY', way)
        monkeypatch.setattr(tasks, 'COMPILES', way == 'numba' and COMPILES)
    return use, ran


@LOOPS
def test_functions_of_many_states_run_code(name, batch_by_code):
    use, ran = batch_by_code
    model, states = states_of(name, 21)     # not a multiple of any number of lanes
    rows = {ROWS.get(x, x): values for x, values in states.items()}
    for function in functions.__all__:
        run = getattr(batch, function)
        given = [rows[x] for x in signature(run).parameters if x in rows]
        wrenched = 'external_wrenches' in signature(run).parameters
        largest = most(function, model, states['q'])
        of_states = {model.link_names[-1]: np.ones((21, 6)),
                     model.link_names[1]: np.sin(np.arange(126.0).reshape(21, 6))}
        for more in ({}, {'external_wrenches': {model.link_names[-1]: np.arange(1.0, 7.0)}},
                     {'external_wrenches': of_states})[:1 + 2 * wrenched]:
            # A few states are computed one by one.
            use('cc', 22)
            ran.clear()
            expected = run(model, *given, **more)
            assert not ran
            use('cc')
            found = run(model, *given, **more)
            assert difference(found, expected) < largest, function
            assert {*ran} == {function}
            out = tuple(np.empty_like(x) for x in found) if isinstance(found, tuple) else (
                np.empty_like(found))
            assert difference(run(model, *given, **more, out=out), expected) < largest, function


def test_many_states_by_code_have_masks_bad_states_and_threads(batch_by_code):
    use, ran = batch_by_code
    model, states = states_of('arm', 2500)
    Q, V, A = (states[x] for x in 'qva')
    prescribed = np.zeros((2500, model.nv), bool)
    prescribed[::3, 0] = prescribed[1::3, 2] = True
    for name, run in {
            'hybrid_dynamics': lambda: batch.hybrid_dynamics(model, Q, V, A, V, prescribed),
            'normal_equations': lambda: batch.normal_equations(model, Q, V, A, V)[:2],
            'inverse_dynamics': lambda: (batch.inverse_dynamics(
                model, Q, V, A, threads=3, external_wrenches={
                    model.link_names[-1]: np.sin(np.arange(15000.0)).reshape(2500, 6)}),),
            'torque_regressor_product': lambda: (batch.torque_regressor_product(
                model, Q, V, A, rbd_ros.model.inertial_parameters(model)),)}.items():
        use('numba')
        expected = run()
        use('cc')
        assert difference(tuple(run()), tuple(expected)) < allowed(name, model, Q), name
    assert {*ran} == {'hybrid_dynamics', 'torque_regressor', 'inverse_dynamics'}
    bad = Q.copy()
    bad[1234, 1] = np.nan
    with pytest.raises(StateError, match=r'^state 1234: '):
        batch.inverse_dynamics(model, bad, V, A)


def test_a_batch_call_that_must_not_wait_raises_kernel_not_ready(codes, monkeypatch, tmp_path,
                                                                 pendulum):
    monkeypatch.setattr(c_compiler, 'cache_root', lambda: tmp_path)
    monkeypatch.setattr(machine_code, 'CODES', one := Codes())
    monkeypatch.setattr(tasks, 'WAY', 'cc')
    monkeypatch.setattr(tasks, 'COMPILES', False)
    monkeypatch.setattr(compiled, '_compile_process', CompileProcess(lambda: False))
    Q = np.linspace(-1.0, 1.0, 64)[:, None]
    with pytest.raises(compiled.KernelNotReady):
        batch.gravity_torques(pendulum, Q)
    assert one.work() == 1
    expected = library(pendulum).gravity_torques([1.0])
    assert difference(batch.gravity_torques(pendulum, Q)[-1], expected) < ROUNDING


def test_results_of_plain_functions_are_new_and_those_of_workspaces_kept(codes, pendulum):
    kept, fresh = workspace_of(pendulum), workspace_of(pendulum, fresh=True)
    one, other = np.array([0.1]), np.array([1.2])
    for _ in range(2):
        M, terms = fresh.mass_matrix(one), fresh.all_terms(one, one)
        before = flat(terms)
        fresh.all_terms(other, other)
        assert not np.shares_memory(M, fresh.mass_matrix(other))
        assert difference(tuple(terms), tuple(before)) == 0.0
        codes.work()
    kept.mass_matrix(one)
    assert kept.mass_matrix(one) is kept.mass_matrix(other)


def test_methods_by_code_raise_the_errors_of_the_library(codes, pendulum):
    ours = workspace_of(pendulum)
    ours.inverse_dynamics([0.1], [0.2], [0.3])
    ours.body_jacobian([0.1], 'rod')
    codes.work()
    for wrong, message in (([np.nan], 'finite'), ([0.1, 0.2], 'shape'), ('x', 'number')):
        with pytest.raises(StateError, match=message):
            ours.inverse_dynamics(wrong, [0.2], [0.3])
    with pytest.raises(rbd_ros.ModelError, match='nothing'):
        ours.body_jacobian([0.1], 'nothing')
    for arguments, named in ((([0.1],), {}), (([0.1], [0.2], [0.3]), {'q': [0.4]}),
                             (([0.1], [0.2], [0.3]), {'frame': 'body'})):
        with pytest.raises(TypeError):
            ours.inverse_dynamics(*arguments, **named)


def test_joints_without_inertia_are_refused(codes):
    arm = rbd_ros.ModelBuilder('arm').link('base').link('a').joint(
        'j', 'revolute', 'base', 'a', axis=(0.0, 0.0, 1.0)).build()
    ours = workspace_of(arm)
    for _ in range(2):
        with pytest.raises(SingularError, match='moves no inertia'):
            ours.forward_dynamics([0.1], [0.2], [0.3])
        codes.work()


def test_open_loops_are_left_to_the_library(codes):
    model, states = states_of('closed', 1)
    ours, q = workspace_of(model), states['q'][0]
    ours.gravity_torques(q)
    codes.work()
    assert code_of(codes, model, 'gravity_torques').runner is not None
    with pytest.raises(StateError, match='open'):
        ours.gravity_torques(q + 0.3)


@pytest.mark.parametrize('limit', [1.01, 1e5])
def test_compiled_methods_damp_closed_loops_like_the_library(limit, codes):
    model, states = states_of('closed', 3)
    damped = with_constraints(model.unconstrained, model.constraints, condition_limit=limit)
    ours, theirs = workspace_of(damped), library(damped)
    for method in ('inverse_dynamics', 'forward_dynamics', 'all_terms'):
        for k in range(3):
            given = [states[x][k] for x in ('q', 'v', 'a')[:2 + (method != 'all_terms')]]
            expected = getattr(theirs, method)(*given)
            assert difference(getattr(ours, method)(*given), expected) < allowed(
                method, damped, states['q'][k])
            codes.work()
        changes = difference(expected, getattr(library(model), method)(*given))
        assert changes > 1e-3 if limit < 10.0 else changes < ROUNDING
    assert all(code.runner is not None for code in codes._codes[
        machine_methods.robot_of(damped)].values())


@pytest.mark.parametrize('joints, limit', covering(
    product((6, 3), (2e3, 3.0)), (6, 2e3)))
def test_task_space_dynamics_are_damped_by_code(joints, limit, codes, monkeypatch):
    model = ROBOTS['arm']()
    # With few joints, some of the singular values are zero.
    model = rbd_ros.with_locked_joints(model, dict.fromkeys(model.velocity_names[joints:], 0.3))
    ours, theirs, rng = workspace_of(model), library(model), np.random.default_rng(3)
    Q = np.vstack((np.zeros((2, model.nq)), rng.uniform(-2.0, 2.0, (4, model.nq))))
    Q[1, 1], Q[2, -2] = 1e-4, 1e-5      # singular, and with a condition number of 1,442
    found = []
    for k, q in enumerate(Q):
        given = q, rng.normal(size=model.nv), model.link_names[-1]
        options = {'frame': 'world-aligned', 'condition_limit': limit}
        expected = theirs.task_space_dynamics(*given, **options)
        found.append((expected.damped, expected.condition < np.inf))
        one = ours.task_space_dynamics(*given, **options)
        assert difference(*(x._replace(condition=0.0) for x in (one, expected))) < of_task(limit)
        assert type(one.condition) is float and one.damped is expected.damped
        assert one.condition == pytest.approx(expected.condition, rel=1e-15 * expected.condition
                                              if expected.condition < 1e14 else 1.0)
        codes.work()
        if k == 0:
            monkeypatch.setattr(MachineMethods, 'interpret', None)
    # Singular and damped; besides, damped or not.
    assert {*found} == {(True, False)} | ({(limit < 10.0, True)} if joints == 6 else set())


def test_code_is_kept_for_the_next_program(codes, monkeypatch, tmp_path, pendulum):
    monkeypatch.setattr(c_compiler, 'cache_root', lambda: tmp_path)
    first, second, third = Codes(), Codes(), Codes()
    for one, compiles in ((first, 1), (second, 0)):
        monkeypatch.setattr(machine_code, 'CODES', one)
        assert workspace_of(rbd_ros.load_urdf_string(PENDULUM)).gravity_torques([0.5]).shape
        assert one.work() == compiles
        assert code_of(one, pendulum, 'gravity_torques').runner is not None
    # Another robot, or a damaged file, has no code.
    code_of(second, rbd_ros.with_armature(pendulum, {'hinge': 0.1}), 'gravity_torques')
    assert second.work() == 1
    for file in (tmp_path / 'code').iterdir():
        file.write_bytes(file.read_bytes()[:-1])
    monkeypatch.setattr(machine_code, 'CODES', third)
    code_of(third, pendulum, 'gravity_torques')
    assert third.work() == 1


def test_a_call_that_must_not_wait_raises_kernel_not_ready_until_code_is_compiled(
        codes, monkeypatch, pendulum):
    ours = workspace_of(pendulum)
    process = CompileProcess(lambda: False)
    monkeypatch.setattr(compiled, '_compile_process', process)
    for _ in range(2):
        with pytest.raises(compiled.KernelNotReady) as raised:
            ours.gravity_torques([0.5])
        assert not raised.value.is_over()
    assert codes.missing() == codes.work() == 1
    assert raised.value.is_over()
    assert not codes.missing()
    assert difference(ours.gravity_torques([0.5]), library(pendulum).gravity_torques(
        [0.5])) < 1e-12


@MIMICS
def test_other_payloads_and_another_gravity_need_no_other_code(name, codes):
    model, states = states_of(name, 2)
    # Poses are those of payloads, too.
    quantities = [quantity for quantity in TRACED if quantity != 'forward_kinematics']
    for quantity in quantities:
        getattr(workspace_of(model), quantity)(*arguments_of(quantity, states, 0))
    codes.work()
    carrier = next(link for link, body in zip(model.link_names, model.tree.link_body) if body)
    other = rbd_ros.with_gravity(rbd_ros.with_payload(
        rbd_ros.with_payload(model, carrier, 1.5, (0.1, -0.2, 0.3), (0.01, 0.02, 0.03)),
        model.link_names[0], 0.5, (0.3, 0.0, 0.1)), (1.0, -2.0, -3.0))
    ours, theirs = workspace_of(other), library(other)
    for quantity in quantities:
        given = arguments_of(quantity, states, 1)
        assert difference(getattr(ours, quantity)(*given), getattr(theirs, quantity)(
            *given)) < most(quantity, other, states['q'][1]), quantity
        assert not isinstance(vars(ours)[quantity], machine_methods.Method) or {
            'link', 'prescribed'} & {*signature(QUANTITIES[quantity].method).parameters}, quantity
    assert not codes.work()
    # Of the frame of a payload there is, and the first robot is as it was.
    loaded = other.link_names[-1]
    ours.body_jacobian(states['q'][0], loaded)
    assert codes.work() == 1
    assert difference(ours.body_jacobian(states['q'][1], loaded),
                      theirs.body_jacobian(states['q'][1], loaded)) < ROUNDING
    assert difference(workspace_of(model).mass_matrix(states['q'][0]),
                      library(model).mass_matrix(states['q'][0])) < ROUNDING


def test_code_of_the_robots_used_last_is_kept(codes, monkeypatch, pendulum):
    monkeypatch.setattr(machine_code, 'MOST_ROBOTS', 2)
    ours = workspace_of(pendulum)
    ours.gravity_torques([0.5])
    codes.work()
    expected = ours.gravity_torques([0.5]).copy()
    for armature in (1.0, 2.0, 3.0):
        other = rbd_ros.with_armature(pendulum, {'hinge': armature})
        code_of(codes, other, 'gravity_torques')
    assert len(codes._codes) == 2
    gc.collect()
    # What is in use remains.
    assert np.array_equal(ours.gravity_torques([0.5]), expected)


@pytest.mark.parametrize('why', ['compiler', 'process'])
def test_without_a_working_compiler_methods_are_interpreted_with_one_warning(
        codes, monkeypatch, tmp_path, caplog, pendulum, why):
    machine_code._warn.cache_clear()
    monkeypatch.setattr(c_compiler, 'cache_root', lambda: tmp_path)
    monkeypatch.setattr(machine_code, 'CODES', Codes())
    if why == 'compiler':
        monkeypatch.setenv('CC', '/bin/false')
    else:
        monkeypatch.setattr(CompileProcess, 'call', lambda *_: None)
    ours, theirs = workspace_of(pendulum), library(pendulum)
    for _ in range(2):
        assert difference(ours.gravity_torques([0.5]), theirs.gravity_torques([0.5])) == 0.0
        assert difference(ours.mass_matrix([0.5]), theirs.mass_matrix([0.5])) == 0.0
        machine_code.CODES.work()
    message, = caplog.messages
    assert message.startswith('dynamics are interpreted')
    assert ('/bin/false failed' if why == 'compiler' else 'another process failed') in message
    assert not list(tmp_path.rglob('*.code'))
