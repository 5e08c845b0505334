# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The control law of each mode of the torque controller, for a robot and gains."""

from collections.abc import Sequence

import numpy as np
from rbd_ros.control import (CartesianImpedance, ComputedTorque, Gravity, Hybrid, JointImpedance,
                             PdGravity, SlotineLi)
from rbd_ros.control.controller import Controller, FRICTION_SPEED
from rbd_ros.model.model import Model
from rbd_ros.ros.control_parameters import Gains
from rbd_ros.ros.parameter_checks import BadParameter
from rbd_ros.ros.robot import base_joint
from rbd_ros.texts import listed

# Modes whose laws contain no Coriolis torques.
WITHOUT_CORIOLIS = ('gravity', 'pd_gravity')


def make_controller(gains: Gains, model: Model, task_link: str, posture: np.ndarray, *,
                    friction: bool, dead_band: float) -> Controller:
    """
    Return the controller of the present mode.

    Parameters
    ----------
    gains : Gains
        Mode and gains.
    model : Model
        The robot.
    task_link : str
        Link of Cartesian impedance.
    posture : ndarray, shape (model.nq,)
        What a redundant robot is drawn to.
    friction : bool
        Whether friction is compensated.
    dead_band : float
        As for `rbd_ros.control.friction_compensation`.

    Raises
    ------
    BadParameter, RbdError
        If the mode cannot be, with this robot.

    """
    mode, names = gains.mode, model.velocity_names
    base = base_joint(model)
    own = names[base.nv if base else 0:]
    if base and mode not in WITHOUT_CORIOLIS:
        raise BadParameter(f'mode {mode} is for robots that are fixed: nothing drives '
                           f"'{base.name}'")
    if gains.control_joints and set(gains.control_joints) != set(own):
        raise BadParameter('control_joints must name every joint once: ' + listed(own))
    for name in gains.hybrid_free_joints:
        if name not in own:
            raise BadParameter(f"hybrid.free_joints names '{name}'; the joints of '{model.name}' "
                               f'are {listed(own)}')
    speed = FRICTION_SPEED if friction else None

    def each(numbers: Sequence[float]) -> np.ndarray:
        given = (dict.fromkeys(own, numbers[0]) if len(numbers) == 1
                 else dict(zip(gains.control_joints, numbers)))
        return np.array([given.get(name, 0.0) for name in names])

    def each_or_none(numbers: Sequence[float]) -> np.ndarray | None:
        return each(numbers) if numbers else None

    if mode == 'gravity':
        return Gravity(model, each(gains.gravity_damping), friction=friction, dead_band=dead_band)
    if mode == 'pd_gravity':
        return PdGravity(model, each(gains.pd_gravity_stiffness), each(gains.pd_gravity_damping),
                         friction_speed=speed)
    if mode == 'computed_torque':
        return ComputedTorque(model, each(gains.computed_torque_kp),
                              each_or_none(gains.computed_torque_kd), friction_speed=speed)
    if mode == 'joint_impedance':
        return JointImpedance(model, each(gains.joint_impedance_stiffness),
                              damping_ratio=gains.joint_impedance_damping_ratio,
                              friction_speed=speed)
    if mode == 'cartesian_impedance':
        if not task_link:
            raise BadParameter('mode cartesian_impedance needs the parameter task_link')
        stiffness = gains.cartesian_impedance_stiffness
        return CartesianImpedance(
            model, task_link, stiffness[0] if len(stiffness) == 1 else stiffness, posture=posture,
            posture_stiffness=each(gains.cartesian_impedance_posture_stiffness),
            damping_ratio=gains.cartesian_impedance_damping_ratio, friction_speed=speed)
    if mode == 'slotine_li':
        return SlotineLi(model, each(gains.slotine_li_rate), each(gains.slotine_li_damping),
                         gains.slotine_li_adaptation, links=gains.slotine_li_links or None,
                         friction_speed=speed)
    return Hybrid(model, [name not in gains.hybrid_free_joints for name in names],
                  each(gains.hybrid_kp), each_or_none(gains.hybrid_kd), friction_speed=speed)
