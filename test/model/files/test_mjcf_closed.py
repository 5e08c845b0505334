# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Loops of MJCF: what they leave open, their closure and their dynamics are MuJoCo's."""

import re

from loop_robots import URDF
from lxml import etree
import numpy as np
import pytest
import rbd_ros
from rbd_ros.model.files.equalities import read_loop
from rbd_ros.model.files.mjcf import compile_mjcf, load_mjcf
from robots import relative_error

mujoco = pytest.importorskip('mujoco')
oracle = pytest.importorskip('mjcf_oracle')
pytestmark = pytest.mark.filterwarnings('ignore::rbd_ros.ModelWarning')

# m and rad, of loops of about 1 m that Newton's method has closed.
CLOSED = 1e-12
# Accelerations by dense equations with MuJoCo's terms; dJ/dt is found by central differences.
DENSE = 1e-7
# MuJoCo's stiffest equality has the impedance 0.9999: 1e-4 of the constraint forces is missing.
STIFF = 1e-3
HARD = 'solref="1e-3 1" solimp="0.9999 0.9999 0.001"'

# The four-bar in urdf/; its hinge is one connect, or two on its axis.
FOUR_BAR = """<mujoco model="four_bar"><compiler angle="radian"/><worldbody>
<body name="crank_link"><joint name="crank" axis="0 -1 0"/>
 <inertial mass="0.3" pos="0 0 0.1" diaginertia="0.00101 0.0010225 3.25e-5"/>
 <body name="coupler_link" pos="0 0 0.2"><joint name="coupler" axis="0 -1 0"/>
  <inertial mass="0.75" pos="0.25 0 0" diaginertia="8.125e-5 0.0156813 0.01565"/></body></body>
<body name="rocker_link" pos="0.5 0 -0.2"><joint name="rocker" axis="0 -1 0"/>
 <inertial mass="0.6" pos="0 0 0.2" diaginertia="0.00802 0.008045 6.5e-5"/></body>
</worldbody><equality>{}</equality><actuator><motor joint="crank"/></actuator></mujoco>"""
PIN = f'<connect name="pin" body1="coupler_link" body2="rocker_link" anchor="0.5 0 0" {HARD}/>'
SECOND = PIN.replace('"pin"', '"second"').replace('0.5 0 0"', '0.5 0.1 0"')


def limb(name, joint, pos, quat, mass, inside=''):
    """Return a body of a leg."""
    return (f'<body name="{name}" pos="{pos}" quat="{quat}">{joint}<inertial mass="{mass}" '
            f'pos=".1 .01 -.02" diaginertia=".02 .03 .025"/>{inside}</body>')


# A leg as Cassie's: springs in shin and heel, a rod with a ball joint between thigh and heel, and
# a crank that turns the foot by another rod.
LEG = """<mujoco model="leg"><compiler angle="radian"/><worldbody><body name="pelvis"><freejoint
 name="base"/><inertial mass="10" pos=".05 0 .03" diaginertia=".08 .07 .06"/>""" + limb(
    'thigh', '<joint name="yaw" axis="1 0 0"/><joint name="hip" axis="0 0 1"/>', '0 .1 0',
    '.7 .1 .7 .1', 3, limb(
        'knee', '<joint name="knee" axis="0 0 1" ref="-.3"/>', '.12 0 .05', '.9 0 0 -.4', 1, limb(
            'shin', '<joint name="shin" axis="0 0 1" stiffness="1500" springref=".02"/>',
            '.06 .05 0', '.9 0 0 .3', .6, limb(
                'tarsus', '<joint name="tarsus" axis="0 0 1"/>', '.43 0 0', '.8 0 0 .6', .8,
                limb('heel', '<joint name="heel" axis="0 0 1" stiffness="1250"/>',
                     '-.01 -.03 0', '.6 0 0 -.8', .15)
                + limb('crank', '<joint name="crank" axis="0 0 1"/>', '.06 -.04 0',
                       '.95 0 0 .3', .1, limb('plantar', '<joint name="plantar" axis="0 0 1"/>',
                                              '.05 0 -.01', '.7 0 0 .7', .15))
                + limb('foot', '<joint name="foot" axis="0 0 1"/>', '.4 -.03 0', '.5 0 0 -.8',
                       .15))))
    + limb('rod', '<joint name="rod" type="ball"/>', '0 .02 .04', '.9 .05 .1 .3', .16)
) + f"""</body></worldbody><equality><connect name="achilles" body1="rod" body2="heel"
 anchor=".5 0 0" {HARD}/><connect name="plantar" body1="plantar" body2="foot"
 anchor=".35 0 0" {HARD}/></equality></mujoco>"""
LOOPS = {'four-bar': (FOUR_BAR.format(PIN), 1), 'two points': (FOUR_BAR.format(PIN + SECOND), 1),
         'leg': (LEG, 18 - 3 - 2)}


def closed_state(model, seed):
    """Return a closed configuration away from the neutral one, and velocities."""
    rng = np.random.default_rng(seed)
    q = rbd_ros.integrate(model, rbd_ros.neutral(model), 0.1 * rng.normal(size=model.nv), 1.0)
    return q, rng.normal(size=model.nv)


def at_rest(compiled, model, q):
    """Return MuJoCo's data at rest in a configuration, and T, see `mjcf_oracle.in_mujoco`."""
    data, tree = mujoco.MjData(compiled), model.unconstrained
    data.qpos[:], T, _ = oracle.in_mujoco(compiled, tree, q, np.zeros(tree.nv))
    mujoco.mj_forward(compiled, data)
    return data, T


def equations(compiled, data):
    """Return the Jacobian of the equalities, which come first."""
    return data.efc_J.reshape(-1, compiled.nv)[:data.ne].copy()


@pytest.mark.parametrize('name', LOOPS)
def test_closed_configurations_match_mujoco(name):
    text, nv = LOOPS[name]
    compiled, model = compile_mjcf(text), load_mjcf(text)
    assert model.nv == nv
    assert [one.kind for one in model.constraints] == ['point'] * compiled.neq
    guess = 0.02 * np.random.default_rng(5).normal(size=model.nq)
    for q in (rbd_ros.neutral(model), closed_state(model, 1)[0],
              rbd_ros.model.normalize(model, rbd_ros.neutral(model) + guess)):
        data, _ = at_rest(compiled, model, q)
        assert data.ne == 3 * compiled.neq
        assert np.max(np.abs(data.efc_pos[:data.ne])) < CLOSED


@pytest.mark.parametrize('name', LOOPS)
def test_accelerations_are_those_of_dense_equations_with_mujocos_terms(name):
    text, _ = LOOPS[name]
    compiled, model = compile_mjcf(text), load_mjcf(text)
    tree, (q, v) = model.unconstrained, closed_state(model, 0)
    own = [tree.velocity_names.index(one) for one in model.velocity_names]
    tau = np.random.default_rng(9).normal(size=model.nv)
    data, T = at_rest(compiled, model, q)
    # The velocities of all joints that fulfil the equations, with those of the independent ones.
    J = equations(compiled, data)
    V = np.linalg.lstsq(np.vstack([J @ T, np.eye(tree.nv)[own]]),
                        np.append(np.zeros(len(J)), v), rcond=1e-10)[0]
    _, T, rate = oracle.in_mujoco(compiled, tree, q, V)
    data.qvel[:], h, J_at = T @ V, 1e-5, []
    mujoco.mj_forward(compiled, data)
    M, bias, qpos = np.zeros((compiled.nv, compiled.nv)), data.qfrc_bias.copy(), data.qpos.copy()
    mujoco.mj_fullM(compiled, data, M)
    for sign in (-1.0, 1.0):
        data.qpos[:] = qpos
        mujoco.mj_integratePos(compiled, data.qpos, T @ V, sign * h)
        mujoco.mj_forward(compiled, data)
        J_at.append(equations(compiled, data))
    J_rate = (J_at[1] - J_at[0]) / (2.0 * h)
    applied = np.zeros(tree.nv)
    applied[own] = tau
    system = np.block([[M, J.T], [J, np.zeros((len(J), len(J)))]])
    found = np.linalg.lstsq(system, np.concatenate(
        [np.linalg.solve(T.T, applied) - bias, -J_rate @ T @ V]), rcond=1e-12)[0]
    A = np.linalg.solve(T, found[:compiled.nv] - rate @ V)
    assert relative_error(rbd_ros.forward_dynamics(model, q, v, tau), A[own]) < DENSE


@pytest.mark.parametrize('name', LOOPS)
def test_accelerations_at_rest_are_mujocos_with_stiff_equalities_and_springs(name):
    text, _ = LOOPS[name]
    compiled, model = compile_mjcf(text), load_mjcf(text)
    compiled.opt.tolerance, compiled.opt.iterations = 0.0, 200
    tree, q = model.unconstrained, closed_state(model, 3)[0]
    own = [tree.velocity_names.index(one) for one in model.velocity_names]
    tau = np.random.default_rng(4).normal(size=model.nv)
    data, T = at_rest(compiled, model, q)
    applied = np.zeros(tree.nv)
    applied[own] = tau
    data.qfrc_applied[:] = np.linalg.solve(T.T, applied)
    mujoco.mj_forward(compiled, data)
    A = np.linalg.solve(T, data.qacc)
    a = rbd_ros.forward_dynamics(model, q, np.zeros(model.nv),
                                 tau - rbd_ros.spring_torques(model, q))
    assert relative_error(a, A[own]) < STIFF


def test_the_four_bar_is_that_of_the_urdf():
    with_points = load_mjcf(FOUR_BAR.format(PIN + SECOND))
    urdf = rbd_ros.load_urdf(URDF / 'four_bar.urdf')
    assert with_points.velocity_names == urdf.velocity_names == ('crank',)
    q, v = closed_state(urdf, 0)
    assert with_points.position_names == urdf.position_names
    assert relative_error(rbd_ros.inverse_dynamics(with_points, q, v, v),
                          rbd_ros.inverse_dynamics(urdf, q, v, v)) < 1e-6     # digits of its file


def test_a_welded_part_closes_the_loop_and_keyframes_have_all_joints():
    # The coupler is cut in two, and welded again.
    text = FOUR_BAR.format('<weld name="cut" body1="half" body2="rocker_link"/>').replace(
        '</worldbody>', '</worldbody><keyframe><key name="home" qpos="0 0 0 0"/></keyframe>')
    text = text.replace(
        'diaginertia="8.125e-5 0.0156813 0.01565"/>', 'diaginertia="8.125e-5 0.0156813 0.01565"/>'
        '<body name="half" pos="0.5 0 0"><joint name="pin" axis="0 -1 0"/>'
        '<inertial mass="1e-9" pos="0 0 0" diaginertia="1e-9 1e-9 1e-9"/></body>')
    model, one = load_mjcf(text), load_mjcf(FOUR_BAR.format(PIN))
    assert (model.nq, model.nv, model.constraints[0].kind) == (4, 1, 'weld')
    assert model.configurations['home'].shape == (4,)
    q, v = closed_state(one, 2)
    names = one.position_names
    full = rbd_ros.model.normalize(model, [
        q[names.index(name)] if name in names else 0.0 for name in model.position_names])
    # 1e-9 kg are added.
    assert relative_error(rbd_ros.inverse_dynamics(model, full, v, v),
                          rbd_ros.inverse_dynamics(one, q, v, v)) < 1e-6


def test_open_keyframes_are_closed_and_reported():
    keys = '<keyframe><key name="open" qpos="0.3 0.01 0"/><key name="closed" qpos="{}"/>'
    one = load_mjcf(FOUR_BAR.format(PIN + SECOND))
    q, _ = closed_state(one, 0)
    text = FOUR_BAR.format(PIN + SECOND).replace('</worldbody>', '</worldbody>' + keys.format(
        ' '.join(map(repr, q.tolist()))) + '</keyframe>')
    with pytest.warns(rbd_ros.ModelWarning) as caught:
        model = load_mjcf(text)
    note, = [str(one.message) for one in caught if 'keyframe' in str(one.message)]
    compiled = compile_mjcf(text)
    gap = 1e3 * np.linalg.norm(first_gap(compiled, [0.3, 0.01, 0.0]))
    assert re.match(rf"keyframe 'open': constraint '(pin|second)' is open by {gap:.3g} mm; ", note)
    assert note in model.warnings
    found = model.configurations
    assert np.max(np.abs(found['closed'] - q)) < 1e-14
    assert found['open'][0] == 0.3
    assert np.max(np.abs(first_gap(compiled, found['open']))) < CLOSED
    # The rocker does not get there.
    text = FOUR_BAR.format(PIN + SECOND).replace('motor joint="crank"', 'motor joint="rocker"')
    text = text.replace('</worldbody>', '</worldbody><keyframe><key name="far" qpos="0 0 -1.5"/>'
                        '</keyframe>')
    with pytest.warns(rbd_ros.ModelWarning, match=r"keyframe 'far': .* mm.*and cannot be closed"):
        far = load_mjcf(text)
    assert far.configurations['far'].tolist() == [0.0, 0.0, -1.5]


def first_gap(compiled, q):
    """Return the gap of the first equality, m, as MuJoCo finds it."""
    data = mujoco.MjData(compiled)
    data.qpos[:] = q
    mujoco.mj_forward(compiled, data)
    return data.efc_pos[:3].copy()


def test_the_urdf_of_a_robot_without_limits_of_velocity_is_valid(tmp_path):
    model = load_mjcf(FOUR_BAR.format(PIN))
    with pytest.warns(rbd_ros.ModelWarning, match='joints without limits, .*continuous ones'):
        rbd_ros.save_urdf(model, tmp_path / 'robot.urdf')
    root = etree.parse(tmp_path / 'robot.urdf').getroot()
    limits = [*root.iter('limit')]
    # URDF 1.2 was the first in which they may be missing.
    assert limits and not any(one.get('velocity') for one in limits)
    assert root.get('version') == '1.2'
    again = rbd_ros.load_urdf(tmp_path / 'robot.urdf')
    assert again.velocity_names == model.velocity_names
    assert not [note for note in again.warnings if '<limit>' in note]
    assert np.array_equal(again.unconstrained.velocity_limit, [np.inf] * 3)


ONE_MOTOR = {   # The motor's elements, and the limits of crank, coupler and rocker.
    'no limit': ('<motor joint="crank"/>', [np.inf, 0.0, 0.0]),
    'a limit': ('<motor joint="crank" ctrlrange="-2 3"/>', [3.0, 0.0, 0.0]),
    'two motors': ('<motor joint="crank" forcerange="-2 2"/><motor joint="rocker"/>',
                   [2.0, 0.0, np.inf]),
    'no motors': ('', [np.inf, np.inf, np.inf])}


@pytest.mark.parametrize('name', ONE_MOTOR)
def test_joints_without_an_actuator_have_a_real_limit_of_0(name):
    motors, limits = ONE_MOTOR[name]
    text = FOUR_BAR.format(PIN).replace('<motor joint="crank"/>', motors)
    model = load_mjcf(text)
    assert model.unconstrained.effort_limit.tolist() == limits
    assert model.effort_limit[0] == limits[model.position_names.index(model.velocity_names[0])] > 0
    assert not model.warnings
    for k, joint in enumerate(model.position_names):
        other = rbd_ros.model.with_constraints(model, model.constraints, [joint])
        assert other.effort_limit.tolist() == [limits[k]]
        assert other.warnings == (() if limits[k] else (
            f'joint {joint}: no motor drives it; with limit_efforts nothing is commanded there',))
        # Also with another payload.
        heavy = rbd_ros.with_payload(other, 'rocker_link', 1.0)
        assert heavy.effort_limit.tolist() == [limits[k]] and heavy.warnings == other.warnings


# -- Links and places. ----------------------------------------------------------------------------
BODIES = """<site name="s0" pos=".1 .2 .3" quat=".5 .1 .2 .4"/>
<body name="a" pos="0 0 .3" quat=".8 .1 .2 .3"><joint name="ja" axis="1 2 -1" pos=".1 0 .1"
  ref=".2"/><geom size=".1"/><site name="s1" pos=".3 -.1 .2" quat=".2 .6 -.3 .1"/>
 <body name="b" pos=".2 .1 .4" quat=".3 .1 .7 .2"><joint name="jb" type="ball"/><geom size=".1"/>
  <joint name="jc" type="slide" axis="0 1 1"/></body></body>
<body name="c" pos="1 0 .2"><freejoint name="jd"/><geom size=".1"/>
 <site name="s2" pos="-.1 .1 .3" quat=".1 -.6 .3 .5"/></body>"""
EQUALITIES = {
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


@pytest.mark.parametrize('name', EQUALITIES)
def test_gaps_of_loops_equal_those_of_mujoco(name):
    equality, link_a, link_b = EQUALITIES[name]
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
        assert np.allclose(A[:3, 3] - B[:3, 3], data.efc_pos[:3], rtol=0, atol=CLOSED)
        if loop.kind == 'weld':
            # MuJoCo's sign is that of the quaternions, which may be either.
            error, turn = data.efc_pos[3:6], vector_part(B[:3, :3].T @ A[:3, :3])
            assert min(np.max(np.abs(error - turn)), np.max(np.abs(error + turn))) < CLOSED


def test_other_equalities_are_no_loops():
    text = (f'<mujoco><worldbody>{BODIES}</worldbody><equality><joint joint1="ja" joint2="jc"/>'
            '</equality></mujoco>')
    assert read_loop(compile_mjcf(text), 0, ['world', 'a', 'b', 'c'], 'x') is None


# -- Bad input. -----------------------------------------------------------------------------------
@pytest.mark.parametrize('equality, message', [
    (PIN + '<weld name="bond" body1="coupler_link" body2="rocker_link"/>',
     r"no degree of freedom: remove one of pin, bond; ignore=\['equality'\] leaves out all loops"),
    ('<weld name="grip" body1="hand" body2="coupler_link"/>',
     r"equality 'grip', which follows the mocap body 'hand', .*ignore=\['equality'\]"),
    ('<weld name="grip" body1="finger" body2="coupler_link"/>',
     r"equality 'grip', which follows the mocap body 'finger', .*ignore=\['equality'\]"),
    ('<connect name="grip" body1="rocker_link" body2="finger" anchor="0 0 0"/>',
     r"equality 'grip', which follows the mocap body 'finger', .*ignore=\['equality'\]"),
    ('<connect name="pin" site1="tip" site2="far"/>',
     "'four_bar' cannot be closed: constraint 'pin' is open by .* mm"),
    ('<connect name="pin" body1="hand" body2="hand2" anchor="0 0 0"/>',
     "constraint 'pin' joins links that are fixed to each other, 'hand' and 'hand2'"),
])
def test_impossible_loops_are_refused_by_name(equality, message, monkeypatch):
    monkeypatch.setattr('rbd_ros.model.constraints.TRIES', 10)
    text = FOUR_BAR.format(equality).replace(
        '</worldbody>', '<body name="hand" mocap="true"><body name="finger" pos="0 0 .1"/></body>'
        '<body name="hand2"/>'
        '<site name="far" pos="9 0 0"/></worldbody>').replace(
            '<inertial mass="0.6"', '<site name="tip"/><inertial mass="0.6"')
    if 'hand2' in equality:
        text = text.replace(' mocap="true"', '')
    with pytest.raises(rbd_ros.ModelError, match=message):
        load_mjcf(text)
    model = load_mjcf(text, ignore=['equality'])
    assert model.nv == 3 and not model.constraints
    assert any("equality '" in note and note.endswith('is ignored') for note in model.warnings)
