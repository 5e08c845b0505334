# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cosines and sines of several angles at once."""

import numpy as np


def cosines_and_sines(array, first, count):
    """Replace `count` angles, a multiple of eight, by their cosines; write their sines behind."""
    angles = array[first:first + count].copy()
    array[first:first + count] = np.cos(angles)
    array[first + count:first + 2 * count] = np.sin(angles)


def cosine_and_sine(angle):
    """Return cosine and sine of an angle or of lanes of angles."""
    return np.cos(angle), np.sin(angle)
