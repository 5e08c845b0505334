# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The markers of RViz: where they stand, their scale, and when they are sent."""

from pathlib import Path

from builtin_interfaces.msg import Time
import numpy as np
import pytest
from rbd_ros import Workspace
from rbd_ros.ros.messages.markers import Markers, NAMESPACES
from rclpy.serialization import deserialize_message
from robots import random_tree
from visualization_msgs.msg import Marker, MarkerArray
import yaml

ROOT = Path(__file__).parents[3]


@pytest.mark.parametrize('count', [0, 1, 20])
def test_markers_are_placed_at_the_links(count, deserialize):
    model = random_tree(count, count)
    markers, workspace = Markers(model, 'r1/'), Workspace(model)
    for seed, frame in enumerate(('root', 'root', 'odom')):
        q, stamp = np.random.default_rng(seed).normal(size=model.nq), Time(sec=seed)
        poses, terms = workspace.forward_kinematics(q), workspace.all_terms(q, np.zeros(model.nv))
        arrays = list(markers.update(stamp, frame, poses, terms))
        if seed == 0:
            # What another robot has left behind goes first, and once.
            assert [marker.action for marker in arrays.pop(0).markers] == [Marker.DELETEALL]
        moved = deserialize(arrays[0], MarkerArray)
        assert all((marker.header.stamp, marker.header.frame_id) == (stamp, frame)
                   for marker in moved.markers)
        com, centres, *arrows = moved.markers
        at = com.pose.position
        assert [at.x, at.y, at.z] == terms.com.tolist()
        assert np.allclose([[point.x, point.y, point.z] for point in centres.points], [
            (T @ [*link.com, 1.0])[:3] for T, link in zip(poses, model.links) if link.mass > 0.0])
        turning = [k for k, joint in enumerate(model.joints, 1)
                   if joint.name in model.velocity_names]
        starts = [[getattr(arrow.points[0], axis) for axis in 'xyz'] for arrow in arrows]
        assert np.array_equal(np.reshape(starts, (-1, 3)), poses[turning, :3, 3])


def ends_of(array, space):
    """Return the ends of the arrows of a namespace."""
    return np.array([[[point.x, point.y, point.z] for point in marker.points]
                     for marker in array.markers if marker.ns == space])


def test_arrows_of_torques_share_a_scale_and_unknown_torques_are_deleted():
    model = random_tree(6, 1)
    names = list(model.velocity_names)
    one_axis = [k for k, joint in enumerate(model.joints, 1) if joint.name in names]
    columns = [names.index(model.joints[k - 1].name) for k in one_axis]
    markers, q = Markers(model), np.random.default_rng(1).normal(size=model.nq)
    poses = Workspace(model).forward_kinematics(q).copy()
    terms = Workspace(model).all_terms(q, np.ones(model.nv))
    coriolis, external = np.random.default_rng(2).normal(size=(2, model.nv)) * [[3.0], [50.0]]
    given = {'gravity': terms.g, 'coriolis': coriolis, 'external_torques': external}
    longest = max(np.abs(torques).max() for torques in given.values())

    def update(*torques):
        deleting, *others = [], *markers.update(Time(), 'root', poses, terms, *torques)
        if isinstance(others[0], MarkerArray):
            deleting = [marker.action for marker in others.pop(0).markers]
        moved, *rest = (deserialize_message(one, MarkerArray) for one in others)
        return deleting, moved, rest

    _, moved, _ = update(coriolis, external)
    for space, torques in given.items():
        ends = ends_of(moved, space)
        along = np.einsum('kij,kj->ki', poses[one_axis, :3, :3],
                          [model.joints[k - 1].axis for k in one_axis])
        # An arrow of 0.4 m is the largest of all torques.
        assert np.allclose(ends[:, 1] - ends[:, 0],
                           0.4 * torques[columns, None] / longest * along, atol=1e-12), space
        beside = ends[:, 0] - poses[one_axis, :3, 3]
        assert np.allclose(np.einsum('ki,ki->k', beside, along), 0.0, atol=1e-12)
    starts = [ends_of(moved, space)[:, 0] for space in given]
    for k, one in enumerate(starts):
        for other in starts[:k]:
            assert np.all(np.linalg.norm(one - other, axis=1) > 0.02)
    # What is no longer known is not left standing; what never changes is sent again with the rest.
    deleting, moved, rest = update(coriolis, None)
    assert deleting == [Marker.DELETEALL]
    assert {marker.ns for marker in moved.markers} == {'com', 'link_coms', 'gravity', 'coriolis'}
    assert {marker.ns for array in rest for marker in array.markers} == {'ellipsoids'}
    deleting, moved, _ = update(None, external)
    assert deleting == [Marker.DELETEALL]
    assert {marker.ns for marker in moved.markers} == {'com', 'link_coms', 'gravity',
                                                       'external_torques'}
    assert update(coriolis, external)[0] == []


def test_ellipsoids_of_many_links_come_in_parts_within_their_period(monkeypatch):
    # They would stop the stream of states if they were all made at once.
    now, model = [0.0], random_tree(1, 250)
    monkeypatch.setattr('rbd_ros.ros.messages.markers.monotonic', lambda: now[0])
    markers, workspace = Markers(model, 'r1/'), Workspace(model)
    q = np.zeros(model.nq)
    poses, terms = workspace.forward_kinematics(q), workspace.all_terms(q, np.zeros(model.nv))
    heavy = {k for k, link in enumerate(model.links) if link.mass > 0.0}
    assert len(heavy) > 200
    for begin in (0.0, 1.0):
        came, largest = [], 0
        for now[0] in begin + np.arange(0.0, 0.999, 1.0 / 30.0):
            for one in markers.update(Time(), 'root', poses, terms):
                if isinstance(one, bytes) and b'ellipsoids' in one:
                    found = [(marker.id, marker.header.frame_id) for marker in
                             deserialize_message(one, MarkerArray).markers
                             if marker.ns == 'ellipsoids']
                    came, largest = came + found, max(largest, len(found))
        assert sorted(came) == [(k, 'r1/' + model.links[k].name) for k in sorted(heavy)]
        assert largest <= 100


def test_rviz_lists_every_namespace_of_the_markers_and_its_queue_holds_all_arrays():
    path = ROOT / 'config' / 'dynamics.rviz'
    display = next(one for one in yaml.safe_load(path.read_text())['Visualization Manager'][
        'Displays'] if one['Class'].endswith('/MarkerArray'))
    assert list(display['Namespaces']) == list(NAMESPACES)
    # Deleting, moving, ellipsoids and wrenches come one right after the other.
    assert display['Topic']['Depth'] >= 4
