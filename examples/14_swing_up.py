# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Swing-up with CasADi: Ipopt finds a motion for drives that cannot hold the arm.

The demo arm hangs from a wall and has a quarter of its torques, 45 N m at a shoulder that needs 58
N m to hold the arm horizontally. After four seconds it is to stand upright. Accelerations are
constant between knots; the torques in the middle between two knots are limited.

"""

import pathlib
from time import perf_counter

import numpy as np
import rbd_ros

try:
    import casadi
except ModuleNotFoundError:
    raise SystemExit('this example needs CasADi: pip install casadi') from None

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
KNOTS, DURATION = 60, 4.0       # s
h = DURATION / KNOTS
DOWN = np.array([0.0, np.pi / 2, 0.0, 0.0, 0.0, 0.0, 0.0])
UP = -DOWN
# Of Ipopt: for the gradient and the constraints, which it scales.
TOLERANCE = 1e-4

# On a wall, whose normal is the first axis of the arm; rotors as in example 7.
arm = rbd_ros.with_gravity(rbd_ros.load_urdf(URDF), (9.81, 0.0, 0.0))
arm = rbd_ros.with_armature(arm, dict.fromkeys(arm.velocity_names, 0.1))
LIMIT = arm.effort_limit / 4.0


def swing_up():
    """Return the positions and velocities at the knots, and accelerations between them."""
    torques = rbd_ros.casadi.inverse_dynamics(arm)
    problem, n = casadi.Opti(), arm.nv
    Q, V = problem.variable(n, KNOTS + 1), problem.variable(n, KNOTS + 1)
    A = problem.variable(n, KNOTS)
    cost = 0.0
    for k in range(KNOTS):
        q, v, a = Q[:, k], V[:, k], A[:, k]
        problem.subject_to(Q[:, k + 1] == q + h * v + h ** 2 / 2 * a)
        problem.subject_to(V[:, k + 1] == v + h * a)
        tau = torques(*middle(q, v, a))
        problem.subject_to(problem.bounded(-LIMIT, tau, LIMIT))
        problem.subject_to(problem.bounded(arm.lower, Q[:, k + 1], arm.upper))
        problem.subject_to(problem.bounded(-arm.velocity_limit, V[:, k + 1], arm.velocity_limit))
        cost += h * casadi.sumsqr(tau / LIMIT)
    for x, value in ((Q[:, 0], DOWN), (Q[:, -1], UP), (V[:, 0], 0.0), (V[:, -1], 0.0)):
        problem.subject_to(x == value)
    problem.minimize(cost)
    problem.set_initial(Q, np.linspace(DOWN, UP, KNOTS + 1).T)
    problem.solver('ipopt', {'print_time': False}, {'print_level': 0, 'sb': 'yes',
                                                    'tol': TOLERANCE})
    solution = problem.solve()
    return *(solution.value(x).T for x in (Q, V, A)), problem.stats()


def middle(q, v, a):
    """Return the state in the middle between a knot and the next one, and the acceleration."""
    return q + h / 2 * v + h ** 2 / 8 * a, v + h / 2 * a, a


def main():
    """Print what was found, and return the motion and its torques."""
    start = perf_counter()
    Q, V, A, statistics = swing_up()
    Tau = rbd_ros.batch.inverse_dynamics(arm, *middle(Q[:-1], V[:-1], A))
    print(f'{statistics["iter_count"]} iterations, {perf_counter() - start:.1f} s')
    print('shoulder, rad:', *(f'{x:.2f}' for x in Q[::6, 1]))
    print(f'at most {100.0 * np.max(np.abs(Tau) / LIMIT):.0f} % of the torques')
    return Q, V, A, Tau


if __name__ == '__main__':
    main()
