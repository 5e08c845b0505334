# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Show that gravity torques hold a robot still, with real nodes that communicate over DDS.

A simulated robot and the dynamics node run as processes of their own. In the first phase the
robot follows the node's effort commands, in the second its commands are zero. The exit code is 0
only if it held still in the first phase and fell in the second. The delay of the torques is
measured: if they are too late, even correct ones cannot hold an inverted pose.

"""

import argparse
from collections.abc import Callable
from contextlib import nullcontext
import os
from pathlib import Path
import signal
from statistics import median
import subprocess
import sys
from time import monotonic, time
from typing import Any, TypeAlias
import warnings

import numpy as np
from rbd_ros import gravity_torques, load_urdf, Model, ModelError, ModelWarning
from rbd_ros.mujoco_robot import MujocoRobot
from rbd_ros.ros.convert import seconds
from rbd_ros.ros.share_directory import share
from rbd_ros.ros.simulated_robot import rest_position
import rclpy
from rclpy.qos import qos_profile_sensor_data
from sensor_msgs.msg import JointState
from std_msgs.msg import Float64MultiArray

HELD = 1e-3            # rad or m, the most that a joint may drift in the first phase
FELL = 10.0 * HELD     # rad or m, the least that some joint must move in the second
COMPENSATED = 10.0     # s, duration of the first phase
RELEASED = 3.0         # s, duration of the second phase
START_UP = 120.0       # s, for a node to compile its kernels for the first time
TOLERATED_DELAY = 0.05     # s, delay of the commands that the simulated joints are damped for
NO_LOAD = 1e-6         # N m or N
COMMANDS = '/dynamics/effort_commands'

# Shows the demo: the phase, the time in it and the demo itself.
Show: TypeAlias = Callable[[str, float, 'Demo'], None]


class DemoFailed(Exception):
    """The demo could not be run; the message says why."""


def heavy_position(model: Model) -> np.ndarray:
    """Return, of 200 positions in the middle of the limits, the one that is hardest to hold."""
    rng = np.random.default_rng(0)
    middle, half = rest_position(model), np.full(model.nv, 1.5)
    limited = np.isfinite(model.lower) & np.isfinite(model.upper)
    middle[limited] = 0.5 * (model.lower + model.upper)[limited]
    half[limited] = np.minimum(1.5, 0.4 * (model.upper - model.lower)[limited])
    tries = middle + half * rng.uniform(-1.0, 1.0, (200, model.nv))
    return max(tries, key=lambda q: np.linalg.norm(gravity_torques(model, q)))


def chosen_engine(wanted: str, urdf: str, model: Model) -> tuple[str, str]:
    """
    Choose what computes the motion.

    Parameters
    ----------
    wanted : {'', 'own', 'mujoco'}
        Empty: MuJoCo if it is installed and takes the robot.
    urdf : str
        The URDF, as text.
    model : Model
        The robot.

    Returns
    -------
    node, line : str
        The node to start, and what to tell the user.

    Raises
    ------
    ModelError
        If MuJoCo is wanted, and is not installed or refuses the robot.

    """
    if wanted == 'own':
        return 'simulated_robot', 'Physics by rbd_ros itself.'
    try:
        MujocoRobot(urdf, model)
    except ModelError as error:
        if wanted:
            raise
        return 'simulated_robot', f'Physics by rbd_ros itself: {error}'
    return 'mujoco_robot', 'Physics by MuJoCo; ENGINE=own is that of rbd_ros.'


def fixed(value: float, form: str) -> str:
    """Return a number with its sign in some format; what is rounded to zero is positive."""
    return f'{float(f"{value:{form}}") + 0.0:+{form}}'


class Demo:
    """
    The two phases.

    Parameters
    ----------
    urdf : pathlib.Path
        The robot.
    engine : {'', 'own', 'mujoco'}
        What computes its motion; empty: MuJoCo if possible.
    show : callable
        Called with the phase, the time in it and the demo itself a few times a second.

    """

    def __init__(self, urdf: Path, engine: str, show: Show) -> None:
        self.urdf, self._show = urdf, show
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            self.model = load_urdf(urdf)
        if self.model.nq != self.model.nv or not self.model.nv:
            raise DemoFailed(f"robot '{self.model.name}' needs joints with one coordinate each")
        self._robot, line = chosen_engine(engine, urdf.read_text(), self.model)
        print(line, flush=True)
        self.start = heavy_position(self.model)
        self.q: np.ndarray | None = None
        self.torque = np.full(self.model.nv, np.nan)
        # Time since the first phase began, s, and q.
        self.history: list[tuple[float, np.ndarray]] = []
        # s, from a state to its torques.
        self._delays: list[float] = []
        self._processes: dict[str, subprocess.Popen] = {}

    # -- Nodes. ----------------------------------------------------------------------------------

    def _launch(self, name: str, *arguments: str) -> None:
        self._processes[name] = subprocess.Popen(
            [sys.executable, '-m', f'rbd_ros.ros.{name}', '--ros-args', '--log-level', 'warn',
             *arguments])

    def _end(self, name: str, number: int) -> None:
        """End a node by a signal; its exit code must be 0."""
        process = self._processes.pop(name)
        process.send_signal(number)
        code = process.wait(timeout=10.0)
        if code != 0:
            raise DemoFailed(f'{name} ended with the exit code {code}')

    def close(self) -> None:
        """End what is still running."""
        for process in self._processes.values():
            process.kill()
            process.wait()

    # -- Listening. ------------------------------------------------------------------------------

    def _on_state(self, message: JointState) -> None:
        order = [message.name.index(name) for name in self.model.position_names]
        self.q = np.array(message.position)[order]

    def _on_torque(self, message: JointState) -> None:
        self.torque = np.array(message.effort)
        self._delays.append(time() - seconds(message.header.stamp))

    def _wait(self, what: str, arrived: Callable[[], bool]) -> None:
        """Spin until something has arrived."""
        print(f'Waiting for {what} ...', flush=True)
        end = monotonic() + START_UP
        while not arrived():
            rclpy.spin_once(self._node, timeout_sec=0.1)
            for name, process in self._processes.items():
                if process.poll() is not None:
                    raise DemoFailed(f'{name} ended by itself, exit code {process.returncode}')
            if monotonic() > end:
                raise DemoFailed(f'no {what} within {START_UP:.0f} s')

    def _watch(self, phase: str, duration: float) -> float:
        """Record and show the robot for a while."""
        begin, shown = monotonic(), 0.0
        first = len(self.history)
        offset = self.history[-1][0] if self.history else 0.0
        while (now := monotonic() - begin) < duration:
            self.q = None
            while self.q is None and monotonic() - begin < duration + 2.0:
                rclpy.spin_once(self._node, timeout_sec=0.5)
            if self.q is None:
                raise DemoFailed('the robot no longer sends joint states')
            self.history.append((offset + now, self.q))
            if now >= shown:
                shown += 0.2
                self._show(phase, now, self)
        path = np.array([q for _, q in self.history])
        return np.max(np.abs(path[first:] - path[0]))

    # -- The demo. -------------------------------------------------------------------------------

    def run(self) -> tuple[float, float, float, float]:
        """
        Run both phases.

        Returns
        -------
        tuple of float
            The largest distance of a joint from its start in each phase, rad or m; median and
            largest delay of the torques, s.

        """
        self._node = rclpy.create_node('demo')
        self._node.create_subscription(JointState, 'joint_states', self._on_state,
                                       qos_profile_sensor_data)
        torques = self._node.create_subscription(
            JointState, '/dynamics/gravity_torques', self._on_torque, qos_profile_sensor_data)
        positions = ', '.join(f'{x:.17g}' if '.' in f'{x:.17g}' else f'{x:.1f}'
                              for x in self.start)
        self._launch(self._robot, '-p', f'urdf:={self.urdf}',
                     '-p', f'initial_positions:=[{positions}]',
                     '-p', f'tolerated_delay:={TOLERATED_DELAY}', '-r', f'~/commands:={COMMANDS}')
        self._wait('joint states', lambda: self.q is not None)
        self._launch('dynamics_node')
        self._wait('gravity torques', lambda: bool(np.all(np.isfinite(self.torque))))

        self._delays.clear()
        drift = self._watch('held by its gravity torques', COMPENSATED)
        self._end('dynamics_node', signal.SIGINT)
        self._node.destroy_subscription(torques)
        self.torque = np.full(self.model.nv, np.nan)
        commands = self._node.create_publisher(Float64MultiArray, COMMANDS, 10)
        self._wait('the robot to listen', lambda: commands.get_subscription_count() > 0)
        commands.publish(Float64MultiArray(data=[0.0] * self.model.nv))
        fall = self._watch('without', RELEASED)
        self._end(self._robot, signal.SIGTERM)
        return drift, fall, median(self._delays), max(self._delays)


def why_it_fell(usual: float, worst: float) -> str:
    """Return why a robot was not held although its torques are those of its model."""
    if worst > TOLERATED_DELAY:
        return (f'its torques were up to {1e3 * worst:.0f} ms late (the median is '
                f'{1e3 * usual:.0f} ms), and the joints are damped for a delay of '
                f'{1e3 * TOLERATED_DELAY:.0f} ms: in an inverted pose they fall. Try again on a '
                'machine that is less busy')
    return (f'its torques were never more than {1e3 * worst:.0f} ms late, so that is not the '
            'reason: please report it')


def why_it_stayed(model: Model, start: np.ndarray) -> str:
    """Return why a robot did not fall although nothing held it."""
    load = np.abs(gravity_torques(model, start))
    if np.max(load) < NO_LOAD:
        return 'gravity loads none of its joints in any pose'
    left = np.maximum(load - model.friction - model.stribeck_friction, 0.0)
    if not left.any():
        return 'the friction that the URDF gives its joints holds them all'
    with np.errstate(divide='ignore', invalid='ignore'):
        speed = np.where(left > 0.0, left / model.damping, 0.0)
    k = int(np.argmax(speed))
    unit = ('rad', 'N m') if model.angular[k] else ('m', 'N')
    if speed[k] * RELEASED > FELL:
        return 'it may have leaned against the stops of its joints'
    return (f"the URDF damps its joints so much that they creep: '{model.velocity_names[k]}', the "
            f'fastest, at {speed[k]:.2g} {unit[0]}/s under {load[k]:.2g} {unit[1]}')


def plain_lines() -> Show:
    """Return a function that shows the demo in lines of text, one a second."""
    due: dict[str, float] = {}

    def show(phase: str, time: float, demo: Demo) -> None:
        if time >= due.get(phase, 0.0):
            due[phase] = time + 1.0
            worst = np.max(np.abs(demo.history[-1][1] - demo.history[0][1]))
            torque = np.max(np.abs(demo.torque))
            print(f'{phase:28s} {time:5.1f} s   largest drift {worst:.2e} rad or m'
                  + (f'   largest torque {torque:8.3g} N m or N' if np.isfinite(torque) else ''),
                  flush=True)
    return show


def live_table() -> tuple[Show, Any]:
    """Return a function that shows the demo as a table updated in place, and its display."""
    from rich.live import Live
    from rich.table import Table

    live = Live(refresh_per_second=10)

    def show(phase: str, time: float, demo: Demo) -> None:
        table = Table(title=f'{demo.model.name}: {phase}, {time:.1f} s')
        for heading in ('joint', 'position', 'gravity torque', 'drift'):
            table.add_column(heading, justify='left' if heading == 'joint' else 'right')
        for name, angular, q, torque, drift in zip(
                demo.model.velocity_names, demo.model.angular, demo.history[-1][1], demo.torque,
                demo.history[-1][1] - demo.history[0][1]):
            unit, torque_unit = ('rad', 'N m') if angular else ('m', 'N')
            color = 'green' if abs(drift) < HELD else 'red'
            table.add_row(name, f'{fixed(q, ".4f")} {unit}',
                          f'{fixed(torque, ".2f")} {torque_unit}' if np.isfinite(torque)
                          else 'none',
                          f'[{color}]{fixed(drift, ".2e")} {unit}[/{color}]')
        live.update(table)
    return show, live


def plot(demo: Demo, path: Path) -> None:
    """Save both phases as a picture."""
    import matplotlib
    matplotlib.use('Agg')
    from matplotlib import pyplot

    time = [t for t, _ in demo.history]
    change = np.array([q for _, q in demo.history]) - demo.history[0][1]
    figure, axes = pyplot.subplots(figsize=(8.0, 3.6), layout='constrained')
    for name, path_of_joint in zip(demo.model.velocity_names, change.T):
        axes.plot(time, path_of_joint, label=name if demo.model.nv <= 10 else None)
    axes.axvline(COMPENSATED, color='black', linewidth=0.8)
    axes.axvspan(0.0, COMPENSATED, color='tab:green', alpha=0.08)
    axes.axvspan(COMPENSATED, time[-1], color='tab:red', alpha=0.08)
    axes.margins(y=0.12)
    for x, text in ((0.2, 'with the gravity torques of rbd_ros'), (COMPENSATED + 0.1, 'without')):
        axes.text(x, 0.97, text, transform=axes.get_xaxis_transform(), verticalalignment='top')
    axes.set(xlabel='time, s', ylabel='change of position, rad or m', xlim=(0.0, time[-1]),
             title=f'{demo.model.name}: {demo.model.nv} joints, {demo.model.mass:.1f} kg')
    if demo.model.nv <= 10:
        axes.legend(loc='lower left', fontsize='small')
    figure.savefig(path, dpi=120)


def main() -> int:
    """Run the demo and say how it went."""
    parser = argparse.ArgumentParser(prog='make demo', description=__doc__)
    parser.add_argument('--urdf', type=Path, help='the robot (default: an arm with seven joints)')
    parser.add_argument('--engine', choices=('', 'own', 'mujoco'), default='',
                        help='what computes the motion (default: MuJoCo if possible)')
    parser.add_argument('--headless', action='store_true', help='plain lines instead of a table')
    parser.add_argument('--plot', type=Path, default=Path('demo.png'), help='where the plot goes')
    options = parser.parse_args()
    # A domain of its own, to leave nodes that run elsewhere on this network alone.
    from domain_coordinator import domain_id
    with domain_id() as domain:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        return _main(options)


def _main(options: argparse.Namespace) -> int:
    show, live = plain_lines(), None
    if not options.headless and sys.stdout.isatty():
        show, live = live_table()
    rclpy.init()
    demo = None
    try:
        demo = Demo(options.urdf or share('urdf', 'demo_arm.urdf'), options.engine, show)
        with live or nullcontext():
            drift, fall, usual, worst = demo.run()
        print(f'With the gravity torques, {1e3 * usual:.1f} ms late ({1e3 * worst:.1f} ms at the '
              f'worst), the joints moved by at most {drift:.2e} rad or m in {COMPENSATED:.0f} s; '
              f'without them by {fall:.2f}.')
        plot(demo, options.plot)
        print(f'Plot: {options.plot}')
        if drift < HELD and fall > FELL:
            print('The robot held still, and fell without: the demo worked.')
            return 0
        if drift >= HELD:
            print(f'The robot did not hold still: {why_it_fell(usual, worst)}.')
        else:
            print(f'The robot did not fall: {why_it_stayed(demo.model, demo.start)}.')
    except KeyboardInterrupt:
        print('Interrupted.')
    except (DemoFailed, ValueError, OSError) as error:
        print(f'The demo failed: {error}')
    finally:
        if demo:
            demo.close()
        rclpy.try_shutdown()
    return 1


if __name__ == '__main__':
    sys.exit(main())
