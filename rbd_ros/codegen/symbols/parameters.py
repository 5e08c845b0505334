# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters of a robot that its functions take as inputs, in place of its own numbers."""

from collections.abc import Mapping, Sequence

import numpy as np
from rbd_ros.codegen.graph import Array
from rbd_ros.codegen.symbols.interpretation import interpreted
from rbd_ros.errors import ModelError
from rbd_ros.kernels.tree.layout import GRAVITY, INERTIA, LANES, POSITION
from rbd_ros.model.body_table import (
    AXIAL, carrying, hinges, inertial_constants, PSEUDO_ENTRIES)
from rbd_ros.model.changes.inertial import (
    moving_bodies, PARAMETERS as INERTIAL, pseudo_inertia_of_parameters)
from rbd_ros.model.model import Model

MEANINGS = {
    'pi': 'inertial parameters of the moving bodies, kg, kg m and kg m^2: m, m c (3), Ixx, Iyy, '
          'Izz, Ixy, Ixz, Iyz of each',
    'positions': 'origins of the moving joints in the frames of their parent links, m',
    'gravity': 'acceleration of gravity in the frame of the root, m/s^2',
    'bodies': 'gravity and inertias as kernels read them, m/s^2, kg m^2, kg m, kg',
    'wrenches': 'external wrenches on the bodies of the kernels, in their frames, N m and N'}


def parameter_arrays(model: Model, names: Sequence[str]) -> list[Array]:
    """Return the inputs for parameters; raise ModelError for unknown names."""
    bodies = len(moving_bodies(model))
    lengths = {'pi': len(INERTIAL) * bodies, 'positions': 3 * bodies, 'gravity': 3,
               'bodies': len(inertial_constants(model.tree)),
               'wrenches': 6 * len(model.tree.robot)}
    for name in names:
        if name not in lengths:
            raise ModelError(f"there is no parameter '{name}': choose from {', '.join(lengths)}")
    return [Array(name, (lengths[name],), MEANINGS[name]) for name in names]


def replaced(model: Model, constants: np.ndarray, places: np.ndarray,
             values: Mapping[str, np.ndarray], whole: bool) -> np.ndarray:
    """Return the constants of a robot with symbols as parameters, of whole bodies or not."""
    constants, tree = constants.astype(object), model.tree

    def put(row: int, first: int, columns: np.ndarray) -> None:
        constants[places[row] + LANES * np.arange(first, first + len(columns))] = columns
    if 'gravity' in values:
        put(0, GRAVITY, values['gravity'])
    if 'bodies' in values:
        put(0, GRAVITY, values['bodies'][:3])
        of_hinges = hinges(tree.robot)
        for row, G in zip(carrying(tree), values['bodies'][3:].reshape(-1, 10)):
            put(row, INERTIA, G)
            if of_hinges[row] and not whole:
                constants[places[row] + LANES * (INERTIA + np.array(AXIAL))] = 0.0
    P = interpreted(pseudo_inertia_of_parameters)(values['pi'].reshape(-1, 10)) if (
        'pi' in values) else ()
    for k, link in enumerate(moving_bodies(model)):
        row, joint = tree.link_body[link], model.joints[link - 1]
        if 'pi' in values:
            # The body's frame is turned, its axis is z.
            turn = np.eye(4)
            turn[:3, :3] = tree.link_pose[link][:3, :3]
            put(row, INERTIA, (turn @ P[k] @ turn.T)[PSEUDO_ENTRIES])
        if 'positions' in values:
            T, first = tree.link_pose[model.link_index(joint.parent)], row - joint.nv + 1
            # A mimic's offset slides its body.
            slid = (tree.robot - model.spanning_tree.tree.robot)[first, POSITION:POSITION + 3]
            put(first, POSITION, T[:3, :3] @ values['positions'][3 * k:3 * k + 3]
                + (T[:3, 3] + slid))
    return constants


def add_payload(model: Model, constants: np.ndarray, places: np.ndarray, link: str,
                payload: np.ndarray) -> np.ndarray:
    """Return the constants of a robot whose link carries a point mass: kg, and its place, m."""
    constants, tree, index = constants.astype(object), model.tree, model.link_index(link)
    row, T = tree.link_body[index], tree.link_pose[index]
    if row == 0:
        raise ModelError(f"link '{link}' is part of the root: no joint moves a payload there")
    point = np.array([*(T[:3, :3] @ payload[1:] + T[:3, 3]), 1.0], object)
    added = np.outer(np.array([payload[0] * x for x in point], object), point)[PSEUDO_ENTRIES]
    constants[places[row] + LANES * np.arange(INERTIA, INERTIA + len(added))] += added
    return constants
