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


def test_without_optional_packages_tests_skip_by_their_name_and_others_of_the_file_run(tmp_path):
    files = [str(path) for path in TESTS.rglob('test_*.py')
             if NAMED.search(path.read_text(encoding='utf-8'))]
    assert len(files) > 20
    found = subprocess.run(
        [sys.executable, '-m', 'pytest', '-q', '-rs', '-p', 'no:cacheprovider', *files, '-k',
         'test_tables and (hold_blanks or needs_no_pyarrow)'],
        env=hidden_modules.environment(tmp_path, *OPTIONAL), capture_output=True, text=True,
        cwd=TESTS).stdout
    # No file fails to be collected.
    assert 'ModuleNotFoundError' not in found, found
    assert "could not import 'pyarrow" in found, found
    assert re.search(r'^1 passed, \d+ skipped, \d+ deselected', found, re.MULTILINE), found
