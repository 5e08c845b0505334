# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is shown of a robot at one moment."""

from collections.abc import Mapping
from dataclasses import dataclass, field

import numpy as np
from rbd_ros.dynamics import all_terms
from rbd_ros.kinematics import body_jacobian
from rbd_ros.model.model import Model


@dataclass(frozen=True)
class State:
    """
    What is shown of a robot at one moment; NaN stands for what is not known.

    Attributes
    ----------
    q : ndarray, shape (nq,)
        Configuration, rad or m.
    v : ndarray, shape (nv,)
        Velocity, rad/s or m/s.
    M, C : ndarray, shape (nv, nv)
        Mass and Coriolis matrix.
    gravity, coriolis, external : ndarray, shape (nv,)
        Torques, N m or N.
    effort : ndarray, shape (nv,)
        The efforts of the drives, N m or N.
    com : ndarray, shape (3,)
        Centre of mass in the root's frame, m.
    wrenches : mapping of str to ndarray
        Wrenches (moment, force) on links, at their origins and in their axes, N m and N.

    """

    q: np.ndarray
    v: np.ndarray
    M: np.ndarray
    C: np.ndarray
    gravity: np.ndarray
    coriolis: np.ndarray
    external: np.ndarray
    effort: np.ndarray
    com: np.ndarray
    wrenches: Mapping[str, np.ndarray] = field(default_factory=dict)


def computed_state(model: Model, q: np.ndarray, v: np.ndarray,
                   wrenches: Mapping[str, np.ndarray]) -> State:
    """
    Return what a model says of a state, and the efforts that would keep its velocity.

    Parameters
    ----------
    model : Model
        The robot.
    q, v : ndarray, shapes (nq,) and (nv,)
        Configuration and velocity.
    wrenches : mapping of str to ndarray
        Wrenches (moment, force) on links, at their origins and in their axes, N m and N.

    Returns
    -------
    State

    """
    terms = all_terms(model, q, v)
    external = np.zeros(model.nv)
    for link, wrench in wrenches.items():
        external += body_jacobian(model, q, link).T @ wrench
    return State(q, v, terms.M, terms.C, terms.g, terms.coriolis_torques, external,
                 terms.g + terms.coriolis_torques - external, terms.com, wrenches)
