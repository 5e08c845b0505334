# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time chains and balanced binary trees of 2 ... 1,000 joints, and fit the growth of the times.

The expected growth is that of the number of steps in the same range: a recursion visits every
joint; M, C and the derivatives of inverse dynamics have an entry per joint and supporting joint;
the derivatives of forward dynamics apply the factor of M, which has as many entries, to each of
3 n columns. Times are those of the fastest round: sizes are measured one after the other, so a
disturbance would bend the curve.

"""

import numpy as np
from rbd_ros import ModelBuilder, Workspace
from timing import one_core, options, save, take_turns

SIZES = (2, 5, 10, 20, 50, 100, 200, 500, 1000)
# The exponents are fitted from here on.
LARGE = 100
PARENTS = {'chain': lambda k: k - 1, 'tree': lambda k: (k - 1) // 2}


def build(shape, n):
    """Return a chain or a balanced binary tree of n revolute joints."""
    rng = np.random.default_rng(0)
    builder = ModelBuilder(f'{shape} of {n}').link('link0')
    for k in range(1, n + 1):
        parent = PARENTS[shape](k)
        builder.link(f'link{k}', mass=1.0, com=(0.0, 0.0, 0.05), inertia=(0.01, 0.01, 0.005))
        builder.joint(f'joint{k}', 'revolute', f'link{parent}', f'link{k}', xyz=(0.0, 0.0, 0.1),
                      axis=rng.normal(size=3))
    return builder.build()


def carried(shape, n):
    """Return the number of pairs of a joint and a joint that supports it, itself included."""
    depth = [0]
    for k in range(1, n + 1):
        depth.append(depth[PARENTS[shape](k)] + 1)
    return sum(depth)


# For every function the steps for n joints with so many pairs.
STEPS = {'inverse dynamics': lambda n, pairs: n,
         'forward dynamics': lambda n, pairs: n,
         'all terms': lambda n, pairs: pairs,
         'derivatives of inverse dynamics': lambda n, pairs: pairs,
         'derivatives of forward dynamics': lambda n, pairs: n * pairs}


def exponent(sizes, values):
    """Return the slope of the line through the logarithms."""
    return float(np.polyfit(np.log(sizes), np.log(values), 1)[0])


def calls(model):
    """Return the timed calls."""
    w, rng = Workspace(model), np.random.default_rng(1)
    q, v, a = rng.uniform(-1.0, 1.0, model.nv), *rng.normal(scale=0.1, size=(2, model.nv))
    tau = w.inverse_dynamics(q, v, a).copy()
    return {'inverse dynamics': lambda: w.inverse_dynamics(q, v, a),
            'forward dynamics': lambda: w.forward_dynamics(q, v, tau),
            'all terms': lambda: w.all_terms(q, v),
            'derivatives of inverse dynamics': lambda: w.inverse_dynamics_derivatives(q, v, a),
            'derivatives of forward dynamics': lambda: w.forward_dynamics_derivatives(q, v, tau)}


def main():
    """Measure, print and save."""
    quick = options(__doc__).parse_args().quick
    results = {}
    with one_core():
        for shape in PARENTS:
            us = {function: [] for function in STEPS}
            for n in SIZES:
                for function, call in calls(build(shape, n)).items():
                    t, = take_turns({function: call}, quick=quick).values()
                    us[function].append(1e6 * float(np.min(t)))
                print(f'{shape} {n:5d}', *(f'{function} {t[-1]:.1f} us' for function, t
                                           in us.items()), sep='  ', flush=True)
            large = [k for k, n in enumerate(SIZES) if n >= LARGE]
            sizes = [SIZES[k] for k in large]
            results[shape] = {
                function: {'us': t,
                           'exponent': exponent(sizes, [t[k] for k in large]),
                           'expected': exponent(sizes, [STEPS[function](n, carried(shape, n))
                                                        for n in sizes])}
                for function, t in us.items()}
            for function, row in results[shape].items():
                print(f'{shape} {function}: n^{row["exponent"]:.2f}, '
                      f'expected n^{row["expected"]:.2f}')
    save('growth', quick, {'sizes': SIZES, 'fitted from': LARGE, 'shapes': results})


if __name__ == '__main__':
    main()
