# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Hostile pages and hostile clients of the viewer; the Origin and Host of browsers are forged."""

from contextlib import ExitStack
import re
import signal
import socket
from time import monotonic

from browser import chromium, complaints, wait_for
from command_line import ARM, running
from forged_pages import CAMERA, CHANGE, Page, PATIENCE, refused, status
import msgspec
import numpy as np
import pytest
from rbd_ros.errors import RbdError
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.guard import Guard
from rbd_ros.view.recording import recording_page
from rbd_ros.view.sliders import Sliders
from rbd_ros.view.state import computed_state
from rbd_ros.view.viewer import start_server, Viewer
from robots import load_quietly, Oracle
import viser
from viser.infra import Message
from websockets.exceptions import ConnectionClosed, InvalidMessage
from websockets.sync.client import connect

# Limits of message size and of the number of connections.
LARGEST, MOST = 65536, 32
# Numbers on the page have three digits after the point.
PRINTED = 5.001e-4
NOT_VALUES = [float('nan'), float('inf'), float('-inf'), 1e300, -1e300, 2 ** 62, None, True, 'x',
              '1.0', b'1', [], [0.1], {}, {'value': 0.1}]


@pytest.fixture(scope='module')
def arm():
    return load_quietly(ARM)


@pytest.fixture
def viewer(arm):
    """Return a page of the demo arm, with sliders."""
    with Viewer(arm, Geometry({}, ()), port=0) as viewer:
        viewer.sliders = Sliders(viewer.server.gui, arm)
        yield viewer


def obeyed(viewer, page):
    """Wait until all messages of a page are processed."""
    slider = viewer.sliders._q[0]
    # Another one than before, so that it is seen.
    value = 0.25 if slider.value != 0.25 else 0.5
    page.change('shoulder_pan', value)
    wait_for(lambda: slider.value == value, 'a change')
    pool = viewer.server._thread_executor
    for job in [pool.submit(int) for _ in range(100)]:
        job.result(timeout=PATIENCE)


# -- Who may connect. -----------------------------------------------------------------------------

def test_fault_75_pages_of_other_sites_are_refused(viewer):
    url = viewer.url
    port = viewer.server.get_port()
    for origin in ('https://evil.example', f'http://evil.example:{port}', 'null', '',
                   f'http://localhost:{port + 1}', 'http://localhost', f'https://localhost:{port}',
                   f'http://127.0.0.1:{port}', f'{url}/', f'{url}.evil.example', f'{url}0',
                   f'http://localhost:{port}@evil.example', 'file://', '*'):
        assert refused(url, origin=origin), origin
        assert status(url, Origin=origin)[0] == 403, origin
    assert not refused(url)
    assert status(url)[0] == status(url, Origin=url)[0] == 200


def test_a_websocket_without_an_origin_or_with_two_is_refused(viewer):
    url = viewer.url
    for kind in ('websocket', 'WebSocket'):
        upgrade = {'Upgrade': kind, 'Connection': 'Upgrade', 'Sec-WebSocket-Version': '13',
                   'Sec-WebSocket-Key': 'dGhlIHNhbXBsZSBub25jZQ=='}
        assert status(url, **upgrade)[0] == 403
        assert status(url, Origin=(url, 'https://evil.example'), **upgrade)[0] == 403
        assert status(url, Origin=(url, url), **upgrade)[0] == 403
    # Pages are fetched without one.
    assert status(url)[0] == 200


def test_foreign_host_names_are_refused(viewer):
    url, port = viewer.url, viewer.server.get_port()
    for host in (f'evil.example:{port}', f'localhost.evil.example:{port}', 'evil.example',
                 f'{socket.gethostname()}.evil.example:{port}', f'evil.example@:{port}',
                 '', ':', '[', '[::1', f'127.0.0.1.evil.example:{port}', f'0x7f000001:{port}'):
        found, text = status(url, Host=host)
        assert found == 403 and 'address that it prints' in text, host
    evil = f'evil.example:{port}'
    assert refused(url, host=evil, origin=f'http://{evil}')
    assert refused(url, host=evil)
    assert status(url, Host=(f'localhost:{port}', evil))[0] == 403
    # An address, or another port of a tunnel on this machine.
    for own in (f'127.0.0.1:{port}', 'localhost:9000', 'LOCALHOST:9000', f'[::1]:{port}'):
        assert status(url, Host=own)[0] == 200, own
    assert not refused(url, host='127.0.0.1:9000', origin='http://127.0.0.1:9000')


def test_urls_with_a_query_are_refused(viewer):
    for path in ('/?websocket=wss://evil.example', '/?playbackPath=https://evil.example/a.viser',
                 '/index.html?websocket=wss://evil.example', '/?'):
        found, text = status(viewer.url, path)
        assert found == 403 and 'without a query' in text, path
    assert status(viewer.url, '/index.html')[0] == 200


@pytest.mark.parametrize('host', ['0.0.0.0', '127.0.0.1'])
def test_the_host_name_is_accepted_if_other_machines_may_connect(arm, host):
    with Viewer(arm, Geometry({}, ()), host=host, port=0) as viewer:
        port, name = viewer.server.get_port(), socket.gethostname()
        here = f'http://127.0.0.1:{port}'
        everywhere = host == '0.0.0.0'
        assert viewer.url == f'http://{name if everywhere else host}:{port}'
        for own in (name, name.upper(), f'{name}.local'):
            assert status(here, Host=f'{own}:{port}')[0] == (200 if everywhere else 403)
        assert refused(here, host=f'evil.example:{port}', origin=f'http://evil.example:{port}')
        assert refused(here, origin='https://evil.example')
        for own in ('192.0.2.7', '[2001:db8::7]'):
            assert not refused(here, host=f'{own}:{port}', origin=f'http://{own}:{port}')


def test_the_name_given_as_host_is_accepted():
    guard = Guard(('Robot7.example',))
    assert guard._is_own('robot7.example:8080') and guard._is_own('robot7.example')
    assert not guard._is_own('robot8.example:8080')
    assert not guard._is_own(f'{socket.gethostname()}x:8080')


def test_ipv6_addresses_are_printed_in_brackets(arm):
    with Viewer(arm, Geometry({}, ()), host='::1', port=0) as viewer:
        assert viewer.url == f'http://[::1]:{viewer.server.get_port()}'
        assert not refused(viewer.url)


def test_pages_while_a_recording_is_written_are_guarded(arm, monkeypatch):
    found = []

    def start(*arguments):
        server = start_server(*arguments)
        url = f'http://localhost:{server.get_port()}'
        found.extend((refused(url, origin='https://evil.example'), refused(url)))
        return server
    monkeypatch.setattr('rbd_ros.view.viewer.start_server', start)
    time, zero = np.array([0.0, 0.1]), np.zeros((2, arm.nv))
    assert '<html' in recording_page('r', arm, Geometry({}, ()), time, zero, zero, {})
    assert found == [True, False]


def test_a_server_that_cannot_be_guarded_is_refused():
    with pytest.raises(RbdError, match='pip install "viser=='), Guard(()).starting():
        pass


def test_browsers_keep_other_sites_out(viewer):
    port = viewer.server.get_port()
    with chromium('--host-resolver-rules=MAP evil.test 127.0.0.1') as page:
        opens = ('const done = arguments[1], s = new WebSocket(arguments[0],'
                 f" 'viser-v{viser.__version__}');"
                 "s.onopen = () => done('opened'); s.onerror = () => done('refused');")
        page.get('data:text/html,<p>evil</p>')
        assert page.execute_async_script(opens, f'ws://localhost:{port}') == 'refused'
        page.get(f'http://evil.test:{port}/')
        assert 'address that it prints' in page.page_source
        assert page.execute_async_script(opens, f'ws://evil.test:{port}') == 'refused'
        page.get(f'http://127.0.0.1:{port}/')
        assert page.execute_async_script(opens, f'ws://localhost:{port}') == 'refused'
        assert page.execute_async_script(opens, f'ws://127.0.0.1:{port}') == 'opened'
        # The page itself works by an address, too.
        complaints(page)
        page.get(f'http://127.0.0.1:{port}/')
        wait_for(lambda: page.find_elements('xpath', "//label[.='shoulder_pan']"), 'sliders')
        assert not complaints(page)


# -- What they may send. --------------------------------------------------------------------------

def test_no_message_opens_a_tunnel(viewer, monkeypatch):
    opened = []
    monkeypatch.setattr('viser._viser.ViserTunnel', lambda *_: opened.append(True))
    with Page(viewer.url) as page:
        for kind in ('ShareUrlRequest', 'ShareUrlDisconnect'):
            page.send(type=kind)
        obeyed(viewer, page)
    assert not opened


def test_values_that_a_slider_cannot_have_are_ignored(viewer):
    with Page(viewer.url) as page:
        for value in NOT_VALUES:
            page.change('shoulder_lift', value)
            obeyed(viewer, page)
            assert viewer.sliders.read().q[1] == -0.4, value


def test_values_within_a_step_of_a_limit_become_the_limit(viewer, arm):
    lower, upper = float(arm.lower[1]), float(arm.upper[1])
    assert np.isfinite(lower) and np.isfinite(upper)
    slider = viewer.sliders._q[1]
    with Page(viewer.url) as page:
        # Pages round to three digits, which may be a little beyond a limit.
        for sent, expected in ((upper + 2e-3, -0.4), (upper + 9e-4, upper), (lower - 2e-3, upper),
                               (lower - 9e-4, lower), (0.5, 0.5), (1, 1.0), (upper, upper),
                               (lower, lower)):
            page.change('shoulder_lift', sent)
            obeyed(viewer, page)
            assert slider.value == expected, sent


def test_other_inputs_have_their_own_values_only(viewer, arm):
    switch, chosen = [], viewer.scene.link
    viewer.scene.set_visible = lambda name, visible: switch.append((name, visible))
    with Page(viewer.url) as page:
        for value in (0, 1, 'x', None, [], float('nan')):
            page.change('robot', value)
        for value in ('nosuch', '', 1, None, [], True, 'x' * 60000):
            page.change('Chosen link', value)
            page.change('Plot', value)
        page.change('All to zero', 'x')
        obeyed(viewer, page)
        assert not switch and viewer.scene.link == chosen
        page.change('robot', False)
        page.change('Chosen link', arm.link_names[2])
        obeyed(viewer, page)
        assert switch == [('robot', False)] and viewer.scene.link == arm.link_names[2]
        page.change('All to zero', True)
        wait_for(lambda: viewer.sliders._q[0].value == 0.0, 'zero')


def test_nothing_but_values_can_be_changed(viewer):
    slider = viewer.sliders._q[1]
    before = dict(vars(slider._impl))
    with Page(viewer.url) as page:
        uuid = page.uuids['shoulder_lift']
        for name in before:
            if name != 'value':
                for other in (1, 'x', None, [], {}, True):
                    page.send(type=CHANGE, uuid=uuid, updates={name: other})
        page.send(type=CHANGE, uuid=uuid, updates={'min': -1e9, 'max': 1e9})
        page.send(type=CHANGE, uuid=uuid, updates={})
        page.send(type=CHANGE, uuid='nosuch', updates={'value': 0.1})
        obeyed(viewer, page)
        assert vars(slider._impl) == before
        # Of several changes only that of the value is applied.
        page.send(type=CHANGE, uuid=uuid, updates={'value': 0.1, 'removed': True})
        obeyed(viewer, page)
        assert slider.value == 0.1 and not slider._impl.removed


def test_no_message_stops_the_page_or_prints_anything(viewer, arm, capfd, recwarn):
    odd = [float('nan'), -1e308, 2 ** 62, 'x' * 1000, None, [], [1.0] * 100, {}, b'x', True]
    kinds = Message.get_subclasses()
    assert len(kinds) > 100
    with Page(viewer.url) as page:
        for kind in kinds:
            for value in odd:
                page.send(type=kind.__name__, **dict.fromkeys(
                    getattr(kind, '__dataclass_fields__', ()), value))
        for field in CAMERA:
            for value in odd:
                page.send(**{**CAMERA, field: value})
        page.send(**CAMERA, more=1)
        page.send(**{key: value for key, value in CAMERA.items() if key != 'fov'})
        for raw in (b'', b'\xff', b'\x91' * 60000, b'\xdf\xff\xff\xff\xff', b'\x80', b'\xa1x',
                    'text', msgspec.msgpack.encode([CAMERA]), msgspec.msgpack.encode(CAMERA)[:-1]):
            page.socket.send(raw)
        obeyed(viewer, page)
        viewer.show(0.0, computed_state(arm, viewer.sliders.read().q, np.zeros(arm.nv), {}))
    with Page(viewer.url) as page:
        obeyed(viewer, page)
    assert capfd.readouterr() == ('', '')
    assert not [warning for warning in recwarn if 'viser' in str(warning.message)]


def test_messages_of_clients_are_not_stored(viewer):
    with Page(viewer.url) as page:
        before = len(page.replayed)
        upload = {'source_component_uuid': page.uuids['shoulder_pan'], 'part_count': 1000}
        for k in range(20000):
            page.send(type='GuiFormDirtyMessage', uuid=f'{k}')
            if k % 10 == 0:
                page.send(type='FileTransferStartUpload', transfer_uuid=f'{k}', filename='a',
                          mime_type='a', size_bytes=10 ** 9, **upload)
                page.send(type='FileTransferPart', transfer_uuid=f'{k}', part_index=0,
                          content=b'x' * 1000, **upload)
                page.change('shoulder_lift', k / 1e5)
        obeyed(viewer, page)
    assert not viewer.server.gui._current_file_upload_states
    with Page(viewer.url) as page:
        # The last value of two sliders is new to later pages.
        assert len(page.replayed) <= before + 2


def test_large_messages_close_only_their_own_connection(viewer):
    with Page(viewer.url) as page, Page(viewer.url) as other:
        page.socket.send(b'\x91' * LARGEST)
        obeyed(viewer, page)
        page.socket.send(b'\x91' * (LARGEST + 1))
        with pytest.raises(ConnectionClosed) as closed:
            while True:
                page.receive()
        assert closed.value.rcvd.code == 1009
        obeyed(viewer, other)


def test_the_number_of_connections_is_limited(viewer):
    with ExitStack() as pages:
        for _ in range(MOST - 1):
            pages.enter_context(Page(viewer.url))
        with Page(viewer.url), pytest.raises(
                (EOFError, InvalidMessage, ConnectionClosed, OSError)):
            connect(f'ws{viewer.url[4:]}', origin=viewer.url, open_timeout=PATIENCE)
        wait_for(lambda: len(viewer.server.get_clients()) == MOST - 1, 'room for one more')
        with Page(viewer.url) as page:
            obeyed(viewer, page)


def test_another_robot_on_the_page_has_inputs_that_work(viewer, arm):
    with Page(viewer.url) as page:
        before = page.uuids
    viewer.draw(arm, Geometry({}, ()), 'needed')
    viewer.sliders = Sliders(viewer.server.gui, arm)
    with Page(viewer.url) as page:
        assert not set(before.values()) & set(page.uuids.values())
        page.send(type=CHANGE, uuid=before['shoulder_lift'], updates={'value': 0.1})
        obeyed(viewer, page)
    assert viewer.sliders._q[1].value == -0.4


def test_the_command_survives_a_hostile_client_and_ends_cleanly_at_ctrl_c(arm):
    oracle, zero = Oracle(ARM, arm), np.zeros(arm.nv)
    with running('-m', 'rbd_ros.cli.main', 'view', ARM, '--port', '0') as process:
        url = process.stdout.readline().split()[-1]
        assert 'Ctrl-C ends it' in process.stdout.readline()
        assert refused(url, origin='https://evil.example')
        assert refused(url, host='evil.example:80', origin='http://evil.example:80')
        with Page(url) as page:
            for label in page.uuids:
                for value in (*NOT_VALUES, 'nosuch'):
                    if not (value is True and label == 'All to zero'):
                        page.change(label, value)
            page.send(type=CHANGE, uuid=page.uuids['shoulder_pan'], updates={'max': 1e300})
            page.send(type='ShareUrlRequest')
            # Some of the values suit these two.
            page.change('Pause', False)
            page.change('Look back (s)', 0.0)
            page.change('shoulder_pan', 1.234)
            # Those of the velocity have the same label, and come second.
            speed = [message['uuid'] for message in page.replayed if 'value' in message
                     and message['props']['label'] == 'shoulder_lift'][1]
            page.send(type=CHANGE, uuid=speed, updates={'value': 1.0})
            page.change('z', 50.0)
            q = np.array([1.234, -0.4, 0.4, -0.4, 0.4, -0.4, 0.4])
            link, still = arm.link_names[-1], oracle.tau(q, zero, zero)
            moving = oracle.tau(q, np.eye(arm.nv)[1], zero)
            pushed = oracle.jacobian(q, link)[3:].T @ oracle.pose(q, link)[:3, :3].T @ [0, 0, 50.0]
            needed = moving + arm.damping * np.eye(arm.nv)[1] - pushed
            expected = np.array([needed, needed + pushed, -pushed,      # model and residual
                                 q, still, moving - still, pushed])
            found, end, torques, terms = np.zeros_like(expected), monotonic() + PATIENCE, {}, {}
            while not np.allclose(found, expected, rtol=0.0, atol=PRINTED):
                assert monotonic() < end, found
                text = ''.join(str(message['updates'].get('content', ''))
                               for message in page.receive() if message['type'] == CHANGE)
                for row in re.findall('<tr><td.*?</tr>', text):
                    name, *cells = re.findall('>([^<]+)<', row)
                    (terms if len(cells) == 4 else torques)[name] = cells
                if torques and terms:
                    found = np.array([[*torques[name][:3], *terms[name]]
                                      for name in arm.velocity_names], float).T
        process.send_signal(signal.SIGINT)
        out, err = process.communicate(timeout=PATIENCE)
        # On a busy machine it starts slowly.
        assert not out and not err.replace('rbd_ros view: still working\n', '')
        assert process.returncode == 0
