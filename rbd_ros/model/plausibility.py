# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Finds valid but suspicious values in a robot description, such as those in wrong units."""

from collections.abc import Sequence

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, NEW_LIMITS

# Mass of a link and of a robot, kg: the largest industrial arms weigh 5,000 kg.
MAX_LINK_MASS, MAX_ROBOT_MASS = 2000.0, 5000.0
MAX_DISTANCE = 20.0  # Distance between joints, and of a centre of mass from the link's frame, m.
# Length, m, and density, kg/m^3, of the uniform ellipsoid with a link's inertia: 15 times the
# density of osmium, and that of air.
MAX_LENGTH, MAX_DENSITY, MIN_DENSITY = 20.0, 3e5, 1.0
# The inertia of links below this mass, kg, does not matter and is often made up.
MIN_CHECKED_MASS = 0.01
# Position limits beyond two turns each way, rad, are rare, but common in degrees.
MAX_ANGLE = 4.0 * np.pi + 0.1
UNLIMITED = 1000.0  # Gazebo writes limits beyond this, rad, for joints without limits.
# Why an effort limit is 0, of joints with and without a motor.
NO_EFFORT = ('effort limit 0: taken as not stated; where a node needs it, set command_limits',
             'no motor drives it; with limit_efforts nothing is commanded there')


def implausible(links: Sequence[Link], joints: Sequence[Joint]) -> list[str]:
    """Return a sentence for each suspicious value, with the names of its links or joints."""
    masses = np.array([link.mass for link in links])
    coms = np.array([link.com for link in links]).reshape(-1, 3)
    inertias = np.array([link.inertia for link in links]).reshape(-1, 3, 3)
    origins = np.array([joint.placement[:3, 3] for joint in joints]).reshape(-1, 3)
    names, joint_names = (np.array([one.name for one in some], object) for some in (links, joints))
    wide = [joint.name for joint in joints if joint.kind == 'revolute' and any(
        MAX_ANGLE < abs(x) < UNLIMITED for x in (*joint.lower, *joint.upper))]
    notes = [*_note('link', names[masses > MAX_LINK_MASS],
                    f'more than {MAX_LINK_MASS:g} kg; is the unit kg?'),
             *_note('link', names[np.linalg.norm(coms, axis=1) > MAX_DISTANCE],
                    f'centre of mass more than {MAX_DISTANCE:g} m from the frame; is the unit m?'),
             *_note('joint', joint_names[np.linalg.norm(origins, axis=1) > MAX_DISTANCE],
                    f'more than {MAX_DISTANCE:g} m from the parent; is the unit m?'),
             *_on_inertias(names, masses, inertias),
             *_note('joint', wide,
                    'limits of more than two turns; are these degrees? URDF uses rad'),
             *(note for label in ('velocity', *NEW_LIMITS) for note in _note(
                 'joint', [joint.name for joint in joints if 0.0 in getattr(joint, label)],
                 f'{label} limit 0: taken as not stated')),
             *without_effort(joints)]
    if masses.sum() > MAX_ROBOT_MASS:
        notes.append(f'the robot weighs {masses.sum():.6g} kg; is the unit kg?')
    return notes


def without_effort(joints: Sequence[Joint]) -> list[str]:
    """Return sentences for joints with an effort limit of 0, if there are any."""
    return [note for has_motor, what in zip((True, False), NO_EFFORT) for note in _note('joint', [
        one.name for one in joints if 0.0 in one.effort and one.has_motor is has_motor], what)]


def point_masses(links: Sequence[Link], joints: Sequence[Joint]) -> list[str]:
    """Return a sentence for moving links with a mass but no inertia, except payloads."""
    moved: set[str] = set()
    for joint in joints:        # parents before their children
        if joint.nv or joint.parent in moved:
            moved.add(joint.child)
    return _note('link', [link.name for link in links if link.name in moved and link.mass > 0.0
                          and not link.is_load and not np.any(link.inertia)],
                 'a mass without rotational inertia: turning it about its own centre costs no '
                 'torque; add its <inertia>')


def nothing_to_compute(links: Sequence[Link], joints: Sequence[Joint]) -> list[str]:
    """Return a sentence about torques that are zero in every state, if there are any."""
    if not any(joint.nv for joint in joints):
        return ['the robot has no moving joint: there is nothing to compute']
    carried = {link.name: link.mass for link in links}
    for joint in reversed(joints):      # children before their parents
        carried[joint.parent] += carried[joint.child]
    if not carried[links[0].name]:
        return ['no link has a mass: every torque is zero; add the <inertial> elements']
    return _note('joint', [one.name for one in joints if one.nv and not carried[one.child]],
                 'moves no mass: its torque is zero unless others drive it; add <inertial>')


def _note(kind: str, names: np.ndarray | list[str], what: str) -> list[str]:
    return [f'{kind}{"s" if len(names) > 1 else ""} {listed(names)}: {what}'] if len(names) else []


def _on_inertias(names: np.ndarray, masses: np.ndarray, inertias: np.ndarray) -> list[str]:
    """Return notes on inertias that no body of a sensible size has, given its mass."""
    there = (masses > MIN_CHECKED_MASS) & (np.trace(inertias, axis1=1, axis2=2) > 0.0)
    names, masses, inertias = names[there], masses[there], inertias[there]
    # An ellipsoid with semi-axes a has the second moments m a^2 / 5.
    moments = 0.5 * np.trace(inertias, axis1=1, axis2=2)[:, None] - np.linalg.eigvalsh(inertias)
    axes = np.sqrt(5.0 * np.maximum(moments, 0.0) / masses[:, None])
    longest, volume = axes.max(axis=1, initial=0.0), 4.0 / 3.0 * np.pi * axes.prod(axis=1)
    long = 2.0 * longest > MAX_LENGTH
    # A flat body has no volume: take that of the ball around it.
    dense = masses > MAX_DENSITY * 4.0 / 3.0 * np.pi * longest ** 3
    thin = ~long & (masses < MIN_DENSITY * volume)
    return [note for which, what in (
        (long, f'a body of more than {MAX_LENGTH:g} m'),
        (dense, 'a body that would be impossibly dense'),
        (thin, 'a body that would be lighter than air'))
        for note in _note('link', names[which], f'inertia of {what}; is the unit kg m^2?')]
