# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity torques hold a robot with closed loops; those of the same robot without them do not."""

from typing import ClassVar

import numpy as np
from rbd_ros import gravity_torques, Model
from rbd_ros.model.configurations import closed_along
from rbd_ros.ros.demo.gravity import GravityMode
from rbd_ros.ros.demo.robots import DemoFailed
from rbd_ros.ros.demo.session import Session


class LoopMode(GravityMode):
    """The phases of `GravityMode`; in the second one, torques ignore the loops."""

    title = 'a robot with closed loops, held by its motors; then by torques that ignore the loops'
    introduction = ('Only the motors of this robot are measured and commanded; constraints of '
                    'MuJoCo close its loops. dynamics_node finds the positions of the passive '
                    'joints, and holds the robot by gravity torques alone; then the motors get '
                    'the torques of the same robot with its loops cut open, and it moves.')
    needs_mujoco = 'its physics must not know the equations of rbd_ros'
    urdf: ClassVar[str] = 'palletizer.urdf'
    torques = 'torques that ignore the loops'

    def __init__(self, model: Model) -> None:
        if model.loops is None:
            raise DemoFailed(f"MODE=loop needs closed loops, and robot '{model.name}' has none")
        self._own = model.loops.own
        super().__init__(model)

    def _torques(self) -> np.ndarray:
        return gravity_torques(self.model.unconstrained, self.start)[self._own]

    def poses(self, session: Session) -> list[np.ndarray]:
        """Return configurations of the second phase."""
        samples = session.samples[session.phases[-1].first:]
        chosen = np.linspace(0, len(samples) - 1, 10).astype(int)
        return [session.start, *closed_along(
            self.model, np.array([samples[k].q for k in chosen]))]
