# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reports on identifications and replays as self-contained HTML, and tables of residuals."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from io import BytesIO
import os
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.errors import RbdError
from rbd_ros.model.uncertainty import HALF_WIDTH
from rbd_ros.recordings.samples import Samples
from rbd_ros.recordings.tables import import_pyarrow

POINTS = 3000  # Points per curve: more cannot be distinguished on a screen.
# Samples per segment of the averaged spectrum: long enough to resolve a hum.
SPECTRUM_SEGMENT = 1024
# Inches: width of the page, height of a row, and margins of a panel. Fixed margins are three times
# faster than a layout that measures its texts.
WIDTH, HEIGHT = 12.0, 2.2
LEFT, RIGHT, BOTTOM, TOP = 0.9, 0.15, 0.5, 0.25
TITLE, CHARACTERS = 9.0, 12.0   # Size of titles, points; characters to the inch.
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #222; background: #fff; overflow-wrap: anywhere }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .8rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
img { width: 100%; height: auto }
.good { color: #176d2c } .bad { color: #a51d1d } .scroll { max-height: 36rem; overflow: auto }
"""


class Comparison(NamedTuple):
    """A recording compared with two robots."""

    name: str
    time: np.ndarray            # (samples,), s
    velocity: np.ndarray        # (samples, nv), as all below if not stated otherwise
    measured: np.ndarray        # efforts, N m or N: recorded,
    urdf: np.ndarray            # of the original robot,
    fit: np.ndarray             # and of the identified robot,
    friction: np.ndarray        # whose friction is included in `fit`
    usable: np.ndarray          # bool
    standstill: np.ndarray      # (nv,), speeds below which joints count as standing
    segment: np.ndarray         # (samples,), number of gaps before each sample
    deviation: np.ndarray | None = None     # of the measured efforts from `fit`, if known

    @property
    def coverage(self) -> np.ndarray | None:
        """Return the share of usable efforts within their intervals of 90 %, (nv,), if known."""
        if self.deviation is None:
            return None
        return share_within(self.measured - self.fit, self.deviation, self.usable)

    def rms(self, efforts: np.ndarray) -> np.ndarray:
        """Return the root mean square of usable efforts, (nv,); NaN where a joint never moved."""
        with np.errstate(invalid='ignore'):
            return np.sqrt(np.sum(efforts ** 2, axis=0, where=self.usable)
                           / np.sum(self.usable, axis=0))

    def relative_error(self, efforts: np.ndarray) -> float:
        """Return how far efforts are from those measured, relative to these; NaN: none was."""
        squares = [np.sum(x ** 2, where=self.usable) for x in (self.measured - efforts,
                                                               self.measured)]
        return float(np.sqrt(squares[0] / squares[1])) if squares[1] > 0.0 else np.nan


def share_within(error: np.ndarray, deviation: np.ndarray, usable: np.ndarray) -> np.ndarray:
    """Return the share of usable errors within their intervals of 90 %, by joint."""
    within = np.abs(error) <= HALF_WIDTH * deviation
    with np.errstate(invalid='ignore'):
        return np.sum(within & usable, axis=0) / np.sum(usable, axis=0)


class Row(NamedTuple):
    """A line of the table of parameters: original and identified value, standard deviation."""

    name: str
    unit: str
    urdf: float
    fit: float
    deviation: float
    determined: bool = True     # otherwise torques determine combinations with other values


def identification_report(title: str, joint_names: Sequence[str], units: Sequence[str],
                          comparisons: Sequence[Comparison], parameters: Iterable[Row],
                          grade: str, reasons: Sequence[str]) -> str:
    """Return a report as HTML: one comparison per recording, and those of a `Verdict`."""
    body = [_verdict(grade, reasons),
            '<h2>Error by joint</h2>', _errors(joint_names, units, comparisons)]
    for c in comparisons:
        body += [f'<h2>{escape(c.name)}: measured and computed efforts</h2>',
                 _efforts(joint_names, units, c.segment, c.time, {
                     'measured': (c.measured, '#bbb', 2.5), 'URDF': (c.urdf, '#d08a00', 0.8),
                     'identified': (c.fit, '#0055aa', 0.8)}, ['identified'], c.deviation),
                 f'<h2>{escape(c.name)}: residuals</h2>',
                 _panels([name for name in joint_names for _ in range(2)],
                         [label for unit in units for label in ('samples', f'{unit}/√Hz')],
                         partial(_draw_distribution, c, units), columns=2)]
    rows = ((row.name, row.unit, f'{row.urdf:.5g}', f'{row.fit:.5g}',
             f'{row.deviation:.2g}' + (not row.determined) * ' (not determined)')
            for row in parameters)
    return _page(title, [
        *body, '<h2>Friction</h2>',
        _panels(joint_names, units, partial(_draw_friction, comparisons, units), columns=3),
        '<h2>Parameters</h2>',
        _table(('parameter', 'unit', 'URDF', 'identified', 'standard deviation'), rows)])


def replay_report(title: str, joint_names: Sequence[str], units: Sequence[str], samples: Samples,
                  model: np.ndarray, external: np.ndarray, deviation: np.ndarray | None = None
                  ) -> str:
    """Return a replay report as HTML; efforts and their ``deviation`` are (samples, nv)."""
    rows = []
    for k, (name, unit) in enumerate(zip(joint_names, units)):
        use = samples.usable[:, k]
        if np.any(use):
            rows.append((name, unit, *(f'{np.sqrt(np.mean(x[use, k] ** 2)):.3g}' for x in (
                samples.tau, samples.tau - model, external))))
    return _page(title, [
        '<h2>RMS efforts while the joint moves</h2>',
        _table(('joint', 'unit', 'measured', 'not explained', 'external'), rows),
        '<h2>Efforts and residuals</h2>',
        _efforts(joint_names, units, samples.segment, samples.time, {
            'measured': (samples.tau, '#888', 0.9), 'external': (external, '#a51d1d', 0.9),
            'model': (model, '#0055aa', 0.9)}, ['model'], deviation)])


def diagnosis_report(title: str, joint_names: Sequence[str], units: Sequence[str],
                     compared: tuple[np.ndarray, ...], findings: Sequence[str]) -> str:
    """
    Return a report on a diagnosis as HTML.

    ``compared`` are times and segments (rows,), efforts measured, of the description and with the
    findings, and whether they are usable, (rows, nv); empty: nothing could be compared.

    """
    body = [_verdict('found' if findings else 'nothing found', findings)]
    if compared:
        time, segment, *efforts, usable = compared
        measured, description, found = (np.where(usable, x, np.nan) for x in efforts)
        deviation = np.broadcast_to(np.nanstd(measured - found, axis=0), found.shape)
        body += ['<h2>Efforts and residuals</h2>', _efforts(
            joint_names, units, segment, time, {
                'measured': (measured, '#bbb', 0.9), 'description': (description, '#d08a00', 0.9),
                'with the findings': (found, '#0055aa', 0.9)},
            ['description', 'with the findings'], deviation, columns=2)]
    return _page(title, body)


def drawn(segment: np.ndarray, *signals: np.ndarray, points: int = POINTS) -> list[np.ndarray]:
    """Return signals thinned to a number of points, with NaN to interrupt the line in each gap."""
    every = max(1, len(segment) // points)
    segments = np.split(np.arange(len(segment)), np.flatnonzero(np.diff(segment)) + 1)
    rows = np.concatenate([np.append(one[::every], -1) for one in segments])[:-1]
    return [np.where((rows < 0).reshape(-1, *[1] * (x.ndim - 1)), np.nan, x[rows])
            for x in signals]


def _page(title: str, body: Sequence[str]) -> str:
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
            f'</title><style>{STYLE}</style></head><body>\n'
            + '\n'.join([f'<h1>{escape(title)}</h1>', *body]) + '\n</body></html>\n')


def import_figure(purpose: str) -> Callable[..., Any]:
    """Return matplotlib's class of figures; raise RbdError if it is not installed."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RbdError(f'{purpose} need matplotlib: pip install "rbd_ros[recordings]"') from error
    return Figure


def _verdict(grade: str, reasons: Sequence[str]) -> str:
    if not reasons:
        return f'<p class="good"><b>{escape(grade.capitalize())}.</b></p>'
    return (f'<p class="bad"><b>{escape(grade.capitalize())}:</b></p><ul>'
            + ''.join(f'<li>{escape(reason)}</li>' for reason in reasons) + '</ul>')


def _errors(joint_names: Sequence[str], units: Sequence[str],
            comparisons: Sequence[Comparison]) -> str:
    rows = []
    for k, (name, unit) in enumerate(zip(joint_names, units)):
        for c in comparisons:
            if np.any(c.usable[:, k]):
                rms = [c.rms(x)[k] for x in (c.measured, c.measured - c.urdf, c.measured - c.fit)]
                rows.append((name, c.name, unit, *(f'{x:.3g}' for x in rms), '?'
                             if c.coverage is None else f'{100.0 * c.coverage[k]:.3g} %'))
    return _table(('joint', 'recording', 'unit', 'RMS measured', 'RMS error, URDF',
                   'RMS error, identified', 'within 90 %'), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f'<tr>{"".join(f"<th>{escape(cell)}</th>" for cell in head)}</tr>']
    lines += [f'<tr>{"".join(f"<td>{escape(cell)}</td>" for cell in row)}</tr>' for row in rows]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _panels(names: Sequence[str], units: Sequence[str], draw: Callable[[Any, int], None],
            columns: int) -> str:
    """Return an image with one panel per name; ``draw`` draws the k-th."""
    # Long names take a wider panel, and then a smaller font.
    count, longest = len(names), max(map(len, names), default=0) / CHARACTERS
    columns = max(1, min(columns, int(WIDTH / (longest + LEFT + RIGHT))))
    size = TITLE * min(1.0, (WIDTH / columns - LEFT - RIGHT) / max(longest, 1.0 / CHARACTERS))
    lines = -(-count // columns)
    page = import_figure('reports')(figsize=(WIDTH, HEIGHT * lines))
    page.subplots_adjust(left=LEFT / WIDTH, right=1.0 - RIGHT / WIDTH,
                         bottom=BOTTOM / (HEIGHT * lines), top=1.0 - TOP / (HEIGHT * lines),
                         wspace=(LEFT + RIGHT) / (WIDTH / columns - LEFT - RIGHT),
                         hspace=(BOTTOM + TOP) / (HEIGHT - BOTTOM - TOP))
    for k in range(count):
        axes = page.add_subplot(lines, columns, k + 1)
        draw(axes, k)
        axes.set_title(names[k], fontsize=size, loc='left', parse_math=False)
        if axes.get_yscale() == 'linear':
            # Without a common factor, which would push the title out of its panel.
            axes.yaxis.set_major_formatter('{x:.6g}')
        axes.set_ylabel(units[k], fontsize=8)
        axes.tick_params(labelsize=8)
        if k == 0:
            handles, labels = axes.get_legend_handles_labels()
            if handles:
                axes.legend(handles, labels, fontsize=8, loc='upper right')
    return picture(page, 90)


def picture(figure: Any, dpi: int) -> str:
    """Return a figure of matplotlib as HTML."""
    image = BytesIO()
    figure.savefig(image, format='png', dpi=dpi)
    return f'<img alt="plot" src="data:image/png;base64,{b64encode(image.getvalue()).decode()}">'


def _efforts(joint_names: Sequence[str], units: Sequence[str], segment: np.ndarray,
             time: np.ndarray, curves: dict[str, tuple[np.ndarray, str, float]],
             computed: Sequence[str], deviation: np.ndarray | None, columns: int = 1) -> str:
    """
    Return an image with two panels per joint: efforts, and residuals of those that are computed.

    ``curves`` has efforts (samples, nv), colors and widths by label, 'measured' among them.
    Intervals of 90 % are drawn about the last one, and about zero, if the deviation is known.

    """
    def draw(axes: Any, number: int) -> None:
        k, of_residual = divmod(number, 2)
        for label in computed if of_residual else curves:
            effort, color, width = curves[label]
            if of_residual:
                effort = curves['measured'][0] - effort
            shown_time, middle = drawn(segment, time, effort[:, k])
            axes.plot(shown_time, middle, color=color, lw=width, label=label)
        if deviation is not None:
            half = HALF_WIDTH * drawn(segment, deviation[:, k])[0]
            middle = 0.0 * half if of_residual else middle
            axes.fill_between(shown_time, middle - half, middle + half, color=color, alpha=0.15,
                              lw=0.0, label='90 %')
        axes.set_xlabel('s', fontsize=8)

    return _panels([f'{name}{what}' for name in joint_names for what in ('', ', residual')],
                   [unit for unit in units for _ in range(2)], draw, columns)


def _draw_distribution(c: Comparison, units: Sequence[str], axes: Any, number: int) -> None:
    """Draw the histogram of the residuals, or, in odd panels, their amplitude spectrum."""
    k, spectrum = divmod(number, 2)
    residual = (c.measured - c.fit)[:, k]
    if not spectrum:
        axes.hist(residual[c.usable[:, k]], bins=60, color='#0055aa')
        axes.set_xlabel(units[k], fontsize=8)
        return
    # Use the longest segment: a gap would look like a step.
    residual = residual[c.segment == np.argmax(np.bincount(c.segment))]
    if len(residual) < 8:
        return
    from scipy.signal import welch
    frequency, power = welch(residual, 1.0 / np.median(np.diff(c.time)),
                             nperseg=min(SPECTRUM_SEGMENT, len(residual)))
    axes.loglog(frequency[1:], np.sqrt(power[1:]), color='#0055aa', lw=0.9)
    axes.set_xlabel('Hz', fontsize=8)


def _draw_friction(comparisons: Sequence[Comparison], units: Sequence[str], axes: Any, k: int
                   ) -> None:
    """Draw measured minus rigid-body efforts, and the identified friction, over speed."""
    for c in comparisons:
        use = np.flatnonzero(c.usable[:, k])
        use = use[::max(1, len(use) // POINTS)]
        speed = c.velocity[use, k]
        axes.plot(speed, (c.measured - c.fit + c.friction)[use, k], '.', ms=1, color='#aaa')
        order = np.argsort(speed)
        axes.plot(speed[order], c.friction[use, k][order], color='#0055aa', lw=1.2)
    axes.set_xlabel('rad/s' if units[k] == 'N m' else 'm/s', fontsize=8)


def write_residuals(path: str | os.PathLike[str], robot: str, joint_names: Sequence[str],
                    comparisons: Sequence[Comparison]) -> None:
    """Write measured and computed efforts as Parquet, one row per joint and sample."""
    # With the name of the robot in each row, tables of several robots can be queried together.
    pyarrow, parquet = import_pyarrow(path)
    tables = []
    for one in comparisons:
        for k, joint in enumerate(joint_names):
            columns = {name: getattr(one, name)[:, k]
                       for name in ('velocity', 'measured', 'urdf', 'fit', 'usable')}
            tables.append(pyarrow.table({
                **{name: pyarrow.repeat(text, len(one.time)) for name, text in (
                    ('robot', robot), ('recording', one.name), ('joint', joint))},
                'time': one.time, **{name: np.ascontiguousarray(x)
                                     for name, x in columns.items()}}))
    parquet.write_table(pyarrow.concat_tables(tables), path)
