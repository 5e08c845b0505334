# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demo chooses for a robot: a pose, what computes its motion, and the link to show."""

import numpy as np
from rbd_ros import gravity_torques, Model, ModelError, world_jacobian
from rbd_ros.ros.nodes.simulated_control import poses
from rbd_ros.simulation.mujoco_robot import MujocoRobot

# Share of its largest effort that a drive needs at most to hold the robot.
BEARABLE = 0.7


class DemoFailed(Exception):
    """The demo could not be run; the message says why."""


def overload(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the gravity torques as shares of the largest efforts of the drives."""
    load = np.abs(gravity_torques(model, q))
    with np.errstate(divide='ignore', invalid='ignore'):
        return np.where(load > 0.0, load / model.effort_limit, 0.0)


def heavy_position(model: Model) -> np.ndarray:
    """Return, of some poses that the drives can hold, the one that is hardest to hold."""
    tries = poses(model)
    bearable = [q for q in tries if np.max(overload(model, q)) <= BEARABLE]
    return max(bearable or tries, key=lambda q: np.linalg.norm(gravity_torques(model, q)))


def too_weak(model: Model, q: np.ndarray) -> str:
    """Return which drive cannot hold a pose, and by how much; empty: all can."""
    share = overload(model, q)
    k = int(np.argmax(share))
    if share[k] <= 1.0:
        return ''
    unit = 'N m' if model.angular[k] else 'N'
    return (f"'{model.velocity_names[k]}' needs {abs(gravity_torques(model, q)[k]):.3g} {unit}, "
            f'and the URDF gives its drive at most {model.effort_limit[k]:.3g} {unit}')


def chosen_engine(wanted: str, urdf: str, model: Model, q: np.ndarray) -> tuple[str, str]:
    """
    Choose what computes the motion.

    Parameters
    ----------
    wanted : {'', 'own', 'mujoco'}
        Empty: MuJoCo if it is installed, takes the robot, and its drives can hold it.
    urdf : str
        The URDF, as text.
    model : Model
        The robot.
    q : ndarray
        Where it begins.

    Returns
    -------
    node, line : str
        The node to start, and what to tell the user.

    Raises
    ------
    ModelError
        If MuJoCo is wanted, and is not installed or refuses the robot.

    """
    own = 'simulated_robot', 'Physics by rbd_ros itself'
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
        return own[0], f'{own[1]}, where drives have no limits: {weak}'
    return 'mujoco_robot', 'Physics by MuJoCo; ENGINE=own is that of rbd_ros.'


def tip(model: Model) -> str:
    """Return the link that most joints move, the last one in the order of the model."""
    q = poses(model)[0]
    return max(reversed(model.link_names), key=lambda link: np.count_nonzero(
        world_jacobian(model, q, link).any(axis=0)))
