# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The services of the dynamics node, computed in the background."""
