# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tests whose optional package is not installed skip by its name; others of their file run."""

from pathlib import Path
import re
import subprocess
import sys

import hidden_modules

TESTS = Path(__file__).parents[1]
OPTIONAL = ('casadi', 'collada', 'distributed', 'jax', 'matplotlib', 'msgspec', 'mujoco', 'PIL',
            'psutil', 'pyarrow', 'rich', 'rosbags', 'selenium', 'sympy', 'toppra', 'torch',
            'trimesh', 'viser', 'websockets', 'xacro', 'zstandard')
# Files of tests that import one of them, or a module beside them that does
NAMED = re.compile(rf"(import |from |Optional\('|skip\(')({'|'.join(OPTIONAL)}|bag_files|browser|"
                   r'forged_pages|mjcf_oracle)\b')


def run(folder, *arguments):
    """Return what pytest prints without any optional package."""
    return subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-rs', '-p', 'no:cacheprovider', *arguments],
        env=hidden_modules.environment(folder, *OPTIONAL), capture_output=True, text=True,
        cwd=TESTS).stdout


def test_no_missing_package_breaks_a_file_of_tests(tmp_path):
    files = [str(path) for path in TESTS.rglob('test_*.py')
             if NAMED.search(path.read_text(encoding='utf-8'))]
    assert len(files) > 20
    found = run(tmp_path, '--collect-only', *files)
    assert 'ModuleNotFoundError' not in found and re.search(r'\d+ tests collected', found), found


def test_a_test_skips_by_the_name_of_its_package_and_others_of_the_file_run(tmp_path):
    found = run(tmp_path, 'recordings/test_tables.py', '-k',
                'whole_numbers or needs_no_pyarrow')
    assert "could not import 'pyarrow" in found and '1 passed, 1 skipped' in found, found
