# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The container and links of colcon: consistent files, and kernels that work for all users."""

import os
from pathlib import Path
import re
import shlex
import shutil
import subprocess
import sys
import sysconfig
import tempfile
from xml.etree import ElementTree

import pytest
from rbd_ros.cli.main import main
from rbd_ros.kernels.jit.kernel_cache import cache_directory
import yaml

ROOT = Path(__file__).parents[2]
# Instructions of the Dockerfile: keyword and arguments.
IMAGE = [line.split(maxsplit=1) for line in re.sub(
    r'^#.*\n', '', (ROOT / 'docker/Dockerfile').read_text(), flags=re.MULTILINE).replace(
        '\\\n', ' ').splitlines() if line]
SETTINGS = dict(part.split('=') for word, rest in IMAGE if word == 'ENV'
                for part in shlex.split(rest))
# A user id without an account.
NOBODY = 54321
# Code run by another user; modules below the interpreter's prefix are imported before.
AS_USER = """
import os, sys
import graphlib, lxml.etree, numba, numpy as np, queue, scipy.linalg, shlex, urdf_parser_py.urdf
numba.njit(lambda x: x[0] + 1.0)(np.ones(1))
os.setuid(int(sys.argv[1]))
os.chdir('/')
"""
WARMUP = AS_USER + """
from rbd_ros.cli.main import main
sys.exit(main(['warmup']))
"""
GRAVITY = AS_USER + """
import rbd_ros
arm = rbd_ros.load_urdf_string(sys.argv[2])
rbd_ros.gravity_torques(arm, np.ones(arm.nq))
"""
# A kernel on a processor other than this one.
KERNEL = """
import sys
from llvmlite import binding
if sys.argv[1]:
    binding.get_host_cpu_name = lambda: sys.argv[1]
    binding.get_host_cpu_features = lambda: binding.targets.FeatureMap(sse2=True)
import numpy as np, rbd_ros
from rbd_ros.kernels.newton_euler import newton_euler_at_rest
arm = rbd_ros.load_urdf({urdf!r})
print(rbd_ros.gravity_torques(arm, np.ones(arm.nq)).tolist(),
      'loaded' if newton_euler_at_rest.stats.cache_hits else 'compiled')
"""


def instruction(word):
    """Return the arguments of the only instruction with a keyword."""
    rest, = (rest for found, rest in IMAGE if found == word)
    return rest


def programs():
    return re.findall(r"'(\w+) = rbd_ros\.", (ROOT / 'setup.py').read_text())


def test_keys_skipped_by_rosdep_are_dependencies_of_the_package():
    left_out, = (re.search(r"--skip-keys='([^']*)'", rest) for _, rest in IMAGE
                 if '--skip-keys' in rest)
    named = {one.text for one in ElementTree.parse(ROOT / 'package.xml').findall('exec_depend')}
    assert set(left_out[1].split()) <= named


def test_image_compose_file_and_page_grant_the_same_few_rights():
    assert int(instruction('USER')) > 0
    prefix = Path(SETTINGS['NUMBA_CACHE_DIR']).parent
    assert yaml.safe_load(instruction('ENTRYPOINT')) == [str(prefix / 'entrypoint.sh')]
    assert ['RUN', f'/src/rbd_ros/docker/install.sh {prefix}'] in IMAGE
    service, = yaml.safe_load((ROOT / 'docker/compose.yaml').read_text())['services'].values()
    for command in (service['command'], yaml.safe_load(instruction('CMD'))):
        assert command[0] in programs()
    assert (ROOT / 'docker' / service['build']['context'] / service['build']['dockerfile']
            ).is_file()
    assert service['read_only'] is True and service['cap_drop'] == ['ALL']
    written, = service['tmpfs']
    assert SETTINGS['ROS_LOG_DIR'].startswith(written.partition(':')[0] + '/')
    page = (ROOT / 'doc/container.md').read_text()
    rights = [option for option in shlex.split(re.search(r'^docker run (.*)$', page,
                                                         re.MULTILINE)[1])
              if option != '--rm'][:-1]
    assert rights == ['--read-only', '--tmpfs', written, '--network', service['network_mode'],
                      '--cap-drop', *service['cap_drop'], '--security-opt',
                      service['security_opt'][0].partition(':')[0]]


@pytest.fixture
def folder():
    """Return a folder that other users can read, unlike those of pytest."""
    with tempfile.TemporaryDirectory() as folder:
        os.chmod(folder, 0o755)
        yield Path(folder)


def warm_cache(folder):
    """Return a kernel cache for this processor, with all kernels."""
    assert main(['warmup']) == 0
    cache, here = folder / 'cache', cache_directory()
    shutil.copytree(here, cache / 'rbd_ros' / here.name, copy_function=shutil.copy)
    (cache / 'rbd_ros').chmod(0o755)
    return cache


def run(code, *arguments, **settings):
    """Run Python as in a container; return its standard output and standard error."""
    kept = {name: value for name, value in os.environ.items()
            if name not in ('XDG_CACHE_HOME', 'NUMBA_CACHE_DIR', 'NUMBA_CPU_NAME')}
    result = subprocess.run(
        [sys.executable, '-c', code, *arguments], capture_output=True, text=True, check=False,
        env={**kept, 'HOME': '/nonexistent', **{name: str(value)
                                                for name, value in settings.items()}})
    assert result.returncode == 0, result.stderr
    return result.stdout, result.stderr


@pytest.mark.long
def test_the_script_of_the_image_installs_its_programs_and_files(folder):
    """Run docker/install.sh on the build context, in this environment instead of Ubuntu's."""
    seen = folder / 'seen'
    for name in re.findall(r'^!(\S+)$', (ROOT / 'docker/Dockerfile.dockerignore').read_text(),
                           re.MULTILINE):
        copy = shutil.copytree if (ROOT / name).is_dir() else shutil.copy
        seen.mkdir(exist_ok=True)
        copy(ROOT / name, seen / name)
    # The messages take minutes, and `make colcon` builds them.
    (seen / 'rbd_msgs/COLCON_IGNORE').touch()
    environment = {name: text for name, text in os.environ.items()
                   if name not in ('ROS_DISTRO', 'AMENT_PREFIX_PATH', 'VIRTUAL_ENV')}
    environment.update(PATH=f'{Path(sys.executable).parent}:{os.environ["PATH"]}',
                       PYTHONPATH=sysconfig.get_path('purelib'),
                       NUMBA_CACHE_DIR=str(warm_cache(folder)))
    image = folder / 'image'
    result = subprocess.run([seen / 'docker/install.sh', image], env=environment, check=False,
                            capture_output=True, text=True)
    assert result.returncode == 0, result.stdout + result.stderr
    # Programs run in the Python with numba, and the files are installed.
    installed = subprocess.run(
        [image / 'entrypoint.sh', 'bash', '-c',
         'head --lines 1 "$(command -v dynamics_node)"; python3 -c "import sys; '
         'print(sys.prefix)"; cd "$(dirname "$0")" && find install/share/rbd_ros -type f',
         image / 'entrypoint.sh'],
        env=environment, check=True, capture_output=True, text=True).stdout.splitlines()
    assert installed[:2] == ['#!/usr/bin/env python3', str(image / 'venv')]
    kept = subprocess.run(['git', 'ls-files', 'config', 'launch', 'urdf', 'package.xml'], cwd=ROOT,
                          check=True, capture_output=True, text=True).stdout.split()
    assert {f'install/share/rbd_ros/{name}' for name in kept} <= set(installed)


def test_kernels_of_the_image_work_for_a_user_without_home_and_write_access(folder):
    # As docker/install.sh does, but for this processor.
    cache = warm_cache(folder)
    for path in (*cache.rglob('*'), cache):
        path.chmod(0o555 if path.is_dir() else 0o444)
    before = {path: path.stat().st_mtime_ns for path in folder.rglob('*')}
    user = str(os.geteuid() or NOBODY)
    out, said = run(WARMUP, user, NUMBA_CACHE_DIR=cache)
    assert said.replace('rbd_ros warmup: still working\n', '') == '' and str(cache) in out
    assert {path: path.stat().st_mtime_ns for path in folder.rglob('*')} == before
    # A missing kernel would be reported.
    for missing in cache.rglob('newton_euler.newton_euler_at_rest-*'):
        missing.parent.chmod(0o755)
        missing.unlink()
        missing.parent.chmod(0o555)
    _, said = run(GRAVITY, user, (ROOT / 'urdf/demo_arm.urdf').read_text(), NUMBA_CACHE_DIR=cache)
    assert 'compiled kernels are not kept' in said


@pytest.mark.long
def test_kernels_of_the_image_run_on_other_processors_than_the_one_it_was_built_on(folder):
    code = KERNEL.format(urdf=str(ROOT / 'urdf/demo_arm.urdf'))
    settings = {**SETTINGS, 'NUMBA_CACHE_DIR': folder}
    torques, how = run(code, '', **settings)[0].rsplit(maxsplit=1)
    assert how == 'compiled'
    assert run(code, 'nehalem', **settings) == (f'{torques} loaded\n', '')


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
