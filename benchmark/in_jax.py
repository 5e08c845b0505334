# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time the functions of `rbd_ros.jax` for many states: torques, and gradients of their squares.

Compared are `rbd_ros.batch` (torques; derivatives, from which gradients are made) and automatic
differentiation of a recursion in JAX: that of frax, if installed (`pip install frax`). Where XLA
computes other things than kernels, it uses all cores, like `rbd_ros.batch`.

"""

from importlib.util import find_spec

import jax
import jax.numpy as jnp
import numpy as np
import rbd_ros
from rbd_ros import batch
import rbd_ros.jax
from robots import robots
from timing import options, quartiles, save, take_turns

LABELS = 'Panda', 'Talos', 'Talos, floating'
STATES = 1, 1_024, 4_096, 16_384
# States for gradients at most: derivatives of 16,384 states of Talos are 0.4 GB.
OF_MATRICES = 4_096
# By automatic differentiation, which takes seconds, for fewer.
OF_RECURSIONS = 1_024
# Of results, relative to the largest. Rounding errors of Talos' gradients are 1e-13 of these.
AGREEMENT = 1e-10


def gradient(function):
    """Return the compiled gradient of the sum of squares of the torques of many states."""
    return jax.jit(jax.vmap(jax.grad(lambda *state: jnp.sum(function(*state) ** 2), (0, 1, 2))))


def gradient_of_batch(model, Q, V, A):
    """Return the same gradient by `rbd_ros.batch` for a robot with v = dq/dt."""
    tau = batch.inverse_dynamics(model, Q, V, A)
    return [2.0 * np.einsum('km,kmn->kn', tau, x)
            for x in batch.inverse_dynamics_derivatives(model, Q, V, A)]


def compiled(function, states):
    """Return a call of a compiled function that waits for the results."""
    states = [jax.device_put(x) for x in states]
    return lambda: jax.block_until_ready(function(*states))


def check(name, results, expected):
    """Raise unless results agree."""
    for x, y in zip(results, expected, strict=True):
        error = np.max(np.abs(np.asarray(x) - y)) / np.max(np.abs(y))
        if not error < AGREEMENT:
            raise AssertionError(f'{name}: results differ by {error:.1g}')


def recursions(robot):
    """Return recursions of inverse dynamics in JAX, by name."""
    if robot.floating or not find_spec('frax'):
        return {}
    import with_frax
    return {'autodiff of frax': with_frax.inverse_dynamics(robot)}


def measure(robot, count, quick):
    """Return the row of a number of states."""
    model, rng = robot.model, np.random.default_rng(0)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(count)])
    states = Q, *rng.normal(size=(2, count, model.nv))
    function = rbd_ros.jax.inverse_dynamics(model)
    torques = compiled(jax.jit(jax.vmap(function)), states)
    check('torques', [torques()], [batch.inverse_dynamics(model, *states)])
    calls = {'batch': lambda: batch.inverse_dynamics(model, *states), 'jax': torques}
    if count <= OF_MATRICES:
        calls['derivatives, batch'] = lambda: batch.inverse_dynamics_derivatives(model, *states)
        calls['gradient, jax'] = compiled(gradient(function), states)
        for name, recursion in (recursions(robot).items() if count <= OF_RECURSIONS else ()):
            calls[name] = compiled(gradient(recursion), states)
            check(name, calls[name](), gradient_of_batch(model, *states))
        if model.nq == model.nv:
            check('gradient', calls['gradient, jax'](), gradient_of_batch(model, *states))
    times = take_turns(calls, quick=quick)
    ratio = {'jax to batch': ('jax', 'batch'),
             'gradient to derivatives': ('gradient, jax', 'derivatives, batch'),
             'autodiff to gradient': ('autodiff of frax', 'gradient, jax')}
    return {'robot': robot.label, 'states': count,
            'us': {name: 1e6 * float(np.median(t)) for name, t in times.items()},
            'best us': {name: 1e6 * float(np.min(t)) for name, t in times.items()},
            'ratio': {name: quartiles(times[a] / times[b]) for name, (a, b) in ratio.items()
                      if a in times and b in times}}


def main():
    """Measure and store."""
    arguments = options(__doc__).parse_args()
    jax.config.update('jax_enable_x64', True)
    rows = []
    for robot in robots():
        if robot.label not in LABELS:
            continue
        for count in STATES:
            rows.append(row := measure(robot, count, arguments.quick))
            print(row['robot'], f'{count} states:', ', '.join(
                f'{name} {t:,.0f} us' for name, t in row['us'].items()), '|', ', '.join(
                f'{name} {x[1]:.2f}' for name, x in row['ratio'].items()), flush=True)
    save('in_jax', arguments.quick, {'rows': rows})


if __name__ == '__main__':
    main()
