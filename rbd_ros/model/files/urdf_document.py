# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Reads the kinematics and inertias of a URDF document as an object of urdf_parser_py.

Numbers are checked here, so that errors name the link or joint. What urdf_parser_py does not know
(URDF 1.1 and 1.2) is returned beside its object. Its own reader, ``URDF.from_xml``, would take
longer than everything else, and reject robots for their colours, transmissions or Gazebo elements.

"""

from copy import copy, deepcopy
from math import inf, isfinite
from typing import Any, TypeAlias

from lxml import etree
import numpy as np
from rbd_ros.errors import UrdfError
from rbd_ros.model.files.xml_elements import Element
from rbd_ros.model.joints import NEW_LIMITS, quaternion_matrix
from rbd_ros.model.se3 import pose, rotation_from_rpy
from urdf_parser_py import urdf as parser

# Versions of URDF, in order.
VERSIONS = ('1.0', '1.1', '1.2')
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
    reader = _Reader(root.get('version'), notes)
    urdf = parser.URDF(root.get('name') or 'robot')
    for element in root.iterchildren('link'):
        urdf.add_link(reader.link(element))
    for element in root.iterchildren('joint'):
        urdf.add_joint(reader.joint(element))
    notes += reader.notes_about_version()
    return urdf, reader.beyond


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


def rotation(origin: Element, notes: list[str]) -> tuple[np.ndarray | None, tuple[float, ...]]:
    """Return the rotation of a quaternion in an <origin>, or None and its angles, checked here."""
    if origin.has('quat_xyzw'):
        if origin.has('rpy'):
            raise UrdfError(f'{origin.where}: its <origin> has both rpy and quat_xyzw: keep one')
        quaternion = np.array(origin.vector('quat_xyzw', count=4))
        size = np.abs(quaternion).max()
        if not 0.0 < size < np.inf:
            raise UrdfError(f'{origin.where}: its quat_xyzw must be four finite numbers, not all '
                            f'zero, got {origin.text("quat_xyzw")}')
        # Squares of the entries themselves may overflow.
        return quaternion_matrix(quaternion / size), _ZERO
    rpy = origin.vector('rpy', _ZERO)
    if not all(map(isfinite, rpy)):
        raise UrdfError(f'{origin.where}: the rpy of its <origin> is not finite: {rpy}')
    if max(map(abs, rpy)) > FULL_TURN:
        notes.append(f'{origin.where}: rpy="{" ".join(f"{x:g}" for x in rpy)}" is more than a '
                     'full turn; are these degrees? URDF uses rad')
    return None, rpy


def placement(element: Element) -> np.ndarray:
    """Return the pose in the <origin> of an element."""
    origin = element.child('origin')
    if origin is None:
        return np.eye(4)
    R, rpy = rotation(origin, [])
    return pose(rotation_from_rpy(rpy) if R is None else R, origin.vector('xyz', _ZERO))


def _named(element: etree._Element, notes: list[str]) -> tuple[Element, str]:
    """Return an element of the document that must have a name, and the name."""
    name = element.get('name')
    if not name:
        raise UrdfError(f'the <{element.tag}> on line {element.sourceline} has no name')
    result = Element(element, f"{element.tag} '{name}'", notes)
    return result, result.text('name')


class _Reader:
    """Reads links and joints; ``beyond`` and ``notes`` grow with each one."""

    def __init__(self, version: str | None, notes: list[str]) -> None:
        self._version, self._notes = version or '1.0', notes
        self.beyond: Beyond = {}

    def notes_about_version(self) -> list[str]:
        """Return a sentence for what programs ignore unless the robot's version is newer."""
        return [f'the robot has {what}, which other programs ignore before '
                f'<robot version="{since}">'
                for what, fields, since in (('quat_xyzw', {'rotation'}, '1.1'),
                                            ('limits of ' + ', '.join(NEW_LIMITS[:-1])
                                             + f' or {NEW_LIMITS[-1]}', {*NEW_LIMITS}, '1.2'))
                if self._version in VERSIONS[:VERSIONS.index(since)]
                and any(fields.intersection(more) for more in self.beyond.values())]

    def link(self, element: etree._Element) -> parser.Link:
        link, name = _named(element, self._notes)
        inertial = link.child('inertial')
        if inertial is None:
            return parser.Link(name)
        more: dict[str, Any] = {}
        moments = inertial.child('inertia')
        found = parser.Inertial(
            inertial.required_child('mass').number('value'),
            moments and parser.Inertia(*[moments.number(key) for key in INERTIA]),
            self._origin(inertial, more))
        self._add('link', name, more)
        return parser.Link(name, inertial=found)

    def joint(self, element: etree._Element) -> parser.Joint:
        joint, name = _named(element, self._notes)
        kind = element.get('type', '')
        if kind not in URDF_KINDS:
            raise UrdfError(f"{joint.where}: its type is '{kind}', expected one of "
                            + ', '.join(URDF_KINDS))
        more: dict[str, Any] = {}
        found = parser.Joint(name, joint.required_child('parent').text('link'),
                             joint.required_child('child').text('link'), kind,
                             origin=self._origin(joint, more))
        axis = joint.child('axis')
        if axis is not None and (axis.has('xyz') or kind in (*SINGLE, 'planar')):
            found.axis = axis.vector('xyz')
        dynamics, mimic = joint.child('dynamics'), joint.child('mimic')
        if kind in SINGLE:
            found.limit = self._limit(joint, kind, more)
            if dynamics is not None:
                found.dynamics = parser.JointDynamics(dynamics.number('damping', 0.0),
                                                      dynamics.number('friction', 0.0))
            if mimic is not None:
                found.mimic = parser.JointMimic(
                    mimic.text('joint'), mimic.number('multiplier', 1.0),
                    mimic.number('offset', 0.0))
        self._add('joint', name, more)
        return found

    def _add(self, tag: str, name: str, more: dict[str, Any]) -> None:
        if more:
            self.beyond[tag, name] = more

    def _origin(self, element: Element, more: dict[str, Any]) -> parser.Pose | None:
        """Return the <origin> of an element; add the rotation of a quaternion to ``more``."""
        origin = element.child('origin')
        if origin is None:
            return None
        R, rpy = rotation(origin, self._notes)
        if R is not None:
            more['rotation'] = R
        return parser.Pose(origin.vector('xyz', _ZERO), rpy)

    def _limit(self, joint: Element, kind: str, more: dict[str, Any]) -> parser.JointLimit | None:
        """Return the limits of a joint with one coordinate; add those of 1.2 to ``more``."""
        limit = joint.child('limit')
        if limit is None:
            if kind != 'continuous':
                self._notes.append(f'{joint.where}: it has no <limit>; no limits are assumed')
            return None
        # Before 1.2, missing limits of the position are 0, and others must not be missing.
        old = self._version in VERSIONS[:2]
        for name in ('effort', 'velocity') if old else ('lower', 'upper'):
            if not limit.has(name) and (old or kind != 'continuous'):
                self._notes.append(f'{joint.where}: its <limit> has no {name}; no limit is '
                                   'assumed')
        found = parser.JointLimit(limit.number('effort', inf), limit.number('velocity', inf))
        if kind != 'continuous':
            found.lower = limit.number('lower', 0.0 if old else -inf)
            found.upper = limit.number('upper', 0.0 if old else inf)
        more.update({name: (limit.number(name),) for name in NEW_LIMITS if limit.has(name)})
        # Braking is as strong as accelerating unless it has a limit of its own.
        if 'acceleration' in more:
            more.setdefault('deceleration', more['acceleration'])
        return found
