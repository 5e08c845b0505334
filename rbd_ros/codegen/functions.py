# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The functions that can be traced: quantities that run on symbols, and closing loops."""

from collections.abc import Iterator, Mapping
import math
import re
from typing import Any

import numpy as np
from rbd_ros.codegen.symbols.interpretation import maximum
from rbd_ros.errors import ModelError
from rbd_ros.kernels.loops.arrays import LONGEST_STEP, STEP
from rbd_ros.kernels.tree.vectors import quaternion_rotation
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import quaternion_joints
from rbd_ros.quantities import QUANTITIES
from rbd_ros.workspace.documentation import USUAL
from rbd_ros.workspace.quantity import Quantity, VECTORS
from rbd_ros.workspace.workspace import workspace_of

# Meanings of inputs, without their shapes.
INPUTS = {name: re.sub(r' \(n[qv],\)', '', USUAL[name]) for name in VECTORS}


class Functions(Mapping[str, Quantity]):
    """The quantities by their names in generated code, or in the library."""

    def __getitem__(self, name: str) -> Quantity:
        for one in QUANTITIES.values():
            if name in (one.name, one.in_code) and not one.untraced:
                return one
        raise KeyError(name)

    def __iter__(self) -> Iterator[str]:
        return (one.in_code for one in QUANTITIES.values() if not one.untraced)

    def __len__(self) -> int:
        return len(list(iter(self)))


FUNCTIONS = Functions()


def closure_step(model: Model, q: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return q after a step of Newton's method, and the size of the gaps before it."""
    assert model.loops is not None
    workspace: Any = workspace_of(model)
    tree, own = model.unconstrained, set(model.loops.own.tolist())
    workspace._at(q)
    step, gap = workspace._vectors[STEP, :tree.nv].copy(), workspace._vectors[0, -1:].copy()
    longest = LONGEST_STEP
    for x in step:
        longest = maximum(longest, abs(x))
    factor, result = LONGEST_STEP / longest, q.copy()
    step = np.array([factor * x for x in step], object)
    for joint, i, k in tree.moving_joints:
        if joint.nq == joint.nv:
            result[i] = q[i] + step[k]
    for joint, i, k in quaternion_joints(tree):
        if own.isdisjoint(range(tree.nv)[k]):
            x, y, z, w = q[i.start:i.start + 4]
            turn = np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]], object)
            moved = q[i.start:i.start + 4] + turn @ (0.5 * step[k.start:k.start + 3])
            length = math.sqrt(np.dot(moved, moved))
            result[i.start:i.start + 4] = [x / length for x in moved]
            if joint.kind == 'free':
                R = np.array(quaternion_rotation(x, y, z, w), object).T
                result[i.start + 4:i.stop] += R @ step[k.start + 3:k.stop]
        elif not own.issuperset(range(tree.nv)[k]):
            raise ModelError(f"there is no code for closing loops with joint '{joint.name}', of "
                             'which some velocities are independent and some are not')
    return result, gap


# Of robots with closed loops.
CLOSING = {'closure_step': Quantity('closure_step', function=closure_step, results={
    'q_next': 'configuration after the step, rad or m',
    'gap': 'size of the gaps before it, m and rad'}, in_code='closure_step')}
