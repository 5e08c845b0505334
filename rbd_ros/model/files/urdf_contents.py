# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Finds contents of a URDF that are not used, and reads the rotor inertias of Drake."""

from lxml import etree
from rbd_ros._internal.text import counted, did_you_mean, listed, printable
from rbd_ros.model.files.urdf_document import INERTIA, SINGLE, VERSIONS
from rbd_ros.model.files.xml_elements import DECORATION, Element, tag_of, xacro_leftovers
from rbd_ros.model.joints import NEW_LIMITS

MOST_NOTES = 50
_ROTOR, _GEAR = 'drake:rotor_inertia', 'drake:gear_ratio'
# Attributes and children of each element that are used, or that do not affect dynamics.
_KNOWN = {tag: (frozenset(attributes.split()), frozenset(children.split()))
          for tag, attributes, children in (
    ('robot', 'name version', ' '.join(('link joint constraint sensor', *DECORATION))),
    ('link', 'name type', 'inertial visual collision contact surface self_filter sensor '
     'collision_checking self_collision_checking'),
    ('inertial', '', 'origin mass inertia'),
    ('origin', 'xyz rpy quat_xyzw', ''), ('mass', 'value', ''),
    ('inertia', ' '.join(INERTIA), ''),
    ('joint', 'name type dont_collapse', 'origin parent child axis limit dynamics mimic '
     f'calibration safety_controller {_ROTOR} {_GEAR}'),
    ('parent', 'link', ''), ('child', 'link', ''), ('axis', 'xyz', ''),
    ('limit', ' '.join(('lower upper effort velocity', *NEW_LIMITS)), ''),
    ('dynamics', 'damping friction', ''),
    ('mimic', 'joint multiplier offset', ''))}
# Elements that close loops, which are named but not used; see `constraint_elements` for those
# that are.
LOOPS = ('loop_joint', 'drake:ball_constraint', 'drake:linear_bushing_rpy')
_XML = '{http://www.w3.org/'


def ignored_contents(root: etree._Element) -> list[str]:
    """Return a sentence for each kind of contents that is not used, with its links or joints."""
    found: dict[tuple[str, str], dict[str, None]] = {}

    def add(what: str, element: etree._Element) -> None:
        owner = next((one for one in (element, *element.iterancestors())
                      if one.tag in ('link', 'joint', 'gazebo')), root)
        name = owner.get('name') or owner.get('reference') or ''
        found.setdefault((owner.tag, what), {})[name] = None

    def visit(element: etree._Element) -> None:
        attributes, children = _KNOWN[element.tag]
        keys = element.keys()
        unknown = [] if attributes.issuperset(keys) else [
            key for key in keys if key not in attributes and not key.startswith(_XML)]
        if unknown:
            add(f'unknown attributes of <{element.tag}> are not used: '
                f'{printable(listed(unknown), 200)}', element)
        for child in element:
            tag = child.tag
            if tag in children:
                if tag in _KNOWN:
                    visit(child)
            elif isinstance(tag, str):      # no comment
                tag = tag_of(child)
                if tag in LOOPS:
                    add(f'<{tag}> is not used: it closes a loop; use a <constraint> instead',
                        element)
                elif tag not in children and not tag.startswith('xacro:'):
                    add(f'<{printable(tag, 80)}> in <{element.tag}> is not used: it is not known'
                        + did_you_mean(tag, children, ''), element)

    visit(root)
    for joint in root.iterchildren('joint'):
        kind = joint.get('type')
        if kind in ('floating', 'planar'):
            for child in joint.iterchildren('limit', 'dynamics', 'mimic'):
                add(f'the <{child.tag}> of a {kind} joint is not used; only joints with one '
                    'coordinate support it', child)
        elif kind == 'continuous':
            for limit in joint.iterchildren('limit'):
                if any(limit.get(name, '').strip('+-0.') not in ('', 'inf')
                       for name in ('lower', 'upper')):
                    add('the lower and upper limits of a continuous joint are not used; only '
                        'revolute and prismatic joints have such limits', limit)
    for gazebo in root.iterchildren('gazebo'):
        if gazebo.find('joint') is not None:
            add('<joint> in <gazebo> is not used: it closes a loop; use a <constraint> instead',
                gazebo)
        if gazebo.find('springStiffness') is not None:
            add('<springStiffness> in <gazebo> is not used', gazebo)
    for element in xacro_leftovers(root):
        add(f'<{tag_of(element)}> is not used: it is left over from xacro', element)
    version = root.get('version')
    if version is not None and version not in VERSIONS:
        add(f'version="{printable(version, 80)}" is not known, expected one of '
            f'{", ".join(VERSIONS)}', root)
    notes = [f'{counted(tag, names) if "" not in names else f"<{tag}>"}: {what}'
             for (tag, what), names in found.items()]
    more = len(notes) - MOST_NOTES
    if more > 0:
        notes[MOST_NOTES:] = [f'{more} more kinds of contents are not used']
    return notes


def read_rotors(root: etree._Element) -> tuple[dict[str, tuple[float]], list[str]]:
    """Return Drake's rotor inertias, times squared gear ratios, by joint, and notes on others."""
    found: dict[str, tuple[float]] = {}
    notes = []
    kinds = {joint.get('name'): joint.get('type') for joint in root.iterchildren('joint')}
    holders = {holder: None for rotor in root.iter('{*}rotor_inertia') if tag_of(rotor) == _ROTOR
               for holder in rotor.iterancestors('transmission', 'joint')
               if holder.getparent() is root}
    for holder in holders:
        values = {tag: [one for one in holder.iter(etree.Element) if tag_of(one) == tag]
                  for tag in (_ROTOR, _GEAR)}
        joints = [holder] if holder.tag == 'joint' else holder.findall('joint')
        name = joints[0].get('name', '') if len(joints) == 1 else ''
        where = f"{holder.tag} '{holder.get('name')}'"
        if max(map(len, values.values())) > 1 or kinds.get(name) not in SINGLE:
            notes.append(f'{where}: its <{_ROTOR}> is not used: it does not belong to one joint '
                         'with one coordinate')
            continue
        inertia, ratio = (Element(one[0], where).number('value') if one else 1.0
                          for one in values.values())
        found[name] = (inertia * ratio ** 2,)
    return found, notes
