# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Texts of a package in C, from ``templates/``, and its sines and cosines."""

from collections.abc import Sequence
from importlib.resources import files
import math
import re
from xml.sax.saxutils import escape

from rbd_ros._internal.text import printable
from rbd_ros.kernels.lanes.sines import C, MAX_ANGLE, QUARTER, ROUND, S

CLOSE_LOOPS = 'int {prefix}_close_loops({real} *q)'
CLOSING = """
The robot has closed loops. `q` has the positions of all joints and must close the loops, which
`{prefix}_close_loops` does; velocities, accelerations and efforts are those of the joints below.
"""


def filled(template: str, **words: object) -> str:
    """Return a template with words in the places of their names, ``@name@``."""
    text = (files('rbd_ros.codegen') / 'templates' / f'{template}.in').read_text('utf-8')
    return re.sub(r'@(\w+)@', lambda place: str(words[place[1]]), text)


def escaped(text: str) -> str:
    """Return a text for XML."""
    return escape(printable(text))


def in_comment(text: str) -> str:
    """Return a text for a comment in C."""
    return printable(text).replace('*/', '* /').replace('/*', '/ *').encode(
        'ascii', 'replace').decode()


def quoted(text: str) -> str:
    """Return a string literal of C."""
    # Other characters as UTF-8 in octal; ?? could begin a trigraph.
    escapes = ''.join(c if 32 <= ord(c) < 127 and c not in '"\\?' else
                      ''.join(f'\\{byte:03o}' for byte in c.encode()) for c in text)
    return f'"{escapes}"'


HEADERS = ('float.h', 'math.h', 'stdint.h', 'string.h')


def polynomial(coefficients: Sequence[float]) -> str:
    """Return a polynomial in z."""
    text = repr(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        text = f'{c!r}\n            + z * ({text})'
    return text


def cosines_and_sines(prefix: str, restrict: str, single: bool) -> str:
    """Return the function that computes cosines and sines of several angles."""
    first, second, third = map(repr, QUARTER)
    return filled(
        'sines_float.c' if single else 'sines.c', prefix=prefix, RESTRICT=restrict,
        limit=repr(MAX_ANGLE), per_quarter=repr(2.0 / math.pi), ROUND=repr(ROUND), first=first,
        second=second, third=third, S=polynomial(S), C=polynomial(C))
