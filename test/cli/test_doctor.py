# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros doctor`` and ``warmup``."""

import os
import re
import subprocess
import sys

from command_line import ROOT
import numpy as np
import pytest
import rbd_ros
from rbd_ros.cli.main import main
from rbd_ros.kernels.jit.kernel_cache import cache_directory


def test_warmup_compiles_all_kernels_and_prints_their_directory(capsys):
    assert main(['warmup']) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert str(cache_directory()) in last
    named = {line.split()[2].rstrip(',') for line in lines}
    assert {'all_terms', 'inverse_dynamics', 'forward_dynamics_derivatives',
            'forward_kinematics'} <= named
    of_trees = [line for line in lines if 'closed loops' not in line]
    assert sum('free joints' in line for line in of_trees) == len(of_trees) / 2
    assert len(of_trees) < len(lines)


def doctor(capsys):
    """Return exit code and lines by what they are about."""
    code = main(['doctor'])
    lines = capsys.readouterr().out.splitlines()
    return code, {line[2:].split(maxsplit=1)[0]: line for line in lines[:-1]}


def test_doctor_prints_versions_cache_and_clock(capsys):
    code, lines = doctor(capsys)
    assert code in (0, 2)           # other programs of this machine may have spoilt the cache
    assert rbd_ros.__version__ in lines['rbd_ros']
    assert np.__version__ in lines['numpy']
    assert lines['urdf_parser_py'].split()[-1][0].isdigit()
    assert {'python', 'scipy', 'numba', 'xacro', 'rich', 'rclpy', 'RMW', 'rbd_msgs'} <= set(lines)
    assert str(cache_directory()) in lines['kernels']
    assert re.search(r'\d{4}-\d\d-\d\d \d\d:\d\d:\d\d UTC', lines['clock'])


@pytest.mark.parametrize('missing, code', [
    ({'lxml': '!'}, 1), ({'urdf_parser_py': '!'}, 1), ({'rbd_msgs': '?'}, 2),
    # The worse one counts.
    ({'rbd_msgs': '?', 'scipy': '!'}, 1)])
def test_doctor_marks_missing_packages(capsys, monkeypatch, missing, code):
    for name in missing:
        monkeypatch.setitem(sys.modules, name, None)
    got, lines = doctor(capsys)
    assert got == code
    assert all(lines[name].startswith(f'{mark} {name}') for name, mark in missing.items())


def test_doctor_works_without_numba_lxml_scipy_and_a_compiler():
    code = ("import sys; sys.modules.update(dict.fromkeys(('numba', 'lxml', 'scipy', "
            "'urdf_parser_py'))); from rbd_ros.cli.main import main; sys.exit(main(['doctor']))")
    process = subprocess.run([sys.executable, '-c', code], check=False, capture_output=True,
                             cwd=ROOT, text=True, env={**os.environ, 'CC': 'no-such-compiler'})
    assert process.returncode == 1
    # On a busy machine that takes long.
    assert not process.stderr.replace('rbd_ros doctor: still working\n', '')
    assert '! lxml' in process.stdout and '! scipy' in process.stdout
    assert '? numba' in process.stdout and '? kernels' in process.stdout


def test_doctor_names_an_rmw_that_cannot_be_loaded(capsys, monkeypatch):
    monkeypatch.setenv('RMW_IMPLEMENTATION', 'rmw_of_nobody')
    code, lines = doctor(capsys)
    assert code == 2 and lines['rclpy'].startswith('?') and 'rmw_of_nobody' in lines['rclpy']


def test_doctor_reports_a_cache_that_others_can_write(capsys, monkeypatch, tmp_path):
    monkeypatch.setenv('XDG_CACHE_HOME', str(tmp_path))
    monkeypatch.setattr('numba.config.CACHE_DIR', '')
    code, lines = doctor(capsys)
    assert 'not yet compiled' in lines['kernels'] and lines['kernels'].startswith('  ')
    cache_directory().mkdir(parents=True, mode=0o777)
    cache_directory().chmod(0o777)
    code, lines = doctor(capsys)
    assert code == 2 and lines['kernels'].startswith('? kernels') and 'others' in lines['kernels']


@pytest.mark.parametrize('kept, code, mark', [(3, 0, ' '), (0, 2, '?')])
def test_doctor_accepts_kernels_in_a_read_only_cache(capsys, monkeypatch, tmp_path, kept, code,
                                                     mark):
    # The image is for users who can write nothing.
    monkeypatch.setattr('numba.config.CACHE_DIR', str(tmp_path))
    cache_directory().mkdir(parents=True, mode=0o755)
    for k in range(kept):
        (cache_directory() / f'{k}.kernel').touch()
    monkeypatch.setattr('os.access', lambda *_: False)
    got, lines = doctor(capsys)
    assert got == code and lines['kernels'].startswith(f'{mark} kernels')
    assert f'{kept} in {cache_directory()}' in lines['kernels']
    assert 'it cannot be written' in lines['kernels']


def test_doctor_reports_a_clock_that_lags(capsys, monkeypatch):
    monkeypatch.setattr('time.time', lambda: 1e9)
    code, lines = doctor(capsys)
    assert code == 2 and lines['clock'].startswith('? clock') and '2001-09-09' in lines['clock']
