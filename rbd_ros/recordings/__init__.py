# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of robots: bags, tables, filters and samples, which `identification` exports."""
