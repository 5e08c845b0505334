# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The robots with loops in urdf/ are sound, and closed forms and the oracle agree on them."""

import loop_closed_forms as closed_forms
from loop_robots import (document, loop_robot, MOTORS, moved_motors, palletizer_with_mimics, URDF,
                         without_constraints)
import numpy as np
import pytest
import rbd_ros
from robots import relative_error

ROBOTS = list(MOTORS)
# Closing: a few times the rounding of positions of up to 2 m.
CLOSED = 1e-12
# Accelerations and torques, after solutions of small systems whose condition is below 1e3.
SOLUTIONS = 1e-9


def random_angles(oracle, rng):
    """Return random angles of the motors, within their limits."""
    lower = np.maximum(oracle.tree.lower[oracle.independent], -3.0)
    upper = np.minimum(oracle.tree.upper[oracle.independent], 3.0)
    return rng.uniform(lower, upper)


def assert_joints(oracle, q, expected):
    """Assert that joints are where a closed form says, up to whole turns."""
    for name, x in expected.items():
        found = q[oracle.tree.position_names.index(name)]
        assert closed_forms.wrapped(found - x) == pytest.approx(0.0, abs=CLOSED), name


@pytest.mark.parametrize('name', ROBOTS)
def test_files_have_only_the_warnings_that_passive_joints_cause(name):
    text = (URDF / f'{name}.urdf').read_text()
    assert all(len(line) < 100 for line in text.splitlines())
    tree = without_constraints(document(name))
    # Passive joints have no motor, which is worth a warning for robots without loops.
    assert len(tree.warnings) == 1 and 'effort limit 0' in tree.warnings[0]
    assert len(rbd_ros.load_urdf_string(text, strict=True).constraints) > 0


@pytest.mark.parametrize('name', ROBOTS)
def test_motors_determine_all_joints_and_hold_the_arm_and_the_payload(name):
    oracle = loop_robot(name)
    tree = oracle.tree
    motors = [joint.name for joint, _, _ in tree.moving_joints if joint.effort[0] > 0.0]
    assert motors == MOTORS[name]
    q = np.zeros(tree.nq)
    assert oracle.gap(q) < 1e-15
    assert oracle.null_space(q).shape[1] == len(motors)
    limit, rng = tree.effort_limit[oracle.independent], np.random.default_rng(0)
    for _ in range(3):
        q = moved_motors(oracle, random_angles(oracle, rng))
        assert np.all((tree.lower <= q) & (q <= tree.upper))
        rest = np.setdiff1d(range(tree.nv), oracle.independent)
        sizes = np.linalg.svd(oracle.jacobian(q)[:, rest], compute_uv=False)
        assert sizes[len(rest) - 1] > 0.01 * sizes[0]
        M, g = oracle.reduced(q, np.zeros(len(limit)))
        assert np.all(np.linalg.eigvalsh(M) > 0.0)
        assert np.all(np.abs(g) < 0.4 * limit)


# -- Four-bar. ------------------------------------------------------------------------------------
@pytest.mark.parametrize('crank', [0.8, 2.5, -2.4])
def test_four_bar_is_that_of_freudenstein(crank):
    oracle = loop_robot('four_bar')
    q = moved_motors(oracle, [crank], steps=20)
    assert_joints(oracle, q, closed_forms.four_bar_joints(crank))
    v, a = 3.0, -5.0
    rocker = oracle.tree.velocity_names.index('rocker')
    _, velocity, acceleration = closed_forms.freudenstein(crank + 0.5 * np.pi, v, a)
    G = oracle.G(q)
    assert (G @ [v])[rocker] == pytest.approx(velocity, abs=SOLUTIONS)
    assert (G @ [a] + oracle.gamma(q, G @ [v]))[rocker] == pytest.approx(acceleration,
                                                                         abs=1e-8)


# -- Slider-crank. --------------------------------------------------------------------------------
@pytest.fixture
def slider_crank():
    """Return the closed form for the numbers in the file."""
    links = {link.name: link for link in loop_robot('slider_crank').tree.links}
    return closed_forms.SliderCrank(*(
        (link.mass, np.hypot(link.com[0], link.com[2]), link.inertia[1, 1])
        for link in (links['crank_link'], links['rod_link'], links['slider_link'])))


@pytest.mark.parametrize('crank', [1.2, 3.0, -2.0])
def test_slider_crank_has_one_equation_of_motion(slider_crank, crank):
    oracle = loop_robot('slider_crank')
    theta, v = crank + 0.5 * np.pi, 4.0
    q = moved_motors(oracle, [crank], steps=20)
    assert_joints(oracle, q, slider_crank.joints(crank))
    M, bias = oracle.reduced(q, np.array([v]))
    _, g = oracle.reduced(q, np.zeros(1))
    assert M[0, 0] == pytest.approx(slider_crank.mass(theta), rel=SOLUTIONS)
    assert g[0] == pytest.approx(slider_crank.gravity_torque(theta), abs=SOLUTIONS)
    assert (bias - g)[0] == pytest.approx(0.5 * slider_crank.mass_derivative(theta) * v ** 2,
                                          abs=SOLUTIONS)


# -- Five-bar. ------------------------------------------------------------------------------------
@pytest.mark.parametrize('motors', [(0.5, -0.8), (-0.6, 0.3)])
def test_five_bar_is_where_two_circles_meet(motors):
    oracle = loop_robot('five_bar')
    q = moved_motors(oracle, motors, steps=20)
    assert_joints(oracle, q, closed_forms.five_bar_joints(motors))
    _, tool = closed_forms.five_bar_tool(motors)
    assert np.allclose(oracle.poses(q)['tool'][[0, 2], 3], tool, rtol=0.0, atol=CLOSED)
    J = rbd_ros.world_jacobian(oracle.tree, q, 'tool')[[3, 5]] @ oracle.G(q)
    assert np.allclose(J, closed_forms.five_bar_jacobian(motors), rtol=0.0, atol=SOLUTIONS)


# -- Palletizer. ----------------------------------------------------------------------------------
def test_palletizer_is_that_with_mimics():
    oracle, mimics = loop_robot('palletizer'), palletizer_with_mimics()
    rng, motors = np.random.default_rng(0), MOTORS['palletizer']
    order = [mimics.velocity_names.index(name) for name in motors]
    assert sorted(motors) == sorted(mimics.velocity_names)
    angles, v, a = random_angles(oracle, rng), rng.normal(size=4), rng.normal(size=4)
    q, (q_m, v_m, a_m) = moved_motors(oracle, angles), np.zeros((3, 4))
    q_m[order], v_m[order], a_m[order] = angles, v, a
    assert relative_error(oracle.inverse_dynamics(q, v, a),
                          rbd_ros.inverse_dynamics(mimics, q_m, v_m, a_m)[order]) < SOLUTIONS
    assert relative_error(oracle.reduced(q, v)[0],
                          rbd_ros.mass_matrix(mimics, q_m)[np.ix_(order, order)]) < SOLUTIONS
    poses = dict(zip(mimics.link_names, rbd_ros.forward_kinematics(mimics, q_m)))
    for link, T in oracle.poses(q).items():
        assert np.allclose(T, poses[link], rtol=0.0, atol=CLOSED), link
    # The wrist stays level, and G is constant: all its entries are 0, 1 or -1.
    assert np.allclose(oracle.poses(q)['wrist_link'][:3, 2], [0.0, 0.0, 1.0], atol=CLOSED)
    assert np.allclose(oracle.G(q), np.round(oracle.G(q)), rtol=0.0, atol=SOLUTIONS)
    assert np.max(np.abs(oracle.gamma(q, oracle.G(q) @ v))) < SOLUTIONS


# -- Delta. ---------------------------------------------------------------------------------------
@pytest.mark.parametrize('position', [(0.1, -0.05, -0.7), (-0.2, 0.1, -0.65)])
def test_delta_is_where_three_spheres_meet(position):
    oracle = loop_robot('delta')
    q = moved_motors(oracle, closed_forms.delta_motors(position))
    assert np.allclose(oracle.poses(q)['platform'][:3, 3], position, rtol=0.0, atol=CLOSED)
    assert_joints(oracle, q, closed_forms.delta_platform(np.array(position)))
    rows = [oracle.tree.velocity_names.index(f'platform_{axis}') for axis in 'xyz']
    assert np.allclose(oracle.G(q)[rows], closed_forms.delta_jacobian(np.array(position)),
                       rtol=0.0, atol=SOLUTIONS)
