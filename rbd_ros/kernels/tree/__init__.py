# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tree: its table of bodies, its joints, and the passes along it that algorithms share."""
