# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Without numba and without a C compiler all works, and says once that it is slow."""

import ast
from pathlib import Path
import subprocess
import sys

from hidden_modules import environment
import numpy as np
import pytest
import rbd_ros
from rbd_ros.kernels.lanes.lanes import INTERPRETED
from robots import Oracle, relative_error

ARM = Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf'
# Rounding, over seven bodies; forward dynamics divides by inertias of very different sizes.
ROUNDING, INVERSION = 1e-12, 1e-9
# More than are interpreted side by side.
STATES = INTERPRETED + 44

SCRIPT = f"""
import sys
import numpy as np
import rbd_ros
from rbd_ros import batch

arm = rbd_ros.load_urdf({str(ARM)!r})
Q, V, A = np.random.default_rng(0).normal(size=(3, {STATES}, arm.nv))
q, v, a = Q[0], V[0], A[0]
tau = rbd_ros.inverse_dynamics(arm, q, v, a)
terms = rbd_ros.all_terms(arm, q, v)
prescribed = np.arange(arm.nv) % 2 == 0
found = dict(
    Q=Q, V=V, A=A, tau=tau, a=rbd_ros.forward_dynamics(arm, q, v, tau),
    g=rbd_ros.gravity_torques(arm, q), M=terms.M, C=terms.C, Cv=terms.coriolis_torques,
    com=terms.com, J_com=terms.com_jacobian, hybrid=rbd_ros.hybrid_dynamics(
        arm, q, v, np.where(prescribed, a, np.nan), np.where(prescribed, np.nan, tau),
        prescribed)[0],
    dtau_da=rbd_ros.inverse_dynamics_derivatives(arm, q, v, a)[2],
    Tau=batch.inverse_dynamics(arm, Q, V, A))
found['A_back'] = batch.forward_dynamics(arm, Q, V, found['Tau'])
many = batch.all_terms(arm, Q, V)
found.update(many_M=many.M, many_g=many.g)
another = rbd_ros.with_payload(arm, arm.link_names[-1], 1.0)
rbd_ros.gravity_torques(another, q)
assert not {{'numba', 'llvmlite'}} & set(sys.modules)
print({{name: np.asarray(x).tolist() for name, x in found.items()}})
"""


def python(env, *arguments):
    """Run Python in an environment; return the process, which has ended."""
    return subprocess.run([sys.executable, *arguments], env=env, capture_output=True, text=True,
                          check=False)


@pytest.fixture(scope='module')
def alone(tmp_path_factory):
    """Return the environment of programs where numba and a C compiler are missing."""
    return {**environment(tmp_path_factory.mktemp('hidden'), 'numba', 'llvmlite'),
            'CC': 'no-such-compiler'}


@pytest.fixture(scope='module')
def run(alone):
    """Return the process of the script."""
    return python(alone, '-c', SCRIPT)


@pytest.fixture(scope='module')
def found(run):
    """Return what the script found."""
    assert run.returncode == 0, run.stderr
    return {name: np.array(x) for name, x in ast.literal_eval(run.stdout).items()}


@pytest.fixture(scope='module')
def oracle():
    """Return the arm in Pinocchio."""
    return Oracle(ARM, rbd_ros.load_urdf(ARM))


def test_one_state_is_that_of_pinocchio(found, oracle):
    q, v, a = found['Q'][0], found['V'][0], found['A'][0]
    zero = np.zeros_like(v)
    tau, g = oracle.tau(q, v, a), oracle.tau(q, zero, zero)
    com, J_com = oracle.com(q)
    for name, expected in (('tau', tau), ('g', g), ('M', oracle.M(q)), ('C', oracle.C(q, v)),
                           ('com', com), ('J_com', J_com), ('dtau_da', oracle.M(q))):
        assert relative_error(found[name], expected) < ROUNDING, name
    assert relative_error(found['Cv'], oracle.tau(q, v, zero) - g) < INVERSION
    assert relative_error(found['a'], a) < INVERSION
    assert relative_error(found['hybrid'], a) < INVERSION


@pytest.mark.parametrize('k', [0, 1, INTERPRETED - 1, INTERPRETED, STATES - 1])
def test_many_states_are_those_of_pinocchio(found, oracle, k):
    q, v, a = found['Q'][k], found['V'][k], found['A'][k]
    zero = np.zeros_like(v)
    assert relative_error(found['Tau'][k], oracle.tau(q, v, a)) < ROUNDING
    assert relative_error(found['A_back'][k], a) < INVERSION
    assert relative_error(found['many_M'][k], oracle.M(q)) < ROUNDING
    assert relative_error(found['many_g'][k], oracle.tau(q, zero, zero)) < ROUNDING


def test_one_warning_names_the_reason_and_the_remedy(run):
    line, = run.stderr.splitlines()
    assert line.startswith('numba is not installed, and there is no C compiler: ')
    assert 'thousand times slower' in line
    assert 'apt install gcc, or pip install "numba>=0.58"' in line


def test_processes_that_share_the_work_do_not_repeat_it(alone, tmp_path):
    script = tmp_path / 'shared.py'
    script.write_text(f"""
from multiprocessing import get_context
import rbd_ros

def gravity(x):
    arm = rbd_ros.load_urdf({str(ARM)!r})
    return rbd_ros.gravity_torques(arm, [x] * arm.nv)

if __name__ == '__main__':
    gravity(0.0)
    with get_context('spawn').Pool(2) as pool:
        print(len(pool.map(gravity, [0.1, 0.2, 0.3, 0.4])))
""")
    shared = python(alone, str(script))
    assert shared.stdout == '4\n'
    assert shared.stderr.count('thousand times slower') == 1


def test_non_finite_states_are_rejected(alone):
    refused = python(alone, '-W', 'error', '-c', f"""
import numpy as np
import rbd_ros
arm = rbd_ros.load_urdf({str(ARM)!r})
for call in (rbd_ros.forward_dynamics, rbd_ros.inverse_dynamics):
    for q, v in ((np.nan, 0.0), (np.inf, 0.0), (0.0, -np.inf)):
        try:
            call(arm, [q] * arm.nq, [v] * arm.nv, [0.0] * arm.nv)
        except rbd_ros.StateError as error:
            print(error)
""")
    assert refused.returncode == 0, refused.stderr
    assert refused.stdout.count('shoulder_pan') == 6


def test_a_numba_that_is_too_old_is_not_used(tmp_path):
    env = {**environment(tmp_path), 'CC': 'no-such-compiler'}
    (tmp_path / 'llvmlite').mkdir()
    (tmp_path / 'llvmlite/__init__.py').touch()
    (tmp_path / 'llvmlite/binding.py').touch()
    (tmp_path / 'numba.py').write_text('from types import SimpleNamespace\n'
                                       "__version__ = '0.56.4'\n"
                                       'version_info = SimpleNamespace(short=(0, 56))\n')
    old = python(env, '-c', f"""
import rbd_ros
arm = rbd_ros.load_urdf({str(ARM)!r})
print(len(rbd_ros.gravity_torques(arm, [0.5] * arm.nq)))
""")
    assert old.stdout == '7\n'
    assert old.stderr.startswith('numba 0.56.4 is too old')


def test_a_numba_that_cannot_be_loaded_is_not_used(tmp_path):
    env = environment(tmp_path)
    (tmp_path / 'numba.py').write_text("raise ImportError('made for another NumPy')\n")
    broken = python(
        env, '-c', 'from rbd_ros.kernels.jit.numba_backend import OBSTACLE; print(OBSTACLE)')
    assert broken.stdout == 'numba cannot be loaded (made for another NumPy)\n', broken.stderr


def test_commands_warn_once(alone):
    command = '-m', 'rbd_ros.cli.main'
    warmup = python(alone, *command, 'warmup')
    assert warmup.returncode == 1
    assert warmup.stdout == ('There is nothing to compile in advance: numba is not '
                             'installed\n')
    doctor = python(alone, *command, 'doctor')
    assert doctor.returncode == 2
    marked = [line for line in doctor.stdout.splitlines() if line.startswith('? ')]
    assert 'numba is not installed' in marked[0] and 'interpreted' in marked[1]
    torques = python(alone, *command, 'torques', str(ARM), '--q', *['0.5'] * 7)
    assert torques.returncode == 0, torques.stderr
    assert torques.stderr.count('thousand times slower') == 1
