# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robot as data: links and joints, from URDF or made by calls, and what is made of them."""
