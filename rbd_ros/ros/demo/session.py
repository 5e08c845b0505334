# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The running nodes of the demo, a recording of the robot, and what is a mode of the demo."""

from collections.abc import Callable
from pathlib import Path
import signal
from statistics import median
import subprocess
import sys
from tempfile import TemporaryDirectory
from time import monotonic, time
from typing import Any, ClassVar, NamedTuple, TypeAlias

from geometry_msgs.msg import Vector3, Wrench
import numpy as np
from rbd_ros import gravity_torques, Model
from rbd_ros.kernels.jit.compiled import BEING_COMPILED
from rbd_ros.model import save_drives
from rbd_ros.ros.convert import seconds
from rbd_ros.ros.demo.motions import LEAD, Motion
from rbd_ros.ros.demo.robots import DemoFailed, heavy_position, units
import rclpy
from rclpy.executors import SingleThreadedExecutor
from rclpy.parameter import Parameter
from rclpy.parameter_client import AsyncParameterClient
from rclpy.publisher import Publisher
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray
from trajectory_msgs.msg import JointTrajectory
import yaml

# s, timeouts: start of a node, kernels being compiled; its end; next joint state
START_TIMEOUT, END_TIMEOUT, STATE_TIMEOUT = 120.0, 30.0, 10.0
# s: after such a pause the torque controller aborts its motion; attempts at a motion.
MAX_PAUSE, ATTEMPTS = 0.1, 5
SHOW_PERIOD = 0.2      # s
# s before a motion begins: its message must arrive in time.
MESSAGE_LEAD = 0.5
MIN_GRAVITY_TORQUE = 1e-6    # N m or N
RETRY_PERIOD = 1.0     # s

Show: TypeAlias = Callable[['Session'], None]
# Maps the time of a sample, s since the epoch, and positions to errors, rad or m.
Errors: TypeAlias = Callable[[float, np.ndarray], np.ndarray]


class Sample(NamedTuple):
    """A state of the robot."""

    t: float    # s, since the first sample
    # Positions, acting efforts and errors: rad or m, N m or N.
    q: np.ndarray
    tau: np.ndarray
    error: np.ndarray


class Phase(NamedTuple):
    """A part of the demo."""

    name: str
    accurate: bool    # Whether errors should be small
    first: int    # Index of its first sample


class Check(NamedTuple):
    """An acceptance criterion: measured value and limit as text, and whether it is met."""

    text: str
    passed: bool


class Strip(NamedTuple):
    """A quantity over time, one row of the picture."""

    name: str
    unit: str
    # One for each sample.
    values: np.ndarray
    desired: np.ndarray | None = None
    tolerance: float | None = None    # For errors: those below are small


class Mode:
    """A mode of the demo: what it shows, and its acceptance criteria."""

    # Title of the picture, and the text printed first.
    title: ClassVar[str]
    introduction: ClassVar[str]
    urdf: ClassVar[str] = 'demo_arm.urdf'    # The robot by default
    # Why simulated_robot cannot simulate this mode; empty: it can.
    needs_mujoco: ClassVar[str] = ''
    rotors: ClassVar[bool] = True    # Whether rotor inertias are added to the model
    # rad or m: errors below are small; and the name of errors.
    tolerance: float
    error_name: str = 'error'

    def __init__(self, model: Model) -> None:
        self.model = model
        self.start = self._choose_start()
        # The same for independent joints, of which the samples are.
        self.own_start = self.start if model.loops is None else self.start[model.loops.own]

    def _choose_start(self) -> np.ndarray:
        return heavy_position(self.model)

    def run(self, session: 'Session') -> list[Check]:
        """Run the mode and return its checks."""
        raise NotImplementedError

    def poses(self, session: 'Session') -> list[np.ndarray]:
        """Return positions for the picture, from the first to the last."""
        first = next(phase.first for phase in reversed(session.phases) if phase.accurate)
        samples = session.samples[first:]
        return [samples[k].q for k in np.linspace(0, len(samples) - 1, 12).astype(int)]

    def strips(self, session: 'Session') -> list[Strip]:
        """Return the rows of the picture next to the torques: errors."""
        errors = np.array([sample.error for sample in session.samples])
        return [Strip(name, units(self.model, k)[0], column, tolerance=self.tolerance)
                for k, (name, column) in enumerate(zip(self.model.velocity_names, errors.T))]

    def explain_failure(self, session: 'Session') -> str:
        """Return a likely reason for a failed check."""
        if self.model.friction.any():
            return ('the joints have dry friction in the URDF, up to '
                    f'{self.model.friction.max():.3g} N m or N, which holds slow joints and bears '
                    'part of each push')
        return (f'torques were up to {1e3 * session.delays[1]:.0f} ms late in the last phase. '
                'Control degrades from 20 ms, and after 100 ms the controller aborts its motion: '
                'try again on a less busy machine')


def rms(samples: list[Sample]) -> np.ndarray:
    """Return the RMS error of each joint."""
    return np.sqrt(np.mean(np.square([sample.error for sample in samples]), axis=0))


def worst(model: Model, errors: np.ndarray) -> str:
    """Return the largest error, with its unit and joint."""
    k = int(np.argmax(np.abs(errors)))
    return f"{abs(errors[k]):.2g} {units(model, k)[0]} ('{model.velocity_names[k]}')"


class Session:
    """
    A robot and its controller in separate processes, and a node that commands and records them.

    The node `robot` simulates the robot of `mode`, read from `urdf`, from its start. `show` is
    called a few times a second with the session.

    """

    def __init__(self, mode: Mode, urdf: Path, robot: str, show: Show) -> None:
        self.mode, self.urdf, self.robot, self._show = mode, urdf, robot, show
        self.note = ''
        self.samples: list[Sample] = []
        self.phases: list[Phase] = []
        self._processes: dict[str, subprocess.Popen[bytes]] = {}
        self._state: JointState | None = None
        self._torques_known = False
        # Parameters of the controller that were set since it was launched.
        self._changed: dict[str, Any] = {}
        # s: latencies of torques in the current phase or repeatable action.
        self._delays: list[float] = []
        # Time of the first sample, s since the epoch.
        self._began: float | None = None
        self._publishers: dict[str, Publisher] = {}
        self._folder = TemporaryDirectory()
        # Not the executor of rclpy.spin_once, which crashes if rclpy is shut down first.
        self._node, self._executor = rclpy.create_node('demo'), SingleThreadedExecutor()
        self._executor.add_node(self._node)
        self._node.create_subscription(JointState, 'joint_states', self._on_state,
                                       qos_profile_sensor_data)

    def launch(self, controller: str, *, robot: dict[str, Any],
               parameters: dict[str, Any]) -> None:
        """Start both nodes with parameters; wait until the robot follows its controller."""
        name = controller.removesuffix('_node')
        self.commands = f'/{name}/effort_commands'
        self._launched, self._changed = (controller, robot, parameters), {}
        drives = Path(self._folder.name) / 'drives.yaml'
        save_drives(self.mode.model, drives)
        self._start(self.robot, {
            'urdf': str(self.urdf), 'drives': str(drives),
            'initial_positions': self.mode.own_start.tolist(), **robot},
                    '-r', f'~/commands:={self.commands}')
        self._controller = name
        self._torques = self._node.create_subscription(
            JointState, f'/{name}/gravity_torques', self._on_torques, qos_profile_sensor_data)
        self._start(controller, parameters, '--params-file', str(drives))
        self._wait('joint states', lambda: self._state is not None)
        self._wait('gravity torques', lambda: self._torques_known)
        if np.any(np.abs(gravity_torques(self.mode.model, self.mode.start)) > MIN_GRAVITY_TORQUE):
            self._wait('the robot to follow',
                       lambda: self._state is not None and any(self._state.effort))
        self._delays.clear()

    def restart(self) -> None:
        """Restart both nodes with their current parameters, the robot at rest at the start."""
        (controller, robot, parameters), changed = self._launched, self._changed
        for name in list(self._processes):
            self.stop(name)
        self._node.destroy_subscription(self._torques)
        self._state, self._torques_known = None, False
        self.launch(controller, robot=robot, parameters=parameters)
        if changed:
            self.set_parameters(**changed)

    def _start(self, name: str, parameters: dict[str, Any], *arguments: str) -> None:
        path = Path(self._folder.name) / f'{name}.yaml'
        path.write_text(yaml.safe_dump({'/**': {'ros__parameters': parameters}}))
        self._processes[name] = subprocess.Popen(
            [sys.executable, '-m', 'rbd_ros.ros.nodes', name, '--ros-args',
             '--log-level', 'warn', '--params-file', str(path), *arguments])

    def stop(self, name: str, number: int = signal.SIGINT) -> None:
        """Stop a node by a signal; its exit code must be 0."""
        process = self._processes[name]
        process.send_signal(number)
        try:
            code = process.wait(timeout=END_TIMEOUT)
        except subprocess.TimeoutExpired:
            raise DemoFailed(f'{name} did not end within {END_TIMEOUT:.0f} s') from None
        del self._processes[name]
        if code != 0:
            raise DemoFailed(f'{name} ended with exit code {code}')

    def close(self) -> None:
        """Kill the nodes that are still running."""
        for process in self._processes.values():
            process.kill()
            process.wait()
        self._executor.shutdown()
        self._node.destroy_node()
        self._folder.cleanup()

    def release(self, torques: np.ndarray) -> None:
        """Stop the controller, and command constant torques, N m or N, in its place."""
        self.stop(next(name for name in self._processes if name != self.robot))
        self._node.destroy_subscription(self._torques)
        self._publisher(Float64MultiArray, self.commands).publish(
            Float64MultiArray(data=torques.tolist()))

    def set_parameters(self, **parameters: Any) -> None:
        """Set parameters of the torque controller; a double underscore stands for a dot."""
        client = AsyncParameterClient(self._node, self._controller)
        self._wait('the parameter services of the controller', client.services_are_ready)
        wanted = [Parameter(name.replace('__', '.'), value=value)
                  for name, value in parameters.items()]
        end = monotonic() + START_TIMEOUT
        while True:
            answer = client.set_parameters(wanted)
            self._wait('an answer', answer.done)
            reasons = [result.reason for result in getattr(answer.result(), 'results', ())
                       if not result.successful]
            if not reasons:
                self._changed.update(parameters)
                return
            # At the first start, kernels of some modes are still being compiled.
            if BEING_COMPILED not in reasons[0] or monotonic() > end:
                raise DemoFailed(reasons[0])
            self._wait_until(monotonic() + RETRY_PERIOD, 'its kernels')

    def _on_state(self, message: JointState) -> None:
        self._state = message

    def _on_torques(self, message: JointState) -> None:
        self._torques_known = bool(np.all(np.isfinite(message.effort)))
        self._delays.append(time() - seconds(message.header.stamp))

    def _wait(self, what: str, arrived: Callable[[], bool]) -> None:
        if arrived():
            return
        print(f'Waiting for {what} ...', flush=True)
        end = monotonic() + START_TIMEOUT
        while not arrived():
            self._executor.spin_once(timeout_sec=0.1)
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise DemoFailed(f'{name} ended unexpectedly, exit code {process.returncode}')
            if monotonic() > end:
                raise DemoFailed(f'timeout after {START_TIMEOUT:.0f} s: {what}')

    def _wait_until(self, end: float, what: str) -> None:
        self._wait(what, lambda: monotonic() > end)

    def watch(self, name: str, duration: float, errors: Errors | None = None, *,
              accurate: bool = True) -> list[Sample]:
        """Record and show a phase of `duration` s; default of errors: distance from the start."""
        errors = errors or (lambda _, q: q - self.mode.own_start)
        first, begin, shown = len(self.samples), monotonic(), 0.0
        self.phases.append(Phase(name, accurate, first))
        while (now := monotonic() - begin) < duration:
            self._state, silent = None, monotonic() + STATE_TIMEOUT
            while self._state is None:
                self._executor.spin_once(timeout_sec=0.5)
                if monotonic() > silent:
                    raise DemoFailed('the robot has stopped sending joint states')
            self._record(self._state, errors)
            if now >= shown:
                shown = now + SHOW_PERIOD
                self._show(self)
        return self.samples[first:]

    def _record(self, state: JointState, errors: Errors) -> None:
        order = [state.name.index(name) for name in self.mode.model.velocity_names]
        q, stamp = np.array(state.position)[order], seconds(state.header.stamp)
        if self._began is None:
            self._began = stamp
        self.samples.append(Sample(stamp - self._began, q, np.array(state.effort)[order],
                                   errors(stamp, q)))

    def follow(self, name: str, motion: Motion, *, accurate: bool = True) -> list[Sample]:
        """Record the robot while it follows a motion; repeat it after a pause of the machine."""
        return self.repeat_after_pause(lambda: self._follow(name, motion, accurate))

    def _follow(self, name: str, motion: Motion, accurate: bool) -> list[Sample]:
        """Wait at the first position, follow a motion once, and return its samples."""
        publisher = self._publisher(JointTrajectory, f'/{self._controller}/joint_trajectory')
        begin = time() + MESSAGE_LEAD
        publisher.publish(motion.message(begin))
        begin += LEAD
        self.watch('held at the start', begin - time(), accurate=accurate)
        return self.watch(name, motion.duration, lambda t, q: motion.at(t - begin) - q,
                          accurate=accurate)

    def repeat_after_pause(self, action: Callable[[], list[Sample]]) -> list[Sample]:
        """Return the samples of an action; after a pause, restart and repeat it."""
        first, phases, pauses = len(self.samples), len(self.phases), []
        while True:
            self._delays.clear()
            result = action()
            pauses.append(self.longest_pause(first))
            if pauses[-1] < MAX_PAUSE:
                return result
            if len(pauses) == ATTEMPTS:
                raise DemoFailed(
                    f'the machine is too busy: in {ATTEMPTS} attempts it paused for '
                    f'{min(pauses):.2f} s to {max(pauses):.2f} s, and the controller aborts a '
                    f'motion after {MAX_PAUSE:g} s')
            print(f'The machine paused for {pauses[-1]:.2f} s, so the controller aborted its '
                  'motion. It is repeated from the start.', flush=True)
            del self.samples[first:], self.phases[phases:]
            self.restart()

    def push(self, force: np.ndarray) -> None:
        """Push the robot from now on with a force, N, in the axes of the root."""
        self._publisher(Wrench, f'/{self.robot}/push').publish(
            Wrench(force=Vector3(**dict(zip('xyz', map(float, force))))))

    def _publisher(self, kind: type, topic: str) -> Publisher:
        if topic not in self._publishers:
            self._publishers[topic] = self._node.create_publisher(kind, topic, 10)
        self._wait(f'a subscriber of {topic}',
                   lambda: self._publishers[topic].get_subscription_count() > 0)
        return self._publishers[topic]

    @property
    def delays(self) -> tuple[float, float]:
        """Return the median and largest latency of the torques, s."""
        return (median(self._delays), max(self._delays)) if self._delays else (np.nan, np.nan)

    def longest_pause(self, first: int) -> float:
        """Return the longest pause of states or torques since a sample, s."""
        times = [sample.t for sample in self.samples[first:]]
        return max([*np.diff(times), *self._delays], default=0.0)
