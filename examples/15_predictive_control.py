# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Model-predictive control with CasADi: a new plan every 10 ms, within limits of torque and speed.

A plan holds eight accelerations for 40 ms each. One step of Gauss and Newton improves it: the
positions and velocities are linear in the accelerations, the torques are linearized, and a
quadratic program with 56 unknowns is solved. The arm has half of its torques.

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
PERIOD, DURATION = 0.01, 3.0    # s, of plans and of the simulation
KNOTS, h = 8, 0.04              # accelerations of a plan and how long each holds, s
START = np.array([-1.0, -0.6, 0.0, 1.0, 0.0, 0.5, 0.0])
GOAL = np.array([1.2, 0.9, 0.3, 0.6, -0.4, 0.9, 0.2])

arm = rbd_ros.load_urdf(URDF)
arm = rbd_ros.with_armature(arm, dict.fromkeys(arm.velocity_names, 0.1))
n = arm.nv
unknowns = n * KNOTS
LIMIT, SPEED = np.tile(arm.effort_limit / 2.0, KNOTS), np.tile(arm.velocity_limit, KNOTS)
# Weights of the errors and velocities at the ends of the intervals, and of shares of the torques.
ERROR, MOTION, EFFORT = np.full(unknowns, 10.0), np.full(unknowns, 0.1), 0.01 / LIMIT ** 2
ERROR[-n:], MOTION[-n:] = 50.0, 5.0

# The positions and velocities at the ends: by the accelerations, and with none.
ends = np.arange(1, KNOTS + 1)
BY_POSITION = np.kron(h ** 2 * np.tril(ends[:, None] - ends + 0.5), np.eye(n))
BY_VELOCITY = np.kron(h * np.tril(np.ones((KNOTS, KNOTS))), np.eye(n))
HESSIAN = (BY_POSITION.T * ERROR) @ BY_POSITION + (BY_VELOCITY.T * MOTION) @ BY_VELOCITY


def linear_torques():
    """Return a function of q, v and the plan: the torques, and their derivative by the plan."""
    torques = rbd_ros.casadi.inverse_dynamics(arm)
    q, v, plan = casadi.MX.sym('q', n), casadi.MX.sym('v', n), casadi.MX.sym('plan', unknowns)
    state, tau = (q, v), []
    for a in casadi.vertsplit(plan, n):
        tau.append(torques(*state, a))
        state = state[0] + h * state[1] + h ** 2 / 2 * a, state[1] + h * a
    tau = casadi.vertcat(*tau)
    return casadi.Function('linear_torques', [q, v, plan],
                           [tau, casadi.densify(casadi.jacobian(tau, plan))])


torques_of_plan = linear_torques()
solver = casadi.conic('solver', 'daqp', {'h': casadi.Sparsity.dense(unknowns, unknowns),
                                         'a': casadi.Sparsity.dense(2 * unknowns, unknowns)})


def improve(q, v, plan):
    """Return a better plan for the state q, v."""
    tau, by_plan = (x.full() for x in torques_of_plan(q, v, plan))
    tau = tau[:, 0]
    V = np.tile(v, KNOTS) + BY_VELOCITY @ plan
    Q = (q + h * np.outer(ends, v)).ravel() + BY_POSITION @ plan
    effort = by_plan.T * EFFORT
    gradient = (BY_POSITION.T @ (ERROR * (Q - np.tile(GOAL, KNOTS)))
                + BY_VELOCITY.T @ (MOTION * V) + effort @ tau)
    change = solver(h=HESSIAN + effort @ by_plan, g=gradient, a=np.vstack((by_plan, BY_VELOCITY)),
                    lba=np.concatenate((-LIMIT - tau, -SPEED - V)),
                    uba=np.concatenate((LIMIT - tau, SPEED - V)))['x']
    return plan + change.full()[:, 0]


def shifted(plan):
    """Return the plan as it continues one period later."""
    rows = plan.reshape(KNOTS, n)
    share = PERIOD / h
    return ((1.0 - share) * rows + share * np.vstack((rows[1:], rows[-1:]))).ravel()


def main():
    """Print times and errors; return times of steps, states and torques."""
    q, v, plan = START, np.zeros(n), np.zeros(unknowns)
    times, states, torques = [], [], []
    for _ in range(round(DURATION / PERIOD)):
        start = perf_counter()
        plan = improve(q, v, plan)
        times.append(perf_counter() - start)
        tau = rbd_ros.inverse_dynamics(arm, q, v, plan[:n])
        motion = rbd_ros.simulate(arm, q, v, tau, np.linspace(0.0, PERIOD, 11))
        q, v, plan = motion.q[-1], motion.v[-1], shifted(plan)
        states.append((q, v))
        torques.append(tau)
    print(f'a step takes {1e3 * np.median(times):.2f} ms (median), '
          f'{1e3 * np.percentile(times, 99):.2f} ms (99 %)')
    print(f'{np.max(np.abs(q - GOAL)):.1e} rad from the goal after {DURATION:.0f} s; at most '
          f'{100.0 * np.max(np.abs(torques) / LIMIT[:n]):.0f} % of the torques')
    return times, states, np.array(torques)


if __name__ == '__main__':
    main()
