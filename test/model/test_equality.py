# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Joints and links are compared by the values of their fields, arrays among them."""

from copy import deepcopy
from dataclasses import fields, replace
import pickle

import numpy as np
import pytest
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, Mimic

LINK = Link('a', 1.0, np.ones(3), np.eye(3))
JOINT = Joint('j', 'revolute', 'a', 'b', np.eye(4), np.array([0.0, 0.0, 1.0]))
# Other values of the fields; those of the others are tuples of one number.
OTHER = {
    'name': 'x', 'kind': 'prismatic', 'parent': 'x', 'child': 'x', 'mass': 2.0, 'pitch': 0.1,
    'com': np.array([1.0, 1.0, 2.0]), 'inertia': np.diag([1.0, 1.0, 2.0]), 'is_load': True,
    'is_virtual': True, 'placement': np.diag([1.0, 1.0, 1.0, 2.0]), 'axis': np.ones(3),
    'second_axis': np.ones(3), 'configurations': {'home': (1.0,)}, 'mimic': Mimic('x'),
    'has_motor': False}


@pytest.mark.parametrize('one, label', [
    (one, field.name) for one in (LINK, JOINT) for field in fields(one)])
def test_one_other_value_makes_them_differ(one, label):
    other = replace(one, **{label: OTHER.get(label, (1.5,))})
    assert (one == other) is (other == one) is False and one != other
    assert (other == deepcopy(other)) is True


def test_copies_are_equal_and_other_types_are_not():
    for one in (LINK, JOINT):
        for copy in (deepcopy(one), replace(one), pickle.loads(pickle.dumps(one))):
            assert copy == one
    assert LINK != JOINT and LINK != 'a' and JOINT != None     # noqa: E711
    with pytest.raises(TypeError, match='unhashable'):
        hash(LINK)
