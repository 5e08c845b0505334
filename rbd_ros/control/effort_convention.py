# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Effort conventions: how efforts in joint states and in commands relate to joint torques.

Drivers report or take currents, reverse signs, or omit the torques that the robot compensates by
itself. The torques of the equation of motion, tau = M a + C v + g + tau_f, are

    tau = k effort + kappa

with the constant k of a joint, N m or N per unit of effort, and kappa = 0 for `full`, g for
`without_gravity` and g + C v for `without_gravity_and_coriolis`; states and commands each have
their own k and kappa.

"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Annotated

import numpy as np
from rbd_ros._internal.setting import Setting

CONVENTIONS = ('full', 'without_gravity', 'without_gravity_and_coriolis')
# Mismatch of efforts at rest, as a share of the gravity torques, that friction and model errors do
# not explain.
MISMATCH_RATIO = 0.7
MIN_GRAVITY_TORQUE = 1.0    # N m or N: smaller gravity torques are not compared


@dataclass(frozen=True)
class EffortConvention:
    """The meaning of efforts of one robot; joints without constants have 1."""

    states: Annotated[str, Setting(
        'full', 'Contents of efforts in joint states: all torques of the joint, all without '
        'gravity torques, or all without gravity and Coriolis torques.', choices=CONVENTIONS,
        of_robot=True)] = 'full'
    commands: Annotated[str, Setting(
        'full', 'Contents of effort commands that the robot expects; it adds the other torques by '
        'itself.', choices=CONVENTIONS, of_robot=True)] = 'full'
    joints: Annotated[tuple[str, ...], Setting(
        (), 'Joints of the constants, in order.', entry=str, of_robot=True)] = ()
    state_constants: Annotated[tuple[float, ...], Setting(
        (), 'Torque per unit of effort in joint states, N m/A for currents; negative: the driver '
        'reverses the sign. Empty: 1.', 'N m or N per unit of effort',
        per='effort_convention.joints', single=False, condition='finite numbers other than 0',
        of_robot=True)] = ()
    command_constants: Annotated[tuple[float, ...], Setting(
        (), 'Torque per unit of effort in effort commands. Empty: 1.',
        'N m or N per unit of effort', per='effort_convention.joints', single=False,
        condition='finite numbers other than 0', of_robot=True)] = ()
    states_have_friction: Annotated[bool, Setting(
        True, 'Whether efforts in joint states contain the friction of the joint, as those of '
        'motors do; torque sensors behind the gears measure without it.', of_robot=True)] = True

    def constants_of_states(self, names: Sequence[str]) -> np.ndarray:
        """Return the constants of efforts in joint states, N m or N per unit."""
        return self._constants(self.state_constants, names)

    def constants_of_commands(self, names: Sequence[str]) -> np.ndarray:
        """Return the constants of efforts in commands, N m or N per unit."""
        return self._constants(self.command_constants, names)

    def _constants(self, constants: Sequence[float], names: Sequence[str]) -> np.ndarray:
        if not constants:
            return np.ones(len(names))
        by_name = dict(zip(self.joints, constants))
        return np.array([by_name.get(name, 1.0) for name in names], float)

    def left_out_of_states(self, g: np.ndarray, coriolis: np.ndarray) -> np.ndarray:
        """Return the torques that efforts in joint states omit, N m or N."""
        return _left_out(self.states, g, coriolis)

    def left_out_of_commands(self, g: np.ndarray, coriolis: np.ndarray) -> np.ndarray:
        """Return the torques that the robot adds to commands by itself, N m or N."""
        return _left_out(self.commands, g, coriolis)

    def subtract_onboard_compensation(self, tau: np.ndarray, g: np.ndarray,
                                      coriolis: np.ndarray) -> np.ndarray:
        """
        Subtract from torques those that the robot adds to commands by itself.

        `g` and `coriolis` are the shares of g and C v already included in tau; terms that are not
        included are not subtracted.

        """
        return tau - self.left_out_of_commands(g, coriolis)

    without_own = subtract_onboard_compensation    # the name in 0.2


def _left_out(convention: str, g: np.ndarray, coriolis: np.ndarray) -> np.ndarray:
    if convention == 'full':
        return np.zeros_like(g)
    return g if convention == 'without_gravity' else g + coriolis


def convention_mismatch(convention: EffortConvention, names: Sequence[str],
                        torques: np.ndarray, g: np.ndarray) -> str:
    """Return why torques at rest do not fit a convention, or '' if they do or g is too small."""
    size = np.linalg.norm(g)
    if size < MIN_GRAVITY_TORQUE:
        return ''
    other, rest, rest_of_other = (
        ('without_gravity', torques - g, torques) if convention.states == 'full' else
        ('full', torques, torques - g))
    others = {f'effort_convention.states: {other}': float(np.linalg.norm(rest_of_other)),
              'negative effort_convention.state_constants': float(np.linalg.norm(torques + g))}
    better = min(others, key=others.__getitem__)
    error, worst = np.linalg.norm(rest), int(np.argmax(np.abs(rest)))
    example = (f"'{names[worst]}' measures {torques[worst]:.3g} where gravity takes "
               f'{g[worst]:.3g} N m or N')
    text = f'efforts at rest are not as effort_convention.states, {convention.states}, requires'
    if others[better] < 0.5 * error:
        return f'{text}: {example}; {better} fits better'
    if error > MISMATCH_RATIO * size:
        return (f'{text}, and nothing else fits: {example}; check payload, mounting_rpy and '
                'effort_convention.state_constants (currents?)')
    return ''
