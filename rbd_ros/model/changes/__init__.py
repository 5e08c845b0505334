# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""New models from a model: other parameters, drives, springs, joints locked or cut."""
