# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.recordings.delays import (
    Delay as Delay,
    estimate_delay as estimate_delay,
)
from rbd_ros.recordings.filters import (
    effort_cutoff as effort_cutoff,
    low_pass as low_pass,
    motion_cutoff as motion_cutoff,
)
from rbd_ros.recordings.preparation import prepare as prepare
from rbd_ros.recordings.recording import (
    read_recording as read_recording,
    Recording as Recording,
    write_recording as write_recording,
)
from rbd_ros.recordings.samples import Samples as Samples
from rbd_ros.recordings.tables import (
    read_table as read_table,
    write_table as write_table,
)
