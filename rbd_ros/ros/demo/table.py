# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The demo as text: plain lines, or a table that is updated in place."""

from typing import Any

import numpy as np
from rbd_ros.ros.demo.stage import Show, Stage

# Lines of the table beside those of joints: title, heading, rule, note, and what is left out; the
# last one of the terminal stays free for the cursor.
OTHER_LINES = 8
# Characters of a joint's name beside three numbers, and beside one in half of 80 columns.
WIDE, NARROW = 34, 25


def fixed(value: float, form: str) -> str:
    """Return a number with its sign in some format; what is rounded to zero is positive."""
    return f'{float(f"{value:{form}}") + 0.0:+{form}}'


def plain_lines() -> Show:
    """Return a function that shows the demo in lines of text, one a second."""
    due: dict[int, float] = {}

    def show(stage: Stage) -> None:
        sample, phase = stage.samples[-1], stage.phases[-1]
        time = sample.t - stage.samples[phase.first].t
        if time < due.get(phase.first, 0.0):
            return
        due[phase.first] = time + 1.0
        k, strongest = (int(np.argmax(np.abs(x))) for x in (sample.error, sample.tau))
        names = stage.model.velocity_names
        print(f'{phase.name:30s} {time:5.1f} s   largest {stage.word} {abs(sample.error[k]):.2e} '
              f'{stage.unit(k)[0]} ({names[k]})   largest torque {abs(sample.tau[strongest]):.3g} '
              f'{stage.unit(strongest)[1]}' + (f'   {stage.note}' if stage.note else ''),
              flush=True)
    return show


def table(stage: Stage, lines: int) -> Any:
    """
    Return the present state as a table for a terminal of 80 columns.

    Parameters
    ----------
    stage : Stage
        What is shown.
    lines : int
        Height of the terminal. If not all joints fit, those with the largest errors are shown, and
        the others are counted. If even those with errors that are not small do not fit, they stand
        side by side, with their errors alone.

    Returns
    -------
    rich.console.Group
        The table.

    """
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    sample, phase, model = stage.samples[-1], stage.phases[-1], stage.model
    size, room = np.abs(sample.error), max(lines - OTHER_LINES, 1)
    red = size >= stage.bound
    beside = red.sum() > room
    chosen = sorted(np.argsort(-size, kind='stable')[:2 * room if beside else room])

    def error(k: int) -> str:
        color = 'red' if red[k] else 'green'
        return f'[{color}]{fixed(sample.error[k], ".1e")} {stage.unit(k)[0]}[/{color}]'

    def name(k: int, width: int) -> str:
        text = model.velocity_names[k]
        return escape(text if len(text) <= width else f'{text[:width // 2]}…'
                      f'{text[len(text) - (width - width // 2 - 1):]}')

    grid = Table(box=None, pad_edge=False)
    for heading in ('joint', stage.word) * 2 if beside else (
            'joint', 'position', 'torque', stage.word):
        grid.add_column(heading, justify='left' if heading == 'joint' else 'right', no_wrap=True)
    if beside:
        half = (len(chosen) + 1) // 2
        for row in range(half):
            grid.add_row(*(text for k in chosen[row::half]
                           for text in (name(k, NARROW), error(k))))
    else:
        for k in chosen:
            unit, torque_unit = stage.unit(k)
            grid.add_row(name(k, WIDE), f'{fixed(sample.q[k], ".3f")} {unit}',
                         f'{fixed(sample.tau[k], ".1f")} {torque_unit}', error(k))
    left = model.nv - len(chosen)
    time = sample.t - stage.samples[phase.first].t
    title = f'{model.name}: {phase.name}, {time:.1f} s'
    parts: list[Any] = [Text(title, style='bold', no_wrap=True, overflow='ellipsis'), grid]
    if left:
        parts.append(Text(f'{left} more joints, {red.sum() - red[chosen].sum()} of them red'))
    if stage.note:
        parts.append(Text(stage.note, no_wrap=True, overflow='ellipsis'))
    return Group(*parts)


def live_table() -> tuple[Show, Any]:
    """Return a function that shows the demo as a table updated in place, and its display."""
    from rich.live import Live

    live = Live(refresh_per_second=5)
    return lambda stage: live.update(table(stage, live.console.size.height)), live
