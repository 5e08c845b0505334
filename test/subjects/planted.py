# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Recordings of simulated robots with mistakes that are planted, for diagnosis."""

from copy import copy
from dataclasses import replace
from pathlib import Path

import measured
import numpy as np
import rbd_ros
from rbd_ros.identification import Recording
from rbd_ros.identification.diagnosis.hypotheses import leaves
from rbd_ros.model import with_friction, with_springs
from rbd_ros.model.changes.inertial import moving_bodies
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.se3 import rotation_from_rpy
from robots import example_urdf, load_quietly

ROOT = Path(__file__).resolve().parents[2]
ROBOTS = ('demo', 'ur5_robot.urdf', 'panda.urdf', 'kinova.urdf', 'xarm7.urdf', 'z1.urdf')
# s, Hz; noise of the efforts, relative to their RMS, within a band, Hz.
SECONDS, RATE, NOISE, NOISE_BAND = 30.0, 200.0, 0.02, 10.0


def robot(name, joints=None):
    """Return a robot of so many joints, none of them its gripper's, without limits of efforts."""
    model = load_quietly(ROOT / 'urdf/demo_arm.urdf' if name == 'demo' else example_urdf(name))
    moving = [joint for joint in model.velocity_names
              if 'finger' not in joint and 'Gripper' not in joint][:joints]
    model = rbd_ros.with_locked_joints(model, {
        joint: 0.0 for joint in model.velocity_names if joint not in moving})
    return replace(model, effort_limit=np.full(model.nv, np.inf))


def clean(name, rng, joints=None):
    """Return a description with rotors and with or without friction, and the robot."""
    model = robot(name, joints)
    true = with_friction(measured.with_drives(model, rng), effort_offset=np.zeros(model.nv))
    described = true
    if rng.random() < 0.5:
        described = with_friction(true, damping=np.zeros(model.nv), friction=np.zeros(model.nv))
    return described, true


# Mistakes are planted where they change the efforts of a joint by at least this share of their
# RMS: others, such as the mass of a link that turns about its centre of mass, nobody notices.
NOTICED, TRIES = 0.03, 20
MODELLED = ('payload', 'link_mass', 'zero_offset', 'rotor', 'spring')


class Case:
    """A description, a robot, and what is wrong."""

    def __init__(self, name, rng, kinds=(), joints=None):
        self.rng, self.kinds = rng, kinds
        self.described, self.true = clean(name, rng, joints)
        t, q, v, a = measured.swing(self.true, rng, SECONDS, RATE)
        self.names = self.true.velocity_names
        self.t, self.q, self.v, self.a = t, q, v, a
        self.scale, self.lacks, self.read = np.ones(self.true.nv), 0.0, 0.0
        self.late, self.change = 0.0, []
        self.planted = {}       # kind -> place, value
        self.taken = []         # joints with a mistake: two at one joint may be one

    def joint(self, *, gravity=False):
        """Return a joint; with gravity: whose position the gravity torques depend on."""
        choices = np.array([j for j in range(len(self.names)) if j not in self.taken])
        if gravity:
            h, g0 = 0.5, rbd_ros.batch.gravity_torques(self.true, self.q[::200])
            choices = [j for j in choices if np.max(np.abs(rbd_ros.batch.gravity_torques(
                self.true, self.q[::200] + h * np.eye(len(self.names))[j]) - g0)) > 1e-6]
        self.taken.append(int(self.rng.choice(choices)))
        return self.taken[-1]

    def plant(self, kind):
        """Plant a mistake of a kind, where it changes the efforts of a joint visibly."""
        before = self._efforts()
        for last in np.arange(TRIES) == TRIES - 1:
            state = copy(self)
            state.scale, state.taken = self.scale.copy(), [*self.taken]
            state.change, state.planted = [*self.change], dict(self.planted)
            state.planted[kind] = getattr(state, f'_{kind}')()
            change = np.std(state._efforts() - before, axis=0) + np.abs(np.mean(
                state._efforts() - before, axis=0))
            if last or kind not in MODELLED or np.any(change > NOTICED * np.sqrt(np.mean(
                    before ** 2, axis=0))):
                self.__dict__ = state.__dict__
                return self

    def _efforts(self):
        """Return efforts without noise, as the description of a robot with them would be read."""
        true, q = self.true, self.q - self.read
        tau = measured.efforts(true, q, self.v, self.a) + rbd_ros.spring_torques(true, q)
        return self.scale * tau

    def recording(self):
        """Return the recording."""
        true, rng = self.true, self.rng
        t, q, v, a = self.t, self.q, self.v, self.a
        tau = measured.efforts(true, q, v, a) + rbd_ros.spring_torques(true, q)
        tau += NOISE * np.sqrt(np.mean(tau ** 2, axis=0)) * measured.coloured(
            rng, *tau.shape, RATE / (2.0 * np.pi * NOISE_BAND))
        tau = self.scale * (tau - self.lacks * rbd_ros.batch.gravity_torques(true, q))
        if self.late:
            tau = np.stack([np.interp(t - self.late, t, x) for x in tau.T], axis=1)
        one = Recording('motion', self.names, t,
                        q + self.read + measured.ENCODER * rng.normal(size=q.shape),
                        v + measured.SPEED * rng.normal(size=v.shape), tau)
        for change in self.change:
            one = change(one)
        return one

    def _sign(self):
        j = self.joint()
        self.scale[j] *= -1.0
        return self.names[j], -1.0

    def _gain(self):
        j, factor = self.joint(), self.rng.choice([0.8, 1.2])
        self.scale[j] *= factor
        return self.names[j], factor

    def _common_gain(self):
        factor = self.rng.choice([0.8, 1.2])
        self.scale *= factor
        return '', factor

    def _current(self):
        factors = np.exp(self.rng.normal(scale=0.7, size=len(self.names)))
        self.scale *= factors
        return '', None

    def _without_gravity(self):
        self.lacks = 1.0
        return '', None

    def _gravity_direction(self):
        angle = self.rng.uniform(0.0, 2.0 * np.pi)
        R = rotation_from_rpy(np.radians(5.0) * np.array([np.cos(angle), np.sin(angle), 0.0]))
        self.true = rbd_ros.with_gravity(self.true, R @ self.true.gravity)
        return '', 5.0

    def _payload(self):
        link = str(self.rng.choice(leaves(self.true)))
        self.true = rbd_ros.with_payload(self.true, link, 0.5, self.rng.uniform(-0.1, 0.1, 3))
        return link, 0.5

    def _link_mass(self):
        bodies = [parts for body, parts in moving_bodies(self.true).items()
                  if body > 1 and self.true.links[body].mass > 0.0]
        if 'payload' in self.kinds:     # at the last link, both are one
            bodies = bodies[:-1]
        own = [k for k, _ in bodies[self.rng.integers(len(bodies))]]
        more = 1.0 + 0.5 / sum(self.true.links[k].mass for k in own)
        name = self.true.link_names[own[0]]
        self.true = rebuild(self.true, links=[
            replace(one, mass=one.mass * more, inertia=one.inertia * more) if k in own else one
            for k, one in enumerate(self.true.links)])
        return name, 0.5

    def _zero_offset(self):
        j, size = self.joint(gravity=True), self.rng.choice([-0.05, 0.05])
        self.read = self.read + size * np.eye(len(self.names))[j]
        return self.names[j], size

    def _size(self):
        return np.sqrt(np.mean(measured.efforts(self.true, self.q, self.v, self.a) ** 2, axis=0))

    def _torque_offset(self):
        j = self.joint()
        size = np.where(np.arange(len(self.names)) == j, 0.2 * self._size(), 0.0)
        self.true = with_friction(self.true, effort_offset=size)
        return self.names[j], size[j]

    def _friction(self):
        j = self.joint()
        more = np.where(np.arange(len(self.names)) == j, 0.3 * self._size(), 0.0)
        self.described = with_friction(self.true, damping=self.true.damping)
        self.true = with_friction(self.true, friction=self.true.friction + more)
        return self.names[j], more[j]

    def _rotor(self):
        j = self.joint()
        M = np.diag(rbd_ros.mass_matrix(self.true, rbd_ros.neutral(self.true)))
        more = np.where(np.arange(len(self.names)) == j, 0.3 * M, 0.0)
        self.true = rbd_ros.with_armature(self.true, self.true.armature + more)
        return self.names[j], more[j]

    def _spring(self):
        j = self.joint()
        self.true = with_springs(self.true, stiffness={self.names[j]: 5.0}, spring_reference={
            self.names[j]: float(np.mean(self.q[:, j]))})
        return self.names[j], 5.0

    def _delay(self):
        self.late = 0.02
        return '', 0.02

    def _order(self):
        i, j = self.rng.choice(len(self.names), 2, replace=False)
        order = np.arange(len(self.names))
        order[[i, j]] = order[[j, i]]
        states = self.rng.random() < 0.5
        self.change.append(lambda one: replace(one, effort=one.effort[:, order], **({
            'position': one.position[:, order], 'velocity': one.velocity[:, order]}
            if states else {})))
        return '', None

    def _degrees(self):
        self.change.append(lambda one: replace(one, position=np.degrees(one.position),
                                               velocity=np.degrees(one.velocity)))
        return '', None

    def _wrapped(self):
        # Positions of continuous joints may be wrapped.
        j = self.rng.choice([v.start for one, _, v in self.true.moving_joints
                             if one.kind == 'revolute'])
        shift = np.pi - np.mean(self.q[:, j])
        full = [one for one in self.true.joints if one.name == self.names[j]]
        self.true = rebuild(self.true, joints=[
            replace(one, placement=one.placement @ _turn(one.axis, -shift)) if one in full else one
            for one in self.true.joints])
        self.described = rebuild(self.described, joints=self.true.joints)
        self.q = self.q + shift * np.eye(len(self.names))[j]
        self.change.append(lambda one: replace(
            one, position=(one.position + np.pi) % (2.0 * np.pi) - np.pi))
        return '', None

    def _time_unit(self):
        factor = self.rng.choice([1e3, 1e6, 1e9])
        self.change.append(lambda one: replace(one, time=factor * one.time))
        return '', factor

    def _two_publishers(self):
        def change(one):
            rows = np.repeat(np.arange(len(one)), 2)
            odd = np.arange(len(rows)) % 2 == 1
            late = np.where(odd, np.maximum(rows - 5, 0), rows)
            return replace(one, time=one.time[rows] + odd * 0.4 / RATE,
                           position=one.position[late], velocity=one.velocity[late],
                           effort=one.effort[late])
        self.change.append(change)
        return '', None

    def _stuck(self):
        j = self.joint()

        def change(one):
            effort = one.effort.copy()
            effort[len(effort) // 3:, j] = effort[len(effort) // 3, j]
            return replace(one, effort=effort)
        self.change.append(change)
        return '', None

    def _unexplained(self):
        j = self.joint()
        size = 0.4 * self._size()[j]

        def change(one):
            effort = one.effort.copy()
            effort[:, j] += size * np.sin(2.0 * np.pi * 2.5 * one.time)
            return replace(one, effort=effort)
        self.change.append(change)
        return '', None


def _turn(axis, angle):
    """Return the pose of a turn about an axis."""
    from scipy.spatial.transform import Rotation
    T = np.eye(4)
    T[:3, :3] = Rotation.from_rotvec(angle * np.asarray(axis) / np.linalg.norm(axis)).as_matrix()
    return T
