# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""States of robots with closed loops, from the joint states of some of their joints."""

from harness import joint_state
import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.runtime.share_directory import share
from rbd_ros.ros.state.closed_joint_states import ClosedJointStates, CONTRADICTION
from robots import load_quietly

# rad or m: Newton's method ends at 1e-13; transmissions of these robots are below 100
CLOSED = 1e-10
TIMEOUT = 0.5
FOUR_BAR = ('crank', 'coupler', 'rocker')


def robot(name):
    """Return one of the robots in urdf/."""
    return load_quietly(share('urdf', f'{name}.urdf'))


class Mechanism:
    """A moving robot whose positions and velocities are known, and the states under test."""

    def __init__(self, name, seed=0):
        self.model = robot(name)
        self.tree = self.model.unconstrained
        self.states, self.now = ClosedJointStates(self.model), 0.0
        self.q = rbd_ros.neutral(self.model)
        self.v = 0.3 * np.random.default_rng(seed).normal(size=self.model.nv)

    def move(self, time):
        """Move with constant velocities of the motors."""
        self.q = rbd_ros.integrate(self.model, self.q, self.v, time)
        self.now += time

    def velocities(self):
        """Return the velocities of all joints, by central differences."""
        step = 1e-6
        ahead, behind = (rbd_ros.integrate(self.model, self.q, self.v, sign * step)
                         for sign in (1.0, -1.0))
        return (ahead - behind) / (2.0 * step)

    def send(self, names, offset=0.0, velocity=True, effort=()):
        """Send what sensors measure at some joints; return which are missing."""
        places = [self.model.position_names.index(name) for name in names]
        self.states.update(joint_state(
            names, self.q[places] + offset, self.velocities()[places] if velocity else (), effort),
            self.now)
        return self.states.missing(self.now, TIMEOUT)


@pytest.mark.parametrize('name, measured', [
    ('four_bar', ['crank']), ('four_bar', ['rocker']), ('four_bar', ['coupler', 'crank']),
    ('slider_crank', ['slider']), ('five_bar', ['right_elbow', 'left_elbow']),
    ('five_bar', ['left_shoulder', 'right_elbow']),
    ('palletizer', ['crank', 'flange', 'yaw', 'shoulder']),
    ('palletizer', ['elbow', 'wrist', 'yaw', 'flange']),
    ('delta', ['motor_1', 'motor_2', 'motor_3']),
    ('delta', ['platform_x', 'platform_y', 'platform_z'])])
def test_joints_that_determine_the_rest_give_the_whole_state(name, measured):
    one = Mechanism(name)
    one.move(0.5)       # four-bar and slider-crank are not singular here
    for _ in range(20):
        one.move(0.05)
        assert one.send(measured) == []
        assert np.max(np.abs(one.states.q - one.q)) < CLOSED
        # Central differences are accurate to about 1e-9 here.
        assert np.max(np.abs(one.states.v - one.v)) < 1e-6
        assert np.max(np.abs(one.states.all_velocities(one.states.v) - one.velocities())) < 1e-6


def test_all_joints_may_be_measured_and_independent_ones_are_kept():
    one = Mechanism('palletizer')
    one.move(0.4)
    noise = 1e-3 * np.random.default_rng(0).normal(size=one.model.nq)
    assert one.send(one.model.position_names, noise) == []
    own = [one.model.position_names.index(name) for name in one.model.velocity_names]
    assert np.all(one.states.q[own] == (one.q + noise)[own])
    rbd_ros.mass_matrix(one.model, one.states.q)       # raises if the loops are open


@pytest.mark.parametrize('measured', [
    ['yaw', 'shoulder', 'crank'], ['yaw', 'shoulder', 'elbow', 'flange', 'wrist'][:1],
    ['shoulder', 'crank', 'elbow', 'wrist', 'plate']])
def test_joints_that_do_not_determine_the_rest_are_missing(measured):
    one = Mechanism('palletizer')
    one.move(0.2)
    missing = one.send(measured)
    assert missing and {*missing} == {*one.model.velocity_names} - {*measured}
    assert not one.states.why_open
    assert one.send(one.model.velocity_names) == []


def test_an_old_motor_position_counts_as_missing_unless_other_joints_determine_it():
    one = Mechanism('four_bar')
    one.move(0.5)
    assert one.send(['crank', 'rocker']) == []
    one.now += TIMEOUT + 0.1
    assert one.states.missing(one.now, TIMEOUT) == ['crank']
    one.move(0.1)
    assert one.send(['rocker']) == []
    assert np.max(np.abs(one.states.q - one.q)) < CLOSED


def test_old_efforts_of_motors_count_as_missing():
    one = Mechanism('four_bar')
    one.move(0.5)
    one.send(FOUR_BAR, effort=[1.0, 2.0, 3.0])
    assert one.states.effort.tolist() == [1.0]
    one.now += TIMEOUT + 0.1
    one.send(['rocker'], effort=[4.0])
    assert np.isnan(one.states.effort).all()
    one = Mechanism('palletizer')
    one.send(one.model.position_names, effort=np.arange(10.0))
    assert one.states.effort.tolist() == [
        one.model.position_names.index(name) for name in one.model.velocity_names]


def test_unknown_velocities_are_missing_and_replaced():
    one = Mechanism('five_bar')
    one.move(0.3)
    one.send(['left_shoulder', 'right_elbow'], velocity=False)
    assert one.states.missing_velocities() == ['left_shoulder', 'right_shoulder']
    assert one.states.velocity_or(0.0).tolist() == [0.0, 0.0]
    # Positions are differentiated before the loops give those of the motors.
    one = Mechanism('five_bar')
    for _ in range(40):
        one.move(0.002)
        places = [one.model.position_names.index(name) for name in ('left_elbow', 'right_elbow')]
        one.states.update(joint_state(['left_elbow', 'right_elbow'], one.q[places]), one.now,
                          one.now, filter_time=0.0)
        assert one.states.missing(one.now, TIMEOUT) == []
    assert np.max(np.abs(one.states.velocity_or(None) - one.v)) < 0.01


def test_a_passive_joint_that_contradicts_the_motors_is_named():
    one = Mechanism('palletizer')
    one.move(0.3)
    elbow = np.array([1.0 if name == 'elbow' else 0.0 for name in one.model.position_names])
    assert one.send(one.model.position_names, 0.5 * CONTRADICTION * elbow) == []
    assert one.send(one.model.position_names, 1.5 * CONTRADICTION * elbow) != []
    assert "'elbow' is measured 0.15 rad from where" in one.states.why_open
    assert one.send(one.model.position_names) == [] and not one.states.why_open


def test_measured_passive_joints_select_the_assembly_of_a_loop():
    one = Mechanism('five_bar')
    q = rbd_ros.neutral(one.model)
    # The other way: both elbows on the other sides of the lines between shoulders and hand.
    other = next(x for x in (rbd_ros.model.normalize(one.model, rbd_ros.model.normalize(
        one.model, np.where(np.isin(np.array(one.model.position_names),
                                    one.model.velocity_names), q, -q + k)))
        for k in np.linspace(-1.0, 1.0, 9)) if np.max(np.abs(x - q)) > 0.5)
    one.q = other
    assert one.send(one.model.velocity_names) == []
    assert np.max(np.abs(one.states.q - q)) < CLOSED
    assert one.send(one.model.position_names) == []
    assert np.max(np.abs(one.states.q - other)) < CLOSED
    # Strides from the first way are tried before, and contradict the passive joints.
    far = Mechanism('five_bar')
    far.q, far.v = other, np.array([0.5, 0.5])
    far.move(0.6)
    assert far.send(far.model.position_names) == [] and not far.states.why_open
    assert np.max(np.abs(far.states.q - far.q)) < CLOSED


def test_a_long_step_keeps_the_assembly_of_a_loop():
    one = Mechanism('four_bar')
    one.v = np.array([-1.0])
    for _ in range(40):
        one.move(0.05)
    # From the first guess, at the neutral configuration, in one step of 2 rad; Newton's method
    # alone leads to the other way to assemble.
    direct = np.where(np.array(FOUR_BAR) == 'crank', one.q, rbd_ros.neutral(one.model))
    assert np.max(np.abs(rbd_ros.model.normalize(one.model, direct) - one.q)) > 0.5
    assert one.send(['crank']) == []
    assert np.max(np.abs(one.states.q - one.q)) < CLOSED


@pytest.mark.parametrize('turns', [1, -1, 3])
def test_full_turns_of_a_continuous_joint_do_not_change_other_joints(turns):
    # This arm cannot really turn around: the way would lead through singular positions.
    text = share('urdf', 'five_bar.urdf').read_text()
    model = rbd_ros.load_urdf_string(text.replace(
        'name="left_shoulder" type="revolute"', 'name="left_shoulder" type="continuous"'))
    states, names = ClosedJointStates(model), model.velocity_names
    expected = rbd_ros.integrate(model, rbd_ros.neutral(model), np.array([0.3, 0.2]), 1.0)
    states.update(joint_state(names, expected[model.loops.own]), 0.0)
    assert states.missing(0.0, TIMEOUT) == []
    expected[model.position_names.index('left_shoulder')] += 2.0 * np.pi * turns
    states.update(joint_state(names, expected[model.loops.own]), 0.0)
    assert states.missing(0.0, TIMEOUT) == []
    assert np.max(np.abs(states.q - expected)) < CLOSED


def test_an_exactly_singular_position_is_reported_and_recovers():
    # A quarter of a turn from its neutral configuration, crank and rod are in line.
    crank = robot('slider_crank')
    model = rbd_ros.model.with_constraints(crank.unconstrained, crank.constraints, ['slider'])
    states = ClosedJointStates(model)
    q = rbd_ros.integrate(crank, rbd_ros.neutral(crank), np.ones(1), 0.5 * np.pi)
    states.update(joint_state(model.position_names, q), 0.0)
    assert states.missing(0.0, TIMEOUT) != []
    assert 'is singular here' in states.why_open
    states.update(joint_state(model.position_names,
                              rbd_ros.integrate(crank, q, np.ones(1), 0.3)), 0.1)
    assert states.missing(0.1, TIMEOUT) == []


def test_near_singular_positions_all_numbers_are_finite():
    model = rbd_ros.model.with_constraints(robot('four_bar').unconstrained,
                                           robot('four_bar').constraints, ['rocker'])
    states = ClosedJointStates(model)
    crank = robot('four_bar')
    found = []
    q = rbd_ros.neutral(crank)
    # A full turn.
    for k in range(320):
        q = rbd_ros.integrate(crank, q, np.ones(1), 0.02)
        states.update(joint_state(FOUR_BAR, q), 0.01 * k)
        found.append(states.missing(0.01 * k, TIMEOUT))
        if not found[-1]:
            assert np.all(np.isfinite(rbd_ros.mass_matrix(model, states.q)))
    assert found.count([]) > 280


def test_states_are_forgotten_and_the_last_solution_is_the_next_guess():
    one = Mechanism('four_bar')
    one.move(0.5)
    one.send(['crank'])
    one.states.forget()
    assert one.states.missing(one.now, TIMEOUT) == ['crank']
    assert one.send(['crank']) == []
    assert np.max(np.abs(one.states.q - one.q)) < CLOSED


def test_only_measured_joints_must_be_confirmed():
    one = Mechanism('four_bar')
    one.move(0.5)
    places = [one.model.position_names.index('crank')]
    for time, unconfirmed in ((0.0, True), (0.01, False)):
        one.states.update(joint_state(['crank'], one.q[places], [0.0]), time, fastest=3.0)
        assert one.states.missing(time, TIMEOUT) == []
        assert one.states.unconfirmed == unconfirmed
    assert [*one.states.ages(1.0)] == ['crank']
