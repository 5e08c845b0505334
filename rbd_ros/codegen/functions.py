# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The functions that can be traced: which kernels they run, and what these read and write."""

from collections.abc import Callable, Sequence
from inspect import signature
from typing import NamedTuple

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.analysis.task_space import characteristic_length
from rbd_ros.codegen.closed_loops import (closed_loop_states, closure_step, dependent_velocities,
                                          loop_buffers, map_rate, run_closed, velocity_map)
from rbd_ros.codegen.interpretation import buffer, interpreted, sign, SymbolicRobot
from rbd_ros.errors import ModelError
from rbd_ros.kernels import (
    articulated_bodies, centroidal, composite_bodies, coupled_dynamics, link_jacobians,
    newton_euler, regressors, task_space)
from rbd_ros.kernels.derivatives import newton_euler_derivatives
from rbd_ros.kernels.loops import derivatives as loop_derivatives, dynamics
from rbd_ros.kernels.tree import link_poses
from rbd_ros.model.arguments import mask
from rbd_ros.model.changes.friction import friction
from rbd_ros.workspace.memory import scratch
from rbd_ros.workspace.memory.maps import columns, Map, matrix, rows, same, torques
from rbd_ros.workspace.memory.results import derivative_layout, term_layout

Values = Sequence[np.ndarray]
CONDITION_LIMIT = 2e3
INPUTS = {'q': 'configuration, rad or m', 'v': 'velocity, rad/s or m/s',
          'a': 'acceleration, rad/s^2 or m/s^2', 'tau': 'torque or force, N m or N'}
# Outputs and what they are.
TORQUES, ACCELERATIONS = 'torques or forces, N m or N', 'accelerations, rad/s^2 or m/s^2'
M = 'M', 'mass matrix, kg m^2, kg m or kg'
C = 'C', 'Coriolis matrix, with C v in N m or N'
COM = 'com', 'centre of mass in the frame of the root, m'
COM_JACOBIAN = ('com_jacobian', 'of the centre of mass, in the axes of the root, m/s per rad/s '
                'or m/s')
JACOBIAN = 'J', 'twist of the link, angular first and in its axes, per velocity'
JACOBIAN_DOT = 'J_dot', 'rate of the Jacobian of the link, in its axes'


class Function(NamedTuple):
    """A function of a robot."""

    inputs: Sequence[str]
    outputs: Sequence[tuple[str, str]]      # name and meaning
    run: Callable[..., Values]      # takes the robot, symbols and the options, these by name
    options: Sequence[str] = ()


FUNCTIONS: dict[str, Function] = {}
SHORT = {'body_jacobian': 'jacobian'}   # names that are longer in the library


def traced(*outputs: tuple[str, str]) -> Callable[[Callable[..., Values]], Callable[..., Values]]:
    """Add a function of a robot, inputs and options to `FUNCTIONS`."""
    def add(run: Callable[..., Values]) -> Callable[..., Values]:
        names = [x.name for x in signature(run).parameters.values() if x.default is x.empty][1:]
        FUNCTIONS[run.__name__] = Function([x for x in names if x in INPUTS], outputs, run,
                                           [x for x in names if x not in INPUTS])
        return run
    return add


def by_state(of: str) -> Sequence[tuple[str, str]]:
    """Return the outputs that are derivatives by position and velocity."""
    return [('by_position', f'of {of}, with respect to q'),
            ('by_velocity', f'of {of}, with respect to v')]


def tree_states(robot: SymbolicRobot, q: np.ndarray, *rates: np.ndarray) -> list[np.ndarray]:
    """Return the positions, velocities and accelerations that kernels for trees take."""
    return [q, *rates] if robot.model.loops is None else closed_loop_states(robot, q, *rates)


def to_robot(robot: SymbolicRobot, how: Map, x: np.ndarray) -> np.ndarray:
    """Return a result for the tree, whose states were asked for, in the robot's coordinates."""
    return x if robot.model.loops is None else how(velocity_map(robot), x)


def torques_of(robot: SymbolicRobot, q: np.ndarray, *rates: np.ndarray) -> np.ndarray:
    """Return the torques of a motion; rates that are left out are zero."""
    motion = tree_states(robot, q, *rates) + [None] * (2 - len(rates))
    return to_robot(robot, torques, robot.run(newton_euler.recursion, *motion))


@traced(('tau', TORQUES))
def inverse_dynamics(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Values:
    return [torques_of(robot, q, v, a)]


@traced(('g', TORQUES))
def gravity_torques(robot: SymbolicRobot, q: np.ndarray) -> Values:
    return [torques_of(robot, q)]


@traced(('b', TORQUES))
def bias_torques(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray) -> Values:
    return [torques_of(robot, q, v, buffer(len(v)))]


@traced(('a', ACCELERATIONS))
def forward_dynamics(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray,
                     tau: np.ndarray) -> Values:
    return hybrid_dynamics(robot, q, v, buffer(len(v)), tau, np.zeros(len(v), bool))[:1]


@traced(M)
def mass_matrix(robot: SymbolicRobot, q: np.ndarray) -> Values:
    M = buffer(robot.n, robot.n)
    robot.run(composite_bodies.mass_matrix, *tree_states(robot, q), M)
    return [to_robot(robot, matrix, M)]


@traced(C)
def coriolis_matrix(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray) -> Values:
    return all_terms(robot, q, v)[1:2]


@traced(M, C, ('g', f'gravity: {TORQUES}'), ('coriolis_torques', f'C v: {TORQUES}'),
        COM_JACOBIAN, COM)
def all_terms(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray) -> Values:
    if robot.model.loops is not None:
        layout = term_layout(robot.model.nv)
        rows = buffer(*layout.shape)
        run_closed(robot, dynamics.closed_terms, q, v,
                   *loop_buffers(robot).terms, rows)
        return layout.cut(rows)
    layout = term_layout(robot.n)
    rows = buffer(*layout.shape)
    robot.run(composite_bodies.composite_recursion, *tree_states(robot, q, v), rows)
    return [to_robot(robot, how, x) for how, x in zip(
        (matrix, matrix, torques, torques, columns, same), layout.cut(rows))]


@traced(('all_a', ACCELERATIONS), ('all_tau', TORQUES))
def hybrid_dynamics(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, a: np.ndarray,
                    tau: np.ndarray, prescribed: ArrayLike) -> Values:
    given = mask(robot.model, 'prescribed', prescribed)
    if robot.model.coordinates.is_identity:
        all_a, all_tau = a.copy(), tau.copy()
        robot.prescribe(given)
        robot.run(articulated_bodies.articulated_recursion, q, v, all_a, all_tau)
        return [all_a, all_tau]
    n = robot.model.nv
    all_a, all_tau, L = np.where(given, a, 0.0), tau.copy(), buffer(n, n)
    table, marks = robot.workspace._kept(scratch.elimination_table)
    table = table.copy()
    table[marks] = given
    robot.fails |= interpreted(coupled_dynamics.complete)(
        ((table, table), mass_matrix(robot, q)[0], torques_of(robot, q, v, all_a), L, L),
        all_a, all_tau) != 0
    return [all_a, all_tau]


@traced(*by_state(TORQUES), M)
def inverse_dynamics_derivatives(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray,
                                 a: np.ndarray) -> Values:
    if robot.model.loops is not None:
        layout = derivative_layout(robot.model.nv)
        rows = buffer(*layout.shape)
        run_closed(robot, loop_derivatives.closed_inverse_dynamics_derivatives,
                   q, v, a, *loop_buffers(robot).derivatives, rows)
        return layout.cut(rows)
    layout = derivative_layout(robot.n)
    rows = buffer(*layout.shape)
    robot.run(newton_euler_derivatives.inverse_dynamics_derivatives,
              *tree_states(robot, q, v, a), rows)
    return [to_robot(robot, matrix, x) for x in layout.cut(rows)]


@traced(*by_state(ACCELERATIONS), ('by_torque', 'inverse of the mass matrix'))
def forward_dynamics_derivatives(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray,
                                 tau: np.ndarray) -> Values:
    n = robot.model.nv
    L, X, path = buffer(n, n), buffer(n, 3 * n), np.zeros(n, int)
    if robot.model.coordinates.is_identity:
        robot.run(newton_euler_derivatives.forward_dynamics_and_derivatives, q, v, buffer(n), tau,
                  buffer(n, 3 * n), L, L, path, X, X)
    else:
        derivatives = inverse_dynamics_derivatives(
            robot, q, v, *forward_dynamics(robot, q, v, tau))
        table, _ = robot.workspace._kept(scratch.elimination_table)
        interpreted(newton_euler_derivatives.hybrid_dynamics_derivatives)(
            (table.copy(), table), np.hstack(derivatives), L, L, path, X, X)
    return derivative_layout(n).cut(X)


@traced(('T', 'poses of all links in the frame of the root, 4 x 4 each'))
def forward_kinematics(robot: SymbolicRobot, q: np.ndarray) -> Values:
    links = robot.workspace._kept(scratch.link_table)
    T = buffer(len(links), 4, 4)
    robot.run(link_poses.link_poses, *tree_states(robot, q), links, T)
    return [T]


def link_row(robot: SymbolicRobot, link: str, aligned: bool) -> np.ndarray:
    """Return a link for the kernels of Jacobians, in its own axes or aligned with the root's."""
    table = robot.workspace._kept(scratch.link_table)
    return np.append(table[robot.model.link_index(link)], aligned)[None]


def jacobian_of(robot: SymbolicRobot, q: np.ndarray, link: str, aligned: bool) -> np.ndarray:
    """Return the Jacobian of a link."""
    J = buffer(6, robot.n)
    robot.run(link_jacobians.write_jacobian, *tree_states(robot, q),
              link_row(robot, link, aligned), J, buffer(4, 4))
    return to_robot(robot, columns, J)


@traced(JACOBIAN)
def jacobian(robot: SymbolicRobot, q: np.ndarray, link: str) -> Values:
    return [jacobian_of(robot, q, link, False)]


@traced(('J', 'angular velocity of the link and velocity of its origin, in the axes of the root, '
         'per velocity'))
def world_jacobian(robot: SymbolicRobot, q: np.ndarray, link: str) -> Values:
    return [jacobian_of(robot, q, link, True)]


def jacobian_rates(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, link: str,
                   aligned: bool = False) -> Values:
    """Return the Jacobian of a link, its rate, and dJ/dt v."""
    rows = buffer(13, max(robot.n, 6))
    states, row = tree_states(robot, q, v), link_row(robot, link, aligned)
    robot.run(link_jacobians.write_jacobian_rates, *states, None, row, aligned,
              rows[:12, :robot.n])
    robot.run(link_jacobians.link_bias, *states, row, aligned, rows[12:])
    return with_rate_of_map(robot, [q, v], rows[:6, :robot.n], rows[6:12, :robot.n], rows[12, :6])


def with_rate_of_map(robot: SymbolicRobot, state: Values, J: np.ndarray, J_dot: np.ndarray,
                     bias: np.ndarray) -> Values:
    """Return J, its rate and dJ/dt v in the coordinates of the robot, given those of the tree."""
    found = to_robot(robot, columns, J), to_robot(robot, columns, J_dot), bias
    if robot.model.loops is None:
        return found
    rate, gamma = map_rate(robot, *state)
    return [found[0], found[1] + J @ rate, bias + J @ gamma]


@traced(JACOBIAN_DOT)
def jacobian_dot(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, link: str) -> Values:
    return jacobian_rates(robot, q, v, link)[1:2]


@traced(('J_dot', 'rate of the world Jacobian of the link'))
def world_jacobian_dot(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, link: str) -> Values:
    return jacobian_rates(robot, q, v, link, True)[1:2]


@traced(COM)
def center_of_mass(robot: SymbolicRobot, q: np.ndarray) -> Values:
    com = buffer(3)
    robot.run(centroidal.center_of_mass, *tree_states(robot, q), buffer(3, robot.n), com)
    return [com]


@traced(COM_JACOBIAN)
def com_jacobian(robot: SymbolicRobot, q: np.ndarray) -> Values:
    J = buffer(3, robot.n)
    robot.run(centroidal.center_of_mass, *tree_states(robot, q), J, buffer(3))
    return [to_robot(robot, columns, J)]


@traced(('com_jacobian_dot', 'rate of com_jacobian'))
def com_jacobian_dot(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray) -> Values:
    rows, mass = buffer(12, robot.n), robot.model.mass
    robot.run(centroidal.centroidal_momentum_rate, *tree_states(robot, q, v), rows)
    rows = rows * (1.0 / mass if mass else 0.0)
    return with_rate_of_map(robot, [q, v], rows[3:6], rows[9:], np.zeros(3))[1:2]


@traced(('Y', 'torques per inertial parameter: m, mc (3), Ixx, Iyy, Izz, Ixy, Ixz, Iyz of each '
         'moving link'))
def torque_regressor(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, a: np.ndarray) -> Values:
    links = robot.workspace._kept(scratch.body_table)
    Y = buffer(robot.n, 10 * len(links))
    robot.run(regressors.regressor_columns, *tree_states(robot, q, v, a), links, Y)
    return [to_robot(robot, rows, Y)]


@traced(('friction', TORQUES))
def friction_torques(robot: SymbolicRobot, v: np.ndarray,
                     q: np.ndarray | None = None) -> Values:
    own = interpreted(friction)(robot.model, v, sign(v), v)
    if q is None or robot.model.loops is None:
        return [own]
    closed_loop_states(robot, q, v)
    V, tree = dependent_velocities(robot), robot.model.unconstrained
    passive = interpreted(friction)(tree, V, sign(V), V)
    passive[robot.model.loops.own] = 0.0
    return [own + torques(velocity_map(robot), passive)]


@traced(('springs', TORQUES))
def spring_torques(robot: SymbolicRobot, q: np.ndarray) -> Values:
    """Return the torques of springs of joints without quaternions."""
    tree = robot.model.unconstrained
    for joint, _, k in tree.moving_joints:
        if joint.nq != joint.nv and tree.stiffness[k].any():
            raise ModelError(f"there is no code for spring_torques of joint '{joint.name}', whose "
                             'position is a quaternion')
    at = np.concatenate([q[i] if joint.nq == joint.nv else buffer(joint.nv)
                         for joint, i, _ in tree.moving_joints])
    tau = tree.stiffness * (at - tree.spring_reference)
    if robot.model.loops is None:
        return [tau]
    closed_loop_states(robot, q)
    return [torques(velocity_map(robot), tau)]


@traced(('Lambda', 'inertia of the link, angular first and in its axes'),
        ('eta', 'Coriolis, centrifugal and gravity wrench, N m and N'), JACOBIAN, JACOBIAN_DOT,
        ('J_bar', 'dynamically consistent inverse of J'), ('null_projector', '1 - J_bar J'))
def task_space_dynamics(robot: SymbolicRobot, q: np.ndarray, v: np.ndarray, link: str) -> Values:
    """Return the results without damping, for condition numbers below the library's limit."""
    model, n = robot.model, robot.model.nv
    J, J_dot, bias = jacobian_rates(robot, q, v, link)
    found = np.zeros((19, max(n, 6)), object)
    found[:6, :n], found[18, :6] = J, bias
    last = int(link_row(robot, link, False)[0, 0]) - 1
    if last < 0:
        raise ModelError(f"link '{link}' is part of the root: no joint moves it")
    out, J_bar, N = buffer(8, 6), buffer(n, 6), buffer(n, n)
    try:
        interpreted(task_space.task_space)(
            mass_matrix(robot, q)[0], found, torques_of(robot, q, v, buffer(n)),
            robot.workspace._kept(robot.workspace._carriers),
            last if model.coordinates.is_identity else n - 1, characteristic_length(model, link),
            CONDITION_LIMIT, buffer(n, n), buffer(46 + 2 * n, 6), out, J_bar, N)
    except ZeroDivisionError:
        raise ModelError(f"there is no code for task_space_dynamics of link '{link}', which has "
                         'too few joints to move in all six directions') from None
    return [out[:6], out[6], J, J_dot, J_bar, N]


# Of robots with closed loops.
CLOSING = {'closure_step': Function(['q'], [
    ('q_next', 'configuration after the step, rad or m'),
    ('gap', 'size of the gaps before it, m and rad')], closure_step)}
