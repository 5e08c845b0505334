# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The effect of a `rbd_ros.analysis.Variation` on the bodies of the kernels' table.

Links that are fixed to each other are one body there, in the frame of the joint that leads to it.
If p moves a fixed joint, all links beyond it move inside the body, by a motion D in its axes: the
body's inertia and wrench change, and so do the placements of the joints on these links.

"""

from collections.abc import Mapping
from typing import Any

import numpy as np
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import finite_array, finite_vector, shown, Wrenches, wrenches
from rbd_ros.model.body_table import PSEUDO_ENTRIES, pseudo_inertias
from rbd_ros.model.changes.inertial import (
    inertia_of_parameters, parameters_of_inertia, pseudo_inertia_of_parameters)
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, ad, hat, inverse
from rbd_ros.workspace.variation import Variation

ROUNDING = 1e-9    # largest relative deviation of a 6x6 inertia change from a possible one
CHANGE, TURNING = 23, 13    # lengths of the rows of `body_changes`
NOTHING = np.zeros((0, CHANGE)), np.zeros((0, TURNING))


def body_changes(model: Model, variation: Variation,
                 external_wrenches: Wrenches | None) -> tuple[np.ndarray, np.ndarray]:
    """
    Return the changes of the bodies, as the kernels of directional derivatives read them.

    A row of the first array (bodies that change, CHANGE) has the number of the body; the motion of
    its joint's placement, in the parent's frame (6); and the changes of its inertia (Sigma (6), h
    (3), m) and of its wrench (6), in its frame. A row of the second (links, TURNING) is of a
    wrench that does not turn with its link: the number of the body; moment, force and position (3
    each) in its axes; and the rotation of the link inside the body (3).

    """
    if (variation.dwrenches == {} and variation.dinertia == {} and variation.dplacement == {}
            and variation.world_fixed == ()):
        return NOTHING
    forces = wrenches(model, external_wrenches)
    dforces = wrenches(model, variation.dwrenches, 'dwrenches')
    inertias = inertias_by_link(model, variation.dinertia)
    placements = placements_by_joint(model, variation.dplacement)
    world_fixed = {model.link_index(link) for link in variation.world_fixed}
    tree = model.tree
    rows: dict[int, np.ndarray] = {}

    def add(body: int, first: int, change: np.ndarray) -> None:
        row = rows.setdefault(body, np.zeros(CHANGE))
        row[0] = body
        row[first:first + len(change)] += change
    moved: dict[int, np.ndarray] = {}    # how the links move inside their bodies
    for k, joint in enumerate(model.joints, 1) if placements else ():
        up = model.link_index(joint.parent)
        D = moved.get(up)
        if joint.name in placements:
            own = Ad(tree.link_pose[up] @ joint.placement) @ placements[joint.name]
            D = own if D is None else D + own
        if D is not None and joint.nv:
            add(tree.link_body[k] - joint.nv + 1, 1, D)
        elif D is not None:
            moved[k] = D
    for k in {*inertias, *moved}:
        X, dP = tree.link_pose[k], np.zeros((4, 4))
        if k in inertias:
            dP = X @ _pseudo_inertia_change(model, k, inertias[k]) @ X.T
        if k in moved and tree.link_body[k]:    # the ground's inertia has no effect
            half = hat(moved[k]) @ X @ pseudo_inertias([model.links[k]])[0] @ X.T
            dP = dP + half + half.T
        add(tree.link_body[k], 7, dP[PSEUDO_ENTRIES])
    turning = []
    for k in {*dforces, *forces}:
        X = tree.link_pose[k]
        to_body = Ad(inverse(X)).T
        if k in dforces:
            add(tree.link_body[k], 17, to_body @ dforces[k])
        if k in forces and k in moved:
            add(tree.link_body[k], 17, -ad(moved[k]).T @ to_body @ forces[k])
        if k in forces and k in world_fixed:
            R, (moment, force) = X[:3, :3], np.split(forces[k], 2)
            turning.append([tree.link_body[k], *R @ moment, *R @ force, *X[:3, 3],
                            *moved.get(k, np.zeros(6))[:3]])
    return (np.array(list(rows.values())).reshape(-1, CHANGE),
            np.array(turning, float).reshape(-1, TURNING))


def check_directions(model: Model, variation: Variation, *labels: str) -> list[np.ndarray]:
    """Return derivatives with one entry per velocity as arrays; zeros where there are none."""
    values = ((label, getattr(variation, label)) for label in labels)
    return [np.zeros(model.nv) if x is None else finite_vector(model, label, x)
            for label, x in values]


def inertias_by_link(model: Model, values: object) -> dict[int, np.ndarray]:
    """Return changes of inertias, ten parameters or 6x6, by the indices of links, checked."""
    return {model.link_index(link): finite_array(f"dinertia of link '{link}'", x, (10,), (6, 6))
            for link, x in _named('dinertia', values).items()}


def placements_by_joint(model: Model, values: object) -> dict[str, np.ndarray]:
    """Return changes of placements by the names of joints, checked."""
    known, values = {joint.name for joint in model.joints}, _named('dplacement', values)
    for name in values:
        if name not in known:
            raise ModelError(f"robot '{model.name}' has no joint '{name}', named in dplacement")
    return {name: finite_array(f"dplacement of joint '{name}'", x, (6,))
            for name, x in values.items()}


def _pseudo_inertia_change(model: Model, k: int, change: np.ndarray) -> np.ndarray:
    """Return the change of the integral of (r, 1) (r, 1)^T over a link's mass, in its axes."""
    if change.ndim == 2:
        pi = parameters_of_inertia(change)
        rest = np.max(np.abs(inertia_of_parameters(pi) - change))
        if rest > ROUNDING * np.max(np.abs(change)):
            raise StateError(
                f"dinertia of link '{model.link_names[k]}' is not the change of a rigid body's "
                'inertia, [I, [h]; [h]^T, m 1] with I symmetric')
        change = pi
    return pseudo_inertia_of_parameters(change)


def _named(label: str, values: object) -> Mapping[str, Any]:
    """Return changes by the names of links or joints; raise if they are not a dict."""
    if not isinstance(values, Mapping):
        raise StateError(f'{label} must be a dict by names, got {shown(values)}')
    return values
