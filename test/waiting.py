# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A plugin of pytest with which machine code is awaited, and compiled quickly."""

from rbd_ros.kernels.jit import c_compiler, machine_code
from rbd_ros.kernels.jit.compile_process import CompileProcess

find = machine_code.Codes.find


def wait(codes, *arguments):
    """Return code that is ready."""
    code = find(codes, *arguments)
    code.over.wait()
    return code


machine_code.Codes.find = wait
