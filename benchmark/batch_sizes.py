# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time batches of 1 ... 1,000,000 states, and measure the memory of the largest ones.

For comparison: a loop of plain calls and one of workspace calls (at most a thousand states), and
Pinocchio's parallel call. All write to new arrays except Pinocchio's. Memory is the peak during a
call minus the memory before it, which includes arguments and results already written once.

"""

from functools import partial
from pathlib import Path

import numpy as np
import psutil
import rbd_ros
from rbd_ros import batch, Workspace
from robots import robots
from timing import options, save, take_turns
import with_pinocchio

SIZES = tuple(10 ** k for k in range(7))
SMALL = (1, 2, 4, 8, 16, 32, 64)
LOOPS = 1_000
LABEL = 'Panda'


def loops(model, states):
    """Return loops of single calls."""
    w, (Q, V, A, _) = Workspace(model), states.values()

    def plain():
        for q, v, a in zip(Q, V, A):
            rbd_ros.inverse_dynamics(model, q, v, a)

    def workspace():
        for q, v, a in zip(Q, V, A):
            w.inverse_dynamics(q, v, a)

    return {'plain calls': plain, 'workspace': workspace}


def measure(robot, states, threads, quick):
    """Return the times of some states, ns per state."""
    model, (Q, V, A, _) = robot.model, states.values()
    calls = {'rbd_ros': partial(batch.inverse_dynamics, model, Q, V, A, threads=threads),
             'Pinocchio': with_pinocchio.in_parallel(
                 robot, threads, states)['inverse dynamics'][0]}
    if threads == 1 and len(Q) <= LOOPS:
        calls |= loops(model, states)
    return {name: 1e9 * float(np.median(t)) / len(Q)
            for name, t in take_turns(calls, quick=quick).items()}


def extra_memory(model, states):
    """Return the peak memory of a call in addition to arguments and results, bytes."""
    Q, V, A, _ = states.values()
    results = np.ones_like(V)
    batch.inverse_dynamics(model, Q[:10_000], V[:10_000], A[:10_000])
    before = psutil.Process().memory_info().rss
    # Linux: reset the peak.
    Path('/proc/self/clear_refs').write_text('5')
    batch.inverse_dynamics(model, Q, V, A, out=results)
    status = Path('/proc/self/status').read_text()
    highest, = (line.split()[1] for line in status.splitlines() if line.startswith('VmHWM'))
    return max(0, 1024 * int(highest) - before)


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    robot, = (robot for robot in robots() if robot.label == LABEL)
    model, rng = robot.model, np.random.default_rng(0)
    count = SIZES[-1]
    Q = rbd_ros.random_configuration(model, rng) + 1e-3 * rng.normal(size=(count, model.nq))
    states = {'Q': Q, **{name: rng.normal(size=(count, model.nv)) for name in 'VAT'}}
    rows = []
    for size in sorted({*SIZES, *SMALL}):
        for threads in (1, 2) if size in SIZES else (1,):
            ns = measure(robot, {name: x[:size] for name, x in states.items()}, threads, quick)
            rows.append({'states': size, 'threads': threads, 'ns': ns})
            print(f'{size:8d} states, {threads} threads', *(
                f'{name} {t:.0f} ns ' for name, t in ns.items()), flush=True)
    memory = {n: extra_memory(model, {name: x[:n] for name, x in states.items()})
              for n in (100_000, count)}
    print('memory:', *(f'{n} states {size / 2 ** 20:.1f} MiB' for n, size in memory.items()))
    save('batch_sizes', quick, {'robot': robot.label, 'rows': rows, 'memory': memory})


if __name__ == '__main__':
    main()
