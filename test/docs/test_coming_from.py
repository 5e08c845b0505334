# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Each row of the tables of doc/coming_from.md is true of the other program.

PyKDL is not on PyPI, and Robotics Toolbox pulls in a dozen packages for eight rows: these two run
where they are installed, by `pytest test/docs/test_coming_from.py`.

"""

import ast
from pathlib import Path
import re

import numpy as np
import pinocchio as pin
import pytest
import rbd_ros
from robots import fan

ROOT = Path(__file__).parents[2]
PAGE = (ROOT / 'doc' / 'coming_from.md').read_text(encoding='utf-8')
SECTIONS = dict(re.findall(r'^## (.*?)\n(.*?)(?=^## |\Z)', PAGE, re.MULTILINE | re.DOTALL))
# Sums of a dozen products; forward dynamics and its derivatives divide by inertias of 1e-3 kg m^2.
ROUNDING = 1e-9
ARM = ROOT / 'urdf' / 'demo_arm.urdf'


def rows(program):
    """Return the code of both columns of a program's table."""
    found = re.findall(r'^\| `(.*?)` \| `(.*?)` \|', SECTIONS[program], re.MULTILINE)
    assert len(found) == SECTIONS[program].count('\n| ') - 1      # all but the heading
    return found


def setting(program, **names):
    """Return the names that the code of a section defines, for a random state."""
    q, v, a, tau = np.random.default_rng(7).uniform(-1.0, 1.0, (4, 7))
    names |= {'q': q, 'v': v, 'a': a, 'tau': tau,
              'push': np.random.default_rng(8).normal(size=6)}
    code, = re.findall(r'^```py\n(.*?)^```', SECTIONS[program], re.MULTILINE | re.DOTALL)
    exec(code, names)
    return names


def check(theirs, ours):
    """Assert that numbers, arrays, names or sequences of arrays are equal."""
    if isinstance(ours, (tuple, list)):
        assert len(theirs) == len(ours) > 0
        for one, other in zip(theirs, ours):
            check(one, other)
    elif isinstance(ours, str):
        assert theirs == ours
    else:
        assert np.shape(theirs) == np.shape(ours)
        scale = max(1.0, np.max(np.abs(theirs)))
        assert np.max(np.abs(np.asarray(theirs) - ours)) < ROUNDING * scale
        assert np.any(np.asarray(ours) != 0.0)


@pytest.mark.parametrize('theirs, ours', rows('Pinocchio'))
def test_pinocchio_returns_the_same(theirs, ours, monkeypatch):
    monkeypatch.chdir(ROOT)
    names = setting('Pinocchio')
    robot, frame = names['robot'], names['robot'].frames[names['tool']]
    names['forces'] = pin.StdVec_Force([pin.Force.Zero() for _ in range(robot.njoints)])
    names['forces'][frame.parentJoint] = frame.placement.act(
        pin.Force(names['push'][names['swap']]))
    check(list(eval(theirs, names)) if 'names' in theirs else eval(theirs, names),
          eval(ours, names))


def test_pinocchio_sorts_the_children_of_a_link_and_writes_continuous_joints_as_two_numbers():
    robot, model = pin.buildModelFromXML(fan('bca')), rbd_ros.load_urdf_string(fan('bca'))
    assert list(robot.names)[1:] == ['a', 'b', 'c']
    assert list(model.velocity_names) == ['b', 'c', 'a']
    assert (robot.nq, robot.nv, model.nq, model.nv) == (6, 3, 3, 3)


def kdl_chain(kdl):
    """Return the chain that kdl_parser makes of the arm."""
    def vector(x):
        return kdl.Vector(*(float(one) for one in x))

    model, chain = rbd_ros.load_urdf(ARM), kdl.Chain()
    for joint in model.joints:
        T, link = joint.placement, model.links[model.link_index(joint.child)]
        frame = kdl.Frame(kdl.Rotation(*(float(one) for one in T[:3, :3].ravel())),
                          vector(T[:3, 3]))
        inertia = (link.inertia[i, j] for i, j in ((0, 0), (1, 1), (2, 2), (0, 1), (0, 2), (1, 2)))
        body = kdl.RigidBodyInertia(link.mass, vector(link.com), kdl.RotationalInertia(*inertia))
        axis = (kdl.Joint(joint.name, kdl.Joint.Fixed) if joint.kind == 'fixed' else
                kdl.Joint(joint.name, frame.p, frame.M * vector(joint.axis), kdl.Joint.RotAxis))
        chain.addSegment(kdl.Segment(joint.child, axis, frame, body))
    return chain


def array(filled, n):
    """Return the numbers of a container of KDL."""
    kind = type(filled).__name__
    if kind == 'FrameVel':
        return np.array([filled.GetTwist()[k] for k in range(6)])
    shape = {'JntArray': (n,), 'JntSpaceInertiaMatrix': (n, n), 'Jacobian': (6, n),
             'Frame': (3, 4)}[kind]
    index = list(np.ndindex(shape))
    numbers = np.array([filled[k if len(k) > 1 else k[0]] for k in index]).reshape(shape)
    return np.vstack((numbers, (0.0, 0.0, 0.0, 1.0))) if kind == 'Frame' else numbers


@pytest.mark.parametrize('theirs, ours', rows('KDL'))
def test_kdl_returns_the_same(theirs, ours, monkeypatch):
    kdl = pytest.importorskip('PyKDL')
    monkeypatch.chdir(ROOT)
    names = setting('KDL', chain=kdl_chain(kdl))
    call = ast.parse(theirs, mode='eval')
    # The last argument is filled: keep it.
    names['out'] = eval(compile(ast.Expression(call.body.args[-1]), 'row', 'eval'), names)
    call.body.args[-1] = ast.copy_location(ast.Name('out', ast.Load()), call.body)
    assert eval(compile(ast.fix_missing_locations(call), 'row', 'eval'), names) in (0, None)
    check(array(names['out'], names['n']), eval(ours, names))


@pytest.mark.filterwarnings('ignore')
@pytest.mark.parametrize('theirs, ours', rows('Robotics Toolbox'))
def test_robotics_toolbox_returns_the_same(theirs, ours, monkeypatch):
    pytest.importorskip('roboticstoolbox')
    monkeypatch.chdir(ROOT)
    names = setting('Robotics Toolbox')
    check(eval(theirs, names), eval(ours, names))


def test_every_program_has_a_table():
    assert {program: len(rows(program)) for program in SECTIONS} == {
        'Pinocchio': 23, 'KDL': 8, 'Robotics Toolbox': 8}
