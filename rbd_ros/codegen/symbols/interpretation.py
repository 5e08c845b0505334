# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Runs the source of quantities and of their kernels on symbols, which record the operations.

A kernel gets the robot as for several states, as `(constants, work)` (`rbd_ros.kernels.lanes`),
with a symbol in place of each lane. Checks of values pass: that a state is finite, and that no
joint moves an inertia of zero. Results are then not finite, or of no meaning, where the library
raises an error; the tape keeps the margins by which the checks pass.

"""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
from contextvars import ContextVar
from functools import cache, partial, reduce
from inspect import isfunction, ismodule, unwrap
from itertools import combinations
import math
from types import CellType, CodeType, FunctionType, SimpleNamespace
from typing import Any

import numpy as np
from numpy.typing import DTypeLike
from rbd_ros.analysis.task_space import condition_and_damped
from rbd_ros.codegen.graph import Symbol, Tape, Value
from rbd_ros.errors import ModelError
from rbd_ros.kernels import (
    articulated_bodies, composite_bodies, coupled_dynamics, mass_matrix_factor, newton_euler,
    task_space)
from rbd_ros.kernels.lanes import lanes, sines
from rbd_ros.kernels.loops import arrays, closed_loops
from rbd_ros.kernels.task_space import orthogonalize, singular_values
from rbd_ros.kernels.tree.layout import BLOCK, count, LANES, parent, PRESCRIBED, slot, torques
from rbd_ros.model import arguments
from rbd_ros.model.changes import springs
from rbd_ros.model.model import Model
from rbd_ros.model.positions import configurations
from rbd_ros.workspace.machine_methods import INFINITE
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.workspace import workspace_of

# Modules whose functions do not run on symbols, because they prepare numbers of the robot.
_NUMERIC = 'rbd_ros.model', 'rbd_ros.errors'
_NOT_NUMERIC = 'rbd_ros.model.changes.friction'
# The workspace of plain functions while they are traced.
tracing: ContextVar[Any] = ContextVar('tracing')
# Sweeps after which so many rows, at most, are orthogonal: they converge quadratically, and random
# matrices of any rank and scale took five to seven.
MOST_ROWS, SWEEPS = 6, 7
TINY = 1e-300   # added to divisors that may be zero
# Articulated bodies take fewer operations than M if more joints than these carry a body, itself
# included, on average: measured on chains of 6 to 20 hinges, of an arm and of any direction.
DEEP = 6.5


_square_root, _sign = partial(Tape.apply, 'sqrt'), partial(Tape.apply, 'sign')


def maximum(x: Value, y: Value) -> Value:
    """Return the larger one."""
    return 0.5 * (x + y + abs(x - y)) if isinstance(x - y, Symbol) else max(x, y)


def reciprocal(x: Value) -> Value:
    """Return 1 / x; where x is zero, a number whose product with zero is zero."""
    return 1.0 / (x + TINY) if isinstance(x, Symbol) else 1.0 / x if x > 0.0 else 0.0


def _exceeds(x: Value, y: Value) -> bool:
    return _holds(x - y) if isinstance(x, Symbol) or isinstance(y, Symbol) else x > y


def _holds(margin: Value) -> bool:
    """Record a margin; where it is zero, results are not finite."""
    if isinstance(margin, Symbol):
        margin.tape.margins.append(margin)
    return True


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


def _singular_values(R: np.ndarray, columns: np.ndarray, vectors: np.ndarray,
                     values: np.ndarray) -> None:
    if tracing.get().damps:
        return _with_names(source(singular_values), {})(R, columns, vectors, values)
    # Nothing is damped if they are equal; zeros if no joint moves the link: symbols differ from 0.
    values[:] = float(np.any(R[:6] != 0.0))


def _orthogonalize(rows: np.ndarray, width: int, vectors: np.ndarray, n: int) -> None:
    """Rotate rows as often as any may need, without asking whether it is done."""
    if n > MOST_ROWS:
        raise ModelError(f'blocks of more than {MOST_ROWS} dependent velocities that are damped')
    for a, b in SWEEPS * [*combinations(range(n), 2)]:
        x, y = rows[a, :width], rows[b, :width]
        twice, more = 2.0 * np.dot(x, y), np.dot(y, y) - np.dot(x, x)
        t = twice * _copysign(1.0, more) / (
            abs(more) + _square_root(more * more + twice * twice) + TINY)
        c = 1.0 / _square_root(1.0 + t * t)
        for M in rows, vectors:
            M[a], M[b] = ([c * x - c * t * y for x, y in zip(M[a], M[b])],
                          [c * t * x + c * y for x, y in zip(M[a], M[b])])


def _condition_number(most: Value, least: Value) -> Value:
    has_rank = maximum(_sign(least - task_space.RANK_TOLERANCE * most), 0.0)
    return most / (has_rank * least + (1.0 - has_rank) * most / INFINITE)


def _max(*values: Any, **options: Any) -> Any:
    return maximum(*values) if any(isinstance(x, Symbol) for x in values) else max(
        *values, **options)


def _zeros(shape: Any, dtype: DTypeLike = float) -> np.ndarray:
    return buffer(*np.atleast_1d(shape)) if dtype is float else np.zeros(shape, dtype)


def _asarray(x: Any, dtype: DTypeLike | None = None) -> np.ndarray:
    array = np.asarray(x)
    return array if array.dtype == object else array.astype(dtype, copy=False)


def _copy_given(robot: Any, a: np.ndarray, tau: np.ndarray, prescribed: np.ndarray,
                all_a: np.ndarray, all_tau: np.ndarray) -> bool:
    numbers = 1 + np.arange(len(prescribed))
    robot[0][numbers // LANES * BLOCK + numbers % LANES + LANES * PRESCRIBED] = prescribed
    all_a[:], all_tau[:] = a, tau
    return True


def _articulated_recursion(robot: Any, traits: Any, q: np.ndarray, v: np.ndarray | None,
                           a: np.ndarray, tau: np.ndarray) -> bool:
    """Complete a and tau by M and b unless the tree is deep."""
    n, bodies = interpreted(count)(robot), 0
    for i in range(1, n):
        b = interpreted(slot)(i)
        while b > 0:
            b, bodies = interpreted(parent)(robot, b), bodies + 1
    if bodies > DEEP * (n - 1):
        return _with_names(source(articulated_bodies.articulated_recursion), {})(
            robot, traits, q, v, a, tau)
    return _solved(robot, traits, robot, q, v, a, tau)


def _solved(robot: Any, traits: Any, table: Any, q: np.ndarray, v: np.ndarray | None,
            a: np.ndarray, tau: np.ndarray) -> bool:
    """Solve M a + b = tau, with those M and b that take the fewest operations."""
    n, marks = len(tau), interpreted(mass_matrix_factor.is_given)
    a[:] = [x if marks(table, i) else 0.0 for i, x in enumerate(a)]
    M, b = buffer(n, n), buffer(n)
    if v is not None:
        interpreted(newton_euler.newton_euler)(robot, traits, q, v, a)
        b = robot[1][slice(*interpreted(torques)(robot))]
    interpreted(composite_bodies.mass_matrix)(robot, traits, q, M)
    L = buffer(n, n)
    equations = table, M, b, L, L
    # Pivots of joints that move no inertia in any state are constant: zero.
    with np.errstate(divide='ignore', invalid='ignore'), suppress(ZeroDivisionError):
        return interpreted(coupled_dynamics.complete)(equations, a, tau) == 0
    return False


def _elimination_table(workspace: Any) -> tuple[tuple[np.ndarray, np.ndarray], np.ndarray]:
    table, marks = scratch.elimination_table(workspace)
    return (table, table), marks


def _springs(model: Model, q: np.ndarray) -> np.ndarray:
    """Return the torques of springs of joints without quaternions."""
    for joint, _, k in model.moving_joints:
        if joint.nq != joint.nv and model.stiffness[k].any():
            raise ModelError(f"there is no code for spring_torques of joint '{joint.name}', whose "
                             'position is a quaternion')
    at = [q[i] if joint.nq == joint.nv else buffer(joint.nv)
          for joint, i, _ in model.moving_joints]
    return model.stiffness * (np.concatenate(at) - model.spring_reference)


def source(value: Any) -> Any:
    """Return the function that a kernel or helper is made from; other objects as they are."""
    # Plain functions are no wrappers: they have a signature of their own.
    return getattr(value, 'py_func', None) or (
        unwrap(value, stop=lambda x: hasattr(x, '__signature__')) if callable(value) else value)


# What symbols need in place of functions on lanes, of an iteration, of checks, and of modules.
_LEAVES: dict[Any, Any] = {
    sines.cosine_and_sine: lambda angle: (Tape.apply('cos', angle), Tape.apply('sin', angle)),
    lanes.square_root: _square_root, lanes.reciprocal: reciprocal, lanes.exceeds: _exceeds,
    lanes.finite: lambda *values: True,
    source(singular_values): _singular_values, source(orthogonalize): _orthogonalize,
    source(task_space.extremes): lambda values: (
        reduce(maximum, values), -reduce(maximum, [-x for x in values])),
    source(task_space.may_be_damped): lambda most, least, limit: (
        isinstance(most, Symbol) or least < most / limit),
    source(task_space.positive_root): lambda x: _square_root(maximum(x, 0.0)),
    source(task_space.condition_number): _condition_number,
    condition_and_damped: lambda condition, limit: (condition, _sign(condition - limit)),
    source(closed_loops.is_regular): lambda size, square: _holds(
        size - closed_loops.SINGULAR ** 2 * square),
    source(closed_loops.is_consistent): lambda left, square, damping: _holds(
        closed_loops.CONSISTENT ** 2 * square + damping * INFINITE - left),
    source(closed_loops.is_closed): lambda gap: _holds(closed_loops.CLOSED - gap),
    source(closed_loops.rotation_gap): _rotation_gap, arrays.cut: lambda x: x,
    source(articulated_bodies.articulated_recursion): _articulated_recursion,
    source(coupled_dynamics.coupled_recursion): lambda robot, traits, equations, *q_v_a_tau: (
        _solved(robot, traits, equations[0], *q_v_a_tau)),
    source(articulated_bodies.copy_given): _copy_given,
    source(articulated_bodies.prescribe_none): lambda robot: None,      # nobody reads it again
    mass_matrix_factor.lanes_of_columns: lambda rows, columns, together=1: (
        2 * (buffer(rows, columns),)),
    scratch.elimination_table: _elimination_table, springs.springs: _springs,
    **dict.fromkeys((arguments.finite_vector, arguments.one_or_rows, configurations.checked),
                    lambda model, *labels_and_vector, **options: labels_and_vector[-1].copy()),
    workspace_of: lambda model: tracing.get()}
_MATH = SimpleNamespace(
    sqrt=_square_root, isfinite=lambda x: True, copysign=_copysign, inf=math.inf)
_NUMPY = SimpleNamespace(**{
    **vars(np), 'sign': np.frompyfunc(_sign, 1, 1),
    'exp': np.frompyfunc(partial(Tape.apply, 'exp'), 1, 1),
    'minimum': lambda x, bound: x,     # bounds are those of arguments of exp
    'zeros': _zeros, 'empty': _zeros, 'asarray': _asarray})
_interpreted: dict[Callable[..., Any], Any] = {leaf: leaf for leaf in (*_LEAVES.values(), _max)}


class _Module:
    """A module whose functions are interpreted."""

    def __init__(self, module: Any) -> None:
        self._module = module

    def __getattr__(self, name: str) -> Any:
        return _replaced(getattr(self._module, name), self._module.__name__)


def _replaced(value: Any, home: str) -> Any:
    """Return what stands for a global name in a module that runs on symbols."""
    if value is math:
        return _MATH
    if value is np:
        return _NUMPY
    if ismodule(value):
        return _Module(value) if value.__name__.startswith('rbd_ros') else value
    made_from = source(value)
    if not isfunction(made_from):
        return value
    module = made_from.__module__
    runs = module == home or module == _NOT_NUMERIC or (
        module.startswith('rbd_ros') and not module.startswith(_NUMERIC))
    return interpreted(value) if runs or made_from in _LEAVES else value


def _global_names(code: CodeType) -> Iterator[str]:
    """Yield the names in a function and in those within it."""
    yield from code.co_names
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _global_names(constant)


def interpreted(function: Callable[..., Any]) -> Any:
    """Return the source of a kernel, a helper or a method as a function of symbols."""
    made_from = source(function)
    if made_from in _LEAVES:
        return _LEAVES[made_from]
    if made_from not in _interpreted:
        _interpreted[made_from] = found = _with_names(made_from, {})
        _interpreted[found] = found
    return _interpreted[made_from]


def _with_names(function: FunctionType, cells: dict[str, CellType]) -> FunctionType:
    """Return a function with the names of symbols, and with other cells of its closure."""
    names, code = {'max': _max, **function.__globals__}, function.__code__
    closure = tuple(cells.get(name, cell)
                    for name, cell in zip(code.co_freevars, function.__closure__ or ()))
    found = FunctionType(code, names, function.__name__, function.__defaults__, closure)
    found.__kwdefaults__ = function.__kwdefaults__
    _interpreted.setdefault(function, found)
    for name in _global_names(code):
        if name in names:
            names[name] = _replaced(names[name], function.__module__)
    return found


@cache
def interpreted_class(*order: type) -> type:
    """Return a class with interpreted methods, given its bases in the order of their search."""
    kind = order[0]
    if kind is object:
        return kind
    # The class that ``super`` in its methods begins at.
    cell = CellType()
    bases = tuple(interpreted_class(*base.__mro__) for base in kind.__bases__)
    members = {name: x for name, x in vars(kind).items()
               if name not in ('__dict__', '__weakref__', '__new__')}
    for name, x in members.items():
        if isinstance(x, staticmethod):
            members[name] = staticmethod(_replaced(x.__func__, kind.__module__))
        elif isfunction(x) and not hasattr(x, '__wrapped__'):
            members[name] = _with_names(x, {'__class__': cell})
    cell.cell_contents = found = type(kind.__name__, bases, members)
    return found


def buffer(*shape: int) -> np.ndarray:
    """Return zeros that a kernel replaces by symbols."""
    x = np.empty(shape, object)
    x[:] = 0.0
    return x
