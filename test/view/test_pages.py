# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pages in a browser: ``rbd_ros view``."""

from contextlib import contextmanager
from dataclasses import replace
from io import BytesIO
from pathlib import Path
import re
import socket
import sys

from browser import chromium, click, complaints, drag_slider, labelled, table, wait_for
from command_line import ARM, code_of, one_line, running
import numpy as np
from optional import Optional
import pytest
from rbd_ros import neutral
from rbd_ros.model import save_drives
from rbd_ros.model.uncertainty import Uncertainty
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.state import computed_state
from rbd_ros.view.viewer import Viewer
from robots import example_urdf, load_quietly, Oracle

image_files = Optional('PIL.Image')

# Numbers on the page have three digits after the point.
PRINTED = 5.001e-4
JOINT, COLUMN = 'shoulder_lift', 1
# Colours of the model and of limits in the plot.
BLUE, RED = (0, 85, 170), (204, 0, 0)
# rad: the pose at the start.
BENT = 0.4 * np.array([1.0, -1.0, 1.0, -1.0, 1.0, -1.0, 1.0])


@contextmanager
def viewing(*options, arm=ARM):
    """Start the command, and return the address of its page."""
    with running('-m', 'rbd_ros.cli.main', 'view', arm, '--port', '0', *options) as process:
        said = process.stdout.readline()
        url = re.fullmatch(r'demo_arm: (http://localhost:\d+)\n', said)
        assert url, said + process.stderr.read()
        assert 'on this machine; Ctrl-C ends it' in process.stdout.readline()
        yield url.group(1)


@pytest.fixture(scope='module')
def arm():
    """Return the demo arm, and the same in Pinocchio."""
    model = load_quietly(ARM)
    return model, Oracle(ARM, model)


def rows(page, color):
    """Return the rows of the plot in which a color is."""
    return page.execute_script("""
        const canvas = document.querySelector('.uplot canvas'), found = [];
        if (!canvas) return found;
        const all = canvas.getContext('2d').getImageData(0, 0, canvas.width, canvas.height).data;
        for (let y = 0; y < canvas.height; y++)
          for (let x = canvas.width / 2; x < canvas.width; x++) {
            const at = 4 * (y * canvas.width + x);
            if (all[at + 3] > 100
                && arguments[0].every((c, k) => Math.abs(all[at + k] - c) < 25)) {
              found.push(y);
              break;
            }
          }
        return found;""", color)


def shows(page, joints, **columns):
    """Return whether the tables of the page have these values in columns, joint by joint."""
    cells = table(page)
    return [*cells] == [*joints] and all(
        np.allclose([float(one.get(title, 'nan')) for one in cells.values()], values, rtol=0.0,
                    atol=PRINTED) for title, values in columns.items())


def test_a_slider_changes_the_torques_that_are_shown(arm, tmp_path):
    model, oracle = arm
    q, zero = BENT.copy(), np.zeros(model.nv)
    noise, params = np.linspace(0.1, 0.7, model.nv), str(tmp_path / 'dynamics.param.yaml')
    save_drives(replace(model, uncertainty=Uncertainty(
        model.velocity_names, (), np.zeros((0, 0)), np.zeros((model.nv, 1)), noise[:, None],
        np.zeros(model.nv))), params)
    with viewing('--params', params) as url, chromium() as page:
        page.get(url)
        tau = oracle.tau(q, zero, zero)
        wait_for(lambda: shows(page, model.velocity_names, needed=tau, model=tau, residual=zero,
                               gravity=tau, **{'± 90 %': 1.645 * noise}), 'torques')
        q[COLUMN] = drag_slider(page, JOINT, 25)
        assert abs(q[COLUMN]) > 0.3
        tau = oracle.tau(q, zero, zero)
        assert np.max(np.abs(tau)) > 10.0
        wait_for(lambda: shows(page, model.velocity_names, needed=tau, model=tau, gravity=tau,
                               q=q), 'the torques of the new pose')
        labelled(page, 'Plot').click()
        click(page, f"//*[@role='option'][.='{JOINT}']")
        wait_for(lambda: rows(page, BLUE), 'the curve of the joint')
        assert not complaints(page)


def test_the_panel_takes_a_quarter_of_the_window_and_shows_its_tables_whole():
    model = load_quietly(example_urdf('panda.urdf'))
    state = computed_state(model, neutral(model), np.zeros(model.nv), {})
    state = replace(state, effort=np.full(model.nv, -123.456), deviation=np.full(model.nv, 12.3))
    with Viewer(model, Geometry({}, ()), port=0, effort='measured') as viewer, chromium(
            size=(1366, 768)) as page:
        page.get(viewer.url)

        def widths():
            """Return the width of the window, of the panel, and where its tables end."""
            viewer.show(0.0, state)
            return page.execute_script("""
                const tables = [...document.querySelectorAll('.rbd table')];
                let panel = tables[1];
                while (panel && getComputedStyle(panel).position !== 'absolute')
                  panel = panel.parentElement;
                return panel && [innerWidth, panel.getBoundingClientRect().width,
                    ...tables.map(one => one.getBoundingClientRect().right)];""")
        window, panel, *ends = wait_for(widths, 'both tables')
        assert window == 1366 and max(ends) <= panel <= window / 4.0


@pytest.mark.long
def test_plots_and_matrices_follow_the_sliders(arm, tmp_path):
    # Its torques come near its limits, which the plot then shows.
    weak = tmp_path / 'weak.urdf'
    weak.write_text(re.sub(r'effort="(\d+)"', lambda limit: f'effort="{int(limit[1]) / 6.0}"',
                           Path(ARM).read_text()))
    model, oracle = load_quietly(weak), arm[1]
    q, v, zero = BENT.copy(), np.zeros(model.nv), np.zeros(model.nv)
    with viewing(arm=str(weak)) as url, chromium() as page:
        page.get(url)
        q[COLUMN] = drag_slider(page, JOINT, 25)
        expected = oracle.tau(q, zero, zero)
        labelled(page, 'Plot').click()
        click(page, f"//*[@role='option'][.='{JOINT}']")
        limit = model.effort_limit[COLUMN]

        def shows_the_torque():
            # The plot of the joint before may still be there, with limits of its own.
            lines = rows(page, RED)
            if not lines or lines[-1] - lines[0] < 20:
                return False
            middle, half = (lines[-1] + lines[0]) / 2.0, (lines[-1] - lines[0]) / 2.0
            row = middle - half * expected[COLUMN] / limit
            return any(abs(other - row) <= 2.0 for other in rows(page, BLUE))
        wait_for(shows_the_torque, 'the torque of the joint between its limits')

        click(page, "//*[.='Velocities (rad/s, m/s)']")
        wait_for(lambda: len(page.find_elements('xpath', f"//label[.='{JOINT}']")) > 1,
                 'sliders for velocities')
        v[COLUMN] = drag_slider(page, JOINT, 20, number=1)
        v[COLUMN + 1] = drag_slider(page, model.velocity_names[COLUMN + 1], 30, number=1)
        expected = oracle.tau(q, v, zero) - expected
        assert np.max(np.abs(expected)) > 10.0 * PRINTED
        wait_for(lambda: shows(page, model.velocity_names, Coriolis=expected), 'Coriolis torques')

        click(page, "//*[@role='tab'][.='Matrices']")
        titles = wait_for(lambda: page.execute_script(
            "return [...document.querySelectorAll('.rbd rect title')].map(t => t.textContent)"),
            'matrices')
        M, C = np.array([float(t.split(': ')[1]) for t in titles]).reshape(2, model.nv, model.nv)
        np.testing.assert_allclose(M, oracle.M(q), rtol=1e-4, atol=1e-9)
        np.testing.assert_allclose(C @ v, expected, atol=1e-4)
        assert titles[1] == f'{model.velocity_names[0]}, {model.velocity_names[1]}: {M[0, 1]:.5g}'
        assert not complaints(page)


@pytest.mark.long
def test_a_force_on_the_chosen_link_makes_external_torques(arm):
    model, oracle = arm
    q, zero = BENT.copy(), np.zeros(model.nv)
    link = model.link_names[-1]
    with viewing() as url, chromium() as page:
        page.get(url)
        q[COLUMN] = drag_slider(page, JOINT, 25)
        click(page, "//*[.='Force on the chosen link (N)']")
        force = np.array([drag_slider(page, 'x', 20), 0.0, drag_slider(page, 'z', -25)])
        turn = oracle.pose(q, link)[:3, :3]
        pushed = (turn @ oracle.jacobian(q, link)[3:]).T @ force
        assert np.max(np.abs(pushed)) > 5.0
        tau = oracle.tau(q, zero, zero)
        wait_for(lambda: shows(page, model.velocity_names, external=pushed, needed=tau - pushed,
                               model=tau, residual=-pushed), 'external torques')
        click(page, "//button[.='All to zero']")
        wait_for(lambda: shows(page, model.velocity_names, external=zero, q=zero), 'no force')


@pytest.mark.long
def test_a_floating_base_moves(arm):
    model = arm[0]
    base = [f'base_{axis}' for axis in ('wx', 'wy', 'wz', 'vx', 'vy', 'vz')]
    with viewing('--floating-base') as url, chromium() as page:
        page.get(url)
        names = [*base, *model.velocity_names]
        wait_for(lambda: [*table(page)] == names, 'the coordinates of the base')
        # Rolled by its angle, the base is held by forces along its y and z.
        roll = drag_slider(page, 'base roll', 20)
        assert abs(roll) > 0.1
        weight = 9.81 * model.mass
        expected = 0.0, weight * np.sin(roll), weight * np.cos(roll)
        wait_for(lambda: np.allclose(
            [float(table(page)[name]['gravity']) for name in base[3:]], expected, rtol=0.0,
            atol=PRINTED), 'the weight in the axes of the base')
        drag_slider(page, 'base_z', 20)
        assert not complaints(page)


@pytest.mark.long
def test_switches_show_and_hide_layers(arm):
    def dark():
        """Return how much of the scene is as dark as the links of the arm."""
        image = np.asarray(image_files.open(BytesIO(page.get_screenshot_as_png())).convert('RGB'))
        return np.mean(np.all(image[200:, 600:1040] < 130, axis=2))

    with viewing() as url, chromium(size=(1400, 800)) as page:
        page.get(url)
        wait_for(lambda: dark() > 5e-3, 'a robot')
        click(page, "//*[@role='tab'][.='Show']")
        box = labelled(page, 'robot')
        assert box.is_selected()
        for switch in (box, labelled(page, 'names and efforts of the joints')):
            page.execute_script('arguments[0].click()', switch)
        wait_for(lambda: dark() < 1e-3, 'no robot')
        assert not complaints(page)


def test_a_port_that_is_taken_is_refused(capsys, arm):
    model, _ = arm
    with Viewer(model, Geometry({}, ()), port=0) as viewer:
        port = viewer.server.get_port()
        assert viewer.url == f'http://localhost:{port}'
        assert code_of('view', ARM, '--port', str(port)) == 1
    with pytest.raises(ConnectionRefusedError):
        socket.create_connection(('localhost', port))
    message = one_line(capsys)
    assert 'port' in message and 'cannot be used' in message and 'choose another one' in message


@pytest.mark.parametrize('option, value, reason', [
    ('--port', '99999', '--port must be a whole number, from 0 to 65535'),
    ('--host', '192.0.2.1', 'of 192.0.2.1 cannot be used: Cannot assign requested address; '),
    ('--package-path', '/no/such/folder', '--package-path /no/such/folder: no such folder'),
])
def test_invalid_options_are_refused(capsys, option, value, reason):
    assert code_of('view', ARM, option, value) == 1
    assert reason in one_line(capsys)


def test_missing_packages_are_named(capsys, monkeypatch):
    for package in ('viser', 'trimesh'):
        with monkeypatch.context() as patch:
            patch.setitem(sys.modules, package, None)
            assert code_of('view', ARM, '--port', '0') == 1
        assert f'{package}: pip install "rbd_ros[view]"' in one_line(capsys)
