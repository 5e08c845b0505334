# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Build a ROS workspace by the commands that doc/getting_started_ros.md gives, as typed there.

`make colcon` does so in build/workspace and checks the result. Programs that need Ubuntu or a
network are replaced: `git` links this repository, `rosdep` and `ros2` log their arguments.
Ubuntu's packages are replaced by those of the current environment, except for numba, which Ubuntu
lacks, and the packages built here.

"""

import argparse
import os
from pathlib import Path
import re
import shutil
import subprocess
import sys
import sysconfig

ROOT = Path(__file__).resolve().parents[1]
PAGE = ROOT / 'doc/getting_started_ros.md'
HEAD = '## On an installed ROS 2'
# Not available from apt.
LEFT_OUT = ('numba', 'llvmlite', 'rbd_ros', 'rbd_msgs')
NOTE = '#!/bin/sh\necho "$@" >> "$ASKED/$(basename "$0")"\n'
PROGRAMS = {'rosdep': NOTE, 'ros2': NOTE,
            'git': f'{NOTE}[ "$1" = clone ] && exec ln -s "$REPOSITORY" "$3"\n'}
# State after the last command of the page: what runs, and whether it is compiled.
CHECK = """
python3 - <<'END'
import rbd_ros, rbd_msgs.msg
from rbd_ros.kernels.jit.numba_backend import WAY
print(WAY, *(module.__file__ for module in (rbd_ros, rbd_msgs)), sep='\\n')
END
head --lines 1 install/rbd_ros/lib/rbd_ros/dynamics_node
install/rbd_ros/lib/rbd_ros/dynamics_node --help | grep usage
"""


def commands() -> str:
    """Return the commands of the page."""
    text = PAGE.read_text(encoding='utf-8').partition(HEAD)[2]
    block = re.search(r'```bash\n(.*?)```', text, re.DOTALL)
    assert block is not None, f'{PAGE} has no commands below "{HEAD}"'
    return block[1].replace('<this repository>', 'repository')


def prepare(folder: Path) -> dict[str, str]:
    """Imitate Ubuntu with ROS 2 in a folder; return the environment of a terminal there."""
    # Keep the earlier build; colcon rebuilds changed parts.
    for old in ('ubuntu', 'ws/src', 'ws/.venv'):
        shutil.rmtree(folder / old, ignore_errors=True)
    programs, packages, asked = (folder / 'ubuntu' / name for name in ('bin', 'python', 'asked'))
    for path in (programs, packages, asked):
        path.mkdir(parents=True)
    for name, text in PROGRAMS.items():
        (programs / name).write_text(text)
        (programs / name).chmod(0o755)
    (programs / 'python3').symlink_to(Path(sys.base_prefix) / 'bin' / 'python3')
    for path in Path(sysconfig.get_path('purelib')).iterdir():
        if path.suffix != '.pth' and not path.name.startswith(LEFT_OUT):
            (packages / path.name).symlink_to(path)
    # As set by setup.bash of ROS; LD_LIBRARY_PATH is already set.
    return {**os.environ, 'PATH': f'{programs}:{sys.prefix}/bin:{os.environ["PATH"]}',
            'PYTHONPATH': str(packages), 'AMENT_PREFIX_PATH': sys.prefix,
            'ASKED': str(asked), 'REPOSITORY': str(ROOT)}


def expect(fine: object, what: str) -> None:
    """Exit if a condition does not hold; otherwise print it."""
    if not fine:
        raise SystemExit(f'not so: {what}')
    print(f'  {what}')


def main() -> None:
    """Run the commands and check the results."""
    parser = argparse.ArgumentParser(description=__doc__.strip().split('\n')[0])
    parser.add_argument('folder', type=Path, help='where ws is made')
    folder = parser.parse_args().folder.absolute()
    environment, typed = prepare(folder), commands()
    print(typed, flush=True)
    without = subprocess.run(['python3', '-c', 'import rclpy, numpy; import numba'], check=False,
                             env=environment, cwd=folder, capture_output=True, text=True)
    expect(without.stderr.endswith("No module named 'numba'\n"), 'numba is missing, as on Ubuntu')
    done = subprocess.run(['bash', '-e', '-c', typed + CHECK], cwd=folder, env=environment,
                          check=False, stdout=subprocess.PIPE, text=True)
    print(done.stdout)
    expect(not done.returncode, 'the commands of the page do what they should')
    expect('Summary: 2 packages finished' in done.stdout, 'colcon finds and builds both packages')
    *_, way, library, messages = done.stdout.partition(
        '#!')[0].strip().splitlines()
    place = f'{folder}/ws'
    expect(way == 'cc', 'the C compiler compiles the dynamics')
    expect(all(path.startswith(f'{place}/install/') for path in (library, messages)),
           'programs use what was built')
    expect('#!/usr/bin/env python3\n' in done.stdout and 'usage: dynamics_node' in done.stdout,
           'nodes run in the Python of the terminal')
    asked = {path.name: path.read_text().splitlines()
             for path in (folder / 'ubuntu' / 'asked').iterdir()}
    expect(asked['rosdep'] == ['install --from-paths src --ignore-src'],
           'rosdep is asked for what both packages need')
    launched = {line.split()[:3][-1] for line in asked['ros2']}
    share = folder / 'ws' / 'install' / 'rbd_ros' / 'share' / 'rbd_ros' / 'launch'
    expect(launched and all((share / name).is_file() for name in launched),
           'what is launched was installed')


if __name__ == '__main__':
    main()
