# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""A robot as its links and joints, and the checks that make a tree of them."""

from collections import Counter
from dataclasses import dataclass, field, replace

import numpy as np
from rbd_ros.errors import ModelError
from rbd_ros.joints import KINDS

# Share of the largest principal moment by which an inertia may miss the triangle inequality, and
# what rounding may leave where there is none, kg m^2.
INERTIA_TOLERANCE, NO_INERTIA = 1e-6, 1e-15
# SI units; products of a few numbers beyond it overflow, and no robot has such.
LARGEST = 1e30


@dataclass(frozen=True)
class Link:
    """
    One link of a robot's description.

    Attributes
    ----------
    name : str
        Unique in the robot.
    mass : float
        kg.
    com : ndarray, shape (3,)
        Centre of mass in the link's frame, m.
    inertia : ndarray, shape (3, 3)
        About the centre of mass, in the axes of the link's frame, kg m^2.
    is_load : bool
        Whether it is no part of the robot, but a load that it carries.

    """

    name: str
    mass: float = 0.0
    com: np.ndarray = field(default_factory=lambda: np.zeros(3))
    inertia: np.ndarray = field(default_factory=lambda: np.zeros((3, 3)))
    is_load: bool = False


def numbers(where, label, value, shape, *, infinite=False):
    """
    Return numbers of a user as an array.

    Parameters
    ----------
    where, label : str
        Whose and which they are, for the error.
    value : array_like
        As many numbers as ``shape`` has room for, or one for all of them.
    shape : tuple of int
        Of the array.
    infinite : bool
        Whether they may be infinite, as limits are.

    Raises
    ------
    ModelError
        If they are no finite numbers, or not as many.

    """
    try:
        array = np.broadcast_to(np.array(value, float), shape).copy()
    except (TypeError, ValueError):
        array = np.full(shape, np.nan)
    if np.any(np.isnan(array)) or not (infinite or np.all(np.isfinite(array))):
        size = ' x '.join(map(str, shape)) or 'one'
        raise ModelError(f'{where}: its {label} must be {size} finite number'
                         f'{"s" if shape else ""}, got {value!r}')
    return array


def check_link(link):
    """
    Refuse numbers that no link can have.

    Returns
    -------
    str or None
        What is odd about its inertia: such a body cannot exist, but its equations can be solved.

    Raises
    ------
    ModelError
        If a number is not finite, the mass is negative or the inertia is not symmetric.

    """
    for label, value in (('mass', link.mass), ('centre of mass', link.com),
                         ('inertia', link.inertia)):
        if not np.all(np.isfinite(value)):
            raise ModelError(f"link '{link.name}': its {label} is not a finite number: {value}")
        if np.max(np.abs(value), initial=0.0) > LARGEST:
            raise ModelError(f"link '{link.name}': its {label} is beyond {LARGEST:.0e}: {value}")
    if link.mass < 0.0:
        raise ModelError(f"link '{link.name}': its mass is negative: {link.mass} kg")
    if np.shape(link.com) != (3,) or np.shape(link.inertia) != (3, 3):
        raise ModelError(f"link '{link.name}': the centre of mass needs 3 numbers and the inertia "
                         f'3 x 3, got {np.shape(link.com)} and {np.shape(link.inertia)}')
    if np.ptp(link.inertia - link.inertia.T) > 1e-9 * np.max(np.abs(link.inertia)):
        raise ModelError(f"link '{link.name}': its inertia is not symmetric: {link.inertia}")
    small, middle, large = np.linalg.eigvalsh(link.inertia)
    if small < -INERTIA_TOLERANCE * abs(large) - NO_INERTIA:
        return (f"link '{link.name}': its inertia has a negative principal moment, "
                f'{small:.3g} kg m^2; no body has that')
    if small + middle < large * (1.0 - INERTIA_TOLERANCE) - NO_INERTIA:
        return (f"link '{link.name}': its principal moments {small:.3g}, {middle:.3g}, "
                f'{large:.3g} kg m^2 break the triangle inequality; no body has those')
    return None


def check_joint(joint):
    """
    Refuse a joint that cannot be understood, and return it with unit axes and filled-in limits.

    Returns
    -------
    Joint
        With one entry for each velocity in every limit and coefficient.
    str or None
        What is odd about its limits.

    Raises
    ------
    ModelError
        If its kind is unknown, an axis is zero or a number is not finite.

    """
    where = f"joint '{joint.name}'"
    if joint.kind not in KINDS:
        raise ModelError(f"{where}: its type is '{joint.kind}', expected one of "
                         + ', '.join(KINDS))
    if not np.max(np.abs(joint.placement)) <= LARGEST:
        raise ModelError(f'{where}: its origin is not finite or beyond {LARGEST:.0e} m')
    axes = []
    for axis in (joint.axis, joint.second_axis)[:KINDS[joint.kind].axes]:
        axis = np.asarray(axis, float)
        size = np.max(np.abs(axis))
        if not 0.0 < size < np.inf:
            raise ModelError(f'{where}: its axis must be three finite numbers, not all zero, '
                             f'got {axis}')
        # Squares of the entries themselves may overflow.
        axes.append(axis / size / np.linalg.norm(axis / size))
    if not np.isfinite(joint.pitch):
        raise ModelError(f'{where}: its pitch is not finite')

    def per_velocity(label, values, default):
        values = tuple(float(x) for x in values) or (default,) * joint.nv
        if len(values) != joint.nv:
            raise ModelError(f'{where}: {joint.nv} numbers expected for {label}, got {values}')
        if any(np.isnan(values)):
            raise ModelError(f'{where}: its {label} is not a number')
        return values

    lower = per_velocity('lower limit', joint.lower, -np.inf)
    upper = per_velocity('upper limit', joint.upper, np.inf)
    odd = None
    if any(a > b for a, b in zip(lower, upper)):
        odd = f'{where}: its lower limit {lower} lies above its upper limit {upper}; both ignored'
        lower, upper = (-np.inf,) * joint.nv, (np.inf,) * joint.nv
    coefficients = {}
    for label in ('damping', 'friction', 'armature'):
        coefficients[label] = per_velocity(label, getattr(joint, label), 0.0)
        if not all(0.0 <= x < np.inf for x in coefficients[label]):
            raise ModelError(f'{where}: its {label} must be finite and not negative, '
                             f'got {coefficients[label]}')
    return replace(
        joint, **dict(zip(('axis', 'second_axis'), axes)), lower=lower, upper=upper,
        velocity=per_velocity('velocity limit', joint.velocity, np.inf),
        effort=per_velocity('effort limit', joint.effort, np.inf), **coefficients), odd


def require_unique(what, names):
    """Refuse names that are empty or stand twice."""
    for name, count in Counter(names).items():
        if not name:
            raise ModelError(f'a {what} has no name')
        if count > 1:
            raise ModelError(f"{count} {what}s are called '{name}'; names must be unique")


def order_tree(links, joints):
    """
    Return links and joints depth-first, children in the order in which their joints are given.

    Parameters
    ----------
    links : sequence of Link
        All of them.
    joints : sequence of Joint
        All of them, each joining two of the links.

    Returns
    -------
    tuple of Link, tuple of Joint
        The root comes first; joint k leads to link k + 1.

    Raises
    ------
    ModelError
        Unless the links form one tree; the message names those that don't fit.

    """
    require_unique('link', [link.name for link in links])
    require_unique('joint', [joint.name for joint in joints])
    by_name = {link.name: link for link in links}
    leading_to, leaving = {}, {link.name: [] for link in links}
    for joint in joints:
        for end in (joint.parent, joint.child):
            if end not in by_name:
                raise ModelError(f"joint '{joint.name}' names link '{end}', which is not there")
        if joint.parent == joint.child:
            raise ModelError(f"joint '{joint.name}' joins link '{joint.child}' to itself")
        if joint.child in leading_to:
            raise ModelError(
                f"link '{joint.child}' has two parents, '{leading_to[joint.child].parent}' and "
                f"'{joint.parent}'; closed loops are not supported: cut one of the joints "
                f"'{leading_to[joint.child].name}' and '{joint.name}'")
        leading_to[joint.child] = joint
        leaving[joint.parent].append(joint)
    roots = [link.name for link in links if link.name not in leading_to]
    if links and not roots:
        raise ModelError('there is no root link: every link has a parent; a cycle goes through '
                         + ' -> '.join(_cycle(links[0].name, leading_to)))
    if len(roots) > 1:
        raise ModelError(f'there are {len(roots)} root links, ' + ', '.join(map(repr, roots[:10]))
                         + '; join them by fixed joints or remove those that are not used')

    ordered, path = [], [iter(leaving[roots[0]])] if roots else []
    while path:
        joint = next(path[-1], None)
        if joint is None:
            path.pop()
        else:
            ordered.append(joint)
            path.append(iter(leaving[joint.child]))
    if len(ordered) < len(joints):
        reached = {joint.child for joint in ordered}
        lost = next(joint.child for joint in joints if joint.child not in reached)
        raise ModelError('links form a cycle that the root does not reach: '
                         + ' -> '.join(_cycle(lost, leading_to)))
    return (tuple(by_name[name] for name in roots + [joint.child for joint in ordered]),
            tuple(ordered))


def _cycle(name, leading_to):
    """Return the names on the cycle that the ancestors of a link end in."""
    path = []
    while name not in path:
        path.append(name)
        name = leading_to[name].parent
    return [*reversed(path[path.index(name):]), path[-1]]


def resolve_mimics(joints):
    """
    Return for each joint that copies another the one that leads and what is made of its q.

    Parameters
    ----------
    joints : sequence of Joint
        All joints of the robot.

    Returns
    -------
    dict of str to (str, float, float)
        Leading joint, which copies none itself, multiplier and offset (rad or m), with chains of
        copies composed.
    list of Joint
        Those that copy a joint which is not there.

    Raises
    ------
    ModelError
        If joints copy each other in a circle, or one of them has not exactly one velocity.

    """
    by_name = {joint.name: joint for joint in joints}
    copies = {joint.name: joint for joint in joints if joint.mimic and joint.kind != 'fixed'}
    unknown = [joint for joint in copies.values() if joint.mimic.joint not in by_name]
    for joint in unknown:
        del copies[joint.name]
    resolved = {}
    for joint in copies.values():
        multiplier, offset, seen = 1.0, 0.0, [joint.name]
        leader = joint
        while leader.name in copies:
            offset += multiplier * leader.mimic.offset
            multiplier *= leader.mimic.multiplier
            leader = by_name[leader.mimic.joint]
            if leader.name in seen:
                raise ModelError('joints mimic each other in a circle: '
                                 + ' -> '.join([*seen, leader.name]))
            seen.append(leader.name)
        if not (abs(multiplier) <= LARGEST and abs(offset) <= LARGEST):
            raise ModelError(f"joint '{joint.name}': its mimic multiplier or offset is not finite "
                             f'or beyond {LARGEST:.0e}')
        for one in (joint, leader):
            if one.nv != 1:
                raise ModelError(f"joint '{joint.name}' mimics '{leader.name}', but '{one.name}' "
                                 f'is {one.kind}: only joints with one coordinate can do that')
        resolved[joint.name] = (leader.name, multiplier, offset)
    return resolved, unknown
