# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The panel next to the scene: torques as numbers and over time, matrices, and switches.

It keeps the states of the last minute, so that a page can be paused and look back.

"""

from __future__ import annotations

from collections import deque
from functools import partial
from html import escape
from math import isnan
from typing import Any, TYPE_CHECKING

import numpy as np
from rbd_ros.kinematics import forward_kinematics
from rbd_ros.model.model import Model
from rbd_ros.view.scene import is_shown, NOWHERE, ROBOT, RobotScene
from rbd_ros.view.state import FORCES, LAYERS, MANIPULABILITY, MASSES, PATH, State
from rbd_ros.view.tables import (
    heat_map, MEASURED, MODEL, RESIDUAL, terms_table, torque_table)

if TYPE_CHECKING:
    from viser import GuiApi, GuiEvent

# s: span of the plot, between its points, and between updates of plot and matrices.
SPAN, POINT, IMAGE = 60.0, 0.05, 0.25
SECONDS: Any = {'time': False, 'range': (-SPAN, 0.0)}     # before the newest state
PATH_SPAN = 5.0     # s, of the path of the chosen link
OLD = 0.5       # s, age of a state from which the page warns of it
WIDTH, PLOT_HEIGHT = 336, 240    # pixels: a quarter of a screen of 1366
BAND_FILL, LIMIT = f'{RESIDUAL}33', '#c00'
# The plot has room for limits once a curve reaches this share of them.
NEAR_LIMIT = 0.5
STEPS = (1.0, 1.5, 2.0, 3.0, 4.0, 6.0, 8.0, 10.0)    # ends of the plot's range
UNITS = {MANIPULABILITY: 'm/s', FORCES: 'N', MASSES: 'kg'}


class Panels:
    """Torques, matrices and switches of a robot; `effort` labels its efforts ('measured')."""

    def __init__(self, gui: GuiApi, model: Model, scene: RobotScene, effort: str) -> None:
        self._model, self._scene, self._effort = model, scene, effort
        self._past: deque[tuple[float, State]] = deque()
        self._image_due = -np.inf
        self._bounds = (0.0, 0.0)
        panel = gui.add_panel()
        with panel.add_tab('Torques'):
            self._age = gui.add_html('')
            self._pause = gui.add_checkbox('Pause', False)
            self._back = gui.add_slider('Look back (s)', 0.0, SPAN, POINT, 0.0)
            self._table = gui.add_html('')
            self._joint = gui.add_dropdown('Plot', model.velocity_names or ('no joint',))
            self._add_plot(gui)
            gui.add_html(f'<div class="rbd">{key(self._effort)}, in the last {SPAN:.0f} s. '
                         'Shaded: 90 % of the residuals of an identified robot. Dashed: limits.'
                         '</div>')
            self._terms = gui.add_html('')
        with panel.add_tab('Matrices'):
            self._matrices = gui.add_html('')
        with panel.add_tab('Show'):
            self._add_switches(gui)
        panel.dock_left()
        panel.set_width(WIDTH)

    def _add_plot(self, gui: GuiApi) -> None:
        band, limit = {'stroke': BAND_FILL}, {'stroke': LIMIT, 'dash': [6, 4]}
        series: list[Any] = [{'label': 's'},
                             {'label': self._effort, 'stroke': MEASURED, 'width': 3},
                             {'label': 'model', 'stroke': MODEL},
                             {'label': 'residual', 'stroke': RESIDUAL},
                             {'label': 'its 90 %', **band}, {'label': '-90 %', **band},
                             {'label': 'limit', **limit}, {'label': '-limit', **limit}]
        empty = tuple(np.zeros(1) for _ in series)
        self._plot = gui.add_uplot(empty, tuple(series), scales={'x': SECONDS},
                                   bands=({'series': (4, 5), 'fill': BAND_FILL},),
                                   legend={'show': False}, height=PLOT_HEIGHT,
                                   padding=(12, 24, 0, 0))

    def _add_switches(self, gui: GuiApi) -> None:
        scene = self._scene
        for name in (ROBOT, *LAYERS):
            box = gui.add_checkbox(LAYERS[name].title if name in LAYERS else name,
                                   is_shown(name, self._model))
            box.on_update(partial(self._switch, name))
        links = gui.add_dropdown('Chosen link', self._model.link_names, initial_value=scene.link)
        links.on_update(lambda event: setattr(scene, 'link', event.target.value))
        self._sizes = gui.add_markdown('')

    def _switch(self, layer: str, event: GuiEvent[Any]) -> None:
        self._scene.set_visible(layer, event.target.value)

    def remember(self, time: float, state: State) -> None:
        """Keep a state at a time, s, unless paused; an earlier time starts a new run."""
        if self._past and time < self._past[-1][0]:
            self._past.clear()
        if not self._past or (time >= self._past[-1][0] + POINT and not self._pause.value):
            self._past.append((time, state))
            while time - self._past[0][0] > SPAN:
                self._past.popleft()

    def chosen(self, state: State) -> State:
        """Return the state to show: the new one, or one of the past if the page looks back."""
        if not self._past or not (self._pause.value or self._back.value > 0.0):
            return state
        return self._shown()[-1][1]

    def _shown(self) -> list[tuple[float, State]]:
        """Return the kept states up to the one that is the chosen time back."""
        if not self._past:
            return []
        wanted = self._past[-1][0] - self._back.value
        return [kept for kept in self._past if kept[0] <= wanted] or [self._past[0]]

    def path(self) -> np.ndarray:
        """Return the places (n, 3), m, of the chosen link in the last seconds."""
        if not self._scene.is_visible(PATH):
            return NOWHERE
        link, kept = self._model.link_index(self._scene.link), self._shown()
        poses = [(np.eye(4) if state.base is None else state.base)
                 @ forward_kinematics(self._model, state.q)[link]
                 for time, state in kept if time >= kept[-1][0] - PATH_SPAN]
        return np.array(poses).reshape(-1, 4, 4)[:, :3, 3]

    def update(self, time: float, state: State) -> None:
        """Show a state: numbers at once, plots and matrices every `IMAGE` s."""
        self._table.content = torque_table(self._model, state, self._effort)
        self._terms.content = terms_table(self._model, state)
        if self._image_due - IMAGE <= time < self._image_due:
            return
        self._age.content = age_line(state.age, self._pause.value, self._back.value)
        self._scene.write_names(state)
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
        time = np.array([t - self._past[-1][0] for t, _ in self._past])
        states = [state for _, state in self._past]
        effort, model, band = np.array([(state.effort[k], state.model[k], state.band[k])
                                        for state in states]).T
        curves = np.column_stack((effort, model, effort - model, band, -band))
        limit = self._model.effort_limit[k]
        limits = np.full((len(time), 2), [limit, -limit] if np.isfinite(limit) else np.nan)
        # uPlot finds no range by itself if values are unknown.
        low, high = (float(np.nanmax(sign * curves, initial=0.0)) for sign in (-1.0, 1.0))
        if max(low, high) > NEAR_LIMIT * limit:
            low, high = max(low, limit), max(high, limit)
        bounds = -plot_range(low), plot_range(high)
        if bounds != self._bounds:
            self._bounds = bounds
            self._plot.scales = {'x': SECONDS, 'y': {'range': bounds}}
        self._plot.data = (time, *curves.T, *limits.T)


def key(effort: str) -> str:
    """Return the names of the curves in their colours, in HTML; `effort` names the first."""
    return ', '.join(f'<b style="color: {color}">{escape(name)}</b>' for name, color in (
        (effort, MEASURED), ('model', MODEL), (f'residual ({effort} - model)', RESIDUAL)))


def age_line(age: float, paused: bool, back: float) -> str:
    """Return how old the shown state is, in HTML; empty: it is that of sliders."""
    if paused or back > 0.0:
        since = 'pause' if paused else 'newest state'
        return f'<div class="rbd">{back:.2f} s before the {since}</div>'
    if isnan(age):
        return ''
    text = f'state of {1e3 * age:.0f} ms ago' if age < 1.0 else f'state of {age:.1f} s ago'
    return (f'<div class="rbd near">{text}: joint states have stopped</div>' if age > OLD
            else f'<div class="rbd">{text}</div>')


def plot_range(largest: float) -> float:
    """Return the smallest of `STEPS` times a power of 10 that exceeds a number by a tenth."""
    if not largest > 0.0:
        return 1.0
    step = 10.0 ** np.floor(np.log10(1.1 * largest))
    return float(next(step * share for share in STEPS if step * share >= 1.1 * largest))
