# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Control laws move a robot in MuJoCo: the shorter ones of the trials of `make trust-control`."""

from itertools import islice
from pathlib import Path
import runpy

import pytest

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

BENCHMARK = Path(__file__).parents[2] / 'benchmark'


@pytest.mark.long
@pytest.mark.parametrize('trial', ['gravity', 'computed_torque', 'hybrid', 'faults'])
def test_control_laws_meet_their_targets_in_mujoco(trial, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK))
    names = runpy.run_path(str(BENCHMARK / 'trust_control.py'))
    for robot in names['robots']():
        # Blocked joints take long.
        lines = list(islice(names[trial](robot), 2 if trial == 'faults' else None))
        assert lines
        assert [line.what for line in lines if line.missed] == []
