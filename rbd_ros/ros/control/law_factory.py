# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The control law of a mode: its parameters, its tolerances, and a check of its damping."""

from collections.abc import Sequence
from typing import Annotated, Any, NamedTuple

import numpy as np
from rbd_ros import mass_matrix
from rbd_ros._internal.setting import Group, Setting
from rbd_ros._internal.text import listed
from rbd_ros.control import PoseReference
from rbd_ros.control.controller import Circumstances, Controller
from rbd_ros.control.laws import control_laws
from rbd_ros.errors import ModelError
from rbd_ros.model.model import Model
from rbd_ros.ros.control.reference_messages import Tolerances
from rbd_ros.ros.parameters.parameters import BadParameter
from rbd_ros.ros.robot.read_model import base_joint, driven_joints, per_velocity

LAWS = control_laws()


def parameter_name(mode: str, gain: str) -> str:
    """Return the name of the parameter of a gain."""
    return LAWS[mode].gains[gain].parameter or f'{mode}.{gain}'


def _by_mode(values: dict[str, Any]) -> dict[str, dict[str, Any]]:
    return {mode: {gain: values[parameter_name(mode, gain)] for gain in law.gains}
            for mode, law in LAWS.items()}


_GAINS = Group({parameter_name(mode, gain): declaration for mode, law in LAWS.items()
                for gain, declaration in law.gains.items()}, _by_mode)


def _tolerance(default: tuple[float, ...], meaning: str, unit: str = 'rad or m',
               **options: Any) -> Setting:
    return Setting(default, f'{meaning}; 0: no limit.', unit, 0.0, 1e3, changeable=True, **options)


class ControlSettings(NamedTuple):
    """The parameters that the torque controller adds to those of the dynamics node."""

    mode: Annotated[str, Setting('gravity', 'Control mode; ~/set_mode sets it, too.',
                                 choices=tuple(LAWS), changeable=True)]
    task_link: str
    control_joints: Annotated[tuple[str, ...], Setting(
        (), 'All joints of the robot, in the order of gains with several entries.',
        entry=str, changeable=True)]
    gains: Annotated[dict[str, dict[str, Any]], _GAINS]
    cartesian_speed: Annotated[float, Setting(
        0.1, 'Largest speed of task_link towards ~/pose_target.', 'm/s', 1e-4, 10.0,
        changeable=True)]
    angular_speed: Annotated[float, Setting(
        0.5, 'Largest angular speed of task_link towards ~/pose_target.', 'rad/s', 1e-4, 100.0,
        changeable=True)]
    path_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.3,), 'Largest distance of a joint from its reference during a motion',
        per='control_joints')]
    goal_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.1,), 'Largest distance of a joint from the goal of a motion, after goal_time',
        per='control_joints')]
    goal_time: Annotated[float, Setting(
        2.0, 'Time after the end of a motion in which the goal must be reached; 0: no limit.', 's',
        0.0, 600.0, changeable=True)]
    cartesian_path_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.5, 0.2), 'Largest angle and distance of task_link from its reference during a motion',
        'rad and m', sizes=(2,))]
    cartesian_goal_tolerance: Annotated[tuple[float, ...], _tolerance(
        (0.0, 0.0), 'Largest angle and distance of task_link from the goal of a motion, after '
        'goal_time', 'rad and m', sizes=(2,))]
    soft_stop_zone: Annotated[float, Setting(
        0.1, 'Width of the zones before position limits in which springs push joints back, at '
        'most a tenth of the range; 0: none.', 'rad or m', 0.0, 10.0, changeable=True)]
    velocity_guard: Annotated[float, Setting(
        1.0, 'Multiple of the velocity limits beyond which joints are braked; 0: never.',
        'times the limit', 0.0, 1e3, changeable=True)]

    def check(self) -> None:
        """Raise if the mode moves the task link and there is none."""
        if LAWS[self.mode].reference_type is PoseReference and not self.task_link:
            raise BadParameter(f'mode {self.mode} needs the parameter task_link: the link that it '
                               'moves')

    def per_velocity(self, model: Model, numbers: Sequence[float]) -> np.ndarray:
        """Return one number per velocity, from those of control_joints or one for all joints."""
        return per_velocity(model, numbers, self.control_joints)


# Tolerance of eigenvalues, and relative precision of the largest gain that is found.
ROUNDING, PRECISION = 1e-6, 1e-5


def make_controller(settings: ControlSettings, given: Circumstances) -> Controller:
    """Return the law of the current mode; raise BadParameter or RbdError if there is none."""
    model, mode = given.model, settings.mode
    law, base, own = LAWS[mode], base_joint(model), driven_joints(model)
    if base and not law.floating_base:
        raise BadParameter(f'mode {mode} is for robots that are fixed: nothing drives '
                           f"'{base.name}'")
    if settings.control_joints and set(settings.control_joints) != set(own):
        raise BadParameter('control_joints must name every joint once: ' + listed(own))
    for other, gains in settings.gains.items():
        for name, value in gains.items():
            check = LAWS[other].gains[name].check
            if check and value:
                try:
                    check(model, value)
                except ModelError as error:
                    raise BadParameter(f'{parameter_name(other, name)}: {error}') from None
    values = dict(settings.gains[mode])
    for name, gain in law.gains.items():
        if values[name] == ():
            values[name] = None
        elif gain.per:
            values[name] = settings.per_velocity(model, values[name])
    controller = law.from_gains(given, **values)
    controller.compensates_springs = given.springs
    return controller


def tolerances(settings: ControlSettings, law: Controller, task_link: str) -> Tolerances:
    """Return the tolerances of motions in the current mode."""
    model = law.model
    if law.reference_type is PoseReference:
        path, goal = map(np.array, (settings.cartesian_path_tolerance,
                                    settings.cartesian_goal_tolerance))
        labels, units = [f"'{task_link}'"] * 2, ['rad', 'm']
    else:
        path, goal = (settings.per_velocity(model, one) * law.follows
                      for one in (settings.path_tolerance, settings.goal_tolerance))
        labels = [f"'{name}'" for name in model.velocity_names]
        units = ['rad' if angular else 'm' for angular in model.angular]
    return Tolerances(np.where(path > 0.0, path, np.inf), np.where(goal > 0.0, goal, np.inf),
                      settings.goal_time or np.inf, labels, units)


def damping_limit(late: np.ndarray) -> np.ndarray:
    """
    Return the largest stable T x for velocities that lose x v(t - late T) in each period T.

    For whole numbers, all roots of z^(late + 1) - z^late + T x are within the unit circle up to
    2 sin(pi / (4 late + 2)), in between up to 9 % more. From 1/2 to 1, the late velocity is on the
    line between the last two, and the limit is 1 / late; before, it would need constant delays.

    """
    return np.where(late < 1.0, 1.0 / np.maximum(late, 0.5),
                    2.0 * np.sin(np.pi / (4.0 * late + 2.0)))


def damping_warning(law: Controller, settings: ControlSettings, q: np.ndarray, period: float,
                    ages: np.ndarray) -> str:
    """
    Return a warning if damping makes a law diverge at states with a period and ages, s.

    Torques -D v of states without age, held for T, change velocities to (1 - T M^-1 D) v, which
    grow if this matrix has an eigenvalue below -1; of a single joint with the inertia m and the
    damping d, if d T / m > 2. The age of each joint lowers its share of this; see `damping_limit`.

    """
    model, mode = law.model, settings.mode
    gain = next((name for name, one in law.gains.items() if one.damps), '')
    # A gain that adds its product with the inertia.
    second = next((name for name, one in law.gains.items() if one.damps_inertia), '')
    if not gain:
        return ''
    numbers = settings.gains[mode][gain]
    M, D = mass_matrix(model, q), law.damping(q)
    rest = (M * settings.per_velocity(model, settings.gains[mode][second]) if second
            else np.zeros_like(M))

    slowest = period / damping_limit(ages / period)

    def diverges(share: np.ndarray | float) -> bool:
        """Return whether velocities grow with these shares of the gains."""
        change = np.linalg.solve(M, rest + (D - rest) * share) * slowest
        return bool(np.max(np.linalg.eigvals(change).real, initial=0.0) > 1.0 + ROUNDING)
    if not diverges(1.0):
        return ''
    k = int(np.argmax(np.diag(np.linalg.solve(M, D)) * slowest))
    unit, inertia_unit = ('N m s/rad', 'kg m^2') if model.angular[k] else ('N s/m', 'kg')
    inertia = D[k, k] / np.linalg.solve(M, D)[k, k]
    late = f', {1e3 * ages[k]:.3g} ms late' if 2.0 * ages[k] > period else ''
    text = (f"'{model.velocity_names[k]}' is damped by {D[k, k]:.4g} {unit}: at "
            f'{1.0 / period:.4g} states/s{late}, and with its effective inertia of {inertia:.4g} '
            f'{inertia_unit}, its motion diverges; lower {parameter_name(mode, gain)}')
    if diverges(0.0):
        return f'{text} and {parameter_name(mode, second)}' if second else text
    # Lower the gain of this joint only, if that suffices; otherwise all by the same factor.
    one = np.where(np.arange(model.nv) == k, 0.0, 1.0)
    several = not isinstance(numbers, float) and len(numbers) > 1
    alone = several and not diverges(one)
    low, high = 0.0, 1.0
    while high - low > PRECISION * high:
        share = 0.5 * (low + high)
        low, high = ((low, share) if diverges(np.where(one, 1.0, share) if alone else share)
                     else (share, high))
    if isinstance(numbers, float):
        value = numbers
    else:
        # An empty gain is an acceleration per velocity.
        value = settings.per_velocity(model, numbers)[k] if numbers else D[k, k] / M[k, k]
    return (f'{text} from {value:.4g} to at most {value * low:.4g}'
            + ', and the gains of the other joints by the same factor' * (several and not alone))
