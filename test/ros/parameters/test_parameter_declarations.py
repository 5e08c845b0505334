# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Parameters, their checks and their files are those that laws and parts of the node declare."""

from dataclasses import replace
from pathlib import Path

from demo_gains import launched, made, slowest_rate
from harness import ros
import numpy as np
from parameter_files import files
import pytest
from rbd_ros import gravity_torques, load_urdf, mass_matrix, neutral
from rbd_ros._internal.setting import Setting, settings_of
from rbd_ros.control import JointReference
from rbd_ros.control.controller import Circumstances
from rbd_ros.control.laws import control_laws
from rbd_ros.ros.control.law_factory import ControlSettings, LAWS, make_controller, parameter_name
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.parameters.parameters import (
    BadParameter, check, check_values, checked_value, CONDITIONS)
from rclpy.parameter import Parameter
from robots import random_tree

SETTINGS = TorqueController.settings
GAINS = {parameter_name(mode, gain): (mode, gain) for mode, law in LAWS.items()
         for gain in law.gains}
WITH_RANGE = [name for name, one in SETTINGS.items() if one.high is not None]
ARM = Path(__file__).parents[3] / 'urdf' / 'demo_arm.urdf'
MODEL = random_tree(1, 3, kinds=('revolute',))
# N m in some hundreds.
AGREEMENT = 1e-9


@pytest.fixture(scope='module')
def node():
    """Return a torque controller without a robot."""
    with ros():
        one = TorqueController()
        yield one
        one.destroy_node()


def control_settings(**values):
    """Return the settings of the torque controller with their defaults, and some values."""
    defaults = {name: one.default for name, one in TorqueController.settings.items()}
    assert values.keys() <= defaults.keys()
    return check(TorqueController.kinds, {**defaults, 'task_link': 'tool', **values}).select(
        ControlSettings)


def test_generated_files_are_up_to_date():
    for path, text in files().items():
        assert path.read_text(encoding='utf-8') == text, 'run `make params`'


@pytest.mark.parametrize('mode', ['pd_gravity', 'joint_impedance', 'computed_torque'])
@pytest.mark.parametrize('late', [0, 1])
def test_the_smallest_rates_of_the_demo_arm_hold_with_springs_too(mode, late):
    _, law, q = of_arm = made(launched(mode))
    rate = slowest_rate(of_arm, age=None if late else 0.0)
    reference, n, h = JointReference(law.model, q), len(q), 1e-4
    # Gravity and its compensation cancel; K and D are those of the law per inertia.
    M, push = mass_matrix(law.model, q), [
        law.update(0.0, q + x, y, reference) - gravity_torques(law.model, q + x)
        for one in h * np.eye(n) for x, y in ((one, 0 * q), (-one, 0 * q), (0 * q, one),
                                              (0 * q, -one))]
    K, D = (np.linalg.solve(M, np.transpose(push)[:, k + 1::4] - np.transpose(push)[:, k::4])
            / (2.0 * h) for k in (0, 2))

    def largest(rate):
        T, one, none = 1.0 / rate, np.eye(n), np.zeros((n, n))
        move = np.block([[one, T * one], [none, one]])
        held = np.vstack((0.5 * T * T * one, T * one)) @ np.hstack((K, D))
        step = (np.block([[move, -held], [np.eye(2 * n), np.zeros((2 * n, 2 * n))]]) if late
                else move - held)
        return np.max(np.abs(np.linalg.eigvals(step)))
    assert largest(0.95 * rate) > 1.0 > largest(1.2 * rate)


def test_declarations_are_consistent():
    for name, one in SETTINGS.items():
        assert one.meaning.endswith('.') and '  ' not in one.description, name
        assert (one.low is None) == (one.high is None), name
        assert not one.per or one.per in SETTINGS, name
        assert not one.condition or one.condition in CONDITIONS, name
    defaults = {name: one.default for name, one in SETTINGS.items()}
    assert check_values(SETTINGS, defaults) == defaults
    for mode, law in control_laws().items():
        assert law.purpose, mode
        assert sum(gain.damps for gain in law.gains.values()) <= 1, mode


def test_a_parameter_is_declared_once():
    with pytest.raises(AssertionError, match='mode is declared twice'):
        settings_of((ControlSettings, ControlSettings))


def test_values_of_a_node_are_the_declared_defaults(node):
    for name, one in SETTINGS.items():
        value = node.get_parameter(name).value
        value = () if value is None else value
        assert (tuple(value) if isinstance(one.default, tuple) else value) == one.default, name
    assert node.get_parameter('limit_efforts').value is True


@pytest.mark.parametrize('name', WITH_RANGE)
def test_values_beyond_a_range_are_refused(node, name):
    one = SETTINGS[name]
    entry = type(one.default[0] if one.default and isinstance(one.default, tuple)
                 else one.low if one.default == () else one.default)
    count = max(one.sizes, default=1) if isinstance(one.default, tuple) else 0
    step = 1 if entry is int else 0.5 * max(abs(one.low), abs(one.high), 1e-3)
    for bound, outside in ((one.low, one.low - step), (one.high, one.high + step)):
        for value, good in ((entry(bound), True), (entry(outside), False)):
            value = [value] * count if count else value
            if good:
                checked_value(name, one, value)
                continue
            with pytest.raises(BadParameter, match=name):
                checked_value(name, one, value)
            if one.changeable:
                result, = node.set_parameters([Parameter(name, value=value)])
                assert not result.successful and name in result.reason


def test_parameters_may_change_as_declared(node):
    for name, one in SETTINGS.items():
        descriptor = node.describe_parameter(name)
        assert descriptor.read_only != one.changeable, name
        assert descriptor.description == one.description
        limits = (*descriptor.floating_point_range, *descriptor.integer_range)
        assert [(x.from_value, x.to_value) for x in limits] == (
            [] if one.high is None else [(one.low, one.high)])
    result, = node.set_parameters([Parameter('max_joints', value=3)])
    assert not result.successful


@pytest.mark.parametrize('name', GAINS)
def test_a_parameter_sets_the_gain_of_its_law_and_no_other(name):
    before, value = control_settings(), ('its value',)
    after = control_settings(**{name: value})
    mode, gain = GAINS[name]
    changed = {(one, other) for one, law in LAWS.items() for other in law.gains
               if before.gains[one][other] != after.gains[one][other]}
    assert changed == {(mode, gain)} and after.gains[mode][gain] == value


@pytest.mark.parametrize('mode', LAWS)
def test_gains_of_each_joint_are_in_the_order_of_control_joints(mode):
    """A law with gains in another order of the joints is that with the same gains in theirs."""
    rng, names = np.random.default_rng(0), list(MODEL.velocity_names)
    given = Circumstances(MODEL, MODEL.link_names[-1], np.zeros(MODEL.nq), False, 0.02)
    values = {parameter_name(mode, gain): tuple(rng.uniform(1.0, 2.0, MODEL.nv))
              for gain, one in LAWS[mode].gains.items() if one.per}

    def state(order):
        settings = control_settings(
            mode=mode, control_joints=tuple(names[k] for k in order),
            **{name: tuple(x[k] for k in order) for name, x in values.items()})
        return {name: x for name, x in vars(make_controller(settings, given)).items()
                if isinstance(x, np.ndarray)}

    first, second = state(range(MODEL.nv)), state([2, 0, 1])
    assert first.keys() == second.keys()
    assert all(np.array_equal(first[name], second[name]) for name in first)
    for x in values.values():
        assert any(np.array_equal(one, x) for one in first.values())


@pytest.mark.parametrize('mode, accepted', [
    ('gravity', True), ('pd_gravity', True), ('computed_torque', False),
    ('joint_impedance', False), ('cartesian_impedance', False), ('slotine_li', False),
    ('hybrid', False)])
def test_only_modes_without_inverse_dynamics_are_for_floating_bases(mode, accepted):
    model = load_urdf(ARM, floating_base=True)
    given = Circumstances(model, 'tool', neutral(model), False, 0.02)
    if accepted:
        assert make_controller(control_settings(mode=mode), given).model is model
        return
    with pytest.raises(BadParameter, match=f'mode {mode} is for robots that are fixed'):
        make_controller(control_settings(mode=mode), given)


def test_lists_have_one_number_or_one_for_each_joint():
    one, names = Setting((1.0,), 'Any.', per='names'), Setting((), 'Names.', entry=str)
    exact = replace(one, default=(), single=False)
    for settings, numbers, joints, good in (
            (one, (1.0,), (), True), (one, (1.0,), ('a', 'b'), True),
            (one, (1.0, 2.0), ('a', 'b'), True), (one, (1.0, 2.0), ('a',), False),
            (one, (), (), False), (one, (), ('a',), False),
            (replace(one, default=()), (), ('a',), True), (exact, (), ('a', 'b'), True),
            (exact, (1.0,), ('a', 'b'), False), (exact, (1.0, 2.0), ('a', 'b'), True)):
        lists, values = ({'list': settings, 'names': names}, {'list': numbers, 'names': joints})
        if good:
            assert check_values(lists, values) == values
            continue
        with pytest.raises(BadParameter, match=r'list has \d entries, names has \d'):
            check_values(lists, values)
