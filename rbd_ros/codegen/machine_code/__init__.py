# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Functions of one robot as machine code of the system's C compiler, called from Python."""
