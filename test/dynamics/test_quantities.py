# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""All forms of a quantity follow from its declaration."""

from inspect import signature
import subprocess
import sys

import pytest
from rbd_ros import batch, Workspace
from rbd_ros.quantities import DECLARED_IN, QUANTITIES
from rbd_ros.workspace.coupled import CoupledMethods

# Calls all quantities that a module declares when no other module is imported by the program.
ALONE = """
import importlib, inspect
import numpy as np
from rbd_ros import ModelBuilder
module = importlib.import_module({name!r})
from rbd_ros.workspace.quantity import QUANTITIES
from rbd_ros.workspace.variation import Variation
arm, inertia = ModelBuilder('arm').link('base'), np.eye(3)
for k, mimic in enumerate((None, None, ('joint_1', 1.0, 0.0))[:{joints}]):
    arm.link(f'link_{{k}}', mass=1.0, inertia=inertia)
    options = {{'mimic': mimic}} if mimic else {{}}
    arm.joint(f'joint_{{k}}', 'revolute', f'link_{{k - 1}}' if k else 'base', f'link_{{k}}',
              axis=(k % 2, 1.0, 0.0), **options)
model = arm.build()
v = np.full(2, 0.3)
values = dict.fromkeys(('q', 'v', 'a', 'tau', 'v_r', 'a_r'), v) | {{
    'model': model, 'link': 'link_1', 'contacts': (), 'prescribed': v < 0.0,
    'variation': Variation()}}
for name, quantity in QUANTITIES.items():
    if quantity.function.__module__ == {name!r}:
        quantity.function(**{{label: values[label] for label in
                             inspect.signature(quantity.function).parameters
                             if label in values}})
        print(name)
"""


@pytest.mark.parametrize('joints', [pytest.param(2, marks=pytest.mark.long), 3],
                         ids=['tree', 'coupled'])
@pytest.mark.parametrize('module', DECLARED_IN, ids=lambda module: module.__name__)
def test_a_module_alone_has_all_methods_that_its_functions_call(module, joints):
    run = subprocess.run([sys.executable, '-W', 'ignore', '-c',
                          ALONE.format(name=module.__name__, joints=joints)],
                         capture_output=True, text=True, timeout=120)
    assert run.returncode == 0, run.stderr
    assert set(run.stdout.split()) == {name for name, quantity in QUANTITIES.items()
                                       if quantity.function.__module__ == module.__name__}


@pytest.mark.parametrize('name', QUANTITIES)
def test_methods_have_the_arguments_and_the_documentation_of_the_function(name):
    function, method = QUANTITIES[name].function, getattr(Workspace, name)
    wanted, found = (list(signature(one).parameters)[1:] for one in (function, method))
    assert wanted == found
    assert 'Parameters' in method.__doc__ and 'model' not in method.__doc__.split('---')[1]
    if name in vars(CoupledMethods):
        coupled = vars(CoupledMethods)[name]
        assert coupled.__doc__ == method.__doc__
        assert list(signature(coupled).parameters)[1:] == found


@pytest.mark.parametrize('name', sorted({*batch.__all__} & {*QUANTITIES}))
def test_functions_of_many_states_have_their_shapes(name):
    function = getattr(batch, name)
    options = [one for one in signature(function).parameters if one in function.__doc__]
    assert set(signature(function).parameters) == set(options)
    assert '(states, nq)' in function.__doc__
    assert function.__name__ == name


def test_every_kernel_of_many_states_has_its_function():
    assert {name for name, one in QUANTITIES.items() if one.task is not None} <= {*batch.__all__}
