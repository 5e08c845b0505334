# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What is believed: good recordings are, and mistakes are named, with what to do."""

from dataclasses import replace

from covering import covering
import measured
import numpy as np
import pytest
import rbd_ros
from rbd_ros import identification
from rbd_ros.identification import prepare, verdict
from robots import example_urdf, load_quietly, random_tree


def urdf(name):
    """Return a robot of example-robot-data, its fingers locked."""
    model = load_quietly(example_urdf(name))
    return rbd_ros.with_locked_joints(model, {joint: 0.0 for joint in model.velocity_names
                                              if 'finger' in joint})


def actual(model, seed=1):
    """Return a robot of which the model is the URDF."""
    rng = np.random.default_rng(seed)
    return measured.with_drives(measured.changed(model, rng), rng)


def fitted(model, recording, **options):
    """Return the reduced samples of a recording, their fit, and the samples."""
    samples = prepare(model, recording)
    part = identification.partial(model, samples, **options)
    return part, identification.fit(model, part), samples


def judge(model, recording, **options):
    """Return what is believed of a recording."""
    return verdict(model, *fitted(model, recording, **options))


def check_reason(found, *said):
    """Check that a verdict gives one reason, and what it says."""
    assert not found.believable
    assert len(found.reasons) == 1, found.reasons
    for text in said:
        assert text in found.reasons[0]


@pytest.fixture(scope='module')
def arm():
    """Return the URDF of an arm with four joints and a good recording of the arm itself."""
    model = urdf('ur10_robot.urdf')
    model = rbd_ros.with_locked_joints(model, dict.fromkeys(model.velocity_names[4:], 0.0))
    return model, measured.recording(actual(model), 1)


@pytest.mark.long
@pytest.mark.parametrize('robot', [
    'ur3_robot.urdf', 'panda.urdf', 'kinova.urdf', 'xarm7.urdf', 'double_pendulum.urdf',
    'baxter.urdf', 'tree 0', 'tree 2', 'tree 5'])
@pytest.mark.parametrize('seed', range(2))
def test_good_recordings_of_different_robots_are_believed(robot, seed):
    model = (random_tree(int(robot[5:]), 4) if robot.startswith('tree')
             else urdf(robot))
    # Random motions ignore the limits of the efforts.
    model = replace(model, effort_limit=np.full(model.nv, np.inf))
    found = judge(model, measured.recording(actual(model, seed), seed, 30.0, noise=0.03))
    assert found.reasons == ()
    assert found.believable
    assert found.figures['relative_error'] < 0.01
    assert found.figures['rank'] > 0.9 * found.figures['base_parameters']
    assert found.figures['condition'] > 1.0
    assert 0.0 < found.figures['uncertainty'] < 0.1


def test_torques_of_the_bodies_have_the_size_of_the_efforts():
    model = replace(urdf('ur5_robot.urdf'), effort_limit=np.full(6, np.inf))
    one = measured.recording(model, 0, 30.0, noise=0.03)
    for factor in (1.0, 1.4):
        found = judge(model, replace(one, effort=factor * one.effort))
        assert found.believable
        assert found.figures['size'] == pytest.approx(factor, rel=0.01)


@pytest.mark.parametrize('wrong', covering([slice(None), [2], [0, 1, 3]], slice(None), [2]))
@pytest.mark.parametrize('options', covering([{}, {'friction': (), 'rotors': False}], {}))
def test_efforts_of_the_wrong_sign_are_named(arm, options, wrong):
    model, recording = arm
    if options:     # of four joints, the last has hardly a torque that the masses do not explain
        model = urdf('ur10_robot.urdf')
        recording = measured.recording(measured.changed(model, np.random.default_rng(1)), 1)
    sign = np.ones(model.nv)
    sign[wrong] = -1.0
    found = judge(model, replace(recording, effort=sign * recording.effort), **options)
    check_reason(found, 'wrong sign: multiply')
    assert [name in found.reasons[0] for name in model.velocity_names] == [*(sign < 0.0)]


def test_slightly_negative_friction_is_not_reported_as_wrong_sign(arm):
    model = rbd_ros.with_locked_joints(arm[0], {arm[0].velocity_names[3]: 0.0})
    t, q, v, a = measured.swing(model, np.random.default_rng(1), 20.0, 200.0)
    tau = measured.efforts(model, q, v, a)
    size = np.sqrt(np.mean(tau ** 2, axis=0) / np.mean(v ** 2, axis=0))
    for share, wrong in ((0.01, False), (0.2, True)):
        found = judge(model, identification.Recording(
            'push', model.velocity_names, t, q, v, tau - share * size * v))
        assert any('wrong sign' in reason for reason in found.reasons) == wrong


def test_positions_in_degrees_are_reported(arm):
    model, recording = arm
    check_reason(judge(model, replace(recording, position=np.degrees(recording.position),
                                      velocity=np.degrees(recording.velocity))), 'degrees')


def test_positions_beyond_the_limits_are_reported(arm):
    model, recording = arm
    # The first turns about the vertical: torques are the same wherever it is.
    position = recording.position + np.where(np.arange(4) == 0, 7.0, 0.0)
    check_reason(judge(model, replace(recording, position=position)),
                 f'positions of {model.velocity_names[0]} lie beyond the limits')


@pytest.mark.parametrize('order', covering(
    [[1, 0, 2, 3], [0, 3, 2, 1], [0, 1, 3, 2], [3, 2, 0, 1], [3, 2, 1, 0], [1, 2, 0, 3]],
    [1, 0, 2, 3], [1, 2, 0, 3]))
def test_joints_in_another_order_are_named(arm, order):
    model, recording = arm
    # What stands in column k was measured at joint order[k].
    names = [(f"'{model.velocity_names[k]}'", f"'{model.velocity_names[j]}'")
             for k, j in enumerate(order) if j != k]
    said = [f'{one} looks like {other}' for one, other in names]
    if len(names) == 2:
        said.append(f'{names[0][0]} and {names[1][0]} seem to be exchanged')
    effort = recording.effort[:, order]
    check_reason(judge(model, replace(recording, effort=effort)), 'the efforts of', *said)
    found = judge(model, replace(recording, position=recording.position[:, order],
                                 velocity=recording.velocity[:, order], effort=effort))
    check_reason(found, *said)
    assert 'the efforts of' not in found.reasons[0]
    assert found.reasons[0].count('looks like') == len(names)


@pytest.mark.parametrize('seconds', [1.0, -0.4])
def test_delayed_efforts_are_reported(arm, seconds):
    model, recording = arm
    k = int(abs(seconds) * 200)
    early, late = slice(None, -k), slice(k, None)
    rest, shifted = (late, early) if seconds > 0 else (early, late)
    found = judge(model, replace(
        recording, time=recording.time[rest], position=recording.position[rest],
        velocity=recording.velocity[rest], effort=recording.effort[shifted]))
    check_reason(found, 's later than positions', f'{seconds:.1g}')


def test_a_robot_at_rest_is_reported(arm):
    model, recording = arm
    rng = np.random.default_rng(0)
    true = actual(model)
    noise = [scale * rng.normal(size=recording.position.shape) for scale in (1e-4, 1e-3, 0.1)]
    still = replace(recording, position=0.3 + noise[0], velocity=noise[1],
                    effort=rbd_ros.gravity_torques(true, np.full(4, 0.3)) + noise[2])
    check_reason(judge(model, still), 'the robot stands still')


@pytest.mark.parametrize('seconds, every, reason', [
    (1.5, 1, 'the robot moves for only 1.5 s; at least 2 s are needed'),
    (3.0, 20, 'samples of moving joints are usable, fewer than 3 per parameter')])
def test_motions_that_are_too_short_are_reported(arm, seconds, every, reason):
    model, recording = arm
    rows = np.flatnonzero(recording.time < seconds)[::every]
    check_reason(judge(model, replace(recording, **{
        label: getattr(recording, label)[rows]
        for label in ('time', 'position', 'velocity', 'effort')})), reason)


def test_joints_at_rest_are_reported(arm):
    model, _ = arm
    true = actual(model)
    t, q, v, a = measured.swing(true, np.random.default_rng(1), 20.0, 200.0)
    for x, value in ((q, 0.5), (v, 0.0), (a, 0.0)):
        x[:, 3] = value
    tau = measured.efforts(true, q, v, a)
    rng = np.random.default_rng(2)
    recording = identification.Recording(
        'held', model.velocity_names, t, q + 1e-4 * rng.normal(size=q.shape),
        v + 1e-3 * rng.normal(size=q.shape), tau + 0.1 * rng.normal(size=q.shape))
    found = judge(model, recording)
    check_reason(found, f'{model.velocity_names[3]} hardly moved')


def test_saturated_drives_are_reported(arm):
    model, recording = arm
    limit = 0.6 * np.max(np.abs(recording.effort[:, 1]))
    effort = recording.effort.copy()
    effort[:, 1] = np.clip(effort[:, 1], -limit, limit)
    found = judge(model, replace(recording, effort=effort))
    check_reason(found, 'at their limits', model.velocity_names[1])


def test_insufficient_excitation_is_reported(arm):
    model, _ = arm
    # All joints move alike, and little.
    true = actual(model)
    t = np.arange(0.0, 20.0, 0.005)
    wave = np.array([np.sin(0.6 * t), 0.6 * np.cos(0.6 * t), -0.36 * np.sin(0.6 * t)])
    q, v, a = 0.1 * np.repeat(wave[:, :, None], 4, axis=2)
    tau = measured.efforts(true, q, v, a)
    tau += 0.02 * np.sqrt(np.mean(tau ** 2, axis=0)) * np.random.default_rng(0).normal(
        size=tau.shape)
    found = judge(model, identification.Recording('wave', model.velocity_names, t, q, v, tau))
    check_reason(found, 'torques in other poses are uncertain', 'condition number')
    assert found.figures['uncertainty'] > 0.2


def test_a_short_motion_is_believable_for_similar_motions(arm):
    model, _ = arm
    whole = measured.recording(actual(model), 1, 6.0, noise=0.03)
    part, found, samples = fitted(model, whole.part(stop=3.0))
    other = identification.partial(model, prepare(model, whole.part(start=3.0), delay=0.0,
                                                  cutoff=samples.cutoff))
    before, after = (identification.torque_errors(other, values).relative
                     for values in (found.parameters.values, found.values))
    assert after < 0.03 < 0.2 < before
    alone = verdict(model, part, found, samples)
    check_reason(alone, 'torques in other poses are uncertain')
    assert alone.grade == 'not believable'
    kept_back = verdict(model, part, found, samples, {'other.csv': (before, after)})
    check_reason(kept_back, 'torques in other poses are uncertain')
    assert kept_back.grade == 'good for motions like these'
    # Not if one recording is explained less well, or not at all.
    for bad, said in ((0.12, 0), (0.5, 1)):
        worse = verdict(model, part, found, samples, {'a.csv': (0.3, 0.02), 'b.csv': (0.3, bad)})
        assert worse.grade == 'not believable' and not worse.believable
        assert sum('b.csv is not explained: 50 % of its torques' in reason
                   for reason in worse.reasons) == said


def test_explained_held_out_recordings_keep_the_grade(arm):
    model, recording = arm
    part, found, samples = fitted(model, recording)
    # A robot that is worse than its URDF is not believed, however small its error.
    for before, after, grade in ((0.3, 0.02, 'believable'), (0.3, 0.4, 'not believable'),
                                 (0.02, 0.08, 'not believable')):
        got = verdict(model, part, found, samples, {'other.csv': (before, after)})
        assert got.grade == grade and got.believable == (grade == 'believable')
        assert len(got.reasons) == (not got.believable)


def test_states_that_are_not_finite_are_reported(arm, tmp_path):
    model, recording = arm
    rng = np.random.default_rng(3)
    one = recording.part(stop=6.0)
    # Of each joint for itself: few states are complete.
    effort = np.where(rng.random(one.effort.shape) < 0.4, np.inf, one.effort)
    names = [f'{joint}/{label}' for label in ('position', 'velocity', 'effort')
             for joint in model.velocity_names]
    path = tmp_path / 'infinite.csv'
    identification.write_table(path, ['time', *names], one.time, one.position, one.velocity,
                               effort)
    read = identification.read_recording(path)
    share = np.mean(np.any(np.isinf(effort), axis=1))
    assert read.left_out == pytest.approx(share) and share > 0.8
    samples = prepare(model, read)
    # Little is left of the motion.
    found = judge(model, read)
    assert samples.left_out == read.left_out
    check_reason(found, f'{100.0 * share:.0f} % of the states are left out', 'not finite')
    assert not any('hardly moved' in reason for reason in found.reasons)
    # So it is if only one joint hardly moves in what is left.
    part, found, samples = fitted(model, recording)
    part = replace(part, moving=np.where(np.arange(4) == 2, 0, part.moving))
    for share, said in ((0.3, '30 % of the states are left out'), (0.0, 'hardly moved')):
        check_reason(verdict(model, part, found, replace(samples, left_out=share)), said)


def test_unexplained_efforts_are_reported(arm):
    model, recording = arm
    rng = np.random.default_rng(0)
    noise = measured.coloured(rng, *recording.effort.shape, 100)
    size = np.sqrt(np.mean(recording.effort ** 2, axis=0))
    found = judge(model, replace(recording, effort=size * noise))
    check_reason(found, 'left unexplained: check whether efforts are torques')
    effort = recording.effort.copy()
    effort[:, 3] = size[3] * noise[:, 3]
    found = judge(model, replace(recording, effort=effort))
    check_reason(found, f'the efforts of {model.velocity_names[3]} are left unexplained')


def test_inconsistent_parameters_are_reported(arm):
    model, _ = arm
    # Drives that push: the damping of all joints is negative, less than what friction takes.
    true = actual(model)
    t, q, v, a = measured.swing(true, np.random.default_rng(1), 20.0, 200.0)
    M = np.diag(rbd_ros.mass_matrix(model, rbd_ros.neutral(model)))
    tau = measured.efforts(true, q, v, a) - 1.6 * M * a
    found = judge(model, identification.Recording('push', model.velocity_names, t, q, v, tau))
    check_reason(found, 'a physically consistent robot', 'would violate it', '.armature')


def pendulum(length):
    """Return an arm with one joint, which may be of any length."""
    return (rbd_ros.ModelBuilder('pendulum').link('base')
            .link('rod', mass=1.0, com=(0, 0, length), inertia=0.1 * np.eye(3))
            .joint('swing', 'revolute', 'base', 'rod', axis=(0, 1, 0)).build())


def test_implausibly_distant_centres_of_mass_are_reported():
    long = pendulum(1.0)
    for true in (pendulum(1.1), pendulum(0.9)):
        assert judge(long, measured.recording(true, 1)).reasons == ()
    # A robot that can exist has more mass in place of that.
    short = pendulum(0.1)
    samples = prepare(short, measured.recording(long, 1))
    part = identification.partial(short, samples)
    found = identification.fit(short, part, consistent=False)
    far = 'the centre of mass of rod is further away than a link reaches'
    check_reason(verdict(short, part, found, samples, efforts_are_torques=True), far)
    # Its efforts are ten times those of the description, too.
    gain, com = verdict(short, part, found, samples).reasons
    assert 'by one factor for all joints' in gain and far in com


def test_saturation_is_relative_to_the_time_in_motion(arm):
    model, recording = arm
    part, found, samples = fitted(model, recording)
    part = replace(part, moving=part.moving // 2, saturated=part.moving // 20)
    check_reason(verdict(model, part, found, samples), 'drives were at their limits', '(10 %)')


def test_zero_efforts_are_reported(arm):
    model, recording = arm
    found = judge(model, replace(recording, effort=0.0 * recording.effort))
    check_reason(found, 'all efforts are zero')
    assert np.all(np.isfinite(list(found.figures.values())))


def loads(model, recording, link):
    """Return the load that a recording shows, and what is believed of it."""
    samples = prepare(model, recording)
    part = identification.payload_partial(model, link, samples)
    load = identification.fit_payload(model, part)
    return load, verdict(model, part, load, samples)


def test_payloads_are_believable_unless_distant_or_uncertain(arm):
    model, _ = arm
    true = actual(model)
    for com, far in (((0.0, 0.02, 0.1), False), ((0.0, 0.0, 4.0), True)):
        loaded = rbd_ros.with_payload(true, 'tool0', 2.0, com)
        load, found = loads(true, measured.recording(loaded, 3), 'tool0')
        assert abs(load.mass - 2.0) < 0.1
        if far:
            check_reason(found, 'm away from the link that carries it')
        else:
            assert found.believable and found.reasons == ()
    # None at all is believed as well.
    load, found = loads(true, measured.recording(true, 3), 'tool0')
    assert load.mass < 0.05 and found.believable
    # Joints that turn about the vertical show no weight, and the others do not move.
    turn = measured.recording(rbd_ros.with_payload(true, 'tool0', 2.0, (0.0, 0.02, 0.1)), 3)
    turned = np.zeros((3, len(turn.time), 4))
    turned[0, :, 0] = 0.5 * np.sin(turn.time)
    turned[1, :, 0] = 0.5 * np.cos(turn.time)
    turned[2, :, 0] = -0.5 * np.sin(turn.time)
    tau = measured.efforts(true, *turned)
    rng = np.random.default_rng(0)
    _, found = loads(true, replace(turn, position=turned[0], velocity=turned[1],
                                   effort=tau + 5.0 * rng.normal(size=tau.shape)), 'tool0')
    check_reason(found, 'the mass', 'is uncertain')
