# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Identify inertial parameters, friction, rotors, payloads and drive gains from recordings."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'diagnosis.diagnose': ['diagnose', 'Diagnosis', 'Finding'],
    'drive_gains': ['DriveGains', 'identify_drive_gains'],
    'least_squares': ['fit', 'Identification'],
    'parameters': ['base_parameters', 'BaseParameters'],
    'payload': ['fit_payload', 'identify_payload', 'Payload', 'payload_partial'],
    'rbd_ros.motions.excitation.optimize': ['Excitation', 'excitation_limits', 'excite'],
    'rbd_ros.recordings.delays': ['Delay', 'estimate_delay'],
    'rbd_ros.recordings.filters': ['low_pass', 'motion_cutoff'],
    'rbd_ros.recordings.preparation': ['prepare'],
    'rbd_ros.recordings.recording': ['read_recording', 'Recording', 'write_recording'],
    'rbd_ros.recordings.samples': ['Samples'],
    'rbd_ros.recordings.tables': ['write_table'],
    'reduction': ['merge', 'partial', 'Partial'],
    'torque_uncertainty': ['with_uncertainty'],
    'verdicts': ['verdict', 'Verdict'],
    'weighted_fit': ['torque_errors', 'TorqueErrors'],
})
