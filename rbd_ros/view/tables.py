# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of torques and heat maps of matrices, as HTML."""

from collections.abc import Iterable, Mapping, Sequence
from html import escape
from itertools import takewhile
from math import isfinite
import re

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.view.state import CORIOLIS, EXTERNAL_TORQUES, GRAVITY, LAYERS, rgb, State

# Largest matrices with numbers in the cells, and with joint names along the edges.
MOST_NUMBERS, MOST_NAMES = 8, 40
LONGEST_NAME = 18   # characters of a name along an edge
NEAR = 0.9    # efforts beyond this share of their limit are red
UNKNOWN = '?'
# Colours of the columns and curves, as in reports.
MEASURED, MODEL, RESIDUAL = '#999', '#0055aa', '#a51d1d'
RED, BLUE = (178, 24, 43), (33, 102, 172)
STYLE = """<style>
.rbd { font: 11px/1.4 system-ui, sans-serif; font-variant-numeric: tabular-nums;
  padding: 0 12px 0 2px }
.rbd table { border-collapse: collapse; width: 100% }
.rbd td, .rbd th { padding: 1px 2px; text-align: right; white-space: nowrap }
.rbd th { white-space: normal; vertical-align: bottom; font-size: 10px }
.rbd td:first-child, .rbd th:first-child { text-align: left; max-width: 7em; overflow: hidden;
  text-overflow: ellipsis }
.rbd .near { color: #c00; font-weight: bold }
.rbd svg text { font: 9px system-ui, sans-serif; fill: currentColor }
.rbd svg text.in { font-size: 8px; fill: #000; text-anchor: middle }
</style>"""


def number(x: float) -> str:
    """Return a number with three decimals; unknown values are shown as "?"."""
    if not isfinite(x):
        return UNKNOWN
    text = f'{x:.3f}'
    return text[1:] if float(text) == 0.0 and text.startswith('-') else text


def short_names(names: Sequence[str]) -> list[str]:
    """Return names, which begin with a letter, without what all of them begin with."""
    if len(names) < 2:
        return [*names]
    parts = [re.split('(?<=[_/])', name) for name in names]
    same = len([*takewhile(lambda some: len(set(some)) == 1, zip(*parts))])
    # joint_1 rather than 1
    while same and not all(''.join(some[same:])[:1].isalpha() for some in parts):
        same -= 1
    return [''.join(some[same:]) for some in parts]


def torque_table(model: Model, state: State, effort: str) -> str:
    """Return efforts, called `effort`, those of the model, residuals and limits by joint."""
    limits = model.effort_limit
    return _table(model, {
        _colored(effort, MEASURED): (
            f'<span class="near">{number(tau)}</span>' if abs(tau) > NEAR * limit else number(tau)
            for tau, limit in zip(state.effort, limits)),
        _colored('model', MODEL): map(number, state.model),
        _colored('residual', RESIDUAL): map(number, state.residual),
        '±&nbsp;90&nbsp;%': map(number, state.band),
        'limit': (f'{limit:g}' if isfinite(limit) else 'none' for limit in limits)},
                  'torques in N m, forces of prismatic joints in N')


def terms_table(model: Model, state: State) -> str:
    """Return positions and the terms of the equations of motion by joint."""
    return _table(model, {'q': map(number, coordinates(model, state.q)), **{
        _colored(title, css(LAYERS[name].color)): map(number, torques)
        for name, title, torques in ((GRAVITY, 'gravity', state.gravity),
                                     (CORIOLIS, 'Coriolis', state.coriolis),
                                     (EXTERNAL_TORQUES, 'external', state.external))}},
                  'q in rad or m')


def _table(model: Model, columns: Mapping[str, Iterable[str]], note: str) -> str:
    """Return a row per joint, of columns of HTML by title, above a note."""
    lines = [f'<tr><th>joint</th>{"".join(f"<th>{title}</th>" for title in columns)}</tr>']
    names = model.velocity_names
    for name, short, *cells in zip(names, short_names(names), *columns.values()):
        lines.append(f'<tr><td title="{escape(name)}">{escape(short)}</td>'
                     f'{"".join(f"<td>{cell}</td>" for cell in cells)}</tr>')
    return f'{STYLE}<div class="rbd"><table>{"".join(lines)}</table>{note}</div>'


def _colored(title: str, color: str) -> str:
    return f'<span style="color: {color}">■</span> {escape(title)}'


def coordinates(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the positions that belong to the entries of v; NaN for joints with quaternions."""
    position = dict(zip(model.position_names, q))
    return np.array([position.get(name, np.nan) for name in model.velocity_names], float)


def heat_map(title: str, names: Sequence[str], matrix: np.ndarray) -> str:
    """Return a matrix as an image: red positive, blue negative, with values on hovering."""
    n = len(names)
    if not n:
        return f'<div class="rbd"><b>{escape(title)}</b>: no joints</div>'
    finite = np.where(np.isfinite(matrix), matrix, 0.0)
    largest = float(np.abs(finite).max())
    left, top, side = (90.0, 64.0, 260.0) if n <= MOST_NAMES else (4.0, 4.0, 386.0)
    cell = side / n
    parts = []
    for i in range(n):
        middle = (i + 0.5) * cell + 3.0
        if n <= MOST_NAMES:
            name = escape(_short(names[i]))
            parts.append(f'<text x="{left - 3:.0f}" y="{top + middle:.1f}" text-anchor="end">'
                         f'{name}</text><text transform="translate({left + middle:.1f} '
                         f'{top - 3:.0f}) rotate(-45)">{name}</text>')
        for j in range(n):
            x, y, entry = left + j * cell, top + i * cell, float(matrix[i, j])
            color = _shade(float(finite[i, j]) / (largest or 1.0))
            parts.append(
                f'<rect x="{x:.1f}" y="{y:.1f}" width="{cell:.1f}" height="{cell:.1f}" '
                f'fill="{color}"><title>{escape(names[i])}, {escape(names[j])}: {entry:.5g}'
                '</title></rect>')
            if n <= MOST_NUMBERS:
                parts.append(f'<text class="in" x="{x + 0.5 * cell:.1f}" '
                             f'y="{y + 0.5 * cell + 3:.1f}">{entry:.2g}</text>')
    return (f'{STYLE}<div class="rbd"><b>{escape(title)}</b>, largest entry {largest:.3g}<br>'
            f'<svg viewBox="0 0 400 {top + side + 4:.0f}" width="100%">{"".join(parts)}</svg>'
            '</div>')


def _short(name: str) -> str:
    if len(name) <= LONGEST_NAME:
        return name
    return f'{name[:LONGEST_NAME // 2 - 1]}…{name[-LONGEST_NAME // 2:]}'


def _shade(share: float) -> str:
    full = RED if share > 0.0 else BLUE
    return 'rgb({},{},{})'.format(*(round(255 + abs(share) * (x - 255)) for x in full))


def css(color: tuple[float, float, float]) -> str:
    """Return a colour with components 0 to 1 in the notation of CSS."""
    return 'rgb({},{},{})'.format(*rgb(color))
