# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Adaptive control identifies a payload that is missing from the URDF."""

from typing import Any

import numpy as np
from rbd_ros import Model, with_payload
from rbd_ros.ros.demo.mode import Check, Mode, rms, worst
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.robots import heavy_position, tip
from rbd_ros.ros.demo.session import Sample, Session
from rbd_ros.ros.nodes.simulated_control import gains, ROBOT

MIN_IMPROVEMENT = 5.0    # ratio of the errors without and with adaptation
SMALL_ERROR = 0.02       # rad or m
# Payload: kg, but at most this share of the robot's mass; m, in the frame of its link.
PAYLOAD, MAX_SHARE, PAYLOAD_COM = 1.0, 0.05, (0.0, 0.0, 0.05)
ADAPTATION = 100.0       # 1/J, adaptation gain
# s: motions without and with adaptation; compared span, before the fade at the end of each.
WITHOUT, WITH, COMPARED, FADES = 8.0, 16.0, 4.0, 2.0


class AdaptiveMode(Mode):
    """Two phases: the robot moves an unknown payload, without and with adaptation."""

    title = 'an unknown payload, identified by adaptive control'
    introduction = ('The robot carries a payload that is missing from its URDF. The control law '
                    'of Slotine and Li first trusts the URDF (slotine_li, adaptation 0), then '
                    'adapts to the payload.')
    needs_mujoco = 'only mujoco_robot can carry a payload that is missing from the URDF'
    tolerance = SMALL_ERROR

    def __init__(self, model: Model) -> None:
        self._payload: dict[str, Any] = {
            'link': tip(model), 'mass': min(PAYLOAD, MAX_SHARE * model.mass),
            'com': list(PAYLOAD_COM)}
        self._loaded = with_payload(model, **self._payload)
        super().__init__(model)

    def _choose_start(self) -> np.ndarray:
        return heavy_position(self._loaded)

    def run(self, session: Session) -> list[Check]:
        """Let the robot follow the motion without and with adaptation."""
        session.note = f"{self._payload['mass']:.2g} kg at '{self._payload['link']}'"
        motions = [Motion(self._loaded, session.start, seconds) for seconds in (WITHOUT, WITH)]
        session.launch(
            'torque_controller',
            robot={**ROBOT, **{f'payload_{key}': value for key, value in self._payload.items()}},
            # Gains may have been tuned with the payload attached; they do not reveal it.
            parameters={**gains(self._loaded, session.start), 'mode': 'slotine_li',
                        'slotine_li.links': [self._payload['link']]})
        before = rms(_compared(session.follow('no adaptation', motions[0], accurate=False)))
        session.set_parameters(slotine_li__adaptation=ADAPTATION)
        after = rms(_compared(session.follow('adaptation', motions[1])))
        ratio = np.linalg.norm(before) / np.linalg.norm(after)
        return [Check(
            f'Largest RMS error with the URDF alone: {worst(self.model, before)}; after '
            f'{WITH - COMPARED - FADES:.0f} s of adaptation: {worst(self.model, after)}. The '
            f'error of all joints together is {ratio:.1f} times smaller; required: at least '
            f'{MIN_IMPROVEMENT:g} times.', bool(ratio > MIN_IMPROVEMENT))]


def _compared(samples: list[Sample]) -> list[Sample]:
    """Return the end of a motion, before it fades."""
    end = samples[-1].t - FADES
    return [sample for sample in samples if end - COMPARED <= sample.t <= end]
