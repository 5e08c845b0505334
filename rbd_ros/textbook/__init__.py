# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The equations of the texts as they are printed: slow, to be read and to test against."""
