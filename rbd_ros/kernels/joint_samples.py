# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Samples of joints that are plausible: all are checked, then stored, in one call.

The node takes thousands of joint states per second, nearly all of which are plausible; the others
are judged in Python.

"""

import numpy as np
from rbd_ros.kernels.jit.compiled import kernel

# Larger positions and velocities cannot be measurements, and their squares could overflow.
MAX_MEASUREMENT = 1e12
# Columns of `places`: of a sample, the joint, and its indices in the message, in q and in v.
JOINT, SOURCE, IN_Q, IN_V = range(4)


@kernel
def take_plausible(position, velocity, effort, number, places, slowness, now, stamp, jitter,
                   confirmed, received, stamps, positions, velocities, efforts):
    """
    Store the samples of a message if all are plausible; return whether they were stored.

    A sample is plausible if its position is at most as far from the last one as the fastest speed
    of the joint allows in the elapsed time, and its velocity is not faster; and if an earlier pair
    of samples of the joint has agreed (`confirmed`). Positions that are NaN or beyond
    `MAX_MEASUREMENT` are not plausible; a NaN velocity is unknown. The message holds `number`
    positions, and as many velocities and efforts or none. `slowness` are the reciprocals of the
    fastest speeds, `stamp` is 0 if it cannot be compared, and `jitter` the error of the elapsed
    time.

    """
    timed = stamp != 0.0
    if len(position) != number or (len(velocity) != 0 and len(velocity) != number):
        return False
    for k in range(len(places)):
        joint, source = places[k, JOINT], places[k, SOURCE]
        elapsed = stamp - stamps[joint] if timed else now - received[joint]
        change = position[source] - positions[places[k, IN_Q]]
        if timed and elapsed < 0.0:
            return False
        # Comparisons with NaN are false.
        if not (confirmed[joint] and abs(position[source]) < MAX_MEASUREMENT
                and abs(change) * slowness[joint] <= elapsed + jitter):
            return False
        if len(velocity) and abs(velocity[source]) * slowness[joint] > 1.0:
            return False
    for k in range(len(places)):
        joint, source, v = places[k, JOINT], places[k, SOURCE], places[k, IN_V]
        positions[places[k, IN_Q]] = position[source]
        velocities[v] = velocity[source] if len(velocity) else np.nan
        efforts[v] = effort[source] if len(effort) == number else np.nan
        received[joint] = now
        if timed:
            stamps[joint] = stamp
    return True
