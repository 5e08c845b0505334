# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Judge an identification: can it be trusted, and if not, what to do? No errors are raised."""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.diagnosis.competition import MASSES
from rbd_ros.identification.diagnosis.detectors import beyond_limits
from rbd_ros.identification.diagnosis.diagnose import diagnose_samples, Diagnosis
from rbd_ros.identification.diagnosis.hypotheses import FACTORS, HYPOTHESES, words_of_factors
from rbd_ros.identification.least_squares import body_size, fit, Identification
from rbd_ros.identification.parameters import States
from rbd_ros.identification.payload import Payload
from rbd_ros.identification.reduction import Partial
from rbd_ros.model.changes.inertial import body_names, inertial_parameters
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import random_configuration
from rbd_ros.recordings.preparation import MIN_DELAY_EXPLAINS
from rbd_ros.recordings.samples import Samples

# Time, s, and samples per parameter of its torque that a joint must move.
MIN_MOVING_TIME, MIN_SAMPLES_PER_PARAMETER = 2.0, 3
# Largest fraction of the samples in which noise makes a joint at rest seem to move.
MAX_NOISE_MOVES = 1e-3
MAX_SATURATED = 0.05  # Largest fraction of the samples in which a drive may be at its limit.
# Largest fraction of the samples out of range by more than a fraction of the range.
MAX_OUT_OF_RANGE, RANGE_MARGIN = 0.1, 0.05
MIN_REPORTED_DELAY = 0.1  # Smallest delay of efforts that is reported, s.
SIGNIFICANCE = 3.0  # Number of standard deviations at which a finding is significant.
# Largest unexplained RMS, as a fraction of that of the torques: of all joints, of one joint.
MAX_UNEXPLAINED, MAX_UNEXPLAINED_JOINT = 0.3, 0.7
# Largest standard deviation of torques in other poses, as a fraction of their size.
MAX_UNCERTAINTY = 0.2
# Largest additional relative error of the physically consistent fit over the unconstrained one.
MAX_CONSISTENCY_COST = 0.05
# Random poses in which the uncertainty of torques is evaluated, and their seed.
POSES, SEED = 200, 0
# Largest distance of a centre of mass, in multiples of a body's radius of gyration, and of its
# distance in the model (arms with a single joint can have any length).
MAX_COM_DISTANCE, MAX_COM_RATIO = 8.0, 2.0
# Largest standard deviation of a payload's mass, as a fraction of the mass of the robot.
MAX_PAYLOAD_DEVIATION = 0.01
# Largest relative error on held-out recordings of a robot that is good for similar motions.
MAX_HELD_OUT_ERROR = 0.1
# Largest fraction of the states that may be left out because they are not finite.
MAX_LEFT_OUT = 0.05
SIGNED = ('_asymmetry', '_offset')  # Suffixes of drive coefficients that may be negative.
CERTAIN = ('degrees', 'order', 'sign')  # Kinds of mistakes that no wrong description looks like.
# What a fit explains beside friction.
DRIVES = ('rotor', 'torque_offset')
RIVALS = ('payload', 'gravity_direction', 'zero_offset', 'spring')
# Factors of all joints within 1/FACTOR ... FACTOR may be errors of the masses; those of a single
# joint within the second one, or the third if its torques are less than a share of the largest
# ones of the URDF: errors of light links change them much more.
MAX_FACTOR, MAX_JOINT_FACTOR, MAX_WEAK_FACTOR, WEAK = 1.5, 1.8, 5.0, 0.1
MAX_LEFT = 0.5  # Largest share of the RMS efforts of a joint whose factor is known.
UNSURE = 0.2    # Deviation of a factor that is not known, as a share of the factor.
# Grades of verdicts.
BELIEVABLE, SIMILAR_MOTIONS = 'believable', 'good for motions like these'
NOT_BELIEVABLE = 'not believable'


class Verdict(NamedTuple):
    """
    Result of `verdict`.

    Attributes
    ----------
    believable, reasons : bool, tuple of str
        Whether there is no objection; the objections, as sentences with advice.
    figures : dict of str to float
        The numbers behind the verdict: ``samples``; ``relative_error`` of the torques; ``rank``,
        how many of the ``base_parameters`` the torques determine better than the model, and their
        ``condition`` number; ``uncertainty`` of torques in other poses, as a fraction of their
        size, for the worst joint; ``size``, that of these torques relative to the URDF's: not the
        masses but the unit of the efforts may explain it. For payloads and standing robots only
        the first ones.
    grade : str
        ``'believable'``, ``'not believable'``, or between them ``'good for motions like these'``:
        parameters are uncertain, but the held-out recordings are explained.

    """

    believable: bool
    reasons: tuple[str, ...]
    figures: dict[str, float]
    grade: str


def verdict(model: Model, part: Partial, found: Identification | Payload,
            samples: Samples | Sequence[Samples] = (),
            held_out: Mapping[str, tuple[float, float]] | None = None, *,
            efforts_are_torques: bool = False) -> Verdict:
    """
    Judge an identification: is it believable, why not, and what to do.

    Parameters
    ----------
    model, part : Model, Partial
        The robot before the identification, and the reduced recordings.
    found : Identification or Payload
        Result of `fit` or `fit_payload` for that part.
    samples : Samples or sequence of Samples
        The recordings, if available: they are then searched for mistakes such as exchanged joints.
    held_out : mapping of str to (float, float), optional
        For each held-out recording, the relative errors of its torques (see `torque_errors`) with
        the original and with the identified robot.
    efforts_are_torques : bool
        Whether the owner confirms that efforts are torques although they are multiples of those
        of the URDF or exceed its limits: its masses or limits are wrong.

    """
    samples = (samples,) if isinstance(samples, Samples) else tuple(samples)
    figures = {'samples': float(part.samples)}
    standing, not_finite = _standing_joints(model, part), _check_finite(samples)
    if len(standing) == model.nv or not np.any(part.counts):
        return Verdict(False, tuple(not_finite) or (_too_short(part),), figures, NOT_BELIEVABLE)
    if not np.any(part.squares):
        return Verdict(False, ('all efforts are zero: record motor torques or currents',), figures,
                       NOT_BELIEVABLE)
    uncertain: list[str] = []
    counts = part.counts.sum(axis=0)
    error = float(np.sqrt(np.sum(found.residual ** 2 * counts) / np.sum(part.squares)))
    figures['relative_error'] = error
    if isinstance(found, Payload):
        reasons = _check_delay(samples) or _check_payload(model, found)
    else:
        free = fit(model, part, consistent=False)
        uncertainty, size = _torque_uncertainty(part, found)
        determined = found.sigma[found.sigma > 1.0]
        figures |= {'base_parameters': float(len(found.base.names)), 'rank': float(found.rank),
                    'condition': float(np.max(determined / determined[-1:], initial=1.0)),
                    'uncertainty': float(np.max(uncertainty)), 'size': size}
        said = {kind: text for one in samples for kind, text in effort_doubts(model, one).items()}
        mistakes = [said.pop(kind) for kind in CERTAIN if kind in said]
        reasons = _check_delay(samples) or mistakes or position_doubts(model, samples)
        doubts = [] if reasons or efforts_are_torques else [*said.values()]
        if standing:
            reasons += not_finite or [f'{listed(standing)} hardly moved: move them for several '
                                      'seconds in both directions, or lock them']
        if not reasons:
            reasons, uncertain = _check_robot(part, found, free, uncertainty, figures['condition'])
        reasons = doubts + reasons
    if error > MAX_UNEXPLAINED and not reasons and not uncertain:
        reasons.append(f'{100.0 * error:.0f} % of the torques are left unexplained: check whether '
                       'efforts are torques in N m (drive gains), whether the robot touched '
                       'something, and whether the URDF has its geometry')
    held_out = held_out or {}
    if names := _joints_above(model, part.saturated / np.maximum(part.moving, 1), MAX_SATURATED):
        reasons.append('drives were at their limits for a fraction of the time they moved: '
                       f'{names}; move more slowly, or with less payload')
    reasons += _check_held_out(held_out)
    similar = bool(held_out) and max(after for _, after in held_out.values()) <= MAX_HELD_OUT_ERROR
    grade = NOT_BELIEVABLE
    if not reasons and (similar or not uncertain):
        grade = SIMILAR_MOTIONS if uncertain else BELIEVABLE
    return Verdict(grade == BELIEVABLE, tuple(uncertain + reasons), figures, grade)


def _check_held_out(held_out: Mapping[str, tuple[float, float]]) -> list[str]:
    """Check that held-out recordings are explained, and not worse than by the original robot."""
    return [f'{name} is not explained: {100.0 * after:.3g} % of its torques are left unexplained '
            f'by the identified robot, {100.0 * before:.3g} % by the URDF; check the sign and '
            'unit of its efforts, and that robot and payload were the same'
            for name, (before, after) in held_out.items()
            if after > MAX_UNEXPLAINED or after ** 2 > before ** 2 + MAX_CONSISTENCY_COST ** 2]


def _check_finite(samples: tuple[Samples, ...]) -> list[str]:
    share = max((one.left_out for one in samples), default=0.0)
    return [f'{100.0 * share:.0f} % of the states are left out because a number is missing or '
            'not finite: check the publisher of the joint states, and record again'
            ] if share > MAX_LEFT_OUT else []


def _torque_uncertainty(part: Partial, found: Identification) -> tuple[np.ndarray, float]:
    """Return the deviation of joints' torques in other poses, and their size, both relative."""
    parameters, model, rng = found.parameters, found.parameters.model, np.random.default_rng(SEED)
    q = np.array([random_configuration(model, rng) for _ in range(POSES)])
    v, a = (rng.normal(size=(POSES, model.nv)) * np.sqrt(squares / part.samples)
            for squares in part.motion)
    Y = parameters.regressor(States(q, v, a, np.sign(v)))
    variance = np.einsum('sjp,pk,sjk->j', Y, found.covariance, Y, optimize=True) / POSES
    deviation = np.sqrt(np.maximum(variance, 0.0))  # Rounding can make tiny variances negative.
    elsewhere = np.sqrt(np.mean((Y @ found.values) ** 2, axis=0))
    here = np.sqrt(part.squares / np.maximum(part.counts.sum(axis=0), 1))
    size = np.maximum(elsewhere, here)
    own = slice(10 * parameters.bodies)
    described = Y[:, :, own] @ parameters.values[own]
    ratio = np.vdot(described, Y[:, :, own] @ found.values[own]) / max(
        np.vdot(described, described), np.finfo(float).tiny)
    return np.divide(deviation, size, out=np.zeros(model.nv), where=size > 0.0), float(ratio)


def _check_delay(samples: tuple[Samples, ...]) -> list[str]:
    late = [one.delay for one in samples
            if abs(one.delay) > max(MIN_REPORTED_DELAY, SIGNIFICANCE * one.delay_deviation)
            and one.delay_explains >= MIN_DELAY_EXPLAINS]
    return [f'efforts come {late[0]:.2g} s later than positions: record both with the same clock'
            ] if late else []


def position_doubts(model: Model, samples: Sequence[Samples]) -> list[str]:
    """Return a doubt if positions lie beyond the limits of the URDF."""
    # Ignore empty ranges.
    limited = np.isfinite(model.lower) & np.isfinite(model.upper) & (model.upper > model.lower)
    tree = model.unconstrained
    if tree.nq != tree.nv or not samples:
        return []
    own = np.flatnonzero(limited) if model.loops is None else model.loops.own[limited]
    lower, upper = model.lower[limited], model.upper[limited]
    middle, half = 0.5 * (upper + lower), (0.5 + RANGE_MARGIN) * (upper - lower)
    share = np.max([np.mean(np.abs(one.q[:, own] - middle) > half, axis=0)
                    for one in samples], axis=0)
    names = [name for name, x in zip(np.array(model.velocity_names)[limited], share)
             if x > MAX_OUT_OF_RANGE]
    return [f'positions of {listed(names)} lie beyond the limits of the URDF: check that they are '
            'in radians, and names and limits of the joints'] if names else []


def _standing_joints(model: Model, part: Partial) -> list[str]:
    counts = part.counts.sum(axis=0)
    seconds = part.duration * part.moving / part.samples
    few = (counts < MIN_SAMPLES_PER_PARAMETER * np.array([len(own) for own in part.columns])) | (
        (seconds < MIN_MOVING_TIME) & (part.duration > 0.0))
    return [name for name, standing in zip(model.velocity_names, few) if standing]


def _too_short(part: Partial) -> str:
    moving = np.max(part.moving)
    if moving <= MAX_NOISE_MOVES * part.samples:
        return 'the robot stands still: record it while all its joints move'
    seconds = part.duration * moving / part.samples
    if 0.0 < seconds < MIN_MOVING_TIME:
        return (f'the robot moves for only {seconds:.2g} s; at least {MIN_MOVING_TIME:g} s are '
                'needed')
    return (f'only {np.max(part.counts.sum(axis=0))} samples of moving joints are usable, fewer '
            f'than {MIN_SAMPLES_PER_PARAMETER} per parameter: record for longer')


def _joints_above(model: Model, share: np.ndarray, most: float) -> str:
    """Return the joints with a larger share, with percentages."""
    return listed(f'{name} ({100.0 * x:.0f} %)' for name, x in zip(model.velocity_names, share)
                  if x > most)


def _check_robot(part: Partial, found: Identification, free: Identification,
                 uncertainty: np.ndarray, condition: float) -> tuple[list[str], list[str]]:
    """Return objections to an identified robot, and its uncertain results."""
    model, reasons, uncertain = found.parameters.model, [], []
    size = np.sqrt(part.squares / np.maximum(part.counts.sum(axis=0), 1))
    noisy = [name for name, residual, whole in zip(model.velocity_names, free.residual, size)
             if residual > MAX_UNEXPLAINED_JOINT * whole]
    if free.relative_error > MAX_UNEXPLAINED:
        return [], []
    if noisy:
        return [f'the efforts of {listed(noisy)} are left unexplained: check their sensors and '
                'gains, and what is attached there'], []
    if found.relative_error ** 2 > free.relative_error ** 2 + MAX_CONSISTENCY_COST ** 2:
        return [f'{100.0 * found.relative_error:.0f} % of the torques are left unexplained by '
                f'a physically consistent robot, {100.0 * free.relative_error:.0f} % without that '
                f'constraint: {listed(_inconsistent(free))} would violate it; check the drive '
                'gains, and whether something touches the robot'], []
    if names := _joints_above(model, uncertainty, MAX_UNCERTAINTY):
        uncertain.append(
            f'torques in other poses are uncertain, relative to their size: {names}; the '
            f'motion determines {found.rank} of {len(found.base.names)} base parameters, with a '
            f'condition number of {condition:.2g}: move further and faster, all joints '
            'at once')
    pi = found.pi.reshape(-1, 10)
    described = found.parameters.values[:pi.size].reshape(-1, 10)
    far = [name for name, body, before in zip(body_names(model), pi, described)
           if np.linalg.norm(body[1:4]) > abs(body[0]) * max(
               MAX_COM_DISTANCE * body_size(model), MAX_COM_RATIO * np.linalg.norm(before[1:4])
               / max(before[0], np.finfo(float).tiny))]
    if far:
        reasons.append(f'the centre of mass of {listed(far)} is further away than a link reaches: '
                       'check for a payload, a cable or a contact there')
    return reasons, uncertain


def _inconsistent(free: Identification) -> list[str]:
    """Return the bodies and the coefficients that no real robot can have."""
    first = 10 * free.parameters.bodies
    return [*free.inconsistent, *(
        name for name, value, deviation in zip(
            free.names[first:], free.values[first:], free.deviation[first:])
        if value < -SIGNIFICANCE * deviation and not name.endswith(SIGNED))]


def _check_payload(model: Model, payload: Payload) -> list[str]:
    reasons, reach = [], body_size(model)
    mass, deviation = payload.mass, payload.deviation[0]
    whole = inertial_parameters(model)[::10].sum()
    if deviation > max(MAX_UNCERTAINTY * mass, MAX_PAYLOAD_DEVIATION * whole):
        reasons.append(f'the mass, {mass:.3g} kg, is uncertain by {deviation:.2g} kg: move the '
                       'joints that lift the payload')
    elif mass > SIGNIFICANCE * deviation:
        if np.max(payload.deviation[1:4]) > reach * mass:
            reasons.append('the centre of mass is uncertain by '
                           f'{np.max(payload.deviation[1:4]) / mass:.2g} m: turn the payload')
        elif np.linalg.norm(payload.com) > MAX_COM_DISTANCE * reach:
            reasons.append(f'the centre of mass is {np.linalg.norm(payload.com):.2g} m away from '
                           'the link that carries it: check that the payload touched nothing, '
                           'and that the model of the robot is right')
    return reasons


def effort_doubts(model: Model, samples: Samples) -> dict[str, str]:
    """Return why efforts look like other quantities than the torques of the joints, by kind."""
    # A fit adapts masses to any factor of the efforts, so these are compared with the description.
    # What a fit finds by itself competes, but is no doubt; nor are factors that may be errors of
    # the masses.
    limits = beyond_limits(model, np.abs(samples.tau))
    doubts = {'limits': limits.text} if limits else {}
    if not np.any(samples.tau[samples.usable]):
        return doubts
    kinds = [kind for kind, one in HYPOTHESES.items()
             if one.compare or (one.changes and (not one.fitted or kind in RIVALS))]
    found = diagnose_samples(model, [samples], kinds, (MASSES, *DRIVES))
    doubts |= {one.kind: one.advice for one in found.findings
               if one.kind not in FACTORS and not HYPOTHESES[one.kind].fitted}
    factor = _factors(model, found)
    unknown = np.array([share > MAX_LEFT for share in found.residual.values()])
    strength, names = np.std(found.compared[3], axis=0), np.array(model.velocity_names)
    factor[unknown] = 1.0
    if np.any(factor < 0.0):
        wrong = names[factor < 0.0]
        doubts['sign'] = HYPOTHESES['sign'].text.format(
            **words_of_factors(wrong, -np.ones(len(wrong))))
    most = np.where(strength < WEAK * np.max(strength), MAX_WEAK_FACTOR, MAX_JOINT_FACTOR)
    if _are_large(factor, most):
        # How large they are if the masses are right.
        found = diagnose_samples(model, [replace(samples, tau=samples.tau * np.sign(factor))],
                                 ('common_gain', 'gain', 'current'), DRIVES)
        factor = _factors(model, found)
        unsure = _factors(model, found, 'deviation') > UNSURE * np.abs(factor)
        kind = 'common_gain' if np.ptp(factor) == 0.0 else 'current'
        changed = (factor != 1.0) & (~unsure | (kind == 'common_gain'))
        if _are_large(np.where(changed, factor, 1.0), most):
            words = words_of_factors(names[changed], factor[changed])
            if len(rest := names[(factor != 1.0) & ~changed]):
                words['scale'] += f' (the factors of {listed(rest)} are not known)'
            doubts[kind] = HYPOTHESES[kind].text.format(**words)
    return doubts


def _are_large(factor: np.ndarray, most: np.ndarray) -> bool:
    """Return whether factors are no errors of the masses; ``most``: of each joint, (nv,)."""
    size = np.abs(np.log(np.abs(factor)))
    return bool(np.median(size) > np.log(MAX_FACTOR) or np.any(size > np.log(most)))


def _factors(model: Model, found: Diagnosis, label: str = 'value') -> np.ndarray:
    """Return the factors of the efforts, (nv,), that findings contain, or their deviations."""
    factor = np.ones(model.nv)
    for one in found.findings:
        if one.kind in FACTORS:
            own = [model.velocity_names.index(name) for name in one.joints]
            factor[own] *= np.asarray(getattr(one, label) or 0.0, float)
    return factor
