# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Draw doc/images/guard.svg: the largest speeds of three robots whose states are late or rare.

The motions are those of test/rigs/guard_loop.py, in lock-step. Run it after every change of the
guard; test/control/test_motion_guard.py compares them with the picture.

"""

from math import log2
from pathlib import Path
import sys

import numpy as np

HERE = Path(__file__).parent
sys.path[:0] = [str(HERE.parent / 'test' / folder) for folder in ('rigs', 'subjects')]

from guard_loop import DELAYS, PERIODS, ROBOTS, run    # noqa: E402, I100

PICTURE = HERE / 'images' / 'guard.svg'
LAWS = {'pd_gravity': 1.0, 'a law that does not brake': 0.0}
TITLES = {'demo_arm': 'demo arm', 'ur5': 'UR5', 'tree': 'a branched tree'}
COLOURS = ('#8a4fa3', '#2f6db5', '#3f8f5f', '#d08a1a', '#c22')
# px
WIDTH, HEIGHT, LEFT, TOP, GAP, LEGEND = 300, 190, 60, 46, 50, 62
LOWEST, HIGHEST = 2.0, 40.0     # rad/s


def at(column: int, row: int, delay: float, speed: float) -> tuple[float, float]:
    """Return the place of a delay, s, and a speed, rad/s, in a panel, px."""
    x = LEFT + column * (WIDTH + GAP) + WIDTH * delay / DELAYS[-1]
    share = log2(speed / LOWEST) / log2(HIGHEST / LOWEST)
    return round(x, 1), round(TOP + row * (HEIGHT + GAP) + HEIGHT * (1.0 - share), 1)


def panel(column: int, row: int, name: str, law: str) -> list[str]:
    """Return the elements of a robot under a law."""
    (left, bottom), (right, top) = (at(column, row, *end) for end in (
        (0.0, LOWEST), (DELAYS[-1], HIGHEST)))
    lines = [f'<rect x="{left}" y="{top}" width="{WIDTH}" height="{HEIGHT}" class="frame"/>',
             f'<text x="{left + WIDTH / 2}" y="{top - 10}" class="title">{TITLES[name]}, {law}'
             '</text>']
    for speed in (2, 4, 8, 16, 32):
        _, y = at(column, row, 0.0, speed)
        lines += [f'<path d="M{left} {y}H{right}" class="grid"/>',
                  f'<text x="{left - 6}" y="{y + 4}" class="end">{speed}</text>']
    for delay in DELAYS:
        x, _ = at(column, row, delay, LOWEST)
        lines.append(f'<text x="{x}" y="{bottom + 15}">{1e3 * delay:.0f}</text>')
    for colour, period in zip(COLOURS, PERIODS):
        for guarded in (False, True):
            speeds = [np.max(run(name, period, delay, guarded, LAWS[law])[0]) for delay in DELAYS]
            places = 'L'.join(f'{x} {y}' for x, y in (
                at(column, row, *pair) for pair in zip(DELAYS, speeds)))
            lines.append(f'<path d="M{places}" stroke="{colour}" '
                         f'class="{"guarded" if guarded else "alone"}"/>')
    return lines


def draw() -> str:
    """Return the picture."""
    width = LEFT + len(ROBOTS) * (WIDTH + GAP)
    bottom = TOP + len(LAWS) * (HEIGHT + GAP)
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {bottom + LEGEND}" '
             f'width="{width}" height="{bottom + LEGEND}">',
             '<style>text{font:12px sans-serif;text-anchor:middle;fill:#222}'
             '.title{font:bold 13px sans-serif}.end{text-anchor:end}.start{text-anchor:start}'
             '.frame{fill:none;stroke:#444}.grid{stroke:#ddd;fill:none}'
             '.alone{fill:none;stroke-width:1.5;stroke-dasharray:6 4}'
             '.guarded{fill:none;stroke-width:2}</style>',
             f'<rect width="{width}" height="{bottom + LEGEND}" fill="white"/>',
             f'<text transform="translate(16 {bottom / 2}) rotate(-90)">largest speed of a joint, '
             'rad/s</text>',
             f'<text x="{width / 2}" y="{bottom}">age of the states, ms</text>']
    for row, law in enumerate(LAWS):
        for column, name in enumerate(ROBOTS):
            lines += panel(column, row, name, law)
    for k, (colour, period) in enumerate(zip(COLOURS, PERIODS)):
        x, y = LEFT + 170 * k, bottom + 24
        lines += [f'<path d="M{x} {y}h30" stroke="{colour}" class="guarded"/>',
                  f'<text x="{x + 38}" y="{y + 4}" class="start">{1.0 / period:.0f} states/s'
                  '</text>']
    for x, kind, text in ((LEFT, 'guarded', 'with the guard'), (LEFT + 170, 'alone', 'without')):
        lines += [f'<path d="M{x} {bottom + 44}h30" stroke="#222" class="{kind}"/>',
                  f'<text x="{x + 38}" y="{bottom + 48}" class="start">{text}</text>']
    return '\n'.join([*lines, '</svg>']) + '\n'


if __name__ == '__main__':
    PICTURE.write_text(draw(), encoding='utf-8')
    print(PICTURE, 'written')
