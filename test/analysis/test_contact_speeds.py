# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Effective masses by closed forms and Pinocchio; contacts by integrating two bodies."""

import numpy as np
import pinocchio as pin
import pytest
import rbd_ros
from rbd_ros.analysis import BODY_REGIONS, effective_mass, speed_limit
from robots import example_urdf, load_quietly
from scipy.integrate import solve_ivp

URDF = example_urdf('ur5_robot.urdf')
Q, V = np.linspace(-1.0, 0.8, 6), np.linspace(0.4, -0.6, 6)


@pytest.fixture(scope='module')
def arm():
    """Return a UR5."""
    return load_quietly(URDF)


def by_pinocchio(link, u, payload=None):
    """Return the effective mass at the origin of a link, and its velocity, in its axes."""
    robot = pin.buildModelFromUrdf(str(URDF))
    frame = robot.getFrameId(link)
    if payload:
        robot.appendBodyToJoint(robot.frames[frame].parentJoint,
                                pin.Inertia(payload, np.zeros(3), np.zeros((3, 3))),
                                robot.frames[frame].placement)
    data = robot.createData()
    J = pin.computeFrameJacobian(robot, data, Q, frame, pin.LOCAL)[:3]
    M = pin.crba(robot, data, Q)
    M = np.triu(M) + np.triu(M, 1).T
    u = np.array(u) / np.linalg.norm(u)
    return 1.0 / (u @ J @ np.linalg.inv(M) @ J.T @ u), J @ V


@pytest.mark.parametrize('link', ['ee_link', 'forearm_link'])
@pytest.mark.parametrize('u', [(1.0, 0.0, 0.0), (0.3, -2.0, 0.7)])
def test_effective_mass_is_that_of_pinocchio(arm, link, u):
    assert effective_mass(arm, Q, link, u) == pytest.approx(by_pinocchio(link, u)[0])
    loaded = rbd_ros.with_payload(arm, link, 2.0)
    assert effective_mass(loaded, Q, link, u) == pytest.approx(by_pinocchio(link, u, 2.0)[0])


def test_effective_mass_of_a_slide_and_a_rod():
    slide = (rbd_ros.ModelBuilder('slide').link('base').link('cart', 3.0)
             .joint('x', 'prismatic', 'base', 'cart', axis=(1.0, 0.0, 0.0)).build())
    assert effective_mass(slide, [0.2], 'cart', (2.0, 0.0, 0.0)) == pytest.approx(3.0)
    # 45 degrees off: it moves sideways by as much, so it feels heavier.
    assert effective_mass(slide, [0.2], 'cart', (1.0, 1.0, 0.0)) == pytest.approx(6.0)
    assert effective_mass(slide, [0.2], 'cart', (0.0, 1.0, 0.0)) == np.inf
    heavy = rbd_ros.with_armature(slide, {'x': 1.5})
    assert effective_mass(heavy, [0.2], 'cart', (1.0, 0.0, 0.0)) == pytest.approx(4.5)


def compressed(mass, region, speed, clamped):
    """Return the largest force between a mass and a spring on a body region that may move."""
    def rate(_, y):
        force = region.stiffness * max(y[0] - y[1], 0.0)
        return y[2], y[3], -force / mass, 0.0 if clamped else force / region.mass
    # The force is largest after a quarter of a period, less than 0.1 s.
    done = solve_ivp(rate, (0.0, 0.1), (0.0, 0.0, speed, 0.0), max_step=2e-4, rtol=1e-9)
    return region.stiffness * np.max(done.y[0] - done.y[1])


@pytest.mark.parametrize('name', ['hands and fingers', 'chest', 'face'])
@pytest.mark.parametrize('clamped', [False, True])
def test_at_the_limit_a_contact_reaches_the_force_of_the_table(arm, name, clamped):
    region = BODY_REGIONS[name]
    found = speed_limit(arm, Q, V, 'ee_link', name, clamped=clamped)
    mass, velocity = by_pinocchio('ee_link', by_pinocchio('ee_link', (1, 0, 0))[1])
    assert found.effective_mass == pytest.approx(mass)
    assert found.speed == pytest.approx(np.linalg.norm(velocity))
    force = region.clamped_force if clamped else region.free_force
    assert compressed(mass, region, found.limit, clamped) == pytest.approx(force, rel=1e-3)
    assert found.energy == pytest.approx(0.5 * force ** 2 / region.stiffness)
    # The velocity times the factor is at the limit, or was below it.
    slower = speed_limit(arm, Q, found.factor * V, 'ee_link', name, clamped=clamped)
    assert slower.speed == pytest.approx(min(found.limit, found.speed))
    assert slower.factor == pytest.approx(1.0)
    fast = speed_limit(arm, Q, 50.0 * V, 'ee_link', name, clamped=clamped)
    assert fast.factor == pytest.approx(fast.limit / fast.speed) and fast.factor < 1.0


def test_energies_of_transient_contacts_are_those_of_the_standard():
    # Table A.4 of ISO/TS 15066:2016, J, rounded there.
    for name, energy in (('chest', 1.6), ('abdomen', 2.4), ('pelvis', 2.6),
                         ('upper arms and elbow joints', 1.5),
                         ('lower arms and wrist joints', 1.3), ('thighs and knees', 1.9),
                         ('back and shoulders', 2.5)):
        region = BODY_REGIONS[name]
        assert 0.5 * region.free_force ** 2 / region.stiffness == pytest.approx(energy, abs=0.06)
    assert len(BODY_REGIONS) == 12
    assert all(one.free_force == 2.0 * one.clamped_force for name, one in BODY_REGIONS.items()
               if name not in ('skull and forehead', 'face'))


def test_the_speed_is_that_along_the_direction(arm):
    _, velocity = by_pinocchio('ee_link', (1, 0, 0))
    found = speed_limit(arm, Q, V, 'ee_link', 'chest', direction=(0.0, -3.0, 0.0))
    away = speed_limit(arm, Q, V, 'ee_link', 'chest', direction=(0.0, 3.0, 0.0))
    assert found.speed == pytest.approx(max(-velocity[1], 0.0))
    assert away.speed == pytest.approx(max(velocity[1], 0.0))
    assert found.effective_mass == pytest.approx(by_pinocchio('ee_link', (0, 1, 0))[0])
    assert min(found.speed, away.speed) == 0.0 and max(found.factor, away.factor) == 1.0


def test_wrong_arguments_of_contact_speeds_are_named(arm):
    with pytest.raises(rbd_ros.StateError, match='direction must not be zero'):
        effective_mass(arm, Q, 'ee_link', np.zeros(3))
    with pytest.raises(rbd_ros.StateError, match="'ee_link' does not move"):
        speed_limit(arm, Q, 0.0 * V, 'ee_link', 'chest')
    with pytest.raises(rbd_ros.StateError, match="body_region must be 'skull and forehead' or"):
        speed_limit(arm, Q, V, 'ee_link', 'tail')
    with pytest.raises(rbd_ros.ModelError, match="no link 'hand'"):
        effective_mass(arm, Q, 'hand', (1, 0, 0))
    with pytest.raises(rbd_ros.ModelError, match="no joint moves link 'base_link'"):
        speed_limit(arm, Q, V, 'base_link', 'chest', direction=(1, 0, 0))
