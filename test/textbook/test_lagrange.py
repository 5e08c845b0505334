# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Energies, Christoffel symbols and the sums of Vlasblom, against the recursions."""

from differences import by_q, error, SCREWS, time_rate, tree, TREES, trees_and_robots
import numpy as np
import pytest
import rbd_ros
from rbd_ros import analysis, textbook
from rbd_ros.model.se3 import ad, inertia_matrix
from rbd_ros.textbook import sums_over_links
from rbd_ros.textbook.sums_over_links import momentum_bracket

# Rounding, over some forty bodies.
ROUNDING = 1e-11
# Central differences with the step 1e-6: rounding, divided by it, and a margin.
DIFFERENCES = 1e-6


@trees_and_robots
def test_christoffel_symbols_make_the_coriolis_matrix(make, arguments):
    if make is tree:
        model, q, v, _ = make(*arguments, SCREWS)
    else:
        model, q, v, _ = make(*arguments)
    Gamma = textbook.christoffel_symbols(model, q)
    assert error(Gamma, Gamma.transpose(0, 2, 1)) < ROUNDING
    dM = by_q(lambda x: rbd_ros.mass_matrix(model, x), model, q)
    expected = 0.5 * (np.einsum('kij->ijk', dM) + np.einsum('jik->ijk', dM)
                      - np.einsum('ijk->ijk', dM))
    assert error(Gamma, expected) < DIFFERENCES
    assert error(textbook.christoffel_coriolis_matrix(model, q, v),
                 rbd_ros.coriolis_matrix(model, q, v)) < ROUNDING


@pytest.mark.parametrize('kind', ['spherical', 'free'])
def test_christoffel_symbols_are_refused_by_name_where_v_is_not_dq_dt(kind):
    model = (rbd_ros.ModelBuilder('r').link('a').link('b', 1.0, inertia=(1.0, 1.0, 1.0))
             .joint('hip', kind, 'a', 'b').build())
    for call in (lambda: textbook.christoffel_symbols(model, rbd_ros.neutral(model)),
                 lambda: textbook.christoffel_coriolis_matrix(
                     model, rbd_ros.neutral(model), np.zeros(model.nv))):
        with pytest.raises(rbd_ros.ModelError, match="joint 'hip'"):
            call()


@trees_and_robots
def test_sums_in_com_frames_are_m_and_g(make, arguments):
    model, q, _, _ = make(*arguments)
    assert error(textbook.com_frame_mass_matrix(model, q),
                 rbd_ros.mass_matrix(model, q)) < ROUNDING
    g = textbook.com_frame_gravity_torques(model, q)
    assert error(g, rbd_ros.gravity_torques(model, q)) < ROUNDING
    differences = by_q(lambda x: analysis.potential_energy(model, x), model, q)
    assert error(g, differences) < DIFFERENCES


@pytest.mark.parametrize('seed', TREES)
def test_inverse_dynamics_obeys_the_equations_of_lagrange(seed):
    # tau = d/dt (dK/dv) - dK/dq + dP/dq, where v = dq/dt.
    model, q, v, a = tree(seed, SCREWS)
    momentum_rate = time_rate(lambda x, w: rbd_ros.mass_matrix(model, x) @ w, model, q, v, a)
    slope = by_q(lambda x: analysis.kinetic_energy(model, x, v)
                 - analysis.potential_energy(model, x), model, q)
    assert error(momentum_rate - slope, rbd_ros.inverse_dynamics(model, q, v, a)) < DIFFERENCES


@pytest.mark.parametrize('seed', TREES)
def test_kinetic_energy_is_that_of_all_links(seed):
    model, q, v, _ = tree(seed)
    energy = 0.0
    for J, link in zip(sums_over_links.body_jacobians(model, q), model.links):
        V = J @ v
        speed = V[3:] + np.cross(V[:3], link.com)
        energy += 0.5 * (link.mass * speed @ speed + V[:3] @ link.inertia @ V[:3])
    assert abs(analysis.kinetic_energy(model, q, v) - energy) < ROUNDING * energy


def test_bracket_of_the_momentum_completes_a_three_form():
    # Psi - N(G V), as a function of three twists, changes its sign with any two of them
    # and itself: so both factorizations have the same C v.
    rng = np.random.default_rng(0)
    a, b, c = rng.normal(size=(3, 6))
    link = tree(0)[0].links[1]
    G = inertia_matrix(link.mass, link.com, link.inertia)

    def form(x, y, z):
        return y @ (G @ ad(x) - ad(x).T @ G - momentum_bracket(G @ x)) @ z

    value = form(a, b, c)
    assert abs(value) > 1e-3
    for other in (form(b, a, c), form(a, c, b), form(c, b, a)):
        assert abs(value + other) < ROUNDING
