# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Who may connect to a page's server, and what it accepts from them; viser accepts everything."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import contextmanager
from functools import partial
from http import HTTPStatus
from ipaddress import ip_address
import logging
from threading import Lock
from typing import Any, cast, TYPE_CHECKING
from urllib.parse import urlsplit

import msgspec
from rbd_ros.errors import RbdError
from viser.infra import Message
from websockets.asyncio import server as websockets_server
from websockets.asyncio.server import ServerConnection

if TYPE_CHECKING:
    from asyncio import BaseTransport, Transport

    from websockets.http11 import Request, Response

# Connections at once, of pages and of requests for them; bytes of a message.
MOST_CONNECTIONS, MOST_BYTES = 32, 2 ** 16
# A page sends the pose of its camera and changed values. Everything else that viser would act on
# is dropped: public tunnels, uploads, forms, changes of other attributes than values.
CAMERA, CHANGE = 'ViewerCameraMessage', 'GuiUpdateMessage'
KINDS = {kind.__name__: kind for kind in Message.get_subclasses()
         if kind.__name__ in (CAMERA, CHANGE)}
# Servers start one after the other: meanwhile, a function of websockets is replaced.
_STARTING = Lock()


class Guard:
    """
    Accepts connections of a server's own pages only, and valid values of their inputs only.

    Parameters
    ----------
    names : collection of str
        Names of the server beside localhost; its IP addresses are always accepted.

    Attributes
    ----------
    inputs : mapping of str to viser.GuiInputHandle
        Sliders with limits, checkboxes, dropdowns and buttons that pages may change.

    """

    def __init__(self, names: Collection[str]) -> None:
        self.inputs: Mapping[str, Any] = {}
        self._names = {'localhost', *(name.lower() for name in names)}

    @contextmanager
    def starting(self) -> Iterator[None]:
        """
        Guard the server that viser starts in this context.

        Raises
        ------
        RbdError
            If none was started that is guarded.

        """
        serve, guarded = websockets_server.serve, []

        def serve_guarded(*args: Any, process_request: Any, **options: Any) -> Any:
            guarded.append(True)
            # Otherwise every failed handshake would print a traceback.
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
                           'sites; install one that can: pip install "viser==1.1.1"')

    def _answer(self, serve_page: Callable[[ServerConnection, Request], Response | None],
                connection: ServerConnection, request: Request) -> Response | None:
        """Return a page, a refusal, or None to open a websocket."""
        hosts, origins, upgrades = (request.headers.get_all(name)
                                    for name in ('Host', 'Origin', 'Upgrade'))
        if len(hosts) != 1 or not self._is_own(hosts[0]):
            return connection.respond(
                HTTPStatus.FORBIDDEN, 'The viewer has another name: open the address that it '
                'prints, an IP address of its machine, or the name given as its host.\n')
        # In a query, other servers could be named, and viser's page would run their scripts.
        if '?' in request.path:
            return connection.respond(
                HTTPStatus.FORBIDDEN, 'Open the address of the viewer without a query (?...).\n')
        if origins != [f'http://{hosts[0]}'] and (origins or upgrades):
            return connection.respond(
                HTTPStatus.FORBIDDEN, 'Pages of other sites cannot use the viewer.\n')
        return serve_page(connection, request)

    def _is_own(self, host: str) -> bool:
        """
        Return whether a Host header names this server.

        The owner of any other name can let it point here (DNS rebinding), so that pages of that
        site have the origin of this server. Addresses cannot be redirected.

        """
        try:
            name = urlsplit(f'//{host}').hostname or ''
            return name in self._names or bool(ip_address(name))
        except ValueError:
            return False

    def accept(self, data: str | bytes) -> bytes | None:
        """
        Return a message of a page as viser is to read it, or None if it is invalid.

        Parameters
        ----------
        data : str or bytes
            The message; text is invalid.

        Returns
        -------
        bytes or None

        """
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
    """
    Return a value that an input can have.

    Parameters
    ----------
    handle : viser.GuiInputHandle
        A slider, checkbox, dropdown or button.
    value : any
        The value that a page gives it.

    Returns
    -------
    any
        The value; pages round it to the steps of a slider, so within one step beyond a limit it
        becomes the limit.

    Raises
    ------
    ValueError
        If the input cannot have this value.

    """
    if hasattr(handle, 'step'):
        if type(value) in (int, float) and (
                handle.min - handle.step <= value <= handle.max + handle.step):
            return min(max(value, handle.min), handle.max)
    elif type(value) is type(handle.value) and value in getattr(handle, 'options', (False, True)):
        return value
    raise ValueError('not a value of this input')


class _Connection(ServerConnection):
    """A connection whose messages are guarded, and which is closed if there are too many."""

    def __init__(self, guard: Guard, *args: Any, **options: Any) -> None:
        super().__init__(*args, **options)
        self._guard = guard

    def connection_made(self, transport: BaseTransport) -> None:
        """Close the connection if there are too many."""
        super().connection_made(transport)
        if len(self.server.handlers) > MOST_CONNECTIONS:
            cast('Transport', transport).abort()

    async def recv(self, decode: bool | None = None) -> Any:
        """Wait for the next valid message."""
        message = None
        while message is None:
            message = self._guard.accept(await super().recv(decode))
        return message
