# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
What may be wrong: each kind is declared once, and everything else derives from this table.

A hypothesis adds columns times sizes, fixed or fitted: measured = described + friction + columns @
sizes.

"""

from collections.abc import Callable, Iterable, Iterator, Sequence
from typing import NamedTuple

import numpy as np
from rbd_ros._internal.text import listed
from rbd_ros.identification.diagnosis.detectors import (
    CONFIRM, degrees, orders, stuck, wrapped)
from rbd_ros.identification.diagnosis.motion import Motion, span
from rbd_ros.identification.least_squares import body_size, LENGTH_POWERS, mass_scales
from rbd_ros.identification.parameters import LoadParameters
from rbd_ros.model.changes.inertial import body_names, inertial_parameters, moving_bodies
from rbd_ros.model.model import Model
from rbd_ros.recordings.plausibility import Detected, two_publishers, wrong_time_unit
from rbd_ros.recordings.recording import Recording
from rbd_ros.recordings.samples import Samples

# Prior deviation of a size, as a multiple of the one that would explain all efforts alone.
WEAK = 10.0
MAX_PAYLOAD = 0.5   # Largest mass of a payload, as a fraction of that of the robot.
MAX_REACH = 4.0     # Largest distance of its centre, in typical distances of joints.
# Smallest power of friction that drives a joint, as a fraction of the torques, that is unlikely.
DRIVING = 0.03
MAX_OFFSET = 0.8    # Largest error of an encoder that is not another mistake, rad or m.
# Largest distance of a spring's reference from the mean position, rad or m: a spring further away
# is a torque offset.
MAX_REFERENCE = np.pi
LINK_ERROR = 2.0    # Prior deviation of the mass of a link, in multiples of it.
MAX_GRAVITY_CHANGE = 0.1  # Limits of a factor of gravity that is a tilt, and not another planet.

# Kinds that multiply efforts.
FACTORS = ('sign', 'gain', 'common_gain', 'current')
MOVE_MORE = 'a longer motion, of all joints at once'


class Change(NamedTuple):
    """A change of the torques of a description."""

    place: str              # joint or link; '': all
    joints: tuple[str, ...]
    columns: np.ndarray     # (rows, nv, sizes)
    fixed: float | None = None              # size, if it is not fitted
    deviation: np.ndarray | None = None     # (sizes,), prior; None: weak
    least: float = -np.inf                  # smallest possible value of the first size


class Hypothesis(NamedTuple):
    """A kind of mistake; texts are templates of the `words` of a finding."""

    text: str                   # what it is, and what to do
    undo: str                   # how to take that back
    tell: str = MOVE_MORE       # the motion that tells it from others
    # Returns the changes of the torques along a motion.
    changes: Callable[[Motion], Iterable[Change]] | None = None
    unit: tuple[str, str] = ('', '')    # for a joint that turns, or slides
    # Value of sizes (..., sizes), and whether they are possible.
    value: Callable[[np.ndarray, Model], np.ndarray] = lambda sizes, model: sizes[..., 0]
    valid: Callable[[np.ndarray, Model], bool] = lambda sizes, model: True
    fitted: bool = True         # whether identification finds it by itself
    # Detects the mistake in a recording; yields what may explain samples better.
    detect: Callable[[Model, Recording], Detected | None] | None = None
    compare: Callable[[Model, Samples], Iterable[Detected]] | None = None


def _of_joints(column: Callable[[Motion, int], np.ndarray], fixed: float | None = None,
               known: str = '') -> Callable[[Motion], Iterator[Change]]:
    """Return changes of one joint each, given the columns (rows, sizes) or (rows,) of a joint."""
    # With its change, the first size, `known`, an attribute of the model, must not be negative.
    def changes(motion: Motion) -> Iterator[Change]:
        for j, name in enumerate(motion.model.velocity_names):
            own = column(motion, j).reshape(len(motion.tau), -1)
            columns = np.zeros((*motion.tau.shape, own.shape[1]))
            columns[:, j] = own
            yield Change(name, (name,), columns, fixed,
                         least=-getattr(motion.model, known)[j] if known else -np.inf)
    return changes


def _of_all(columns: Callable[[Motion], np.ndarray], fixed: float | None = None
            ) -> Callable[[Motion], Iterator[Change]]:
    """Return one change of all joints, given its columns (rows, nv, sizes)."""
    def changes(motion: Motion) -> Iterator[Change]:
        yield Change('', motion.model.velocity_names, columns(motion), fixed)
    return changes


def _signs(motion: Motion) -> Iterator[Change]:
    """Return the change of each joint, of those that it fits better, and of all."""
    each, better = [*_of_joints(lambda one, j: one.described[:, j], -2.0)(motion)], []
    for j, change in enumerate(each):
        use = motion.use[:, j]
        tau, described = motion.tau[use, j], motion.described[use, j]
        Q = span(np.stack((motion.states.v[use, j], motion.states.s[use, j]), axis=1))
        other, own = (x @ x - np.sum((Q.T @ x) ** 2) for x in (tau + described, tau - described))
        if other < 0.5 * own:
            better.append(change)
    yield from each
    for some in [better] * (1 < len(better) < len(each)) + [each] * (len(each) > 1):
        yield Change('', sum((one.joints for one in some), ()),
                     np.sum([one.columns for one in some], axis=0), -2.0)


def _zero_offsets(motion: Motion) -> Iterator[Change]:
    """Return the changes if encoders read too much, as secants about the sizes known so far."""
    model = motion.model
    if model.nq != model.nv or model.loops is not None:
        return
    for j, name in enumerate(model.velocity_names):
        step = motion.about.get(('zero_offset', name), 1e-5)
        q = motion.states.q.copy()
        q[:, j] -= step
        change = motion.torques(motion.states._replace(q=q)) - motion.described
        yield Change(name, (name,), change[:, :, None] / step)


def leaves(model: Model) -> list[str]:
    """Return the links at the ends of the robot, which may carry a payload."""
    bodies = moving_bodies(model)
    up = {model.link_index(model.joints[body - 1].parent) for body in bodies}
    found = []
    for parts in bodies.values():
        own = [k for k, _ in parts]
        if not up.intersection(own):
            # A frame for tools is a link without mass.
            tool = next((k for k in reversed(own) if model.links[k].mass == 0.0), own[0])
            found.append(model.link_names[tool])
    return found


def _payloads(motion: Motion) -> Iterator[Change]:
    model = motion.model
    mass = MAX_PAYLOAD * np.sum(inertial_parameters(model)[::10])
    deviation = mass * (2.0 * body_size(model)) ** LENGTH_POWERS
    for link in leaves(model) if motion.payload_link is None else [motion.payload_link]:
        columns, to_link = LoadParameters(model, link).columns_and_map
        yield Change(link, model.velocity_names, motion.regressor[:, :, columns] @ to_link, None,
                     deviation)


def _link_masses(motion: Motion) -> Iterator[Change]:
    model, usual = motion.model, LINK_ERROR * mass_scales(motion.model)[::10]
    pi = inertial_parameters(model).reshape(-1, 10)
    for k, (name, one) in enumerate(zip(body_names(model), pi)):
        if one[0] > 0.0:
            columns = motion.regressor[:, :, 10 * k:10 * k + 10] @ (one / one[0])
            yield Change(name, model.velocity_names, columns[:, :, None], None, usual[k:k + 1],
                         -one[0])


def _tilt(sizes: np.ndarray, model: Model) -> np.ndarray:
    """Return the angle between gravity and that of the description, degrees."""
    g, changed = model.gravity, model.gravity + sizes
    across = np.linalg.norm(np.cross(changed, g), axis=-1)
    return np.degrees(np.arctan2(across, changed @ g))


def _is_tilt(sizes: np.ndarray, model: Model) -> bool:
    size = np.linalg.norm(model.gravity)
    return bool(abs(np.linalg.norm(model.gravity + sizes) - size) <= MAX_GRAVITY_CHANGE * size)


def _can_be_payload(sizes: np.ndarray, model: Model) -> bool:
    mass = sizes[0]
    return bool(0.0 < mass < MAX_PAYLOAD * np.sum(inertial_parameters(model)[::10])
                and np.linalg.norm(sizes[1:4]) < MAX_REACH * body_size(model) * mass)


# Words that the text does not use may divide by zero.
@np.errstate(divide='ignore', invalid='ignore')
def words(change: Change, sizes: np.ndarray, model: Model, one: Hypothesis) -> dict[str, str]:
    """Return what the texts of a hypothesis may contain; each uses what its sizes mean."""
    sizes = sizes if change.fixed is None else np.full(1, change.fixed)
    value = np.broadcast_to(one.value(sizes, model), len(change.joints))
    more = value[0] > 0.0
    return {**words_of_factors(change.joints, value), 'place': change.place,
            'size': f'{abs(value[0]):.3g}', 'more': 'more' if more else 'less',
            'much': 'much' if more else 'little', 'late': 'later' if more else 'earlier',
            'gravity': ' '.join(f'{x:.4g}' for x in model.gravity + np.resize(sizes, 3)),
            'centre': ', '.join(f'{x:.3g}' for x in sizes[1:4] / sizes[0])}


def words_of_factors(joints: Sequence[str] | np.ndarray, factors: np.ndarray) -> dict[str, str]:
    """Return the words about factors of the efforts of joints."""
    return {'joints': listed(joints), 'value': f'{factors[0]:.3g}',
            'times': listed(f'{name} {x:.3g}' for name, x in zip(joints, factors)),
            'scale': ' '.join(f'{name}={1.0 / x:.4g}' for name, x in zip(joints, factors))}


def _factor(sizes: np.ndarray, model: Model) -> np.ndarray:
    return 1.0 + sizes[..., 0]


def _factors(sizes: np.ndarray, model: Model) -> np.ndarray:
    """Return the factors of the efforts, (nv,), that findings contain, or their deviations."""
    return 1.0 + sizes


MULTIPLES = ('efforts are multiples of the torques of the URDF, {times}: they look like currents '
             'or have wrong gains. Find the gains (rbd_ros gains), or apply these with '
             f'--scale {{scale}}; {CONFIRM}')
NO_SCALE = 'leave out --scale'

HYPOTHESES = {
    'time_unit': Hypothesis('{text}', 'multiply the times again', detect=wrong_time_unit),
    'two_publishers': Hypothesis('{text}', 'record both again', detect=two_publishers),
    'stuck': Hypothesis('{text}', 'nothing was changed', detect=stuck),
    'wrapped': Hypothesis('{text}', 'nothing was changed', detect=wrapped),
    'degrees': Hypothesis('{text}', 'convert them back', compare=degrees, fitted=False),
    'order': Hypothesis('{text}', 'exchange the names again',
                        'a motion of one joint after the other', compare=orders, fitted=False),
    'sign': Hypothesis(
        'the efforts of {joints} have the wrong sign: multiply them by -1 (--scale {scale}; '
        'negative effort_convention.state_constants of the node)', NO_SCALE,
        changes=_signs, value=_factor, fitted=False),
    'without_gravity': Hypothesis(
        'efforts are without gravity: the torques of the URDF fit much better without those of '
        'gravity (effort_convention.states: without_gravity); record efforts that contain them, '
        'or add them', 'effort_convention.states: full', 'poses that gravity loads differently',
        _of_all(lambda one: (one.gravity @ one.model.gravity)[:, :, None], -1.0), fitted=False),
    'common_gain': Hypothesis(
        'efforts are {value} times the torques of the URDF, by one factor for all joints: was a '
        'gain or gear ratio forgotten, or applied twice? Apply it with --scale {scale}; '
        + CONFIRM, NO_SCALE, 'a motion with a payload of known mass',
        _of_all(lambda one: one.described[:, :, None]), value=_factor, fitted=False),
    'gain': Hypothesis(
        MULTIPLES, NO_SCALE, 'a motion with a payload of known mass', _of_joints(
            lambda one, j: one.described[:, j]), value=_factor, fitted=False),
    'current': Hypothesis(
        MULTIPLES, NO_SCALE, 'a motion with a payload of known mass', _of_all(
            lambda one: one.described[:, :, None] * np.eye(one.model.nv)),
        value=_factors, fitted=False),
    'gravity_direction': Hypothesis(
        'gravity is tilted by {value} deg from where the description has '
        'it: level the base, set mounting_rpy of the node, or give --gravity {gravity}',
        'mounting_rpy: [0, 0, 0], or leave out --gravity',
        'a turn of the first joint by half a turn, with the arm stretched out',
        _of_all(lambda one: one.gravity), ('deg', 'deg'), _tilt, _is_tilt),
    'payload': Hypothesis(
        'payload of about {value} kg at {place} not declared, its centre at '
        '[{centre}] m: declare it (payload_link: {place}, payload_mass: {value}, payload_com: '
        '[{centre}] of the node; rbd_ros identify --payload {place} finds its inertia, too), or '
        'remove it', 'payload_mass: 0', 'a turn of the last joints with the payload to the side',
        _payloads, ('kg', 'kg'), valid=_can_be_payload),
    'link_mass': Hypothesis(
        '{place} has {size} kg {more} than in the description: correct its '
        'mass, or identify the robot (rbd_ros identify)', 'the mass of the URDF',
        'a turn of the last joints with the arm stretched out', _link_masses, ('kg', 'kg')),
    'zero_offset': Hypothesis(
        'the encoder of {joints} reads {size} {unit} too {much}: set its '
        'zero again in the driver, at a mark on the joint', 'the zero of the driver as it was',
        'poses in which gravity turns the joint both ways', _zero_offsets, ('rad', 'm'),
        valid=lambda sizes, model: bool(abs(sizes[0]) < MAX_OFFSET)),
    'torque_offset': Hypothesis(
        'the efforts of {joints} are {size} {unit} too {much} everywhere: '
        'zero the sensor without load, or declare effort_offset (dynamics.param.yaml)',
        'effort_offset: 0', 'poses in which gravity turns the joint both ways',
        _of_joints(lambda one, j: np.ones(len(one.tau))), ('N m', 'N')),
    'friction': Hypothesis(
        '{joints} has {size} {unit} {more} friction than declared: is it '
        'cold, dry, or rubbing? Identify it again (rbd_ros identify) if it stays',
        'the earlier dynamics.param.yaml', 'slow and fast motions in both directions',
        unit=('N m', 'N')),
    'rotor': Hypothesis(
        'the rotor of {joints} has {size} {unit} {more} inertia than declared: declare '
        'it (armature in dynamics.param.yaml), or identify it (rbd_ros identify)', 'armature: 0',
        'fast reversals of this joint alone',
        _of_joints(lambda one, j: one.states.a[:, j], known='armature'), ('kg m^2', 'kg')),
    'spring': Hypothesis(
        'something pulls {joints} like a spring of {value} {unit}, such as '
        'a hose or a balancer: lay it otherwise, or declare it (stiffness)', 'stiffness: 0',
        'slow motions of this joint over its whole range, in different poses of the others',
        _of_joints(lambda one, j: np.stack(
            (one.states.q[:, j] - np.mean(one.states.q[:, j]), np.ones(len(one.tau))), axis=1),
            known='stiffness'), ('N m/rad', 'N/m'),
        valid=lambda sizes, model: bool(abs(sizes[1]) < MAX_REFERENCE * abs(sizes[0]))),
    'delay': Hypothesis(
        'efforts come {size} s {late} than positions: record both with the '
        'same clock (identify and replay remove delays of up to 0.1 s by themselves)',
        'nothing was changed', 'fast reversals', _of_all(lambda one: one.late[:, :, None]),
        ('s', 's')),
    'unexplained': Hypothesis(
        '{text}', 'nothing was changed', 'the same motion again: what repeats is no noise'),
}
