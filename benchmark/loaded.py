# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time the functions of given robots as machine code, called from Python, by turns with others.

That is `rbd_ros.codegen.load`, next to the methods of `Workspace` and to Pinocchio, for one state,
and next to `rbd_ros.batch` and the limit of `limit.py` for many states on one thread. All
functions are timed as code, also those that are left to kernels by default.

"""

from functools import partial
from inspect import signature
from tempfile import TemporaryDirectory
from time import perf_counter

from limit import in_c, LABELS as LIMITED, STATES
import numpy as np
import rbd_ros
from rbd_ros import analysis, batch
from rbd_ros.codegen import load
from rbd_ros.codegen.machine_code import calls
from robots import robots
from timing import one_core, options, save, take_turns
import with_pinocchio

LABELS = 'UR5', 'Panda', 'Talos'
# Names in Pinocchio's part of the benchmark; None: it has no such function.
FUNCTIONS = {
    'inverse_dynamics': 'inverse dynamics', 'gravity_torques': 'gravity torques',
    'forward_dynamics': 'forward dynamics', 'hybrid_dynamics': None, 'mass_matrix': None,
    'all_terms': 'all terms', 'inverse_dynamics_derivatives': 'derivatives of inverse dynamics',
    'forward_dynamics_derivatives': 'derivatives of forward dynamics',
    'body_jacobian': 'body Jacobian', 'torque_regressor': 'torque regressor'}
OF_MANY = 'inverse_dynamics', 'forward_dynamics'     # functions of many states


def in_turns(turns, quick):
    """Return median times of calls, ns, and ratios of the first one's to the others'."""
    times = take_turns(turns, quick=quick)
    first, *others = times
    return {'ns': {name: 1e9 * float(np.median(t)) for name, t in times.items()},
            'ratio': {name: float(np.median(times[first] / times[name])) for name in others}}


def measure(robot, folder, quick):
    """Return times, ns, ratios in each round, and how each function was compiled."""
    model, rows = robot.model, []
    given = {'link': robot.tip, 'prescribed': np.arange(model.nv) % 2 == 0}
    state = {**given, 'q': robot.q, 'v': robot.v, 'a': robot.a, 'tau': robot.tau}
    chosen = load(model, list(FUNCTIONS), directory=folder, **given).report()
    longest, calls.LONGEST = calls.LONGEST, np.inf
    begin = perf_counter()
    code = load(model, list(FUNCTIONS), directory=folder, **given)
    seconds = perf_counter() - begin
    calls.LONGEST = longest
    workspace, theirs = rbd_ros.Workspace(model), with_pinocchio.functions(robot)
    for name, label in FUNCTIONS.items():
        plain = getattr(rbd_ros, name, None) or getattr(analysis, name)
        arguments = [state[x] for x in signature(plain).parameters if x in state]
        turns = {'loaded': partial(getattr(code, name), *arguments),
                 'Workspace': partial(getattr(workspace, name), *arguments)}
        if label is not None:
            turns['Pinocchio'] = theirs[label][0]
        report = code.report()[name]
        rows.append({
            'function': name, 'operations': report.operations, 'way': chosen[name].way,
            'compile': max(report.seconds, chosen[name].seconds),
            **in_turns(turns, quick)})
        print(robot.label, rows[-1], flush=True)
    q, v, a, n = robot.q, robot.v, robot.a, model.nv
    call, empty = code.inverse_dynamics, np.empty
    fresh = in_turns({
        'loaded': lambda: call(q, v, a, out=empty(n)),
        'plain': partial(rbd_ros.inverse_dynamics, model, q, v, a),
        'Pinocchio': theirs['inverse dynamics'][0]}, quick)
    return {'joints': model.nv, 'seconds': seconds, 'rows': rows, 'fresh': fresh,
            'many': [of_many(robot, code, name, quick) for name in OF_MANY]}


def of_many(robot, code, name, quick):
    """Return shortest times of many states, ns a state, and of the first call, s."""
    model, rng = robot.model, np.random.default_rng(0)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)])
    V, last = rng.normal(size=(2, STATES, model.nv))
    results = [np.empty_like(V) for _ in range(2)]
    begin = perf_counter()
    getattr(code, name)(Q, V, last, threads=1)
    seconds = perf_counter() - begin
    turns = {label: partial(getattr(batch, name), one, Q, V, last, out=out, threads=1)
             for label, one, out in zip(('loaded', 'batch'), (code, model), results)}
    if name == 'inverse_dynamics' and robot.label in LIMITED:
        turns['limit'], _ = in_c(model, Q, V, last)
    ns = {label: 1e9 * float(np.min(t)) / STATES
          for label, t in take_turns(turns, quick=quick).items()}
    row = {'function': name, 'first': seconds, 'ns': ns,
           'ratio': {label: ns['loaded'] / ns[label] for label in ns if label != 'loaded'}}
    print(row, flush=True)
    return row


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    with TemporaryDirectory() as folder, one_core():
        found = {robot.label: measure(robot, folder, quick) for robot in robots()
                 if robot.label in LABELS}
    save('loaded', quick, {'robots': found})


if __name__ == '__main__':
    main()
