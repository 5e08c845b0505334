# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Traces robots with closed loops: their velocity maps, and a step of Newton's method.

Results are those at closed configurations, and without damping. Where a loop is singular, they are
not finite or have no meaning.

"""

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np
from rbd_ros.codegen.interpretation import buffer, interpreted, maximum, square_root, SymbolicRobot
from rbd_ros.errors import ModelError
from rbd_ros.kernels.loops import arrays, changes, closed_loops
from rbd_ros.kernels.loops.arrays import A, G, GAMMA, LONGEST_STEP, STEP, V
from rbd_ros.kernels.tree.vectors import quaternion_rotation
from rbd_ros.model.loops import Loops
from rbd_ros.model.positions.steps import quaternion_joints
from rbd_ros.workspace.closed_loops import Buffers, buffers


def loops_of(robot: SymbolicRobot) -> Loops:
    """Return the constraints of a robot that has some."""
    assert robot.model.loops is not None
    return robot.model.loops


def loop_buffers(robot: SymbolicRobot) -> Buffers:
    """Return the buffers of kernels."""
    found = buffers(loops_of(robot))
    return Buffers(*(tuple(x.astype(object) for x in arrays) for arrays in found))


def run_closed(robot: SymbolicRobot, kernel: Callable[..., Any], q: np.ndarray,
               *arguments: Any) -> None:
    """Run a kernel for robots with closed loops."""
    robot.run(kernel, robot.loops, q, *arguments)


def closed_loop_states(robot: SymbolicRobot, q: np.ndarray,
                       *rates: np.ndarray) -> list[np.ndarray]:
    """Return the positions, velocities and accelerations of the unconstrained robot."""
    found = robot.loops.found
    if rates:
        a = rates[1] if len(rates) > 1 else buffer(robot.model.nv)
        run_closed(robot, closed_loops.loop_motion, q, rates[0], a)
    else:
        run_closed(robot, closed_loops.loop_map, q)
    return [q, *(found[row, :robot.n].copy() for row in (V, A)[:len(rates)])]


def velocity_map(robot: SymbolicRobot) -> np.ndarray:
    """Return G of the states that were asked for last."""
    return robot.loops.found[G:, :len(robot.loops.order)].T.copy()


def dependent_velocities(robot: SymbolicRobot) -> np.ndarray:
    """Return V = G v of the states that were asked for last."""
    return robot.loops.found[V, :len(robot.loops.order)].copy()


def map_rate(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    """Return dG/dt and gamma."""
    run_closed(robot, _motion_and_rate, q, v)
    p = robot.loops
    n, nv = len(p.order), len(p.own)
    rate = buffer(n, nv)
    rate[np.ix_(p.order[:n - nv], p.involved[:, 0])] = p.rate[:, :len(p.involved)]
    return rate, p.found[GAMMA, :n].copy()


def _motion_and_rate(robot: Any, screws: int, p: arrays.Parts, q: np.ndarray,
                     v: np.ndarray) -> None:
    interpreted(closed_loops.find_motion)(robot, screws, p, q, v, None)
    interpreted(changes.write_rate)(robot, screws, p)


def closure_step(robot: SymbolicRobot, q: np.ndarray) -> Sequence[np.ndarray]:
    """Return q after a step of Newton's method, and the size of the gaps before it."""
    loops, tree = loops_of(robot), robot.model.unconstrained
    run_closed(robot, closed_loops.loop_map, q)
    found, own = robot.loops.found, set(loops.own.tolist())
    step, gap = found[STEP, :len(loops.order)].copy(), found[0, -1:].copy()
    longest = LONGEST_STEP
    for x in step:
        longest = maximum(longest, abs(x))
    factor, result = LONGEST_STEP / longest, q.copy()
    step = np.array([factor * x for x in step], object)
    for joint, i, k in tree.moving_joints:
        if joint.nq == joint.nv:
            result[i] = q[i] + step[k]
    for joint, i, k in quaternion_joints(tree):
        if own.isdisjoint(range(tree.nv)[k]):
            x, y, z, w = q[i.start:i.start + 4]
            turn = np.array([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]], object)
            moved = q[i.start:i.start + 4] + turn @ (0.5 * step[k.start:k.start + 3])
            length = square_root(np.dot(moved, moved))
            result[i.start:i.start + 4] = [x / length for x in moved]
            if joint.kind == 'free':
                R = np.array(interpreted(quaternion_rotation)(x, y, z, w), object).T
                result[i.start + 4:i.stop] += R @ step[k.start + 3:k.stop]
        elif not own.issuperset(range(tree.nv)[k]):
            raise ModelError(f"there is no code for closing loops with joint '{joint.name}', of "
                             'which some velocities are independent and some are not')
    return [result, gap]
