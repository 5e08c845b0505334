# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Calls of machine code: checks of arguments, and what is left to the library.

Code computes what it can and reports states that it cannot vouch for: numbers that are not finite,
and margins of the kernels' checks that are negative. The library then computes these states, or
raises its errors.

"""

from collections.abc import Callable, Mapping, Sequence
from inspect import Parameter, Signature, signature
from math import prod
from typing import Any, NamedTuple, NoReturn

import numpy as np
import rbd_ros
from rbd_ros import batch
from rbd_ros.batch.results import checked_out
from rbd_ros.batch.threads import compute, Progress
from rbd_ros.batch.wrenches import batch_wrenches
from rbd_ros.codegen.functions import FUNCTIONS
from rbd_ros.errors import ModelError, RbdError
from rbd_ros.kernels.jit.machine_code import Made, Runner
from rbd_ros.kernels.jit.numba_backend import COMPILES
from rbd_ros.model.arguments import finite_array, finite_vector, mask, rows, wrenches
from rbd_ros.model.model import Model
from rbd_ros.workspace.documentation import ROWS
from rbd_ros.workspace.workspace import workspace_of

# Operations beyond which kernels, if numba compiles them, are faster than code that no longer fits
# into the processor's caches; a result, which is stored and checked, counts as several.
LONGEST, PER_RESULT = 14_000, 8
MANY = 64       # states from which code that computes several at a time is worth compiling
OF_MANY = 'threads', 'progress'     # options of functions in `rbd_ros.batch`
OPTIONS = {'out', *OF_MANY}
NOT_IN_CODE = {'task_space_dynamics': 'the condition number takes an iteration'}
# Where the torques that balance external wrenches are subtracted, and added to a result.
BALANCED = {'inverse_dynamics': (None, 0), 'bias_torques': (None, 0),
            'forward_dynamics': ('tau', None), 'hybrid_dynamics': ('tau', 1)}


class Report(NamedTuple):
    """How a loaded function computes."""

    way: str            # 'C, extension', 'C, ctypes', 'kernels' or 'interpreted'
    operations: int     # of the code; 0 without
    seconds: float      # that the compiler took; 0 if machine code was kept
    reason: str = ''    # why it is not C


class LoadedFunction:
    """A function of one robot: checks arguments, and runs code or the library."""

    def __init__(self, model: Model, name: str, fixed: Mapping[str, Any],
                 parameters: Sequence[str], single: bool) -> None:
        declared = FUNCTIONS[name]
        self.model, self.name, self.parameters = model, declared.name, parameters
        self.plain: Any = declared.function
        self.result: Callable[..., Any] = (
            tuple if declared.states is None else declared.states.result)
        self.runner: Runner | None = None
        self.balance: Runner | None = None
        self.lanes: Runner | None = None        # for many states, from their first call
        self.compile_lanes: Callable[[], tuple[Runner, float]]
        self.several = np.zeros(1, np.intp)     # their address
        self.caller: Any = None
        self.operations, self.seconds = 0, 0.0
        is_damped = model.loops is not None and model.loops.condition_limit < np.inf
        self.reason = ('no joint moves' if not model.nv else      # why not in code
                       'velocities of closed loops are damped' if is_damped else
                       NOT_IN_CODE.get(name, ''))
        self.fixed = {key: mask(model, key, x) if key == 'prescribed' else x
                      for key, x in fixed.items()}
        self.dtype = np.dtype(np.float32 if single else np.float64)
        # The signature: that of the library's function, parameters, and ``out``.
        given = list(signature(self.plain).parameters.values())[1:]
        first = [x for x in given if x.kind is x.POSITIONAL_OR_KEYWORD]
        self.form = Signature([
            *first, *(Parameter(x, Parameter.POSITIONAL_OR_KEYWORD) for x in self.parameters),
            *given[len(first):], *(Parameter(x, Parameter.KEYWORD_ONLY, default=None)
                                   for x in ('out', *OF_MANY))])
        # Arguments for which there is code.
        self.defaults = {x.name: x.default for x in given if x.default is not x.empty}
        self.first = [*(x.name for x in first), *self.parameters]
        self.state = [x.name for x in first if x.name not in declared.options]

    def set_description(self, made: Made) -> None:
        """Set what the function computes, and whether that is left to the library."""
        self.operations, self.reason = made.operations, made.reason
        if COMPILES and not self.parameters and (
                self.operations + PER_RESULT * sum(map(prod, made.shapes)) > LONGEST):
            self.reason = f'kernels are faster than {self.operations} operations'
        self.inputs = [x for x in made.inputs if x not in self.parameters]
        # Keywords are left to Python.
        self.is_positional = self.inputs == self.state

    def set_code(self, code: tuple[Runner, float], caller: Any) -> None:
        """Set the code, the time that its compiler took, s, and the module that calls it."""
        (self.runner, self.seconds), self.caller = code, caller
        self.memory, self.kept = self.runner.kept()

    def for_users(self) -> Callable[..., Any]:
        """Return what users call."""
        if self.runner is None:
            return self if self.parameters else by_kernels(self)
        kept = self.kept[0] if len(self.kept) == 1 else self.result(self.kept)
        if not self.is_positional or (self.caller is None and self.fixed):
            return self
        return self.runner.bound(self.caller, self, self.memory, self.kept, kept,
                                 list(self.fixed.values()), len(self.parameters),
                                 several=self.several)

    def report(self) -> Report:
        """Return how the function computes."""
        if self.runner is None:
            return Report('kernels' if COMPILES else 'interpreted', self.operations, 0.0,
                          self.reason)
        return Report('C, ctypes' if self.caller is None else 'C, extension', self.operations,
                      self.seconds)

    def __call__(self, *arguments: Any, **named: Any) -> Any:
        if len(arguments) == len(self.first) and named.keys() <= OPTIONS:
            given = {**self.defaults, **dict(zip(self.first, arguments)), **named}
        else:           # `bind` takes longer than ten states
            given = {**self.defaults, **self.form.bind(*arguments, **named).arguments}
        out, first = given.pop('out', None), given[self.state[0]]
        of_many = {name: given.pop(name, None) for name in OF_MANY}
        many = hasattr(first, 'columns') or np.ndim(first) == 2
        arrays = self._by_code(given, many, out, of_many) if (
            self.runner is not None and self._has_code(given)) else None
        if arrays is None:
            found = self._by_library(given, many, of_many)
            arrays = found if isinstance(found, tuple) else [found]
        else:
            found = arrays[0] if len(arrays) == 1 else self.result(arrays)
        if out is None:
            return found
        users = out if isinstance(out, tuple) else (out,)
        if len(users) == len(arrays) and all(x is y for x, y in zip(users, arrays)):
            return out      # the code has written there
        for x, array in zip(checked_out(out, [np.shape(x) for x in arrays], given), arrays):
            x[...] = array
        return out

    def _by_code(self, given: Mapping[str, Any], many: bool, out: object,
                 of_many: Mapping[str, Any]) -> Sequence[np.ndarray] | None:
        """Return the results of the code; None if they are left to the library."""
        assert self.runner is not None
        inputs: list[np.ndarray] = []
        for name in self.inputs:
            x, positions = given[name], name == 'q'
            inputs.append(rows(
                self.model, ROWS[name], x, len(inputs[0]) if inputs else None, positions=positions,
                finite=False) if many else finite_vector(self.model, name, x, positions=positions))
        count = len(inputs[0]) if many else 1
        inputs += [finite_array(name, given[name], (size,)) for name, size in zip(
            self.parameters, self.runner.sizes[len(inputs):])]
        inputs = [np.ascontiguousarray(x, self.dtype) for x in inputs]
        arrays: Sequence[np.ndarray] = [] if many or out is not None else self.kept
        if many and out is not None:
            arrays = checked_out(out, [(count, *shape) for shape in self.runner.shapes], given)
        if not arrays or any(x.dtype != self.dtype or not x.flags.c_contiguous for x in arrays):
            arrays = self.runner.new(*[count] * many)
        balance, (where, part) = None, BALANCED.get(self.name, (None, None))
        if given.get('external_wrenches') is not None:
            if not many:
                wrenches(self.model, given['external_wrenches'])    # its message is for one state
            balance = self._balance(given['external_wrenches'], inputs[0], count)
            if balance is None:
                return None
            if where is not None:
                k = self.inputs.index(where)
                inputs[k] = inputs[k] - balance
        bad = (self._run_many(count, inputs, arrays, **of_many) if many
               else self.runner.run(count, inputs, arrays))
        if bad >= 0 and self.parameters:
            self._explain(inputs, bad if many else None)
        if balance is not None and part is not None:
            arrays[part] += balance
        return None if bad >= 0 else arrays

    def _run_many(self, count: int, inputs: Sequence[np.ndarray], outputs: Sequence[np.ndarray],
                  threads: int | None, progress: Progress | None) -> int:
        """Compute states in threads; return the first that the code cannot vouch for, or -1."""
        one, bad = self.runner, []
        assert one is not None
        if self.lanes is None and count >= MANY:
            self.lanes, _ = self.compile_lanes()
            self.several[0] = self.lanes.address
        several, arguments = self.lanes, one.arguments(count, inputs, outputs) if count else []

        def work(start: int, stop: int) -> None:
            first = start if several is None else several.run_some(start, stop, arguments)
            # One by one: states that are too few, and those of which one is bad.
            if first >= 0 and (found := one.run_some(first, stop, arguments)) >= 0:
                bad.append(found)
        compute(count, work, threads, progress)
        return min(bad, default=-1)

    def _has_code(self, given: Mapping[str, Any]) -> bool:
        """Return whether options are those that were compiled."""
        free = {*self.inputs, *self.parameters, 'external_wrenches'}
        fixed = {**self.defaults, **self.fixed}
        return all(x is fixed[name] or np.array_equal(x, fixed[name])
                   for name, x in given.items() if name not in free)

    def _balance(self, external_wrenches: Any, q: np.ndarray, count: int) -> np.ndarray | None:
        """Return the torques that balance wrenches, in the shape of velocities, or None."""
        if self.balance is None:
            return None
        forces = batch_wrenches(self.model, external_wrenches, count).of_bodies(
            self.model, 0, count).astype(self.dtype)
        tau, = self.balance.new(count)
        bad = self.balance.run(count, [np.atleast_2d(q), forces], [tau])
        return None if bad >= 0 else tau if q.ndim == 2 else tau[0]

    def _by_library(self, given: Mapping[str, Any], many: bool,
                    of_many: Mapping[str, Any]) -> Any:
        """Return what the library computes, or raise its error."""
        if self.parameters:
            raise ModelError(f'{self.name} was not loaded for these options: with parameters, '
                             'other options need another call of load')
        function = getattr(batch, self.name, self.plain) if many else self.plain
        more = {name: x for name, x in given.items() if name in self.defaults
                and x is not self.defaults[name]}
        if many and function is not self.plain:
            more |= of_many
        found = function(self.model, *(given[name] for name in self.first), **more)
        if isinstance(found, tuple):
            return tuple.__new__(type(found), map(self._of_type, found))
        return self._of_type(found)

    def _of_type(self, x: Any) -> Any:
        return np.asarray(x, self.dtype) if isinstance(x, np.ndarray) else x

    def _explain(self, inputs: Sequence[np.ndarray], state: int | None) -> NoReturn:
        """Raise the error for a state that code with parameters cannot compute."""
        values = {name: x if state is None else x[state] for name, x in zip(self.inputs, inputs)}
        try:
            workspace_of(self.model)._explain(**values)
        except RbdError as error:
            if state is None:
                raise
            raise type(error)(f'state {state}: {error}') from None


def by_kernels(function: LoadedFunction) -> Callable[..., Any]:
    """Return a function that passes arrays of one state to a workspace."""
    declared, ndarray = FUNCTIONS[function.name], np.ndarray
    if declared.method is None or function.dtype != np.float64:
        return function
    method, part = getattr(rbd_ros.Workspace(function.model), function.name), declared.part

    def call(*values: Any, **named: Any) -> Any:
        if not named and values and type(values[0]) is ndarray and values[0].ndim == 1:
            found = method(*values)
            return found if part is None else found[part]
        return function(*values, **named)
    return call
