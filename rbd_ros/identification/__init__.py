# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Inertial parameters and loads from measured torques."""

from rbd_ros.lazy_names import export

__getattr__, __dir__, __all__ = export(__name__, {
    'least_squares': [
        'base_parameters', 'BaseParameters', 'Identification', 'identify', 'identify_payload',
        'Payload'],
})
