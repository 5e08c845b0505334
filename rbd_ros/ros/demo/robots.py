# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Choices of the demo for a robot: an initial position, a physics engine, and a link."""

import numpy as np
from rbd_ros import gravity_torques, Model, ModelError, world_jacobian
from rbd_ros.ros.nodes.simulated_control import poses
from rbd_ros.simulation.mujoco_robot import MujocoRobot

MAX_LOAD_SHARE = 0.7    # Gravity torques of initial positions, as a share of the effort limits


class DemoFailed(Exception):
    """The demo could not be run; the message gives the reason."""


def units(model: Model, k: int) -> tuple[str, str]:
    """Return the units of position and effort of a joint."""
    return ('rad', 'N m') if model.angular[k] else ('m', 'N')


def load_share(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the gravity torques as shares of the effort limits."""
    load = np.abs(gravity_torques(model, q))
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.where(load > 0.0, load / model.effort_limit, 0.0)


def heavy_position(model: Model) -> np.ndarray:
    """Return the hardest position to hold, among some that the drives can hold."""
    tries = poses(model)
    bearable = [q for q in tries if np.max(load_share(model, q)) <= MAX_LOAD_SHARE]
    return max(bearable or tries, key=lambda q: np.linalg.norm(gravity_torques(model, q)))


def too_weak(model: Model, q: np.ndarray) -> str:
    """Return which drive cannot hold a position, with its limit; empty: all can."""
    share = load_share(model, q)
    k = int(np.argmax(share))
    if share[k] <= 1.0:
        return ''
    _, unit = units(model, k)
    return (f"'{model.velocity_names[k]}' needs {abs(gravity_torques(model, q)[k]):.3g} {unit}, "
            f'but the URDF limits its drive to at most {model.effort_limit[k]:.3g} {unit}')


def choose_engine(wanted: str, urdf: str, model: Model, q: np.ndarray) -> tuple[str, str]:
    """Return the node that simulates a robot at q, and a line for the user; prefer MuJoCo."""
    own = 'simulated_robot', 'Physics by rbd_ros'
    if wanted == 'own':
        return own[0], f'{own[1]}.'
    try:
        MujocoRobot(urdf, model)
    except ModelError as error:
        if wanted:
            raise
        return own[0], f'{own[1]}: {error}'
    weak = too_weak(model, q)
    if weak and not wanted:
        return own[0], f'{own[1]}, with drives without limits: {weak}'
    return 'mujoco_robot', 'Physics by MuJoCo (ENGINE=own selects that of rbd_ros).'


def tip(model: Model) -> str:
    """Return the link moved by the most joints, the last one in the order of the model."""
    q = poses(model)[0]
    return max(reversed(model.link_names), key=lambda link: np.count_nonzero(
        world_jacobian(model, q, link).any(axis=0)))
