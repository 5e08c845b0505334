# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""From a recording to a robot that is held: MuJoCo moves it, with a load that its URDF lacks."""

import json

from command_line import code_of
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import write_table
from rbd_ros.model import load_drives, with_friction
from rbd_ros.simulation.mujoco_robot import Load, MujocoRobot
from robots import example_urdf, load_quietly
import yaml

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

URDF = example_urdf('ur5_robot.urdf')
LINK = 'wrist_3_link'
DAMPING, FRICTION, ROTORS = 2.0, 1.5, 0.3
STEP, RATE = 2e-3, 100
# rad/s^2 rad^-1 and s^-1: loose, so that what drives bring up is smooth
STIFFNESS, DAMPER = 400.0, 40.0
# The load that nobody told, kg, and where it is.
MASS, PLACE = 1.0, np.array([0.0, 0.05, 0.04])
BETTER = 5.0


def physics(q):
    """Return the robot of the URDF in MuJoCo, with friction, rotors and a load."""
    model = load_quietly(URDF)
    names = model.velocity_names
    drives = rbd_ros.with_armature(
        with_friction(model, damping=dict.fromkeys(names, DAMPING),
                      friction=dict.fromkeys(names, FRICTION)), dict.fromkeys(names, ROTORS))
    return MujocoRobot(URDF.read_text(), drives, q, step=STEP, load=Load(LINK, MASS, PLACE))


def reference(t):
    """Return position, velocity and acceleration of a motion of all joints."""
    w = 2.0 * np.pi * np.array([0.1, 0.23, 0.41])[:, None]
    phase = np.linspace(0.0, 5.0, 18).reshape(3, 6) ** 2
    size = np.array([0.6, 0.3, 0.15])[:, None]
    middle = np.array([0.0, -1.2, 1.0, -0.5, 0.5, 0.0])
    return (middle + np.sum(size * np.sin(w * t + phase), axis=0),
            np.sum(size * w * np.cos(w * t + phase), axis=0),
            np.sum(-size * w ** 2 * np.sin(w * t + phase), axis=0))


@pytest.fixture(scope='module')
def recording(tmp_path_factory):
    """Return a recording of 20 s, in which a controller without friction follows sines."""
    path = tmp_path_factory.mktemp('mujoco') / 'run.csv'
    robot = physics(reference(0.0)[0])
    described = rbd_ros.Workspace(load_quietly(URDF))
    rows = []
    for k in range(round(20.0 / STEP)):
        q, v, a = reference(k * STEP)
        wanted = a + STIFFNESS * (q - robot.q) + DAMPER * (v - robot.v)
        tau = described.inverse_dynamics(robot.q, robot.v, wanted).copy()
        if k % round(1.0 / STEP / RATE) == 0:
            rows.append(np.concatenate(([k * STEP], robot.q, robot.v, tau)))
        robot.advance(tau)
    write_table(path, ['time', *(f'{name}/{what}' for what in ('position', 'velocity', 'effort')
                                 for name in described.model.velocity_names)], np.array(rows))
    return path


@pytest.fixture(scope='module')
def identified(recording, tmp_path_factory):
    """Return the folder of what was identified from the recording."""
    folder = tmp_path_factory.mktemp('identified')
    with pytest.MonkeyPatch.context() as patch:
        # Nobody looks at the plots.
        patch.setattr('rbd_ros.identification.report._panels', lambda *_, **__: '')
        assert code_of('identify', str(URDF), str(recording), '-o', str(folder)) == 0
    return folder


def drift(efforts, seconds=2.0, every=1):
    """Return how far MuJoCo's robot moves, rad, held by efforts, a function of its state."""
    start = np.array([0.3, -0.9, 1.1, -0.4, 0.6, 0.0])
    robot = physics(start)
    for k in range(round(seconds / STEP)):
        if k % every == 0:
            held = efforts(robot.q, robot.v)
        robot.advance(held)
    return np.linalg.norm(robot.q - start)


def test_gravity_torques_of_the_identified_robot_hold_it(identified):
    robot = load_drives(rbd_ros.load_urdf(identified / 'robot.urdf', strict=True),
                        identified / 'dynamics.param.yaml')
    described = load_quietly(URDF)
    by_urdf, by_fit = (drift(lambda q, v, model=model: rbd_ros.gravity_torques(model, q))
                       for model in (described, robot))
    assert by_urdf > BETTER * by_fit
    assert abs(robot.friction - FRICTION).max() < 0.2
    assert abs(robot.damping - DAMPING).max() < 0.3
    figures = json.loads((identified / 'identification.json').read_text())
    assert figures['relative_error']['fit'] < 0.1 * figures['relative_error']['urdf']


def test_the_node_holds_the_robot_with_the_files_of_identify(identified):
    pytest.importorskip('rclpy', reason='the node needs ROS 2')
    from harness import Harness, ros

    names = rbd_ros.load_urdf(identified / 'robot.urdf').velocity_names
    files = yaml.safe_load((identified / 'dynamics.param.yaml').read_text())
    drives = {f'drives.{name}': value
              for name, value in files['/**']['ros__parameters']['drives'].items()}
    moved = []
    for path, parameters in ((URDF, {}), (identified / 'robot.urdf', drives)):
        with ros():
            # Pauses of this machine are none of the robot's.
            node = Harness(path.read_text(), topics=['~/effort_commands'], state_timeout=60.0,
                           **parameters)
            try:
                moved.append(drift(lambda q, v, node=node: node.answer(
                    names, q, v, topic='~/effort_commands').data, every=2))
            finally:
                node.close()
    assert moved[0] > BETTER * moved[1]
