# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads models from URDF.

Only the elements needed for dynamics are read: no mesh is opened, and mistakes in colours,
transmissions or Gazebo elements do not matter. (urdf_parser_py takes longer than this module and
the model together, and rejects 5 of the 69 robots of example-robot-data.)

"""

from collections.abc import Iterable
from dataclasses import replace
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

from lxml import etree
import numpy as np
import numpy.typing as npt
from rbd_ros._internal.text import listed, printable
from rbd_ros.errors import ModelError, UrdfError
from rbd_ros.model.arguments import shown, whole_number
from rbd_ros.model.description import Link
from rbd_ros.model.files.xacro_files import expand_xacro, SUFFIX
from rbd_ros.model.files.xml_elements import decode, Element, LARGEST_TEXT, parse
from rbd_ros.model.joints import Joint, Mimic
from rbd_ros.model.model import build_model, Model, STANDARD_GRAVITY
from rbd_ros.model.modifications import payload_name, with_floating_base
from rbd_ros.model.se3 import pose, rotation_from_rpy

# Kinds of joints in URDF, and their names here.
URDF_KINDS = {'fixed': 'fixed', 'revolute': 'revolute', 'continuous': 'continuous',
              'prismatic': 'prismatic', 'floating': 'free', 'planar': 'planar'}
# Kinds whose joints may have limits, dynamics and a mimic.
SINGLE = ('revolute', 'continuous', 'prismatic')
FULL_TURN = 6.3  # Larger angles in an origin, rad, are suspicious.
_ZERO = (0.0, 0.0, 0.0)
_INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')


def load_urdf(path: str | PathLike[str], *, floating_base: bool = False,
              gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
              max_joints: int | None = None, xacro_arguments: Iterable[str] = ()) -> Model:
    """
    Read a robot from a URDF or xacro file, its joints in document order, depth-first.

    Suspicious values with which the dynamics can be computed cause a ModelWarning.

    Parameters
    ----------
    path : str or path-like
        The file; xacro is run on it if its name ends in .xacro.
    floating_base : bool
        Let the root link float in a world, as `with_floating_base` does.
    gravity : array_like, shape (3,)
        Acceleration of gravity in the root link's frame, or in the world's with a floating base,
        m/s^2.
    strict : bool
        Reject inertias that no body can have, negative limits, mimics of unknown joints and robots
        without links, which otherwise cause warnings.
    max_joints, xacro_arguments : int, iterable of str, optional
        Reject robots with more joints, including fixed ones, before they are built; arguments of
        xacro, each ``name:=value``.

    Raises
    ------
    UrdfError
        If the file cannot be read, xacro is missing or fails, or the description is invalid; the
        message names the link or joint.

    """
    text = read_file(path, xacro_arguments)
    try:
        return load_urdf_string(text, floating_base=floating_base, gravity=gravity, strict=strict,
                                max_joints=max_joints)
    except UrdfError as error:
        raise UrdfError(f'{path}: {error}') from None


def read_file(path: str | PathLike[str], xacro_arguments: Iterable[str] = ()) -> str | bytes:
    """Return the text of a URDF or xacro file, as `load_urdf` reads it."""
    try:
        with Path(path).open('rb') as file:
            text = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise UrdfError(f'{printable(str(path), 300)} cannot be read: {error.strerror}') from None
    except (TypeError, ValueError) as error:
        raise UrdfError(f'{shown(path)} is not the path of a file: {error}') from None
    if Path(path).suffix == SUFFIX:
        try:
            return expand_xacro(path, xacro_arguments)
        except UrdfError as error:
            raise UrdfError(f'{path}: {error}') from None
    if xacro_arguments:
        raise UrdfError(f'{path}: its name does not end in {SUFFIX}, so it takes no arguments of '
                        f'xacro, got {listed(xacro_arguments)}')
    return text


def load_urdf_string(text: str | bytes, *, floating_base: bool = False,
                     gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
                     max_joints: int | None = None) -> Model:
    """
    Read a robot from the text of a URDF; errors and warnings are those of `load_urdf`.

    Parameters
    ----------
    text : str or bytes
        The document; bytes may have a byte-order mark or declare their encoding.
    floating_base, gravity, strict, max_joints
        As for `load_urdf`.

    """
    return model_of_document(parse(decode(text)), floating_base=floating_base, gravity=gravity,
                             strict=strict, max_joints=max_joints)


def model_of_document(root: etree._Element, *, floating_base: bool = False,
                      gravity: npt.ArrayLike = STANDARD_GRAVITY, strict: bool = False,
                      max_joints: int | None = None) -> Model:
    """Return the robot that a parsed URDF describes; arguments as for `load_urdf`."""
    count = sum(1 for _ in root.iterchildren('joint'))
    if max_joints is not None and count > whole_number('max_joints', max_joints, least=0):
        raise UrdfError(f'the robot has {count} joints, max_joints is {max_joints}: simplify it, '
                        'or raise max_joints')
    notes: list[str] = []
    links = [_link(element, notes) for element in root.iterchildren('link')]
    joints = [_joint(element, notes) for element in root.iterchildren('joint')]
    payloads = {joint.child for joint in joints
                if joint.kind == 'fixed' and joint.child == payload_name(joint.parent)}
    links = [replace(link, is_load=True) if link.name in payloads else link for link in links]
    try:
        model = build_model(root.get('name') or 'robot', links, joints, gravity=gravity,
                            strict=strict, notes=notes)
        return with_floating_base(model) if floating_base else model
    except ModelError as error:
        raise UrdfError(str(error)) from None


def placement(element: Element, notes: list[str]) -> np.ndarray:
    """Return the pose in the <origin> of an element."""
    origin = element.child('origin')
    if origin is None:
        return np.eye(4)
    rpy = origin.vector('rpy', _ZERO)
    if not all(map(isfinite, rpy)):
        raise UrdfError(f'{element.where}: the rpy of its <origin> is not finite: {rpy}')
    if max(map(abs, rpy)) > FULL_TURN:
        notes.append(f'{element.where}: rpy="{" ".join(f"{x:g}" for x in rpy)}" is more than a '
                     'full turn; are these degrees? URDF uses rad')
    return pose(rotation_from_rpy(rpy), origin.vector('xyz', _ZERO))


def _named(element: etree._Element) -> tuple[Element, str]:
    """Return an element of the document that must have a name, and the name."""
    name = element.get('name')
    if not name:
        raise UrdfError(f'the <{element.tag}> on line {element.sourceline} has no name')
    result = Element(element, f"{element.tag} '{name}'")
    return result, result.text('name')


def _link(element: etree._Element, notes: list[str]) -> Link:
    link, name = _named(element)
    inertial = link.child('inertial')
    if inertial is None:
        return Link(name)
    T, inertia = placement(inertial, notes), np.zeros((3, 3))
    mass = inertial.required_child('mass')
    moments = inertial.child('inertia')
    if moments is not None:
        xx, xy, xz, yy, yz, zz = (moments.number(key) for key in _INERTIA)
        R = T[:3, :3]
        # Overflowing numbers are rejected later, with the name of the link.
        with np.errstate(over='ignore', invalid='ignore'):
            inertia = R @ np.array(((xx, xy, xz), (xy, yy, yz), (xz, yz, zz))) @ R.T
            inertia = 0.5 * (inertia + inertia.T)
    return Link(name, mass.number('value'), T[:3, 3], inertia)


def _joint(element: etree._Element, notes: list[str]) -> Joint:
    joint, name = _named(element)
    where, kind = joint.where, element.get('type', '')
    if kind not in URDF_KINDS:
        raise UrdfError(f"{where}: its type is '{kind}', expected one of " + ', '.join(URDF_KINDS))
    axis = joint.child('axis')
    extra: dict[str, Any] = {}
    if axis is not None:
        extra['axis'] = np.array(axis.vector('xyz'))
    dynamics, mimic = joint.child('dynamics'), joint.child('mimic')
    if kind in SINGLE:
        extra.update(_limits(joint, kind, notes))
        if dynamics is not None:
            extra.update(damping=(dynamics.number('damping', 0.0),),
                         friction=(dynamics.number('friction', 0.0),))
        if mimic is not None:
            extra['mimic'] = Mimic(mimic.text('joint'), mimic.number('multiplier', 1.0),
                                   mimic.number('offset', 0.0))
    elif kind != 'fixed':
        for tag, ignored in (('dynamics', dynamics), ('mimic', mimic)):
            if ignored is not None:
                notes.append(f'{where}: the <{tag}> of a {kind} joint is ignored; only joints '
                             'with one coordinate support it')
    return Joint(name, URDF_KINDS[kind], joint.required_child('parent').text('link'),
                 joint.required_child('child').text('link'),
                 placement=placement(joint, notes), **extra)


def _limits(joint: Element, kind: str, notes: list[str]) -> dict[str, tuple[float]]:
    limit = joint.child('limit')
    if limit is None:
        if kind != 'continuous':
            notes.append(f'{joint.where}: it has no <limit>; no limits are assumed')
        return {}
    for name in ('effort', 'velocity'):
        if not limit.has(name):
            notes.append(f'{joint.where}: its <limit> has no {name}; no limit is assumed')
    limits = {name: (limit.number(name, np.inf),) for name in ('effort', 'velocity')}
    if kind != 'continuous':
        limits.update({name: (limit.number(name, 0.0),) for name in ('lower', 'upper')})
    return limits
