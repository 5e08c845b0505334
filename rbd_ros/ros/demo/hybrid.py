# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid dynamics: one joint swings freely, the others track a motion regardless of it."""

import numpy as np
from rbd_ros import gravity_torques, mass_matrix, Model
from rbd_ros.ros.demo.mode import Check, Mode, rms, Strip, worst
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.robots import DemoFailed, load_share, MAX_LOAD_SHARE
from rbd_ros.ros.demo.session import Session
from rbd_ros.ros.nodes.simulated_control import gains, poses, ROBOT

MAX_ERROR = 1e-2       # rad or m, RMS
MIN_SWING = 0.05       # rad, of the free joint
MOTION = 8.0           # s
MARGIN = 0.8           # rad, between the limits of the free joint and its position at rest


class HybridMode(Mode):
    """One phase: all joints but one track a motion, and that one has zero torque."""

    title = 'one free joint, the others track a motion'
    introduction = ('One joint is free, with zero torque, and swings like a pendulum. The others '
                    'track a motion (hybrid): hybrid dynamics predicts the swing.')
    tolerance = MAX_ERROR

    def _choose_start(self) -> np.ndarray:
        start, self.free = hanging(self.model)
        return start

    def run(self, session: Session) -> list[Check]:
        """Let the robot follow the motion."""
        name = self.model.velocity_names[self.free]
        session.note = f"'{name}' is free"
        motion = Motion(self.model, session.start, MOTION, (self.free,))
        # Without the guard, which would brake the free joint when it swings faster than its limit.
        session.launch('torque_controller', robot=ROBOT, parameters={
            **gains(self.model, session.start), 'mode': 'hybrid', 'hybrid.free_joints': [name],
            'velocity_guard': 0.0})
        samples = session.follow(f"all but '{name}'", motion)
        error, swing = rms(samples), np.ptp([sample.q[self.free] for sample in samples])
        error[self.free] = 0.0
        torque = max(abs(sample.tau[self.free]) for sample in samples)
        return [
            Check(f'Largest RMS error of the tracking joints: {worst(self.model, error)}; limit '
                  f'{MAX_ERROR:g}.', bool(np.max(error) < MAX_ERROR)),
            Check(f"Swing of '{name}': {swing:.2g} rad; required: at least {MIN_SWING:g} rad.",
                  bool(swing > MIN_SWING)),
            Check(f'Its largest torque: {torque:.2g} N m; required: 0.', torque == 0.0)]

    def strips(self, session: Session) -> list[Strip]:
        """Return errors, and the swing of the free joint."""
        strips = super().strips(session)
        swing = np.array([sample.q[self.free] for sample in session.samples])
        strips[self.free] = Strip(f'{self.model.velocity_names[self.free]} swing', 'rad',
                                  swing - session.start[self.free])
        return strips


def hanging(model: Model) -> tuple[np.ndarray, int]:
    """
    Return a position in which a joint hangs at rest without torque, and the index of that joint.

    With the others at rest, the gravity torque of a revolute joint is A sin(q - q_0), so two
    angles determine A and q_0; the joint hangs where that torque is restoring. Of some positions
    and all joints with enough margin, choose the one with the largest A per inertia, which swings
    fastest. Raise DemoFailed if there is none.

    """
    best, found = 0.0, None
    middle = np.nan_to_num(0.5 * (model.lower + model.upper), nan=0.0, posinf=0.0, neginf=0.0)
    for q in poses(model):
        here = gravity_torques(model, q)
        for k in np.flatnonzero(model.angular).tolist():
            turned = q.copy()
            turned[k] += 0.5 * np.pi
            sine, cosine = here[k], gravity_torques(model, turned)[k]
            amplitude, angle = np.hypot(sine, cosine), q[k] - np.arctan2(sine, cosine)
            angle += 2.0 * np.pi * np.round((middle[k] - angle) / (2.0 * np.pi))
            hangs = q.copy()
            hangs[k] = angle
            ratio = amplitude / mass_matrix(model, hangs)[k, k]
            if (ratio > best and amplitude > 3.0 * model.friction[k]
                    and model.lower[k] + MARGIN < angle < model.upper[k] - MARGIN
                    and np.max(load_share(model, hangs)) <= MAX_LOAD_SHARE):
                best, found = ratio, (hangs, k)
    if found is None:
        raise DemoFailed(f"no joint of '{model.name}' can hang freely within its limits")
    return found
