# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot and its dynamics in a browser: geometry, scene, panels, and self-contained pages."""
