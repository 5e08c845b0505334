# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reports on identifications and replays in one HTML file, which needs no other file."""

from base64 import b64encode
from collections.abc import Callable, Iterable, Sequence
from functools import partial
from html import escape
from io import BytesIO
from typing import Any, NamedTuple

import numpy as np
from rbd_ros.errors import RbdError
from rbd_ros.recordings.samples import Samples

# More points of a curve than this cannot be told apart on a screen.
POINTS = 3000
# Segments of the averaged spectrum, in samples: enough to see a hum, few enough to average.
SEGMENT = 1024
# Inches: a page of panels, and around each of them the room that its numbers and words take; to
# measure them would take three times as long as to draw them.
WIDTH, HEIGHT = 12.0, 2.2
LEFT, RIGHT, BELOW, ABOVE = 0.75, 0.15, 0.5, 0.25
STYLE = """
body { font: 15px/1.5 system-ui, sans-serif; margin: 2rem auto; max-width: 72rem; padding: 0 1rem;
  color: #222; background: #fff }
h1 { font-size: 1.6rem } h2 { font-size: 1.2rem; margin-top: 2.2rem }
table { border-collapse: collapse; font-variant-numeric: tabular-nums }
th, td { padding: .15rem .8rem; border-bottom: 1px solid #ddd; text-align: right }
th:first-child, td:first-child { text-align: left }
img { width: 100%; height: auto }
.good { color: #176d2c } .bad { color: #a51d1d } .scroll { max-height: 36rem; overflow: auto }
"""


class Comparison(NamedTuple):
    """
    One recording beside what models make of it.

    Attributes
    ----------
    name : str
        Of the recording.
    time : ndarray, shape (samples,)
        s.
    velocity : ndarray, shape (samples, nv)
        rad/s or m/s.
    measured, urdf, fit : ndarray, shape (samples, nv)
        Efforts as recorded, of the robot as described, and of the robot as identified, N m or N.
    friction : ndarray, shape (samples, nv)
        Identified friction, part of ``fit``, N m or N.
    usable : ndarray of bool, shape (samples, nv)
        Samples that count.
    standstill : ndarray, shape (nv,)
        Velocities below which a joint counts as standing, rad/s or m/s.
    segment : ndarray of int, shape (samples,)
        Number of the gaps before each sample.

    """

    name: str
    time: np.ndarray
    velocity: np.ndarray
    measured: np.ndarray
    urdf: np.ndarray
    fit: np.ndarray
    friction: np.ndarray
    usable: np.ndarray
    standstill: np.ndarray
    segment: np.ndarray


class Row(NamedTuple):
    """
    One line of the table of parameters.

    Attributes
    ----------
    name, unit : str
        Of the parameter.
    urdf, fit, deviation : float
        Value in the description, value identified, and its standard deviation.

    """

    name: str
    unit: str
    urdf: float
    fit: float
    deviation: float


def identification_report(title: str, joint_names: Sequence[str], units: Sequence[str],
                          comparisons: Sequence[Comparison], parameters: Iterable[Row],
                          grade: str, reasons: Sequence[str]) -> str:
    """
    Return a report on an identification as HTML.

    Parameters
    ----------
    title : str
        First heading.
    joint_names, units : sequence of str
        Of the entries of an effort.
    comparisons : sequence of Comparison
        One for each recording; those kept for validation say so in their name.
    parameters : iterable of Row
        The table of parameters.
    grade : str
        Of the `Verdict`.
    reasons : sequence of str
        Why it is not a better one.

    Returns
    -------
    str
        A page with its plots inside.

    Raises
    ------
    RbdError
        If matplotlib is not installed.

    """
    figure = _matplotlib()
    body = [f'<h1>{escape(title)}</h1>', _verdict(grade, reasons),
            '<h2>Error by joint</h2>', _errors(joint_names, units, comparisons)]
    for comparison in comparisons:
        body.append(f'<h2>{escape(comparison.name)}: measured and computed efforts</h2>')
        body.append(_picture(figure, joint_names, units, partial(_traces, comparison), columns=1))
        body.append(f'<h2>{escape(comparison.name)}: what is left</h2>')
        body.append(_picture(
            figure, [name for name in joint_names for _ in range(2)],
            [label for unit in units for label in ('samples', f'{unit}/√Hz')],
            partial(_residual, comparison, units), columns=2))
    body.append('<h2>Friction</h2>')
    body.append(_picture(figure, joint_names, units, partial(_friction, comparisons, units),
                         columns=3))
    body.append('<h2>Parameters</h2>')
    body.append(_table(('parameter', 'unit', 'URDF', 'identified', 'standard deviation'), (
        (row.name, row.unit, f'{row.urdf:.5g}', f'{row.fit:.5g}', f'{row.deviation:.2g}')
        for row in parameters)))
    return _page(title, body)


def replay_report(title: str, joint_names: Sequence[str], units: Sequence[str], samples: Samples,
                  model: np.ndarray, external: np.ndarray) -> str:
    """
    Return a report on what a model makes of a recording as HTML.

    Parameters
    ----------
    title : str
        First heading.
    joint_names, units : sequence of str
        Of the entries of an effort.
    samples : Samples
        The recording.
    model, external : ndarray, shape (samples, nv)
        Efforts of the model, and those exerted from outside, N m or N.

    Returns
    -------
    str
        A page with its plots inside.

    Raises
    ------
    RbdError
        If matplotlib is not installed.

    """
    figure = _matplotlib()

    def traces(axes: Any, k: int) -> None:
        time, *efforts = drawn(samples.segment, samples.time, samples.tau[:, k], model[:, k],
                               external[:, k])
        for values, color, label in zip(efforts, ('#888', '#0055aa', '#a51d1d'),
                                        ('measured', 'model', 'external')):
            axes.plot(time, values, color=color, lw=0.9, label=label)
        axes.set_xlabel('s', fontsize=8)

    rows = []
    for k, (name, unit) in enumerate(zip(joint_names, units)):
        use = samples.usable[:, k]
        if np.any(use):
            rows.append((name, unit, *(f'{np.sqrt(np.mean(x[use, k] ** 2)):.3g}' for x in (
                samples.tau, samples.tau - model, external))))
    return _page(title, [
        f'<h1>{escape(title)}</h1>', '<h2>While the joint moves, root mean square</h2>',
        _table(('joint', 'unit', 'measured', 'not explained', 'external'), rows),
        '<h2>Efforts</h2>', _picture(figure, joint_names, units, traces, columns=1)])


def drawn(segment: np.ndarray, *signals: np.ndarray, points: int = POINTS) -> list[np.ndarray]:
    """
    Return signals with fewer points, and with NaN, which interrupts a line, in every gap.

    Parameters
    ----------
    segment : ndarray of int, shape (samples,)
        Number of the gaps before each sample.
    *signals : ndarray, shape (samples, ...)
        Times, or what is drawn over them.
    points : int
        How many of them are enough.

    """
    every = max(1, len(segment) // points)
    stretches = np.split(np.arange(len(segment)), np.flatnonzero(np.diff(segment)) + 1)
    rows = np.concatenate([np.append(one[::every], -1) for one in stretches])[:-1]
    return [np.where((rows < 0).reshape(-1, *[1] * (x.ndim - 1)), np.nan, x[rows])
            for x in signals]


def _page(title: str, body: Sequence[str]) -> str:
    return (f'<!DOCTYPE html>\n<html lang="en"><head><meta charset="utf-8"><title>{escape(title)}'
            f'</title><style>{STYLE}</style></head><body>\n' + '\n'.join(body)
            + '\n</body></html>\n')


def _matplotlib() -> Callable[..., Any]:
    """Return the maker of figures that need no screen."""
    try:
        from matplotlib.figure import Figure
    except ImportError as error:
        raise RbdError('reports need matplotlib: pip install "rbd_ros[recordings]"') from error
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
            use = c.usable[:, k]
            if np.any(use):
                rms = [np.sqrt(np.mean(x[use, k] ** 2))
                       for x in (c.measured, c.measured - c.urdf, c.measured - c.fit)]
                rows.append((name, c.name, unit, *(f'{x:.3g}' for x in rms)))
    return _table(('joint', 'recording', 'unit', 'RMS measured', 'RMS error, URDF',
                   'RMS error, identified'), rows)


def _table(head: Sequence[str], rows: Iterable[Sequence[str]]) -> str:
    lines = [f'<tr>{"".join(f"<th>{escape(cell)}</th>" for cell in head)}</tr>']
    lines += [f'<tr>{"".join(f"<td>{escape(cell)}</td>" for cell in row)}</tr>' for row in rows]
    return f'<div class="scroll"><table>{"".join(lines)}</table></div>'


def _picture(figure: Callable[..., Any], names: Sequence[str], units: Sequence[str],
             draw: Callable[[Any, int], None], columns: int) -> str:
    """Return an image of panels, one for each name, which are drawn by number."""
    count = len(names)
    lines = -(-count // columns)
    page = figure(figsize=(WIDTH, HEIGHT * lines))
    page.subplots_adjust(
        left=LEFT / WIDTH, right=1.0 - RIGHT / WIDTH,
        bottom=BELOW / (HEIGHT * lines), top=1.0 - ABOVE / (HEIGHT * lines),
        wspace=(LEFT + RIGHT) / (WIDTH / columns - LEFT - RIGHT),
        hspace=(BELOW + ABOVE) / (HEIGHT - BELOW - ABOVE))
    for k in range(count):
        axes = page.add_subplot(lines, columns, k + 1)
        draw(axes, k)
        axes.set_title(names[k], fontsize=9, loc='left')
        axes.set_ylabel(units[k], fontsize=8)
        axes.tick_params(labelsize=8)
        if k == 0:
            handles, labels = axes.get_legend_handles_labels()
            if handles:
                axes.legend(handles, labels, fontsize=8, loc='upper right')
    image = BytesIO()
    page.savefig(image, format='png', dpi=90)
    return f'<img alt="plot" src="data:image/png;base64,{b64encode(image.getvalue()).decode()}">'


def _traces(c: Comparison, axes: Any, k: int) -> None:
    time, measured, urdf, fit = drawn(c.segment, c.time, c.measured[:, k], c.urdf[:, k],
                                      c.fit[:, k])
    axes.plot(time, measured, color='#bbb', lw=2.5, label='measured')
    axes.plot(time, urdf, color='#d08a00', lw=0.8, label='URDF')
    axes.plot(time, fit, color='#0055aa', lw=0.8, label='identified')
    axes.set_xlabel('s', fontsize=8)


def _residual(c: Comparison, units: Sequence[str], axes: Any, number: int) -> None:
    """Draw the distribution of what is left, or, beside it, its amplitude over frequency."""
    k, spectrum = divmod(number, 2)
    left = (c.measured - c.fit)[:, k]
    if not spectrum:
        axes.hist(left[c.usable[:, k]], bins=60, color='#0055aa')
        axes.set_xlabel(units[k], fontsize=8)
        return
    # A gap would look like a step: the spectrum is that of the longest stretch without one.
    left = left[c.segment == np.argmax(np.bincount(c.segment))]
    if len(left) < 8:
        return
    from scipy.signal import welch
    frequency, power = welch(left, 1.0 / np.median(np.diff(c.time)),
                             nperseg=min(SEGMENT, len(left)))
    axes.loglog(frequency[1:], np.sqrt(power[1:]), color='#0055aa', lw=0.9)
    axes.set_xlabel('Hz', fontsize=8)


def _friction(comparisons: Sequence[Comparison], units: Sequence[str], axes: Any, k: int) -> None:
    """Draw efforts less those of the rigid bodies, and the identified friction, over speed."""
    for c in comparisons:
        use = np.flatnonzero(c.usable[:, k])
        use = use[::max(1, len(use) // POINTS)]
        speed = c.velocity[use, k]
        axes.plot(speed, (c.measured - c.fit + c.friction)[use, k], '.', ms=1, color='#aaa')
        order = np.argsort(speed)
        axes.plot(speed[order], c.friction[use, k][order], color='#0055aa', lw=1.2)
    axes.set_xlabel('rad/s' if units[k] == 'N m' else 'm/s', fontsize=8)
