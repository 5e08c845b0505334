# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The control law of each mode of the torque controller, for a robot and gains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rbd_ros import mass_matrix
from rbd_ros.control import (CartesianImpedance, ComputedTorque, Gravity, Hybrid, JointImpedance,
                             PdGravity, SlotineLi)
from rbd_ros.control.controller import Controller, FRICTION_SPEED
from rbd_ros.control.slotine_li import bodies_of
from rbd_ros.errors import ModelError
from rbd_ros.model.model import Model
from rbd_ros.ros.control_parameters import Gains
from rbd_ros.ros.following import Tolerances
from rbd_ros.ros.parameter_checks import BadParameter
from rbd_ros.ros.robot import base_joint
from rbd_ros.texts import listed

# Modes whose laws contain no Coriolis torques.
WITHOUT_CORIOLIS = ('gravity', 'pd_gravity')


# The gain that damps each mode.
DAMPING = {'gravity': 'gravity_damping', 'pd_gravity': 'pd_gravity.damping',
           'computed_torque': 'computed_torque.kd', 'hybrid': 'hybrid.kd',
           'joint_impedance': 'joint_impedance.damping_ratio',
           'cartesian_impedance': 'cartesian_impedance.damping_ratio',
           'slotine_li': 'slotine_li.damping'}
# Damping times period over inertia from which on samples diverge, and rad/s, for derivatives.
DIVERGES, STEP = 2.0, 1e-3


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
    try:
        bodies_of(model, gains.slotine_li_links)
    except ModelError as error:
        raise BadParameter(f'slotine_li.links: {error}') from None
    speed = FRICTION_SPEED if friction else None

    def each(numbers: Sequence[float]) -> np.ndarray:
        return for_each_velocity(gains, model, numbers)

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


def for_each_velocity(gains: Gains, model: Model, numbers: Sequence[float]) -> np.ndarray:
    """Return one number for each velocity: of control_joints, or the same for all joints."""
    base = base_joint(model)
    own = model.velocity_names[base.nv if base else 0:]
    given = (dict.fromkeys(own, numbers[0]) if len(numbers) == 1
             else dict(zip(gains.control_joints, numbers)))
    return np.array([given.get(name, 0.0) for name in model.velocity_names])


def tolerances(gains: Gains, model: Model, task_link: str) -> Tolerances:
    """Return the tolerances of motions in the present mode."""
    if gains.mode == 'cartesian_impedance':
        path, goal = map(np.array, (gains.cartesian_path_tolerance,
                                    gains.cartesian_goal_tolerance))
        labels, units = [f"'{task_link}'"] * 2, ['rad', 'm']
    else:
        path, goal = (for_each_velocity(gains, model, one)
                      for one in (gains.path_tolerance, gains.goal_tolerance))
        if gains.mode == 'hybrid':
            free = [name in gains.hybrid_free_joints for name in model.velocity_names]
            path[free] = goal[free] = 0.0
        labels = [f"'{name}'" for name in model.velocity_names]
        units = ['rad' if angular else 'm' for angular in model.angular]
    return Tolerances(np.where(path > 0.0, path, np.inf), np.where(goal > 0.0, goal, np.inf),
                      gains.goal_time or np.inf, labels, units)


def turning(model: Model) -> np.ndarray:
    """Return the places in q of joints whose position may be counted from another turn."""
    return np.array([q.start for joint, q, _ in model.moving_joints
                     if joint.kind == 'continuous'], int)


def too_much_damping(law: Controller, gains: Gains, q: np.ndarray, reference: Any,
                     period: float) -> str:
    """
    Return a warning if a law diverges because its states are too far apart.

    A torque -d v that is held for a period T changes the velocity of an inertia m to
    (1 - d T / m) v, which grows from d T / m = 2 on.

    Parameters
    ----------
    law : Controller
        A law of the present mode, which has seen no state.
    gains : Gains
        Its gains.
    q : ndarray, shape (model.nq,)
        Configuration, rad or m.
    reference : JointReference, PoseReference or None
        A reference for the law.
    period : float
        T, s.

    """
    model = law.model
    inertia = np.diag(mass_matrix(model, q))
    still = law.update(0.0, q, np.zeros(model.nv), reference)
    damping = np.array([(still - law.update(0.0, q, STEP * e, reference))[k] / STEP
                        for k, e in enumerate(np.eye(model.nv))])
    ratio = np.divide(damping * period, inertia, out=np.zeros_like(damping),
                      where=inertia > 0.0)
    k, name = int(np.argmax(ratio)), DAMPING[gains.mode]
    if ratio[k] <= DIVERGES:
        return ''
    unit, inertia_unit = ('N m s/rad', 'kg m^2') if model.angular[k] else ('N s/m', 'kg')
    most = DIVERGES * inertia[k] / period
    text = (f"'{model.velocity_names[k]}' is damped by {damping[k]:.4g} {unit}: at "
            f'{1.0 / period:.4g} states/s and with its inertia of {inertia[k]:.4g} '
            f'{inertia_unit}, its motion diverges from {most:.4g} {unit} on; lower {name}')
    numbers, rest = getattr(gains, name.replace('.', '_')), 0.0
    if gains.mode == 'slotine_li':
        # This law has damping besides: its rate times the inertia.
        rest = for_each_velocity(gains, model, gains.slotine_li_rate)[k] * inertia[k]
    if rest >= most:
        return f'{text} and slotine_li.rate'
    if isinstance(numbers, float):
        gain = numbers
    else:
        # Empty: the gain is an acceleration per velocity.
        gain = (for_each_velocity(gains, model, numbers)[k] if numbers
                else damping[k] / inertia[k])
    return f'{text} from {gain:.4g} to at most {gain * (most - rest) / (damping[k] - rest):.4g}'
