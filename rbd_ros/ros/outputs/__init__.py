# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Publishing: the dynamics of each state, effort commands, external forces, diagnostics."""
