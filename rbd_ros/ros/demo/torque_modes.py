# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Scenarios of the torque controller: each one's numbers stand at the beginning of its class."""

from functools import partial
from typing import Any

import numpy as np
from rbd_ros import (
    forward_kinematics, gravity_torques, mass_matrix, Model, with_payload, world_jacobian)
from rbd_ros.ros.demo.motions import Motion
from rbd_ros.ros.demo.robots import DemoFailed, heavy_position, load_share, MAX_LOAD_SHARE, tip
from rbd_ros.ros.demo.session import Check, Mode, rms, Sample, Session, Strip, worst
from rbd_ros.ros.nodes.simulated_control import gains, poses, ROBOT

MARGIN = 0.8    # rad, between the limits of a free joint and its position at rest


class TorqueMode(Mode):
    """A mode with the torque controller."""

    def launch(self, session: Session, parameters: dict[str, Any],
               robot: dict[str, Any] | None = None) -> None:
        """Start the controller with the gains of the robot and parameters, and the robot."""
        session.launch('torque_controller', robot={**ROBOT, **(robot or {})},
                       parameters={**gains(self.model, self.start), **parameters})


class ComputedTorqueMode(TorqueMode):
    """Two phases: the same motion by pd_gravity, then by computed_torque."""

    MIN_IMPROVEMENT = 5.0    # ratio of the errors of pd_gravity and computed_torque
    MOTION = 6.0    # s
    title = 'tracking by pd_gravity, then by computed_torque'
    introduction = ('All joints swing. First PD control with gravity compensation moves them '
                    '(pd_gravity), then inverse dynamics is added (computed_torque): the lag '
                    'disappears.')
    tolerance = 1e-2    # rad or m, RMS

    def run(self, session: Session) -> list[Check]:
        """Let the robot follow the motion twice."""
        motion = Motion(self.model, self.start, self.MOTION)
        self.launch(session, {'mode': 'pd_gravity'})
        lag = rms(session.follow('pd_gravity', motion, accurate=False))
        session.set_parameters(mode='computed_torque')
        error = rms(session.follow('computed_torque', motion))
        ratio = np.max(lag) / np.max(error)
        return [Check(f'Computed torque: largest RMS error {worst(self.model, error)}; limit '
                      f'{self.tolerance:g}.', bool(np.max(error) < self.tolerance)),
                Check(f'PD with gravity compensation: largest RMS error {worst(self.model, lag)}, '
                      f'{ratio:.1f} times as large; required: at least {self.MIN_IMPROVEMENT:g} '
                      'times.', bool(ratio > self.MIN_IMPROVEMENT))]


class AdaptiveMode(TorqueMode):
    """Two phases: the robot moves an unknown payload, without and with adaptation."""

    MIN_IMPROVEMENT = 5.0    # ratio of the errors without and with adaptation
    # Payload: kg, but at most this share of the robot's mass; m, in the frame of its link.
    PAYLOAD, MAX_SHARE, PAYLOAD_COM = 1.0, 0.05, (0.0, 0.0, 0.05)
    ADAPTATION = 100.0    # 1/J, adaptation gain
    # s: motions without and with adaptation; compared span, before the fade at the end of each.
    WITHOUT, WITH, COMPARED, FADES = 8.0, 16.0, 4.0, 2.0
    title = 'an unknown payload, identified by adaptive control'
    introduction = ('The robot carries a payload that is missing from its URDF. The control law '
                    'of Slotine and Li first trusts the URDF (slotine_li, adaptation 0), then '
                    'adapts to the payload.')
    needs_mujoco = 'only mujoco_robot can carry a payload that is missing from the URDF'
    tolerance = 0.02    # rad or m

    def __init__(self, model: Model) -> None:
        self._payload: dict[str, Any] = {
            'link': tip(model), 'mass': min(self.PAYLOAD, self.MAX_SHARE * model.mass),
            'com': list(self.PAYLOAD_COM)}
        self._loaded = with_payload(model, **self._payload)
        super().__init__(model)

    def _choose_start(self) -> np.ndarray:
        return heavy_position(self._loaded)

    def run(self, session: Session) -> list[Check]:
        """Let the robot follow the motion without and with adaptation."""
        session.note = f"{self._payload['mass']:.2g} kg at '{self._payload['link']}'"
        motions = [Motion(self._loaded, self.start, seconds)
                   for seconds in (self.WITHOUT, self.WITH)]
        # Gains may have been tuned with the payload attached; they do not reveal it.
        self.launch(session, {**gains(self._loaded, self.start), 'mode': 'slotine_li',
                              'slotine_li.links': [self._payload['link']]},
                    {f'payload_{key}': value for key, value in self._payload.items()})
        before = rms(_compared(session.follow('no adaptation', motions[0], accurate=False)))
        session.set_parameters(slotine_li__adaptation=self.ADAPTATION)
        after = rms(_compared(session.follow('adaptation', motions[1])))
        ratio = np.linalg.norm(before) / np.linalg.norm(after)
        return [Check(
            f'Largest RMS error with the URDF alone: {worst(self.model, before)}; after '
            f'{self.WITH - self.COMPARED - self.FADES:.0f} s of adaptation: '
            f'{worst(self.model, after)}. The error of all joints together is {ratio:.1f} times '
            f'smaller; required: at least {self.MIN_IMPROVEMENT:g} times.',
            bool(ratio > self.MIN_IMPROVEMENT))]


def _compared(samples: list[Sample]) -> list[Sample]:
    """Return the end of a motion, before it fades."""
    end = samples[-1].t - AdaptiveMode.FADES
    return [sample for sample in samples if end - AdaptiveMode.COMPARED <= sample.t <= end]


class HybridMode(TorqueMode):
    """One phase: all joints but one track a motion, and that one has zero torque."""

    MIN_SWING = 0.05    # rad, of the free joint
    MOTION = 8.0    # s
    title = 'one free joint, the others track a motion'
    introduction = ('One joint is free, with zero torque, and swings like a pendulum. The others '
                    'track a motion (hybrid): hybrid dynamics predicts the swing.')
    tolerance = 1e-2    # rad or m, RMS

    def _choose_start(self) -> np.ndarray:
        start, self.free = hanging(self.model)
        return start

    def run(self, session: Session) -> list[Check]:
        """Let the robot follow the motion."""
        name = self.model.velocity_names[self.free]
        session.note = f"'{name}' is free"
        motion = Motion(self.model, self.start, self.MOTION, (self.free,))
        # Without the guard, which would brake the free joint when it swings faster than its limit.
        self.launch(session, {'mode': 'hybrid', 'hybrid.free_joints': [name],
                              'velocity_guard': 0.0})
        samples = session.follow(f"all but '{name}'", motion)
        error, swing = rms(samples), np.ptp([sample.q[self.free] for sample in samples])
        error[self.free] = 0.0
        torque = max(abs(sample.tau[self.free]) for sample in samples)
        return [
            Check(f'Largest RMS error of the tracking joints: {worst(self.model, error)}; limit '
                  f'{self.tolerance:g}.', bool(np.max(error) < self.tolerance)),
            Check(f"Swing of '{name}': {swing:.2g} rad; required: at least {self.MIN_SWING:g} "
                  'rad.', bool(swing > self.MIN_SWING)),
            Check(f'Its largest torque: {torque:.2g} N m; required: 0.', torque == 0.0)]

    def strips(self, session: Session) -> list[Strip]:
        """Return errors, and the swing of the free joint."""
        strips = super().strips(session)
        swing = np.array([sample.q[self.free] for sample in session.samples])
        strips[self.free] = Strip(f'{self.model.velocity_names[self.free]} swing', 'rad',
                                  swing - self.start[self.free])
        return strips


def hanging(model: Model) -> tuple[np.ndarray, int]:
    """
    Return a position in which a joint hangs at rest without torque, and the index of that joint.

    With the others at rest, the gravity torque of a revolute joint is A sin(q - q_0), so two
    angles determine A and q_0; the joint hangs where that torque is restoring. Of some positions
    and all joints with enough margin, choose the one with the largest A per inertia, which swings
    fastest. Raise DemoFailed if there is none.

    """
    best, found = 0.0, None
    middle = np.nan_to_num(0.5 * (model.lower + model.upper), nan=0.0, posinf=0.0, neginf=0.0)
    for q in poses(model):
        here = gravity_torques(model, q)
        for k in np.flatnonzero(model.angular).tolist():
            turned = q.copy()
            turned[k] += 0.5 * np.pi
            sine, cosine = here[k], gravity_torques(model, turned)[k]
            amplitude, angle = np.hypot(sine, cosine), q[k] - np.arctan2(sine, cosine)
            angle += 2.0 * np.pi * np.round((middle[k] - angle) / (2.0 * np.pi))
            hangs = q.copy()
            hangs[k] = angle
            ratio = amplitude / mass_matrix(model, hangs)[k, k]
            if (ratio > best and amplitude > 3.0 * model.friction[k]
                    and model.lower[k] + MARGIN < angle < model.upper[k] - MARGIN
                    and np.max(load_share(model, hangs)) <= MAX_LOAD_SHARE):
                best, found = ratio, (hangs, k)
    if found is None:
        raise DemoFailed(f"no joint of '{model.name}' can hang freely within its limits")
    return found


class ImpedanceMode(TorqueMode):
    """Three pushes, along x, y and z, against the virtual springs of the tool."""

    # N/m, N m/rad and N
    STIFFNESS, ROTATIONAL_STIFFNESS, PUSH = 500.0, 20.0, 10.0
    MAX_DEVIATION = 0.05    # of the measured stiffness, relative
    # s: before a push, during it, and averaged at the end of each.
    FREE, PUSHED, AVERAGED = 1.5, 3.0, 0.5
    # m/rad: smallest singular value of the tool's Jacobian at the initial position.
    MIN_MOBILITY = 0.02
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
        if not able or model.nv < 6 or max(able) < self.MIN_MOBILITY:
            raise DemoFailed(f"'{self.link}', the last link of '{model.name}', cannot move in all "
                             'six directions')
        return able[max(able)]

    def run(self, session: Session) -> list[Check]:
        """Push the link in three directions."""
        stiffness = [self.ROTATIONAL_STIFFNESS] * 3 + [self.STIFFNESS] * 3
        self.launch(session, {'mode': 'cartesian_impedance', 'task_link': self.link,
                              'cartesian_impedance.stiffness': stiffness},
                    {'push_link': self.link})
        checks = []
        for axis, name in enumerate('xyz'):
            samples = session.repeat_after_pause(partial(self._push, session, axis))
            before, pushed = (
                self._positions([one.q for one in samples
                                 if end - self.AVERAGED < one.t <= end]).mean(0)
                for end in (samples[0].t + self.FREE, samples[-1].t))
            moved = (pushed - before)[axis]
            session.note = f"'{self.link}' moved by {1e3 * moved:.1f} mm along {name}"
            measured = self.PUSH / moved
            deviation = abs(measured / self.STIFFNESS - 1.0)
            checks.append(Check(
                f"{self.PUSH:g} N along {name} moved '{self.link}' by {1e3 * moved:.2f} mm: "
                f'stiffness {measured:.0f} N/m, {100.0 * deviation:.1f} % off {self.STIFFNESS:g} '
                f'N/m; limit {100.0 * self.MAX_DEVIATION:g} %.',
                bool(deviation <= self.MAX_DEVIATION)))
        session.push(np.zeros(3))
        session.watch('not pushed', self.FREE)
        return checks

    def _push(self, session: Session, axis: int) -> list[Sample]:
        session.push(np.zeros(3))
        free = session.watch('not pushed', self.FREE)
        session.push(self.PUSH * np.eye(3)[axis])
        return free + session.watch(f"pushed along {'xyz'[axis]}", self.PUSHED)

    def _positions(self, configurations: list[np.ndarray]) -> np.ndarray:
        k = self.model.link_index(self.link)
        return np.array([forward_kinematics(self.model, q)[k, :3, 3] for q in configurations])

    def strips(self, session: Session) -> list[Strip]:
        """Return the measured and the expected displacement of the link."""
        moved = self._positions([one.q for one in session.samples])
        moved -= self._positions([self.start])
        expected = np.zeros_like(moved)
        ends = [phase.first for phase in session.phases[1:]] + [len(moved)]
        for phase, end in zip(session.phases, ends):
            if phase.name.startswith('pushed'):
                expected[phase.first:end, 'xyz'.index(phase.name[-1])] = self.PUSH / self.STIFFNESS
        return [Strip(f'{self.link}, {axis}', 'mm', 1e3 * x, 1e3 * y)
                for axis, x, y in zip('xyz', moved.T, expected.T)]
