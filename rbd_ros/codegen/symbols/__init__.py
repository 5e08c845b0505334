# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The methods of `Workspace` and their kernels, run on symbols instead of numbers."""
