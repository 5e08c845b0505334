# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Control laws move a robot in MuJoCo: the shorter ones of the trials of `make trust-control`."""

from pathlib import Path
import runpy

import pytest

# There are no wheels of version 4 for Python 3.10.
pytest.importorskip('mujoco')

BENCHMARK = Path(__file__).parents[2] / 'benchmark'


@pytest.mark.parametrize('trial', ['gravity', 'computed_torque', 'hybrid'])
def test_what_is_asked_for_is_reached(trial, monkeypatch):
    monkeypatch.syspath_prepend(str(BENCHMARK))
    names = runpy.run_path(str(BENCHMARK / 'trust_control.py'))
    for robot in names['robots']():
        lines = list(names[trial](robot))
        assert lines
        assert [line.what for line in lines if line.missed] == []
