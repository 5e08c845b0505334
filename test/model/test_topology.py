# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The tree of links and joints is found in few steps; numbers are rows of doc/faults.md."""

from dataclasses import replace
from itertools import pairwise

import pytest
import rbd_ros
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, Mimic
from rbd_ros.model.topology import order_tree, resolve_mimics


class Name(str):
    """A name that counts how often it is compared with others."""

    compared = 0
    __hash__ = str.__hash__

    def __eq__(self, other):
        Name.compared += 1
        return str.__eq__(self, other)


def comparisons(count, make):
    """Return how many names are compared for a robot of a size."""
    names = [Name(f'n{k}') for k in range(count + 1)]
    Name.compared = 0
    make(names)
    return Name.compared


def links_and_joints(names, mimic=None, back=False):
    """Return a chain of links; every joint may copy the one before it, or the last lead back."""
    links = [Link(name, 1.0) for name in names]
    joints = [Joint(child, 'revolute', parent, child,
                    mimic=Mimic(names[k], 1.0, 0.1) if mimic and k else None)
              for k, (parent, child) in enumerate(pairwise(names))]
    if back:
        joints.append(Joint('back', 'revolute', names[-1], names[0]))
    return links, joints


def copies(names):
    """Resolve a chain of copies."""
    resolve_mimics(links_and_joints(names, mimic=True)[1])


def ring_of_copies(names):
    """Resolve copies that go round."""
    joints = links_and_joints(names, mimic=True)[1]
    joints[0] = replace(joints[0], mimic=Mimic(names[-1], 1.0, 0.0))
    with pytest.raises(rbd_ros.ModelError, match='circle'):
        resolve_mimics(joints)


def ring(names):
    """Order links that go round."""
    with pytest.raises(rbd_ros.ModelError, match='cycle'):
        order_tree(*links_and_joints(names, back=True))


def chain(names):
    """Order links in a row."""
    order_tree(*links_and_joints(names))


@pytest.mark.parametrize('make', [copies, ring_of_copies, ring, chain])
def test_fault_59_names_are_looked_up_and_not_searched_for(make):
    few, many = comparisons(500, make), comparisons(2000, make)
    # Four times as many; searching would take sixteen times.
    assert many < 6 * few + 100
    assert many < 30 * 2000


def test_fault_59_long_cycles_are_named_in_few_words():
    for make in (lambda names: order_tree(*links_and_joints(names, back=True)),
                 lambda names: resolve_mimics([
                     replace(joint, mimic=Mimic(names[1 + (k + 1) % 3000], 1.0, 0.0))
                     for k, joint in enumerate(links_and_joints(names)[1])])):
        with pytest.raises(rbd_ros.ModelError) as caught:
            make([f'n{k}' for k in range(3001)])
        assert len(str(caught.value)) < 1000
        assert 'more) ...' in str(caught.value)
