# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the viewer remembers: curves of a joint, the last minute, and the path of a link."""

from dataclasses import replace

import numpy as np
import pytest
import rbd_ros
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.panels import age_line
from rbd_ros.view.sliders import Sliders
from rbd_ros.view.state import computed_state
from rbd_ros.view.tables import short_names
from rbd_ros.view.viewer import Viewer
from robots import example_urdf, load_quietly, Oracle, random_state
from scipy.spatial.transform import Rotation
from scipy.stats import norm

# The scene holds single precision.
SINGLE = 1e-6


@pytest.fixture
def ur10():
    """Return a UR10 on a page, and the same in Pinocchio."""
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    with Viewer(model, Geometry({}, ()), port=0, effort='measured') as viewer:
        yield viewer, Oracle(path, model)


def curve(viewer, label):
    plot = viewer.panels._plot
    return next(np.asarray(values) for series, values in zip(plot.series, plot.data)
                if series['label'] == label)


def states(model, count):
    return [computed_state(model, *random_state(model, k)[:2], {}) for k in range(count)]


def test_the_plot_shows_measured_and_explained_efforts_and_their_difference(ur10):
    viewer, oracle = ur10
    model, rng = oracle.model, np.random.default_rng(0)
    viewer.panels._joint.value = model.velocity_names[2]
    effort, explained = [], []
    for k, state in enumerate(states(model, 4)):
        effort.append(state.effort + rng.normal(size=6))
        explained.append(oracle.tau(state.q, state.v, 0 * state.v))
        # Without a dynamics node external torques are unknown.
        viewer.panels.remember(0.1 * k, replace(
            state, effort=effort[-1], external=np.full(6, np.nan), deviation=0.1 * np.arange(6)))
    viewer.panels.update(0.4, state)
    np.testing.assert_allclose(curve(viewer, 's'), [-0.3, -0.2, -0.1, 0.0], atol=1e-12)
    for label, values in (('measured', effort), ('model', explained),
                          ('residual', np.subtract(effort, explained))):
        np.testing.assert_allclose(curve(viewer, label), np.array(values)[:, 2], atol=1e-9)
    # 90 % of normally distributed residuals.
    half = norm.ppf(0.95) * 0.2
    np.testing.assert_allclose(curve(viewer, 'its 90 %'), half)
    np.testing.assert_allclose(curve(viewer, '-90 %'), -half)


def test_torques_of_the_observer_are_the_residual(ur10):
    state = states(ur10[1].model, 1)[0]
    external = np.arange(6.0)
    found = replace(state, effort=np.full(6, 5.0), external=external)
    np.testing.assert_array_equal(found.effort - found.model, -external)
    # At rest, if velocities are unknown.
    found = replace(state, external=np.full(6, np.nan), coriolis=np.full(6, np.nan))
    np.testing.assert_array_equal(found.model, state.gravity)


def test_a_paused_page_keeps_its_state_and_shows_earlier_ones(ur10):
    viewer, oracle = ur10
    panels, seen = viewer.panels, states(oracle.model, 5)
    for k, state in enumerate(seen[:4]):
        panels.remember(float(k), state)
        assert panels.chosen(state) is state
    panels._pause.value = True
    panels.remember(4.0, seen[4])
    assert panels.chosen(seen[4]) is seen[3]
    panels._back.value = 2.0
    assert panels.chosen(seen[4]) is seen[1]
    panels._back.value = 50.0
    assert panels.chosen(seen[4]) is seen[0]
    panels._pause.value, panels._back.value = False, 1.0
    panels.remember(4.0, seen[4])
    assert panels.chosen(seen[4]) is seen[3]
    panels._back.value = 0.0
    assert panels.chosen(seen[4]) is seen[4]
    # A run that begins anew knows nothing of the last one.
    panels.remember(0.5, seen[0])
    panels._back.value = 3.0
    assert panels.chosen(seen[1]) is seen[0]


def test_the_history_keeps_one_minute(ur10):
    viewer, oracle = ur10
    state = states(oracle.model, 1)[0]
    for k in range(7000):
        viewer.panels.remember(0.01 * k, state)
    viewer.panels.update(70.0, state)
    time = curve(viewer, 's')
    assert 58.0 < time[-1] - time[0] <= 60.0 and np.all(np.diff(time) >= 0.05 - 1e-9)


def test_the_path_is_where_the_chosen_link_was_in_the_last_seconds(ur10):
    viewer, oracle = ur10
    seen = states(oracle.model, 5)
    viewer.scene.link = 'tool0'
    base = np.eye(4)
    base[:3, 3] = 1.0, 2.0, 3.0
    for k, state in enumerate(seen):
        viewer.panels.remember(2.0 * k, replace(state, base=base if k == 4 else None))
    places = [oracle.pose(state.q, 'tool0')[:3, 3] for state in seen]
    places[4] = places[4] + base[:3, 3]
    np.testing.assert_allclose(viewer.panels.path(), places[2:], atol=1e-12)
    viewer.scene.update(seen[4], viewer.panels.path())
    drawn = viewer.server.scene.get_handle_by_name('/past')
    np.testing.assert_allclose(drawn.points, [places[2:4], places[3:5]], atol=SINGLE)
    viewer.panels._back.value = 4.0
    np.testing.assert_allclose(viewer.panels.path(), places[:3], atol=1e-12)
    viewer.scene.set_visible('path', False)
    viewer.scene.update(seen[4], viewer.panels.path())
    assert not drawn.visible


@pytest.mark.parametrize('names, short', [
    (('panda_joint1', 'panda_joint2', 'panda_finger'), ('joint1', 'joint2', 'finger')),
    (('left/arm_1', 'left/hand'), ('arm_1', 'hand')), (('a_b',), ('a_b',)),
    (('elbow', 'elbow_2'), ('elbow', 'elbow_2')), (('a_', 'a_b'), ('a_', 'a_b')),
    (('arm_joint_1', 'arm_joint_2'), ('joint_1', 'joint_2')), ((), ())])
def test_names_are_shown_without_their_common_prefix(names, short):
    assert tuple(short_names(names)) == short


def test_labels_with_efforts_are_at_their_joints(ur10):
    viewer, oracle = ur10
    model, state = oracle.model, states(oracle.model, 1)[0]
    state = replace(state, effort=np.array([-0.01, 1.26, -2.0, np.nan, 3.0, 4.0]))
    viewer.scene.update(state)
    viewer.panels.update(0.0, state)
    for k, (joint, text) in enumerate(zip(model.joints, (
            '0.0 N m', '1.3 N m', '-2.0 N m', '?', '3.0 N m', '4.0 N m'))):
        label = viewer.server.scene.get_handle_by_name(f'/names/{k}')
        assert label.text == f'{model.velocity_names[k]}  {text}'
        joint = next(j for j in model.joints if j.name == model.velocity_names[k])
        np.testing.assert_allclose(label.position, oracle.pose(state.q, joint.child)[:3, 3],
                                   atol=SINGLE)
        # Origins of neighbours may coincide: their names are on different sides.
        before = viewer.server.scene.get_handle_by_name(f'/names/{k - 1}') if k else None
        assert before is None or {label.anchor, before.anchor} == {'bottom-right', 'top-left'}


def test_everything_moves_with_the_base_and_gravity_stays_down(ur10):
    viewer, oracle = ur10
    model = oracle.model
    q, v, _ = random_state(model, 7)
    base = np.eye(4)
    base[:3, :3], base[:3, 3] = Rotation.from_rotvec([0.5, -0.8, 0.3]).as_matrix(), (1.0, 2.0, 3.0)
    state = computed_state(model, q, v, {}, base)
    # Virtual work: the weights of the links at their centres of mass, in the world.
    expected = np.zeros(6)
    for link in model.links:
        if link.mass:
            T, J = oracle.pose(q, link.name), oracle.jacobian(q, link.name)
            point = J[3:] - np.cross(link.com, J[:3], axisb=0, axisc=0)
            expected -= link.mass * (base[:3, :3] @ T[:3, :3] @ point).T @ [0.0, 0.0, -9.81]
    np.testing.assert_allclose(state.gravity, expected, atol=1e-9)
    viewer.scene.update(state)
    for name in ('robot', 'com', 'gravity', 'names'):
        frame = viewer.server.scene.get_handle_by_name(f'/{name}')
        np.testing.assert_allclose(frame.position, base[:3, 3], atol=SINGLE)
        turn = Rotation.from_quat(np.roll(frame.wxyz, -1)).as_matrix()
        np.testing.assert_allclose(turn, base[:3, :3], atol=SINGLE)


def test_sliders_begin_with_a_bent_arm_within_its_limits(ur10):
    viewer, oracle = ur10
    q = Sliders(viewer.server.gui, oracle.model).read().q
    np.testing.assert_allclose(q, 0.4 * np.array([1, -1, 1, -1, 1, -1]))
    panda = load_quietly(example_urdf('panda.urdf'))
    q = Sliders(viewer.server.gui, panda).read().q
    assert np.all(q[:7] >= panda.lower[:7]) and np.all(q[:7] <= panda.upper[:7])
    assert np.count_nonzero(q[:7]) == 7


def test_sliders_move_a_floating_base():
    path = example_urdf('ur10_robot.urdf')
    model = rbd_ros.with_floating_base(load_quietly(path))
    turn = Rotation.from_euler('xyz', [0.5, -0.8, 0.3]).as_matrix()     # roll, pitch and yaw
    with Viewer(model, Geometry({}, ()), port=0) as viewer:
        sliders = Sliders(viewer.server.gui, model)
        shown = {one.label: one for one in viewer.server.gui._gui_input_handle_from_uuid.values()}
        joints = sliders.read().q[7:]
        np.testing.assert_allclose(np.abs(joints), 0.4)
        for name, value in {'base_x': 0.1, 'base_y': 0.2, 'base_z': 0.3, 'base roll': 0.5,
                            'base pitch': -0.8, 'base yaw': 0.3}.items():
            shown[name].value = value
        q = sliders.read().q
        np.testing.assert_array_equal(q[7:], joints)
        state = computed_state(model, q, np.zeros(model.nv), {})
        viewer.scene.update(state)
        root = rbd_ros.forward_kinematics(model, q)[model.link_index('base_link')]
        np.testing.assert_allclose(root[:3, :3], turn, atol=1e-12)
        np.testing.assert_allclose(root[:3, 3], [0.1, 0.2, 0.3], atol=1e-12)
        # The force that holds the robot, in the axes of its base.
        np.testing.assert_allclose(state.gravity[3:6], turn.T @ [0.0, 0.0, 9.81 * model.mass])
        sliders._zero(None)
        np.testing.assert_allclose(sliders.read().q[:7], [0, 0, 0, 1, 0, 0, 0])


@pytest.mark.parametrize('arguments, text', [
    ((np.nan, False, 0.0), ''), ((0.012, False, 0.0), 'state of 12 ms ago'),
    ((0.7, False, 0.0), 'state of 700 ms ago: joint states have stopped'),
    ((2.34, False, 0.0), 'state of 2.3 s ago: joint states have stopped'),
    ((0.01, False, 3.0), '3.00 s before the newest state'),
    ((9.0, True, 0.0), '0.00 s before the pause')])
def test_the_age_of_a_state_is_shown(arguments, text):
    assert age_line(*arguments).removesuffix('</div>').split('>')[-1] == text
