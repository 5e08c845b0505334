# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cosines and sines in C, computed as in `rbd_ros.kernels.lanes.sines`."""

from collections.abc import Sequence
import math

from rbd_ros.kernels.lanes.sines import C, MAX_ANGLE, QUARTER, ROUND, S

HEADERS = ('float.h', 'math.h', 'stdint.h', 'string.h')
# Compilers vectorize the second loop, which has no branches. It needs sums that are rounded to
# doubles and not reordered.
DOUBLE = """
/* Cosines and sines, within 2.5 units in the last place. */
static inline void {prefix}_cosines_and_sines(
    int n, const double *{RESTRICT} angle, double *{RESTRICT} cosine, double *{RESTRICT} sine)
{{
    int k, far = FLT_EVAL_METHOD != 0;
#ifdef __FAST_MATH__
    far = 1;
#endif
    for (k = 0; k < n; ++k)
        far |= !(fabs(angle[k]) <= {limit});
    if (far) {{
        for (k = 0; k < n; ++k) {{
            cosine[k] = cos(angle[k]);
            sine[k] = sin(angle[k]);
        }}
        return;
    }}
    for (k = 0; k < n; ++k) {{
        /* The number of quarter turns is in the last bits of `shifted`; r is the rest. */
        const double shifted = angle[k] * {per_quarter} + {ROUND};
        const double quarters = shifted - {ROUND};
        const double r = ((angle[k] - quarters * {first}) - quarters * {second})
                         - quarters * {third};
        const double z = r * r;
        const double s = r + (r * z) * ({S});
        const double c = (1.0 - 0.5 * z) + (z * z) * ({C});
        uint64_t turns, c_bits, s_bits, swapped;
        memcpy(&turns, &shifted, sizeof turns);
        memcpy(&c_bits, &c, sizeof c_bits);
        memcpy(&s_bits, &s, sizeof s_bits);
        swapped = (c_bits ^ s_bits) & ((uint64_t)0 - (turns & 1));
        c_bits ^= swapped ^ (((turns + 1) & 2) << 62);
        s_bits ^= swapped ^ ((turns & 2) << 62);
        memcpy(&cosine[k], &c_bits, sizeof c_bits);
        memcpy(&sine[k], &s_bits, sizeof s_bits);
    }}
}}
"""
FLOAT = """
static inline void {prefix}_cosines_and_sines(
    int n, const float *{RESTRICT} angle, float *{RESTRICT} cosine, float *{RESTRICT} sine)
{{
    int k;
    for (k = 0; k < n; ++k) {{
        cosine[k] = cosf(angle[k]);
        sine[k] = sinf(angle[k]);
    }}
}}
"""


def polynomial(coefficients: Sequence[float]) -> str:
    """Return a polynomial in z."""
    text = repr(coefficients[-1])
    for c in reversed(coefficients[:-1]):
        text = f'{c!r}\n            + z * ({text})'
    return text


def cosines_and_sines(prefix: str, restrict: str, single: bool) -> str:
    """Return the function that computes cosines and sines of several angles."""
    first, second, third = map(repr, QUARTER)
    return (FLOAT if single else DOUBLE).format(
        prefix=prefix, RESTRICT=restrict, limit=repr(MAX_ANGLE), per_quarter=repr(2.0 / math.pi),
        ROUND=repr(ROUND), first=first, second=second, third=third, S=polynomial(S),
        C=polynomial(C))
