# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The parameters of a robot or a payload, and the torques as their function, known + Y theta."""

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple, TypeAlias

import numpy as np
from rbd_ros import batch
from rbd_ros.analysis.regressors import drive_columns
from rbd_ros.errors import ModelError, StateError
from rbd_ros.model.arguments import check_model, whole_number
from rbd_ros.model.changes.drives import (
    check_columns, COLUMNS, drive_parameter_names, drive_parameters, with_drive_parameters)
from rbd_ros.model.changes.friction import friction, friction_terms
from rbd_ros.model.changes.inertial import (
    inertial_parameter_names, inertial_parameters, moving_bodies, PARAMETERS,
    parameters_of_pseudo_inertia, pseudo_inertia_of_parameters, with_inertial_parameters)
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import integrate, neutral, random_configuration
from rbd_ros.workspace.passive_joints import all_springs, passive_friction, passive_rotors

# Each asymmetry, and the symmetric column that it must not exceed.
ASYMMETRIES = {'viscous_asymmetry': 'viscous', 'coulomb_asymmetry': 'coulomb'}
# Smaller pivots of QR, and entries of combinations, relative to the largest, are rounding errors.
ROUNDING = 1e-9
MIN_STATES = 50  # Smallest number of random states at which the rank of a regressor is evaluated.


class States(NamedTuple):
    """States of a robot."""

    q: np.ndarray   # (states, nq)
    v: np.ndarray   # (states, nv)
    a: np.ndarray   # (states, nv)
    s: np.ndarray   # (states, nv), directions of the velocities for Coulomb friction, -1 ... 1


@dataclass(frozen=True)
class RobotParameters:
    """Parameters of the bodies and drives of a robot: the torques are known + Y theta."""

    model: Model
    # Columns of the drives to identify, see `rbd_ros.analysis.friction_regressor`; the others keep
    # the values of the model.
    columns: tuple[str, ...]

    @property
    def kind(self) -> tuple[str, ...]:
        """Return the kind of result; only results of the same kind can be merged."""
        return ('robot', *self.columns)

    @property
    def bodies(self) -> int:
        return len(moving_bodies(self.model))

    @property
    def names(self) -> tuple[str, ...]:
        return (inertial_parameter_names(self.model)
                + drive_parameter_names(self.model, columns=self.columns))

    @property
    def values(self) -> np.ndarray:
        """Return the values of the model."""
        return np.concatenate((inertial_parameters(self.model),
                               drive_parameters(self.model, columns=self.columns)))

    def regressor(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return Y, shape (states, nv, parameters)."""
        drives = drive_columns(self._drive_terms(states), self.columns, states.v.shape)
        return np.concatenate((batch.torque_regressor(self.model, *states[:3], threads=threads),
                               drives), axis=2)

    def known(self, states: States, threads: int | None = None) -> np.ndarray:
        """Return the torques that do not depend on the parameters, shape (states, nv)."""
        columns, model = [COLUMNS[column] for column in self.columns], self.model
        # Drives of joints that depend on others in closed loops are known.
        passive = (passive_friction(model, states.q, states.v)
                   + passive_rotors(model, *states[:3]) + all_springs(model, states.q))
        return sum((getattr(model, label) * term
                    for label, term in self._drive_terms(states).items() if label not in columns),
                   passive)

    def _drive_terms(self, states: States) -> dict[str, np.ndarray]:
        """Return the factors of the drive coefficients, each (states, nv)."""
        return {**friction_terms(self.model, states.v, states.s, states.v), 'armature': states.a}

    def model_with(self, values: np.ndarray) -> Model:
        """Return the robot with the given values."""
        split = 10 * self.bodies
        return with_drive_parameters(with_inertial_parameters(self.model, values[:split]),
                                     values[split:], columns=self.columns)


@dataclass(frozen=True)
class LoadParameters:
    """The ten parameters of a payload on a link, in its frame; the robot is known, or almost."""

    # If the robot is in doubt, its base parameters follow, as multiples of the rows of the factor
    # of its uncertainty, whose prior is the standard normal distribution.

    model: Model    # without the payload
    link: str       # that carries it
    in_doubt: bool = False

    @property
    def kind(self) -> tuple[str, ...]:
        return ('load', self.link)

    @property
    def names(self) -> tuple[str, ...]:
        names = tuple(f'{self.link}/{parameter}' for parameter in PARAMETERS)
        if self.in_doubt and self.model.uncertainty is not None:
            names += tuple(f'robot.{name}' for name in self.model.uncertainty.parameters)
        return names

    @cached_property
    def columns_and_map(self) -> tuple[slice, np.ndarray]:
        """Return the columns of the body with the payload, and the map to them."""
        k = self.model.link_index(self.link)
        for number, parts in enumerate(moving_bodies(self.model).values()):
            for part, T in parts:
                if part == k:
                    P = T @ pseudo_inertia_of_parameters(np.eye(10)) @ T.T
                    return (slice(10 * number, 10 * number + 10),
                            parameters_of_pseudo_inertia(P).T)
        raise ModelError(f"link '{self.link}' is part of the root: no joint moves it")

    def regressor(self, states: States, threads: int | None = None) -> np.ndarray:
        columns, to_body = self.columns_and_map
        whole = RobotParameters(self.model, tuple(COLUMNS) if self.in_doubt else ())
        Y, known = whole.regressor(states, threads), self.model.uncertainty
        load = Y[:, :, columns] @ to_body
        if not self.in_doubt or known is None:
            return load
        own = [whole.names.index(name) for name in known.parameters]
        return np.concatenate((load, Y[:, :, own] @ known.factor.T), axis=2)

    def known(self, states: States, threads: int | None = None) -> np.ndarray:
        return (batch.inverse_dynamics(self.model, *states[:3], threads=threads)
                + friction(self.model, states.v, states.s, states.v)
                + passive_friction(self.model, states.q, states.v)
                + all_springs(self.model, states.q))


Parameters: TypeAlias = RobotParameters | LoadParameters


class BaseParameters(NamedTuple):
    """
    Result of `base_parameters`.

    Attributes
    ----------
    independent : ndarray of int, shape (base,)
        Independent columns of the regressor; all others are linear combinations of them.
    names : tuple of str
        Parameters of those columns.
    combination : ndarray, shape (base, parameters)
        B, with base parameters B theta: Y theta = Y[:, independent] B theta for every state.

    """

    independent: np.ndarray
    names: tuple[str, ...]
    combination: np.ndarray


def base_parameters(model: Model, *, friction: Sequence[str] = (), rotors: bool = False,
                    seed: int = 0) -> BaseParameters:
    """
    Return the base parameters: the linear combinations of parameters that torques depend on.

    They result from QR with column pivoting of the regressor at random states [Garofalo et al.
    (15), (16)].

    Parameters
    ----------
    model : Model
        The robot; its masses and inertias are not used.
    friction, rotors : sequence of str, bool
        Friction columns to include (see `rbd_ros.analysis.friction_regressor`; StateError for
        others), and whether to include rotor inertias.
    seed : int
        Seed of the random states.

    """
    return base_of(robot_parameters(model, friction, rotors), seed)[0]


def robot_parameters(model: Model, friction: Sequence[str], rotors: bool) -> RobotParameters:
    """Return the parameters of a robot to identify, validated."""
    check_model(model)
    friction = check_columns(friction)
    for asymmetry, symmetric in ASYMMETRIES.items():
        if asymmetry in friction and symmetric not in friction:
            raise StateError(f"friction '{asymmetry}' needs '{symmetric}', which it must not "
                             'exceed')
    return RobotParameters(model, friction + ('rotor',) * (rotors and 'rotor' not in friction))


def base_of(parameters: Parameters, seed: int = 0) -> tuple[BaseParameters, np.ndarray]:
    """Return base parameters, and which of them each torque depends on, (nv, base) of bool."""
    from scipy.linalg import qr, solve_triangular  # Imported lazily: SciPy is slow to import.
    model, names = parameters.model, parameters.names
    rng = np.random.default_rng(whole_number('seed', seed, least=0))
    # Three rows for every column; and enough for the columns of a single joint.
    states = max(-(-3 * len(names) // max(model.nv, 1)), MIN_STATES)
    # Ignore joint limits: in some URDFs they leave no range.
    turns = rng.uniform(-np.pi, np.pi, (states, model.nv))
    q = np.array([integrate(model, neutral(model), turn, 1.0) if model.loops is None
                  else random_configuration(model, rng) for turn in turns])
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
