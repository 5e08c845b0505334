# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Simulated robots with closed loops keep their energy, and passive joints rub and stop."""

from dataclasses import replace

from closed_robots import closed_robot, driven
from covering import covering
from loop_robots import MOTORS
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, simulate
from rbd_ros.analysis import Simulator
from rbd_ros.model import with_constraints, with_friction, with_springs
from rbd_ros.model.constraints import rebuild


# Of the robots in urdf/, those whose motors may turn as they like.
@pytest.mark.parametrize('name, seconds', covering(
    [('four_bar', 1.0), ('four_bar', 10.0), ('slider_crank', 10.0)], ('four_bar', 1.0)))
def test_energy_of_a_closed_loop_is_kept(name, seconds):
    model, oracle, q, v, _, _ = closed_robot(name)
    motion = simulate(model, q, 0.5 * v, np.zeros(model.nv), np.arange(0.0, seconds, 1.5e-3))
    kinetic = [analysis.kinetic_energy(model, *state) for state in zip(motion.q, motion.v)]
    exchanged = np.ptp(motion.energy - kinetic)
    assert exchanged > 0.1
    assert np.max(np.abs(motion.energy_drift)) < 1e-6 * max(exchanged, np.max(kinetic))
    assert max(oracle.gap(one) for one in motion.q[::100]) < 1e-10


@pytest.mark.parametrize('name', covering(
    ['delta', 'balls', 'mimics and balls', 'coupled', 'palletizer'],
    'delta', 'mimics and balls'))
def test_runge_kutta_is_of_the_fourth_order(name):
    model, _, q, v, _, tau = closed_robot(name)
    ends = {}
    for steps in (4, 8, 64):
        motion = simulate(model, q, v, tau, np.linspace(0.0, 0.08, steps + 1))
        ends[steps] = motion.q[-1], motion.v[-1], motion.energy_drift[-1]
    errors = {steps: np.max(np.abs(rbd_ros.difference(model, ends[64][0], ends[steps][0])))
              + np.max(np.abs(ends[steps][1] - ends[64][1])) for steps in (4, 8)}
    assert errors[8] < 1e-9 or errors[4] / errors[8] > 10.0
    assert abs(ends[64][2]) < 1e-6


def test_methods_of_integration_agree_on_a_closed_loop():
    model, _, q, v, _, tau = closed_robot('five_bar')
    model = driven(model, 3)

    def end(method, steps):
        motion = simulate(model, q, v, tau, np.linspace(0.0, 0.2, steps + 1), method=method,
                          friction_speed=0.5)
        return np.concatenate((motion.q[-1], motion.v[-1]))
    exact = end('runge_kutta_4', 60)
    assert np.max(np.abs(end('solve_ivp', 2) - exact)) < 1e-6
    for method in ('semi_implicit_euler', 'explicit_euler'):
        # Of first order: twice the steps leave half of the error, which this takes off.
        assert np.max(np.abs(2.0 * end(method, 200) - end(method, 100) - exact)) < 5e-4


def test_long_motions_of_solve_ivp_stay_closed():
    model, oracle, q, v, _, _ = closed_robot('four_bar')
    motion = simulate(model, q, 2.0 * v, [0.0], np.linspace(0.0, 3.0, 7), method='solve_ivp')
    assert max(oracle.gap(one) for one in motion.q) < 1e-10
    assert np.max(np.abs(motion.energy_drift)) < 1e-6


def test_friction_and_springs_of_passive_joints_take_energy():
    bare, _, q, v, _, _ = closed_robot('four_bar')
    passive = [joint.name for joint in bare.joints if joint.name not in MOTORS['four_bar']]
    times = np.linspace(0.0, 0.25, 251)
    damped = with_friction(bare, damping=dict.fromkeys(passive, 0.5))
    motion = simulate(damped, q, v, [0.0], times, friction_speed=0.1)
    power = [-v @ rbd_ros.friction_torques(damped, v, q=q, smooth=0.1)
             for q, v in zip(motion.q, motion.v)]
    lost = motion.energy - motion.energy[0]
    assert np.max(np.abs(lost - np.concatenate(([0.0], np.cumsum(
        0.5 * np.diff(times) * (np.array(power[1:]) + power[:-1])))))) < 1e-4 * abs(lost[-1])
    assert lost[-1] < -0.01
    sprung = with_springs(bare, stiffness=dict.fromkeys(passive, 5.0))
    tree = sprung.unconstrained
    motion = simulate(sprung, q, v, [0.0], times)
    stored = 0.5 * np.sum(tree.stiffness * (motion.q - tree.spring_reference) ** 2, axis=1)
    total = motion.energy + stored
    assert np.ptp(stored) > 0.01 and np.ptp(total) < 1e-6


def test_simulator_follows_the_exact_motion():
    bare, _, q, *_ = closed_robot('five_bar')
    model = with_springs(bare, stiffness={joint.name: 2.0 for joint in bare.joints if joint.nv})
    model = with_friction(model, damping={joint.name: 0.3 for joint in bare.joints if joint.nv})
    model = with_friction(model, friction={joint.name: 0.0 for joint in bare.joints if joint.nv})
    simulator = Simulator(model, q, step=2e-4)
    tau = np.array([3.0, -2.0])
    simulator.advance(tau, 1000)
    exact = simulate(model, q, [0.0, 0.0], tau, np.linspace(0.0, 0.2, 101), friction_speed=0.1)
    assert np.max(np.abs(simulator.q - exact.q[-1])) < 1e-3
    assert np.max(np.abs(simulator.v - exact.v[-1])) < 1e-2
    assert np.max(np.abs(exact.v[-1])) > 0.3


def test_dry_friction_of_a_passive_joint_holds_the_loop():
    bare, _, q, _, _, _ = closed_robot('four_bar')
    g = rbd_ros.gravity_torques(bare, q)
    passive = bare.joint_names[1]
    held = Simulator(with_friction(bare, friction={passive: 60.0}), q)
    held.advance([0.0], 200)
    assert np.max(np.abs(held.q - q)) < 1e-6 and np.max(np.abs(held.v)) < 1e-6
    assert abs(g[0]) > 0.3
    falling = Simulator(with_friction(bare, friction={passive: 1e-3}), q)
    falling.advance([0.0], 500)
    assert np.max(np.abs(falling.q - q)) > 0.05


def test_limits_of_passive_joints_stop_the_loop():
    bare, oracle, q, *_ = closed_robot('four_bar')
    tree = oracle.tree
    k = tree.position_names.index('rocker')
    joints = [replace(joint, kind='revolute', lower=(q[k] - 0.1,), upper=(q[k] + 0.1,),
                      velocity=(40.0,), effort=(0.0,)) if joint.name == 'rocker' else joint
              for joint in tree.joints]
    model = with_constraints(rebuild(tree, joints=joints), bare.constraints, ['crank'])
    for tau in (30.0, -30.0):
        simulator = Simulator(model, q)
        reached = []
        for _ in range(35):
            simulator.advance([tau], 20)
            reached.append(simulator.q[k] - q[k])
        assert np.max(np.abs(reached)) < 0.11
        assert np.max(np.abs(reached)) > 0.099
        assert np.max(np.abs(simulator.v)) < 1e-3
