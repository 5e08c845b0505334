# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Odometry of a floating base: its twist, and poses that the base cannot have; row 4."""

from harness import odometry
import pytest
import rbd_ros
from rbd_ros.ros.state.joint_states import Rejected
from rbd_ros.ros.state.odometry import OdometryStates
from robots import example_urdf, load_quietly
from scipy.spatial.transform import Rotation
from test_implausible_samples import FACTOR, RECEIPTS, STAMPS


def dog():
    """Return a robot with a floating base, and its odometry."""
    model = load_quietly(example_urdf('anymal_b_simple_description/robots/anymal.urdf'))
    model = rbd_ros.with_floating_base(model)
    return model, OdometryStates(model, model.moving_joints[0][0])


def place(one, t, position=(0.0, 0.0, 0.5), turn=(0.0, 0.0, 0.0), stamped=True):
    """Let odometry of a base at rest come; return what is told of it."""
    return one.update(odometry('base', Rotation.from_rotvec(turn).as_quat(), position, [0.0] * 3,
                               [0.0] * 3, stamp=(50 * stamped, round(1e9 * t) * stamped)), t,
                      FACTOR)


def test_a_base_that_is_too_fast_is_rejected():
    _, one = dog()
    still = [0.0, 0.0, 0.0]
    for angular, linear in (([0.0, 61.0, 0.0], still), (still, [0.0, 0.0, 16.0])):
        with pytest.raises(Rejected, match='fastest speed'):
            one.update(odometry('base', [0, 0, 0, 1], still, angular, linear), 1.0, FACTOR)
    one.update(odometry('base', [0, 0, 0, 1], still, [0.0, 59.0, 0.0], [0.0, 14.0, 0.0]), 1.0,
               FACTOR)
    assert one.nearest(0.0, 1.0, 1.0)[0] is not None


@pytest.mark.parametrize('stamped, error', [(True, STAMPS), (False, RECEIPTS)])
@pytest.mark.parametrize('share, fits', [(0.99, True), (1.01, False)])
@pytest.mark.parametrize('kind', ['position', 'turn'])
def test_a_base_moves_no_further_than_its_fastest_speed_allows(stamped, error, share, fits, kind):
    _, one = dog()
    step = 0.02
    way = share * FACTOR * {'position': 5.0, 'turn': 20.0}[kind] * (step + error)
    place(one, 0.1, **{kind: (0.0, 0.0, 0.0)}, stamped=stamped)
    if fits:
        assert not place(one, 0.1 + step, **{kind: (0.0, way, 0.0)}, stamped=stamped)
        return
    for k in range(10):
        # To both sides: they do not agree with each other.
        with pytest.raises(Rejected, match='the base moved by'):
            place(one, 0.1 + step, **{kind: (0.0, (-1.0) ** k * way, 0.0)}, stamped=stamped)
        assert one.nearest(0.0, 0.1, 1.0)[0].q[5] == 0.0
    assert not place(one, 0.1 + 2.0 * step, **{kind: (0.0, 0.0, 0.0)}, stamped=stamped)


@pytest.mark.parametrize('step, count', [(0.0021, 6), (0.02, 4)])
def test_a_moved_base_is_accepted_after_four_messages_and_10_ms(step, count):
    _, one = dog()
    place(one, 0.1)
    for k in range(1, count):
        with pytest.raises(Rejected):
            place(one, 0.1 + step * k, (3.0, 0.0, 0.5))
    assert 'the base moved by 3 m' in place(one, 0.1 + step * count, (3.0, 0.0, 0.5))
    assert not place(one, 0.1 + step * (count + 1), (3.0, 0.0, 0.5))


def test_inconsistent_poses_of_a_base_are_never_accepted():
    _, one = dog()
    place(one, 0.1)
    for k in range(1, 30):
        with pytest.raises(Rejected, match='the base moved by'):
            place(one, 0.1 + 0.002 * k, ((-1.0) ** k * 3.0, 0.0, 0.5))
