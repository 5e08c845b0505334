# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The base class of the demo's modes, and the results that they return."""

from typing import ClassVar, NamedTuple

import numpy as np
from rbd_ros import Model
from rbd_ros.ros.demo.robots import heavy_position, units
from rbd_ros.ros.demo.session import Sample, Session


class Check(NamedTuple):
    """An acceptance criterion: measured value and limit as text, and whether it is met."""

    text: str
    passed: bool


class Strip(NamedTuple):
    """A quantity over time, one row of the picture."""

    name: str
    unit: str
    # One for each sample.
    values: np.ndarray
    desired: np.ndarray | None = None
    tolerance: float | None = None    # For errors: those below are small


class Mode:
    """A mode of the demo: what it shows, and its acceptance criteria."""

    # Title of the picture, and the text printed first.
    title: ClassVar[str]
    introduction: ClassVar[str]
    urdf: ClassVar[str] = 'demo_arm.urdf'    # The robot by default
    # Why simulated_robot cannot simulate this mode; empty: it can.
    needs_mujoco: ClassVar[str] = ''
    rotors: ClassVar[bool] = True    # Whether rotor inertias are added to the model
    # rad or m: errors below are small; and the name of errors.
    tolerance: float
    error_name: str = 'error'

    def __init__(self, model: Model) -> None:
        self.model = model
        self.start = self._choose_start()

    def _choose_start(self) -> np.ndarray:
        return heavy_position(self.model)

    def run(self, session: Session) -> list[Check]:
        """Run the mode and return its checks."""
        raise NotImplementedError

    def poses(self, session: Session) -> list[np.ndarray]:
        """Return positions for the picture, from the first to the last."""
        first = next(phase.first for phase in reversed(session.phases) if phase.accurate)
        samples = session.samples[first:]
        return [samples[k].q for k in np.linspace(0, len(samples) - 1, 12).astype(int)]

    def strips(self, session: Session) -> list[Strip]:
        """Return the rows of the picture next to the torques: errors."""
        errors = np.array([sample.error for sample in session.samples])
        return [Strip(name, units(self.model, k)[0], column, tolerance=session.tolerance)
                for k, (name, column) in enumerate(zip(self.model.velocity_names, errors.T))]

    def explain_failure(self, session: Session) -> str:
        """Return a likely reason for a failed check."""
        if self.model.friction.any():
            return ('the joints have dry friction in the URDF, up to '
                    f'{self.model.friction.max():.3g} N m or N, which holds slow joints and bears '
                    'part of each push')
        return (f'torques were up to {1e3 * session.delays[1]:.0f} ms late in the last phase. '
                'Control degrades from 20 ms, and after 100 ms the controller aborts its motion: '
                'try again on a less busy machine')


def rms(samples: list[Sample]) -> np.ndarray:
    """Return the RMS error of each joint."""
    return np.sqrt(np.mean(np.square([sample.error for sample in samples]), axis=0))


def worst(model: Model, errors: np.ndarray) -> str:
    """Return the largest error, with its unit and joint."""
    k = int(np.argmax(np.abs(errors)))
    return f"{abs(errors[k]):.2g} {units(model, k)[0]} ('{model.velocity_names[k]}')"
