# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Services answered in the background, and the order of the joints in their requests."""

from collections.abc import Callable, Iterator, Sequence
from contextlib import suppress
import re
from typing import Any, TypeAlias

import numpy as np
import numpy.typing as npt
from rbd_ros import Model, RbdError
from rbd_ros._internal.text import listed, printable
from rbd_ros.ros.runtime.part import Part
from rbd_ros.ros.runtime.report import Log, Report
from rbd_ros.ros.runtime.worker import Busy, MAX_WAITING, Worker
from rclpy.exceptions import InvalidHandle
from rclpy.node import Node
from rclpy.qos import QoSProfile

# Deep enough for bursts of requests: requests that do not fit into the queue are never answered.
SERVICE_QOS = QoSProfile(depth=100)

MAX_REASONS = 10    # Number of different reasons for rejections that are logged in one period

# Fields of requests by the names of the library's arguments, and where its errors have them.
FIELDS = {'q': 'position', 'v': 'velocity', 'a': 'acceleration', 'tau': 'effort',
          'v_r': 'reference_velocity', 'a_r': 'reference_acceleration'}
ARGUMENT = re.compile(rf"(?<![\w'])({'|'.join(FIELDS)})(?= of '| = |: constraint| with its)")

# The last step of work, in the node's thread; background work that fills in a response; a method
# that returns the work for a request and a response.
Finish: TypeAlias = Callable[[], None]
Work: TypeAlias = Callable[[], Finish | None]
Method: TypeAlias = Callable[[Any, Any], Work]


class BadRequest(Exception):
    """A request that cannot be answered; the message contains the reason and a remedy."""


class Again(Exception):
    """The robot has changed since the request arrived: process the request again."""


def methods(part: Any) -> Iterator[tuple[type, str, Method]]:
    """Yield type, name and method of each of the services that a part `answers`."""
    for kind in part.answers:
        name = re.sub(r'(?<!^)(?=[A-Z])', '_', kind.__name__).lower()
        yield kind, f'~/{name}', getattr(part, name)


class BackgroundService(Part):
    """
    A service whose requests are processed by the worker.

    `method` is like those of `dynamics_services.Services`. With `show`, which returns the content
    of a request as text, rejected requests are logged.

    """

    def __init__(self, node: Node, kind: type, name: str, method: Method, worker: Worker,
                 report: Report, log: Log, show: Callable[[Any], str] | None = None) -> None:
        self._node, self._method, self._worker = node, method, worker
        self._report, self._log = report, log
        self._show, self._label = show, name
        self._request = None
        self.service = node.create_service(kind, name, self._take, qos_profile=SERVICE_QOS)
        # The executor calls this right after _take, with the same response.
        self._respond = self.service.send_response
        self.service.send_response = self._begin    # type: ignore[method-assign]

    def close(self) -> None:
        self._node.destroy_service(self.service)

    def _take(self, request: Any, response: Any) -> Any:
        self._request = request
        return response

    def _begin(self, response: Any, header: Any) -> None:
        self.answer(self._request, response, lambda: self._send(response, header))

    def _send(self, response: Any, header: Any) -> None:
        # The service may have been destroyed meanwhile.
        with suppress(InvalidHandle):
            self._respond(response, header)

    def answer(self, request: Any, response: Any, send: Callable[[], None]) -> None:
        """Fill in a response or a rejection, then `send` it, perhaps in the worker's thread."""
        def work() -> Finish | None:
            try:
                finish = do()
            except Exception as error:
                finish = None
                self._refuse(request, response, error)
            else:
                response.success = True
            if finish is None:
                send()
            return finish

        def then(finish: Finish | None) -> None:
            if finish is None:
                return
            try:
                finish()
            except Again:
                self.answer(request, response, send)
                return
            except Exception as error:
                self._refuse(request, response, error)
            send()
        try:
            do = self._method(request, response)
            self._worker.submit(work, then, may_wait=False)
        except Exception as error:
            self._refuse(request, response, error)
            send()

    def _refuse(self, request: Any, response: Any, error: Exception) -> None:
        text = ARGUMENT.sub(lambda found: FIELDS[found[1]], str(error))
        if isinstance(error, Busy):
            text = (f'{self._label} is busy: {MAX_WAITING} requests are already '
                    'waiting; try again later')
        elif not isinstance(error, (BadRequest, RbdError)):
            text = f'{type(error).__name__}: {error}'
            self._report.fail('errors', text)
            self._log.error(f'a request failed: {text}', 'request')
        if self._show is not None:
            # Not that of the service, which may have been destroyed meanwhile.
            self._log.warning(f'{self._label} refused, {self._show(request)}: {text}',
                              self._label, MAX_REASONS)
        response.success, response.message = False, printable(text)


class Order:
    """Converts between the order of the joints in a request, `names`, and that of the model."""

    def __init__(self, model: Model, names: Sequence[str]) -> None:
        self._model = model
        self.names = list(names) or list(model.velocity_names)
        index = {name: k for k, name in enumerate(model.velocity_names)}
        unknown = [name for name in self.names if name not in index]
        if unknown:
            raise BadRequest(f"the robot has no joint '{unknown[0]}'; its joints are "
                             + listed(model.velocity_names))
        missing = set(index) - set(self.names)
        if missing or len(self.names) != len(index):
            raise BadRequest('name every joint once; missing: '
                             + (listed(sorted(missing)) or 'none'))
        self._target = np.array([index[name] for name in self.names], int)

    def read(self, label: str, values: Sequence[float]) -> np.ndarray:
        """Return values of a request in the order of the model; zeros if the request has none."""
        if len(values) and len(values) != len(self.names):
            raise BadRequest(f'{label} has {len(values)} entries, expected {len(self.names)}: '
                             + listed(self.names))
        result = np.zeros(len(self.names), bool if label == 'acceleration_prescribed' else float)
        if len(values):
            result[self._target] = values
        return result

    def read_prescribed(self, request: Any) -> np.ndarray:
        """Return for which velocities a request prescribes the acceleration; default: none."""
        if len(request.acceleration) and not len(request.acceleration_prescribed):
            raise BadRequest('acceleration is given, but acceleration_prescribed is not: it '
                             'selects the joints whose acceleration is prescribed')
        return self.read('acceleration_prescribed', request.acceleration_prescribed)

    def read_position(self, values: Sequence[float]) -> np.ndarray:
        """Return the position in a request in the order of the model."""
        # If there are more positions than velocities, they must already be in that order.
        if self._model.nq == self._model.nv:
            return self.read('position', values)
        if len(values) != self._model.nq:
            raise BadRequest(f'position has {len(values)} entries, expected {self._model.nq}: '
                             + listed(self._model.position_names))
        return np.array(values)

    def arrange(self, values: npt.ArrayLike) -> np.ndarray:
        """Return rows of the model, one for each velocity, in the order of the request."""
        return np.asarray(values)[self._target]

    def write(self, values: npt.ArrayLike) -> list[Any]:
        """Return values of the model in the order of the request, as a list."""
        return self.arrange(values).tolist()
