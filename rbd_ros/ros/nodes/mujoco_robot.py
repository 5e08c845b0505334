# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated robot whose motion MuJoCo computes; otherwise like simulated_robot."""

from dataclasses import replace
from typing import Any, ClassVar

from geometry_msgs.msg import Wrench
import numpy as np
from rbd_ros import Model, StateError
from rbd_ros._internal.setting import Setting, settings_of
from rbd_ros.model.description import inertia_matrix
from rbd_ros.ros import convert
from rbd_ros.ros.nodes.simulated_robot import SimulatedRobot
from rbd_ros.ros.robot.read_model import RobotSettings
from rbd_ros.simulation.mujoco_robot import Load, MujocoRobot

_PARAMETERS = {
    'delay': Setting(0.0, 'Delay from a command to its effect, in whole steps.', 's', 0.0, 1.0),
    'position_noise': Setting(0.0, 'Standard deviation of measured positions.', 'rad or m', 0.0,
                              1.0),
    'velocity_noise': Setting(0.0, 'Standard deviation of measured velocities.', 'rad/s or m/s',
                              0.0, 100.0),
    'effort_noise': Setting(0.0, 'Standard deviation of measured efforts.', 'N m or N', 0.0, 1e4),
    'seed': Setting(0, 'Seed of the noise.', '', 0, 2**31 - 1),
    **{name: replace(one, meaning=one.meaning.replace(
        'payload from the start', 'payload that the robot description lacks'))
       for name, one in settings_of((RobotSettings,)).items() if name.startswith('payload_')},
    'push_link': Setting('', 'Link on which the last wrench on ~/push acts, at its origin, in the '
                         'axes of the root link; empty: none.')}


class RobotInMujoco(SimulatedRobot):
    """
    Moves the robot of a description with MuJoCo, with noise, delay and an unknown payload.

    Efforts in the joint states are the applied ones, within the limits of the drives. A wrench on
    ~/push acts until the next one arrives. Otherwise as `SimulatedRobot`.

    """

    program: ClassVar[str] = 'mujoco_robot'
    engine: ClassVar[str] = 'MuJoCo'
    parameters: ClassVar[dict[str, Setting]] = {**SimulatedRobot.parameters, **_PARAMETERS}

    def _make_engine(self, model: Model, q: np.ndarray, given: dict[str, Any]) -> MujocoRobot:
        load = None
        if given['payload_link']:
            load = Load(given['payload_link'], given['payload_mass'], given['payload_com'],
                        inertia_matrix('payload_inertia', given['payload_inertia']))
        elif given['payload_mass']:
            raise StateError('payload_mass needs payload_link, the link that carries it')
        robot = MujocoRobot(
            self._text, model, q, step=given['step'], delay=given['delay'], load=load,
            position_noise=given['position_noise'], velocity_noise=given['velocity_noise'],
            effort_noise=given['effort_noise'], seed=given['seed'])
        if given['push_link']:
            self._push_link = given['push_link']
            robot.push(self._push_link, np.zeros(6))      # raises if the link does not move
            self.create_subscription(Wrench, '~/push', self._on_push, 10)
        return robot

    def _on_push(self, message: Wrench) -> None:
        assert isinstance(self._engine, MujocoRobot)
        try:
            self._engine.push(self._push_link, convert.wrench(message))
        except StateError as error:
            self._log.error(f'push ignored: {error}', 'push')
