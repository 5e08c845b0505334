# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The nodes of the demo, what they say, and a record of it."""

from collections.abc import Callable
from functools import partial
from pathlib import Path
import signal
from statistics import median
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import monotonic, time
from typing import Any, NamedTuple, Protocol, TypeAlias

from geometry_msgs.msg import Vector3, Wrench
import numpy as np
from rbd_ros import gravity_torques, Model
from rbd_ros.kernels.jit.compiled import BEING_COMPILED
from rbd_ros.model import save_drives
from rbd_ros.ros.convert import seconds
from rbd_ros.ros.demo.motions import LEAD, Motion
from rbd_ros.ros.demo.robots import DemoFailed
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory

# s: for a node to compile its kernels for the first time; for it to end; without joint states
START_UP, END, SILENCE = 120.0, 30.0, 10.0
# s: after such a pause the torque controller drops its motion; how often it is given anew.
GAP, TRIES = 0.1, 5
# s, between two looks
LOOK = 0.2
# s, from now to the beginning of a motion: its message must arrive before
AHEAD = 0.5
NO_LOAD = 1e-6         # N m or N
RETRY = 1.0             # s

# Shows the present state, a few times a second.
Show: TypeAlias = Callable[['Stage'], None]
# From the time of a sample, s since the epoch, and positions to errors, rad or m.
Errors: TypeAlias = Callable[[float, np.ndarray], np.ndarray]


class Plot(Protocol):
    """What the stage must know of a story."""

    start: np.ndarray
    bound: float
    word: str


class Sample(NamedTuple):
    """
    A state of the robot.

    Attributes
    ----------
    t : float
        s, since the first one that was recorded.
    q, tau, error : ndarray
        Positions, efforts that act, and errors: rad or m, N m or N.

    """

    t: float
    q: np.ndarray
    tau: np.ndarray
    error: np.ndarray


class Phase(NamedTuple):
    """
    A part of the demo.

    Attributes
    ----------
    name : str
        What happens.
    good : bool
        Whether errors are to be small.
    first : int
        Its first sample.

    """

    name: str
    good: bool
    first: int


class Stage:
    """
    A robot and its controller, in processes of their own, and this node, which watches them.

    Parameters
    ----------
    model : Model
        The robot.
    urdf : pathlib.Path
        Its file.
    robot : {'simulated_robot', 'mujoco_robot'}
        The node that is the robot.
    story : Plot
        Where the robot begins, and which errors are small.
    show : callable
        Called a few times a second while something happens.

    Attributes
    ----------
    start : ndarray
        Where the robot begins.
    bound : float
        rad or m: smaller errors are small.
    word : str
        What errors are called.
    note : str
        What is to be known besides.
    samples : list of Sample
        All that was recorded.
    phases : list of Phase
        Its parts.

    """

    def __init__(self, model: Model, urdf: Path, robot: str, story: Plot, show: Show) -> None:
        self.model, self.urdf, self.robot, self._show = model, urdf, robot, show
        self.start, self.bound, self.word, self.note = story.start, story.bound, story.word, ''
        self.samples: list[Sample] = []
        self.phases: list[Phase] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._state: JointState | None = None
        self._torques_known = False
        # s, from states to their torques, since the last phase that may be repeated began.
        self._delays: list[float] = []
        # s since the epoch, of the first sample.
        self._began: float | None = None
        self._trajectories: Publisher | None = None
        self._pushes: Publisher | None = None
        self._folder = TemporaryDirectory()
        # Not the executor of rclpy.spin_once, which outlives a shutdown and crashes after it.
        self._node, self._executor = rclpy.create_node('demo'), SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._node.create_subscription(JointState, 'joint_states', self._on_state,
                                       qos_profile_sensor_data)

    # -- Nodes. ----------------------------------------------------------------------------------

    def play(self, controller: str, *, robot: dict[str, Any] | None = None,
             parameters: dict[str, Any] | None = None) -> None:
        """
        Start both nodes, and wait until the robot follows its controller.

        Parameters
        ----------
        controller : {'dynamics_node', 'torque_controller'}
            The node that commands.
        robot, parameters : dict
            Parameters of both nodes.

        """
        name = controller.removesuffix('_node')
        self.commands = f'/{name}/effort_commands'
        drives = Path(self._folder.name) / 'drives.yaml'
        save_drives(self.model, drives)
        self._launch(self.robot, {'urdf': str(self.urdf), 'drives': str(drives),
                                  'initial_positions': self.start.tolist(),
                                  **(robot or {})}, '-r', f'~/commands:={self.commands}')
        self._controller = name
        self._torques = self._node.create_subscription(
            JointState, f'/{name}/gravity_torques', self._on_torques, qos_profile_sensor_data)
        self._launch(controller, parameters or {}, '--params-file', str(drives))
        self._wait('joint states', lambda: self._state is not None)
        self._wait('gravity torques', lambda: self._torques_known)
        if np.any(np.abs(gravity_torques(self.model, self.start)) > NO_LOAD):
            self._wait('the robot to follow',
                       lambda: self._state is not None and any(self._state.effort))
        self._delays.clear()

    def _launch(self, name: str, parameters: dict[str, Any], *arguments: str) -> None:
        given = [part for key, value in parameters.items()
                 for part in ('-p', f'{key}:={_yaml(value)}')]
        self._processes[name] = subprocess.Popen(
            [sys.executable, '-m', f'rbd_ros.ros.{name}', '--ros-args', '--log-level', 'warn',
             *given, *arguments])

    def end(self, name: str, number: int = signal.SIGINT) -> None:
        """End a node by a signal; its exit code must be 0."""
        process = self._processes[name]
        process.send_signal(number)
        try:
            code = process.wait(timeout=END)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f'{name} did not end within {END:.0f} s') from None
        del self._processes[name]
        if code != 0:
            raise DemoFailed(f'{name} ended with the exit code {code}')

    def close(self) -> None:
        """End what is still running."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._executor.shutdown()
        self._node.destroy_node()
        self._folder.cleanup()

    def release(self) -> None:
        """End the node that commands, and command zeros in its place."""
        self.end(next(name for name in self._processes if name != self.robot))
        self._node.destroy_subscription(self._torques)
        publisher = self._node.create_publisher(Float64MultiArray, self.commands, 10)
        self._wait('the robot to listen', lambda: publisher.get_subscription_count() > 0)
        publisher.publish(Float64MultiArray(data=[0.0] * self.model.nv))

    def tune(self, **parameters: Any) -> None:
        """Set parameters of the torque controller; dots in their names are underscores twice."""
        client = AsyncParameterClient(self._node, self._controller)
        self._wait('the parameters of the controller', client.services_are_ready)
        wanted = [Parameter(name.replace('__', '.'), value=value)
                  for name, value in parameters.items()]
        end = monotonic() + START_UP
        while True:
            answer = client.set_parameters(wanted)
            self._wait('an answer', answer.done)
            reasons = [result.reason for result in getattr(answer.result(), 'results', ())
                       if not result.successful]
            if not reasons:
                return
            # At the first start, some modes are ready later than others.
            if BEING_COMPILED not in reasons[0] or monotonic() > end:
                raise DemoFailed(reasons[0])
            self._wait('its kernels', partial(passed, monotonic() + RETRY))

    # -- Listening. ------------------------------------------------------------------------------

    def _on_state(self, message: JointState) -> None:
        self._state = message

    def _on_torques(self, message: JointState) -> None:
        self._torques_known = bool(np.all(np.isfinite(message.effort)))
        self._delays.append(time() - seconds(message.header.stamp))

    def _wait(self, what: str, arrived: Callable[[], bool]) -> None:
        """Spin until something has arrived."""
        if arrived():
            return
        print(f'Waiting for {what} ...', flush=True)
        end = monotonic() + START_UP
        while not arrived():
            self._executor.spin_once(timeout_sec=0.1)
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise DemoFailed(f'{name} ended by itself, exit code {process.returncode}')
            if monotonic() > end:
                raise DemoFailed(f'no sign of {what} within {START_UP:.0f} s')

    def watch(self, name: str, duration: float, errors: Errors | None = None, *,
              good: bool = True) -> list[Sample]:
        """
        Record and show the robot for a while.

        Parameters
        ----------
        name : str
            What happens.
        duration : float
            s.
        errors : callable, optional
            From time and positions to errors; default: the way from the start.
        good : bool
            Whether errors are to be small.

        Returns
        -------
        list of Sample
            What was recorded.

        """
        errors = errors or (lambda _, q: q - self.start)
        first, begin, shown = len(self.samples), monotonic(), 0.0
        self.phases.append(Phase(name, good, first))
        while (now := monotonic() - begin) < duration:
            self._state, silent = None, monotonic() + SILENCE
            while self._state is None:
                self._executor.spin_once(timeout_sec=0.5)
                if monotonic() > silent:
                    raise DemoFailed('the robot no longer sends joint states')
            self._record(self._state, errors)
            if now >= shown:
                shown = now + LOOK
                self._show(self)
        return self.samples[first:]

    def _record(self, state: JointState, errors: Errors) -> None:
        order = [state.name.index(name) for name in self.model.position_names]
        q, stamp = np.array(state.position)[order], seconds(state.header.stamp)
        if self._began is None:
            self._began = stamp
        self.samples.append(Sample(stamp - self._began, q, np.array(state.effort)[order],
                                   errors(stamp, q)))

    # -- What the robot is to do. ----------------------------------------------------------------

    def follow(self, name: str, motion: Motion, *, good: bool = True) -> list[Sample]:
        """
        Let the robot follow a motion, without a pause of the machine.

        Parameters
        ----------
        name : str
            What happens.
        motion : Motion
            It begins where the robot is to go first.
        good : bool
            Whether errors are to be small.

        Returns
        -------
        list of Sample
            What was recorded of the motion itself.

        """
        return self.without_pause(lambda: self._follow(name, motion, good))

    def _follow(self, name: str, motion: Motion, good: bool) -> list[Sample]:
        """Let the robot follow a motion once."""
        publisher = self._trajectories
        if publisher is None:
            publisher = self._trajectories = self._node.create_publisher(
                JointTrajectory, f'/{self._controller}/joint_trajectory', 10)
        self._wait('the controller to listen', lambda: publisher.get_subscription_count() > 0)
        begin = time() + AHEAD
        publisher.publish(motion.message(begin))
        begin += LEAD
        self.watch('held where it begins', begin - time(), good=good)
        return self.watch(name, motion.duration, lambda t, q: motion.at(t - begin) - q, good=good)

    def without_pause(self, act: Callable[[], list[Sample]]) -> list[Sample]:
        """
        Let something happen, and again if the machine paused: the controller then dropped it.

        Parameters
        ----------
        act : callable
            Lets it happen, and returns what was recorded.

        Returns
        -------
        list of Sample
            What was recorded the last time.

        """
        for left in reversed(range(TRIES)):
            first, phases = len(self.samples), len(self.phases)
            self._delays.clear()
            result = act()
            pause = self.longest_pause(first)
            if pause < GAP:
                break
            print(f'The machine paused for {pause:.2f} s, and the controller dropped its motion, '
                  'as it must.', flush=True)
            if left:
                del self.samples[first:], self.phases[phases:]
        return result

    def push(self, force: np.ndarray) -> None:
        """Push the robot from now on, N, in the axes of the root."""
        publisher = self._pushes
        if publisher is None:
            publisher = self._pushes = self._node.create_publisher(
                Wrench, f'/{self.robot}/push', 10)
        self._wait('the robot to listen', lambda: publisher.get_subscription_count() > 0)
        publisher.publish(Wrench(force=Vector3(**dict(zip('xyz', map(float, force))))))

    def unit(self, k: int) -> tuple[str, str]:
        """Return the units of position and effort of a joint."""
        return ('rad', 'N m') if self.model.angular[k] else ('m', 'N')

    # -- What came of it. ------------------------------------------------------------------------

    @property
    def delays(self) -> tuple[float, float]:
        """Return median and largest delay of the torques, s."""
        return (median(self._delays), max(self._delays)) if self._delays else (np.nan, np.nan)

    def longest_pause(self, first: int) -> float:
        """Return the longest pause of states or torques since a sample, s."""
        times = [sample.t for sample in self.samples[first:]]
        return max([*np.diff(times), *self._delays], default=0.0)


def passed(end: float) -> bool:
    """Return whether a time of `monotonic` has passed."""
    return monotonic() > end


def _yaml(value: Any) -> str:
    """Return a value as parameters are written on the command line."""
    if isinstance(value, bool):
        return str(value).lower()
    if isinstance(value, (list, tuple)):
        return '[' + ', '.join(map(_yaml, value)) + ']'
    text = str(value)
    return text.replace('e', '.0e') if isinstance(value, float) and '.' not in text else text
