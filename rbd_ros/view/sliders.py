# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sliders for a configuration, a velocity and a force."""

from __future__ import annotations

from contextlib import suppress
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import neutral, normalize

if TYPE_CHECKING:
    from viser import GuiApi

# Largest values without limits, for revolute and prismatic joints: rad or m, rad/s or m/s.
POSITIONS, VELOCITIES = (np.pi, 1.0), (3.0, 1.0)
LARGEST_FORCE = 200.0   # N
STEP = 0.001    # resolution of positions and velocities
# rad: at first, revolute joints are bent by this, in turns to one side and the other.
BENT = 0.4


class Setting(NamedTuple):
    """The values of the sliders."""

    q: np.ndarray       # (nq,)
    v: np.ndarray       # (nv,)
    force: np.ndarray   # (3,): N, in the axes of the root


class Sliders:
    """Sliders for q and v within their limits, and for a force; quaternions have no sliders."""

    def __init__(self, gui: GuiApi, model: Model) -> None:
        self._model, self._start = model, neutral(model)
        self._q: dict[int, Any] = {}
        with gui.add_folder('Positions (rad, m)'):
            for name, lower, upper, angular in zip(
                    model.velocity_names, model.lower, model.upper, model.angular):
                if name in model.position_names:    # no quaternion
                    self._q[model.position_names.index(name)] = self._add(
                        gui, name, *_range(lower, upper, POSITIONS[not angular]),
                        start=BENT * (-1.0) ** len(self._q) * angular)
        with gui.add_folder('Velocities (rad/s, m/s)', expand_by_default=False):
            self._v = [
                self._add(gui, name, *_range(-limit, limit, VELOCITIES[not angular]))
                for name, limit, angular in zip(model.velocity_names, model.velocity_limit,
                                                model.angular)]
        with gui.add_folder('Force on the chosen link (N)', expand_by_default=False):
            self._force = [self._add(gui, axis, -LARGEST_FORCE, LARGEST_FORCE, 1.0)
                           for axis in ('x', 'y', 'z')]
        gui.add_button('All to zero').on_click(self._zero)

    def _add(self, gui: GuiApi, name: str, lower: float, upper: float, step: float = STEP,
             start: float = 0.0) -> Any:
        return gui.add_slider(name, lower, upper, step, min(max(start, lower), upper))

    def _zero(self, _: object) -> None:
        for slider in (*self._q.values(), *self._v, *self._force):
            slider.value = min(max(0.0, slider.min), slider.max)

    def read(self) -> Setting:
        q = self._start.copy()
        for i, slider in self._q.items():
            q[i] = slider.value
        if self._model.loops is not None:
            # Passive joints follow from where they were, and stay there if they cannot follow.
            with suppress(StateError):
                self._start = normalize(self._model, q)
            q = self._start.copy()
        return Setting(q, np.array([slider.value for slider in self._v], float),
                       np.array([slider.value for slider in self._force], float))


def _range(lower: float, upper: float, default: float) -> tuple[float, float]:
    """Return limits of a slider, which must be finite and different."""
    lower = lower if np.isfinite(lower) else min(-default, upper - default)
    upper = upper if np.isfinite(upper) else max(default, lower + default)
    return float(lower), float(max(upper, lower + STEP))
