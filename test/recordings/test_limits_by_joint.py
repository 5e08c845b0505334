# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Limits are compared with positions and efforts of their own joint, also with closed loops."""

from types import SimpleNamespace

import numpy as np
import pytest
from rbd_ros import ModelBuilder
from rbd_ros.identification.diagnosis.detectors import beyond_limits
from rbd_ros.identification.verdicts import position_doubts
from rbd_ros.model.positions.configurations import out_of_range

BODY = {'mass': 1.0, 'com': (0.5, 0.1, 0.2), 'inertia': (0.1, 0.2, 0.25)}
# No two joints have the same limits; positions are checked with a margin of the range.
LIMITS = {'turn': (1.0, 10.0), 'coupler': (2.0, 20.0), 'rocker': (4.0, 40.0),
          'lift': (8.0, 80.0), 'wrist': (np.inf, 160.0)}


def robot(independent=()):
    """Return a parallelogram that carries two joints, with or without its loop."""
    builder = ModelBuilder('robot').link('base')
    for name, parent, child, x in (
            ('turn', 'base', 'arm', 0), ('coupler', 'arm', 'bar', 1),
            ('rocker', 'base', 'lever', 2), ('lift', 'lever', 'hand', 1),
            ('wrist', 'hand', 'tool', 1)):
        position, effort = LIMITS[name]
        builder.link(child, **BODY).joint(
            name, 'revolute', parent, child, xyz=(x, 0, 0), axis=(0, 0, 1), lower=-position,
            upper=position, effort=effort)
    if independent:
        builder.constraint('pin', 'revolute', 'bar', 'lever', xyz_a=(2, 0, 0), xyz_b=(1.1, 0, 0))
    return builder.build(independent=independent or None)


ROBOTS = {'tree': (), 'the first': ('turn', 'lift', 'wrist'),
          'the second': ('coupler', 'lift', 'wrist'), 'the third': ('rocker', 'lift', 'wrist')}


@pytest.mark.parametrize('name', ROBOTS)
@pytest.mark.parametrize('joint', LIMITS)
def test_positions_and_efforts_are_compared_with_the_limits_of_their_joint(name, joint):
    model = robot(ROBOTS[name])
    assert model.velocity_names == (ROBOTS[name] or tuple(LIMITS))
    column, limit = model.position_names.index(joint), LIMITS[joint][0]
    for size, beyond in ((0.9, False), (2.0, True)):
        q = np.zeros((10, model.nq))
        q[:, column] = size * limit if limit < np.inf else 1e3
        named = joint in model.velocity_names and beyond and limit < np.inf
        found = position_doubts(model, (SimpleNamespace(q=q),))
        assert len(found) == named
        assert not named or found[0].startswith(f'positions of {joint} lie beyond')
        # Those of dependent joints count where one configuration is checked.
        found = out_of_range(model, q[0])
        assert len(found) == (beyond and limit < np.inf)
        assert not found or f"'{joint}': the position is {2.0 * limit:.4g} rad" in found[0]
    if joint not in model.velocity_names:
        assert LIMITS[joint][1] not in model.effort_limit
        return
    for size, beyond in ((0.9, False), (3.0, True)):
        efforts = np.zeros((10, model.nv))
        efforts[:, model.velocity_names.index(joint)] = size * LIMITS[joint][1]
        found = beyond_limits(model, efforts)
        assert bool(found) == beyond
        assert not found or f'of the URDF: {joint} ({size * LIMITS[joint][1]:.3g}, ' in found.text
