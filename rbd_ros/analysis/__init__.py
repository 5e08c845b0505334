# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is computed from the dynamics: Jacobians, momentum, task space, regressors, motion."""
