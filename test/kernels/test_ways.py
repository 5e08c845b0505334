# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Kernels run as RBD_ROS_KERNELS says, by default in the fastest way that there is."""

from itertools import product
import os
from pathlib import Path
import subprocess
import sys

from covering import covering
from hidden_modules import environment
import pytest

ROOT = Path(__file__).parents[2]
ASK = 'from rbd_ros.kernels.jit.numba_backend import WAY; print(WAY)'
# Identities of two robots, for `-k`
FEW = '(0 or 1) and not (10 or 11 or matches or line)'
# Waits for code and says how many functions were compiled, in a program and in one that it forks.
WAIT = f"""
import os
import numpy as np
import rbd_ros
from rbd_ros.kernels.jit import machine_code
arm = rbd_ros.load_urdf({str(ROOT / 'urdf' / 'demo_arm.urdf')!r})
q = np.linspace(0.1, 0.7, arm.nq)
before = rbd_ros.gravity_torques(arm, q)
def waited():
    codes, = machine_code.CODES._codes.values()
    for code in codes.values():
        assert code.over.wait(300.0)
    found = rbd_ros.gravity_torques(arm, q)
    assert np.abs(found - before).max() < 1e-12 * np.abs(before).max()
    return [name for (name, _), code in codes.items() if code.runner is not None]
print(*waited(), flush=True)
child = os.fork()
if child == 0:
    rbd_ros.mass_matrix(arm, q)
    print(*waited(), flush=True)
    os._exit(0)
assert os.waitpid(child, 0)[1] == 0
"""


def run(*arguments, env=None, **variables):
    """Run Python with variables of the environment; return the process, which has ended."""
    variables = {name: str(x) for name, x in variables.items()}
    return subprocess.run([sys.executable, *arguments], env={**(env or os.environ), **variables},
                          cwd=ROOT, capture_output=True, text=True, check=False)


@pytest.fixture(scope='module')
def without_numba(tmp_path_factory):
    """Return the environment of programs without numba."""
    return environment(tmp_path_factory.mktemp('hidden'), 'numba', 'llvmlite')


@pytest.mark.parametrize('chosen, cc, expected', [
    ('', 'cc', 'cc'), ('', 'no-such-compiler', 'python'), ('cc', 'no-such-compiler', 'cc'),
    ('python', 'cc', 'python')])
def test_without_numba_it_is_the_compiler_of_c_if_there_is_one(without_numba, chosen, cc,
                                                               expected):
    asked = run('-c', ASK, env=without_numba, RBD_ROS_KERNELS=chosen, CC=cc)
    assert asked.stdout == f'{expected}\n', asked.stderr


def test_another_way_than_numba_does_not_import_it():
    asked = run('-c', f'import sys; {ASK}; assert "numba" not in sys.modules',
                RBD_ROS_KERNELS='cc')
    assert asked.stdout == 'cc\n', asked.stderr


def test_an_invalid_choice_of_kernels_is_one_clear_error(without_numba):
    for env, chosen, message in (
            (None, 'gpu', "RBD_ROS_KERNELS is 'gpu': set it to one of numba, cc, python, or unset "
                          'it'),
            (without_numba, 'numba', 'RBD_ROS_KERNELS is numba, but numba is not installed: pip '
                                     'install "numba>=0.58", or unset RBD_ROS_KERNELS')):
        failed = run('-m', 'rbd_ros.cli.main', 'doctor', env=env, RBD_ROS_KERNELS=chosen)
        assert failed.returncode != 0
        assert failed.stderr.splitlines()[-1].endswith(message), failed.stderr


# All robots take a quarter of a minute with python; with cc, which compiles hundreds of functions,
# minutes, most of all for masks of accelerations.
@pytest.mark.parametrize('way, which', covering(
    product(('cc', 'python'), ('', FEW)), *product(('cc', 'python'), (FEW,))))
def test_identities_hold_with_each_way_to_run_kernels(way, which, tmp_path):
    tested = run('-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-p', 'waiting', '-n', '0',
                 '-k', which, f'--basetemp={tmp_path / "pytest"}',
                 'test/dynamics/test_identities.py', RBD_ROS_KERNELS=way, XDG_CACHE_HOME=tmp_path,
                 PYTHONPATH=os.pathsep.join(map(str, (ROOT, ROOT / 'test/rigs'))))
    assert tested.returncode == 0, tested.stdout
    kept = list(tmp_path.rglob('*.code'))
    assert len(kept) > 20 if way == 'cc' else not kept


def test_a_program_and_its_forks_compile_their_code_and_end(tmp_path):
    program = run('-c', WAIT, RBD_ROS_KERNELS='cc', XDG_CACHE_HOME=tmp_path / 'cache',
                  TMPDIR=tmp_path)
    assert program.stdout == 'gravity_torques\nmass_matrix\n', program.stderr
    assert not program.stderr
    assert not list(tmp_path.glob('rbd_ros.*'))


def test_a_doctor_without_numba_names_the_compiler(without_numba, tmp_path):
    well = run('-m', 'rbd_ros.cli.main', 'doctor', env=without_numba, XDG_CACHE_HOME=tmp_path)
    assert 'machine code of the C compiler' in well.stdout
    assert '? C compiler' not in well.stdout
    ill = run('-m', 'rbd_ros.cli.main', 'doctor', env=without_numba, XDG_CACHE_HOME=tmp_path,
              CC='/bin/false')
    assert ill.returncode == 2
    assert '? C compiler' in ill.stdout
