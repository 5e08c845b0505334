# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels run interpreted from the same source."""

import os
from pathlib import Path
import subprocess
import sys

import pytest

HERE = Path(__file__).parents[1]


@pytest.mark.parametrize('file', [
    'dynamics/test_identities.py', 'dynamics/test_closed_forms.py', 'dynamics/test_mimics.py',
    'analysis/test_sums_over_links.py', 'textbook/test_directional_tables.py'])
def test_core_tests_pass_without_the_compiler(file):
    # Without what colcon tells its own pytest: which files to run, and where results belong.
    run = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', str(HERE / file)],
        env={**os.environ, 'NUMBA_DISABLE_JIT': '1', 'PYTEST_ADDOPTS': ''}, capture_output=True,
        text=True, check=False)
    assert run.returncode == 0, run.stdout
    assert ' passed' in run.stdout
