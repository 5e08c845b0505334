# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads the links and joints of a URDF document, and makes documents of objects of urdf_parser_py.

Numbers are checked here, so that errors name the link or joint. The reader of urdf_parser_py would
take longer than everything else, lacks URDF 1.1 and 1.2, and rejects robots for their colours,
transmissions or Gazebo elements.

"""

from copy import copy, deepcopy
from math import inf
from typing import Any

from lxml import etree
import numpy as np
from rbd_ros.errors import UrdfError
from rbd_ros.model.description import Link
from rbd_ros.model.files.xml_elements import Element
from rbd_ros.model.joints import Joint, Mimic, NEW_LIMITS, quaternion_matrix
from rbd_ros.model.se3 import pose, rotation_from_rpy
from urdf_parser_py import urdf as parser

VERSIONS = ('1.0', '1.1', '1.2')  # Versions of URDF, in order.
# Kinds of joints in URDF, and their names here.
URDF_KINDS = {'fixed': 'fixed', 'revolute': 'revolute', 'continuous': 'continuous',
              'prismatic': 'prismatic', 'floating': 'free', 'planar': 'planar'}
# Kinds whose joints may have limits, dynamics and a mimic.
SINGLE = ('revolute', 'continuous', 'prismatic')
# Larger angles in an origin, rad, are suspicious.
FULL_TURN = 6.3
INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
_ZERO = (0.0, 0.0, 0.0)
# What other programs ignore before a version, and where it is.
_NEWER = (
    ('quat_xyzw', 'joint/origin[@quat_xyzw] | link/inertial/origin[@quat_xyzw]', '1.1'),
    ('limits of ' + ', '.join(NEW_LIMITS[:-1]) + f' or {NEW_LIMITS[-1]}',
     'joint/limit[' + ' or '.join(f'@{name}' for name in NEW_LIMITS) + ']', '1.2'))


def describe(root: etree._Element, notes: list[str]) -> tuple[list[Link], list[Joint]]:
    """Return the links and joints of a document; sentences about them are added to ``notes``."""
    # Overflowing numbers are rejected later, with the name of the link.
    with np.errstate(over='ignore', invalid='ignore'):
        links = [_link(element, notes) for element in root.iterchildren('link')]
    version = root.get('version') or VERSIONS[0]
    old = version in VERSIONS[:2]
    joints = [_joint(element, old, notes) for element in root.iterchildren('joint')]
    for what, path, since in _NEWER:
        if version in VERSIONS[:VERSIONS.index(since)] and root.xpath(path):
            notes.append(f'the robot has {what}, which other programs ignore before '
                         f'<robot version="{since}">')
    return links, joints


def document_of(urdf: parser.URDF) -> etree._Element:
    """Return a document with the links, joints and Gazebo elements of an object."""
    root = etree.Element('robot', name=str(urdf.name or 'robot'))
    for part in (*urdf.links, *urdf.joints):
        if isinstance(part, parser.Link):
            bare = parser.Link(part.name, inertial=part.inertial)
        else:
            bare = copy(part)
            bare.safety_controller = bare.calibration = None
        try:
            root.append(bare.to_xml())
        except Exception as error:      # of any kind: its fields may be anything
            raise UrdfError(f"{bare.XML_REFL.tag} '{part.name}': {error}") from None
    root.extend(map(deepcopy, urdf.gazebos))
    return root


def rotation(origin: Element, notes: list[str]) -> np.ndarray:
    """Return the rotation of an origin: that of its quaternion, or of its angles."""
    if origin.has('quat_xyzw'):
        if origin.has('rpy'):
            raise UrdfError(f'{origin.where}: its <{origin.tag}> has both rpy and quat_xyzw: keep '
                            'one')
        quaternion = np.array(origin.vector('quat_xyzw', count=4))
        size = np.abs(quaternion).max()
        if not 0.0 < size < np.inf:
            raise UrdfError(f'{origin.where}: its quat_xyzw must be four finite numbers, not all '
                            f'zero, got {origin.text("quat_xyzw")}')
        # Squares of the entries themselves may overflow.
        return quaternion_matrix(quaternion / size)
    rpy = origin.finite('rpy', _ZERO)
    if max(map(abs, rpy)) > FULL_TURN:
        notes.append(f'{origin.where}: rpy="{" ".join(f"{x:g}" for x in rpy)}" is more than a '
                     'full turn; are these degrees? URDF uses rad')
    return rotation_from_rpy(rpy)


def placement(element: Element, notes: list[str], tag: str = 'origin') -> np.ndarray:
    """Return the pose in the origin of an element."""
    origin = element.child(tag)
    if origin is None:
        return np.eye(4)
    return pose(rotation(origin, notes), origin.finite('xyz', _ZERO))


def _named(element: etree._Element, notes: list[str]) -> tuple[Element, str]:
    """Return an element of the document that must have a name, and the name."""
    name = element.get('name')
    if not name:
        raise UrdfError(f'the <{element.tag}> on line {element.sourceline} has no name')
    result = Element(element, f"{element.tag} '{name}'", notes)
    return result, result.text('name')


def _link(element: etree._Element, notes: list[str]) -> Link:
    link, name = _named(element, notes)
    inertial = link.child('inertial')
    if inertial is None:
        return Link(name)
    mass = inertial.required_child('mass').number('value')
    moments, inertia = inertial.child('inertia'), np.zeros((3, 3))
    if moments is not None:
        xx, xy, xz, yy, yz, zz = (moments.number(key) for key in INERTIA)
        inertia = np.array([[xx, xy, xz], [xy, yy, yz], [xz, yz, zz]])
    T = placement(inertial, notes)
    inertia = T[:3, :3] @ inertia @ T[:3, :3].T
    return Link(name, mass, T[:3, 3], 0.5 * (inertia + inertia.T))


def _joint(element: etree._Element, old: bool, notes: list[str]) -> Joint:
    """Return joint j, without its links; ``placement`` is that of the body in the parent."""
    joint, name = _named(element, notes)
    kind = element.get('type', '')
    if kind not in URDF_KINDS:
        raise UrdfError(f"{joint.where}: its type is '{kind}', expected one of "
                        + ', '.join(URDF_KINDS))
    parent, child = (joint.required_child(end).text('link') for end in ('parent', 'child'))
    T = placement(joint, notes)
    fields: dict[str, Any] = {}
    axis = joint.child('axis')
    if axis is not None and (axis.has('xyz') or kind in (*SINGLE, 'planar')):
        fields['axis'] = np.array(axis.vector('xyz'))
    dynamics, mimic = joint.child('dynamics'), joint.child('mimic')
    if kind in SINGLE:
        fields |= _limits(joint, kind, old, notes)
        if dynamics is not None:
            fields |= {key: (dynamics.number(key, 0.0),) for key in ('damping', 'friction')}
        if mimic is not None:
            fields['mimic'] = Mimic(mimic.text('joint'), mimic.number('multiplier', 1.0),
                                    mimic.number('offset', 0.0))
    return Joint(name, URDF_KINDS[kind], parent, child, T, **fields)


def _limits(joint: Element, kind: str, old: bool, notes: list[str]) -> dict[str, Any]:
    limit = joint.child('limit')
    if limit is None:
        if kind != 'continuous':
            notes.append(f'{joint.where}: it has no <limit>; no limits are assumed')
        return {}
    # Before 1.2, missing limits of the position are 0, and others must not be missing.
    for name in ('effort', 'velocity') if old else ('lower', 'upper'):
        if not limit.has(name) and (old or kind != 'continuous'):
            notes.append(f'{joint.where}: its <limit> has no {name}; no limit is assumed')
    missing = {'effort': inf, 'velocity': inf}
    if kind != 'continuous':
        missing |= {'lower': 0.0 if old else -inf, 'upper': 0.0 if old else inf}
    found = {name: (limit.number(name, default),) for name, default in missing.items()}
    newer = {name: (limit.number(name),) for name in NEW_LIMITS if limit.has(name)}
    # Braking is as strong as accelerating unless it has a limit of its own.
    if 'acceleration' in newer:
        newer.setdefault('deceleration', newer['acceleration'])
    return found | newer
