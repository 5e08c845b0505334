# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Positions of everything in the scene, against Pinocchio."""

import numpy as np
import pytest
from rbd_ros.view.geometry import load_geometry
from rbd_ros.view.scene import ARROW, ELLIPSOID_SIZE, full_efforts
from rbd_ros.view.state import computed_state
from rbd_ros.view.viewer import Viewer
from robots import example_urdf, load_quietly, Oracle, random_state
from scipy.spatial.transform import Rotation

# The scene holds single precision.
SINGLE = 1e-6
TOOL, WRENCH = 'tool0', np.array([0.0, 0.0, 0.0, 3.0, -4.0, 12.0])


@pytest.fixture(scope='module')
def shown():
    """Return a UR10 in a scene, the same in Pinocchio, and its state."""
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    q, v, _ = random_state(model, 6)
    state = computed_state(model, q, v, {TOOL: WRENCH})
    with Viewer(model, load_geometry(model, path.read_bytes(), path.parent), port=0) as viewer:
        viewer.scene.link = TOOL
        viewer.scene.set_visible('manipulability', True)
        viewer.scene.update(state)
        yield viewer, Oracle(path, model), state


def rotation(node):
    """Return the rotation of a node, from its quaternion w, x, y, z."""
    return Rotation.from_quat(np.roll(node.wxyz, -1)).as_matrix()


def test_shapes_are_at_their_links(shown):
    viewer, oracle, state = shown
    model, count = oracle.model, 0
    for k, name in enumerate(model.link_names):
        node = viewer.server.scene.get_handle_by_name(f'/robot/{k}')
        if node is not None:
            T, count = oracle.pose(state.q, name), count + 1
            np.testing.assert_allclose(node.position, T[:3, 3], atol=SINGLE)
            np.testing.assert_allclose(rotation(node), T[:3, :3], atol=SINGLE)
    assert count >= 7


def test_centres_of_mass_are_where_they_are(shown):
    viewer, oracle, state = shown
    scene, model = viewer.server.scene, oracle.model
    np.testing.assert_allclose(scene.get_handle_by_name('/com/ball').position,
                               oracle.com(state.q)[0], atol=SINGLE)
    heavy = [link for link in model.links if link.mass > 0.0]
    poses = [oracle.pose(state.q, link.name) for link in heavy]
    for name in ('link_coms', 'ellipsoids'):
        np.testing.assert_allclose(
            scene.get_handle_by_name(f'/{name}/batch').batched_positions,
            [T[:3, :3] @ link.com + T[:3, 3] for T, link in zip(poses, heavy)], atol=SINGLE)
    # Turned to its link and its principal axes, an ellipsoid of these diameters has the inertia.
    batch = scene.get_handle_by_name('/ellipsoids/batch')
    for link, T, wxyz, size in zip(heavy, poses, batch.batched_wxyzs, batch.batched_scales):
        R = Rotation.from_quat(np.roll(wxyz, -1)).as_matrix()
        a, b, c = (0.5 * size) ** 2 * link.mass / 5.0
        np.testing.assert_allclose(R @ np.diag([b + c, a + c, a + b]) @ R.T,
                                   T[:3, :3] @ link.inertia @ T[:3, :3].T, atol=1e-4)


def test_forces_are_arrows_from_their_links(shown):
    viewer, oracle, state = shown
    T = oracle.pose(state.q, TOOL)
    arrow = viewer.server.scene.get_handle_by_name('/wrenches/forces')
    start, end = arrow.points[0]
    np.testing.assert_allclose(start, T[:3, 3], atol=SINGLE)
    np.testing.assert_allclose(end - start, ARROW * viewer.scene.extent
                               * T[:3, :3] @ WRENCH[3:] / 13.0, atol=SINGLE)
    assert arrow.visible
    assert not viewer.server.scene.get_handle_by_name('/wrenches/moments').visible


def test_the_ellipsoid_of_the_chosen_link_is_drawn(shown):
    viewer, oracle, state = shown
    T = oracle.pose(state.q, TOOL)
    J = T[:3, :3] @ oracle.jacobian(state.q, TOOL)[3:]
    ball = viewer.server.scene.get_handle_by_name('/manipulability/ellipsoid')
    np.testing.assert_allclose(ball.position, T[:3, 3], atol=SINGLE)
    R = rotation(ball)
    values = R.T @ J @ J.T @ R
    np.testing.assert_allclose(values, np.diag(np.diag(values)), atol=1e-9)
    sizes = np.sqrt(np.diag(values))
    np.testing.assert_allclose(ball.scale, ELLIPSOID_SIZE * viewer.scene.extent * sizes
                               / sizes.max(), rtol=1e-6)


def test_arcs_are_at_loaded_joints(shown):
    viewer, oracle, state = shown
    model, scene = oracle.model, viewer.server.scene
    heads = scene.get_handle_by_name('/gravity/heads')
    full = full_efforts(model)
    assert len(np.unique(full)) == 1
    assert len(heads.points) == np.sum(np.abs(state.gravity) / full * 1.75 * np.pi > 0.02)
    # No joint of this robot exceeds the torque of the largest arc by much.
    assert np.max(np.abs(state.gravity)) < 1.2 * full[0]
    links = [oracle.pose(state.q, joint.child)[:3, 3] for joint in model.joints
             if joint.name in model.velocity_names]
    for tip in heads.points[:, 0]:
        distance = min(np.linalg.norm(tip - link) for link in links)
        assert distance == pytest.approx(0.1 * viewer.scene.extent, rel=0.2)
