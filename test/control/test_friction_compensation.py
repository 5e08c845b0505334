# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Compensation of friction never gives a joint more energy than friction takes from it."""

from hypothesis import given, settings, strategies as st
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import friction_compensation
from rbd_ros.model import with_friction
from rbd_ros.simulation.simulator import Simulator
from robots import example_urdf, load_quietly

# Share of a power that is rounding.
ROUNDING = 1e-12


def joint_with(damping, friction, stribeck, speed, shares, offset):
    """Return one joint with friction of every kind."""
    return (rbd_ros.ModelBuilder('r').link('base').link('arm', mass=1.0, com=(0, 0, -1))
            .joint('j', 'continuous', 'base', 'arm', axis=(0, 1, 0), damping=damping,
                   damping_asymmetry=shares[0] * damping, friction=friction,
                   friction_asymmetry=shares[1] * friction, stribeck_friction=stribeck,
                   stribeck_velocity=speed, effort_offset=offset).build())


SIZE, SHARE = st.floats(0.0, 50.0), st.floats(-1.0, 1.0)
JOINTS = st.builds(joint_with, SIZE, SIZE, SIZE, st.floats(1e-3, 2.0), st.tuples(SHARE, SHARE),
                   st.floats(-10.0, 10.0))


@settings(max_examples=60, deadline=None, derandomize=True, database=None)
@given(model=JOINTS, dead_band=st.floats(0.0, 1.0),
       motion=st.lists(st.tuples(st.floats(-3.0, 3.0), SHARE, st.floats(0.0, 1.0)), min_size=1))
def test_friction_compensation_adds_at_most_the_energy_that_friction_dissipates(
        model, dead_band, motion):
    v, error, time = np.array(motion).T
    offset = model.effort_offset[0]
    got = friction_compensation(model, (v + dead_band * error)[:, None], dead_band=dead_band)
    got = (got[:, 0] - offset) * v * time
    taken = (rbd_ros.friction_torques(model, v[:, None])[:, 0] - offset) * v * time
    # Not only in the end: no joint is ever lent anything.
    tiny = ROUNDING * (1.0 + np.max(np.abs(taken)) + abs(offset))
    assert np.all(got >= -tiny)
    assert np.all(np.cumsum(got) <= np.cumsum(taken) + tiny)
    assert np.all(got <= taken + tiny)


def test_compensation_is_all_of_the_friction_of_an_exact_velocity():
    model = joint_with(3.0, 2.0, 1.0, 0.1, (0.5, -0.5), 0.7)
    v = np.array([[-1.0], [-0.01], [0.0], [0.01], [1.0]])
    assert np.array_equal(friction_compensation(model, v, dead_band=0.0),
                          rbd_ros.friction_torques(model, v))


def test_compensation_is_that_of_the_dead_band_written_out():
    model = joint_with(3.0, 2.0, 1.0, 0.1, (0.5, -0.5), 0.7)
    for v in (0.0, 0.02, -0.019):
        assert friction_compensation(model, [v], dead_band=0.02)[0] == 0.7
    decay = np.exp(-(0.05 / 0.1) ** 2)
    assert friction_compensation(model, [0.03], dead_band=0.02)[0] == pytest.approx(
        (3.0 + 1.5) * 0.01 + 0.5 * (2.0 - 1.0 + decay) + 0.7, rel=ROUNDING)
    decay = np.exp(-(0.52 / 0.1) ** 2)
    assert friction_compensation(model, [-0.5], dead_band=0.02)[0] == pytest.approx(
        -(3.0 - 1.5) * 0.48 - (2.0 + 1.0 + decay) + 0.7, rel=ROUNDING)


def test_compensation_never_steps():
    model = joint_with(3.0, 2.0, 1.0, 0.1, (0.5, -0.5), 0.7)
    v = np.arange(-0.2, 0.2, 1e-6)[:, None]
    steps = np.abs(np.diff(friction_compensation(model, v, dead_band=0.02), axis=0))
    # From nothing to 2 + 1 + 1 N m within the dead band, and viscous friction besides.
    assert np.max(steps) < 1.2e-6 * (4.0 / 0.02 + 4.5)


@pytest.mark.parametrize('noise, moves', [(0.02, False), (0.5, True)])
def test_a_robot_that_is_compensated_stays_at_rest_under_noise_up_to_the_dead_band(noise, moves):
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    model = with_friction(model, friction=np.array([9.0, 9.0, 5.0, 1.0, 1.0, 1.0]),
                          damping=np.array([5.0, 5.0, 3.0, 1.0, 1.0, 1.0]),
                          effort_offset=np.linspace(-1.0, 1.0, 6))
    q = np.array([0.3, -1.0, 0.8, 0.2, 0.5, 0.1])
    simulator, rng = Simulator(model, q), np.random.default_rng(0)
    for _ in range(500):
        v = simulator.v + rng.uniform(-noise, noise, 6)
        simulator.advance(rbd_ros.gravity_torques(model, simulator.q)
                          + friction_compensation(model, v, dead_band=0.02))
    assert np.any(simulator.q != q) == moves
