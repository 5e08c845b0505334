# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What all modes of the demo have in common."""

from typing import ClassVar, NamedTuple

import numpy as np
from rbd_ros import Model
from rbd_ros.ros.demo.robots import heavy_position
from rbd_ros.ros.demo.stage import Sample, Stage


class Check(NamedTuple):
    """
    What must be so for the demo to pass.

    Attributes
    ----------
    text : str
        What was measured, and what was asked for.
    met : bool
        Whether it is so.

    """

    text: str
    met: bool


class Strip(NamedTuple):
    """
    A quantity over time, for the picture.

    Attributes
    ----------
    name, unit : str
        What it is.
    values : ndarray
        One for each sample.
    asked : ndarray, optional
        What it should be.
    bound : float, optional
        It is an error, which is small if it is less.

    """

    name: str
    unit: str
    values: np.ndarray
    asked: np.ndarray | None = None
    bound: float | None = None


class Story:
    """
    A mode of the demo: what it shows, and what must come of it.

    Parameters
    ----------
    model : Model
        The robot.

    Attributes
    ----------
    start : ndarray
        Where the robot begins.
    loaded : Model
        The robot with what it carries.

    """

    # Of the picture; and what the user is told first.
    title: ClassVar[str]
    words: ClassVar[str]
    # Whether simulated_robot cannot play the robot, and why.
    needs_mujoco: ClassVar[str] = ''
    # Whether drives are given rotors.
    rotors: ClassVar[bool] = True
    # rad or m: smaller errors are small; and what they are called.
    bound: float
    word: str = 'error'

    def __init__(self, model: Model) -> None:
        self.model = self.loaded = model
        self.start = self._choose_start()

    def _choose_start(self) -> np.ndarray:
        """Return where the robot begins."""
        return heavy_position(self.model)

    def play(self, stage: Stage) -> list[Check]:
        """Let it happen, and return what came of it."""
        raise NotImplementedError

    def poses(self, stage: Stage) -> list[np.ndarray]:
        """Return positions of the robot for the picture, from where it began to where it ended."""
        first = next(phase.first for phase in reversed(stage.phases) if phase.good)
        samples = stage.samples[first:]
        return [samples[k].q for k in np.linspace(0, len(samples) - 1, 12).astype(int)]

    def strips(self, stage: Stage) -> list[Strip]:
        """Return what the picture has beside the torques: errors."""
        errors = np.array([sample.error for sample in stage.samples])
        return [Strip(name, stage.unit(k)[0], column, bound=stage.bound)
                for k, (name, column) in enumerate(zip(self.model.velocity_names, errors.T))]

    def why(self, stage: Stage) -> str:
        """Return what may explain that something is not as it must be."""
        if self.model.friction.any():
            return ('the URDF gives its joints dry friction, up to '
                    f'{self.model.friction.max():.3g} N m or N, which holds joints that hardly '
                    'move, and bears a part of each push')
        return (f'torques were up to {1e3 * stage.delays[1]:.0f} ms late in the last phase. From '
                '20 ms on control becomes worse, and after 100 ms the controller drops its '
                'motion: try again on a machine that is less busy')


def rms(samples: list[Sample]) -> np.ndarray:
    """Return the root of the mean square error of each joint."""
    return np.sqrt(np.mean(np.square([sample.error for sample in samples]), axis=0))


def worst(model: Model, errors: np.ndarray) -> str:
    """Return the largest error, with its unit and joint."""
    k = int(np.argmax(np.abs(errors)))
    unit = 'rad' if model.angular[k] else 'm'
    return f"{abs(errors[k]):.2g} {unit} ('{model.velocity_names[k]}')"
