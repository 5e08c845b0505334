# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What `make demo` shows: a file for each mode, and what all of them need."""
