# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""All forms of a quantity follow from its declaration."""

from inspect import signature
import json
import re
import subprocess
import sys

from closed_robots import closed_robot
import numpy as np
from numpy.typing import ArrayLike
import pytest
import rbd_ros
from rbd_ros import analysis, batch, Workspace
from rbd_ros.batch import functions
from rbd_ros.coupled_workspaces import map_all
from rbd_ros.kernels import centroidal
from rbd_ros.kernels.states import batch_kinematics
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.closed_loops import ClosedMethods
from rbd_ros.workspace.coupled import CoupledMethods
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.lanes import lanes_of, shape, States
from rbd_ros.workspace.memory.maps import same
from rbd_ros.workspace.memory.robot_arrays import RobotArrays
from rbd_ros.workspace.quantity import plain, quantity
from robots import random_tree, with_mimics

PLAIN = {name: one for name, one in QUANTITIES.items() if one.function is not None}
# Calls all quantities that a module declares when no other module is imported by the program:
# each in a process that is forked before.
ALONE = """
import importlib, inspect, json, os, sys
import numpy as np
from rbd_ros import ModelBuilder
from rbd_ros.kernels.jit import compiled       # and with it numba
arm, inertia = ModelBuilder('arm').link('base'), np.eye(3)
for k, mimic in enumerate((None, None, ('joint_1', 1.0, 0.0))):
    arm.link(f'link_{k}', mass=1.0, inertia=inertia)
    options = {'mimic': mimic} if mimic else {}
    arm.joint(f'joint_{k}', 'revolute', f'link_{k - 1}' if k else 'base', f'link_{k}',
              axis=(k % 2, 1.0, 0.0), **options)
model = arm.build()
assert not [name for name in sys.argv[1:] if name in sys.modules]


def call_all(name):
    importlib.import_module(name)
    from rbd_ros.workspace.quantity import QUANTITIES
    from rbd_ros.workspace.variation import Variation
    v = np.full(2, 0.3)
    values = dict.fromkeys(('q', 'v', 'a', 'tau', 'v_r', 'a_r'), v) | {
        'model': model, 'link': 'link_1', 'contacts': (), 'prescribed': v < 0.0,
        'variation': Variation()}
    called = []
    for label, quantity in list(QUANTITIES.items()):    # a first call imports all others
        function = quantity.function
        if function and function.__module__ == name:
            function(**{label: values[label] for label in inspect.signature(function).parameters
                        if label in values})
            called.append(label)
    print(json.dumps([name, called]), flush=True)


for name in sys.argv[1:]:
    child = os.fork()
    if not child:
        call_all(name)
        os._exit(0)
    assert os.waitpid(child, 0)[1] == 0, name
"""


def test_a_module_imported_alone_has_all_methods_of_its_functions():
    modules = sorted({base.__module__ for base in Workspace.__bases__})
    run = subprocess.run([sys.executable, '-W', 'ignore', '-c', ALONE, *modules],
                         capture_output=True, text=True, timeout=120, check=False)
    assert run.returncode == 0, run.stderr
    assert [json.loads(line) for line in run.stdout.splitlines()] == [
        [name, [label for label, one in PLAIN.items() if one.function.__module__ == name]]
        for name in modules]


@pytest.mark.parametrize('name', [name for name, one in PLAIN.items() if one.method])
def test_methods_have_the_arguments_and_the_documentation_of_the_function(name):
    function, method = PLAIN[name].function, getattr(Workspace, name)
    wanted, found = (list(signature(one).parameters)[1:] for one in (function, method))
    assert wanted == found
    for one, labels in ((function, ['model', *wanted]), (method, found)):
        parameters = one.__doc__.partition('Parameters\n---')[2].partition('\n---')[0]
        assert {*labels} <= {*re.findall(r'\w+', ' '.join(re.findall(
            r'^[\w, ]+', parameters, re.MULTILINE)))}, one
    # Options of functions are given by keyword.
    assert all((one.kind is one.KEYWORD_ONLY) == (one.default is not one.empty)
               for one in signature(function).parameters.values())
    assert 'Parameters' in method.__doc__ and 'model' not in method.__doc__.split('---')[1]
    if name in vars(CoupledMethods):
        coupled = vars(CoupledMethods)[name]
        assert coupled.__doc__ == method.__doc__
        assert list(signature(coupled).parameters)[1:] == found


def test_every_kernel_of_many_states_has_its_function():
    assert {name for name, one in QUANTITIES.items() if one.states is not None} <= {*batch.__all__}


@pytest.fixture
def declared():
    """Declare a quantity, and remove it afterwards."""
    class MoreMethods(RobotArrays):
        @quantity(same, kept=True, states=States(
            batch_kinematics.center_of_mass_states, shape(3), [lanes_of(shape(3, -1)),
                                                               lanes_of(shape(3))]))
        def com_again(self, q: 'ArrayLike') -> 'np.ndarray':
            """
            Return the centre of mass.

            Returns
            -------
            ndarray, shape (3,)

            """
            J, com = self._kept(scratch.com_rows)
            assert centroidal.center_of_mass(self.robot, self._traits, q, J, com)
            return com
    bases = Workspace.__bases__
    Workspace.__bases__ = MoreMethods, *bases
    map_all()
    yield plain(MoreMethods.com_again)
    Workspace.__bases__ = bases
    del QUANTITIES['com_again']
    del ClosedMethods.com_again


@pytest.mark.parametrize('make', [lambda: random_tree(0, 5), lambda: with_mimics(
    random_tree(0, 5), 0), lambda: closed_robot('mimics')[0]], ids=['tree', 'mimics', 'loops'])
def test_a_quantity_that_is_declared_in_one_place_has_every_form(declared, make):
    model = make()
    Q = np.array([rbd_ros.random_configuration(model, seed) for seed in range(3)])
    expected = [rbd_ros.center_of_mass(model, q) for q in Q]
    workspace, many = Workspace(model), functions._make('com_again')
    for found in ([declared(model, q) for q in Q], many(model, Q), many(model, Q=Q, threads=1),
                  [workspace.com_again(q).copy() for q in Q]):
        assert np.allclose(found, expected, rtol=0.0, atol=1e-13)
    # Results of the plain function are the caller's, those of a workspace are overwritten.
    first, kept = declared(model, Q[0]), workspace.com_again(Q[0])
    declared(model, Q[1])
    workspace.com_again(Q[1])
    assert np.array_equal(first, declared(model, Q[0]))
    assert not np.array_equal(kept, first)
    assert list(signature(declared).parameters) == ['model', 'q']
    assert 'model, q\n    Robot; configuration (nq,)' in declared.__doc__
    assert 'shape (states, 3)' in many.__doc__ and 'q\n    Conf' in workspace.com_again.__doc__
    with pytest.raises(TypeError, match='unexpected keyword'):
        declared(model, Q[0], link='tip')
    with pytest.raises(rbd_ros.StateError, match='Q has the shape'):
        many(model, Q[:, :-1])


@pytest.mark.parametrize('make', [lambda: random_tree(0, 5), lambda: with_mimics(
    random_tree(0, 5), 0), lambda: closed_robot('mimics')[0]], ids=['tree', 'mimics', 'loops'])
@pytest.mark.parametrize('name', ['inverse_dynamics_derivative', 'forward_dynamics_derivative',
                                  'hybrid_dynamics_derivative'])
def test_arguments_that_are_not_a_variation_are_refused(name, make):
    model = make()
    q, v = rbd_ros.neutral(model), np.zeros(model.nv)
    more = [v, v > 0.0] if name.startswith('hybrid') else []
    with pytest.raises(rbd_ros.StateError, match='variation must be a Variation, got'):
        getattr(analysis, name)(model, q, v, v, *more, {'dq': v})
