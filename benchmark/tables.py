# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of the report, in Markdown."""


def table(head, rows):
    """Return the lines of a table, with numbers aligned to the right."""
    def line(cells):
        return '| ' + ' | '.join(str(cell) for cell in cells) + ' |'
    rule = ['---' if k == 0 else '---:' for k in range(len(head))]
    return [line(head), line(rule), *(line(row) for row in rows), '']


def spread(three):
    """Return a median with its quartiles."""
    low, middle, high = three
    return f'{middle:.2f} ({low:.2f} ... {high:.2f})'


def verdict(good):
    """Return whether a target is met."""
    return 'met' if good else '**missed**'
