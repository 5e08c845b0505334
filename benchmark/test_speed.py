# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time every function for pytest-benchmark, which stores and compares runs.

`pytest benchmark/test_speed.py --benchmark-autosave`, then `--benchmark-compare`. Outputs are
checked against Pinocchio; times are not checked.

"""

from library import disagreement
import pytest
from robots import robots
import with_pinocchio
import with_rbd_ros

ROBOTS = {robot.label: robot for robot in robots()}
FUNCTIONS = list(with_rbd_ros.functions(ROBOTS['UR5']))


@pytest.mark.parametrize('function', FUNCTIONS)
@pytest.mark.parametrize('label', ROBOTS)
def test_speed(benchmark, label, function):
    robot = ROBOTS[label]
    call, outputs = with_rbd_ros.functions(robot)[function]
    benchmark.group = label
    benchmark(call)
    compared = {'rbd_ros': outputs}
    if function in (theirs := with_pinocchio.functions(robot)):
        compared['Pinocchio'] = theirs[function][1]
    disagreement(compared)
