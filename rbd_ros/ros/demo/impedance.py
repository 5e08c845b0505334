# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Cartesian impedance: a push displaces the tool as a spring would, in each direction."""

from functools import partial

import numpy as np
from rbd_ros import forward_kinematics, world_jacobian
from rbd_ros.ros.demo.mode import Check, Mode, Strip
from rbd_ros.ros.demo.robots import DemoFailed, load_share, MAX_LOAD_SHARE, tip
from rbd_ros.ros.demo.session import Sample, Session
from rbd_ros.ros.nodes.simulated_control import gains, poses, ROBOT

# N/m, N m/rad and N
STIFFNESS, ROTATIONAL_STIFFNESS, PUSH = 500.0, 20.0, 10.0
MAX_DEVIATION = 0.05   # of the measured stiffness, relative
# s: before a push, during it, and averaged at the end of each.
FREE, PUSHED, AVERAGED = 1.5, 3.0, 0.5
# m/rad: smallest singular value of the tool's Jacobian at the initial position.
MIN_MOBILITY = 0.02


class ImpedanceMode(Mode):
    """Three pushes, along x, y and z, against the virtual springs of the tool."""

    title = 'pushed along x, y and z'
    introduction = (
        f'Virtual springs of {STIFFNESS:g} N/m hold the last link (cartesian_impedance). Forces '
        f'of {PUSH:g} N push it along x, y and z in turn and should displace it by '
        f'{1e3 * PUSH / STIFFNESS:g} mm.')
    needs_mujoco = 'only mujoco_robot accepts external forces'
    tolerance = np.inf
    error_name = 'displacement'

    def _choose_start(self) -> np.ndarray:
        """Return the position in which the link moves best in all directions."""
        model = self.model
        self.link = tip(model)
        able = {float(np.linalg.svd(world_jacobian(model, q, self.link), compute_uv=False)[-1]): q
                for q in poses(model) if np.max(load_share(model, q)) <= MAX_LOAD_SHARE}
        if not able or model.nv < 6 or max(able) < MIN_MOBILITY:
            raise DemoFailed(f"'{self.link}', the last link of '{model.name}', cannot move in all "
                             'six directions')
        return able[max(able)]

    def run(self, session: Session) -> list[Check]:
        """Push the link in three directions."""
        session.launch('torque_controller', robot={**ROBOT, 'push_link': self.link}, parameters={
            **gains(self.model, session.start), 'mode': 'cartesian_impedance',
            'task_link': self.link, 'cartesian_impedance.stiffness':
            [ROTATIONAL_STIFFNESS] * 3 + [STIFFNESS] * 3})
        checks = []
        for axis, name in enumerate('xyz'):
            samples = session.repeat_after_pause(partial(self._push, session, axis))
            before, pushed = (
                self._positions([one for one in samples if end - AVERAGED < one.t <= end]).mean(0)
                for end in (samples[0].t + FREE, samples[-1].t))
            moved = (pushed - before)[axis]
            session.note = f"'{self.link}' moved by {1e3 * moved:.1f} mm along {name}"
            measured = PUSH / moved
            deviation = abs(measured / STIFFNESS - 1.0)
            checks.append(Check(
                f"{PUSH:g} N along {name} moved '{self.link}' by {1e3 * moved:.2f} mm: stiffness "
                f'{measured:.0f} N/m, {100.0 * deviation:.1f} % off {STIFFNESS:g} N/m; limit '
                f'{100.0 * MAX_DEVIATION:g} %.', bool(deviation <= MAX_DEVIATION)))
        session.push(np.zeros(3))
        session.watch('not pushed', FREE)
        return checks

    def _push(self, session: Session, axis: int) -> list[Sample]:
        session.push(np.zeros(3))
        free = session.watch('not pushed', FREE)
        session.push(PUSH * np.eye(3)[axis])
        return free + session.watch(f"pushed along {'xyz'[axis]}", PUSHED)

    def _positions(self, samples: list[Sample]) -> np.ndarray:
        k = self.model.link_index(self.link)
        return np.array([forward_kinematics(self.model, one.q)[k, :3, 3] for one in samples])

    def strips(self, session: Session) -> list[Strip]:
        """Return the measured and the expected displacement of the link."""
        start = Sample(0.0, session.start, session.start, session.start)
        moved = self._positions(session.samples) - self._positions([start])
        expected = np.zeros_like(moved)
        ends = [phase.first for phase in session.phases[1:]] + [len(moved)]
        for phase, end in zip(session.phases, ends):
            if phase.name.startswith('pushed'):
                expected[phase.first:end, 'xyz'.index(phase.name[-1])] = PUSH / STIFFNESS
        return [Strip(f'{self.link}, {axis}', 'mm', 1e3 * x, 1e3 * y)
                for axis, x, y in zip('xyz', moved.T, expected.T)]
