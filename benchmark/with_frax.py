# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What frax computes of many states, compiled by JAX for the CPU, in float64 as all others.

JAX takes as many threads as there are cores.

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
    """Return for each function what is timed, and what returns its result; the base is fixed."""
    names = [joint.name for joint, _, _ in robot.model.moving_joints]
    with TemporaryDirectory() as folder:
        path = Path(folder) / 'robot.urdf'
        ElementTree.ElementTree(bare_urdf(robot)).write(path)
        theirs = frax.core.robot.Robot(str(path), joint_ordering=names)
    # As an acceleration of the root, moving part first.
    gravity = np.concatenate((-robot.model.gravity, np.zeros(3)))
    calls = {
        'inverse dynamics': (lambda q, v, a: theirs.rnea(q, v, a, gravity, None), (Q, V, A)),
        'forward dynamics': (lambda q, v, tau: theirs.forward_dynamics(q, v, tau, None),
                             (Q, V, Tau))}
    return {name: timed(function, states) for name, (function, states) in calls.items()}


def timed(function, states):
    """Return a call of all states, and what returns its result."""
    compiled, states = jax.jit(jax.vmap(function)), [jax.device_put(x) for x in states]
    return (lambda: compiled(*states).block_until_ready(),
            lambda: np.asarray(compiled(*states)))
