# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros identify``: identify a robot or a payload from recordings, and judge the result."""

import argparse
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import partial as bound
from math import isfinite, nan
from pathlib import Path
from typing import Any, NamedTuple
import warnings

import numpy as np
from rbd_ros._internal.atomic_write import check_places, whole_files
from rbd_ros._internal.text import printable
from rbd_ros.cli.common.options import (
    add_list, add_reading, add_robot, json_text, load_robot, names_in, reading_of)
from rbd_ros.cli.common.terminal import NEGATIVE, print_error, progress, UsageError
from rbd_ros.control.contact import largest_external
from rbd_ros.errors import ModelWarning, StateError
from rbd_ros.identification.least_squares import fit, Identification
from rbd_ros.identification.parameters import LoadParameters
from rbd_ros.identification.payload import fit_payload, payload_partial
from rbd_ros.identification.pipeline import (
    compare_recording, default_workers, left_out_recording, map_recordings, read_for_robot,
    read_samples, Reading, reduce_recording)
from rbd_ros.identification.reduction import merge, Partial, partial
from rbd_ros.identification.report import Comparison, identification_report, Row, write_residuals
from rbd_ros.identification.torque_uncertainty import leave_out, torque_uncertainty
from rbd_ros.identification.verdicts import MAX_HELD_OUT_ERROR, NOT_BELIEVABLE, Verdict, verdict
from rbd_ros.model.arguments import whole_number
from rbd_ros.model.changes.drives import COLUMNS
from rbd_ros.model.changes.inertial import body_names, parameters_of_inertia
from rbd_ros.model.changes.modifications import with_payload
from rbd_ros.model.constraints import attach
from rbd_ros.model.files.any_format import is_mjcf_file
from rbd_ros.model.files.drive_files import save_drives
from rbd_ros.model.files.urdf_writer import save_urdf
from rbd_ros.model.joints import DRIVE
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import inertia_matrix
from rbd_ros.recordings.samples import Samples

FILES = ('robot.urdf', 'dynamics.param.yaml', 'identification.json', 'report.html')
BODY_UNITS = ('kg', *['kg m'] * 3, *['kg m^2'] * 6)     # of the ten parameters of a body
DEFAULT_FRICTION = 'viscous,coulomb,offset'
NOTABLE_SIZE = 0.15     # from which share on other torques of the bodies are worth a word


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, lock=True, params=True)
    parser.add_argument('recordings', nargs='+', metavar='RECORDING',
                        help='bags (directory, .mcap, .db3) or tables (.csv, .parquet)')
    parser.add_argument('-o', '--output', required=True, metavar='DIR',
                        help=f'directory for {", ".join(FILES)}')
    add_list(parser, '--validate', metavar='RECORDING',
             help='held-out recordings to validate the result with')
    parser.add_argument('--friction', metavar='NAMES',
                        help='friction terms to identify, separated by commas, or none '
                             f'(default: {DEFAULT_FRICTION})')
    parser.add_argument('--no-rotors', action='store_true',
                        help='keep the rotor inertias of the model')
    parser.add_argument('--payload', metavar='LINK',
                        help='identify only the payload on this link; the robot is known')
    parser.add_argument('--workers', type=int, metavar='N',
                        help='number of processes (default: one per recording, at most one per '
                             'core)')
    parser.add_argument('--scheduler', metavar='ADDRESS',
                        help='address of a Dask scheduler whose cluster does the work')
    parser.add_argument('--residuals', metavar='FILE',
                        help='also write all residuals as a table (.parquet)')
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Identify the robot, write the files, print the verdict, and return the exit code."""
    if options.payload is not None and options.params is None:
        raise UsageError('--payload: --params is required, with the friction and rotors of the '
                         'robot; otherwise they would be attributed to the payload')
    if options.payload is not None and (options.friction is not None or options.no_rotors):
        raise UsageError('--payload: only the payload is identified; remove --friction and '
                         '--no-rotors')
    reduce = _reduction(options)
    check_places(*(Path(options.output, name) for name in FILES))
    if options.residuals is not None:
        if Path(options.residuals).suffix != '.parquet':
            raise UsageError(f'--residuals {options.residuals}: the name must end in .parquet')
        check_places(options.residuals)
    model = load_robot(options)
    reading = reading_of(options)
    paths, held_out = _distinct(options.recordings, options.validate)
    of_each = bound(_of_each, workers=default_workers(paths + held_out) if options.workers is None
                    else whole_number('--workers', options.workers), scheduler=options.scheduler)
    if held_out:
        of_each('checking recordings', held_out, _check_recording, model=model, reading=reading)
    reduced = of_each('reading recordings', paths, reduce_recording, model=model, reading=reading,
                      reduce=reduce)
    excerpts = [excerpt for _, excerpt in reduced]
    notes = {path: list(one.notes) for path, one in zip(paths, excerpts)}
    for path, lines in notes.items():
        for note in lines:
            print_error(f'note: {path}: {note}')
    part = merge(*(part for part, _ in reduced))
    outcome = _fit(options, model, part, excerpts)
    if outcome.found is not None:
        outcome = outcome._replace(model=_with_uncertainty(outcome.found, part, excerpts, paths,
                                                           reading, of_each))
    compare = bound(compare_recording, urdf=model, fit=outcome.model)
    compared = of_each('comparing', paths, compare, reading=reading)
    if held_out:
        # Held-out recordings are not fitted; not even their delay.
        reading = reading._replace(delay=float(np.median([one.delay_removed for one in excerpts])))
        compared += [one._replace(name=f'{one.name} (validation)') for one in
                     of_each('validating', held_out, compare, reading=reading)]
    judgement = outcome.judge(held_out={
        path: (one.relative_error(one.urdf), one.relative_error(one.fit))
        for path, one in zip(held_out, compared[len(paths):])})
    result = {**_json_content(model, outcome, judgement, paths, held_out, compared),
              'notes': notes}
    with whole_files(*(Path(options.output, name) for name in FILES)) as drafts:
        with warnings.catch_warnings():
            # The second file contains what URDF cannot represent.
            warnings.simplefilter('ignore', ModelWarning)
            save_urdf(outcome.model, drafts[0],
                      source=None if is_mjcf_file(options.urdf) else options.urdf)
        save_drives(outcome.model, drafts[1])
        drafts[2].write_text(json_text(result), encoding='utf-8')
        drafts[3].write_text(identification_report(
            f'{model.name}: identified from '
            + (paths[0] if len(paths) == 1 else f'{len(paths)} recordings'), model.velocity_names,
            ['N m' if angular else 'N' for angular in model.angular], compared, outcome.rows,
            judgement.grade, judgement.reasons), encoding='utf-8')
    if options.residuals is not None:
        with whole_files(options.residuals) as (draft,):
            write_residuals(draft, model.name, model.velocity_names, compared)
    return _print_summary(result, options.output)


def _of_each(label: str, paths: Sequence[str], function: Callable[..., Any], *, workers: int,
             scheduler: str | None, **arguments: Any) -> list[Any]:
    """Return the results of a function for each recording, in order, and show the progress."""
    with progress(label) as update:
        found = dict(map_recordings(bound(function, **arguments), paths, workers=workers,
                                    scheduler=scheduler, progress=update))
    return [found[k] for k in range(len(paths))]


def _distinct(recordings: Sequence[str], validate: Sequence[str]) -> tuple[list[str], list[str]]:
    """Return the recordings without repetitions, which would seem to halve the variance."""
    held_out = list(dict.fromkeys(validate))
    by_place: dict[Path, str] = {}
    for path in recordings:
        place = Path(path).resolve()
        if place in by_place:
            print_error(f'warning: {path} is named twice, and counts once')
        by_place.setdefault(place, path)
    for path in held_out:
        if Path(path).resolve() in by_place:
            print_error(f'warning: {path} is used for the fit and for --validate: hold out '
                        'another one')
    return list(by_place.values()), held_out


def _check_recording(path: str, *, model: Model, reading: Reading) -> None:
    read_samples(model, path, reading._replace(delay=0.0))


class _Outcome(NamedTuple):
    """The identified model, the table of its parameters, its verdict, and more JSON entries."""

    model: Model
    rows: list[Row]
    judge: Callable[..., Verdict]
    more: dict[str, Any]
    found: Identification | None    # none: only a payload was identified


def _with_uncertainty(found: Identification, part: Partial, excerpts: list[Samples],
                      paths: list[str], reading: Reading, of_each: Callable[..., list[Any]]
                      ) -> Model:
    """Return the identified robot with its uncertainty, unless its recordings are too short."""
    try:
        left_out = leave_out(found, part, excerpts)
    except StateError as error:
        print_error(f'warning: no error bars of the torques: {error}')
        return found.model
    known = torque_uncertainty(found, of_each(
        'error bars', paths, left_out_recording, found=found, left_out=left_out, reading=reading),
        left_out.bandwidths)
    model = attach(found.model, known)
    external = of_each('contact thresholds', paths, _largest_external, model=model,
                       reading=reading)
    return attach(model, replace(known, external=np.max(external, axis=0)))


def _largest_external(path: str, *, model: Model, reading: Reading) -> np.ndarray:
    """Return the largest external torques of a recording, in deviations, by joint."""
    return largest_external(model, read_for_robot(model, path, reading))


def _reduction(options: argparse.Namespace) -> Callable[..., Partial]:
    if options.payload is not None:
        return bound(payload_partial, link=options.payload)
    text = DEFAULT_FRICTION if options.friction is None else options.friction.strip()
    known = [name for name in COLUMNS if name != 'rotor']
    names = () if text == 'none' else names_in('--friction', [text], known, '; or none')
    return bound(partial, friction=tuple(names), rotors=not options.no_rotors)


def _fit(options: argparse.Namespace, model: Model, part: Partial, excerpts: list[Samples]
         ) -> _Outcome:
    if options.payload is None:
        found = fit(model, part)
        return _Outcome(found.model, [
            Row(*row) for row in zip(found.names, _units(model, found), found.parameters.values,
                                     found.values, found.deviation, found.determined)],
            bound(verdict, model, part, found, excerpts,
                  efforts_are_torques=options.efforts_are_torques),
            {'efforts_are_torques': options.efforts_are_torques, 'base_parameters': [
                {'name': name, 'value': value, 'deviation': deviation} for name, value, deviation
                in zip(found.base.names, found.base_values, found.base_deviation)]}, found)
    load = fit_payload(model, part)
    names = LoadParameters(model, options.payload).names
    pi = parameters_of_inertia(inertia_matrix(load.mass, load.com, load.inertia))
    return _Outcome(
        with_payload(model, options.payload, load.mass, load.com, load.inertia),
        [Row(name, unit, 0.0, value, deviation) for name, unit, value, deviation in
         zip(names, BODY_UNITS, pi, load.deviation)], bound(verdict, model, part, load, excerpts),
        {'payload': {'link': options.payload, 'mass': load.mass, 'com': load.com,
                     'inertia': load.inertia, 'mass_deviation': load.deviation[0],
                     'com_deviation': load.com_deviation}}, None)


def _json_content(model: Model, outcome: _Outcome, judgement: Verdict, paths: Sequence[str],
                  held_out: Sequence[str], comparisons: Sequence[Comparison]) -> dict[str, Any]:
    fitted = comparisons[:len(paths)]
    joined: Any = {label: np.concatenate([getattr(one, label) for one in fitted])
                   for label in ('measured', 'urdf', 'fit', 'usable')}
    together = fitted[0]._replace(**joined)
    rms = {label: together.rms(x) for label, x in (
        ('torque', together.measured), ('urdf', together.measured - together.urdf),
        ('fit', together.measured - together.fit))}
    validation = dict(zip(held_out, comparisons[len(paths):]))
    coverage = {path: one.coverage for path, one in validation.items()
                if one.coverage is not None}
    per_joint = {name: {
        'unit': 'N m' if model.angular[k] else 'N', 'samples': together.usable[:, k].sum(),
        **{label: x[k] for label, x in rms.items()},
        'validation': {path: one.rms(one.measured - one.fit)[k]
                       for path, one in validation.items()},
        'coverage': {path: shares[k] for path, shares in coverage.items()}}
        for k, name in enumerate(model.velocity_names)}
    return {
        'robot': model.name, 'recordings': paths,
        'standstill': {path: dict(zip(model.velocity_names, one.standstill))
                       for path, one in zip([*paths, *held_out], comparisons)},
        'relative_error': {'urdf': together.relative_error(together.urdf),
                           'fit': together.relative_error(together.fit),
                           'validation': {path: one.relative_error(one.fit)
                                          for path, one in validation.items()}},
        'per_joint': per_joint, 'verdict': judgement.grade, 'reasons': judgement.reasons,
        'figures': judgement.figures,
        'parameters': [{'name': row.name, 'unit': row.unit, 'urdf': row.urdf, 'value': row.fit,
                        'deviation': row.deviation, 'determined': row.determined}
                       for row in outcome.rows], **outcome.more}


def _units(model: Model, found: Identification) -> list[str]:
    bodies = len(body_names(model))
    units = list(BODY_UNITS) * bodies
    for name in found.names[10 * bodies:]:
        velocity, _, coefficient = name.rpartition('.')
        turns = model.angular[model.velocity_names.index(velocity)]
        units.append(DRIVE[coefficient][1].split(' or ')[0 if turns else 1])
    return units


def _print_summary(result: dict[str, Any], output: str) -> int:
    """Print the errors by joint, and return the exit code."""
    error = result['relative_error']
    print(f'relative error of the torques: {_percent(error["urdf"])} with the URDF, '
          f'{_percent(error["fit"])} identified')
    for path, value in error['validation'].items():
        failed = not value <= MAX_HELD_OUT_ERROR or any(
            reason.startswith(f'{path} is not explained') for reason in result['reasons'])
        print(f'{path}: {_percent(value)}, ' + ('NOT validated' if failed else 'validated'))
        shares = [f'{name} {_percent(one["coverage"][path])}' for name, one in
                  result['per_joint'].items() if isfinite(one['coverage'].get(path, nan))]
        if shares:
            print(f'{path}: intervals of 90 % hold {", ".join(shares)} of the torques')
    if 'payload' in result:
        load = result['payload']
        com = ' '.join(f'{x:.4g}' for x in load['com'])
        within = ' '.join(f'{2.0 * x:.2g}' for x in load['com_deviation'])
        print(f"load on '{load['link']}': {load['mass']:.4g} kg, within "
              f'{2.0 * load["mass_deviation"]:.2g} kg (95 %), centre of mass at {com} m, within '
              f'{within} m')
    _print_parameters(result['parameters'])
    size = result['figures'].get('size', 1.0)
    if abs(size - 1.0) > NOTABLE_SIZE:
        print(f'torques of the bodies are {size:.2f} times those of the URDF: if its masses are '
              "right, efforts are no torques in N m; see 'rbd_ros diagnose'")
    print(f'{", ".join(FILES)} are in {output}')
    print(f'verdict: {result["verdict"]}' + (
        '; efforts were not checked: they are torques by --efforts-are-torques'
        if result.get('efforts_are_torques') else ''))
    for reason in result['reasons']:
        print(f'{result["verdict"]}: {reason}')
    return NEGATIVE if result['verdict'] == NOT_BELIEVABLE else 0


def _print_parameters(rows: Sequence[Mapping[str, Any]]) -> None:
    """Print masses, centres of mass and friction before and after, and whether they are known."""
    of_body: dict[str, list[Mapping[str, Any]]] = {}
    for row in rows:
        name = row['name'].rpartition('/' if '/' in row['name'] else '.')[0]
        of_body.setdefault(name, []).append(row)
    for name, some in of_body.items():
        lines = [row for row in some if not row['name'].endswith('.armature')]
        if len(some) == len(BODY_UNITS) and some[0]['unit'] == 'kg':
            lines = some[:1]
            centres = [' '.join('?' if not some[0][key] else f'{x[key] / some[0][key]:.3g}'
                                for x in some[1:4]) for key in ('urdf', 'value')]
            known = all(row['determined'] for row in some[:4])
            print(printable(f'{name + " centre of mass":40s} {centres[0]} -> {centres[1]} m'
                            + (not known) * ', not determined'))
        for row in lines:
            print(printable(f'{row["name"]:40s} {row["urdf"]:.4g} -> {row["value"]:.4g} '
                            f'{row["unit"]}, ' + (f'deviation {row["deviation"]:.2g}'
                                                  if row['determined'] else 'not determined')))


def _percent(share: float) -> str:
    return f'{100.0 * share:.3g} %' if isfinite(share) else 'unknown'
