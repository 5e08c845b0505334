# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Springs of joints: torques that depend on q, beyond rigid-body dynamics.

tau_s = stiffness (q - reference). For ball joints the difference is the rotation vector of
R_reference^T R, in the axes of the child; the position of a free joint follows in the same axes,
R^T (p - p_reference). [MuJoCo: mj_passive.]

"""

import numpy as np
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.steps import CONJUGATE, quaternion_of_turn, step_between, turned


def springs(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the torques (..., nv) that hold the springs at valid configurations (..., nq)."""
    if not model.stiffness.any():
        return np.zeros((*q.shape[:-1], model.nv))
    reference = np.zeros(model.nq)
    for joint, i, k in model.moving_joints:
        at = model.spring_reference[k]
        reference[i] = at if KINDS[joint.kind].is_screws else [
            *quaternion_of_turn(at[:3]), *at[3:]]
    stretch = step_between(model, np.broadcast_to(reference, q.shape), q)
    for joint, i, k in model.moving_joints:
        if joint.kind == 'free':
            shift = q[..., i.start + 4:i.stop] - reference[i.start + 4:i.stop]
            stretch[..., k.start + 3:k.stop] = turned(
                q[..., i.start:i.start + 4] * CONJUGATE, shift)
    return model.stiffness * stretch
