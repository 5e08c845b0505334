# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
``rbd_ros doctor``: check the installation.

Exit codes: 0, all is well (ROS and dependencies of single commands may be missing); 1, a
dependency of the library is missing; 2, it works, but with a problem.

"""

from __future__ import annotations

import argparse
from collections.abc import Iterator
from datetime import datetime, timezone
from importlib import import_module, metadata, util
import os
from pathlib import Path
import platform
import shlex
import subprocess
import sys
import time
from typing import NamedTuple

import rbd_ros
from rbd_ros._internal.text import listed, printable
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.numba_backend import (
    COMPILES, OBSTACLE, REQUIREMENT, RUN_AS, SLOW, VARIABLE, WAY)

# Needed modules, and the packages that contain them.
NEEDED = {'numpy': 'numpy', 'scipy': 'scipy', 'lxml': 'lxml', 'urdf_parser_py': 'urdfdom_py'}
# Optional dependencies and their purpose.
OPTIONAL = {
    'xacro': 'reads xacro files',
    'rich': 'shows the live table of the demo',
    'matplotlib': 'draws the plots of reports and of the demo',
}
# Message packages that the nodes import.
MESSAGES = ('builtin_interfaces', 'diagnostic_msgs', 'geometry_msgs', 'nav_msgs', 'rcl_interfaces',
            'sensor_msgs', 'std_msgs', 'std_srvs', 'visualization_msgs')
OK, MISSING, PROBLEM = 0, 1, 2
# Prints which RMW is loaded.
RMW = 'import rclpy.utilities as u; print(u.get_rmw_implementation_identifier())'
# Number and length, s, of the sleeps by which timing is tested.
PAUSES, PAUSE = 100, 1e-3


class Finding(NamedTuple):
    """A checked item, what was found, and how bad it is."""

    name: str
    text: str
    grade: int = OK


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add no option: everything is checked."""


def run(options: argparse.Namespace) -> int:
    """Print all findings, and return the exit code."""
    worst = OK
    for found in findings():
        mark = {OK: ' ', MISSING: '!', PROBLEM: '?'}[found.grade]
        print(f'{mark} {found.name:20s} {printable(found.text)}', flush=True)
        if found.grade != OK:
            worst = found.grade if worst == OK else min(worst, found.grade)
    print({OK: 'All is well.', MISSING: 'The library does not work: install what is marked with '
           '!.', PROBLEM: 'It works, with problems: see what is marked with ?.'}[worst])
    return worst


def findings() -> Iterator[Finding]:
    """Check everything, and yield the findings."""
    yield Finding('rbd_ros', f'{rbd_ros.__version__} in {Path(rbd_ros.__file__).parent}')
    yield Finding('python', f'{platform.python_version()} on {platform.platform()}, '
                            f'{os.cpu_count()} processors')
    for name, package in NEEDED.items():
        version, error = _load(name, package)
        yield Finding(name, version or f'{error}: pip install {package}',
                      OK if version else MISSING)
    yield from _compiler()
    for name, purpose in OPTIONAL.items():
        version, error = _load(name)
        absent = f'not installed; it {purpose}: pip install {name}'
        if version or not _is_installed(name):
            yield Finding(name, version or absent)
        else:
            yield Finding(name, error, PROBLEM)
    yield _kernels()
    yield from _ros()
    yield _clock()


def _is_installed(name: str) -> bool:
    try:
        return util.find_spec(name) is not None
    except (ImportError, ValueError):
        return False


def _load(name: str, package: str = '') -> tuple[str, str]:
    """Return the version of a module, or an error message if it cannot be imported."""
    try:
        module = import_module(name)
    except Exception as error:          # imports of shared libraries raise anything
        return '', f'cannot be loaded: {type(error).__name__}: {error}'
    version = getattr(module, '__version__', 'of unknown version')
    return _version(package or name) or str(version), ''


def _version(name: str) -> str:
    try:
        return metadata.version(name)
    except metadata.PackageNotFoundError:
        return ''


def _compiler() -> Iterator[Finding]:
    """Check numba and the C compiler, without either of which the library is slow."""
    chosen = os.environ.get(VARIABLE)
    yield Finding('dynamics', f'{RUN_AS[WAY]}{f" ({VARIABLE}={chosen})" if chosen else ""}')
    if COMPILES:
        yield from (Finding(name, _version(name)) for name in ('numba', 'llvmlite'))
    elif WAY == 'cc':
        from rbd_ros.kernels.jit.c_compiler import find_compiler, machine_code
        yield Finding('numba', OBSTACLE)
        try:
            found = find_compiler()
            machine_code(found, {'tried.c': 'int tried(void) { return 0; }\n'})
            yield Finding('C compiler', shlex.join(found.words))
        except RbdError as error:
            yield Finding('C compiler', str(error), PROBLEM)
    elif not chosen:
        yield Finding('numba', f'{OBSTACLE or "disabled"}: results are {SLOW}: apt install gcc, '
                      f'or pip install "{REQUIREMENT}"', PROBLEM if OBSTACLE else OK)


def _kernels() -> Finding:
    """Check the cache of compiled kernels, or of machine code."""
    if WAY == 'python':
        return Finding('kernels', 'interpreted, not compiled', PROBLEM if OBSTACLE else OK)
    from rbd_ros.kernels.jit.c_compiler import code_directory
    from rbd_ros.kernels.jit.kernel_cache import cache_directory, not_ours
    path = cache_directory() if COMPILES else code_directory(None).path
    if path is None:
        return Finding('kernels', 'compiled in every process, not cached: there is no home '
                       'directory; set XDG_CACHE_HOME', PROBLEM)
    if theirs := not_ours(path):
        return Finding('kernels', f'compiled in every process, not cached: others own {theirs} '
                       'or can write to it; remove it, or chmod go-w', PROBLEM)
    if not path.exists():
        above = next(parent for parent in path.parents if parent.exists())
        if not os.access(above, os.W_OK):
            return Finding('kernels', f'compiled in every process, not cached: {above} cannot be '
                           'written; set XDG_CACHE_HOME', PROBLEM)
        return Finding('kernels', f'not yet compiled, will be cached in {path}'
                       + ': rbd_ros warmup' * COMPILES)
    sizes = [file.stat().st_size for file in path.glob('*.kernel' if COMPILES else '*.code')]
    kept = f'{len(sizes)} in {path}, {sum(sizes) / 2 ** 20:.1f} MiB'
    if not os.access(path, os.W_OK):
        # As in a container image, which was built with all kernels.
        return Finding('kernels', f'{kept}; no more can be cached: it cannot be written',
                       OK if sizes else PROBLEM)
    return Finding('kernels', kept)


def _ros() -> Iterator[Finding]:
    if not _is_installed('rclpy'):
        yield Finding('ROS 2', 'not found; only the nodes need it: source its setup.bash, or '
                      "'make setup'")
        return
    # In a separate process: an RMW that cannot be loaded terminates it.
    tried = subprocess.run([sys.executable, '-c', RMW], capture_output=True, text=True,
                           check=False)
    name = tried.stdout.strip()
    complaint = (tried.stderr.strip().splitlines() or ['no message'])[-1]
    if name:
        yield Finding('rclpy', _version('rclpy') or 'of unknown version')
        yield Finding('RMW', name)
    else:
        yield Finding('rclpy', f'cannot be loaded: {complaint}', PROBLEM)
    yield Finding('environment', ', '.join(
        f'{name}={os.environ[name]}' for name in (
            'ROS_DISTRO', 'ROS_DOMAIN_ID', 'RMW_IMPLEMENTATION', 'ROS_AUTOMATIC_DISCOVERY_RANGE',
            'ROS_LOCALHOST_ONLY', 'ROS_SECURITY_ENABLE') if name in os.environ)
        or 'no ROS variables set: domain 0, without security')
    if absent := [name for name in MESSAGES if not _is_installed(name)]:
        yield Finding('messages', f'not found: {listed(absent)}; the nodes need them', PROBLEM)
    version, error = _load('rbd_msgs')
    if not version:
        yield Finding('rbd_msgs', f'{error}; the nodes need it: build the workspace with colcon, '
                      "or 'make setup'", PROBLEM)
    elif version[0].isdigit() and version != rbd_ros.__version__:
        yield Finding('rbd_msgs', f'{version}, but rbd_ros is {rbd_ros.__version__}: build both '
                      'from the same version', PROBLEM)
    else:
        yield Finding('rbd_msgs', version)


def _clock() -> Finding:
    """Check how late sleeps end, and the system time."""
    now = time.time()
    late = 0.0
    for _ in range(PAUSES):
        start = time.perf_counter()
        time.sleep(PAUSE)
        late = max(late, time.perf_counter() - start - PAUSE)
    text = (f'{datetime.fromtimestamp(now, timezone.utc):%Y-%m-%d %H:%M:%S} UTC; a sleep of '
            f'{1e3 * PAUSE:g} ms ends up to {1e3 * late:.2f} ms late')
    if now < Path(__file__).stat().st_mtime:
        return Finding('clock', f'{text}; it is earlier than the installation of this '
                       'program: set it', PROBLEM)
    return Finding('clock', text)
