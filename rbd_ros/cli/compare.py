# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros compare``: print the differences between two robot descriptions."""

import argparse
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from operator import attrgetter
from typing import Any, TypeAlias

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.batch import gravity_torques
from rbd_ros.cli.common.options import add_description
from rbd_ros.cli.common.terminal import NEGATIVE
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, whole_number
from rbd_ros.model.changes.inertial import ENTRIES
from rbd_ros.model.files.any_format import load_file
from rbd_ros.model.files.constraint_files import load_constraints
from rbd_ros.model.files.urdf import SUFFIX
from rbd_ros.model.joints import Joint, NEW_LIMITS
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import neutral, normalize, random_configuration
from rbd_ros.model.positions.steps import without_turns

# Smallest scale of a comparison, SI units: rounding errors of zeros would count as 100 %.
MIN_SCALE = 1e-6
MAX_CONFIGURATIONS = 100_000  # Limit of memory.
Fields: TypeAlias = Mapping[str, Callable[[Any], object]]


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('first', metavar='A', help='URDF, xacro or MJCF file')
    parser.add_argument('second', metavar='B', help='URDF, xacro or MJCF file')
    add_description(parser)
    parser.add_argument('--tolerance', type=float, default=1e-6,
                        help='largest difference of equal numbers, relative to the largest entry '
                             'of the field, such as an inertia (default: 1e-6)')
    parser.add_argument('--configurations', type=int, default=200,
                        help='number of random configurations in which to compare gravity '
                             'torques (default: 200)')
    parser.add_argument('--seed', type=int, default=0, help='seed of the configurations')


def run(options: argparse.Namespace) -> int:
    """Print the differences; return 2 if there are any."""
    tolerance = number('--tolerance', options.tolerance, 0.0)
    count = whole_number('--configurations', options.configurations, most=MAX_CONFIGURATIONS)
    rng = np.random.default_rng(whole_number('--seed', options.seed, least=0))
    a, b = (load_file(path, xacro_arguments=options.xacro_args if path.endswith(SUFFIX) else ())
            for path in (options.first, options.second))
    if options.constraints is not None:
        a, b = (load_constraints(model, options.constraints) for model in (a, b))
    found = [*differences(a, b, tolerance), *gravity_differences(a, b, tolerance, count, rng)]
    print('\n'.join(found or [f'equal within {tolerance:g}']))
    return NEGATIVE if found else 0


# What is compared of links, joints and constraints, by the labels of lines.
LINK: Fields = {
    'mass': lambda one: one.mass, 'centre of mass': lambda one: one.com,
    'inertia xx yy zz xy xz yz': lambda one: one.inertia[ENTRIES]}
JOINT: Fields = {
    **{label: attrgetter(label) for label in ('kind', 'parent', 'child')},
    'mimics': lambda one: one.mimic.joint if one.mimic else 'none',
    'multiplier and offset':
        lambda one: (one.mimic.multiplier, one.mimic.offset) if one.mimic else (),
    'position in the parent, m': lambda one: one.placement[:3, 3],
    'orientation in the parent': lambda one: one.placement[:3, :3],
    'axis': lambda one: one.axis if one.kind != 'fixed' else (),
    **{f'{label} limit': attrgetter(label)
       for label in ('lower', 'upper', 'velocity', 'effort', *NEW_LIMITS)},
    **{label.replace('_', ' '): attrgetter(label)
       for label in ('damping', 'friction', 'armature', 'stiffness', 'spring_reference')}}
CONSTRAINT: Fields = {
    'kind': attrgetter('kind'), 'link a': attrgetter('link_a'), 'link b': attrgetter('link_b'),
    'position in link a, m': lambda one: one.placement_a[:3, 3],
    'orientation in link a': lambda one: one.placement_a[:3, :3],
    'position in link b, m': lambda one: one.placement_b[:3, 3],
    'orientation in link b': lambda one: one.placement_b[:3, :3],
    'length, m': lambda one: () if one.length is None else (one.length,)}
UNITS = {'mass': ' kg', 'centre of mass': ' m', 'inertia xx yy zz xy xz yz': ' kg m^2'}


def differences(a: Model, b: Model, tolerance: float) -> Iterator[str]:
    """Yield a line for each difference; the tolerance is relative to a field's largest entry."""
    def compare(label: str, x: object, y: object, unit: str = '') -> Iterator[str]:
        if not _equal(x, y, tolerance):
            yield f'{label}: {_shown(x)} / {_shown(y)}{unit}'

    yield from compare('mass of the robot', a.mass, b.mass, ' kg')
    if set(a.velocity_names) == set(b.velocity_names):
        yield from compare('order of the coordinates', a.velocity_names, b.velocity_names)
    if a.constraints and b.constraints:
        yield from compare('independent joints', a.independent_joints, b.independent_joints)
    parts: tuple[tuple[str, Sequence[Any], Sequence[Any], Fields], ...] = (
        ('link', a.links, b.links, LINK), ('joint', a.joints, b.joints, JOINT),
        ('constraint', a.constraints, b.constraints, CONSTRAINT))
    for kind, first, second, fields in parts:
        others = {one.name: one for one in second}
        yield from _unmatched(kind, [one.name for one in first], [*others])
        for one in first:
            if other := others.get(one.name):
                other = _less_turns(one, other) if kind == 'joint' else other
                for label, field in fields.items():
                    yield from compare(f"{kind} '{one.name}': {label}", field(one), field(other),
                                       UNITS.get(label, ''))


def _less_turns(joint: Joint, other: Joint) -> Joint:
    """Return the other joint; if it is a continuous mimic, with the offset nearest the first's."""
    if not (joint.mimic and other.mimic and joint.kind == other.kind == 'continuous'):
        return other
    apart = without_turns(other.mimic.offset - joint.mimic.offset, True)
    return replace(other, mimic=replace(other.mimic, offset=joint.mimic.offset + float(apart)))


def _unmatched(label: str, a: Sequence[str], b: Sequence[str]) -> Iterator[str]:
    for side, names in (('first', [x for x in a if x not in set(b)]),
                        ('second', [x for x in b if x not in set(a)])):
        if names:
            yield f'{label}s in the {side} alone: {listed(names)}'


def _equal(x: object, y: object, tolerance: float) -> bool:
    x, y = np.asarray(x), np.asarray(y)
    if x.shape != y.shape or 'U' in (x.dtype.kind, y.dtype.kind):
        return np.array_equal(x, y)             # names
    size = max(np.max(np.abs(z), initial=MIN_SCALE, where=np.isfinite(z)) for z in (x, y))
    with np.errstate(invalid='ignore'):         # where both are infinite
        return bool(np.all((x == y) | (np.abs(x - y) <= tolerance * size)))


def _shown(value: object) -> str:
    if isinstance(value, np.ndarray):
        value = tuple(value.ravel().tolist())
    if isinstance(value, tuple):
        return ' '.join(_shown(x) for x in value) or 'none'
    return f'{value:.9g}' if isinstance(value, float) else str(value)


def gravity_differences(a: Model, b: Model, tolerance: float, count: int,
                        rng: np.random.Generator) -> Iterator[str]:
    """Yield a line for each common joint whose gravity torques differ, relative to the largest."""
    # Random configurations are within the limits of the first robot; joints of the second only are
    # at their neutral positions.
    Q = np.array([random_configuration(a, rng) for _ in range(count)])
    _, of_a, of_b = np.intersect1d(a.position_names, b.position_names, return_indices=True)
    Q_b = np.tile(neutral(b), (count, 1))
    Q_b[:, of_b] = Q[:, of_a]
    if b.constraints:
        try:
            Q_b = np.array([normalize(b, q) for q in Q_b])
        except StateError as error:
            yield f'in configurations of the first: {error}'
            return
    G, G_b = gravity_torques(a, Q), gravity_torques(b, Q_b)
    largest = max(np.max(np.abs(g), initial=MIN_SCALE) for g in (G, G_b))
    torques_of_b = dict(zip(b.velocity_names, G_b.T))
    for name, angular, g in zip(a.velocity_names, a.angular, G.T):
        error = np.abs(g - torques_of_b.get(name, g))
        if np.max(error) > tolerance * largest:
            yield (f"gravity torque of '{name}': differs by up to {np.max(error):.4g} "
                   f'{"N m" if angular else "N"}, RMS {np.sqrt(np.mean(error ** 2)):.4g} of '
                   f'{np.sqrt(np.mean(g ** 2)):.4g}, over {count} configurations')
