# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings, and the inertial parameters and loads that their torques reveal."""

from rbd_ros.lazy_names import export

__getattr__, __dir__, __all__ = export(__name__, {
    'delays': ['Delay', 'estimate_delay'],
    'drive_gains': ['DriveGains', 'identify_drive_gains'],
    'excitation': ['Excitation', 'excitation_limits', 'excite'],
    'filters': ['low_pass', 'motion_cutoff'],
    'least_squares': ['fit', 'Identification', 'identify'],
    'parameters': ['base_parameters', 'BaseParameters'],
    'partials': ['merge', 'partial', 'Partial'],
    'payload': ['fit_payload', 'identify_payload', 'Payload', 'payload_partial'],
    'recordings': ['read_recording', 'Recording', 'write_recording'],
    'signals': ['prepare', 'Samples'],
    'tables': ['write_table'],
    'verdicts': ['verdict', 'Verdict'],
    'weighted_fit': ['torque_errors', 'TorqueErrors'],
})
