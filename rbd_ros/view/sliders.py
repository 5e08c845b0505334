# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Sliders for a configuration, a velocity and a force."""

from __future__ import annotations

from contextlib import suppress
from itertools import chain
from typing import Any, NamedTuple, TYPE_CHECKING

import numpy as np
from rbd_ros.errors import StateError
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import neutral, normalize
from rbd_ros.model.se3 import quaternion_of_matrix, rotation_from_rpy

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
    """Sliders for q and v within their limits, and for a force; quaternions have angles."""

    def __init__(self, gui: GuiApi, model: Model) -> None:
        self._model, self._start = model, neutral(model)
        self._q: dict[int, Any] = {}
        # Roll, pitch and yaw, by the first index of the quaternion.
        self._angles: dict[int, list[Any]] = {}
        with gui.add_folder('Positions (rad, m)'):
            for joint, at, _ in model.unconstrained.moving_joints:
                if joint.name in model.independent_joints and not KINDS[joint.kind].is_screws:
                    for k in range(at.start + 4, at.stop):
                        self._q[k] = self._add(gui, model.position_names[k], -POSITIONS[1],
                                               POSITIONS[1])
                    self._angles[at.start] = [
                        self._add(gui, f'{joint.name} {angle}', -POSITIONS[0], POSITIONS[0])
                        for angle in ('roll', 'pitch', 'yaw')]
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
        for slider in (*self._q.values(), *chain(*self._angles.values()), *self._v, *self._force):
            slider.value = min(max(0.0, slider.min), slider.max)

    def read(self) -> Setting:
        q = self._start.copy()
        for i, slider in self._q.items():
            q[i] = slider.value
        for i, angles in self._angles.items():
            q[i:i + 4] = quaternion_of_matrix(rotation_from_rpy([one.value for one in angles]))
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
