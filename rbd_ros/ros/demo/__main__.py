# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Show what rbd_ros does for a robot, with real nodes that communicate over DDS.

A robot and its controller run as processes of their own, and this one watches them. By default
gravity torques hold the robot, and it falls without them; the modes show control laws. The exit
code is 0 only if what the demo promises came true; it prints each promise with its number.

"""

import argparse
from contextlib import nullcontext
import os
from pathlib import Path
import sys
import warnings

from rbd_ros import load_urdf, Model, ModelWarning
from rbd_ros.ros.runtime import entry_points
try:
    import rclpy
    from rclpy.executors import ExternalShutdownException
except ImportError as error:
    raise entry_points.missing('demo', error) from None

from rbd_ros.ros.demo.adaptive import AdaptiveStory    # noqa: I100
from rbd_ros.ros.demo.computed_torque import ComputedTorqueStory
from rbd_ros.ros.demo.gravity import GravityStory
from rbd_ros.ros.demo.hybrid import HybridStory
from rbd_ros.ros.demo.impedance import ImpedanceStory
from rbd_ros.ros.demo.picture import plot
from rbd_ros.ros.demo.robots import chosen_engine, DemoFailed
from rbd_ros.ros.demo.stage import Stage
from rbd_ros.ros.demo.story import Story
from rbd_ros.ros.demo.table import live_table, plain_lines
from rbd_ros.ros.nodes.simulated_control import with_rotors
from rbd_ros.ros.runtime.share_directory import share

STORIES: dict[str, type[Story]] = {
    'gravity': GravityStory, 'computed_torque': ComputedTorqueStory, 'hybrid': HybridStory,
    'impedance': ImpedanceStory, 'adaptive': AdaptiveStory}


def main(arguments: list[str] | None = None) -> int:
    """Run the demo and say how it went."""
    parser = argparse.ArgumentParser(prog='make demo', description=__doc__)
    parser.add_argument('--urdf', type=Path, help='the robot (default: an arm with seven joints)')
    parser.add_argument('--mode', default='gravity', help=f'what to show: {", ".join(STORIES)}')
    parser.add_argument('--engine', default='',
                        help='what computes the motion: own or mujoco (default: MuJoCo if '
                        'possible)')
    parser.add_argument('--headless', action='store_true', help='plain lines instead of a table')
    parser.add_argument('--plot', type=Path, default=Path('demo.png'), help='where the plot goes')
    options = parser.parse_args(arguments)
    for name, value, choices in (('MODE', options.mode, tuple(STORIES)),
                                 ('ENGINE', options.engine, ('', 'own', 'mujoco'))):
        if value not in choices:
            print(f"The demo failed: {name} '{value}' is none of "
                  f'{", ".join(filter(None, choices))}')
            return 1
    # A domain of its own, to leave nodes that run elsewhere on this network alone.
    from domain_coordinator import domain_id
    with domain_id() as domain:
        os.environ.update(ROS_DOMAIN_ID=str(domain), ROS_AUTOMATIC_DISCOVERY_RANGE='LOCALHOST')
        return _main(options)


def cast(mode: str, urdf: str, model: Model, engine: str) -> tuple[Story, str, str]:
    """
    Return the story of a mode, the node that is the robot, and a line about it.

    Raises
    ------
    DemoFailed
        If the robot or its engine cannot do what the mode shows.
    ModelError
        If MuJoCo is wanted, and is not installed or refuses the robot.

    """
    if model.nq != model.nv or not model.nv:
        raise DemoFailed(f"robot '{model.name}' needs joints with one coordinate each")
    kind = STORIES[mode]
    if kind.needs_mujoco and engine == 'own':
        raise DemoFailed(f'MODE={mode} needs MuJoCo: {kind.needs_mujoco}. Leave out ENGINE=own')
    story = kind(with_rotors(model) if kind.rotors else model)
    robot, line = chosen_engine(engine, urdf, model, story.start)
    if kind.needs_mujoco and robot != 'mujoco_robot':
        raise DemoFailed(f'MODE={mode} needs MuJoCo: {kind.needs_mujoco}. {line}')
    return story, robot, line


def _main(options: argparse.Namespace) -> int:
    show, live = plain_lines(), None
    if not options.headless and sys.stdout.isatty():
        show, live = live_table()
    rclpy.init()
    stage = None
    try:
        urdf = options.urdf or share('urdf', 'demo_arm.urdf')
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            model = load_urdf(urdf)
        story, robot, line = cast(options.mode, urdf.read_text(), model, options.engine)
        print(line, story.words, sep='\n', flush=True)
        stage = Stage(story.model, urdf, robot, story, show)
        with live or nullcontext():
            checks = story.play(stage)
        for check in checks:
            print(check.text if check.met else f'NOT MET: {check.text}')
        plot(stage, story, options.plot)
        print(f'Plot: {options.plot}')
        if all(check.met for check in checks):
            print('All of it is as it must be: the demo worked.')
            return 0
        print(f'The demo failed: {story.why(stage)}.')
    except (KeyboardInterrupt, ExternalShutdownException):
        print('Interrupted.')
    except (DemoFailed, ValueError, OSError) as error:
        print(f'The demo failed: {error}')
    finally:
        if stage:
            stage.close()
        rclpy.try_shutdown()
    return 1


if __name__ == '__main__':
    sys.exit(main())
