# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The kernels for many states."""
