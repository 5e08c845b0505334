# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
# Written by `make stubs` from __init__.py, for checkers of types.

from rbd_ros.codegen.casadi_code import casadi_function as casadi_function
from rbd_ros.codegen.functions import FUNCTIONS as FUNCTIONS
from rbd_ros.codegen.graph import Array as Array, Graph as Graph, Operation as Operation
from rbd_ros.codegen.machine_code.loading import load as load, Loaded as Loaded
from rbd_ros.codegen.numpy_code import numpy_source as numpy_source
from rbd_ros.codegen.package import package_files as package_files
from rbd_ros.codegen.sympy_code import sympy_expressions as sympy_expressions
from rbd_ros.codegen.tracing import trace as trace
