# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Generated C: equal to the library and to closed forms, strict, without state, deterministic."""

import hashlib
from itertools import product
import os
import re
import shutil
import subprocess
import sys

from covering import covering
from generated_code import (
    assert_of_library, COMPILERS, Library, options_of, PENDULUM, random_states, run_test, STRICT,
    write)
import numpy as np
import pytest
import rbd_ros
from rbd_ros.codegen import FUNCTIONS, package_files, trace
from robots import example_urdf, load_quietly, random_tree, relative_error, with_mimics

# Of the largest entry in double and in float: rounding, which solutions amplify by the condition
# number of the mass matrix, up to 1e6 for robots with light fingers or feet.
DOUBLE, SOLVED = 1e-12, 1e-10
SINGLE, SINGLE_SOLVED = 1e-5, 1e-4
# Results of sines, in units in the last place of 1.
SINES = 4.5e-16
# Functions of the C library that code may call; none of them allocates, locks or keeps anything.
CALLED = {'cos', 'sin', 'sincos', 'cosf', 'sinf', 'sincosf', 'sqrt', 'sqrtf', 'exp', 'expf',
          'fabs', 'fabsf', 'memcpy', 'memset', '__stack_chk_fail'}


def arm():
    return load_quietly('urdf/demo_arm.urdf')


@pytest.mark.parametrize('compiler', COMPILERS, ids=lambda words: words[0])
@pytest.mark.parametrize('single', [False, True], ids=['double', 'float'])
def test_code_compiles_without_warnings_and_passes_its_self_test(compiler, single, tmp_path):
    files = package_files(arm(), ['inverse_dynamics', 'hybrid_dynamics', 'friction_torques'],
                          single=single, **options_of(arm(), 'hybrid_dynamics'))
    flags = [*STRICT, *(['-Wdouble-promotion'] if single else [])]
    assert run_test(files, tmp_path, compiler, *flags) == '0 differences\n'


def test_the_self_test_of_generated_code_notices_a_wrong_number(tmp_path):
    files = package_files(arm(), ['gravity_torques'])
    name = 'demo_arm_dynamics.c'
    assert '9.81' in files[name]
    files[name] = files[name].replace('9.81', '9.82', 1)
    found = run_test(files, tmp_path, COMPILERS[0])
    assert re.fullmatch('(gravity_torques: g differs by .*\n){3}3 differences\n', found), found


@pytest.mark.parametrize('model', [
    with_mimics(random_tree(3, 5), 4), random_tree(8, 2, ('spherical', 'universal'))],
    ids=['mimics', 'kinds'])
def test_sanitizers_find_nothing(model, tmp_path):
    files = package_files(model, ['forward_dynamics'])
    assert run_test(files, tmp_path, COMPILERS[0], '-O0', '-fsanitize=address,undefined',
                    '-fno-sanitize-recover=all') == '0 differences\n'


TASK = 'task_space_dynamics'


# Of three joints, of which derivatives are short, and of six, which the task space needs.
@pytest.fixture(scope='module', params=[3, 6])
def arm_and_code(request, tmp_path_factory):
    """Return an arm with few joints, its functions in C, their file, and their graphs."""
    model, names = arm(), [TASK] if request.param == 6 else [*FUNCTIONS.keys() - {TASK}]
    model = rbd_ros.with_locked_joints(model, dict.fromkeys(
        model.velocity_names[request.param:], 0.3))
    folder, options = tmp_path_factory.mktemp('arm'), {
        **options_of(model, 'jacobian'), **options_of(model, 'hybrid_dynamics')}
    files = package_files(model, names, prefix='arm', **options)
    return model, Library(files, folder, 'arm', '-O0'), folder / 'arm_dynamics.so', [
        trace(model, name, **options_of(model, name)) for name in names]


def test_all_functions_equal_the_library(arm_and_code):
    model, code, _, graphs = arm_and_code
    states = random_states(model, 10)
    for graph in graphs:
        found = code(graph, *(states[x.name] for x in graph.inputs))
        assert_of_library(found, model, graph, states, SOLVED, **options_of(model, graph.name))


@pytest.mark.parametrize('name, single', covering(
    [('ur5_robot.urdf', False), ('ur5_robot.urdf', True), *product((
        'panda.urdf', 'talos_reduced.urdf', 'ur10_robot.urdf', 'kinova.urdf', 'anymal.urdf',
        'hyq_no_sensors.urdf', 'solo12.urdf', 'ur3_robot.urdf', 'baxter.urdf',
        'icub_reduced.urdf', 'tiago.urdf', 'double_pendulum.urdf'), (False,))],
    ('ur5_robot.urdf', False), ('ur5_robot.urdf', True)))
def test_a_thousand_states_equal_the_library(name, single, tmp_path):
    model = load_quietly(example_urdf(name), floating_base=name in (
        'anymal.urdf', 'hyq_no_sensors.urdf', 'solo12.urdf'))
    files = package_files(model, ['inverse_dynamics', 'forward_dynamics'], prefix='r',
                          single=single)
    real = np.float32 if single else float
    code = Library(files, tmp_path, 'r', '-O1', real=real)
    states = random_states(model, 1000)
    rounded = {name: x.astype(real).astype(float) for name, x in states.items()}
    for function, tolerance in (('inverse_dynamics', SINGLE if single else DOUBLE),
                                ('forward_dynamics', SINGLE_SOLVED if single else SOLVED)):
        graph = trace(model, function)
        arguments = [rounded[x.name] for x in graph.inputs]
        found, = code(graph, *arguments)
        expected = getattr(rbd_ros.batch, function)(model, *arguments)
        assert relative_error(found, expected) < tolerance, function


def test_sines_are_right_for_all_angles(tmp_path):
    model = rbd_ros.load_urdf_string(PENDULUM)
    code = Library(package_files(model, ['gravity_torques']), tmp_path, 'pendulum', '-O3')
    quarters = np.arange(-9, 10) * np.pi / 4.0
    q = np.concatenate([quarters, np.nextafter(quarters, 9.0), np.linspace(-10, 10, 1001),
                        [1e5, -999999.5, 1e6, 1000001.0, 1e15, -1e300, 5e-324, np.nan, np.inf]])
    for one in (q, q[q < 1e6]):     # with and without angles beyond the range of the polynomials
        found, = code(trace(model, 'gravity_torques'), one[:, None])
        with np.errstate(invalid='ignore'):
            expected = -9.81 * np.cos(one)
        assert np.array_equal(np.isnan(found[:, 0]), np.isnan(expected))
        assert np.nanmax(np.abs(found[:, 0] - expected)) < 9.81 * SINES


def symbols(file, *options):
    """Return the kinds and names of the symbols of a compiled file."""
    lines = subprocess.run(['nm', *options, file], capture_output=True, text=True,
                           check=True).stdout.splitlines()
    return [line.partition('@')[0].split()[-2:] for line in lines]


def test_code_has_no_mutable_state(tmp_path):
    model = load_quietly(example_urdf('panda.urdf'))
    name = write(package_files(model, ['forward_dynamics', 'friction_torques']), tmp_path)
    subprocess.run(['cc', '-O2', '-c', f'{name}.c'], cwd=tmp_path, check=True)
    found = symbols(tmp_path / f'{name}.o')
    # Text and constants only; d: constants with addresses, which the loader writes once.
    assert {kind for kind, _ in found if kind != 'U'} <= {'t', 'T', 'r', 'R', 'D'}
    assert [name for kind, name in found if kind == 'D'] == [
        'panda_position_names', 'panda_velocity_names']
    assert {name for kind, name in found if kind == 'U'} <= CALLED


def test_functions_call_only_libm_and_never_allocate(arm_and_code):
    _, _, file, graphs = arm_and_code
    found = symbols(file, '-D')
    assert {f'arm_{graph.name}' for graph in graphs} <= {
        name for kind, name in found if kind == 'T'}
    assert {'sin'} < {name for kind, name in found if kind == 'U'} <= CALLED


def test_same_input_gives_same_bytes():
    program = ('import hashlib, rbd_ros; from rbd_ros.codegen import package_files; files = '
               'package_files(rbd_ros.load_urdf("urdf/demo_arm.urdf"), ["all_terms"]); print('
               'hashlib.sha256((files["demo_arm_dynamics.c"] + files["README.md"]).encode())'
               '.hexdigest())')
    files = package_files(arm(), ['all_terms'])
    assert files == package_files(arm(), ['all_terms'])
    digest = hashlib.sha256((files['demo_arm_dynamics.c'] + files['README.md']).encode())
    # Another process, in which sets have another order and kernels are interpreted.
    found = subprocess.run([sys.executable, '-c', program], capture_output=True, text=True,
                           check=True, env={**os.environ, 'PYTHONHASHSEED': '7',
                                            'NUMBA_DISABLE_JIT': '1'})
    assert found.stdout.strip() == digest.hexdigest()


def test_special_characters_in_names_are_escaped(tmp_path):
    text = PENDULUM.replace('"pendulum"', '"9 */ &quot;rôbot&quot;"').replace(
        '"hinge"', '"a&quot;b\\\\ ??/ é"')
    files = package_files(rbd_ros.load_urdf_string(text), ['gravity_torques'])
    assert 'robot_9_r_bot_dynamics.h' in files
    files['test_robot_9_r_bot_dynamics.c'] = files['test_robot_9_r_bot_dynamics.c'].replace(
        'return failures', 'puts(robot_9_r_bot_velocity_names[0]); return failures')
    for compiler in COMPILERS:
        assert run_test(files, tmp_path, compiler, *STRICT) == (
            '0 differences\na"b\\\\ ??/ é\n')


@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
def test_a_robot_that_does_not_move_and_a_missing_option_are_refused():
    with pytest.raises(rbd_ros.ModelError, match='no joint that moves'):
        package_files(rbd_ros.load_urdf_string('<robot name="x"><link name="a"/></robot>'),
                      ['inverse_dynamics'])
    with pytest.raises(rbd_ros.ModelError, match='jacobian needs the option link'):
        package_files(arm(), ['jacobian'])


@pytest.mark.long
@pytest.mark.skipif(not shutil.which('arm-none-eabi-gcc'), reason='needs arm-none-eabi-gcc')
def test_float_code_compiles_for_a_microcontroller(tmp_path):
    name = write(package_files(arm(), ['inverse_dynamics'], single=True), tmp_path)
    subprocess.run(['arm-none-eabi-gcc', '-std=c99', *STRICT, '-O2', '-mcpu=cortex-m7', '-mthumb',
                    '-mfpu=fpv5-sp-d16', '-mfloat-abi=hard', '-c', f'{name}.c'], cwd=tmp_path,
                   check=True)
    symbols = subprocess.run(['nm', f'{name}.o'], cwd=tmp_path, capture_output=True, text=True,
                             check=True).stdout
    # No arithmetic of doubles in software.
    assert '__aeabi_d' not in symbols
