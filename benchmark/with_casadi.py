# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time the functions of `rbd_ros.casadi`, which CasADi interprets, without the time of its arguments.

Jacobians are those of the library, and those that CasADi derives from the same operations, by its
best mode; Hessians are of one weighted sum of the results, with respect to q, v and the input.

"""

import warnings

import casadi
import numpy as np
import rbd_ros
from rbd_ros import codegen
from robots import FINGERS, PANDA, Robot, TALOS
from timing import one_core, options, save, take_turns


def called(function, arguments):
    """Return a call without arguments that writes to the same memory each time."""
    memory, call = function.buffer()
    arrays = [np.ascontiguousarray(x, float) for x in arguments]
    outputs = [np.zeros(function.nnz_out(k)) for k in range(function.n_out())]
    for k, x in enumerate(arrays):
        memory.set_arg(k, memoryview(x))
    for k, x in enumerate(outputs):
        memory.set_res(k, memoryview(x))

    def run(keep=(memory, arrays, outputs)):
        call()
    return run


def functions(model, name):
    """Return the functions whose times are compared, by what they compute."""
    plain = codegen.casadi_function(codegen.trace(model, name))
    inputs = [casadi.SX.sym('x', *plain.size_in(k)) for k in range(3)]
    output, every = plain(*inputs), casadi.vertcat(*inputs)
    return {
        name: plain,
        'Jacobian': codegen.casadi_function(codegen.trace(model, f'{name}_derivatives')),
        'Jacobian by CasADi': casadi.Function('J', inputs, [casadi.jacobian(output, every)]),
        'Hessian by CasADi': casadi.Function(
            'H', inputs, [casadi.hessian(casadi.sum1(output), every)[0]])}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    warnings.simplefilter('ignore', rbd_ros.ModelWarning)
    rows = []
    with one_core():
        for robot in (Robot('Panda', PANDA, 'small', locked=FINGERS),
                      Robot('Talos', TALOS, 'large')):
            for name, state in (('inverse_dynamics', (robot.q, robot.v, robot.a)),
                                ('forward_dynamics', (robot.q, robot.v, robot.tau))):
                found = functions(robot.model, name)
                times = take_turns({what: called(one, state) for what, one in found.items()},
                                   quick=quick)
                for what, one in found.items():
                    rows.append({'robot': robot.label, 'dynamics': name, 'function': what,
                                 'operations': one.n_instructions(),
                                 'us': 1e6 * float(np.median(times[what]))})
                    print('{robot:8s} {dynamics:18s} {function:20s} {operations:9,d} operations '
                          '{us:9.1f} us'.format(**rows[-1]), flush=True)
    save('casadi', quick, {'rows': rows})


if __name__ == '__main__':
    main()
