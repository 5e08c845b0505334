# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time `rbd_ros.batch` and other libraries per state of many, with one thread and with two.

Pinocchio's parallel calls, MuJoCo's rollouts and frax, if installed (`pip install frax`), compute
the same states with the same number of threads. Like Pinocchio and MuJoCo, rbd_ros with ``out``
writes to existing arrays; without, it returns new ones. Both are timed apart from the other
libraries, then ``out`` again in turns with them: whoever comes after another library finds the
caches full of foreign data. A copy of as many bytes as a function writes, to an existing array,
shows where memory bandwidth is the limit.

"""

from functools import partial
from importlib.util import find_spec
import os

import numpy as np
import rbd_ros
from rbd_ros import batch
from robots import robots
from timing import options, quartiles, save, take_turns
import with_pinocchio
import with_rollout

# States in one call; those of a function that writes matrices are fewer.
STATES, FEWER = 20_000, 4_000
QUICKER = 4         # times fewer in quick runs
LABELS = ('Panda', 'Talos', 'Talos, floating')
# See library.py.
AGREEMENT = 1e-10
# Arguments of every function.
FUNCTIONS = {'inverse dynamics': 'QVA', 'forward dynamics': 'QVT', 'all terms': 'QV',
             'derivatives of inverse dynamics': 'QVA', 'derivatives of forward dynamics': 'QVT',
             'torque regressor': 'QVA'}
OF_VECTORS = ('inverse dynamics', 'forward dynamics')


def libraries(robot, threads, states):
    """Return the functions of the libraries that support them."""
    found = {'Pinocchio': with_pinocchio.in_parallel(robot, threads, states)}
    if not robot.floating:
        found['MuJoCo'] = {'forward dynamics': with_rollout.forward_dynamics(
            robot, threads, *(states[name] for name in 'QVT'))}
        if threads == 1 and find_spec('frax'):
            os.environ['XLA_FLAGS'] = '--xla_cpu_multi_thread_eigen=false'
            import with_frax
            found['frax'] = with_frax.functions(robot, *states.values())
    return found


def ours(robot, function, states, threads):
    """Return the call of a function of `rbd_ros.batch`."""
    name = function.replace('derivatives of ', '').replace(' ', '_')
    name += '_derivatives' if 'derivatives' in function else ''
    return partial(getattr(batch, name), robot.model,
                   *(states[argument] for argument in FUNCTIONS[function]), threads=threads)


def written(results):
    """Return the number of bytes in results."""
    return sum(x.nbytes for x in (results if isinstance(results, tuple) else (results,)))


def measure(robot, threads, quick):
    """Yield a row of results for every function."""
    model, rng = robot.model, np.random.default_rng(0)
    many, fewer = (x // (QUICKER if quick else 1) for x in (STATES, FEWER))
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(many)])
    V, A = rng.normal(size=(2, many, model.nv))
    states = {'Q': Q, 'V': V, 'A': A, 'T': batch.inverse_dynamics(model, Q, V, A)}
    others = libraries(robot, threads, states)
    for function in FUNCTIONS:
        count = many if function in OF_VECTORS else fewer
        call = ours(robot, function, {name: x[:count] for name, x in states.items()}, threads)
        results = call()
        size = written(results)
        to_out = partial(call, out=results)
        own = {'rbd_ros': call, 'out': to_out,
               'copy': partial(np.copyto, np.ones(size // 8), np.ones(size // 8))}
        rivals = {}
        for library, functions in others.items():
            if function not in functions:
                continue
            rivals[library], result = functions[function]
            error = np.max(np.abs(result() - results)) / np.max(np.abs(results))
            if not error < AGREEMENT:
                raise AssertionError(f'{robot.label}, {function}: {library} differs by '
                                     f'{error:.1e}')
        times = take_turns(own, quick=quick)
        against = take_turns({'in turns': to_out, **rivals}, quick=quick) if rivals else {}
        yield {'robot': robot.label, 'size': robot.size, 'joints': model.nv, 'threads': threads,
               'function': function, 'bytes': size // count,
               'ns': {name: 1e9 * float(np.median(t)) / count
                      for name, t in (against | times).items()},
               'ratio': {name: quartiles(against['in turns'] / against[name])
                         for name in rivals}}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    rows = []
    for robot in robots():
        if robot.label in LABELS:
            for threads in (1,) if quick else (1, 2):
                for row in measure(robot, threads, quick):
                    rows.append(row)
                    print(f'{row["robot"]:15s} {threads} threads  {row["function"]:32s}', *(
                        f'{name} {ns:.0f} ns ' for name, ns in row['ns'].items()), flush=True)
    save('batch', quick, {'rows': rows})


if __name__ == '__main__':
    main()
