# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of robots: bags and tables, filters, and the samples made of them."""
