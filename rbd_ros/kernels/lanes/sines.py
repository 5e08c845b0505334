# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Cosines and sines of several angles at once.

In compiled and generated code, an angle is an integer number of quarter turns plus a remainder r
of at most an eighth of a turn, whose sine and cosine are polynomials in z = r^2,

    sin r = r + r z S(z),    cos r = 1 - z / 2 + z^2 C(z),

with minimax relative errors of 4e-18 and 6e-20. Including rounding, results are within 2.5 units
in the last place.

"""

import numpy as np

# rad; products of smaller numbers of quarter turns with the first two parts below are exact.
MAX_ANGLE = 1e6
# A quarter turn as the sum of three parts, the first two with 33 significant bits.
QUARTER = (1.5707963267341256, 6.077100506303966e-11, 2.0222662487959506e-21)
# Adding it rounds a small number to an integer, held in the last bits.
ROUND = 1.5 * 2.0 ** 52
S = (-0.1666666666666663, 0.008333333333322118, -0.00019841269829589533, 2.755731362138332e-06,
     -2.5050747762441093e-08, 1.5896230131405245e-10)
C = (0.041666666666666595, -0.0013888888888873056, 2.4801587288851683e-05,
     -2.755731417929101e-07, 2.0875700841205953e-09, -1.1358536481938269e-11)


def cosines_and_sines(array, first, count):
    """Replace `count` angles, a multiple of eight, by their cosines; write their sines behind."""
    angles = array[first:first + count].copy()
    array[first:first + count] = np.cos(angles)
    array[first + count:first + 2 * count] = np.sin(angles)


def cosine_and_sine(angle):
    """Return cosine and sine of an angle or of lanes of angles."""
    return np.cos(angle), np.sin(angle)
