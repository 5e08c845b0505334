# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated robots: forward dynamics, integrated over time."""

from __future__ import annotations

from collections.abc import Callable
from typing import Literal, NamedTuple, TypeAlias

import numpy as np
from numpy.typing import ArrayLike
from rbd_ros.analysis.energies import energy
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import finite_array, finite_vector, number, shown
from rbd_ros.model.changes.drives import with_armature
from rbd_ros.model.changes.friction import direction, friction
from rbd_ros.model.changes.springs import springs
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import integrate, normalize, on_closure
from rbd_ros.simulation.dry_friction import resting_impulses
from rbd_ros.simulation.integrators import (
    explicit_euler, Rates, runge_kutta_4, semi_implicit_euler)
from rbd_ros.workspace import Workspace
from rbd_ros.workspace.passive_joints import all_springs, passive_friction, velocity_map

# Signs of the velocity of joints at rest, moving forward and moving backward.
DIRECTIONS = np.array([[0.0], [1.0], [-1.0]])
# Softness of friction and stops in closed loops, as a share of the mean inverse inertia: it
# determines how joints share impulses, and is too small to be seen.
SOFTNESS = 1e-9


class Measurement(NamedTuple):
    """The outputs of a robot's sensors: positions, velocities and efforts perhaps with noise."""

    t: float    # s
    q: np.ndarray
    v: np.ndarray
    tau: np.ndarray


class Simulator:
    """
    A robot under torques, with friction and springs of its joints and their limits as stops.

    Semi-implicit Euler steps: v from forward dynamics, then q from the new v. Damping is taken at
    the end of the step, M a = tau - b - D (v + dt a): with dt D added to the armature this is the
    same recursion, stable for any D. Coulomb friction and stops are stable for any step, too: a
    joint comes to rest, and stays at rest, if friction or its stop can hold it; otherwise all of
    its friction opposes the velocity after the step. Stribeck friction is that of the velocity
    before the step.

    Parameters
    ----------
    model, q, step
        Robot, with its friction (see `rbd_ros.friction_torques`); initial configuration (nq,), at
        rest; integration step, s.

    Attributes
    ----------
    q, v, tau, time : ndarray, ndarray, ndarray, float
        The current state, the torques that have led to it, and the time since the beginning, s.

    """

    def __init__(self, model: Model, q: ArrayLike, *, step: float = 1e-3) -> None:
        self.model, self.step = model, number('step', step, 0.0)
        self.q, self.time = on_closure(model, q), 0.0
        self.v, self.tau = np.zeros((2, model.nv))
        # With asymmetric damping, the larger one: the velocity then keeps its direction.
        self._workspace = Workspace(with_armature(model, {
            joint.name: np.array(joint.armature) + step * (np.array(joint.damping)
                                                           + np.abs(joint.damping_asymmetry))
            for joint in model.joints if joint.nv}))
        # All joints have friction and stops, also those that depend on others.
        self._tree = tree = model.unconstrained
        self._own = np.arange(model.nv) if model.loops is None else model.loops.own
        self._identity = np.eye(model.nv)
        # Indices of the coordinates that may have stops: quaternions have none.
        pairs = [(k, i) for joint, q, v in tree.moving_joints if KINDS[joint.kind].is_screws
                 for k, i in zip(range(q.start, q.stop), range(v.start, v.stop))]
        self._q_of, self._v_of = np.array(pairs, int).reshape(-1, 2).T
        self._lower, self._upper = tree.lower[self._v_of], tree.upper[self._v_of]

    def advance(self, tau: ArrayLike, steps: int = 1) -> None:
        """Advance under constant torques (nv,), N m or N; StateError if the motion diverges."""
        self.tau = finite_vector(self.model, 'tau', tau)
        for _ in range(steps):
            self.v = self._next_velocity(self.tau)
            self.q = integrate(self.model, self.q, self.v, self.step)
            self._stop()
            self.time += self.step

    def brake(self) -> None:
        """Bring all joints to rest at once."""
        self.v, self.tau = np.zeros((2, self.model.nv))

    def measure(self) -> Measurement:
        """Return what ideal sensors would measure."""
        return Measurement(self.time, self.q, self.v, self.tau)

    def _next_velocity(self, tau: np.ndarray) -> np.ndarray:
        dt, model = self.step, self.model
        G = self._identity if model.loops is None else velocity_map(model, self.q)
        v = G @ self.v
        flowing, forward, backward = friction(self._tree, v, DIRECTIONS, v)
        passive = flowing + springs(self._tree, self.q)
        next_v = self.v + dt * self._workspace.forward_dynamics(
            self.q, self.v, tau - passive @ G)
        # Impulses of friction are between those of its two directions; stops push one way.
        lower, upper = dt * (flowing - forward), dt * (flowing - backward)
        q = self.q[self._q_of]
        upper[self._v_of[q <= self._lower]] = np.inf
        lower[self._v_of[q >= self._upper]] = -np.inf
        held = np.flatnonzero((lower < 0.0) | (upper > 0.0))
        if not len(held):
            return next_v
        inverse = np.linalg.inv(self._workspace.mass_matrix(self.q))
        G = G[held]
        A = G @ inverse @ G.T
        if model.loops is not None:
            # Joints that depend on each other share their impulses as if they were slightly soft.
            A += SOFTNESS * np.trace(A) / len(A) * np.eye(len(A))
        p, at_rest = resting_impulses(A, G @ next_v, lower[held], upper[held])
        next_v += inverse @ (G.T @ p)
        next_v[np.isin(self._own, held[at_rest])] = 0.0
        return next_v

    def _stop(self) -> None:
        """Keep the joints within their limits, where they lose their speed."""
        if self.model.loops is not None:
            return      # the next step stops them: others would have to move with them
        q = self.q[self._q_of]
        beyond = (q < self._lower) | (q > self._upper)
        if beyond.any():
            self.q[self._q_of] = np.clip(q, self._lower, self._upper)
            self.v[self._v_of[beyond]] = 0.0


class Motion(NamedTuple):
    """Result of `simulate`; the first axis of every array is that of the times."""

    t: np.ndarray       # s
    q: np.ndarray       # rad and m
    v: np.ndarray       # rad/s and m/s
    energy: np.ndarray  # kinetic plus potential, J
    # Change of the energy minus the work of torques, springs and friction, J: the error of the
    # integration, zero for the exact motion.
    energy_drift: np.ndarray


Method: TypeAlias = Literal['runge_kutta_4', 'semi_implicit_euler', 'explicit_euler', 'solve_ivp']
Torque: TypeAlias = Callable[[float, np.ndarray, np.ndarray], ArrayLike] | ArrayLike
METHODS = {step.__name__: step for step in (explicit_euler, semi_implicit_euler, runge_kutta_4)}
# Tolerances of solve_ivp, far below what the other methods reach in a reasonable time.
RELATIVE_TOLERANCE, ABSOLUTE_TOLERANCE = 1e-9, 1e-11


def simulate(model: Model, q0: ArrayLike, v0: ArrayLike, torque: Torque, t: ArrayLike,
             *, method: Method = 'runge_kutta_4', friction_speed: float | None = None) -> Motion:
    """
    Return the motion of a robot under given torques [Lynch and Park, section 9.5].

    Springs act. Joint limits are ignored, and so is friction unless ``friction_speed`` is given. A
    `Simulator` has both, with joints that come to rest for good, but its steps are of first order.
    StateError is raised if the motion becomes infinite.

    Parameters
    ----------
    model, q0, v0
        Robot; initial configuration (nq,), rad and m, and velocity (nv,), rad/s or m/s.
    torque : callable or array_like
        A function of (t, q, v) that returns the torques (nv,), N m or N; or constant torques
        (nv,); or torques at the times t, (times, nv), interpolated linearly.
    t : array_like, shape (times,)
        Times of the result, s, two or more and increasing; the motion begins at the first. All
        methods but ``'solve_ivp'`` make one step from each time to the next.
    method : {'runge_kutta_4', 'semi_implicit_euler', 'explicit_euler', 'solve_ivp'}
        One of `integrators`, or `scipy.integrate.solve_ivp` (DOP853, relative tolerance 1e-9).
    friction_speed : float, optional
        Include friction, with this ``smooth`` of `rbd_ros.friction_torques`, rad/s or m/s. For a
        joint slower than that, friction is a damping of friction / friction_speed, which needs
        short steps. None: no friction.

    """
    workspace = Workspace(model)
    q0, v0 = on_closure(model, q0, 'q0'), finite_vector(model, 'v0', v0)
    t = finite_array('t', t, (None,))
    if len(t) < 2 or np.any(np.diff(t) <= 0.0):
        raise StateError(f't must be two or more increasing times, got {shown(t)}')
    torque = _torque_function(model, torque, t)
    has_springs = bool(model.unconstrained.stiffness.any())
    if friction_speed is not None:
        friction_speed = number('friction_speed', friction_speed, 0.0)

    def rates(time: float, q: np.ndarray, x: np.ndarray) -> np.ndarray:
        v = x[:model.nv]    # x holds v, and the work of the torques
        tau = finite_vector(model, 'torque', torque(time, q, v))
        if has_springs:
            tau = tau - all_springs(model, normalize(model, q))
        if friction_speed is not None:
            tau = tau - friction(model, v, direction(v, friction_speed), v)
            tau = tau - passive_friction(model, q, v, friction_speed)
        return np.append(workspace.forward_dynamics(q, v, tau), v @ tau)
    x0 = np.append(v0, 0.0)
    if method == 'solve_ivp':
        q, x = _solve(model, rates, t, q0, x0)
    elif method in METHODS:
        states = [(q0, x0)]
        for start, dt in zip(t, np.diff(t)):
            states.append(METHODS[method](model, rates, start, *states[-1], dt))
        q, x = map(np.array, zip(*states))
    else:
        raise StateError(f"there is no method '{method}', only " + ', '.join(METHODS)
                         + ' and solve_ivp')
    v, work = x[:, :-1], x[:, -1]
    energies = np.array([sum(energy(model, *state)) for state in zip(q, v)])
    return Motion(t, q, v, energies, energies - energies[0] - work)


def _solve(model: Model, rates: Rates, t: np.ndarray, q0: np.ndarray,
           x0: np.ndarray) -> tuple[np.ndarray, np.ndarray]:
    # Imported lazily: SciPy is slow to import.
    from rbd_ros.differentiable import configuration_rate
    from scipy.integrate import solve_ivp

    def derivative(time: float, y: np.ndarray) -> np.ndarray:
        q, x = y[:model.nq], y[model.nq:]
        if model.loops is not None:
            q = normalize(model, q)     # the errors of the integration open loops
        v = x[:model.nv] if model.loops is None else velocity_map(model, q) @ x[:model.nv]
        return np.concatenate((configuration_rate(model.unconstrained, np, q, v),
                               rates(time, q, x)))
    solution = solve_ivp(derivative, (t[0], t[-1]), np.concatenate((q0, x0)), 'DOP853', t,
                         rtol=RELATIVE_TOLERANCE, atol=ABSOLUTE_TOLERANCE)
    if not solution.success:
        raise StateError(f'the motion cannot be followed to t = {t[-1]} s: {solution.message}')
    q = np.array([normalize(model, one) for one in solution.y[:model.nq].T])
    return q, solution.y[model.nq:].T


def _torque_function(model: Model, torque: Torque, t: np.ndarray
                     ) -> Callable[[float, np.ndarray, np.ndarray], ArrayLike]:
    if callable(torque):
        return torque
    torque = finite_array('torque', torque, (model.nv,), (len(t), model.nv))
    if torque.shape == (model.nv,):
        return lambda time, q, v: torque
    return lambda time, q, v: np.array([np.interp(time, t, x) for x in torque.T])
