# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What every node runs on: its start and end, log, clocks, worker thread."""
