# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Rotors and gains with which the torque controller moves a simulated robot, for demo and launch.

A URDF contains neither rotor inertias nor gains. Robot and controller get the same rotors, and
gains in proportion to the inertia of each joint.

"""

from pathlib import Path
from typing import Any

import numpy as np
from rbd_ros import mass_matrix, Model, random_configuration, with_armature
from rbd_ros.model import save_drives
from rbd_ros.model.positions.configurations import closed_along
from rbd_ros.ros.nodes.simulated_robot import rest_position, TOLERATED_DELAY, with_damping
from rbd_ros.ros.robot.read_model import load_quietly
import yaml

# 1/s: decay rate of errors; lower with springs only, which tolerate less delay at the same rate.
RATE, SPRING_RATE = 10.0, 5.0
ROTOR = 0.02    # Rotor inertia as a share of the largest inertia that a joint moves
POSES = 10
# Damping against delayed gravity torques is in gravity_damping: other modes need none.
ROBOT = {'tolerated_delay': 0.0}


def poses(model: Model) -> np.ndarray:
    """Return random configurations around the middle of the limits, one per row."""
    rng = np.random.default_rng(0)
    if model.loops is not None:
        return np.array([random_configuration(model, rng) for _ in range(POSES)])
    middle, half = rest_position(model), np.full(model.nv, 1.5)
    limited = np.isfinite(model.lower) & np.isfinite(model.upper)
    middle[limited] = 0.5 * (model.lower[limited] + model.upper[limited])
    half[limited] = np.minimum(1.5, 0.4 * (model.upper[limited] - model.lower[limited]))
    return middle + half * rng.uniform(-1.0, 1.0, (POSES, model.nv))


def with_rotors(model: Model) -> Model:
    """Return the robot with rotor inertias, which real drives have."""
    inertia = np.max([np.diag(mass_matrix(model, q)) for q in poses(model)], axis=0)
    of_kind = [inertia[model.angular == kind].max() for kind in model.angular]
    return with_armature(model, np.maximum(model.armature, ROTOR * np.array(of_kind)))


def gains(model: Model, q: np.ndarray) -> dict[str, Any]:
    """Return gains of all modes for a robot with rotors that starts at q (model.nq,), rad or m."""
    # Springs without inverse dynamics move everything that a joint carries; for the other laws,
    # the inertia of a joint is that with all other joints free.
    M = mass_matrix(model, q)
    carried, alone = np.diag(M), 1.0 / np.diag(np.linalg.inv(M))
    return {'friction': True, 'springs': True, 'control_joints': list(model.velocity_names),
            'gravity_damping': with_damping(model, TOLERATED_DELAY).damping.tolist(),
            'pd_gravity.stiffness': (SPRING_RATE ** 2 * carried).tolist(),
            'pd_gravity.damping': (2.0 * SPRING_RATE * carried).tolist(),
            'computed_torque.kp': [RATE ** 2],
            'joint_impedance.stiffness': (RATE ** 2 * alone).tolist(), 'slotine_li.rate': [RATE],
            'slotine_li.damping': (2.0 * RATE * alone).tolist(), 'hybrid.kp': [RATE ** 2]}


def write(urdf: str, start: list[float] | None, folder: Path) -> tuple[Path, Path]:
    """Write the drives and the gains of a robot to parameter files, and return their paths."""
    model = with_rotors(load_quietly(urdf))
    drives, chosen = folder / 'drives.yaml', folder / 'gains.yaml'
    save_drives(model, drives)
    parameters = gains(model, *closed_along(model, np.array(
        [rest_position(model) if start is None else start])))
    chosen.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}), encoding='utf-8')
    return drives, chosen
