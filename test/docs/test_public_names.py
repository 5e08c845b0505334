# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every public name has one home, and `help` of it can be read."""

from collections import Counter
from importlib import import_module
import inspect
import pydoc
import re

import pytest
import rbd_ros

# The public modules whose names have their home there.
HOMES = ['rbd_ros', *(f'rbd_ros.{name}' for name in (
    'analysis', 'codegen', 'control', 'identification', 'model', 'simulation', 'textbook'))]
# Other forms of functions, under the same names by intention.
FORMS = {'rbd_ros.batch': None, 'rbd_ros.casadi': 'casadi', 'rbd_ros.jax': 'jax',
         'rbd_ros.torch': 'torch'}
# Characters of a parameter in a signature: its name, its type as it is written, its default.
PARAMETER = 65


def public(modules):
    """Return the public names of modules, which are no modules, with what they are."""
    return {f'{home}.{name}': value for home in modules
            for module in [import_module(home)] for name in module.__all__
            if not inspect.ismodule(value := getattr(module, name))}


def callables():
    """Return all public functions and classes, and the public methods of classes."""
    found = {}
    for name, value in public(HOMES + ['rbd_ros.batch']).items():
        if not callable(value):
            continue
        found[name] = value
        if inspect.isclass(value):
            found |= {f'{name}.{label}': one for label, one in vars(value).items()
                      if inspect.isfunction(one) and label[0] != '_'}
    return found


CALLABLES = callables()


def test_the_lists_of_public_modules_are_complete():
    known = {name.partition('.')[2] for name in (*HOMES[1:], *FORMS)}
    modules = {name for name in rbd_ros.__all__ if inspect.ismodule(getattr(rbd_ros, name))}
    assert modules <= known and known - modules <= {'jax', 'simulation', 'torch'}


def test_a_public_name_has_one_home():
    names = Counter(name.rpartition('.')[2] for name in public(HOMES))
    assert [name for name, homes in names.items() if homes > 1] == []
    objects = Counter(map(id, filter(callable, public(HOMES).values())))
    assert max(objects.values()) == 1


@pytest.mark.parametrize('package, name', [
    ('analysis', 'jacobian_dot'), ('analysis', 'simulate'), ('analysis', 'task_space_dynamics'),
    ('analysis', 'torque_regressor'), ('identification', 'identify')])
def test_the_error_for_a_name_of_the_top_level_names_the_top_level(package, name):
    with pytest.raises(AttributeError, match=f"no attribute '{name}'; use rbd_ros.{name}$"):
        getattr(import_module(f'rbd_ros.{package}'), name)


@pytest.mark.parametrize('form', FORMS)
def test_jax_torch_and_casadi_have_the_names_of_the_functions(form):
    if FORMS[form]:
        pytest.importorskip(FORMS[form])
    named = {name.rpartition('.')[2] for name in public(HOMES)}
    module = import_module(form)
    assert {name for name in module.__all__ if callable(getattr(module, name))
            } - named <= {
                'configuration_rate', 'normal_equations', 'NormalEquations', 'regressor_factor',
                'torque_regressor_product', 'torque_regressor_transposed_product'}


@pytest.mark.parametrize('name', CALLABLES)
def test_the_signature_of_a_public_name_can_be_read(name):
    try:
        form = inspect.signature(CALLABLES[name])
    except ValueError:
        pytest.skip('exceptions have none')
    shown = str(form)
    assert not re.search(r'_Supports|numpy\._typing|Union\[', shown), shown
    assert len(shown) <= PARAMETER * (len(form.parameters) + 1), shown
    if inspect.isfunction(CALLABLES[name]):
        assert shown.replace('self, ', '') in pydoc.plaintext.document(
            CALLABLES[name]).replace('self, ', '')


FUNCTIONS = {name: one for name, one in public(['rbd_ros.batch', *HOMES]).items()
             if inspect.isfunction(one)}
BY_NAME = {name.rpartition('.')[2]: one for name, one in FUNCTIONS.items()}


def documentation(function):
    """Return the docstring of a function, of its module, and of functions that they refer to."""
    text = f'{inspect.getdoc(function)}\n{import_module(function.__module__).__doc__}'
    others = re.findall(r'(?:as for|arguments:) `(?:\w+\.)*(\w+)`', text)
    return ' '.join(' '.join([text, *(inspect.getdoc(BY_NAME[one]) for one in others
                                      if one in BY_NAME)]).split())


@pytest.mark.parametrize('name', FUNCTIONS)
def test_arguments_and_errors_of_public_functions_are_documented(name):
    text = documentation(FUNCTIONS[name])
    missing = [one for one in inspect.signature(FUNCTIONS[name]).parameters
               if not re.search(rf'\b{one}\b', text)]
    assert missing == []
    assert re.search(r'\w+Error\b|\b[Ee]rrors (are|as|and)\b|errors: `|[Nn]o errors', text)
