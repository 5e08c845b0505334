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


def links_and_joints(names, back=False):
    """Return a chain of links, whose last joint may lead back."""
    joints = [Joint(child, 'revolute', parent, child) for parent, child in pairwise(names)]
    if back:
        joints.append(Joint('back', 'revolute', names[-1], names[0]))
    return [Link(name, 1.0) for name in names], joints


def copies(names, ring=False):
    """Resolve joints that each copy the one before, and the first one the last in a ring."""
    joints = [replace(joint, mimic=Mimic(names[k], 1.0, 0.1) if k else None)
              for k, joint in enumerate(links_and_joints(names)[1])]
    if ring:
        joints[0] = replace(joints[0], mimic=Mimic(names[-1], 1.0, 0.0))
    resolve_mimics(joints)


MAKE = {'chain': lambda names: order_tree(*links_and_joints(names)),
        'ring': lambda names: order_tree(*links_and_joints(names, back=True)),
        'copies': copies, 'ring of copies': lambda names: copies(names, ring=True)}


@pytest.mark.parametrize('name', MAKE)
def test_fault_59_names_are_looked_up_and_not_searched_for(name):
    def make(names):
        try:
            MAKE[name](names)
        except rbd_ros.ModelError as error:
            assert 'ring' in name and ('cycle' in str(error) or 'circle' in str(error))
        else:
            assert 'ring' not in name
    few, many = comparisons(500, make), comparisons(2000, make)
    # Four times as many; searching would take sixteen times.
    assert many < 6 * few + 100
    assert many < 30 * 2000


@pytest.mark.parametrize('name', ['ring', 'ring of copies'])
def test_fault_59_long_cycles_are_named_in_few_words(name):
    with pytest.raises(rbd_ros.ModelError) as caught:
        MAKE[name]([f'n{k}' for k in range(3001)])
    assert len(str(caught.value)) < 1000
    assert 'more) ...' in str(caught.value)
