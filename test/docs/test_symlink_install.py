# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""With `colcon build --symlink-install`, programs run in the active Python, with numba."""

import os
from pathlib import Path
import re
import subprocess
import sys
import sysconfig

import pytest

ROOT = Path(__file__).parents[2]


@pytest.mark.long
def test_symlinked_programs_run_in_the_active_environment(tmp_path):
    command, = re.findall(r'`(python3 .* build --symlink-install)`',
                          (ROOT / 'doc/getting_started_ros.md').read_text(encoding='utf-8'))
    (tmp_path / 'src').mkdir()
    (tmp_path / 'src/rbd_ros').symlink_to(ROOT)
    # This environment replaces the packages of the system.
    done = subprocess.run(
        ['bash', '-e', '-c', 'python3 -m venv --without-pip .venv\n. .venv/bin/activate\n'
         f'{command} --packages-select rbd_ros\n. install/setup.bash\n'
         'install/rbd_ros/lib/rbd_ros/rbd_ros --version'],
        cwd=tmp_path, check=False, capture_output=True, text=True,
        env={**os.environ, 'PYTHONPATH': sysconfig.get_path('purelib'),
             'PATH': f'{Path(sys.executable).parent}:{os.environ["PATH"]}'})
    assert done.returncode == 0, done.stdout + done.stderr
    node = tmp_path / 'install/rbd_ros/lib/rbd_ros/dynamics_node'
    # Where setuptools has no `develop --editable`, from version 80 on, colcon installs instead.
    assert node.read_text().splitlines()[0] in (f'#!{tmp_path}/.venv/bin/python3',
                                                '#!/usr/bin/env python3')
