# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The demo as text: plain lines, or a table updated in place."""

from typing import Any

import numpy as np
from rbd_ros.ros.demo.robots import units
from rbd_ros.ros.demo.session import Session, Show

# Lines other than joints: title, heading, rule, note, count of omitted joints, and the cursor's.
OTHER_LINES = 8
# Characters of a joint's name next to three numbers, and next to one number in half of 80 columns.
WIDE, NARROW = 34, 25


def fixed(value: float, form: str) -> str:
    """Return a number with its sign; values rounded to zero are positive."""
    return f'{float(f"{value:{form}}") + 0.0:+{form}}'


def plain_lines() -> Show:
    """Return a function that prints the demo once a second."""
    due: dict[int, float] = {}

    def show(session: Session) -> None:
        sample, phase = session.samples[-1], session.phases[-1]
        time = sample.t - session.samples[phase.first].t
        if time < due.get(phase.first, 0.0):
            return
        due[phase.first] = time + 1.0
        k, strongest = (int(np.argmax(np.abs(x))) for x in (sample.error, sample.tau))
        model = session.mode.model
        print(f'{phase.name:30s} {time:5.1f} s   largest {session.mode.error_name} '
              f'{abs(sample.error[k]):.2e} {units(model, k)[0]} ({model.velocity_names[k]})   '
              f'largest torque {abs(sample.tau[strongest]):.3g} {units(model, strongest)[1]}'
              + (f'   {session.note}' if session.note else ''), flush=True)
    return show


def table(session: Session, lines: int) -> Any:
    """Lay out the joints with the largest errors in 80 columns and `lines` lines, with rich."""
    from rich.console import Group
    from rich.markup import escape
    from rich.table import Table
    from rich.text import Text

    sample, phase, model = session.samples[-1], session.phases[-1], session.mode.model
    size, rows = np.abs(sample.error), max(lines - OTHER_LINES, 1)
    red = size >= session.mode.tolerance
    two_columns = red.sum() > rows      # of errors only
    chosen = sorted(np.argsort(-size, kind='stable')[:2 * rows if two_columns else rows])

    def error(k: int) -> str:
        color = 'red' if red[k] else 'green'
        return f'[{color}]{fixed(sample.error[k], ".1e")} {units(model, k)[0]}[/{color}]'

    def name(k: int, width: int) -> str:
        text = model.velocity_names[k]
        return escape(text if len(text) <= width else f'{text[:width // 2]}…'
                      f'{text[len(text) - (width - width // 2 - 1):]}')

    grid = Table(box=None, pad_edge=False)
    for heading in ('joint', session.mode.error_name) * 2 if two_columns else (
            'joint', 'position', 'torque', session.mode.error_name):
        grid.add_column(heading, justify='left' if heading == 'joint' else 'right', no_wrap=True)
    if two_columns:
        half = (len(chosen) + 1) // 2
        for row in range(half):
            grid.add_row(*(text for k in chosen[row::half]
                           for text in (name(k, NARROW), error(k))))
    else:
        for k in chosen:
            unit, torque_unit = units(model, k)
            grid.add_row(name(k, WIDE), f'{fixed(sample.q[k], ".3f")} {unit}',
                         f'{fixed(sample.tau[k], ".1f")} {torque_unit}', error(k))
    left = model.nv - len(chosen)
    time = sample.t - session.samples[phase.first].t
    title = f'{model.name}: {phase.name}, {time:.1f} s'
    parts: list[Any] = [Text(title, style='bold', no_wrap=True, overflow='ellipsis'), grid]
    if left:
        parts.append(Text(f'{left} more joints, {red.sum() - red[chosen].sum()} of them red'))
    if session.note:
        parts.append(Text(session.note, no_wrap=True, overflow='ellipsis'))
    return Group(*parts)


def live_table() -> tuple[Show, Any]:
    """Return a function that shows the demo as a table updated in place, and its display."""
    from rich.live import Live

    live = Live(refresh_per_second=5)
    return lambda session: live.update(table(session, live.console.size.height)), live
