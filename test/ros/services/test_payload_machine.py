# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Whatever happens between a request to identify a load and its answer, there is exactly one answer.

And afterwards the next request is welcome, and states are of one robot alone.

"""

from collections import Counter
from types import SimpleNamespace

from builtin_interfaces.msg import Time
from command_line import ARM as URDF
from covering import covering
from hypothesis import strategies as st
from hypothesis.stateful import (
    invariant, precondition, rule, RuleBasedStateMachine)
from machines import run_machine
import numpy as np
import pytest
import rbd_ros
from rbd_ros import batch
from rbd_ros.ros.runtime.worker import Busy
from rbd_ros.ros.services.payload_identification import CollectingService, PayloadIdentification

ARM = rbd_ros.load_urdf(URDF)
LINK, LOAD = ARM.link_names[-1], 1.5
RATE, SECONDS = 50.0, 8.0
# kg: what differentiating the positions of so short a motion leaves
NEAR = 0.05
RARELY = st.sampled_from([False, False, False, True])
counts = Counter()


def motion():
    """Return states of the arm with a load, which a request can identify."""
    t = np.arange(0.0, SECONDS, 1.0 / RATE)
    w = 2.0 * np.pi * np.array([0.25, 0.5])[:, None, None]
    angle = w * t[:, None] + np.arange(2.0 * ARM.nv).reshape(2, 1, ARM.nv) ** 2
    q, v, a = 0.4 * np.sum(np.sin(angle), 0), np.sum(0.4 * w * np.cos(angle), 0), np.sum(
        -0.4 * w ** 2 * np.sin(angle), 0)
    loaded = rbd_ros.with_payload(ARM, LINK, LOAD, (0.0, 0.0, 0.05))
    return list(zip(q, v, batch.inverse_dynamics(loaded, q, v, a)))


MOTION = motion()


class Robot:
    """What is used of the robot of a node."""

    def __init__(self):
        self.model, self.time_stamp = ARM, Time()
        self.states = SimpleNamespace(q=np.zeros(ARM.nq), v=np.zeros(ARM.nv),
                                      effort=np.zeros(ARM.nv))

    def measured_torques(self, v):
        """Return the efforts as they are: they are torques."""
        return self.states.effort

    def payloads(self):
        """Return that there is no load."""
        return {}


class Machine(RuleBasedStateMachine):
    """The service, with a node, a worker and a robot that do what the rules say."""

    def __init__(self):
        super().__init__()
        self.now, self.timers, self.queue, self.is_full = 100.0, [], [], False
        self.answers, self.asked, self.fed = {}, {}, 0
        self.wrong = False              # whether a robot was changed that was not there any more
        self.current = SimpleNamespace(robot=Robot(), with_model=lambda robot, model: Robot(),
                                       change=self._change)
        node = SimpleNamespace(
            create_timer=self._create_timer, destroy_timer=self.timers.remove,
            create_service=lambda *_, **__: SimpleNamespace(send_response=self._answered,
                                                            srv_name='identify_payload'))
        quiet = SimpleNamespace(fail=lambda *_: None, error=lambda *_: None,
                                warning=lambda *_: None)
        self.loads = PayloadIdentification(node, self.current, quiet, quiet)
        self.service = CollectingService(
            self.loads.begin, self.loads.end, node, None, '~/identify_payload',
            self.loads.identify, SimpleNamespace(submit=self._submit), quiet, quiet)

    def _create_timer(self, duration, callback, clock):
        self.timers.append(SimpleNamespace(due=self.now + duration, callback=callback))
        return self.timers[-1]

    def _submit(self, work, then, may_wait):
        if self.is_full:
            raise Busy
        self.queue.append((work, then))

    def _change(self, other, robot):
        self.wrong |= robot is not self.current.robot
        self.current.robot = other

    def _answered(self, response, header):
        assert header not in self.answers
        self.answers[header] = response

    def _ask(self, duration, apply):
        header = len(self.asked)
        free = len(self.answers) == len(self.asked)
        self.asked[header] = self.current.robot
        request = SimpleNamespace(duration=duration, link=LINK, apply=apply)
        response = SimpleNamespace(success=None, message='')
        self.service._take(request, response)
        self.service.service.send_response(response, header)
        return header, free

    @rule(duration=st.sampled_from([0.0, 2.0, 7.5, 7.5, 7.5]), apply=st.booleans())
    def ask(self, duration, apply):
        """Send a request."""
        header, free = self._ask(duration, apply)
        if duration == 0.0:
            assert not self.answers[header].success
        elif free:
            # The one before is over: this one is welcome.
            assert header not in self.answers and len(self.timers) == 1
            self.fed = 0
        else:
            assert 'another payload' in self.answers[header].message

    @rule(count=st.sampled_from([1, 30, 400, 450]))
    def states(self, count):
        """Let states come."""
        robot = self.current.robot
        for _ in range(count):
            self.now += 1.0 / RATE
            states = robot.states
            states.q, states.v, states.effort = MOTION[self.fed % len(MOTION)]
            self.fed += 1
            robot.time_stamp = Time(sec=int(self.now),
                                    nanosec=round(self.now % 1.0 * 1e9) % 10 ** 9)
            self.loads.note(robot)
            for timer in [one for one in self.timers if one.due <= self.now]:
                timer.callback()

    @rule(changes=RARELY)
    def another_robot(self, changes):
        """Let a description arrive, or a load be set."""
        if changes:
            self.current.robot = Robot()

    @precondition(lambda self: self.queue)
    @rule(changes=RARELY)
    def work(self, changes):
        """Let the worker do the next piece of work, and the node what is left of it."""
        header, = (one for one in self.asked if one not in self.answers)
        work, then = self.queue.pop(0)
        finish = work()
        self.another_robot(changes)
        changed = self.asked[header] is not self.current.robot
        then(finish)
        if changed:
            # It is told so at once, or when the node has looked again.
            assert not self.answers[header].success

    @rule(full=st.booleans())
    def crowd(self, full):
        """Let other requests fill the queue of the worker, or leave it."""
        self.is_full = full

    @rule(stops=RARELY)
    def stop(self, stops):
        """Clean the node up: what is being collected is forgotten."""
        if self.timers and stops:
            self.loads.close()
            for header in self.asked:
                self.answers.setdefault(header, None)

    @invariant()
    def one_at_a_time(self):
        """At most one request is not answered, and one timer runs."""
        open_ = [header for header in self.asked if header not in self.answers]
        assert len(open_) <= 1 and len(self.timers) + len(self.queue) == len(open_)

    @invariant()
    def robots_change_in_order(self):
        """Check that a load is set on the robot that carries it."""
        assert not self.wrong

    @invariant()
    def believable_loads_are_right(self):
        """Check that what is believed is the load, of the states of one robot."""
        for response in self.answers.values():
            if response is not None and response.success and response.believable:
                counts['believed'] += 1
                assert abs(response.inertia.m - LOAD) < NEAR


@pytest.mark.parametrize('runs', covering([20, 150], 20))
def test_every_request_is_answered_once_and_the_next_one_is_welcome(runs):
    counts.clear()
    run_machine(Machine, runs, 40)
    assert counts['believed'] > 0
