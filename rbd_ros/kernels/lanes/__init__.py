# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Numbers for several states side by side in the registers of the processor."""
