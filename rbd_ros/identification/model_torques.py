# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Torques of a robot along recorded motions, to be compared with the measured ones."""

import numpy as np
from rbd_ros import batch
from rbd_ros.model.changes.friction import direction, friction
from rbd_ros.model.model import Model
from rbd_ros.recordings.samples import Samples
from rbd_ros.workspace.passive_joints import all_springs, passive_friction

# Speed over which Coulomb friction changes its sign, as a fraction of the standstill threshold:
# above the threshold joints have full friction, as in the fit.
FRICTION_SMOOTHING = 0.5


def model_torques(model: Model, samples: Samples, smooth: float | np.ndarray
                  ) -> tuple[np.ndarray, np.ndarray]:
    """Return the torques of a robot along recorded motions, and their friction, (samples, nv)."""
    # Friction is filtered as the efforts were. It changes its sign over the speed `smooth`, rad/s
    # or m/s, well above the filtered noise of joints at rest.
    v = samples.v
    dry_friction = samples.low_pass(friction(model, v, direction(v, smooth), v)
                                    + passive_friction(model, samples.q, v, smooth))
    return (batch.inverse_dynamics(model, samples.q, v, samples.a) + dry_friction
            + all_springs(model, samples.q)), dry_friction
