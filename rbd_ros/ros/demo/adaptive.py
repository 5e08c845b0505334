# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""An adaptive law learns a load that nobody told it."""

from typing import Any

import numpy as np
from rbd_ros import Model, with_payload
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.robots import heavy_position, tip
from rbd_ros.ros.demo.stage import Sample, Stage
from rbd_ros.ros.demo.story import Check, rms, Story, worst
from rbd_ros.ros.nodes.simulated_control import gains, ROBOT

TIMES = 5.0            # the least by which adaptation must make the error smaller
SMALL = 0.02           # rad or m
# kg, but not more than this share of the robot; m, in the frame of the link that carries it.
LOAD, SHARE, PLACE = 1.0, 0.05, (0.0, 0.0, 0.05)
# 1/J: how fast parameters change.
ADAPTATION = 100.0
# s: without and with adaptation; at the end of each what is compared, before the motion fades.
WITHOUT, WITH, COMPARED, FADES = 8.0, 16.0, 4.0, 2.0


class AdaptiveStory(Story):
    """Two phases: the robot moves a load that its model lacks, and then may learn."""

    title = 'an unknown load, and how it is learnt'
    words = ('The robot carries a load that its URDF lacks. First the law of Slotine and Li has '
             'to believe the URDF (slotine_li, adaptation 0), then it may learn from its errors.')
    needs_mujoco = 'mujoco_robot alone can carry a load that the URDF lacks'
    bound = SMALL

    def __init__(self, model: Model) -> None:
        self._load: dict[str, Any] = {'link': tip(model), 'mass': min(LOAD, SHARE * model.mass),
                                      'com': list(PLACE)}
        super().__init__(model)
        self.loaded = with_payload(model, **self._load)

    def _choose_start(self) -> np.ndarray:
        """Return where the robot begins: it must be able to hold the load there."""
        return heavy_position(with_payload(self.model, **self._load))

    def play(self, stage: Stage) -> list[Check]:
        """Let the robot follow the motion without and with adaptation."""
        stage.note = f"{self._load['mass']:.2g} kg at '{self._load['link']}'"
        motions = [Motion(self.loaded, stage.start, seconds) for seconds in (WITHOUT, WITH)]
        stage.play(
            'torque_controller',
            robot={**ROBOT, **{f'payload_{key}': value for key, value in self._load.items()}},
            # Gains may have been tuned with the payload attached; they do not reveal it.
            parameters={**gains(self.loaded, stage.start), 'mode': 'slotine_li',
                        'slotine_li.links': [self._load['link']]})
        without = rms(_late(stage.follow('with the URDF alone', motions[0], good=False)))
        stage.tune(slotine_li__adaptation=ADAPTATION)
        learnt = rms(_late(stage.follow('with adaptation', motions[1])))
        times = np.linalg.norm(without) / np.linalg.norm(learnt)
        return [Check(
            f'With the URDF alone the RMS error is {worst(self.model, without)}, after '
            f'{WITH - COMPARED - FADES:.0f} s of learning {worst(self.model, learnt)}: that of '
            f'all joints is {times:.1f} times less; {TIMES:g} times at least are asked for.',
            bool(times > TIMES))]


def _late(samples: list[Sample]) -> list[Sample]:
    """Return the end of a motion, before it fades."""
    end = samples[-1].t - FADES
    return [sample for sample in samples if end - COMPARED <= sample.t <= end]
