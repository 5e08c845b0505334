# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A simulated robot that runs in real time in place of a real one."""

from dataclasses import replace
from math import isfinite
from time import monotonic
from typing import Any, ClassVar

import numpy as np
from rbd_ros import Model, random_configuration, StateError, with_gravity
from rbd_ros._internal.setting import Setting, settings_of
from rbd_ros._internal.text import listed
from rbd_ros.model import load_constraints
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.files.any_format import read_description
from rbd_ros.model.files.drive_files import load_drives
from rbd_ros.model.positions.configurations import closed_along
from rbd_ros.ros.nodes.plain_node import PlainNode
from rbd_ros.ros.robot.read_model import load_quietly, RobotSettings
from rbd_ros.ros.robot.subscriptions import DESCRIPTION_QOS
from rbd_ros.ros.runtime.part import steady_timer
from rbd_ros.ros.runtime.report import guarded
from rbd_ros.ros.runtime.share_directory import share
from rbd_ros.simulation.mujoco_robot import MujocoRobot
from rbd_ros.simulation.simulator import Simulator
from rbd_ros.workspace import Workspace
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray, String

# s: largest simulated time at once; on a slow machine, the robot slows down instead.
MAX_CATCH_UP = 0.1
DISCOVERY_TIME = 2.0    # s: time to discover another publisher of the robot description
TOLERATED_DELAY = 0.05    # s: default delay of the commands for which joints are damped
POSES = 50    # Number of poses in which the stiffness of gravity is evaluated

_PARAMETERS = {
    'robot_description': Setting('', 'URDF or MJCF of the robot; empty: see urdf.'),
    'urdf': Setting('', 'Path of a URDF or MJCF file; empty: the demo arm.'),
    'drives': Setting('', 'Path of a parameter file with drives, as rbd_ros.model.save_drives '
                      'writes it; empty: friction and damping of the URDF.'),
    'constraints': settings_of((RobotSettings,))['constraints'],
    'gravity': Setting((), 'Acceleration of gravity in the axes of the root link; empty: that of '
                       'the description.', 'm/s^2', sizes=(0, 3)),
    'publish_description': Setting(True, 'Publish the robot description if no other node does.'),
    'rate': Setting(500.0, 'Rate of the joint states.', 'Hz', 1.0, 5000.0),
    'step': Setting(0.001, 'Step of the integration.', 's', 1e-6, 0.1),
    'initial_positions': Setting((), 'Initial joint positions in the order of the model; empty: '
                                 'zero, or the middle of limits that exclude zero.', 'rad or m'),
    'command_joints': Setting((), 'Order of the commands; empty: that of the model.', entry=str),
    'tolerated_delay': Setting(
        TOLERATED_DELAY, 'Delay of the commands for which the joints get enough viscous damping, '
        'where the URDF has less: delayed gravity torques drive a robot away from its pose, like '
        'an inverted pendulum. 0: the damping of the URDF.', 's', 0.0, 1.0)}


class SimulatedRobot(PlainNode):
    """
    Moves a robot under the efforts on ~/commands, and publishes its joint states.

    The last command acts until the next one, as with a forward_command_controller. Brakes hold the
    robot until the first command. `alone` has no effect here.

    """

    program: ClassVar[str] = 'simulated_robot'
    engine: ClassVar[str] = 'rbd_ros'
    parameters: ClassVar[dict[str, Setting]] = _PARAMETERS

    def __init__(self, *, alone: bool = False, **options: Any) -> None:
        super().__init__(**options)
        given = self._given
        self._text = given['robot_description'] or read_description(
            given['urdf'] or share('urdf', 'demo_arm.urdf'))
        model = load_quietly(self._text)
        if given['constraints']:
            model = load_constraints(model, given['constraints'])
        if given['gravity']:
            model = with_gravity(model, given['gravity'])
        if given['drives']:
            model = load_drives(model, given['drives'])
        names, start, order = (list(model.velocity_names), given['initial_positions'],
                               given['command_joints'])
        if model.unconstrained.nq != model.unconstrained.nv:
            raise StateError(f"'{model.name}' has joints with quaternions: joint states cannot "
                             'hold them, so it cannot be simulated here')
        if order and sorted(order) != sorted(names):
            raise StateError('command_joints must name every joint once: ' + listed(names))
        self._order = np.array([names.index(name) for name in order or names], int)
        if start and len(start) != model.nv:
            raise StateError(f'initial_positions has {len(start)} entries, the robot has the '
                             f'joints {listed(names)}')
        q, = closed_along(model, np.array([start or rest_position(model)], float))
        model = with_damping(model, given['tolerated_delay'])
        self._engine = self._make_engine(model, q, given)
        self._tau: np.ndarray | None = None
        self._simulated_until = monotonic()
        # The positions that are measured: those of independent joints.
        self._measured = slice(None) if model.loops is None else model.loops.own
        self._state = JointState(name=names)
        self._publisher = self.create_publisher(JointState, 'joint_states', 10)
        self.create_subscription(Float64MultiArray, '~/commands', self._on_command, 10)
        steady_timer(self, 1.0 / given['rate'], self._on_timer)
        self._discovery = steady_timer(self, DISCOVERY_TIME, self._describe)
        damping = (f'{model.damping.min():.3g} to {model.damping.max():.3g} N m s/rad or N s/m'
                   if model.nv else 'none')
        self._log.info(f"simulating '{model.name}' with {self.engine}: {model.nv} joints, "
                       f'{model.mass:.4g} kg, damping {damping}; brakes on until the first '
                       'command')

    def _make_engine(self, model: Model, q: np.ndarray, given: dict[str, Any]
                     ) -> Simulator | MujocoRobot:
        # One step compiles the kernels, and raises if the robot cannot be simulated.
        Simulator(model, q, step=given['step']).advance(np.zeros(model.nv))
        return Simulator(model, q, step=given['step'])

    @guarded
    def _describe(self) -> None:
        """Publish the robot description if no other node does."""
        self.destroy_timer(self._discovery)
        if self._given['publish_description'] and self.count_publishers('robot_description') == 0:
            self._description_publisher = self.create_publisher(
                String, 'robot_description', DESCRIPTION_QOS)
            self._description_publisher.publish(String(data=self._text))
            self._log.info('publishing the robot description')

    def _on_command(self, message: Float64MultiArray) -> None:
        """Apply efforts; ignore them if they are not finite, or not one per joint."""
        efforts = np.array(message.data)
        if len(efforts) != len(self._order) or not isfinite(efforts.sum()):
            self._log.error(f'command ignored: {len(self._order)} finite efforts expected, got '
                            f'{efforts}', 'command')
            return
        if self._tau is None:
            self._log.info('first command: brakes off')
            self._tau, self._simulated_until = np.zeros(len(efforts)), monotonic()
        self._tau[self._order] = efforts

    @guarded
    def _on_timer(self) -> None:
        now, engine = monotonic(), self._engine
        if self._tau is not None:
            self._simulated_until = max(self._simulated_until, now - MAX_CATCH_UP)
            steps = int((now - self._simulated_until) / engine.step)
            self._simulated_until += steps * engine.step
            try:
                engine.advance(self._tau, steps)
            except StateError as error:
                self._log.error(f'the simulation has diverged, brakes on: {error}')
                engine.brake()
                self._tau = None
        state, measured = self._state, engine.measure()
        state.position, state.velocity, state.effort = (
            measured.q[self._measured].tolist(), measured.v.tolist(), measured.tau.tolist())
        state.header.stamp = self.get_clock().now().to_msg()
        self._publisher.publish(state)


def rest_position(model: Model) -> np.ndarray:
    """Return where independent joints (nv,) start, rad or m: at zero if their limits allow it."""
    if model.loops is not None:
        return model.loops.neutral[model.loops.own]
    q = np.zeros(model.nv)
    excluded = (model.lower > 0.0) | (model.upper < 0.0)
    lower, upper = model.lower[excluded], model.upper[excluded]
    lower, upper = (np.where(np.isfinite(lower), lower, upper),
                    np.where(np.isfinite(upper), upper, lower))
    q[excluded] = 0.5 * (lower + upper)
    return q


def with_damping(model: Model, delay: float) -> Model:
    """Return the robot with enough viscous damping for commands with a delay, s."""
    # With K = dg/dq, gravity torques that are late by T have the error K (q(t) - q(t - T)), about
    # K T v: negative damping where K is negative. Each joint is damped by at least T times the
    # largest row sum of abs(K) in some poses.
    if not delay:
        return model
    workspace, rng, still = Workspace(model), np.random.default_rng(0), np.zeros(model.nv)
    stiffness = np.max([
        np.abs(workspace.inverse_dynamics_derivatives(
            random_configuration(model, rng), still, still).by_position).sum(axis=1)
        for _ in range(POSES)], axis=0)
    needed = delay * stiffness
    damping = {joint.name: tuple(np.maximum(joint.damping, needed[v]))
               for joint, _, v in model.moving_joints}
    return rebuild(model, joints=[replace(joint, damping=damping[joint.name])
                                  if joint.name in damping else joint for joint in model.joints])
