# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Reports, tables of residuals and sums of errors: that each number is what it says."""

from dataclasses import replace
import re

from browser import chromium
from covering import covering
import numpy as np
from optional import Optional
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.identification import pipeline, prepare, Recording, report
from rbd_ros.identification.report import (
    Comparison, diagnosis_report, identification_report, replay_report, Row, write_residuals)
from rbd_ros.model import with_friction
from robots import example_urdf, load_quietly

figure = Optional('matplotlib.figure')

JOINTS, UNITS = ('turns', 'slides'), ('N m', 'N')
RATE, SECONDS = 100.0, 20.0
# Hz, of a hum in what is left of the first joint.
HUM = 7.0


@pytest.fixture
def figures(monkeypatch):
    """Return the figures that are drawn from now on; they are not rendered, which takes long."""
    drawn = []

    def draw(**options):
        drawn.append(figure.Figure(**options))
        drawn[-1].savefig = lambda image, **_: None
        return drawn[-1]

    monkeypatch.setattr(report, 'import_figure', lambda purpose: draw)
    return drawn


@pytest.fixture(scope='module')
def comparison():
    """Return a recording in which every number can be told from every other."""
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    velocity = np.stack((np.cos(t), 0.3 * np.cos(1.7 * t)), axis=1)
    friction = 2.0 * np.sign(velocity)
    fit = np.stack((10.0 * np.sin(t), 5.0 * np.sin(2.0 * t)), axis=1) + friction
    left = np.stack((np.sin(2.0 * np.pi * HUM * t), 0.1 * np.cos(3.0 * t)), axis=1)
    usable = np.abs(velocity) > (0.5, 0.1)
    # What is not usable must not count.
    measured = fit + left + np.where(usable, 0.0, 100.0)
    return Comparison('run.csv', t, velocity, measured, 0.5 * fit, fit, friction, usable,
                      np.array([0.5, 0.1]), np.zeros(len(t), int))


def cells(text, number=0):
    """Return the rows of a table."""
    table = re.findall(r'<table>(.*?)</table>', text)[number]
    return [re.findall(r'<td>(.*?)</td>', row) for row in re.findall(r'<tr>(.*?)</tr>', table)][1:]


def efforts_of(figure):
    """Return what the panels of efforts and residuals show: title, unit and lines by label."""
    return [(axes.get_title(loc='left'), axes.get_ylabel(),
             {line.get_label(): line.get_xydata().tolist() for line in axes.lines})
            for axes in figure.axes]


def drawn_as(time, curves, computed):
    """Return the same for efforts (samples, joints) by label, of which some are computed."""
    return [panel for k, (joint, unit) in enumerate(zip(JOINTS, UNITS)) for panel in (
        (joint, unit, {label: np.stack((time, x[:, k]), axis=1).tolist()
                       for label, x in curves.items()}),
        (f'{joint}, residual', unit, {
            label: np.stack((time, (curves['measured'] - curves[label])[:, k]), axis=1).tolist()
            for label in computed}))]


def rms(x):
    return f'{np.sqrt(np.mean(x ** 2)):.3g}'


def test_the_identification_report_shows_its_values_and_escapes_names(figures, comparison):
    c = comparison
    text = identification_report('<arm>', JOINTS, UNITS, [c], [Row('a/m', 'kg', 1.0, 2.0, 0.1)],
                                 'not believable', ['<why>'])
    assert '<h1>&lt;arm&gt;</h1>' in text and '<li>&lt;why&gt;</li>' in text
    assert '<p class="bad"><b>Not believable:</b></p>' in text
    assert cells(text) == [
        [joint, 'run.csv', unit, *(rms(x[c.usable[:, k], k]) for x in (
            c.measured, c.measured - c.urdf, c.measured - c.fit)), '?']
        for k, (joint, unit) in enumerate(zip(JOINTS, UNITS))]
    assert cells(text, 1) == [['a/m', 'kg', '1', '2', '0.1']]

    traces, residuals, curves = figures
    assert efforts_of(traces) == drawn_as(c.time, {
        'measured': c.measured, 'URDF': c.urdf, 'identified': c.fit}, ['identified'])
    assert not any(axes.collections for axes in traces.axes)    # The deviation is unknown.

    assert [axes.get_title(loc='left') for axes in residuals.axes] == [
        'turns', 'turns', 'slides', 'slides']
    for k, (histogram, spectrum) in enumerate(zip(residuals.axes[::2], residuals.axes[1::2])):
        assert sum(bar.get_height() for bar in histogram.patches) == np.sum(c.usable[:, k])
        assert histogram.get_xlabel() == UNITS[k]
        assert spectrum.get_ylabel() == f'{UNITS[k]}/√Hz' and spectrum.get_xlabel() == 'Hz'
        assert spectrum.lines[0].get_xdata()[-1] == pytest.approx(0.5 * RATE)

    for k, axes in enumerate(curves.axes):
        dots, curve = axes.lines
        use = c.usable[:, k]
        assert np.array_equal(dots.get_xydata(), np.stack((
            c.velocity[use, k], (c.measured - c.fit + c.friction)[use, k]), axis=1))
        assert set(map(tuple, curve.get_xydata())) == set(
            zip(c.velocity[use, k], c.friction[use, k]))
        assert axes.get_xlabel() == ('rad/s', 'm/s')[k] and axes.get_ylabel() == UNITS[k]


LONG = ['left_arm/shoulder_pan_joint', 'j$1$', 'gripper_left_inner_finger_knuckle_joint_of_hand_2',
        'namespace/' * 7 + 'elbow', 'x' * 150]


def texts(axes):
    """Return all texts of a plot that are drawn."""
    ticks = [tick.label1 for axis in (axes.xaxis, axes.yaxis) for tick in axis._update_ticks()]
    found = [axes._left_title, axes.xaxis.label, axes.yaxis.label, axes.xaxis.offsetText,
             axes.yaxis.offsetText, *ticks]
    if axes.get_legend():
        found += axes.get_legend().get_texts()
    return [one for one in found if one.get_visible() and one.get_text()]


@pytest.mark.parametrize('first, step, size', covering(
    ((first, step, size) for first, step in ((1, 3), (0, 3), (0, 2), (0, 1))
     for size in (3e-7, 1.0, 12_345.6, 3e7)), (1, 3, 12_345.6), (0, 2, 3e-7)))
def test_no_label_is_cut_or_lies_upon_another(figures, comparison, first, step, size):
    from matplotlib.backends.backend_agg import FigureCanvasAgg
    names = LONG[first::step]

    def wide(x):
        return np.resize(x.T, (len(names), len(comparison.time))).T

    # Times of a table may be those of the clock.
    efforts = [size * wide(x) for x in comparison[3:7]]
    c = Comparison('run.csv', comparison.time + 1.7e9, wide(comparison.velocity), *efforts,
                   wide(comparison.usable), np.zeros(len(names)), comparison.segment)
    identification_report('arm', names, ['N m'] * len(names), [c], [], 'believable', [])
    assert [len(one.axes) for one in figures] == [2 * len(names), 2 * len(names), len(names)]
    for one in figures:
        canvas = FigureCanvasAgg(one)
        canvas.draw()
        drawn = [text for axes in one.axes for text in texts(axes)]
        boxes = [text.get_window_extent(canvas.get_renderer()) for text in drawn]
        # Every name is there, as it is.
        shown = [axes.get_title(loc='left').removesuffix(', residual') for axes in one.axes]
        assert list(dict.fromkeys(shown)) == names
        assert all(axes._left_title.get_fontsize() > 6.0 for axes in one.axes
                   if len(axes.get_title(loc='left')) < 100)
        for k, (text, box) in enumerate(zip(drawn, boxes)):
            assert box.x0 >= 0.0 and box.y0 >= 0.0, text
            assert box.x1 <= one.bbox.width and box.y1 <= one.bbox.height, text
            # Ticks of logarithmic axes may touch.
            assert '$' in text.get_text() or not any(
                box.overlaps(other) for other in boxes[:k]), text


def test_a_page_shows_all_of_a_report(comparison, tmp_path):
    c = comparison._replace(name='/home/' + 'folder/' * 30 + 'run.csv')
    rows = [Row(f'{name}.damping', 'N m s/rad', 0.0, 1.0, 0.1) for name in LONG]
    path = tmp_path / 'report.html'
    path.write_text(identification_report('arm' * 60, (LONG[0], LONG[3]), UNITS, [c], rows,
                                          'believable', []), encoding='utf-8')
    with chromium() as page:
        page.get(path.as_uri())
        # Tables scroll; nothing else is wider than the page.
        assert page.execute_script("""
            return [...document.querySelectorAll('h1, h2, p, img')].filter(
                one => one.getBoundingClientRect().right > document.documentElement.clientWidth
                    || one.scrollWidth > one.clientWidth).map(one => one.outerHTML.slice(0, 99))
            """) == []
        shown = page.execute_script("""
            return [...document.images].map(one => [one.naturalWidth, one.clientWidth,
                one.clientHeight / one.clientWidth - one.naturalHeight / one.naturalWidth])""")
        assert len(shown) == 3
        for natural, width, distortion in shown:
            assert natural == 1080 and width > 700 and abs(distortion) < 1e-2
        cells = [one.text for one in page.find_elements('tag name', 'td')]
        assert {f'{name}.damping' for name in LONG} <= {*cells}


def band(axes):
    """Return the times, lower and upper bounds of the band in a plot, at their corners."""
    path, = axes.collections[0].get_paths()
    time, effort = path.vertices.T
    return {x: (np.min(effort[time == x]), np.max(effort[time == x])) for x in np.unique(time)}


def check_bands(figure, time, model, deviation):
    """Check the bands about the efforts of the model, and about zero in panels of residuals."""
    for number, axes in enumerate(figure.axes):
        bounds, (k, of_residual) = band(axes), divmod(number, 2)
        for i in (3, 500, 1500):
            low, high = bounds[time[i]]
            middle = 0.0 if of_residual else model[i, k]
            assert np.isclose(0.5 * (low + high), middle, rtol=1e-6)
            assert np.isclose(0.5 * (high - low), 1.645 * deviation[i, k], rtol=1e-3)


def test_the_report_shows_intervals_as_bands_and_a_column(figures, comparison):
    size = np.abs(comparison.measured - comparison.fit)
    # Half of the samples have too narrow intervals; those that are not used do not count.
    deviation = size / 1.645 * np.where(np.arange(len(size)) % 2, 1.01, 0.99)[:, None]
    c = comparison._replace(deviation=deviation)
    share = [np.mean(np.arange(len(size))[c.usable[:, k]] % 2) for k in range(2)]
    text = identification_report('arm', JOINTS, UNITS, [c], [], 'believable', [])
    assert np.allclose([float(row[-1].removesuffix(' %')) for row in cells(text)],
                       np.multiply(share, 100.0), atol=0.2)
    check_bands(figures[0], c.time, c.fit, deviation)


def test_gaps_of_recordings_interrupt_the_lines_of_the_report(figures, comparison, swing):
    whole = comparison
    # 2 s are missing, and 6 s; what is left is every second sample of both stretches.
    keep = np.flatnonzero(((whole.time < 5.0) | (whole.time >= 7.0)) & (whole.time < 14.0))
    c = Comparison('gap.csv', *(x[keep] for x in whole[1:8]), whole.standstill,
                   np.where(whole.time[keep] < 6.0, 0, 1))
    text = identification_report('arm', JOINTS, UNITS, [c], [], 'good for motions like these',
                                 ['why'])
    assert 'Good for motions like these:' in text
    lines = [line.get_xydata() for axes in figures[0].axes for line in axes.lines]
    model, _, recording, _ = swing
    samples = prepare(model, replace(recording, **{
        label: getattr(recording, label)[keep] for label in ('time', 'position', 'velocity',
                                                             'effort')}))
    assert list(np.unique(samples.segment)) == [0, 1]
    replay_report('arm', JOINTS, UNITS, samples, samples.tau, samples.tau)
    lines += [line.get_xydata() for axes in figures[-1].axes for line in axes.lines]
    assert len(lines) == 16
    for line in lines:
        broken = np.flatnonzero(np.isnan(line[:, 0]))
        assert len(broken) == 1 and np.all(np.isnan(line[broken]))
        before, after = line[broken[0] - 1, 0], line[broken[0] + 1, 0]
        assert before == pytest.approx(5.0, abs=0.02) and after == pytest.approx(7.0, abs=0.02)
        assert np.all(np.abs(np.diff(line[:, 0])[~np.isnan(np.diff(line[:, 0]))]) < 0.02)
    # The spectrum is that of the longer stretch: its resolution says so.
    frequency = figures[1].axes[1].lines[0].get_xdata()
    assert frequency[0] == pytest.approx(RATE / np.sum(c.time >= 7.0))


def test_long_stretches_are_thinned_out_but_gaps_stay():
    segment = np.repeat([0, 1, 2], [1000, 3, 2000])
    time, x = report.drawn(segment, np.arange(3003.0), np.arange(6006.0).reshape(-1, 2),
                           points=100)
    assert len(time) < 150 and x.shape == (len(time), 2)
    assert np.sum(np.isnan(time)) == 2 and 1000.0 in time
    assert np.array_equal(time[~np.isnan(time)], x[~np.isnan(time), 0] / 2.0)


def test_the_spectrum_of_the_report_shows_a_hum_at_its_frequency(figures, comparison):
    c = comparison
    quiet = c._replace(measured=c.fit + np.sin(2.0 * np.pi * HUM * c.time)[:, None])
    identification_report('arm', JOINTS, UNITS, [quiet], [], 'believable', [])
    frequency, amplitude = figures[1].axes[1].lines[0].get_data()
    resolution = RATE / report.SPECTRUM_SEGMENT
    assert frequency[np.argmax(amplitude)] == pytest.approx(HUM, abs=resolution)
    # Parseval: its mean square is a half.
    assert np.sum(amplitude ** 2) * frequency[0] == pytest.approx(0.5, rel=0.02)


def test_residuals_are_those_of_their_joints(tmp_path, comparison):
    from pyarrow import parquet

    c, path = comparison, tmp_path / 'residuals.parquet'
    write_residuals(path, 'arm', JOINTS, [c, c._replace(name='other')])
    table = parquet.read_table(path).to_pydict()
    assert list(table) == ['robot', 'recording', 'joint', 'time', 'velocity', 'measured', 'urdf',
                           'fit', 'usable']
    assert set(table['robot']) == {'arm'}
    for k, joint in enumerate(JOINTS):
        rows = [n for n, row in enumerate(zip(table['recording'], table['joint']))
                if row == ('run.csv', joint)]
        assert np.array_equal(np.array(table['time'])[rows], c.time)
        for label in ('velocity', 'measured', 'urdf', 'fit', 'usable'):
            assert np.array_equal(np.array(table[label])[rows], getattr(c, label)[:, k]), label


# -- From a recording. ----------------------------------------------------------------------------

@pytest.fixture(scope='module')
def swing(tmp_path_factory):
    """Return a robot, the same with friction, its motion and torques, and a table of them."""
    from rbd_ros.identification import write_table

    model = load_quietly(example_urdf('double_pendulum.urdf'))
    true = with_friction(model, damping=[0.1, 0.2], friction=[0.3, 0.2])
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    q, v, a = (np.stack([w ** k * np.sin(w * t + 0.5 * np.pi * k) for w in (1.3, 2.1)], axis=1)
               for k in range(3))
    tau = batch.inverse_dynamics(true, q, v, a) + rbd_ros.friction_torques(true, v)
    path = tmp_path_factory.mktemp('swing') / 'swing.csv'
    names = [f'{joint}/{label}' for label in ('position', 'velocity', 'effort')
             for joint in model.velocity_names]
    write_table(path, ['time', *names], t, q, v, tau)
    return model, true, Recording('swing', model.velocity_names, t, q, v, tau), path


def test_errors_of_the_report_are_those_of_the_named_robot_in_motion(swing):
    model, true, _, path = swing
    one = pipeline.compare_recording(str(path), urdf=model, fit=true, reading=pipeline.Reading())
    use, squares = one.usable, {}
    assert not np.all(use)
    for label, x in (('measured', one.measured), ('urdf', one.measured - one.urdf),
                     ('fit', one.measured - one.fit)):
        squares[label] = [np.sum(x[use[:, k], k] ** 2) for k in range(2)]
        assert np.allclose(one.rms(x), np.sqrt(squares[label] / use.sum(axis=0)))
    for label in ('urdf', 'fit'):
        assert one.relative_error(getattr(one, label)) == pytest.approx(
            np.sqrt(np.sum(squares[label]) / np.sum(squares['measured'])))
    # Steps of friction pass the same filter as the efforts: the robot explains itself.
    assert one.relative_error(one.fit) < 5e-3 < 0.1 < one.relative_error(one.urdf)
    never = one._replace(usable=np.zeros_like(use))
    assert np.all(np.isnan(never.rms(one.fit))) and np.isnan(never.relative_error(one.fit))


def test_joints_at_rest_are_compared_without_dry_friction(swing, tmp_path):
    from rbd_ros.identification import write_recording

    model, true, _, _ = swing
    t = np.arange(0.0, 12.0, 1.0 / RATE)
    # From 0 to 1 and back in 2 s, with waits of 2 s.
    u = np.clip(np.remainder(t, 4.0) / 2.0, 0.0, 1.0)
    sign, first = np.where(t // 4 % 2, -1.0, 1.0), t // 4 % 2
    way, speed, change = (
        first + sign * u ** 3 * (10.0 - 15.0 * u + 6.0 * u ** 2),
        sign * 15.0 * u ** 2 * (1.0 - u) ** 2, sign * 15.0 * u * (1.0 - u) * (1.0 - 2.0 * u))
    q, v, a = (np.outer(x, [1.0, 0.7]) for x in (way, speed, change))
    tau = batch.inverse_dynamics(true, q, v, a) + rbd_ros.friction_torques(true, v)
    path = tmp_path / 'waits.csv'
    write_recording(path, Recording('waits', model.velocity_names, t, q, v, tau))
    compared = pipeline.compare_recording(str(path), urdf=model, fit=true,
                                          reading=pipeline.Reading())
    since = np.remainder(compared.time, 4.0)
    waits = (since > 2.6) & (since < 3.4)
    assert np.all(np.abs(compared.friction[waits]) < 0.01 * np.array([0.3, 0.2]))
    # In motion it is that of the joint.
    moves = np.all(compared.usable, axis=1) & (since > 0.6) & (since < 1.4)
    assert np.allclose(compared.friction[moves], rbd_ros.friction_torques(
        true, compared.velocity[moves]), atol=0.01)


def test_an_excerpt_is_taken_from_the_middle(swing, monkeypatch):
    model, _, _, path = swing
    monkeypatch.setattr(pipeline, 'EXCERPT', 100)
    reading = pipeline.Reading()
    whole, excerpt = pipeline.reduce_recording(
        str(path), model=model, reading=reading, reduce=lambda model, samples: samples)
    first = (len(whole) - 100) // 2
    for label in ('time', 'q', 'v', 'a', 'tau', 'usable', 'moving', 'saturated', 'segment'):
        assert np.array_equal(getattr(excerpt, label), getattr(whole, label)[first:first + 100])


def test_the_replay_report_shows_its_values_and_escapes_names(figures, swing):
    model, _, recording, _ = swing
    samples = prepare(model, recording)
    efforts, external = 0.7 * samples.tau, 0.1 * samples.tau + 1.0
    text = replay_report('<arm>', JOINTS, UNITS, samples, efforts, external,
                         0.2 + np.abs(external))
    assert cells(text) == [
        [joint, unit, *(rms(x[samples.usable[:, k], k]) for x in (
            samples.tau, samples.tau - efforts, external))]
        for k, (joint, unit) in enumerate(zip(JOINTS, UNITS))]
    assert efforts_of(figures[0]) == drawn_as(samples.time, {
        'measured': samples.tau, 'model': efforts, 'external': external}, ['model'])
    check_bands(figures[0], samples.time, efforts, 0.2 + np.abs(external))


def test_a_diagnosis_is_drawn_as_it_is(figures, comparison):
    c = comparison
    assert 'Nothing found.' in diagnosis_report('arm', JOINTS, UNITS, (), ())
    text = diagnosis_report('arm', JOINTS, UNITS, (
        c.time, c.segment, c.measured, c.urdf, c.fit, c.usable), ['<this>'])
    assert '<li>&lt;this&gt;</li>' in text
    titles, units, lines = zip(*efforts_of(figures[0]))
    expected = drawn_as(c.time, {
        'measured': c.measured, 'description': c.urdf, 'with the findings': c.fit},
        ['description', 'with the findings'])
    assert (titles, units) == tuple(zip(*expected))[:2]
    for number, (shown, (*_, wanted)) in enumerate(zip(lines, expected)):
        k = number // 2
        use = c.usable[:, k]
        assert list(shown) == list(wanted)
        for label in wanted:
            assert np.array_equal(np.array(shown[label])[use], np.array(wanted[label])[use])
            assert np.all(np.isnan(np.array(shown[label])[~use, 1]))
        low, high = band(figures[0].axes[2 * k + 1])[c.time[0]]
        assert -low == high == pytest.approx(1.645 * np.std((c.measured - c.fit)[use, k]),
                                             rel=1e-3)
