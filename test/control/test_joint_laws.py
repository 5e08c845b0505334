# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Control laws for joints: what the closed loop does, by forward dynamics; continuous joints."""

from closed_robots import closed_robot, driven
from control_robots import bare_arm, LINK, POSE, random_reference, trees, with_drives
from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros.control import (CartesianImpedance, ComputedTorque, ContactDetector,
                             critical_damping, friction_compensation, Gravity, Hybrid,
                             JointImpedance, JointReference, JointTrajectory, MomentumObserver,
                             PdGravity, PoseReference, SlotineLi)
from rbd_ros.model import with_friction
from rbd_ros.model.positions.configurations import integrate
from rbd_ros.model.positions.steps import turning, without_turns
from robots import relative_error

# Both sides are exact, but for the condition of M.
EXACT = 1e-8
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


# Kernels for balls in loops take long to compile: one law has them all.
LOOPS = ['five_bar', 'delta', 'balls', 'mimics and balls']
ROBOTS = [*range(6), *LOOPS]


@pytest.fixture(params=covering(ROBOTS, *range(6), 'five_bar', 'delta'))
def robot(request):
    """Return a tree or loop with drives at all joints, a state, and a reference near it."""
    rng = np.random.default_rng(6)
    if request.param in LOOPS:
        bare, _, q, v, a, _ = closed_robot(request.param)
    else:
        bare = trees()[request.param]
        q, v, a = rbd_ros.random_configuration(bare, rng), *rng.normal(size=(2, bare.nv))
    model, v_r = driven(bare, 5), v + 0.1 * rng.normal(size=bare.nv)
    q_r = integrate(model, q, 0.01 * rng.normal(size=model.nv), 1.0)
    return model, q, v, JointReference(model, q_r, v_r, a)


def accelerations(model, q, v, tau, v_friction, springs=False):
    """Return those of the robot, rubbing as it would with the velocity ``v_friction``."""
    tau = tau - rbd_ros.friction_torques(model, v_friction, smooth=SPEED, q=q)
    return rbd_ros.forward_dynamics(model, q, v, tau - springs * rbd_ros.spring_torques(model, q))


@pytest.mark.parametrize('robot', covering(ROBOTS, *range(6), 'five_bar', 'delta',
                                           'mimics and balls'), indirect=True)
def test_errors_of_computed_torque_are_linear(robot):
    model, q, v, reference = robot
    kp, kd = np.random.default_rng(1).uniform(1.0, 50.0, (2, model.nv))
    law = ComputedTorque(model, kp, kd, friction_speed=SPEED)
    law.compensates_springs = True
    a = accelerations(model, q, v, law.update(0.0, q, v, reference), reference.v, springs=True)
    error = rbd_ros.difference(model, q, reference.q)
    assert relative_error(a, reference.a + kd * (reference.v - v) + kp * error) < EXACT


def test_impedance_is_a_mass_on_springs_and_dampers(robot):
    model, q, v, reference = robot
    K = np.linspace(20.0, 80.0, model.nv)
    law = JointImpedance(model, K, damping_ratio=0.6, friction_speed=SPEED)
    law.compensates_springs = True
    tau = law.update(0.0, q, v, reference)
    a = accelerations(model, q, v, tau, reference.v, springs=True)
    terms = rbd_ros.all_terms(model, q, v)
    D = critical_damping(terms.M, K, 0.6)
    e, e_dot = rbd_ros.difference(model, q, reference.q), reference.v - v
    rest = terms.M @ (reference.a - a) + (terms.C + D) @ e_dot + K * e
    assert np.max(np.abs(rest)) < EXACT * np.max(np.abs(tau))


@pytest.mark.parametrize('springs', [False, True])
def test_gravity_and_pd_gravity_torques_equal_their_formulas(robot, springs):
    model, q, v, reference = robot
    held = rbd_ros.gravity_torques(model, q) + springs * rbd_ros.spring_torques(model, q)
    K, D = np.random.default_rng(1).uniform(1.0, 50.0, (2, model.nv))
    error, v_r = rbd_ros.difference(model, q, reference.q), reference.v
    pd, gravity = (PdGravity(model, K, D, friction_speed=SPEED),
                   Gravity(model, D, friction=True, dead_band=0.0))
    pd.compensates_springs = gravity.compensates_springs = springs
    expected = held + K * error + D * (v_r - v) + rbd_ros.friction_torques(
        model, v_r, smooth=SPEED, q=q)
    assert relative_error(pd.update(0.0, q, v, reference), expected) < EXACT
    expected = held - D * v + rbd_ros.friction_torques(model, v, q=q)
    assert relative_error(gravity.update(0.0, q, v), expected) < EXACT


def test_slotine_li_without_adaptation_is_inverse_dynamics_at_its_reference(robot):
    model, q, v, reference = robot
    law = SlotineLi(model, 4.0, 3.0, 0.0, links=[], friction_speed=SPEED)
    law.compensates_springs = True
    v_ref = reference.v + 4.0 * rbd_ros.difference(model, q, reference.q)
    a_ref = reference.a + 4.0 * (reference.v - v)
    M, C, g, *_ = rbd_ros.all_terms(model, q, v)
    expected = M @ a_ref + C @ v_ref + g - 3.0 * (v - v_ref) + rbd_ros.friction_torques(
        model, v_ref, smooth=SPEED, q=q) + rbd_ros.spring_torques(model, q)
    for t in (0.0, 0.01):
        assert relative_error(law.update(t, q, v, reference), expected) < EXACT


def test_prescribed_joints_follow_and_free_ones_get_their_torques(robot):
    model, q, v, reference = robot
    none = {joint.name: 0.0 for joint in model.joints if joint.nv}
    model = with_friction(model, friction=none, stribeck_friction=none)
    prescribed = np.arange(model.nv) % 2 == 0
    reference = JointReference(model, reference.q, v, reference.a, 0.1 * reference.a)
    law = Hybrid(model, prescribed, 25.0, friction_speed=SPEED)
    law.compensates_springs = True
    tau = law.update(0.0, q, v, reference)
    assert relative_error(tau[~prescribed], reference.tau[~prescribed]) < EXACT
    a = accelerations(model, q, v, tau, v, springs=True)
    expected = reference.a + 25.0 * rbd_ros.difference(model, q, reference.q)
    assert relative_error(a[prescribed], expected[prescribed]) < EXACT
    assert relative_error(law.solve(q, v, reference)[0], a) < EXACT


@pytest.mark.parametrize('dead_band', [0.0, 0.05])
def test_friction_compensation_never_drives_a_joint(robot, dead_band):
    model, q, v, _ = robot
    rng = np.random.default_rng(0)
    offset = rbd_ros.friction_torques(model, 0.0 * v, q=q)
    for _ in range(20):
        true = v * rng.uniform(0.0, 1.0)
        seen = true + rng.uniform(-dead_band, dead_band, model.nv)
        given = friction_compensation(model, seen, dead_band=dead_band, q=q)
        taken = rbd_ros.friction_torques(model, true, q=q)
        assert -1e-9 <= (given - offset) @ true <= (taken - offset) @ true + 1e-9
    both = friction_compensation(model, np.array([v, v]), dead_band=dead_band,
                                 q=np.array([q, q]))
    assert np.allclose(both[1], friction_compensation(
        model, v, dead_band=dead_band, q=q), rtol=1e-12)
    if model.loops is not None:
        with pytest.raises(rbd_ros.StateError, match='needs q'):
            friction_compensation(model, v)


def test_the_mode_gravity_compensates_friction_only_beyond_the_dead_band():
    arm = with_drives(bare_arm(), **FRICTION)
    v = np.array([0.0, 0.01, -0.01, 0.03, -1.0, 2.0, 0.5])
    without = Gravity(arm).update(0.0, POSE, v)
    tau = Gravity(arm, friction=True, dead_band=0.02).update(0.0, POSE, v) - without
    assert np.all(tau[:3] == 0.0)                 # may be noise
    assert np.allclose(tau[4:], 1.5 * np.sign(v[4:]) + 2.0 * (v[4:] - 0.02 * np.sign(v[4:])))


@pytest.mark.parametrize('ratio', [0.1, 0.7])
def test_critical_damping_gives_all_modes_the_damping_ratio(ratio):
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
    (lambda arm: SlotineLi(arm, 1.0, 1.0, -1.0), 'adaptation'),
    (lambda arm: JointReference(arm, np.zeros(3)), 'q has the shape'),
    (lambda arm: JointReference(arm, np.zeros(7), v=np.full(7, np.nan)), "v of 'shoulder_pan'"),
    (lambda arm: CartesianImpedance(arm, LINK, [1.0, 2.0], posture=POSE), 'stiffness has the sh'),
    (lambda arm: CartesianImpedance(arm, LINK, 1.0, posture=np.zeros(3)), 'q has'),
    (lambda arm: CartesianImpedance(arm, LINK, -1.0, posture=POSE), 'stiffness must not be neg'),
    (lambda arm: CartesianImpedance(arm, LINK, 1.0, posture=POSE, condition_limit=0.5),
     'condition_limit'),
    (lambda arm: CartesianImpedance(arm, 'base_link', 1.0, posture=POSE), 'no joint moves it'),
    (lambda arm: CartesianImpedance(arm, 'nose', 1.0, posture=POSE), "no link 'nose'"),
    (lambda arm: MomentumObserver(arm, 0.0), 'gain must be positive'),
    (lambda arm: MomentumObserver(arm, [1.0, 2.0]), 'gain has the shape'),
    (lambda arm: MomentumObserver(arm, np.nan), 'gain must be finite'),
    (lambda arm: MomentumObserver(arm, smooth=-1.0), 'smooth'),
    (lambda arm: MomentumObserver(arm, longest_gap='long'), 'longest_gap'),
    (lambda arm: ContactDetector(arm, margin=0.5), 'margin'),
    (lambda arm: ContactDetector(arm, release=1.5), 'release'),
    (lambda arm: ContactDetector(arm, hold=-1.0), 'hold'),
    (lambda arm: ContactDetector(arm, least=-1.0), 'least must not be negative'),
    (lambda arm: ContactDetector(arm, least=[1.0]), 'least has the shape'),
    (lambda arm: friction_compensation(arm, POSE, dead_band=-1.0), 'dead_band must lie'),
    (lambda arm: friction_compensation(arm, [0.0]), 'v has the shape')])
def test_wrong_settings_are_refused_by_name(make, message):
    with pytest.raises((rbd_ros.StateError, rbd_ros.ModelError), match=message):
        make(bare_arm())


def test_quaternions_of_references_are_made_unit():
    model = rbd_ros.with_floating_base(bare_arm())
    q = rbd_ros.random_configuration(model, 0)
    assert np.allclose(JointReference(model, [*(2.0 * q[:4]), *q[4:]]).q, q)


# -- Continuous joints take the shortest way to their reference. ----------------------------------
TURN = 2.0 * np.pi
# Angles of a few turns are rounded to 1e-15, and torques are some tens of N m.
ROUNDING = 1e-11


def turning_arm(mimic=None, kind='continuous'):
    """Return an arm of a continuous, a revolute and a sliding joint, and a mimic of the first."""
    build = rbd_ros.ModelBuilder('arm').link('base')
    for k, (name, one) in enumerate((('pan', 'continuous'), ('lift', 'revolute'),
                                     ('slide', 'prismatic'), ('roll', 'continuous'))):
        before = ('base', 'a', 'b', 'c')[k]
        build.link('abcd'[k], mass=1.0 + k, com=(0.1, 0.02 * k, 0.3), inertia=np.eye(3) * 0.1)
        limits = {} if one == 'continuous' else {'lower': -9.0, 'upper': 9.0}
        build.joint(name, one, before, 'abcd'[k], xyz=(0.0, 0.1, 0.3),
                    axis=((0, 0, 1), (0, 1, 0), (1, 0, 0), (1, 0, 0))[k], **limits)
    if mimic is not None:
        build.link('copy', mass=1.0, com=(0.1, 0.0, 0.0), inertia=np.eye(3) * 0.1)
        build.joint('copy', kind, 'base', 'copy', axis=(0, 0, 1), mimic=('pan', mimic))
    return build.build()


def of_positions(model):
    """Return a controller of each kind that has an error of positions."""
    return [*laws(model), CartesianImpedance(model, 'd', 50.0, posture=[0.3, 0.9, 0.2, 0.4])]


@pytest.mark.parametrize('turns', [(1, 0), (-1, 2), (0, -3)])
@pytest.mark.parametrize('number', range(6), ids=[*LAWS, 'CartesianImpedance'])
def test_torques_are_the_same_in_every_turn(number, turns):
    model, rng = turning_arm(), np.random.default_rng(1)
    q, v = np.array([0.5, 0.9, 0.2, -0.4]), rng.normal(size=4)
    law = of_positions(model)[number]
    reference = random_reference(model, rng, q)
    if law.reference_type is PoseReference:
        reference = PoseReference(np.eye(4))
    away = q + TURN * np.array([turns[0], 0, 0, turns[1]])
    expected = law.update(0.0, q, v, reference)
    law.reset()
    assert relative_error(law.update(0.0, away, v, reference), expected) < ROUNDING


@pytest.mark.parametrize('measured, wanted, way', [
    (3.0, -3.0, TURN - 6.0), (-3.0, 3.0, 6.0 - TURN), (7.0, 0.5, TURN - 6.5), (0.0, np.pi, np.pi),
    (0.1, 0.1 + np.pi, np.pi), (0.1, 0.1 - np.pi, -np.pi), (0.0, 9.0, 9.0 - TURN)])
def test_a_continuous_joint_is_pulled_along_the_shortest_way_and_others_are_not(measured, wanted,
                                                                                way):
    law, still = PdGravity(turning_arm(), 10.0, 0.0), np.zeros(4)
    q, q_r = np.zeros(4), np.zeros(4)
    q[:3], q_r[:3] = measured, wanted
    tau = law.update(0.0, q, still, JointReference(turning_arm(), q_r))
    pulled = tau - rbd_ros.gravity_torques(turning_arm(), q)
    assert np.allclose(pulled, 10.0 * np.array([way, wanted - measured, wanted - measured, 0.0]))


@pytest.mark.parametrize('kind, ratio, returns', [
    ('continuous', 2.0, True), ('revolute', -1.0, True), ('continuous', 0.5, False),
    ('prismatic', 1.0, False)])
def test_a_joint_whose_mimic_does_not_return_after_a_turn_is_no_circle(kind, ratio, returns):
    model = turning_arm(ratio, kind)
    assert turning(model).tolist() == [returns, False, False, True]
    step = np.array([TURN, TURN, TURN, TURN + 0.5])
    expected = [0.0 if returns else TURN, TURN, TURN, 0.5]
    assert np.allclose(without_turns(step, turning(model)), expected, atol=1e-15)


def four_bar():
    """Return a parallelogram of continuous joints, driven by its crank."""
    build = rbd_ros.ModelBuilder('four_bar').link('base')
    for name, before, xyz in (('crank', 'base', (0, 0, 0)), ('coupler', 'crank', (0, 0, 0.2)),
                              ('rocker', 'base', (0.5, 0, 0))):
        build.link(name, mass=1.0, com=(0.1, 0.0, 0.1), inertia=np.eye(3) * 0.01)
        build.joint(name, 'continuous', before, name, xyz=xyz, axis=(0, 1, 0))
    quarter = (-np.pi / 2.0, 0.0, 0.0)
    build.constraint('pin', 'revolute', 'coupler', 'rocker', xyz_a=(0.5, 0, 0), rpy_a=quarter,
                     xyz_b=(0, 0, 0.2), rpy_b=quarter)
    return build.build(independent=['crank'])


def test_the_crank_of_a_loop_takes_the_shortest_way():
    model = four_bar()
    q, q_r = (rbd_ros.model.normalize(model, [x, -x, x]) for x in (3.0, -3.0))
    error = PdGravity(model, 1.0, 1.0).error(q, JointReference(model, q_r))
    assert error.shape == (1,) and np.allclose(error, TURN - 6.0)


def test_points_of_a_loop_may_count_turns_of_passive_joints_otherwise():
    model = four_bar()
    points = [[0.3, -0.3, 0.3], [0.6, -0.6 + TURN, 0.6 - TURN]]
    motion = JointTrajectory(model, [0.0, 1.0], points)
    assert np.allclose(motion.at(0.5).q, [0.45, -0.45, 0.45])
