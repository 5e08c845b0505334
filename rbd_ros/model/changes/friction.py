# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Friction of joints and drives: motor torques beyond rigid-body dynamics.

For each velocity v, with s = sign(v) or a smooth tanh(v / smooth),

    tau_f = damping v + damping_asymmetry |v|
            + (friction + stribeck_friction exp(-(v / stribeck_velocity)^2)) s
            + friction_asymmetry |s| + effort_offset.

All terms but the last dissipate energy at any velocity, since damping >= |damping_asymmetry|,
friction >= |friction_asymmetry| and stribeck_friction >= 0. The offset, a zero error of the drive
or a spring, may add energy. [Armstrong-Helouvry et al. (1994) for the Stribeck term.]

"""

import numpy as np
from rbd_ros.model.model import Model

# Bound of v / stribeck_velocity: exp(-40^2) is zero, and larger squares could overflow.
_MAX_RATIO = 40.0


def friction_terms(model: Model, v: np.ndarray, s: np.ndarray,
                   speed: np.ndarray) -> dict[str, np.ndarray]:
    """Return the factor of each coefficient in the equation above, by name, shape (..., nv)."""
    # `speed` are the velocities in the Stribeck term.
    fading = s
    if model.stribeck_velocity.any():
        with np.errstate(over='ignore'):
            ratio = np.divide(speed, model.stribeck_velocity, out=np.zeros_like(v),
                              where=model.stribeck_velocity > 0.0)
        fading = np.exp(-np.square(np.minimum(np.abs(ratio), _MAX_RATIO))) * s
    return {'damping': v, 'damping_asymmetry': np.abs(v), 'friction': s,
            'friction_asymmetry': np.abs(s), 'effort_offset': np.ones_like(v),
            'stribeck_friction': fading}


def friction(model: Model, v: np.ndarray, s: np.ndarray, speed: np.ndarray) -> np.ndarray:
    """Return friction torques, shape (..., nv); arguments as for `friction_terms`."""
    return sum((getattr(model, label) * term
                for label, term in friction_terms(model, v, s, speed).items()), np.zeros_like(v))


def direction(v: np.ndarray, smooth: float | np.ndarray) -> np.ndarray:
    """Return s: the sign of each velocity, or tanh(v / smooth) if no ``smooth`` is zero."""
    return np.tanh(v / smooth) if np.all(smooth) else np.sign(v)
