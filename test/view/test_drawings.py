# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Arcs, ellipsoids, tables and heat maps."""

from dataclasses import replace
import re

from covering import seeds
import numpy as np
from optional import Optional
import pytest
import rbd_ros
from rbd_ros.model.description import Link
from rbd_ros.model.uncertainty import Uncertainty
from rbd_ros.view.geometry import Geometry
from rbd_ros.view.recording import recording_page
from rbd_ros.view.shapes import (
    BOX, effective_masses, ELLIPSOID, force_ellipsoid, inertia_solid, JointArcs, LARGEST_TURN,
    manipulability)
from rbd_ros.view.state import computed_state
from rbd_ros.view.tables import heat_map, number, terms_table, torque_table
from rbd_ros.view.viewer import Viewer
from robots import (
    example_urdf, load_quietly, Oracle, random_pose, random_state, relative_error)

plot_axes = Optional('matplotlib.axes')

ROUNDING = 1e-12
# Numbers have three digits after the point.
PRINTED = 5.001e-4


def two_joints():
    """Return a robot whose first joint turns about y and whose second slides along x."""
    return (rbd_ros.ModelBuilder('r').link('base').link('a', mass=1.0).link('b', mass=1.0)
            .joint('turn', 'revolute', 'base', 'a', axis=(0, 1, 0), xyz=(0, 0, 1))
            .joint('slide', 'prismatic', 'a', 'b', axis=(1, 0, 0), xyz=(0, 0, 2)).build())


# -- Arcs. ----------------------------------------------------------------------------------------

def test_arcs_turn_by_the_right_hand_about_the_axis():
    model = two_joints()
    q = np.array([0.5 * np.pi, 0.0])
    poses = rbd_ros.forward_kinematics(model, q)
    for share in (1.0, 0.25, -0.5):
        arc, = JointArcs(model).lines(poses, np.array([10.0 * share, 0.0]), np.full(2, 10.0), 0.3)
        np.testing.assert_allclose(arc[0], [0, 0, 1], atol=ROUNDING)
        spokes = arc[1:] - [0, 0, 1]
        np.testing.assert_allclose(np.linalg.norm(spokes, axis=1), 0.3, rtol=ROUNDING)
        np.testing.assert_allclose(spokes[:, 1], 0.0, atol=ROUNDING)
        # Each piece turns about +y for a positive torque, all together in proportion to it.
        turned = np.arctan2(np.cross(spokes[:-1], spokes[1:])[:, 1],
                            np.sum(spokes[:-1] * spokes[1:], axis=1))
        assert np.sum(turned) == pytest.approx(share * LARGEST_TURN)


def test_forces_are_straight_and_along_the_axis():
    model = two_joints()
    poses = rbd_ros.forward_kinematics(model, np.array([0.5 * np.pi, 0.0]))
    arrow, = JointArcs(model).lines(poses, np.array([0.0, -5.0]), np.full(2, 10.0), 0.3)
    # The joint is 2 m along z of a link that was turned by a quarter about y: x is -z there.
    np.testing.assert_allclose(arrow[0], [2.0, 0.0, 1.0], atol=ROUNDING)
    np.testing.assert_allclose(arrow[-1], [2.0, 0.0, 1.3], atol=ROUNDING)


def test_arcs_are_clipped_at_the_largest_and_omit_unknown_efforts():
    model = two_joints()
    arcs, poses = JointArcs(model), rbd_ros.forward_kinematics(model, np.zeros(2))
    full = np.full(2, 10.0)
    np.testing.assert_array_equal(arcs.lines(poses, np.array([50.0, 0.0]), full, 1.0),
                                  arcs.lines(poses, np.array([10.0, 0.0]), full, 1.0))
    assert len(arcs.lines(poses, np.array([np.nan, 1e-9]), full, 1.0)) == 0


def test_fixed_and_mimicking_joints_have_no_arcs():
    model = load_quietly(example_urdf('panda.urdf'))
    poses = rbd_ros.forward_kinematics(model, rbd_ros.neutral(model))
    lines = JointArcs(model).lines(poses, np.ones(model.nv), np.ones(model.nv), 0.1)
    assert len(lines) == model.nv == 8


# -- Ellipsoids. ----------------------------------------------------------------------------------

@pytest.mark.parametrize('share', [BOX, ELLIPSOID])
@pytest.mark.parametrize('seed', seeds(30, few=3))
def test_inertia_solids_have_the_inertia(share, seed):
    a, b, c = sides = np.array([0.2, 0.5, 0.9])
    # A box: m / 12 (b^2 + c^2); an ellipsoid of these diameters: m / 20 (b^2 + c^2).
    moments = 3.0 / (12.0 if share == BOX else 20.0) * np.array(
        [b * b + c * c, a * a + c * c, a * a + b * b])
    R = random_pose(np.random.default_rng(seed))[:3, :3]
    axes, size = inertia_solid(Link('a', 3.0, np.zeros(3), R @ np.diag(moments) @ R.T), share)
    np.testing.assert_allclose(np.sort(size), sides, rtol=1e-9)
    assert np.linalg.det(axes) == pytest.approx(1.0)
    np.testing.assert_allclose(np.abs(axes.T @ R), np.eye(3), atol=1e-7)


def test_ellipsoids_of_a_link_match_a_planar_arm():
    # Two links of 1 m at a right angle: the tip is at (1, 1), J = [[-1, -1], [1, 0]].
    J = np.array([[-1.0, -1.0], [1.0, 0.0], [0.0, 0.0]])
    golden = 0.5 * (1.0 + np.sqrt(5.0))
    np.testing.assert_allclose(manipulability(J).semi_axes[1:], [1.0 / golden, golden])
    np.testing.assert_allclose(force_ellipsoid(J).semi_axes[1:], [golden, 1.0 / golden])
    # Point masses of 2 kg and 3 kg at the ends of the links:
    # M = [[2 + 6, 3], [3, 3]], and (J M^-1 J^T)^-1 of the plane has the eigenvalues below.
    M = np.array([[8.0, 3.0], [3.0, 3.0]])
    A = np.linalg.inv(J[:2])
    expected = np.linalg.eigvalsh(A.T @ M @ A)[::-1]
    np.testing.assert_allclose(effective_masses(J, M).semi_axes[1:], expected)
    for found in (manipulability(J), force_ellipsoid(J), effective_masses(J, M)):
        assert np.linalg.det(found.axes) == pytest.approx(1.0)
        assert np.all(np.isfinite(found.semi_axes)) and np.all(found.semi_axes > 0.0)


def test_a_force_along_an_axis_needs_torques_of_norm_1():
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    q, _, _ = random_state(model, 3)
    oracle = Oracle(path, model)
    J = oracle.pose(q, 'tool0')[:3, :3] @ oracle.jacobian(q, 'tool0')[3:]
    found = force_ellipsoid(J)
    for k in range(3):
        force = found.semi_axes[k] * found.axes[:, k]
        assert np.linalg.norm(J.T @ force) == pytest.approx(1.0)
        pushed = effective_masses(J, oracle.M(q))
        direction = pushed.axes[:, k]
        acceleration = J @ np.linalg.solve(oracle.M(q), J.T @ direction)
        np.testing.assert_allclose(acceleration, direction / pushed.semi_axes[k], atol=1e-9)


# -- Numbers. -------------------------------------------------------------------------------------

def test_state_of_sliders_matches_pinocchio():
    path = example_urdf('ur10_robot.urdf')
    model = load_quietly(path)
    oracle = Oracle(path, model)
    q, v, _ = random_state(model, 5)
    zero = np.zeros(model.nv)
    wrench = np.array([0.0, 0.0, 0.0, 3.0, -4.0, 5.0])
    state = computed_state(model, q, v, {'tool0': wrench})
    pushed = oracle.jacobian(q, 'tool0').T @ wrench
    assert relative_error(state.gravity, oracle.tau(q, zero, zero)) < ROUNDING
    assert relative_error(state.external, pushed) < ROUNDING
    assert relative_error(state.effort, oracle.tau(q, v, zero) - pushed) < ROUNDING
    assert relative_error(state.M, oracle.M(q)) < ROUNDING


def cells_of(text):
    """Return the cells of a table as texts, by the name of the joint."""
    rows = re.findall(r'<tr><td title="(.*?)">(.*?)</tr>', text)
    return {name: [re.sub('<.*?>', '', cell) for cell in row.split('<td>')[1:]]
            for name, row in rows}


def test_tables_have_the_torques_of_each_joint_and_its_limit():
    model = load_quietly(example_urdf('ur10_robot.urdf'))
    q, v, _ = random_state(model, 5)
    measured, external, band = np.arange(6.0), 0.1 * np.arange(6.0), np.linspace(1.0, 2.0, 6)
    # 90 % of normally distributed residuals are within 1.645 deviations.
    state = replace(computed_state(model, q, v, {}), effort=measured, external=external,
                    deviation=band / 1.645)
    rows = cells_of(torque_table(model, state, 'measured'))
    terms = cells_of(terms_table(model, state))
    assert [*rows] == [*terms] == [*model.velocity_names]
    for k, name in enumerate(model.velocity_names):
        np.testing.assert_allclose([float(cell) for cell in rows[name]], [
            measured[k], measured[k] + external[k], -external[k], band[k],
            model.effort_limit[k]], atol=PRINTED)
        np.testing.assert_allclose([float(cell) for cell in terms[name]], [
            q[k], state.gravity[k], state.coriolis[k], external[k]], atol=PRINTED)
    # Without an observer the model is that of the description; unknown values stay unknown.
    state = replace(state, external=np.full(6, np.nan), deviation=None,
                    effort=np.where(np.arange(6) == 2, np.nan, measured))
    for k, row in enumerate(cells_of(torque_table(model, state, 'measured')).values()):
        explained = state.gravity[k] + state.coriolis[k]
        assert float(row[1]) == pytest.approx(explained, abs=PRINTED) and row[3] == '?'
        assert row[2] == '?' if k == 2 else float(row[2]) == pytest.approx(
            k - explained, abs=PRINTED)


def test_an_identified_robot_has_friction_and_the_band_of_its_torques():
    model = rbd_ros.model.with_friction(load_quietly(example_urdf('double_pendulum.urdf')),
                                        damping=[0.1, 0.2], friction=[0.3, 0.2])
    q, v = np.array([0.3, -0.8]), np.array([0.5, -1.5])
    state = computed_state(model, q, v, {})
    assert np.all(np.isnan(state.band))
    friction = np.array([0.1 * 0.5 + 0.3, -0.2 * 1.5 - 0.2])
    np.testing.assert_allclose(state.model - state.gravity - state.coriolis, friction)
    np.testing.assert_allclose(state.residual, 0.0)
    noise = np.array([0.4, 0.7])
    known = replace(model, uncertainty=Uncertainty(
        model.velocity_names, (), np.zeros((0, 0)), np.zeros((2, 1)), noise[:, None],
        np.zeros(2)))
    np.testing.assert_allclose(computed_state(known, q, v, {}).band, 1.645 * noise, rtol=1e-3)


def test_numbers_have_no_minus_zero():
    assert [number(x) for x in (-0.0001, -0.0006, np.nan, 12.0)] == [
        '0.000', '-0.001', '?', '12.000']


def test_heat_maps_are_red_and_blue_by_sign_and_name_every_joint():
    text = heat_map('M', ['a<b', 'c'], np.array([[2.0, -1.0], [0.0, np.nan]]))
    assert 'a<b' not in text and 'a&lt;b' in text
    cells = [
        part.split('fill="')[1].split('"')[0] for part in text.split('<rect ')[1:]]
    assert cells == ['rgb(178,24,43)', 'rgb(144,178,214)', 'rgb(255,255,255)',
                     'rgb(255,255,255)']
    assert '<title>a&lt;b, c: -1</title>' in text
    assert 'largest entry 2' in text
    # A large one shows no numbers, but every cell has a tooltip.
    names = [f'j{k}' for k in range(60)]
    text = heat_map('M', names, np.eye(60))
    assert text.count('<rect') == 3600 and '<title>j59, j59: 1</title>' in text


def test_efforts_near_either_limit_are_marked_in_the_table():
    model = load_quietly(example_urdf('ur10_robot.urdf'))
    state = computed_state(model, np.zeros(6), np.zeros(6), {})
    for sign in (1.0, -1.0):
        for share, marked in ((0.95, model.nv), (0.85, 0)):
            effort = sign * share * model.effort_limit
            text = torque_table(model, replace(state, effort=effort), 'measured')
            assert text.count('class="near"') == marked


@pytest.mark.parametrize('share, shown', [(0.6, True), (-0.6, True), (0.4, False)])
def test_the_plot_has_room_for_limits_that_an_effort_comes_near(share, shown):
    model = load_quietly(example_urdf('ur10_robot.urdf'))
    state = computed_state(model, np.zeros(6), np.zeros(6), {})
    state = replace(state, effort=share * model.effort_limit)
    with Viewer(model, Geometry({}, ()), port=0) as viewer:
        plot = viewer.panels._plot
        for time in (0.0, 0.1):
            viewer.panels.remember(time, state)
        viewer.panels.update(0.1, state)
        # The first joint is the chosen one.
        limits = [values for series, values in zip(plot.series, plot.data)
                  if 'limit' in series['label']]
        np.testing.assert_array_equal(limits, np.outer([330.0, -330.0], np.ones(2)))
        low, high = plot.scales['y']['range']
        assert (low < -330.0 and high > 330.0) == shown
        # Curves are in the range, and fill more than half of it.
        assert low < min(share * 330.0, 0.0) and max(share * 330.0, 0.0) < high
        assert shown or high - low < 2.0 * abs(share) * 330.0


def test_limits_are_marked_for_torques_of_both_signs_on_pages_of_recordings(monkeypatch):
    model, marked = replace(two_joints(), effort_limit=np.array([20.0, 30.0])), []
    monkeypatch.setattr(plot_axes.Axes, 'axhline', lambda self, y, **_: marked.append(y))
    time, zero = np.array([0.0, 0.1]), np.zeros((2, model.nv))
    for sign in (1.0, -1.0):
        marked.clear()
        recording_page('r', model, Geometry({}, ()), time, zero, zero,
                       {'measured': sign * np.tile(model.effort_limit, (2, 1))})
        assert sorted(marked) == sorted([*model.effort_limit, *-model.effort_limit])


@pytest.mark.filterwarnings('ignore:these links move but have no mass')
def test_robots_whose_joints_move_no_mass_are_shown():
    builder = rbd_ros.ModelBuilder('r').link('base').link('a').link('b')
    model = (builder.joint('turn', 'revolute', 'base', 'a', axis=(0, 1, 0), xyz=(0, 0, 1))
             .joint('slide', 'prismatic', 'a', 'b', axis=(1, 0, 0), xyz=(0, 0, 2)).build())
    state = computed_state(model, np.zeros(2), np.zeros(2), {})
    assert not np.any(state.M)
    # Both joints move b along x, where it weighs 1 kg: M is singular, too.
    for M, mass in ((state.M, 0.0), (np.array([[4.0, 2.0], [2.0, 1.0]]), 1.0)):
        with Viewer(model, Geometry({}, ()), port=0) as viewer:
            viewer.scene.set_visible('effective_masses', True)
            viewer.scene.update(replace(state, M=M))
            viewer.panels.update(0.0, replace(state, M=M))
            found = viewer.scene.ellipsoids(replace(state, M=M))['effective_masses']
        along_x = np.argmax(np.abs(found.axes[0]))
        assert found.semi_axes[along_x] == pytest.approx(mass, abs=1e-8)
