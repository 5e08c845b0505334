# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Launch files: plans as data, and the launch actions built from them."""
