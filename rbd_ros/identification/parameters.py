# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The parameters to identify, and how torques follow from them: tau = known + Y theta.

Parameters of a robot are those of its moving bodies, ten for each, and behind them those of its
drives: friction and rotors. Those of a load are the ten of one body.

"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, Protocol

import numpy as np
from rbd_ros import batch
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, whole_number
from rbd_ros.model.configurations import integrate, neutral
from rbd_ros.model.drives import (check_columns, COLUMNS, drive_parameter_names,
                                  drive_parameters, with_drive_parameters)
from rbd_ros.model.friction import friction, friction_terms
from rbd_ros.model.inertial import (inertia_of_parameters, inertial_parameter_names,
                                    inertial_parameters, moving_bodies, PARAMETERS,
                                    parameters_of_inertia, with_inertial_parameters)
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import Ad, inverse

# Which column of drives an asymmetry must not exceed.
ASYMMETRIES = {'viscous_asymmetry': 'viscous', 'coulomb_asymmetry': 'coulomb'}
# A pivot of QR, or an entry of a combination, that is a smaller share of the largest is rounding.
ROUNDING = 1e-9
# Random states at which the rank of regressors is looked at, at least.
STATES = 50


class States(NamedTuple):
    """
    Many states of a robot.

    Attributes
    ----------
    q : ndarray, shape (states, nq)
        Configurations.
    v, a : ndarray, shape (states, nv)
        Velocities and accelerations.
    s : ndarray, shape (states, nv)
        Directions of the velocities, -1 to 1, as Coulomb friction is to see them.

    """

    q: np.ndarray
    v: np.ndarray
    a: np.ndarray
    s: np.ndarray


@dataclass(frozen=True)
class RobotParameters:
    """
    The parameters of a robot: of its bodies, and of its drives.

    Attributes
    ----------
    model : Model
        The robot.
    columns : tuple of str
        Which parameters each drive has, see `rbd_ros.analysis.friction_regressor`. The others are
        taken to be as the model has them.

    """

    model: Model
    columns: tuple[str, ...]

    @property
    def kind(self) -> tuple[str, ...]:
        """Return what is identified, as `Parameters` says."""
        return ('robot', *self.columns)

    @property
    def bodies(self) -> int:
        """Return how many bodies there are."""
        return len(moving_bodies(self.model))

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return (inertial_parameter_names(self.model)
                + drive_parameter_names(self.model, columns=self.columns))

    @property
    def values(self) -> np.ndarray:
        """Return the parameters as the model has them."""
        return np.concatenate((inertial_parameters(self.model),
                               drive_parameters(self.model, columns=self.columns)))

    def regressor(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return Y of many states, shape (states, nv, parameters)."""
        nv, count, terms = self.model.nv, len(self.columns), self._drive_terms(states)
        drives, joint = np.zeros((*states.v.shape, nv, count)), np.arange(nv)
        for k, column in enumerate(self.columns):
            drives[:, joint, joint, k] = terms[COLUMNS[column]]
        return np.concatenate((batch.torque_regressor(self.model, *states[:3], threads=threads),
                               drives.reshape(*states.v.shape, nv * count)), axis=2)

    def known(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return the torques of all that is not identified, shape (states, nv)."""
        found = [COLUMNS[column] for column in self.columns]
        return sum((getattr(self.model, label) * term
                    for label, term in self._drive_terms(states).items() if label not in found),
                   np.zeros_like(states.v))

    def _drive_terms(self, states: States) -> dict[str, np.ndarray]:
        """Return what the coefficients of drives are multiplied by, each (states, nv)."""
        return {**friction_terms(self.model, states.v, states.s, states.v), 'armature': states.a}

    def model_with(self, values: np.ndarray) -> Model:
        """Return the robot with such parameters."""
        split = 10 * self.bodies
        return with_drive_parameters(with_inertial_parameters(self.model, values[:split]),
                                     values[split:], columns=self.columns)


@dataclass(frozen=True)
class LoadParameters:
    """
    The ten parameters of a load on a link, in the frame of that link; the robot is known.

    Attributes
    ----------
    model : Model
        The robot without the load.
    link : str
        What carries it.

    """

    model: Model
    link: str

    @property
    def kind(self) -> tuple[str, ...]:
        """Return what is identified, as `Parameters` says."""
        return ('load', self.link)

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters."""
        return tuple(f'{self.link}/{parameter}' for parameter in PARAMETERS)

    @property
    def values(self) -> np.ndarray:
        """Return the parameters of no load: zeros."""
        return np.zeros(10)

    @cached_property
    def _place(self) -> tuple[slice, np.ndarray]:
        """Return the columns of the body that carries the load, and a load's share in them."""
        k = self.model.link_index(self.link)
        for number, parts in enumerate(moving_bodies(self.model).values()):
            for part, T in parts:
                if part == k:
                    A = Ad(inverse(T))
                    share = np.array([parameters_of_inertia(A.T @ inertia_of_parameters(one) @ A)
                                      for one in np.eye(10)]).T
                    return slice(10 * number, 10 * number + 10), share
        raise ModelError(f"link '{self.link}' is part of the root: no joint moves it")

    def regressor(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return Y of many states, shape (states, nv, 10)."""
        columns, share = self._place
        return batch.torque_regressor(self.model, *states[:3],
                                      threads=threads)[:, :, columns] @ share

    def known(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return the torques of the robot without the load, shape (states, nv)."""
        return (batch.inverse_dynamics(self.model, *states[:3], threads=threads)
                + friction(self.model, states.v, states.s, states.v))


class Parameters(Protocol):
    """What parameters of robots and of loads have in common."""

    @property
    def model(self) -> Model:
        """Return the robot."""

    @property
    def kind(self) -> tuple[str, ...]:
        """Return what is identified; results for different kinds cannot be merged."""

    @property
    def names(self) -> tuple[str, ...]:
        """Return the names of the parameters."""

    def regressor(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return Y of many states, shape (states, nv, parameters)."""

    def known(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return the torques that do not depend on them, shape (states, nv)."""


class BaseParameters(NamedTuple):
    """
    What `base_parameters` computes.

    Attributes
    ----------
    independent : ndarray of int, shape (base,)
        Columns of the regressor that are independent, and of which all others are combinations.
    names : tuple of str
        Of the parameters to which those columns belong.
    combination : ndarray, shape (base, parameters)
        B, with base parameters B theta: Y theta = Y[:, independent] B theta for every state.

    """

    independent: np.ndarray
    names: tuple[str, ...]
    combination: np.ndarray


def base_parameters(model: Model, *, friction: Sequence[str] = (), rotors: bool = False,
                    seed: int = 0) -> BaseParameters:
    """
    Return the minimum parameters: the combinations of parameters that torques show.

    Parameters
    ----------
    model : Model
        The robot. Its masses and inertias are not read.
    friction : sequence of str
        Parameters of friction besides those of bodies: names of columns of
        `rbd_ros.analysis.friction_regressor`.
    rotors : bool
        Whether the inertias of rotors are among the parameters.
    seed : int
        Of the random states at which the regressor is taken.

    Returns
    -------
    BaseParameters
        With the fields ``independent names combination``.

    References
    ----------
    QR with column pivoting of the regressor, Garofalo et al. (15), (16), at random states.

    """
    return base_of(robot_parameters(model, friction, rotors), seed)[0]


def robot_parameters(model: Model, friction: Sequence[str], rotors: bool) -> RobotParameters:
    """Return the parameters of a robot to identify, checked."""
    check_model(model)
    friction = check_columns(friction)
    for asymmetry, symmetric in ASYMMETRIES.items():
        if asymmetry in friction and symmetric not in friction:
            raise StateError(f"friction '{asymmetry}' needs '{symmetric}', which it must not "
                             'exceed')
    return RobotParameters(model, friction + ('rotor',) * (rotors and 'rotor' not in friction))


def base_of(parameters: Parameters, seed: int = 0) -> tuple[BaseParameters, np.ndarray]:
    """
    Return the base parameters, and which of their columns a torque can have.

    Parameters
    ----------
    parameters : Parameters
        All of them.
    seed : int
        As for `base_parameters`.

    Returns
    -------
    base : BaseParameters
        The combinations that torques show.
    support : ndarray of bool, shape (nv, base)
        Whether the entry of Y[:, independent] can differ from zero.

    """
    # Imported here: a node need not wait for SciPy when it starts.
    from scipy.linalg import qr, solve_triangular

    model, names = parameters.model, parameters.names
    rng = np.random.default_rng(whole_number('seed', seed, least=0))
    # Three rows for every column; and for those of one body and drive, if one joint moves it.
    states = max(-(-3 * len(names) // max(model.nv, 1)), STATES)
    # Beyond the limits of joints, too: some URDFs have limits that leave them nowhere to go.
    turns = rng.uniform(-np.pi, np.pi, (states, model.nv))
    q = np.array([integrate(model, neutral(model), turn, 1.0) for turn in turns])
    v, a = rng.normal(size=(2, states, model.nv))
    Y = parameters.regressor(States(q.reshape(states, model.nq), v, a, np.sign(v)), threads=1)
    R, order = qr(Y.reshape(-1, len(names)), mode='r', pivoting=True)
    pivots = np.abs(np.diag(R))
    rank = int(np.sum(pivots > ROUNDING * np.max(pivots, initial=0.0)))
    combination = np.zeros((rank, len(names)))
    combination[:, order[:rank]] = np.eye(rank)
    combination[:, order[rank:]] = solve_triangular(R[:rank, :rank], R[:rank, rank:])
    combination[np.abs(combination) < ROUNDING] = 0.0
    ascending = np.argsort(order[:rank])
    independent = order[:rank][ascending]
    base = BaseParameters(independent, tuple(names[k] for k in independent),
                          combination[ascending])
    return base, np.any(Y[:, :, independent] != 0.0, axis=0)
