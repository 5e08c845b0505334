# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity torques hold the robot still; without them, or without those of its loops, it falls."""

import signal
from typing import ClassVar

import numpy as np
from rbd_ros import gravity_torques, Model
from rbd_ros.model.positions.configurations import closed_along
from rbd_ros.ros.demo.robots import DemoFailed, too_weak, units
from rbd_ros.ros.demo.session import Check, MIN_GRAVITY_TORQUE, Mode, Session, worst
from rbd_ros.ros.nodes.simulated_robot import TOLERATED_DELAY

MAX_DRIFT = 1e-3             # rad or m, in the first phase
RESOLUTION = 1e-9            # rad or m, smallest drift that is printed
MIN_FALL = 10.0 * MAX_DRIFT  # rad or m, of some joint in the second phase
COMPENSATED = 10.0           # s, duration of the first phase
RELEASED = 3.0               # s, duration of the second phase


class GravityMode(Mode):
    """Two phases: with the gravity torques of the dynamics node, and with zero torques."""

    title = 'held by gravity torques, then released'
    introduction = ('dynamics_node holds the robot by gravity torques alone, without position '
                    'feedback; then the torques are set to zero, and the robot falls.')
    rotors = False
    torques: ClassVar[str] = 'zero torques'    # of the second phase
    tolerance = MAX_DRIFT
    error_name = 'drift'

    def run(self, session: Session) -> list[Check]:
        """Hold the robot, and let it fall."""
        session.launch('dynamics_node', robot={'tolerated_delay': TOLERATED_DELAY},
                       parameters={'springs': True})
        held = session.watch('held by gravity torques', COMPENSATED)
        # In an inverted pose, the robot falls if correct torques are late.
        self._delays = session.delays
        session.release(self._torques())
        fell = session.watch(self.torques, RELEASED, accurate=False)
        session.stop(session.robot, signal.SIGTERM)
        drift, fall = (np.max(np.abs([sample.error for sample in phase]), axis=0)
                       for phase in (held, fell))
        usual, largest = self._delays
        return [
            Check(f'With gravity torques (latency: median {1e3 * usual:.1f} ms, largest '
                  f'{1e3 * largest:.1f} ms): drift at most '
                  f'{worst(self.model, np.maximum(drift, RESOLUTION))} in {COMPENSATED:.0f} s; '
                  f'limit {MAX_DRIFT:g}.', bool(max(drift) < MAX_DRIFT)),
            Check(f'With {self.torques}: largest motion {worst(self.model, fall)}; required: at '
                  f'least {MIN_FALL:g}.', bool(max(fall) > MIN_FALL))]

    def _torques(self) -> np.ndarray:
        return np.zeros(self.model.nv)

    def poses(self, session: Session) -> list[np.ndarray]:
        """Return positions of the fall."""
        samples = session.samples[session.phases[-1].first:]
        return [self.start, *closed_along(self.model, np.array(
            [samples[k].q for k in np.linspace(0, len(samples) - 1, 10).astype(int)]))]

    def explain_failure(self, session: Session) -> str:
        """Return why the robot was not held, or did not fall."""
        held = [np.abs(one.error).max() for one in session.samples[:session.phases[1].first]]
        if max(held) < MAX_DRIFT:
            return f'it did not fall: {why_it_stayed(self.model, self.start)}'
        return 'it was not held: ' + why_it_fell(self.model, self.start, *self._delays)


class LoopMode(GravityMode):
    """The phases of `GravityMode`; in the second one, torques ignore the loops."""

    title = 'a robot with closed loops, held by its motors; then by torques that ignore the loops'
    introduction = ('Only the motors of this robot are measured and commanded; constraints of '
                    'MuJoCo close its loops. dynamics_node finds the positions of the passive '
                    'joints, and holds the robot by gravity torques alone; then the motors get '
                    'the torques of the same robot with its loops cut open, and it moves.')
    needs_mujoco = 'its physics must not know the equations of rbd_ros'
    urdf: ClassVar[str] = 'palletizer.urdf'
    torques = 'torques that ignore the loops'

    def __init__(self, model: Model) -> None:
        if model.loops is None:
            raise DemoFailed(f"MODE=loop needs closed loops, and robot '{model.name}' has none")
        self._own = model.loops.own
        super().__init__(model)

    def _torques(self) -> np.ndarray:
        return gravity_torques(self.model.unconstrained, self.start)[self._own]


def why_it_fell(model: Model, start: np.ndarray, usual: float, largest: float) -> str:
    """Return why a robot was not held, given the median and largest latency of torques, s."""
    weak = too_weak(model, start)
    if weak:
        return f'{weak}. With ENGINE=own drives have no limits'
    if largest > TOLERATED_DELAY:
        return (f'its torques were up to {1e3 * largest:.0f} ms late (the median is '
                f'{1e3 * usual:.0f} ms), and the damping of the joints is designed for a delay of '
                f'{1e3 * TOLERATED_DELAY:.0f} ms: inverted poses are unstable. Try again on a '
                'less busy machine')
    return (f'its torques were never more than {1e3 * largest:.0f} ms late, so that is not the '
            'reason: please report it')


def why_it_stayed(model: Model, start: np.ndarray) -> str:
    """Return why a robot did not fall although its torques were zero."""
    load = np.abs(gravity_torques(model, start))
    if np.max(load) < MIN_GRAVITY_TORQUE:
        return 'gravity loads none of its joints in any pose'
    left = np.maximum(load - model.friction - model.stribeck_friction, 0.0)
    if not left.any():
        return 'the dry friction in the URDF holds all joints'
    with np.errstate(divide='ignore', invalid='ignore'):
        speed = np.where(left > 0.0, left / model.damping, 0.0)
    k = int(np.argmax(speed))
    unit = units(model, k)
    if speed[k] * RELEASED > MIN_FALL:
        return 'its joints may have rested against their stops'
    return ('the damping in the URDF lets its joints only creep: '
            f"'{model.velocity_names[k]}', the fastest, at {speed[k]:.2g} {unit[0]}/s under "
            f'{load[k]:.2g} {unit[1]}')
