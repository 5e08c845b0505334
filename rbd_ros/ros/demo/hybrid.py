# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hybrid dynamics: one joint is free and swings, the others follow a motion as if it were not."""

import numpy as np
from rbd_ros import gravity_torques, mass_matrix, Model
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.robots import BEARABLE, DemoFailed, overload
from rbd_ros.ros.demo.stage import Stage
from rbd_ros.ros.demo.story import Check, rms, Story, Strip, worst
from rbd_ros.ros.nodes.simulated_control import gains, poses, ROBOT

FOLLOWED = 1e-2        # rad or m, the most that the error may be, as RMS
SWUNG = 0.05           # rad, the least that the free joint must swing
MOTION = 8.0          # s
ROOM = 0.8             # rad, to the limits of the free joint where it hangs


class HybridStory(Story):
    """One phase: all joints but one follow a motion, and that one has no torque."""

    title = 'one joint is free, the others follow a motion'
    words = ('One joint is free, without any torque, and swings like a pendulum. The others '
             'follow a motion (hybrid): hybrid dynamics tells them how it will swing.')
    bound = FOLLOWED

    def _choose_start(self) -> np.ndarray:
        """Return where the free joint hangs; it is the one that hangs from the strongest pull."""
        start, self.free = hanging(self.model)
        return start

    def play(self, stage: Stage) -> list[Check]:
        """Let the robot follow the motion."""
        name = self.model.velocity_names[self.free]
        stage.note = f"'{name}' is free"
        motion = Motion(self.model, stage.start, MOTION, (self.free,))
        stage.play('torque_controller', robot=ROBOT, parameters={
            **gains(self.model, stage.start), 'mode': 'hybrid', 'hybrid.free_joints': [name]})
        samples = stage.follow(f"all but '{name}' follow", motion)
        error, swing = rms(samples), np.ptp([sample.q[self.free] for sample in samples])
        error[self.free] = 0.0
        torque = max(abs(sample.tau[self.free]) for sample in samples)
        return [
            Check(f'The RMS error of the joints that follow is at most {worst(self.model, error)};'
                  f' less than {FOLLOWED:g} is asked for.', bool(np.max(error) < FOLLOWED)),
            Check(f"'{name}' swung by {swing:.2g} rad; {SWUNG:g} at least are asked for.",
                  bool(swing > SWUNG)),
            Check(f'Its largest torque was {torque:.2g} N m; 0 is asked for.', torque == 0.0)]

    def strips(self, stage: Stage) -> list[Strip]:
        """Return errors, and the swing of the free joint."""
        strips = super().strips(stage)
        swing = np.array([sample.q[self.free] for sample in stage.samples])
        strips[self.free] = Strip(f'{self.model.velocity_names[self.free]} swings', 'rad',
                                  swing - stage.start[self.free])
        return strips


def hanging(model: Model) -> tuple[np.ndarray, int]:
    """
    Return a pose in which a joint hangs at rest by itself, and that joint.

    While the others rest, the gravity torque of a revolute joint is a sine of its angle,
    A sin(q - q_0), so two angles tell A and q_0; it hangs where that torque pulls it back. Of some
    poses and all joints that have room there, this is where the pull is the strongest.

    Raises
    ------
    DemoFailed
        If no joint can hang so.

    """
    best, found = 0.0, None
    for q in poses(model):
        here = gravity_torques(model, q)
        for k in np.flatnonzero(model.angular).tolist():
            turned = q.copy()
            turned[k] += 0.5 * np.pi
            sine, cosine = here[k], gravity_torques(model, turned)[k]
            pull, angle = np.hypot(sine, cosine), q[k] - np.arctan2(sine, cosine)
            angle += 2.0 * np.pi * np.round((_middle(model, k) - angle) / (2.0 * np.pi))
            hangs = q.copy()
            hangs[k] = angle
            fast = pull / mass_matrix(model, hangs)[k, k]
            if (fast > best and pull > 3.0 * model.friction[k]
                    and model.lower[k] + ROOM < angle < model.upper[k] - ROOM
                    and np.max(overload(model, hangs)) <= BEARABLE):
                best, found = fast, (hangs, k)
    if found is None:
        raise DemoFailed(f"no joint of '{model.name}' can hang freely within its limits")
    return found


def _middle(model: Model, k: int) -> float:
    """Return the middle between the limits of a joint, or 0 if it has none."""
    middle = 0.5 * (model.lower[k] + model.upper[k])
    return float(middle) if np.isfinite(middle) else 0.0
