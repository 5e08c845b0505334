# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Restrict who may connect to a page's server and which messages it accepts; viser accepts all."""

from asyncio import BaseTransport, Transport
from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
import logging
from threading import Lock
from typing import Any, cast
from urllib.parse import urlsplit

import msgspec
from rbd_ros.errors import RbdError
from viser.infra import Message
from websockets.asyncio import server as websockets_server
from websockets.asyncio.server import ServerConnection
from websockets.http11 import Request, Response

# Simultaneous connections (pages and requests for them), and bytes per message.
MOST_CONNECTIONS, MOST_BYTES = 32, 2 ** 16
# A page sends its camera pose and changed values. Everything else that viser would act on is
# dropped: public tunnels, uploads, forms, changes of attributes other than values.
CAMERA, CHANGE = 'ViewerCameraMessage', 'GuiUpdateMessage'
KINDS = {kind.__name__: kind for kind in Message.get_subclasses()
         if kind.__name__ in (CAMERA, CHANGE)}
_STARTING = Lock()    # one server at a time: starting replaces a function of websockets


class Guard:
    """Accepts connections only from the server's own pages, and only valid values of inputs."""

    # `names` are host names of the server in addition to localhost and its IP addresses.

    def __init__(self, names: Collection[str]) -> None:
        self.inputs: Mapping[str, Any] = {}    # GuiInputHandles that pages may change, by uuid
        self._names = {'localhost', *(name.lower() for name in names)}

    @contextmanager
    def starting(self) -> Iterator[None]:
        """Guard the server that viser starts in this context; raise RbdError if that fails."""
        serve, guarded = websockets_server.serve, []

        def serve_guarded(*args: Any, process_request: Any, **options: Any) -> Any:
            guarded.append(True)
            # websockets would log a traceback for every failed handshake.
            logger = logging.getLogger('rbd_ros.view.guard')
            logger.setLevel(logging.CRITICAL)
            return serve(*args, **{
                **options, 'process_request': partial(self._answer, process_request),
                'create_connection': partial(_Connection, self), 'max_size': MOST_BYTES,
                'logger': logger})
        with _STARTING:
            module: Any = websockets_server
            module.serve = serve_guarded
            try:
                yield
            finally:
                module.serve = serve
        if not guarded:
            raise RbdError('the installed version of viser cannot be protected against other '
                           'sites; install a supported one: pip install "viser==1.1.1"')

    def _answer(self, serve_page: Callable[[ServerConnection, Request], Response | None],
                connection: ServerConnection, request: Request) -> Response | None:
        """Return a page, a refusal, or None to open a websocket."""
        hosts, origins, upgrades = (request.headers.get_all(name)
                                    for name in ('Host', 'Origin', 'Upgrade'))
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return connection.respond(
                HTTPStatus.FORBIDDEN, 'Not a name of the viewer: open the address that it '
                'prints, an IP address of its machine, or the name given as its host.\n')
        # A query could name another server, whose scripts viser's page would run.
        if '?' in request.path:
            return connection.respond(
                HTTPStatus.FORBIDDEN, 'Open the address of the viewer without a query (?...).\n')
        if origins != [f'http://{hosts[0]}'] and (origins or upgrades):
            return connection.respond(
                HTTPStatus.FORBIDDEN, 'Pages of other sites cannot use the viewer.\n')
        return serve_page(connection, request)

    def _is_own(self, host: str) -> bool:
        # The owner of any other name can resolve it to this machine (DNS rebinding), so that pages
        # of that site share the origin of this server. IP addresses cannot be redirected.
        try:
            name = urlsplit(f'//{host}').hostname or ''
            return name in self._names or bool(ip_address(name))
        except ValueError:
            return False

    def accept(self, data: str | bytes) -> bytes | None:
        """Return the message of a page re-encoded for viser, or None if it is invalid."""
        try:
            fields = msgspec.msgpack.decode(cast('bytes', data), type=dict[str, Any])
            kind = str(fields.pop('type'))
            message = msgspec.to_builtins(msgspec.convert(fields, KINDS[kind]))
            if kind == CHANGE:
                handle, value = self.inputs[message['uuid']], message['updates']['value']
                message['updates'] = {'value': valid(handle, value)}
        except (ValueError, LookupError, TypeError, RecursionError):
            return None
        return msgspec.msgpack.encode({'type': kind, **message})


def valid(handle: Any, value: Any) -> Any:
    """Return a value of an input (slider, checkbox, dropdown, button), or raise ValueError."""
    if hasattr(handle, 'step'):
        if type(value) in (int, float) and (
                handle.min - handle.step <= value <= handle.max + handle.step):
            return min(max(value, handle.min), handle.max)
    elif type(value) is type(handle.value) and value in getattr(handle, 'options', (False, True)):
        return value
    raise ValueError('not a value of this input')


class _Connection(ServerConnection):
    """A connection that is closed if there are too many, and drops invalid messages."""

    def __init__(self, guard: Guard, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._guard = guard

    def connection_made(self, transport: BaseTransport) -> None:
        super().connection_made(transport)
        if len(self.server.handlers) > MOST_CONNECTIONS:
            cast('Transport', transport).abort()

    async def recv(self, decode: bool | None = None) -> Any:
        """Wait for the next valid message."""
        message = None
        while message is None:
            message = self._guard.accept(await super().recv(decode))
        return message
