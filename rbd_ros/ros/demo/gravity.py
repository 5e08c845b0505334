# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Gravity torques hold the robot still; without them it falls."""

import signal

import numpy as np
from rbd_ros import gravity_torques, Model
from rbd_ros.ros.demo.robots import too_weak
from rbd_ros.ros.demo.stage import NO_LOAD, Stage
from rbd_ros.ros.demo.story import Check, Story, worst
from rbd_ros.ros.nodes.simulated_robot import TOLERATED_DELAY

HELD = 1e-3            # rad or m, the most that a joint may drift in the first phase
NOTHING = 1e-9         # rad or m, the least that is told: no sensor sees less
FELL = 10.0 * HELD     # rad or m, the least that some joint must move in the second
COMPENSATED = 10.0     # s, duration of the first phase
RELEASED = 3.0         # s, duration of the second phase


class GravityStory(Story):
    """
    Two phases: with the gravity torques of the dynamics node, and with none.

    The delay of the torques is measured: if they are too late, even correct ones cannot hold an
    inverted pose.

    """

    title = 'held by gravity torques, and released'
    words = ('dynamics_node holds the robot still by its gravity torques, without any feedback '
             'that would pull it back; then the torques are zero, and it falls.')
    rotors = False
    bound = HELD
    word = 'drift'

    def play(self, stage: Stage) -> list[Check]:
        """Hold the robot, and let it fall."""
        stage.play('dynamics_node', robot={'tolerated_delay': TOLERATED_DELAY})
        held = stage.watch('held by its gravity torques', COMPENSATED)
        self._delays = stage.delays
        stage.release()
        fell = stage.watch('without', RELEASED, good=False)
        stage.end(stage.robot, signal.SIGTERM)
        drift, fall = (np.max(np.abs([sample.error for sample in phase]), axis=0)
                       for phase in (held, fell))
        usual, late = self._delays
        return [
            Check(f'With gravity torques, {1e3 * usual:.1f} ms late ({1e3 * late:.1f} ms at the '
                  f'worst), no joint moved by more than '
                  f'{worst(self.model, np.maximum(drift, NOTHING))} in '
                  f'{COMPENSATED:.0f} s; less than {HELD:g} is asked for.',
                  bool(max(drift) < HELD)),
            Check(f'Without, they moved by up to {worst(self.model, fall)}; {FELL:g} at least are '
                  'asked for.', bool(max(fall) > FELL))]

    def poses(self, stage: Stage) -> list[np.ndarray]:
        """Return positions of the fall."""
        samples = stage.samples[stage.phases[-1].first:]
        return [stage.start, *(samples[k].q for k in np.linspace(
            0, len(samples) - 1, 10).astype(int))]

    def why(self, stage: Stage) -> str:
        """Return why the robot was not held, or did not fall."""
        held = [np.abs(sample.error).max() for sample in stage.samples[:stage.phases[1].first]]
        if max(held) < HELD:
            return f'it did not fall: {why_it_stayed(self.model, stage.start)}'
        return 'it was not held: ' + why_it_fell(self.model, stage.start, *self._delays)


def why_it_fell(model: Model, start: np.ndarray, usual: float, worst: float) -> str:
    """Return why a robot was not held although its torques are those of its model."""
    weak = too_weak(model, start)
    if weak:
        return f'{weak}. ENGINE=own is a robot whose drives have no limits'
    if worst > TOLERATED_DELAY:
        return (f'its torques were up to {1e3 * worst:.0f} ms late (the median is '
                f'{1e3 * usual:.0f} ms), and the joints are damped for a delay of '
                f'{1e3 * TOLERATED_DELAY:.0f} ms: in an inverted pose they fall. Try again on a '
                'machine that is less busy')
    return (f'its torques were never more than {1e3 * worst:.0f} ms late, so that is not the '
            'reason: please report it')


def why_it_stayed(model: Model, start: np.ndarray) -> str:
    """Return why a robot did not fall although nothing held it."""
    load = np.abs(gravity_torques(model, start))
    if np.max(load) < NO_LOAD:
        return 'gravity loads none of its joints in any pose'
    left = np.maximum(load - model.friction - model.stribeck_friction, 0.0)
    if not left.any():
        return 'the friction that the URDF gives its joints holds them all'
    with np.errstate(divide='ignore', invalid='ignore'):
        speed = np.where(left > 0.0, left / model.damping, 0.0)
    k = int(np.argmax(speed))
    unit = ('rad', 'N m') if model.angular[k] else ('m', 'N')
    if speed[k] * RELEASED > FELL:
        return 'it may have leaned against the stops of its joints'
    return (f"the URDF damps its joints so much that they creep: '{model.velocity_names[k]}', the "
            f'fastest, at {speed[k]:.2g} {unit[0]}/s under {load[k]:.2g} {unit[1]}')
