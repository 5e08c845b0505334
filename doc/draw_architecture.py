# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Draw doc/images/architecture.svg from the tables of doc/architecture.md.

Each section with a table is a column, each row a box with the step, its file and its names. Run it
after every change of the page; test/docs/test_documentation.py compares the picture with the page.

"""

from pathlib import Path
import re
from xml.sax.saxutils import escape

HERE = Path(__file__).parent
PAGE, PICTURE = HERE / 'architecture.md', HERE / 'images' / 'architecture.svg'
# px
WIDTH, HEIGHT, GAP_X, GAP_Y, MARGIN, TOP = 258, 66, 26, 22, 16, 46
# Fill of the boxes by folder; files outside of these are public functions or commands.
COLOURS = {'kernels': '#fde2c8', 'workspace': '#fff3c4', 'model': '#dcedc8', 'ros': '#d4e4f7',
           'recordings': '#e7dcf3', 'identification': '#f3dcec'}
NO_FOLDER = '#eeeeee'


def walks(text: str) -> list[tuple[str, list[tuple[str, str, str]]]]:
    """Return the sections with tables of steps: title, and step, file and names of each row."""
    found = []
    for part in text.split('\n## ')[1:]:
        rows = re.findall(r'^\| ([^|`]+) \| `rbd_ros/([\w/]+\.py)`: ([^|]*) \|', part,
                          re.MULTILINE)
        if rows:
            found.append((part.partition('\n')[0],
                          [(step, file, ', '.join(re.findall(r'`(\w+)`', names)))
                           for step, file, names in rows]))
    return found


def box(x: int, y: int, step: str, file: str, names: str) -> list[str]:
    """Return the elements of a box at a place."""
    folder = file.partition('/')[0] if '/' in file else ''
    middle = x + WIDTH // 2
    return [f'<rect x="{x}" y="{y}" width="{WIDTH}" height="{HEIGHT}" rx="6" '
            f'fill="{COLOURS.get(folder, NO_FOLDER)}" stroke="#888"/>',
            f'<text x="{middle}" y="{y + 19}" class="step">{escape(step)}</text>',
            f'<text x="{middle}" y="{y + 38}" class="code">{escape(file)}</text>',
            f'<text x="{middle}" y="{y + 56}" class="code">{escape(names)}</text>']


def draw(text: str) -> str:
    """Return the picture of a page."""
    columns = walks(text)
    width = 2 * MARGIN + len(columns) * (WIDTH + GAP_X) - GAP_X
    height = TOP + MARGIN + max(len(rows) for _, rows in columns) * (HEIGHT + GAP_Y) - GAP_Y
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}">',
             '<style>text{text-anchor:middle;fill:#222}'
             '.title{font:bold 15px sans-serif}.step{font:bold 13px sans-serif}'
             '.code{font:11px monospace}</style>',
             '<defs><marker id="tip" viewBox="0 0 8 8" refX="7" refY="4" markerWidth="7" '
             'markerHeight="7" orient="auto"><path d="M0 0L8 4L0 8z" fill="#555"/></marker>'
             '</defs>',
             f'<rect width="{width}" height="{height}" fill="white"/>']
    for column, (title, rows) in enumerate(columns):
        x = MARGIN + column * (WIDTH + GAP_X)
        lines.append(f'<text x="{x + WIDTH // 2}" y="28" class="title">'
                     f'{escape(title.partition(":")[0])}</text>')
        for k, row in enumerate(rows):
            y = TOP + k * (HEIGHT + GAP_Y)
            lines += box(x, y, *row)
            if k:
                lines.append(f'<line x1="{x + WIDTH // 2}" y1="{y - GAP_Y}" x2="{x + WIDTH // 2}" '
                             f'y2="{y - 1}" stroke="#555" marker-end="url(#tip)"/>')
    return '\n'.join([*lines, '</svg>']) + '\n'


if __name__ == '__main__':
    PICTURE.write_text(draw(PAGE.read_text(encoding='utf-8')), encoding='utf-8')
    print(PICTURE, 'written')
