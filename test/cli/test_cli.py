# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""The command ``rbd_ros``."""

import pytest
from rbd_ros.cli.main import main
from rbd_ros.kernel_cache import cache_directory
from robots import all_example_urdfs, example_urdf


def test_check_prints_order_tree_masses_and_warnings(capsys):
    assert main(['check', str(example_urdf('panda.urdf'))]) == 0
    text = capsys.readouterr().out
    assert 'panda: 13 links, 12 joints, 8 degrees of freedom, 17.4519 kg' in text
    assert text.index('0  panda_joint1 ') < text.index('7  panda_finger_joint1 ')
    assert 'panda_finger_joint2 [prismatic = 1 panda_finger_joint1 +0]' in text
    assert 'No warnings.' in text
    assert main(['check', '--floating-base', str(example_urdf('anymal-kinova.urdf'))]) == 0
    text = capsys.readouterr().out
    assert 'base_wx' in text
    assert 'Positions: base_qx' in text
    assert 'no body has' in text


def test_check_exits_with_1_on_refusal(capsys, tmp_path):
    assert main(['check', '--strict', str(example_urdf('alex_psyonic_hands.urdf'))]) == 1
    assert 'refused: ' in capsys.readouterr().err
    assert main(['check', str(tmp_path / 'none.urdf')]) == 1
    assert 'cannot be read' in capsys.readouterr().err
    with pytest.raises(SystemExit):
        main(['look'])


def test_check_prints_every_robot_of_example_robot_data(capsys):
    for path in all_example_urdfs():
        assert main(['check', str(path)]) == 0
    assert 'nan' not in capsys.readouterr().out


def test_warmup_compiles_all_kernels_and_says_where_they_are(capsys):
    assert main(['warmup']) == 0
    *lines, last = capsys.readouterr().out.splitlines()
    assert str(cache_directory()) in last
    named = {line.split()[2].rstrip(',') for line in lines}
    assert {'all_terms', 'inverse_dynamics', 'forward_dynamics_derivatives',
            'place_links'} <= named
    assert sum('free joints' in line for line in lines) == len(lines) / 2
