# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot of a node: model and state, its replacement, and its subscriptions."""
