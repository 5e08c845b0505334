# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Positions of a model: steps between them, closed loops, named and random ones."""
