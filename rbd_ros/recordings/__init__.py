# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of robots: read bags and tables, filter, and prepare samples for fits."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'delays': ['Delay', 'estimate_delay'],
    'filters': ['effort_cutoff', 'low_pass', 'motion_cutoff'],
    'preparation': ['prepare'],
    'recording': ['read_recording', 'Recording', 'write_recording'],
    'samples': ['Samples'],
    'tables': ['read_table', 'write_table'],
})
