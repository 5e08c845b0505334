# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Why efforts differ from the torques of a description: hypotheses that compete."""
