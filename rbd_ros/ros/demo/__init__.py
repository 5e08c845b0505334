# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The demo (`make demo`): one file per mode, and their shared parts."""
