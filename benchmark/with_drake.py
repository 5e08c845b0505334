# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
Drake's counterparts of the functions of this package, for the same outputs.

Drake caches its results until the state changes, so every call begins by setting the state. Its
all terms exclude C, of which it has only C v. Its derivatives, by automatic differentiation, are
left out.

"""

from functools import partial
from xml.etree import ElementTree

import numpy as np
from pydrake.multibody.parsing import Parser
from pydrake.multibody.plant import MultibodyPlant
from pydrake.multibody.tree import JacobianWrtVariable, MultibodyForces
from rbd_ros.model.joints import quaternion_matrix
from rbd_ros.model.se3 import skew
from robots import bare_urdf


def build(robot):
    """Return the robot in Drake: its URDF without shapes, locked joints fixed."""
    plant = MultibodyPlant(time_step=0.0)
    Parser(plant).AddModelsFromString(ElementTree.tostring(bare_urdf(robot), encoding='unicode'),
                                      'urdf')
    plant.mutable_gravity_field().set_gravity_vector(robot.model.gravity)
    if not robot.floating:
        root = plant.GetFrameByName(robot.model.link_names[0])
        if root.body().index() != plant.world_body().index():
            plant.WeldFrames(plant.world_frame(), root)
    plant.Finalize()
    return plant


def functions(robot):
    """Return for each function the timed call, and a function that returns its outputs by name."""
    ours, plant = robot.model, build(robot)
    context, nv = plant.CreateDefaultContext(), plant.num_velocities()
    world, by_v = plant.world_frame(), JacobianWrtVariable.kV
    # Drake's velocities are T v, and their rates T a + moved.
    q, T, moved = np.zeros(plant.num_positions()), np.zeros((nv, nv)), np.zeros(nv)
    for joint, of_q, of_v in ours.moving_joints:
        if joint.nv == 1:
            there = plant.GetJointByName(joint.name)
            q[there.position_start()] = robot.q[of_q][0]
            T[there.velocity_start(), of_v.start] = 1.0
            continue
        body = plant.GetBodyByName(joint.child)
        k, row = body.floating_positions_start(), body.floating_velocities_start_in_v()
        x, y, z, w = robot.q[of_q][:4]
        q[k:k + 7] = [w, x, y, z, *robot.q[of_q][4:]]
        R = quaternion_matrix([x, y, z, w])
        T[row:row + 6, of_v] = np.kron(np.eye(2), R)
        omega, slide = robot.v[of_v][:3], robot.v[of_v][3:]
        moved[row + 3:row + 6] = R @ skew(omega) @ slide
    v, a, tau = T @ robot.v, T @ robot.a + moved, np.linalg.solve(T.T, robot.tau)
    plant.get_applied_generalized_force_input_port().FixValue(context, tau)
    accelerations = plant.get_generalized_acceleration_output_port()
    forces, tip = MultibodyForces(plant), plant.GetFrameByName(robot.tip)

    def renew():
        plant.SetPositions(context, q)
        plant.SetVelocities(context, v)

    def all_terms():
        renew()
        return (plant.CalcMassMatrix(context), plant.CalcBiasTerm(context),
                plant.CalcGravityGeneralizedForces(context),
                plant.CalcJacobianCenterOfMassTranslationalVelocity(context, by_v, world, world),
                plant.CalcCenterOfMassPositionInWorld(context))

    def inverse_dynamics():
        renew()
        plant.CalcForceElementsContribution(context, forces)
        return plant.CalcInverseDynamics(context, a, forces)

    def forward_dynamics():
        renew()
        return accelerations.Eval(context)

    def gravity_torques():
        renew()
        return -plant.CalcGravityGeneralizedForces(context)

    def world_jacobian():
        renew()
        return (plant.CalcJacobianSpatialVelocity(context, by_v, tip, np.zeros(3), world, world),
                tip.CalcPoseInWorld(context).GetAsMatrix4())

    def all_outputs():
        M, Cv, g, J_com, com = all_terms()
        return {'M': T.T @ M @ T, 'C v': T.T @ (M @ moved + Cv), 'g': -T.T @ g, 'CoM': com,
                'J_CoM': J_com @ T}

    def jacobian():
        J, pose = world_jacobian()
        return {'J': J @ T, 'pose': pose}

    def torques(call):
        return {call.__name__.replace('_', ' '): T.T @ call()}

    return {
        'all terms': (all_terms, all_outputs),
        'inverse dynamics': (inverse_dynamics, partial(torques, inverse_dynamics)),
        'forward dynamics': (forward_dynamics, lambda: {
            'forward dynamics': np.linalg.solve(T, forward_dynamics() - moved)}),
        'gravity torques': (gravity_torques, partial(torques, gravity_torques)),
        'world Jacobian': (world_jacobian, jacobian),
    }
