# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What several commands share: options, files of trajectories, progress."""
