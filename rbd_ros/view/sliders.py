# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sliders for a configuration, a velocity and a force."""

from __future__ import annotations

from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np
from rbd_ros.model.configurations import neutral
from rbd_ros.model.model import Model

if TYPE_CHECKING:
    from viser import GuiApi

# Of coordinates without limits: rad or m, rad/s or m/s.
POSITIONS, VELOCITIES = (np.pi, 1.0), (3.0, 1.0)
# N
LARGEST_FORCE = 200.0
# Decimals of positions and velocities that can be set.
STEP = 0.001


class Setting(NamedTuple):
    """
    What the sliders are set to.

    Attributes
    ----------
    q, v : ndarray, shapes (nq,) and (nv,)
        rad or m, rad/s or m/s.
    force : ndarray, shape (3,)
        N, in the axes of the root.

    """

    q: np.ndarray
    v: np.ndarray
    force: np.ndarray


class Sliders:
    """
    Sliders for q and v within their limits, and for a force.

    Joints with quaternions have no sliders for q; they stay as they are.

    Parameters
    ----------
    gui : viser.GuiApi
        Where they are added.
    model : Model
        The robot.

    """

    def __init__(self, gui: GuiApi, model: Model) -> None:
        self._start = neutral(model)
        self._q: dict[int, Any] = {}
        with gui.add_folder('Positions (rad, m)'):
            for joint, positions, velocities in model.moving_joints:
                if joint.nq == joint.nv:
                    for i, k in zip(range(positions.start, positions.stop),
                                    range(velocities.start, velocities.stop)):
                        self._q[i] = self._add(gui, model.velocity_names[k], *_range(
                            model.lower[k], model.upper[k], POSITIONS[not model.angular[k]]))
        with gui.add_folder('Velocities (rad/s, m/s)', expand_by_default=False):
            self._v = []
            for k, name in enumerate(model.velocity_names):
                most = VELOCITIES[not model.angular[k]]
                limit = model.velocity_limit[k]
                self._v.append(self._add(gui, name, *_range(-limit, limit, most)))
        with gui.add_folder('Force on the chosen link (N)', expand_by_default=False):
            self._force = [self._add(gui, axis, -LARGEST_FORCE, LARGEST_FORCE, 1.0)
                           for axis in ('x', 'y', 'z')]
        zero = gui.add_button('All to zero')
        zero.on_click(lambda _: self._zero())

    def _add(self, gui: GuiApi, name: str, lower: float, upper: float, step: float = STEP) -> Any:
        start = min(max(0.0, lower), upper)
        return gui.add_slider(name, lower, upper, step, start)

    def _zero(self) -> None:
        for slider in (*self._q.values(), *self._v, *self._force):
            slider.value = min(max(0.0, slider.min), slider.max)

    def read(self) -> Setting:
        """Return what the sliders are set to."""
        q = self._start.copy()
        for i, slider in self._q.items():
            q[i] = slider.value
        return Setting(q, np.array([slider.value for slider in self._v], float),
                       np.array([slider.value for slider in self._force], float))


def _range(lower: float, upper: float, default: float) -> tuple[float, float]:
    """Return limits for a slider, which must be finite and apart."""
    lower = lower if np.isfinite(lower) else min(-default, upper - default)
    upper = upper if np.isfinite(upper) else max(default, lower + default)
    return float(lower), float(max(upper, lower + STEP))
