# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What a robot means by effort, in its joint states and in the commands that it takes.

A torque of the equation of motion, tau = M a + C v + g + tau_f, reaches us, and a drive, through
drivers that differ: some report or take currents, count the other way, or leave out what the robot
computes itself. With the constant k of a joint, N m per unit of its effort, and kappa = 0 for
`full`, g for `without_gravity` and g + C v for `without_gravity_and_coriolis`,

    tau = k effort + kappa

in states and in commands, each with its own k and kappa.

"""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

CONVENTIONS = ('full', 'without_gravity', 'without_gravity_and_coriolis')
# Efforts at rest that differ from what they should be by this share of the gravity torques fit
# nothing: friction and errors of the model explain less.
STRANGE = 0.7
# Gravity torques, N m or N, that are too small to tell anything.
SLIGHT = 1.0


@dataclass(frozen=True)
class EffortConvention:
    """
    What efforts mean, of one robot.

    Attributes
    ----------
    states, commands : str
        What efforts in joint states, and in commands, contain: one of `CONVENTIONS`.
    joints : tuple of str
        The joints of the constants; all others have 1.
    state_constants, command_constants : tuple of float
        N m or N per unit of effort, negative where the driver counts the other way; empty: 1.
    states_have_friction : bool
        Whether efforts in joint states contain the friction of the joint, as those of motors do;
        those of torque sensors behind the gears do not.

    """

    states: str = 'full'
    commands: str = 'full'
    joints: tuple[str, ...] = ()
    state_constants: tuple[float, ...] = ()
    command_constants: tuple[float, ...] = ()
    states_have_friction: bool = True

    def constants_of_states(self, names: Sequence[str]) -> np.ndarray:
        """Return the constants of efforts in the states of joints, N m or N per unit."""
        return self._constants(self.state_constants, names)

    def constants_of_commands(self, names: Sequence[str]) -> np.ndarray:
        """Return the constants of efforts in the commands of joints, N m or N per unit."""
        return self._constants(self.command_constants, names)

    def _constants(self, constants: Sequence[float], names: Sequence[str]) -> np.ndarray:
        if not constants:
            return np.ones(len(names))
        by_name = dict(zip(self.joints, constants))
        return np.array([by_name.get(name, 1.0) for name in names], float)

    def left_out_of_states(self, g: np.ndarray, coriolis: np.ndarray) -> np.ndarray:
        """Return the torques that efforts in joint states lack, N m or N."""
        return _left_out(self.states, g, coriolis)

    def without_own(self, tau: np.ndarray, g: np.ndarray, coriolis: np.ndarray) -> np.ndarray:
        """
        Return torques without those that the robot adds to commands by itself.

        Parameters
        ----------
        tau : ndarray
            N m or N.
        g, coriolis : ndarray
            What tau contains of g and of C v. Torques of neither are never taken away twice: a
            robot that compensates what tau does not ask for goes on doing so.

        Returns
        -------
        ndarray

        """
        return (tau.copy() if self.commands == 'full'
                else tau - _left_out(self.commands, g, coriolis))


def _left_out(convention: str, g: np.ndarray, coriolis: np.ndarray) -> np.ndarray:
    if convention == 'full':
        return np.zeros_like(g)
    return g if convention == 'without_gravity' else g + coriolis


def unlikely(convention: EffortConvention, names: Sequence[str], torques: np.ndarray,
             g: np.ndarray) -> str:
    """
    Return why the measured efforts of a robot at rest do not fit a convention.

    Parameters
    ----------
    convention : EffortConvention
        What they should be.
    names : sequence of str
        The joints.
    torques : ndarray
        Efforts times their constants, N m or N.
    g : ndarray
        Gravity torques, N m or N.

    Returns
    -------
    str
        A sentence for an operator; empty: they fit, or gravity is too small to tell.

    """
    size = np.linalg.norm(g)
    if size < SLIGHT:
        return ''
    is_full = convention.states == 'full'
    error = np.linalg.norm(torques - g if is_full else torques)
    others = {'effort_convention.states: without_gravity' if is_full else
              'effort_convention.states: full': np.linalg.norm(torques if is_full
                                                               else torques - g),
              'negative effort_convention.state_constants': np.linalg.norm(torques + g)}
    better = min(others, key=lambda label: float(others[label]))
    worst = int(np.argmax(np.abs(torques - g if is_full else torques)))
    example = (f"'{names[worst]}' measures {torques[worst]:.3g} where gravity takes "
               f'{g[worst]:.3g} N m or N')
    said = f'efforts at rest are not as effort_convention.states, {convention.states}, says'
    if others[better] < 0.5 * error:
        return f'{said}: {example}; {better} fits better'
    if error > STRANGE * size:
        return (f'{said}, and nothing else fits: {example}; check payload, mounting_rpy and '
                'effort_convention.state_constants (currents?)')
    return ''
