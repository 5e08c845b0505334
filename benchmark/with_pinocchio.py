# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""Pinocchio's counterparts of the functions of this package."""

from functools import partial

import numpy as np
import pinocchio as pin

# Its ten parameters of a body in our order; its inertia is xx, xy, yy, xz, yz, zz.
PARAMETERS = np.array([0, 1, 2, 3, 4, 6, 9, 5, 7, 8])


def build(robot):
    """
    Return the robot in Pinocchio.

    Returns
    -------
    model : pinocchio.Model
        The robot.
    order : ndarray
        Our index of each of its velocities.
    q : ndarray
        Its configuration.

    """
    ours = robot.model
    root = [pin.JointModelFreeFlyer()] if robot.floating else []
    model = pin.buildModelFromUrdf(str(robot.path), *root)
    if robot.locked:
        model = pin.buildReducedModel(model, [model.getJointId(name) for name in robot.locked],
                                      pin.neutral(model))
    model.gravity.linear = ours.gravity
    names = list(model.names)[1 + robot.floating:]
    order = np.array([ours.velocity_names.index(name) for name in names])
    if not robot.floating:
        return model, order, robot.q[order]
    # Position before quaternion, linear before angular.
    q = np.concatenate((robot.q[4:7], robot.q[:4], robot.q[order + 1]))
    return model, np.concatenate(([3, 4, 5, 0, 1, 2], order)), q


def in_parallel(robot, threads, states):
    """Return for each parallel call the timed call, and a function that returns its result."""
    model, order, _ = build(robot)
    pool = pin.ModelPool(model, threads)
    Q, *rest = states.values()
    q = (np.column_stack((Q[:, 4:7], Q[:, :4], Q[:, order[6:] + 1])) if robot.floating
         else Q[:, order])
    # Pinocchio takes one state per column.
    q, v, a, tau = (np.asfortranarray(x.T) for x in (q, *(x[:, order] for x in rest)))
    result, back = np.zeros_like(v), np.argsort(order)
    calls = {'inverse dynamics': partial(pin.rneaInParallel, threads, pool, q, v, a, result),
             'forward dynamics': partial(pin.abaInParallel, threads, pool, q, v, tau, result)}

    def found(call):
        call()
        return result[back].T

    return {name: (call, partial(found, call)) for name, call in calls.items()}


def functions(robot):
    """Return for each function the timed call, and a function that returns its outputs by name."""
    model, order, q = build(robot)
    data = model.createData()
    back = np.argsort(order)
    v, a, tau = robot.v[order], robot.a[order], robot.tau[order]
    tip = model.getFrameId(robot.tip, pin.FrameType.BODY)
    joints = [joint.name for joint, _, _ in robot.model.moving_joints]
    if robot.floating:
        joints[0] = 'root_joint'
    columns = np.concatenate([10 * (model.getJointId(name) - 1) + PARAMETERS for name in joints])

    def four_calls():
        M = pin.crba(model, data, q)
        C = pin.computeCoriolisMatrix(model, data, q, v)
        g = pin.computeGeneralizedGravity(model, data, q)
        return M, C, g, pin.jacobianCenterOfMass(model, data, q)

    def square(x):
        return x[np.ix_(back, back)]

    def symmetric(x):
        return square(np.triu(x) + np.triu(x, 1).T)

    def all_terms():
        M, C, g, J_com = four_calls()
        moved = data.mass[0] / robot.model.mass
        com = moved * data.com[0] + _root_moment(robot.model) / robot.model.mass
        return {'M': symmetric(M), 'C': square(C), 'g': g[back], 'C v': (C @ v)[back],
                'J_CoM': moved * J_com[:, back], 'CoM': com}

    def derivatives(call, by):
        by_q, by_v, by_input = call()
        return {'by q': square(by_q), 'by v': square(by_v), by: symmetric(by_input)}

    def jacobian():
        J = world_jacobian()
        return {'J': np.vstack((J[3:], J[:3]))[:, back], 'pose': data.oMf[tip].homogeneous}

    def swapped(x):
        return np.vstack((x[3:], x[:3]))[:, back]

    def body_jacobian():
        return pin.computeFrameJacobian(model, data, q, tip, pin.LOCAL)

    def jacobian_rate(frame):
        pin.computeJointJacobiansTimeVariation(model, data, q, v)
        return pin.getFrameJacobianTimeVariation(model, data, tip, frame)

    def rate_outputs(frame):
        pin.framesForwardKinematics(model, data, q)
        return {'rate': swapped(jacobian_rate(frame))}

    def momentum():
        pin.ccrba(model, data, q, v)
        return {'centroidal momentum matrix': about_com(swapped(data.Ag))}

    def momentum_rate():
        pin.dccrba(model, data, q, v)
        A, rate = swapped(data.Ag), about_com(swapped(data.dAg))
        moved = pin.computeTotalMass(model) / robot.model.mass
        velocity = data.hg.linear / pin.computeTotalMass(model)
        rate[:3] += np.cross((1.0 - moved) * velocity, A[3:], axisb=0).T
        return {'A': about_com(A), 'rate': rate}

    def about_com(A):
        # About the centre of mass of the whole robot: Pinocchio ignores fixed links.
        moved = pin.computeTotalMass(model) / robot.model.mass
        com = moved * data.com[0] + _root_moment(robot.model) / robot.model.mass
        A[:3] += np.cross(data.com[0] - com, A[3:], axisb=0).T
        return A

    inverse = partial(pin.rnea, model, data, q, v, a)
    forward = partial(pin.aba, model, data, q, v, tau)
    gravity = partial(pin.computeGeneralizedGravity, model, data, q)
    of_inverse = partial(pin.computeRNEADerivatives, model, data, q, v, a)
    of_forward = partial(pin.computeABADerivatives, model, data, q, v, tau)
    of_gravity = partial(pin.computeGeneralizedGravityDerivatives, model, data, q)
    regressor = partial(pin.computeJointTorqueRegressor, model, data, q, v, a)
    world_jacobian = partial(pin.computeFrameJacobian, model, data, q, tip,
                             pin.LOCAL_WORLD_ALIGNED)
    found = {
        'all terms': (four_calls, all_terms),
        'derivatives of inverse dynamics': (of_inverse, partial(derivatives, of_inverse, 'by a')),
        'derivatives of forward dynamics': (of_forward,
                                            partial(derivatives, of_forward, 'by tau')),
        'world Jacobian': (world_jacobian, jacobian),
        'body Jacobian': (body_jacobian, lambda: {'J': swapped(body_jacobian())}),
        'rate of the body Jacobian': (partial(jacobian_rate, pin.LOCAL),
                                      partial(rate_outputs, pin.LOCAL)),
        'rate of the world Jacobian': (partial(jacobian_rate, pin.LOCAL_WORLD_ALIGNED),
                                       partial(rate_outputs, pin.LOCAL_WORLD_ALIGNED)),
        'centroidal momentum matrix': (partial(pin.ccrba, model, data, q, v), momentum),
        'and its rate': (partial(pin.dccrba, model, data, q, v), momentum_rate),
        'derivatives of g': (of_gravity, lambda: {'derivatives of g': square(of_gravity())}),
    }
    for name, call, turn in (
            ('inverse dynamics', inverse, back), ('inverse dynamics, packed', inverse, back),
            ('forward dynamics', forward, back),
            ('gravity torques', gravity, back),
            ('torque regressor', regressor, np.ix_(back, columns))):
        found[name] = call, lambda name=name, call=call, turn=turn: {name: call()[turn]}
    return found


def _root_moment(model):
    """Return mass times position of the fixed links, which Pinocchio ignores."""
    moment = np.zeros(3)
    for link, body, T in zip(model.links, model.tree.link_body, model.tree.link_pose):
        if body == 0:
            moment += link.mass * (T[:3, :3] @ link.com + T[:3, 3])
    return moment
