# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Time the dynamics of robots with closed loops, next to Pinocchio's constrained dynamics.

Both are called from Python, and their accelerations are compared first. A hinge that closes a loop
is one point for Pinocchio, which suffices for planar mechanisms.

"""

from pathlib import Path

import numpy as np
import pinocchio as pin
import rbd_ros
from timing import one_core, options, save, take_turns

URDF = Path(__file__).parents[1] / 'urdf'
ROBOTS = ('four_bar', 'five_bar', 'palletizer', 'delta')
# Relative; both solve systems whose condition is below 1e4, Pinocchio to mu = 1e-12.
AGREEMENT = 1e-7
STATES = 1000
OF_MANY = 'forward dynamics, one state of many'


def two_legs():
    """Return a robot on a floating base whose legs have a loop each, closed by a rod."""
    builder = rbd_ros.ModelBuilder('two_legs').link('world')
    builder.link('base', mass=10.0, inertia=(0.3, 0.3, 0.3))
    builder.joint('root', 'free', 'world', 'base')
    axes = np.eye(3)[[0, 2, 1, 1, 1, 1]]
    for side, y in (('left', 0.1), ('right', -0.1)):
        up, place = 'base', (0.0, y, -0.1)
        for k, axis in enumerate(axes):
            name = f'{side}_{k}'
            builder.link(name, mass=1.0, com=(0.0, 0.0, -0.1), inertia=(0.02, 0.02, 0.01))
            builder.joint(name, 'revolute', up, name, xyz=place, axis=axis)
            up, place = name, (0.0, 0.0, -0.2)
        rod = f'{side}_rod'
        builder.link(rod, mass=0.3, com=(0.0, 0.0, -0.2), inertia=(0.01, 0.01, 0.001))
        builder.joint(rod, 'spherical', f'{side}_2', rod, xyz=(0.05, 0.0, -0.05))
        builder.constraint(f'{rod}_end', 'point', rod, f'{side}_5', xyz_a=(0.0, 0.0, -0.55),
                           xyz_b=(0.05, 0.0, 0.0))
    return builder.build()


class InPinocchio:
    """A robot in Pinocchio, whose joints are in the order of ours."""

    def __init__(self, robot):
        tree, self.model = robot.unconstrained, pin.Model()
        self.model.gravity.linear = tree.gravity
        links = {tree.links[0].name: (0, pin.SE3.Identity())}
        for joint, link in zip(tree.joints, tree.links[1:]):
            parent, offset = links[joint.parent]
            place = offset * pin.SE3(joint.placement)
            if joint.kind != 'fixed':
                kind = {'free': pin.JointModelFreeFlyer, 'spherical': pin.JointModelSpherical,
                        'prismatic': lambda axis=joint.axis: pin.JointModelPrismaticUnaligned(axis)
                        }.get(joint.kind,
                              lambda axis=joint.axis: pin.JointModelRevoluteUnaligned(axis))()
                parent, place = (self.model.addJoint(parent, kind, place, joint.name),
                                 pin.SE3.Identity())
            links[link.name] = parent, place
            self.model.appendBodyToJoint(
                parent, pin.Inertia(link.mass, link.com, link.inertia), place)
        self.model.armature = tree.armature
        self.data = self.model.createData()
        self.constraints = pin.StdVec_RigidConstraintModel()
        self.constraint_data = pin.StdVec_RigidConstraintData()
        for one in robot.constraints:
            (a, T_a), (b, T_b) = links[one.link_a], links[one.link_b]
            self.constraints.append(pin.RigidConstraintModel(
                pin.ContactType.CONTACT_3D, self.model, a, T_a * pin.SE3(one.placement_a), b,
                T_b * pin.SE3(one.placement_b), pin.LOCAL))
            self.constraint_data.append(self.constraints[-1].createData())
        pin.initConstraintDynamics(self.model, self.data, self.constraints, self.constraint_data)
        self.settings = pin.ProximalSettings(1e-12, 1e-12, 10)
        # A free joint is linear first in Pinocchio, angular first here.
        self.order = np.arange(tree.nv)
        if tree.joints[0].kind == 'free':
            self.order[:6] = [3, 4, 5, 0, 1, 2]
        self.q_order = np.arange(tree.nq)
        if tree.joints[0].kind == 'free':
            self.q_order[:7] = [4, 5, 6, 0, 1, 2, 3]

    def forward_dynamics(self, q, v, tau):
        return pin.constraintDynamics(self.model, self.data, q, v, tau, self.constraints,
                                      self.constraint_data, self.settings)

    def derivatives(self, q, v, tau):
        self.forward_dynamics(q, v, tau)
        pin.computeConstraintDynamicsDerivatives(self.model, self.data, self.constraints,
                                                 self.constraint_data, self.settings)


def calls(robot):
    """Return the timed calls by function and library, after a check that they agree."""
    w, theirs = rbd_ros.Workspace(robot), InPinocchio(robot)
    tree, own = robot.unconstrained, robot.loops.own
    q, rng = rbd_ros.random_configuration(robot, 1), np.random.default_rng(0)
    v, a = rng.normal(scale=0.3, size=(2, robot.nv))
    tau = w.inverse_dynamics(q, v, a).copy()
    # The velocities of all joints, from a short step of the independent ones.
    h = 1e-6
    V = rbd_ros.difference(tree, rbd_ros.integrate(robot, q, v, -h),
                           rbd_ros.integrate(robot, q, v, h)) / (2.0 * h)
    tau_tree = np.zeros(tree.nv)
    tau_tree[own] = tau
    state = q[theirs.q_order], V[theirs.order], tau_tree[theirs.order]
    found = theirs.forward_dynamics(*state)[np.argsort(theirs.order)][own]
    # V is known to about 1e-9, from differences.
    error = np.max(np.abs(found - a)) / np.max(np.abs(a))
    if not error < AGREEMENT:
        raise AssertionError(f'{robot.name}: accelerations differ by {error:.1e}')
    wt = rbd_ros.Workspace(tree)
    states = [np.repeat(x[None], STATES, axis=0) for x in (q, v, tau)]
    out = np.empty((STATES, robot.nv))
    return {
        'inverse dynamics': {
            'rbd_ros': lambda: w.inverse_dynamics(q, v, a),
            'forward dynamics of the tree': lambda: wt.forward_dynamics(q, V, tau_tree)},
        'forward dynamics': {'rbd_ros': lambda: w.forward_dynamics(q, v, tau),
                             'Pinocchio': lambda: theirs.forward_dynamics(*state)},
        OF_MANY: {
            'rbd_ros': lambda: rbd_ros.batch.forward_dynamics(robot, *states, out=out, threads=1),
            'state by state': lambda: w.forward_dynamics(q, v, tau)},
        'derivatives of forward dynamics': {
            'rbd_ros': lambda: w.forward_dynamics_derivatives(q, v, tau),
            'Pinocchio': lambda: theirs.derivatives(*state)}}


def main():
    """Measure, print and save."""
    quick, results = options(__doc__).parse_args().quick, {}
    robots = [rbd_ros.load_urdf(URDF / f'{name}.urdf') for name in ROBOTS] + [two_legs()]
    with one_core():
        for robot in robots:
            for function, libraries in calls(robot).items():
                # The shortest times, in turns, are those that other processes hardly disturbed.
                times = {name: 1e6 * float(np.min(t))
                         for name, t in take_turns(libraries, quick=quick).items()}
                if function == OF_MANY:
                    times['rbd_ros'] /= STATES
                ours, other = times.values()
                results[f'{robot.name}, {function}'] = times
                print(f'{robot.name:12s} {function:32s}', ', '.join(
                    f'{name} {t:.2f} us' for name, t in times.items()), f'({ours / other:.2f})',
                    flush=True)
    save('closed_loops', quick, {'rows': results})


if __name__ == '__main__':
    main()
