# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Computed torque follows a motion that springs alone lag behind."""

import numpy as np
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.stage import Stage
from rbd_ros.ros.demo.story import Check, rms, Story, worst
from rbd_ros.ros.nodes.simulated_control import gains, ROBOT

FOLLOWED = 1e-2        # rad or m, the most that the error may be, as RMS
TIMES = 5.0            # the least that springs alone must be worse by
MOTION = 6.0           # s


class ComputedTorqueStory(Story):
    """Two phases: the same motion by springs and gravity torques, then by computed torque."""

    title = 'a motion by springs, and by computed torque'
    words = ('All joints swing. First springs and gravity torques move them (pd_gravity), then '
             'the same springs and inverse dynamics (computed_torque): without lag.')
    bound = FOLLOWED

    def play(self, stage: Stage) -> list[Check]:
        """Let the robot follow the motion twice."""
        motion = Motion(self.model, stage.start, MOTION)
        stage.play('torque_controller', robot=ROBOT, parameters={
            **gains(self.model, stage.start), 'mode': 'pd_gravity'})
        without = rms(stage.follow('by springs and gravity torques', motion, good=False))
        stage.tune(mode='computed_torque')
        error = rms(stage.follow('by computed torque', motion))
        times = np.max(without) / np.max(error)
        return [
            Check(f'By computed torque the RMS error is at most {worst(self.model, error)}; less '
                  f'than {FOLLOWED:g} is asked for.', bool(np.max(error) < FOLLOWED)),
            Check(f'By springs it is {worst(self.model, without)}, {times:.1f} times as much; '
                  f'{TIMES:g} times at least are asked for.', bool(times > TIMES))]
