# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros replay``: compute model and external efforts for every sample of a recording."""

import argparse
from pathlib import Path
from typing import NamedTuple

import numpy as np
from rbd_ros import batch
from rbd_ros._internal.text import printable
from rbd_ros.batch.torque_deviation import torque_deviation
from rbd_ros.cli.common.options import (
    add_list, add_package_path, add_reading, add_robot, check_outputs, joint_vector, load_robot,
    names_in, number_of_joint, reading_of, shapes_of, write_text)
from rbd_ros.cli.common.terminal import NEGATIVE, print_error, progress, Update, UsageError
from rbd_ros.control.contact import (
    contact_deviation, contact_deviations, detectable_forces, external_deviations)
from rbd_ros.control.friction import DEAD_BAND
from rbd_ros.control.momentum_observer import GAIN, MomentumObserver
from rbd_ros.identification.pipeline import read_for_robot
from rbd_ros.identification.report import replay_report
from rbd_ros.identification.torque_uncertainty import model_torques
from rbd_ros.identification.verdicts import effort_doubts, position_doubts
from rbd_ros.model.model import Model
from rbd_ros.recordings.preparation import prepare
from rbd_ros.recordings.recording import Recording
from rbd_ros.recordings.samples import Samples
from rbd_ros.recordings.tables import SUFFIXES, write_table

MATRICES, VECTORS = ('M', 'C'), ('g', 'Cv', 'friction')
PROGRESS_PERIOD = 500  # Samples between two updates of the progress.


class Replay(NamedTuple):
    """Efforts of a model for the samples of a recording, each of shape (samples, nv)."""

    model: np.ndarray
    friction: np.ndarray
    external: np.ndarray
    deviation: np.ndarray | None    # of the measured efforts from the model, if it is known


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, lock=True, params=True)
    parser.add_argument('recording', metavar='RECORDING',
                        help='bag (directory, .mcap, .db3) or table (.csv, .parquet)')
    parser.add_argument('-o', '--output', required=True, metavar='TABLE',
                        help='table (.csv, .parquet) of position, velocity, effort, model_effort, '
                             'external_effort and, if identified, effort_deviation of each joint')
    add_list(parser, '--terms', metavar='NAME',
             help=f'more columns, separated by spaces or commas: {", ".join(MATRICES + VECTORS)}')
    add_list(parser, '--gain', type=number_of_joint, metavar='[JOINT=]NUMBER',
             help='gain of the observer of external efforts, 1/s (default: 25)')
    parser.add_argument('--plot', nargs='?', const='', metavar='FILE',
                        help='also write a report with plots (default: name of the table, .html)')
    parser.add_argument('--html', metavar='FILE',
                        help='also write a self-contained page that plays the recording and '
                             'shows the efforts')
    add_package_path(parser)
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Write the table; return 2 if the model explains nothing of the efforts."""
    terms = names_in('--terms', options.terms, MATRICES + VECTORS)
    for _, number in options.gain:
        if not 0.0 < number < np.inf:
            raise UsageError(f'--gain: gains must be positive, 1/s, got {number:g}')
    table = Path(options.output)
    if table.suffix not in SUFFIXES:
        raise UsageError(f'-o {table}: the name must end in {" or ".join(SUFFIXES)}')
    plot = None if options.plot is None else Path(options.plot or table.with_suffix('.html'))
    check_outputs([options.recording], {'-o': table, '--plot': plot, '--html': options.html})
    model = load_robot(options)
    gain = joint_vector(model, '--gain', options.gain, np.full(model.nv, GAIN))
    reading = reading_of(options)
    recording = read_for_robot(model, options.recording, reading)
    samples = prepare(model, recording, cutoff=reading.cutoff)
    with progress('replay') as update:
        replay = _replay(model, samples, gain, update)
    for note in samples.notes:
        print_error(f'note: {note}')
    units = ['N m' if angular else 'N' for angular in model.angular]
    names, columns = _table(model, samples, replay, terms)
    write_table(table, names, *columns)
    if plot is not None:
        write_text(plot, replay_report(
            f'{model.name}: {options.recording}', model.velocity_names, units, samples,
            replay.model, replay.external, replay.deviation))
    if options.html is not None:
        write_text(options.html, _page(options, model, samples, replay))
    code = _print_summary(model, samples, replay, units)
    if model.uncertainty is not None:
        _print_contacts(model, samples, recording, gain)
    doubts = position_doubts(model, [samples])
    if not doubts and not options.efforts_are_torques:
        doubts = [*effort_doubts(model, samples).values()]
    for doubt in doubts:
        print_error(f'doubtful: {doubt}')
    return NEGATIVE if doubts else code


def _page(options: argparse.Namespace, model: Model, samples: Samples, replay: Replay) -> str:
    # Imported lazily: requires optional packages.
    from rbd_ros.view.recording import recording_page
    geometry = shapes_of(options, model)
    with progress('page') as update:
        return recording_page(
            f'{model.name}: {options.recording}', model, geometry, samples.time, samples.q,
            samples.v, {'measured': samples.tau, 'model': replay.model,
                        'external': replay.external}, update, segment=samples.segment)


def _replay(model: Model, samples: Samples, gain: np.ndarray, update: Update) -> Replay:
    """Return the efforts of the model, and those exerted from outside."""
    # No Coulomb friction at standstill, as in the node's observer.
    efforts, friction = model_torques(model, samples, DEAD_BAND)
    # Subtract the filtered friction: the observer's own would not match filtered efforts.
    observer = MomentumObserver(model, gain, friction=False, longest_gap=1.5 / samples.rate)
    external = np.zeros_like(samples.tau)
    rigid = samples.tau - friction
    for k in range(len(samples)):
        external[k] = observer.update(samples.time[k], samples.q[k], samples.v[k], rigid[k])
        if k % PROGRESS_PERIOD == 0:
            update(k, len(samples))
    deviation = None if model.uncertainty is None else torque_deviation(
        model, samples.q, samples.v, samples.a, smooth=DEAD_BAND, bandwidth=samples.cutoff)
    return Replay(efforts, friction, external, deviation)


def _table(model: Model, samples: Samples, replay: Replay, terms: list[str]
           ) -> tuple[list[str], list[np.ndarray]]:
    names, columns = ['time'], [samples.time]
    for label, values in (('position', samples.q), ('velocity', samples.v),
                          ('effort', samples.tau), ('model_effort', replay.model),
                          ('external_effort', replay.external),
                          ('effort_deviation', replay.deviation)):
        if values is None:
            continue
        joints = model.position_names if label == 'position' else model.velocity_names
        names += [f'{joint}/{label}' for joint in joints]
        columns.append(values)
    if terms:
        found = batch.all_terms(model, samples.q, samples.v)
        values = {'M': found.M, 'C': found.C, 'g': found.g, 'Cv': found.coriolis_torques,
                  'friction': replay.friction}
        for term in terms:
            names += [f'{joint}/{term}{column}' for joint in model.velocity_names
                      for column in ([f'/{name}' for name in model.velocity_names]
                                     if term in MATRICES else [''])]
            columns.append(values[term].reshape(len(samples), -1))
    return names, columns


def _print_contacts(model: Model, samples: Samples, recording: Recording, gain: np.ndarray
                    ) -> None:
    """Print which forces would be detected, and how often external efforts were as large."""
    deviations = contact_deviations(model)
    threshold = deviations * contact_deviation(model, samples.q, samples.v)
    link = model.moving_joints[-1][0].child
    forces = np.median(detectable_forces(
        batch.world_jacobian(model, samples.q, link), threshold), axis=0)
    # As a node would: without the filter of the samples.
    share = np.mean(np.any(external_deviations(model, recording, gain) > deviations, axis=1))
    print(printable(
        f"contact at '{link}': forces of {', '.join(f'{x:.3g}' for x in forces)} N along x, y, z "
        f'of the root are detected (median); external torques exceeded a threshold '
        f'{100.0 * share:.3g} % of the time'))


def _print_summary(model: Model, samples: Samples, replay: Replay, units: list[str]) -> int:
    """Print the errors by joint, and return the exit code."""
    error, use = samples.tau - replay.model, samples.usable
    for k, (name, unit) in enumerate(zip(model.velocity_names, units)):
        if np.any(use[:, k]):
            measured, left, outside = (np.sqrt(np.mean(x[use[:, k], k] ** 2))
                                       for x in (samples.tau, error, replay.external))
            print(f'{name:32s} RMS {measured:9.4g} {unit} measured, {left:9.4g} {unit} not '
                  f'explained, {outside:9.4g} {unit} external')
        else:
            print(f'{name:32s} does not move')
    whole = np.sum(samples.tau[use] ** 2)
    relative = np.sqrt(np.sum(error[use] ** 2) / whole) if whole > 0.0 else np.inf
    known = f'{100.0 * relative:.3g} %' if whole > 0.0 else 'unknown, all efforts are zero'
    print(f'relative error while joints move: {known}')
    if relative < 1.0:
        return 0
    return print_error('doubtful: the model explains nothing of the efforts; check their sign and '
                       'unit, the joint names and gravity', NEGATIVE)
