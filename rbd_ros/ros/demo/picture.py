# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The picture of a demo: the robot, and torque and error of each joint over time."""

from typing import Any

import numpy as np
import numpy.typing as npt
from rbd_ros import forward_kinematics, Model
from rbd_ros.ros.demo.robots import units
from rbd_ros.ros.demo.session import Session, Strip
from rbd_ros.ros.demo.table import fixed

GOOD, BAD, PLAIN = '#2e8b57', '#c0392b', '#34495e'
SMALLEST, LARGEST = 1e-6, 10.0    # Range of drawn errors, rad or m
HEIGHT = 0.8    # Height of a strip as a share of its row
ROUNDING = 1e-9    # Smaller numbers are rounding errors, and drawn as zero
MAX_SAMPLES = 1500    # Samples per line
SMALL = 0.02    # Torques are small up to this share of the largest with their unit
# Inches: width, height of a strip, height of everything else, and smallest total height.
WIDTH, STRIP, REST, MIN_HEIGHT = 12.0, 0.3, 1.1, 5.0


def draw(session: Session) -> Any:
    """Return a picture of the recording, as a figure of matplotlib."""
    import matplotlib
    matplotlib.use('Agg')
    matplotlib.rcParams.update({'axes.titlesize': 9, 'axes.labelsize': 8})
    from matplotlib import pyplot

    mode, model = session.mode, session.mode.model
    strips = mode.strips(session)
    torques = _torques(session)
    rows = max(len(torques), len(strips))
    figure: Any = pyplot.figure(figsize=(WIDTH, max(MIN_HEIGHT, STRIP * rows + REST)),
                                layout='constrained')
    figure.suptitle(f'{model.name}, {model.nv} joints, {model.mass:.1f} kg: {mode.title}')
    robot, left, right = figure.subplots(1, 3)
    _draw_robot(robot, model, mode.poses(session), session.phases[-1].accurate)
    _draw_strips(left, session, 'torque (one scale for each unit)', torques)
    _draw_strips(right, session, mode.error_name + (
        f' (log scale; red: above {mode.tolerance:g})' if np.isfinite(mode.tolerance)
        else ' (green: expected)'), strips)
    pyplot.close(figure)
    return figure


def _torques(session: Session) -> list[Strip]:
    """Return the torques of joints; the largest of those that are small is one strip for all."""
    model = session.mode.model
    values = np.array([sample.tau for sample in session.samples]).T
    strips = [Strip(name, units(model, k)[1], column)
              for k, (name, column) in enumerate(zip(model.velocity_names, values))]
    largest = [np.abs(strip.values).max() for strip in strips]
    found = []
    for unit in dict.fromkeys(strip.unit for strip in strips):
        of_unit = [k for k, strip in enumerate(strips) if strip.unit == unit]
        limit = SMALL * max(largest[k] for k in of_unit)
        small = [k for k in of_unit if largest[k] <= limit]
        found += [strips[k] for k in of_unit if len(small) < 2 or k not in small]
        if len(small) > 1:
            k = max(small, key=largest.__getitem__)
            found.append(strips[k]._replace(name=f'{len(small)} others, the largest:\n'
                                            + strips[k].name))
    return found


def _draw_strips(axes: Any, session: Session, title: str, strips: list[Strip]) -> None:
    time = np.array([sample.t for sample in session.samples])
    part = slice(None, None, max(1, len(time) // MAX_SAMPLES))
    ends = [*(time[phase.first] for phase in session.phases[1:]), time[-1]]
    for phase, end in zip(session.phases, ends):
        axes.axvspan(time[phase.first], end, linewidth=0.0, alpha=0.10,
                     color=GOOD if phase.accurate else BAD)
    reach = {unit: max(np.ptp(np.append(strip.values, 0.0)) for strip in strips
                       if strip.unit == unit)
             for unit in {strip.unit for strip in strips}}
    largest = []
    for row, strip in enumerate(strips):
        values = np.where(np.abs(strip.values) > ROUNDING, strip.values, 0.0)
        if strip.tolerance is not None:
            _draw_error(axes, row, time[part], values[part], strip.tolerance)
        else:
            drawn = [values] if strip.desired is None else [values, strip.desired]
            low, high = min(0.0, np.min(drawn)), max(0.0, np.max(drawn))
            scale = HEIGHT / max(high - low, reach[strip.unit], ROUNDING)
            places = [row + 0.5 * HEIGHT - scale * (x[part] - low) for x in drawn]
            axes.axhline(row + 0.5 * HEIGHT + scale * low, color='gray', linewidth=0.5)
            for y in places[1:]:
                axes.plot(time[part], y, color=GOOD, linewidth=3.0, alpha=0.5)
            axes.plot(time[part], places[0], color=PLAIN, linewidth=0.9)
        extreme = values[np.argmax(np.abs(values))]
        largest.append(f'{fixed(extreme, ".3g")} {strip.unit}')
    axes.set(xlim=(time[0], time[-1]), ylim=(len(strips) - 0.5, -0.5), title=title,
             xlabel='time, s (right: largest value)')
    axes.set_yticks(range(len(strips)), [strip.name for strip in strips])
    right = axes.secondary_yaxis('right')
    right.set_yticks(range(len(strips)), largest, color='dimgray')
    for one in (axes, right):
        one.tick_params(axis='y', length=0.0, labelsize=8)
        one.spines[:].set_visible(False)
    axes.tick_params(axis='x', labelsize=8)


def _draw_error(axes: Any, row: int, time: np.ndarray, values: np.ndarray,
                tolerance: float) -> None:
    """Fill below an error on a logarithmic scale, in red where it is not small."""
    def place(size: npt.ArrayLike) -> np.ndarray:
        share = np.log(np.clip(size, SMALLEST, LARGEST) / SMALLEST) / np.log(LARGEST / SMALLEST)
        return row + HEIGHT * (0.5 - share)

    size, floor = np.abs(values), row + 0.5 * HEIGHT
    axes.fill_between(time, floor, place(size), color=GOOD, linewidth=0.0, alpha=0.8)
    axes.fill_between(time, floor, place(size), where=size >= tolerance, color=BAD, linewidth=0.0)
    axes.axhline(floor, color='gray', linewidth=0.5)
    axes.axhline(place(tolerance), color='black', linewidth=0.6, linestyle=':')


def _draw_robot(axes: Any, model: Model, poses: list[np.ndarray], accurate: bool) -> None:
    """Draw the robot as lines between joints, seen from its widest side."""
    up = -model.gravity / np.linalg.norm(model.gravity) if model.gravity.any() else np.eye(3)[2]
    places = np.array([[T[:3, 3] for T in forward_kinematics(model, q)] for q in poses])
    flat = (places - places @ up[:, None] * up).reshape(-1, 3)
    side = np.linalg.svd(flat - flat.mean(axis=0))[2][0]
    side -= side @ up * up
    side /= np.linalg.norm(side)
    seen = np.stack((places @ side, places @ up), axis=-1)
    index = {name: k for k, name in enumerate(model.link_names)}
    pairs = [(index[joint.parent], index[joint.child]) for joint in model.joints]
    color = GOOD if accurate else BAD
    for number, points in enumerate(seen):
        first, last = number == 0, number == len(seen) - 1
        look = ({'color': PLAIN, 'linewidth': 4.0} if first else {
            'color': color, 'linewidth': 2.5 if last else 1.2, 'alpha': 1.0 if last else 0.25})
        for parent, child in pairs:
            axes.plot(*points[[parent, child]].T, solid_capstyle='round', **look)
        if first or last:
            axes.plot(*points.T, 'o', color=look['color'], markersize=4.0)
    axes.axhline(seen[0, 0, 1], color='dimgray', linewidth=0.8)
    axes.set_aspect('equal', adjustable='datalim')
    axes.tick_params(labelsize=8)
    axes.set(xlabel='m', title='dark: initial position; '
             + ('green: motion' if accurate else 'red: fall'))
