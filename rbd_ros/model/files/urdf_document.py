# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reduces a URDF document to the kinematics and inertias that urdf_parser_py reads.

Numbers are checked here, so that errors name the link or joint. What urdf_parser_py does not know
(URDF 1.1 and 1.2) is returned beside its object.

"""

from copy import copy, deepcopy
from math import isfinite
from typing import Any, TypeAlias

from lxml import etree
import numpy as np
from rbd_ros.errors import UrdfError
from rbd_ros.model.files.xml_elements import Element
from rbd_ros.model.joints import NEW_LIMITS, quaternion_matrix
from rbd_ros.model.se3 import pose, rotation_from_rpy
from urdf_parser_py import urdf as parser
from urdf_parser_py.xml_reflection.core import Path

# Kinds of joints in URDF, and their names here.
URDF_KINDS = {'fixed': 'fixed', 'revolute': 'revolute', 'continuous': 'continuous',
              'prismatic': 'prismatic', 'floating': 'free', 'planar': 'planar'}
# Kinds whose joints may have limits, dynamics and a mimic.
SINGLE = ('revolute', 'continuous', 'prismatic')
# Larger angles in an origin, rad, are suspicious.
FULL_TURN = 6.3
INERTIA = ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz')
_ZERO = (0.0, 0.0, 0.0)

# For each link or joint, by tag and name: `rotation`, if its origin has a quaternion, and
# attributes of `Joint`.
Beyond: TypeAlias = dict[tuple[str, str], dict[str, Any]]


def describe(root: etree._Element, notes: list[str]) -> tuple[parser.URDF, Beyond]:
    """Return the links and joints of a document, and what urdf_parser_py cannot hold of them."""
    document = etree.Element('robot', name=root.get('name') or 'robot')
    beyond: Beyond = {}
    for element in root.iterchildren('link'):
        _copy_link(element, document, beyond, notes)
    for element in root.iterchildren('joint'):
        _copy_joint(element, document, beyond, notes)
    if root.get('version') in (None, '1.0') and any('rotation' in one for one in beyond.values()):
        notes.append('the robot has quat_xyzw, which other programs ignore before '
                     '<robot version="1.1">')
    return parser.URDF.from_xml(document, Path('robot')), beyond


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


def rotation(origin: Element, notes: list[str]) -> np.ndarray | None:
    """Return the rotation of a quaternion in an <origin>, None if it has angles, checked here."""
    if origin.has('quat_xyzw'):
        if origin.has('rpy'):
            raise UrdfError(f'{origin.where}: its <origin> has both rpy and quat_xyzw: keep one')
        quaternion = np.array(origin.vector('quat_xyzw', count=4))
        size = np.abs(quaternion).max()
        if not 0.0 < size < np.inf:
            raise UrdfError(f'{origin.where}: its quat_xyzw must be four finite numbers, not all '
                            f'zero, got {origin.text("quat_xyzw")}')
        # Squares of the entries themselves may overflow.
        return quaternion_matrix(quaternion / size)
    rpy = origin.vector('rpy', _ZERO)
    if not all(map(isfinite, rpy)):
        raise UrdfError(f'{origin.where}: the rpy of its <origin> is not finite: {rpy}')
    if max(map(abs, rpy)) > FULL_TURN:
        notes.append(f'{origin.where}: rpy="{" ".join(f"{x:g}" for x in rpy)}" is more than a '
                     'full turn; are these degrees? URDF uses rad')
    return None


def placement(element: Element) -> np.ndarray:
    """Return the pose in the <origin> of an element."""
    origin = element.child('origin')
    if origin is None:
        return np.eye(4)
    R = rotation(origin, [])
    return pose(rotation_from_rpy(origin.vector('rpy', _ZERO)) if R is None else R,
                origin.vector('xyz', _ZERO))


def _named(element: etree._Element) -> tuple[Element, str]:
    """Return an element of the document that must have a name, and the name."""
    name = element.get('name')
    if not name:
        raise UrdfError(f'the <{element.tag}> on line {element.sourceline} has no name')
    result = Element(element, f"{element.tag} '{name}'")
    return result, result.text('name')


def _copy_origin(element: Element, target: etree._Element, more: dict[str, Any],
                 notes: list[str]) -> None:
    """Copy the <origin> of an element to another; add the rotation of a quaternion to ``more``."""
    origin = element.child('origin')
    if origin is not None:
        R = rotation(origin, notes)
        if R is not None:
            more['rotation'] = R
        origin.copy(target, {'xyz': '0 0 0', 'rpy': '0 0 0'}, 3)


def _copy_link(element: etree._Element, document: etree._Element, beyond: Beyond,
               notes: list[str]) -> None:
    link, name = _named(element)
    target = etree.SubElement(document, 'link', name=name)
    inertial = link.child('inertial')
    if inertial is None:
        return
    target = etree.SubElement(target, 'inertial')
    more: dict[str, Any] = {}
    _copy_origin(inertial, target, more, notes)
    inertial.required_child('mass').copy(target, {'value': None})
    moments = inertial.child('inertia')
    if moments is not None:
        moments.copy(target, dict.fromkeys(INERTIA))
    if more:
        beyond['link', name] = more


def _copy_joint(element: etree._Element, document: etree._Element, beyond: Beyond,
                notes: list[str]) -> None:
    joint, name = _named(element)
    kind = element.get('type', '')
    if kind not in URDF_KINDS:
        raise UrdfError(f"{joint.where}: its type is '{kind}', expected one of "
                        + ', '.join(URDF_KINDS))
    target = etree.SubElement(document, 'joint', name=name, type=kind)
    more: dict[str, Any] = {}
    axis = joint.child('axis')
    if axis is not None and (axis.has('xyz') or kind in (*SINGLE, 'planar')):
        axis.copy(target, {'xyz': None}, 3)
    dynamics, mimic = joint.child('dynamics'), joint.child('mimic')
    if kind in SINGLE:
        _copy_limits(joint, kind, target, more, notes)
        if dynamics is not None:
            dynamics.copy(target, {'damping': '0', 'friction': '0'})
        if mimic is not None:
            mimic.copy(target, {'multiplier': '1', 'offset': '0'})
            target[-1].set('joint', mimic.text('joint'))
    for tag in ('parent', 'child'):
        etree.SubElement(target, tag, link=joint.required_child(tag).text('link'))
    _copy_origin(joint, target, more, notes)
    if more:
        beyond['joint', name] = more


def _copy_limits(joint: Element, kind: str, target: etree._Element, more: dict[str, Any],
                 notes: list[str]) -> None:
    """Copy the limits of a joint with one coordinate; add those of URDF 1.2 to ``more``."""
    limit = joint.child('limit')
    if limit is None:
        if kind != 'continuous':
            notes.append(f'{joint.where}: it has no <limit>; no limits are assumed')
        return
    for name in ('effort', 'velocity'):
        if not limit.has(name):
            notes.append(f'{joint.where}: its <limit> has no {name}; no limit is assumed')
    positions = {} if kind == 'continuous' else {'lower': '0', 'upper': '0'}
    limit.copy(target, {'effort': 'inf', 'velocity': 'inf', **positions})
    more.update({name: (limit.number(name),) for name in NEW_LIMITS if limit.has(name)})
    # Braking is as strong as accelerating unless it has a limit of its own.
    if 'acceleration' in more:
        more.setdefault('deceleration', more['acceleration'])
