# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Find recordings that are no single series of joint states in s and rad, before they are used."""

from dataclasses import replace
from typing import Any, NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.model.model import Model
from rbd_ros.recordings.bags import TOPIC_OPTION
from rbd_ros.recordings.recording import Recording

UNITS = {'ms': 1e3, 'us': 1e6, 'ns': 1e9}
# Largest ratio of the time unit found to a usual one; longest median period, s, that is one.
UNIT_TOLERANCE, MAX_PERIOD = 2.0, 1.0
MIN_STATES = 20     # With fewer states nothing is tried.
# A state is of another publisher if it is off the middle of its neighbours by this multiple of
# their distance, and by a fraction of the range of at least half of the joints that move: in
# positions, rad or m at least, and in efforts.
OFF_NEIGHBOURS, OFF_POSITION, MIN_OFF_POSITION, OFF_EFFORT = 4.0, 1e-3, 1e-3, 0.05
# Largest fraction of such states: efforts that are mostly noise have some by chance.
MAX_OFF_POSITION, MAX_OFF_EFFORT, MAX_ZERO = 0.05, 0.25, 0.05
FULL_TURN, MIN_WRAP = 2.0 * np.pi, 1.5 * np.pi   # rad; smallest step that is a wrapped position
MAX_STEP_PERIODS = 5.0  # Longest step between two states, in periods, in which a wrap is certain.


class Detected(NamedTuple):
    """A mistake in a recording."""

    joints: tuple[str, ...]
    text: str               # what it is, and what to do
    value: float | None = None
    undone: Any = None      # recording or samples; None: nothing else can be found


def wrong_time_unit(model: Model, one: Recording) -> Detected | None:
    """Detect times in other units than s: velocities show it, or else the period."""
    if len(one) < MIN_STATES:
        return None
    period = float(np.median(np.diff(one.time)))
    factor = period / 1e-2 if period > MAX_PERIOD else 1.0
    velocity = one.velocity
    if velocity is not None and not np.any(np.isnan(velocity)):
        # The median over states: wrapped positions and other glitches are few.
        rate = np.abs(np.diff(one.position, axis=0) / np.diff(one.time)[:, None])
        speed, rate = np.median(np.abs(velocity)), np.median(rate)
        if rate > 0.0 and speed > 0.0:
            factor = float(speed / rate)
    unit = min(UNITS, key=lambda name: abs(np.log(factor / UNITS[name])))
    off = abs(np.log(factor / UNITS[unit]))
    if period <= MAX_PERIOD and (off >= np.log(UNIT_TOLERANCE) or period <= 0.05):
        return None
    return Detected((), f'the time must be in s, and looks like {unit}: the period is '
                    f'{period:.4g}; divide the times by {UNITS[unit]:g}', UNITS[unit],
                    replace(one, time=one.time / UNITS[unit]))


def two_publishers(model: Model, one: Recording) -> Detected | None:
    """Detect states of two publishers of the same joints, which alternate."""
    if len(one) < MIN_STATES:
        return None
    share = _off(one.position, OFF_POSITION, MIN_OFF_POSITION)
    what, most = 'positions', MAX_OFF_POSITION
    if share <= most and one.effort is not None:
        zero = np.all(one.effort == 0.0, axis=1)
        alone = zero[1:-1] & ~zero[:-2] & ~zero[2:]
        what, most, share = 'zero efforts', MAX_ZERO, float(np.mean(alone))
        if share <= most:
            what, most = 'efforts', MAX_OFF_EFFORT
            share = _off(one.effort, OFF_EFFORT, 0.0)
    return Detected((), 'two publishers seem to state the same joints: '
                    f'{100.0 * share:.0f} % of the states have other {what} than those just '
                    'before and after, which agree; record one publisher alone, choose its topic '
                    f"with {TOPIC_OPTION}, or remove the other publisher's rows from the table"
                    ) if share > most else None


def _off(x: np.ndarray, fraction: float, least: float) -> float:
    """Return the fraction of the states in which half of the moving joints are off."""
    size = np.ptp(x, axis=0)
    x = x[:, size > 10.0 * least]
    if not x.shape[1]:
        return 0.0
    off = np.abs(x[1:-1] - 0.5 * (x[:-2] + x[2:]))
    floor = np.maximum(fraction * np.ptp(x, axis=0), least)
    joints = off > np.maximum(OFF_NEIGHBOURS * np.abs(x[2:] - x[:-2]), floor)
    return float(np.mean(np.sum(joints, axis=1) >= 0.5 * x.shape[1]))


def unwrapped(model: Model, time: np.ndarray, position: np.ndarray
              ) -> tuple[np.ndarray, list[str]]:
    """Return positions without steps by a full turn of revolute joints, and notes."""
    position, notes = np.array(position), []
    step, median = np.diff(time), np.median(np.diff(time)) if len(time) > 1 else 0.0
    for joint, _, v in model.moving_joints:
        x = position[:, v]
        if joint.kind == 'continuous':
            position[:, v] = np.unwrap(x, axis=0)
        elif joint.kind == 'revolute':
            jump = np.diff(x[:, 0])
            wraps = (np.abs(jump) > MIN_WRAP) & (step <= MAX_STEP_PERIODS * median)
            # In degrees the range is larger than one turn.
            if np.any(wraps) and np.ptp(x) <= FULL_TURN + 0.1:
                turns = np.cumsum(np.concatenate(([0.0], np.where(wraps, np.sign(jump), 0.0))))
                turned = x - FULL_TURN * turns[:, None]
                # Of all positions that differ by full turns, those nearest to the range.
                middle = 0.5 * float(model.lower[v][0] + model.upper[v][0])
                if np.isfinite(middle):
                    turned -= FULL_TURN * np.round((np.mean(turned) - middle) / FULL_TURN)
                position[:, v] = turned
                notes.append(f'{joint.name} ({np.sum(wraps)} times)')
    return position, [f'positions unwrapped, which jump by a full turn: {listed(notes)}'
                      ] if notes else []
