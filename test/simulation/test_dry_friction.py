# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Coulomb friction and stops in the simulator: what holds stays, what slides loses energy."""

from covering import covering, seeds
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model import with_friction
from rbd_ros.simulation.dry_friction import resting_impulses
from rbd_ros.simulation.simulator import Simulator
from robots import example_urdf, load_quietly

G = 9.81


def slider(**drive):
    """Return two kilograms on a level rail."""
    return (rbd_ros.ModelBuilder('slider').link('base').link('car', mass=2.0)
            .joint('rail', 'prismatic', 'base', 'car', **drive).build())


def arm_with_friction(scale):
    """Return a robot with friction of every kind, in proportion to what its joints carry."""
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    size = scale * np.array([60.0, 60.0, 30.0, 6.0, 6.0, 6.0])
    return with_friction(model, friction=size, friction_asymmetry=0.3 * size,
                         stribeck_friction=0.5 * size, stribeck_velocity=np.full(6, 0.05),
                         damping=0.1 * size, damping_asymmetry=-0.05 * size)


@pytest.mark.parametrize('seed', seeds(20))
def test_resting_impulses_satisfy_the_conditions_of_dry_friction(seed):
    rng = np.random.default_rng(seed)
    n = rng.integers(1, 30)
    # Joints of all sizes, coupled: a badly conditioned mass matrix.
    B = rng.normal(size=(n, n)) @ np.diag(10.0 ** rng.uniform(-3.0, 1.0, n))
    A = B @ B.T + 1e-6 * np.eye(n)
    v = rng.normal(size=n)
    lower, upper = -rng.uniform(0.0, 1.0, n), rng.uniform(0.0, 1.0, n)
    upper[rng.random(n) < 0.2], lower[rng.random(n) < 0.2] = np.inf, 0.0
    p, at_rest = resting_impulses(A, v, lower, upper)
    w = v + A @ p
    # The solution of a linear system whose condition is at worst 1e8.
    tiny = 1e-7 * np.max(np.abs(v))
    assert np.all((lower <= p) & (p <= upper))
    assert np.all(np.abs(w[at_rest]) < tiny)
    assert np.all(w[p > lower] < tiny)
    assert np.all(w[p < upper] > -tiny)


@pytest.mark.parametrize('step', covering([1e-3, 1e-4], 1e-3))
def test_sliding_car_stops_after_the_distance_of_its_closed_form(step):
    model = slider(friction=3.0, friction_asymmetry=1.0)
    for start, force in ((1.0, 4.0), (-1.0, 2.0)):
        simulator = Simulator(model, [0.0], step=step)
        simulator.v[0] = start
        simulator.advance([0.0], round(1.1 / step))
        # Half of m v^2 / f, and one step of the greatest speed.
        assert abs(simulator.q[0] - start * 2.0 / (2.0 * force)) < step * abs(start)
        assert simulator.v[0] == 0.0


def test_friction_holds_up_to_its_size_and_no_further():
    model = slider(friction=3.0, friction_asymmetry=1.0, stribeck_friction=0.5,
                   stribeck_velocity=0.1, effort_offset=0.25)
    for tau, moves in ((4.7, 0.0), (-2.2, 0.0), (4.8, 1.0), (-2.3, -1.0)):
        simulator = Simulator(model, [0.0])
        simulator.advance([tau], 200)
        assert np.sign(simulator.q[0]) == moves, tau
        assert moves or simulator.v[0] == 0.0
    simulator = Simulator(slider(effort_offset=0.25), [0.0])
    simulator.advance([1.25], 200)
    # An acceleration of half a metre per second squared, for a fifth of a second.
    assert simulator.v[0] == pytest.approx(0.1, rel=1e-9)


@pytest.mark.parametrize('step', covering([1e-3, 1e-2], 1e-2))
def test_an_arm_with_friction_falls_comes_to_rest_and_stays_there(step):
    model = arm_with_friction(0.3)
    q = np.array([0.3, -1.0, 0.8, 0.2, 0.5, 0.1])
    simulator = Simulator(model, q, step=step)
    simulator.advance(np.zeros(6), round(5.0 / step))
    at_rest = simulator.q.copy()
    assert np.linalg.norm(at_rest - q) > 0.1
    assert not np.any(simulator.v)
    # Gravity pulls on, less than friction can hold.
    assert np.max(np.abs(rbd_ros.gravity_torques(model, at_rest))) > 1.0
    simulator.advance(np.zeros(6), round(5.0 / step))
    assert np.array_equal(simulator.q, at_rest)


def test_energy_of_an_arm_with_friction_never_grows():
    model = arm_with_friction(0.02)
    simulator = Simulator(model, [0.3, -1.0, 0.8, 0.2, 0.5, 0.1], step=5e-4)
    energies = []
    for _ in range(600):
        energies.append(sum(rbd_ros.analysis.energy(model, simulator.q, simulator.v)))
        simulator.advance(np.zeros(6))
    assert np.all(np.diff(energies) < 0.0)
    # Without friction, the steps themselves lose 43 mJ.
    assert energies[0] - energies[-1] > 1.0


@pytest.mark.parametrize('step', covering([1e-3, 1e-1], 1e-1))
def test_asymmetric_damping_has_its_two_terminal_speeds_and_never_turns_a_joint_round(step):
    model = slider(damping=3.0, damping_asymmetry=2.0)
    for tau, speed in ((5.0, 1.0), (-5.0, -5.0)):
        simulator = Simulator(model, [0.0], step=step)
        simulator.advance([tau], round(60.0 / step))
        assert simulator.v[0] == pytest.approx(speed, rel=1e-6)
    stiff = Simulator(slider(damping=1e6, damping_asymmetry=1e6), [0.0], step=step)
    stiff.v[0] = 1.0
    for _ in range(10):
        stiff.advance([0.0])
        assert 0.0 <= stiff.v[0] < 1e-3 / step


def test_a_joint_at_its_stop_is_held_while_other_joints_have_friction():
    # The first joint is pressed onto its stop by what friction does to the second.
    model = (rbd_ros.ModelBuilder('pair').link('base').link('a', mass=1.0).link('b', mass=3.0)
             .joint('i', 'prismatic', 'base', 'a', lower=0.0, upper=1.0)
             .joint('j', 'prismatic', 'a', 'b', friction=5.0).build())
    simulator = Simulator(model, [0.0, 0.0])
    simulator.v[1] = -1.0
    simulator.advance([0.0, 0.0])
    # Friction against -v of b pulls a by -5 N, onto the stop, which carries it.
    assert simulator.q[0] == 0.0 == simulator.v[0]
    assert simulator.v[1] == pytest.approx(-1.0 + 5.0 / 3.0 * 1e-3, rel=1e-9)
    simulator.advance([8.0, 0.0], 1)
    assert simulator.v[0] > 0.0


def test_simulate_with_friction_loses_the_energy_that_friction_dissipates():
    model = slider(damping=1.0, friction=2.0, friction_asymmetry=1.0)
    t = np.linspace(0.0, 0.4, 401)
    motion = rbd_ros.simulate(model, [0.0], [3.0], [0.0], t, friction_speed=0.01)
    # m dv/dt = -f - d v with f = 3 N, far from rest.
    expected = (3.0 + 3.0) * np.exp(-t / 2.0) - 3.0
    assert np.max(np.abs(motion.v[:, 0] - expected)) < 1e-9
    assert np.max(np.abs(motion.energy_drift)) < 1e-9
    free = rbd_ros.simulate(model, [0.0], [3.0], [0.0], t)
    assert np.allclose(free.v, 3.0)
    with pytest.raises(rbd_ros.StateError, match='friction_speed must lie'):
        rbd_ros.simulate(model, [0.0], [3.0], [0.0], t, friction_speed=-1.0)


def test_simulate_with_friction_creeps_below_the_friction_speed():
    t = np.linspace(0.0, 1.0, 101)
    motion = rbd_ros.simulate(slider(friction=2.0), [0.0], [0.01], [0.0], t, friction_speed=0.5)
    # tanh(x) is x but for a third of x^3.
    expected = 0.01 * np.exp(-2.0 / (2.0 * 0.5) * t)
    assert np.max(np.abs(motion.v[:, 0] - expected)) < 0.01 * 0.02 ** 2


def test_simulator_and_simulate_agree_while_joints_slide():
    model = with_friction(arm_with_friction(0.05), stribeck_velocity=np.ones(6))
    q, v = np.array([0.3, -1.0, 0.8, 0.2, 0.5, 0.1]), np.array([1.0, -1.0, 1.0, -2.0, 2.0, 2.0])
    simulator = Simulator(model, q, step=1e-4)
    simulator.v[:] = v
    simulator.advance(np.zeros(6), 200)
    motion = rbd_ros.simulate(model, q, v, np.zeros(6), [0.0, 0.02], method='solve_ivp',
                              friction_speed=0.0)
    assert np.all(np.sign(motion.v[-1]) == np.sign(v))
    # First-order steps of 0.1 ms: twice the error that they have; it falls with the step.
    assert np.max(np.abs(simulator.v - motion.v[-1])) < 4e-4
