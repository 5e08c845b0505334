# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.identification.diagnosis.diagnose import (diagnose as diagnose,
    Diagnosis as Diagnosis, Finding as Finding)
from rbd_ros.identification.drive_gains import (DriveGains as DriveGains,
    identify_drive_gains as identify_drive_gains)
from rbd_ros.identification.least_squares import fit as fit, Identification as Identification
from rbd_ros.identification.parameters import (base_parameters as base_parameters,
    BaseParameters as BaseParameters)
from rbd_ros.identification.payload import (fit_payload as fit_payload,
    identify_payload as identify_payload, Payload as Payload, payload_partial as payload_partial)
from rbd_ros.motions.excitation.optimize import (Excitation as Excitation,
    excitation_limits as excitation_limits, excite as excite)
from rbd_ros.recordings.delays import Delay as Delay, estimate_delay as estimate_delay
from rbd_ros.recordings.filters import low_pass as low_pass, motion_cutoff as motion_cutoff
from rbd_ros.recordings.preparation import prepare as prepare
from rbd_ros.recordings.recording import (read_recording as read_recording,
    Recording as Recording, write_recording as write_recording)
from rbd_ros.recordings.samples import Samples as Samples
from rbd_ros.recordings.tables import write_table as write_table
from rbd_ros.identification.reduction import merge as merge, partial as partial, Partial as Partial
from rbd_ros.identification.torque_uncertainty import with_uncertainty as with_uncertainty
from rbd_ros.identification.verdicts import verdict as verdict, Verdict as Verdict
from rbd_ros.identification.weighted_fit import (torque_errors as torque_errors,
    TorqueErrors as TorqueErrors)
