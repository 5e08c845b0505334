# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pages of recordings, opened from a file in a browser without a network."""

from base64 import b64decode
import re

from browser import chromium, complaints, wait_for
from command_line import code_of
import numpy as np
from optional import Optional
import pytest
from rbd_ros import batch
from rbd_ros.identification import Recording, write_recording
from rbd_ros.view.recording import AXES, POSES
from robots import example_urdf, load_quietly, Oracle

msgspec = Optional('msgspec')
zstandard = Optional('zstandard')

SECONDS, SAMPLES = 6.0, 601
ARM = str(example_urdf('double_pendulum.urdf'))


@pytest.fixture(scope='module')
def arm():
    return load_quietly(ARM)


@pytest.fixture(scope='module')
def page(arm, tmp_path_factory):
    """Return a page of a motion of the arm, and its samples."""
    folder = tmp_path_factory.mktemp('page')
    time = np.linspace(0.0, SECONDS, SAMPLES)
    w = np.array([1.0, 1.7])
    q, v, a = (0.5 * w ** k * np.sin(np.outer(time, w) + 0.5 * k * np.pi) for k in range(3))
    tau = batch.inverse_dynamics(arm, q, v, a)
    write_recording(folder / 'r.csv', Recording('r', arm.velocity_names, time + 100.0, q, v, tau))
    assert code_of('replay', ARM, str(folder / 'r.csv'), '-o', str(folder / 'a.csv'), '--html',
                   str(folder / 'a.html')) in (0, 2)
    return folder / 'a.html', time, q


def messages(path):
    """Return what a page plays: its duration, and messages with their times."""
    data = re.search(r'__VISER_EMBED_DATA__=(?:&quot;|")([A-Za-z0-9+/=]+)',
                     path.read_text()).group(1)
    raw = zstandard.ZstdDecompressor().decompressobj().decompress(b64decode(data)[8:])
    size = int.from_bytes(raw[:8], 'little')
    content = msgspec.msgpack.decode(raw[8:8 + size])
    return content['durationSeconds'], content['messages']


def test_the_robot_takes_the_recorded_poses(arm, page):
    path, time, q = page
    duration, played = messages(path)
    assert duration == pytest.approx(SECONDS, abs=0.05)
    link = arm.link_index(arm.moving_joints[-1][0].child)
    name = f'/robot/{link}'
    places = [(at, message['position']) for at, message in played
              if message['type'] == 'SetPositionMessage' and message['name'] == name]
    assert len(places) > 25 * SECONDS
    oracle = Oracle(ARM, arm)
    for at, position in places[1::20]:
        k = np.argmin(np.abs(time - at))
        assert time[k] == pytest.approx(at, abs=1e-6)
        # The filter of the recording takes a little off.
        np.testing.assert_allclose(position, oracle.pose(q[k], arm.link_names[link])[:3, 3],
                                   atol=2e-3)


@pytest.mark.long
def test_the_page_plays_without_a_network(arm, page):
    path, _, _ = page
    with chromium('--host-resolver-rules=MAP * ~NOTFOUND') as browser:
        browser.execute_cdp_cmd('Network.enable', {})
        browser.execute_cdp_cmd('Network.emulateNetworkConditions', {
            'offline': True, 'latency': 0, 'downloadThroughput': 0, 'uploadThroughput': 0})
        browser.get(path.as_uri())

        def now():
            """Return the time that the scene shows, its end, and where the lines stand."""
            return browser.execute_script(
                "const s = document.querySelector('iframe').contentDocument"
                "?.querySelector('[role=slider]');"
                "const lines = [...document.querySelectorAll('figure i')].map(l => l.style.left);"
                'return s && [+s.ariaValueNow, +s.ariaValueMax, ...lines]')
        first = wait_for(lambda: (found := now()) and found[2] and found, 'the scene')
        assert first[1] == pytest.approx(SECONDS, abs=0.05)
        assert len(first) == 2 + arm.nv
        wait_for(lambda: now()[0] not in (first[0], 0.0), 'motion')
        # Stop at a place of the bar: the lines stand there, too.
        browser.switch_to.frame(0)
        field = browser.find_element('css selector', 'input')
        field.click()
        field.send_keys('\ue009a\ue000', '3.0')
        browser.switch_to.default_content()
        wait_for(lambda: now()[0] == pytest.approx(3.0), 'half of the time')
        expected = 100.0 * (AXES[0] + AXES[2] * 3.0 / first[1])
        wait_for(lambda: all(float(line.rstrip('%')) == pytest.approx(expected)
                             for line in now()[2:]), 'lines at half of the time')
        assert browser.execute_script(
            "return performance.getEntriesByType('resource').map(entry => entry.name)"
            ".filter(name => name.startsWith('http'))") == []
        assert not complaints(browser)


def test_gaps_of_recordings_interrupt_the_plots_of_the_viewer(arm):
    from matplotlib.figure import Figure
    from rbd_ros.view.recording import _plot
    made = []

    def figure(**options):
        made.append(Figure(**options))
        return made[-1]

    time = np.concatenate((np.arange(0.0, 2.0, 0.01), np.arange(5.0, 6.0, 0.01)))
    efforts = {'measured': np.outer(time, [1.0, 1.0]), 'model': np.outer(time ** 2, [1.0, 1.0])}
    _plot(figure, arm, 1, time, efforts, np.where(time < 3.0, 0, 1))
    for line, power in zip(made[0].axes[0].lines[:2], (1, 2)):
        x, y = line.get_data()
        broken, = np.flatnonzero(np.isnan(x))
        assert x[broken - 1] == pytest.approx(1.99) and x[broken + 1] == pytest.approx(5.0)
        assert np.isnan(y[broken])
        assert np.allclose(np.delete(y, broken), time ** power)


def test_long_recordings_have_fewer_poses_a_second():
    from rbd_ros.view.recording import _shown
    for seconds in (0.01, 10.0, 1000.0):
        time = np.arange(0.0, seconds, 0.005)
        shown = _shown(time)
        assert shown[0] == 0 and np.all(np.diff(shown) > 0)
        assert len(shown) <= min(POSES, max(1, 30.0 * seconds))
        assert len(shown) >= 0.9 * min(POSES, 30.0 * seconds, len(time)) or len(shown) == 1
