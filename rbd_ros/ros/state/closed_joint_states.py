# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The state of a robot with closed loops, from the joint states of some of its joints.

Measured joints may be any that determine all others. Invariant, after `missing` returned nothing:

1. q closes the loops. Its joints that are held, as many as the robot has degrees of freedom, are
   where they were measured: the independent ones if these are measured, else others.
2. The rest is solved by Newton's method from the last solution, or from measured positions. Joints
   that are measured beyond those held contradict it by at most `CONTRADICTION`.
3. G, of v_tree = G v, is regular at q.

"""

from dataclasses import replace
from math import ceil

import numpy as np
from rbd_ros._internal.cdr import JointStateContent
from rbd_ros._internal.text import listed
from rbd_ros.errors import RbdError
from rbd_ros.model.loops import with_independent
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import close, gap_in_words, regular_map
from rbd_ros.model.positions.steps import step_between, without_turns
from rbd_ros.ros.state.joint_states import all_within, JointStates, MAX_MEASUREMENT
from rbd_ros.workspace import Workspace
from sensor_msgs.msg import JointState

# Largest difference of a measured passive joint from the solution, rad or m: more than sensors,
# play and elasticity cause, less than between two ways to assemble a mechanism.
CONTRADICTION = 0.1
# Longest step of held joints from one solution to the next, rad or m, and their largest number.
STRIDE, STRIDES = 0.2, 32
# Smallest velocity of a measured joint per unit of velocity of the joints that it determines.
MIN_TRANSMISSION = 1e-3


class ClosedJointStates:
    """The latest position and velocity of a robot with loops; used as `JointStates`."""

    def __init__(self, model: Model) -> None:
        assert model.loops is not None
        self._model, self._tree, self._loops = model, model.unconstrained, model.loops
        self._measured = JointStates(self._tree)
        self.judge, self.unknown_names = self._measured.judge, self._measured.unknown_names
        self.sources, self.names = self._measured.sources, self._measured.names
        # Numbers of the independent velocities among those of the tree.
        self._own = self._loops.order[-model.nv:]
        base = [joint for joint, _, _ in self._tree.moving_joints][:1]
        self._base = (base[0].nq, base[0].nv) if base and base[0].kind == 'free' else (0, 0)
        self._workspace = Workspace(model)
        self.q = self._loops.neutral.copy()
        self.forget()

    def forget(self) -> None:
        """Discard the states of all joints; q remains the first guess."""
        self._measured.forget()
        self.v, self.effort = np.full((2, self._model.nv), np.nan)
        self._G: np.ndarray | None = None
        # Whether the measured state is unsolved, and the joints that were not measured then.
        self._is_new, self._stale = True, ['']
        self._missing: list[str] = []
        self._known = np.zeros(0, int)
        # The robot whose independent joints are those that are held, and other measured joints.
        self._holding: Model | None = None
        self._held = self._own
        self._others = np.zeros(0, int)
        self.why_open = ''

    def place_base(self, q: np.ndarray, v: np.ndarray) -> None:
        """Set the coordinates and the twist of a floating base, which come first."""
        self._measured.place_base(q, v)
        self._is_new = True

    def update(self, message: JointState | JointStateContent, now: float, stamp: float = 0.0,
               timeout: float = np.inf, filter_time: float | None = None,
               fastest: float = np.inf, lag: float | None = None) -> bool:
        """Take the samples in a message; see `JointStates.update`."""
        self._is_new = True
        return self._measured.update(message, now, stamp, timeout, filter_time, fastest, lag)

    def missing(self, now: float, timeout: float) -> list[str]:
        """Close the loops; return the joints that recent positions do not determine."""
        stale = self._measured.missing(now, timeout)
        if stale != self._stale:
            self._is_new, self._stale = True, stale
            self._known = np.array([k for k, name in enumerate(self._measured.names)
                                    if name not in stale], int)
            self._holding = None
        if self._is_new:
            self._is_new, self.why_open = False, ''
            self._missing = self._solve()
            if self._missing:
                self._G = None
        return self._missing

    def _solve(self) -> list[str]:
        """Solve the loops, and return the joints that are not determined."""
        if self._holding is None and not self._hold():
            own = [self._tree.velocity_names[k] for k in self._own]
            return [name for name in own if name in self._stale] or list(self._stale)
        guess = self._guess()
        q = self._closed(guess)
        if q is None and self._holding is not self._model and self._hold():
            q = self._closed(guess)
        if q is None:
            self.why_open = self.why_open or (
                f'the loops cannot be closed with the measured positions of {self._names_held()}: '
                + gap_in_words(self._loops, guess))
            return self._names_solved()
        self._G = regular_map(self._loops, q)
        if self._G is None:
            self.why_open = self._why_singular(q)
            return self._names_solved()
        self.q, measured = q, self._measured
        v = self._fresh(measured.v)
        self.v, self.effort = self._independent(v), self._fresh(measured.effort)[self._own]
        return []

    def _names_solved(self) -> list[str]:
        return [name for k, name in enumerate(self._tree.velocity_names) if k not in self._held]

    def _names_held(self) -> str:
        return listed([self._tree.velocity_names[k] for k in self._held])

    def _why_singular(self, q: np.ndarray) -> str:
        try:
            self._workspace.gravity_torques(q)
        except RbdError as error:
            return str(error)
        return f'the positions of {self._names_held()} do not determine velocities here'

    def _hold(self) -> bool:
        """Choose the joints that are held; return False if the measured ones do not suffice."""
        known = {*self._measured.v_of[self._known].tolist(), *range(self._base[1])}
        if known.issuperset(self._own.tolist()):
            self._set_held(self._model, self._own)
            return True
        G = regular_map(self._loops, self.q)
        if G is None:
            return False
        held = [k for k in self._own.tolist() if k in known]
        others = np.array(sorted(known.difference(held)), int)
        left = G[others][:, [k for k, own in enumerate(self._own.tolist()) if own not in known]]
        while len(held) < len(self._own):
            sizes = np.linalg.norm(left, axis=1)
            if not sizes.max(initial=0.0) > MIN_TRANSMISSION:
                return False
            k = int(np.argmax(sizes))
            axis = left[k] / sizes[k]
            left = left - np.outer(left @ axis, axis)
            held.append(int(others[k]))
        loops = with_independent(self._loops, self._tree.tree, sorted(held))
        self._set_held(replace(self._model, loops=loops), np.array(sorted(held), int))
        return True

    def _set_held(self, model: Model, held: np.ndarray) -> None:
        self._holding, self._held = model, held
        is_held = np.isin(self._measured.v_of, held)
        self._others = self._known[~is_held[self._known]]

    def _guess(self) -> np.ndarray:
        """Return the last solution, with the turns of measured positions, and then these."""
        measured, turn = self._measured, 2.0 * np.pi
        places = np.asarray(measured.q_of)[self._known]
        turning = places[measured.turns[self._known]]
        self.q[turning] += turn * np.round((measured.q[turning] - self.q[turning]) / turn)
        guess = self.q.copy()
        guess[places] = measured.q[places]
        if np.all(np.isfinite(measured.q[:self._base[0]])):
            guess[:self._base[0]] = measured.q[:self._base[0]]
        return guess

    def _closed(self, guess: np.ndarray) -> np.ndarray | None:
        """Return the closed configuration with the held positions of a guess, or None."""
        assert self._holding is not None
        step = step_between(self._tree, self.q, guess)[self._held]
        strides = ceil(min(np.abs(step).max() / STRIDE, STRIDES + 1))
        self.why_open = ''
        # Further measured joints may select another way to assemble than the last one.
        directly = not 1 < strides <= STRIDES
        for first in (directly, not directly):
            q = close(self._holding, guess) if first else self._walked(step, max(strides, 1))
            if q is not None and self._agree(q, guess):
                self.why_open = ''      # of the first attempt
                return q
        return None

    def _agree(self, q: np.ndarray, guess: np.ndarray) -> bool:
        """Return whether the measured joints that are not held are where the loops put them."""
        others = self._others
        if not len(others):
            return True
        places = self._measured.v_of[others]
        apart = np.abs(without_turns(step_between(self._tree, q, guess)[places],
                                     self._measured.turns[others]))
        k = int(np.argmax(apart))
        if apart[k] <= CONTRADICTION:
            return True
        unit = 'rad' if self._tree.angular[places[k]] else 'm'
        self.why_open = (f"'{self._measured.names[others[k]]}' is measured {apart[k]:.3g} {unit} "
                         f'from where {self._names_held()} and the loops put it')
        return False

    def _walked(self, step: np.ndarray, strides: int) -> np.ndarray | None:
        """Return the closed configuration after a step of held joints, in strides, or None."""
        assert self._holding is not None
        if strides > STRIDES:
            return None
        q: np.ndarray | None = self.q
        for _ in range(strides):
            if q is not None:
                q = close(self._holding, q, step / strides)
        return q

    def _fresh(self, of_tree: np.ndarray) -> np.ndarray:
        """Return values for the velocities of the tree, NaN for joints that are not measured."""
        values = np.full(self._tree.nv, np.nan)
        places = self._measured.v_of[self._known]
        values[places] = of_tree[places]
        values[:self._base[1]] = of_tree[:self._base[1]]
        return values

    def _independent(self, v: np.ndarray) -> np.ndarray:
        """Return the independent velocities for those of the tree; NaN: not determined."""
        own = v[self._own]
        if self._G is None or all_within(own, MAX_MEASUREMENT):
            return own
        rows = np.flatnonzero(np.abs(v) < MAX_MEASUREMENT)
        unknown = np.flatnonzero(~(np.abs(own) < MAX_MEASUREMENT))
        rows = rows[~np.isin(rows, self._own)]
        if len(rows) < len(unknown) or np.linalg.matrix_rank(
                self._G[np.ix_(rows, unknown)], MIN_TRANSMISSION) < len(unknown):
            return own
        rest = v[rows] - self._G[rows] @ np.where(np.isin(range(len(own)), unknown), 0.0, own)
        own = own.copy()
        own[unknown] = np.linalg.lstsq(self._G[np.ix_(rows, unknown)], rest, rcond=None)[0]
        return own

    def all_velocities(self, v: np.ndarray) -> np.ndarray:
        """Return the velocities of the tree for independent ones (nv,), rad/s or m/s."""
        assert self._G is not None
        return self._G @ v

    @property
    def unconfirmed(self) -> bool:
        """Return whether a measured joint has no sample yet that agrees with an earlier one."""
        return self.judge.unconfirmed_among(self._known)

    def ages(self, now: float) -> dict[str, float]:
        """Return the ages of the positions of independent and of measured joints, s, by name."""
        own = {self._tree.velocity_names[k] for k in self._own}
        return {name: age for name, age in self._measured.ages(now).items()
                if name in own or np.isfinite(age)}

    def missing_velocities(self) -> list[str]:
        """Return the independent joints whose velocity is unknown or out of range."""
        return [name for name, x in zip(self._model.velocity_names, self.v.tolist())
                if not abs(x) < MAX_MEASUREMENT]

    def velocity_or(self, replacement: float | np.ndarray | None) -> np.ndarray:
        """Return the velocity; `replacement`, or differentiated positions, where it is unknown."""
        if replacement is None:
            return self._independent(self._fresh(self._measured.velocity_or(None)))
        return np.where(np.abs(self.v) < MAX_MEASUREMENT, self.v, replacement)
