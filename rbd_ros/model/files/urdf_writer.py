# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Writes models as URDF, of an earlier document only the elements that changed since."""

from collections.abc import Callable, Mapping
from os import PathLike
from typing import Any
import warnings

from lxml import etree
import numpy as np

from rbd_ros._internal.atomic_write import whole_files
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, ModelWarning
from rbd_ros.model.arguments import check_model
from rbd_ros.model.constraints import with_constraints
from rbd_ros.model.description import Link
from rbd_ros.model.files.constraint_elements import constraint_parts, words
from rbd_ros.model.files.urdf import model_of_document, read_file
from rbd_ros.model.files.urdf_document import INERTIA, rotation, SINGLE, URDF_KINDS
from rbd_ros.model.files.xml_elements import decode, Element, is_text, parse
from rbd_ros.model.joints import DRIVE, Joint, KINDS, NEW_LIMITS
from rbd_ros.model.loops import Constraint
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rpy_from_rotation

_TYPES = {kind: name for name, kind in URDF_KINDS.items()}
# Drive coefficients that URDF supports, for joints with one velocity.
_DYNAMICS = ('damping', 'friction')
_INDENT = '  '
# Attributes that a child element may lack, and which then mean something else.
_OPTIONAL = frozenset(('quat_xyzw', 'effort', 'velocity', *NEW_LIMITS))

Attributes = Mapping[str, str] | None


def save_urdf(model: Model, path: str | PathLike[str], *,
              source: str | bytes | PathLike[str] | None = None) -> None:
    """
    Write a robot to a URDF file, completely or not at all.

    `load_urdf` reads the same robot from it, except for gravity and most drive coefficients: URDF
    has only ``damping`` and ``friction`` of joints with one velocity; a ModelWarning lists others
    that are not zero, and `rbd_ros.model.save_drives` writes all. A payload becomes a link
    ``<link>/payload`` with a fixed joint, which `load_urdf` recognizes. Constraints become
    elements <constraint>; a ModelWarning is raised if `load_urdf` would choose other independent
    joints.

    Parameters
    ----------
    model, path : Model, str or path-like
        An existing file is replaced.
    source : str, bytes or path-like, optional
        The URDF, or the path of the URDF or xacro file, that the robot was read from before it was
        changed; its shapes, comments and unchanged elements are kept. Default: write only the
        elements needed for dynamics.

    Raises
    ------
    ModelError
        If URDF cannot express a joint; the message names it.
    UrdfError
        If ``source`` cannot be read.

    """
    check_model(model)
    text = _text(model, source)
    notes = []
    lost = [f'the {label} of ' + ', '.join(names) for label in DRIVE if (names := [
        joint.name for joint in model.joints if any(getattr(joint, label))
        and not (label in _DYNAMICS and joint.kind in SINGLE)])]
    if lost:
        notes.append(f'URDF cannot hold {listed(lost)}: use save_drives as well')
    unlimited = [joint.name for joint in model.joints if (joint.kind in ('revolute', 'prismatic')
                 and not np.all(np.isfinite((joint.lower, joint.velocity, joint.effort))))
                 or (joint.kind == 'continuous'
                     and np.isfinite(joint.velocity) != np.isfinite(joint.effort))]
    if unlimited:
        notes.append(f'joints without limits, {listed(unlimited)}: other programs reject revolute '
                     'and prismatic joints unless lower, upper, velocity and effort are given, '
                     'and continuous ones with only one of the last two')
    chosen = with_constraints(model.unconstrained, model.constraints)
    if chosen.velocity_names != model.velocity_names:
        notes.append(f'URDF cannot hold the independent joints {listed(model.velocity_names)}: '
                     f'the robot of this file has {listed(chosen.velocity_names)}; give joints '
                     'without a motor an effort limit of 0, or use with_constraints after '
                     'reading it')
    if model.loops is not None and np.isfinite(model.loops.condition_limit):
        notes.append('URDF cannot hold the condition_limit of closed loops: use with_constraints '
                     'after reading it')
    for note in notes:
        warnings.warn(note, ModelWarning, stacklevel=2)
    with whole_files(path) as (draft,):
        draft.write_text(text, encoding='utf-8')


def _text(model: Model, source: str | bytes | PathLike[str] | None) -> str:
    before = None
    if source is None:
        root = etree.Element('robot')
    else:
        content: Any = source if is_text(source) else read_file(source)  # type: ignore[arg-type]
        root = parse(decode(content), comments=True)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            before = model_of_document(root)
    if root.get('version') in (None, '1.0', '1.1') and any(
            np.any(np.isfinite(getattr(joint, label))) for joint in model.joints
            for label in NEW_LIMITS):
        root.set('version', '1.2')
    if root.get('name') != model.name:
        root.set('name', model.name)
    try:
        for tag, write in _WRITERS.items():
            parts = {part.name: part for part in getattr(model, f'{tag}s')}
            old = {part.name: part for part in getattr(before, f'{tag}s', ())}
            elements = {element.get('name'): element for element in root.iterchildren(tag)}
            for name in elements.keys() - parts.keys():
                root.remove(elements[name])
            for name, part in parts.items():
                element = elements[name] if name in elements else append(root, tag, name=name)
                write(element, part, old.get(name))
        if source is None and any(not {'effort', 'velocity'} <= {*limit.keys()}
                                  for limit in root.iter('limit')):
            root.set('version', '1.2')      # before, both are required
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"robot '{model.name}' has a name that XML cannot hold: "
                         f'{error}') from None
    return document(root)


def document(root: etree._Element) -> str:
    """Return the text of a document, with the comments around its root element."""
    parts = [*reversed(list(root.itersiblings(preceding=True))), root, *root.itersiblings()]
    return '\n'.join(['<?xml version="1.0" encoding="utf-8"?>', *(
        etree.tostring(part, encoding='unicode', with_tail=False) for part in parts), ''])


def with_angles(root: etree._Element) -> None:
    """Write all orientations of a document as rpy, which every program reads."""
    for origin in root.iter('origin'):
        if origin.get('quat_xyzw') is not None:
            R = rotation(Element(origin, f'<{origin.getparent().tag}>'), [])
            del origin.attrib['quat_xyzw']
            origin.set('rpy', words(rpy_from_rotation(R)))


# -- Links and joints. ----------------------------------------------------------------------------
def write_link(element: etree._Element, link: Link, before: Link | None = None) -> None:
    """Write the inertia of a link to its element if it differs from that of ``before``."""
    if before == link:
        return
    old = element.find('inertial')
    if not (link.mass or np.any(link.com) or np.any(link.inertia)):
        if old is not None:
            element.remove(old)
        return
    inertial = append(element, 'inertial') if old is None else old
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = link.inertia.tolist()
    set_child(inertial, 'origin', {'xyz': words(link.com), 'rpy': '0 0 0'})
    set_child(inertial, 'mass', {'value': words([link.mass])})
    set_child(inertial, 'inertia', {key: words([value]) for key, value in zip(
        INERTIA, (xx, xy, xz, yy, yz, zz))})


def write_joint(element: etree._Element, joint: Joint, before: Joint | None = None) -> None:
    """Write to an element the attributes of a joint that differ from those of ``before``."""
    if joint.kind not in _TYPES:
        raise ModelError(f"joint '{joint.name}' is {joint.kind}: URDF has no such joint; its "
                         'types are ' + ', '.join(_TYPES.values()))
    if before is not None and element.get('type') != _TYPES[before.kind]:
        before = None       # the reader fixed it: a mimic of a fixed joint
    element.set('type', _TYPES[joint.kind])
    for tag, (attributes, labels) in _PARTS.items():
        if before is None or any(not np.array_equal(getattr(joint, label), getattr(before, label))
                                 for label in labels):
            set_child(element, tag, attributes(joint))


def _write_constraint(element: etree._Element, constraint: Constraint,
                      before: Constraint | None) -> None:
    """Write a constraint to its element if it differs from ``before``."""
    if before == constraint:
        return
    kind, parts = constraint_parts(constraint)
    element.set('type', kind)
    for tag, attributes in parts.items():
        set_child(element, tag, attributes)


def _origin(joint: Joint) -> Attributes:
    T = joint.placement
    if np.array_equal(T, np.eye(4)):
        return None
    return {'xyz': words(T[:3, 3]), 'rpy': words(rpy_from_rotation(T[:3, :3]))}


def _limit(joint: Joint) -> Attributes:
    bounded = [np.isfinite(x) for x in (*joint.lower, *joint.upper)]
    limits = {name: words(getattr(joint, name)) for name in ('effort', 'velocity', *NEW_LIMITS)
              if np.all(np.isfinite(getattr(joint, name))) and joint.nv}
    if 'acceleration' in limits and 'deceleration' not in limits:
        limits['deceleration'] = 'inf'      # else it would be read as that of the acceleration
    if joint.kind in ('revolute', 'prismatic') and all(bounded):
        return {'lower': words(joint.lower), 'upper': words(joint.upper), **limits}
    if any(bounded) or (limits and joint.kind != 'continuous'):
        raise ModelError(f"joint '{joint.name}': URDF cannot hold the limits of this {joint.kind} "
                         f'joint, lower {joint.lower}, upper {joint.upper}, velocity '
                         f'{joint.velocity}, effort {joint.effort}: revolute and prismatic joints '
                         'have both or nothing, continuous ones no positions, others no limits')
    return limits or None


def _dynamics(joint: Joint) -> Attributes:
    values = [getattr(joint, label) for label in _DYNAMICS]
    if joint.kind not in SINGLE or not np.any(values):
        return None
    return {label: words(value) for label, value in zip(_DYNAMICS, values)}


def _mimic(joint: Joint) -> Attributes:
    mimic = joint.mimic
    if mimic is None or joint.kind not in SINGLE:
        return None
    return {'joint': mimic.joint, 'multiplier': words([mimic.multiplier]),
            'offset': words([mimic.offset])}


# How each child element is made, and the fields of a joint that it depends on.
_PARTS: dict[str, tuple[Callable[[Joint], Attributes], tuple[str, ...]]] = {
    'parent': (lambda joint: {'link': joint.parent}, ('parent',)),
    'child': (lambda joint: {'link': joint.child}, ('child',)),
    'origin': (_origin, ('placement',)),
    'axis': (lambda joint: {'xyz': words(joint.axis)} if KINDS[joint.kind].axes else None,
             ('kind', 'axis')),
    'limit': (_limit, ('kind', 'lower', 'upper', 'velocity', 'effort', *NEW_LIMITS)),
    'dynamics': (_dynamics, ('kind', *_DYNAMICS)),
    'mimic': (_mimic, ('kind', 'mimic'))}


# How elements with a name are written, given those of the same names before.
_WRITERS: dict[str, Callable[[etree._Element, Any, Any], None]] = {
    'link': write_link, 'joint': write_joint, 'constraint': _write_constraint}


# -- XML. -----------------------------------------------------------------------------------------
def set_child(parent: etree._Element, tag: str, attributes: Attributes) -> None:
    """Set the attributes of a child element; None: remove the child."""
    child = parent.find(tag)
    if attributes is None:
        if child is not None:
            parent.remove(child)
        return
    if child is None:
        child = append(parent, tag)
    for key in _OPTIONAL.intersection(child.keys()).difference(attributes):
        del child.attrib[key]
    for key, value in attributes.items():
        child.set(key, value)


def append(parent: etree._Element, tag: str, **attributes: str) -> etree._Element:
    """Append a child element on a new line and return it."""
    depth = sum(1 for _ in parent.iterancestors())
    line = '\n' + _INDENT * depth
    child = etree.SubElement(parent, tag, attributes)
    before = child.getprevious()
    if before is None:
        parent.text = line + _INDENT
    else:
        before.tail = line + _INDENT
    child.tail = line
    return child
