# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Count how many states per second `rbd_ros.batch` computes, with one thread and with two.

Pinocchio's parallel calls, where it has them, take the same states with as many threads and write
to an array that is there already. That is compared with ours that returns a new one; beside it is
ours that writes to what an earlier call has returned.

"""

from functools import partial

import numpy as np
import pinocchio as pin
import rbd_ros
from rbd_ros import batch
from robots import robots
from timing import options, quartiles, save, take_turns
import with_pinocchio

# States in one call; those of a function that writes matrices are fewer.
STATES, FEWER = 20_000, 4_000
LABELS = ('Panda', 'Talos')
# See library.py.
AGREEMENT = 1e-10


def pinocchios(robot, threads, Q, V, A, Tau):
    """Return Pinocchio's parallel calls by function, and what turns their outputs to ours."""
    model, order, _ = with_pinocchio.build(robot)
    pool = pin.ModelPool(model, threads)
    # One state per column there.
    q, v, a, tau = (np.asfortranarray(x[:, order].T) for x in (Q, V, A, Tau))
    result = np.zeros_like(v)
    back = np.argsort(order)
    return {
        'inverse dynamics': partial(pin.rneaInParallel, threads, pool, q, v, a, result),
        'forward dynamics': partial(pin.abaInParallel, threads, pool, q, v, tau, result),
    }, lambda: result[back].T


def measure(robot, threads, quick):
    """Yield a row of results for every function."""
    model, rng = robot.model, np.random.default_rng(0)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)])
    V, A = rng.normal(size=(2, STATES, model.nv))
    Tau = batch.inverse_dynamics(model, Q, V, A)
    theirs, turned = pinocchios(robot, threads, Q, V, A, Tau)
    for function, inputs in (('inverse dynamics', (Q, V, A)), ('forward dynamics', (Q, V, Tau)),
                             ('all terms', (Q, V)),
                             ('derivatives of inverse dynamics', (Q, V, A)),
                             ('derivatives of forward dynamics', (Q, V, Tau)),
                             ('torque regressor', (Q, V, A))):
        count = STATES if function in theirs else FEWER
        words = function.replace('derivatives of ', '').replace(' ', '_')
        words += '_derivatives' if 'derivatives' in function else ''
        ours = partial(getattr(batch, words), model, *(x[:count] for x in inputs),
                       threads=threads)
        calls = {'rbd_ros': ours, 'rbd_ros, out': partial(ours, out=ours())}
        if function in theirs:
            calls['Pinocchio'] = theirs[function]
            expected = ours()
            theirs[function]()
            error = np.max(np.abs(turned() - expected)) / np.max(np.abs(expected))
            if not error < AGREEMENT:
                raise AssertionError(f'{robot.label}, {function}: results differ by {error:.1e}')
        times = take_turns(calls, quick=quick)
        yield {'robot': robot.label, 'size': robot.size, 'joints': model.nv, 'threads': threads,
               'function': function,
               'per second': {name: count / float(np.median(t)) for name, t in times.items()},
               'ratio': (quartiles(times['rbd_ros'] / times['Pinocchio'])
                         if 'Pinocchio' in times else None)}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    rows = []
    for robot in robots():
        if robot.label in LABELS:
            for threads in (1, 2):
                for row in measure(robot, threads, quick):
                    rows.append(row)
                    print(f'{row["robot"]:8s} {threads} threads  {row["function"]:32s}', *(
                        f'{name} {rate:10.0f}/s ' for name, rate in row['per second'].items()),
                        f'ratio {row["ratio"][1]:.2f}' if row['ratio'] else '', flush=True)
    save('batch', quick, {'rows': rows})


if __name__ == '__main__':
    main()
