# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Motions that show parameters: limits, rest, condition numbers, against sums written here."""

from dataclasses import replace

from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros.identification import excitation_limits, excite
from rbd_ros.model.constraints import rebuild
from rbd_ros.motions.excitation.criterion import Criterion
from rbd_ros.motions.excitation.fourier_series import RestBasis
from rbd_ros.motions.excitation.optimize import minimize
from robots import example_urdf, load_quietly, random_tree

# Both sides are exact.
EXACT = 1e-9
# Differences of second order, with steps of 1e-4 of the period.
DIFFERENCES = 1e-3
# Of the gradient: differences of values that are sums of inverse squares of singular values.
GRADIENT = 1e-3
SHARE = 0.9
# N m/rad and rad.
SPRINGS = np.array([[10.0, 15.0, 10.0, 3.0, 2.0, 4.0], [0.5, -1.0, 1.0, 0.2, 0.5, -0.4]])
# Of the search, fewer than by default.
STEPS = 60


def panda():
    return rbd_ros.with_locked_joints(load_quietly(example_urdf('panda.urdf')),
                                      {'panda_finger_joint1': 0.02})


def ur5():
    """Return a UR5 with friction of all kinds and rotors."""
    model = load_quietly(example_urdf('ur5_robot.urdf'))
    return rebuild(model, joints=[replace(
        joint, damping=(2.0,), damping_asymmetry=(0.5,), friction=(4.0,),
        friction_asymmetry=(1.0,), stribeck_friction=(1.0,), stribeck_velocity=(0.1,),
        effort_offset=(-0.5,), armature=(0.1,)) if joint.nv else joint for joint in model.joints])


def slides():
    """Return a gantry: slides and a turn without limits of position."""
    return (rbd_ros.ModelBuilder('gantry').link('rail')
            .link('carriage', 4.0, (0.1, 0, 0), (0.1, 0.1, 0.1))
            .link('lift', 2.0, (0, 0.1, 0), (0.05, 0.05, 0.05))
            .link('tool', 1.0, (0.1, 0, 0.1), (0.02, 0.02, 0.02))
            .joint('x', 'prismatic', 'rail', 'carriage', axis=(1, 0, 0), lower=-1,
                   upper=1, velocity=0.8, effort=100)
            .joint('z', 'prismatic', 'carriage', 'lift', axis=(0, 0, 1), effort=100)
            .joint('turn', 'continuous', 'lift', 'tool', axis=(0, 1, 0), effort=10).build())


ROBOTS = {'panda': panda, 'ur5': ur5, 'slides': slides}


@pytest.fixture(scope='module', params=covering(ROBOTS, 'ur5', 'slides'))
def found(request):
    """Return a robot, its limits as this test knows them, and a motion."""
    model = ROBOTS[request.param]()
    infinite = ~np.isfinite(model.lower)
    reach = np.where(model.angular, np.pi, 0.5)
    lower, upper = np.where(infinite, [-reach, reach], [model.lower, model.upper])
    middle, half = 0.5 * (lower + upper), 0.5 * (upper - lower)
    speed = np.where(np.isfinite(model.velocity_limit), model.velocity_limit,
                     np.where(model.angular, 1.0, 0.25))
    return model, (middle, half, speed, speed / 0.5, model.effort_limit), excite(
        model, excitation_limits(model, share=SHARE), duration=10.0, harmonics=5, steps=STEPS)


def efforts(model, q, v, a):
    """Return the torques, springs left out, of states one by one."""
    return np.array([rbd_ros.inverse_dynamics(model, *state) for state in zip(
        q, v, a)]) + rbd_ros.friction_torques(model, v)


def test_a_motion_holds_all_limits_at_every_time(found):
    model, (middle, half, speed, acceleration, effort), result = found
    # Uneven times, finer than the search looks at.
    q, v, a = result.motion.at(np.sort(np.random.default_rng(1).uniform(0.0, 10.0, 3000)))
    used = np.array([np.max(np.abs(x), axis=0) for x in (
        (q - middle) / half, v / speed, a / acceleration, efforts(model, q, v, a) / effort)])
    assert np.all(used < SHARE)
    # And it makes use of them: every joint comes near to one.
    assert np.all(np.max(used, axis=0) > 0.6 * SHARE)


def test_limits_hold_even_if_the_search_looks_at_few_times(monkeypatch):
    monkeypatch.setattr('rbd_ros.motions.excitation.optimize.SAMPLES', 3)
    monkeypatch.setattr('rbd_ros.motions.excitation.optimize.SEARCH_LIMIT_FRACTION', 1.0)
    model = slides()
    limits = excitation_limits(model, effort=[6.0, 33.0, 3.0], share=1.0)
    motion = excite(model, limits, duration=4.0, harmonics=5, steps=80).motion
    q, v, a = motion.at(motion.times(1000.0))
    tau = efforts(model, q, v, a)
    # Half a percent: between the times that are looked at in the end.
    most = 1.005 * np.array([limits.upper, limits.velocity, limits.acceleration, limits.effort])
    assert np.all([np.max(np.abs(x), axis=0) for x in (q, v, a, tau)] <= most)


def test_small_effort_limits_restrict_the_excitation():
    model = rbd_ros.model.with_springs(ur5(), stiffness=SPRINGS[0], spring_reference=SPRINGS[1])
    # N m; to hold the arm outstretched the shoulder needs about 60.
    limits = excitation_limits(model, effort=[45.0, 60.0, 40.0, 9.0, 9.0, 9.0], share=1.0)
    motion = excite(model, limits, duration=10.0, harmonics=5, steps=STEPS).motion
    q, v, a = motion.at(motion.times(200.0))
    tau = efforts(model, q, v, a) + SPRINGS[0] * (q - SPRINGS[1])
    used = np.max(np.abs(tau), axis=0) / limits.effort
    assert np.all(used <= 1.0)
    assert np.max(used) > 0.8


def test_a_motion_begins_and_ends_at_rest_at_the_same_place(found):
    motion = found[2].motion
    q, v, a = motion.at([0.0, motion.period])
    assert np.allclose(v, 0.0, atol=EXACT) and np.allclose(a, 0.0, atol=EXACT)
    assert np.allclose(q[0], q[1], atol=EXACT)
    assert motion.period == 10.0


def test_velocities_and_accelerations_are_the_rates_of_the_positions(found):
    motion, h = found[2].motion, 1e-4
    t = np.random.default_rng(2).uniform(0.0, 10.0, 50)
    (q_0, v_0, _), (q_1, v_1, _), (_, v, a) = (motion.at(one) for one in (t - h, t + h, t))
    assert np.allclose((q_1 - q_0) / (2 * h), v, atol=DIFFERENCES)
    assert np.allclose((v_1 - v_0) / (2 * h), a, atol=DIFFERENCES)


def test_times_reach_from_the_beginning_to_the_end():
    motion = RestBasis(2.5, 2, 8).series(np.zeros((3, 1)))
    assert np.allclose(motion.times(100.0), np.linspace(0.0, 2.5, 251))
    assert np.array_equal(motion.times(0.1), [0.0, 2.5])


def test_the_same_seed_gives_the_same_motion_and_another_one_another():
    model = slides()
    one, same, other = (excite(model, duration=5.0, harmonics=3, seed=seed, steps=8).motion
                        for seed in (1, 1, 2))
    assert np.array_equal(one.sines, same.sines) and np.array_equal(one.mean, same.mean)
    assert not np.allclose(one.sines, other.sines)


# -- Condition numbers. ---------------------------------------------------------------------------

def regressors(model, q, v, a):
    """Return regressors with friction and rotors, one below the other, by the plain functions."""
    return np.vstack([np.hstack((
        rbd_ros.torque_regressor(model, *state), np.diag(state[1]), np.diag(np.sign(state[1])),
        np.eye(model.nv), np.diag(state[2]))) for state in zip(q, v, a)])


def independent(model):
    """Return columns of the regressor of which all others are combinations, one by one."""
    rng = np.random.default_rng(3)
    count = 3 * (10 * len(model.links) // model.nv + 4)
    Y = regressors(model, rng.uniform(-1.5, 1.5, (count, model.nv)),
                   *rng.normal(size=(2, count, model.nv)))
    kept, Q = [], np.zeros((len(Y), 0))
    # Drives first: their parameters are known by name.
    for k in [*range(Y.shape[1] - 4 * model.nv, Y.shape[1]), *range(Y.shape[1] - 4 * model.nv)]:
        rest = Y[:, k] - Q @ (Q.T @ Y[:, k])
        rest -= Q @ (Q.T @ rest)
        if np.linalg.norm(rest) > 1e-6 * np.linalg.norm(Y[:, k]) > 1e-15 * np.linalg.norm(Y):
            kept.append(k)
            Q = np.hstack((Q, rest[:, None] / np.linalg.norm(rest)))
    return kept


def condition_numbers(model, kept, q, v, a):
    """Return the condition numbers in SI units, and with columns of the same size."""
    Y = regressors(model, q, v, a)[:, kept]
    return np.array([np.linalg.cond(Y), np.linalg.cond(Y / np.linalg.norm(Y, axis=0))])


def random_sines(model, limits, seed):
    """Return positions, velocities and accelerations of two sines a joint that reach limits."""
    rng = np.random.default_rng(seed)
    middle, half, speed, acceleration, _ = (SHARE * one if k else one
                                            for k, one in enumerate(limits))
    t = np.linspace(0.0, 10.0, 200)[:, None, None]
    omega = 2.0 * np.pi * rng.uniform(0.1, 0.5, (2, model.nv))
    size, phase = rng.uniform(0.3, 1.0, (2, model.nv)), rng.uniform(0.0, 6.0, (2, model.nv))
    q, v, a = (np.sum(part, axis=1) for part in (
        size * np.sin(omega * t + phase), size * omega * np.cos(omega * t + phase),
        -size * omega ** 2 * np.sin(omega * t + phase)))
    most = np.min([half / np.max(np.abs(q), axis=0), speed / np.max(np.abs(v), axis=0),
                   acceleration / np.max(np.abs(a), axis=0)], axis=0)
    return middle + most * q, most * v, most * a


def test_condition_numbers_are_far_better_than_those_of_random_sines(found):
    model, limits, result = found
    kept = independent(model)
    got = condition_numbers(model, kept, *result.motion.at(np.linspace(0.0, 10.0, 200)))
    others = np.array([condition_numbers(model, kept, *random_sines(model, limits, seed))
                       for seed in range(10)])
    assert got[1] < 0.5 * np.median(others[:, 1])
    assert np.all(got < np.min(others, axis=0))
    assert result.condition_number < 0.5 * result.at_first


def near_all_limits(model, basis, seed):
    """Return coefficients of a motion, and limits of which it takes up nine tenths."""
    x = 0.3 * np.random.default_rng(seed).normal(size=(basis.size, model.nv))
    motion = basis.series(x)
    q, v, a = motion.at(np.linspace(0.0, motion.period, 500))
    tau = np.array([rbd_ros.inverse_dynamics(model, *state) for state in zip(q, v, a)])
    tau += model.damping * v + model.effort_offset
    tau += model.stiffness * (q - model.spring_reference)
    # What jumps with the direction, whichever that is.
    jumps = (model.friction + model.stribeck_friction + np.abs(model.friction_asymmetry)
             + np.abs(model.damping_asymmetry) * np.max(np.abs(v), axis=0) / 0.9)
    most = [np.max(np.abs(one), axis=0) / 0.9 for one in (q, v, a, tau)]
    return x, excitation_limits(model, lower=-most[0], upper=most[0], velocity=most[1],
                                acceleration=most[2], effort=most[3] + jumps, share=1.0)


def smooth_drives(model):
    """Return a robot with springs, and with friction that neither jumps nor has a corner."""
    none, some = np.zeros(model.nv), np.full(model.nv, 3.0)
    model = rbd_ros.model.with_springs(model, stiffness=10.0 * some, spring_reference=some)
    return rbd_ros.model.with_friction(model, damping=some, effort_offset=-some, friction=none,
                                       friction_asymmetry=none, stribeck_friction=none,
                                       damping_asymmetry=none)


@pytest.mark.parametrize('seed', range(2))
def test_the_gradient_of_the_criterion_is_that_of_its_values(seed):
    model = smooth_drives(ur5() if seed == 0 else random_tree(
        seed, 4, kinds=('revolute', 'prismatic')))
    basis = RestBasis(4.0, 3, 48)
    x, limits = near_all_limits(model, basis, seed)
    criterion = Criterion(model, basis, limits, np.random.default_rng(seed))
    assert 0.05 < criterion.margin(x) < 0.2
    direction = np.random.default_rng(seed).normal(size=x.shape)
    # The condition number alone, and little else than the barrier.
    for weight, h in ((0.0, 1e-4), (1e4, 1e-6)):
        _, gradient = criterion(x, weight)
        up, down = (criterion(x + sign * h * direction, weight)[0] for sign in (1, -1))
        assert np.sum(gradient * direction) == pytest.approx((up - down) / (2 * h), rel=GRADIENT)


@pytest.mark.parametrize('label', ['lower', 'upper', 'velocity', 'acceleration', 'effort'])
def test_the_criterion_is_infinite_beyond_each_limit(label):
    model, basis = ur5(), RestBasis(4.0, 3, 48)
    x, limits = near_all_limits(model, basis, 1)
    assert np.isfinite(Criterion(model, basis, limits, np.random.default_rng(1))(x, 0.1)[0])
    narrow = limits._replace(**{label: 0.85 * getattr(limits, label)})
    criterion = Criterion(model, basis, narrow, np.random.default_rng(1))
    assert criterion.margin(x) < 0.0 and criterion(x, 0.1)[0] == np.inf


def test_the_criterion_reserves_effort_for_friction_in_both_directions():
    model, basis = ur5(), RestBasis(4.0, 3, 48)
    x, limits = near_all_limits(model, basis, 2)
    criterion = Criterion(model, basis, limits, np.random.default_rng(1))
    q, v, a = basis.series(x).at(np.linspace(0.0, 4.0, 200))
    room, shares = limits.effort - np.abs(efforts(model, q, v, a)), criterion._effort_shares(
        q, v, a)
    assert np.all(room >= (1.0 - np.abs(shares)) * (
        limits.effort - model.friction - model.stribeck_friction - model.friction_asymmetry
        - model.damping_asymmetry * limits.velocity) - EXACT)


def test_the_criterion_bounds_the_logarithm_of_the_condition_number():
    model = slides()
    basis = RestBasis(4.0, 3, 48)
    criterion = Criterion(model, basis, excitation_limits(model), np.random.default_rng(1))
    for seed in range(5):
        x = 0.02 * np.random.default_rng(seed).normal(size=(basis.size, 3))
        value, number = criterion(x, 0.0)[0], criterion.condition_number(x)
        # sqrt(p) for each of the two norms.
        count = len(independent(model))
        assert np.log(number) <= value <= np.log(number) + np.log(count)


def test_the_search_goes_down_and_never_beyond_the_border():
    visited = []

    def bowl(x):
        # A valley that runs into a wall at x + y = 1.
        visited.append(x)
        room = 1.0 - x[0] - x[1]
        if room <= 0.0:
            return np.inf, np.zeros(2)
        return (100.0 * (x[0] - 2.0) ** 2 + (x[1] - 2.0) ** 2 - 0.1 * np.log(room),
                np.array([200.0 * (x[0] - 2.0), 2.0 * (x[1] - 2.0)]) + 0.1 / room)

    x = minimize(bowl, np.array([-3.0, -3.0]), 60)
    assert np.all(np.abs(bowl(x)[1]) < 1e-6)
    assert 0.0 < 1.0 - x[0] - x[1] < 0.1
    # Some steps were too long, and were not taken.
    assert any(one[0] + one[1] >= 1.0 for one in visited)


# -- Limits. --------------------------------------------------------------------------------------

def test_limits_are_reduced_about_the_middle_and_completed():
    model = slides()
    limits = excitation_limits(model, share=0.5, lower=[0.2, -np.inf, 1.0],
                               upper=[1.0, 0.3, np.inf], velocity=[0.8, np.inf, np.inf])
    # From 0.2 to 1.0; from 0.3 - 1.0 to 0.3; from 1 to 1 + 2 pi: the middle halves.
    assert np.allclose(limits.lower, [0.4, -0.45, 1.0 + 0.5 * np.pi])
    assert np.allclose(limits.upper, [0.8, 0.05, 1.0 + 1.5 * np.pi])
    assert np.allclose(limits.velocity, [0.4, 0.125, 0.5])
    assert np.allclose(limits.acceleration, [0.8, 0.25, 1.0])
    assert np.allclose(limits.effort, [50.0, 50.0, 5.0])
    assert limits.assumed == ('no limits of position: z, turn', 'no limit of velocity: z, turn')


@pytest.mark.parametrize('options, message', [
    ({'velocity': [1.0, 0.0, 1.0]}, "velocity limit of 'z' must be positive and finite, got 0"),
    ({'acceleration': [1.0, 1.0, np.inf]}, "acceleration limit of 'turn'"),
    ({'effort': [0.0, 1.0, 1.0]}, "effort limit of 'x' must be positive, got 0"),
    ({'lower': [2.0, 0.0, 0.0]}, "range of positions of 'x'"), ({'share': 0.0}, 'share'),
    ({'effort': [1.0]}, 'effort has the shape')])
def test_limits_without_any_range_are_refused_by_joint(options, message):
    with pytest.raises(rbd_ros.StateError, match=message):
        excitation_limits(slides(), **options)


def test_robots_that_cannot_be_excited_are_refused():
    with pytest.raises(rbd_ros.ModelError, match='lock the others: base'):
        excitation_limits(rbd_ros.with_floating_base(slides()))
    with pytest.raises(rbd_ros.ModelError, match='none moves'):
        excitation_limits(rbd_ros.with_locked_joints(slides(), {'x': 0, 'z': 0, 'turn': 0}))


def test_limits_without_any_motion_are_refused():
    model = slides()                # it carries three kilograms: 29.43 N
    with pytest.raises(rbd_ros.StateError, match=r"gravity.* effort limit of 'z'"):
        excite(model, excitation_limits(model, effort=[100.0, 20.0, 10.0]), steps=1)
    stiff = rebuild(model, joints=[replace(joint, friction=(12.0,)) for joint in model.joints])
    with pytest.raises(rbd_ros.StateError, match="friction of 'turn' exceeds"):
        excite(stiff, steps=1)
    for options in ({'harmonics': 1}, {'duration': 0.0}, {'steps': 0}, {'seed': -1}):
        with pytest.raises(rbd_ros.StateError, match=next(iter(options))):
            excite(model, **options)


def test_progress_reaches_the_number_of_steps():
    told = []
    excite(slides(), duration=5.0, harmonics=3, steps=8, progress=lambda *x: told.append(x))
    assert told[0] == (1, 8) and told[-1] == (8, 8)


def test_a_motion_without_information_has_an_infinite_criterion_and_stays_unchanged():
    model = slides()
    basis = RestBasis(4.0, 3, 48)
    criterion = Criterion(model, basis, excitation_limits(model), np.random.default_rng(1))
    still = np.zeros(3 * basis.size)
    value, gradient = criterion(still, 0.1)
    assert value == np.inf and np.array_equal(gradient, still)
    assert np.array_equal(minimize(lambda x: criterion(x, 0.1), still, 5), still)
