# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings: bags, tables, filters and samples; `identification` has their public names."""
