# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Times of interleaved calls in one process, and storage of results."""

import argparse
from contextlib import contextmanager
import gc
from importlib import metadata
import json
import os
from pathlib import Path
import platform
import subprocess
from time import monotonic, perf_counter, sleep, strftime

import numpy as np

HERE = Path(__file__).resolve().parent
MEASURED = HERE.parent / 'build' / 'benchmark'
# s: long compared with filling caches, short compared with time slices of other processes
IN_A_ROW = 0.002
# A round counts if plain Python, before and after it, takes at most this times its best time.
DISTURBED = 1.2
# s, limit of all waits for a calm machine in a part of the benchmark
CALM_WITHIN = 30.0
PACKAGES = ('numpy', 'numba', 'pin', 'mujoco', 'drake', 'rclpy')
BEGIN = monotonic()
# Otherwise idle threads of Pinocchio, imported later, would spin on processors that others need.
os.environ.setdefault('OMP_WAIT_POLICY', 'passive')


def options(description):
    """Return a parser of the command line with ``--quick``."""
    parser = argparse.ArgumentParser(description=description.strip().replace('``', ''),
                                     formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument('--quick', action='store_true', help='few rounds; results are kept apart')
    return parser


@contextmanager
def one_core():
    """Keep this process on one core, the last allowed one."""
    if not hasattr(os, 'sched_setaffinity'):
        yield
        return
    allowed = os.sched_getaffinity(0)
    os.sched_setaffinity(0, {max(allowed)})
    try:
        yield
    finally:
        os.sched_setaffinity(0, allowed)


class Gauge:
    """The speed of the machine: shared ones run at half speed for minutes."""

    def __init__(self):
        self.best, self.rounds, self.left_out = np.inf, 0, 0
        self._patience = CALM_WITHIN
        # Longest reading among the rounds counted last
        self.slowest = 0.0

    def read(self):
        """Return the duration of a piece of plain Python, s."""
        start = perf_counter()
        for k in range(4000):
            k * k
        took = perf_counter() - start
        self.best = min(self.best, took)
        return took

    def undisturbed(self, readings):
        """Return which rounds count, given the longest reading of each."""
        return np.asarray(readings) < DISTURBED * self.best

    def pace(self, readings):
        """Return the duration of plain Python relative to its best."""
        return float(np.median(readings) / self.best)

    def wait_for_calm(self):
        """Wait until other processes leave the machine alone, half a minute in all at most."""
        begin = monotonic()
        end = begin + self._patience
        while monotonic() < end:
            readings = []
            for _ in range(50):
                readings.append(self.read())
                sleep(0.02)
            if self.pace(readings) < DISTURBED:
                break
        self._patience -= min(monotonic() - begin, self._patience)


gauge = Gauge()


def take_turns(functions, *, quick=False):
    """
    Time functions in turns, so that all see the same state of the machine.

    Rounds disturbed by other processes are discarded, and up to half as many run to replace them.

    Parameters
    ----------
    functions : dict of str to callable
        Without arguments.
    quick : bool
        Whether to run fewer rounds.

    Returns
    -------
    dict of str to ndarray
        For each function the time of one call in every round that counts, s.

    """
    calls, one_round = {}, 0.0
    for name, function in functions.items():
        function()
        start = perf_counter()
        function()
        t = perf_counter() - start
        calls[name] = range(1 + int(IN_A_ROW / t))
        one_round += max(t, IN_A_ROW)
    most, total = (41, 0.2) if quick else (301, 0.35)
    rounds = min(most, max(5, int(total / one_round)))
    times, readings = {name: [] for name in functions}, []
    names = list(functions)
    gc.disable()
    try:
        for k in range(rounds if quick else rounds + rounds // 2):
            before = gauge.read()
            # Rotate the order.
            first = k % len(names)
            for name in names[first:] + names[:first]:
                function, count = functions[name], calls[name]
                start = perf_counter()
                for _ in count:
                    function()
                times[name].append((perf_counter() - start) / len(count))
            readings.append(max(before, gauge.read()))
            counting = gauge.undisturbed(readings)
            if counting.sum() >= rounds:
                break
    finally:
        gc.enable()
    # Count all rounds if almost all were disturbed.
    if counting.sum() < 3:
        counting[:] = True
    gauge.slowest = np.array(readings)[counting].max()
    gauge.rounds += len(counting)
    gauge.left_out += int(np.sum(~counting))
    return {name: np.array(t)[counting] for name, t in times.items()}


def quartiles(ratios):
    """Return the quartiles of ratios, one for each round."""
    return np.percentile(ratios, (25, 50, 75)).tolist()


def machine():
    """Return hardware and versions on which the numbers depend."""
    cpu = platform.processor()
    if (info := Path('/proc/cpuinfo')).exists():
        cpu = next((line.split(':')[1].strip() for line in info.read_text().splitlines()
                    if line.startswith('model name')), cpu)
    versions = {}
    for package in PACKAGES:
        try:
            versions[package] = metadata.version(package).strip()
        except metadata.PackageNotFoundError:
            continue
    commit = subprocess.run(['git', 'describe', '--always', '--dirty'], cwd=HERE,
                            capture_output=True, text=True, check=False).stdout.strip()
    return {'CPU': f'{cpu}, {os.cpu_count()} cores', 'system': platform.platform(terse=True),
            'Python': platform.python_version(), **versions, 'commit': commit}


def measured(quick=False):
    """Return the folder with results; those of quick runs are apart and change no others."""
    return MEASURED / 'quick' if quick else MEASURED


def save(part, quick, results):
    """Store the results of a part of the benchmark for the report."""
    measured(quick).mkdir(parents=True, exist_ok=True)
    load = os.getloadavg() if hasattr(os, 'getloadavg') else ()
    results = {'date': strftime('%Y-%m-%d %H:%M'), 'quick': quick, 'load': load,
               'took': monotonic() - BEGIN, 'rounds': gauge.rounds, 'left out': gauge.left_out,
               'machine': machine(), **results}
    path = measured(quick) / f'{part}.json'
    path.write_text(json.dumps(results, indent=1))
    print(f'{path}: written', flush=True)


def load(part, quick=False):
    """Return the results of a part of the benchmark, or None if it was not run."""
    path = measured(quick) / f'{part}.json'
    return json.loads(path.read_text()) if path.exists() else None
