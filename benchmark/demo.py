# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Measure how often the demo passes on a busy machine.

Some processes in endless loops keep the processors busy while the demo (`make demo HEADLESS=1`)
runs repeatedly. The exit code is 1 if a run fails.

"""

import argparse
import multiprocessing
import pathlib
import subprocess
import sys
from time import monotonic

# The Panda of example-robot-data, by its path, since importing that package needs Pinocchio.
PANDA = 'cmeel.prefix/share/example-robot-data/robots/panda_description/urdf/panda.urdf'


def count() -> None:
    """Keep a processor busy."""
    while True:
        pass


def panda() -> pathlib.Path:
    """Return the path of the Panda's URDF."""
    for folder in sys.path:
        path = pathlib.Path(folder) / PANDA
        if path.exists():
            return path
    raise SystemExit("The Panda is part of example-robot-data: pip install '.[bench]'")


def main() -> int:
    """Run the demo repeatedly, and count how often it passed."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--repeat', type=int, default=50, help='number of runs (default: 50)')
    parser.add_argument('--busy', type=int, default=3, help='busy processes (default: 3)')
    parser.add_argument('--urdf', type=pathlib.Path, help='the robot (default: the Panda)')
    options, others = parser.parse_known_args()
    command = [sys.executable, '-m', 'rbd_ros.ros.demo', '--headless', '--urdf',
               str(options.urdf or panda()), '--plot', 'build/demo.png', *others]
    pathlib.Path('build').mkdir(exist_ok=True)
    loops = [multiprocessing.Process(target=count, daemon=True) for _ in range(options.busy)]
    for loop in loops:
        loop.start()
    passed = 0
    for run in range(1, options.repeat + 1):
        begin = monotonic()
        demo = subprocess.run(command, capture_output=True, text=True)
        passed += demo.returncode == 0
        print(f'run {run} of {options.repeat}, {monotonic() - begin:.0f} s: '
              f'{"passed" if demo.returncode == 0 else "FAILED"}, {passed} of {run} so far',
              flush=True)
        # The last checks; the whole output if the demo failed.
        lines = demo.stdout.splitlines()
        print(*(f'    {line}' for line in (lines + demo.stderr.splitlines()
                                           if demo.returncode else lines[-4:-2])), sep='\n',
              flush=True)
    return int(passed < options.repeat)


if __name__ == '__main__':
    sys.exit(main())
