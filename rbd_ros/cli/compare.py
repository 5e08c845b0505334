# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""``rbd_ros compare``: print the differences between two robot descriptions."""

import argparse
from collections.abc import Iterator
from dataclasses import replace

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.batch import inverse_dynamics
from rbd_ros.cli.common.options import add_constraints, add_xacro
from rbd_ros.errors import StateError
from rbd_ros.model.arguments import number, whole_number
from rbd_ros.model.files.any_format import load_file
from rbd_ros.model.files.constraint_files import load_constraints
from rbd_ros.model.files.xacro_files import SUFFIX
from rbd_ros.model.joints import Joint
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import Model
from rbd_ros.model.positions.configurations import neutral, normalize, random_configuration
from rbd_ros.model.positions.steps import without_turns

# Smallest scale of a comparison, SI units: rounding errors of zeros would count as 100 %.
MIN_SCALE = 1e-6
MAX_CONFIGURATIONS = 100_000  # Limit of memory.


def add_options(parser: argparse.ArgumentParser) -> None:
    """Add the options of the command."""
    parser.add_argument('first', metavar='A', help='URDF, xacro or MJCF file')
    parser.add_argument('second', metavar='B', help='URDF, xacro or MJCF file')
    add_xacro(parser)
    add_constraints(parser)
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
    return 2 if found else 0


def differences(a: Model, b: Model, tolerance: float) -> Iterator[str]:
    """Yield a line for each difference; the tolerance is relative to a field's largest entry."""
    def compare(label: str, x: object, y: object, unit: str = '') -> Iterator[str]:
        if not _equal(x, y, tolerance):
            yield f'{label}: {_shown(x)} / {_shown(y)}{unit and " " + unit}'

    yield from _unmatched('link', a.link_names, b.link_names)
    yield from _unmatched('joint', a.joint_names, b.joint_names)
    yield from compare('mass of the robot', a.mass, b.mass, 'kg')
    if set(a.velocity_names) == set(b.velocity_names):
        yield from compare('order of the coordinates', a.velocity_names, b.velocity_names)
    links = {link.name: link for link in b.links}
    for one in a.links:
        if other := links.get(one.name):
            label = f"link '{one.name}': "
            yield from compare(label + 'mass', one.mass, other.mass, 'kg')
            yield from compare(label + 'centre of mass', one.com, other.com, 'm')
            yield from compare(label + 'inertia xx yy zz xy xz yz',
                               _six_entries(one.inertia), _six_entries(other.inertia), 'kg m^2')
    joints = {joint.name: joint for joint in b.joints}
    for joint in a.joints:
        if other := joints.get(joint.name):
            for label, x, y in zip(JOINT_FIELDS, _joint_fields(joint),
                                   _joint_fields(_less_turns(joint, other))):
                yield from compare(f"joint '{joint.name}': {label}", x, y)
    yield from _unmatched('constraint', *(tuple(one.name for one in model.constraints)
                                          for model in (a, b)))
    if a.constraints and b.constraints:
        yield from compare('independent joints', a.independent_joints, b.independent_joints)
    constraints = {one.name: one for one in b.constraints}
    for one in a.constraints:
        if other := constraints.get(one.name):
            for label, x, y in zip(CONSTRAINT_FIELDS, _constraint_fields(one),
                                   _constraint_fields(other)):
                yield from compare(f"constraint '{one.name}': {label}", x, y)


JOINT_FIELDS = ('kind', 'parent', 'child', 'mimics', 'multiplier and offset',
                'position in the parent, m', 'orientation in the parent', 'axis', 'lower limit',
                'upper limit', 'velocity limit', 'effort limit', 'acceleration limit',
                'deceleration limit', 'jerk limit', 'damping', 'friction', 'armature',
                'stiffness', 'spring reference')


def _joint_fields(joint: Joint) -> tuple[object, ...]:
    mimic = joint.mimic
    return (joint.kind, joint.parent, joint.child, mimic.joint if mimic else 'none',
            (mimic.multiplier, mimic.offset) if mimic else (), joint.placement[:3, 3],
            joint.placement[:3, :3], joint.axis if joint.kind != 'fixed' else (),
            joint.lower, joint.upper, joint.velocity, joint.effort, joint.acceleration,
            joint.deceleration, joint.jerk, joint.damping, joint.friction, joint.armature,
            joint.stiffness, joint.spring_reference)


def _less_turns(joint: Joint, other: Joint) -> Joint:
    """Return the other joint; if it is a continuous mimic, with the offset nearest the first's."""
    if not (joint.mimic and other.mimic and joint.kind == other.kind == 'continuous'):
        return other
    apart = without_turns(other.mimic.offset - joint.mimic.offset, True)
    return replace(other, mimic=replace(other.mimic, offset=joint.mimic.offset + float(apart)))


CONSTRAINT_FIELDS = ('kind', 'link a', 'link b', 'position in link a, m',
                     'orientation in link a', 'position in link b, m', 'orientation in link b',
                     'length, m')


def _constraint_fields(one: Constraint) -> tuple[object, ...]:
    a, b = one.placement_a, one.placement_b
    return (one.kind, one.link_a, one.link_b, a[:3, 3], a[:3, :3], b[:3, 3], b[:3, :3],
            () if one.length is None else (one.length,))


def _six_entries(inertia: np.ndarray) -> np.ndarray:
    return inertia[[0, 1, 2, 0, 0, 1], [0, 1, 2, 1, 2, 2]]


def _unmatched(label: str, a: tuple[str, ...], b: tuple[str, ...]) -> Iterator[str]:
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
    column_of = {name: k for k, name in enumerate(b.position_names)}
    shared = [(k, column_of[name]) for k, name in enumerate(a.position_names) if name in column_of]
    Q_b = np.tile(neutral(b), (count, 1))
    for k, k_b in shared:
        Q_b[:, k_b] = Q[:, k]
    if b.constraints:
        try:
            Q_b = np.array([normalize(b, q) for q in Q_b])
        except StateError as error:
            yield f'in configurations of the first: {error}'
            return
    G, G_b = (inverse_dynamics(model, q, still, still) for model, q, still in (
        (a, Q, np.zeros((count, a.nv))), (b, Q_b, np.zeros((count, b.nv)))))
    largest = max(np.max(np.abs(G), initial=0.0), np.max(np.abs(G_b), initial=0.0), MIN_SCALE)
    column_of = {name: k for k, name in enumerate(b.velocity_names)}
    for k, name in enumerate(a.velocity_names):
        if name in column_of:
            error = np.abs(G[:, k] - G_b[:, column_of[name]])
            if np.max(error) > tolerance * largest:
                yield (f"gravity torque of '{name}': differs by up to {np.max(error):.4g} "
                       f'{"N m" if a.angular[k] else "N"}, RMS {np.sqrt(np.mean(error ** 2)):.4g} '
                       f'of {np.sqrt(np.mean(G[:, k] ** 2)):.4g}, over {count} configurations')
