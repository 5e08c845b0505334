# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros check``: print the content of a robot description, as text or JSON."""

import argparse
from collections.abc import Iterable, Iterator
from math import isfinite
import re
from typing import Any
import warnings

from rbd_ros._internal.text import amount, counted
from rbd_ros.cli.common.options import add_robot, json_text, load_robot
from rbd_ros.errors import ModelWarning, UrdfError
from rbd_ros.model.model import Model
from rbd_ros.model.positions.closure import gap_in_words


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    add_robot(parser, floating_base=True)
    parser.add_argument('--strict', action='store_true',
                        help='treat warnings about the description as errors')
    parser.add_argument('--json', action='store_true',
                        help='print everything that dynamics uses as JSON; infinite numbers are '
                             'null')


def run(options: argparse.Namespace) -> int:
    """Print the report on a robot."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)       # part of the report
        model = load_robot(options, strict=options.strict)
    if options.json:
        print(json_text(content(model)), end='')
    else:
        print('\n'.join(describe(model)))
    if model.links and model.mass == 0.0:
        raise UrdfError(f'{options.urdf}: the total mass is 0: every torque will be zero; does '
                        'the file lack its <inertial> elements?')
    return 0


def describe(model: Model) -> Iterator[str]:
    """Yield the lines of a report on a robot: size, order of coordinates, tree, warnings."""
    yield (f'{model.name}: {amount(len(model.links), "link")}, '
           f'{amount(len(model.joints), "joint")}, {amount(model.nv, "degree")} of freedom, '
           f'{model.mass:.6g} kg')
    yield ''
    yield 'Coordinates, in the order of every vector:'
    for k, name in enumerate(model.velocity_names):
        unit, effort = ('rad', 'N m') if model.angular[k] else ('m', 'N')
        resistance = ''.join(
            f', {label} {x:.4g} {of}' for label, x, of in (
                ('damping', model.damping[k], f'{effort} s/{unit}'),
                ('friction', model.friction[k], effort),
                ('armature', model.armature[k], 'kg m^2' if unit == 'rad' else 'kg'),
                ('stiffness', model.stiffness[k], f'{effort}/{unit}')) if x)
        yield (f'{k:5d}  {name:32s} {model.lower[k]:8.4g} ... {model.upper[k]:<8.4g} {unit:4s}'
               f'velocity {model.velocity_limit[k]:.4g} {unit}/s, '
               f'effort {model.effort_limit[k]:.4g} {effort}{resistance}' + ''.join(
                   f', {label} {limit[k]:.4g} {unit}/s^{order}' for label, limit, order in (
                       ('acceleration', model.acceleration_limit, 2),
                       ('deceleration', model.deceleration_limit, 2),
                       ('jerk', model.jerk_limit, 3)) if isfinite(limit[k])))
    if model.nq != model.nv:
        yield 'Positions: ' + ', '.join(model.position_names)
    if model.loops is not None:
        yield 'Independent joints: ' + ', '.join(model.independent_joints)
        yield ''
        yield 'Constraints (name [kind] link a, link b):'
        yield from (f'{one.name} [{one.kind}] {one.link_a}, {one.link_b}'
                    + (f', {one.length:.6g} m apart' if one.length else '')
                    for one in model.constraints)
        yield 'Closed neutral configuration: ' + ' '.join(
            f'{name}={x:.6g}' for name, x in zip(model.position_names, model.loops.neutral))
        yield 'Widest gap: ' + gap_in_words(model.loops, model.loops.neutral)
    yield ''
    yield 'Tree (joint [kind] link, mass in kg):'
    depth: dict[str, int] = {}
    for k, link in enumerate(model.links):
        joint = model.joints[k - 1] if k else None
        depth[link.name] = depth[joint.parent] + 1 if joint else 0
        mimic = ''
        if joint and joint.mimic:
            mimic = (f' = {joint.mimic.multiplier:g} {joint.mimic.joint} '
                     f'{joint.mimic.offset:+g}')
        lead = f'{joint.name} [{joint.kind}{mimic}] ' if joint else ''
        yield '  ' * depth[link.name] + f'{lead}{link.name}, {link.mass:.6g}'
    yield ''
    if model.warnings:
        notes = grouped(model.warnings)
        yield f'Warnings ({len(notes)}):'
        yield from (f'  {note}' for note in notes)
    else:
        yield 'No warnings.'


def grouped(notes: Iterable[str]) -> list[str]:
    """Return the notes, with one line for those that hold for each of several joints or links."""
    groups: dict[tuple[str, str], list[str]] = {}
    for note in notes:
        found = re.fullmatch("(joint|link) '([^']*)': (.*)", note, re.DOTALL)
        kind, name, text = found.groups() if found else ('', '', note)
        groups.setdefault((kind, text), []).append(name)
    return [f'{"each of " * (len(names) > 1)}{counted(kind, names)}: {text}' if kind else text
            for (kind, text), names in groups.items()]


def content(model: Model) -> dict[str, object]:
    """Return the content of a robot, for JSON."""
    of_joints = {label: getattr(model, label) for label in (
        'lower', 'upper', 'velocity_limit', 'effort_limit', 'damping', 'friction',
        'acceleration_limit', 'deceleration_limit', 'jerk_limit', 'stiffness',
        'spring_reference')}
    return {
        **_attributes(model, 'name mass gravity position_names'),
        'coordinates': [
            {'name': name, 'unit': 'rad' if model.angular[k] else 'm',
             **{label: values[k] for label, values in of_joints.items()}}
            for k, name in enumerate(model.velocity_names)],
        'configurations': model.configurations,
        'joints': [{**_attributes(joint, 'name kind parent child placement axis'),
                    'mimic': None if joint.mimic is None else vars(joint.mimic),
                    'armature': joint.armature} for joint in model.joints],
        'links': [_attributes(link, 'name mass com inertia') for link in model.links],
        'constraints': [
            _attributes(one, 'name kind link_a link_b placement_a placement_b length')
            for one in model.constraints],
        **_attributes(model, 'independent_joints warnings')}


def _attributes(thing: object, names: str) -> dict[str, Any]:
    return {name: getattr(thing, name) for name in names.split()}
