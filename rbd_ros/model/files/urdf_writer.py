# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Writes models as URDF.

If the text that the model was read from is given, it is edited: only what differs between that
robot and this one is rewritten; shapes, comments and everything else stay.

"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from os import PathLike
import warnings

from lxml import etree
import numpy as np

from rbd_ros._internal.atomic_write import whole_files
from rbd_ros._internal.text import listed
from rbd_ros.errors import ModelError, ModelWarning
from rbd_ros.model.arguments import check_model
from rbd_ros.model.description import Link
from rbd_ros.model.files.urdf import load_urdf_string, read_file, SINGLE, URDF_KINDS
from rbd_ros.model.files.xml_elements import decode, parse
from rbd_ros.model.joints import DRIVE, Joint, KINDS
from rbd_ros.model.model import Model
from rbd_ros.model.se3 import rpy_from_rotation

_TYPES = {kind: name for name, kind in URDF_KINDS.items()}
# Coefficients of drives that URDF has, for joints with one velocity.
_DYNAMICS = ('damping', 'friction')
_INDENT = '  '

Attributes = Mapping[str, str] | None


def save_urdf(model: Model, path: str | PathLike[str], *,
              source: str | bytes | PathLike[str] | None = None) -> None:
    """
    Write a robot to a URDF file, completely or not at all.

    `load_urdf` reads the same robot from it, except for gravity and most coefficients of drives:
    URDF has only ``damping`` and ``friction`` of joints with one velocity;
    `rbd_ros.model.save_drives` writes all of them. A load becomes a link ``<link>/payload`` with a
    fixed joint, which is read as a load.

    Parameters
    ----------
    model : Model
        The robot.
    path : str or path-like
        The file; an existing one is replaced.
    source : str, bytes or path-like, optional
        The URDF, or the path of the URDF or xacro file, that the robot was read from before it was
        changed. Everything that dynamics does not need is copied from it, and everything that was
        not changed stays as it was there. None: the file has only what dynamics needs.

    Raises
    ------
    ModelError
        If URDF cannot express a joint; the message names it.
    UrdfError
        If ``source`` cannot be read.
    OSError
        If the file cannot be written.

    Warns
    -----
    ModelWarning
        About coefficients of drives that URDF does not have.

    """
    check_model(model)
    text = _text(model, source)
    unsaid = _unsaid_drives(model)
    if unsaid:
        warnings.warn(f'URDF cannot hold {listed(unsaid)}: use save_drives as well', ModelWarning,
                      stacklevel=2)
    with whole_files(path) as (draft,):
        draft.write_text(text, encoding='utf-8')


def _unsaid_drives(model: Model) -> list[str]:
    """Return coefficients of drives that URDF does not have, with the joints that have them."""
    result = []
    for label in DRIVE:
        names = [joint.name for joint in model.joints if any(getattr(joint, label))
                 and not (label in _DYNAMICS and joint.kind in SINGLE)]
        if names:
            result.append(f'the {label} of ' + ', '.join(names))
    return result


def _text(model: Model, source: str | bytes | PathLike[str] | None) -> str:
    """Return the document."""
    links: dict[str, Link] = {}
    joints: dict[str, Joint] = {}
    if source is None:
        root = etree.Element('robot')
    else:
        text = _read(source)
        root = parse(decode(text), comments=True)
        with warnings.catch_warnings():
            warnings.simplefilter('ignore', ModelWarning)
            before = load_urdf_string(text)
        links = {link.name: link for link in before.links}
        joints = {joint.name: joint for joint in before.joints}
    if root.get('name') != model.name:
        root.set('name', model.name)
    for tag, kept in (('link', model.link_names), ('joint', model.joint_names)):
        for element in list(root.iterchildren(tag)):
            if element.get('name') not in kept:
                _remove(element)
    elements = {(one.tag, one.get('name')): one for one in root.iterchildren('link', 'joint')}
    try:
        for link in model.links:
            _write_link(_element(root, elements, 'link', link.name), link, links.get(link.name))
        for joint in model.joints:
            _write_joint(_element(root, elements, 'joint', joint.name), joint,
                         joints.get(joint.name))
    except ValueError as error:
        if isinstance(error, ModelError):
            raise
        raise ModelError(f"robot '{model.name}' has a name that XML cannot hold: "
                         f'{error}') from None
    # Including the comments around the outermost element.
    parts = [*reversed(list(root.itersiblings(preceding=True))), root, *root.itersiblings()]
    return '\n'.join(['<?xml version="1.0" encoding="utf-8"?>', *(
        etree.tostring(part, encoding='unicode', with_tail=False) for part in parts), ''])


def _read(source: str | bytes | PathLike[str]) -> str | bytes:
    """Return a document that is given as text, or by its path."""
    if isinstance(source, bytes) or (isinstance(source, str)
                                     and source.lstrip('\ufeff \t\r\n').startswith('<')):
        return source
    return read_file(source)


# -- Links and joints. ----------------------------------------------------------------------------

def _write_link(element: etree._Element, link: Link, before: Link | None) -> None:
    """Write the inertia of a link to its element, if that has another."""
    if before is not None and (link.mass == before.mass and np.array_equal(link.com, before.com)
                               and np.array_equal(link.inertia, before.inertia)):
        return
    old = element.find('inertial')
    if not (link.mass or np.any(link.com) or np.any(link.inertia)):
        if old is not None:
            _remove(old)
        return
    inertial = _append(element, 'inertial') if old is None else old
    (xx, xy, xz), (_, yy, yz), (_, _, zz) = link.inertia.tolist()
    _set(inertial, 'origin', {'xyz': _words(link.com), 'rpy': '0 0 0'})
    _set(inertial, 'mass', {'value': _words([link.mass])})
    _set(inertial, 'inertia', {key: _words([value]) for key, value in zip(
        ('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), (xx, xy, xz, yy, yz, zz))})


def _write_joint(element: etree._Element, joint: Joint, before: Joint | None) -> None:
    """Write a joint to its element, where that differs."""
    if joint.kind not in _TYPES:
        raise ModelError(f"joint '{joint.name}' is {joint.kind}: URDF has no such joint; its "
                         'types are ' + ', '.join(_TYPES.values()))
    element.set('type', _TYPES[joint.kind])
    for tag, (attributes, labels) in _PARTS.items():
        if before is None or any(not np.array_equal(getattr(joint, label), getattr(before, label))
                                 for label in labels):
            _set(element, tag, attributes(joint))


def _origin(joint: Joint) -> Attributes:
    T = joint.placement
    if np.array_equal(T, np.eye(4)):
        return None
    return {'xyz': _words(T[:3, 3]), 'rpy': _words(rpy_from_rotation(T[:3, :3]))}


def _axis(joint: Joint) -> Attributes:
    return {'xyz': _words(joint.axis)} if KINDS[joint.kind].axes else None


def _limit(joint: Joint) -> Attributes:
    bounded = [np.isfinite(x) for x in (*joint.lower, *joint.upper)]
    limits = {name: _words(getattr(joint, name)) for name in ('effort', 'velocity')
              if np.all(np.isfinite(getattr(joint, name))) and joint.nv}
    if joint.kind in ('revolute', 'prismatic') and all(bounded):
        return {'lower': _words(joint.lower), 'upper': _words(joint.upper), **limits}
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
    return {label: _words(value) for label, value in zip(_DYNAMICS, values)}


def _mimic(joint: Joint) -> Attributes:
    mimic = joint.mimic
    if mimic is None or joint.kind not in SINGLE:
        return None
    return {'joint': mimic.joint, 'multiplier': _words([mimic.multiplier]),
            'offset': _words([mimic.offset])}


# The elements of a joint, and the attributes of the joint that they depend on.
_PARTS: dict[str, tuple[Callable[[Joint], Attributes], tuple[str, ...]]] = {
    'parent': (lambda joint: {'link': joint.parent}, ('parent',)),
    'child': (lambda joint: {'link': joint.child}, ('child',)),
    'origin': (_origin, ('placement',)),
    'axis': (_axis, ('kind', 'axis')),
    'limit': (_limit, ('kind', 'lower', 'upper', 'velocity', 'effort')),
    'dynamics': (_dynamics, ('kind', *_DYNAMICS)),
    'mimic': (_mimic, ('kind', 'mimic'))}


def _words(numbers: np.ndarray | tuple[float, ...] | list[float]) -> str:
    """Return numbers as text that is read as the same numbers."""
    return ' '.join(repr(float(x) + 0.0) for x in numbers)


# -- XML. -----------------------------------------------------------------------------------------

def _element(root: etree._Element, elements: dict[tuple[str, str], etree._Element], tag: str,
             name: str) -> etree._Element:
    """Return the link or joint of a name, a new one if there is none."""
    if (tag, name) not in elements:
        element = elements[tag, name] = _append(root, tag)
        element.set('name', name)
    return elements[tag, name]


def _set(parent: etree._Element, tag: str, attributes: Attributes) -> None:
    """Set the attributes of a child; None: remove it."""
    child = parent.find(tag)
    if attributes is None:
        if child is not None:
            _remove(child)
        return
    if child is None:
        child = _append(parent, tag)
    for key, value in attributes.items():
        child.set(key, value)


def _append(parent: etree._Element, tag: str) -> etree._Element:
    """Return a new last child of an element, on a line of its own."""
    depth = sum(1 for _ in parent.iterancestors())
    line = '\n' + _INDENT * depth
    child = etree.SubElement(parent, tag)
    before = child.getprevious()
    if before is None:
        parent.text = line + _INDENT
    else:
        before.tail = line + _INDENT
    child.tail = line
    return child


def _remove(element: etree._Element) -> None:
    """Remove an element, and the space behind it."""
    element.getparent().remove(element)
