# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time the parts of a call of inverse dynamics from Python.

The recursion is timed in a compiled loop, and the call by kernels that take the same arguments and
do nothing. What remains is the method of `Workspace`, in Python.

"""

from functools import partial
from time import perf_counter

import pinocchio as pin
from rbd_ros import Workspace
from rbd_ros.kernels.jit.compiled import disable_disk_cache, kernel
from rbd_ros.kernels.newton_euler import newton_euler
from robots import robots
from timing import one_core, options, save, take_turns
import with_pinocchio

LABELS = ('UR5', 'Panda', 'Talos')
# Recursions in a row, so that the call of their loop does not count.
RECURSIONS = 200
disable_disk_cache()


@kernel
def repeat(robot, traits, q, v, a, count):
    """Do the recursion several times."""
    fine = True
    for _ in range(count):
        fine &= newton_euler(robot, traits, q, v, a)
    return fine


@kernel
def of_five_arrays(robot, traits, q, v, a):
    """Do nothing."""
    return True


@kernel
def of_three_arrays(robot, traits, motion):
    """Do nothing."""
    return True


@kernel
def of_nothing():
    """Do nothing."""
    return True


class Method:
    """An object with a method that has the arguments of inverse dynamics."""

    result = None

    def method(self, q, v, a, external_wrenches=None):
        """Do nothing."""
        return self.result


def unchecked(nothing):
    """Return the compiled form, which trusts the types of its arguments."""
    form, = nothing.overloads.values()
    return form.entry_point


def calls_of(robot):
    """Return the calls to be timed, by name."""
    workspace, state = Workspace(robot.model), (robot.q, robot.v, robot.a)
    table = workspace.robot, workspace._traits
    theirs, order, q = with_pinocchio.build(robot)
    data, v, a = theirs.createData(), robot.v[order], robot.a[order]
    of_five_arrays(*table, *state)
    return {
        'method': partial(workspace.inverse_dynamics, *state),
        'kernel': partial(newton_euler, *table, *state),
        'recursions': partial(repeat, *table, *state, RECURSIONS),
        'five arrays': partial(of_five_arrays, *table, *state),
        'unchecked': partial(unchecked(of_five_arrays), *table, *state),
        'three arrays': partial(of_three_arrays, *table, robot.q),
        'no argument': of_nothing,
        'Python method': partial(Method().method, *state),
        'Pinocchio': partial(pin.rnea, theirs, data, q, v, a)}


def main():
    """Time the parts for each robot."""
    quick = options(__doc__).parse_args().quick
    found = {}
    with one_core():
        for robot in [one for one in robots() if one.label in LABELS]:
            begin = perf_counter()
            times = take_turns(calls_of(robot), quick=quick)
            times['recursion'] = times.pop('recursions') / RECURSIONS
            found[robot.label] = {
                'joints': robot.model.nv,
                'ns': {name: 1e9 * sorted(t)[len(t) // 2] for name, t in times.items()},
                'ratio': sorted(times['method'] / times['Pinocchio'])[len(times['method']) // 2]}
            print(f'{robot.label}: {perf_counter() - begin:.0f} s', flush=True)
    save('single_calls', quick, {'robots': found})


if __name__ == '__main__':
    main()
