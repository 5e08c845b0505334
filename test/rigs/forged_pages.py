# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pages of the viewer without a browser, whose origins, hosts and messages may be forged."""

from http.client import HTTPConnection
import socket

import pytest

msgspec = pytest.importorskip('msgspec')
viser = pytest.importorskip('viser')
exceptions = pytest.importorskip('websockets.exceptions')
client = pytest.importorskip('websockets.sync.client')
zstandard = pytest.importorskip('zstandard')

CAMERA = {
    'type': 'ViewerCameraMessage', 'wxyz': (1.0, 0.0, 0.0, 0.0), 'position': (1.0, 1.0, 1.0),
    'fov': 1.0, 'near': 0.01, 'far': 100.0, 'image_height': 600, 'image_width': 800,
    'look_at': (0.0, 0.0, 0.0), 'up_direction': (0.0, 0.0, 1.0)}
CHANGE = 'GuiUpdateMessage'
# s; connections and messages take milliseconds when nothing else runs.
PATIENCE = 60.0


class Page:
    """A page without a browser: it sends arbitrary messages, and finds inputs by their labels."""

    def __init__(self, url, origin=None, host=None):
        address = url.removeprefix('http://')
        name, _, port = address.rpartition(':')
        # The socket is connected to the server, regardless of the host name.
        name = {socket.gethostname(): 'localhost'}.get(name, name.strip('[]'))
        self.socket = client.connect(
            f'ws://{host or address}', sock=socket.create_connection((name, port)),
            origin=url if origin is None else origin, max_size=None, open_timeout=PATIENCE,
            subprotocols=[f'viser-v{viser.__version__}'])
        self.replayed = []
        while not any(message['type'] == 'ReplayDoneMessage' for message in self.replayed):
            self.replayed += self.receive()
        self.uuids = {}
        for message in self.replayed:
            if 'value' in message:
                self.uuids.setdefault(message['props']['label'], message['uuid'])
        self.send(**CAMERA)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.socket.close()

    def receive(self):
        raw = self.socket.recv(timeout=PATIENCE)
        size = int.from_bytes(raw[8:16], 'little')
        text = zstandard.ZstdDecompressor().decompress(
            raw[16:16 + size], max_output_size=int.from_bytes(raw[:8], 'little'))
        return msgspec.msgpack.decode(text)['messages']

    def send(self, **message):
        self.socket.send(msgspec.msgpack.encode(message))

    def change(self, label, value):
        """Send a new value of an input."""
        self.send(type=CHANGE, uuid=self.uuids[label], updates={'value': value})


def status(url, path='/', **headers):
    """Return the status and the body of the response to a request."""
    name, _, port = url.removeprefix('http://').rpartition(':')
    connection = HTTPConnection(name, int(port), timeout=PATIENCE)
    connection.putrequest('GET', path, skip_host=True)
    for key, values in {'Host': f'{name}:{port}', **headers}.items():
        for value in values if isinstance(values, tuple) else (values,):
            connection.putheader(key, value)
    connection.endheaders()
    answer = connection.getresponse()
    return answer.status, answer.read().decode(errors='replace')


def refused(url, **forged):
    """Return whether a websocket is refused."""
    try:
        with Page(url, **forged):
            return False
    except exceptions.InvalidStatus as error:
        return error.response.status_code == 403
