# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Generated controllers for ros2_control: equal to the library, without steps, safe in faults."""

from dataclasses import replace
from pathlib import Path
import re
import subprocess
import time

from control_rig import compile_cpp, PERIOD, Rig, STAND_IN, STRICT
from covering import covering
import numpy as np
import pytest
import rbd_ros
from rbd_ros import friction_torques, gravity_torques, spring_torques, with_payload
from rbd_ros.control import (ComputedTorque, JointReference, MomentumObserver, MotionGuard,
                             PdGravity)
from rbd_ros.control.generated_controller import controller_files, default_law, MODES, SETTINGS
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.positions.steps import turning
from robots import load_quietly, random_tree, relative_error, with_mimics
import yaml

ROOT = Path(__file__).parents[2]
TOLERANCE = 1e-12   # of the largest entry: another order of operations
TOOL = 'tool'
FREE = {'soft_stop_zone': 0.0, 'velocity_guard': 0.0, 'blend_time': 0.0}
LAW = {'friction': True, 'springs': True, 'effort_limits': [1e4], **FREE}    # the law alone
MIN_BLEND = 0.25    # s
Q, STILL = np.linspace(0.1, 0.7, 7), np.zeros(7)


def with_drives(model):
    """Return a robot whose joints have friction, rotors, springs and offsets."""
    changes = {'damping': 0.4, 'damping_asymmetry': 0.1, 'friction': 0.5,
               'friction_asymmetry': -0.2, 'stribeck_friction': 0.3, 'stribeck_velocity': 0.7,
               'effort_offset': 0.05, 'armature': 0.1, 'stiffness': 1.5, 'spring_reference': 0.2}
    return rebuild(model, joints=[
        replace(joint, **{name: (x,) * joint.nv for name, x in changes.items()})
        if joint.nv else joint for joint in model.joints])


def arm():
    return with_drives(load_quietly('urdf/demo_arm.urdf'))


@pytest.fixture(scope='module')
def tree_rig(tmp_path_factory):
    """Return the rig of a tree with mimics and continuous joints, without limits of efforts."""
    model = with_mimics(random_tree(1, 9, ('revolute', 'continuous', 'prismatic')), 4)
    return Rig(model, tmp_path_factory.mktemp('tree'))


@pytest.fixture(scope='module')
def package(tmp_path_factory):
    """Return the folder of the package of the rig, with its dynamics compiled."""
    return tmp_path_factory.mktemp('controller')


@pytest.fixture(scope='module')
def rig(package):
    """Return the rig of the demo arm with friction, rotors and springs."""
    return Rig(arm(), package, tool=TOOL)


def motion(model, rng):
    """Return q, v, a and tau of a random motion within the limits of the joints."""
    q = 0.6 * rng.uniform(model.lower, model.upper)
    return q, *rng.normal(size=(3, model.nv))


def law_torques(model, mode, q, v, r):
    """Return the torques of a law of the library, with friction, springs and torques to add."""
    reference = None if mode == 'gravity' else JointReference(model, *r[:3])
    return default_law(model, mode).update(0.0, q, v, reference) + r[3]


# -- Sources. -------------------------------------------------------------------------------------
@pytest.mark.usefixtures('rig')
def test_the_generated_controller_compiles_without_warnings_against_the_newest_version(package):
    # The rig is one of kilted, and the program below one of jazzy.
    compile_cpp('rolling', '-fsyntax-only', 'controller.cpp', cwd=package)


@pytest.mark.usefixtures('rig')
def test_the_test_of_the_package_passes_and_notices_a_wrong_number(package):
    def own_test():
        """Compile and run the test of the package; return what it prints."""
        subprocess.run(['g++', *STRICT, 'test_law.cpp', 'r_dynamics.o', '-o', 'test_law', '-lm'],
                       cwd=package, check=True)
        return subprocess.run(['./test_law'], cwd=package, capture_output=True, text=True,
                              check=False).stdout
    assert own_test() == '0 differences\n'
    law = package / 'law.hpp'
    text = law.read_text()
    law.write_text(text.replace('+ s(IMPEDANCE_STIFFNESS) * e', ''))
    assert own_test().endswith('3 differences\n')
    law.write_text(text)


@pytest.mark.usefixtures('rig')
def test_update_neither_allocates_nor_locks_nor_logs(package):
    compile_cpp('jazzy', ROOT / 'benchmark/controller_timing.cpp', 'r_dynamics.o', '-o',
                'program', '-DPACKAGE=r_controller', '-ldl', cwd=package)
    done = subprocess.run(['./program', '1000'], cwd=package, capture_output=True, text=True,
                          check=True)
    *times, counts, logs = done.stdout.splitlines()
    assert [line.split(':')[0] for line in times] == list(MODES)
    assert counts == '0 allocations, 0 locks; a vector and a mutex: 1 and 1' and logs == '0 logs'


@pytest.mark.parametrize('flags', covering([['-O2'], ['-O1', '-fsanitize=thread']],
                                           ['-O1', '-fsanitize=thread']))
@pytest.mark.usefixtures('rig')
def test_parameters_reach_the_loop_whole_and_in_order(flags, package):
    subprocess.run(['g++', *STRICT, *flags, '-pthread', '-I.', STAND_IN / 'mailbox.cpp', '-o',
                    'mailbox'], cwd=package, check=True)
    done = subprocess.run(['./mailbox'], cwd=package, capture_output=True, text=True, check=True)
    assert (done.stdout, done.stderr) == ('0 torn, 0 old\n', '')


# -- Laws. ----------------------------------------------------------------------------------------
@pytest.mark.parametrize('mode', MODES)
def test_each_mode_equals_the_law_of_the_library(rig, mode):
    model, rng = rig.model, np.random.default_rng(3)
    for _ in range(20):
        q, v, *_ = motion(model, rng)
        r = motion(model, rng)
        assert rig.start(q, v, chained=True, mode=mode, **LAW)
        rig.refer(*r)
        assert relative_error(rig.step(q, v), law_torques(model, mode, q, v, r)) < TOLERANCE


@pytest.mark.parametrize('mode, law, labels', [
    ('pd_gravity', PdGravity, ('stiffness', 'damping')),
    ('computed_torque', ComputedTorque, ('kp', 'kd'))])
def test_gains_are_those_of_the_parameters(rig, mode, law, labels):
    model, rng = rig.model, np.random.default_rng(4)
    (q, v, *_), r = motion(model, rng), motion(model, rng)
    gains = dict(zip(labels, (rng.uniform(10.0, 90.0, 7), rng.uniform(1.0, 9.0, 7))))
    assert rig.start(q, v, chained=True, mode=mode, effort_limits=[1e4], **FREE,
                     **{f'{mode}__{name}': x for name, x in gains.items()})
    rig.refer(*r)
    tau = law(model, *gains.values(), friction_speed=None).update(0.0, q, v, JointReference(
        model, *r[:3])) + r[3]
    assert relative_error(rig.step(q, v), tau) < TOLERANCE


def test_mimics_follow_and_continuous_joints_take_the_shortest_way(tree_rig):
    rig, model, rng = tree_rig, tree_rig.model, np.random.default_rng(5)
    turns = turning(model)
    assert turns.any() and model.nv == 5 and rig.configure(effort_limits=[1e6])
    assert rig.names('c') == [f'{name}/effort' for name in model.velocity_names]
    q, v, *_ = rng.normal(size=(4, model.nv))
    r = rng.normal(size=(4, model.nv))
    r[0] = q + np.where(turns, 2.0, 0.3) * np.pi
    for mode in MODES:
        assert rig.start(q, v, chained=True, mode=mode, friction=True, effort_limits=[1e6], **FREE)
        rig.refer(*r)
        assert relative_error(rig.step(q, v), law_torques(model, mode, q, v, r)) < TOLERANCE


# -- References. ----------------------------------------------------------------------------------
@pytest.mark.parametrize('without, error', [('hold', 0.01), ('float', 0.0)])
def test_without_a_reference_the_generated_controller_holds_its_position_or_floats(
        rig, without, error):
    assert rig.start(Q, STILL, mode='pd_gravity', without_reference=without,
                     pd_gravity__stiffness=[10.0], **FREE)
    expected = gravity_torques(rig.model, Q + 0.01) - 10.0 * error
    assert relative_error(rig.step(Q + 0.01, STILL), expected) < TOLERANCE


def test_references_begin_at_the_state(rig):
    assert rig.start(Q, np.ones(7), chained=True)
    assert np.array_equal(rig.references, [Q, *np.zeros((3, 7))])


def test_names_of_interfaces_are_those_of_the_joints(rig):
    assert rig.configure(state_interfaces=['effort', 'position'])
    joints = rig.model.velocity_names
    assert rig.names('c') == [f'{name}/effort' for name in joints]
    assert rig.names('s') == [f'{name}/{kind}' for kind in ('position', 'effort')
                              for name in joints]
    assert rig.names('r') == [f'arm/{name}/{kind}' for kind in (
        'position', 'velocity', 'acceleration', 'effort') for name in joints]
    assert rig.names('o') == [f'arm/{name}/{kind}' for kind in (
        'gravity', 'coriolis', 'external_torque') for name in joints]


def test_states_are_those_of_the_configuration_until_the_next_one(rig):
    q, v = np.linspace(0.1, 0.7, 7), np.linspace(-0.5, 0.5, 7)
    assert rig.configure(state_interfaces=['velocity', 'position'], mode='gravity',
                         gravity__damping=[10.0], **FREE)
    assert rig.give('state_interfaces', ['effort', 'position'])
    rig.state(q, v)
    assert rig.activate()
    assert relative_error(rig.step(q, v), gravity_torques(rig.model, q) - 10.0 * v) < TOLERANCE


# -- Changes. -------------------------------------------------------------------------------------
def test_modes_are_switched_without_a_step(rig):
    model, rng = rig.model, np.random.default_rng(6)
    (q, v, *_), r = motion(model, rng), motion(model, rng)
    assert rig.start(q, v, chained=True, mode='gravity', friction=True, springs=True,
                     effort_limits=[1e4], soft_stop_zone=0.0, velocity_guard=0.0)
    rig.refer(*r)
    for _ in range(300):
        last = rig.step(q, v)
    for mode in ('impedance', 'computed_torque', 'pd_gravity', 'gravity'):
        assert rig.give('mode', mode)
        goal = law_torques(model, mode, q, v, r)
        assert relative_error(rig.step(q, v), last) < TOLERANCE
        # A straight line in blend_time, 0.5 s, by its shares.
        for k in range(1, 252):
            share = max(1.0 - k * PERIOD / 0.5, 0.0)
            command = rig.step(q, v)
            assert relative_error(command, goal + share * (last - goal)) < 1e-10
        last = command
        assert relative_error(command, goal) < TOLERANCE


@pytest.mark.parametrize('label, before, after', [
    ('mode', 'gravity', 'computed_torque'), ('without_reference', 'float', 'hold')])
def test_the_generated_controller_holds_the_position_at_which_holding_is_switched_on(
        rig, label, before, after):
    assert rig.start(Q, STILL, **{label: before}, blend_time=0.0)
    moved = Q + 0.05
    for part in np.linspace(0.0, 1.0, 20):
        rig.step(Q + part * 0.05, STILL)
    assert rig.give(label, after)
    for _ in range(150):
        command = rig.step(moved, STILL)
    assert relative_error(command, gravity_torques(rig.model, moved)) < TOLERANCE


def test_gains_change_without_a_step(rig):
    assert rig.start(Q, STILL, mode='pd_gravity', **FREE)
    last = rig.step(Q + 0.01, STILL)
    assert rig.give('pd_gravity.stiffness', [500.0])
    assert relative_error(rig.step(Q + 0.01, STILL), last) < TOLERANCE
    commands = np.array([last, *(rig.step(Q + 0.01, STILL).copy() for _ in range(130))])
    # 450 N m/rad times 0.01 rad in the shortest blend.
    assert np.abs(np.diff(commands, axis=0)).max() < 1.001 * 4.5 * PERIOD / MIN_BLEND
    assert relative_error(commands[-1], gravity_torques(rig.model, Q + 0.01) - 5.0) < TOLERANCE


def test_a_payload_is_taken_over_by_a_ramp(rig):
    q = np.array([0.1, 0.6, 0.0, 0.9, 0.0, 0.4, 0.0])
    assert rig.start(q, np.zeros(7), mode='gravity', **{**FREE, 'blend_time': 0.5})
    for _ in range(260):
        last = rig.step(q, np.zeros(7))

    def carrying(mass, com):
        return gravity_torques(with_payload(rig.model, TOOL, mass, com), q)
    center = np.array([0.05, 0.0, 0.1])
    assert rig.give('payload.center', center) and rig.give('payload.mass', 3.0)
    for k in range(1, 252):
        command = rig.step(q, np.zeros(7))
        share = min(k * PERIOD / 0.5, 1.0)
        assert relative_error(command, carrying(3.0 * share, share * center)) < 1e-10
    assert np.abs(command - last).max() > 10.0
    assert np.array_equal(rig.results[0], command)
    assert rig.give('payload.mass', 0.0)
    for _ in range(125):
        command = rig.step(q, np.zeros(7))
    assert relative_error(command, carrying(1.5, center)) < 1e-10
    for _ in range(130):
        command = rig.step(q, np.zeros(7))
    assert relative_error(command, last) < TOLERANCE


def test_a_payload_respects_limits_and_one_that_changes_in_its_ramp_does_not_step(rig):
    q = np.array([0.1, 0.6, 0.0, 0.9, 0.0, 0.4, 0.0])
    limits = 1.1 * np.abs(gravity_torques(rig.model, q)) + 1.0
    assert rig.start(q, np.zeros(7), mode='gravity', effort_limits=limits, effort_rate_limit=300.0,
                     **FREE)
    commands = [rig.step(q, np.zeros(7))]
    for mass in (50.0, 0.0, 50.0):
        assert rig.give('payload.mass', mass)
        commands += [rig.step(q, np.zeros(7)) for _ in range(60)]
    steps = np.abs(np.diff(commands, axis=0))
    assert 0.999 < steps.max() / (300.0 * PERIOD) < 1.0 + 1e-9
    for _ in range(200):
        commands.append(rig.step(q, np.zeros(7)))
    assert np.array_equal(np.abs(commands[-1])[[1, 3]], limits[[1, 3]])
    assert (np.abs(commands) <= limits).all()
    # Without limits, the ramp begins where the last one was.
    assert rig.start(q, np.zeros(7), mode='gravity', effort_limits=[1e4], **FREE)
    ramps = [rig.step(q, np.zeros(7))]
    for mass in (3.0, 0.0, 3.0):
        assert rig.give('payload.mass', mass)
        ramps += [rig.step(q, np.zeros(7)) for _ in range(60)]
    whole = gravity_torques(with_payload(rig.model, TOOL, 3.0), q) - ramps[0]
    steps = np.abs(np.diff(ramps, axis=0)).max(axis=0)
    assert (steps < 1.001 * np.abs(whole) * PERIOD / MIN_BLEND + 1e-12).all()


def test_a_payload_of_the_parameters_acts_from_the_start(rig):
    (q, v, *_), r = (motion(rig.model, np.random.default_rng(k)) for k in (7, 8))
    assert rig.start(q, v, chained=True, payload__mass=2.0, payload__center=[0.1, 0.0, 0.2], **LAW)
    rig.refer(*r)
    model = with_payload(rig.model, TOOL, 2.0, (0.1, 0.0, 0.2))
    assert relative_error(rig.command, gravity_torques(model, q)) < TOLERANCE
    assert relative_error(rig.step(q, v), law_torques(model, 'computed_torque', q, v, r)
                          ) < TOLERANCE


@pytest.mark.parametrize('name, value, words', [
    ('mode', 'position', "mode is 'position'; choose from gravity pd_gravity computed_torque"),
    ('pd_gravity.stiffness', [-1.0], 'pd_gravity.stiffness must be from 0'),
    ('pd_gravity.stiffness', [1.0, 2.0], 'needs 1 number per joint'),
    ('pd_gravity.stiffness', [], 'pd_gravity.stiffness must be from 0'),
    ('payload.mass', np.nan, 'payload.mass must be from 0'),
    ('payload.center', [0.0, 1.0], 'payload.center (x, y, z)'),
    ('blend_time', -1.0, 'blend_time must be from'),
    ('blend_time', 'long', 'another type'),
    ('without_reference', 'fall', 'choose from hold float')])
def test_bad_parameters_are_refused_and_change_nothing(rig, name, value, words):
    assert rig.start(Q, STILL)
    last = rig.step(Q, STILL)
    assert not rig.give(name, value) and words in rig.reason
    assert np.array_equal(rig.step(Q, STILL), last)


def test_bad_parameters_are_refused_at_the_start(rig):
    assert not rig.configure(mode='position') and 'choose from' in rig.logged
    assert not rig.configure(blend_time='long') and 'another type' in rig.logged
    assert not rig.configure(state_interfaces=['velocity']) and 'position' in rig.logged
    assert not rig.configure(state_interfaces=['position', 'force']) and 'force' in rig.logged


def test_parameters_of_the_page_are_accepted(rig):
    page = (ROOT / 'doc/how_to/feed_a_controller.md').read_text(encoding='utf-8')
    files = [yaml.safe_load(text) for text in re.findall(
        r'^```yaml\n(.*?)^```', page, re.MULTILINE | re.DOTALL)]
    given = [one for file in files for name, section in file.items() if name.startswith('/**/')
             for one in section.values()]
    assert len(given) == 3
    for one in given:
        assert one.pop('type').endswith('_controller/Controller') and set(one) <= set(SETTINGS)
        assert rig.configure(**{name.replace('.', '__'): x for name, x in one.items()}), rig.logged


def test_a_robot_without_effort_limits_needs_them(tree_rig):
    assert not tree_rig.configure()
    first = tree_rig.model.velocity_names[0]
    assert f'set effort_limits: the description has none for {first}' in tree_rig.logged
    assert tree_rig.configure(effort_limits=[50.0])


# -- The start and the end. -----------------------------------------------------------------------
def test_the_first_command_equals_the_measured_efforts(rig):
    q, efforts = np.linspace(0.1, 0.7, 7), np.linspace(-20.0, 20.0, 7)
    assert rig.start(q, np.zeros(7), efforts, state_interfaces=['position', 'velocity', 'effort'])
    assert relative_error(rig.step(q, np.zeros(7), efforts), efforts) < TOLERANCE
    for _ in range(250):
        command = rig.step(q, np.zeros(7), efforts)
    assert relative_error(command, gravity_torques(rig.model, q)) < TOLERANCE


def test_without_measured_efforts_commands_begin_with_gravity(rig):
    assert rig.start(Q, STILL, chained=True, mode='pd_gravity')
    rig.refer(Q + 0.1)
    g = gravity_torques(rig.model, Q)
    assert relative_error(rig.step(Q, STILL), g) < TOLERANCE
    assert relative_error(rig.step(Q, STILL), g + 5.0 * PERIOD / 0.5) < TOLERANCE


@pytest.mark.parametrize('chained', [True, False])
def test_a_controller_above_it_may_start_and_stop_without_a_step(rig, chained):
    assert rig.start(Q, STILL, mode='pd_gravity', blend_time=0.0, chained=not chained)
    before = rig.step(Q - 0.1, STILL, period=0.02)    # 5 N m of stiffness
    # As the controller manager does, within a cycle and without an update.
    assert rig.deactivate() and rig.activate(chained)
    assert np.array_equal(rig.command, before)
    commands = np.array([before, *(rig.step(Q - 0.1, STILL) for _ in range(130))])
    assert np.abs(np.diff(commands, axis=0)).max() < 1.001 * 5.0 * PERIOD / MIN_BLEND
    assert relative_error(commands[-1], gravity_torques(rig.model, Q - 0.1)) < TOLERANCE


@pytest.mark.parametrize('end', ['fault', 'pause'])
def test_after_a_fault_or_a_pause_the_generated_controller_does_not_continue_from_the_last_command(
        rig, end):
    assert rig.start(Q, STILL, mode='pd_gravity', blend_time=0.0)
    rig.step(Q - 0.1, STILL, period=0.02)
    if end == 'fault':
        rig.state(np.full(7, np.nan), STILL)
        assert rig.update() and not rig.update()
    assert rig.deactivate()
    rig.state(Q - 0.1, STILL + 0.3)
    time.sleep(0.15 if end == 'pause' else 0.0)
    assert rig.activate()
    assert relative_error(rig.command, gravity_torques(rig.model, Q - 0.1)) < TOLERANCE
    # Nor does the observer take the new velocity for a push.
    rig.step(Q - 0.1, STILL + 0.3)
    assert not rig.results[2].any()


@pytest.mark.parametrize('spoil, words', [
    (lambda q, v, tau: q.__setitem__(3, np.nan), 'elbow: a state is missing or not finite'),
    (lambda q, v, tau: v.__setitem__(3, np.inf), 'elbow: a state is missing or not finite'),
    (lambda q, v, tau: v.__setitem__(3, 8.0), 'elbow: implausible velocity or effort'),
    (lambda q, v, tau: tau.__setitem__(3, 121.0), 'elbow: implausible velocity or effort')])
def test_the_generated_controller_is_not_activated_with_bad_states(rig, spoil, words):
    q, v, tau = np.linspace(0.1, 0.7, 7), np.zeros(7), np.zeros(7)
    assert rig.configure(state_interfaces=['position', 'velocity', 'effort'])
    spoil(q, v, tau)
    rig.state(q, v, tau)
    assert not rig.activate() and rig.logged == words


def test_the_generated_controller_is_not_activated_without_states(rig):
    assert rig.configure()
    assert not rig.activate() and rig.logged == 'shoulder_pan: a state is missing or not finite'
    rig.state(np.zeros(7), np.zeros(7))
    rig.lock('s')
    assert not rig.activate()
    rig.lock('s', False)
    assert rig.activate()


def test_a_state_that_was_stale_at_the_activation_ends_it(rig):
    q = np.zeros(7)
    assert rig.start(q, q)
    moved = q + 0.1
    rig.state(moved, q)
    assert rig.update() and not rig.update()
    assert rig.deactivate()
    assert rig.logged == 'shoulder_pan: states are missing, not finite or implausible'


# -- Faults. --------------------------------------------------------------------------------------
@pytest.mark.parametrize('fault', ['nan', 'jump', 'fast', 'locked'])
def test_a_bad_state_is_bridged_for_one_cycle_then_ends(rig, fault):
    q, v = np.linspace(0.1, 0.7, 7), np.full(7, 0.5)
    assert rig.start(q, v, mode='pd_gravity', blend_time=0.0)
    for k in range(1, 6):
        before = rig.step(q + k * PERIOD * v, v)
    bad_q, bad_v = q.copy() + 6 * PERIOD * v, v.copy()
    if fault == 'nan':
        bad_q[2] = np.nan
    elif fault == 'jump':
        bad_q[2] += 0.1
    elif fault == 'fast':
        bad_v[2] = 7.3
    rig.lock('s', fault == 'locked')
    command = rig.step(bad_q, bad_v)
    rig.lock('s', False)
    assert np.array_equal(command, before)
    # A good state, and everything goes on.
    good = rig.step(q + 7 * PERIOD * v, v)
    assert not np.array_equal(good, before)
    rig.lock('s', fault == 'locked')
    rig.state(bad_q, bad_v)
    assert rig.update() and not rig.update()
    rig.lock('s', False)
    assert np.array_equal(rig.command, good)
    assert rig.deactivate() and not rig.command.any()
    joint = 'shoulder_pan' if fault == 'locked' else 'upper_arm_roll'
    assert rig.logged == f'{joint}: states are missing, not finite or implausible'


def test_after_a_fault_the_controller_can_be_activated_again(rig):
    assert rig.start(Q, STILL, chained=True)
    bad = np.full(7, np.nan)
    rig.state(bad, STILL)
    assert rig.update() and not rig.update() and rig.deactivate()
    before = rig.logged
    for first in ('state', 'reference'):
        rig.state(Q, STILL)
        assert rig.activate(chained=True)
        # One failure is bridged again.
        if first == 'state':
            rig.state(bad, STILL)
        else:
            rig.refer(bad)
        assert rig.update()
        rig.state(Q, STILL)
        rig.refer(Q)
        assert rig.update()
        assert rig.deactivate() and rig.logged == before     # nothing new


@pytest.mark.parametrize('fault', ['nan', 'locked'])
def test_a_bad_reference_is_bridged_for_one_cycle_then_ends(rig, fault):
    assert rig.start(Q, STILL, chained=True, mode='pd_gravity', blend_time=0.0)
    rig.refer(Q + 0.02)
    before = rig.step(Q, STILL)
    bad = Q + 0.05
    if fault == 'nan':
        bad[4] = np.nan
    rig.refer(bad)
    rig.lock('r', fault == 'locked')
    assert np.array_equal(rig.step(Q, STILL), before)
    rig.lock('r', False)
    rig.refer(Q + 0.05)
    after = rig.step(Q, STILL)
    assert np.allclose(after - before, 50.0 * 0.03)
    rig.refer(bad)
    rig.lock('r', fault == 'locked')
    assert rig.update() and not rig.update()
    rig.lock('r', False)
    assert rig.deactivate() and 'references are missing or not finite' in rig.logged


def test_the_generated_controller_ends_if_a_command_cannot_be_written_twice(rig):
    assert rig.start(Q, STILL, chained=True)
    rig.lock('c')
    rig.state(Q, STILL)
    assert rig.update() and not rig.update()
    rig.lock('c', False)
    assert rig.deactivate() and rig.logged == 'commands cannot be written'
    rig.lock('c')
    assert not rig.activate() and rig.logged == 'commands cannot be written'
    rig.lock('c', False)


def test_references_that_overflow_stop_the_generated_controller_at_once(rig):
    assert rig.start(Q, STILL, chained=True)
    before = rig.step(Q, STILL)
    rig.refer(np.full(7, 1e307), np.full(7, -1e308))
    assert not rig.update() and np.array_equal(rig.command, before)
    assert rig.deactivate() and rig.logged == 'efforts are not finite'


def test_a_locked_publisher_does_not_disturb_the_controller(rig):
    assert rig.start(Q, STILL)
    rig.lock('o')
    for _ in range(5):
        rig.step(Q, STILL)
    rig.lock('o', False)
    rig.step(Q, STILL)
    assert relative_error(rig.results[0], gravity_torques(rig.model, Q)) < TOLERANCE


def test_after_a_pause_commands_blend(rig):
    assert rig.start(Q, STILL, mode='pd_gravity', blend_time=0.0)
    before = rig.step(Q, STILL)
    assert relative_error(rig.step(Q + 0.3, STILL, period=0.2), before) < TOLERANCE


# -- Limits. --------------------------------------------------------------------------------------
def test_the_generated_guard_equals_that_of_the_library(rig):
    model, rng = rig.model, np.random.default_rng(9)
    guard, acted = MotionGuard(model), 0
    for k in range(200):
        q = 1.02 * rng.uniform(model.lower, model.upper)
        v, r = rng.normal(size=7) * model.velocity_limit, motion(model, rng)
        v = np.clip(v, -2.9 * model.velocity_limit, 2.9 * model.velocity_limit)
        mode = ('gravity', 'computed_torque')[k % 2]
        delay, rate = (0.0, 0.03)[k // 2 % 2], (0.0, 1e7)[k // 4 % 2]
        assert rig.start(q, v, chained=True, mode=mode, friction=True, springs=True, delay=delay,
                         effort_rate_limit=rate, blend_time=0.0)
        rig.refer(*r)
        tau = law_torques(model, mode, q, v, r)
        limited = guard.limit(tau, q, v, None if mode == 'gravity' else r[0], age=PERIOD + delay,
                              effort_rate=rate or np.inf)
        acted += limited is not tau
        expected = np.clip(limited, -model.effort_limit, model.effort_limit)
        if not rate:
            assert relative_error(rig.step(q, v), expected) < 1e-11
            continue
        g = gravity_torques(model, q)
        reach = rate * PERIOD
        assert relative_error(rig.step(q, v), np.clip(expected, g - reach, g + reach)) < 1e-11
    assert acted > 150


def test_commands_respect_limits_and_their_rate(rig):
    limits = np.array([20.0, 30.0, 10.0, 12.0, 5.0, 4.0, 1.0])
    assert rig.start(Q, STILL, chained=True, mode='pd_gravity', effort_limits=limits,
                     effort_rate_limit=100.0, blend_time=0.0, pd_gravity__stiffness=[1e4])
    rig.refer(Q + 0.5)
    commands = [np.clip(gravity_torques(rig.model, Q), -limits, limits),
                *(rig.step(Q, STILL) for _ in range(600))]
    assert np.abs(np.diff(commands, axis=0)).max() < 100.0 * PERIOD * (1.0 + 1e-9)
    assert np.array_equal(commands[-1], limits)
    rig.refer(Q - 0.5)
    assert np.abs(rig.step(Q, STILL) - limits).max() < 100.0 * PERIOD * (1.0 + 1e-9)


# -- Robots that compensate gravity themselves. ---------------------------------------------------
@pytest.mark.parametrize('mode', MODES)
@pytest.mark.parametrize('convention', [
    'without_gravity', 'without_gravity_and_coriolis'])
def test_commands_exclude_the_onboard_compensation_of_the_robot(rig, convention, mode):
    (q, v, *_), r = (motion(rig.model, np.random.default_rng(k)) for k in (10, 11))
    assert rig.start(q, v, chained=True, mode=mode, effort_convention__commands=convention, **LAW)
    # It begins with what is left of gravity torques.
    assert np.abs(rig.command).max() < 1e-12
    rig.refer(*r)
    terms = rbd_ros.all_terms(rig.model, q, v)
    own = terms.g + (terms.coriolis_torques if convention[-1] == 's' and mode in (
        'computed_torque', 'impedance') else 0.0)
    tau = law_torques(rig.model, mode, q, v, r)
    assert relative_error(rig.step(q, v), tau - own) < TOLERANCE


# -- Outputs. -------------------------------------------------------------------------------------
@pytest.mark.parametrize('states', ['full', 'without_gravity', 'without_gravity_and_coriolis'])
def test_external_torques_are_those_of_the_momentum_observer(rig, states):
    model, observer = rig.model, MomentumObserver(rig.model, 30.0)
    rng, q = np.random.default_rng(12), np.linspace(0.1, 0.7, 7)
    assert rig.start(q, np.zeros(7), np.zeros(7), observer_gain=30.0,
                     state_interfaces=['position', 'velocity', 'effort'],
                     effort_convention__states=states)
    for k in range(100):
        v, tau = 0.3 * np.sin(0.02 * k + np.arange(7)), 30.0 * rng.normal(size=7)
        q = q + PERIOD * v
        terms = rbd_ros.all_terms(model, q, v)
        missing = {'full': 0.0, 'without_gravity': terms.g}.get(
            states, terms.g + terms.coriolis_torques)
        rig.step(q, v, tau)
        expected = observer.update(PERIOD * k, q, v, tau + missing)
        assert relative_error(rig.results[2], expected) < 1e-11
    assert relative_error(rig.results[:2], [terms.g, terms.coriolis_torques]) < TOLERANCE


def test_without_measured_efforts_the_observer_uses_the_commands(rig):
    model, q, v = rig.model, np.array([0.1, 0.3, 0.0, 0.8, 0.0, 0.4, 0.0]), np.zeros(7)
    push = np.array([3.0, -4.0, 2.0, 1.0, -1.0, 0.5, 0.2])
    assert rig.start(q, v, mode='impedance', impedance__stiffness=[200.0], friction=True,
                     springs=True, blend_time=0.0, observer_gain=50.0)
    for _ in range(600):
        command = rig.step(q, v)
        for _ in range(5):
            a = rbd_ros.forward_dynamics(
                model, q, v, command + push - friction_torques(model, v, smooth=0.02)
                - spring_torques(model, q))
            v = v + 0.2 * PERIOD * a
            q = q + 0.2 * PERIOD * v
    assert np.abs(rig.results[2] - push).max() < 0.02


@pytest.mark.parametrize('mode', MODES)
def test_only_computed_torque_compensates_external_torques_up_to_their_limits(rig, mode):
    model, rng, limits = rig.model, np.random.default_rng(13), np.linspace(0.0, 30.0, 7)
    assert rig.start(Q, STILL, np.zeros(7), chained=True, mode=mode, compensation_limits=limits,
                     state_interfaces=['position', 'velocity', 'effort'], **LAW)
    for _ in range(50):
        r = motion(model, rng)
        rig.refer(*r)
        command = rig.step(Q, STILL, 100.0 * rng.normal(size=7))
    external = rig.results[2]
    assert (np.abs(external) > limits).any() and (np.abs(external[1:]) < limits[1:]).any()
    own = np.clip(external, -limits, limits) if mode == 'computed_torque' else 0.0
    assert relative_error(command, law_torques(model, mode, Q, STILL, r) - own) < TOLERANCE


def test_gains_of_the_compensation_are_bounded_by_the_age_of_states(rig):
    # kd is 20/s; 0.5 / (period + delay), and the lag of estimated velocities.
    for parameters, most in ({}, 250.0), ({'delay': 0.003}, 100.0), (
            {'state_interfaces': ['position'], 'velocity_cutoff': 0.5e3 / np.pi}, 500.0 / 3.0):
        assert rig.configure(compensation_limits=[0.0] * 6 + [1.0], observer_gain=most - 20.1,
                             **parameters), rig.logged
        assert not rig.give('observer_gain', most - 19.9)
        assert 'computed_torque.kd + observer_gain must be from 0.0' in rig.reason
        assert rig.give('compensation_limits', [0.0]) and rig.give('observer_gain', most)


@pytest.mark.parametrize('states', [['position'], ['position', 'effort']])
def test_velocities_are_estimated_if_the_hardware_measures_none(rig, states):
    model, q_0, v = rig.model, np.linspace(0.1, 0.7, 7), np.linspace(-0.5, 0.5, 7)
    efforts = np.linspace(-20.0, 20.0, 7) if 'effort' in states else None
    assert rig.start(q_0, None, efforts, state_interfaces=states, mode='gravity',
                     gravity__damping=[10.0], **FREE)
    assert rig.names('s') == [f'{name}/{kind}' for kind in states for name in model.velocity_names]
    begins = gravity_torques(model, q_0) if efforts is None else efforts
    assert relative_error(rig.command, begins) < TOLERANCE
    for k in range(1, 200):
        q = q_0 + k * PERIOD * v
        command = rig.step(q, None, efforts)
    assert relative_error(command, gravity_torques(model, q) - 10.0 * v) < 1e-9


# -- What is refused. -----------------------------------------------------------------------------
def test_robots_without_a_controller_are_named():
    for model, words in (
            (load_quietly('urdf/four_bar.urdf'), r'closed loops \(.*\w\)'),
            (rbd_ros.with_floating_base(arm()), "'base' is free"),
            (random_tree(1, 3, ('spherical',)), 'is spherical')):
        with pytest.raises(rbd_ros.ModelError, match=words):
            controller_files(model)
    with pytest.raises(rbd_ros.ModelError, match="'base_link' is part of the root"):
        controller_files(arm(), tool=arm().link_names[0])
