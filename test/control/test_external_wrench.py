# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The wrench at a link, from external torques."""

from control_robots import bare_arm, LINK, POSE
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import external_wrench
from robots import example_urdf, load_quietly

WRENCH = np.array([1.0, -2.0, 0.5, 10.0, 20.0, -30.0])
EXACT = 1e-9


@pytest.mark.parametrize('frame, jacobian', [
    ('body', rbd_ros.body_jacobian), ('world-aligned', rbd_ros.world_jacobian)])
def test_a_wrench_is_found_from_its_torques(frame, jacobian):
    arm = bare_arm()
    tau = jacobian(arm, POSE, LINK).T @ WRENCH
    assert np.allclose(external_wrench(arm, POSE, tau, LINK, frame=frame), WRENCH, atol=EXACT)


def test_torques_that_no_wrench_has_are_left_out():
    arm = bare_arm()
    J = rbd_ros.world_jacobian(arm, POSE, LINK)
    aside = np.linalg.svd(J)[2][-1]               # seven joints: J^T f is in six dimensions
    found = external_wrench(arm, POSE, J.T @ WRENCH + 5.0 * aside, LINK)
    assert np.allclose(found, WRENCH, atol=EXACT)


def test_near_singular_poses_only_what_shows_is_found():
    arm = load_quietly(example_urdf('ur5_robot.urdf'))
    sizes = []
    for away in (0.3, 1e-2, 1e-4, 0.0):
        q = np.array([0.0, -0.5, away, 0.3, 1.0, 0.0])         # the elbow is stretched at 0
        J = rbd_ros.world_jacobian(arm, q, 'tool0')
        noise = 0.1 * np.linalg.svd(J)[2][-1]                  # of what moves the link the least
        found = external_wrench(arm, q, J.T @ WRENCH + noise, 'tool0')
        sizes.append(np.linalg.norm(found))
        # Its torques are never farther from what was given than none at all.
        assert np.linalg.norm(J.T @ found - J.T @ WRENCH - noise) < 0.2 * np.linalg.norm(
            J.T @ WRENCH)
    assert max(sizes) < 5.0 * np.linalg.norm(WRENCH)


def test_a_link_with_few_joints_gets_what_they_feel_and_the_root_nothing():
    arm = bare_arm()
    tau = np.array([3.0, 0.0, 0.0, 0.0, 0.0, 0.0, 0.0])
    found = external_wrench(arm, POSE, tau, 'shoulder_pan_link')
    J = rbd_ros.world_jacobian(arm, POSE, 'shoulder_pan_link')
    assert np.allclose(J.T @ found, tau)
    assert np.array_equal(external_wrench(arm, POSE, tau, 'base_link'), np.zeros(6))


@pytest.mark.parametrize('options, message', [
    ({'tau_ext': np.zeros(3)}, 'tau_ext has'), ({'frame': 'tool'}, 'frame must be'),
    ({'condition_limit': 0.0}, 'condition_limit'), ({'q': np.full(7, np.nan)}, 'q of')])
def test_wrong_input_is_refused_by_name(options, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        external_wrench(bare_arm(), **{'q': POSE, 'tau_ext': np.zeros(7), 'link': LINK, **options})
