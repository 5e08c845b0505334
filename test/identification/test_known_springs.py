# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots and payloads are identified with the springs of the model, which are known."""

from pathlib import Path

import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.cli.main import main
from rbd_ros.identification.reduction import samples_of
from rbd_ros.identification.torque_uncertainty import model_torques
from rbd_ros.model import save_drives, with_springs
from robots import example_urdf, load_quietly, relative_error

# Torques without noise, from fits that take them to have a noise of 1e-6.
RECOVERED = 1e-5
LOAD = (0.8, np.array([0.03, -0.02, 0.08]), np.diag([0.004, 0.0035, 0.003]))
STIFFNESS, REFERENCE = np.linspace(60.0, 10.0, 6), np.linspace(-2.0, 1.0, 6)
ARM = Path(__file__).parents[2] / 'urdf' / 'demo_arm.urdf'


def sprung(model):
    """Return a robot with springs."""
    return with_springs(model, stiffness=STIFFNESS, spring_reference=REFERENCE)


@pytest.fixture(scope='module')
def urdf():
    """Return a UR5 with friction and rotors, without springs."""
    return measured.with_drives(load_quietly(example_urdf('ur5_robot.urdf')),
                                np.random.default_rng(0))


def motion(truth, seed=3):
    """Return samples of a motion of a robot with springs."""
    t, q, v, a = measured.swing(truth, np.random.default_rng(seed), 20.0, 50.0)
    tau = measured.efforts(truth, q, v, a) + STIFFNESS * (q - REFERENCE)
    return samples_of(truth, q, v, a, tau, t)


def test_a_robot_with_springs_is_identified_from_its_description(urdf):
    truth = measured.changed(urdf, np.random.default_rng(1))
    some = motion(truth)

    def rest(model):
        """Return the relative error of the identified torques in another motion."""
        found = identification.fit(model, identification.partial(model, some)).model
        other = motion(truth, 5)
        tau = (measured.efforts(found, other.q, other.v, other.a)
               + found.stiffness * (other.q - found.spring_reference))
        return relative_error(tau, other.tau)
    assert rest(sprung(urdf)) < RECOVERED
    # Nothing else explains their torques.
    assert rest(urdf) > 0.01


def test_a_payload_is_identified_on_a_robot_with_springs(urdf):
    some = motion(rbd_ros.with_payload(urdf, 'tool0', *LOAD))
    model = sprung(urdf)
    load = identification.fit_payload(model, identification.payload_partial(model, 'tool0', some))
    for got, true in zip(load, LOAD):
        assert relative_error(got, true) < RECOVERED


def test_torques_along_recordings_include_springs(urdf):
    some = identification.prepare(urdf, measured.recording(urdf, 3))
    tau, dry_friction = model_torques(sprung(urdf), some, 0.0)
    plain, same = model_torques(urdf, some, 0.0)
    assert relative_error(tau - plain, STIFFNESS * (some.q - REFERENCE)) < RECOVERED
    assert np.array_equal(dry_friction, same)


def test_torques_of_the_command_line_include_springs_on_request(tmp_path, capsys):
    drives, table = tmp_path / 'drives.yaml', tmp_path / 'way.csv'
    arm = rbd_ros.load_urdf(ARM)
    save_drives(with_springs(arm, stiffness={'elbow': 5.0}, spring_reference={'elbow': 0.4}),
                drives)

    def printed(*words):
        assert main(['torques', str(ARM), '--params', str(drives), *words]) == 0
        return {line.split()[0]: float(line.split()[1])
                for line in capsys.readouterr().out.splitlines()}
    plain, with_them = (printed('--q', 'elbow=1', *more) for more in ((), ('--springs',)))
    assert with_them['elbow'] - plain['elbow'] == pytest.approx(5.0 * 0.6, abs=1e-6)
    table.write_text(','.join(['time', *(f'{name}/position' for name in arm.velocity_names)])
                     + ''.join(f'\n{t}' + ',0.3' * 7 for t in (0, 1)))
    efforts = []
    for more in ((), ('--springs',)):
        out = tmp_path / f'filled{len(more)}.csv'
        assert main(['torques', str(ARM), str(table), '--params', str(drives), '-o', str(out),
                     *more]) == 0
        header, *lines = out.read_text().splitlines()
        column = header.split(',').index('elbow/effort')
        efforts.append(float(lines[0].split(',')[column]))
    assert efforts[1] - efforts[0] == pytest.approx(5.0 * -0.1, abs=1e-9)
