# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Robots made from others: payloads, locked joints, parts. A model itself never changes.

ModelError is raised for links and joints that do not exist, and for impossible values.

"""

from __future__ import annotations

from collections.abc import Collection, Mapping

import numpy as np
import numpy.typing as npt

from rbd_ros._internal.text import did_you_mean, listed
from rbd_ros.errors import ModelError
from rbd_ros.model.arguments import check_model, shown
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import check_links, inertia_matrix, LARGEST, Link, numbers
from rbd_ros.model.joints import Joint, KINDS
from rbd_ros.model.model import fix, Model
from rbd_ros.model.positions.configurations import neutral
from rbd_ros.model.topology import resolve_mimics


def with_gravity(model: Model, gravity: npt.ArrayLike) -> Model:
    """
    Return the robot under another gravity.

    Parameters
    ----------
    model, gravity : Model, array_like of shape (3,)
        Acceleration of gravity in the root's frame, m/s^2; rotate it for a robot on a slope or a
        ceiling.

    """
    if gravity is None:
        raise ModelError('gravity must be three finite numbers, m/s^2, got None')
    return rebuild(model, gravity=gravity)


def payload_name(link: str) -> str:
    """Return the name of the link that is the payload of a link."""
    return f'{link}/payload'


def with_payload(model: Model, link: str, mass: float, com: npt.ArrayLike = (0.0, 0.0, 0.0),
                 inertia: npt.ArrayLike | None = None) -> Model:
    """
    Return the robot with a payload on a link, replacing a previous one.

    Parameters
    ----------
    model, link : Model, str
        The link that carries the payload, which becomes a link of its own, fixed to this one.
    mass, com : float, array_like of shape (3,)
        Mass, kg, positive, and centre of mass in the link's frame, m.
    inertia : array_like, shape (3,), (6,) or (3, 3), optional
        About that centre, as for `rbd_ros.ModelBuilder.link`; default: a point mass.

    """
    check_model(model)
    if model.links[model.link_index(link)].is_load:
        raise ModelError(f"'{link}' is itself a load: put the payload on the link that carries it")
    model = without_payload(model, link)
    name = payload_name(link)
    where = f"the payload on link '{link}'"
    payload = Link(name, float(numbers(where, 'mass', mass, ())),
                   numbers(where, 'centre of mass', com, (3,)),
                   inertia_matrix(where, np.zeros(3) if inertia is None else inertia),
                   is_load=True)
    if impossible := check_links([payload]):
        raise ModelError(impossible[0])
    if not payload.mass > 0.0:
        raise ModelError(f'{where} has no mass: to remove a load, use without_payload')
    return rebuild(model, links=(*model.links, payload),
                   joints=(*model.joints, Joint(name, 'fixed', link, name)))


def without_payload(model: Model, link: str) -> Model:
    """Return ``model`` without the payload of the link with the name ``link``, if it has one."""
    check_model(model)
    model.link_index(link)
    name = payload_name(link)
    if not any(one.is_load and one.name == name for one in model.links):
        return model
    return rebuild(model, links=[one for one in model.links if one.name != name],
                   joints=[joint for joint in model.joints if joint.name != name])


def with_locked_joints(model: Model, positions: Mapping[str, npt.ArrayLike]) -> Model:
    """
    Return the robot with some joints locked, which have no coordinates then; all masses are kept.

    Parameters
    ----------
    model, positions : Model, mapping of str to float or array_like
        Coordinates of the joints to lock, rad and m. Their mimics are locked accordingly and must
        not be named. With closed loops, any joint may be named; as far as they can, the
        independent joints stay independent.

    """
    require_joints(model, positions, Mapping)
    own = {joint.name for joint, _, _ in model.unconstrained.moving_joints}
    values = {}
    for name, value in positions.items():
        joint = next(joint for joint in model.joints if joint.name == name)
        if name not in own:
            if joint.mimic is None or not joint.nv:
                raise ModelError(f"joint '{name}' cannot be locked: it is fixed; leave it out")
            raise ModelError(f"joint '{name}' cannot be locked: it mimics '{joint.mimic.joint}', "
                             'with which it is locked too; leave it out')
        values[name] = numbers(f"joint '{name}'", 'locked position', value, (joint.nq,),
                               repeat=joint.nq == 1)
        if np.any(np.abs(values[name]) > LARGEST):
            raise ModelError(f"joint '{name}': its locked position must not exceed {LARGEST:g}, "
                             f'got {value!r}')
        if not KINDS[joint.kind].is_screws and not values[name][:4].any():
            raise ModelError(f"joint '{name}' cannot be locked at the quaternion 0, 0, 0, 0")
    followers, _ = resolve_mimics(model.joints)
    for name, (leader, multiplier, offset) in followers.items():
        if leader in values:
            values[name] = multiplier * values[leader] + offset
    try:
        return rebuild(model, joints=[fix(joint, values[joint.name]) if joint.name in values
                                      else joint for joint in model.joints])
    except ModelError as error:
        if not model.constraints:
            raise
        raise ModelError(f'with {listed(values)} locked, {error}; or lock fewer joints, or at '
                         'other positions') from None


def with_free_joints(model: Model, names: Collection[str]) -> Model:
    """
    Return the robot with all joints locked except some.

    Parameters
    ----------
    model, names : Model, sequence of str
        The joints that stay free, not mimics. The others are locked at their neutral position;
        lock them elsewhere first with `with_locked_joints`. With closed loops, joints that depend
        on others move with these.

    """
    require_joints(model, names)
    followers, _ = resolve_mimics(model.joints)
    for name in names:
        if name in followers:
            raise ModelError(f"joint '{name}' mimics '{followers[name][0]}': name that one "
                             'instead')
    at_rest, own = neutral(model), model.independent_joints
    return with_locked_joints(model, {
        joint.name: at_rest[q] for joint, q, _ in model.unconstrained.moving_joints
        if joint.name in own and joint.name not in names})


def subtree(model: Model, link: str) -> Model:
    """
    Return the part of the robot that a link carries, with that link as its root.

    Parameters
    ----------
    model, link : Model, str
        The new root. Joints of the part must not mimic others outside it, nor constraints lead
        there. Gravity, given in the root's frame, keeps its components.

    """
    check_model(model)
    model.link_index(link)
    kept, joints = {link}, []
    for joint in model.joints:
        if joint.parent in kept:
            kept.add(joint.child)
            joints.append(joint)
    names = {joint.name for joint in joints}
    for joint in joints:
        if joint.mimic and joint.mimic.joint not in names:
            raise ModelError(f"joint '{joint.name}' mimics '{joint.mimic.joint}', which is not in "
                             f"the part beyond '{link}': lock it first")
    constraints = [one for one in model.constraints if {one.link_a, one.link_b} & kept]
    for one in constraints:
        if not {one.link_a, one.link_b} <= kept:
            raise ModelError(f"constraint '{one.name}' joins links '{one.link_a}' and "
                             f"'{one.link_b}', of which one is not in the part beyond '{link}': "
                             'remove it first with with_constraints')
    return rebuild(model, links=[one for one in model.links if one.name in kept], joints=joints,
                   constraints=constraints)


def with_floating_base(model: Model, name: str = 'base') -> Model:
    """
    Return the robot with its root free to move in a world frame.

    The free joint comes first: q begins with the quaternion (x, y, z, w) of the root and its
    position in the world, v with its twist in its own axes, angular first.

    Parameters
    ----------
    model, name : Model, str
        Name of the free joint; its velocities are then called ``base_wx ... base_vz``.

    """
    check_model(model)
    if not model.links:
        raise ModelError(f"robot '{model.name}' has no links that could float")
    if not isinstance(name, str):
        raise ModelError(f'the name of the joint must be a string, got {shown(name)}')
    world = 'world'
    while world in model.link_names:
        world += '_'
    base = Joint(name, 'free', world, model.links[0].name)
    return rebuild(model, links=(Link(world), *model.links), joints=(base, *model.joints))


def require_joints(model: Model, names: Collection[str], kind: type = Collection) -> None:
    """Raise ModelError unless these are names of joints of the robot."""
    check_model(model)
    if isinstance(names, str) or not isinstance(names, kind):
        what = 'a dict by' if kind is Mapping else 'a list of'
        raise ModelError(f'{what} the names of joints is expected, got {shown(names)}')
    known = [joint.name for joint in model.joints]
    for name in names:
        if name not in known:
            raise ModelError(f"robot '{model.name}' has no joint '{name}'" + did_you_mean(
                str(name), known, '; its joints are ' + listed(known)))
