# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Every term against Pinocchio, an independent program, on real robots."""

import numpy as np
import pinocchio
import pytest
import rbd_ros
from robots import example_urdf, load_quietly, Oracle, random_state, relative_error

# Rounding: about n products deep, times the spread of masses between a torso and a finger.
ROUNDING = 1e-12
# C v is a difference of torques there, with gravity taken off.
CORIOLIS = 1e-10
# Forward dynamics divides by inertias as small as 1e-7 of the largest.
INVERSION = 1e-9

ROBOTS = ['ur10_robot.urdf', 'panda.urdf', 'talos_reduced.urdf', 'talos_full_v2.urdf',
          'tiago.urdf', 'anymal_b_simple_description/robots/anymal.urdf', 'icub.urdf',
          'kinova.urdf', 'baxter.urdf', 'romeo.urdf', 'g1_29dof_with_hand_rev_1_0.urdf',
          'tiago_pro.urdf']


@pytest.fixture(scope='module', params=ROBOTS)
def pair(request):
    """Return a robot, and the same in Pinocchio."""
    path = example_urdf(request.param)
    model = load_quietly(path)
    return model, Oracle(path, model)


@pytest.mark.parametrize('seed', range(3))
def test_all_terms_match_pinocchio(pair, seed):
    model, oracle = pair
    q, v, _ = random_state(model, seed)
    zero = np.zeros(model.nv)
    com, J_com = oracle.com(q)
    terms = rbd_ros.all_terms(model, q, v)
    assert relative_error(terms.M, oracle.M(q)) < ROUNDING
    assert relative_error(terms.C, oracle.C(q, v)) < ROUNDING
    gravity = oracle.tau(q, zero, zero)
    assert relative_error(terms.g, gravity) < ROUNDING
    assert relative_error(terms.coriolis_torques, oracle.tau(q, v, zero) - gravity) < CORIOLIS
    assert relative_error(terms.com, com) < ROUNDING
    assert relative_error(terms.com_jacobian, J_com) < ROUNDING


@pytest.mark.parametrize('seed', range(3))
def test_inverse_dynamics_matches_pinocchio(pair, seed):
    model, oracle = pair
    q, v, a = random_state(model, seed)
    zero = np.zeros(model.nv)
    assert relative_error(rbd_ros.inverse_dynamics(model, q, v, a),
                          oracle.tau(q, v, a)) < ROUNDING
    assert relative_error(rbd_ros.bias_torques(model, q, v), oracle.tau(q, v, zero)) < ROUNDING
    assert relative_error(rbd_ros.gravity_torques(model, q),
                          oracle.tau(q, zero, zero)) < ROUNDING


@pytest.mark.parametrize('seed', range(3))
def test_forward_dynamics_matches_pinocchio(pair, seed):
    model, oracle = pair
    q, v, a = random_state(model, seed)
    tau = oracle.tau(q, v, a)
    if model.name == 'romeo':
        with pytest.raises(rbd_ros.SingularError, match="'RHand' moves no inertia"):
            rbd_ros.forward_dynamics(model, q, v, tau)
        return
    got = rbd_ros.forward_dynamics(model, q, v, tau)
    expected = a if not model.coordinates.is_identity else oracle.forward(q, v, tau)
    assert relative_error(got, expected) < INVERSION


def test_kinematics_matches_pinocchio(pair):
    model, oracle = pair
    q, _, _ = random_state(model, 0)
    poses = rbd_ros.forward_kinematics(model, q)
    for link, T in zip(model.link_names, poses):
        assert relative_error(T, oracle.pose(q, link)) < ROUNDING
    for link in model.link_names[::7]:
        assert relative_error(rbd_ros.body_jacobian(model, q, link),
                              oracle.jacobian(q, link)) < ROUNDING


def test_external_wrench_matches_pinocchio(pair):
    model, oracle = pair
    q, v, a = random_state(model, 0)
    link = model.link_names[-1]
    wrench = np.array([0.3, -0.2, 0.1, 4.0, -5.0, 6.0])
    frame = oracle.pin.frames[oracle.pin.getFrameId(link, pinocchio.FrameType.BODY)]
    forces = pinocchio.StdVec_Force()
    forces.extend(pinocchio.Force.Zero() for _ in range(oracle.pin.njoints))
    forces[frame.parentJoint] = frame.placement.act(pinocchio.Force(wrench[3:], wrench[:3]))
    got = rbd_ros.inverse_dynamics(model, q, v, a, external_wrenches={link: wrench})
    assert relative_error(got, oracle.tau(q, v, a, forces)) < ROUNDING
