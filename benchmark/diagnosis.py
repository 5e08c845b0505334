# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Plant mistakes in recordings of simulated robots, and count how often `diagnose` names them.

Prints, for each kind, the share of the cases in which it is the first finding, at the right place,
and in which its value lies in its interval; then the share of pairs of kinds that are both among
the first three findings, and the number of clean recordings with findings.

"""

import argparse
from collections import defaultdict
from dataclasses import replace
from multiprocessing import get_context
from pathlib import Path
import sys

import numpy as np
import rbd_ros
from rbd_ros.identification import Recording
from rbd_ros.identification.diagnosis.diagnose import diagnose
from rbd_ros.identification.diagnosis.hypotheses import HYPOTHESES, leaves
from rbd_ros.model import with_friction, with_springs
from rbd_ros.model.constraints import rebuild
from rbd_ros.model.inertial import moving_bodies
from rbd_ros.model.se3 import rotation_from_rpy

ROOT = Path(__file__).resolve().parents[1]
sys.path.insert(0, str(ROOT / 'test'))

import measured     # noqa: E402, I100, I202
from robots import example_urdf, load_quietly    # noqa: E402, I202

ROBOTS = ('demo', 'ur5_robot.urdf', 'panda.urdf', 'kinova.urdf')
# s, Hz; noise of the efforts, relative to their RMS, within a band, Hz.
SECONDS, RATE, NOISE, NOISE_BAND = 30.0, 200.0, 0.02, 10.0


def robot(name):
    """Return a robot without fingers and limits of efforts, which random motions ignore."""
    model = load_quietly(ROOT / 'urdf/demo_arm.urdf' if name == 'demo' else example_urdf(name))
    return rbd_ros.with_locked_joints(model, {joint: 0.0 for joint in model.velocity_names
                                              if 'finger' in joint})


def clean(name, rng):
    """Return a description with rotors and with or without friction, and the robot."""
    model = robot(name)
    true = with_friction(measured.with_drives(model, rng), effort_offset=np.zeros(model.nv))
    described = true
    if rng.random() < 0.5:
        described = with_friction(true, damping=np.zeros(model.nv), friction=np.zeros(model.nv))
    return described, true


class Case:
    """A description, a robot, and what is wrong."""

    def __init__(self, name, rng, kinds=()):
        self.rng, self.kinds = rng, kinds
        self.described, self.true = clean(name, rng)
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
        """Plant a mistake of a kind."""
        self.planted[kind] = getattr(self, f'_{kind}')()
        return self

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


# Kinds that are planted two at a time: what they change adds up.
PAIRED = ('sign', 'gain', 'common_gain', 'gravity_direction', 'payload', 'link_mass',
          'zero_offset', 'torque_offset', 'friction', 'rotor', 'spring', 'delay')


def outcome(task):
    """Return what the diagnosis of a case names: (planted, found, inside)."""
    kinds, name, seed = task
    case = Case(name, np.random.default_rng((seed, ROBOTS.index(name), *map(
        list(HYPOTHESES).index, kinds))), kinds)
    for kind in kinds:
        case.plant(kind)
    found = diagnose(case.described, case.recording()).findings
    ranks, inside = [], None
    for kind, (place, value) in case.planted.items():
        rank = next((k for k, one in enumerate(found) if one.kind == kind and place in (
            '', one.place, *one.joints[:1])), None)
        ranks.append(rank)
        if rank is not None and value is not None and found[rank].deviation is not None:
            inside = abs(found[rank].value - value) <= 2.0 * found[rank].deviation
    return kinds, name, seed, ranks, inside, [(one.kind, one.place) for one in found]


def tasks(kinds, cases, pairs, clean_ones):
    """Yield the cases."""
    for kind in kinds:
        for k in range(cases):
            yield (kind,), ROBOTS[k % len(ROBOTS)], k
    rng = np.random.default_rng(0)
    for k in range(pairs):
        yield tuple(sorted(rng.choice(PAIRED, 2, replace=False))), ROBOTS[k % len(ROBOTS)], k
    for k in range(clean_ones):
        yield (), ROBOTS[k % len(ROBOTS)], k


def main():
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument('--cases', type=int, default=300, help='of each kind')
    parser.add_argument('--pairs', type=int, default=300)
    parser.add_argument('--clean', type=int, default=100)
    parser.add_argument('--kinds', nargs='*', default=list(HYPOTHESES))
    parser.add_argument('--workers', type=int, default=2)
    parser.add_argument('--failures', action='store_true', help='print the cases that failed')
    options = parser.parse_args()
    table = defaultdict(list)
    work = list(tasks(options.kinds, options.cases, options.pairs, options.clean))
    with get_context('spawn').Pool(options.workers) as pool:
        for kinds, name, seed, ranks, inside, found in pool.imap(outcome, work, 8):
            label = kinds[0] if len(kinds) == 1 else 'pairs' if kinds else 'clean'
            good = (not found if label == 'clean' else ranks == [0] if len(kinds) == 1
                    else all(rank is not None and rank < 3 for rank in ranks))
            table[label].append((good, inside if len(kinds) == 1 else None))
            if options.failures and not (good and inside is not False):
                print('failed:', kinds, name, seed, ranks, inside, found, flush=True)
    print(f'{"kind":20s} cases  named  value inside')
    for label, rows in table.items():
        values = [inside for _, inside in rows if inside is not None]
        share = f'{100.0 * np.mean(values):5.1f} %' if values else ''
        print(f'{label:20s} {len(rows):5d} {100.0 * np.mean([x for x, _ in rows]):5.1f} % {share}')


if __name__ == '__main__':
    main()
