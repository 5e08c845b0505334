# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The example of a ROS client gets its answer from a node."""

import os
import pathlib
import subprocess
import sys

from harness import keep_sending
import numpy as np
import pinocchio
import pytest

ROOT = pathlib.Path(__file__).parents[3]
ARM = ROOT / 'urdf' / 'demo_arm.urdf'
Q = [0.0, 0.6, 0.0, 1.0, 0.0, 0.5, 0.0]
# s: the example imports ROS first, on a machine that others use
PATIENCE = 60.0
# N m: it prints three digits
PRINTED = 6e-4

pytestmark = pytest.mark.usefixtures('domain')


def test_the_client_prints_the_efforts_that_hold_the_robot(harness, monkeypatch):
    monkeypatch.setattr(sys.modules['harness'], 'PATIENCE', PATIENCE)
    node = harness(ARM.read_text(), state_timeout=60.0)
    path = os.pathsep.join([str(ROOT), os.environ.get('PYTHONPATH', '')])
    model = pinocchio.buildModelFromUrdf(str(ARM))
    names = list(model.names)[1:]
    with subprocess.Popen([sys.executable, str(ROOT / 'examples' / '10_ros_client.py')],
                          stdout=subprocess.PIPE, stderr=subprocess.STDOUT, text=True,
                          env={**os.environ, 'PYTHONPATH': path}) as process:
        try:
            keep_sending(node, (names, Q, [0.0] * 7), lambda: process.poll() is not None)
        finally:
            process.kill()
        output = process.stdout.read()
    assert process.returncode == 0, output
    found = {line.split()[0]: float(line.split()[1]) for line in output.splitlines()
             if line.endswith(' N m')}
    expected = pinocchio.computeGeneralizedGravity(model, model.createData(), np.array(Q))
    assert list(found) == names
    assert np.max(np.abs(np.array(list(found.values())) - expected)) < PRINTED
