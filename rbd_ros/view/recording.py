# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A recording as one self-contained page: the moving robot next to its efforts over time."""

from collections.abc import Callable, Mapping
from dataclasses import replace
from html import escape
from importlib.resources import files
from typing import Any

import numpy as np
from rbd_ros.identification.report import drawn, import_figure, picture
from rbd_ros.model.model import Model
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.state import computed_state
from rbd_ros.view.viewer import Viewer

RATE, POSES = 30.0, 3000    # poses per second, and in all: longer recordings have fewer per second
POINTS = 2000   # points of a curve: a screen does not resolve more
# Size of a plot, inches; left, bottom, width and height of its axes as shares of it.
SIZE, AXES = (6.0, 1.9), (0.12, 0.2, 0.85, 0.65)
COLORS = ('#888', '#0055aa', '#a51d1d', '#176d2c')


def recording_page(title: str, model: Model, geometry: Geometry, time: np.ndarray, q: np.ndarray,
                   v: np.ndarray, efforts: Mapping[str, np.ndarray],
                   progress: Callable[[int, int], None] = lambda done, all_of_it: None, *,
                   segment: np.ndarray | None = None) -> str:
    """
    Return a page (HTML) that plays a recording without other files or a network.

    ``efforts`` (samples, nv) are curves by name; ``'external'`` is also drawn at the joints.
    ``segment`` (samples,) has the number of gaps before each sample; ``progress`` takes the number
    of finished poses and of all. RbdError: viser, trimesh or matplotlib is not installed.

    """
    figure = import_figure('plots')
    segment = np.zeros(len(time), int) if segment is None else segment
    time = time - time[0]
    shown = _shown(time)
    external = efforts.get('external')
    with Viewer(model, geometry, port=0) as viewer:
        recorder = viewer.server.get_scene_serializer()
        for done, k in enumerate(shown):
            state = computed_state(model, q[k], v[k], {})
            if external is not None:
                state = replace(state, external=external[k])
            viewer.scene.update(state)
            after = time[shown[done + 1]] if done + 1 < len(shown) else time[-1]
            recorder.insert_sleep(float(after - time[k]))
            progress(done, len(shown))
        scene = recorder.as_html()
    left, bottom, width, height = (100.0 * x for x in AXES)
    legend = ' '.join(f'<b style="color: {color}">{escape(name)}</b>'
                      for color, name in zip(COLORS, efforts))
    plots = ''.join(_plot(figure, model, k, time, efforts, segment) for k in range(model.nv))
    page = (files('rbd_ros.view') / 'templates' / 'recording.html.in').read_text('utf-8')
    return page.format(title=escape(title), scene=escape(scene), legend=legend, plots=plots,
                       left=left, width=width, top=100.0 - bottom - height, height=height)


def _shown(time: np.ndarray) -> np.ndarray:
    """Return the indices of the samples whose poses are shown."""
    count = min(POSES, max(1, int(time[-1] * RATE)))
    return np.unique(np.searchsorted(time, np.linspace(0.0, time[-1], count, endpoint=False)))


def _plot(figure: Callable[..., Any], model: Model, k: int, time: np.ndarray,
          efforts: Mapping[str, np.ndarray], segment: np.ndarray) -> str:
    """Return a joint's efforts over time, with a cursor at the pose of the scene."""
    page = figure(figsize=SIZE)
    axes = page.add_axes(AXES)
    largest = 0.0
    for color, values in zip(COLORS, efforts.values()):
        axes.plot(*drawn(segment, time, values[:, k], points=POINTS), color=color, lw=0.9)
        largest = max(largest, float(np.nanmax(np.abs(values[:, k]), initial=0.0)))
    limit = model.effort_limit[k]
    if limit < 2.0 * largest:
        for line in (-limit, limit):
            axes.axhline(line, color='#c00', lw=0.8, ls='--')
    bound = f', limit {limit:g}' if np.isfinite(limit) else ''
    unit = 'N m' if model.angular[k] else 'N'
    axes.set_xlim(0.0, max(time[-1], 1e-9))
    axes.set_title(f'{model.velocity_names[k]} ({unit}{bound}); time in s', fontsize=8, loc='left')
    axes.tick_params(labelsize=7)
    return f'<figure>{picture(page, 110)}<i></i></figure>'
