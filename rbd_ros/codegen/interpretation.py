# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Runs the source of the kernels on symbols, which record the operations.

A kernel gets the robot as for several states, as `(constants, work)` (`rbd_ros.kernels.lanes`),
with a symbol in place of each lane. Checks of values pass: that a state is finite, and that no
joint moves an inertia of zero. Results are then not finite, or of no meaning, where the library
raises an error; the tape keeps the margins by which the checks pass.

"""

from collections.abc import Callable, Mapping, Sequence
from inspect import isfunction, unwrap
import math
from types import FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from rbd_ros.codegen.graph import Symbol, Value
from rbd_ros.codegen.parameters import add_payload, replaced
from rbd_ros.kernels.lanes import lanes, sines
from rbd_ros.kernels.loops import arrays, closed_loops
from rbd_ros.kernels.task_space import singular_values
from rbd_ros.kernels.tree.layout import (
    LANES, PRESCRIBED, ROTATION, torques, VELOCITY, work_offset, WRENCH)
from rbd_ros.model.body_table import pack
from rbd_ros.model.model import Model
from rbd_ros.workspace.workspace import workspace_of

# Modules whose functions run on symbols.
_TRACED = 'rbd_ros.kernels', 'rbd_ros.model.changes.friction'
# Rotations are rounded to 0 and 1 within this distance, a few roundings of the cosine of pi / 2.
ROUNDING = 4e-16


def _cosine_and_sine(angle: Value) -> tuple[Value, Value]:
    if isinstance(angle, Symbol):
        return angle.tape.apply('cos', angle), angle.tape.apply('sin', angle)
    return math.cos(angle), math.sin(angle)


def square_root(x: Value) -> Value:
    """Return the square root."""
    return x.tape.apply('sqrt', x) if isinstance(x, Symbol) else math.sqrt(x)


def maximum(x: Value, y: Value) -> Value:
    """Return the larger one."""
    return 0.5 * (x + y + abs(x - y))


def _sign(x: Value) -> Value:
    return x.tape.apply('sign', x) if isinstance(x, Symbol) else float(np.sign(x))


def sign(x: np.ndarray) -> np.ndarray:
    """Return the signs of the entries of a vector: -1, 0 or 1."""
    return np.array([_sign(entry) for entry in x], object)


def _reciprocal(x: Value) -> Value:
    return 1.0 / x if isinstance(x, Symbol) or x > 0.0 else 0.0


def _passes(*values: Value) -> bool:
    return True


def _exceeds(x: Value, y: Value) -> bool:
    return _holds(x - y) if isinstance(x, Symbol) or isinstance(y, Symbol) else x > y


def _holds(margin: Value) -> bool:
    """Record a margin; where it is zero, results are not finite."""
    if isinstance(margin, Symbol):
        margin.tape.margins.append(margin)
    return True


def _is_regular(size: Value, square: Value) -> bool:
    return _holds(size - closed_loops.SINGULAR ** 2 * square)


def _is_consistent(left: Value, square: Value) -> bool:
    return _holds(closed_loops.CONSISTENT ** 2 * square - left)


def _is_closed(gap: Value) -> bool:
    return _holds(closed_loops.CLOSED - gap)


def _same(x: Any) -> Any:
    return x


def _rotation_gap(kind: float, R: Sequence[Sequence[Value]]) -> Sequence[Value]:
    """Return twice the tangent of half the angle instead of the angle: the same near zero."""
    x, y, z = R
    if kind == closed_loops.REVOLUTE:
        turn, cosine = (-z[1], z[0], 0.0), z[2]
    else:
        turn = (0.5 * (y[2] - z[1]), 0.5 * (z[0] - x[2]), 0.5 * (x[1] - y[0]))
        cosine = 0.5 * (x[0] + y[1] + z[2] - 1.0)
    return [2.0 / (1.0 + cosine) * component for component in turn]


def _copysign(x: Value, y: Value) -> Value:
    # 1 for y = 0, whose sign is 0.
    return x * _sign(_sign(y) + 0.5)


def _equal_singular_values(R: np.ndarray, columns: np.ndarray, vectors: np.ndarray,
                           values: np.ndarray) -> None:
    values[:] = 1.0


def source(value: Any) -> Any:
    """Return the function that a kernel or helper is made from; other objects as they are."""
    return getattr(value, 'py_func', None) or (unwrap(value) if callable(value) else value)


def _exp(x: Value) -> Value:
    return x.tape.apply('exp', x) if isinstance(x, Symbol) else math.exp(x)


def _unbounded(x: np.ndarray, bound: float) -> np.ndarray:
    return x


# What symbols need in place of functions on lanes, of an iteration, and of modules.
_LEAVES = {sines.cosine_and_sine: _cosine_and_sine, lanes.square_root: square_root,
           lanes.reciprocal: _reciprocal, lanes.finite: _passes, lanes.exceeds: _exceeds,
           source(singular_values): _equal_singular_values,
           source(closed_loops.is_regular): _is_regular,
           source(closed_loops.is_consistent): _is_consistent,
           source(closed_loops.is_closed): _is_closed,
           source(closed_loops.rotation_gap): _rotation_gap, arrays.cut: _same}
_MATH = SimpleNamespace(sqrt=square_root, isfinite=_passes, copysign=_copysign, inf=math.inf)
_NUMPY = SimpleNamespace(**{**vars(np), 'exp': np.frompyfunc(_exp, 1, 1), 'minimum': _unbounded})
_interpreted: dict[Callable[..., Any], Any] = {}


def interpreted(kernel: Callable[..., Any]) -> Any:
    """Return the source of a kernel or helper as a function of symbols."""
    made_from = source(kernel)
    if made_from in _LEAVES:
        return _LEAVES[made_from]
    if made_from not in _interpreted:
        names = dict(made_from.__globals__)
        _interpreted[made_from] = FunctionType(made_from.__code__, names, made_from.__name__)
        for name in made_from.__code__.co_names:
            value = names.get(name)
            if value is math:
                names[name] = _MATH
            elif value is np:
                names[name] = _NUMPY
            elif isfunction(value := source(value)) and value.__module__.startswith(_TRACED):
                names[name] = interpreted(value)
    return _interpreted[made_from]


class SymbolicRobot:
    """A robot whose state-dependent values are symbols."""

    def __init__(self, model: Model, parameters: Mapping[str, np.ndarray]) -> None:
        bodies = model.tree.robot.copy()
        self.model, self.n = model, int(bodies[0, VELOCITY])
        rotations = bodies[:, ROTATION:ROTATION + 9]
        for exact in (-1.0, 0.0, 1.0):
            rotations[np.abs(rotations - exact) < ROUNDING] = exact
        self._constants, self._places = pack(bodies)
        if parameters:
            self._constants = replaced(model, self._constants, self._places, parameters)
        self.screws, self.workspace = model.tree.screws, workspace_of(model)
        self.fails = False      # whether a kernel reports an error, whatever the state
        self.wrenches: np.ndarray | None = None     # (bodies, 6), external ones in their frames
        if model.loops is not None:
            parts = arrays.cut(model.loops.array(damped=False))
            self.loops = parts._replace(**{name: getattr(parts, name).astype(object)
                                           for name in arrays.WRITTEN})

    def prescribe(self, prescribed: np.ndarray) -> None:
        """Set the mask of given accelerations."""
        self._constants[self._places[1:] + LANES * PRESCRIBED] = prescribed

    def carry(self, link: str, payload: np.ndarray) -> None:
        """Put a point mass on a link: kg, and its place in the frame of the link, m."""
        self._constants = add_payload(self.model, self._constants, self._places, link, payload)

    def run(self, kernel: Callable[..., Any], *arguments: Any) -> np.ndarray:
        """Run a kernel of the tree; return the torques behind the bodies."""
        work = np.zeros(len(self._constants), object)
        work[:] = 0.0
        if self.wrenches is not None:
            for slot, wrench in zip(self._places, self.wrenches):
                at = interpreted(work_offset)((self._constants, work), slot, WRENCH)
                work[at:at + np.uint64(len(wrench))] = wrench
        self.fails |= interpreted(kernel)((self._constants.copy(), work), self.screws,
                                          *arguments) is False
        return work[slice(*interpreted(torques)((self._constants, work)))]


def buffer(*shape: int) -> np.ndarray:
    """Return zeros that a kernel replaces by symbols."""
    x = np.empty(shape, object)
    x[:] = 0.0
    return x
