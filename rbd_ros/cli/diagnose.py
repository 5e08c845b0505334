# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros diagnose``: say why efforts differ from the torques of a description."""

import argparse

import numpy as np
from rbd_ros._internal.text import listed, printable
from rbd_ros.cli.common.options import (
    add_reading, add_robot, check_outputs, json_text, load_robot, reading_of, write_text)
from rbd_ros.cli.common.terminal import NEGATIVE, progress
from rbd_ros.identification.diagnosis.diagnose import diagnose, Finding
from rbd_ros.identification.diagnosis.hypotheses import FACTORS
from rbd_ros.identification.pipeline import read_for_robot
from rbd_ros.identification.report import diagnosis_report


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, lock=True, params=True)
    parser.add_argument('recordings', nargs='+', metavar='RECORDING',
                        help='bags (directory, .mcap, .db3) or tables (.csv, .parquet)')
    parser.add_argument('--payload', metavar='LINK',
                        help='link that may carry a payload (default: the last ones)')
    parser.add_argument('--json', metavar='FILE', help='also write the findings as JSON')
    parser.add_argument('--report', metavar='FILE',
                        help='also write a report with plots of every joint (.html)')
    add_reading(parser)


def run(options: argparse.Namespace) -> int:
    """Print the findings, the strongest first; return 2 if there are any."""
    check_outputs(options.recordings, {'--json': options.json, '--report': options.report})
    model, reading = load_robot(options), reading_of(options)
    with progress('diagnosing') as update:
        found = diagnose(
            model, [read_for_robot(model, path, reading) for path in options.recordings],
            payload_link=options.payload, cutoff=reading.cutoff,
            without=FACTORS if options.efforts_are_torques else (), progress=update)
    lines = [_line(one) for one in found.findings]
    for line in lines:
        print(printable(line))
    for name, share in found.residual.items():
        print(f'{name:32s} {100.0 * share:.3g} % of the efforts left unexplained')
    if not found.findings:
        print('nothing found: the description explains the efforts')
    if options.json is not None:
        write_text(options.json, json_text({
            'findings': [one._asdict() for one in found.findings], 'residual': found.residual}))
    if options.report is not None:
        title = f'{model.name}: diagnosis of {listed(options.recordings)}'
        write_text(options.report, diagnosis_report(
            title, model.velocity_names, ['N m' if angular else 'N' for angular in model.angular],
            found.compared, lines))
    return NEGATIVE if found.findings else 0


def _line(one: Finding) -> str:
    """Return kind, place, size, share of the residual and advice of a finding, and its rivals."""
    text = f'{one.kind} {one.place}'.strip()
    if one.value is not None and one.deviation is not None:
        text += ' ' + listed(f'{x:.4g} +- {2.0 * d:.2g} {one.unit}'.rstrip() for x, d in zip(
            np.ravel(one.value), np.ravel(one.deviation)))
    if one.explains:
        text += f', {100.0 * one.explains:.0f} % of the residual'
    return '; or '.join((f'{text}: {one.advice}', *one.alternatives))
