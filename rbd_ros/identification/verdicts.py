# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""How far to believe what was identified, and what to do where it is not to be believed."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.least_squares import body_size, fit, Identification
from rbd_ros.identification.parameters import RobotParameters, States
from rbd_ros.identification.partials import Partial
from rbd_ros.identification.payload import Payload
from rbd_ros.identification.trials import mistake, wrong_sign
from rbd_ros.model.configurations import neutral, random_configuration
from rbd_ros.model.inertial import body_names, inertial_parameters
from rbd_ros.model.model import Model
from rbd_ros.recordings.preparation import MIN_DELAY_EXPLAINS
from rbd_ros.recordings.samples import Samples

# A joint has moved if it did so for this time, s, and in so many samples for each parameter that
# its torque depends on.
MOVED, SAMPLES_PER_PARAMETER = 2.0, 3
# Share of the time in which a drive is at its limit at most.
SATURATED = 0.05
# Positions may lie so far beyond the limits, as a share of the range, but for this share of the
# time.
MARGIN, BEYOND = 0.05, 0.1
# Delay of efforts at most, s, and how many standard deviations make it sure.
DELAY, SURE = 0.1, 3.0
# Torques that may be left unexplained, of all joints and of one, as shares of their size.
UNEXPLAINED, OF_ONE = 0.3, 0.7
# Friction that drives, as a share of the torques, and how many standard deviations make it sure.
DRIVES = 0.03
# Uncertainty of torques in other poses at most, as a share of their size.
UNCERTAIN = 0.2
# What a robot that can exist may leave unexplained more than one that cannot.
BOUNDED = 0.05
# Poses in which that is looked at, and the seed of them.
POSES, SEED = 200, 0
# A centre of mass is at most so many times as far away as half the distance between joints.
FAR = 8.0
# Nor further than so many times as it is in the model: arms with one joint are of any length.
FURTHER = 2.0
# Of the mass of the robot, what a load may be uncertain by.
LIGHT = 0.01
# Columns that take energy, and how the names of coefficients end that may be negative.
FRICTION, SIGNED = ('viscous', 'coulomb'), ('_asymmetry', '_offset')


# Grades of verdicts.
BELIEVABLE, SIMILAR, NOT = 'believable', 'good for motions like these', 'not believable'
# Torques of recordings that were kept back that may be left unexplained, as a share of their size,
# by a robot that is good for similar motions.
VALIDATED = 0.1
# Share of the states that may be left out, because they are not finite, without being blamed.
LEFT_OUT = 0.05


class Verdict(NamedTuple):
    """
    What `verdict` computes.

    Attributes
    ----------
    believable : bool
        Whether nothing speaks against it.
    reasons : tuple of str
        What does, in sentences that say what to do.
    figures : dict of str to float
        On which that rests: ``samples``; ``relative_error`` of the torques; ``rank``, how many
        of the ``base_parameters`` torques say better than the model, and the ``condition`` number
        of these; ``uncertainty`` of torques in other poses as a share of their size, for the
        worst joint. Of loads and robots that stand still, only the first ones.
    grade : str
        ``'believable'``, ``'not believable'``, or between them ``'good for motions like these'``:
        parameters are uncertain, but recordings that were kept back are explained.

    """

    believable: bool
    reasons: tuple[str, ...]
    figures: dict[str, float]
    grade: str


def verdict(model: Model, part: Partial, found: Identification | Payload,
            samples: Samples | Sequence[Samples] = (),
            held_out: Mapping[str, tuple[float, float]] | None = None) -> Verdict:
    """
    Return whether to believe what was identified.

    Parameters
    ----------
    model : Model
        The robot that was started from.
    part : Partial
        What its recordings say.
    found : Identification or Payload
        What `fit` or `fit_payload` made of that.
    samples : Samples or sequence of Samples
        The recordings themselves, if they are at hand: then common mistakes are looked for, such
        as exchanged joints, by undoing them.
    held_out : mapping of str to (float, float), optional
        Of recordings that were kept back, by their names: the relative errors of their torques
        with the robot as described, and as identified (see `torque_errors`).

    Returns
    -------
    Verdict
        With the fields ``believable reasons figures grade``.

    """
    samples = (samples,) if isinstance(samples, Samples) else tuple(samples)
    figures = {'samples': float(part.samples)}
    still, lost = _still(model, part), _not_finite(samples)
    if len(still) == model.nv or not np.any(part.counts):
        return Verdict(False, tuple(lost) or (
            'the robot stands still: record it while all its joints move',), figures, NOT)
    if not np.any(part.squares):
        return Verdict(False, ('all efforts are zero: record the torques of the drives, or their '
                               'currents',), figures, NOT)
    uncertain: list[str] = []
    figures['relative_error'] = error = _relative_error(part, found)
    if isinstance(found, Payload):
        reasons = _delays(samples) or _of_load(model, found)
    else:
        free = fit(model, part, consistent=False)
        figures |= _figures(part, found)
        reasons = (_delays(samples) or _mistakes(found.parameters, samples)
                   or _beyond_limits(model, samples) or _signs(part, free))
        if still:
            reasons += lost or [f'{listed(still)} hardly moved: move them for some seconds, in '
                                'both directions, or lock them']
        if not reasons:
            reasons, uncertain = _of_robot(part, found, free, figures)
    if error > UNEXPLAINED and not reasons and not uncertain:
        reasons.append(f'{100.0 * error:.0f} % of the torques are left unexplained: look whether '
                       'efforts are torques in N m (drive gains), whether the robot touched '
                       'something, and whether its geometry is that of the URDF')
    held_out = held_out or {}
    reasons += _saturated(model, part) + _unexplained(held_out)
    similar = bool(held_out) and max(after for _, after in held_out.values()) <= VALIDATED
    grade = NOT if reasons else BELIEVABLE if not uncertain else SIMILAR if similar else NOT
    return Verdict(grade == BELIEVABLE, tuple(uncertain + reasons), figures, grade)


def _unexplained(held_out: Mapping[str, tuple[float, float]]) -> list[str]:
    """Look for recordings that were kept back, and are not explained."""
    return [f'{name} is not explained: {100.0 * after:.3g} % of its torques are left by the '
            f'identified robot, {100.0 * before:.3g} % by the URDF; look at the sign and unit of '
            'its efforts, and whether the robot and its load were the same'
            for name, (before, after) in held_out.items()
            if after > UNEXPLAINED or after ** 2 > before ** 2 + BOUNDED ** 2]


def _not_finite(samples: tuple[Samples, ...]) -> list[str]:
    """Look for states that are not finite, so many that little is left of the motion."""
    share = max((one.left_out for one in samples), default=0.0)
    if share <= LEFT_OUT:
        return []
    return [f'{100.0 * share:.0f} % of the states are left out, because a number is missing or '
            'not finite: look at what publishes them, and record again']


def _relative_error(part: Partial, found: Identification | Payload) -> float:
    """Return what is left of the torques, as a share of them."""
    counts = part.counts.sum(axis=0)
    return float(np.sqrt(np.sum(found.residual ** 2 * counts) / np.sum(part.squares)))


def _figures(part: Partial, found: Identification) -> dict[str, float]:
    """Return how well the motion shows the parameters."""
    shown = found.sigma[found.sigma > 1.0]
    return {'base_parameters': float(len(found.base.names)), 'rank': float(found.rank),
            'condition': float(shown[0] / shown[-1]) if len(shown) else 1.0,
            'uncertainty': float(np.max(_uncertainty(part, found)))}


def _uncertainty(part: Partial, found: Identification) -> np.ndarray:
    """Return for each joint how uncertain its torque is elsewhere, as a share of its size."""
    parameters, model, rng = found.parameters, found.parameters.model, np.random.default_rng(SEED)
    q = np.array([random_configuration(model, rng) for _ in range(POSES)])
    v, a = (rng.normal(size=(POSES, model.nv)) * np.sqrt(squares / part.samples)
            for squares in part.motion)
    Y = parameters.regressor(States(q, v, a, np.sign(v)))
    variance = np.einsum('sjp,pk,sjk->j', Y, found.covariance, Y, optimize=True) / POSES
    # What is certain beyond rounding may come out below zero.
    deviation = np.sqrt(np.maximum(variance, 0.0))
    elsewhere = np.sqrt(np.mean((Y @ found.values) ** 2, axis=0))
    here = np.sqrt(part.squares / np.maximum(part.counts.sum(axis=0), 1))
    size = np.maximum(elsewhere, here)
    return np.divide(deviation, size, out=np.zeros(model.nv), where=size > 0.0)


def _delays(samples: tuple[Samples, ...]) -> list[str]:
    """Look for efforts that belong to other times."""
    late = [one.delay for one in samples
            if abs(one.delay) > max(DELAY, SURE * one.delay_deviation)
            and one.delay_explains >= MIN_DELAY_EXPLAINS]
    return [f'efforts come {late[0]:.2g} s later than positions: record both by the same clock'
            ] if late else []


def _beyond_limits(model: Model, samples: tuple[Samples, ...]) -> list[str]:
    """Look for joints that cannot have been where they were recorded."""
    # Limits that leave a joint nowhere to go are none.
    limited = np.isfinite(model.lower) & np.isfinite(model.upper) & (model.upper > model.lower)
    if model.nq != model.nv or not samples:
        return []
    lower, upper = model.lower[limited], model.upper[limited]
    middle, half = 0.5 * (upper + lower), (0.5 + MARGIN) * (upper - lower)
    share = np.max([np.mean(np.abs(one.q[:, limited] - middle) > half, axis=0)
                    for one in samples], axis=0)
    names = [name for name, x in zip(np.array(model.velocity_names)[limited], share) if x > BEYOND]
    return [f'positions of {listed(names)} lie beyond the limits of the URDF: look whether they '
            'are in degrees, and whether joints have the right names'] if names else []


def _mistakes(parameters: RobotParameters, samples: tuple[Samples, ...]) -> list[str]:
    """Look for mistakes that can be undone."""
    found = [mistake(parameters, one) for one in samples if np.any(one.usable)]
    return list(dict.fromkeys(sentence for sentence in found if sentence))


def _signs(part: Partial, free: Identification) -> list[str]:
    """Look for friction that drives, or inertia that is negative: efforts have another sign."""
    parameters = free.parameters
    model, columns, bodies = parameters.model, parameters.columns, parameters.bodies
    friction = [k for k, column in enumerate(columns) if column in FRICTION]
    still = np.zeros((model.nv, model.nv))
    q = np.tile(neutral(model), (model.nv, 1))
    inertia = (parameters.regressor(States(q, still, np.eye(model.nv), still))
               - parameters.regressor(States(q, still, still, still)))
    negative, sure = [], False
    for j, (factors, own) in enumerate(zip(part.factors, part.columns)):
        row, least = inertia[j, j], 0.0
        if friction:
            # What friction does with the velocity, or its direction: a sum over the samples.
            there = [10 * bodies + j * len(columns) + k for k in friction]
            terms = factors[:, :, :-1] @ part.base.combination[own][:, there]
            row = np.zeros(len(parameters.names))
            row[there] = np.sum(terms[:, :, :1] * terms, axis=(0, 1))
            least = DRIVES * np.sqrt(np.sum(terms[:, :, 0] ** 2) * part.squares[j])
        deviation = np.sqrt(row @ free.covariance @ row)
        mean = row @ free.values
        sure |= bool(mean < -max(SURE * deviation, least))
        negative += [model.velocity_names[j]] * bool(mean < 0.0)
    return [wrong_sign(negative)] if sure else []


def _still(model: Model, part: Partial) -> list[str]:
    """Return the joints that do not move, or too little."""
    counts = part.counts.sum(axis=0)
    seconds = part.duration * part.moving / part.samples
    few = (counts < SAMPLES_PER_PARAMETER * np.array([len(own) for own in part.columns])) | (
        (seconds < MOVED) & (part.duration > 0.0))
    return [name for name, still in zip(model.velocity_names, few) if still]


def _saturated(model: Model, part: Partial) -> list[str]:
    """Look for drives at their limits."""
    share = part.saturated / np.maximum(part.moving, 1)
    names = [f'{name} ({100.0 * x:.0f} %)' for name, x in zip(model.velocity_names, share)
             if x > SATURATED]
    return [f'drives were at their limits, of the time they moved: {listed(names)}; move slower, '
            'or with less load'] if names else []


def _of_robot(part: Partial, found: Identification, free: Identification,
              figures: dict[str, float]) -> tuple[list[str], list[str]]:
    """Look for what is odd about a robot that was found, and for parameters that are uncertain."""
    model, reasons, unsure = found.parameters.model, [], []
    size = np.sqrt(part.squares / np.maximum(part.counts.sum(axis=0), 1))
    noise = [name for name, residual, whole in zip(model.velocity_names, free.residual, size)
             if residual > OF_ONE * whole]
    if free.relative_error > UNEXPLAINED:
        return [], []
    if noise:
        return [f'the efforts of {listed(noise)} are left unexplained: look at their sensors, '
                'their gains and what hangs there'], []
    if found.relative_error ** 2 > free.relative_error ** 2 + BOUNDED ** 2:
        return [f'{100.0 * found.relative_error:.0f} % of the torques are left unexplained by a '
                f'robot that can exist, {100.0 * free.relative_error:.0f} % by one that cannot: '
                f'{listed(_beyond(free))} would be out of bounds; look at the gains of the '
                'drives, and at what touches the robot'], []
    uncertain = _uncertainty(part, found)
    names = [f'{name} ({100.0 * x:.0f} %)' for name, x in zip(model.velocity_names, uncertain)
             if x > UNCERTAIN]
    if names:
        unsure.append(
            f'torques in other poses are uncertain, as a share of their size: {listed(names)}; '
            f'the motion shows {found.rank} of {len(found.base.names)} combinations of '
            f'parameters, at a condition number of {figures["condition"]:.2g}: move further and '
            'faster, all joints at once')
    pi = found.pi.reshape(-1, 10)
    described = found.parameters.values[:pi.size].reshape(-1, 10)
    far = [name for name, body, before in zip(body_names(model), pi, described)
           if np.linalg.norm(body[1:4]) > abs(body[0]) * max(
               FAR * body_size(model), FURTHER * np.linalg.norm(before[1:4])
               / max(before[0], np.finfo(float).tiny))]
    if far:
        reasons.append(f'the centre of mass of {listed(far)} is further away than a link reaches: '
                       'look whether a load, a cable or a contact pulls there')
    return reasons, unsure


def _beyond(free: Identification) -> list[str]:
    """Return what cannot exist: bodies by their links, and coefficients that are negative."""
    first = 10 * free.parameters.bodies
    return [*free.inconsistent, *(
        name for name, value, deviation in zip(
            free.names[first:], free.values[first:], free.deviation[first:])
        if value < -SURE * deviation and not name.endswith(SIGNED))]


def _of_load(model: Model, load: Payload) -> list[str]:
    """Look for what is odd about a load that was found."""
    reasons, reach = [], body_size(model)
    mass, uncertain = load.mass, load.deviation[0]
    if uncertain > max(UNCERTAIN * mass, LIGHT * inertial_parameters(model)[::10].sum()):
        reasons.append(f'the mass, {mass:.3g} kg, is uncertain by {uncertain:.2g} kg: move the '
                       'joints that lift the load')
    elif mass > SURE * uncertain:
        if np.max(load.deviation[1:4]) > reach * mass:
            reasons.append('the centre of mass is uncertain by '
                           f'{np.max(load.deviation[1:4]) / mass:.2g} m: turn the load')
        elif np.linalg.norm(load.com) > FAR * reach:
            reasons.append(f'the centre of mass is {np.linalg.norm(load.com):.2g} m away from the '
                           'link that carries it: look whether the load touched something, and '
                           'whether the robot is as its model has it')
    return reasons
