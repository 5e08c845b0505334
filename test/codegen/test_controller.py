# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Generated controllers for ros2_control: equal to the library, without steps, safe in faults."""

from dataclasses import replace
import subprocess

from control_rig import compile_all, PERIOD, Rig, STAND_IN, STRICT, VERSIONS, write_package
import numpy as np
import pytest
import rbd_ros
from rbd_ros.codegen.controller import controller_files, default_law, MODES
from rbd_ros.control import JointReference, MomentumObserver, MotionGuard
from rbd_ros.model.constraints import rebuild
from robots import load_quietly, random_tree, relative_error, with_mimics

TOLERANCE = 1e-12   # of the largest entry: another order of operations
TOOL = 'tool'
FREE = {'soft_stop_zone': 0.0, 'velocity_guard': 0.0, 'blend_time': 0.0}   # the law alone
MIN_BLEND = 0.25    # s


def with_drives(model):
    """Return a robot whose joints have friction, rotors, springs and offsets."""
    changes = {'damping': 0.4, 'damping_asymmetry': 0.1, 'friction': 0.5,
               'friction_asymmetry': -0.2, 'stribeck_friction': 0.3, 'stribeck_velocity': 0.7,
               'effort_offset': 0.05, 'armature': 0.1, 'stiffness': 1.5, 'spring_reference': 0.2}
    return rebuild(model, joints=[
        replace(joint, **{name: (x,) * joint.nv for name, x in changes.items()})
        if joint.nv else joint for joint in model.joints])


def arm():
    return with_drives(load_quietly('urdf/demo_arm.urdf'))


@pytest.fixture(scope='module')
def rig(tmp_path_factory):
    """Return the rig of the demo arm with friction, rotors and springs."""
    return Rig(arm(), tmp_path_factory.mktemp('controller'), tool=TOOL)


def motion(model, rng):
    """Return q, v, a and tau of a random motion within the limits of the joints."""
    q = rng.uniform(0.6, 0.6, model.nv) * rng.uniform(model.lower, model.upper)
    return q, *rng.normal(size=(3, model.nv))


def law_torques(model, mode, q, v, r):
    """Return the torques of a law of the library, with friction, springs and torques to add."""
    reference = None if mode == 'gravity' else JointReference(model, *r[:3])
    return default_law(model, mode).update(0.0, q, v, reference) + r[3]


# -- Sources. -------------------------------------------------------------------------------------
@pytest.mark.parametrize('version', VERSIONS)
def test_it_compiles_without_warnings_against_each_version(version, tmp_path):
    write_package(arm(), tmp_path)
    compile_all(tmp_path, 'program', '-shared', version=version)


def own_test(folder):
    """Compile and run the test of the package; return what it prints."""
    subprocess.run(['gcc', '-std=c99', '-O1', '-c', 'r_dynamics.c'], cwd=folder, check=True)
    subprocess.run(['g++', *STRICT, 'test_law.cpp', 'r_dynamics.o', '-o', 'test_law', '-lm'],
                   cwd=folder, check=True)
    return subprocess.run(['./test_law'], cwd=folder, capture_output=True, text=True,
                          check=False).stdout


def test_its_own_test_passes_and_notices_a_wrong_number(tmp_path):
    write_package(arm(), tmp_path)
    assert own_test(tmp_path) == '0 differences\n'
    law = (tmp_path / 'law.hpp').read_text()
    (tmp_path / 'law.hpp').write_text(law.replace('+ K[i] * e[i]', '- K[i] * e[i]'))
    assert own_test(tmp_path).endswith('3 differences\n')


def test_update_neither_allocates_nor_locks_nor_logs(tmp_path):
    write_package(arm(), tmp_path)
    compile_all(tmp_path, 'program', '-DMAIN', '-ldl')
    done = subprocess.run(['./program'], cwd=tmp_path, capture_output=True, text=True, check=True)
    assert done.stdout.splitlines()[0] == (
        '0 allocations, 0 locks, 0 logs; a vector and a mutex: 1 and 1')


# -- Laws. ----------------------------------------------------------------------------------------
@pytest.mark.parametrize('mode', MODES)
def test_each_mode_equals_the_law_of_the_library(rig, mode):
    model, rng = rig.model, np.random.default_rng(3)
    assert rig.start(np.zeros(7), np.zeros(7), chained=True, mode=mode, friction=True,
                     springs=True, effort_limits=[1e4], **FREE)
    for _ in range(20):
        q, v, *_ = motion(model, rng)
        r = motion(model, rng)
        rig.refer(*r)
        # The jump to this state is not judged: positions of two samples, then one.
        rig.start(q, v, chained=True, mode=mode, friction=True, springs=True,
                  effort_limits=[1e4], **FREE)
        rig.refer(*r)
        assert relative_error(rig.step(q, v), law_torques(model, mode, q, v, r)) < TOLERANCE
