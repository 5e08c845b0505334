# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What efforts mean, on the way in and on the way out, and whether that can be."""

import numpy as np
import pytest
from rbd_ros.control import EffortConvention
from rbd_ros.control.effort_convention import convention_mismatch, CONVENTIONS

NAMES = ('a', 'b', 'c')
G, CORIOLIS = np.array([10.0, -4.0, 0.5]), np.array([0.3, 0.2, -0.1])
# By convention, what a robot adds to commands and takes off measured efforts by itself.
OWN = {'full': 0.0 * G, 'without_gravity': G, 'without_gravity_and_coriolis': G + CORIOLIS}


@pytest.mark.parametrize('convention', CONVENTIONS)
def test_onboard_compensation_is_added_to_states_and_subtracted_from_commands(convention):
    of_states, of_commands = EffortConvention(states=convention), EffortConvention(
        commands=convention)
    tau = np.array([12.0, 3.0, -1.0])
    measured = tau - OWN[convention]
    assert np.allclose(measured + of_states.left_out_of_states(G, CORIOLIS), tau)
    assert np.allclose(of_commands.without_own(tau, G, CORIOLIS) + OWN[convention], tau)
    # Each way has its own.
    assert np.array_equal(of_states.without_own(tau, G, CORIOLIS), tau)
    assert not of_commands.left_out_of_states(G, CORIOLIS).any()


def test_constants_are_those_of_their_joints_and_one_elsewhere():
    convention = EffortConvention(joints=('c', 'a'), state_constants=(-12.0, 9.0),
                                  command_constants=(2.0, 3.0))
    assert convention.constants_of_states(NAMES).tolist() == [9.0, 1.0, -12.0]
    assert convention.constants_of_commands(NAMES[::-1]).tolist() == [2.0, 1.0, 3.0]
    assert EffortConvention().constants_of_states(NAMES).tolist() == [1.0, 1.0, 1.0]


FRICTION = np.array([1.5, 1.5, -1.5])


@pytest.mark.parametrize('states, torques, said', [
    ('full', G, ''),
    ('full', G + FRICTION, ''),                 # stuck where it came to rest
    ('full', 1.3 * G, ''),                      # a load that is not known
    ('full', FRICTION, 'without_gravity fits better'),
    ('full', -G + FRICTION, 'negative effort_convention.state_constants fits better'),
    ('full', 0.1 * G, 'without_gravity fits better'),
    ('full', 5.0 * G, 'nothing else fits'),
    ('full', np.array([0.0, 25.0, 9.0]), 'nothing else fits'),
    ('without_gravity', FRICTION, ''),
    ('without_gravity', G, 'effort_convention.states: full fits better'),
    ('without_gravity', -G, 'negative effort_convention.state_constants fits better'),
    ('without_gravity_and_coriolis', FRICTION, ''),
    ('without_gravity_and_coriolis', G, 'effort_convention.states: full fits better')])
def test_efforts_at_rest_reveal_a_wrong_convention(states, torques, said):
    found = convention_mismatch(EffortConvention(states=states), NAMES, torques, G)
    assert said in found
    assert bool(found) == bool(said)


def test_a_wrong_convention_is_reported_for_the_clearest_joint():
    assert "'a' measures 0 where gravity takes 10 N m or N" in convention_mismatch(
        EffortConvention(), NAMES, np.zeros(3), G)


def test_small_gravity_torques_reveal_no_wrong_convention():
    assert not convention_mismatch(EffortConvention(), NAMES, np.zeros(3), 0.05 * G)
