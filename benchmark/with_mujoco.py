# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
MuJoCo's counterparts of the functions of this package, for the same outputs.

Each function is the smallest sequence of calls with the same outputs; contacts, limits, damping
and friction are off, and the state is in MuJoCo's arrays before the clock starts. Its all terms
are fewer: M, C v + g and the Jacobian of the centre of mass, since MuJoCo has no C. Its
derivatives are finite differences and are left out.

"""

from functools import partial
from xml.etree import ElementTree

import mujoco as mj
import numpy as np
from rbd_ros.model.se3 import skew
from robots import bare_urdf


def build(robot):
    """Return the robot in MuJoCo: its URDF without shapes, locked joints fixed."""
    root = bare_urdf(robot)
    if robot.floating:
        children = {joint.find('child').get('link') for joint in root.findall('joint')}
        base, = (link.get('name') for link in root.findall('link')
                 if link.get('name') not in children)
        ElementTree.SubElement(root, 'link', name='ground')
        joint = ElementTree.SubElement(root, 'joint', name='base', type='floating')
        ElementTree.SubElement(joint, 'parent', link='ground')
        ElementTree.SubElement(joint, 'child', link=base)
    model = mj.MjModel.from_xml_string(ElementTree.tostring(root, encoding='unicode'))
    model.opt.gravity = robot.model.gravity
    return model


def functions(robot):
    """Return for each function the timed call, and a function that returns its outputs by name."""
    ours, m = robot.model, build(robot)
    d, still = mj.MjData(m), mj.MjData(m)
    nv = m.nv
    # MuJoCo's velocities are T v, and their rates T a + moved.
    T, moved = np.zeros((nv, nv)), np.zeros(nv)
    for joint, of_q, of_v in ours.moving_joints:
        there = m.joint(joint.name)
        row, k = int(there.dofadr[0]), int(there.qposadr[0])
        q = robot.q[of_q]
        if joint.nv == 1:
            T[row, of_v.start] = 1.0
            d.qpos[k] = still.qpos[k] = q[0]
        else:
            d.qpos[k:k + 7] = still.qpos[k:k + 7] = [*q[4:], q[3], *q[:3]]
            R = np.empty(9)
            mj.mju_quat2Mat(R, d.qpos[k + 3:k + 7])
            R = R.reshape(3, 3)
            T[row:row + 3, of_v][:, 3:] = R
            T[row + 3:row + 6, of_v][:, :3] = np.eye(3)
            omega, slide = robot.v[of_v][:3], robot.v[of_v][3:]
            moved[row:row + 3] = R @ skew(omega) @ slide
    d.qvel[:], d.qacc[:] = T @ robot.v, T @ robot.a + moved
    d.qfrc_applied[:] = np.linalg.solve(T.T, robot.tau)
    tip = m.body(robot.tip).id
    M, h, tau, g = np.zeros((nv, nv)), np.zeros(nv), np.zeros(nv), np.zeros(nv)
    J_com, J_linear, J_angular = np.zeros((3, 3, nv))

    def all_terms():
        mj.mj_kinematics(m, d)
        mj.mj_comPos(m, d)
        mj.mj_makeM(m, d)
        mj.mj_comVel(m, d)
        mj.mj_rne(m, d, 0, h)
        mj.mj_fullM(m, d, M)
        mj.mj_jacSubtreeCom(m, d, J_com, 0)

    def inverse_dynamics():
        mj.mj_kinematics(m, d)
        mj.mj_comPos(m, d)
        mj.mj_comVel(m, d)
        mj.mj_rne(m, d, 1, tau)

    def forward_dynamics():
        mj.mj_forward(m, d)

    def gravity_torques():
        mj.mj_kinematics(m, still)
        mj.mj_comPos(m, still)
        mj.mj_rne(m, still, 0, g)

    def world_jacobian():
        mj.mj_kinematics(m, d)
        mj.mj_comPos(m, d)
        mj.mj_jacBody(m, d, J_linear, J_angular, tip)

    def outputs(call, turn):
        call()
        return turn()

    def pose():
        result = np.eye(4)
        result[:3, :3], result[:3, 3] = d.xmat[tip].reshape(3, 3), d.xpos[tip]
        return result

    found = {
        all_terms: lambda: {'M': T.T @ M @ T, 'C v + g': T.T @ (M @ moved + h),
                            'J_CoM': m.body_subtreemass[0] / ours.mass * J_com @ T},
        inverse_dynamics: lambda: {'inverse dynamics': T.T @ tau},
        forward_dynamics: lambda: {'forward dynamics': np.linalg.solve(T, d.qacc - moved)},
        gravity_torques: lambda: {'gravity torques': T.T @ g},
        world_jacobian: lambda: {'J': np.vstack((J_angular, J_linear)) @ T, 'pose': pose()},
    }
    return {call.__name__.replace('_', ' ').replace('jac', 'Jac'): (
        call, partial(outputs, call, turn)) for call, turn in found.items()}
