# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
URDF text to a model.

urdf_parser_py reads the numbers. Before it sees the document, document types and entities are
refused, and everything that dynamics does not need (visuals, collisions, transmissions, Gazebo's
elements) is dropped unread: no mesh is opened, and no mistake in a colour stops a robot.

"""

import codecs
from pathlib import Path
import re

from lxml import etree
import numpy as np
from rbd_ros.changes import with_floating_base
from rbd_ros.description import Link
from rbd_ros.errors import ModelError, UrdfError
from rbd_ros.joints import Joint, Mimic
from rbd_ros.model import build_model, STANDARD_GRAVITY
from rbd_ros.spatial import pose, rotation_from_rpy
from urdf_parser_py import urdf

# The longest text that is read, bytes: forty times the largest robot that was ever seen.
LARGEST_TEXT = 64 * 2 ** 20

# What dynamics needs: for every element the attributes and the children that are kept.
_KEPT = {
    'link': (('name',), ('inertial',)),
    'inertial': ((), ('origin', 'mass', 'inertia')),
    'mass': (('value',), ()),
    'inertia': (('ixx', 'ixy', 'ixz', 'iyy', 'iyz', 'izz'), ()),
    'joint': (('name', 'type'),
              ('origin', 'axis', 'parent', 'child', 'limit', 'dynamics', 'mimic')),
    'origin': (('xyz', 'rpy'), ()),
    'axis': (('xyz',), ()),
    'parent': (('link',), ()),
    'child': (('link',), ()),
    'limit': (('lower', 'upper', 'effort', 'velocity'), ()),
    'dynamics': (('damping', 'friction'), ()),
    'mimic': (('joint', 'multiplier', 'offset'), ()),
}
# The attributes that are not numbers.
_WORDS = ('name', 'type', 'link', 'joint')


def load_urdf(path, *, floating_base=False, gravity=STANDARD_GRAVITY, strict=False):
    """
    Read a robot from a URDF file.

    Parameters
    ----------
    path : str or path-like
        The file. Run xacro on .xacro files first.
    floating_base : bool
        Let the root link float in a world, as `with_floating_base` does.
    gravity : array_like, shape (3,)
        Acceleration of gravity in the root link's frame, or in the world's with a floating base,
        m/s^2.
    strict : bool
        Refuse what otherwise is warned of: inertias that no body can have, joints that mimic one
        which is not there, robots without links.

    Returns
    -------
    Model
        The robot, its joints in document order, depth-first.

    Raises
    ------
    UrdfError
        If the file cannot be read, or is wrong; the message names the link or joint.

    Warns
    -----
    ModelWarning
        Of what is odd but can be computed.

    """
    try:
        with Path(path).open('rb') as file:
            text = file.read(LARGEST_TEXT + 1)
    except OSError as error:
        raise UrdfError(f'{path} cannot be read: {error.strerror}') from None
    except (TypeError, ValueError) as error:
        raise UrdfError(f'{path!r} is no path of a file: {error}') from None
    try:
        return load_urdf_string(text, floating_base=floating_base, gravity=gravity,
                                strict=strict)
    except UrdfError as error:
        raise UrdfError(f'{path}: {error}') from None


def load_urdf_string(text, *, floating_base=False, gravity=STANDARD_GRAVITY, strict=False):
    """
    Read a robot from the text of a URDF.

    Parameters
    ----------
    text : str or bytes
        The document; bytes may have a byte-order mark or declare their encoding.
    floating_base, gravity, strict
        As for `load_urdf`.

    Returns
    -------
    Model
        The robot, its joints in document order, depth-first.

    Raises
    ------
    UrdfError
        If the text is not a URDF, or is wrong; the message names the link or joint.

    Warns
    -----
    ModelWarning
        Of what is odd but can be computed.

    """
    root = _parse(_decode(text))
    notes, links, joints = [], [], []
    for element in root.iterchildren('link', 'joint'):
        where = f"{element.tag} '{element.get('name', '')}'"
        if not element.get('name'):
            raise UrdfError(f'the <{element.tag}> on line {element.sourceline} has no name')
        if element.tag == 'joint' and element.get('type') not in _KINDS:
            raise UrdfError(f"{where}: its type is '{element.get('type', '')}', expected one of "
                            + ', '.join(_KINDS))
        kept = _keep(element, where, notes)
        try:
            # One element at a time, so that a mistake can be told by name.
            if element.tag == 'link':
                links.append(_link(urdf.Link.from_xml_string(etree.tostring(kept))))
            else:
                joints.append(_joint(urdf.Joint.from_xml_string(etree.tostring(kept))))
        except Exception as error:  # urdf_parser_py also raises plain ones and assertions
            what = ' '.join(str(error).split())
            missing = re.search(
                r'(\w+)(?:\[.*\])?: Required (?:attribute|element) not set in XML: (\w+)', what)
            if missing:
                what = f'<{missing[1]}> has no {missing[2]}'
            raise UrdfError(f'{where}, line {element.sourceline}: {what}') from None
    try:
        model = build_model(root.get('name') or 'robot', links, joints, gravity=gravity,
                            strict=strict, notes=notes)
        return with_floating_base(model) if floating_base else model
    except ModelError as error:
        raise UrdfError(str(error)) from None


def _decode(text):
    """Return the document as text without a declaration, refusing what must not be parsed."""
    if not isinstance(text, (str, bytes)):
        raise UrdfError(f'the text must be str or bytes, got {type(text).__name__}')
    if len(text) > LARGEST_TEXT:
        raise UrdfError(f'the text is longer than {LARGEST_TEXT} bytes, the most that is read')
    if isinstance(text, bytes):
        encoding = 'utf-8-sig'
        declared = re.match(rb'\s*<\?xml[^>]*encoding\s*=\s*["\']([A-Za-z0-9._-]+)["\']', text)
        if text.startswith((codecs.BOM_UTF16_LE, codecs.BOM_UTF16_BE)):
            encoding = 'utf-16'
        elif declared and not text.startswith(codecs.BOM_UTF8):
            encoding = declared.group(1).decode()
        try:
            text = text.decode(encoding)
        except (LookupError, UnicodeError) as error:
            raise UrdfError(f'the text cannot be decoded as {encoding}: {error}') from None
    text = text.lstrip('\ufeff \t\r\n')
    if not text.startswith('<'):
        raise UrdfError('this is not XML: a URDF begins with <robot>, this with '
                        f'{text[:60]!r}; pass the text of the description, not its path')
    if '<!DOCTYPE' in text or '<!ENTITY' in text:
        raise UrdfError('document types and entities are refused: remove <!DOCTYPE ...>')
    return re.sub(r'\A<\?xml[^>]*\?>', '', text)


def _parse(text):
    parser = etree.XMLParser(resolve_entities=False, load_dtd=False, no_network=True,
                             remove_comments=True, remove_pis=True, encoding='utf-8')
    try:
        root = etree.fromstring(text.encode('utf-8'), parser)
    except (etree.XMLSyntaxError, UnicodeEncodeError, ValueError) as error:
        raise UrdfError(f'the text is not well-formed XML: {error}') from None
    if root.tag != 'robot':
        hint = ': this is SDF, not URDF' if root.tag == 'sdf' else ''
        raise UrdfError(f'the outermost element is <{root.tag}>, expected <robot>{hint}')
    for element in root.iter('{*}*'):
        if isinstance(element.tag, str) and 'xacro' in element.tag.partition('}')[0]:
            raise UrdfError(f'<xacro:{element.tag.partition("}")[2]}> on line '
                            f'{element.sourceline}: run xacro on the file first')
    return root


def _keep(element, where, notes):
    """Return a copy of an element with no more than dynamics needs."""
    attributes, children = _KEPT[element.tag]
    kept = etree.Element(element.tag, {name: element.get(name) for name in attributes
                                       if element.get(name) is not None})
    for name, value in kept.attrib.items():
        if name in _WORDS:
            if '${' in value or '$(' in value:
                raise UrdfError(f'{where}: {name}="{value}" is left over from xacro: run xacro on '
                                'the file first')
        else:
            _check_numbers(f'{where}: <{element.tag} {name}="{value}">', value,
                           3 if name in ('xyz', 'rpy') else 1)
    if element.tag == 'mass' and 'value' not in kept.attrib:
        raise UrdfError(f'{where}: <mass> has no value')
    if element.tag == 'limit':
        for missing in sorted({'effort', 'velocity'} - set(kept.attrib)):
            kept.set(missing, 'inf')
            notes.append(f'{where}: its <limit> has no {missing}; none is assumed')
    if element.tag == 'joint' and element.get('type') in ('planar', 'floating'):
        for ignored in element.iterchildren('dynamics', 'mimic'):
            notes.append(f'{where}: the <{ignored.tag}> of a {element.get("type")} joint is '
                         'ignored; only joints with one coordinate have that')
    for child in element.iterchildren(*children) if children else ():
        if kept.find(child.tag) is not None:
            raise UrdfError(f'{where} has two <{child.tag}> elements')
        kept.append(_keep(child, where, notes))
    if element.get('type') in ('revolute', 'prismatic') and kept.find('limit') is None:
        notes.append(f'{where}: it has no <limit>; it is taken as unlimited')
    return kept


def _check_numbers(where, text, count):
    """Refuse an attribute that does not hold ``count`` numbers; NaN and infinity are numbers."""
    try:
        found = len([float(word) for word in text.split()])
    except ValueError:
        found = 0
    if found != count or '_' in text:
        raise UrdfError(f'{where} must hold {count} number{"s" if count > 1 else ""}')


def _placement(origin):
    if origin is None:
        return np.eye(4)
    return pose(rotation_from_rpy(origin.rpy or (0.0, 0.0, 0.0)), origin.xyz or (0.0, 0.0, 0.0))


def _link(link):
    if link.inertial is None:
        return Link(link.name)
    T = _placement(link.inertial.origin)
    inertia = np.zeros((3, 3))
    if link.inertial.inertia is not None:
        inertia = np.array(link.inertial.inertia.to_matrix())
    inertia = T[:3, :3] @ inertia @ T[:3, :3].T
    return Link(link.name, link.inertial.mass, T[:3, 3], 0.5 * (inertia + inertia.T))


# What URDF calls a kind of joint, and what it is called here.
_KINDS = {'fixed': 'fixed', 'revolute': 'revolute', 'continuous': 'continuous',
          'prismatic': 'prismatic', 'floating': 'free', 'planar': 'planar'}


def _joint(joint):
    extra = {}
    if joint.axis is not None:
        extra['axis'] = np.array(joint.axis, float)
    if joint.type in ('revolute', 'continuous', 'prismatic'):
        if joint.limit is not None:
            extra.update(effort=(joint.limit.effort,), velocity=(joint.limit.velocity,))
            if joint.type != 'continuous':
                extra.update(lower=(joint.limit.lower,), upper=(joint.limit.upper,))
        if joint.dynamics is not None:
            extra.update(damping=(joint.dynamics.damping or 0.0,),
                         friction=(joint.dynamics.friction or 0.0,))
        if joint.mimic is not None:
            multiplier, offset = joint.mimic.multiplier, joint.mimic.offset
            extra['mimic'] = Mimic(joint.mimic.joint, 1.0 if multiplier is None else multiplier,
                                   0.0 if offset is None else offset)
    return Joint(joint.name, _KINDS[joint.type], joint.parent, joint.child,
                 placement=_placement(joint.origin), **extra)
