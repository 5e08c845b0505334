# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A server with a page that shows a robot."""

from __future__ import annotations

from contextlib import redirect_stdout
from io import StringIO
import socket
from typing import TYPE_CHECKING

import numpy as np
from rbd_ros.errors import RbdError
from rbd_ros.model.model import Model
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.panels import Panels
from rbd_ros.view.scene import RobotScene
from rbd_ros.view.state import State

if TYPE_CHECKING:
    from viser import ViserServer

HOST, PORT = 'localhost', 8080
EVERYWHERE = ('0.0.0.0', '::')  # hosts that mean all addresses of this machine
# Initial camera position relative to the middle of the robot, as shares of its extent.
VIEWPOINT = (0.6, -1.2, 0.4)


class Viewer:
    """
    A page that shows one robot; raises RbdError if viser is missing or the port is in use.

    Browsers connect to ``host``; ``0.0.0.0``: all addresses of this machine, so that everybody in
    its network can open the page. ``port`` 0: any free port. ``effort`` labels efforts of states.

    """

    def __init__(self, model: Model, geometry: Geometry, *, host: str = HOST, port: int = PORT,
                 effort: str = 'needed') -> None:
        self.server = start_server(host, port, model.name)
        self._host = host
        self.draw(model, geometry, effort)

    def draw(self, model: Model, geometry: Geometry, effort: str) -> None:
        """Replace the robot; arguments as for the class."""
        self.server.scene.reset()
        self.server.gui.reset()
        self.server.gui.set_panel_label(model.name)
        self.scene = RobotScene(self.server.scene, model, geometry)
        self.panels = Panels(self.server.gui, model, self.scene, effort)
        extent = self.scene.extent
        self.server.scene.add_grid('/grid', 4.0 * extent, 4.0 * extent, cell_size=0.25 * extent,
                                   section_size=extent)
        camera = self.server.initial_camera
        camera.position = tuple(self.scene.middle + extent * np.array(VIEWPOINT))
        camera.look_at = tuple(self.scene.middle)

    def __enter__(self) -> Viewer:
        return self

    @property
    def url(self) -> str:
        """Return the address of the page."""
        host = socket.gethostname() if self._host in EVERYWHERE else self._host
        return f'http://{f"[{host}]" if ":" in host else host}:{self.server.get_port()}'

    @property
    def is_local(self) -> bool:
        """Return whether only browsers of this machine can open the page."""
        return self._host in ('localhost', '127.0.0.1', '::1')

    def show(self, time: float, state: State) -> None:
        """Show a state at a time, s from any origin; without a browser, only the plot keeps it."""
        self.panels.remember(time, state)
        if self.server.get_clients():
            state = self.panels.chosen(state)
            with self.server.atomic():
                self.scene.update(state, self.panels.path())
            self.panels.update(time, state)

    def close(self, *_: object) -> None:
        with redirect_stdout(StringIO()):
            self.server.stop()

    __exit__ = close


def start_server(host: str, port: int, title: str) -> ViserServer:
    """Return a guarded server of empty pages; raise RbdError as for `Viewer`."""
    try:
        from rbd_ros.view.guard import Guard
        import viser
    except ImportError as error:
        raise RbdError('the viewer needs viser: pip install "rbd_ros[view]"') from error
    if port:
        _check_free(host, port)
    name = socket.gethostname()
    guard = Guard((name, f'{name}.local') if host in EVERYWHERE else (host,))
    with redirect_stdout(StringIO()), guard.starting():    # keep viser's greeting off the terminal
        server = viser.ViserServer(host=host, port=port, label=title, verbose=False)
    guard.inputs = server.gui._gui_input_handle_from_uuid
    # Sharing would send the page through a public server.
    server.gui.configure_theme(show_logo=False, show_share_button=False)
    return server


def _check_free(host: str, port: int) -> None:
    """Reject a port that is in use; viser would silently take the next one."""
    try:
        with socket.create_server((host, port)):
            pass
    except (OSError, OverflowError) as error:
        # create_server appends the address in brackets, which the message already contains.
        reason = str(getattr(error, 'strerror', None) or error).partition(' (while')[0]
        raise RbdError(f'port {port} of {host} cannot be used: {reason}; choose '
                       'another one, or 0 for any free port') from None
