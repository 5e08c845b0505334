# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""What the demo chooses and prints."""

import sys

import pytest
import rbd_ros
from rbd_ros.ros.demo import chosen_engine, fixed
from rbd_ros.ros.share_directory import share


@pytest.fixture
def robot():
    """Return the demo arm as text and model."""
    text = share('urdf', 'demo_arm.urdf').read_text()
    return text, rbd_ros.load_urdf_string(text)


def test_the_demo_runs_in_mujoco_unless_told_otherwise(robot):
    pytest.importorskip('mujoco')
    for wanted in ('', 'mujoco'):
        node, line = chosen_engine(wanted, *robot)
        assert node == 'mujoco_robot' and 'MuJoCo' in line and '\n' not in line
    node, line = chosen_engine('own', *robot)
    assert node == 'simulated_robot' and 'MuJoCo' not in line


def test_without_mujoco_it_says_which_extra_to_install(robot, monkeypatch):
    monkeypatch.setitem(sys.modules, 'mujoco', None)
    node, line = chosen_engine('', *robot)
    assert node == 'simulated_robot' and 'rbd_ros[sim]' in line
    with pytest.raises(rbd_ros.ModelError, match=r'rbd_ros\[sim\]'):
        chosen_engine('mujoco', *robot)


@pytest.mark.parametrize('value, form, text', [
    (-0.001, '.2f', '+0.00'), (-0.0, '.2e', '+0.00e+00'), (-0.006, '.2f', '-0.01'),
    (1.5, '.4f', '+1.5000'), (-2.5e-4, '.2e', '-2.50e-04')])
def test_no_number_is_minus_zero(value, form, text):
    assert fixed(value, form) == text
