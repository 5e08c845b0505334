# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Constraints in URDF, which close loops: elements <constraint>, as proposed for urdfdom.

Each type is named after the joint or link at which the loop was cut; ``distance``, a rod between
two ball joints, is an addition of rbd_ros. Origins are poses in the frames of the links; axes are
in the frames of the origins. Without an axis it is ``1 0 0``, as for joints, and without that of
the child both are equal. doc/closed_loops.md has examples.

"""

from collections.abc import Mapping
from typing import Any

from lxml import etree
import numpy as np
from rbd_ros.errors import UrdfError
from rbd_ros.model.files.urdf_document import placement
from rbd_ros.model.files.xml_elements import Element
from rbd_ros.model.loops import Constraint
from rbd_ros.model.se3 import rotation, rpy_from_rotation

# Types in URDF, and the kinds of `Constraint`.
TYPES = {'spherical': 'point', 'revolute': 'revolute', 'link': 'weld', 'distance': 'distance'}
# Types of the proposal that have no kind here, and what to do instead.
_OTHERS = ('prismatic', 'universal')
_ORIGIN = ('xyz', 'rpy', 'quat_xyzw')
_CHILDREN = {'parent': ('link',), 'parent_origin': _ORIGIN, 'parent_axis': ('xyz',),
             'child': ('link',), 'child_origin': _ORIGIN, 'child_axis': ('xyz',),
             'length': ('value',)}
_X = (1.0, 0.0, 0.0)


def constraints_of(root: etree._Element) -> list[Constraint]:
    """Return the constraints of a document, which `with_constraints` checks."""
    return [_constraint(element) for element in root.iterchildren('constraint')]


def _constraint(element: etree._Element) -> Constraint:
    name = element.get('name')
    if not name:
        raise UrdfError(f'the <constraint> on line {element.sourceline} has no name')
    found = Element(element, f"constraint '{name}'")
    kind = found.text('type')
    if kind not in TYPES:
        hint = ('; cut the loop at another joint, or cut a link (type="link")'
                if kind in _OTHERS else '')
        raise UrdfError(f"{found.where}: its type is '{kind}', expected one of "
                        + ', '.join(TYPES) + hint)
    _check_contents(element, found.where, TYPES[kind])
    axis = _axis(found, 'parent_axis', _X)
    axes = {'parent': axis, 'child': _axis(found, 'child_axis', axis)}
    placements = [placement(found, [], f'{end}_origin') for end in axes]
    if kind == 'revolute':      # The z axes of the frames are those of the joint.
        for T, axis in zip(placements, axes.values()):
            T[:3, :3] = T[:3, :3] @ _turn_z_to(np.array(axis))
    length = found.required_child('length').number('value') if kind == 'distance' else None
    parent, child = (found.required_child(end).text('link') for end in axes)
    return Constraint(found.text('name'), TYPES[kind], parent, child, placements[0],
                      placements[1], length)


def _check_contents(element: etree._Element, where: str, kind: str) -> None:
    """Raise UrdfError for elements and attributes that would be ignored."""
    known = [tag for tag in _CHILDREN if (tag != 'length' or kind == 'distance')
             and (not tag.endswith('_axis') or kind == 'revolute')]
    for part in (element, *element.iterchildren(etree.Element)):
        if part is not element and part.tag not in known:
            raise UrdfError(f'{where}: it has <{part.tag}>, which a constraint of this type does '
                            'not use: remove it; known are ' + ', '.join(known))
        attributes = ('name', 'type') if part is element else _CHILDREN[part.tag]
        for key in part.attrib:
            if key not in attributes:
                raise UrdfError(f'{where}: <{part.tag}> has the attribute {key}, which is not '
                                'known: remove it; known are ' + ', '.join(attributes))


def _axis(constraint: Element, tag: str, default: tuple[float, ...]) -> tuple[float, ...]:
    element = constraint.child(tag)
    axis = default if element is None else element.finite('xyz', default)
    if not any(axis):
        raise UrdfError(f'{constraint.where}: its <{tag}> is zero: give it a direction')
    return axis


def _turn_z_to(axis: np.ndarray) -> np.ndarray:
    """Return the smallest rotation that turns the z axis to an axis of any length."""
    x, y, z = axis / np.abs(axis).max()
    across = float(np.hypot(x, y))
    # About y if the axes are parallel.
    normal = np.array([-y, x, 0.0]) / across if across else np.array([0.0, 1.0, 0.0])
    return rotation(float(np.arctan2(across, z)) * normal)


def constraint_parts(constraint: Constraint) -> tuple[str, dict[str, Mapping[str, str] | None]]:
    """Return the type of a <constraint>, and the attributes of its children; None: no child."""
    kind = next(name for name, kind in TYPES.items() if kind == constraint.kind)
    axis = {'xyz': '0.0 0.0 1.0'} if kind == 'revolute' else None
    parts: dict[str, Mapping[str, str] | None] = {}
    for end, link, T in (('parent', constraint.link_a, constraint.placement_a),
                         ('child', constraint.link_b, constraint.placement_b)):
        parts[end] = {'link': link}
        parts[f'{end}_origin'] = {'xyz': words(T[:3, 3]),
                                  'rpy': words(rpy_from_rotation(T[:3, :3]))}
        parts[f'{end}_axis'] = axis
    parts['length'] = None if constraint.length is None else {'value': words([constraint.length])}
    return kind, parts


def words(numbers: Any) -> str:
    """Return numbers as text, exact to the last bit."""
    return ' '.join(repr(float(x) + 0.0) for x in numbers)
