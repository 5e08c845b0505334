# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels run interpreted from the same source."""

import os
from pathlib import Path
import subprocess
import sys

import numpy as np
import pytest
from rbd_ros.kernels import compiled

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize('file', [
    'dynamics/test_closed_forms.py',
    *(pytest.param(name, marks=pytest.mark.long) for name in (
        'dynamics/test_identities.py', 'dynamics/test_mimics.py', 'dynamics/test_validation.py',
        'analysis/test_sums_over_links.py', 'textbook/test_directional_tables.py'))])
def test_core_tests_pass_without_the_compiler(file):
    # Without what colcon tells its own pytest: which files to run, and where results belong.
    run = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', str(HERE / file)],
        env={**os.environ, 'NUMBA_DISABLE_JIT': '1', 'PYTEST_ADDOPTS': ''}, capture_output=True,
        text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert ' passed' in run.stdout


def test_an_interpreted_kernel_takes_only_what_it_was_prepared_for(monkeypatch):
    monkeypatch.setattr(compiled, 'COMPILES', False)
    total = compiled.kernel(lambda x, n: x[0] + x[1] + n)
    x = np.array((1.0, 2.0))
    for given in x, (1.0, 2.0), [1.0, 2.0], range(2), 1.0:
        with pytest.raises(TypeError, match='prepared'):
            total(given, 3)
    assert compiled.prepare(total, x, 3)
    assert not compiled.prepare(total, x, 3)
    assert total(x, 3) == total(x[::-1], 3) == 6.0
    with pytest.raises(TypeError, match='prepared'):
        compiled.kernel(lambda x, n: n)(x, 3)
    for given in ((1.0, 2.0), [1.0, 2.0], range(2), 1.0, None, x.astype(np.float32), x[None],
                  x.astype(bool)):
        with pytest.raises(TypeError, match='prepared'):
            total(given, 3)
