# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Strict readers refuse exactly the descriptions that others warn of, with the same sentences."""

from functools import partial
import warnings

from command_line import code_of
import numpy as np
import pytest
from rbd_ros import (
    load_urdf, load_urdf_string, ModelBuilder, ModelError, ModelWarning, save_urdf, UrdfError,
    with_gravity)
from rbd_ros.model import build_model, inertial_parameters, with_inertial_parameters
from rbd_ros.model.description import Link
from rbd_ros.model.files.mjcf import load_mjcf
from rbd_ros.model.joints import Joint, Mimic
from urdf_texts import DOUBTFUL, two_joint_arm


def refused_warnings(read, error=ModelError):
    """Return what a reader warns of; if it is strict, it refuses the first."""
    with pytest.warns(ModelWarning) as caught:
        model = read()
    said = [str(one.message) for one in caught]
    assert said == list(model.warnings)
    with pytest.raises(error) as refused:
        read(strict=True)
    assert str(refused.value) == said[0]
    return said


@pytest.mark.parametrize('name', DOUBTFUL)
def test_doubtful_robots_have_only_the_expected_warnings_and_are_refused_if_strict(name):
    text, expected = DOUBTFUL[name]
    said = refused_warnings(partial(load_urdf_string, text), UrdfError)
    assert len(said) == len(expected)
    assert all(a.startswith(b) for a, b in zip(said, expected)), said


def test_a_robot_without_warnings_is_read_if_strict(recwarn):
    assert load_urdf_string(two_joint_arm(), strict=True).nv == 2
    # What does not move needs no inertia.
    assert load_urdf_string(two_joint_arm().replace(
        '<link name="base"/>', '<link name="base"><inertial><mass value="3"/></inertial></link>'),
        strict=True).mass == 1.2 + 0.6 + 3.0
    assert not recwarn.list


@pytest.mark.parametrize('name', ['no inertials', 'a joint moves no mass', 'unknown element'])
def test_check_prints_every_warning_and_refuses_them_if_strict(name, tmp_path, capsys):
    text, expected = DOUBTFUL[name]
    path = tmp_path / 'robot.urdf'
    path.write_text(text)
    # What has no mass is refused after the report.
    assert code_of('check', str(path)) == (1 if name == 'no inertials' else 0)
    printed = capsys.readouterr().out
    assert f'\nWarnings ({len(expected)}):\n' in printed
    assert all(f'\n  {one}' in printed for one in expected)
    assert code_of('check', '--strict', str(path)) == 1
    assert expected[0] in capsys.readouterr().err


BALL = '<mujoco><worldbody><body name="a"><joint name="j"/><geom size=".1"/>{}</body></worldbody>'
MJCF = {
    'gravcomp': (BALL.format('').replace('<body ', '<body gravcomp="1" '), ()),
    'a ball': (BALL.format('<body><joint name="b" type="ball" range="0 1" limited="true"/>'
                           '<geom size=".1"/></body>'), ()),
    'what is ignored': (BALL.format('') + '<option density="2"/>', ['fluid']),
    'no moving joint': ('<mujoco><worldbody><body><geom size=".1"/></body></worldbody>', ())}


@pytest.mark.parametrize('name', MJCF)
def test_strict_readers_of_mjcf_turn_warnings_into_errors(name):
    pytest.importorskip('mujoco')
    text, ignore = MJCF[name]
    assert len(refused_warnings(partial(load_mjcf, f'{text}</mujoco>', ignore=ignore))) == 1


LINKS = [Link('a'), Link('b', 1.0, inertia=0.01 * np.eye(3))]
JOINTS = {
    'reversed limits': {'lower': (1.0,), 'upper': (-1.0,)},
    'a negative limit': {'effort': (-1.0,)},
    'a limit of 0': {'velocity': (0.0,)}, 'a mimic of nothing': {'mimic': Mimic('gone')}}


@pytest.mark.parametrize('name', JOINTS)
def test_strict_build_model_turns_warnings_into_errors(name):
    joint = Joint('j', 'revolute', 'a', 'b', **JOINTS[name])
    assert len(refused_warnings(partial(build_model, 'r', LINKS, [joint]))) == 1


def test_a_strict_model_builder_turns_warnings_into_errors():
    builder = ModelBuilder('r').link('a').link('b', mass=1.0)
    refused_warnings(builder.joint('j', 'revolute', 'a', 'b', lower=1.0, upper=-1.0).build)


@pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
@pytest.mark.parametrize('name', DOUBTFUL)
def test_doubtful_robots_are_saved_with_their_source_as_they_were_read(name, tmp_path):
    text = DOUBTFUL[name][0]
    model = load_urdf_string(text)
    for robot in (model, with_gravity(model, (0.0, 0.0, -1.0)),
                  with_inertial_parameters(model, 1.5 * inertial_parameters(model))):
        save_urdf(robot, tmp_path / 'robot.urdf', source=text)
        again = load_urdf(tmp_path / 'robot.urdf')
        assert again.joints == robot.joints
        for one, other in zip(again.links, robot.links):
            for label in ('mass', 'com', 'inertia'):
                assert np.allclose(getattr(one, label), getattr(other, label), atol=1e-15)


# -- The numbers of doubtful robots. --------------------------------------------------------------

@pytest.mark.parametrize('label', ['velocity', 'effort', 'acceleration', 'deceleration', 'jerk'])
@pytest.mark.parametrize('value', [0.0, 3.0])
def test_limits_of_0_are_infinite_with_a_warning(label, value):
    limits = {'effort': 20.0, 'velocity': 3.0, label: value}
    text = two_joint_arm(version=' version="1.2"', limit='lower="-2" upper="2" ' + ' '.join(
        f'{name}="{x}"' for name, x in limits.items()))
    with warnings.catch_warnings(record=True) as caught:
        warnings.simplefilter('always')
        model = load_urdf_string(text)
    assert getattr(model, f'{label}_limit')[0] == (value or np.inf)
    # Braking is as strong as accelerating unless it has a limit of its own.
    labels = [label, 'deceleration'] if label == 'acceleration' else [label]
    said = [str(one.message) for one in caught]
    assert len(said) == (0 if value else len(labels))
    assert all(a.startswith(f'joint shoulder: {b} limit 0: taken as not stated')
               for a, b in zip(said, labels))


@pytest.mark.parametrize('name', ['two inertias', 'two masses', 'two axes', 'two limits',
                                  'two parents'])
def test_fault_86_of_elements_given_twice_the_first_is_used_as_elsewhere(name, capfd):
    from urdf_parser_py import urdf as parser
    with pytest.warns(ModelWarning):
        model = load_urdf_string(DOUBTFUL[name][0])
    plain, other = (load_urdf(one) for one in (
        parser.URDF.from_xml_string(two_joint_arm()),
        parser.URDF.from_xml_string(DOUBTFUL[name][0])))
    assert model.links == plain.links == other.links
    assert model.joints == plain.joints == other.joints
    assert 'multiple' in capfd.readouterr().err
