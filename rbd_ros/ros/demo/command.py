# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Show what rbd_ros does for a robot, with real nodes that communicate over DDS.

The robot and its controller run as separate processes, and this one observes them. By default
gravity torques hold the robot, which then falls without them; the other modes show control laws.
The exit code is 0 only if all acceptance criteria are met; each is printed with its numbers.

"""

import argparse
from contextlib import nullcontext
import os
from pathlib import Path
import sys

from rbd_ros import Model
from rbd_ros.model.files.any_format import read_description
from rbd_ros.ros.demo.gravity import GravityMode, LoopMode
from rbd_ros.ros.demo.picture import draw
from rbd_ros.ros.demo.robots import choose_engine, DemoFailed
from rbd_ros.ros.demo.session import Mode, Session
from rbd_ros.ros.demo.table import live_table, plain_lines
from rbd_ros.ros.demo.torque_modes import (
    AdaptiveMode, ComputedTorqueMode, HybridMode, ImpedanceMode)
from rbd_ros.ros.nodes.simulated_control import with_rotors
from rbd_ros.ros.robot.read_model import load_quietly
from rbd_ros.ros.runtime.share_directory import share
import rclpy
from rclpy.executors import ExternalShutdownException

MODES: dict[str, type[Mode]] = {
    'gravity': GravityMode, 'computed_torque': ComputedTorqueMode, 'hybrid': HybridMode,
    'impedance': ImpedanceMode, 'adaptive': AdaptiveMode, 'loop': LoopMode}


def main(arguments: list[str] | None = None) -> int:
    """Run the demo in a DDS domain of its own and return the exit code."""
    parser = argparse.ArgumentParser(prog='make demo', description=__doc__)
    parser.add_argument('--urdf', type=Path, help='the robot (default: an arm with seven joints, '
                        'or with closed loops)')
    parser.add_argument('--mode', default='gravity', help=f'one of {", ".join(MODES)}')
    parser.add_argument('--engine', default='',
                        help='physics engine: own or mujoco (default: mujoco if possible)')
    parser.add_argument('--headless', action='store_true', help='plain lines instead of a table')
    parser.add_argument('--plot', type=Path, default=Path('demo.png'), help='file of the plot')
    options = parser.parse_args(arguments)
    for name, value, choices in (('MODE', options.mode, tuple(MODES)),
                                 ('ENGINE', options.engine, ('', 'own', 'mujoco'))):
        if value not in choices:
            print(f"The demo failed: {name} must be one of {', '.join(filter(None, choices))}, "
                  f"got '{value}'")
            return 1
    # Nodes of other domains on this network neither disturb the demo nor notice it.
    from domain_coordinator import domain_id
    with domain_id() as domain:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        return _main(options)


def prepare(name: str, urdf: str, model: Model, engine: str) -> tuple[Mode, str, str]:
    """Return a mode, the node that simulates the robot, and a line about the engine."""
    if model.unconstrained.nq != model.unconstrained.nv or not model.nv:
        raise DemoFailed(f"robot '{model.name}' needs joints with one coordinate each")
    kind = MODES[name]
    if kind.needs_mujoco and engine == 'own':
        raise DemoFailed(f'MODE={name} needs MuJoCo: {kind.needs_mujoco}. Omit ENGINE=own')
    mode = kind(with_rotors(model) if kind.rotors else model)
    robot, line = choose_engine(engine, urdf, model, mode.start)
    if kind.needs_mujoco and robot != 'mujoco_robot':
        raise DemoFailed(f'MODE={name} needs MuJoCo: {kind.needs_mujoco}. {line}')
    return mode, robot, line


def _main(options: argparse.Namespace) -> int:
    show, live = plain_lines(), None
    if not options.headless and sys.stdout.isatty():
        show, live = live_table()
    rclpy.init()
    session = None
    try:
        urdf = options.urdf or share('urdf', MODES[options.mode].urdf)
        text = read_description(urdf)
        mode, robot, line = prepare(options.mode, text, load_quietly(text), options.engine)
        print(line, mode.introduction, sep='\n', flush=True)
        session = Session(mode, urdf, robot, show)
        with live or nullcontext():
            checks = mode.run(session)
        for check in checks:
            print(check.text if check.passed else f'FAILED: {check.text}')
        draw(session).savefig(options.plot, dpi=110)
        print(f'Plot: {options.plot}')
        if all(check.passed for check in checks):
            print('All checks passed.')
            return 0
        print(f'The demo failed: {mode.explain_failure(session)}.')
    except (KeyboardInterrupt, ExternalShutdownException):
        print('Interrupted.')
    except (DemoFailed, ValueError, OSError) as error:
        print(f'The demo failed: {error}')
    finally:
        if session:
            session.close()
        rclpy.try_shutdown()
    return 1
