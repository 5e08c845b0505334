# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The node takes a robot description that is MJCF."""

import numpy as np
import pytest
import rbd_ros

pytest.importorskip('mujoco')
pytestmark = pytest.mark.usefixtures('domain')
TEXT = """<mujoco model="swing"><compiler angle="radian"/><worldbody><body name="bob">
<joint name="hinge" axis="0 1 0" range="-2 2" stiffness="3"/>
<inertial pos="0.4 0 0" mass="2" diaginertia=".01 .01 .01"/></body></worldbody></mujoco>"""


def test_the_node_takes_mjcf(harness):
    node = harness(TEXT)
    got = node.answer(['hinge'], np.array([0.3]), np.array([0.5]))
    model = rbd_ros.load_mjcf(TEXT)
    assert list(got.joint_names) == ['hinge']
    assert np.allclose(got.gravity_torques, rbd_ros.gravity_torques(model, [0.3]), atol=1e-12)
    assert node.node.robot.model.stiffness[0] == 3.0


def test_mjcf_with_loops_is_refused_by_name(harness):
    node = harness(None)
    node.describe(TEXT.replace('</mujoco>', '<equality><connect name="loop" body1="bob" '
                               'anchor="1 0 0"/></equality></mujoco>'))
    node.settle()
    assert "equality 'loop'" in node.node.report.last_error and node.node.robot is None
