# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Tables of doc/how_to have the values that the library computes with, or finds."""

from dataclasses import replace
from pathlib import Path
import re

import numpy as np
import pytest
import rbd_ros
from rbd_ros.analysis import BODY_REGIONS, retime

RETIME, CONTACT = ((Path(__file__).parents[2] / f'doc/how_to/{name}.md').read_text(
    encoding='utf-8') for name in ('retime', 'contact_speed'))
ROWS = re.findall(r'^\| ([\d.]+) rad/s² \|(.*)\|$', RETIME, re.MULTILINE)
WAYPOINTS = [[0.9, 1.1, 0.0, 0.9, 0.0, 1.1, 0.0], [0.0, 0.5, 0.4, 1.2, 0.0, 1.4, 0.5],
             [-0.9, 1.1, 0.0, 0.9, 0.0, 1.1, 1.0]]


@pytest.mark.parametrize('limit, cells', ROWS)
def test_durations_and_efforts_are_those_on_the_page(limit, cells):
    assert len(ROWS) == 4
    arm = rbd_ros.with_payload(rbd_ros.load_urdf('urdf/demo_arm.urdf'), 'tool', 10.0)
    most = np.full(arm.nv, float(limit))
    free = replace(arm, effort_limit=np.full(arm.nv, np.inf))
    for robot, share, cell in zip((free, arm, arm), (1.0, 1.0, 0.9), cells.split('|')):
        found = retime(robot, WAYPOINTS, acceleration_limit=most, effort_share=share)
        time, used = re.findall(r'([\d.]+) s, \**(\d+) %', cell)[0]
        assert found.time[-1] == pytest.approx(float(time), abs=0.006)
        assert 100.0 * np.max(np.abs(found.effort) / arm.effort_limit) == pytest.approx(
            float(used), abs=0.6)


def test_the_table_of_body_regions_is_that_of_the_library():
    rows = [f'| {name} | {one.clamped_force:g} | {one.free_force:g} | {one.stiffness / 1e3:g} | '
            f'{one.mass:g} |' for name, one in BODY_REGIONS.items()]
    assert '\n'.join(rows) in CONTACT
