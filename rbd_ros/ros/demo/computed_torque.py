# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Computed torque tracks a motion that PD control with gravity compensation lags behind."""

import numpy as np
from rbd_ros.ros.demo.mode import Check, Mode, rms, worst
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.session import Session
from rbd_ros.ros.nodes.simulated_control import gains, ROBOT

MAX_ERROR = 1e-2         # rad or m, RMS
MIN_IMPROVEMENT = 5.0    # ratio of the errors of pd_gravity and computed_torque
MOTION = 6.0             # s


class ComputedTorqueMode(Mode):
    """Two phases: the same motion by pd_gravity, then by computed_torque."""

    title = 'tracking by pd_gravity, then by computed_torque'
    introduction = ('All joints swing. First PD control with gravity compensation moves them '
                    '(pd_gravity), then inverse dynamics is added (computed_torque): the lag '
                    'disappears.')
    tolerance = MAX_ERROR

    def run(self, session: Session) -> list[Check]:
        """Let the robot follow the motion twice."""
        motion = Motion(self.model, session.start, MOTION)
        session.launch('torque_controller', robot=ROBOT, parameters={
            **gains(self.model, session.start), 'mode': 'pd_gravity'})
        lag = rms(session.follow('pd_gravity', motion, accurate=False))
        session.set_parameters(mode='computed_torque')
        error = rms(session.follow('computed_torque', motion))
        ratio = np.max(lag) / np.max(error)
        return [Check(f'Computed torque: largest RMS error {worst(self.model, error)}; limit '
                      f'{MAX_ERROR:g}.', bool(np.max(error) < MAX_ERROR)),
                Check(f'PD with gravity compensation: largest RMS error {worst(self.model, lag)}, '
                      f'{ratio:.1f} times as large; required: at least {MIN_IMPROVEMENT:g} times.',
                      bool(ratio > MIN_IMPROVEMENT))]
