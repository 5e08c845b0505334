# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Workspaces whose states are symbols: the methods of `Workspace`, interpreted."""

from collections.abc import Callable, Mapping
from typing import Any

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.codegen.graph import Symbol
from rbd_ros.codegen.symbols.interpretation import (
    buffer, interpreted, interpreted_class, reciprocal, tracing)
from rbd_ros.codegen.symbols.parameters import add_payload, replaced
from rbd_ros.errors import ModelError
from rbd_ros.kernels.coupled_dynamics import solve_equations
from rbd_ros.kernels.loops import arrays
from rbd_ros.kernels.tree.joints import joint_pose
from rbd_ros.kernels.tree.layout import (
    GRAVITY, INERTIA, LANES, PARENT, POSITION, ROTATION, torques, work_offset, WRENCH)
from rbd_ros.kernels.tree.traversal import evaluate_screw
from rbd_ros.model.body_table import pack, without_rods
from rbd_ros.model.model import Model
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.quantity import Quantity
from rbd_ros.workspace.workspace import workspace_of

# Rotations are rounded to 0 and 1 within this distance, a few roundings of the cosine of pi / 2.
ROUNDING = 4e-16
SMALLEST_SQUARE = 1e-30     # of the length of a quaternion that code takes; the library has others


def symbolic_workspace(model: Model, parameters: Mapping[str, np.ndarray],
                       whole: bool = False, damps: bool = False) -> Any:
    """Return a workspace of symbols, with bodies that are `whole` or `without_rods`."""
    whole |= not {'pi', 'positions'}.isdisjoint(parameters)
    kind = type(workspace_of(model))
    different = Symbolic if model.loops is None else SymbolicLoops
    made = type(kind.__name__, (different, interpreted_class(*kind.__mro__)),
                {'parameters': parameters, 'whole': whole, 'damps': damps, 'failures': []})
    return made(model)


def results_of(declared: Quantity, workspace: Any, **arguments: Any) -> tuple[Any, ...]:
    """Return the results of a quantity for symbols, given the workspace."""
    if declared.method is None:
        declared = declared._replace(function=interpreted(declared.function))
    before = tracing.set(workspace)
    try:
        return declared.call(workspace, **arguments)
    except ZeroDivisionError:
        link = arguments.get('link')
        raise ModelError(f"there is no code for {declared.in_code} of link '{link}', which has "
                         'too few joints to move in all six directions') from None
    finally:
        tracing.reset(before)


class Symbolic:
    """What workspaces do differently if states are symbols."""

    _scratch: dict[Callable[..., Any], Any]
    robot: tuple[np.ndarray, np.ndarray]
    parameters: Mapping[str, np.ndarray]
    whole: bool
    damps: bool
    failures: list[float]       # -1 for each kernel that reports an error at any state

    def _pack(self, model: Model) -> tuple[Any, ...]:
        """Return the robot as for several states, places of its bodies, and torques behind it."""
        bodies = model.tree.robot.copy() if self.whole else without_rods(model.tree.robot)
        rotations = bodies[:, ROTATION:ROTATION + 9]
        for exact in (-1.0, 0.0, 1.0):
            rotations[np.abs(rotations - exact) < ROUNDING] = exact
        constants, places = pack(bodies)
        if self.parameters:
            constants = replaced(model, constants, places, self.parameters, self.whole)
        robot = constants, buffer(len(constants))
        wrenches = self.parameters.get('wrenches', np.zeros(0)).reshape(-1, 6)
        for slot, wrench in zip(places, wrenches):
            first = int(interpreted(work_offset)(robot, slot, WRENCH))
            robot[1][first:first + len(wrench)] = wrench
        return robot, places, robot[1][slice(*interpreted(torques)(robot))]

    def carry(self, link: str, payload: np.ndarray) -> None:
        """Put a point mass on a link: kg, and its place in the frame of the link, m."""
        workspace: Any = self
        self.robot = add_payload(workspace.model, self.robot[0], workspace._places, link,
                                 payload), self.robot[1]

    def stand_on_first_body(self, q: np.ndarray) -> tuple[np.ndarray, np.ndarray] | None:
        """
        Take the frame of the body that stands on the ground for the root's, if there is only one.

        Dynamics depend on where this body is only by gravity in its frame. Replace its position
        in q by zero, and return its pose (R, r).

        """
        workspace: Any = self
        model = workspace.model
        if (model.loops is not None or not model.coordinates.is_identity
                or sum(model.tree.robot[1:, PARENT] == 0.0) != 1):
            return None
        robot = self.robot
        interpreted(evaluate_screw)(robot, workspace._traits, 1, q)
        R, r = interpreted(joint_pose)(robot, workspace._traits, 1, q)
        R, r, (ground, body) = np.array(R, object).T, np.array(r, object), workspace._places[:2]
        self.robot = constants, _ = robot[0].astype(object), robot[1]

        def put(place: int, first: int, found: np.ndarray) -> None:
            constants[place + LANES * np.arange(first, first + len(found))] = found

        def ground_constants(first: int, length: int) -> np.ndarray:
            return constants[ground + LANES * np.arange(first, first + length)]
        *h, mass = ground_constants(INERTIA + 6, 4)
        put(ground, GRAVITY, ground_constants(GRAVITY, 3) @ R)
        put(ground, INERTIA + 6, np.array([x - mass * y for x, y in zip(h, r)], object) @ R)
        put(body, ROTATION, np.eye(3).ravel())
        put(body, POSITION, np.zeros(3))
        joint, i, _ = model.moving_joints[0]
        if joint.nq == joint.nv:
            q[0] = 0.0
        else:
            # No result depends on the quaternion: the library refuses one that is zero.
            square = sum(x * x for x in q[i][:4])
            if isinstance(square, Symbol):
                square.tape.margins.append(square - SMALLEST_SQUARE)
            q[i] = (0.0, 0.0, 0.0, 1.0, 0.0, 0.0, 0.0)[:joint.nq]
        return R, r

    def _fail(self, *arguments: Any, **vectors: Any) -> None:
        self.failures.append(-1.0)

    _explain = _explain_accelerations = _refuse = _fail

    def _kept(self, make: Callable[..., Any]) -> Any:
        make = interpreted(make)
        if make not in self._scratch:
            self._scratch[make] = make(self)
        return self._scratch[make]

    _result = _kept

    def com_jacobian_dot(self: Any, q: np.ndarray, v: np.ndarray) -> np.ndarray:
        # The mass of the bodies, which may be an input.
        tree = getattr(self, '_tree', self)
        mass = sum(tree.robot[0][tree._places + LANES * (INERTIA + 9)])
        rate = self.centroidal_momentum_matrix_dot(q, v)[1][3:]
        return rate * np.full(rate.shape, reciprocal(mass), object)

    def check(self, **vectors: ArrayLike) -> list[Any]:
        return [np.copy(x) for x in vectors.values()]


class SymbolicLoops(Symbolic):
    """The map of velocities of closed loops, and its rate; nothing is damped."""

    def forward_dynamics(self, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> np.ndarray:
        nothing = np.zeros(len(v), bool)
        return self.hybrid_dynamics(q, v, buffer(len(v)), tau, nothing)[0]

    def hybrid_dynamics(self: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray, tau: np.ndarray,
                        prescribed: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
        (table, *L), given = self._kept(scratch.factor), self._mask(prescribed)
        found, a = (buffer(len(a)), buffer(len(a))), np.where(given, a, 0.0)
        if not interpreted(solve_equations)(table, self.mass_matrix(q), self.inverse_dynamics(
                q, v, a), *L, a, tau, given, *found):
            self._fail()
        return found

    def _loop_arrays(self, model: Model) -> arrays.Parts:
        assert model.loops is not None
        parts = arrays.cut(model.loops.array(damped=self.damps))
        return parts._replace(**{name: getattr(parts, name).astype(object)
                                 for name in arrays.WRITTEN})

    def _workspace_of_tree(self, model: Model) -> Any:
        tree = symbolic_workspace(model.unconstrained, self.parameters, self.whole, self.damps)
        self.failures = tree.failures
        return tree

    def inverse_dynamics(self: Any, q: np.ndarray, v: np.ndarray, a: np.ndarray,
                         *none: None) -> np.ndarray:
        self._move(q, v, a)
        return self._torques(self._tree.inverse_dynamics(q, self._V, self._A))
