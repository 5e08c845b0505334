# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Robots for the tests: random trees, and real ones next to the same robots in Pinocchio."""

from dataclasses import replace
import pathlib
import warnings

import numpy as np
import pinocchio
from rbd_ros import load_urdf, ModelWarning
from rbd_ros.model import build_model
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.description import Link
from rbd_ros.model.joints import Joint, Mimic
from rbd_ros.model.se3 import pose, rotation_from_rpy

DATA = pathlib.Path(pinocchio.__file__).parents[4] / 'share' / 'example-robot-data' / 'robots'


def example_urdf(name):
    """Return the path of a URDF of example-robot-data, by the end of its path."""
    found = sorted(DATA.rglob(name))
    assert found, f'example-robot-data has no {name}'
    return found[0]


def all_example_urdfs():
    """Return the paths of all URDFs of example-robot-data."""
    return sorted(DATA.rglob('*.urdf'))


def load_quietly(path, **options):
    """Load a robot without the known warnings about its URDF."""
    with warnings.catch_warnings():
        warnings.simplefilter('ignore', ModelWarning)
        return load_urdf(path, **options)


def random_inertia(rng):
    """Return the inertia, about the centre of mass, of eight random point masses."""
    points = rng.normal(scale=0.1, size=(8, 3))
    points -= points.mean(axis=0)
    second = points.T @ points / 8
    return np.trace(second) * np.eye(3) - second


def random_pose(rng):
    """Return a random pose with a translation of some decimetres."""
    return pose(rotation_from_rpy(rng.uniform(-np.pi, np.pi, 3)), rng.normal(scale=0.3, size=3))


def random_tree(seed, count, kinds=('revolute', 'prismatic', 'continuous', 'fixed')):
    """Return a random branched tree of ``count`` joints, the first of which moves."""
    rng = np.random.default_rng(seed)

    def link(k):
        mass = rng.uniform(0.5, 3.0)
        return Link(f'link{k}', mass, rng.normal(scale=0.1, size=3), mass * random_inertia(rng))

    joints = []
    for k in range(count):
        kind = kinds[rng.integers(len(kinds))] if k else 'revolute'
        parent = f'link{rng.integers(max(0, k - 3), k + 1)}'
        joints.append(Joint(f'joint{k}', kind, parent, f'link{k + 1}', random_pose(rng),
                            axis=rng.normal(size=3), second_axis=rng.normal(size=3),
                            pitch=rng.normal(scale=0.1)))
    return build_model(f'tree{seed}', [link(k) for k in range(count + 1)], joints,
                       gravity=rng.normal(scale=5.0, size=3))


def with_mimics(model, seed):
    """Return a robot in which half of the joints with one coordinate mimic the first of them."""
    rng = np.random.default_rng(seed)
    single = [joint.name for joint in model.joints if joint.nv == 1]
    copies = {name: Mimic(single[0], rng.normal(), rng.normal()) for name in single[1::2]}
    return rebuild(model, joints=[replace(joint, mimic=copies.get(joint.name),
                                          armature=(0.1,) * joint.nv) for joint in model.joints])


def random_state(model, seed):
    """Return a random q, v, a of a robot whose joints all have v = dq/dt."""
    rng = np.random.default_rng(seed)
    return rng.uniform(-1.5, 1.5, model.nq), rng.normal(size=model.nv), rng.normal(size=model.nv)


def relative_error(got, expected):
    """Return the largest difference as a share of the largest entry (at least 1e-12)."""
    expected = np.asarray(expected)
    return np.max(np.abs(got - expected), initial=0.0) / max(
        np.max(np.abs(expected), initial=0.0), 1e-12)


def fan(order, mass=1.0):
    """Return the URDF of joints on one link in a given order, each with another effort limit."""
    arms = {name: f'<link name="{name}"><inertial><origin xyz="{k} 0 0"/><mass value="{mass}"/>'
            '<inertia ixx="0.1" ixy="0" ixz="0" iyy="0.1" iyz="0" izz="0.1"/></inertial></link>'
            f'<joint name="{name}" type="continuous"><parent link="base"/><child link="{name}"/>'
            '<axis xyz="0 1 0"/></joint>' for k, name in enumerate('abcd', 1)}
    return '<robot name="fan"><link name="base"/>' + ''.join(arms[x] for x in order) + '</robot>'


class Oracle:
    """
    The same robot in Pinocchio, its vectors reordered by joint names.

    Pinocchio excludes the root link from the centre of mass; `root` adds it.

    """

    def __init__(self, path, model):
        self.model = model
        self.pin = pinocchio.buildModelFromUrdf(str(path))
        self.data = self.pin.createData()
        names = list(self.pin.names)[1:]
        # Row k of G maps our velocities to velocity k of Pinocchio, which has no mimic joints.
        self.G = np.zeros((self.pin.nv, model.nv))
        self.offset = np.zeros(self.pin.nv)
        followers = {joint.name: joint.mimic for joint in model.joints
                     if joint.mimic and joint.kind != 'fixed'}
        for row, name in enumerate(names):
            multiplier = 1.0
            while name in followers and name not in model.velocity_names:
                self.offset[row] += multiplier * followers[name].offset
                multiplier *= followers[name].multiplier
                name = followers[name].joint
            self.G[row, model.velocity_names.index(name)] = multiplier

    def q(self, q):
        """Return Pinocchio's configuration."""
        angles = self.G @ q + self.offset
        result = pinocchio.neutral(self.pin)
        for joint, x in zip(list(self.pin.joints)[1:], angles):
            if joint.nq == 2:
                result[joint.idx_q:joint.idx_q + 2] = np.cos(x), np.sin(x)
            else:
                result[joint.idx_q] = x
        return result

    def M(self, q):
        """Return the mass matrix."""
        M = np.triu(pinocchio.crba(self.pin, self.data, self.q(q)))
        return self.G.T @ (M + np.triu(M, 1).T) @ self.G

    def C(self, q, v):
        """Return the Coriolis matrix."""
        C = pinocchio.computeCoriolisMatrix(self.pin, self.data, self.q(q), self.G @ v)
        return self.G.T @ C @ self.G

    def tau(self, q, v, a, forces=None):
        """Return the torques of inverse dynamics."""
        arguments = [self.pin, self.data, self.q(q), self.G @ v, self.G @ a]
        return self.G.T @ pinocchio.rnea(*arguments, *([] if forces is None else [forces]))

    def forward(self, q, v, tau):
        """Return accelerations; only for robots without mimic joints."""
        return self.G.T @ pinocchio.aba(self.pin, self.data, self.q(q), self.G @ v, self.G @ tau)

    def com(self, q):
        """Return the centre of mass and its Jacobian, with the root link."""
        J = pinocchio.jacobianCenterOfMass(self.pin, self.data, self.q(q)) @ self.G
        moving = self.data.mass[0]
        root = [link for link, body in zip(self.model.links, self.model.tree.link_body)
                if body == 0]
        poses = self.model.tree.link_pose[self.model.tree.link_body == 0]
        fixed = sum(link.mass * (T[:3, :3] @ link.com + T[:3, 3])
                    for link, T in zip(root, poses))
        total = moving + sum(link.mass for link in root)
        return (moving * self.data.com[0] + fixed) / total, moving / total * J

    def pose(self, q, link):
        """Return the pose of a link in the root's frame."""
        pinocchio.framesForwardKinematics(self.pin, self.data, self.q(q))
        T = self.data.oMf[self.pin.getFrameId(link, pinocchio.FrameType.BODY)]
        return T.homogeneous

    def jacobian(self, q, link):
        """Return the body Jacobian of a link, angular first."""
        J = pinocchio.computeFrameJacobian(
            self.pin, self.data, self.q(q),
            self.pin.getFrameId(link, pinocchio.FrameType.BODY), pinocchio.LOCAL)
        return np.vstack((J[3:], J[:3])) @ self.G
