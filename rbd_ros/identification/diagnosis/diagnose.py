# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Diagnose recordings: what is wrong, how much of the residual it explains, what to do."""

from collections.abc import Callable, Collection, Mapping, Sequence
from dataclasses import replace
from typing import NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.errors import RecordingError, StateError
from rbd_ros.identification.diagnosis.competition import (
    ABOUT_ONE, Competition, Fitted, MIN_GAIN, ROUNDING)
from rbd_ros.identification.diagnosis.detectors import beyond_limits
from rbd_ros.identification.diagnosis.hypotheses import FACTORS, HYPOTHESES, words
from rbd_ros.identification.diagnosis.motion import Motion, motion_of
from rbd_ros.model.arguments import check_model
from rbd_ros.model.model import Model
from rbd_ros.recordings.delays import estimate_delay
from rbd_ros.recordings.plausibility import Detected
from rbd_ros.recordings.preparation import MIN_DELAY_EXPLAINS, prepare
from rbd_ros.recordings.recording import Recording
from rbd_ros.recordings.samples import Samples

# Largest ratio of what is unexplained with an order or unit of the columns, and without it.
MAX_ERROR_RATIO = 0.3
NEGLIGIBLE_ERROR = 1e-3     # Share of the efforts up to which orders are not searched.
# How often changes that are not linear are linearised about the last sizes. Efforts that are
# smaller than this, relative to the torques, are in larger units: masses are not wrong by as much.
LINEARISATIONS, SMALL = 3, 0.2
SYSTEMATIC = 0.01  # Filters and linearisation leave a relative error of values.
INDISTINGUISHABLE = 6.0  # Hypotheses whose score is worse by less cannot be told apart.
# Least friction beyond what is declared that is a finding, as a share of the RMS efforts; most
# that may be unexplained; frequencies at which the rest is looked at.
MIN_FRICTION, MAX_UNEXPLAINED, FREQUENCIES = 0.05, 0.1, 200


class Finding(NamedTuple):
    """
    A mistake that a recording supports.

    Attributes
    ----------
    kind, place, joints : str, str, tuple of str
        A key of `HYPOTHESES`; the joint or link, or '' for all; the joints that it changes.
    value, unit, deviation : float or list or None, str, float or list or None
        Its size, and the standard deviation of that; lists have a number per joint.
    explains : float
        Share of the squared residual that it explains.
    advice, undo : str
        What it is and what to do about it; how to take that back.
    alternatives : tuple of str
        Other readings that the recording cannot tell from this one, with the motion that would.

    """

    kind: str
    place: str
    joints: tuple[str, ...]
    value: float | list[float] | None
    unit: str
    deviation: float | list[float] | None
    explains: float
    advice: str
    undo: str
    alternatives: tuple[str, ...] = ()


class Diagnosis(NamedTuple):
    """
    Result of `diagnose`.

    Attributes
    ----------
    findings : tuple of Finding
        The strongest first.
    residual : dict of str to float
        Share of the RMS efforts of each joint that is left unexplained.
    compared : tuple of ndarray
        Times and numbers of recordings, (rows,); efforts measured, of the description and with
        all findings, and which of them were used, (rows, nv). Empty: none could be compared.

    """

    findings: tuple[Finding, ...]
    residual: dict[str, float]
    compared: tuple[np.ndarray, ...] = ()


def diagnose(model: Model, recordings: Recording | Sequence[Recording], *,
             payload_link: str | None = None, without: Collection[str] = (),
             cutoff: float | None = None,
             progress: Callable[[float, float], object] = lambda done, total: None) -> Diagnosis:
    """
    Return what is wrong with recordings or with the description of a robot.

    Hypotheses, each a small change of the torques of the description, are fitted to some samples,
    judged on others, and compete with a price per parameter; friction is always fitted, too.

    Parameters
    ----------
    model, recordings : Model, Recording or sequence of Recording
        The description, with its friction and rotors if known; recordings with efforts.
    payload_link : str, optional
        Link that may carry a payload; default: the links at the ends of the robot.
    without, cutoff : collection of str, float, optional
        Kinds that are excluded; cut-off of the filter, Hz.
    progress : callable, optional
        Called with the work done and the total.

    Raises
    ------
    RecordingError
        If no joint moves, or `prepare` refuses a recording.

    """
    check_model(model)
    recordings = (recordings,) if isinstance(recordings, Recording) else tuple(recordings)
    if not recordings:
        raise StateError('recordings holds no recordings')
    found: list[Finding] = []
    samples: list[Samples] = []
    for k, one in enumerate(recordings):
        progress(k, len(recordings) + 1)
        readable: Recording | None = one.for_robot(model)
        for kind, hypothesis in HYPOTHESES.items():
            if readable is not None and hypothesis.detect is not None and (
                    seen := hypothesis.detect(model, readable)):
                found.append(_detected(kind, seen, 1.0))
                readable = seen.undone
        if readable is not None:
            samples.append(prepare(model, readable, delay=0.0, cutoff=cutoff))
    progress(len(recordings), len(recordings) + 1)
    samples = [one for one in samples if np.any(one.usable)]
    found = [*dict.fromkeys(found)]
    if not samples and not found:
        raise RecordingError(f'{listed(one.name for one in recordings)}: the robot stands still: '
                             'record it while all its joints move')
    if not samples:
        return Diagnosis(tuple(found), {})
    result = diagnose_samples(model, samples, [kind for kind in HYPOTHESES if kind not in without],
                              payload_link=payload_link)
    found += result.findings
    limits = beyond_limits(model, np.abs(np.concatenate([one.tau for one in samples])))
    if limits and 'current' not in without and not any(
            one.kind in FACTORS or HYPOTHESES[one.kind].compare for one in found):
        found.append(_detected('current', limits, 0.0))
    return result._replace(findings=tuple(found))


def diagnose_samples(model: Model, samples: Sequence[Samples], kinds: Collection[str],
                     nuisance: Collection[str] = (), payload_link: str | None = None) -> Diagnosis:
    """Return the findings of some kinds; those of ``nuisance`` are fitted, but are no findings."""
    delays = [estimate_delay(model, one) for one in samples] if 'delay' in kinds else []
    delay = next((one.seconds for one in delays if one.explains > MIN_DELAY_EXPLAINS), 0.0)
    rounds = _rounds(model, samples, kinds, nuisance, delay, payload_link)
    compared = [(kind, compare) for kind in kinds if (compare := HYPOTHESES[kind].compare)]
    found: dict[str, Finding] = {}
    if compared and (error := rounds[0].unexplained(rounds[1])) > NEGLIGIBLE_ERROR:
        undone: list[Samples] = []
        for one in samples:
            before = _share(model, one, nuisance)
            share, kind, seen = min(
                ((_share(model, seen.undone, nuisance), kind, seen) for kind, compare in compared
                 for seen in compare(model, one)), key=lambda one: one[0],
                default=(np.inf, '', Detected((), '')))
            if share < MAX_ERROR_RATIO * min(error, before):
                found[seen.text] = _detected(kind, seen, 1.0 - share / before)
                one = seen.undone
            undone.append(one)
        if found:
            rounds = _rounds(model, undone, kinds, nuisance, delay, payload_link)
    competition, fitted = rounds
    motion, rest = competition.motion, competition.rest(fitted)
    sizes = competition.drive_sizes(rest, motion.use)
    left = rest - np.einsum('jrc,jc->rj', competition.drives, sizes)
    linear = _findings(competition, fitted)
    if 'friction' in kinds:
        linear += _frictions(competition, fitted, rest, left, sizes)
    whole = competition.misfit(competition.fit(()).left, fitted) + sum(
        one.explains for one in linear if one.kind == 'friction')
    linear = sorted((one._replace(explains=one.explains / whole) for one in linear),
                    key=lambda one: -one.explains)
    size, error = (np.sqrt(np.sum(x ** 2, axis=0, where=motion.use)) for x in (motion.tau, left))
    residual = {name: float(x / y) if y > 0.0 else 0.0 for name, x, y in zip(
        model.velocity_names, error, size)}
    if 'unexplained' in kinds:
        linear += _unexplained(motion, left, residual)
    return Diagnosis((*found.values(), *linear), residual, (
        motion.time, motion.recording, motion.tau, motion.described, motion.tau - left,
        motion.use))


def _share(model: Model, one: Samples, nuisance: Collection[str]) -> float:
    """Return the share of the squared efforts that is unexplained without any hypothesis."""
    competition = Competition(motion_of(model, [one]), (), nuisance)
    return competition.unexplained(competition.fit(()))


def _detected(kind: str, seen: Detected, explains: float) -> Finding:
    return Finding(kind, '', seen.joints, seen.value, '', None, explains, seen.text,
                   HYPOTHESES[kind].undo)


def _rounds(model: Model, samples: Sequence[Samples], kinds: Collection[str],
            nuisance: Collection[str], delay: float, payload_link: str | None
            ) -> tuple[Competition, Fitted]:
    """Return the competition about the best set of hypotheses, linearised there, and the set."""
    motion = motion_of(model, samples, delay=delay, payload_link=payload_link)
    size, described = (np.mean(x ** 2, axis=0) for x in (motion.tau, motion.described))
    factor = np.ones(model.nv)
    tiny = np.finfo(float).tiny
    if (ratio := np.sqrt(np.median(size / np.maximum(described, size + tiny)))) < SMALL:
        factor = np.full(model.nv, max(ratio, ROUNDING))
        motion = replace(motion, factor=factor)
    for _ in range(LINEARISATIONS):
        competition = Competition(motion, kinds, nuisance)
        fitted = competition.search()
        about = {(one.kind, one.change.place): float(fitted.sizes[own][0])
                 for one, own in competition.own(fitted.chosen)
                 if one.kind in ('delay', 'zero_offset')}
        before, factor = factor, competition.factor(fitted.chosen, fitted.sizes,
                                                    ('gain', 'common_gain', 'current'))
        if not about and np.all(factor == before):
            break
        motion = motion_of(model, samples, factor, about, delay, payload_link)
    return competition, fitted


def _findings(competition: Competition, fitted: Fitted) -> list[Finding]:
    parts, model = competition.jackknife(fitted), competition.motion.model
    found, best = [], competition.misfit(fitted.left, fitted)
    for k, (one, own) in zip(fitted.chosen, competition.own(fitted.chosen)):
        declared, others = HYPOTHESES[one.kind], tuple(x for x in fitted.chosen if x != k)
        sizes = fitted.sizes[own]
        unit = declared.unit[not model.angular[model.velocity_names.index(one.change.joints[0])]]
        if one.change.fixed is not None:
            value, deviation = float(declared.value(np.full(1, one.change.fixed), model)), None
        else:
            x = np.asarray(declared.value(sizes, model))
            spread = np.sqrt((len(parts) - 1) * np.var(declared.value(parts[:, own], model),
                                                       axis=0))
            value, deviation = x.tolist(), np.hypot(SYSTEMATIC * x, spread).tolist()
            if one.kind in FACTORS and np.all(np.abs(x - 1.0) < ABOUT_ONE):
                continue
        without = competition.fit(others)
        text = declared.text.format(**words(one.change, sizes, model, declared), unit=unit)
        found.append(Finding(
            one.kind, one.change.place, one.change.joints, value, unit, deviation,
            competition.misfit(without.left, fitted) - best, text, declared.undo,
            _alternatives(competition, fitted, k, others)))
    return found


def _frictions(competition: Competition, fitted: Fitted, rest: np.ndarray, left: np.ndarray,
               sizes: np.ndarray) -> list[Finding]:
    """Return the joints whose friction is not what is declared, if some is."""
    motion, model, found = competition.motion, competition.motion.model, []
    if not (np.any(model.damping) or np.any(model.friction)):
        return []
    declared, parts = HYPOTHESES['friction'], np.unique(motion.block)
    factor = competition.factor(fitted.chosen, fitted.sizes)
    replicates = np.array([competition.drive_sizes(rest, motion.use & (
        motion.block != part)[:, None]) for part in parts])
    for j, name in enumerate(model.velocity_names):
        use = motion.use[:, j]
        if not np.any(use):
            continue
        before, after, effort = (np.sum(x[use, j] ** 2) for x in (rest, left, motion.tau))
        after = max(after, ROUNDING * effort)
        if (competition.count[j] * np.log(before / after) < 2.0 * competition.price + MIN_GAIN
                or before - after < MIN_FRICTION ** 2 * effort):
            continue
        # At the usual speed.
        at = np.array([np.median(np.abs(motion.states.v[use, j])), 1.0]) / factor[j]
        value, unit = float(sizes[j, :2] @ at), declared.unit[not model.angular[j]]
        deviation = np.hypot(SYSTEMATIC * value, np.sqrt((len(parts) - 1) * np.var(
            replicates[:, j, :2] @ at)))
        found.append(Finding(
            'friction', name, (name,), value, unit, float(deviation),
            float(competition.count[j] * (before - after) / after), declared.text.format(
                joints=name, size=f'{abs(value):.3g}', unit=unit,
                more='more' if value > 0.0 else 'less'), declared.undo))
    return found


def _unexplained(motion: Motion, left: np.ndarray, residual: Mapping[str, float]) -> list[Finding]:
    """Return the joints of which much is left unexplained, and where in the spectrum."""
    joints = [name for name, share in residual.items() if share > MAX_UNEXPLAINED]
    if not joints:
        return []
    step = np.median(np.diff(motion.time))
    frequency = np.linspace(0.0, 0.5 / step, FREQUENCIES + 1)[1:]
    wave = np.exp(-2j * np.pi * frequency[:, None] * motion.time)
    columns = [motion.model.velocity_names.index(name) for name in joints]
    power = np.cumsum(np.sum(np.abs(wave @ np.where(motion.use, left, 0.0)[:, columns]) ** 2,
                             axis=1))
    low, high = np.interp([0.1 * power[-1], 0.9 * power[-1]], power, frequency)
    shares = listed(f'{name} ({100.0 * residual[name]:.0f} %)' for name in joints)
    return [Finding('unexplained', '', tuple(joints), None, '', None, 0.0,
                    f'efforts are left unexplained, mostly from {low:.2g} to {high:.2g} Hz: '
                    f'{shares}; look for contacts, elasticity and loose cables, and identify the '
                    'robot (rbd_ros identify) if its masses are in doubt',
                    HYPOTHESES['unexplained'].undo)]


def _alternatives(competition: Competition, fitted: Fitted, k: int,
                  others: tuple[int, ...]) -> tuple[str, ...]:
    texts, own = [], competition.candidates[k]
    for other, one in enumerate(competition.candidates):
        if other in fitted.chosen or {one.kind, own.kind} <= {*FACTORS}:
            continue
        rival = competition.fit(tuple(sorted((*others, other))))
        # Sizes of the same unit are one thing, however many numbers describe it.
        same = HYPOTHESES[one.kind].unit == HYPOTHESES[own.kind].unit
        price = competition.price * max(0.0, rival.dof - fitted.dof) if same else 0.0
        if rival.score - price < fitted.score + INDISTINGUISHABLE:
            texts.append(f'{one.kind} {one.change.place}'.strip()
                         + f' ({HYPOTHESES[one.kind].tell} would tell)')
    return tuple(texts)
