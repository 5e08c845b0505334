# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Validate the control laws: Panda and UR10 in MuJoCo, with friction and delay.

Each law runs at 1 kHz, its torques act half a millisecond late, and its sensors are noisy. Laws
that track a joint motion account for the delay: they compute for the middle of the interval in
which their torques act.

Damping, Coulomb friction and rotor inertias are those identified by `rbd_ros.identification` from
the recordings of `trust.py`; MuJoCo and the laws use the same. Payloads and pushes are unknown to
the laws.

Sensor glitches and blocked joints are tested through the torque controller node with its defaults,
which contains limits, guards and tolerances. The exit code is 1 if a target is missed.

"""

import argparse
from collections.abc import Callable, Iterator
from functools import partial
from pathlib import Path
import sys
from typing import NamedTuple

from faulty_robot import Act, disturb, FaultyRobot
import numpy as np
import rbd_ros
from rbd_ros import control
from rbd_ros.control import JointReference, PoseReference
from rbd_ros.model import with_friction
from rbd_ros.ros.demo.gravity import GravityMode
from rbd_ros.ros.demo.motions import AMPLITUDE, swing
from rbd_ros.ros.demo.torque_modes import AdaptiveMode, ImpedanceMode
from rbd_ros.simulation.mujoco_robot import Load, Measurement, MujocoRobot
from trust import load, PANDA_URDF, UR10_URDF

# s
STEP, DELAY, PERIOD = 5e-4, 5e-4, 1e-3
LONG_DELAY = 1e-2
# From a sample to the middle of the interval in which its torques act
LEAD = DELAY + 0.5 * PERIOD
# Noise of the sensors: rad, rad/s
POSITION_NOISE, VELOCITY_NOISE = 1e-5, 5e-4
# rad/s, width of the sign change of the compensated dry friction
FRICTION_SPEED = 1e-3
# N m/rad and N/m
STIFFNESS = np.array([50.0, 50.0, 50.0, 1000.0, 1000.0, 1000.0])
# Place of the payload, m in the frame of the tool
LOAD_PLACE = (0.0, 0.02, 0.05)
# Gains of the adaptive law: 1/s and 1/J
RATE, ADAPTATION = 10.0, 10.0
# Observer: gain, 1/s, and rad/s, so that noise at rest does not switch its friction
GAIN, SMOOTH = 40.0, 0.005
# Smallest contact threshold as a share of friction: the accuracy of friction models
LEAST = 0.1
# s: until a push must be found, and over which it is averaged
FOUND, READ = 0.2, 0.05
# rad, of the disturbed motion; s, with a joint blocked and after its release
WAY, BLOCKED, RELEASED = 0.4, 4.0, 2.0
# s, between glitches of two joints; blocked joints; % of the limits, for noise and motion
SPACING, BLOCKED_JOINTS, STEPPED = 0.05, (1, 3), 5.0
# Change of a velocity, rad/s, or a position, rad, in one sample.
GLITCHES = {'100 rad/s': ('v', 100.0), '10000 rad/s': ('v', 1e4), '1 rad': ('q', 1.0)}
# s of free motion
FREE, FREE_IN_SHORT = 600.0, 30.0

PUSH = ImpedanceMode.PUSH


class Robot(NamedTuple):
    """
    A robot of the trial.

    Attributes
    ----------
    name : str
        Name in the table.
    model : Model
        With its drives.
    urdf : pathlib.Path
        The file that MuJoCo reads.
    tool : str
        The link that is pushed and loaded.
    q : ndarray
        The middle of all motions, rad.
    kp : ndarray
        Gains of computed torque, 1/s^2. Wrists with much friction and little inertia need larger
        ones: joints deflected by a push stop when they reverse, and a stopped joint hides the
        push.
    damping : ndarray
        K of the adaptive law, N m s/rad.
    free : tuple of int
        Joints left free by the hybrid law.

    """

    name: str
    model: rbd_ros.Model
    urdf: Path
    tool: str
    q: np.ndarray
    kp: np.ndarray
    damping: np.ndarray
    free: tuple[int, ...]

    def physics(self, q: np.ndarray, delay: float = DELAY, **options: object) -> MujocoRobot:
        """Return the robot in MuJoCo."""
        return MujocoRobot(self.urdf.read_text(), self.model, q, step=STEP, delay=delay,
                           position_noise=POSITION_NOISE, velocity_noise=VELOCITY_NOISE, **options)


def with_drives(model: rbd_ros.Model, damping: list[float], friction: list[float],
                rotors: list[float]) -> rbd_ros.Model:
    """Return a robot with drives."""
    damping, friction, rotors = (dict(zip(model.velocity_names, x))
                                 for x in (damping, friction, rotors))
    return rbd_ros.with_armature(with_friction(model, damping=damping, friction=friction), rotors)


def robots() -> Iterator[Robot]:
    """Yield both robots. The Panda's recording shows no rotor inertia and little damping."""
    yield Robot('Panda', with_drives(
        load(PANDA_URDF), [0.009, 0.050, 0.028, 0.051, 0.046, 0.0, 0.023],
        [0.249, 0.212, 0.220, 0.521, 0.262, 0.159, 0.257], [0.0] * 7),
        PANDA_URDF, 'panda_hand', np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]),
        np.full(7, 2500.0), np.array([20.0, 20.0, 20.0, 20.0, 4.0, 4.0, 2.0]), (3, 5))
    yield Robot('UR10', with_drives(
        load(UR10_URDF), [18.555, 22.777, 7.922, 3.048, 2.842, 2.946],
        [13.14, 14.679, 9.215, 3.125, 2.574, 3.009], [1.046, 1.347, 0.011, 0.0, 0.0, 0.0]),
        UR10_URDF, 'tool0', np.array([0.0, -1.2, 1.4, -0.6, -1.4, 0.3]),
        np.repeat([2500.0, 22500.0], 3), np.array([60.0, 60.0, 30.0, 4.0, 4.0, 1.0]), (2, 4))


class Progress:
    """Seconds of simulated time, on a terminal."""

    def __init__(self, words: str, seconds: float) -> None:
        self._words, self._seconds, self._next = words, seconds, 0.0

    def __call__(self, t: float) -> None:
        """Say how far it is, ten times in all."""
        if sys.stderr.isatty() and t >= self._next:
            self._next += 0.1 * self._seconds
            print(f'\r{self._words}: {t:.0f} of {self._seconds:.0f} s\033[K', end='',
                  file=sys.stderr, flush=True)


def run(words: str, physics: MujocoRobot, law: control.Controller,
        reference: Callable[[float], object], seconds: float,
        each: Callable[[float, np.ndarray, np.ndarray, np.ndarray], None] = lambda *_: None
        ) -> tuple[np.ndarray, np.ndarray]:
    """Return times and positions of a robot under a law; ``each`` is called with every sample."""
    rows, progress = [], Progress(words, seconds)
    begin, follows = physics.time, law.reference_type is JointReference
    for _ in range(round(seconds / PERIOD)):
        sample = physics.measure()
        t = sample.t - begin
        progress(t)
        tau = law.update(*when_it_acts(sample, reference, t) if follows
                         else (sample.t, sample.q, sample.v, reference(t)))
        each(sample.t, sample.q, sample.v, sample.tau)
        rows.append((t, *physics.q))
        physics.advance(tau, round(PERIOD / STEP))
    if sys.stderr.isatty():
        print('\r\033[K', end='', file=sys.stderr)
    rows = np.array(rows)
    return rows[:, 0], rows[:, 1:]


def when_it_acts(sample: Measurement, reference: Callable[[float], JointReference], t: float
                 ) -> tuple[float, np.ndarray, np.ndarray, JointReference]:
    """Return time, state and reference predicted for when the torques will act."""
    wanted = reference(t + LEAD)
    return (sample.t + LEAD, sample.q + LEAD * sample.v, sample.v + LEAD * wanted.a, wanted)


def sine(robot: Robot, t: float) -> JointReference:
    """Return the motion of the demo, which starts at rest, and here does not end."""
    return JointReference(robot.model, *(
        x[0] for x in swing(np.array([t]), robot.q, AMPLITUDE, np.inf)))


class Line(NamedTuple):
    """
    A line of the table.

    Attributes
    ----------
    what, unit : str
        The measured quantity.
    value, bound : float
        Measured value and its limit; NaN: no limit.
    at_least : bool
        Whether the limit is a minimum.

    """

    what: str
    value: float
    unit: str
    bound: float = np.nan
    at_least: bool = False

    @property
    def missed(self) -> bool:
        """Return whether the limit is violated."""
        return bool(self.value < self.bound if self.at_least else self.value > self.bound)


def errors(robot: Robot, t: np.ndarray, q: np.ndarray, last: float) -> np.ndarray:
    """Return the tracking errors of the sine in the last seconds."""
    late = t >= t[-1] - last
    return np.array([sine(robot, x).q for x in t[late]]) - q[late]


def gravity(robot: Robot) -> Iterator[Line]:
    """Hold a pose by gravity torques alone."""
    for delay in (DELAY, LONG_DELAY):
        _, q = run(f'{robot.name}, gravity', robot.physics(robot.q, delay),
                   control.Gravity(robot.model), lambda t: None, 10.0)
        yield Line(f'gravity: drift in 10 s, {1e3 * delay:g} ms late',
                   np.abs(q - robot.q).max(), 'rad', GravityMode.tolerance)


def computed_torque(robot: Robot) -> Iterator[Line]:
    """Track a sine of all joints."""
    law = control.ComputedTorque(robot.model, robot.kp, friction_speed=FRICTION_SPEED)
    t, q = run(f'{robot.name}, computed torque', robot.physics(sine(robot, 0.0).q), law,
               lambda t: sine(robot, t), 8.0)
    e = errors(robot, t, q, 6.0)
    yield Line('computed torque: RMS error of the worst joint, 0.5 Hz',
               np.sqrt(np.mean(e ** 2, axis=0)).max(), 'rad', 1e-3)


def impedance(robot: Robot) -> Iterator[Line]:
    """
    Push the tool.

    A joint at rest bears any push up to its friction. Therefore the tool moves in circles, so that
    all joints move, and its mean displacement by the push is measured; the value at rest is also
    printed.

    """
    model, index = robot.model, robot.model.link_index(robot.tool)

    def place(q: np.ndarray) -> np.ndarray:
        return rbd_ros.forward_kinematics(model, q)[index].copy()

    def shift(size: float, axis: int, force: float, seconds: float) -> float:
        def loop(t: float) -> PoseReference:
            w = np.pi
            angle = w * t + 2.1 * np.arange(3)
            T, V, V_dot = start.copy(), np.zeros(6), np.zeros(6)
            T[:3, 3] += size * np.sin(angle)
            V[3:], V_dot[3:] = size * w * np.cos(angle), -size * w * w * np.sin(angle)
            return PoseReference(T, V, V_dot)

        physics, wrench = robot.physics(robot.q), np.zeros(6)
        wrench[3 + axis] = force
        physics.push(robot.tool, wrench)
        law = control.CartesianImpedance(model, robot.tool, STIFFNESS, posture=robot.q)
        t, q = run(f'{robot.name}, impedance', physics, law, loop, seconds)
        late = np.flatnonzero(t >= seconds - 2.0)[::5]      # a full circle
        return np.mean([(place(q[k]) - loop(t[k]).T)[axis, 3] for k in late])

    start = place(robot.q)
    found = [PUSH / (shift(0.05, axis, PUSH, 6.0) - shift(0.05, axis, 0.0, 6.0))
             for axis in range(3)]
    yield Line('impedance: error of the stiffness, worst axis',
               100.0 * np.max(np.abs(np.array(found) / STIFFNESS[3:] - 1.0)), '%',
               100.0 * ImpedanceMode.MAX_DEVIATION)
    still = [shift(0.0, axis, PUSH, 4.0) for axis in range(3)]
    yield Line(f'  at rest, ideally {1e3 * PUSH / STIFFNESS[3]:.0f} mm: smallest displacement',
               1e3 * min(still), 'mm')


def adaptive(robot: Robot) -> Iterator[Line]:
    """Carry an unknown payload."""
    rms = []
    for adaptation in (0.0, ADAPTATION):
        physics = robot.physics(sine(robot, 0.0).q, load=Load(
            robot.tool, AdaptiveMode.PAYLOAD, LOAD_PLACE))
        law = control.SlotineLi(robot.model, RATE, robot.damping, adaptation)
        t, q = run(f'{robot.name}, adaptive', physics, law, lambda t: sine(robot, t), 20.0)
        rms.append(np.sqrt(np.mean(errors(robot, t, q, 2.0) ** 2)))
    yield Line('adaptive: error reduction after 20 s, 1 kg unknown', rms[0] / rms[1], '',
               AdaptiveMode.MIN_IMPROVEMENT, at_least=True)
    yield Line('  its error', rms[1], 'rad')


def observer(robot: Robot, free: float) -> Iterator[Line]:
    """Detect pushes during motion, without false alarms."""
    model = robot.model
    observer = control.MomentumObserver(model, GAIN, smooth=SMOOTH)
    detector = control.ContactDetector(model, calibration_time=20.0, least=LEAST * model.friction)
    samples: list[np.ndarray] = []
    contacts = [0, 0]                               # samples in contact, number of contacts

    def watch(t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        external, before = observer.update(t, q, v, tau), detector.contact
        touched = detector.update(t, external)
        contacts[0] += touched
        contacts[1] += touched and not before
        if wrench.any():
            samples.append(np.append(
                control.external_wrench(model, q, external, robot.tool)[3:], touched))

    wrench = np.zeros(6)
    law = control.ComputedTorque(model, robot.kp, friction_speed=FRICTION_SPEED)
    physics = robot.physics(sine(robot, 0.0).q)
    run(f'{robot.name}, start', physics, law, lambda t: sine(robot, t), 4.0)
    run(f'{robot.name}, free motion', physics, law, lambda t: sine(robot, t + 4.0), 20.0 + free,
        watch)
    yield Line(f'observer: false contacts in {free:.0f} s', contacts[1], '', 0.0)
    off, felt = [], []
    for phase in range(5):
        for axis in range(3):
            # Pushes with the same phase are a whole number of periods apart.
            seconds = 2.0 - physics.time % 2.0 + 0.37 * phase
            for force, time in ((0.0, seconds), (PUSH, FOUND + READ)):
                wrench[3 + axis] = force
                physics.push(robot.tool, wrench)
                begin = physics.time
                samples.clear()
                run(f'{robot.name}, pushes', physics, law,
                    lambda t, begin=begin: sine(robot, t + begin), time, watch)
            found = np.array(samples)
            read = found[round(FOUND / PERIOD):, :3].mean(axis=0)
            off.append(100.0 * np.linalg.norm(read - wrench[3:]) / PUSH)
            felt.append(found[:, 3].any())
            wrench[3 + axis] = 0.0
            physics.push(robot.tool, wrench)
    yield Line(f'observer: error of {PUSH:g} N after {FOUND:g} s, worst of {len(off)}', max(off),
               '%', 10.0)
    yield Line('  share of these detected as contacts', 100.0 * np.mean(felt), '%')


def hybrid(robot: Robot) -> Iterator[Line]:
    """Prescribe the torques of two joints and the motion of the others."""
    model = robot.model
    prescribed = np.ones(model.nv, bool)
    prescribed[list(robot.free)] = False
    law = control.Hybrid(model, prescribed, robot.kp, friction_speed=FRICTION_SPEED)
    physics = robot.physics(sine(robot, 0.0).q)
    worst, unlike = [], []

    def reference(t: float) -> JointReference:
        # Prescribed torques: soft springs, shaken so that friction does not hold the joint.
        given = sine(robot, t)
        given.tau[:] = (rbd_ros.gravity_torques(model, physics.q) + 10.0 * (robot.q - physics.q)
                        - physics.v + 2.0 * model.friction * np.sin(3.0 * t))
        return given

    def watch(t: float, q: np.ndarray, v: np.ndarray, tau: np.ndarray) -> None:
        a, tau = law.solve(q, v, reference(t))
        unlike.append(np.abs(physics.inverse_dynamics(q, v, a) - tau).max())
        worst.append(np.abs(physics.q - reference(t).q)[prescribed].max())

    _, q = run(f'{robot.name}, hybrid', physics, law, reference, 5.0, watch)
    yield Line('hybrid: largest error of the prescribed joints', max(worst), 'rad', 1e-3)
    yield Line('hybrid: difference of torques from MuJoCo', max(unlike), 'N m', 1e-6)
    yield Line('  motion of the free joints', np.ptp(q[:, ~prescribed], axis=0).min(), 'rad')


def faults(robot: Robot) -> Iterator[Line]:
    """Send the node implausible samples, and block joints that carry others."""
    def disturbed(*acts: Act) -> tuple[np.ndarray, np.ndarray]:
        physics = FaultyRobot(robot.physics(robot.q))
        return disturb(robot.urdf, physics, robot.q + WAY, robot.kp, STEP, PERIOD, *acts)

    for name, (what, size) in GLITCHES.items():
        commands, _ = disturbed(*(
            (partial(FaultyRobot.show, what=what, joint=k, change=size), SPACING)
            for k in range(robot.model.nv)))
        yield Line(f'glitch of {name}: largest torque', 100.0 * np.abs(commands).max(),
                   '% of its limit', 100.0)
        yield Line('  largest step of a torque in 1 ms',
                   100.0 * np.abs(np.diff(commands[1:], axis=0)).max(), '% of its limit', STEPPED)
    worst, fastest = 0.0, 0.0
    for k in BLOCKED_JOINTS:
        commands, speeds = disturbed((partial(FaultyRobot.block, joint=k), BLOCKED),
                                     (FaultyRobot.block, RELEASED))
        worst, fastest = max(worst, np.abs(commands).max()), max(fastest, speeds.max())
    yield Line(f'joint blocked for {BLOCKED:g} s: largest torque', 100.0 * worst,
               '% of its limit', 100.0)
    yield Line('  released: largest speed', 100.0 * fastest, '% of its limit', 100.0)


def main() -> int:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__.strip().splitlines()[0])
    parser.add_argument('--quick', action='store_true',
                        help=f'{FREE_IN_SHORT:g} s of free motion instead of {FREE:g}')
    quick, missed = parser.parse_args().quick, 0
    print(f'Control at {1.0 / PERIOD:g} Hz, {1e3 * DELAY:g} ms late, noise of {POSITION_NOISE:g} '
          f'rad and {VELOCITY_NOISE:g} rad/s, against MuJoCo')
    for robot in robots():
        print(f'\n{robot.name:58}{"measured":>12}{"limit":>16}')
        for lines in (gravity(robot), computed_torque(robot), impedance(robot), adaptive(robot),
                      hybrid(robot), faults(robot),
                      observer(robot, FREE_IN_SHORT if quick else FREE)):
            for line in lines:
                bound = '' if np.isnan(line.bound) else (
                    f'{">=" if line.at_least else "<="} {line.bound:g}')
                print(f'{line.what:58}{line.value:12.3g} {line.unit:4}{bound:>11}'
                      f'{"  MISSED" if line.missed else ""}', flush=True)
                missed += line.missed
    return int(missed > 0)


if __name__ == '__main__':
    sys.exit(main())
