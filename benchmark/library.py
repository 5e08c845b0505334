# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time every fused function against other libraries, all called from Python.

The outputs are first checked to agree. Libraries that are not installed are skipped. Functions
that were disturbed by other processes in all rounds are measured again at the end.

Robots with mimic joints are compared with Pinocchio's recursions for all joints, which leave out
that these are coupled: the price of the coupling.

"""

from functools import partial
from importlib import import_module

import numpy as np
import pinocchio as pin
from rbd_ros import batch, random_configuration, Workspace
from robots import Robot, robots, WITH_MIMICS
from timing import gauge, one_core, options, quartiles, save, take_turns

LIBRARIES = {'rbd_ros': 'with_rbd_ros', 'Pinocchio': 'with_pinocchio', 'MuJoCo': 'with_mujoco',
             'Drake': 'with_drake'}

# Different recursions differ by rounding, amplified in accelerations by the condition of M, about
# 1e5 for a humanoid.
AGREEMENT = 1e-10
# Attempts at measurements that were disturbed
PASSES = 2
# States of a batch of robots with mimics
STATES = 1024


def libraries(quick):
    """Return the modules of the installed libraries, by name; for quick runs of the first two."""
    found = {}
    for name, module in list(LIBRARIES.items())[:2 if quick else None]:
        try:
            found[name] = import_module(module)
        except ImportError as error:
            print(f'{name} is skipped: {error}')
    return found


def disagreement(outputs):
    """
    Return the largest relative difference between our outputs and those of other libraries.

    Parameters
    ----------
    outputs : dict of str to callable
        For each library, including ours, a function that returns its outputs by name.

    """
    ours = {key: np.array(value) for key, value in outputs['rbd_ros']().items()
            if not isinstance(value, tuple)}
    worst = 0.0
    for library, call in outputs.items():
        for key, theirs in call().items():
            if key in ours:
                error = np.max(np.abs(ours[key] - theirs)) / np.max(np.abs(theirs))
                if not error < AGREEMENT:
                    raise AssertionError(f'{library}: {key} differs by {error:.1e}')
                worst = max(worst, error)
    return worst


def measure(robot, function, functions, quick):
    """Return the results of a function on a robot, given the functions of each library."""
    having = {library: mine[function] for library, mine in functions.items() if function in mine}
    error = disagreement({library: outputs for library, (_, outputs) in having.items()})
    times = take_turns({library: call for library, (call, _) in having.items()}, quick=quick)
    ours = times['rbd_ros']
    return {'robot': robot.label, 'size': robot.size, 'joints': robot.model.nv,
            'function': function, 'error': error,
            'us': {library: 1e6 * float(np.median(t)) for library, t in times.items()},
            'ratio': {library: quartiles(ours / t) for library, t in times.items()
                      if library != 'rbd_ros'}}


def share_of_rates(ours, quick):
    """Return the quartiles of the time for terms and rates over twice that for terms."""
    times = take_turns({name: ours[name][0] for name in ('all terms', 'rates of M, C and g')},
                       quick=quick)
    return quartiles(times['rates of M, C and g'] / (2.0 * times['all terms']))


def mimics(robot, quick):
    """Return the times of forward dynamics of a robot with mimic joints, checked."""
    model, to_tree = robot.model, robot.model.coordinates
    theirs = pin.buildModelFromUrdf(str(robot.path))
    theirs.gravity.linear, data = model.gravity, theirs.createData()
    tree = model.spanning_tree
    order = [tree.velocity_names.index(name) for name in list(theirs.names)[1:]]
    q = pin.integrate(theirs, pin.neutral(theirs), to_tree.position(robot.q)[order])
    v, a, none = (x[order] for x in (to_tree.velocity(robot.v), to_tree.velocity(robot.a),
                                     np.zeros(tree.nv)))
    tau = to_tree.G[order].T @ pin.rnea(theirs, data, q, v, a)
    w = Workspace(model)
    error = np.max(np.abs(w.forward_dynamics(robot.q, robot.v, tau) - robot.a))
    if not error < AGREEMENT * np.linalg.cond(w.mass_matrix(robot.q)):
        raise AssertionError(f'{robot.label}: accelerations differ by {error:.1e}')
    rng = np.random.default_rng(0)
    states = (np.array([random_configuration(model, rng) for _ in range(STATES)]),
              *rng.normal(size=(2, STATES, model.nv)))
    times = take_turns({
        'forward dynamics': partial(w.forward_dynamics, robot.q, robot.v, tau),
        'Pinocchio': partial(pin.aba, theirs, data, q, v, none),
        'derivatives': partial(w.forward_dynamics_derivatives, robot.q, robot.v, tau),
        'Pinocchio, derivatives': partial(pin.computeABADerivatives, theirs, data, q, v, none),
        'batch': partial(batch.forward_dynamics, model, *states, threads=1),
        'batch, derivatives': partial(batch.forward_dynamics_derivatives, model, *states,
                                      threads=1)}, quick=quick)
    us = {name: 1e6 * float(np.median(t)) / (STATES if name.startswith('batch') else 1)
          for name, t in times.items()}
    print(f'{robot.label} with mimics', *(f'{name} {t:.2f} us ' for name, t in us.items()),
          flush=True)
    return {'robot': robot.label, 'joints': tree.nv, 'velocities': model.nv, 'us': us}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    found, rows, slowest, rates = libraries(quick), {}, {}, {}
    with one_core():
        cases = [(robot, {library: module.functions(robot) for library, module in found.items()})
                 for robot in robots()]
        left = [(robot, functions, function) for robot, functions in cases
                for function in functions['rbd_ros']]
        for _ in range(1 if quick else PASSES):
            for robot, functions, function in left:
                row = measure(robot, function, functions, quick)
                key = robot.label, function
                if gauge.slowest < slowest.get(key, np.inf):
                    rows[key], slowest[key] = row, gauge.slowest
                print(f'{row["robot"]:16s} {row["joints"]:3d} {function:32s}', *(
                    f'{library} {t:7.2f} us ' for library, t in row['us'].items()), *(
                    f'/ {library} {middle:.2f}' for library, (_, middle, _)
                    in row['ratio'].items()), flush=True)
            # The best pace may have been reached after a measurement.
            left = [(robot, functions, function) for robot, functions, function in left
                    if not gauge.undisturbed(slowest[robot.label, function])]
            # If most were, the machine is as fast as at its best for moments only.
            if len(left) > len(rows) / 2:
                break
            if left:
                print(f'{len(left)} were disturbed')
                gauge.wait_for_calm()
        for robot, functions in cases:
            rates[robot.label] = share_of_rates(functions['rbd_ros'], quick)
        coupled = [mimics(Robot(label, path, 'mimics'), quick)
                   for label, path in WITH_MIMICS.items()]
    save('library', quick, {'rows': list(rows.values()), 'rates': rates, 'mimics': coupled})


if __name__ == '__main__':
    main()
