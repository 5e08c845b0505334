# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.identification.delays import (
    Delay as Delay,
    estimate_delay as estimate_delay,
)
from rbd_ros.identification.excitation import (
    Excitation as Excitation,
    excitation_limits as excitation_limits,
    excite as excite,
)
from rbd_ros.identification.filters import (
    low_pass as low_pass,
    motion_cutoff as motion_cutoff,
)
from rbd_ros.identification.least_squares import (
    base_parameters as base_parameters,
    BaseParameters as BaseParameters,
    Identification as Identification,
    identify as identify,
    identify_payload as identify_payload,
    Payload as Payload,
)
from rbd_ros.identification.recordings import (
    read_recording as read_recording,
    Recording as Recording,
    write_recording as write_recording,
)
from rbd_ros.identification.signals import (
    prepare as prepare,
    Samples as Samples,
)
from rbd_ros.identification.tables import write_table as write_table
