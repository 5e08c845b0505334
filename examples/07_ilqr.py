# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Trajectory optimization: iterative LQR with the derivatives of forward dynamics.

The demo arm moves to a goal within a second, smoothly and with small torques. All knots of a
trajectory are linearized in one call, on all cores.

"""

import pathlib

import numpy as np
import rbd_ros
from rbd_ros import batch

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
# s, and the inertia of the rotors at the joints, kg m^2, which a URDF does not contain
h, KNOTS, ROTORS = 0.02, 50, 0.1

arm = rbd_ros.load_urdf(URDF)
arm = rbd_ros.with_armature(arm, dict.fromkeys(arm.velocity_names, ROTORS))
n, one = arm.nv, np.eye(arm.nv)
workspace = rbd_ros.Workspace(arm)

START = np.concatenate(((0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0), np.zeros(n)))
GOAL = np.concatenate(((0.8, 0.2, 0.3, 0.6, -0.4, 0.9, 0.2), np.zeros(n)))
W = np.diag(np.concatenate((np.full(n, 1e3), np.full(n, 1e2))))    # at the end
Q = h * np.diag(np.concatenate((np.zeros(n), np.ones(n))))         # on the way
R = h * np.diag(1.0 / arm.effort_limit)


def step(x, u):
    """Return the state after a semi-implicit Euler step."""
    q, v = x[:n], x[n:]
    v = v + h * workspace.forward_dynamics(q, v, u)
    return np.concatenate((q + h * v, v))


def linear_models(X, U):
    """Return A, shape (knots, 2 n, 2 n), and B, shape (knots, 2 n, n), of x' = A x + B u."""
    a_q, a_v, a_u = batch.forward_dynamics_derivatives(arm, X[:-1, :n], X[:-1, n:], U)
    A = np.block([[one + h * h * a_q, h * (one + h * a_v)], [h * a_q, one + h * a_v]])
    return A, np.concatenate((h * h * a_u, h * a_u), axis=1)


def cost(X, U):
    """Return the cost of the final error, and of speeds and torques on the way."""
    end = X[-1] - GOAL
    return 0.5 * (end @ W @ end + np.einsum('ti,ij,tj', X[:-1], Q, X[:-1])
                  + np.einsum('ti,ij,tj', U, R, U))


def backward(X, U):
    """Return changes and feedback gains of the torques, by a Riccati recursion."""
    A, B = linear_models(X, U)
    p, P = W @ (X[-1] - GOAL), W
    change, feedback = np.zeros((KNOTS, n)), np.zeros((KNOTS, n, 2 * n))
    for t in reversed(range(KNOTS)):
        H, G = R + B[t].T @ P @ B[t], B[t].T @ P @ A[t]
        change[t] = -np.linalg.solve(H, R @ U[t] + B[t].T @ p)
        feedback[t] = -np.linalg.solve(H, G)
        p = Q @ X[t] + A[t].T @ p + G.T @ change[t]
        P = Q + A[t].T @ P @ A[t] + G.T @ feedback[t]
    return change, feedback


def forward(X, U, change, feedback):
    """Return the states and torques that result from a change and its feedback."""
    states, torques = [START], []
    for t in range(KNOTS):
        torques.append(U[t] + change[t] + feedback[t] @ (states[-1] - X[t]))
        states.append(step(states[-1], torques[-1]))
    return np.array(states), np.array(torques)


def main():
    """Print the cost of each iteration, and return states, torques and costs."""
    held = np.tile(rbd_ros.gravity_torques(arm, START[:n]), (KNOTS, 1))
    X, U = forward(np.tile(START, (KNOTS, 1)), held, np.zeros((KNOTS, n)),
                   np.zeros((KNOTS, n, 2 * n)))
    costs = [cost(X, U)]
    for _ in range(20):
        change, feedback = backward(X, U)
        # Halve the step until the cost decreases.
        for share in 0.5 ** np.arange(8):
            tried = forward(X, U, share * change, feedback)
            if cost(*tried) < costs[-1]:
                break
        if cost(*tried) > (1.0 - 1e-4) * costs[-1]:
            break
        X, U = tried
        costs.append(cost(X, U))
    print('cost:', *(f'{one:.4g}' for one in costs))
    print(f'{np.abs(X[-1] - GOAL).max():.4f} rad or rad/s final error')
    return X, U, costs


if __name__ == '__main__':
    main()
