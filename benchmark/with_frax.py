# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Functions of frax for many states, compiled by JAX for the CPU, in float64 like all others.

JAX uses as many threads as there are cores.

"""

from pathlib import Path
from tempfile import TemporaryDirectory
from xml.etree import ElementTree

import frax.core.robot
import jax
import numpy as np
from robots import bare_urdf

jax.config.update('jax_enable_x64', True)


def functions(robot, Q, V, A, Tau):
    """Return for each function the timed call and its result; the base is fixed."""
    theirs = load(robot)
    calls = {
        'inverse dynamics': (inverse_dynamics(robot, theirs), (Q, V, A)),
        'forward dynamics': (lambda q, v, tau: theirs.forward_dynamics(q, v, tau, None),
                             (Q, V, Tau))}
    return {name: timed(function, states) for name, (function, states) in calls.items()}


def load(robot):
    """Return the robot as frax has it."""
    names = [joint.name for joint, _, _ in robot.model.moving_joints]
    with TemporaryDirectory() as folder:
        path = Path(folder) / 'robot.urdf'
        ElementTree.ElementTree(bare_urdf(robot)).write(path)
        return frax.core.robot.Robot(str(path), joint_ordering=names)


def inverse_dynamics(robot, theirs=None):
    """Return inverse dynamics of one state."""
    theirs = theirs or load(robot)
    # As an acceleration of the root, linear part first.
    gravity = np.concatenate((-robot.model.gravity, np.zeros(3)))
    return lambda q, v, a: theirs.rnea(q, v, a, gravity, None)


def timed(function, states):
    """Return a call for all states, and a function that returns its result."""
    compiled, states = jax.jit(jax.vmap(function)), [jax.device_put(x) for x in states]
    return (lambda: compiled(*states).block_until_ready(),
            lambda: np.asarray(compiled(*states)))
