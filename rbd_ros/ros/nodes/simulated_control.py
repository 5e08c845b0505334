# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
How the torque controller moves a simulated robot: one choice, for the demo and launch files.

A URDF has neither the rotors of the drives nor gains. The robot and its controller are given the
same rotors, and gains in proportion to the inertia of each joint.

"""

from pathlib import Path
from typing import Any
import warnings

import numpy as np
from rbd_ros import (
    load_urdf_string, mass_matrix, Model, ModelWarning, with_armature)
from rbd_ros.model import save_drives
from rbd_ros.ros.nodes.simulated_robot import rest_position, TOLERATED_DELAY, with_damping
import yaml

# 1/s: how fast errors die out; with springs alone, which bear shorter delays if they are as fast.
RATE, SPRING_RATE = 10.0, 5.0
# Inertia of a rotor, as a share of the largest inertia that a joint moves.
ROTOR = 0.02
# Poses that are tried.
TRIES = 200
# Parameters of the simulated robot: the damping that lets late gravity torques hold it is in
# gravity_damping, since the other modes would have to overcome it.
ROBOT = {'tolerated_delay': 0.0}


def poses(model: Model) -> np.ndarray:
    """Return positions in the middle of the limits, one a row."""
    rng = np.random.default_rng(0)
    middle, half = rest_position(model), np.full(model.nv, 1.5)
    limited = np.isfinite(model.lower) & np.isfinite(model.upper)
    middle[limited] = 0.5 * (model.lower[limited] + model.upper[limited])
    half[limited] = np.minimum(1.5, 0.4 * (model.upper[limited] - model.lower[limited]))
    return middle + half * rng.uniform(-1.0, 1.0, (TRIES, model.nv))


def with_rotors(model: Model) -> Model:
    """Return the robot with rotors, which every drive has, and which a URDF does not tell."""
    inertia = np.max([np.diag(mass_matrix(model, q)) for q in poses(model)[:10]], axis=0)
    of_kind = [inertia[model.angular == kind].max() for kind in model.angular]
    return with_armature(model, np.maximum(model.armature, ROTOR * np.array(of_kind)))


def gains(model: Model, q: np.ndarray) -> dict[str, Any]:
    """
    Return parameters of the torque controller with which each mode moves a robot.

    Parameters
    ----------
    model : Model
        The robot, with its rotors.
    q : ndarray, shape (model.nq,)
        Where it begins; rad for revolute, m for prismatic joints.

    Returns
    -------
    dict
        Values by name. Springs without inverse dynamics have to move all that a joint carries; to
        the other laws a joint is as light as it is while those after it give way.

    """
    M = mass_matrix(model, q)
    carried, alone = np.diag(M), 1.0 / np.diag(np.linalg.inv(M))
    return {
        'friction': True,
        'control_joints': list(model.velocity_names),
        'gravity_damping': with_damping(model, TOLERATED_DELAY).damping.tolist(),
        'pd_gravity.stiffness': (SPRING_RATE ** 2 * carried).tolist(),
        'pd_gravity.damping': (2.0 * SPRING_RATE * carried).tolist(),
        'computed_torque.kp': [RATE ** 2],
        'joint_impedance.stiffness': (RATE ** 2 * alone).tolist(),
        'slotine_li.rate': [RATE],
        'slotine_li.damping': (2.0 * RATE * alone).tolist(),
        'hybrid.kp': [RATE ** 2]}


def write(urdf: str, start: list[float] | None, folder: Path) -> tuple[Path, Path]:
    """
    Write parameter files for a robot: its drives, and the gains of its controller.

    Parameters
    ----------
    urdf : str
        The URDF, as text.
    start : list of float, optional
        Where it begins, rad or m; default: as for the simulated robot.
    folder : Path
        Where the files go.

    Returns
    -------
    drives, gains : Path
        The simulated robot takes the first, the torque controller both.

    Raises
    ------
    RbdError
        If the robot cannot be simulated.

    """
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        model = load_urdf_string(urdf)
    model = with_rotors(model)
    drives, chosen = folder / 'drives.yaml', folder / 'gains.yaml'
    save_drives(model, drives)
    parameters = gains(model, rest_position(model) if start is None else np.array(start))
    chosen.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}), encoding='utf-8')
    return drives, chosen
