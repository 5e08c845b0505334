# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The control law of each mode of the torque controller, for a robot and gains."""

from collections.abc import Sequence
from typing import Any

import numpy as np
from rbd_ros import mass_matrix
from rbd_ros._internal.text import listed
from rbd_ros.control import (CartesianImpedance, ComputedTorque, Gravity, Hybrid, JointImpedance,
                             PdGravity, SlotineLi)
from rbd_ros.control.controller import Controller, FRICTION_SPEED
from rbd_ros.control.slotine_li import bodies_of
from rbd_ros.errors import ModelError
from rbd_ros.model.model import Model
from rbd_ros.ros.control.control_parameters import Gains
from rbd_ros.ros.control.following import Tolerances
from rbd_ros.ros.parameters.parameter_checks import BadParameter
from rbd_ros.ros.robot.read_model import base_joint

# Modes whose laws contain no Coriolis torques.
WITHOUT_CORIOLIS = ('gravity', 'pd_gravity')


# The gain that damps each mode.
DAMPING = {'gravity': 'gravity_damping', 'pd_gravity': 'pd_gravity.damping',
           'computed_torque': 'computed_torque.kd', 'hybrid': 'hybrid.kd',
           'joint_impedance': 'joint_impedance.damping_ratio',
           'cartesian_impedance': 'cartesian_impedance.damping_ratio',
           'slotine_li': 'slotine_li.damping'}
# Damping times period over inertia from which on samples diverge; rounding of eigenvalues; and how
# exactly the largest gain is found.
DIVERGES, ROUNDING, PRECISION = 2.0, 1e-6, 1e-5
# rad/s or m/s, for derivatives by velocities
STEP = 1e-3


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

    Torques -D v that are held for a period T change velocities to (1 - T M^-1 D) v, which grow if
    this matrix has an eigenvalue below -1. Of one joint alone, with the inertia m, that is so from
    d T / m = 2 on.

    Parameters
    ----------
    law : Controller
        A law of the present mode without friction, which has seen no state.
    gains : Gains
        Its gains.
    q : ndarray, shape (model.nq,)
        Configuration, rad or m.
    reference : JointReference, PoseReference or None
        A reference for the law.
    period : float
        T, s.

    """
    model, name = law.model, DAMPING[gains.mode]
    M = mass_matrix(model, q)
    D = np.transpose([law.update(0.0, q, -one, reference) - law.update(0.0, q, one, reference)
                      for one in STEP * np.eye(model.nv)]) / (2.0 * STEP)
    # This law has damping besides: its rate times the inertia.
    rest = (M * for_each_velocity(gains, model, gains.slotine_li_rate)
            if gains.mode == 'slotine_li' else np.zeros_like(M))

    def diverges(share: np.ndarray | float) -> bool:
        """Return whether velocities grow with these shares of the gains."""
        change = np.linalg.solve(M, rest + (D - rest) * share)
        return bool(np.max(np.linalg.eigvals(change).real, initial=0.0) * period
                    > DIVERGES * (1.0 + ROUNDING))
    if not diverges(1.0):
        return ''
    k = int(np.argmax(np.diag(np.linalg.solve(M, D))))
    unit, inertia_unit = ('N m s/rad', 'kg m^2') if model.angular[k] else ('N s/m', 'kg')
    inertia = D[k, k] / np.linalg.solve(M, D)[k, k]
    text = (f"'{model.velocity_names[k]}' is damped by {D[k, k]:.4g} {unit}: at "
            f'{1.0 / period:.4g} states/s, and with its effective inertia of {inertia:.4g} '
            f'{inertia_unit}, its motion diverges; lower {name}')
    if diverges(0.0):
        return f'{text} and slotine_li.rate'
    numbers = getattr(gains, name.replace('.', '_'))
    # A gain of the joint alone, if that is enough; else all by the same factor.
    one = np.where(np.arange(model.nv) == k, 0.0, 1.0)
    alone = not isinstance(numbers, float) and len(numbers) > 1 and not diverges(one)
    low, high = 0.0, 1.0
    while high - low > PRECISION * high:
        share = 0.5 * (low + high)
        low, high = ((low, share) if diverges(np.where(one, 1.0, share) if alone else share)
                     else (share, high))
    if isinstance(numbers, float):
        gain = numbers
    else:
        # Empty: the gain is an acceleration per velocity.
        gain = (for_each_velocity(gains, model, numbers)[k] if numbers else D[k, k] / M[k, k])
    text = f'{text} from {gain:.4g} to at most {gain * low:.4g}'
    return (text if alone or isinstance(numbers, float) or len(numbers) < 2
            else f'{text}, and the gains of the other joints by the same factor')
