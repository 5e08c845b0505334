# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots on their feet, here and in Pinocchio, and their equations in dense matrices."""

import numpy as np
import pinocchio
import rbd_ros
from rbd_ros import analysis
from rbd_ros.analysis import Contact
from rbd_ros.model.se3 import pose, rotation_from_rpy
from robots import example_urdf, load_quietly

# Rounding, times the condition number of X, up to 1e4 here.
EXACT = 1e-9
SOLE = pose(rotation_from_rpy((0.1, -0.2, 0.3)), (0.02, -0.01, -0.03))
ROBOTS = {
    'talos': ('talos_reduced.urdf', ('left_sole_link', 'right_sole_link'), 'surface', SOLE),
    'icub': ('icub.urdf', ('l_sole', 'r_sole'), 'surface', SOLE),
    'anymal': ('anymal_b_simple_description/robots/anymal.urdf',
               ('LF_FOOT', 'RF_FOOT', 'LH_FOOT', 'RH_FOOT'), 'point',
               pose(np.eye(3), SOLE[:3, 3])),
}


class Floating:
    """A robot with a floating base, here and in Pinocchio, with its feet."""

    def __init__(self, name):
        file, links, kind, placement = ROBOTS[name]
        path = example_urdf(file)
        self.model = load_quietly(path, floating_base=True)
        self.contacts = [Contact(link, kind, placement) for link in links]
        self.pin = pinocchio.buildModelFromUrdf(str(path), pinocchio.JointModelFreeFlyer())
        self.data = self.pin.createData()
        # Our velocity for each of Pinocchio's, which has linear ones first.
        names = self.model.velocity_names
        self.order = [3, 4, 5, 0, 1, 2] + [names.index(name) for name in list(self.pin.names)[2:]]

    def state(self, seed):
        """Return a random q, and v with which the contacts do not move, and tau of the joints."""
        rng = np.random.default_rng(seed)
        n = self.model.nv
        q = rbd_ros.integrate(self.model, rbd_ros.neutral(self.model), rng.normal(size=n), 0.5)
        J, _ = rows_of(self.model, q, np.zeros(n), self.contacts)
        v, tau = rng.normal(size=n), 10.0 * rng.normal(size=n)
        tau[:6] = 0.0
        return q, v - np.linalg.pinv(J) @ (J @ v), tau

    def pin_q(self, q):
        """Return Pinocchio's configuration; position first."""
        result = pinocchio.neutral(self.pin)
        result[:7] = *q[4:7], *q[:4]
        for joint, ours in zip(list(self.pin.joints)[2:], self.order[6:]):
            x = q[ours + 1]
            if joint.nq == 2:
                result[joint.idx_q:joint.idx_q + 2] = np.cos(x), np.sin(x)
            else:
                result[joint.idx_q] = x
        return result

    def pin_dynamics(self, q, v, tau, contacts, mu=1e-12, most=20):
        """Return accelerations and wrenches at the contacts, in the axes of the root."""
        models = pinocchio.StdVec_RigidConstraintModel()
        datas = pinocchio.StdVec_RigidConstraintData()
        kinds = {'point': pinocchio.ContactType.CONTACT_3D,
                 'surface': pinocchio.ContactType.CONTACT_6D}
        for one in contacts:
            frame = self.pin.frames[self.pin.getFrameId(one.link)]
            models.append(pinocchio.RigidConstraintModel(
                kinds[one.kind], self.pin, frame.parentJoint,
                frame.placement * pinocchio.SE3(one.placement), pinocchio.LOCAL))
            datas.append(models[len(models) - 1].createData())
        pinocchio.initConstraintDynamics(self.pin, self.data, models, datas)
        a = np.zeros(self.model.nv)
        a[self.order] = pinocchio.constraintDynamics(
            self.pin, self.data, self.pin_q(q), v[self.order], tau[self.order], models, datas,
            pinocchio.ProximalSettings(1e-15, mu, most))
        poses = rbd_ros.forward_kinematics(self.model, q)
        wrenches = []
        for one, data in zip(contacts, datas):
            R = (poses[self.model.link_index(one.link)] @ one.placement)[:3, :3]
            force = data.contact_force
            wrenches.append([*(R @ force.angular if one.kind == 'surface' else np.zeros(3)),
                             *R @ force.linear])
        return a, np.array(wrenches)


def rows_of(model, q, v, contacts):
    """Return J and Jdot v of contacts, from the Jacobians of their links."""
    J, rates = [], []
    poses = rbd_ros.forward_kinematics(model, q)
    for one in contacts:
        J_link = rbd_ros.world_jacobian(model, q, one.link)
        rate = analysis.world_jacobian_dot(model, q, v, one.link) @ v
        r = poses[model.link_index(one.link)][:3, :3] @ one.placement[:3, 3]
        omega = J_link[:3] @ v
        J += [J_link[:3]] * (one.kind == 'surface') + [
            J_link[3:] + np.cross(J_link[:3], r, axisa=0, axisc=0)]
        rates += [rate[:3]] * (one.kind == 'surface') + [
            rate[3:] + np.cross(rate[:3], r) + np.cross(omega, np.cross(omega, r))]
    return np.vstack(J), np.concatenate(rates)


def dense_dynamics(model, q, v, tau, contacts, external_wrenches=None):
    """Return a and f, by the pseudoinverse of J M^-1 J^T."""
    M = rbd_ros.mass_matrix(model, q)
    J, rate = rows_of(model, q, v, contacts)
    free = np.linalg.solve(M, tau - rbd_ros.bias_torques(
        model, q, v, external_wrenches=external_wrenches))
    f = np.linalg.pinv(J @ np.linalg.solve(M, J.T), rcond=1e-11, hermitian=True) @ (
        -rate - J @ free)
    return free + np.linalg.solve(M, J.T @ f), f


def flat(contacts, wrenches):
    """Return the unknown entries of wrenches; the others must be zero."""
    points = np.array([one.kind == 'point' for one in contacts])
    assert not np.any(wrenches[points, :3])
    return np.concatenate([wrench[3 * (one.kind == 'point'):]
                           for one, wrench in zip(contacts, wrenches)])


def corners(link, x, y, **options):
    """Return points at the corners of a sole."""
    return [Contact(link, 'point', SOLE[:3, :3] @ (i * x, j * y, 0.0) + SOLE[:3, 3], **options)
            for i in (-1, 1) for j in (-1, 1)]


def stance(talos):
    """Return a bent posture of the humanoid, and its soles."""
    q = rbd_ros.neutral(talos.model)
    names = talos.model.position_names
    for side in ('left', 'right'):
        for joint, x in ((3, -0.45), (4, 0.9), (5, -0.45)):
            q[names.index(f'leg_{side}_{joint}_joint')] = x
    return q, [Contact(f'{side}_sole_link', 'surface', friction=0.6, half_size=(0.1, 0.06))
               for side in ('left', 'right')]


def balance(model, q, v, a, contacts, got):
    """Return tau + J^T f - M a - b, over the largest torque."""
    J, _ = rows_of(model, q, v, contacts)
    wanted = rbd_ros.inverse_dynamics(model, q, v, a)
    return np.abs(got.tau + J.T @ flat(contacts, got.wrenches) - wanted).max() / np.abs(
        wanted).max()
