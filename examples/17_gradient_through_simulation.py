# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The gradient of a simulated motion with JAX: constant torques that throw the arm to a goal.

A second is simulated by `jax.lax.scan`; Gauss and Newton find the seven torques from the
derivatives of the last positions with respect to them, by forward mode.

"""

import pathlib

import numpy as np
import rbd_ros

try:
    import jax
except ModuleNotFoundError:
    raise SystemExit('this example needs JAX: pip install jax') from None
import rbd_ros.jax as rbd_jax

URDF = pathlib.Path(__file__).parents[1] / 'urdf' / 'demo_arm.urdf'
h, STEPS, ITERATIONS = 0.02, 50, 8

arm = rbd_ros.load_urdf(URDF)
arm = rbd_ros.with_armature(arm, dict.fromkeys(arm.velocity_names, 0.1))
START = np.array((0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0))
GOAL = np.array((0.5, 0.4, 0.2, 0.8, -0.3, 0.7, 0.2))
acceleration, gravity = rbd_jax.forward_dynamics(arm), rbd_jax.gravity_torques(arm)


def end(torques):
    """Return the positions after a second with torques in addition to those of gravity."""
    def step(state, _):
        q, v = state
        v = v + h * acceleration(q, v, gravity(q) + torques - v)
        return (q + h * v, v), None
    (q, _), _ = jax.lax.scan(step, (START, np.zeros(arm.nv)), length=STEPS)
    return q


def main():
    """Print and return the errors of the last positions, rad, by iteration, and the torques."""
    jax.config.update('jax_enable_x64', True)
    linear_model = jax.jit(lambda torques: (end(torques), jax.jacfwd(end)(torques)))
    torques, errors = np.zeros(arm.nv), []
    for iteration in range(ITERATIONS):
        q, by_torques = linear_model(torques)
        errors.append(float(np.max(np.abs(q - GOAL))))
        print(f'{iteration}: {errors[-1]:.1e} rad')
        torques = torques + np.linalg.solve(by_torques, GOAL - q)
    return torques, errors


if __name__ == '__main__':
    main()
