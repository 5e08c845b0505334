# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Machine code of methods of `rbd_ros.Workspace`, for programs without numba."""

from concurrent.futures import Future, ThreadPoolExecutor
from functools import cache
import pickle
from typing import Any

import numpy as np
from rbd_ros.codegen.c import Style
from rbd_ros.codegen.machine_code.loading import description, extension, PREFIX, sources_of
from rbd_ros.codegen.tracing import trace_method
from rbd_ros.errors import RbdError
from rbd_ros.kernels.jit.c_compiler import code_directory, find_compiler, machine_code
from rbd_ros.kernels.jit.machine_code import failed, Made, no_code
from rbd_ros.model.model import Model
from rbd_ros.workspace.machine_methods import STATES

# Beyond which compilers take minutes.
MOST_OPERATIONS = 60_000
# From so many operations on, code is compiled faster, and is hardly slower: it waits for memory.
LONG, QUICK = 10_000, ['-O1']
_pool = ThreadPoolExecutor(1)


def begin() -> None:
    """Compile what all functions share, in the background."""
    _caller()


def code_of_method(robot: bytes, name: str, options: tuple[tuple[str, Any], ...]) -> bytes:
    """Return the pickled `Made` of a method for a pickled robot and values of options."""
    begin()
    return pickle.dumps(_made(pickle.loads(robot), name, dict(options)))


def _made(model: Model, name: str, options: dict[str, Any]) -> Made:
    if not model.nv:
        return no_code('no joint moves')
    try:
        graph, structure = trace_method(model, name, {
            label: np.array(x) if label == 'prescribed' else x for label, x in options.items()})
    except Exception as error:
        return no_code(str(error))
    if len(graph.operations) > MOST_OPERATIONS:
        return no_code(f'it takes {len(graph.operations)} operations, too many to compile')
    try:
        style = Style(PREFIX, False, lanes=STATES in options)
        code, _ = machine_code(find_compiler(), sources_of(model, style, graph),
                               QUICK if len(graph.operations) > LONG else ())
    except RbdError as error:
        return failed(str(error))
    return description(graph, structure)._replace(code=code, caller=_caller().result())


@cache
def _caller() -> 'Future[bytes]':
    return _pool.submit(lambda: extension(find_compiler(), code_directory(None)))
