# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Robots with closed loops in plain NumPy on top of Pinocchio's trees: dense, slow, independent.

Nothing here uses rbd_ros' own code for loops, kinematics or dynamics, only its descriptions.
Vectors are those of the tree in the order of rbd_ros unless they are named ``independent``. A
wrench is (moment, force), acts on link b and is expressed in frame a, as the equations are.

"""

from types import SimpleNamespace

import numpy as np
import pinocchio as pin
from rbd_ros.model import Constraint
from rbd_ros.model.se3 import inverse, pose, rotation, rotation_vector, skew

# Rows of the relative twist (angular first) that a constraint of each kind makes zero.
ROWS = {'weld': [0, 1, 2, 3, 4, 5], 'revolute': [0, 1, 3, 4, 5], 'point': [3, 4, 5]}
# Relative size of singular values that count as zero: far above rounding, far below those of
# mechanisms that are not singular.
RANK = 1e-9
TO_OURS = np.r_[3:6, 0:3]       # Pinocchio's twists are linear first.


class LoopOracle:
    """A tree (`Model` without constraints) and constraints: objects with their fields."""

    def __init__(self, tree, constraints, independent=()):
        self.tree = tree
        self.constraints = list(constraints)
        self.pin, self.links, self._columns = pinocchio_tree(tree)
        self.data = self.pin.createData()
        self.P, self._sources = self._map()
        self.independent = [tree.velocity_names.index(name) for name in independent]

    # -- The tree. ---------------------------------------------------------------------------
    def _map(self):
        """Return the matrix from our velocities to Pinocchio's, and where each joint's q is."""
        P, sources = np.zeros((self.pin.nv, self.tree.nv)), {}
        slices = {joint.name: (part, rows) for joint, part, rows in self.tree.moving_joints}
        joints = {joint.name: joint for joint in self.tree.joints}
        for name, (_, v_rows) in self._columns.items():
            leader, factor, shift = name, 1.0, 0.0
            while leader not in slices:
                mimic = joints[leader].mimic
                leader, factor, shift = (mimic.joint, factor * mimic.multiplier,
                                         shift + factor * mimic.offset)
            part, rows = slices[leader]
            P[v_rows, range(rows.start, rows.stop)] = factor
            sources[name] = (part, factor, shift, joints[name].kind == 'free')
        return P, sources

    def q_pin(self, q):
        """Return Pinocchio's configuration."""
        result = np.zeros(self.pin.nq)
        for name, (part, factor, shift, is_free) in self._sources.items():
            x = factor * np.asarray(q, float)[part] + shift
            result[self._columns[name][0]] = np.roll(x, 3) if is_free else x
        return result

    def integrate(self, q, v):
        """Return q after unit time with a constant velocity of the tree; loops may open."""
        result = np.array(q, float)
        for joint, part, rows in self.tree.moving_joints:
            if joint.kind in ('free', 'spherical'):
                start = pin.Quaternion(np.array(q[part][:4]))
                turn = pin.Quaternion(rotation(v[rows][:3]))
                result[part][:4] = (start * turn).coeffs()
                if joint.kind == 'free':
                    slide = pin.exp6(pin.Motion(v[rows][3:], v[rows][:3])).translation
                    result[part][4:] = q[part][4:] + start.matrix() @ slide
            else:
                result[part] = q[part] + v[rows]
        return result

    def mass_matrix(self, q):
        """Return M of the tree, with armatures."""
        M = np.triu(pin.crba(self.pin, self.data, self.q_pin(q)))
        return self.P.T @ (M + np.triu(M, 1).T) @ self.P

    def bias(self, q, v):
        """Return C v + g of the tree."""
        v = self.P @ v
        return self.P.T @ pin.rnea(self.pin, self.data, self.q_pin(q), v, np.zeros(self.pin.nv))

    def poses(self, q):
        """Return the pose of each link in the root's frame."""
        pin.forwardKinematics(self.pin, self.data, self.q_pin(q))
        return {link: (self.data.oMi[joint] * placement).homogeneous
                for link, (joint, placement) in self.links.items()}

    # -- The constraints. --------------------------------------------------------------------
    def frames(self, q):
        """Return the poses of frames a and b of each constraint in the root's frame."""
        poses = self.poses(q)
        return [(poses[one.link_a] @ one.placement_a, poses[one.link_b] @ one.placement_b)
                for one in self.constraints]

    def residual(self, q):
        """Return e(q), which is zero if the loops are closed: rad and m."""
        return np.concatenate([_residual(one, T_A, T_B) for one, (T_A, T_B)
                               in zip(self.constraints, self.frames(q))])

    def gap(self, q):
        """Return the largest distance, m, or angle, rad, by which a loop is open."""
        return np.max(np.abs(self.residual(q)))

    def _motion(self, q, link, placement):
        """Return the Jacobian (world axes) of a frame of a link, angular first."""
        joint, offset = self.links[link]
        J = pin.getJointJacobian(self.pin, self.data, joint, pin.WORLD)[TO_OURS]
        p = (self.data.oMi[joint] * offset * pin.SE3(placement)).translation
        J[3:] -= skew(p) @ J[:3]
        return J @ self.P

    def jacobian(self, q):
        """Return J(q) of closed loops: the relative twists are J v."""
        pin.computeJointJacobians(self.pin, self.data, self.q_pin(q))
        motions = [[self._motion(q, one.link_a, one.placement_a),
                    self._motion(q, one.link_b, one.placement_b)] for one in self.constraints]
        rows = []
        for one, (T_A, T_B), (J_a, J_b) in zip(self.constraints, self.frames(q), motions):
            if one.kind == 'distance':
                n = (T_B - T_A)[:3, 3] / np.linalg.norm((T_B - T_A)[:3, 3])
                rows.append(n[None] @ (J_b - J_a)[3:])
            else:
                R = np.kron(np.eye(2), T_A[:3, :3].T)
                rows.append((R @ (J_b - J_a))[ROWS[one.kind]])
        return np.vstack(rows)

    def rate(self, q, v):
        """Return dJ/dt v of closed loops and velocities that keep them closed."""
        none = np.zeros(self.pin.nv)
        pin.forwardKinematics(self.pin, self.data, self.q_pin(q), self.P @ v, none)
        motions = [[_point_motion(self.data, *self.links[link], placement)
                    for link, placement in ((one.link_a, one.placement_a),
                                            (one.link_b, one.placement_b))]
                   for one in self.constraints]
        rows = []
        for one, (T_A, T_B), (a, b) in zip(self.constraints, self.frames(q), motions):
            if one.kind == 'distance':
                r, dr = (T_B - T_A)[:3, 3], b.v - a.v
                L = np.linalg.norm(r)
                n = r / L
                rows.append([n @ (b.dv - a.dv) + (dr @ dr - (n @ dr) ** 2) / L])
            else:
                relative = b.w - a.w
                c = np.concatenate((b.dw - a.dw - np.cross(a.w, relative), b.dv - a.dv))
                rows.append((np.kron(np.eye(2), T_A[:3, :3].T) @ c)[ROWS[one.kind]])
        return np.concatenate(rows)

    def close(self, q, held=()):
        """Return the nearest closed configuration; the velocities with ``held`` indices stay."""
        free = np.setdiff1d(range(self.tree.nv), held)
        for _ in range(50):
            error = self.residual(q)
            if np.max(np.abs(error)) < 1e-14:
                break
            step = np.zeros(self.tree.nv)
            step[free] = np.linalg.lstsq(self._differences(q)[:, free], -error, RANK)[0]
            q = self.integrate(q, step)
        assert self.gap(q) < 1e-12, f'the loops stay open by {self.gap(q):.2g}'
        return q

    def _differences(self, q, h=1e-6):
        """Return the derivative of the residual, by central differences."""
        return np.column_stack([
            (self.residual(self.integrate(q, h * e)) - self.residual(self.integrate(q, -h * e)))
            / (2.0 * h) for e in np.eye(self.tree.nv)])

    def null_space(self, q):
        """Return an orthonormal basis of the velocities that keep the loops closed."""
        _, s, Vt = np.linalg.svd(self.jacobian(q))
        return Vt[np.count_nonzero(s > RANK * s[0]):].T

    # -- Dynamics of the tree with its loops. ------------------------------------------------
    def forward_dynamics(self, q, v, tau):
        """Return a of the tree, and the forces of the equations, of least norm if redundant."""
        M, J = self.mass_matrix(q), self.jacobian(q)
        m = len(J)
        KKT = np.block([[M, J.T], [J, np.zeros((m, m))]])
        right = np.concatenate((tau - self.bias(q, v), -self.rate(q, v)))
        solution = np.linalg.lstsq(KKT, right, 1e-13)[0]
        return solution[:self.tree.nv], -solution[self.tree.nv:]

    def wrenches(self, q, forces):
        """Return the wrench of each constraint, by name, for the forces of its equations."""
        result, start = {}, 0
        for one, (T_A, T_B) in zip(self.constraints, self.frames(q)):
            wrench = np.zeros(6)
            if one.kind == 'distance':
                p = (inverse(T_A) @ T_B)[:3, 3]
                wrench[3:] = forces[start] * p / np.linalg.norm(p)
                start += 1
            else:
                rows = ROWS[one.kind]
                wrench[rows] = forces[start:start + len(rows)]
                start += len(rows)
            result[one.name] = wrench
        return result

    # -- In independent velocities. ----------------------------------------------------------
    def G(self, q):
        """Return the matrix from independent velocities to all."""
        J = self.jacobian(q)
        rest = np.setdiff1d(range(self.tree.nv), self.independent)
        result = np.zeros((self.tree.nv, len(self.independent)))
        result[self.independent, range(len(self.independent))] = 1.0
        result[rest] = np.linalg.lstsq(J[:, rest], -J[:, self.independent], RANK)[0]
        return result

    def gamma(self, q, v):
        """Return dG/dt times the independent velocities, for all velocities ``v``."""
        J = self.jacobian(q)
        rest = np.setdiff1d(range(self.tree.nv), self.independent)
        result = np.zeros(self.tree.nv)
        result[rest] = np.linalg.lstsq(J[:, rest], -self.rate(q, v), RANK)[0]
        return result

    def reduced(self, q, v):
        """Return M and bias in independent velocities ``v``."""
        G = self.G(q)
        v_tree = G @ v
        M = self.mass_matrix(q)
        return G.T @ M @ G, G.T @ (M @ self.gamma(q, v_tree) + self.bias(q, v_tree))

    def inverse_dynamics(self, q, v, a):
        """Return the efforts of the independent joints."""
        M, bias = self.reduced(q, v)
        return M @ a + bias

    def independent_forward_dynamics(self, q, v, tau):
        """Return the accelerations of the independent joints, from the equations of the tree."""
        efforts = np.zeros(self.tree.nv)
        efforts[self.independent] = tau
        return self.forward_dynamics(q, self.G(q) @ v, efforts)[0][self.independent]

    def move(self, q, v, time):
        """Return the closed configuration after a short time with constant independent v."""
        return self.close(self.integrate(q, time * (self.G(q) @ v)), self.independent)


def _residual(one, T_A, T_B):
    T = inverse(T_A) @ T_B
    if one.kind == 'distance':
        return np.array([np.linalg.norm(T[:3, 3]) - one.length])
    turn = rotation_vector(T[:3, :3])
    if one.kind == 'revolute':      # the turn from frame a's z axis to that of frame b
        axis, z = np.cross([0.0, 0.0, 1.0], T[:3, 2]), T[2, 2]
        sine = np.linalg.norm(axis)
        turn = axis * (np.arctan2(sine, z) / sine if sine > 1e-12 else 1.0)
    return np.concatenate((turn, T[:3, 3]))[ROWS[one.kind]]


def _point_motion(data, joint, offset, placement):
    """Return angular and linear velocity and acceleration of a frame's origin, world axes."""
    T, V, A = data.oMi[joint], data.v[joint], data.a[joint]
    p = (offset * pin.SE3(placement)).translation
    w, dw = V.angular, A.angular
    v = V.linear + np.cross(w, p)
    dv = A.linear + np.cross(w, V.linear) + np.cross(dw, p) + np.cross(w, np.cross(w, p))
    R = T.rotation
    return SimpleNamespace(w=R @ w, v=R @ v, dw=R @ dw, dv=R @ dv)


def pinocchio_tree(tree):
    """
    Return a tree in Pinocchio, built from its description.

    Also the joint and placement of each link, and the entries of Pinocchio's q and v of each joint
    that moves. Joints with several screws are chains of joints.

    """
    model = pin.Model()
    model.gravity.linear = tree.gravity
    links = {tree.links[0].name: (0, pin.SE3.Identity())}
    columns, armature = {}, []
    for joint, link in zip(tree.joints, tree.links[1:]):
        parent, offset = links[joint.parent]
        placement = offset * pin.SE3(joint.placement)
        kinds = _joint_models(joint)
        first_q, first_v = model.nq, model.nv
        for k, one in enumerate(kinds):
            parent = model.addJoint(parent, one, placement, f'{joint.name}/{k}')
            placement = pin.SE3.Identity()
        links[link.name] = (parent, placement if not kinds else pin.SE3.Identity())
        if kinds:
            columns[joint.name] = [*range(first_q, model.nq)], [*range(first_v, model.nv)]
            armature += joint.armature or [0.0] * joint.nv
        model.appendBodyToJoint(parent, pin.Inertia(link.mass, link.com, link.inertia),
                                links[link.name][1])
    # A free joint is linear first in Pinocchio, angular first here.
    for joint in tree.joints:
        if joint.kind == 'free':
            columns[joint.name][1][:] = np.array(columns[joint.name][1])[TO_OURS]
    order = np.concatenate([rows for _, rows in columns.values()]).astype(int)
    model.armature = np.zeros(model.nv)
    model.armature[order] = armature
    return model, links, columns


def _joint_models(joint):
    axis, turns = joint.axis, [pin.JointModelRZ(), pin.JointModelRY(), pin.JointModelRX()]
    if joint.kind == 'planar':
        x = [1.0, 0.0, 0.0] - axis * axis[0]
        x = x if np.linalg.norm(x) >= 0.5 else [0.0, 0.0, 1.0] - axis * axis[2]
        x = x / np.linalg.norm(x)
        return [pin.JointModelPrismaticUnaligned(x),
                pin.JointModelPrismaticUnaligned(np.cross(axis, x)),
                pin.JointModelRevoluteUnaligned(axis)]
    return {'fixed': list,
            'revolute': lambda: [pin.JointModelRevoluteUnaligned(axis)],
            'continuous': lambda: [pin.JointModelRevoluteUnaligned(axis)],
            'prismatic': lambda: [pin.JointModelPrismaticUnaligned(axis)],
            'helical': lambda: [pin.JointModelHelicalUnaligned(axis, joint.pitch)],
            'universal': lambda: [pin.JointModelRevoluteUnaligned(axis),
                                  pin.JointModelRevoluteUnaligned(joint.second_axis)],
            'cylindrical': lambda: [pin.JointModelRevoluteUnaligned(axis),
                                    pin.JointModelPrismaticUnaligned(axis)],
            'euler_zyx': lambda: turns,
            'free_euler_zyx': lambda: [pin.JointModelPX(), pin.JointModelPY(), pin.JointModelPZ(),
                                       *turns],
            'spherical': lambda: [pin.JointModelSpherical()],
            'free': lambda: [pin.JointModelFreeFlyer()]}[joint.kind]()


def pinocchio_forward_dynamics(oracle, q, v, tau, mu=1e-12, iterations=100):
    """
    Return the accelerations of Pinocchio's own constrained dynamics, proximal if redundant.

    Pinocchio has no hinge: two points on its axis stand for it. It has no `distance` either.

    """
    models = pin.StdVec_RigidConstraintModel()
    for one in oracle.constraints:
        (joint_a, T_a), (joint_b, T_b) = oracle.links[one.link_a], oracle.links[one.link_b]
        a, b = T_a * pin.SE3(one.placement_a), T_b * pin.SE3(one.placement_b)
        kind = pin.ContactType.CONTACT_6D if one.kind == 'weld' else pin.ContactType.CONTACT_3D
        shifts = {'weld': (0.0,), 'point': (0.0,), 'revolute': (0.0, 0.1)}[one.kind]
        for z in shifts:
            shift = pin.SE3(pose(np.eye(3), [0.0, 0.0, z]))
            models.append(pin.RigidConstraintModel(kind, oracle.pin, joint_a, a * shift, joint_b,
                                                   b * shift, pin.LOCAL))
    data = oracle.pin.createData()
    datas = pin.StdVec_RigidConstraintData()
    for one in models:
        datas.append(one.createData())
    pin.initConstraintDynamics(oracle.pin, data, models, datas)
    tau = np.linalg.lstsq(oracle.P.T, tau, None)[0]
    settings = pin.ProximalSettings(1e-14, mu, iterations)
    a = pin.constraintDynamics(oracle.pin, data, oracle.q_pin(q), oracle.P @ v, tau, models, datas,
                               settings)
    return np.linalg.lstsq(oracle.P, a, None)[0]


def random_constraints(tree, kinds, seed, link_pairs):
    """Return a random q of a tree, and constraints that are closed there."""
    rng = np.random.default_rng(seed)
    oracle = LoopOracle(tree, [])
    q = oracle.integrate(_zero(tree), rng.uniform(-1.0, 1.0, tree.nv))
    poses = oracle.poses(q)
    result = []
    for k, (kind, (link_a, link_b)) in enumerate(zip(kinds, link_pairs)):
        a = pin.exp6(rng.uniform(-0.5, 0.5, 6)).homogeneous
        motion = {'weld': np.zeros(6), 'distance': rng.uniform(0.2, 0.4, 6),
                  'point': np.concatenate((np.zeros(3), rng.uniform(-1.0, 1.0, 3))),
                  'revolute': np.array([0.0, 0.0, 0.0, 0.0, 0.0, 0.7])}[kind]
        motion = pin.exp6(motion).homogeneous       # of frame b in frame a
        b = inverse(poses[link_b]) @ poses[link_a] @ a @ motion
        length = np.linalg.norm(motion[:3, 3]) if kind == 'distance' else None
        result.append(Constraint(f'loop{k}', kind, link_a, link_b, a, b, length))
    return q, result


def _zero(tree):
    """Return the configuration with all coordinates zero."""
    q = np.zeros(tree.nq)
    for joint, part, _ in tree.moving_joints:
        if joint.kind in ('spherical', 'free'):
            q[part.start + 3] = 1.0
    return q


def independent_joints(oracle, q):
    """Return names of velocities that determine all others well."""
    from scipy.linalg import qr

    N = oracle.null_space(q)
    _, _, order = qr(N.T, pivoting=True)
    return [oracle.tree.velocity_names[k] for k in sorted(order[:N.shape[1]])]
