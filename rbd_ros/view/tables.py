# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of torques and heat maps of matrices, as HTML."""

from collections.abc import Sequence
from html import escape
from math import isfinite

import numpy as np
from rbd_ros.model.model import Model
from rbd_ros.view.layers import CORIOLIS, EXTERNAL_TORQUES, GRAVITY, LAYERS
from rbd_ros.view.state import State

# Cells of larger matrices hold no numbers, and their joints are named by the cells alone.
MOST_NUMBERS, MOST_NAMES = 8, 40
# Characters of a name beside a matrix.
LONGEST_NAME = 18
# Share of a limit from which on an effort is red.
NEAR = 0.9
UNKNOWN = '?'
RED, BLUE = (178, 24, 43), (33, 102, 172)
STYLE = """<style>
.rbd { font: 12px/1.4 system-ui, sans-serif; font-variant-numeric: tabular-nums; padding: 0 .7em }
.rbd table { border-collapse: collapse; width: 100% }
.rbd td, .rbd th { padding: 1px 4px; text-align: right; white-space: nowrap }
.rbd td:first-child, .rbd th:first-child { text-align: left; max-width: 11em; overflow: hidden;
  text-overflow: ellipsis }
.rbd .near { color: #c00; font-weight: bold }
.rbd svg text { font: 9px system-ui, sans-serif; fill: currentColor }
.rbd svg text.in { font-size: 8px; fill: #000; text-anchor: middle }
</style>"""


def number(x: float) -> str:
    """Return a number with three digits after the point, or a question mark if it is not known."""
    if not isfinite(x):
        return UNKNOWN
    text = f'{x:.3f}'
    return text[1:] if float(text) == 0.0 and text.startswith('-') else text


def torque_table(model: Model, state: State, effort: str) -> str:
    """
    Return the torques of a state by joint, with their limits.

    Parameters
    ----------
    model : Model
        The robot.
    state : State
        Its state.
    effort : str
        What the efforts of the state are called.

    Returns
    -------
    str
        HTML.

    """
    head = ['joint', 'q', *(f'<span style="color: {_css(LAYERS[name].color)}">■</span> {title}'
                            for name, title in ((GRAVITY, 'gravity'), (CORIOLIS, 'Coriolis'),
                                                (EXTERNAL_TORQUES, 'external'))),
            escape(effort), 'limit']
    lines = [f'<tr>{"".join(f"<th>{cell}</th>" for cell in head)}</tr>']
    positions = coordinates(model, state.q)
    for k, name in enumerate(model.velocity_names):
        limit, load = model.effort_limit[k], state.effort[k]
        near = ' class="near"' if abs(load) > NEAR * limit else ''
        cells = [number(x) for x in (positions[k], state.gravity[k], state.coriolis[k],
                                     state.external[k])]
        lines.append(
            f'<tr><td title="{escape(name)}">{escape(name)}</td>'
            + ''.join(f'<td>{cell}</td>' for cell in cells)
            + f'<td{near}>{number(load)}</td><td>{f"{limit:g}" if isfinite(limit) else "none"}'
            '</td></tr>')
    return (f'{STYLE}<div class="rbd"><table>{"".join(lines)}</table>q in rad or m, torques in '
            'N m or N</div>')


def coordinates(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the positions of the entries of v; NaN for those of joints with quaternions."""
    found = np.full(model.nv, np.nan)
    for joint, positions, velocities in model.moving_joints:
        if joint.nq == joint.nv:
            found[velocities] = q[positions]
    return found


def heat_map(title: str, names: Sequence[str], matrix: np.ndarray) -> str:
    """
    Return a square matrix as an image, red where it is positive and blue where negative.

    Parameters
    ----------
    title : str
        What it is.
    names : sequence of str
        Of its rows and columns.
    matrix : ndarray, shape (n, n)
        Its entries; not finite: not known.

    Returns
    -------
    str
        HTML. Each cell tells its joints and its number to a mouse that rests on it.

    """
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
    """Return a name, without its middle if it is too long."""
    if len(name) <= LONGEST_NAME:
        return name
    return f'{name[:LONGEST_NAME // 2 - 1]}…{name[-LONGEST_NAME // 2:]}'


def _shade(share: float) -> str:
    """Return white for 0, red for 1, and blue for -1."""
    full = RED if share > 0.0 else BLUE
    return 'rgb({},{},{})'.format(*(round(255 + abs(share) * (x - 255)) for x in full))


def _css(color: tuple[float, float, float]) -> str:
    return 'rgb({},{},{})'.format(*(round(255 * x) for x in color))
