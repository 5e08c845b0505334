# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of torques and heat maps of matrices, as HTML."""

from collections.abc import Sequence
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
RED, BLUE = (178, 24, 43), (33, 102, 172)
STYLE = """<style>
.rbd { font: 11px/1.4 system-ui, sans-serif; font-variant-numeric: tabular-nums; padding: 0 .2em }
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
    """Return the torques of a state by joint, with their limits; `effort` names its efforts."""
    head = ['joint', 'q', *(f'<span style="color: {css(LAYERS[name].color)}">■</span> {title}'
                            for name, title in ((GRAVITY, 'gravity'), (CORIOLIS, 'Coriolis'),
                                                (EXTERNAL_TORQUES, 'external'))),
            escape(effort), 'limit']
    lines = [f'<tr>{"".join(f"<th>{cell}</th>" for cell in head)}</tr>']
    positions = coordinates(model, state.q)
    for k, (name, short) in enumerate(zip(model.velocity_names, short_names(
            model.velocity_names))):
        limit, tau = model.effort_limit[k], state.effort[k]
        near = ' class="near"' if abs(tau) > NEAR * limit else ''
        cells = ''.join(f'<td>{number(x)}</td>' for x in (
            positions[k], state.gravity[k], state.coriolis[k], state.external[k]))
        lines.append(
            f'<tr><td title="{escape(name)}">{escape(short)}</td>{cells}<td{near}>{number(tau)}'
            f'</td><td>{f"{limit:g}" if isfinite(limit) else "none"}</td></tr>')
    return (f'{STYLE}<div class="rbd"><table>{"".join(lines)}</table>q in rad or m, torques in '
            'N m or N</div>')


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
