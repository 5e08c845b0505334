# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Run parts of the benchmark one after the other, and write the report.

All parts take a quarter of an hour. With ``--quick`` only those that show the speed of kernels are
run, with few rounds, in two minutes; their tables are printed, and the report does not change.

"""

from importlib.util import find_spec
import os
import shutil
import subprocess
import sys
from time import monotonic

from timing import HERE, options

# Scripts, in the order in which they run: first those that suffer most from a warm machine.
PARTS = ('library', 'single_calls', 'functions', 'growth', 'closed_loops', 'batch', 'batch_sizes',
         'limit', 'loaded', 'generated', 'in_jax', 'with_casadi', 'retiming', 'node',
         'start', 'fleet')
OF_KERNELS = ('library', 'closed_loops', 'batch', 'limit')
# Programs and packages without which a part is left out.
PROGRAMS = {'limit': 'cc', 'loaded': 'cc', 'generated': 'gcc'}
PACKAGES = {'in_jax': 'jax', 'retiming': 'toppra'}
# Plain Python processes: threads of BLAS would only get into each other's way.
ENVIRONMENT = {**os.environ, 'OPENBLAS_NUM_THREADS': '1'}


def missing(part):
    """Return what a part needs and this machine lacks, or None."""
    program, package = PROGRAMS.get(part), PACKAGES.get(part)
    if program and not shutil.which(program):
        return program
    return package if package and not find_spec(package) else None


def main():
    """Run the parts and print how long they take."""
    parser = options(__doc__)
    parser.add_argument('parts', nargs='*', metavar='part', help=', '.join(PARTS))
    given = parser.parse_args()
    if unknown := [part for part in given.parts if part not in PARTS]:
        parser.error(f"there is no part '{unknown[0]}', only {', '.join(PARTS)}")
    parts = given.parts or (OF_KERNELS if given.quick else PARTS)
    flags, begin = ['--quick'] if given.quick else [], monotonic()
    for number, part in enumerate(parts, 1):
        if lacking := missing(part):
            print(f'[{number}/{len(parts)}] {part} is left out: it needs {lacking}', flush=True)
            continue
        start = monotonic()
        print(f'[{number}/{len(parts)}] {part}', flush=True)
        subprocess.run([sys.executable, str(HERE / f'{part}.py'), *flags], check=True,
                       env=ENVIRONMENT)
        print(f'[{number}/{len(parts)}] {part}: {monotonic() - start:.0f} s; '
              f'{(monotonic() - begin) / 60.0:.1f} min in all', flush=True)
    subprocess.run([sys.executable, str(HERE / 'report.py'), *flags], check=True)


if __name__ == '__main__':
    main()
