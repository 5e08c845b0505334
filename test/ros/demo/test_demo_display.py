# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The table of the demo on a terminal of 80 x 24, and its picture, also for 32 joints."""

from io import StringIO
from itertools import pairwise
import re

import numpy as np
import pytest
from rbd_ros.ros.demo.gravity import GravityMode
from rbd_ros.ros.demo.picture import draw
from rbd_ros.ros.demo.session import Phase, Sample, Session
from rbd_ros.ros.demo.table import plain_lines, table
from rbd_ros.ros.runtime.share_directory import share
from robots import example_urdf, load_quietly

rich_console = pytest.importorskip('rich.console')
WIDTH, HEIGHT = 80, 24
# Minus zero.
MINUS_ZERO = re.compile(r'-0(\.0*)?(e[+-]?\d+)?(?![\d.])')


@pytest.fixture(scope='module', params=[
    'demo_arm', 'talos_reduced.urdf', pytest.param('tiago_dual.urdf', marks=pytest.mark.long)])
def model(request):
    """Return robots with 7, 32 and 101 joints."""
    return load_quietly(share('urdf', 'demo_arm.urdf') if request.param == 'demo_arm'
                        else example_urdf(request.param))


def session_of(model, error, note=''):
    """Return a session with one phase, and errors of all joints at its end."""
    session = Session.__new__(Session)
    session.mode, session.note, rng = GravityMode(model), note, np.random.default_rng(0)
    session.phases = [Phase('held by gravity torques', True, 0)]
    session.samples = [Sample(0.1 * k, -1e-5 * rng.random(model.nv), -1e-3 * rng.random(model.nv),
                              np.asarray(error) * k / 20) for k in range(21)]
    return session


def text_of(session):
    """Return what a terminal shows, without colours, and the red parts of it."""
    from rich.live import Live
    file = StringIO()
    console = rich_console.Console(width=WIDTH, height=HEIGHT, file=file, force_terminal=True,
                                   color_system='standard', legacy_windows=False)
    with Live(console=console, auto_refresh=False) as live:
        live.update(table(session, HEIGHT))
        live.refresh()
    # The last drawing, after the cursor has returned to the first line.
    out = file.getvalue().split('\x1b[1A')[-1]
    red = re.findall(r'\x1b\[31m([^\x1b]*)', out)
    return re.sub(r'\x1b\[[\d;?]*[A-Za-z]', '', out), red


def errors(model, red):
    """Return errors of which some are not small, the last joints first."""
    error = np.linspace(1e-4, 9e-4, model.nv) * (-1.0) ** np.arange(model.nv)
    error[model.nv - red:] *= 20.0
    return error


@pytest.mark.parametrize('red', [0, 1, 5, 16, 17, 24, 32])
def test_the_display_fits_80_by_24_characters_and_hides_no_red_joint(model, red):
    red = min(red, model.nv)
    text, reds = text_of(session_of(model, errors(model, red), note='a note'))
    lines = text.rstrip().splitlines()
    assert len(lines) < HEIGHT and max(map(len, map(str.rstrip, lines))) <= WIDTH
    assert len(reds) == red and 'a note' in text and not MINUS_ZERO.search(text)
    assert 'held by gravity torques, 2.0 s' in lines[0]
    shown = [name for name in model.velocity_names
             if re.search(rf'(^|\s){re.escape(name)}\s', text)]
    missing = set(model.velocity_names[model.nv - red:]) - set(shown)
    # Names that are too long lose their middle, not their ends.
    assert all(len(name) > 25 and f'{name[:12]}…{name[-12:]} ' in text for name in missing)
    left = re.search(r'(\d+) more joints, 0 of them red', text)
    rows = [line for line in lines if re.search('e-0[1-9] (rad|m)', line)]
    count = sum(len(re.findall('e-0[1-9] (?:rad|m)', line)) for line in rows)
    assert (int(left[1]) if left else 0) == model.nv - count


def test_a_robot_with_a_hundred_red_joints_shows_the_number_of_hidden_ones():
    model = load_quietly(example_urdf('tiago_dual.urdf'))
    text, reds = text_of(session_of(model, errors(model, model.nv)))
    left, unseen = map(int, re.search(r'(\d+) more joints, (\d+) of them red', text).groups())
    assert left == unseen == model.nv - len(reds) and len(reds) >= 32
    # Those that are shown are the worst.
    worst = np.sort(np.abs(errors(model, model.nv)))[::-1]
    least = min(abs(float(one.split()[0])) for one in reds)
    assert least >= 0.95 * worst[len(reds) - 1]


def test_positions_and_torques_are_shown_with_small_errors(model):
    session = session_of(model, errors(model, 3))
    text, _ = text_of(session)
    for k in range(model.nv - 3, model.nv):
        unit, torque_unit = ('rad', 'N m') if model.angular[k] else ('m', 'N')
        line = next(line for line in text.splitlines()
                    if line.startswith(f'{model.velocity_names[k]} '))
        assert f'+0.000 {unit} ' in line and f'+0.0 {torque_unit} ' in line
        assert f'{session.samples[-1].error[k]:+.1e} {unit}' in line


def test_without_a_terminal_a_line_per_second_names_the_worst_joint(model, capsys):
    session, show = session_of(model, errors(model, 1)), plain_lines()
    samples = session.samples
    for k in range(1, len(samples) + 1):
        session.samples = samples[:k]
        show(session)
    lines = capsys.readouterr().out.splitlines()
    assert len(lines) == 3
    assert f'{abs(samples[-1].error[-1]):.2e}' in lines[-1]
    assert model.velocity_names[-1] in lines[-1]


def test_the_picture_names_every_joint_twice_and_no_name_covers_another(model):
    from matplotlib.text import Text
    session = session_of(model, errors(model, 4))
    figure = draw(session)
    figure.canvas.draw()
    texts = [one for one in figure.findobj(Text) if one.get_text() and one.get_visible()]
    words = '\n'.join(one.get_text() for one in texts).replace('\N{MINUS SIGN}', '-')
    assert not MINUS_ZERO.search(words)
    boxes = {}
    for name in model.velocity_names:
        mine = [one for one in texts if one.get_text() == name]
        assert len(mine) == 2, name
        for one in mine:
            box = one.get_window_extent()
            assert box.x0 >= 0.0 and box.y0 >= 0.0 and box.y1 <= figure.bbox.height
            boxes.setdefault(box.x1 > 0.6 * figure.bbox.width, []).append(box)
    for column in boxes.values():
        column.sort(key=lambda box: box.y0)
        assert all(a.y1 <= b.y0 for a, b in pairwise(column))
