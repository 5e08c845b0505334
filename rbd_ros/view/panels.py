# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The panel next to the scene: torques as numbers and over time, matrices, and switches."""

from __future__ import annotations

from collections import deque
from functools import partial
from typing import Any, TYPE_CHECKING

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.view.layers import (
    CORIOLIS, EXTERNAL_TORQUES, FORCES, GRAVITY, LAYERS, MANIPULABILITY, MASSES)
from rbd_ros.view.scene import ROBOT, RobotScene, SHOWN
from rbd_ros.view.state import State
from rbd_ros.view.tables import css, heat_map, torque_table

if TYPE_CHECKING:
    from viser import GuiApi, GuiEvent

# s: span of the plot, between its points, and between updates of plot and matrices.
SPAN, POINT, IMAGE = 20.0, 0.05, 0.25
WIDTH, PLOT_HEIGHT = 560, 260    # pixels
UNITS = {MANIPULABILITY: 'm/s', FORCES: 'N', MASSES: 'kg'}


class Panels:
    """Torques, matrices and switches of a robot; `effort` labels its efforts ('measured')."""

    def __init__(self, gui: GuiApi, model: Model, scene: RobotScene, effort: str) -> None:
        self._model, self._scene, self._effort = model, scene, effort
        self._past: deque[tuple[float, np.ndarray]] = deque(maxlen=round(SPAN / POINT))
        self._image_due = -np.inf
        self._most = np.nan
        panel = gui.add_panel()
        with panel.add_tab('Torques'):
            self._table = gui.add_html('')
            self._joint = gui.add_dropdown('Plot', model.velocity_names or ('no joint',))
            self._add_plot(gui)
        with panel.add_tab('Matrices'):
            self._matrices = gui.add_html('')
        with panel.add_tab('Show'):
            self._add_switches(gui)
        panel.dock_left()
        panel.set_width(WIDTH)

    def _add_plot(self, gui: GuiApi) -> None:
        color = {name: css(LAYERS[name].color) for name in (GRAVITY, CORIOLIS, EXTERNAL_TORQUES)}
        limit = {'stroke': '#c00', 'dash': [6, 4]}
        series: list[Any] = [{'label': 's'}, {'label': self._effort, 'stroke': '#bbb', 'width': 3},
                             {'label': 'gravity', 'stroke': color[GRAVITY]},
                             {'label': 'Coriolis', 'stroke': color[CORIOLIS]},
                             {'label': 'external', 'stroke': color[EXTERNAL_TORQUES]},
                             {'label': 'limit', **limit}, {'label': '-limit', **limit}]
        empty = tuple(np.zeros(1) for _ in series)
        self._plot = gui.add_uplot(empty, tuple(series), scales={'x': {'time': False}},
                                   height=PLOT_HEIGHT, padding=(12, 24, 0, 0))

    def _add_switches(self, gui: GuiApi) -> None:
        scene = self._scene
        for name in (ROBOT, *LAYERS):
            box = gui.add_checkbox(LAYERS[name].title if name in LAYERS else name, name in SHOWN)
            box.on_update(partial(self._switch, name))
        links = gui.add_dropdown('Chosen link', self._model.link_names, initial_value=scene.link)
        links.on_update(lambda event: setattr(scene, 'link', event.target.value))
        self._sizes = gui.add_markdown('')

    def _switch(self, layer: str, event: GuiEvent[Any]) -> None:
        self._scene.set_visible(layer, event.target.value)

    def remember(self, time: float, state: State) -> None:
        """Keep the torques at a time, s, for the plot; an earlier time starts a new run."""
        if self._past and time < self._past[-1][0]:
            self._past.clear()
        if not self._past or time >= self._past[-1][0] + POINT:
            self._past.append((time, np.array([state.effort, state.gravity, state.coriolis,
                                               state.external])))

    def update(self, time: float, state: State) -> None:
        """Show a state: numbers at once, plots and matrices every `IMAGE` s."""
        self._table.content = torque_table(self._model, state, self._effort)
        if self._image_due - IMAGE <= time < self._image_due:
            return
        self._image_due = time + IMAGE
        names = self._model.velocity_names
        self._matrices.content = (heat_map('Mass matrix M', names, state.M)
                                  + heat_map('Coriolis matrix C', names, state.C))
        self._sizes.content = '  \n'.join(
            f'{LAYERS[name].title}: ' + ', '.join(f'{x:.3g}' for x in found.semi_axes)
            + f' {UNITS[name]}' for name, found in self._scene.ellipsoids(state).items())
        self._draw()

    def _draw(self) -> None:
        if self._joint.value not in self._model.velocity_names or not self._past:
            return
        k = self._model.velocity_names.index(self._joint.value)
        time = np.array([t for t, _ in self._past])
        limit = self._model.effort_limit[k]
        limits = np.full(len(time), limit if np.isfinite(limit) else np.nan)
        torques = np.array([values[:, k] for _, values in self._past])
        # uPlot finds no range by itself if values are unknown.
        most = plot_range(np.nanmax(np.abs(np.column_stack((torques, limits))), initial=0.0))
        if most != self._most:
            self._most = most
            self._plot.scales = {'x': {'time': False}, 'y': {'range': (-most, most)}}
        self._plot.data = (time, *torques.T, limits, -limits)


def plot_range(largest: float) -> float:
    """Return the smallest 1, 2 or 5 times a power of 10 that exceeds a number by a tenth."""
    if not largest > 0.0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(1.1 * largest))
    return float(next(step * share for share in (1.0, 2.0, 5.0, 10.0)
                      if step * share >= 1.1 * largest))
