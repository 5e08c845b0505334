# Copyright 2026 The rbd_ros authors
# SPDX-License-Identifier: Apache-2.0
"""
The functions of a robot for CasADi, with exact derivatives.

Each function here takes a robot and returns a `casadi.Function` of columns q (nq,), v, a or tau
(nv,), traced from the kernels. It takes numbers and symbols, and needs no compiler.

    dynamics = rbd_ros.casadi.forward_dynamics(model)
    a = dynamics(q, v, tau)

Jacobians of inverse and forward dynamics are those of `rbd_ros.inverse_dynamics_derivatives` and
`forward_dynamics_derivatives`; CasADi differentiates everything else, and these in ``map`` and
``expand``. Functions are those of q with unit quaternions, whatever the lengths of its
quaternions, and derivatives are with respect to all of q: a change of a length has no effect.

Arguments are not checked: where the library raises an error, results are not finite or have no
meaning. All functions raise RbdError if CasADi is missing, ModelError for a robot with closed
loops or a link that does not exist, and StateError for anything but a robot and for a wrong mask.

"""

from typing import Any

from numpy.typing import ArrayLike
from rbd_ros.codegen.casadi_code import casadi_expressions, casadi_function, import_casadi
from rbd_ros.codegen.graph import Graph
from rbd_ros.codegen.interpretation import interpreted
from rbd_ros.codegen.tracing import trace
from rbd_ros.kernels.vectors import quaternion_rotation
from rbd_ros.model.arguments import refuse_loops
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model

__all__ = [
    'bias_torques', 'body_jacobian', 'com_jacobian', 'configuration_rate', 'coriolis_matrix',
    'forward_dynamics', 'forward_kinematics', 'friction_torques', 'gravity_torques',
    'hybrid_dynamics', 'inverse_dynamics', 'mass_matrix', 'world_jacobian']
# CasADi takes the Jacobian below for more than 1.5 derivatives at once by its reverse mode, or 4.5
# by its forward mode. Fewer take fewer operations by its own means, and so do Hessians.
SEEDS = 1.5


def inverse_dynamics(model: Model) -> Any:
    """Return tau(q, v, a)."""
    return _with_jacobian(model, 'inverse_dynamics')


def forward_dynamics(model: Model) -> Any:
    """Return a(q, v, tau)."""
    return _with_jacobian(model, 'forward_dynamics')


def hybrid_dynamics(model: Model, prescribed: ArrayLike) -> Any:
    """Return all a and tau for (q, v, a, tau), of which a is read where it is `prescribed`."""
    return casadi_function(_traced(model, 'hybrid_dynamics', prescribed=prescribed))


def mass_matrix(model: Model) -> Any:
    """Return M(q)."""
    return casadi_function(_traced(model, 'mass_matrix'))


def coriolis_matrix(model: Model) -> Any:
    """Return C(q, v), with dM/dt - 2 C skew."""
    return casadi_function(_traced(model, 'coriolis_matrix'))


def gravity_torques(model: Model) -> Any:
    """Return g(q)."""
    return casadi_function(_traced(model, 'gravity_torques'))


def bias_torques(model: Model) -> Any:
    """Return C v + g for (q, v)."""
    return casadi_function(_traced(model, 'bias_torques'))


def friction_torques(model: Model) -> Any:
    """Return the torques of viscous and dry friction for (v)."""
    return casadi_function(_traced(model, 'friction_torques'))


def forward_kinematics(model: Model, link: str) -> Any:
    """Return the pose (4, 4) of a link in the frame of the root for (q)."""
    graph = _traced(model, 'forward_kinematics')
    k = model.link_index(link)
    return casadi_function(graph._replace(
        outputs=(graph.outputs[0]._replace(shape=(4, 4)),), results=(graph.results[0][k],)))


def body_jacobian(model: Model, link: str) -> Any:
    """Return the Jacobian (6, nv) of a link, angular first, in its axes for (q)."""
    return casadi_function(_traced(model, 'jacobian', link=link)._replace(name='body_jacobian'))


def world_jacobian(model: Model, link: str) -> Any:
    """Return the Jacobian (6, nv) of a link, angular first, in the axes of the root for (q)."""
    return casadi_function(_traced(model, 'world_jacobian', link=link))


def com_jacobian(model: Model) -> Any:
    """Return the Jacobian (3, nv) of the centre of mass in the axes of the root for (q)."""
    return casadi_function(_traced(model, 'com_jacobian'))


def configuration_rate(model: Model) -> Any:
    """Return dq/dt for (q, v): v, if the robot has no quaternions."""
    casadi = import_casadi()
    refuse_loops(model, 'configuration_rate')
    q, v = casadi.SX.sym('q', model.nq), casadi.SX.sym('v', model.nv)
    return casadi.Function('configuration_rate', [q, v], [_rate_matrix(model, q) @ v],
                           ['q', 'v'], ['q_dot'])


def _traced(model: Model, function: str, **options: Any) -> Graph:
    """Return the graph of a function of q whose entries change independently."""
    refuse_loops(model, f'{function} of CasADi')
    return trace(model, function, **options)


def _rate_matrix(model: Model, q: Any) -> Any:
    """Return N (nq, nv), with dq/dt = N v."""
    casadi = import_casadi()
    blocks = []
    for joint, i, _ in model.moving_joints:
        if KINDS[joint.kind].is_screws:
            blocks.append(casadi.SX.eye(joint.nv))
            continue
        x, y, z, w = casadi.vertsplit(q[i.start:i.start + 4])
        # Half of the product of the quaternion and (omega, 0).
        blocks.append(0.5 * casadi.blockcat([[w, -z, y], [z, w, -x], [-y, x, w], [-x, -y, -z]]))
        if joint.kind == 'free':
            columns = interpreted(quaternion_rotation)(x, y, z, w)
            blocks.append(casadi.horzcat(*(casadi.vertcat(*column) for column in columns)))
    return casadi.diagcat(*blocks)


def _velocity_matrix(model: Model, q: Any) -> Any:
    """Return T (nv, nq), with v = T dq/dt; a change of a quaternion's length is no motion."""
    casadi = import_casadi()
    scale = casadi.SX.ones(model.nq)
    for joint, i, _ in model.moving_joints:
        if not KINDS[joint.kind].is_screws:
            # The columns of its block of the rate matrix are orthogonal and half as long as it.
            scale[i.start:i.start + 4] = 4.0 / casadi.sumsqr(q[i.start:i.start + 4])
    return _rate_matrix(model, q).T @ casadi.diag(scale)


def _with_jacobian(model: Model, name: str) -> Any:
    """Return a function whose Jacobian is the library's."""
    casadi = import_casadi()
    graph = _traced(model, name)
    inputs, outputs = casadi_expressions(graph)
    names, output = [array.name for array in graph.inputs], graph.outputs[0].name
    states, blocks = casadi_expressions(_traced(model, f'{name}_derivatives'))
    blocks[0] = blocks[0] @ _velocity_matrix(model, states[0])
    # CasADi's form: it also passes the value of the function.
    jacobian = casadi.Function(
        f'jac_{name}', [*states, casadi.SX(model.nv, 1)], blocks, [*names, f'out_{output}'],
        [f'jac_{output}_{one}' for one in names])
    return casadi.Function(name, inputs, outputs, names, [output],
                           {'custom_jacobian': jacobian, 'jac_penalty': SEEDS / max(model.nv, 1)})
