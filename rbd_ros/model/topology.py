# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tree of links and joints, and the joints that mimic others."""

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from graphlib import CycleError, TopologicalSorter

from rbd_ros._internal.text import arrows
from rbd_ros.errors import ModelError
from rbd_ros.model.description import LARGEST, Link
from rbd_ros.model.joints import Joint


def require_unique(what: str, names: Iterable[str]) -> None:
    """Raise ModelError if a name is empty or not unique."""
    for name, count in Counter(names).items():
        if not name:
            raise ModelError(f'a {what} has no name')
        if count > 1:
            raise ModelError(f"{count} {what}s are called '{name}'; names must be unique")


def order_tree(links: Sequence[Link],
               joints: Sequence[Joint]) -> tuple[tuple[Link, ...], tuple[Joint, ...]]:
    """Return links and joints depth-first, siblings as given; raise ModelError unless a tree."""
    require_unique('link', [link.name for link in links])
    require_unique('joint', [joint.name for joint in joints])
    by_name = {link.name: link for link in links}
    leading_to: dict[str, Joint] = {}
    leaving: dict[str, list[Joint]] = {link.name: [] for link in links}
    for joint in joints:
        for end in (joint.parent, joint.child):
            if end not in by_name:
                raise ModelError(f"joint '{joint.name}' names link '{end}', which is not there")
        if joint.parent == joint.child:
            raise ModelError(f"joint '{joint.name}' joins link '{joint.child}' to itself")
        if joint.child in leading_to:
            raise ModelError(
                f"link '{joint.child}' has two parents, '{leading_to[joint.child].parent}' and "
                f"'{joint.parent}', which closes a loop: keep one of the joints "
                f"'{leading_to[joint.child].name}' and '{joint.name}', and replace the other by a "
                'constraint')
        leading_to[joint.child] = joint
        leaving[joint.parent].append(joint)
    roots = [link.name for link in links if link.name not in leading_to]
    if len(roots) > 1:
        raise ModelError(f'there are {len(roots)} root links, ' + ', '.join(map(repr, roots[:10]))
                         + '; join them by fixed joints or remove those that are not used')
    ordered, waiting = [], leaving[roots[0]][::-1] if roots else []
    while waiting:
        ordered.append(waiting.pop())
        waiting += leaving[ordered[-1].child][::-1]
    if len(ordered) < len(joints):
        reached = {joint.child for joint in ordered}
        lost = next(joint.child for joint in joints if joint.child not in reached)
        where = 'that the root does not reach' if roots else 'and none of them is a root'
        raise ModelError(f'links form a cycle {where}: ' + _cycle(lost, leading_to))
    return (tuple(by_name[name] for name in roots + [joint.child for joint in ordered]),
            tuple(ordered))


def _cycle(name: str, leading_to: Mapping[str, Joint]) -> str:
    """Return, in words, the cycle in which the ancestors of a link end."""
    path: dict[str, int] = {}
    while name not in path:
        path[name] = len(path)
        name = leading_to[name].parent
    cycle = list(path)[path[name]:]
    return arrows([*reversed(cycle), cycle[-1]])


def resolve_mimics(
        joints: Sequence[Joint]) -> tuple[dict[str, tuple[str, float, float]], list[Joint]]:
    """Return leader, multiplier and offset of each mimic, and the mimics of unknown joints."""
    # Chains are composed: no leader is a mimic.
    by_name = {joint.name: joint for joint in joints}
    copies = {joint.name: joint.mimic for joint in joints if joint.mimic and joint.kind != 'fixed'}
    unknown = [by_name[name] for name, mimic in copies.items() if mimic.joint not in by_name]
    for joint in unknown:
        del copies[joint.name]
    leaders = TopologicalSorter({name: [mimic.joint] for name, mimic in copies.items()})
    try:
        # Each comes after the one that it mimics.
        ordered = [name for name in leaders.static_order() if name in copies]
    except CycleError as error:
        raise ModelError('joints mimic each other in a circle: '
                         + arrows(error.args[1][::-1])) from None
    resolved: dict[str, tuple[str, float, float]] = {}
    for name in ordered:
        mimic = copies[name]
        leader, multiplier, offset = resolved.get(mimic.joint, (mimic.joint, 1.0, 0.0))
        offset = mimic.multiplier * offset + mimic.offset
        multiplier = mimic.multiplier * multiplier
        if not (abs(multiplier) <= LARGEST and abs(offset) <= LARGEST):
            raise ModelError(f"joint '{name}': its mimic multiplier or offset is not finite or "
                             f'beyond {LARGEST:.0e}')
        for one in (by_name[name], by_name[leader]):
            if one.nv > 1:
                raise ModelError(f"joint '{name}' mimics '{leader}', but '{one.name}' is "
                                 f'{one.kind}: only joints with one coordinate can mimic or be '
                                 'mimicked')
        resolved[name] = (leader, multiplier, offset)
    return {name: resolved[name] for name in copies}, unknown
