# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time every fused function against the same in other libraries, all called from Python.

That the outputs agree is checked first. Libraries that are not installed take no part. Functions
that were held up by others all the time are measured again in the end.

"""

from importlib import import_module

import numpy as np
from robots import robots
from timing import gauge, one_core, options, quartiles, save, take_turns

LIBRARIES = {'rbd_ros': 'with_rbd_ros', 'Pinocchio': 'with_pinocchio', 'MuJoCo': 'with_mujoco',
             'Drake': 'with_drake'}

# Different recursions for the same numbers: rounding, which solving for accelerations multiplies
# by the condition of M, about 1e5 for a humanoid.
AGREEMENT = 1e-10
# How often all that was held up until then is measured
PASSES = 4


def libraries():
    """Return the modules of the libraries that are installed, by name."""
    found = {}
    for name, module in LIBRARIES.items():
        try:
            found[name] = import_module(module)
        except ImportError as error:
            print(f'{name} takes no part: {error}')
    return found


def disagreement(outputs):
    """
    Return the largest difference of outputs from ours, as a share of the largest entry.

    Parameters
    ----------
    outputs : dict of str to callable
        For each library, ours among them, what returns its outputs by name.

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
    """Return a row of results for a function on a robot, of the functions of each library."""
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
    """Return quartiles of the time for terms and rates as a share of twice that of terms."""
    times = take_turns({name: ours[name][0] for name in ('all terms', 'rates of M, C and g')},
                       quick=quick)
    return quartiles(times['rates of M, C and g'] / (2.0 * times['all terms']))


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    found, rows, slowest, rates = libraries(), {}, {}, {}
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
            # What the best is may have shown later.
            left = [(robot, functions, function) for robot, functions, function in left
                    if not gauge.undisturbed(slowest[robot.label, function])]
            if left:
                print(f'{len(left)} were held up')
                gauge.wait_for_calm()
        for robot, functions in cases:
            rates[robot.label] = share_of_rates(functions['rbd_ros'], quick)
    save('library', quick, {'rows': list(rows.values()), 'rates': rates})


if __name__ == '__main__':
    main()
