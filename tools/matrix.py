# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Run the tests of the library with the oldest and the newest supported packages.

`make matrix` does so on every Python from 3.10 found on the path or in pyenv, each with the oldest
numba, NumPy and SciPy that have wheels for it, and with the newest; `MATRIX_ARGS=ends` takes only
the oldest and the newest combination of all, `oldest` the former alone. `bare` runs the tests of
the library and of the nodes on this Python with ROS and without numba: the C compiler compiles.
Environments and test outputs are in build/matrix.

"""

import argparse
import os
from pathlib import Path
import shutil
import subprocess
import sys
from time import monotonic
from typing import NamedTuple

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'build' / 'matrix'
MESSAGES = ROOT / 'build' / 'messages-kilted'
PACKAGES = ('numba', 'numpy', 'scipy')
# The oldest PACKAGES by Python's minor version; setup.py has the oldest of all.
OLDEST = {10: ('0.58', '1.26', '1.11'), 11: ('0.58', '1.26', '1.11'), 12: ('0.59', '1.26', '1.11'),
          13: ('0.61', '2.1', '1.14'), 14: ('0.63', '2.3', '1.16')}
# Tests without ROS or a browser, and not about the files of the repository
TESTS = ('test', '--ignore=test/ros', '--ignore=test/docs', '--ignore=test/view',
         '--ignore=test/cli/test_doctor.py')
# Tests most likely to be broken by other packages: kernels, and calls of LAPACK
QUICK = ('test/dynamics/test_identities.py', 'test/dynamics/test_closed_forms.py',
         'test/identification/test_physical_consistency.py', 'test/kernels/test_lanes.py',
         'test/kernels/test_sines.py')
# What is there without numba, besides ROS; and what tests need.
BARE = ('numpy', 'scipy', 'lxml', 'urdfdom_py', 'pyyaml')
FOR_TESTS = ('pytest', 'pytest-xdist', 'hypothesis', 'psutil', 'pin', 'example-robot-data')
NOT_LONG = ('-m', 'not long')
# Methods wait for machine code, so that it is what tests of the library try; those of the code
# itself decide when it is ready, and nodes go on without it.
WAIT, OF_CODE = ('-p', 'waiting'), ('test/codegen', 'test/kernels')
WITHOUT_NUMBA = ((*NOT_LONG, *WAIT, *TESTS, *(f'--ignore={folder}' for folder in OF_CODE)),
                 (*NOT_LONG, *OF_CODE, 'test/ros'))
# All quantities, identities in every way in which kernels run, and nodes; nothing in real time, as
# other jobs share the machine.
QUICK_WITHOUT_NUMBA = (
    (*NOT_LONG, 'test/codegen/test_methods.py', 'test/kernels/test_ways.py',
     'test/ros/runtime/test_node_without_numba.py', 'test/ros/nodes/test_node_machine.py'),
    (*NOT_LONG, *WAIT, 'test/dynamics/test_closed_forms.py'))


class Place(NamedTuple):
    """A Python, and whether it gets the oldest packages, the newest, or few."""

    minor: int
    python: str
    age: str


class Row(NamedTuple):
    """The result of the tests in a place."""

    python: str
    age: str
    versions: tuple[str, ...]
    result: str
    seconds: float
    passed: bool


def interpreters() -> dict[int, str]:
    """Return the Python programs that can make an environment, by minor version."""
    found: dict[int, str] = {}
    versions = Path(os.environ.get('PYENV_ROOT', Path.home() / '.pyenv')) / 'versions'
    for minor in OLDEST:
        named = shutil.which(f'python3.{minor}')
        for program in (named, *sorted(map(str, versions.glob(f'3.{minor}.*/bin/python')))):
            # A shim of pyenv may exist without its Python.
            check = f'import ensurepip, sys, venv; sys.exit(sys.version_info[:2] != (3, {minor}))'
            if program and not subprocess.run([program, '-c', check], check=False,
                                              capture_output=True).returncode:
                found.setdefault(minor, program)
    return found


def places(which: str) -> list[Place]:
    """Return the places where the tests run."""
    if which == 'bare':
        return [Place(sys.version_info.minor, sys.executable, which)]
    found = interpreters()
    every = [Place(minor, python, age) for minor, python in found.items()
             for age in ('oldest', 'newest')]
    if not every:
        raise SystemExit('no Python 3.10 or newer that can make environments is here: '
                         'sudo apt install python3-venv')
    return {'all': every, 'ends': [every[0], every[-1]], 'oldest': every[:1]}[which]


def run(command: list[str], log: Path) -> int:
    """Run a command in the root folder with its output in a file; return its exit code."""
    hidden = ('PYTEST_ADDOPTS', 'AMENT_PREFIX_PATH', 'RBD_ROS_KERNELS')
    environment = {name: x for name, x in os.environ.items() if name not in hidden}
    environment['PYTHONPATH'] = str(ROOT / 'test' / 'rigs')     # plugins of pytest
    with log.open('a', encoding='utf-8') as file:
        return subprocess.run(command, cwd=ROOT, env=environment, stdout=file, check=False,
                              stderr=subprocess.STDOUT).returncode


def install(place: Place, folder: Path, log: Path, quick: bool) -> bool:
    """Create the environment of a place, for few tests or all; return whether that succeeded."""
    pip = [str(folder / 'bin' / 'pip'), '--disable-pip-version-check', '--quiet', 'install']
    # Builds leave files where the sources are, and `make` may build there at the same time.
    source = folder.with_name(f'{folder.name}-source')
    shutil.rmtree(source, ignore_errors=True)
    shutil.copytree(ROOT, source, symlinks=True, ignore=shutil.ignore_patterns(
        '.venv*', '.git', 'build', 'dist', 'log', '*.egg-info'))
    if place.age == 'bare':
        # The wheel that `make setup` built, if it is for this Python and not older than its
        # sources; it takes a minute.
        newest = max(path.stat().st_mtime for path in (ROOT / 'rbd_msgs').rglob('*'))
        messages = next((str(path) for path in MESSAGES.glob(f'*-cp3{place.minor}-*')
                         if path.stat().st_mtime > newest), f'{source}/rbd_msgs')
        needed = [*BARE, *FOR_TESTS] if quick else [f'{source}[test]']
        return not (run([place.python, '-m', 'venv', '--clear', str(folder)], log)
                    or run([*pip, '-r', 'requirements-ros-kilted.txt', *needed], log)
                    or run([*pip[:-1], 'uninstall', '--yes', 'numba', 'llvmlite'], log)
                    or run([*pip, '--no-deps', messages, str(source)], log))
    wanted = [f'{name}=={version}.*' if place.age == 'oldest' else name
              for name, version in zip(PACKAGES, OLDEST[place.minor])]
    needed = [str(source), *FOR_TESTS] if quick else [f'{source}[test]']
    # Pinocchio's wheels require NumPy 2, but run with 1.26: install the packages last.
    return not (run([place.python, '-m', 'venv', '--clear', str(folder)], log)
                or run([*pip, *needed], log)
                or run([*pip, '--only-binary', ':all:', '--upgrade', *wanted], log))


def try_out(place: Place, quick: bool, *tests: tuple[str, ...]) -> Row:
    """Run tests in a place, those of each tuple by themselves."""
    name = f'3.{place.minor}-{place.age}'
    folder, log, start = FOLDER / name, FOLDER / f'{name}.log', monotonic()
    log.unlink(missing_ok=True)
    print(f'Python 3.{place.minor}, {place.age} packages: see {log.relative_to(ROOT)}', flush=True)
    if not install(place, folder, log, quick):
        print(*log.read_text(encoding='utf-8').splitlines()[-10:], sep='\n')
        return Row(f'3.{place.minor}', place.age, ('-',) * len(PACKAGES), 'not installed',
                   monotonic() - start, False)
    python = str(folder / 'bin' / 'python')
    asked = ('import importlib.metadata as m; there = {one.name for one in m.distributions()}; '
             f'print(*(m.version(x) if x in there else "-" for x in {PACKAGES}))')
    versions = subprocess.run([python, '-c', asked], check=True, capture_output=True,
                              text=True).stdout.split()
    codes, results = [], []
    for some in tests:
        codes.append(code := run([
            python, '-m', 'pytest', '-q', '-p', 'no:cacheprovider', '-n', '2', '--dist',
            'loadfile', f'--basetemp={FOLDER / "tmp"}', *some], log))
        lines = log.read_text(encoding='utf-8').splitlines()
        # A killed process prints no summary.
        results.append(lines[-1].strip('= ') if code >= 0 else f'ended by signal {-code}')
    if any(codes):
        print(*(line for line in lines if line.startswith(('FAILED', 'ERROR test', 'E  '))),
              sep='\n')
    return Row(f'3.{place.minor}', place.age, tuple(versions), '; '.join(results),
               monotonic() - start, not any(codes))


def main() -> None:
    """Test all places, print a table, and fail if one of them failed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().split('\n')[0])
    parser.add_argument('which', nargs='?', choices=('all', 'ends', 'oldest', 'bare'),
                        default='all')
    parser.add_argument('--quick', action='store_true', help='only what is most likely to break')
    given = parser.parse_args()
    FOLDER.mkdir(parents=True, exist_ok=True)
    if given.which == 'bare':
        tests = QUICK_WITHOUT_NUMBA if given.quick else WITHOUT_NUMBA
    else:
        tests = (QUICK if given.quick else TESTS,)
    rows = [try_out(place, given.quick, *tests) for place in places(given.which)]
    form = '{:7s} {:7s} {:8s} {:8s} {:8s} {:>6s}  {}'
    print(form.format('Python', '', *PACKAGES, 's', 'tests'))
    for row in rows:
        print(form.format(row.python, row.age, *row.versions, f'{row.seconds:.0f}', row.result))
    sys.exit(not all(row.passed for row in rows))


if __name__ == '__main__':
    main()
