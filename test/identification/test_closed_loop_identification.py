# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Identification of robots with closed loops, from arrays and from recordings of their motors."""

from closed_robots import closed_robot, driven
from covering import covering
from known_motions import SineSum
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification import Recording
from rbd_ros.identification.reduction import samples_of
from rbd_ros.identification.torque_uncertainty import model_torques
from rbd_ros.model import inertial_parameters, with_friction, with_inertial_parameters
from robots import relative_error

STATES = 150


def robot(name='five_bar'):
    """Return a robot with viscous and Coulomb friction, rotors and springs at all joints."""
    bare = closed_robot(name).model
    model = driven(bare, 4)
    names = [joint.name for joint in bare.joints if joint.nv]
    return with_friction(model, stribeck_friction=dict.fromkeys(names, 0.0))


def motion(model, seed=0):
    """Return random states and their torques, with friction and springs."""
    rng = np.random.default_rng(seed)
    Q = np.array([rbd_ros.random_configuration(model, rng) for _ in range(STATES)])
    V, A = 2.0 * rng.normal(size=(2, STATES, model.nv))
    return Q, V, A, torques(model, Q, V, A)


def torques(model, Q, V, A):
    return np.array([rbd_ros.inverse_dynamics(model, *state) for state in zip(Q, V, A)]) \
        + rbd_ros.friction_torques(model, V, q=Q) + rbd_ros.spring_torques(model, Q)


def test_torques_are_known_plus_a_regressor_times_parameters():
    model = robot()
    Q, V, A, Tau = motion(model)
    for friction in ((), ('viscous',), ('viscous', 'coulomb', 'offset')):
        for rotors in (False, True):
            parameters = identification.parameters.robot_parameters(model, friction, rotors)
            states = identification.parameters.States(Q, V, A, np.sign(V))
            found = (parameters.regressor(states) @ parameters.values + parameters.known(states))
            assert relative_error(found, Tau) < 1e-9


@pytest.mark.parametrize('name', covering(['four_bar', 'five_bar'], 'five_bar'))
def test_a_robot_is_identified(name):
    model = robot(name)
    Q, V, A, Tau = motion(model)
    passive = {joint.name for joint in model.joints if joint.nv} - {*model.independent_joints}
    wrong = with_inertial_parameters(model, 1.5 * inertial_parameters(model))
    wrong = with_friction(wrong, damping=1.3 * model.damping, friction=0.8 * model.friction,
                          effort_offset=0.0 * model.effort_offset)
    found = rbd_ros.identify(wrong, Q, V, A, Tau)
    assert found.relative_error < 1e-3
    Q, V, A, Tau = motion(model, 1)
    fit = found.model
    assert fit.velocity_names == model.velocity_names and fit.constraints
    assert relative_error(torques(fit, Q, V, A), Tau) < 5e-3 < relative_error(
        torques(wrong, Q, V, A), Tau)
    assert np.allclose(fit.damping, model.damping, rtol=0.05)
    # Friction of passive joints is known, not identified.
    assert not any(name.split('.')[0] in passive for name in found.names if '/' not in name)
    for k, name in enumerate(fit.unconstrained.velocity_names):
        if name in passive:
            assert fit.unconstrained.damping[k] == model.unconstrained.damping[k] > 0.0
            assert fit.unconstrained.armature[k] == model.unconstrained.armature[k] > 0.0


def test_base_parameters_span_the_torques():
    model = robot()
    base = identification.base_parameters(model)
    Q, V, A, _ = motion(model, 3)
    pi = inertial_parameters(model)
    for state in zip(Q[:20], V, A):
        Y = rbd_ros.torque_regressor(model, *state)
        assert relative_error(Y[:, base.independent] @ base.combination @ pi, Y @ pi) < 1e-7
    assert 0 < len(base.names) < len(pi)


def test_a_payload_is_identified():
    model = robot()
    link = model.links[-1].name
    loaded = rbd_ros.with_payload(model, link, 0.8, (0.1, 0.0, 0.05))
    Q, V, A, Tau = motion(loaded)
    found = identification.identify_payload(model, link, Q, V, A, Tau)
    again = rbd_ros.with_payload(model, link, found.mass, found.com, found.inertia)
    assert relative_error(torques(again, Q, V, A), Tau) < 5e-3
    assert relative_error(torques(model, Q, V, A), Tau) > 0.02


def simulated(model, seconds):
    """Return a recording of the motors of a five-bar, and its positions."""
    time, own = np.arange(0.0, seconds, 1e-2), closed_robot('five_bar').oracle.independent
    sines = SineSum(2, np.random.default_rng(0), speed=0.8)
    start = rbd_ros.neutral(model)
    X = sines(time) - sines(np.zeros(1)) + start[own]
    Q = [start]
    for x in X:
        Q.append(rbd_ros.integrate(model, Q[-1], x - Q[-1][own], 1.0))
    Q, V, A = np.array(Q[1:]), sines(time, 1), sines(time, 2)
    return Recording('simulated', model.velocity_names, time, X, V, torques(model, Q, V, A)), Q


def test_springs_and_friction_of_dependent_joints_are_no_delay():
    model = robot()
    recording, _ = simulated(model, 8.0)
    assert abs(identification.prepare(model, recording).delay) < 1e-3
    # Without them, the delays are equally bad up to the longest one that is tried.
    bare = identification.prepare(closed_robot('five_bar').model, recording)
    assert bare.delay == 0.0 and bare.delay_deviation == np.inf


def test_a_recording_of_motors_is_enough():
    model, oracle = robot(), closed_robot('five_bar').oracle
    recording, Q = simulated(model, 12.0)
    time = recording.time
    samples = identification.prepare(model, recording, delay=0.0)
    inner = samples.usable.any(axis=1)
    assert samples.q.shape == (len(samples.tau), model.nq) and inner.sum() > 500
    there = np.searchsorted(time, samples.time[inner])
    assert np.max(np.abs(samples.q[inner] - Q[there])) < 1e-2
    assert max(oracle.gap(q) for q in samples.q[::50]) < 1e-10
    found, dry = model_torques(model, samples, 0.5 * samples.threshold)
    use = samples.usable
    assert np.sqrt(np.mean((found - samples.tau)[use] ** 2)) < 0.02 * np.std(samples.tau)
    assert np.ptp(dry) > 0.1
    part = identification.partial(model, samples)
    fit = identification.fit(model, part)
    assert fit.relative_error < 0.02
    judged = identification.verdict(model, part, fit, samples)
    assert not any('limits' in reason for reason in judged.reasons)


def test_samples_have_closed_configurations():
    model = robot()
    Q, V, A, Tau = motion(model)
    assert samples_of(model, Q, V, A, Tau).q.shape == (STATES, model.nq)
    Q[7, -1] += 0.01
    with pytest.raises(rbd_ros.StateError, match=r'the loops of robot .* are open'):
        rbd_ros.identify(model, Q, V, A, Tau)
