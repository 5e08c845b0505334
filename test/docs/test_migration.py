# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The page about the step from 0.2: old lines fail, new lines run, and parameters are accepted."""

from pathlib import Path
import re

import numpy as np
import pytest
import rbd_ros
from rbd_ros.ros.nodes.torque_controller import TorqueController
from rbd_ros.ros.parameters.parameters import checked_value
import yaml

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'doc/migration.md').read_text(encoding='utf-8')
PYTHON, SHELL, NODES = (PAGE.partition(f'\n## {title}\n')[2].partition('\n## ')[0]
                        for title in ('Python', 'Shell', 'Nodes'))
LINES = re.findall(r'^\| `(.*?)` \| `(.*?)` \|$', PYTHON, re.MULTILINE)
KEPT = re.findall(r'^\| .* \| `(rbd_ros.*?)` \|$', PYTHON.partition('Results that')[2],
                  re.MULTILINE)
PARAMETERS = [one for row in re.findall(r'^\| [^|]* \| (`\w+: .*) \|$', NODES, re.MULTILINE)
              for one in re.findall('`(.*?)`', row)]


@pytest.fixture(scope='module')
def names():
    """Return what the lines of the page use."""
    arm = rbd_ros.load_urdf(ROOT / 'urdf/demo_arm.urdf')
    t = np.arange(0.0, 10.0, 0.01)
    phase = np.outer(t, np.linspace(1.0, 3.0, arm.nv))
    Q, V = 0.3 * np.sin(phase), 0.3 * np.linspace(1.0, 3.0, arm.nv) * np.cos(phase)
    A = -np.linspace(1.0, 3.0, arm.nv) ** 2 * Q
    Tau = rbd_ros.batch.inverse_dynamics(arm, Q, V, A)
    recording = rbd_ros.identification.Recording('run', arm.velocity_names, t, Q, V, Tau)
    return {'rbd_ros': rbd_ros, 'arm': arm, 'q': Q[0], 'v': V[0], 'a': A[0], 'Q': Q, 'V': V,
            'A': A, 'Tau': Tau, 'recording': recording, 'times': np.linspace(0.0, 0.01, 3),
            'torque': lambda t, q, v: -v}


@pytest.mark.parametrize('old, new', LINES)
def test_old_lines_of_the_migration_page_fail_and_new_ones_run(old, new, names):
    with pytest.raises((AttributeError, ImportError)):
        exec(old, dict(names))
    exec(new, dict(names))


@pytest.mark.parametrize('line', KEPT)
def test_lines_of_the_migration_page_that_keep_old_results_run(line, names):
    exec(line, dict(names))


def test_the_tables_of_lines_are_read():
    assert len(LINES) == 7 and len(KEPT) == 2 and len(PARAMETERS) == 10


@pytest.mark.parametrize('text', PARAMETERS)
def test_parameters_that_keep_old_behaviour_are_accepted(text):
    (name, value), = yaml.safe_load(text).items()
    setting = TorqueController.settings[name]
    checked_value(name, setting, value)


def test_new_extras_exist_and_old_ones_do_not():
    (old, new), = re.findall(r'^\| the extra `(\w+)` \| .*?\[(\w+)\]', SHELL,
                             re.MULTILINE)
    setup = (ROOT / 'setup.py').read_text(encoding='utf-8')
    assert f"'{new}': [" in setup and f"'{old}': [" not in setup
