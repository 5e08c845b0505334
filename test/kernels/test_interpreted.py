# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels run interpreted from the same source."""

import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest
from rbd_ros.kernels.jit import compiled

HERE = Path(__file__).parents[1]


# Also what is compiled in `make test-long` only: kernels of robots with mimics and ball joints.
FEW = ('dynamics/test_closed_forms.py',
       'dynamics/test_mimics.py::test_each_quantity_is_that_of_the_tree_mapped_by_g',
       'dynamics/test_mimic_dynamics.py::'
       'test_many_states_of_robots_with_mimics_are_solved_together[balls0]',
       'dynamics/test_closed_loop_derivatives.py::'
       'test_derivatives_in_a_direction_are_differences_with_balls_and_mimics',
       'analysis/test_directional_derivatives.py::'
       'test_derivatives_by_everything_match_differences_where_joints_mimic[balls0]')


@pytest.mark.parametrize('tests', [
    pytest.param((*FEW, '-k', 'closed_forms or balls or floating'), id='few'),
    *(pytest.param((name,), id=name, marks=pytest.mark.long) for name in (
        'dynamics/test_identities.py', 'dynamics/test_mimics.py',
        'dynamics/test_mimic_dynamics.py', 'library/test_validation.py',
        'analysis/test_sums_over_links.py', 'textbook/test_directional_tables.py'))])
def test_core_tests_pass_without_the_compiler(tests):
    # Without what colcon tells its own pytest: which files to run, and where results belong.
    run = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', *tests], cwd=HERE,
        env={**os.environ, 'NUMBA_DISABLE_JIT': '1', 'PYTEST_ADDOPTS': ''}, capture_output=True,
        text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert ' passed' in run.stdout


def test_an_interpreted_kernel_converts_its_vectors_as_a_compiled_one_does(monkeypatch):
    monkeypatch.setattr(compiled, 'COMPILES', False)

    def total(x, n):
        return x[0] + x[1] + n
    made, x = compiled.kernel(total), np.array((1.0, 2.0))
    for given in x, (1.0, 2.0), [1, 2], range(1, 3), x.astype(np.float32), np.repeat(x, 2)[::2]:
        assert made(given, 3) == 6.0
    for given in 1.0, None, 'ab', x[None], x.astype(bool), [[1.0], [2.0, 3.0]]:
        assert made(given, 3) is False
