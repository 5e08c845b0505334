# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest in a process of its own: methods wait for machine code."""

from rbd_ros.kernels.jit import machine_code

find = machine_code.Codes.find


def wait(codes, *function):
    """Return code that is ready, or None if it is impossible."""
    code = find(codes, *function)
    code.over.wait()
    return code


machine_code.Codes.find = wait
