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

from collections.abc import Callable
from typing import Any

from rbd_ros.codegen.casadi_code import casadi_expressions, casadi_function, import_casadi
from rbd_ros.codegen.graph import Graph
from rbd_ros.codegen.symbols.interpretation import interpreted
from rbd_ros.codegen.tracing import trace
from rbd_ros.differentiable import function_of_robots, names_of_functions
from rbd_ros.kernels.tree.vectors import quaternion_rotation
from rbd_ros.model.arguments import refuse_loops
from rbd_ros.model.joints import KINDS
from rbd_ros.model.model import Model
from rbd_ros.quantities import QUANTITIES

# CasADi takes the Jacobian below for more than 1.5 derivatives at once by its reverse mode, or 4.5
# by its forward mode. Fewer take fewer operations by its own means, and so do Hessians.
SEEDS = 1.5


def configuration_rate(model: Model) -> Any:
    """Return dq/dt for (q, v): v, if the robot has no quaternions."""
    casadi = import_casadi()
    refuse_loops(model, 'configuration_rate')
    q, v = casadi.SX.sym('q', model.nq), casadi.SX.sym('v', model.nv)
    return casadi.Function('configuration_rate', [q, v], [_rate_matrix(model, q) @ v],
                           ['q', 'v'], ['q_dot'])


def _function(model: Model, name: str, *options: Any) -> Any:
    """Return a function; of one link only where the graph has the poses of all."""
    declared = QUANTITIES[name]
    rule = declared.derivatives
    if isinstance(rule, str) and QUANTITIES[rule].inputs == declared.inputs:
        return _with_jacobian(model, name, rule)
    if declared.by_link:
        graph, k = _traced(model, name), model.link_index(*options)
        return casadi_function(graph._replace(
            outputs=(graph.outputs[0]._replace(shape=graph.outputs[0].shape[1:]),),
            results=(graph.results[0][k],)))
    return casadi_function(_traced(
        model, name, **dict(zip(declared.options, options)))._replace(name=name))


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


def _with_jacobian(model: Model, name: str, derivatives: str) -> Any:
    """Return a function whose Jacobian is the library's, given the quantity of these."""
    casadi = import_casadi()
    graph = _traced(model, name)
    inputs, outputs = casadi_expressions(graph)
    names, output = [array.name for array in graph.inputs], graph.outputs[0].name
    states, blocks = casadi_expressions(_traced(model, derivatives))
    blocks[0] = blocks[0] @ _velocity_matrix(model, states[0])
    # CasADi's form: it also passes the value of the function.
    jacobian = casadi.Function(
        f'jac_{name}', [*states, casadi.SX(*outputs[0].shape)], blocks, [*names, f'out_{output}'],
        [f'jac_{output}_{one}' for one in names])
    return casadi.Function(name, inputs, outputs, names, [output],
                           {'custom_jacobian': jacobian, 'jac_penalty': SEEDS / max(model.nv, 1)})


__all__ = ['configuration_rate', *names_of_functions()]


def __getattr__(name: str) -> Callable[..., Any]:
    return function_of_robots(__name__, name, _function)
