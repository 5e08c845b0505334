# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Test the wheel in dist without ROS, as installed by `pip install rbd_ros`.

`make dist` does so: in a separate environment, build/wheel, the library computes the first torque
of the documentation, the command answers, and every node names its requirements in one line.

"""

import os
from pathlib import Path
import re
import subprocess
import sys
import tarfile
from tempfile import TemporaryDirectory
from xml.etree import ElementTree
import zipfile

ROOT = Path(__file__).resolve().parents[1]
FOLDER = ROOT / 'build' / 'wheel'
NODES = ('dynamics_node', 'simulated_robot', 'torque_controller', 'mujoco_robot', 'viewer')
GUIDE = ROOT / 'doc' / 'getting_started_library.md'
# Variables through which this environment would see another one.
HIDDEN = ('PYTHONPATH', 'AMENT_PREFIX_PATH', 'LD_LIBRARY_PATH')


def run(*command: object, folder: Path = FOLDER) -> subprocess.CompletedProcess[str]:
    """Run a program in a folder and return the finished process."""
    env = {name: x for name, x in os.environ.items() if name not in HIDDEN}
    return subprocess.run([str(x) for x in command], cwd=folder, env=env, check=False,
                          capture_output=True, text=True)


def expect(fine: object, what: str) -> None:
    """Exit if a condition does not hold; otherwise print it."""
    if not fine:
        raise SystemExit(f'not so: {what}')
    print(f'  {what}')


def check_content(wheel: Path, sdist: Path) -> None:
    """Check that both archives contain every file of the package and of its data."""
    kept = subprocess.run(['git', 'ls-files', 'rbd_ros', 'config', 'launch', 'urdf'], cwd=ROOT,
                          check=True, capture_output=True, text=True).stdout.split()
    with tarfile.open(sdist) as archive:
        inside = {name.partition('/')[2] for name in archive.getnames()}
    expect(set(kept) <= inside, f'the sdist has all {len(kept)} files')
    with zipfile.ZipFile(wheel) as archive:
        inside = {re.sub(r'^[^/]*\.data/data/share/rbd_ros/', '', name)
                  for name in archive.namelist()}
    expect(set(kept) <= inside, 'so has the wheel')


def check_torque(python: Path) -> None:
    """Check that the first torques of the guide are those that it prints."""
    code, printed = re.search(r'## The first torque.*?```python\n(.*?)```\n\n((?:    [^\n]*\n)+)',
                              GUIDE.read_text(encoding='utf-8'), re.DOTALL).groups()
    with TemporaryDirectory() as folder:
        Path(folder, 'urdf').symlink_to(FOLDER / 'share' / 'rbd_ros' / 'urdf')
        found = run(python, '-c', code, folder=Path(folder))
    expected = [line.removeprefix('    ') for line in printed.splitlines()]
    expect(found.stdout.splitlines() == expected and not found.stderr,
           f'the first torques are those of {GUIDE.relative_to(ROOT)}')


def main() -> None:
    """Install the wheel and test it."""
    wheel, = (ROOT / 'dist').glob('rbd_ros-*.whl')
    sdist, = (ROOT / 'dist').glob('rbd_ros-*.tar.gz')
    version = ElementTree.parse(ROOT / 'package.xml').findtext('version')
    expect(wheel.name.split('-')[1] == version, f'{wheel.name} has the version of package.xml')
    check_content(wheel, sdist)
    subprocess.run([sys.executable, '-m', 'venv', '--clear', str(FOLDER)], check=True)
    programs = FOLDER / 'bin'
    installed = run(programs / 'pip', '--disable-pip-version-check', 'install', wheel)
    expect(not installed.returncode, 'pip installs it')
    expect(run(programs / 'python', '-c', 'import rclpy').returncode, 'there is no ROS')
    expect(run(programs / 'rbd_ros', '--version').stdout.strip() == version,
           'rbd_ros --version answers')
    expect('identify' in run(programs / 'rbd_ros', '--help').stdout, 'rbd_ros --help answers')
    check_torque(programs / 'python')
    for node, command in {**{node: [programs / node] for node in NODES},
                          'demo': [programs / 'python', '-m', 'rbd_ros.ros.demo']}.items():
        tried = run(*command)
        lines = tried.stderr.splitlines()
        expect(tried.returncode == 1 and len(lines) == 1 and lines[0].startswith(f'{node}: ')
               and 'ROS 2 and rbd_msgs' in lines[0], f'{node} says what it needs')


if __name__ == '__main__':
    main()
