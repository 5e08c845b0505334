# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels convert their vectors, and are compiled once."""

import ast
from pathlib import Path
import re
from threading import Barrier, Thread

import numpy as np
import pytest
import rbd_ros
from rbd_ros.kernels.jit import compiled
from rbd_ros.kernels.jit.compiled import kernel, prepare, states_kernel
from rbd_ros.kernels.jit.numba_backend import COMPILES

X = np.arange(3.0)
PACKAGE = Path(rbd_ros.__file__).parent


def total(x):
    """Be a kernel."""
    return x[0] + x[1] + x[2]


@pytest.fixture
def made(monkeypatch):
    """Return a kernel that is kept in no file."""
    monkeypatch.setattr(compiled, '_directory', None)
    return kernel(total)


@pytest.mark.skipif(not COMPILES, reason='nothing is compiled')
def test_a_kernel_converts_its_vectors_rather_than_being_compiled_again(made):
    read_only = X.copy()
    read_only.flags.writeable = False
    for given in (X, X.astype(np.float32), np.repeat(X, 2)[::2], [0, 1, 2], (0.0, 1.0, 2.0),
                  range(3), read_only):
        assert made(given) == 3.0
    for given in None, 'abc', 1.0, X[None], ['0', '1', '2'], 1j * X, {}, [[0.0], [1.0, 2.0]]:
        assert made(given) is False
    assert len(made.signatures) == 1


@pytest.mark.skipif(not COMPILES, reason='nothing is compiled')
@pytest.mark.parametrize('other', [X.astype(np.float32), np.ones(6)[::2], [0.0, 1.0, 2.0], None])
def test_a_kernel_for_many_states_rejects_other_types(monkeypatch, other):
    monkeypatch.setattr(compiled, '_directory', None)
    made = states_kernel(total)
    with pytest.raises(TypeError, match='prepared'):
        made(X)
    assert prepare(made, X)(X) == made(X) == 3.0
    with pytest.raises(TypeError, match='prepared'):
        made(other)
    assert len(made.signatures) == 1
    # Once prepared for another type, it takes both.
    prepare(made, X.astype(np.float32))
    assert made(X.astype(np.float32)) == made(X) == 3.0


def test_threads_that_call_a_kernel_first_at_the_same_time_all_get_its_result(monkeypatch):
    monkeypatch.setattr(compiled, '_directory', None)
    for _ in range(5):
        fresh, begin, found = kernel(lambda x: x.sum() + 1.0), Barrier(3), []

        def call(begin=begin, found=found, fresh=fresh):
            begin.wait()
            found.append(fresh(X))
        threads = [Thread(target=call) for _ in range(3)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        assert found == [X.sum() + 1.0] * 3


def test_kernels_that_users_call_are_called_by_no_kernel_without_a_vector():
    # Once compiled for None, such a kernel would take None from users, too.
    vectors, calls = {}, []
    for path in sorted((PACKAGE / 'kernels').rglob('*.py')):
        for function in ast.parse(path.read_text()).body:
            if not isinstance(function, ast.FunctionDef):
                continue
            if 'kernel' in map(ast.unparse, function.decorator_list):
                vectors[function.name] = [k for k, argument in enumerate(function.args.args)
                                          if argument.arg in compiled.VECTORS]
            calls += [node for node in ast.walk(function) if isinstance(node, ast.Call)]
    called = {call.func.id for call in calls if isinstance(call.func, ast.Name) and any(
        isinstance(argument, ast.Constant) and argument.value is None
        for k, argument in enumerate(call.args) if k in vectors.get(call.func.id, ()))}
    # Code generation runs kernels interpreted.
    users = [path for path in PACKAGE.rglob('*.py')
             if path.relative_to(PACKAGE).parts[0] not in ('kernels', 'codegen')]
    used = {name for path in users for name in re.findall(r'\.(\w+)', path.read_text())}
    assert 'articulated_recursion' in called and 'articulated_bodies' in used
    assert not called & used
