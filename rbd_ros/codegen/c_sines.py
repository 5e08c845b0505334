# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Cosines and sines in C, computed as in `rbd_ros.kernels.lanes.sines`.

Compilers vectorize the loop of the template that has no branches. It needs sums that are rounded
to doubles and not reordered.

"""

from collections.abc import Sequence
import math

from rbd_ros.codegen.package_texts import filled
from rbd_ros.kernels.lanes.sines import C, MAX_ANGLE, QUARTER, ROUND, S

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
