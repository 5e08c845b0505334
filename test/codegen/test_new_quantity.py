# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A quantity that is declared in one place, with a kernel of its own, has every form."""

from contextlib import suppress
from functools import partial
import importlib
from itertools import product
from pathlib import Path
import sys

from closed_robots import closed_robot
from covering import covering
from generated_code import evaluate, Library
import numpy as np
from numpy.typing import ArrayLike
from optional import Optional
import pytest
import rbd_ros
from rbd_ros import batch, casadi as in_casadi, Workspace
from rbd_ros.codegen import FUNCTIONS, numpy_source, package_files, sympy_expressions, trace
from rbd_ros.codegen.symbols.interpretation import interpreted_class
from rbd_ros.coupled_workspaces import map_all
from rbd_ros.kernels import newton_euler
from rbd_ros.kernels.jit.compiled import helper, kernel, states_kernel
from rbd_ros.kernels.lanes.lanes import entry, finite, set_entry, work_of
from rbd_ros.kernels.states.batch_dynamics import run
from rbd_ros.kernels.tree.layout import fits, torques
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace import warmup
from rbd_ros.workspace.closed_loops import ClosedMethods
from rbd_ros.workspace.memory.lanes import lanes_of, shape, States
from rbd_ros.workspace.memory.maps import same
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity
from robots import random_tree, relative_error, with_mimics

jax, torch, sympy = Optional('jax'), Optional('torch'), Optional('sympy')
casadi = Optional('casadi')
ROOT = Path(__file__).parents[2]
# Of a sum of products.
ROUNDING = 1e-13
ROBOTS = {'tree': random_tree(2, 3), 'mimics': with_mimics(random_tree(8, 4, kinds=(
    'spherical', 'universal', 'revolute')), 8), 'loops': closed_robot('five_bar').model}


@helper
def write_power(robot, traits, q, v, power):
    """Write the power of the gravity torques."""
    if not (fits(robot, q, v) and newton_euler.recursion(robot, traits, q, None, None)):
        return False
    (first, last), total = torques(robot), 0.0
    tau = work_of(robot)[first:last]
    for k in range(len(v)):
        total += entry(tau, k) * entry(v, k)
    set_entry(power, 0, total)
    return finite(total)


@kernel
def gravity_power(robot, traits, q, v, power):
    """Do `write_power`."""
    return write_power(robot, traits, q, v, power)


@states_kernel
def gravity_power_states(robot, traits, Q, V, work, q, v, power, Power):
    """Do `write_power` for every state."""
    return run(write_power, (robot, work), traits, (Q, V), (q, v), (q, v, power), power, Power)


@pytest.fixture(scope='module')
def declared():
    """Declare a quantity; remove it afterwards."""
    class PowerMethods(RobotArrays):
        @quantity(same, results={'P': 'power of gravity torques, W'},
                  states=States(gravity_power_states, shape(1), [lanes_of(shape(1))]))
        def power(self, q: 'ArrayLike', v: 'ArrayLike') -> 'np.ndarray':
            """
            Return the power that gravity torques transmit.

            Returns
            -------
            ndarray, shape (1,), W

            """
            found = np.zeros(1)
            if not gravity_power(self.robot, self._traits, q, v, found):
                self._explain(q=q, v=v)
            return found
    bases = Workspace.__bases__
    Workspace.__bases__ = PowerMethods, *bases
    map_all()
    # Classes that run on symbols are made at the first trace, perhaps by an earlier test.
    interpreted_class.cache_clear()
    yield plain(PowerMethods.power)
    Workspace.__bases__ = bases
    del QUANTITIES['power'], ClosedMethods.power
    for name in ('casadi', 'jax', 'torch', 'batch.functions'):
        with suppress(KeyError, AttributeError):
            del sys.modules[f'rbd_ros.{name}'].power
        # Modules that were imported meanwhile list it.
        with suppress(KeyError, AttributeError, ValueError):
            sys.modules[f'rbd_ros.{name}'].__all__.remove('power')


@pytest.fixture(params=ROBOTS)
def case(request, declared):
    """Return a robot, states, and the power of gravity in them."""
    model = ROBOTS[request.param]
    q = closed_robot('five_bar').q if model.loops else rbd_ros.random_configuration(model, 1)
    Q = np.array([rbd_ros.integrate(model, q, np.zeros(model.nv), 0.0)] * 3)
    V = np.random.default_rng(1).normal(size=(3, model.nv))
    P = [[rbd_ros.gravity_torques(model, q) @ v] for q, v in zip(Q, V)]
    return model, Q, V, np.array(P)


def test_functions_methods_and_batch_have_the_new_quantity(declared, case):
    model, Q, V, P = case
    w = Workspace(model)
    for found in ([declared(model, q, v) for q, v in zip(Q, V)],
                  [w.power(q, v) for q, v in zip(Q, V)], batch.power(model, Q, V)):
        assert relative_error(found, P) < ROUNDING
    assert 'shape (states, 1)' in batch.power.__doc__ and 'rad/s' in declared.__doc__


def test_graphs_and_numpy_source_have_the_new_quantity(case):
    model, Q, V, P = case
    graph = trace(model, 'power')
    assert 'power' in FUNCTIONS and graph.outputs[0].meaning == 'power of gravity torques, W'
    names = {}
    exec(numpy_source(graph), names)
    for found in (evaluate(graph, Q, V)[0], names['power'](Q, V)):
        assert relative_error(found, P) < ROUNDING


# Expressions of quaternions are long.
@pytest.mark.parametrize('case', ['tree', 'loops'], indirect=True)
def test_sympy_has_the_new_quantity(case):
    model, Q, V, P = case
    found, = sympy_expressions(trace(model, 'power'), Q[0].tolist(), V[0].tolist())
    assert relative_error(np.array(found.evalf(), float)[0], P[0]) < 1e-11


def test_generated_c_has_the_new_quantity(case, tmp_path):
    model, Q, V, P = case
    code = Library(package_files(model, ['power'], prefix='r'), tmp_path, 'r', '-O1')
    assert relative_error(code(trace(model, 'power'), Q, V)[0], P) < ROUNDING


def test_casadi_has_the_new_quantity(case):
    model, Q, V, P = case
    if model.loops is not None:
        with pytest.raises(rbd_ros.ModelError, match='closed loops'):
            in_casadi.power(model)
        return
    assert relative_error(casadi.DM(in_casadi.power(model)(Q[0], V[0])).full()[0], P[0]) < ROUNDING


@pytest.mark.parametrize('case, name', covering(
    product(ROBOTS, ('jax', 'torch')), ('tree', 'jax'), ('tree', 'torch'), ('loops', 'torch')),
    indirect=['case'])
def test_jax_and_pytorch_differentiate_the_new_quantity(case, name):
    pytest.importorskip(name)
    model, Q, V, P = case
    make = importlib.import_module(f'rbd_ros.{name}').power
    assert 'power of gravity torques, W' in make.__doc__
    if name == 'jax':
        jax.config.update('jax_enable_x64', True)
        found = jax.jit(make(model))(Q, V)
        by_v = jax.jit(jax.grad(lambda v: make(model)(Q, v).sum()))(V)
    else:
        v = torch.tensor(V, requires_grad=True)
        found = make(model)(torch.tensor(Q), v)
        found.sum().backward()
        found, by_v = found.detach().numpy(), v.grad.numpy()
    assert relative_error(found, P) < ROUNDING
    expected = [rbd_ros.gravity_torques(model, q) for q in Q]
    assert relative_error(by_v, expected) < ROUNDING


def test_warm_up_benchmark_and_documentation_have_the_new_quantity(declared, monkeypatch):
    called = []
    monkeypatch.setattr(warmup, 'call', lambda w, name, **options: partial(called.append, name))
    for _ in warmup.warm_up():
        pass
    assert 'power' in called
    monkeypatch.syspath_prepend(ROOT / 'doc')
    monkeypatch.syspath_prepend(ROOT / 'benchmark')
    page = importlib.import_module('generate').quantities_page()
    row, = (line for line in page.splitlines() if line.startswith('| `power`'))
    assert 'power of gravity torques, W' in row and row.count('✓') == 6
    timed = importlib.import_module('functions').of_quantities(ROBOTS['tree'])
    assert {'analysis.power', 'batch.power', 'casadi.power'} <= {*timed}
