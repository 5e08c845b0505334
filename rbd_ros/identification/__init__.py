# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings, and the inertial parameters and loads that their torques reveal."""

from rbd_ros.lazy_names import export

__getattr__, __dir__, __all__ = export(__name__, {
    'least_squares': [
        'base_parameters', 'BaseParameters', 'Identification', 'identify', 'identify_payload',
        'Payload'],
    'delays': ['Delay', 'estimate_delay'],
    'excitation': ['Excitation', 'excitation_limits', 'excite'],
    'filters': ['low_pass', 'motion_cutoff'],
    'recordings': ['read_recording', 'Recording', 'write_recording'],
    'signals': ['prepare', 'Samples'],
    'tables': ['write_table'],
})
