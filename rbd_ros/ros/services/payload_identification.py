# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The service that identifies the payload on a link from the states of the moving robot."""

from collections.abc import Callable
from functools import partial
from typing import Any

from geometry_msgs.msg import Vector3
import numpy as np
from rbd_msgs.srv import IdentifyPayload
from rbd_ros import with_payload
from rbd_ros._internal.text import listed
from rbd_ros.identification import fit_payload, payload_partial, prepare, Recording, verdict
from rbd_ros.model import without_payload
from rbd_ros.ros import convert
from rbd_ros.ros.robot.current_robot import CurrentRobot
from rbd_ros.ros.robot.robot import Robot
from rbd_ros.ros.runtime.part import Part, steady_timer
from rbd_ros.ros.runtime.report import guarded, Log, Report
from rbd_ros.ros.services.background_services import (
    Again, BackgroundService, BadRequest, Finish, Work)
from rclpy.node import Node
from rclpy.timer import Timer

# s: shorter recordings identify nothing, longer ones fill the memory.
MIN_DURATION, MAX_DURATION = 1.0, 600.0
MAX_LACKING = 0.1    # Share of the states that may lack the velocity or effort of a joint
MAX_STATES = 1_200_000    # 600 s at 2 kHz


class StateCollection:
    """The states of a robot over some time."""

    def __init__(self, robot: Robot) -> None:
        self.robot = robot
        self._stamps: list[float] = []
        self._states: list[np.ndarray] = []

    def note(self, robot: Robot) -> None:
        """Add the latest complete state, if it is of this robot."""
        if robot is self.robot and len(self._stamps) < MAX_STATES:
            states = robot.states
            self._stamps.append(convert.seconds(robot.time_stamp))
            self._states.append(np.concatenate((states.q, states.v,
                                                robot.measured_torques(states.v))))

    def recording(self) -> Recording:
        """Return the states as a recording; raise BadRequest if states or efforts are missing."""
        model, time = self.robot.model, np.array(self._stamps)
        # Stamps that do not increase belong to messages with other joints, or are zero.
        later = np.diff(np.maximum.accumulate(time), prepend=-np.inf) > 0.0
        if np.sum(later) < 2:
            raise BadRequest('no joint states with increasing stamps arrived: look at '
                             '/diagnostics')
        q, v, effort = np.split(np.array(self._states)[later],
                                [model.nq, model.nq + model.nv], axis=1)
        lacks_v, lacks_effort = ~np.isfinite(v), ~np.isfinite(effort)
        without = [name for name, share in zip(model.velocity_names, np.mean(lacks_effort, axis=0))
                   if share > MAX_LACKING]
        if without:
            raise BadRequest(f'joint states have no efforts of {listed(without)}: have the driver '
                             'publish them')
        # A glitch leaves out its state; positions are differentiated if velocities are missing.
        has_v = bool(np.all(np.mean(lacks_v, axis=0) <= MAX_LACKING))
        whole = ~np.any(lacks_effort | (lacks_v & has_v), axis=1)
        return Recording('the states collected', model.velocity_names,
                         (time[later] - time[0])[whole], q[whole], v[whole] if has_v else None,
                         effort[whole])


class PayloadIdentification(Part):
    """
    Identifies payloads: collects states in the node's thread, and computes in the worker's.

    Invariant: at most one request is between `begin` and `end`, whatever happens to it, and its
    states are of the robot that was in use when it began.

    """

    def __init__(self, node: Node, current: CurrentRobot, report: Report, log: Log) -> None:
        self._node, self._current, self._report, self._log = node, current, report, log
        self._collecting: StateCollection | None = None
        self._collected: StateCollection | None = None
        self._then: Callable[[], None] | None = None
        self._timer: Timer | None = None

    def close(self) -> None:
        """Stop collecting; the request is not answered."""
        self._collecting = None
        if self._timer is not None:
            self._node.destroy_timer(self._timer)
            self._timer = None

    def note(self, robot: Robot) -> None:
        """Collect the latest complete state, if states are being collected."""
        if self._collecting is not None:
            self._collecting.note(robot)

    def begin(self, request: IdentifyPayload.Request, then: Callable[[], None]) -> None:
        """Start to collect states; call `then` once when the requested time is over."""
        robot = self._current.robot
        if robot is None:
            raise BadRequest('no robot description has arrived yet')
        if self._collecting is not None or self._collected is not None:
            raise BadRequest('another payload is being identified: try again when it is done')
        if not MIN_DURATION <= request.duration <= MAX_DURATION:
            raise BadRequest(f'duration must lie between {MIN_DURATION:g} and {MAX_DURATION:g} s, '
                             f'got {request.duration:g}')
        if robot.model.tree.link_body[robot.model.link_index(request.link)] == 0:
            raise BadRequest(f"no joint moves link '{request.link}': its payload does not affect "
                             'efforts')
        self._collecting = StateCollection(robot)
        self._then = then
        self._timer = steady_timer(self._node, request.duration, self._end)

    @guarded
    def _end(self) -> None:
        self._collected, then = self._collecting, self._then
        self.close()
        if then is not None:
            then()

    def end(self) -> None:
        """Discard the collected states: the request was answered, in either thread."""
        self._collected = None

    def identify(self, request: IdentifyPayload.Request, response: IdentifyPayload.Response
                 ) -> Work:
        """Find the payload that best explains the collected efforts."""
        collected, link = self._collected, request.link
        if collected is None or self._current.robot is not collected.robot:
            raise BadRequest('the robot has changed meanwhile: send the request again')
        robot = collected.robot

        def work() -> Finish:
            recording = collected.recording()
            model = robot.model
            if link in robot.payloads():
                model = without_payload(model, link)
            samples = prepare(model, recording)
            part = payload_partial(model, link, samples)
            load = fit_payload(model, part)
            judged = verdict(model, part, load, samples)
            response.inertia = convert.inertia_message(load.mass, load.com, load.inertia)
            response.mass_deviation = float(load.deviation[0])
            response.com_deviation = Vector3(**{
                axis: float(x) for axis, x in zip('xyz', load.deviation[1:4] / load.mass)})
            response.believable, response.reasons = judged.believable, list(judged.reasons)
            response.states = len(recording)
            text = (f"link '{link}' carries {load.mass:.4g} kg, within "
                    f'{2.0 * load.deviation[0]:.2g} kg (95 %), centre of mass at '
                    f'[{load.com[0]:.4g}, {load.com[1]:.4g}, {load.com[2]:.4g}] m')
            apply = request.apply and judged.believable
            if request.apply and not apply:
                text += '; not applied, because it is not believable'
            other = self._current.with_model(robot, with_payload(
                model, link, load.mass, load.com, load.inertia)) if apply else None

            def finish() -> None:
                if self._current.robot is not robot:
                    raise Again
                if other is not None:
                    self._current.change(other, robot)
                    self._log.warning(text)
                response.message = text
            return finish
        return work


class CollectingService(BackgroundService):
    """
    A service that collects states before its work begins.

    `collect` takes a request and a function to call when enough states were collected, or raises
    an exception. `release` is called when the answer is complete.

    """

    def __init__(self, collect: Callable[[Any, Callable[[], None]], None],
                 release: Callable[[], None], *arguments: Any) -> None:
        self._collect, self._release = collect, release
        super().__init__(*arguments)

    def _begin(self, response: Any, header: Any) -> None:
        request = self._request
        send = partial(self._send, response, header)

        def complete() -> None:
            self._release()
            send()
        try:
            self._collect(request, lambda: self.answer(request, response, complete))
        except Exception as error:
            self._refuse(request, response, error)
            send()
