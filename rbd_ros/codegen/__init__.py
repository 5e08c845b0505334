# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The functions of one robot as straight-line code, traced from the kernels."""

from rbd_ros._internal.lazy_exports import export

__getattr__, __dir__, __all__ = export(__name__, {
    'casadi_code': ['casadi_function'],
    'functions': ['FUNCTIONS'],
    'graph': ['Array', 'Graph', 'Operation'],
    'machine_code.loading': ['load', 'Loaded'],
    'numpy_code': ['numpy_source'],
    'package': ['package_files'],
    'sympy_code': ['sympy_expressions'],
    'tracing': ['trace']})
