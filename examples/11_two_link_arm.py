# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The planar 2R arm of Lynch and Park, section 9.1.1: derived by Lagrange, compared with rbd_ros.

Two point masses at the ends of two massless links, gravity along -y. The printed equations contain
four misprints; `doc/equations.md` lists them.

"""

from functools import cache

import numpy as np
import rbd_ros

try:
    import sympy
except ModuleNotFoundError:
    raise SystemExit('this example needs SymPy: pip install sympy') from None

m1, m2, L1, L2, g = PARAMETERS = sympy.symbols('m1 m2 L1 L2 g', positive=True)
q = sympy.symbols('theta1 theta2')
v = sympy.symbols('dtheta1 dtheta2')
a = sympy.symbols('ddtheta1 ddtheta2')


@cache
def energies():
    """Return the kinetic and the potential energy, L (9.7)."""
    tip1 = sympy.Matrix([L1 * sympy.cos(q[0]), L1 * sympy.sin(q[0])])
    tip2 = tip1 + sympy.Matrix([L2 * sympy.cos(q[0] + q[1]), L2 * sympy.sin(q[0] + q[1])])
    kinetic = potential = 0
    for mass, position in ((m1, tip1), (m2, tip2)):
        speed = position.jacobian(q) * sympy.Matrix(v)
        kinetic += mass * speed.dot(speed) / 2
        potential += mass * g * position[1]
    return sympy.simplify(kinetic), potential


@cache
def equations_of_motion():
    """Return the torques tau_i = d/dt dL/dv_i - dL/dq_i, L (9.8)."""
    kinetic, potential = energies()
    lagrangian = kinetic - potential
    torques = []
    for q_i, v_i in zip(q, v):
        momentum = sympy.diff(lagrangian, v_i)
        rate = sum(sympy.diff(momentum, x) * dx for x, dx in zip((*q, *v), (*v, *a)))
        torques.append(sympy.simplify(rate - sympy.diff(lagrangian, q_i)))
    return sympy.Matrix(torques)


@cache
def matrices():
    """Return M, C by Christoffel symbols, and the gravity torques: L (9.12), (9.13), (9.87)."""
    kinetic, potential = energies()
    M = sympy.simplify(sympy.hessian(kinetic, v))
    C = sympy.zeros(2, 2)
    for i in range(2):
        for j in range(2):
            for k in range(2):
                symbol = (sympy.diff(M[i, j], q[k]) + sympy.diff(M[i, k], q[j])
                          - sympy.diff(M[j, k], q[i])) / 2
                C[i, j] += symbol * v[k]
    gravity = sympy.Matrix([sympy.diff(potential, x) for x in q])
    return M, sympy.simplify(C), sympy.simplify(gravity)


def same_arm(m1, m2, L1, L2, g):
    """Return the arm as a `Model`."""
    return (rbd_ros.ModelBuilder('two_link_arm').link('base')
            .link('link_1', m1, (L1, 0, 0)).link('link_2', m2, (L2, 0, 0))
            .joint('joint_1', 'revolute', 'base', 'link_1', axis=(0, 0, 1))
            .joint('joint_2', 'revolute', 'link_1', 'link_2', xyz=(L1, 0, 0), axis=(0, 0, 1))
            .build(gravity=(0, -g, 0)))


def largest_difference(seed=0):
    """Return the largest difference from rbd_ros over random arms and states."""
    rng = np.random.default_rng(seed)
    symbols = (*PARAMETERS, *q, *v, *a)
    evaluate = sympy.lambdify(symbols, [equations_of_motion(), *matrices()])
    worst = 0.0
    for _ in range(20):
        numbers = rng.uniform(0.2, 2.0, 5)
        state = rng.normal(size=(3, 2))
        tau, M, C, gravity = evaluate(*numbers, *state.ravel())
        model = same_arm(*numbers)
        terms = rbd_ros.all_terms(model, *state[:2])
        for got, expected in ((rbd_ros.inverse_dynamics(model, *state), tau), (terms.M, M),
                              (terms.C, C), (terms.g, gravity)):
            worst = max(worst, np.max(np.abs(got - np.reshape(expected, got.shape))))
    return worst


def main():
    """Print the equations and the largest difference from the library."""
    for i, torque in enumerate(equations_of_motion(), 1):
        print(f'tau{i} = {sympy.collect(sympy.expand(torque), (*a, *v))}\n')
    for name, matrix in zip(('M', 'C', 'g'), matrices()):
        print(f'{name} =')
        sympy.pprint(matrix, use_unicode=False)
        print()
    print(f'Largest difference to rbd_ros: {largest_difference():.1e}')


if __name__ == '__main__':
    main()
