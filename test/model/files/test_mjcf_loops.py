# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Loops of MJCF: the links that they join and the places there, by what MuJoCo leaves open."""

import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.files.equalities import read_loop
from rbd_ros.model.files.mjcf import compile_mjcf, load_mjcf

mujoco = pytest.importorskip('mujoco')
oracle = pytest.importorskip('mjcf_oracle')

# m, of sums of a dozen numbers of order 1.
ROUNDING = 1e-12
pytestmark = pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')
BODIES = """<site name="s0" pos=".1 .2 .3" quat=".5 .1 .2 .4"/>
<body name="a" pos="0 0 .3" quat=".8 .1 .2 .3"><joint name="ja" axis="1 2 -1" pos=".1 0 .1"
  ref=".2"/><geom size=".1"/><site name="s1" pos=".3 -.1 .2" quat=".2 .6 -.3 .1"/>
 <body name="b" pos=".2 .1 .4" quat=".3 .1 .7 .2"><joint name="jb" type="ball"/><geom size=".1"/>
  <joint name="jc" type="slide" axis="0 1 1"/></body></body>
<body name="c" pos="1 0 .2"><freejoint name="jd"/><geom size=".1"/>
 <site name="s2" pos="-.1 .1 .3" quat=".1 -.6 .3 .5"/></body>"""
LOOPS = {
    'connect': ('<connect body1="b" body2="c" anchor=".1 .2 .3"/>', 'b', 'c'),
    'connect to the world': ('<connect body1="b" anchor=".1 .2 .3"/>', 'b', 'world'),
    'connect of sites': ('<connect site1="s1" site2="s2"/>', 'a', 'c'),
    'connect to a site of the world': ('<connect site1="s0" site2="s2"/>', 'world', 'c'),
    'weld': ('<weld body1="a" body2="c"/>', 'a', 'c'),
    'weld to the world': ('<weld body1="c"/>', 'c', 'world'),
    'weld at an anchor': ('<weld body1="b" body2="c" anchor=".1 -.2 .3"/>', 'b', 'c'),
    'weld at a pose': ('<weld body1="b" body2="c" anchor=".1 -.2 .3" '
                       'relpose=".3 .2 .1 .5 .1 -.2 .3"/>', 'b', 'c'),
    'weld of sites': ('<weld site1="s1" site2="s2"/>', 'a', 'c')}


def vector_part(R):
    """Return the vector part of the quaternion of a rotation by less than a half turn."""
    w = 0.5 * np.sqrt(1.0 + np.trace(R))
    return np.array([R[2, 1] - R[1, 2], R[0, 2] - R[2, 0], R[1, 0] - R[0, 1]]) / (4.0 * w)


@pytest.mark.parametrize('name', LOOPS)
def test_loops_leave_open_what_mujoco_measures(name):
    equality, link_a, link_b = LOOPS[name]
    text = (f'<mujoco><compiler angle="radian"/><worldbody>{BODIES}</worldbody><equality>'
            f'{equality}</equality></mujoco>')
    compiled = compile_mjcf(text)
    bodies = [compiled.body(k).name for k in range(compiled.nbody)]
    loop = read_loop(compiled, 0, bodies, 'loop')
    assert (loop.name, loop.link_a, loop.link_b) == ('loop', link_a, link_b)
    assert loop.kind == ('point' if 'connect' in name else 'weld')
    model = load_mjcf(text, ignore=['equality'])
    data, links = mujoco.MjData(compiled), model.link_names
    for seed in range(3):
        q, v = oracle.random_state(model, seed)
        data.qpos[:] = oracle.in_mujoco(compiled, model, q, v)[0]
        mujoco.mj_forward(compiled, data)
        poses = rbd_ros.forward_kinematics(model, q)
        A, B = (poses[links.index(link)] @ placement for link, placement in (
            (loop.link_a, loop.placement_a), (loop.link_b, loop.placement_b)))
        assert np.allclose(A[:3, 3] - B[:3, 3], data.efc_pos[:3], rtol=0, atol=ROUNDING)
        if loop.kind == 'weld':
            # MuJoCo's sign is that of the quaternions, which may be either.
            error, turn = data.efc_pos[3:6], vector_part(B[:3, :3].T @ A[:3, :3])
            assert min(np.max(np.abs(error - turn)), np.max(np.abs(error + turn))) < ROUNDING


def test_other_equalities_are_no_loops():
    text = (f'<mujoco><worldbody>{BODIES}</worldbody><equality><joint joint1="ja" joint2="jc"/>'
            '</equality></mujoco>')
    assert read_loop(compile_mjcf(text), 0, ['world', 'a', 'b', 'c'], 'x') is None
