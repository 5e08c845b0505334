# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time generated C on one core, next to Pinocchio's C++ compiled with the same options.

Pinocchio's headers are in its wheel; ``--eigen`` names the folder with those of Eigen, such as
casadi/include/eigen3 of CasADi's wheel. Compiling them takes minutes; the program is kept, and
later runs use it. Both programs run by turns. The times to compile our code with ``gcc -O2``, and
its size on a Cortex-M7 in float, are measured, too.

"""

import os
from pathlib import Path
import shutil
import subprocess
from tempfile import TemporaryDirectory

import numpy as np
import pinocchio as pin
from rbd_ros.codegen import package_files
from robots import robots
from timing import MEASURED, one_core, options, save
from with_pinocchio import build

HERE = Path(__file__).resolve().parent
LABELS = ('UR5', 'Panda', 'Talos')
FUNCTIONS = ('inverse_dynamics', 'forward_dynamics', 'inverse_dynamics_derivatives',
             'forward_dynamics_derivatives')
FAST = ('-O3', '-march=native')
# What Pinocchio's own build passes.
PINOCCHIO = ('-std=c++17', '-DNDEBUG', '-DBOOST_MPL_LIMIT_LIST_SIZE=30',
             '-DBOOST_MPL_LIMIT_VECTOR_SIZE=30', '-DBOOST_MPL_CFG_NO_PREPROCESSED_HEADERS',
             '-DBOOST_FUSION_INVOKE_MAX_ARITY=12')
CORTEX_M7 = ('-mcpu=cortex-m7', '-mthumb', '-mfpu=fpv5-sp-d16', '-mfloat-abi=hard')
PROGRAM = MEASURED / f'pinocchio-{pin.__version__}'
TURNS = {False: 5, True: 1}     # by whether quick


def described(model):
    """Return a robot of Pinocchio as `pinocchio_timing.cpp` reads it."""
    lines = [str(model.njoints - 1)]
    for k in range(1, model.njoints):
        joint, T, body = model.joints[k], model.jointPlacements[k], model.inertias[k]
        kind = joint.shortname()
        axis = joint.extract().axis if 'Unaligned' in kind else np.zeros(3)
        # Joints without limits have sine and cosine as coordinates: an angle takes as long.
        kind = kind.replace('RUB', 'R').replace('RevoluteUnboundedUnaligned', 'RevoluteUnaligned')
        numbers = np.concatenate((T.rotation.ravel(), T.translation, [body.mass], body.lever,
                                  body.inertia.ravel()))
        lines.append(f'{model.parents[k]} {kind} ' + ' '.join(
            repr(float(x)) for x in (*axis, *numbers)))
    return '\n'.join(lines)


def compile_pinocchio(eigen):
    """Make the program that times Pinocchio."""
    prefix = next(path for path in Path(pin.__file__).parents if path.name == 'cmeel.prefix')
    PROGRAM.parent.mkdir(parents=True, exist_ok=True)
    libraries = prefix / 'lib'
    subprocess.run(['g++', *FAST, *PINOCCHIO, f'-I{prefix / "include"}', f'-I{eigen}',
                    str(HERE / 'pinocchio_timing.cpp'), '-o', str(PROGRAM), f'-L{libraries}',
                    '-lpinocchio_default', f'-Wl,-rpath,{libraries}',
                    '-Wl,--allow-shlib-undefined'], check=True)


def times(program, text=''):
    """Run a program and return the times that it prints, ns."""
    return np.array(subprocess.run([program], input=text, capture_output=True, text=True,
                                   check=True).stdout.split(), float)


def write(model, folder, functions=FUNCTIONS, **more):
    """Write the code of a robot."""
    for name, text in package_files(model, functions, prefix='timed', **more).items():
        Path(folder, name).write_text(text)
    return str(Path(folder, 'timed_dynamics.c'))


def measure(robot, folder, pinocchio, quick=False):
    """Return times of both, ns, to compile ours, s of the processor, and its size, bytes."""
    source, program = write(robot.model, folder), Path(folder, 'ours')
    before = os.times().children_user
    subprocess.run(['gcc', '-O2', '-c', source, '-o', str(Path(folder, 'slow.o'))], check=True)
    found = {'compile': os.times().children_user - before}
    subprocess.run(['gcc', *FAST, source, str(HERE / 'generated_timing.c'), f'-I{folder}', '-o',
                    str(program), '-lm'], check=True)
    theirs = described(build(robot)[0])
    turns = [(times(program), times(pinocchio, theirs) if pinocchio else None)
             for _ in range(TURNS[quick])]
    found['ours'] = np.min([ours for ours, _ in turns], axis=0).tolist()
    if pinocchio:
        found['Pinocchio'] = np.min([other for _, other in turns], axis=0).tolist()
    if shutil.which('arm-none-eabi-gcc'):
        small = Path(folder, 'small.o')
        subprocess.run(['arm-none-eabi-gcc', '-O2', *CORTEX_M7, '-c',
                        write(robot.model, folder, FUNCTIONS[:1], single=True), '-o', str(small)],
                       check=True)
        found['Cortex-M7'] = int(subprocess.run(
            ['size', str(small)], capture_output=True, text=True, check=True
        ).stdout.split('\n')[1].split()[0])
    return found


def main():
    """Measure, print and save."""
    parser = options(__doc__)
    parser.add_argument('--eigen', help="folder of Eigen's headers, to compile Pinocchio")
    given = parser.parse_args()
    results = {}
    with TemporaryDirectory() as folder, one_core():
        if given.eigen:
            compile_pinocchio(given.eigen)
        pinocchio = PROGRAM if PROGRAM.exists() else None
        for robot in robots():
            if robot.label in LABELS:
                results[robot.label] = found = measure(robot, folder, pinocchio, given.quick)
                print(robot.label, {name: np.round(x, 1).tolist() for name, x in found.items()})
    save('generated', given.quick, {'functions': FUNCTIONS, 'robots': results})


if __name__ == '__main__':
    main()
