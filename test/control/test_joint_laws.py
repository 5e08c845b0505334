# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Control laws for joints: what the closed loop does, by forward dynamics."""

from closed_robots import closed_robot
from control_robots import bare_arm, POSE, random_reference, run, trees, with_drives
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import (CartesianImpedance, ComputedTorque, critical_damping, Gravity,
                             Hybrid, JointImpedance, JointReference, PdGravity, PoseReference,
                             SlotineLi)
from rbd_ros.model.positions.configurations import integrate
from robots import relative_error

# Both sides are exact, but for the condition of M.
EXACT = 1e-8
# Differences over a step of 1e-6: the square of the step, and rounding over the step.
STEP, BY_DIFFERENCES = 1e-6, 1e-6
FRICTION = {'damping': 2.0, 'friction': 1.5}
# rad/s: where the tests let friction change its sign
SPEED = 0.05


def state(model, seed):
    """Return a random configuration, a velocity and a reference near to them."""
    rng = np.random.default_rng(seed)
    q, v = rbd_ros.random_configuration(model, rng), rng.normal(size=model.nv)
    return q, v, random_reference(model, rng, q)


def laws(model, **options):
    """Return a controller of each kind that follows the joints."""
    gain = np.linspace(50.0, 100.0, model.nv)
    return [PdGravity(model, gain, 10.0, **options), ComputedTorque(model, gain, **options),
            JointImpedance(model, gain, **options), SlotineLi(model, 5.0, gain, 1.0, **options),
            Hybrid(model, np.arange(model.nv) % 2 == 0, gain, **options)]


LAWS = [type(law).__name__ for law in laws(bare_arm())]


def test_gravity_holds_every_robot_and_its_damping_takes_energy():
    for k, model in enumerate(trees()):
        q, v, _ = state(model, k)
        still = np.zeros(model.nv)
        tau = Gravity(model, 3.0).update(0.0, q, still)
        assert np.max(np.abs(rbd_ros.forward_dynamics(model, q, still, tau))) < EXACT
        assert np.allclose(Gravity(model, 3.0).update(0.0, q, v), tau - 3.0 * v)


def test_gravity_compensates_friction_that_is_surely_there():
    arm = with_drives(bare_arm(), **FRICTION)
    v = np.array([0.0, 0.01, -0.01, 0.03, -1.0, 2.0, 0.5])
    without = Gravity(arm).update(0.0, POSE, v)
    tau = Gravity(arm, friction=True, dead_band=0.02).update(0.0, POSE, v) - without
    assert np.all(tau[:3] == 0.0)                 # may be noise
    assert np.allclose(tau[4:], 1.5 * np.sign(v[4:]) + 2.0 * (v[4:] - 0.02 * np.sign(v[4:])))


def test_pd_gravity_holds_where_springs_balance_the_load():
    arm = bare_arm()
    load, stiffness = np.linspace(-3.0, 3.0, arm.nv), np.linspace(50.0, 100.0, arm.nv)
    held = JointReference(arm, POSE)
    q = POSE + load / stiffness
    tau = PdGravity(arm, stiffness, 5.0).update(0.0, q, np.zeros(7), held)
    assert np.max(np.abs(rbd_ros.forward_dynamics(arm, q, np.zeros(7), tau + load))) < EXACT
    _, v, moving = state(arm, 6)
    more = PdGravity(arm, 0.0, 5.0).update(0.0, POSE, v, moving)
    assert np.allclose(more - rbd_ros.gravity_torques(arm, POSE), 5.0 * (moving.v - v))


def test_errors_of_computed_torque_are_linear():
    for k, model in enumerate(trees()):
        q, v, reference = state(model, k)
        kp, kd = (np.random.default_rng(k).uniform(1.0, 50.0, model.nv) for _ in range(2))
        tau = ComputedTorque(model, kp, kd).update(0.0, q, v, reference)
        a = rbd_ros.forward_dynamics(model, q, v, tau)
        e = rbd_ros.difference(model, q, reference.q)
        assert relative_error(reference.a - a, -kd * (reference.v - v) - kp * e) < EXACT


def test_errors_of_computed_torque_die_out_as_the_solution_of_their_equation():
    arm, w, t_end = bare_arm(), 8.0, 0.5
    error = np.linspace(-0.2, 0.3, arm.nv)

    def reference(t):
        return JointReference(arm, POSE + 0.3 * np.sin(2.0 * t), np.full(7, 0.6 * np.cos(2.0 * t)),
                              np.full(7, -1.2 * np.sin(2.0 * t)))

    errors = []
    for step in (1e-3, 5e-4):
        t, q, _ = run(arm, ComputedTorque(arm, w ** 2), reference, POSE - error,
                      reference(0.0).v, t_end, step)
        e = np.array([reference(x).q for x in t]) - q
        errors.append(np.max(np.abs(e - np.outer((1.0 + w * t) * np.exp(-w * t), error))))
    # Torques are held for a step: an error of first order.
    assert errors[1] < 2e-3
    assert errors[0] / errors[1] == pytest.approx(2.0, rel=0.1)


@pytest.mark.parametrize('ratio', [0.1, 0.7])
def test_all_modes_have_the_damping_ratio(ratio):
    rng = np.random.default_rng(3)
    A = rng.normal(size=(6, 6))
    inertia, stiffness = A @ A.T + 0.1 * np.eye(6), rng.uniform(1.0, 1e3, 6)
    D = critical_damping(inertia, stiffness, ratio)
    assert np.allclose(D, D.T)
    # M x'' + D x' + K x = 0 as a system of first order
    system = np.block([[np.zeros((6, 6)), np.eye(6)],
                       [-np.linalg.solve(inertia, np.diag(stiffness)),
                        -np.linalg.solve(inertia, D)]])
    s = np.linalg.eigvals(system)
    assert np.allclose(-s.real / np.abs(s), ratio)
    # Free directions are undamped.
    stiffness[2] = 0.0
    w = np.linalg.eigvalsh(critical_damping(inertia, stiffness, ratio))
    assert abs(w[0]) < 1e-9 < w[1]
    assert np.all(critical_damping(inertia, np.zeros(6), ratio) == 0.0)
    assert critical_damping(np.zeros((0, 0)), np.zeros(0), ratio).shape == (0, 0)


@pytest.mark.parametrize('robot', ['arm', 'tree', 'delta'])
def test_damping_is_the_derivative_of_the_torques_at_rest(robot):
    if robot == 'delta':
        closed = closed_robot(robot)
        model, q = closed.model, closed.q
    else:
        model = bare_arm() if robot == 'arm' else trees()[1]
        q = rbd_ros.random_configuration(model, np.random.default_rng(0))
    link = model.link_names[-1]
    pose = PoseReference(rbd_ros.forward_kinematics(model, q)[-1])
    impedance = CartesianImpedance(model, link, 400.0, posture=q, posture_stiffness=20.0)
    for law in [Gravity(model, np.linspace(1.0, 2.0, model.nv)),
                *laws(model, friction_speed=None), impedance]:
        reference = {JointReference: JointReference(model, q), PoseReference: pose}.get(
            law.reference_type)
        D = np.empty((model.nv, model.nv))
        for k, one in enumerate(1e-3 * np.eye(model.nv)):
            D[:, k] = (law.update(0.0, q, -one, reference)
                       - law.update(0.0, q, one, reference)) / 2e-3
        assert relative_error(law.damping(q), D) < EXACT, type(law)


def test_an_inertia_that_is_not_positive_definite_is_refused():
    with pytest.raises(np.linalg.LinAlgError, match='not positive definite'):
        critical_damping(np.diag([1.0, -1.0]), np.ones(2), 1.0)


def test_impedance_is_a_mass_on_springs_and_dampers():
    for k, model in enumerate(trees()):
        q, v, reference = state(model, k)
        K = np.linspace(20.0, 80.0, model.nv)
        a = rbd_ros.forward_dynamics(
            model, q, v, JointImpedance(model, K, damping_ratio=0.6).update(0.0, q, v, reference))
        e, e_dot = rbd_ros.difference(model, q, reference.q), reference.v - v
        terms = rbd_ros.all_terms(model, q, v)
        D = critical_damping(terms.M, K, 0.6)
        rest = terms.M @ (reference.a - a) + (terms.C + D) @ e_dot + K * e
        assert np.max(np.abs(rest)) < EXACT * np.max(np.abs(K * e))


def test_energy_of_the_impedance_grows_by_nothing_but_pushes():
    arm, K = bare_arm(), np.linspace(30.0, 60.0, 7)
    held = JointReference(arm, POSE)
    controller = JointImpedance(arm, K, damping_ratio=0.1)

    def push(t):
        return {'tool': [0.0, 0.0, 0.0, 60.0 * (0.3 < t < 0.5), 0.0, 0.0]}

    t, q, v = run(arm, controller, lambda t: held, POSE, np.full(7, 0.8), 1.0, 1e-3, push)
    V = np.array([0.5 * x @ rbd_ros.mass_matrix(arm, p) @ x + 0.5 * K @ (p - POSE) ** 2
                  for p, x in zip(q, v)])
    alone = (t < 0.3) | (t > 0.501)
    # Torques that are held for a step may add of first order in it.
    assert np.all(np.diff(V)[alone[:-1] & alone[1:]] < 1e-4 * V[0])
    assert np.max(V) > V[0] * 1.2 > 0.0         # the push is felt


def test_prescribed_joints_follow_and_free_ones_get_their_torques():
    for k, model in enumerate(trees()):
        q, v, reference = state(model, k)
        prescribed = np.arange(model.nv) % 2 == 0
        kp = np.linspace(10.0, 20.0, model.nv)
        controller = Hybrid(model, prescribed, kp)
        tau = controller.update(0.0, q, v, reference)
        assert np.array_equal(tau[~prescribed], reference.tau[~prescribed])
        a = rbd_ros.forward_dynamics(model, q, v, tau)
        wanted = (reference.a + 2.0 * np.sqrt(kp) * (reference.v - v)
                  + kp * rbd_ros.difference(model, q, reference.q))
        assert np.max(np.abs((a - wanted)[prescribed])) < EXACT * np.max(np.abs(a))
        assert relative_error(controller.solve(q, v, reference)[0], a) < EXACT


def test_friction_of_free_joints_does_not_disturb_the_others():
    arm = with_drives(bare_arm(), **FRICTION)
    q, v, reference = state(arm, 4)
    reference.v[:] = v                            # then friction is compensated exactly
    prescribed = np.arange(7) < 4
    tau = Hybrid(arm, prescribed, 10.0, friction_speed=0.0).update(0.0, q, v, reference)
    a = rbd_ros.forward_dynamics(arm, q, v, tau - rbd_ros.friction_torques(arm, v))
    wanted = reference.a + 10.0 * (reference.q - q)
    assert np.allclose(a[prescribed], wanted[prescribed])
    assert np.array_equal(tau[~prescribed], reference.tau[~prescribed])


@pytest.mark.parametrize('less, moves', [(1.2, False), (1.8, True)])
def test_a_free_joint_that_friction_holds_is_like_a_locked_one(less, moves):
    arm, elbow, still = with_drives(bare_arm(), **FRICTION), 3, np.zeros(7)
    reference = JointReference(arm, POSE, a=np.linspace(-1.0, 1.0, 7))
    prescribed = np.arange(7) != elbow
    locked = rbd_ros.hybrid_dynamics(arm, POSE, still, np.where(prescribed, reference.a, 0.0),
                                     still, np.ones(7, bool))[1]
    reference.tau[elbow] = locked[elbow] - less
    a, tau = Hybrid(arm, prescribed, 10.0).solve(POSE, still, reference)
    assert abs(a[elbow]) < EXACT or moves
    if moves:
        assert a[elbow] < -0.05
        # All of its friction opposes it.
        assert np.allclose(rbd_ros.inverse_dynamics(arm, POSE, still, a), tau)
        assert tau[elbow] == pytest.approx(reference.tau[elbow] + FRICTION['friction'])
    else:
        assert np.allclose(tau, locked)


@pytest.mark.parametrize('name', LAWS[:4])
def test_friction_is_that_of_the_wanted_velocity(name):
    arm = with_drives(bare_arm(), **FRICTION)
    q, v, reference = state(arm, 1)
    if name == 'SlotineLi':                       # its v_ref is v_r
        reference.q[:] = q
    kind, arguments = {'PdGravity': (PdGravity, (50.0, 5.0)), 'ComputedTorque': (
        ComputedTorque, (50.0,)), 'JointImpedance': (JointImpedance, (50.0,)), 'SlotineLi': (
        SlotineLi, (5.0, 10.0, 1.0))}[name]
    tau = [kind(arm, *arguments, friction_speed=speed).update(0.0, q, v, reference)
           for speed in (SPEED, None)]
    expected = 2.0 * reference.v + 1.5 * np.tanh(reference.v / SPEED)
    assert np.allclose(tau[0] - tau[1], expected)


@pytest.mark.parametrize('law', laws(bare_arm()) + [Gravity(bare_arm())], ids=[*LAWS, 'Gravity'])
def test_wrong_input_is_refused_by_name_and_results_belong_to_the_caller(law):
    arm = law.model
    q, v, reference = state(arm, 2)
    if law.reference_type is not JointReference:
        reference = None
    first = law.update(0.0, q, v, reference)
    kept = first.copy()
    for changed, message in (({'t': np.nan}, 't must be finite'), ({'q': q[:5]}, 'q has the'),
                             ({'v': [*v[:6], np.inf]}, "v of 'flange_roll' is inf"),
                             ({'reference': PoseReference(np.eye(4))}, 'reference must be a')):
        given = {'t': 0.001, 'q': q, 'v': v, 'reference': reference, **changed}
        with pytest.raises(rbd_ros.StateError, match=message):
            law.update(*given.values())
    assert np.array_equal(first, kept)
    assert np.array_equal(law.update(0.0, q, v, reference), kept)
    first[:] = 0.0
    assert np.array_equal(law.update(0.0, q, v, reference), kept)


def test_a_reference_for_another_robot_is_refused():
    arm, other = bare_arm(), trees()[0]
    reference = JointReference(other, rbd_ros.neutral(other))
    with pytest.raises(rbd_ros.StateError, match='for another robot'):
        PdGravity(arm, 1.0, 1.0).update(0.0, POSE, np.zeros(7), reference)


@pytest.mark.parametrize('make, message', [
    (lambda arm: PdGravity(arm, -1.0, 1.0), 'stiffness must not be negative'),
    (lambda arm: PdGravity(arm, 1.0, [1.0, 2.0]), 'damping has the shape'),
    (lambda arm: Gravity(arm, dead_band=-1.0), 'dead_band must lie between'),
    (lambda arm: ComputedTorque(arm, 'stiff'), 'kp must be'),
    (lambda arm: ComputedTorque(arm, 1.0, friction_speed=-1.0), 'friction_speed'),
    (lambda arm: JointImpedance(arm, 1.0, damping_ratio=-0.1), 'damping_ratio'),
    (lambda arm: Hybrid(arm, [True], 1.0), 'prescribed must be'),
    (lambda arm: JointReference(arm, np.zeros(3)), 'q has the shape'),
    (lambda arm: JointReference(arm, np.zeros(7), v=np.full(7, np.nan)), "v of 'shoulder_pan'")])
def test_wrong_settings_are_refused_by_name(make, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        make(bare_arm())


def test_quaternions_of_references_are_made_unit():
    model = trees()[1]
    q = rbd_ros.random_configuration(model, 0)
    assert np.allclose(integrate(model, JointReference(model, q).q, np.zeros(model.nv), 1.0), q)
