# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Draw doc/images/controller.svg: how well a simulated arm with a payload follows a trajectory.

Torques come from joint_trajectory_controller alone, whose PID knows no model, or from a generated
controller behind it, with the same stiffness and damping. The laws are those of the library;
test/control/test_generated_controller.py compares the generated ones with them.

"""

from collections.abc import Callable, Iterator
from pathlib import Path
import sys
from typing import TypeAlias
import warnings
from xml.sax.saxutils import escape

import numpy as np
import rbd_ros
from rbd_ros import Model
from rbd_ros.control import ComputedTorque, JointReference, MomentumObserver, PdGravity

HERE = Path(__file__).parent
PICTURE, ARM = HERE / 'images' / 'controller.svg', HERE.parent / 'urdf' / 'demo_arm.urdf'
PAYLOAD, CENTER = 3.0, (0.0, 0.0, 0.05)     # kg, m in the frame of the tool
KP, KD = 100.0, 20.0    # 1/s^2 and 1/s; times the inertias of the joints: stiffness and damping
INTEGRAL = 1.0          # 1/s, integral gain of the PID as a share of its stiffness
OBSERVER = 45.0         # 1/s, observer_gain where compensation_limits are not zero
PERIOD, STEPS = 2e-3, 8     # s, and steps of the physics in it
# s: the PID settles before the motion, which goes through the points in this time each.
SETTLING, SEGMENT = 5.0, 1.5
# Times in the picture, s, between two points of a curve.
STRIDE = 0.03
# px
WIDTH, HEIGHT, LEFT, TOP, GAP, BOTTOM = 400, 220, 66, 56, 60, 148
LOWEST, HIGHEST = -3, 3     # powers of ten of mrad
COLOURS = {'pid': '#c22', 'pd': '#e07b1a', 'undeclared': '#2f6db5', 'compensated': '#8a4fbf',
           'declared': '#2e8b57'}
NAMES = {'pid': 'joint_trajectory_controller alone, PID',
         'pd': 'pd_gravity behind it, payload declared',
         'undeclared': 'computed_torque behind it, payload not declared',
         'compensated': 'the same with compensation_limits',
         'declared': 'computed_torque behind it, payload declared'}
Law: TypeAlias = Callable[[np.ndarray, np.ndarray, JointReference], np.ndarray]


class Pid:
    """The torques of joint_trajectory_controller for effort interfaces."""

    def __init__(self, K: np.ndarray, D: np.ndarray) -> None:
        self._K, self._D, self._sum = K, D, np.zeros(len(K))

    def __call__(self, q: np.ndarray, v: np.ndarray, r: JointReference) -> np.ndarray:
        self._sum += PERIOD * (r.q - q)
        return self._K * (r.q - q + INTEGRAL * self._sum) + self._D * (r.v - v)


class Compensated:
    """The torques of computed_torque without those that the momentum observer finds."""

    def __init__(self, law: ComputedTorque) -> None:
        self._law, self._observer = law, MomentumObserver(law.model, OBSERVER)
        self._tau, self._t = np.zeros(law.model.nv), 0.0

    def __call__(self, q: np.ndarray, v: np.ndarray, r: JointReference) -> np.ndarray:
        limit = self._law.model.effort_limit
        self._t += PERIOD
        external = self._observer.update(self._t, q, v, self._tau)
        self._tau = np.clip(self._law.update(0.0, q, v, r) - external, -limit, limit)
        return self._tau


def robots() -> Iterator[tuple[str, Model, str, list[np.ndarray]]]:
    """Yield name, model, tool and points of a motion."""
    # Of example-robot-data, which comes with the package of Pinocchio.
    panda, = Path(sys.prefix).glob('lib/python*/site-packages/cmeel.prefix/share/'
                                   'example-robot-data/robots/*/urdf/panda.urdf')
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', rbd_ros.ModelWarning)
        yield 'demo arm', rbd_ros.load_urdf(ARM), 'tool', [
            np.array([0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0]),
            np.array([0.8, 1.0, 0.4, 0.5, 0.5, -0.3, 0.6]),
            np.array([-0.4, 0.3, -0.3, 1.4, -0.4, 0.7, -0.5])]
        arm = rbd_ros.load_urdf(panda)
        fingers = {name: 0.0 for name in arm.velocity_names if 'finger' in name}
        yield 'Panda', rbd_ros.with_locked_joints(arm, fingers), 'panda_hand', [
            np.array([0.0, -0.4, 0.0, -2.0, 0.0, 1.6, 0.8]),
            np.array([0.8, 0.2, 0.4, -1.4, 0.5, 2.0, 0.2]),
            np.array([-0.4, -0.6, -0.3, -2.3, -0.4, 1.4, 1.2])]


def reference(model: Model, points: list[np.ndarray], t: float) -> JointReference:
    """Return the motion at a time: fifth-order polynomials that rest at the points."""
    k = int(np.clip(t // SEGMENT, 0, len(points) - 2))
    x = np.clip(t / SEGMENT - k, 0.0, 1.0)
    way = points[k + 1] - points[k]
    return JointReference(
        model, points[k] + x ** 3 * (10.0 - 15.0 * x + 6.0 * x ** 2) * way,
        30.0 * x ** 2 * (1.0 - x) ** 2 / SEGMENT * way,
        60.0 * x * (1.0 - x) * (1.0 - 2.0 * x) / SEGMENT ** 2 * way)


def errors(law: Law, robot: Model, points: list[np.ndarray]) -> np.ndarray:
    """Return the errors of all joints, rad, during the motion, in each period."""
    q, v, found, limit = points[0].copy(), np.zeros(robot.nv), [], robot.effort_limit
    for k in range(-round(SETTLING / PERIOD), round(SEGMENT * (len(points) - 1) / PERIOD)):
        r = reference(robot, points, k * PERIOD)
        if k >= 0:
            found.append(r.q - q)
        tau = np.clip(law(q, v, r), -limit, limit)
        for _ in range(STEPS):
            friction = rbd_ros.friction_torques(robot, v, smooth=1e-3)
            v = v + PERIOD / STEPS * rbd_ros.forward_dynamics(robot, q, v, tau - friction)
            q = q + PERIOD / STEPS * v
    return np.array(found)


def simulate() -> dict[str, dict[str, np.ndarray]]:
    """Return the errors, rad, by robot and law."""
    found = {}
    for name, model, tool, points in robots():
        loaded = rbd_ros.with_payload(model, tool, PAYLOAD, CENTER)
        own, inertia = (np.diag(rbd_ros.mass_matrix(one, points[0])) for one in (model, loaded))
        K, D = KP * inertia, KD * inertia
        laws: dict[str, Law] = {'pid': Pid(K, D)}
        for label, law in (('pd', PdGravity(loaded, K, D)), ('undeclared', ComputedTorque(
                model, K / own, D / own)), ('declared', ComputedTorque(loaded, KP, KD))):
            laws[label] = lambda q, v, r, law=law: law.update(0.0, q, v, r)
        laws['compensated'] = Compensated(ComputedTorque(model, K / own, D / own))
        found[name] = {label: errors(laws[label], loaded, points) for label in NAMES}
    return found


def rms(x: np.ndarray) -> float:
    """Return the root of the mean square of all errors, mrad."""
    return float(1e3 * np.sqrt(np.mean(x ** 2)))


def y_of(mrad: np.ndarray) -> np.ndarray:
    """Return the heights of errors in the picture, px below the top of a panel."""
    powers = np.log10(np.clip(mrad, 10.0 ** LOWEST, 10.0 ** HIGHEST))
    return HEIGHT * (HIGHEST - powers) / (HIGHEST - LOWEST)


def panel(name: str, found: dict[str, np.ndarray], left: int) -> list[str]:
    """Return the elements of the curves of a robot."""
    lines = [f'<text x="{left + WIDTH / 2}" y="{TOP - 12}" class="title">{escape(name)}</text>']
    for power in range(LOWEST, HIGHEST + 1):
        y = TOP + round(float(y_of(np.array(10.0 ** power))), 1)
        lines.append(f'<path d="M{left} {y}h{WIDTH}" class="grid"/>')
        lines.append(f'<text x="{left - 6}" y="{y + 4}" class="right">{10.0 ** power:g}</text>')
    count = len(next(iter(found.values())))
    for second in range(int(count * PERIOD) + 1):
        x = left + round(WIDTH * second / (count * PERIOD), 1)
        lines.append(f'<path d="M{x} {TOP}v{HEIGHT}" class="grid"/>')
        lines.append(f'<text x="{x}" y="{TOP + HEIGHT + 16}">{second} s</text>')
    stride = round(STRIDE / PERIOD)
    for label, x in found.items():
        largest = 1e3 * np.abs(x).max(axis=1)
        # The largest of each stretch.
        stretches = largest[:count // stride * stride].reshape(-1, stride).max(axis=1)
        points = ' '.join(f'{left + WIDTH * (k + 0.5) / len(stretches):.1f},{TOP + y:.1f}'
                          for k, y in enumerate(y_of(stretches)))
        lines.append(f'<polyline points="{points}" stroke="{COLOURS[label]}"/>')
    return lines


def draw(found: dict[str, dict[str, np.ndarray]]) -> str:
    """Return the picture of errors."""
    width, height = LEFT + len(found) * (WIDTH + GAP), TOP + HEIGHT + BOTTOM
    lines = [f'<svg xmlns="http://www.w3.org/2000/svg" viewBox="0 0 {width} {height}" '
             f'width="{width}" height="{height}">',
             '<style>text{font:12px sans-serif;text-anchor:middle;fill:#222}'
             '.title{font:bold 15px sans-serif}.right{text-anchor:end}.left{text-anchor:start}'
             '.grid{stroke:#ddd;fill:none}polyline{fill:none;stroke-width:1.8}</style>',
             f'<rect width="{width}" height="{height}" fill="white"/>',
             f'<text x="{LEFT}" y="20" class="left">Largest error of a joint, mrad, with '
             f'{PAYLOAD:g} kg at the tool</text>']
    for k, (name, one) in enumerate(found.items()):
        left = LEFT + k * (WIDTH + GAP)
        lines += panel(name, one, left)
    top = TOP + HEIGHT + 40
    for x, name in enumerate(found):
        lines.append(f'<text x="{LEFT + 480 + 130 * x}" y="{top}" class="right">{name}, '
                     'rms</text>')
    for row, (label, name) in enumerate(NAMES.items(), 1):
        y = top + 20 * row
        lines.append(f'<path d="M{LEFT} {y - 4}h26" stroke="{COLOURS[label]}" '
                     'stroke-width="3"/>')
        lines.append(f'<text x="{LEFT + 34}" y="{y}" class="left">{escape(name)}</text>')
        for x, one in enumerate(found.values()):
            lines.append(f'<text x="{LEFT + 480 + 130 * x}" y="{y}" class="right">'
                         f'{rms(one[label]):.3g} mrad</text>')
    return '\n'.join([*lines, '</svg>']) + '\n'


if __name__ == '__main__':
    PICTURE.write_text(draw(simulate()), encoding='utf-8')
    print(PICTURE, 'written')
